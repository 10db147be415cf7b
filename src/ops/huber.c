/* SPDX-License-Identifier: Apache-2.0
 *
 * huber: with d = x-t and D = delta,
 *   y = s sum(d^2/2 where |d| <= D, else D (|d| - D/2)),   s = 1/elements or 1
 * With d clipped to c in [-D, D], an element is c (d - c/2). Gradient: gx = s gy c, gt = -gx.
 */
#include <math.h>

#include "ops/common/loss.h"

static const char *const attr_names[] = {"reduction", "order"};

#define CUT(d, D) ((d) > (D) ? (D) : (d) < -(D) ? -(D) : (d))

static double loss32(const float *x, const float *t, int64_t n, double delta)
{
    double s = 0;
    float D = (float)delta;
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < n; i++) {
        float d = x[i] - t[i], c = CUT(d, D);
        s += (double)(c * (d - 0.5f * c));
    }
    return s;
}

static double loss64(const double *x, const double *t, int64_t n, double D)
{
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < n; i++) {
        double d = x[i] - t[i], c = CUT(d, D);
        s += c * (d - 0.5 * c);
    }
    return s;
}

static void slope32(const float *x, const float *t, float *g, int64_t n, float s, float D)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float d = x[i] - t[i];
        g[i] = s * CUT(d, D);
    }
}

static void slope64(const double *x, const double *t, double *g, int64_t n, double s, double D)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double d = x[i] - t[i];
        g[i] = s * CUT(d, D);
    }
}

/* The second derivative: 1 where |d| <= D. */
static void bend32(const float *x, const float *t, float *g, int64_t n, float s, float D)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float d = fabsf(x[i] - t[i]);
        g[i] = d <= D ? s : 0;
    }
}

static void bend64(const double *x, const double *t, double *g, int64_t n, double s, double D)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double d = fabs(x[i] - t[i]);
        g[i] = d <= D ? s : 0;
    }
}

static ctn_status huber_run(const ctn_run_args *a)
{
    return ctn__loss_run(a, loss32, loss64);
}

static ctn_status huber_grad(const ctn_grad_args *a)
{
    return ctn__loss_grad_of_difference(a, &ctn__op_huber_grad);
}

ctn_op ctn__op_huber = {
    .struct_size = sizeof(ctn_op),
    .name = "huber",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = ctn__loss_infer,
    .grad = huber_grad,
    .prepare = ctn__loss_prepare,
    .run = huber_run,
};

static ctn_status huber_grad_run(const ctn_run_args *a)
{
    return a->attr[CTN__LOSS_ORDER] == 1 ? ctn__slope_run(a, slope32, slope64)
                                         : ctn__slope_run(a, bend32, bend64);
}

/* (x, t, gy) -> s gy c, or of order 2: s gy [|d| <= D], which is constant in x and t. */
static ctn_status huber_grad_grad(const ctn_grad_args *a)
{
    ctn_op *op = &ctn__op_huber_grad;
    for (int i = 0; i < 2 && a->attr[CTN__LOSS_ORDER] == 1; i++) {
        if (!a->need[i]) continue;
        ctn_tensor *gy = i == 0 ? a->in[2] : ctn__scaled(a->at, a->in[2], -1);
        ctn_tensor *bend = ctn__slope(a, op, 2, a->in[0], a->in[1], gy);
        CTN_TRY(ctn__grad_to(a, i, ctn_mul_at(a->at, a->gout[0], bend)));
    }
    if (a->need[2]) CTN_TRY(ctn__grad_to(a, 2, ctn__slope_by_gy(a, op)));
    return CTN_OK;
}

ctn_op ctn__op_huber_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "huber_grad",
    .nin = 3,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(3),
    .inplace = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = ctn__slope_infer,
    .grad = huber_grad_grad,
    .run = huber_grad_run,
};

/* c (d - c/2) of each element, where c is d clipped. */
static ctn_tensor *each(const char *at, ctn_tensor *x, ctn_tensor *t, double delta)
{
    if (!ctn__loss_pair(at, "huber", x, t)) return NULL;
    ctn_tensor *d = ctn_sub_at(at, x, t), *c = ctn_clip_at(at, d, -delta, delta);
    return ctn_mul_at(at, c, ctn_sub_at(at, d, ctn_scale_at(at, c, 0.5)));
}

ctn_tensor *ctn_huber_at(const char *at, ctn_tensor *x, ctn_tensor *t, double delta,
                         ctn_reduction reduction)
{
    if (!(delta > 0)) {
        ctn_fail(CTN_EARG, "huber: delta is %g, expected a number above 0 (%s)", delta, at);
        return NULL;
    }
    if (reduction == CTN_NONE) return each(at, x, t, delta);
    return ctn__loss(at, &ctn__op_huber, x, t, reduction, 1, &CTN_CONST(delta));
}
