/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of linear algebra. The matrices are made from the inputs inside of the call, so that they
 * are well conditioned: x x^T / n + 1 (symmetric), x / n + 1 (general), the latter with its rows
 * rotated (nothing on the diagonal, so that it needs pivots).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum { SYMMETRIC, GENERAL, ROTATED }; /* p[0]: the matrix */
enum { MATRIX, UPPER, TRANS, UNIT };

static ctn_tensor *matrix(const op_case *c, ctn_context *ctx, ctn_tensor *x)
{
    const int64_t n = ctn_dim(x, -1);
    const ctn_dtype t = ctn_dtype_of(x);
    ctn_tensor *ones = ctn_full(ctx, 1, t, CTN_SHAPE(n, n));
    ctn_tensor *eye = ctn_sub(ctn_tril(ones, 0), ctn_tril(ones, -1));
    if (c->p[MATRIX] == SYMMETRIC) x = ctn_matmul(x, x, 0, 1);
    x = ctn_add(ctn_scale(x, 1 / (double)n), eye);
    if (c->p[MATRIX] != ROTATED) return x;
    ctn_tensor *part[] = {ctn_slice(x, -2, 1, n - 1), ctn_slice(x, -2, 0, 1)};
    return ctn_concat(2, part, -2);
}

/* The same for matrix number i of x. The caller frees it. */
static double *matrix_ref(const op_case *c, const double *x, int64_t i)
{
    const int64_t n = c->in[0].dim[c->in[0].ndim - 1];
    double *a = calloc((size_t)(n * n + 1), sizeof *a);
    x += i * n * n;
    for (int64_t r = 0; r < n; r++)
        for (int64_t s = 0; s < n; s++) {
            const int64_t from = c->p[MATRIX] == ROTATED ? (r + 1) % n : r;
            double v = c->p[MATRIX] == SYMMETRIC ? 0 : x[from * n + s];
            for (int64_t k = 0; k < n && c->p[MATRIX] == SYMMETRIC; k++)
                v += x[r * n + k] * x[s * n + k];
            a[r * n + s] = v / (double)n + (from == s);
        }
    return a;
}

/* Gauss and Jordan: a x = b in place of b (n,k), and the determinant of a, which is destroyed. */
static double gauss(double *a, int64_t n, double *b, int64_t k)
{
    double det = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t p = c;
        for (int64_t i = c; i < n; i++)
            if (fabs(a[i * n + c]) > fabs(a[p * n + c])) p = i;
        for (int64_t j = 0; j < n + k; j++) {
            double *u = j < n ? a + c * n + j : b + c * k + j - n;
            double *v = j < n ? a + p * n + j : b + p * k + j - n, t = *u;
            *u = *v;
            *v = t;
        }
        const double d = a[c * n + c];
        det *= p == c ? d : -d;
        for (int64_t j = 0; j < n; j++) a[c * n + j] /= d;
        for (int64_t j = 0; j < k; j++) b[c * k + j] /= d;
        for (int64_t i = 0; i < n; i++) {
            const double f = a[i * n + c];
            if (i == c) continue;
            for (int64_t j = 0; j < n; j++) a[i * n + j] -= f * a[c * n + j];
            for (int64_t j = 0; j < k; j++) b[i * k + j] -= f * b[c * k + j];
        }
    }
    return det;
}

static int64_t batch_of(const case_in *in)
{
    int64_t n = 1;
    for (int i = 0; i < in->ndim - 2; i++) n *= in->dim[i];
    return n;
}

static ctn_tensor *det_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    return ctn_det(matrix(c, ctx, x[0]));
}

static void det_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    for (int64_t i = 0; i < desc_count(out); i++) {
        double *a = matrix_ref(c, x[0], i);
        y[i] = gauss(a, c->in[0].dim[c->in[0].ndim - 1], NULL, 0);
        free(a);
    }
}

static ctn_tensor *slogdet_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *sign, *log;
    return ctn_slogdet(matrix(c, ctx, x[0]), &sign, &log) < 0 ? NULL : ctn_mul(sign, log);
}

static void slogdet_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    det_ref(c, x, out, y);
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = copysign(1, y[i]) * log(fabs(y[i]));
}

static ctn_tensor *inverse_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    return ctn_inverse(matrix(c, ctx, x[0]));
}

static void inverse_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t n = out->dim[out->ndim - 1];
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = i % (n * n) % (n + 1) == 0;
    for (int64_t i = 0; i < batch_of(&c->in[0]); i++) {
        double *a = matrix_ref(c, x[0], i);
        gauss(a, n, y + i * n * n, n);
        free(a);
    }
}

static ctn_tensor *solve_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    return ctn_solve(matrix(c, ctx, x[0]), x[1]);
}

/* One of a and b may have no batch. */
static void solve_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t n = out->dim[out->ndim - 2], k = out->dim[out->ndim - 1];
    for (int64_t i = 0; i < desc_count(out) / (n * k); i++) {
        double *a = matrix_ref(c, x[0], i % batch_of(&c->in[0]));
        memcpy(y + i * n * k, x[1] + i % batch_of(&c->in[1]) * n * k, (size_t)(n * k) * sizeof *y);
        gauss(a, n, y + i * n * k, k);
        free(a);
    }
}

static ctn_tensor *solve_triangular_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    return ctn_solve_triangular(matrix(c, ctx, x[0]), x[1], (int)c->p[UPPER], (int)c->p[TRANS],
                                (int)c->p[UNIT]);
}

static void solve_triangular_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                                 double *y)
{
    const int64_t n = out->dim[out->ndim - 2], k = out->dim[out->ndim - 1];
    memcpy(y, x[1], (size_t)desc_count(out) * sizeof *y);
    for (int64_t i = 0; i < desc_count(out) / (n * k); i++) {
        double *a = matrix_ref(c, x[0], i), *t = calloc((size_t)(n * n), sizeof *t);
        for (int64_t r = 0; r < n; r++)
            for (int64_t s = 0; s < n; s++) {
                const int read = c->p[UPPER] ? s > r : s < r;
                const double v = r == s ? (c->p[UNIT] ? 1 : a[r * n + s]) : read ? a[r * n + s] : 0;
                t[c->p[TRANS] ? s * n + r : r * n + s] = v;
            }
        gauss(t, n, y + i * n * k, k);
        free(a);
        free(t);
    }
}

static ctn_tensor *cholesky_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    return ctn_cholesky(matrix(c, ctx, x[0]));
}

static void cholesky_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t n = out->dim[out->ndim - 1];
    for (int64_t m = 0; m < batch_of(&c->in[0]); m++) {
        double *a = matrix_ref(c, x[0], m), *L = y + m * n * n;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double s = a[i * n + j];
                for (int64_t k = 0; k < j && j <= i; k++) s -= L[i * n + k] * L[j * n + k];
                L[i * n + j] = j > i ? 0 : j == i ? sqrt(s) : s / L[j * n + j];
            }
        free(a);
    }
}

/* z = the inverse of the square root of a (n,n), which is destroyed, by Newton's method (Denman and
 * Beavers): y -> a^(1/2), z -> its inverse by y' = (y + z^-1) / 2, z' = (z + y^-1) / 2. */
static void newton(double *a, int64_t n, double *z)
{
    const int64_t nn = n * n;
    double *u = calloc((size_t)(3 * nn + 1), sizeof *u), *v = u + nn, *w = v + nn;
    for (int64_t i = 0; i < nn; i++) z[i] = i % (n + 1) == 0;
    for (int round = 0; round < 40; round++) {
        memcpy(u, a, (size_t)nn * sizeof *u);
        memcpy(v, z, (size_t)nn * sizeof *v);
        for (int64_t i = 0; i < nn; i++) w[i] = i % (n + 1) == 0;
        gauss(v, n, w, n); /* w = z^-1 */
        for (int64_t i = 0; i < nn; i++) v[i] = i % (n + 1) == 0;
        gauss(u, n, v, n); /* v = y^-1 */
        for (int64_t i = 0; i < nn; i++) {
            a[i] = (a[i] + w[i]) / 2;
            z[i] = (z[i] + v[i]) / 2;
        }
    }
    free(u);
}

static void inverse_sqrt_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                             double *y)
{
    const int64_t n = out->dim[out->ndim - 1];
    for (int64_t m = 0; m < batch_of(&c->in[0]); m++) {
        double *a = matrix_ref(c, x[0], m);
        newton(a, n, y + m * n * n);
        free(a);
    }
}

static ctn_tensor *inverse_sqrt_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    return ctn_inverse_sqrt(matrix(c, ctx, x[0]));
}

/* decorrelated_batch_norm of x (N,C,P), p[0]: groups */
static ctn_tensor *whiten_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_decorrelated_batch_norm(x[0], NULL, NULL,
                                       CTN_OPT(ctn_decorrelated_batch_norm_opt, .groups = c->p[0],
                                               .eps = c->q[0]));
}

static void whiten_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t N = out->dim[0], C = out->dim[1], P = desc_count(out) / (N * C), g = c->p[0];
    const int64_t n = C / g, M = N * P;
    double *room = calloc((size_t)(2 * n * n + n * M), sizeof *room);
    double *s = room, *p = s + n * n, *d = p + n * n; /* d (n,M) */
    for (int64_t k = 0; k < g; k++) {
        for (int64_t i = 0; i < n; i++) {
            double m = 0;
            for (int64_t j = 0; j < M; j++) {
                d[i * M + j] = x[0][((j / P) * C + k * n + i) * P + j % P];
                m += d[i * M + j] / (double)M;
            }
            for (int64_t j = 0; j < M; j++) d[i * M + j] -= m;
        }
        for (int64_t i = 0; i < n * n; i++) {
            s[i] = i % (n + 1) == 0 ? c->q[0] : 0;
            for (int64_t j = 0; j < M; j++) s[i] += d[i / n * M + j] * d[i % n * M + j] / (double)M;
        }
        newton(s, n, p);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < M; j++) {
                double v = 0;
                for (int64_t l = 0; l < n; l++) v += p[i * n + l] * d[l * M + j];
                y[((j / P) * C + k * n + i) * P + j % P] = v;
            }
    }
    free(room);
}

static ctn_tensor *lyapunov_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    return ctn_lyapunov(matrix(c, ctx, x[0]), x[1]);
}

/* As n^2 linear equations: the sum over k of a_ik x_kj + x_ik a_kj = b_ij. */
static void lyapunov_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t n = out->dim[out->ndim - 1], nn = n * n;
    memcpy(y, x[1], (size_t)desc_count(out) * sizeof *y);
    for (int64_t m = 0; m < batch_of(&c->in[0]); m++) {
        double *a = matrix_ref(c, x[0], m), *e = calloc((size_t)(nn * nn + 1), sizeof *e);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                for (int64_t k = 0; k < n; k++) {
                    e[(i * n + j) * nn + k * n + j] += a[i * n + k];
                    e[(i * n + j) * nn + i * n + k] += a[k * n + j];
                }
        gauss(e, nn, y + m * nn, 1);
        free(a);
        free(e);
    }
}

/* clang-format off */
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define S4(a, b, c, d) .ndim = 4, .dim = {a, b, c, d}
#define CASE1(which, label, order, shape, ...)                                                   \
    {.op = #which, .name = label, .nin = 1, .in = {{shape}}, .p = {__VA_ARGS__},                 \
     .call = which##_call, .ref = which##_ref, .grad = order, .engine_sums = 2}
#define CASE2(which, label, order, shape, other, ...)                                            \
    {.op = #which, .name = label, .nin = 2, .in = {{shape}, {other}}, .p = {__VA_ARGS__},        \
     .call = which##_call, .ref = which##_ref, .grad = order, .engine_sums = 2}
#define SIZES(which, m)                                                                          \
    CASE1(which, "one", 2, S2(1, 1), m),                                                         \
    CASE1(which, "three", 2, S3(4, 3, 3), m),                                                    \
    CASE1(which, "batch", 2, S4(2, 3, 5, 5), m),                                                 \
    CASE1(which, "none", 0, S3(0, 3, 3), m),                                                     \
    CASE1(which, "large", 1, S3(3, 67, 67), m)
#define TRIANGLE(label, ...)                                                                     \
    CASE2(solve_triangular, label, 2, S3(2, 5, 5), S3(2, 5, 3), GENERAL, __VA_ARGS__)
#define WHITEN(label, order, groups, eps, ...)                                                   \
    {.op = "inverse_sqrt", .name = label, .nin = 1, .in = {{__VA_ARGS__}}, .p = {groups},        \
     .q = {eps}, .call = whiten_call, .ref = whiten_ref, .grad = order, .engine_sums = 2,        \
     .tol64 = 1e-11}
/* clang-format on */

case_table cases_linalg = {
    SIZES(det, GENERAL),
    CASE1(det, "pivots", 2, S3(2, 4, 4), ROTATED),
    SIZES(slogdet, GENERAL),
    CASE1(slogdet, "pivots", 2, S3(2, 4, 4), ROTATED),
    SIZES(inverse, GENERAL),
    CASE1(inverse, "pivots", 2, S3(2, 4, 4), ROTATED),
    SIZES(cholesky, SYMMETRIC),
    SIZES(inverse_sqrt, SYMMETRIC),
    WHITEN("whiten", 2, 1, 1e-3, S2(6, 3)),
    WHITEN("whiten_groups", 1, 2, 1e-2, S3(5, 4, 3)),
    WHITEN("whiten_each", 1, 3, 1e-5, S4(3, 3, 2, 2)),
    WHITEN("whiten_large", 0, 4, 2e-5, S4(7, 64, 5, 5)),
    CASE2(lyapunov, "one", 2, S2(1, 1), S2(1, 1), SYMMETRIC),
    CASE2(lyapunov, "three", 2, S3(2, 3, 3), S3(2, 3, 3), SYMMETRIC),
    CASE2(lyapunov, "none", 0, S3(0, 3, 3), S3(0, 3, 3), SYMMETRIC),
    CASE2(lyapunov, "large", 1, S3(3, 19, 19), S3(3, 19, 19), SYMMETRIC),
    CASE2(solve, "vector", 2, S2(4, 4), S2(4, 1), GENERAL),
    CASE2(solve, "batch", 2, S3(3, 5, 5), S3(3, 5, 2), GENERAL),
    CASE2(solve, "pivots", 2, S3(3, 5, 5), S3(3, 5, 2), ROTATED),
    CASE2(solve, "broadcast_a", 2, S2(3, 3), S3(4, 3, 2), GENERAL),
    CASE2(solve, "broadcast_b", 2, S3(4, 3, 3), S2(3, 2), GENERAL),
    CASE2(solve, "none", 0, S3(0, 3, 3), S3(0, 3, 2), GENERAL),
    CASE2(solve, "large", 1, S3(3, 67, 67), S3(3, 67, 9), ROTATED),
    TRIANGLE("lower", 0, 0, 0),
    TRIANGLE("upper", 1, 0, 0),
    TRIANGLE("lower_transposed", 0, 1, 0),
    TRIANGLE("upper_transposed", 1, 1, 0),
    TRIANGLE("lower_unit", 0, 0, 1),
    TRIANGLE("upper_unit", 1, 0, 1),
    TRIANGLE("lower_transposed_unit", 0, 1, 1),
    TRIANGLE("upper_transposed_unit", 1, 1, 1),
    CASE2(solve_triangular, "large", 1, S3(3, 67, 67), S3(3, 67, 67), GENERAL, 0, 1, 0),
    {0},
};
