/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Fourier transforms against sums over all elements in double: lengths with every radix,
 * prime lengths, any axis, several axes, more lines than a block holds.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "ops/common/fft.h"

/* p: number of axes, 3 axes, norm, inverse, length of the last axis of irfft */
enum { NAXES, AXES, NORM = 4, INVERSE, LAST };

static ctn_tensor *fft_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    const ctn_fft_norm norm = (ctn_fft_norm)c->p[NORM];
    (void)ctx;
    return c->p[INVERSE] ? ctn_ifft(x[0], (int)c->p[NAXES], c->p + AXES, norm)
                         : ctn_fft(x[0], (int)c->p[NAXES], c->p + AXES, norm);
}

static ctn_tensor *rfft_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_rfft(x[0], (int)c->p[NAXES], c->p + AXES, (ctn_fft_norm)c->p[NORM]);
}

static ctn_tensor *irfft_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_irfft(x[0], (int)c->p[NAXES], c->p + AXES, c->p[LAST], (ctn_fft_norm)c->p[NORM]);
}

static double factor(const op_case *c, int64_t n, int inverse)
{
    if (c->p[NORM] == CTN_FFT_ORTHO) return 1 / sqrt((double)n);
    return (c->p[NORM] == CTN_FFT_FORWARD) != (inverse != 0) ? 1 / (double)n : 1;
}

static int axis_of(const op_case *c, int i, int nd)
{
    return (int)(c->p[AXES + i] < 0 ? c->p[AXES + i] + nd : c->p[AXES + i]);
}

static void root(int64_t jk, int64_t n, double *co, double *si)
{
    const double a = 8 * atan(1.0) * (double)(jk % n) / (double)n;
    *co = cos(a);
    *si = sin(a);
}

/* In place, along one axis of complex v with nd dimensions. */
static void transform(const op_case *c, double *v, int nd, const int64_t *dim, int axis,
                      int inverse)
{
    int64_t outer = 1, inner = 1, n = dim[axis];
    for (int i = 0; i < axis; i++) outer *= dim[i];
    for (int i = axis + 1; i < nd; i++) inner *= dim[i];
    double *line = calloc((size_t)(4 * n), sizeof *line), *w = line + 2 * n;
    for (int64_t j = 0; j < n; j++) root(j, n, &w[2 * j], &w[2 * j + 1]);
    for (int64_t l = 0; l < outer * inner; l++) {
        double *at = v + 2 * (l / inner * n * inner + l % inner);
        for (int64_t j = 0; j < n; j++) memcpy(line + 2 * j, at + 2 * j * inner, 16);
        for (int64_t k = 0; k < n; k++) {
            double re = 0, im = 0;
            for (int64_t j = 0; j < n; j++) {
                const double co = w[2 * (j * k % n)], sine = w[2 * (j * k % n) + 1];
                const double si = inverse ? sine : -sine;
                re += line[2 * j] * co - line[2 * j + 1] * si;
                im += line[2 * j] * si + line[2 * j + 1] * co;
            }
            at[2 * k * inner] = re * factor(c, n, inverse);
            at[2 * k * inner + 1] = im * factor(c, n, inverse);
        }
    }
    free(line);
}

static void fft_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    memcpy(y, x[0], (size_t)desc_count(out) * sizeof *y);
    for (int i = 0; i < c->p[NAXES]; i++)
        transform(c, y, out->ndim - 1, out->dim, axis_of(c, i, out->ndim - 1), (int)c->p[INVERSE]);
}

/* All frequencies, of which y gets the first half of the last axis. */
static void rfft_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const case_in *in = &c->in[0];
    const int64_t n = case_count(in);
    int64_t at[CTN_MAX_DIMS] = {0};
    double *v = calloc((size_t)(2 * n + 1), sizeof *v);
    for (int64_t i = 0; i < n; i++) v[2 * i] = x[0][i];
    for (int i = 0; i < c->p[NAXES]; i++)
        transform(c, v, in->ndim, in->dim, axis_of(c, i, in->ndim), 0);
    for (int64_t i = 0; i < desc_count(out) / 2; i++) {
        int64_t from = 0;
        unravel(i, out->ndim - 1, out->dim, at);
        for (int k = 0; k < in->ndim; k++) from = from * in->dim[k] + at[k];
        memcpy(y + 2 * i, v + 2 * from, 16);
    }
    free(v);
}

/* The other axes first; then the last, with the conjugate of each frequency in the middle. */
static void irfft_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const case_in *in = &c->in[0];
    const int nd = in->ndim - 1, last = axis_of(c, (int)c->p[NAXES] - 1, nd);
    const int64_t n = c->p[LAST];
    int64_t at[CTN_MAX_DIMS] = {0};
    double *v = calloc((size_t)case_count(in) + 1, sizeof *v), co, si;
    memcpy(v, x[0], (size_t)case_count(in) * sizeof *v);
    for (int i = 0; i + 1 < c->p[NAXES]; i++) transform(c, v, nd, in->dim, axis_of(c, i, nd), 1);
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, nd, out->dim, at);
        const int64_t j = at[last];
        y[i] = 0;
        for (at[last] = 0; at[last] <= n / 2; at[last]++) {
            const int64_t k = at[last];
            int64_t from = 0;
            for (int d = 0; d < nd; d++) from = from * in->dim[d] + at[d];
            root(j * k, n, &co, &si);
            y[i] += (k == 0 || 2 * k == n ? 1 : 2) * (v[2 * from] * co - v[2 * from + 1] * si);
        }
        y[i] *= factor(c, n, 1);
    }
    free(v);
}

static ctn_tensor *complex_mul_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)c, (void)ctx;
    return ctn_complex_mul(x[0], x[1]);
}

/* a has the shape of the result, b that of its last dimensions. */
static void complex_mul_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                            double *y)
{
    const int64_t nb = case_count(&c->in[1]);
    for (int64_t i = 0; i < desc_count(out); i += 2) {
        const double *a = x[0] + i, *b = x[1] + i % nb;
        y[i] = a[0] * b[0] - a[1] * b[1];
        y[i + 1] = a[0] * b[1] + a[1] * b[0];
    }
}

/* p: n, k, complex, inverse. Added to x, so that there is an input. */
static ctn_tensor *dft_matrix_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    return ctn_add(x[0], ctn__dft_matrix(CTN_HERE, ctx, ctn_dtype_of(x[0]), c->p[0], c->p[1],
                                         c->p[2] != 0, c->p[3] != 0));
}

static void dft_matrix_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t n = c->p[0], k = c->p[1], cols = out->dim[1];
    for (int64_t i = 0; i < desc_count(out); i++) {
        const int64_t row = i / cols, f0 = i % cols / 2, j = c->p[2] ? row / 2 : row;
        const int64_t f = c->p[2] && f0 >= k ? n - 2 * k + f0 : f0;
        const int from_im = c->p[2] && row % 2, to_im = (int)(i % 2);
        double co, si, u = c->p[3] ? 1 / (double)n : 1;
        if (c->p[3] && !c->p[2] && f != 0 && 2 * f != n) u *= 2;
        root(j * f, n, &co, &si);
        y[i] = x[0][i] + u * (from_im == to_im ? co : from_im ? si : -si);
    }
}

/* clang-format off */
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define S4(a, b, c, d) .ndim = 4, .dim = {a, b, c, d}
#define CASE(which, label, order, shape, ...)                                                    \
    {.op = #which, .name = label, .nin = 1, .in = {{shape}}, .p = {__VA_ARGS__},                 \
     .call = which##_call, .ref = which##_ref, .grad = order}
#define LENGTH(n)                                                                                \
    CASE(fft, #n, 2, S3(3, n, 2), 1, -1, 0, 0, CTN_FFT_ORTHO),                                   \
    CASE(fft, "inverse_" #n, 1, S3(n, 2, 2), 1, 0, 0, 0, CTN_FFT_ORTHO, 1),                      \
    CASE(rfft, #n, 2, S2(3, n), 1, 1, 0, 0, CTN_FFT_ORTHO),                                      \
    CASE(irfft, #n, 2, S3(3, n / 2 + 1, 2), 1, 1, 0, 0, CTN_FFT_ORTHO, 0, n)
/* clang-format on */

case_table cases_fft = {
    LENGTH(1),
    LENGTH(2),
    LENGTH(3),
    LENGTH(4),
    LENGTH(5),
    LENGTH(6),
    LENGTH(7),
    LENGTH(8),
    LENGTH(9),
    LENGTH(12),
    LENGTH(15),
    LENGTH(16),
    LENGTH(30),
    LENGTH(49),
    LENGTH(97),
    LENGTH(128),
    LENGTH(194),
    LENGTH(1000),
    LENGTH(1021),
    CASE(fft, "first_axis", 2, S4(6, 2, 3, 2), 1, 0, 0, 0, CTN_FFT_BACKWARD),
    CASE(fft, "many_lines", 1, S4(5, 16, 37, 2), 1, 1, 0, 0, CTN_FFT_BACKWARD),
    CASE(fft, "lines_in_a_row", 1, S4(5, 37, 16, 2), 1, 2, 0, 0, CTN_FFT_BACKWARD, 1),
    CASE(fft, "two_axes", 2, S4(2, 4, 5, 2), 2, 1, 2, 0, CTN_FFT_FORWARD),
    CASE(fft, "three_axes", 2, S4(3, 4, 5, 2), 3, 2, 0, 1, CTN_FFT_BACKWARD, 1),
    CASE(fft, "long", 0, S2(8192, 2), 1, 0, 0, 0, CTN_FFT_ORTHO),
    CASE(fft, "empty", 0, S3(0, 4, 2), 1, 1, 0, 0, CTN_FFT_BACKWARD),
    CASE(rfft, "inner", 2, S3(2, 6, 3), 1, 1, 0, 0, CTN_FFT_FORWARD),
    CASE(rfft, "odd_inner", 2, S3(2, 5, 3), 1, 1, 0, 0, CTN_FFT_BACKWARD),
    CASE(rfft, "two_axes", 2, S3(2, 4, 6), 2, 1, 2, 0, CTN_FFT_BACKWARD),
    CASE(rfft, "three_axes", 2, S3(3, 4, 5), 3, -1, 0, 1, CTN_FFT_ORTHO),
    CASE(rfft, "many_lines", 1, S3(3, 18, 33), 2, 1, 2, 0, CTN_FFT_ORTHO),
    CASE(rfft, "many_rows", 1, S3(3, 33, 18), 1, 2, 0, 0, CTN_FFT_ORTHO),
    CASE(irfft, "inner", 2, S4(2, 4, 3, 2), 1, 1, 0, 0, CTN_FFT_FORWARD, 0, 6),
    CASE(irfft, "odd_inner", 2, S4(2, 3, 3, 2), 1, 1, 0, 0, CTN_FFT_BACKWARD, 0, 5),
    CASE(irfft, "two_axes", 2, S4(2, 4, 4, 2), 2, 1, 2, 0, CTN_FFT_BACKWARD, 0, 6),
    CASE(irfft, "three_axes", 2, S4(3, 3, 2, 2), 3, 2, 0, 1, CTN_FFT_ORTHO, 0, 5),
    CASE(irfft, "many_lines", 1, S4(3, 10, 33, 2), 2, 2, 1, 0, CTN_FFT_ORTHO, 0, 18),
    {.op = "complex_mul",
     .name = "same",
     .nin = 2,
     .in = {{S3(3, 7, 2)}, {S3(3, 7, 2)}},
     .call = complex_mul_call,
     .ref = complex_mul_ref,
     .grad = 2},
    {.op = "complex_mul",
     .name = "broadcast",
     .nin = 2,
     .in = {{S3(3, 7, 2)}, {S2(7, 2)}},
     .call = complex_mul_call,
     .ref = complex_mul_ref,
     .grad = 2},
    {.op = "complex_mul",
     .name = "large",
     .nin = 2,
     .in = {{S2(20001, 2)}, {S2(20001, 2)}},
     .call = complex_mul_call,
     .ref = complex_mul_ref,
     .grad = 1},
    CASE(dft_matrix, "real", 0, S2(8, 10), 8, 5, 0, 0),
    CASE(dft_matrix, "real_inverse", 0, S2(8, 10), 8, 5, 0, 1),
    CASE(dft_matrix, "odd_inverse", 0, S2(7, 8), 7, 4, 0, 1),
    CASE(dft_matrix, "complex", 0, S2(14, 12), 7, 3, 1, 0),
    CASE(dft_matrix, "complex_inverse", 0, S2(16, 12), 8, 3, 1, 1),
    {0},
};
