/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of log_softmax and log_softmax_grad for one element type, included by log_softmax.c
 * once per type. T is the type, EXP its exponential function, NAME gives the functions their
 * names. The arguments of the row and column functions are described in softmax.h.
 */

#include "ops/common/softmax_forward_body.h"

/* log_softmax_grad(y, g) = g - exp(y) sum(g) */
static void NAME(grad_row)(const void *y0, const void *g0, void *o0, int64_t C)
{
    const T *y = y0, *g = g0;
    T *o = o0;
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t c = 0; c < C; c++) s += (double)g[c];
    T sum = (T)s;
#pragma omp simd
    for (int64_t c = 0; c < C; c++) o[c] = g[c] - EXP(y[c]) * sum;
}

static void NAME(grad_cols)(const void *y0, const void *g0, void *o0, int64_t C, int64_t inner,
                            int64_t n)
{
    const T *y = y0, *g = g0;
    T *o = o0;
    double s[CTN__COLS] = {0};
    for (int64_t c = 0; c < C; c++) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) s[i] += (double)g[c * inner + i];
    }
    for (int64_t c = 0; c < C; c++) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            o[c * inner + i] = g[c * inner + i] - EXP(y[c * inner + i]) * (T)s[i];
    }
}

#undef T
#undef EXP
#undef NAME
