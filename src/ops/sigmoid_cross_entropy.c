/* SPDX-License-Identifier: Apache-2.0
 *
 * sigmoid_cross_entropy of logits x and targets t in 0 to 1. With p = 1/(1+exp(-x)) an element is
 *   -t log p - (1-t) log(1-p) = max(x,0) - x t + log(1 + exp(-|x|)),
 * which never overflows; y = s times the sum, s = 1/elements or 1.
 * Gradient: gx = s gy (p - t), gt = -s gy x. Second derivative by x: s gy p (1-p).
 */
#include <math.h>

#include "ops/common/loss.h"
#include "ops/common/vmath.h"

static const char *const attr_names[] = {"reduction", "order"};

enum { LANES = 16 };

CTN__PER_ISA(sum32, (const float *x, const float *t, int64_t n, double *sum), (x, t, n, sum))
{
    double lane[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        CTN__SIMD(j, 0, LANES, const float v = x[i + j]; const float top = v < 0 ? 0 : v;
                  lane[j] += (double)(top - v * t[i + j] + ctn__log1pf(ctn__expf(-fabsf(v))));)
    for (int j = 0; i < n; i++, j++) {
        const float v = x[i], top = v < 0 ? 0 : v;
        lane[j] += (double)(top - v * t[i] + ctn__log1pf(ctn__expf(-fabsf(v))));
    }
    *sum = 0;
    for (int j = 0; j < LANES; j++) *sum += lane[j];
}

static double loss32(const float *x, const float *t, int64_t n, double p)
{
    double s;
    (void)p;
    sum32[ctn__isa_in_use()](x, t, n, &s);
    return s;
}

static double loss64(const double *x, const double *t, int64_t n, double p)
{
    (void)p;
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += (x[i] < 0 ? 0 : x[i]) - x[i] * t[i] + log1p(exp(-fabs(x[i])));
    return s;
}

/* p from e = exp(-|x|): 1/(1+e) for x >= 0, e/(1+e) below */
CTN__VECTOR float sigmoid32(float x)
{
    float e = ctn__expf(-fabsf(x)), up = x < 0 ? e : 1.0f;
    return up / (1.0f + e);
}

static inline double sigmoid64(double x)
{
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

CTN__PER_ISA(slopes32, (const float *x, const float *t, float *g, int64_t n, float s),
             (x, t, g, n, s))
{
    CTN__EACH(g[i_] = s * (sigmoid32(x[i_]) - t[i_]););
}

static void slope32(const float *x, const float *t, float *g, int64_t n, float s, float p)
{
    (void)p;
    slopes32[ctn__isa_in_use()](x, t, g, n, s);
}

static void slope64(const double *x, const double *t, double *g, int64_t n, double s, double p)
{
    (void)p;
    for (int64_t i = 0; i < n; i++) g[i] = s * (sigmoid64(x[i]) - t[i]);
}

static void bend32(const float *x, const float *t, float *g, int64_t n, float s, float p)
{
    (void)t;
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) g[i] = s * sigmoid32(x[i]) * sigmoid32(-x[i]);
}

static void bend64(const double *x, const double *t, double *g, int64_t n, double s, double p)
{
    (void)t;
    (void)p;
    for (int64_t i = 0; i < n; i++) g[i] = s * sigmoid64(x[i]) * sigmoid64(-x[i]);
}

static ctn_status sxent_run(const ctn_run_args *a)
{
    return ctn__loss_run(a, loss32, loss64);
}

static ctn_status sxent_grad(const ctn_grad_args *a)
{
    ctn_op *op = &ctn__op_sigmoid_cross_entropy_grad;
    if (a->need[0])
        CTN_TRY(ctn__grad_to(a, 0, ctn__slope(a, op, 1, a->in[0], a->in[1], a->gout[0])));
    if (!a->need[1]) return CTN_OK;
    double s = ctn__loss_scale(&a->in[0]->d, a->attr[CTN__LOSS_REDUCTION]);
    return ctn__grad_to(a, 1, ctn_mul_at(a->at, a->in[0], ctn__scaled(a->at, a->gout[0], -s)));
}

ctn_op ctn__op_sigmoid_cross_entropy = {
    .struct_size = sizeof(ctn_op),
    .name = "sigmoid_cross_entropy",
    .nin = 2,
    .nout = 1,
    .order = 2,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = ctn__loss_infer,
    .grad = sxent_grad,
    .prepare = ctn__loss_prepare,
    .run = sxent_run,
};

static ctn_status sxent_grad_run(const ctn_run_args *a)
{
    return a->attr[CTN__LOSS_ORDER] == 1 ? ctn__slope_run(a, slope32, slope64)
                                         : ctn__slope_run(a, bend32, bend64);
}

/* (x, t, gy) -> s gy (p - t) or, of order 2, s gy p (1-p), which has no gradient by x. */
static ctn_status sxent_grad_grad(const ctn_grad_args *a)
{
    ctn_op *op = &ctn__op_sigmoid_cross_entropy_grad;
    bool second = a->attr[CTN__LOSS_ORDER] == 2;
    if (a->need[0] && second)
        return ctn_fail(CTN_EGRAD, "sigmoid_cross_entropy: there is no third derivative (%s)",
                        a->at);
    if (a->need[0]) {
        ctn_tensor *bend = ctn__slope(a, op, 2, a->in[0], a->in[1], a->in[2]);
        CTN_TRY(ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], bend)));
    }
    if (a->need[1] && !second) {
        double s = ctn__loss_scale(&a->in[0]->d, a->attr[CTN__LOSS_REDUCTION]);
        ctn_tensor *gy = ctn__scaled(a->at, a->in[2], -s);
        CTN_TRY(ctn__grad_to(a, 1, ctn_mul_at(a->at, a->gout[0], gy)));
    }
    if (a->need[2]) CTN_TRY(ctn__grad_to(a, 2, ctn__slope_by_gy(a, op)));
    return CTN_OK;
}

ctn_op ctn__op_sigmoid_cross_entropy_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "sigmoid_cross_entropy_grad",
    .nin = 3,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(3),
    .inplace = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = ctn__slope_infer,
    .grad = sxent_grad_grad,
    .run = sxent_grad_run,
};

/* -t log p - (1-t) log(1-p) = t softplus(-x) + (1-t) softplus(x) of each element. */
static ctn_tensor *each(const char *at, ctn_tensor *x, ctn_tensor *t)
{
    if (!ctn__loss_pair(at, "sigmoid_cross_entropy", x, t)) return NULL;
    ctn_tensor *yes = ctn_softplus_at(at, ctn_neg_at(at, x)), *no = ctn_softplus_at(at, x);
    return ctn_linear_interpolate_at(at, t, yes, no);
}

ctn_tensor *ctn_sigmoid_cross_entropy_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                         ctn_reduction reduction)
{
    if (reduction == CTN_NONE) return each(at, x, t);
    return ctn__loss(at, &ctn__op_sigmoid_cross_entropy, x, t, reduction, 0, NULL);
}
