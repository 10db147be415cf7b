/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops with their gradients at realistic sizes: no kernel of their plans is a reference loop, and no
 * depthwise convolution in one dimension one product for each channel.
 * What remains slow is listed at the end, with the reason. Minutes under a sanitizer.
 *
 * Labels: long
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>

#include "support/ok.h"

#include <cmocka.h>

enum { ELEMENTS = 1 << 21 };
static float numbers[ELEMENTS];
static double wide[ELEMENTS];
static int64_t classes[ELEMENTS / 64];
static ctn_context *ctx;
static ctn_dtype type;
static ctn_tensor *leaf[8]; /* of the case */
static int leaves;
static ctn_var *statistic[CTN_F64 + 1][2];

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < ELEMENTS; i++) wide[i] = numbers[i] = (float)(i % 7919 % 1000) / 1000;
    for (int i = 0; i < ELEMENTS / 64; i++) classes[i] = i * 31 % 100;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2)));
    for (int i = 0; i < 4; i++) {
        const ctn_dtype t = i < 2 ? CTN_F32 : CTN_F64;
        OK(ctn_var_new(&statistic[t][i % 2], ctx, "s", CTN_STATE, t, CTN_SHAPE(64)));
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) ctn_var_free(statistic[i < 2 ? CTN_F32 : CTN_F64][i % 2]);
    ctn_context_free(ctx);
    return 0;
}

#define X(...) input(CTN_SHAPE(__VA_ARGS__))
static ctn_tensor *input(int ndim, const int64_t *dims)
{
    const void *from = type == CTN_F64 ? (const void *)wide : numbers;
    return leaf[leaves++] = ctn_with_grad(ctn_input(ctx, from, type, ndim, dims));
}

/* Every second element of every second row. */
static ctn_tensor *stepped(int64_t rows, int64_t cols)
{
    const void *from = type == CTN_F64 ? (const void *)wide : numbers;
    return leaf[leaves++] = ctn_with_grad(ctn_input_strided(ctx, from, type, CTN_SHAPE(rows, cols),
                                                            (const int64_t[]){4 * cols, 2}));
}

/* (c,d,a,b): neither of its last dimensions is one after another in memory. */
#define TURNED(a, b, c, d) ctn_transpose(X(a, b, c, d), 4, (const int64_t[]){2, 3, 0, 1})

static ctn_tensor *indices(int ndim, const int64_t *dims)
{
    return ctn_input(ctx, classes, CTN_I64, ndim, dims);
}

#define CONV(...) CTN_OPT(ctn_conv_opt, __VA_ARGS__)
#define POOL(...) CTN_OPT(ctn_pool_opt, __VA_ARGS__)

/* Every call records one op on inputs with gradients. The gradients of its sum and of the sum of
 * its square are taken, so the arriving gradient is once broadcast and once dense. */
#define CASES(CASE)                                                                                \
    CASE(ctn_conv(X(8, 64, 28, 28), X(64, 64, 3, 3), X(64), CONV(.pad = {1})))                     \
    CASE(ctn_conv(X(8, 3, 112, 112), X(64, 3, 7, 7), NULL, CONV(.stride = {2}, .pad = {3})))       \
    CASE(ctn_conv(X(8, 64, 28, 28), X(64, 1, 3, 3), NULL, CONV(.pad = {1}, .groups = 64)))         \
    CASE(ctn_conv(X(8, 32, 28, 28), X(64, 1, 3, 3), NULL, CONV(.pad = {1}, .groups = 32)))         \
    CASE(ctn_conv(X(8, 64, 28, 28), X(64, 16, 3, 3), NULL, CONV(.pad = {1}, .groups = 4)))         \
    CASE(ctn_conv(X(8, 1, 64, 64), X(32, 1, 3, 3), NULL, CONV(.pad = {1})))                        \
    CASE(ctn_conv(X(8, 32, 64, 64), X(1, 32, 3, 3), NULL, CONV(.pad = {1})))                       \
    CASE(ctn_conv(X(8, 15, 28, 28), X(15, 15, 3, 3), NULL, CONV(.pad = {2}, .dilation = {2})))     \
    CASE(ctn_conv(X(8, 24, 56, 56), X(48, 24, 1, 1), NULL, CONV(.stride = {2})))                   \
    CASE(ctn_conv(X(8, 16, 1000), X(32, 16, 5), X(32), CONV(.pad = {2})))                          \
    CASE(ctn_conv(X(2, 8, 16, 16, 16), X(16, 8, 3, 3, 3), NULL, CONV(.pad = {1})))                 \
    CASE(ctn_conv(X(8, 16, 32, 32), X(16, 16, 3, 3), NULL, CONV(.pad = {1, CTN_PAD_NONE})))        \
    CASE(ctn_conv_transpose(X(8, 32, 16, 16), X(32, 16, 4, 4), X(16),                              \
                            CONV(.stride = {2}, .pad = {1})))                                      \
    CASE(ctn_max_pool(X(8, 64, 56, 56), POOL(.kernel = {3}, .stride = {2}, .pad = {1})))           \
    CASE(ctn_avg_pool(X(8, 64, 56, 56), POOL(.kernel = {2})))                                      \
    CASE(ctn_global_avg_pool(X(8, 256, 14, 14)))                                                   \
    CASE(ctn_resize(X(4, 16, 32, 32), CTN_RESIZE_LINEAR, CTN_SHAPE(64, 64)))                       \
    CASE(ctn_linear(X(256, 784), X(1000, 784), X(1000)))                                           \
    CASE(ctn_linear(X(16, 64, 256), X(512, 256), NULL))                                            \
    CASE(ctn_matmul(X(256, 512), X(512, 384), 0, 0))                                               \
    CASE(ctn_matmul(X(512, 256), X(512, 384), 1, 0))                                               \
    CASE(ctn_matmul(X(256, 512), X(384, 512), 0, 1))                                               \
    CASE(ctn_matmul(X(16, 64, 128), X(128, 256), 0, 0))                                            \
    CASE(ctn_matmul(X(8, 12, 64, 32), X(8, 12, 64, 32), 0, 1))                                     \
    CASE(ctn_matmul(X(1, 64, 64), X(32, 64, 64), 0, 0))                                            \
    CASE(ctn_matmul(stepped(512, 256), X(256, 256), 0, 0))                                         \
    CASE(ctn_matmul(X(256, 512), stepped(512, 256), 0, 0))                                         \
    CASE(ctn_matmul(stepped(1, 256), X(256, 256), 0, 0))                                           \
    CASE(ctn_matmul(stepped(256, 1), X(1, 256), 0, 0))                                             \
    CASE(ctn_matmul(TURNED(20, 32, 16, 16), TURNED(32, 32, 16, 16), 0, 0))                         \
    CASE(ctn_matmul(ctn_conv(X(2, 3, 32, 32), X(16, 3, 3, 3), NULL, CONV(.pad = {1})), X(32, 32),  \
                    0, 0))                                                                         \
    CASE(ctn_linear(stepped(512, 256), X(256, 256), NULL))                                         \
    CASE(ctn_linear(X(512, 256), stepped(128, 256), X(128)))                                       \
    CASE(ctn_einsum("bixy,ioxy->boxy", 2, (ctn_tensor *[]){X(20, 32, 16, 16), X(32, 32, 16, 16)})) \
    CASE(ctn_relu(ctn_linear(X(256, 784), X(1000, 784), X(1000))))                                 \
    CASE(ctn_relu(ctn_conv(X(8, 64, 28, 28), X(64, 64, 3, 3), X(64), CONV(.pad = {1}))))           \
    CASE(ctn_attention(X(4, 8, 128, 64), X(4, 8, 128, 64), X(4, 8, 128, 64), NULL,                 \
                       CTN_OPT(ctn_attention_opt, .causal = 1)))                                   \
    CASE(ctn_softmax(X(1024, 1000), -1))                                                           \
    CASE(ctn_softmax(X(64, 100, 64), 1))                                                           \
    CASE(ctn_log_softmax(X(1024, 1000), -1))                                                       \
    CASE(ctn_softmax_cross_entropy(X(1024, 1000), indices(CTN_SHAPE(1024))))                       \
    CASE(ctn_layer_norm(X(1024, 768), 1, X(768), X(768), 1e-5))                                    \
    CASE(ctn_rms_norm(X(1024, 768), 1, X(768), 1e-5))                                              \
    CASE(ctn_group_norm(X(8, 64, 28, 28), 8, X(64), X(64), 1e-5))                                  \
    CASE(ctn_batch_norm(X(8, 64, 28, 28), X(64), X(64), statistic[type][0], statistic[type][1],    \
                        NULL))                                                                     \
    CASE(ctn_embedding(X(1000, 512), indices(CTN_SHAPE(64, 32))))                                  \
    CASE(ctn_gather(X(1000, 512), indices(CTN_SHAPE(64, 512)), 0))                                 \
    CASE(ctn_scatter_add(X(1000, 64), indices(CTN_SHAPE(500, 64)), X(500, 64), 0))                 \
    CASE(ctn_add(X(1024, 768), X(768)))                                                            \
    CASE(ctn_mul(X(8, 64, 28, 28), X(1, 64, 1, 1)))                                                \
    CASE(ctn_div(X(1024, 768), ctn_shift(X(1024, 1), 1)))                                          \
    CASE(ctn_gelu(X(1024, 768)))                                                                   \
    CASE(ctn_sum(X(64, 100, 64), 1, (const int64_t[]){1}, 0))                                      \
    CASE(ctn_max(X(64, 100, 64), 1, (const int64_t[]){0}, 0))                                      \
    CASE(ctn_cumsum(X(64, 1000), 1, 0))                                                            \
    CASE(ctn_transpose(X(64, 128, 64), 3, (const int64_t[]){2, 0, 1}))                             \
    CASE(ctn_dropout(X(1024, 768), 0.1))

typedef struct {
    const char *what;
    int slow;
} seen;

static ctn_status look(void *user, const ctn_plan_node *n)
{
    seen *s = user;
    if (!n->slow) return CTN_OK;
    s->slow++;
    print_error("%s %s: %s by %s: %s\n", ctn_dtype_name(type), s->what, n->op, n->kernel, n->slow);
    return CTN_OK;
}

static void check(seen *s, ctn_tensor *y, bool square)
{
    ctn_tensor *g[8] = {NULL};
    if (!y) fail_msg("%s: %s", s->what, ctn_error_message());
    OK(ctn_grad(ctn_mean(square ? ctn_square(y) : y, CTN_ALL_AXES, 0), leaves, leaf, g));
    OK(ctn_flush(ctx));
    OK(ctn_context_visit_plan(ctx, look, s));
}

static void no_reference_kernel(void **state)
{
    (void)state;
    int slow = 0;
    for (int f64 = 0; f64 < 2; f64++) {
        type = f64 ? CTN_F64 : CTN_F32;
#define CASE(call)                               \
    for (int square = 0; square < 2; square++) { \
        seen s = {.what = #call};                \
        leaves = 0;                              \
        OK(ctn_scope_begin(ctx));                \
        check(&s, (call), square);               \
        OK(ctn_scope_end(ctx));                  \
        slow += s.slow;                          \
    }
        CASES(CASE)
#undef CASE
    }
    print_message("what remains slow: products in f16 on CPUs without AMX-FP16 (allowed by "
                  "slow_precision), because oneDNN has no other kernel for them\n");
    assert_int_equal(slow, 0);
}

/* One product for each channel would be too small to be fast. */
static ctn_status look_for_products(void *user, const ctn_plan_node *n)
{
    int *convolutions = user;
    if (strncmp(n->op, "conv", 4) != 0) return CTN_OK;
    ++*convolutions;
    if (strstr(n->kernel, "gemm")) fail_msg("%s by %s", n->op, n->kernel);
    return CTN_OK;
}

static void depthwise_without_products(void **state)
{
    (void)state;
    int convolutions = 0;
    type = CTN_F32;
    leaves = 0;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_conv(X(4, 64, 500), X(64, 1, 31), NULL, CONV(.pad = {15}, .groups = 64));
    check(&(seen){.what = "depthwise"}, y, true);
    OK(ctn_context_visit_plan(ctx, look_for_products, &convolutions));
    OK(ctn_scope_end(ctx));
    assert_int_equal(convolutions, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(no_reference_kernel, set_up,
                                                                       tear_down),
                                       cmocka_unit_test_setup_teardown(depthwise_without_products,
                                                                       set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
