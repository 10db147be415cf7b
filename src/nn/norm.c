/* SPDX-License-Identifier: Apache-2.0
 *
 * The modules of group, layer and RMS normalisation: parameters weight (ones) and bias (zeros).
 * Group normalisation has one element per channel, the others one per element of the last
 * dimensions.
 */
#include <catena/ops.h>

#include "nn/nn.h"

typedef struct {
    ctn_var *weight, *bias; /* NULL: none */
    int64_t groups;         /* 0: normalisation over the last n dimensions */
    int n;
    bool rms; /* without subtracting the mean */
    double eps;
} norm;

static ctn_tensor *norm_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const norm *l = self;
    const char *at = m->at;
    ctn_tensor *w = NULL, *b = NULL;
    if (l->weight && !(w = ctn_use_at(at, l->weight))) return NULL;
    if (l->bias && !(b = ctn_use_at(at, l->bias))) return NULL;
    if (l->rms) return ctn_rms_norm_at(at, x, l->n, w, l->eps);
    return l->groups ? ctn_group_norm_at(at, x, l->groups, w, b, l->eps)
                     : ctn_layer_norm_at(at, x, l->n, w, b, l->eps);
}

/* Create a module from `like`; dims is the shape of its parameters. */
static ctn_status new_norm(ctn_module **m, ctn_context *ctx, norm like, int ndim,
                           const int64_t *dims, const ctn_norm_opt *o)
{
    norm *l = ctn__malloc(sizeof *l);
    like.eps = o->eps > 0 ? o->eps : 1e-5;
    if (l) *l = like;
    CTN_TRY(ctn__module_own(m, ctx, norm_forward, l, sizeof *l, CTN__REFS(norm, groups)));
    ctn_status st = CTN_OK;
    const ctn_init *ones = CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT, .value = 1);
    if (!o->no_affine)
        CTN_TRY_GOTO(st, fail,
                     ctn_module_param(&l->weight, *m, "weight", ctn_context_float_type((*m)->ctx),
                                      ndim, dims, ones));
    if (!o->no_affine && !o->no_bias)
        CTN_TRY_GOTO(st, fail,
                     ctn_module_param(&l->bias, *m, "bias", ctn_context_float_type((*m)->ctx), ndim,
                                      dims, NULL));
    return CTN_OK;
fail:
    ctn_module_free(*m);
    *m = NULL;
    return st;
}

ctn_status ctn_group_norm_new(ctn_module **m, ctn_context *ctx, int64_t groups, int64_t channels,
                              const ctn_norm_opt *opt)
{
    ctn_norm_opt o;
    if (!m) return ctn_fail(CTN_EARG, "group_norm_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("group_norm_new", &o, sizeof o, opt));
    if (groups < 1 || channels < 1 || channels % groups)
        return ctn_fail(CTN_EARG,
                        "group_norm_new: %lld channels in %lld groups; both must be positive, and "
                        "groups must divide channels",
                        (long long)channels, (long long)groups);
    return new_norm(m, ctx, (norm){.groups = groups}, CTN_SHAPE(channels), &o);
}

static ctn_status over_last(const char *who, ctn_module **m, ctn_context *ctx, bool rms, int ndim,
                            const int64_t *dims, const ctn_norm_opt *opt)
{
    ctn_norm_opt o;
    if (!m) return ctn_fail(CTN_EARG, "%s: NULL argument", who);
    *m = NULL;
    CTN_TRY(ctn__opt(who, &o, sizeof o, opt));
    if (ndim < 1 || ndim > CTN_MAX_DIMS || !dims)
        return ctn_fail(CTN_EARG, "%s: got %d dimensions, expected 1 to %d", who, ndim,
                        CTN_MAX_DIMS);
    o.no_bias |= rms;
    return new_norm(m, ctx, (norm){.n = ndim, .rms = rms}, ndim, dims, &o);
}

ctn_status ctn_layer_norm_new(ctn_module **m, ctn_context *ctx, int ndim, const int64_t *dims,
                              const ctn_norm_opt *opt)
{
    return over_last("layer_norm_new", m, ctx, false, ndim, dims, opt);
}

ctn_status ctn_rms_norm_new(ctn_module **m, ctn_context *ctx, int ndim, const int64_t *dims,
                            const ctn_norm_opt *opt)
{
    return over_last("rms_norm_new", m, ctx, true, ndim, dims, opt);
}
