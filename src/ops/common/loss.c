/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape rules, loops and gradients of losses of two tensors of equal shape (see loss.h).
 *
 * Invariant: one function call sums a block of BLOCK elements, and the sums of the blocks are
 * added in order.
 */
#include <stdio.h>

#include "ops/common/loss.h"

enum { BLOCK = 4096 };

/* where: "" or the source line in brackets; the line of an op is added by its caller. */
static ctn_status check_pair(const char *name, const char *where, const ctn_desc *x,
                             const ctn_desc *t)
{
    char tx[128], tt[128];
    if (x->dtype != t->dtype || !ctn__is_f32_f64(x->dtype))
        return ctn_fail(CTN_EDTYPE,
                        "%s: x is %s, targets are %s; expected the same type, f32 or f64%s", name,
                        ctn_dtype_name(x->dtype), ctn_dtype_name(t->dtype), where);
    if (!ctn__same_shape(x, t))
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, targets are %s; expected equal shapes%s", name,
                        ctn__shape_text(x, tx, sizeof tx), ctn__shape_text(t, tt, sizeof tt),
                        where);
    return CTN_OK;
}

static ctn_status check_reduction(const char *name, const char *where, int64_t r)
{
    if (r == CTN_MEAN || r == CTN_SUM || r == CTN_NONE) return CTN_OK;
    return ctn_fail(CTN_EARG, "%s: reduction %lld is not CTN_MEAN, CTN_SUM or CTN_NONE%s", name,
                    (long long)r, where);
}

bool ctn__loss_pair(const char *at, const char *name, const ctn_tensor *x, const ctn_tensor *t)
{
    char where[256];
    snprintf(where, sizeof where, " (%s)", at);
    return x && t && check_pair(name, where, &x->d, &t->d) == CTN_OK;
}

bool ctn__loss_rows(const char *at, const char *name, const ctn_tensor *x, const ctn_tensor *t)
{
    char tx[128], tt[128];
    if (!x || !t) return false;
    ctn_desc rows = x->d;
    rows.ndim--;
    if (rows.ndim >= 0 && ctn__same_shape(&rows, &t->d)) return true;
    ctn_fail(CTN_ESHAPE, "%s: x is %s, targets are %s; expected one target per row of x (%s)", name,
             ctn__shape_text(&x->d, tx, sizeof tx), ctn__shape_text(&t->d, tt, sizeof tt), at);
    return false;
}

ctn_tensor *ctn__loss_of_each(const char *at, const char *name, ctn_tensor *each,
                              ctn_reduction reduction)
{
    char where[256];
    snprintf(where, sizeof where, " (%s)", at);
    if (check_reduction(name, where, reduction) < 0) return NULL;
    if (reduction == CTN_NONE) return each;
    return reduction == CTN_MEAN ? ctn_mean_at(at, each, CTN_ALL_AXES, 0)
                                 : ctn_sum_at(at, each, CTN_ALL_AXES, 0);
}

ctn_status ctn__loss_infer(ctn_infer_args *a)
{
    CTN_TRY(check_pair(a->name, "", a->in[0], a->in[1]));
    CTN_TRY(check_reduction(a->name, "", a->attr[CTN__LOSS_REDUCTION]));
    a->out[0].dtype = a->in[0]->dtype;
    a->out[0].ndim = 0;
    return CTN_OK;
}

ctn_status ctn__slope_infer(ctn_infer_args *a)
{
    CTN_TRY(check_pair(a->name, "", a->in[0], a->in[1]));
    a->out[0] = *a->in[0];
    return CTN_OK;
}

static int64_t blocks(const ctn_desc *d)
{
    return (ctn__count(d) + BLOCK - 1) / BLOCK;
}

double ctn__loss_scale(const ctn_desc *x, int64_t reduction)
{
    return reduction == CTN_MEAN ? 1 / (double)ctn__count(x) : 1;
}

ctn_status ctn__loss_prepare(ctn_prepare_args *a)
{
    a->scratch = (size_t)blocks(&a->din[0]) * sizeof(double);
    return CTN_OK;
}

ctn_status ctn__loss_run(const ctn_run_args *a, ctn__loss_f32 *f32, ctn__loss_f64 *f64)
{
    const ctn_desc *d = &a->din[0];
    int64_t n = ctn__count(d), nb = blocks(d);
    double *part = a->scratch, p = a->nscalar > 0 ? a->scalar[0] : 0, sum = 0;
#pragma omp parallel for schedule(static) if (n > CTN__GRAIN)
    for (int64_t b = 0; b < nb; b++) {
        int64_t i = b * BLOCK, m = n - i < BLOCK ? n - i : BLOCK;
        if (d->dtype == CTN_F32)
            part[b] = f32((const float *)a->in[0] + i, (const float *)a->in[1] + i, m, p);
        else part[b] = f64((const double *)a->in[0] + i, (const double *)a->in[1] + i, m, p);
    }
    for (int64_t b = 0; b < nb; b++) sum += part[b];
    bool mean = a->attr[CTN__LOSS_REDUCTION] == CTN_MEAN;
    ctn__elem_set(a->out[0], d->dtype, 0, mean ? sum / (double)n : sum);
    return CTN_OK;
}

ctn_status ctn__slope_run(const ctn_run_args *a, ctn__slope_f32 *f32, ctn__slope_f64 *f64)
{
    const ctn_desc *d = &a->din[0];
    int64_t n = ctn__count(d), nb = blocks(d);
    double p = a->nscalar > 0 ? a->scalar[0] : 0;
    double s =
        ctn__elem_get(a->in[2], d->dtype, 0) * ctn__loss_scale(d, a->attr[CTN__LOSS_REDUCTION]);
#pragma omp parallel for schedule(static) if (n > CTN__GRAIN)
    for (int64_t b = 0; b < nb; b++) {
        int64_t i = b * BLOCK, m = n - i < BLOCK ? n - i : BLOCK;
        if (d->dtype == CTN_F32)
            f32((const float *)a->in[0] + i, (const float *)a->in[1] + i, (float *)a->out[0] + i, m,
                (float)s, (float)p);
        else
            f64((const double *)a->in[0] + i, (const double *)a->in[1] + i, (double *)a->out[0] + i,
                m, s, p);
    }
    return CTN_OK;
}

ctn_tensor *ctn__scaled(const char *at, ctn_tensor *t, double c)
{
    if (!t) return NULL;
    return ctn_mul_at(at, t, ctn_full_at(at, t->ctx, c, t->d.dtype, 0, NULL));
}

ctn_tensor *ctn__slope(const ctn_grad_args *a, ctn_op *op, int64_t order, ctn_tensor *x,
                       ctn_tensor *t, ctn_tensor *gy)
{
    ctn_tensor *in[3] = {x, t, gy};
    int64_t attr[2] = {a->attr[CTN__LOSS_REDUCTION], order};
    return ctn__apply1(a->at, NULL, op, 3, in, 2, attr, a->nscalar, a->scalar);
}

ctn_tensor *ctn__slope_by_gy(const ctn_grad_args *a, ctn_op *op)
{
    ctn_tensor *one = ctn_full_at(a->at, a->ctx, 1, a->in[2]->d.dtype, 0, NULL);
    ctn_tensor *g = ctn__slope(a, op, a->attr[CTN__LOSS_ORDER], a->in[0], a->in[1], one);
    return ctn_sum_at(a->at, ctn_mul_at(a->at, a->gout[0], g), CTN_ALL_AXES, 0);
}

ctn_status ctn__loss_grad_of_difference(const ctn_grad_args *a, ctn_op *op)
{
    for (int i = 0; i < 2; i++) {
        if (!a->need[i]) continue;
        CTN_TRY(ctn__grad_to(a, i, ctn__slope(a, op, 1, a->in[i], a->in[1 - i], a->gout[0])));
    }
    return CTN_OK;
}

ctn_tensor *ctn__loss(const char *at, ctn_op *op, ctn_tensor *x, ctn_tensor *t,
                      ctn_reduction reduction, int nscalar, const ctn_scalar *scalar)
{
    ctn_tensor *in[2] = {x, t};
    int64_t attr = reduction;
    return ctn__apply1(at, NULL, op, 2, in, 1, &attr, nscalar, scalar);
}
