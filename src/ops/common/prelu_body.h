/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of prelu for one element type, included by prelu.c once per type. T is the type in
 * memory, A the one computed in, GET and PUT convert, NAME gives the functions their names.
 * Results may be the same memory as x or gy.
 */

/* y of run r. */
static void NAME(run)(const shape *s, int64_t r, const void *x0, const void *slope, void *y0)
{
    const T *x = (const T *)x0 + r * s->n;
    const A *restrict k = (const A *)slope + (s->columns ? 0 : r % s->C);
    T *y = (T *)y0 + r * s->n;
    const int64_t n = s->n;
    if (s->columns) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            A v = GET(x[i]), m = k[i] * v;
            y[i] = PUT(v > 0 ? v : m);
        }
    } else {
        const A one = k[0];
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            A v = GET(x[i]), m = one * v;
            y[i] = PUT(v > 0 ? v : m);
        }
    }
}

/* gx of run r. The products for the slope's gradient are added to sum. */
static void NAME(back)(const shape *s, int64_t r, const void *x0, const void *slope,
                       const void *gy0, void *gx0, double *restrict sum)
{
    const T *x = (const T *)x0 + r * s->n, *g = (const T *)gy0 + r * s->n;
    const A *restrict k = (const A *)slope + (s->columns ? 0 : r % s->C);
    T *gx = (T *)gx0 + r * s->n;
    const int64_t n = s->n;
    if (s->columns) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            A v = GET(x[i]), u = GET(g[i]), m = k[i] * u, p = v > 0 ? (A)0 : u * v;
            gx[i] = PUT(v > 0 ? u : m);
            sum[i] += (double)p;
        }
    } else {
        const A one = k[0];
        double total = 0;
#pragma omp simd reduction(+ : total)
        for (int64_t i = 0; i < n; i++) {
            A v = GET(x[i]), u = GET(g[i]), m = one * u, p = v > 0 ? (A)0 : u * v;
            gx[i] = PUT(v > 0 ? u : m);
            total += (double)p;
        }
        *sum += total;
    }
}

#undef T
#undef A
#undef GET
#undef PUT
#undef NAME
