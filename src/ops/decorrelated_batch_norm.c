/* SPDX-License-Identifier: Apache-2.0
 *
 * decorrelated_batch_norm and fixed_decorrelated_batch_norm, recorded with other ops. x (N,C,...)
 * is seen as (groups,c,M): groups of c channels with M elements each. With d = x - m, the
 * covariance is d d^T / M, and y = p d. Everything has gradients of any order.
 */
#include "ops/ops.h"

static ctn_tensor *to_groups(const char *at, ctn_tensor *x, int64_t groups)
{
    const int64_t C = x->d.dim[1], M = C > 0 ? ctn__count(&x->d) / C : 0;
    return ctn_reshape_at(at, ctn_swapaxes_at(at, x, 0, 1), CTN_SHAPE(groups, C / groups, M));
}

/* The reverse; `like` is the x that to_groups got. */
static ctn_tensor *from_groups(const char *at, ctn_tensor *y, const ctn_tensor *like)
{
    ctn_desc d = like->d;
    d.dim[0] = like->d.dim[1];
    d.dim[1] = like->d.dim[0];
    return ctn_swapaxes_at(at, ctn_reshape_at(at, y, d.ndim, d.dim), 0, 1);
}

static ctn_status check(const char *who, const char *at, const ctn_tensor *x, int64_t groups)
{
    char t[128];
    if (!ctn__is_f32_f64(x->d.dtype))
        return ctn_fail(CTN_EDTYPE, "%s: x is %s, expected f32 or f64 (%s)", who,
                        ctn_dtype_name(x->d.dtype), at);
    if (x->d.ndim < 2 || ctn__count(&x->d) == 0)
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, expected (N,C,...) with elements (%s)", who,
                        ctn__shape_text(&x->d, t, sizeof t), at);
    if (groups < 1 || x->d.dim[1] % groups)
        return ctn_fail(CTN_EARG,
                        "%s: the channels of x %s cannot be divided into %lld groups (%s)", who,
                        ctn__shape_text(&x->d, t, sizeof t), (long long)groups, at);
    return CTN_OK;
}

/* v := v + momentum (new - v) */
static ctn_status update(const char *at, ctn_var *v, ctn_tensor *new, double momentum)
{
    if (!v) return CTN_OK;
    ctn_tensor *old = ctn_use_at(at, v);
    ctn_tensor *move = ctn_scale_at(at, ctn_sub_at(at, ctn_detach_at(at, new), old), momentum);
    return ctn_assign_at(at, v, ctn_add_at(at, old, move));
}

ctn_tensor *ctn_fixed_decorrelated_batch_norm_at(const char *at, ctn_tensor *x, ctn_tensor *mean,
                                                 ctn_tensor *projection)
{
    char tx[128], tm[128], tp[128];
    if (!x || !mean || !projection) return NULL;
    const ctn_desc *m = &mean->d, *p = &projection->d;
    const int64_t groups = m->ndim == 2 ? m->dim[0] : 0;
    if (check("fixed_decorrelated_batch_norm", at, x, groups) < 0) return NULL;
    const int64_t c = x->d.dim[1] / groups;
    if (m->dim[1] != c || p->ndim != 3 || p->dim[0] != groups || p->dim[1] != c || p->dim[2] != c) {
        ctn_fail(CTN_ESHAPE,
                 "fixed_decorrelated_batch_norm: x is %s, mean is %s, projection is %s; expected "
                 "(N,C,...), (groups,C/groups), (groups,C/groups,C/groups) (%s)",
                 ctn__shape_text(&x->d, tx, sizeof tx), ctn__shape_text(m, tm, sizeof tm),
                 ctn__shape_text(p, tp, sizeof tp), at);
        return NULL;
    }
    ctn_tensor *d = ctn_sub_at(at, to_groups(at, x, groups), ctn_unsqueeze_at(at, mean, 2));
    return from_groups(at, ctn_matmul_at(at, projection, d, 0, 0), x);
}

ctn_tensor *ctn_decorrelated_batch_norm_at(const char *at, ctn_tensor *x, ctn_var *mean,
                                           ctn_var *projection,
                                           const ctn_decorrelated_batch_norm_opt *opt)
{
    ctn_decorrelated_batch_norm_opt o;
    if (!x || ctn__opt("decorrelated_batch_norm", &o, sizeof o, opt) < 0) return NULL;
    const double eps = o.eps > 0 ? o.eps : 2e-5, momentum = o.momentum > 0 ? o.momentum : 0.1;
    const int64_t groups = o.groups ? o.groups : 16, last = 2;
    if (check("decorrelated_batch_norm", at, x, groups) < 0) return NULL;
    if (!ctn_context_training(x->ctx)) {
        if (mean && projection)
            return ctn_fixed_decorrelated_batch_norm_at(at, x, ctn_use_at(at, mean),
                                                        ctn_use_at(at, projection));
        ctn_fail(CTN_EARG,
                 "decorrelated_batch_norm: evaluation needs mean and projection, one is NULL (%s)",
                 at);
        return NULL;
    }
    const int64_t c = x->d.dim[1] / groups;
    ctn_tensor *v = to_groups(at, x, groups), *m = ctn_mean_at(at, v, 1, &last, 1);
    ctn_tensor *d = ctn_sub_at(at, v, m);
    if (!d) return NULL;
    ctn_tensor *s = ctn_scale_at(at, ctn_matmul_at(at, d, d, 0, 1), 1 / (double)d->d.dim[2]);
    ctn_tensor *diagonal = ctn_full_at(at, x->ctx, eps, x->d.dtype, CTN_SHAPE(c));
    ctn_tensor *p = ctn_inverse_sqrt_at(at, ctn_add_at(at, s, ctn_diag_embed_at(at, diagonal, 0)));
    ctn_tensor *y = from_groups(at, ctn_matmul_at(at, p, d, 0, 0), x);
    if (!y || update(at, mean, ctn_squeeze_at(at, m, 2), momentum) < 0 ||
        update(at, projection, p, momentum) < 0)
        return NULL;
    return y;
}
