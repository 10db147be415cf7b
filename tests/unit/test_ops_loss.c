/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cases of tests/ops cannot express about random ops and classification metrics:
 * distributions, random streams, training and evaluation mode, refused calls. Values and
 * gradients are checked in tests/ops/cases_loss.c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ops/ops.h"

static ctn_context *context(int threads)
{
    ctn_context *ctx = NULL;
    assert_int_equal(ctn_context_new(&ctx,
                                     CTN_OPT(ctn_context_opt, .threads = threads, .seed = 11)),
                     CTN_OK);
    return ctx;
}

enum { N = 100003 };

typedef enum { NORMAL, UNIFORM, DROPPED } what;

/* One random tensor of N elements, made by the second random call of the scope. */
static void draw(ctn_context *ctx, what w, ctn_dtype t, double a, double b, void *dst)
{
    static double ones[N];
    static float ones32[N];
    for (int i = 0; i < N; i++) ones[i] = (double)(ones32[i] = 1);
    const void *x = t == CTN_F32 ? (const void *)ones32 : ones;
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    assert_non_null(ctn_random_uniform(ctx, 0, 1, t, CTN_SHAPE(1)));
    ctn_tensor *y = w == NORMAL    ? ctn_random_normal(ctx, a, b, t, CTN_SHAPE(N))
                    : w == UNIFORM ? ctn_random_uniform(ctx, a, b, t, CTN_SHAPE(N))
                                   : ctn_dropout(ctn_input(ctx, x, t, CTN_SHAPE(N)), a);
    assert_int_equal(ctn_read(y, dst, N * ctn_dtype_size(t)), CTN_OK);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
}

static double x64[N], z64[N];
static float x32[N], z32[N];

/* Checks the mean, the variance, and the largest distance between the empirical and the expected
 * distribution function. */
static void check_moments(const double *x, double mean, double var)
{
    double s = 0, q = 0;
    for (int i = 0; i < N; i++) s += x[i];
    s /= N;
    for (int i = 0; i < N; i++) q += (x[i] - s) * (x[i] - s);
    assert_true(fabs(s - mean) < 5 * sqrt(var / N));
    assert_true(fabs(q / N - var) < 5 * var * sqrt(2.0 / N));
}

static void check_distribution(const double *x, double (*cdf)(double))
{
    for (double p = -3.5; p <= 3.5; p += 0.25) {
        int below = 0;
        for (int i = 0; i < N; i++) below += x[i] < p;
        double f = cdf(p);
        assert_true(fabs((double)below / N - f) <= 5 * sqrt(f * (1 - f) / N) + 1e-9);
    }
}

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

static double uniform_cdf(double x)
{
    return x <= -2 ? 0 : x >= 3 ? 1 : (x + 2) / 5;
}

static void test_distributions(void **state)
{
    (void)state;
    ctn_context *ctx = context(2);
    for (int f32 = 0; f32 < 2; f32++) {
        for (int w = NORMAL; w <= UNIFORM; w++) {
            double a = w == NORMAL ? 0 : -2, b = w == NORMAL ? 1 : 3;
            draw(ctx, (what)w, f32 ? CTN_F32 : CTN_F64, a, b, f32 ? (void *)x32 : (void *)x64);
            for (int i = 0; i < N && f32; i++) x64[i] = (double)x32[i];
            check_moments(x64, w == NORMAL ? 0 : 0.5, w == NORMAL ? 1 : 25.0 / 12);
            check_distribution(x64, w == NORMAL ? normal_cdf : uniform_cdf);
        }
    }
    ctn_context_free(ctx);
}

/* Neighbours come from one Philox counter and, in pairs of normals, from one radius. They must
 * not be correlated. */
static void test_neighbours(void **state)
{
    (void)state;
    ctn_context *ctx = context(1);
    draw(ctx, NORMAL, CTN_F32, 0, 1, x32);
    for (int lag = 1; lag <= 4; lag++) {
        double c = 0, squares = 0;
        for (int i = 0; i + lag < N; i++) {
            double p = (double)x32[i], q = (double)x32[i + lag];
            c += p * q;
            squares += (p * p - 1) * (q * q - 1);
        }
        assert_true(fabs(c) / N < 5 / sqrt(N));
        assert_true(fabs(squares) / N < 5 * 2 / sqrt(N));
    }
    ctn_context_free(ctx);
}

/* f32 normals against libm, computed from the words of the stream. */
static void test_normal_formula(void **state)
{
    (void)state;
    ctn_context *ctx = context(1);
    ctn_context_state s;
    ctn_context_get_state(ctx, &s);
    draw(ctx, NORMAL, CTN_F32, 2, 3, x32);
    for (int i = 0; i < 4000; i += 2) {
        ctn__rand4 r = ctn__philox(s.seed, ctn__mix(s.step, 1), (uint64_t)i / 4);
        double u = ((double)r.v[i % 4] + 0.5) * 0x1p-32, v = (double)r.v[i % 4 + 1] * 0x1p-32;
        double radius = 3 * sqrt(-2 * log(u)), angle = 2 * 3.14159265358979323846 * v;
        assert_true(fabs((double)x32[i] - (2 + radius * cos(angle))) < 5e-6);
        assert_true(fabs((double)x32[i + 1] - (2 + radius * sin(angle))) < 5e-6);
    }
    ctn_context_free(ctx);
}

/* 1 + u with a u of 24 bits sometimes rounds to 2. */
static void test_uniform_stays_below(void **state)
{
    (void)state;
    ctn_context *ctx = context(2);
    for (int k = 0; k < 20; k++) {
        draw(ctx, UNIFORM, CTN_F32, 1, 1.0000005, x32);
        for (int i = 0; i < N; i++) assert_true(x32[i] >= 1.0f && x32[i] < 1.0000005f);
    }
    draw(ctx, UNIFORM, CTN_F32, 7, 7, x32);
    for (int i = 0; i < N; i++) assert_true(x32[i] == 7.0f);
    ctn_context_free(ctx);
}

static void test_streams(void **state)
{
    (void)state;
    ctn_context *one = context(1), *three = context(3);
    ctn_context_state first;
    ctn_context_get_state(one, &first);
    for (int w = NORMAL; w <= DROPPED; w++) {
        double a = w == DROPPED ? 0.5 : 0, b = 1;
        assert_int_equal(ctn_context_set_state(one, &first), CTN_OK);
        assert_int_equal(ctn_context_set_state(three, &first), CTN_OK);
        draw(one, (what)w, CTN_F32, a, b, x32);
        draw(three, (what)w, CTN_F32, a, b, z32);
        assert_memory_equal(x32, z32, sizeof x32);
        draw(one, (what)w, CTN_F32, a, b, z32); /* the next step */
        int same = 0;
        for (int i = 0; i < N; i++) same += x32[i] == z32[i];
        assert_true(same < (w == DROPPED ? N * 0.51 : N * 0.01));
        assert_int_equal(ctn_context_set_state(one, &first), CTN_OK);
        draw(one, (what)w, CTN_F32, a, b, z32);
        assert_memory_equal(x32, z32, sizeof x32);
        draw(three, (what)w, CTN_F64, a, b, x64);
        assert_int_equal(ctn_context_set_state(one,
                                               &(ctn_context_state){first.seed, first.step + 1}),
                         CTN_OK);
        draw(one, (what)w, CTN_F64, a, b, z64);
        assert_memory_equal(x64, z64, sizeof x64);
    }
    ctn_context_free(one);
    ctn_context_free(three);
}

static void test_dropout(void **state)
{
    (void)state;
    ctn_context *ctx = context(2);
    ctn_plan_stats s;
    uint64_t misses = 0;
    for (int k = 0; k < 3; k++) { /* the rate is passed to the plan at run time */
        double rate = 0.1 + 0.3 * k, kept = 0;
        draw(ctx, DROPPED, CTN_F32, rate, 0, x32);
        for (int i = 0; i < N; i++) {
            assert_true(x32[i] == 0 || x32[i] == (float)(1 / (1 - rate)));
            kept += x32[i] != 0;
        }
        assert_true(fabs(kept / N - (1 - rate)) < 5 * sqrt(rate * (1 - rate) / N));
        ctn_context_get_stats(ctx, &s);
        if (k == 0) misses = s.misses;
        assert_int_equal(s.misses, misses);
    }
    ctn_context_set_training(ctx, 0);
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *x = ctn_input(ctx, x32, CTN_F32, CTN_SHAPE(N));
    assert_ptr_equal(ctn_dropout(x, 0.5), x);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    ctn_context_free(ctx);
}

/* The gradient passes where the forward pass did, even after the value was read. */
static void test_dropout_gradient(void **state)
{
    (void)state;
    ctn_context *ctx = context(2);
    for (int i = 0; i < N; i++) x32[i] = 1;
    for (int read_first = 0; read_first < 2; read_first++) {
        assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
        ctn_tensor *x = ctn_with_grad(ctn_input(ctx, x32, CTN_F32, CTN_SHAPE(N))), *gx;
        ctn_tensor *y = ctn_dropout(x, 0.25);
        static float g[N];
        if (read_first) assert_int_equal(ctn_read(y, z32, sizeof z32), CTN_OK);
        assert_int_equal(ctn_grad(y, 1, &x, &gx), CTN_OK);
        assert_int_equal(ctn_read(gx, g, sizeof g), CTN_OK);
        if (!read_first) assert_int_equal(ctn_read(y, z32, sizeof z32), CTN_OK);
        assert_memory_equal(g, z32, sizeof g);
        assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    }
    ctn_context_free(ctx);
}

static void refused(ctn_tensor *t, ctn_status st, const char *word)
{
    assert_null(t);
    assert_int_equal(ctn_error_status(), st);
    if (!strstr(ctn_error_message(), word)) fail_msg("no %s in: %s", word, ctn_error_message());
    ctn_error_clear();
}

static void test_refusals(void **state)
{
    (void)state;
    ctn_context *ctx = context(1);
    float v[12] = {0};
    int64_t t[4] = {0, 1, 2, 0};
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *x = ctn_input(ctx, v, CTN_F32, CTN_SHAPE(4, 3));
    ctn_tensor *w = ctn_input(ctx, v, CTN_F32, CTN_SHAPE(4));
    ctn_tensor *c = ctn_input(ctx, t, CTN_I64, CTN_SHAPE(4));
    refused(ctn_softmax(x, 2), CTN_ESHAPE, "axis 2 does not exist in (4,3)");
    refused(ctn_softmax(c, 0), CTN_EDTYPE, "i64");
    refused(ctn_log_softmax(x, -3), CTN_ESHAPE, "axis -3");
    refused(ctn_mean_squared_error(x, w, CTN_MEAN), CTN_ESHAPE, "targets are (4)");
    refused(ctn_huber(x, c, 1, CTN_MEAN), CTN_EDTYPE, "i64");
    refused(ctn_huber(x, x, 0, CTN_MEAN), CTN_EARG, "delta");
    refused(ctn_sigmoid_cross_entropy(x, x, (ctn_reduction)7), CTN_EARG, "reduction 7");
    refused(ctn_accuracy(x, c, 4), CTN_EARG, "k is 4");
    refused(ctn_accuracy(x, w, 1), CTN_EDTYPE, "f32");
    refused(ctn_accuracy(w, c, 1), CTN_ESHAPE, "one class per row");
    refused(ctn_confusion_matrix(x, c, 4), CTN_ESHAPE, "for 4 classes");
    refused(ctn_layer_norm(x, 1, w, NULL, 1e-5), CTN_ESHAPE, "weight is (4)");
    refused(ctn_layer_norm(x, 3, NULL, NULL, 1e-5), CTN_ESHAPE, "last 3 dimensions");
    refused(ctn_rms_norm(x, 0, NULL, 1e-5), CTN_ESHAPE, "last 0 dimensions");
    refused(ctn_dropout(x, 1), CTN_EARG, "rate is 1");
    refused(ctn_random_uniform(ctx, 1, 0, CTN_F32, CTN_SHAPE(2)), CTN_EARG, "range is 1 to 0");
    refused(ctn_random_normal(ctx, 0, -1, CTN_F32, CTN_SHAPE(2)), CTN_EARG, "deviation is -1");
    refused(ctn_random_normal(ctx, 0, 1, CTN_I64, CTN_SHAPE(2)), CTN_EDTYPE, "i64");
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    ctn_context_free(ctx);
}

/* Pixels 0 and 2 of instance 1, 3 of instance 2, and one that belongs to none: means 1 and 3. The
 * default margins are 0.5 and 1.5. */
static void test_clustering(void **state)
{
    (void)state;
    ctn_context *ctx = context(1);
    const float v[4] = {0, 2, 3, 9};
    const int32_t t[4] = {1, 1, 2, 0};
    ctn_tensor *out[3] = {NULL};
    const double want[3] = {(0.5 * 0.5 + 0) / 2, (3 - 2) * (3 - 2), (1 + 3) / 2};
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *x = ctn_input(ctx, v, CTN_F32, CTN_SHAPE(1, 1, 2, 2));
    ctn_tensor *c = ctn_input(ctx, t, CTN_I32, CTN_SHAPE(1, 2, 2));
    ctn_tensor *flat = ctn_input(ctx, t, CTN_I32, CTN_SHAPE(1, 4));
    for (int i = 0; i < 3; i++) { /* each result alone */
        ctn_tensor **one[3] = {NULL};
        one[i] = &out[i];
        assert_int_equal(ctn_discriminative_margin_based_clustering_loss(x, c, 2, NULL, one[0],
                                                                         one[1], one[2]),
                         CTN_OK);
        assert_float_equal(ctn_item(out[i]), want[i], 1e-6);
    }
    const ctn_clustering_opt bad = {sizeof bad, .norm = 3};
    for (int i = 0; i < 4; i++) { /* the results of a refused call are NULL */
        for (int k = 0; k < 3; k++) out[k] = x;
        const ctn_status st =
            ctn_discriminative_margin_based_clustering_loss(i == 0 ? NULL : x, i == 1 ? flat : c,
                                                            i == 2 ? 0 : 2, i == 3 ? &bad : NULL,
                                                            &out[0], &out[1], &out[2]);
        assert_int_equal(st, i == 1 ? CTN_ESHAPE : CTN_EARG);
        for (int k = 0; k < 3; k++) assert_null(out[k]);
        ctn_error_clear();
    }
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    ctn_context_free(ctx);
}

static void test_classes_out_of_range(void **state)
{
    (void)state;
    ctn_context *ctx = context(1);
    float v[6] = {0}, y;
    int64_t t[2] = {0, 3}, m[9];
    for (int k = 0; k < 2; k++) {
        assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
        ctn_tensor *x = ctn_input(ctx, v, CTN_F32, CTN_SHAPE(2, 3));
        ctn_tensor *c = ctn_input(ctx, t, CTN_I64, CTN_SHAPE(2));
        ctn_status st = k == 0 ? ctn_read(ctn_accuracy(x, c, 1), &y, sizeof y)
                               : ctn_read(ctn_confusion_matrix(x, c, 3), m, sizeof m);
        assert_int_equal(st, CTN_EARG);
        assert_non_null(strstr(ctn_error_message(), "0 to 2"));
        (void)ctn_scope_end(ctx);
        ctn_error_clear();
    }
    ctn_context_free(ctx);
}

/* NaN logits: a sample whose own class is NaN is a miss, and the NaN of another class ranks
 * first. */
static void test_accuracy_of_nan(void **state)
{
    (void)state;
    ctn_context *ctx = context(1);
    float v[9] = {NAN, 1, 0, NAN, 1, 0, 0, 1, 0}, y;
    int64_t t[3] = {0, 1, 1}, m[9];
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *x = ctn_input(ctx, v, CTN_F32, CTN_SHAPE(3, 3));
    ctn_tensor *c = ctn_input(ctx, t, CTN_I64, CTN_SHAPE(3));
    assert_int_equal(ctn_read(ctn_accuracy(x, c, 1), &y, sizeof y), CTN_OK);
    assert_true(y == 1.0f / 3);
    assert_int_equal(ctn_read(ctn_confusion_matrix(x, c, 3), m, sizeof m), CTN_OK);
    assert_int_equal(m[0], 1);
    assert_int_equal(m[3], 1);
    assert_int_equal(m[4], 1);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    ctn_context_free(ctx);
}

/* So many classes that a chain of f32 additions would be off by 1e-3. Only the gradient may be
 * as large as the logits. */
static void test_many_classes(void **state)
{
    (void)state;
    enum { ROWS = 3, CLASSES = 250000 };
    ctn_context *ctx = context(2);
    const int64_t t[ROWS] = {7, 0, CLASSES - 1};
    float *x = malloc(sizeof(float[ROWS][CLASSES]));
    double wanted = 0;
    assert_non_null(x);
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int c = 0; c < CLASSES; c++) {
            const float v = x[r * CLASSES + c] = (float)(c * 7919 % 1000) / 500 - 1;
            sum += exp((double)v);
        }
        wanted += (log(sum) - (double)x[r * CLASSES + t[r]]) / ROWS;
    }
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *in = ctn_with_grad(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(ROWS, CLASSES)));
    ctn_tensor *loss = ctn_softmax_cross_entropy(in, ctn_input(ctx, t, CTN_I64, CTN_SHAPE(ROWS)));
    ctn_tensor *g = NULL;
    assert_int_equal(ctn_grad(loss, 1, &in, &g), CTN_OK);
    assert_true(fabs(ctn_item(loss) - wanted) < 2e-6);
    assert_true(fabs(ctn_item(ctn_sum(g, CTN_ALL_AXES, 0))) < 1e-6);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    ctn_plan_stats stats;
    ctn_context_get_stats(ctx, &stats);
    assert_true(stats.arena_bytes < (int64_t)sizeof(float[ROWS][CLASSES]) / 2);
    free(x);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions),    cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_normal_formula),   cmocka_unit_test(test_uniform_stays_below),
        cmocka_unit_test(test_streams),          cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_dropout_gradient), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_clustering),       cmocka_unit_test(test_classes_out_of_range),
        cmocka_unit_test(test_accuracy_of_nan),  cmocka_unit_test(test_many_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
