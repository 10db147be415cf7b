/* SPDX-License-Identifier: Apache-2.0
 *
 * mean_absolute_error: y = s sum(|x-t|), s = 1/elements or 1. Gradient: gx = s gy sign(x-t),
 * gt = -gx, with sign(0) = 0; NaN stays NaN.
 */
#include <math.h>

#include "ops/common/loss.h"

static const char *const attr_names[] = {"reduction", "order"};

static double loss32(const float *x, const float *t, int64_t n, double p)
{
    (void)p;
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < n; i++) s += (double)fabsf(x[i] - t[i]);
    return s;
}

static double loss64(const double *x, const double *t, int64_t n, double p)
{
    (void)p;
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < n; i++) s += fabs(x[i] - t[i]);
    return s;
}

static void slope32(const float *x, const float *t, float *g, int64_t n, float s, float p)
{
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float d = x[i] - t[i];
        float low = d < 0 ? -s : d; /* d itself remains only if it is 0 or NaN */
        g[i] = d > 0 ? s : low;
    }
}

static void slope64(const double *x, const double *t, double *g, int64_t n, double s, double p)
{
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double d = x[i] - t[i];
        double low = d < 0 ? -s : d;
        g[i] = d > 0 ? s : low;
    }
}

static ctn_status mae_run(const ctn_run_args *a)
{
    return ctn__loss_run(a, loss32, loss64);
}

static ctn_status mae_grad(const ctn_grad_args *a)
{
    return ctn__loss_grad_of_difference(a, &ctn__op_mean_absolute_error_grad);
}

ctn_op ctn__op_mean_absolute_error = {
    .struct_size = sizeof(ctn_op),
    .name = "mean_absolute_error",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = ctn__loss_infer,
    .grad = mae_grad,
    .prepare = ctn__loss_prepare,
    .run = mae_run,
};

static ctn_status mae_grad_run(const ctn_run_args *a)
{
    return ctn__slope_run(a, slope32, slope64);
}

/* (x, t, gy) -> s gy sign(x-t): constant in x and t. */
static ctn_status mae_grad_grad(const ctn_grad_args *a)
{
    if (!a->need[2]) return CTN_OK;
    return ctn__grad_to(a, 2, ctn__slope_by_gy(a, &ctn__op_mean_absolute_error_grad));
}

ctn_op ctn__op_mean_absolute_error_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "mean_absolute_error_grad",
    .nin = 3,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(3),
    .inplace = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = ctn__slope_infer,
    .grad = mae_grad_grad,
    .run = mae_grad_run,
};

ctn_tensor *ctn_mean_absolute_error_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                       ctn_reduction reduction)
{
    if (reduction == CTN_NONE)
        return ctn__loss_pair(at, "mean_absolute_error", x, t)
                   ? ctn_abs_at(at, ctn_sub_at(at, x, t))
                   : NULL;
    return ctn__loss(at, &ctn__op_mean_absolute_error, x, t, reduction, 0, NULL);
}
