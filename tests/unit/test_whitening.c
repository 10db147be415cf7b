/* SPDX-License-Identifier: Apache-2.0
 *
 * Decorrelated batch normalisation: the result of a training step has the identity as covariance,
 * the states move towards the statistics of the batch, evaluation uses them, and a copy of the
 * module gives the same bits. Also what is refused, and what inverse_sqrt and lyapunov refuse.
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

enum { N = 40, C = 4, G = 2, D = C / G };

static ctn_context *ctx;
static float x[N][C];

static void assert_refused(ctn_status status, const char *words)
{
    if (ctn_error_status() != status || !strstr(ctn_error_message(), words))
        fail_msg("expected '%s', found: %s", words, ctn_error_message());
    ctn_error_clear();
}

static void call(ctn_module *m, float y[N][C])
{
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(N, C))), y[0],
                sizeof(float[N][C])));
    OK(ctn_scope_end(ctx));
}

/* The covariance of channels i and j of v, and the mean of channel i. */
static double covariance(float v[N][C], int i, int j, double *mean)
{
    double mi = 0, mj = 0, s = 0;
    for (int n = 0; n < N; n++) {
        mi += (double)v[n][i] / (double)N;
        mj += (double)v[n][j] / (double)N;
    }
    for (int n = 0; n < N; n++) s += ((double)v[n][i] - mi) * ((double)v[n][j] - mj) / (double)N;
    *mean = mi;
    return s;
}

static void test_module(void **state)
{
    static float y[N][C], z[N][C], mean[C], p[G][D][D];
    ctn_module *m, *copy;
    double mu;
    (void)state;
    for (int n = 0; n < N; n++)
        for (int i = 0; i < C; i++)
            x[n][i] = (float)(sin(3.0 * n + i) + 0.5 * sin(1.7 * n) + i); /* correlated */
    OK(ctn_decorrelated_batch_norm_new(&m, ctx, C,
                                       CTN_OPT(ctn_decorrelated_batch_norm_opt, .groups = G,
                                               .eps = 1e-7)));
    ctn_context_set_training(ctx, 1);
    call(m, y);
    for (int i = 0; i < C; i++)
        for (int j = i / D * D; j < i / D * D + D; j++) {
            const double s = covariance(y, i, j, &mu);
            if (fabs(s - (i == j)) > 1e-5 || fabs(mu) > 1e-5)
                fail_msg("covariance (%d,%d) is %g, the mean %g", i, j, s, mu);
        }
    OK(ctn_var_get(ctn_module_find(m, "avg_mean"), mean, sizeof mean));
    OK(ctn_var_get(ctn_module_find(m, "avg_projection"), p, sizeof p));
    for (int i = 0; i < C; i++) {
        (void)covariance(x, i, i, &mu);
        assert_true(fabs((double)mean[i] - 0.1 * mu) < 1e-6);
    }
    /* p = 0.9 + 0.1 q, where q (x - mean) was the result */
    for (int n = 0; n < N; n++)
        for (int i = 0; i < C; i++) {
            double v = 0;
            for (int j = 0; j < D; j++) {
                const double q = ((double)p[i / D][i % D][j] - (i % D == j ? 0.9 : 0)) / 0.1;
                v += q * ((double)x[n][i / D * D + j] - (double)mean[i / D * D + j] / 0.1);
            }
            if (fabs(v - (double)y[n][i]) > 1e-4)
                fail_msg("row %d: %g, not %g", n, v, (double)y[n][i]);
        }
    OK(ctn_module_copy(&copy, m));
    ctn_context_set_training(ctx, 0);
    call(m, y);
    call(copy, z);
    assert_memory_equal(y, z, sizeof y);
    for (int n = 0; n < N; n++)
        for (int i = 0; i < C; i++) {
            double v = 0;
            for (int j = 0; j < D; j++)
                v += (double)p[i / D][i % D][j] *
                     ((double)x[n][i / D * D + j] - (double)mean[i / D * D + j]);
            assert_true(fabs(v - (double)y[n][i]) < 1e-5);
        }
    ctn_context_set_training(ctx, 1);
    ctn_module_free(m);
    ctn_module_free(copy);
}

static void test_errors(void **state)
{
    static const float a[2][2][2] = {{{2, 0}, {0, 1}}, {{1, 2}, {2, 1}}};
    float y[2][2][2];
    ctn_module *m;
    (void)state;
    assert_int_equal(ctn_decorrelated_batch_norm_new(&m, ctx, 20, NULL), CTN_EARG);
    assert_refused(CTN_EARG, "20 channels cannot be divided into 16 groups");
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(N, C));
    ctn_tensor *t = ctn_input(ctx, a, CTN_F32, CTN_SHAPE(2, 2, 2));
    ctn_tensor *one = ctn_input(ctx, a, CTN_F32, CTN_SHAPE(2, 2));
    assert_null(ctn_decorrelated_batch_norm(in, NULL, NULL, NULL));
    assert_refused(CTN_EARG, "the channels of x (40,4) cannot be divided into 16 groups");
    assert_null(ctn_fixed_decorrelated_batch_norm(in, one, one));
    assert_refused(CTN_ESHAPE, "mean is (2,2), projection is (2,2)");
    assert_null(ctn_lyapunov(t, one));
    assert_refused(CTN_ESHAPE, "a is (2,2,2), b is (2,2)");
    assert_int_equal(ctn_read(ctn_inverse_sqrt(t), y, sizeof y), CTN_EARG);
    assert_refused(CTN_EARG, "inverse_sqrt: matrix 1 of a (2,2,2) is not positive definite");
    (void)ctn_scope_end(ctx);
    ctn_error_clear();
}

static int setup(void **state)
{
    (void)state;
    return ctn_context_new(&ctx, NULL) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    ctn_context_free(ctx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_module),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
