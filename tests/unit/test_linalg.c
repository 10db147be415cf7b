/* SPDX-License-Identifier: Apache-2.0
 *
 * What linear algebra and Fourier transforms do with inputs that have no result: singular matrices,
 * matrices that are not positive definite, wrong shapes and axes. And the kernels in blocks against
 * plain loops, to the bit.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>
#include <catena/ops.h>

#include <cmocka.h>

#include "engine/isa.h"
#include "ops/common/linalg.h"
#include "support/ok.h"

static ctn_context *ctx;
/* The identity, a matrix that is not positive definite, and a singular one. */
static const float three[3][2][2] = {{{1, 0}, {0, 1}}, {{1, 2}, {2, 1}}, {{1, 2}, {2, 4}}};

static ctn_tensor *matrices(void)
{
    return ctn_input(ctx, three, CTN_F32, CTN_SHAPE(3, 2, 2));
}

/* The call must have recorded an error with this status and these words; forgets it. */
static void assert_refused(ctn_status status, const char *words)
{
    if (ctn_error_status() != status || !strstr(ctn_error_message(), words))
        fail_msg("expected '%s', found: %s", words, ctn_error_message());
    ctn_error_clear();
}

static void test_singular(void **state)
{
    float y[3][2][2], d[3], s[3], l[3];
    ctn_tensor *sign, *logabs;
    (void)state;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *inverse = ctn_inverse(matrices()), *det = ctn_det(matrices());
    OK(ctn_slogdet(matrices(), &sign, &logabs));
    OK(ctn_read(inverse, y, sizeof y));
    OK(ctn_read(det, d, sizeof d));
    OK(ctn_read(sign, s, sizeof s));
    OK(ctn_read(logabs, l, sizeof l));
    OK(ctn_scope_end(ctx));
    assert_true(y[0][0][0] == 1 && y[0][0][1] == 0);
    assert_true(fabsf(y[1][0][1] - 2.0f / 3) < 1e-6f);
    for (int i = 0; i < 4; i++) assert_true(!isfinite(y[2][i / 2][i % 2]));
    assert_true(d[0] == 1 && d[1] == -3 && d[2] == 0);
    assert_true(s[0] == 1 && s[1] == -1 && s[2] == 0);
    assert_true(l[0] == 0 && fabsf(l[1] - logf(3)) < 1e-6f && l[2] == -INFINITY);
}

static void test_not_positive_definite(void **state)
{
    float y[3][2][2];
    (void)state;
    OK(ctn_scope_begin(ctx));
    assert_int_equal(ctn_read(ctn_cholesky(matrices()), y, sizeof y), CTN_EARG);
    assert_refused(CTN_EARG, "matrix 1 of a (3,2,2) is not positive definite");
    (void)ctn_scope_end(ctx);
    ctn_error_clear();
}

static void test_shapes(void **state)
{
    static const float x[24];
    (void)state;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *wide = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 3, 4));
    ctn_tensor *pairs = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(3, 4, 2));
    assert_null(ctn_det(wide));
    assert_refused(CTN_ESHAPE, "a is (2,3,4), expected square matrices");
    assert_null(ctn_solve(matrices(), ctn_input(ctx, x, CTN_F32, CTN_SHAPE(3, 3, 1))));
    assert_refused(CTN_ESHAPE, "a is (3,2,2), b is (3,3,1)");
    assert_null(ctn_fft(wide, CTN_SHAPE(0), CTN_FFT_BACKWARD));
    assert_refused(CTN_ESHAPE, "x is (2,3,4), expected complex numbers");
    assert_null(ctn_fft(pairs, CTN_SHAPE(0, -2), CTN_FFT_BACKWARD));
    assert_refused(CTN_ESHAPE, "axis -2 is given twice");
    assert_null(ctn_rfft(wide, CTN_SHAPE(3), CTN_FFT_BACKWARD));
    assert_refused(CTN_ESHAPE, "axis 3");
    assert_null(ctn_rfft(wide, 0, NULL, CTN_FFT_BACKWARD));
    assert_refused(CTN_EARG, "got 0 axes");
    assert_null(ctn_irfft(pairs, CTN_SHAPE(1), 8, CTN_FFT_BACKWARD));
    assert_refused(CTN_ESHAPE, "a result of length 8 needs 5");
    OK(ctn_scope_end(ctx));
}

/* ---- blocks against plain loops ------------------------------------------------------------- */

enum { MOST = 161 };

static double plain[MOST * MOST], fast[MOST * MOST], right[MOST * MOST], other[MOST * MOST];

static void fill(double *x, int64_t n)
{
    static uint32_t seed = 1;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (double)seed / 4294967296 - 0.5;
    }
}

static void plain_lu(double *a, int64_t n, const int64_t *pivot)
{
    for (int64_t c = 0; c < n; c++) {
        for (int64_t j = 0; j < n && pivot[c] != c; j++) {
            const double t = a[c * n + j];
            a[c * n + j] = a[pivot[c] * n + j];
            a[pivot[c] * n + j] = t;
        }
        for (int64_t i = c + 1; i < n; i++) {
            a[i * n + c] /= a[c * n + c];
            for (int64_t j = c + 1; j < n; j++) a[i * n + j] -= a[i * n + c] * a[c * n + j];
        }
    }
}

static void plain_solve(const double *a, int64_t n, double *b, int64_t k, bool upper, bool trans,
                        bool unit)
{
    const int64_t si = trans ? 1 : n, sj = trans ? n : 1;
    for (int64_t u = 0; u < n; u++) {
        const int64_t i = upper != trans ? n - 1 - u : u;
        for (int64_t v = 0; v < u; v++) {
            const int64_t j = upper != trans ? n - 1 - v : v;
            for (int64_t l = 0; l < k; l++) b[i * k + l] -= a[i * si + j * sj] * b[j * k + l];
        }
        for (int64_t l = 0; l < k; l++) b[i * k + l] /= unit ? 1 : a[i * (n + 1)];
    }
}

static void check_blocks(int64_t n)
{
    int64_t pivot[MOST];
    fill(plain, n * n);
    memcpy(fast, plain, sizeof plain);
    ctn__lu(fast, n, pivot);
    plain_lu(plain, n, pivot);
    assert_memory_equal(fast, plain, (size_t)(n * n) * sizeof *fast);
    for (int64_t c = 0; c < n; c++)
        for (int64_t i = c + 1; i < n; i++) assert_true(fabs(fast[i * n + c]) <= 1);

    for (int64_t i = 0; i < n; i++) plain[i * (n + 1)] += 2;
    const int64_t columns[] = {1, 3, 8, 13, n};
    for (int way = 0; way < 8; way++)
        for (int c = 0; c < 5; c++) {
            const int64_t k = columns[c] < n ? columns[c] : n;
            fill(right, n * k);
            memcpy(other, right, sizeof right);
            ctn__triangular_solve(plain, n, right, k, way & 1, way & 2, way & 4);
            plain_solve(plain, n, other, k, way & 1, way & 2, way & 4);
            assert_memory_equal(right, other, (size_t)(n * k) * sizeof *right);
        }
}

static void test_blocks(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 36, 63, 65, 100, 129, MOST};
    (void)state;
    for (int isa = CTN__ISA_PORTABLE; isa <= CTN__ISA_BEST; isa++)
        if (ctn__isa_limit((ctn__isa)isa) == (ctn__isa)isa)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_blocks(sizes[i]);
    ctn__isa_limit(CTN__ISA_BEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_singular),
        cmocka_unit_test(test_not_positive_definite),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_blocks),
    };
    if (ctn_context_new(&ctx, NULL) < 0) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ctn_context_free(ctx);
    return failed;
}
