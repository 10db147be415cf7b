/* SPDX-License-Identifier: Apache-2.0
 *
 * The module of decorrelated batch normalisation: the states avg_mean and avg_projection, with
 * Chainer's names, shapes and initial values, and no parameters.
 */
#include "nn/nn.h"

typedef struct {
    ctn_var *mean, *projection;
    ctn_decorrelated_batch_norm_opt how;
} whitening;

static ctn_tensor *whitening_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const whitening *w = self;
    return ctn_decorrelated_batch_norm_at(m->at, x, w->mean, w->projection, &w->how);
}

/* The identity in each group of v (groups,c,c). */
static ctn_status set_identity(ctn_var *v, int64_t groups, int64_t c)
{
    const ctn_dtype t = ctn_var_desc(v)->dtype;
    const size_t bytes = (size_t)(groups * c * c) * ctn_dtype_size(t);
    void *e = ctn__calloc(1, bytes);
    if (!e) return CTN_ENOMEM;
    for (int64_t i = 0; i < groups * c; i++) ctn__elem_set(e, t, i * c + i % c, 1);
    const ctn_status st = ctn_var_set(v, e, bytes);
    ctn__free(e);
    return st;
}

ctn_status ctn_decorrelated_batch_norm_new(ctn_module **m, ctn_context *ctx, int64_t channels,
                                           const ctn_decorrelated_batch_norm_opt *opt)
{
    ctn_status st = CTN_OK;
    ctn_decorrelated_batch_norm_opt o;
    ctn_module *made = NULL;
    if (!m) return ctn_fail(CTN_EARG, "decorrelated_batch_norm_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("decorrelated_batch_norm_new", &o, sizeof o, opt));
    if (o.groups == 0) o.groups = 16;
    if (channels < 1 || o.groups < 1 || channels % o.groups)
        return ctn_fail(CTN_EARG,
                        "decorrelated_batch_norm_new: %lld channels cannot be divided into %lld "
                        "groups",
                        (long long)channels, (long long)o.groups);
    const int64_t c = channels / o.groups;
    whitening *w = ctn__calloc(1, sizeof *w);
    if (!w) return CTN_ENOMEM;
    w->how = o;
    CTN_TRY(
        ctn__module_own(&made, ctx, whitening_forward, w, sizeof *w, CTN__REFS(whitening, how)));
    const ctn_dtype t = ctn_context_float_type(ctx);
    CTN_TRY_GOTO(st, fail,
                 ctn_module_state(&w->mean, made, "avg_mean", t, CTN_SHAPE(o.groups, c), NULL));
    CTN_TRY_GOTO(st, fail,
                 ctn_module_state(&w->projection, made, "avg_projection", t,
                                  CTN_SHAPE(o.groups, c, c), NULL));
    CTN_TRY_GOTO(st, fail, set_identity(w->projection, o.groups, c));
    *m = made;
    return CTN_OK;
fail:
    ctn_module_free(made);
    return st;
}
