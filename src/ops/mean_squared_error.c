/* SPDX-License-Identifier: Apache-2.0
 *
 * mean_squared_error: y = s sum((x-t)^2), s = 1/elements or 1. Gradient: gx = 2 s gy (x-t),
 * gt = -gx.
 */
#include "ops/common/loss.h"

static const char *const attr_names[] = {"reduction", "order"};

static double loss32(const float *x, const float *t, int64_t n, double p)
{
    (void)p;
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < n; i++) {
        float d = x[i] - t[i];
        s += (double)(d * d);
    }
    return s;
}

static double loss64(const double *x, const double *t, int64_t n, double p)
{
    (void)p;
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < n; i++) s += (x[i] - t[i]) * (x[i] - t[i]);
    return s;
}

static void slope32(const float *x, const float *t, float *g, int64_t n, float s, float p)
{
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) g[i] = 2 * s * (x[i] - t[i]);
}

static void slope64(const double *x, const double *t, double *g, int64_t n, double s, double p)
{
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) g[i] = 2 * s * (x[i] - t[i]);
}

static ctn_status mse_run(const ctn_run_args *a)
{
    return ctn__loss_run(a, loss32, loss64);
}

static ctn_status mse_grad(const ctn_grad_args *a)
{
    return ctn__loss_grad_of_difference(a, &ctn__op_mean_squared_error_grad);
}

ctn_op ctn__op_mean_squared_error = {
    .struct_size = sizeof(ctn_op),
    .name = "mean_squared_error",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = ctn__loss_infer,
    .grad = mse_grad,
    .prepare = ctn__loss_prepare,
    .run = mse_run,
};

static ctn_status mse_grad_run(const ctn_run_args *a)
{
    return ctn__slope_run(a, slope32, slope64);
}

/* (x, t, gy) -> 2 s gy (x-t). With v the gradient of its result: 2 s gy v by x, -2 s gy v by t. */
static ctn_status mse_grad_grad(const ctn_grad_args *a)
{
    double c = 2 * ctn__loss_scale(&a->in[0]->d, a->attr[CTN__LOSS_REDUCTION]);
    for (int i = 0; i < 2; i++) {
        if (!a->need[i]) continue;
        ctn_tensor *gy = ctn__scaled(a->at, a->in[2], i == 0 ? c : -c);
        CTN_TRY(ctn__grad_to(a, i, ctn_mul_at(a->at, a->gout[0], gy)));
    }
    if (a->need[2])
        CTN_TRY(ctn__grad_to(a, 2, ctn__slope_by_gy(a, &ctn__op_mean_squared_error_grad)));
    return CTN_OK;
}

ctn_op ctn__op_mean_squared_error_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "mean_squared_error_grad",
    .nin = 3,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(3),
    .inplace = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = ctn__slope_infer,
    .grad = mse_grad_grad,
    .run = mse_grad_run,
};

ctn_tensor *ctn_mean_squared_error_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                      ctn_reduction reduction)
{
    if (reduction == CTN_NONE)
        return ctn__loss_pair(at, "mean_squared_error", x, t) ? ctn_squared_difference_at(at, x, t)
                                                              : NULL;
    return ctn__loss(at, &ctn__op_mean_squared_error, x, t, reduction, 0, NULL);
}
