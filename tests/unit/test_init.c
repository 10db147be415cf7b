/* SPDX-License-Identifier: Apache-2.0
 *
 * Initial values: moments and bounds of every kind, orthogonality, that they depend only on the
 * seed and the order of creation, refused options and their messages.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "nn/nn.h"

static ctn_context *new_context(uint64_t seed)
{
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = seed, .threads = 1)));
    return ctx;
}

enum { O = 300, I = 200, K = 3 };

/* The expected mean, deviation and bound of each kind for a weight (O,I,K). */
static const struct {
    ctn_init init;
    double mean, std, bound; /* |x - mean| <= bound; 0: none */
} moments[] = {
    {{.kind = CTN_INIT_NORMAL}, 0, 1, 0},
    {{.kind = CTN_INIT_NORMAL, .mean = 3, .std = 0.5}, 3, 0.5, 0},
    {{.kind = CTN_INIT_UNIFORM}, 0.5, 0.28867513, 0.5},
    {{.kind = CTN_INIT_UNIFORM, .low = -2, .high = 4}, 1, 1.7320508, 3},
    {{.kind = CTN_INIT_LECUN_NORMAL}, 0, 0.040824829, 0},            /* sqrt(1/600) */
    {{.kind = CTN_INIT_LECUN_UNIFORM}, 0, 0.040824829, 0.070710678}, /* sqrt(3/600) */
    {{.kind = CTN_INIT_GLOROT_NORMAL}, 0, 0.036514837, 0},           /* sqrt(2/1500) */
    {{.kind = CTN_INIT_GLOROT_UNIFORM}, 0, 0.036514837, 0.063245553},
    {{.kind = CTN_INIT_HE_NORMAL}, 0, 0.057735027, 0}, /* sqrt(2/600) */
    {{.kind = CTN_INIT_HE_UNIFORM}, 0, 0.057735027, 0.1},
    {{.kind = CTN_INIT_HE_NORMAL, .gain = 2}, 0, 0.11547005, 0},
    {{.kind = CTN_INIT_LECUN_NORMAL, .fan_in = 100}, 0, 0.1, 0},
};

static void test_moments(void **state)
{
    (void)state;
    ctn_context *ctx = new_context(7);
    enum { N = O * I * K };
    float *x = malloc(N * sizeof *x);
    for (size_t c = 0; c < sizeof moments / sizeof *moments; c++) {
        ctn_var *v = NULL;
        ctn_init init = moments[c].init;
        init.struct_size = sizeof init;
        OK(ctn_var_new(&v, ctx, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(O, I, K)));
        OK(ctn_var_init(v, &init));
        OK(ctn_var_get(v, x, N * sizeof *x));
        double sum = 0, sq = 0, far = 0;
        for (int i = 0; i < N; i++) {
            double d = x[i] - moments[c].mean;
            sum += d;
            sq += d * d;
            far = fabs(d) > far ? fabs(d) : far;
        }
        double std = sqrt(sq / N);
        if (fabs(sum / N) > 5 * moments[c].std / sqrt(N)) fail_msg("case %zu: mean %g", c, sum / N);
        if (fabs(std / moments[c].std - 1) > 0.01) fail_msg("case %zu: deviation %g", c, std);
        if (moments[c].bound > 0)
            assert_true(far <= moments[c].bound * 1.000001 && far > moments[c].bound * 0.999);
        ctn_var_free(v);
    }
    free(x);
    ctn_context_free(ctx);
}

static void check_orthogonal(int64_t rows, int64_t cols, double gain)
{
    ctn_context *ctx = new_context(3);
    ctn_var *v = NULL;
    size_t bytes = (size_t)(rows * cols) * sizeof(double);
    double *x = malloc(bytes);
    OK(ctn_var_new(&v, ctx, "w", CTN_PARAM, CTN_F64, CTN_SHAPE(rows, cols)));
    OK(ctn_var_init(v, CTN_OPT(ctn_init, .kind = CTN_INIT_ORTHOGONAL, .gain = gain)));
    OK(ctn_var_get(v, x, bytes));
    bool by_row = rows <= cols;
    int64_t k = by_row ? rows : cols, n = by_row ? cols : rows;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++) {
            double s = 0;
            for (int64_t e = 0; e < n; e++)
                s += by_row ? x[i * cols + e] * x[j * cols + e] : x[e * cols + i] * x[e * cols + j];
            double want = i == j ? gain * gain : 0;
            if (fabs(s - want) > 1e-13 * gain * gain) fail_msg("(%d,%d): %g", (int)i, (int)j, s);
        }
    ctn_var_free(v);
    ctn_context_free(ctx);
    free(x);
}

static void test_orthogonal(void **state)
{
    (void)state;
    check_orthogonal(1, 1, 1);
    check_orthogonal(5, 5, 1);
    check_orthogonal(64, 37, 1);
    check_orthogonal(37, 64, 2.5);
    check_orthogonal(120, 120, 1);
}

static void test_plain_kinds(void **state)
{
    (void)state;
    ctn_context *ctx = new_context(1);
    ctn_var *v = NULL, *n = NULL;
    float x[6];
    int64_t k[2];
    OK(ctn_var_new(&v, ctx, "v", CTN_PARAM, CTN_F32, CTN_SHAPE(2, 3)));
    OK(ctn_var_init(v, CTN_OPT(ctn_init, .value = 1.5)));
    OK(ctn_var_get(v, x, sizeof x));
    for (int i = 0; i < 6; i++) assert_true(x[i] == 1.5f);
    OK(ctn_var_init(v, CTN_OPT(ctn_init, .kind = CTN_INIT_IDENTITY)));
    OK(ctn_var_get(v, x, sizeof x));
    for (int i = 0; i < 6; i++) assert_true(x[i] == (i == 0 || i == 4));
    OK(ctn_var_init(v, NULL));
    OK(ctn_var_get(v, x, sizeof x));
    for (int i = 0; i < 6; i++) assert_true(x[i] == 0);
    OK(ctn_var_new(&n, ctx, "n", CTN_STATE, CTN_I64, CTN_SHAPE(2)));
    OK(ctn_var_init(n, CTN_OPT(ctn_init, .value = 7)));
    OK(ctn_var_get(n, k, sizeof k));
    assert_int_equal(k[1], 7);
    ctn_var_free(n);
    ctn_var_free(v);
    ctn_context_free(ctx);
}

/* The weights of Chainer's UpsamplingDeconvFilter and DownsamplingConvFilter. */
static void test_sampling(void **state)
{
    (void)state;
    static const float four[4] = {0.25F, 0.75F, 0.75F, 0.25F}, three[3] = {0.5F, 1, 0.5F};
    ctn_context *ctx = new_context(1);
    ctn_var *full = NULL, *groups = NULL;
    float x[2 * 2 * 4 * 3], y[3 * 4];
    OK(ctn_var_new(&full, ctx, "full", CTN_PARAM, CTN_F32, CTN_SHAPE(2, 2, 4, 3)));
    OK(ctn_var_init(full, CTN_OPT(ctn_init, .kind = CTN_INIT_UPSAMPLE)));
    OK(ctn_var_get(full, x, sizeof x));
    for (int i = 0; i < 48; i++)
        assert_true(x[i] == (i / 12 % 3 ? 0 : four[i / 3 % 4] * three[i % 3]));
    OK(ctn_var_new(&groups, ctx, "groups", CTN_PARAM, CTN_F32, CTN_SHAPE(3, 1, 4)));
    OK(ctn_var_init(groups, CTN_OPT(ctn_init, .kind = CTN_INIT_DOWNSAMPLE, .gain = 4)));
    OK(ctn_var_get(groups, y, sizeof y));
    for (int i = 0; i < 12; i++) assert_true(y[i] == 4 * four[i % 4] / 2);
    ctn_var_free(groups);
    OK(ctn_var_new(&groups, ctx, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(3, 2, 4)));
    assert_fails(ctn_var_init(groups, CTN_OPT(ctn_init, .kind = CTN_INIT_UPSAMPLE)), CTN_EARG,
                 "w is (3,2,4), but upsample needs (C,C,k...) or (C,1,k...)");
    ctn_var_free(groups);
    ctn_var_free(full);
    ctn_context_free(ctx);
}

/* Draws two normal weights of 4 elements in one context. */
static void draw_two(uint64_t seed, float a[4], float b[4])
{
    ctn_context *ctx = new_context(seed);
    ctn_module *m = NULL;
    ctn_var *v[2];
    const ctn_init *normal = CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL);
    OK(ctn_module_new(&m, ctx, NULL, NULL, NULL));
    OK(ctn_module_param(&v[0], m, "a", CTN_F32, CTN_SHAPE(4), normal));
    OK(ctn_module_param(&v[1], m, "b", CTN_F32, CTN_SHAPE(4), normal));
    OK(ctn_var_get(v[0], a, 16));
    OK(ctn_var_get(v[1], b, 16));
    ctn_module_free(m);
    ctn_context_free(ctx);
}

static void test_same_seed_same_values(void **state)
{
    (void)state;
    float a[3][4], b[3][4];
    draw_two(5, a[0], b[0]);
    draw_two(5, a[1], b[1]);
    draw_two(6, a[2], b[2]);
    assert_memory_equal(a[0], a[1], sizeof a[0]);
    assert_memory_equal(b[0], b[1], sizeof b[0]);
    assert_memory_not_equal(a[0], b[0], sizeof a[0]);
    assert_memory_not_equal(a[0], a[2], sizeof a[0]);
}

static void test_refusals(void **state)
{
    (void)state;
    ctn_context *ctx = new_context(1);
    ctn_var *v = NULL, *n = NULL;
    float x[3] = {1, 2, 3}, y[3];
    OK(ctn_var_new(&v, ctx, "bias", CTN_PARAM, CTN_F32, CTN_SHAPE(3)));
    OK(ctn_var_new(&n, ctx, "count", CTN_STATE, CTN_I64, CTN_SHAPE(3, 3)));
    OK(ctn_var_set(v, x, sizeof x));
    assert_fails(ctn_var_init(v, CTN_OPT(ctn_init, .kind = CTN_INIT_HE_NORMAL)), CTN_EARG,
                 "bias is (3)");
    assert_fails(ctn_var_init(v, CTN_OPT(ctn_init, .kind = CTN_INIT_HE_NORMAL, .fan_in = 3)),
                 CTN_EARG, "set fan_in and fan_out");
    assert_fails(ctn_var_init(v, CTN_OPT(ctn_init, .kind = CTN_INIT_ORTHOGONAL)), CTN_EARG,
                 "at least 2");
    assert_fails(ctn_var_init(v, CTN_OPT(ctn_init, .kind = CTN_INIT_IDENTITY)), CTN_EARG,
                 "identity needs 2");
    assert_fails(ctn_var_init(n, CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL)), CTN_EDTYPE,
                 "count is i64");
    assert_fails(ctn_var_init(v, CTN_OPT(ctn_init, .kind = (ctn_init_kind)99)), CTN_EARG,
                 "unknown kind 99");
    assert_fails(ctn_var_init(v, &(ctn_init){0}), CTN_EARG, "struct_size");
    assert_fails(ctn_var_init(NULL, NULL), CTN_EARG, "no variable");
    OK(ctn_var_get(v, y, sizeof y));
    assert_memory_equal(x, y, sizeof x);
    ctn_var_free(v);
    ctn_var_free(n);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_orthogonal),
        cmocka_unit_test(test_plain_kinds),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_same_seed_same_values),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
