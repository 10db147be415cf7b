/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of softmax (LOG 0) and log_softmax (LOG 1) for one element type, included by
 * softmax_body.h and log_softmax_body.h. T is the type, EXP its exponential function, NAME
 * gives the functions their names. The arguments of the row and column functions are described in
 * softmax.h. Sums are accumulated in double. The maximum m leaves NaN out, but exp(NaN - m) does
 * not, so a row with NaN is NaN everywhere.
 */

/* Copies n elements, up to LANES, and -infinity after them, which adds nothing to a sum of
 * exponentials. Returns the number of elements to compute. */
static inline int NAME(load)(T *v, const T *x, int64_t n)
{
    if (n >= LANES) {
        memcpy(v, x, LANES * sizeof *v);
        return LANES;
    }
    for (int j = 0; j < LANES; j++) v[j] = (T)-INFINITY;
    memcpy(v, x, (size_t)n * sizeof *v);
    return (int)(n + SUMS - 1) / SUMS * SUMS;
}

CTN__PER_ISA(NAME(forward_row), (const void *x0, const void *z0, void *y0, int64_t C),
             (x0, z0, y0, C))
{
    const T *x = x0;
    T *y = y0, v[LANES], m = (T)-INFINITY;
    double sum[SUMS] = {0}, s = 0;
    (void)z0;
#pragma omp simd reduction(max : m)
    for (int64_t c = 0; c < C; c++) m = x[c] > m ? x[c] : m;
    for (int64_t c = 0; c < C; c += LANES) {
        const int n = NAME(load)(v, x + c, C - c);
#pragma omp simd
        for (int j = 0; j < n; j++) v[j] = EXP(v[j] - m);
        for (int k = 0; k < n; k += SUMS)
            for (int j = 0; j < SUMS; j++) sum[j] += (double)v[k + j];
        if (!LOG) memcpy(y + c, v, (size_t)(C - c < LANES ? C - c : LANES) * sizeof *y);
    }
    for (int j = 0; j < SUMS; j++) s += sum[j];
    const T f = (T)(LOG ? log(s) : 1 / s);
#pragma omp simd
    for (int64_t c = 0; c < C; c++) y[c] = LOG ? (x[c] - m) - f : y[c] * f;
}

CTN__PER_ISA(NAME(forward_cols),
             (const void *x0, const void *z0, void *y0, int64_t C, int64_t inner, int64_t n),
             (x0, z0, y0, C, inner, n))
{
    const T *x = x0;
    T *y = y0, m[CTN__COLS], f[CTN__COLS];
    double s[CTN__COLS] = {0};
    (void)z0;
    for (int64_t i = 0; i < n; i++) m[i] = (T)-INFINITY;
    for (int64_t c = 0; c < C; c++) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            const T v = x[c * inner + i], w = m[i];
            m[i] = v > w ? v : w;
        }
    }
    for (int64_t c = 0; c < C; c++) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            const T e = EXP(x[c * inner + i] - m[i]);
            s[i] += (double)e;
            if (!LOG) y[c * inner + i] = e;
        }
    }
    for (int64_t i = 0; i < n; i++) f[i] = (T)(LOG ? log(s[i]) : 1 / s[i]);
    for (int64_t c = 0; c < C; c++) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            const T v = LOG ? x[c * inner + i] - m[i] : y[c * inner + i];
            y[c * inner + i] = LOG ? v - f[i] : v * f[i];
        }
    }
}

#undef LOG
