/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation of row-major f32 and f64 tensors, and element by element of everything else.
 * Called by bnorm.c. Sums are computed in double, each channel by one thread from its first element
 * to its last. Statistics are taken of x minus the first element of the channel (see bnorm.h).
 */
#include "engine/bnorm.h"

enum { PARALLEL_MIN = 16384 };

typedef struct {
    int64_t N, C, S, M;
} sizes;

static sizes sizes_of(const ctn_desc *d)
{
    sizes z = {.N = d->dim[0], .C = d->dim[1], .S = 1};
    for (int i = 2; i < d->ndim; i++) z.S *= d->dim[i];
    z.M = z.N * z.S;
    return z;
}

/* Mean and variance from the sums of x - k and of its square over M elements. */
static void finish(double k, double s, double q, int64_t M, double *mean, double *var)
{
    double m = s / (double)M, v = q / (double)M - m * m;
    *mean = k + m;
    *var = v < 0 ? 0 : v;
}

/* ---- row-major ------------------------------------------------------------------------------- */

#define STATS(T)                                                                            \
    static void stats_##T(const sizes *z, const T *x, int64_t c, double *mean, double *var) \
    {                                                                                       \
        double k = (double)x[c * z->S], s = 0, q = 0;                                       \
        for (int64_t n = 0; n < z->N; n++) {                                                \
            const T *p = x + (n * z->C + c) * z->S;                                         \
            _Pragma("omp simd reduction(+ : s, q)") for (int64_t i = 0; i < z->S; i++)      \
            {                                                                               \
                double d = (double)p[i] - k;                                                \
                s += d;                                                                     \
                q += d * d;                                                                 \
            }                                                                               \
        }                                                                                   \
        finish(k, s, q, z->M, mean, var);                                                   \
    }
STATS(float)
STATS(double)

void ctn__bnorm_stats_plain(ctn__bnorm_arg x, double *mean, double *var)
{
    const sizes z = sizes_of(x.d);
#pragma omp parallel for schedule(static) if (z.M * z.C > PARALLEL_MIN)
    for (int64_t c = 0; c < z.C; c++) {
        if (x.d->dtype == CTN_F32) stats_float(&z, x.p, c, &mean[c], &var[c]);
        else stats_double(&z, x.p, c, &mean[c], &var[c]);
    }
}

/* Runs of S elements of one channel; y may be x or z. */
#define APPLY(T)                                                                              \
    static void apply_##T(const T *x, const T *z, T *y, int64_t S, T a, T b, bool relu)       \
    {                                                                                         \
        if (z) {                                                                              \
            _Pragma("omp simd") for (int64_t i = 0; i < S; i++) y[i] = (x[i] * a + b) + z[i]; \
        } else {                                                                              \
            _Pragma("omp simd") for (int64_t i = 0; i < S; i++) y[i] = x[i] * a + b;          \
        }                                                                                     \
        if (!relu) return;                                                                    \
        _Pragma("omp simd") for (int64_t i = 0; i < S; i++) y[i] = y[i] < 0 ? 0 : y[i];       \
    }
APPLY(float)
APPLY(double)

#define APPLY_ALL(T)                                                                               \
    do {                                                                                           \
        const T *px = x.p, *pz = residual.p;                                                       \
        T *py = y.p;                                                                               \
        _Pragma(                                                                                   \
            "omp parallel for schedule(static) if (z.M * z.C > PARALLEL_MIN)") for (int64_t r = 0; \
                                                                                    r < z.N * z.C; \
                                                                                    r++)           \
        {                                                                                          \
            int64_t c = r % z.C, o = r * z.S;                                                      \
            apply_##T(px + o, pz ? pz + o : NULL, py + o, z.S, (T)a[c], b ? (T)b[c] : 0, relu);    \
        }                                                                                          \
    } while (0)

void ctn__bnorm_apply_plain(ctn__bnorm_arg x, const double *a, const double *b,
                            ctn__bnorm_arg residual, bool relu, ctn__bnorm_arg y)
{
    const sizes z = sizes_of(x.d);
    if (x.d->dtype == CTN_F32) APPLY_ALL(float);
    else APPLY_ALL(double);
}

/* Element i of g; a and b belong to its channel, x is element i of x. */
#define GRADIENT(T)                                                                      \
    static inline T gradient_##T(const ctn__bnorm_gradient *g, int64_t i, T a, T b, T x) \
    {                                                                                    \
        T v = ((const T *)g->gy.p)[i];                                                   \
        if (g->gy2.p) v += ((const T *)g->gy2.p)[i];                                     \
        if (g->y.p && !(((const T *)g->y.p)[i] > 0)) v = 0;                              \
        if (g->a && !(x * a + b > 0)) v = 0;                                             \
        return v;                                                                        \
    }
GRADIENT(float)
GRADIENT(double)

#define REDUCE(T)                                                                                  \
    static void reduce_##T(const sizes *z, const ctn__bnorm_gradient *given, const T *x, double m, \
                           T *out, int64_t c, double *sum, double *dot)                            \
    {                                                                                              \
        const ctn__bnorm_gradient g = *given; /* a local copy, which stores cannot alias */        \
        const T a = g.a ? (T)g.a[c] : 0, b = g.a ? (T)g.b[c] : 0;                                  \
        double s = 0, q = 0;                                                                       \
        for (int64_t n = 0; n < z->N; n++) {                                                       \
            const int64_t o = (n * z->C + c) * z->S, end = o + z->S;                               \
            _Pragma("omp simd reduction(+ : s, q)") for (int64_t i = o; i < end; i++)              \
            {                                                                                      \
                T v = gradient_##T(&g, i, a, b, x[i]);                                             \
                if (out) out[i] = v;                                                               \
                s += (double)v;                                                                    \
                q += (double)v * ((double)x[i] - m);                                               \
            }                                                                                      \
        }                                                                                          \
        *sum = s;                                                                                  \
        *dot = q;                                                                                  \
    }
REDUCE(float)
REDUCE(double)

void ctn__bnorm_reduce_plain(const ctn__bnorm_gradient *g, ctn__bnorm_arg x, const double *mean,
                             ctn__bnorm_arg out, double *sum, double *dot)
{
    const sizes z = sizes_of(x.d);
#pragma omp parallel for schedule(static) if (z.M * z.C > PARALLEL_MIN)
    for (int64_t c = 0; c < z.C; c++) {
        if (x.d->dtype == CTN_F32) reduce_float(&z, g, x.p, mean[c], out.p, c, &sum[c], &dot[c]);
        else reduce_double(&z, g, x.p, mean[c], out.p, c, &sum[c], &dot[c]);
    }
}

#define GRAD_APPLY(T)                                                                              \
    static void grad_apply_##T(const ctn__bnorm_gradient *given, const T *x, T p, T q, T r, T *gx, \
                               int64_t c, int64_t o, int64_t end)                                  \
    {                                                                                              \
        const ctn__bnorm_gradient g = *given;                                                      \
        const T a = g.a ? (T)g.a[c] : 0, b = g.a ? (T)g.b[c] : 0;                                  \
        _Pragma("omp simd") for (int64_t i = o; i < end; i++) gx[i] =                              \
            gradient_##T(&g, i, a, b, x[i]) * p + (x[i] * q + r);                                  \
    }
GRAD_APPLY(float)
GRAD_APPLY(double)

void ctn__bnorm_grad_apply_plain(const ctn__bnorm_gradient *g, ctn__bnorm_arg x, const double *p,
                                 const double *q, const double *r, ctn__bnorm_arg gx)
{
    const sizes z = sizes_of(x.d);
#pragma omp parallel for schedule(static) if (z.M * z.C > PARALLEL_MIN)
    for (int64_t k = 0; k < z.N * z.C; k++) {
        const int64_t c = k % z.C, o = k * z.S, end = o + z.S;
        if (x.d->dtype == CTN_F32)
            grad_apply_float(g, x.p, (float)p[c], (float)q[c], (float)r[c], gx.p, c, o, end);
        else grad_apply_double(g, x.p, p[c], q[c], r[c], gx.p, c, o, end);
    }
}

/* ---- element by element ---------------------------------------------------------------------- */

/* Offset of element k of channel c, where k counts over N and the spatial dimensions in row-major
 * order. */
static int64_t place(const ctn_desc *d, int64_t c, int64_t k)
{
    int64_t o = c * d->stride[1];
    for (int i = d->ndim - 1; i >= 2; i--) {
        o += k % d->dim[i] * d->stride[i];
        k /= d->dim[i];
    }
    return o + k * d->stride[0];
}

static double load(ctn__bnorm_arg v, int64_t c, int64_t k)
{
    return ctn__elem_get(v.p, v.d->dtype, place(v.d, c, k));
}

static void store(ctn__bnorm_arg v, int64_t c, int64_t k, double value)
{
    ctn__elem_set(v.p, v.d->dtype, place(v.d, c, k), value);
}

static double gradient(const ctn__bnorm_gradient *g, int64_t c, int64_t k, double x)
{
    double v = load(g->gy, c, k);
    if (g->gy2.p) v += load(g->gy2, c, k);
    if (g->a && !(x * g->a[c] + g->b[c] > 0)) return 0;
    return !g->y.p || load(g->y, c, k) > 0 ? v : 0;
}

void ctn__bnorm_stats_any(ctn__bnorm_arg x, double *mean, double *var)
{
    const sizes z = sizes_of(x.d);
#pragma omp parallel for schedule(static) if (z.M * z.C > PARALLEL_MIN)
    for (int64_t c = 0; c < z.C; c++) {
        double k0 = load(x, c, 0), s = 0, q = 0;
        for (int64_t k = 0; k < z.M; k++) {
            double d = load(x, c, k) - k0;
            s += d;
            q += d * d;
        }
        finish(k0, s, q, z.M, &mean[c], &var[c]);
    }
}

void ctn__bnorm_apply_any(ctn__bnorm_arg x, const double *a, const double *b,
                          ctn__bnorm_arg residual, bool relu, ctn__bnorm_arg y)
{
    const sizes z = sizes_of(x.d);
#pragma omp parallel for schedule(static) if (z.M * z.C > PARALLEL_MIN)
    for (int64_t c = 0; c < z.C; c++) {
        for (int64_t k = 0; k < z.M; k++) {
            double v = load(x, c, k) * a[c] + (b ? b[c] : 0);
            if (residual.p) v += load(residual, c, k);
            store(y, c, k, relu && v < 0 ? 0 : v);
        }
    }
}

void ctn__bnorm_reduce_any(const ctn__bnorm_gradient *g, ctn__bnorm_arg x, const double *mean,
                           ctn__bnorm_arg out, double *sum, double *dot)
{
    const sizes z = sizes_of(x.d);
#pragma omp parallel for schedule(static) if (z.M * z.C > PARALLEL_MIN)
    for (int64_t c = 0; c < z.C; c++) {
        double s = 0, q = 0;
        for (int64_t k = 0; k < z.M; k++) {
            double xk = load(x, c, k), v = gradient(g, c, k, xk);
            if (out.p) store(out, c, k, v);
            s += v;
            q += v * (xk - mean[c]);
        }
        sum[c] = s;
        dot[c] = q;
    }
}

void ctn__bnorm_grad_apply_any(const ctn__bnorm_gradient *g, ctn__bnorm_arg x, const double *p,
                               const double *q, const double *r, ctn__bnorm_arg gx)
{
    const sizes z = sizes_of(x.d);
#pragma omp parallel for schedule(static) if (z.M * z.C > PARALLEL_MIN)
    for (int64_t c = 0; c < z.C; c++) {
        for (int64_t k = 0; k < z.M; k++) {
            double xk = load(x, c, k);
            store(gx, c, k, gradient(g, c, k, xk) * p[c] + (xk * q[c] + r[c]));
        }
    }
}
