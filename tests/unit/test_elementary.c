/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cases of tests/ops cannot express about elementary functions and the reductions, losses
 * and samples that are made of them: NaN, gradients where the definition is a matter of choice,
 * training and evaluation mode, distributions, refused calls.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ops/ops.h"

static ctn_context *context(void)
{
    ctn_context *ctx = NULL;
    assert_int_equal(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2, .seed = 5)),
                     CTN_OK);
    return ctx;
}

/* ---- NaN ------------------------------------------------------------------------------------- */

typedef ctn_tensor *unary(const char *at, ctn_tensor *x);

static ctn_tensor *trigamma(const char *at, ctn_tensor *x)
{
    return ctn_polygamma_at(at, 1, x);
}

static ctn_tensor *zeta_of(const char *at, ctn_tensor *x)
{
    return ctn_zeta_at(at, ctn_shift_at(at, x, 2), x);
}

static ctn_tensor *angle(const char *at, ctn_tensor *x)
{
    return ctn_arctan2_at(at, x, x);
}

static ctn_tensor *remainder_of(const char *at, ctn_tensor *x)
{
    return ctn_fmod_at(at, x, x);
}

static ctn_tensor *signed_root(const char *at, ctn_tensor *x)
{
    return ctn_signed_power_at(at, x, 0.5);
}

static unary *const functions[] = {
    ctn_sin_at,
    ctn_cos_at,
    ctn_tan_at,
    ctn_arcsin_at,
    ctn_arccos_at,
    ctn_arctan_at,
    ctn_sinh_at,
    ctn_cosh_at,
    ctn_arcsinh_at,
    ctn_arccosh_at,
    ctn_arctanh_at,
    ctn_expm1_at,
    ctn_log1p_at,
    ctn_log2_at,
    ctn_log10_at,
    ctn_floor_at,
    ctn_ceil_at,
    ctn_round_at,
    ctn_trunc_at,
    ctn_erf_at,
    ctn_erfc_at,
    ctn_erfcx_at,
    ctn_erfinv_at,
    ctn_erfcinv_at,
    ctn_ndtr_at,
    ctn_log_ndtr_at,
    ctn_ndtri_at,
    ctn_lgamma_at,
    ctn_digamma_at,
    ctn_selu_at,
    ctn_hard_sigmoid_at,
    ctn_hard_swish_at,
    ctn_mish_at,
    trigamma,
    zeta_of,
    angle,
    remainder_of,
    signed_root,
};

/* NaN among other elements stays NaN, and only that one. */
static void test_nan(void **state)
{
    (void)state;
    ctn_context *ctx = context();
    float x32[70], y32[70];
    double x64[70], y64[70];
    for (int i = 0; i < 70; i++) x64[i] = (double)(x32[i] = i == 37 ? NAN : 0.5f);
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        const bool above = functions[k] == ctn_arccosh_at; /* its domain begins at 1 */
        assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
        ctn_tensor *a = ctn_input(ctx, x32, CTN_F32, CTN_SHAPE(70));
        ctn_tensor *b = ctn_input(ctx, x64, CTN_F64, CTN_SHAPE(70));
        if (above) a = ctn_shift(a, 1);
        if (above) b = ctn_shift(b, 1);
        assert_int_equal(ctn_read(functions[k]("test", a), y32, sizeof y32), CTN_OK);
        assert_int_equal(ctn_read(functions[k]("test", b), y64, sizeof y64), CTN_OK);
        assert_int_equal(ctn_scope_end(ctx), CTN_OK);
        for (int i = 0; i < 70; i++) {
            assert_int_equal(isnan(y32[i]) != 0, i == 37);
            assert_int_equal(isnan(y64[i]) != 0, i == 37);
        }
    }
    ctn_context_free(ctx);
}

static double value(ctn_tensor *t)
{
    double v[64];
    assert_non_null(t);
    assert_int_equal(ctn_read(t, v, sizeof(double) * (size_t)ctn__count(&t->d)), CTN_OK);
    return v[0];
}

static void test_reductions_of_nan(void **state)
{
    (void)state;
    ctn_context *ctx = context();
    const double x[3] = {1, (double)NAN, 2}, low[2] = {-INFINITY, -INFINITY},
                 top[2] = {1, INFINITY};
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *a = ctn_input(ctx, x, CTN_F64, CTN_SHAPE(3));
    assert_true(isnan(value(ctn_prod(a, CTN_ALL_AXES, 0))));
    assert_true(isnan(value(ctn_logsumexp(a, CTN_ALL_AXES, 0))));
    assert_true(isnan(value(ctn_std(a, CTN_ALL_AXES, 1, 0))));
    assert_true(isnan(value(ctn_norm(a, 2, CTN_ALL_AXES, 0))));
    assert_true(isnan(value(ctn_variance(ctn_slice(a, 0, 0, 1), CTN_ALL_AXES, 1, 0))));
    ctn_tensor *b = ctn_input(ctx, low, CTN_F64, CTN_SHAPE(2));
    assert_true(value(ctn_logsumexp(b, CTN_ALL_AXES, 0)) == -INFINITY);
    ctn_tensor *c = ctn_input(ctx, top, CTN_F64, CTN_SHAPE(2));
    assert_true(value(ctn_logsumexp(c, CTN_ALL_AXES, 0)) == INFINITY);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    ctn_context_free(ctx);
}

/* ---- inverse functions ----------------------------------------------------------------------- */

/* The f32 kernels against those in f64, over the magnitudes of floats whose results are normal. */
static void test_inverses_in_f32(void **state)
{
    (void)state;
    enum { SMALLEST = 0x01000000, TWO = 0x40000000, STEP = 10007 }; /* bits of floats */
    enum { COUNT = TWO / STEP };
    static unary *const of[] = {ctn_erfcinv_at, ctn_ndtri_at, ctn_erfinv_at};
    static const float end[][2] = {{0, 2}, {0, 1}, {-1, 1}}, past[] = {-1e-30f, 2.5f, -3, NAN};
    ctn_context *ctx = context();
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y), two[2], four[4];
    double *z = malloc(COUNT * sizeof *z);
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        int64_t n = 0;
        for (uint32_t bits = SMALLEST; bits < TWO; bits += STEP) {
            memcpy(&x[n], &bits, sizeof bits);
            if (x[n] < end[k][1]) n++;
        }
        if (end[k][0] < 0)
            for (int64_t i = 0; i < n; i += 2) x[i] = -x[i];
        assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
        ctn_tensor *a = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(n));
        ctn_tensor *e = ctn_input(ctx, end[k], CTN_F32, CTN_SHAPE(2));
        ctn_tensor *p = ctn_input(ctx, past, CTN_F32, CTN_SHAPE(4));
        assert_int_equal(ctn_read(of[k]("test", a), y, sizeof *y * (size_t)n), CTN_OK);
        assert_int_equal(ctn_read(of[k]("test", ctn_cast(a, CTN_F64)), z, sizeof *z * (size_t)n),
                         CTN_OK);
        assert_int_equal(ctn_read(of[k]("test", e), two, sizeof two), CTN_OK);
        assert_int_equal(ctn_read(of[k]("test", p), four, sizeof four), CTN_OK);
        assert_int_equal(ctn_scope_end(ctx), CTN_OK);
        for (int64_t i = 0; i < n; i++)
            if (!(fabs((double)y[i] - z[i]) <= 1e-6 * fabs(z[i])))
                fail_msg("function %zu of %g is %g, expected %g", k, (double)x[i], (double)y[i],
                         z[i]);
        assert_true(two[0] == (k == 0 ? INFINITY : -INFINITY));
        assert_true(two[1] == -two[0]);
        for (int i = 0; i < 4; i++) assert_true(isnan(four[i]) || (k == 2 && i == 0));
    }
    free(x);
    free(y);
    free(z);
    ctn_context_free(ctx);
}

/* ---- powers ---------------------------------------------------------------------------------- */

/* pow in f32 against libm's: signs, zeros, infinities, NaN, even and odd exponents around
 * 2^23 and 2^24, and results of every magnitude. Subnormal numbers may be 0. */
static void test_pow_in_f32(void **state)
{
    (void)state;
    static const float of[] = {0,          -0.0f,    1,          -1,       2,           -2,
                               3,          -3,       0.5f,       -0.5f,    1.5f,        -1.5f,
                               1e10f,      -1e10f,   1e38f,      -1e38f,   INFINITY,    -INFINITY,
                               NAN,        1e-10f,   127,        -149,     0.99999994f, 1.0000001f,
                               4194303.5f, -4194305, 8388607.5f, -8388607, 8388609,     -8388609,
                               16777215,   16777216, -0.3333333f};
    enum { N = sizeof of / sizeof *of, MORE = 20000, COUNT = N * N + MORE };
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    float *z = malloc(COUNT * sizeof *z);
    for (int i = 0; i < N * N; i++) x[i] = of[i / N], y[i] = of[i % N];
    for (int i = 0; i < MORE; i++) {
        x[N * N + i] = (float)exp2(i % 250 - 125 + i / (double)MORE);
        y[N * N + i] = (float)((i % 293 - 146.5) / log2((double)x[N * N + i]));
    }
    ctn_context *ctx = context();
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *a = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(COUNT));
    ctn_tensor *b = ctn_input(ctx, y, CTN_F32, CTN_SHAPE(COUNT));
    assert_int_equal(ctn_read(ctn_pow(a, b), z, COUNT * sizeof *z), CTN_OK);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    for (int i = 0; i < COUNT; i++) {
        const double want = pow((double)x[i], (double)y[i]), got = (double)z[i];
        const float near = (float)want;
        if (isnan(near) ? isnan(z[i]) : !isfinite(near) || near == 0 ? z[i] == near : false)
            assert_true(isnan(near) || signbit(near) == signbit(z[i]));
        else if (!(fabs(got - want) <= 1e-7 * fabs(want) + (double)FLT_MIN))
            fail_msg("%.9g ^ %.9g is %.9g, expected %.9g", (double)x[i], (double)y[i], got, want);
    }
    ctn_context_free(ctx);
    free(x);
    free(y);
    free(z);
}

/* ---- gradients ------------------------------------------------------------------------------- */

typedef ctn_tensor *scalar_of(ctn_tensor *x);

static ctn_tensor *norm1(ctn_tensor *x)
{
    return ctn_norm(x, 1, CTN_ALL_AXES, 0);
}

static ctn_tensor *norm2(ctn_tensor *x)
{
    return ctn_norm(x, 2, CTN_ALL_AXES, 0);
}

static ctn_tensor *norm_max(ctn_tensor *x)
{
    return ctn_norm(x, INFINITY, CTN_ALL_AXES, 0);
}

static ctn_tensor *deviation(ctn_tensor *x)
{
    return ctn_std(x, CTN_ALL_AXES, 0, 0);
}

static ctn_tensor *apart(ctn_tensor *x)
{
    ctn_tensor *t = ctn_full(x->ctx, 0, CTN_I64, CTN_SCALAR_SHAPE);
    return ctn_contrastive(x, ctn_detach(x), t, 1, CTN_SUM);
}

static ctn_tensor *origin(ctn_tensor *x)
{
    return ctn_sum(ctn_arctan2(x, x), CTN_ALL_AXES, 0);
}

/* First and second derivatives at 0 are 0, not NaN. */
static void test_gradient_at_zero(void **state)
{
    (void)state;
    static scalar_of *const all[] = {norm1, norm2, norm_max, deviation, apart, origin};
    ctn_context *ctx = context();
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        const double zero[3] = {0};
        double g[3], gg[3];
        ctn_tensor *gx, *ggx;
        assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
        ctn_tensor *x = ctn_with_grad(ctn_input(ctx, zero, CTN_F64, CTN_SHAPE(3)));
        assert_int_equal(ctn_grad(all[k](x), 1, &x, &gx), CTN_OK);
        ctn_tensor *more =
            ctn_add(ctn_sum(ctn_square(gx), CTN_ALL_AXES, 0), ctn_sum(x, CTN_ALL_AXES, 0));
        assert_int_equal(ctn_grad(more, 1, &x, &ggx), CTN_OK);
        assert_int_equal(ctn_read(gx, g, sizeof g), CTN_OK);
        assert_int_equal(ctn_read(ggx, gg, sizeof gg), CTN_OK);
        for (int i = 0; i < 3; i++) {
            assert_true(g[i] == 0);
            assert_true(gg[i] == 1);
        }
        assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    }
    ctn_context_free(ctx);
}

/* ---- random ---------------------------------------------------------------------------------- */

enum { N = 20000 };

/* Slopes of rrelu, which are the values and the gradients at -1. */
static void test_rrelu(void **state)
{
    (void)state;
    static double x[N], y[N], g[N];
    ctn_context *ctx = context();
    for (int i = 0; i < N; i++) x[i] = i % 2 ? -1 : 1;
    for (int train = 0; train < 2; train++) {
        double sum = 0, least = 1, most = 0;
        ctn_tensor *gx;
        ctn_context_set_training(ctx, train);
        assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
        ctn_tensor *t = ctn_with_grad(ctn_input(ctx, x, CTN_F64, CTN_SHAPE(N)));
        ctn_tensor *r = ctn_rrelu(t, 0.1, 0.3);
        assert_int_equal(ctn_grad(ctn_sum(r, CTN_ALL_AXES, 0), 1, &t, &gx), CTN_OK);
        assert_int_equal(ctn_read(r, y, sizeof y), CTN_OK);
        assert_int_equal(ctn_read(gx, g, sizeof g), CTN_OK);
        assert_int_equal(ctn_scope_end(ctx), CTN_OK);
        for (int i = 0; i < N; i++) {
            assert_true(g[i] == y[i] / x[i]);
            if (i % 2 == 0) continue;
            sum += g[i];
            least = fmin(least, g[i]);
            most = fmax(most, g[i]);
        }
        assert_true(fabs(sum / (N / 2) - 0.2) < 0.002);
        assert_true(train ? least >= 0.1 && least < 0.101 && most < 0.3 && most > 0.299
                          : least == most);
    }
    ctn_context_free(ctx);
}

/* y = mean + std z: gradients are 1 and (y - mean) / 2. */
static void test_gaussian(void **state)
{
    (void)state;
    static double mean[N], y[N], g[2][N];
    const double ln_var = log(4);
    double sum = 0, squares = 0;
    ctn_context *ctx = context();
    ctn_tensor *in[2], *gx[2];
    for (int i = 0; i < N; i++) mean[i] = 3;
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    in[0] = ctn_with_grad(ctn_input(ctx, mean, CTN_F64, CTN_SHAPE(N)));
    in[1] = ctn_with_grad(ctn_full(ctx, ln_var, CTN_F64, CTN_SHAPE(N)));
    ctn_tensor *s = ctn_gaussian(in[0], in[1]);
    assert_int_equal(ctn_grad(ctn_sum(s, CTN_ALL_AXES, 0), 2, in, gx), CTN_OK);
    assert_int_equal(ctn_read(s, y, sizeof y), CTN_OK);
    for (int k = 0; k < 2; k++) assert_int_equal(ctn_read(gx[k], g[k], sizeof g[k]), CTN_OK);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    for (int i = 0; i < N; i++) {
        sum += y[i] - 3;
        squares += (y[i] - 3) * (y[i] - 3);
        assert_true(g[0][i] == 1);
        assert_true(fabs(g[1][i] - (y[i] - 3) / 2) < 1e-12);
    }
    assert_true(fabs(sum / N) < 5 * 2 / sqrt(N));
    assert_true(fabs(squares / N - 4) < 5 * 4 * sqrt(2.0 / N));
    ctn_context_free(ctx);
}

/* The largest component follows the categorical distribution of the logits. */
static void test_gumbel_softmax(void **state)
{
    (void)state;
    static const double p[3] = {0.2, 0.5, 0.3};
    static double x[N][3], y[N][3];
    int hits[3] = {0};
    ctn_context *ctx = context();
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++) x[i][k] = log(p[k]);
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *t = ctn_input(ctx, x, CTN_F64, CTN_SHAPE(N, 3));
    assert_int_equal(ctn_read(ctn_gumbel_softmax(t, 0.5, 1), y, sizeof y), CTN_OK);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    for (int i = 0; i < N; i++) {
        assert_true(fabs(y[i][0] + y[i][1] + y[i][2] - 1) < 1e-12);
        int best = y[i][1] > y[i][0];
        if (y[i][2] > y[i][best]) best = 2;
        hits[best]++;
    }
    for (int k = 0; k < 3; k++)
        assert_true(fabs((double)hits[k] / N - p[k]) < 5 * sqrt(p[k] * (1 - p[k]) / N));
    ctn_context_free(ctx);
}

/* ---- refused calls --------------------------------------------------------------------------- */

static void refused(ctn_tensor *t, ctn_status st, const char *text)
{
    assert_null(t);
    assert_int_equal(ctn_error_status(), st);
    assert_non_null(strstr(ctn_error_message(), text));
    ctn_error_clear();
}

static void test_refused(void **state)
{
    (void)state;
    static const double v[6] = {1, 2, 3, 4, 5, 6};
    ctn_context *ctx = context();
    ctn_tensor *g;
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *x = ctn_input(ctx, v, CTN_F64, CTN_SHAPE(2, 3));
    ctn_tensor *y = ctn_input(ctx, v, CTN_F64, CTN_SHAPE(3));
    const ctn_reduction wrong = (ctn_reduction)7;
    refused(ctn_norm(x, 3, CTN_ALL_AXES, 0), CTN_EARG, "p is 3");
    refused(ctn_polygamma(-1, x), CTN_EARG, "n is -1");
    refused(ctn_maxout(x, 2, 1), CTN_ESHAPE, "x is (2,3)");
    refused(ctn_maxout(x, 0, 1), CTN_EARG, "pool is 0");
    refused(ctn_rrelu(x, 0.3, 0.1), CTN_EARG, "0.3 to 0.1");
    refused(ctn_gumbel_softmax(x, 0, 1), CTN_EARG, "tau is 0");
    refused(ctn_cosine_similarity(x, y, -1, 0), CTN_ESHAPE, "b is (3)");
    refused(ctn_cross_covariance(x, y), CTN_ESHAPE, "y is (3)");
    refused(ctn_mean_squared_error(x, y, CTN_NONE), CTN_ESHAPE, "targets are (3)");
    refused(ctn_huber(x, y, 1, CTN_NONE), CTN_ESHAPE, "huber: x is (2,3)");
    refused(ctn_kl_div(x, x, wrong), CTN_EARG, "reduction 7");
    refused(ctn_gaussian_nll(x, y, x, CTN_SUM), CTN_ESHAPE, "gaussian_nll");
    refused(ctn_hinge(x, y, 1, CTN_SUM), CTN_ESHAPE, "targets are (3)");
    refused(ctn_hinge(x, y, 3, CTN_SUM), CTN_EARG, "p is 3");
    refused(ctn_binary_accuracy(x, x), CTN_EDTYPE, "t is f64");
    refused(ctn_softmax_cross_entropy_with(x, x,
                                           CTN_OPT(ctn_softmax_cross_entropy_opt,
                                                   .reduction = wrong)),
            CTN_EARG, "reduction 7");
    ctn_tensor *s = ctn_with_grad(x), *q = x;
    ctn_tensor *z = ctn_sum(ctn_zeta(ctn_shift(s, 1), q), CTN_ALL_AXES, 0);
    double out[6];
    const ctn_status st = ctn_grad(z, 1, &s, &g);
    assert_true(st == CTN_EGRAD || ctn_read(g, out, sizeof out) == CTN_EGRAD);
    assert_non_null(strstr(ctn_error_message(), "no gradient by x"));
    ctn_error_clear();
    ctn_scope_end(ctx);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_reductions_of_nan),
        cmocka_unit_test(test_inverses_in_f32),
        cmocka_unit_test(test_pow_in_f32),
        cmocka_unit_test(test_gradient_at_zero),
        cmocka_unit_test(test_rrelu),
        cmocka_unit_test(test_gaussian),
        cmocka_unit_test(test_gumbel_softmax),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
