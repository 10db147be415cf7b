/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of single modules: convolutions and poolings give the bits of their ops with the same
 * options, and normalisations, embedding and dropout the values of their formulas, with the
 * defaults of PyTorch.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "support/ok.h"

#include "nn/nn.h"

static ctn_context *ctx;

static int set_up(void **state)
{
    (void)state;
    return ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 1));
}

static int tear_down(void **state)
{
    (void)state;
    assert_string_equal(ctn_error_message(), "");
    ctn_context_free(ctx);
    return 0;
}

enum { ROOM = 2 * 4 * 9 * 8 };
static float x[ROOM];

/* The result of the module and that of the op, which is recorded in the same scope. */
static void assert_same(ctn_tensor *module, ctn_tensor *op)
{
    if (!module || !op) fail_msg("%s", ctn_error_message());
    assert_int_equal(ctn_ndim(module), ctn_ndim(op));
    for (int i = 0; i < ctn_ndim(op); i++) assert_int_equal(ctn_dim(module, i), ctn_dim(op, i));
    const float *a = ctn_data(module), *b = ctn_data(op);
    if (!a || !b) fail_msg("%s", ctn_error_message());
    assert_memory_equal(a, b, (size_t)ctn_count(op) * sizeof *a);
}

/* ---- convolution and pooling ----------------------------------------------------------------- */

static void check_conv(bool transposed, const ctn_conv_opt *o)
{
    ctn_module *m = NULL;
    ctn_conv_module_opt how = {sizeof how, .groups = o->groups, .pad_mode = o->pad_mode};
    memcpy(how.stride, o->stride, sizeof how.stride);
    memcpy(how.pad, o->pad, sizeof how.pad);
    memcpy(how.pad_end, o->pad_end, sizeof how.pad_end);
    memcpy(how.dilation, o->dilation, sizeof how.dilation);
    memcpy(how.out_pad, o->out_pad, sizeof how.out_pad);
    OK((transposed ? ctn_conv_transpose_new : ctn_conv_new)(&m, ctx, 4, 6, CTN_SHAPE(3, 2), &how));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 4, 9, 8));
    ctn_tensor *w = ctn_use(ctn_module_find(m, "weight")), *b = ctn_use(ctn_module_find(m, "bias"));
    assert_same(ctn_call(m, in),
                transposed ? ctn_conv_transpose(in, w, b, o) : ctn_conv(in, w, b, o));
    OK(ctn_scope_end(ctx));
    ctn_module_free(m);
}

static void test_conv(void **state)
{
    (void)state;
    static const ctn_conv_opt how[] = {
        {sizeof *how, .groups = 1},
        {sizeof *how, .stride = {2, 3}},
        {sizeof *how, .pad = {2, 1}},
        {sizeof *how, .pad = {2, 1}, .pad_end = {1, 3}},
        {sizeof *how, .dilation = {2, 3}},
        {sizeof *how, .groups = 2},
        {sizeof *how, .pad = {2, 1}, .pad_mode = CTN_PAD_REFLECT},
        {sizeof *how, .pad = {2, 1}, .pad_mode = CTN_PAD_WRAP},
    };
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        check_conv(false, &how[i]);
        if (!how[i].pad_mode) check_conv(true, &how[i]);
    }
    check_conv(true, CTN_OPT(ctn_conv_opt, .stride = {3, 2}, .out_pad = {2, 1}));
}

static void test_pool(void **state)
{
    (void)state;
    static const ctn_pool_opt how[] = {
        {sizeof *how, .kernel = {3, 2}},
        {sizeof *how, .kernel = {3, 2}, .stride = {2, 1}, .pad = {1, CTN_PAD_NONE}},
        {sizeof *how, .kernel = {2, 3}, .stride = {2, 2}, .pad = {1, 1}, .ceil = 1},
        {sizeof *how, .kernel = {2, 3}, .pad = {1, 1}, .exclude_pad = 1},
    };
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        ctn_module *max = NULL, *avg = NULL;
        OK(ctn_max_pool_new(&max, ctx, &how[i]));
        OK(ctn_avg_pool_new(&avg, ctx, &how[i]));
        OK(ctn_scope_begin(ctx));
        ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 4, 9, 8));
        assert_same(ctn_call(max, in), ctn_max_pool(in, &how[i]));
        assert_same(ctn_call(avg, in), ctn_avg_pool(in, &how[i]));
        OK(ctn_scope_end(ctx));
        ctn_module_free(max);
        ctn_module_free(avg);
    }
}

/* ---- normalisation --------------------------------------------------------------------------- */

enum { N = 2, C = 4, L = 3 };
static const float scale[C] = {0.5f, 2, -1, 3}, shift[C] = {1, -0.25f, 0, 4};

/* Small numbers, so that eps matters. */
static float small[N][C][L];

static void set(ctn_module *m, const char *name, const float *values, int n)
{
    ctn_var *v = ctn_module_find(m, name);
    if (!v) fail_msg("%s", ctn_error_message());
    OK(ctn_var_set(v, values, (size_t)n * sizeof *values));
}

static void call(ctn_module *m, int ndim, const int64_t *dims, float y[N][C][L])
{
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_call(m, ctn_input(ctx, small, CTN_F32, ndim, dims));
    if (!t) fail_msg("%s", ctn_error_message());
    OK(ctn_read(t, y, sizeof small));
    OK(ctn_scope_end(ctx));
}

static void assert_close(const char *what, double found, double want)
{
    if (!(fabs(found - want) <= 2e-6 * fmax(1, fabs(want))))
        fail_msg("%s: found %.9g, expected %.9g", what, found, want);
}

/* The elements of a group are those whose number, divided by `each`, is the same, or, by_channel,
 * those of one channel. */
static int group_of(int i, int each, bool by_channel)
{
    return by_channel ? i / L % C : i / each;
}

static void moments(int group, int each, bool by_channel, double *mean, double *var, int *n)
{
    const float *v = &small[0][0][0];
    *mean = *var = 0;
    *n = 0;
    for (int i = 0; i < N * C * L; i++) *n += group_of(i, each, by_channel) == group;
    for (int i = 0; i < N * C * L; i++)
        if (group_of(i, each, by_channel) == group) *mean += (double)v[i] / *n;
    for (int i = 0; i < N * C * L; i++)
        if (group_of(i, each, by_channel) == group) *var += pow((double)v[i] - *mean, 2) / *n;
}

/* y = (small - mean) / sqrt(var + eps) weight + bias; weight and bias of the channels or, apart, of
 * every element of a group. */
static void check_norm(const char *what, float y[N][C][L], int each, bool by_channel, bool apart,
                       double eps)
{
    for (int i = 0; i < N * C * L; i++) {
        double mean, var;
        int n;
        moments(group_of(i, each, by_channel), each, by_channel, &mean, &var, &n);
        const int k = apart ? i % each % C : i / L % C;
        const double v = ((double)(&small[0][0][0])[i] - mean) / sqrt(var + eps);
        assert_close(what, (double)(&y[0][0][0])[i], v * (double)scale[k] + (double)shift[k]);
    }
}

static void test_norms(void **state)
{
    (void)state;
    float y[N][C][L], w[C * L], b[C * L];
    ctn_module *m = NULL;
    for (int i = 0; i < C * L; i++) {
        w[i] = scale[i % C];
        b[i] = shift[i % C];
    }
    for (int k = 0; k < 2; k++) { /* the usual eps, and one that is given */
        const double eps = k ? 1e-3 : 1e-5;
        const ctn_norm_opt o = {sizeof o, .eps = k ? eps : 0};
        OK(ctn_group_norm_new(&m, ctx, 2, C, &o));
        set(m, "weight", scale, C);
        set(m, "bias", shift, C);
        call(m, CTN_SHAPE(N, C, L), y);
        check_norm("group_norm", y, C / 2 * L, false, false, eps);
        ctn_module_free(m);
        OK(ctn_layer_norm_new(&m, ctx, CTN_SHAPE(C, L), &o));
        set(m, "weight", w, C * L);
        set(m, "bias", b, C * L);
        call(m, CTN_SHAPE(N, C, L), y);
        check_norm("layer_norm", y, C * L, false, true, eps);
        ctn_module_free(m);
        OK(ctn_rms_norm_new(&m, ctx, CTN_SHAPE(C), &o));
        set(m, "weight", scale, C);
        call(m, CTN_SHAPE(N, L, C), y);
        for (int i = 0; i < N * C * L; i++) {
            const float *row = &small[0][0][0] + i / C * C;
            double square = 0;
            for (int j = 0; j < C; j++) square += (double)(row[j] * row[j]) / C;
            assert_close("rms_norm", (double)(&y[0][0][0])[i],
                         (double)(row[i % C] * scale[i % C]) / sqrt(square + eps));
        }
        ctn_module_free(m);
    }
    OK(ctn_layer_norm_new(&m, ctx, CTN_SHAPE(C), CTN_OPT(ctn_norm_opt, .no_affine = 1)));
    assert_int_equal(ctn_params(m).n, 0);
    ctn_module_free(m);
}

/* Training, which moves the running statistics, and evaluation, which uses them. */
static void test_batch_norm(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) { /* the defaults, and others */
        const double eps = k ? 1e-3 : 1e-5, momentum = k ? 0.25 : 0.1;
        const ctn_batch_norm_module_opt o = {sizeof o, .eps = k ? eps : 0,
                                             .momentum = k ? momentum : 0};
        float y[N][C][L], mean[C], var[C];
        ctn_module *m = NULL;
        OK(ctn_batch_norm_new(&m, ctx, C, &o));
        set(m, "weight", scale, C);
        set(m, "bias", shift, C);
        call(m, CTN_SHAPE(N, C, L), y);
        check_norm("batch_norm", y, 0, true, false, eps);
        OK(ctn_var_get(ctn_module_find(m, "running_mean"), mean, sizeof mean));
        OK(ctn_var_get(ctn_module_find(m, "running_var"), var, sizeof var));
        for (int c = 0; c < C; c++) {
            double mc, vc;
            int n;
            moments(c, 0, true, &mc, &vc, &n);
            assert_close("running_mean", (double)mean[c], momentum * mc);
            assert_close("running_var", (double)var[c], 1 - momentum + momentum * vc * n / (n - 1));
        }
        const float low[C] = {1e-5f, 2e-5f, 1e-3f, 1};
        set(m, "running_var", low, C);
        ctn_context_set_training(ctx, 0);
        call(m, CTN_SHAPE(N, C, L), y);
        ctn_context_set_training(ctx, 1);
        for (int i = 0; i < N * C * L; i++) {
            const int c = i / L % C;
            const double v =
                ((double)(&small[0][0][0])[i] - (double)mean[c]) / sqrt((double)low[c] + eps);
            assert_close("evaluation", (double)(&y[0][0][0])[i],
                         v * (double)scale[c] + (double)shift[c]);
        }
        ctn_module_free(m);
    }
}

/* ---- others ---------------------------------------------------------------------------------- */

static void test_embedding(void **state)
{
    (void)state;
    enum { ROWS = 300, WIDTH = 3 };
    static const int64_t ids[4] = {299, 0, 7, 7};
    float w[ROWS][WIDTH], y[4][WIDTH];
    double sum = 0, square = 0;
    ctn_module *m = NULL;
    OK(ctn_embedding_new(&m, ctx, ROWS, WIDTH, NULL));
    OK(ctn_var_get(ctn_module_find(m, "weight"), w, sizeof w));
    for (int i = 0; i < ROWS * WIDTH; i++) {
        sum += (double)(&w[0][0])[i];
        square += pow((double)(&w[0][0])[i], 2);
    }
    assert_true(fabs(sum / (ROWS * WIDTH)) < 0.17); /* normal: mean 0, deviation 1 */
    assert_true(fabs(sqrt(square / (ROWS * WIDTH)) - 1) < 0.12);
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_call(m, ctn_input(ctx, ids, CTN_I64, CTN_SHAPE(2, 2))), y, sizeof y));
    OK(ctn_scope_end(ctx));
    for (int i = 0; i < 4; i++) assert_memory_equal(y[i], w[ids[i]], sizeof y[i]);
    ctn_module_free(m);
}

/* What is left is divided by 1 - rate. Rate 0 and evaluation change nothing. */
static void test_dropout(void **state)
{
    (void)state;
    enum { MANY = 10000 };
    static float ones[MANY], y[MANY];
    for (int i = 0; i < MANY; i++) ones[i] = 1;
    for (int k = 0; k < 3; k++) {
        const double rate = k == 1 ? 0 : 0.2;
        int left = 0;
        ctn_module *m = NULL;
        OK(ctn_dropout_new(&m, ctx, rate));
        ctn_context_set_training(ctx, k < 2);
        OK(ctn_scope_begin(ctx));
        OK(ctn_read(ctn_call(m, ctn_input(ctx, ones, CTN_F32, CTN_SHAPE(MANY))), y, sizeof y));
        OK(ctn_scope_end(ctx));
        for (int i = 0; i < MANY; i++) {
            assert_true(y[i] == 0 || y[i] == (k == 0 ? 1.25f : 1.0f));
            left += y[i] != 0;
        }
        if (k == 0) assert_true(abs(left - MANY * 8 / 10) < 200); /* 5 standard deviations */
        else assert_int_equal(left, MANY);
        ctn_module_free(m);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    for (int i = 0; i < ROOM; i++) x[i] = (float)sin(0.37 * i) + (float)(i % 5) * 0.2f;
    for (int i = 0; i < N * C * L; i++) (&small[0][0][0])[i] = 0.01f * (float)cos(1.3 * i * i);
    const struct CMUnitTest tests[] = {
        TEST(test_conv),       TEST(test_pool),      TEST(test_norms),
        TEST(test_batch_norm), TEST(test_embedding), TEST(test_dropout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
