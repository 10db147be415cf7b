/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweep kernels in plain C. sweep.c, sweep_avx2.c and sweep_avx512.c include this file once
 * each and set the target and SWEEP_TABLE, the name of the table defined here.
 *
 * Invariant: only IEEE operations, never contracted or reordered, so the vector body, the scalar
 * tail and all instruction sets agree bitwise (the build uses -ffp-contract=off).
 */
#include <math.h>
#include <string.h>

#include "engine/sweep.h"

#if defined(__OPTIMIZE__) && !defined(__NO_MATH_ERRNO__)
#error "compile src/engine with -fno-math-errno: sqrtf that may set errno is not vectorised"
#endif

/* With decay = 0, w must not enter: 0 * infinity would turn an infinite parameter into NaN. */
static inline float direction(float g, float w, float gscale, float decay)
{
    float d = gscale * g;
    return decay != 0.0f ? d + decay * w : d;
}

static void step_sgd(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    float *restrict w = p->w;
    const float *restrict g = p->g;
    const float gscale = h->gscale, lr = h->lr, decay = h->decay, keep = h->keep;
#pragma omp simd
    for (int64_t i = lo; i < hi; i++)
        w[i] = keep * w[i] - lr * direction(g[i], w[i], gscale, decay);
}

static void step_momentum(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    float *restrict w = p->w, *restrict m = p->s1;
    const float *restrict g = p->g;
    const float gscale = h->gscale, lr = h->lr, decay = h->decay, keep = h->keep;
    const float beta1 = h->beta1, rest1 = h->rest1;
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        float d = direction(g[i], w[i], gscale, decay);
        m[i] = beta1 * m[i] + rest1 * d;
        w[i] = keep * w[i] - lr * m[i];
    }
}

static void step_nesterov(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    float *restrict w = p->w, *restrict m = p->s1;
    const float *restrict g = p->g;
    const float gscale = h->gscale, lr = h->lr, decay = h->decay, keep = h->keep;
    const float beta1 = h->beta1, rest1 = h->rest1;
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        float d = direction(g[i], w[i], gscale, decay);
        m[i] = beta1 * m[i] + rest1 * d;
        w[i] = keep * w[i] - lr * (d + beta1 * m[i]);
    }
}

static void step_adam(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    float *restrict w = p->w, *restrict m = p->s1, *restrict v = p->s2;
    const float *restrict g = p->g;
    const float gscale = h->gscale, lr = h->lr, decay = h->decay, keep = h->keep;
    const float beta1 = h->beta1, rest1 = h->rest1, beta2 = h->beta2, rest2 = h->rest2;
    const float bias2 = h->bias2, eps = h->eps;
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        float d = direction(g[i], w[i], gscale, decay);
        m[i] = beta1 * m[i] + rest1 * d;
        v[i] = beta2 * v[i] + rest2 * d * d;
        w[i] = keep * w[i] - lr * m[i] / (sqrtf(v[i]) * bias2 + eps);
    }
}

static void step_amsgrad(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo, int64_t hi)
{
    float *restrict w = p->w, *restrict m = p->s1, *restrict v = p->s2, *restrict top = p->s3;
    const float *restrict g = p->g;
    const float gscale = h->gscale, lr = h->lr, decay = h->decay, keep = h->keep;
    const float beta1 = h->beta1, rest1 = h->rest1, beta2 = h->beta2, rest2 = h->rest2;
    const float bias2 = h->bias2, eps = h->eps;
#pragma omp simd
    for (int64_t i = lo; i < hi; i++) {
        float d = direction(g[i], w[i], gscale, decay);
        m[i] = beta1 * m[i] + rest1 * d;
        v[i] = beta2 * v[i] + rest2 * d * d;
        /* Written so that a NaN in v wins. v stays NaN from then on. */
        top[i] = top[i] > v[i] ? top[i] : v[i];
        w[i] = keep * w[i] - lr * m[i] / (sqrtf(top[i]) * bias2 + eps);
    }
}

static void narrow(const float *restrict w, uint16_t *restrict low, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &w[i], sizeof u);
        uint32_t even = u + 0x7fffu + ((u >> 16) & 1u);
        uint32_t quiet = u | 0x400000u; /* rounding could carry a NaN into infinity */
        low[i] = (uint16_t)(((u & 0x7fffffffu) > 0x7f800000u ? quiet : even) >> 16);
    }
}

/* 16 partial sums for any vector length, added up in one fixed order. The product of two floats is
 * exact in double. */
static double sumsq(const float *restrict x, int64_t n)
{
    double sum[16] = {0}, total = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
#pragma omp simd
        for (int64_t j = 0; j < 16; j++) sum[j] += (double)x[i + j] * (double)x[i + j];
    }
    for (int64_t j = 0; i + j < n; j++) sum[j] += (double)x[i + j] * (double)x[i + j];
    for (int64_t j = 0; j < 16; j++) total += sum[j];
    return total;
}

const ctn__sweep_kernels SWEEP_TABLE = {
    .step = {[CTN__SWEEP_SGD] = step_sgd,
             [CTN__SWEEP_MOMENTUM] = step_momentum,
             [CTN__SWEEP_NESTEROV] = step_nesterov,
             [CTN__SWEEP_ADAM] = step_adam,
             [CTN__SWEEP_AMSGRAD] = step_amsgrad},
    .narrow = narrow,
    .sumsq = sumsq,
};
