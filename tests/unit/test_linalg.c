/* SPDX-License-Identifier: Apache-2.0
 *
 * What linear algebra and Fourier transforms do with inputs that have no result: singular matrices,
 * matrices that are not positive definite, wrong shapes and axes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <catena/catena.h>
#include <catena/ops.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_singular),
        cmocka_unit_test(test_not_positive_definite),
        cmocka_unit_test(test_shapes),
    };
    if (ctn_context_new(&ctx, NULL) < 0) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ctn_context_free(ctx);
    return failed;
}
