/* SPDX-License-Identifier: Apache-2.0
 *
 * NaN stays NaN: in ReLU and relatives, alone and fused into what computes their operand, in
 * pooling, and in all elements of a row of softmax. Each case is computed in eager mode and by one
 * plan, in f32 and f64.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "support/ok.h"

enum { ELEMENTS = 16 * 16 * 9, MOST = 4096 };

static ctn_context *ctx;
static ctn_dtype type;
static ctn_var *statistic[2];
static float narrow[2][ELEMENTS]; /* without and with NaN */
static double wide[2][ELEMENTS];

static ctn_tensor *in(int nan, int ndim, const int64_t *dims)
{
    return ctn_input(ctx, type == CTN_F64 ? (const void *)wide[nan] : narrow[nan], type, ndim,
                     dims);
}

#define X(...) in(1, CTN_SHAPE(__VA_ARGS__)) /* element 0 is NaN */
#define Y(...) in(0, CTN_SHAPE(__VA_ARGS__))
#define CONV(x, w, b) ctn_conv(x, w, b, CTN_OPT(ctn_conv_opt, .pad = {1, 1}))
#define POOL CTN_OPT(ctn_pool_opt, .kernel = {2, 2})
#define NORM(x) ctn_batch_norm(x, Y(16), Y(16), statistic[0], statistic[1], NULL)

static ctn_tensor *normed(int training)
{
    const int was = ctn_context_set_training(ctx, training);
    ctn_tensor *y = ctn_relu(NORM(CONV(X(2, 4, 4, 4), Y(16, 4, 3, 3), NULL)));
    ctn_context_set_training(ctx, was);
    return y;
}

/* The number of elements that have to be NaN, and the op. */
#define CASES(CASE)                                                                        \
    CASE(1, ctn_relu(X(16, 16)))                                                           \
    CASE(16, ctn_relu(ctn_linear(X(16, 16), Y(16, 16), NULL)))                             \
    CASE(16, ctn_relu(ctn_linear(X(16, 16), Y(16, 16), Y(16))))                            \
    CASE(16, ctn_relu(ctn_linear(Y(16, 16), X(16, 16), Y(16))))                            \
    CASE(16, ctn_relu(ctn_linear(Y(16, 16), Y(16, 16), X(16))))                            \
    CASE(2, ctn_relu(ctn_linear(Y(2, 16), X(64, 16), NULL)))                               \
    CASE(16, ctn_relu(ctn_matmul(X(16, 16), Y(16, 16), 0, 0)))                             \
    CASE(64, ctn_relu(CONV(X(2, 4, 4, 4), Y(16, 4, 3, 3), NULL)))                          \
    CASE(64, ctn_relu(CONV(X(2, 4, 4, 4), Y(16, 4, 3, 3), Y(16))))                         \
    CASE(32, ctn_relu(CONV(Y(2, 4, 4, 4), Y(16, 4, 3, 3), X(16))))                         \
    CASE(64, ctn_relu(ctn_add(CONV(X(2, 4, 4, 4), Y(16, 4, 3, 3), NULL), Y(2, 16, 4, 4)))) \
    CASE(512, normed(1))                                                                   \
    CASE(64, normed(0))                                                                    \
    CASE(1, ctn_clip(X(16, 16), -0.1, 0.1))                                                \
    CASE(1, ctn_leaky_relu(ctn_scale(X(16, 16), 2), 0.1))                                  \
    CASE(1, ctn_relu(ctn_shift(ctn_scale(X(16, 16), 2), 0.5)))                             \
    CASE(16, ctn_leaky_relu(ctn_linear(X(16, 16), Y(16, 16), NULL), 0.1))                  \
    CASE(1, ctn_hard_sigmoid(X(16, 16)))                                                   \
    CASE(1, ctn_hard_swish(X(16, 16)))                                                     \
    CASE(1, ctn_maximum(X(16, 16), Y(16, 16)))                                             \
    CASE(1, ctn_minimum(Y(16, 16), X(16, 16)))                                             \
    CASE(1, ctn_max(X(16, 16), 1, (const int64_t[]){1}, 0))                                \
    CASE(1, ctn_min(X(16, 16), 1, (const int64_t[]){0}, 0))                                \
    CASE(1, ctn_max_pool(X(2, 16, 4, 4), POOL))                                            \
    CASE(1, ctn_max_pool(ctn_relu(X(2, 16, 4, 4)), POOL))                                  \
    CASE(16, ctn_max_pool(ctn_relu(CONV(X(2, 4, 4, 4), Y(16, 4, 3, 3), NULL)), POOL))      \
    CASE(1, ctn_avg_pool(X(2, 16, 4, 4), POOL))                                            \
    CASE(16, ctn_layer_norm(X(16, 16), 1, Y(16), Y(16), 1e-5))                             \
    CASE(16, ctn_relu(ctn_layer_norm(X(16, 16), 1, Y(16), Y(16), 1e-5)))                   \
    CASE(16, ctn_softmax(X(16, 16), 1))                                                    \
    CASE(16, ctn_softmax(X(16, 16), 0))                                                    \
    CASE(100, ctn_softmax(X(16, 100), 1))                                                  \
    CASE(3, ctn_softmax(X(16, 3, 5), 1))                                                   \
    CASE(16, ctn_log_softmax(X(16, 16), 1))                                                \
    CASE(100, ctn_log_softmax(X(16, 100), 1))                                              \
    CASE(3, ctn_log_softmax(X(16, 3, 5), 1))

static int count_nan(const char *what, ctn_tensor *y)
{
    double values[MOST];
    int n = 0;
    y = ctn_scope_return(ctx, ctn_cast(y, CTN_F64)); /* alone, so that everything is fused */
    if (!y) fail_msg("%s: %s", what, ctn_error_message());
    assert_true(ctn_count(y) <= MOST);
    OK(ctn_read(y, values, (size_t)ctn_count(y) * sizeof *values));
    for (int64_t i = 0; i < ctn_count(y); i++) n += isnan(values[i]) != 0;
    return n;
}

static void stays(ctn_mode mode, ctn_precision precision)
{
    int wrong = 0;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .mode = mode,
                                     .precision = precision)));
    type = ctn_context_float_type(ctx);
    for (int i = 0; i < 2; i++)
        OK(ctn_var_new(&statistic[i], ctx, "s", CTN_STATE, type, CTN_SHAPE(16)));
#define CASE(expected, call)                                                               \
    {                                                                                      \
        OK(ctn_scope_begin(ctx));                                                          \
        OK(ctn_scope_begin(ctx));                                                          \
        const int n = count_nan(#call, call);                                              \
        OK(ctn_scope_end(ctx));                                                            \
        wrong += n != (expected);                                                          \
        if (n != (expected))                                                               \
            print_error("%s %s: %d NaN, expected %d: %s\n", ctn_dtype_name(type),          \
                        mode == CTN_MODE_EAGER ? "eager" : "planned", n, expected, #call); \
        const float zero[16] = {0};                                                        \
        const double none[16] = {0};                                                       \
        for (int i = 0; i < 2; i++)                                                        \
            OK(ctn_var_set(statistic[i], type == CTN_F64 ? (const void *)none : zero,      \
                           16 * ctn_dtype_size(type)));                                    \
    }
    CASES(CASE)
#undef CASE
    for (int i = 0; i < 2; i++) ctn_var_free(statistic[i]);
    ctn_context_free(ctx);
    assert_int_equal(wrong, 0);
}

static void eager(void **state)
{
    (void)state;
    stays(CTN_MODE_EAGER, CTN_PRECISION_F32);
}

static void planned(void **state)
{
    (void)state;
    stays(CTN_MODE_PLANNED, CTN_PRECISION_F32);
}

static void eager_f64(void **state)
{
    (void)state;
    stays(CTN_MODE_EAGER, CTN_PRECISION_F64);
}

static void planned_f64(void **state)
{
    (void)state;
    stays(CTN_MODE_PLANNED, CTN_PRECISION_F64);
}

/* The fused form computes max(x, 0) exactly, without a negative zero. */
static void relu_is_exact(void **state)
{
    (void)state;
    enum { N = 1000, C = 16 };
    static float x[N * C], z[N * C], y[N * C], unit[C * C];
    for (int i = 0; i < N * C; i++) x[i] = ldexpf((float)(i * 7919 % 2001 - 1000), i % 240 - 130);
    for (int i = 0; i < C; i++) unit[i * C + i] = 1;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    for (int relu = 0; relu < 2; relu++) {
        OK(ctn_scope_begin(ctx));
        OK(ctn_scope_begin(ctx));
        ctn_tensor *t = ctn_linear(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(N, C)),
                                   ctn_input(ctx, unit, CTN_F32, CTN_SHAPE(C, C)), NULL);
        t = ctn_scope_return(ctx, relu ? ctn_relu(t) : t);
        OK(ctn_read(t, relu ? y : z, sizeof y));
        OK(ctn_scope_end(ctx));
    }
    for (int i = 0; i < N * C; i++) {
        const float want = z[i] > 0 ? z[i] : 0;
        if (memcmp(&y[i], &want, sizeof want) != 0)
            fail_msg("relu(%.9g) is %.9g", (double)z[i], (double)y[i]);
    }
    ctn_context_free(ctx);
}

/* As a cast does: the nearest integer of the range, and 0 for NaN. */
static void integers_saturate(void **state)
{
    (void)state;
    static const double in[] = {NAN, -INFINITY, 1e300, -1.5};
    static const int64_t want_wide[] = {0, INT64_MIN, INT64_MAX, -1};
    static const int32_t want[] = {0, INT32_MIN, INT32_MAX, -1};
    static const uint8_t want_byte[] = {0, 0, UINT8_MAX, 0};
    int64_t wide_y = 1;
    int32_t y = 1;
    uint8_t byte = 1;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_scope_begin(ctx));
    for (int i = 0; i < 4; i++) {
        OK(ctn_read(ctn_full(ctx, in[i], CTN_I64, 0, NULL), &wide_y, sizeof wide_y));
        OK(ctn_read(ctn_full(ctx, in[i], CTN_I32, 0, NULL), &y, sizeof y));
        OK(ctn_read(ctn_full(ctx, in[i], CTN_U8, 0, NULL), &byte, sizeof byte));
        assert_true(wide_y == want_wide[i] && y == want[i] && byte == want_byte[i]);
    }
    OK(ctn_scope_end(ctx));
    ctn_context_free(ctx);
}

int main(void)
{
    for (int i = 0; i < ELEMENTS; i++)
        for (int k = 0; k < 2; k++)
            wide[k][i] = narrow[k][i] = k == 1 && i == 0 ? NAN : (float)(i * 37 % 101) / 100 - 0.5f;
    const struct CMUnitTest tests[] = {cmocka_unit_test(eager),
                                       cmocka_unit_test(planned),
                                       cmocka_unit_test(eager_f64),
                                       cmocka_unit_test(planned_f64),
                                       cmocka_unit_test(relu_is_exact),
                                       cmocka_unit_test(integers_saturate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
