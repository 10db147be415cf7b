/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch normalisation module: parameters weight and bias (C), states running_mean and
 * running_var (C) and num_batches_tracked, with PyTorch's names and initial values. The count
 * exists only so that weights can be exchanged with PyTorch; no result depends on it. It is
 * incremented by every call in training, at the call and not at the step. The module of batch
 * renormalisation has the same variables.
 */
#include "nn/nn.h"

#include <math.h>

typedef struct {
    ctn_var *weight, *bias; /* both NULL: none */
    ctn_var *mean, *var, *batches;
    ctn_batch_norm_opt how;
    double rmax, dmax; /* of batch renormalisation */
} batch_norm;

static ctn_tensor *batch_norm_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const batch_norm *b = self;
    const char *at = m->at;
    ctn_tensor *scale = NULL, *shift = NULL;
    if (b->weight && !((scale = ctn_use_at(at, b->weight)) && (shift = ctn_use_at(at, b->bias))))
        return NULL;
    const bool training = ctn_context_training(m->ctx) != 0 && !b->how.frozen;
    ctn_tensor *y = training && m->norm.train
                        ? m->norm.train(m->norm.user, at, x, scale, shift, b->mean, b->var, &b->how)
                        : ctn_batch_norm_at(at, x, scale, shift, b->mean, b->var, &b->how);
    if (y && training) ++*(int64_t *)b->batches->data;
    return y;
}

static ctn_tensor *batch_renorm_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const batch_norm *b = self;
    const char *at = m->at;
    ctn_tensor *scale = NULL, *shift = NULL;
    if (b->weight && !((scale = ctn_use_at(at, b->weight)) && (shift = ctn_use_at(at, b->bias))))
        return NULL;
    if (b->how.frozen) return ctn_batch_norm_at(at, x, scale, shift, b->mean, b->var, &b->how);
    ctn_tensor *y =
        ctn_batch_renorm_at(at, x, scale, shift, b->mean, b->var,
                            CTN_OPT(ctn_batch_renorm_opt, .eps = b->how.eps,
                                    .momentum = b->how.momentum, .rmax = b->rmax, .dmax = b->dmax));
    if (y && ctn_context_training(m->ctx)) ++*(int64_t *)b->batches->data;
    return y;
}

bool ctn__is_batch_norm(const ctn_module *m)
{
    return m->forward == batch_norm_forward || m->forward == batch_renorm_forward;
}

void ctn__batch_norm_freeze(ctn_module *m, bool on)
{
    batch_norm *b = m->self;
    b->how.frozen = on;
}

bool ctn__batch_norm_frozen(const ctn_module *m)
{
    const batch_norm *b = m->self;
    return b->how.frozen != 0;
}

void ctn__batch_norm_set(ctn_module *m, ctn__batch_norm_fn fn, void *user)
{
    if (!m->norms) return;
    m->norm.train = fn;
    m->norm.user = user;
}

bool ctn__batch_norm_is_set(const ctn_module *m)
{
    bool any = m->norm.train != NULL;
    for (size_t i = 0; i < m->children.n && !any; i++)
        any = ctn__batch_norm_is_set(m->children.at[i]);
    return any;
}

static ctn_status add_vars(ctn_module *m, batch_norm *b, const ctn_batch_norm_module_opt *o,
                           int64_t channels)
{
    const ctn_init *ones = CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT, .value = 1);
    if (!o->no_affine) {
        CTN_TRY(ctn_module_param(&b->weight, m, "weight", ctn_context_float_type(m->ctx),
                                 CTN_SHAPE(channels), o->weight ? o->weight : ones));
        CTN_TRY(ctn_module_param(&b->bias, m, "bias", ctn_context_float_type(m->ctx),
                                 CTN_SHAPE(channels), o->bias));
    }
    CTN_TRY(ctn_module_state(&b->mean, m, "running_mean", ctn_context_float_type(m->ctx),
                             CTN_SHAPE(channels), NULL));
    CTN_TRY(ctn_module_state(&b->var, m, "running_var", ctn_context_float_type(m->ctx),
                             CTN_SHAPE(channels), ones));
    return ctn_module_state(&b->batches, m, "num_batches_tracked", CTN_I64, CTN_SCALAR_SHAPE, NULL);
}

/* Make a module of either kind. rmax 0: batch normalisation. */
static ctn_status make(ctn_module **m, ctn_context *ctx, const char *who, int64_t channels,
                       const ctn_batch_norm_module_opt *o, double rmax, double dmax)
{
    if (channels < 1)
        return ctn_fail(CTN_EARG, "%s: got %lld channels, expected at least 1", who,
                        (long long)channels);
    batch_norm *b = ctn__calloc(1, sizeof *b);
    if (b) {
        b->how = (ctn_batch_norm_opt){sizeof b->how, o->eps, o->momentum, 0};
        b->rmax = rmax;
        b->dmax = dmax;
    }
    CTN_TRY(ctn__module_own(m, ctx, rmax > 0 ? batch_renorm_forward : batch_norm_forward, b,
                            sizeof *b, CTN__REFS(batch_norm, how)));
    (*m)->norms = rmax == 0;
    ctn_status st = add_vars(*m, b, o, channels);
    if (st < 0) {
        ctn_module_free(*m);
        *m = NULL;
    }
    return st;
}

ctn_status ctn_batch_norm_new(ctn_module **m, ctn_context *ctx, int64_t channels,
                              const ctn_batch_norm_module_opt *opt)
{
    ctn_batch_norm_module_opt o;
    if (!m) return ctn_fail(CTN_EARG, "batch_norm_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("batch_norm_new", &o, sizeof o, opt));
    return make(m, ctx, "batch_norm_new", channels, &o, 0, 0);
}

/* ---- batch renormalisation ------------------------------------------------------------------- */

static ctn_status check_limits(const char *who, double rmax, double dmax)
{
    if (rmax >= 1 && isfinite(rmax) && !isnan(dmax)) return CTN_OK;
    return ctn_fail(CTN_EARG, "%s: rmax is %g, dmax is %g; rmax must be at least 1", who, rmax,
                    dmax);
}

ctn_status ctn_batch_renorm_new(ctn_module **m, ctn_context *ctx, int64_t channels,
                                const ctn_batch_renorm_module_opt *opt)
{
    ctn_batch_renorm_module_opt o;
    if (!m) return ctn_fail(CTN_EARG, "batch_renorm_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("batch_renorm_new", &o, sizeof o, opt));
    if (o.rmax == 0) o.rmax = 3;
    if (o.dmax == 0) o.dmax = 5;
    CTN_TRY(check_limits("batch_renorm_new", o.rmax, o.dmax));
    return make(m, ctx, "batch_renorm_new", channels,
                CTN_OPT(ctn_batch_norm_module_opt, .eps = o.eps, .momentum = o.momentum,
                        .no_affine = o.no_affine, .weight = o.weight, .bias = o.bias),
                o.rmax, o.dmax);
}

ctn_status ctn_batch_renorm_set_limits(ctn_module *m, double rmax, double dmax)
{
    if (!m || m->forward != batch_renorm_forward)
        return ctn_fail(CTN_EARG,
                        "batch_renorm_set_limits: expected a module of ctn_batch_renorm_new");
    if (dmax == 0) dmax = -1; /* none, where 0 in options means the default */
    CTN_TRY(check_limits("batch_renorm_set_limits", rmax, dmax));
    batch_norm *b = m->self;
    b->rmax = rmax;
    b->dmax = dmax;
    return CTN_OK;
}
