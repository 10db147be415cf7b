/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cases of tests/ops cannot express about ops on shapes and indices: errors at run time
 * and that the context remains usable after them, scalars that do not change the plan, NaN,
 * limits on the number of tensors.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <catena/ops.h>

static ctn_context *ctx;
static float values[64], result[64];

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++) values[i] = (float)i;
    return ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2));
}

static int tear_down(void **state)
{
    (void)state;
    ctn_context_free(ctx);
    return 0;
}

static ctn_tensor *matrix(int64_t rows, int64_t columns)
{
    return ctn_input(ctx, values, CTN_F32, CTN_SHAPE(rows, columns));
}

static void expect_when_read(ctn_tensor *t, const char *text)
{
    assert_non_null(t);
    assert_int_equal(ctn_read(t, result, (size_t)ctn_count(t) * sizeof(float)), CTN_EARG);
    if (!strstr(ctn_error_message(), text))
        fail_msg("\"%s\" is not in: %s", text, ctn_error_message());
    ctn_error_clear();
}

enum { EMBEDDING, GATHER, SCATTER_ADD, ONE_HOT, EMBEDDING_GRAD, SCATTER_GRAD, NCALLS };

static ctn_tensor *call(int which, const int64_t *index)
{
    ctn_tensor *x = matrix(4, 3), *i = ctn_input(ctx, index, CTN_I64, CTN_SHAPE(2, 3));
    ctn_tensor *gx, *y;
    switch (which) {
    case EMBEDDING: return ctn_embedding(x, i);
    case GATHER: return ctn_gather(x, i, 0);
    case SCATTER_ADD: return ctn_scatter_add(x, i, matrix(2, 3), 0);
    case ONE_HOT: return ctn_one_hot(i, 4, CTN_F32);
    case SCATTER_GRAD: /* in a scope of its own, so that only the gradient is computed */
        ctn_scope_begin(ctx);
        y = ctn_with_grad(matrix(2, 3));
        assert_int_equal(ctn_grad(ctn_sum(ctn_scatter(x, i, y, 0), CTN_ALL_AXES, 0), 1, &y, &gx),
                         CTN_OK);
        return ctn_scope_return(ctx, gx);
    default: break;
    }
    x = ctn_with_grad(x);
    assert_int_equal(ctn_grad(ctn_sum(ctn_embedding(x, i), CTN_ALL_AXES, 0), 1, &x, &gx), CTN_OK);
    return gx;
}

static void test_index_out_of_range(void **state)
{
    static const char *const name[NCALLS] = {"embedding", "gather",    "scatter_add",
                                             "one_hot",   "embedding", "scatter"};
    static const int64_t wrong[] = {4, -1, INT64_MAX, INT64_MIN};
    (void)state;
    for (int k = 0; k < NCALLS; k++) {
        for (int w = 0; w < 4; w++) {
            int64_t index[6] = {0, 1, 2, 3, wrong[w], 0};
            char text[96];
            snprintf(text, sizeof text, "%s: the index of row 1, column 1 is %lld, outside 0 to 3",
                     name[k], (long long)wrong[w]);
            ctn_scope_begin(ctx);
            expect_when_read(call(k, index), text);
            ctn_scope_end(ctx);
            ctn_error_clear();
            index[4] = 3; /* the same plan continues with good indices */
            ctn_scope_begin(ctx);
            ctn_tensor *t = call(k, index);
            assert_int_equal(ctn_read(t, result, (size_t)ctn_count(t) * sizeof(float)), CTN_OK);
            assert_int_equal(ctn_scope_end(ctx), CTN_OK);
        }
    }
}

/* Places outside of their window, and places of the padding, are not written to. */
static void test_places_out_of_range(void **state)
{
    (void)state;
    static const uint8_t wrong[] = {2, 255};
    static const int32_t wide[] = {-1, 301, INT32_MIN, INT32_MAX, 300, 0}; /* the last: padding */
    static const int64_t four[1] = {4};
    for (int i = 0; i < 2; i++) {
        uint8_t places[2] = {1, wrong[i]};
        ctn_scope_begin(ctx);
        ctn_tensor *p = ctn_input(ctx, places, CTN_U8, CTN_SHAPE(1, 1, 2));
        ctn_tensor *y = ctn_input(ctx, values, CTN_F32, CTN_SHAPE(1, 1, 2));
        expect_when_read(ctn_max_unpool(y, p, CTN_OPT(ctn_pool_opt, .kernel = {2}, .stride = {2}),
                                        1, four),
                         "max_unpool: places has");
        ctn_scope_end(ctx);
        ctn_error_clear();
    }
    for (int i = 0; i < 6; i++) {
        int32_t places[4] = {150, wide[i], 150, 150};
        ctn_scope_begin(ctx);
        ctn_tensor *p = ctn_input(ctx, places, CTN_I32, CTN_SHAPE(1, 1, 4));
        ctn_tensor *y = ctn_input(ctx, values, CTN_F32, CTN_SHAPE(1, 1, 4));
        y = ctn_max_unpool(y, p,
                           CTN_OPT(ctn_pool_opt, .kernel = {301}, .stride = {1}, .pad = {150}), 1,
                           four);
        expect_when_read(y, "at element 1, which is not a position of that window");
        ctn_scope_end(ctx);
        ctn_error_clear();
    }
}

/* Small operands, but results of 2^62 elements, whose bytes do not fit in 64 bits. */
static void test_too_large_results(void **state)
{
    (void)state;
    enum { M = 1 << 20 };
    const ctn_conv_opt *pad = CTN_OPT(ctn_conv_opt, .pad = {M / 2, M, M}, .pad_end = {M / 2, M, M});
    for (int i = 0; i < 3; i++) {
        ctn_scope_begin(ctx);
        ctn_tensor *c = ctn_full(ctx, 1, CTN_BOOL, CTN_SHAPE(M, 1, 1));
        ctn_tensor *a = ctn_full(ctx, 1, CTN_F32, CTN_SHAPE(1, 2 * M, 1));
        ctn_tensor *b = ctn_full(ctx, 1, CTN_F32, CTN_SHAPE(1, 1, 2 * M));
        ctn_tensor *many = ctn_broadcast_to(b, CTN_SHAPE(M, 1, 2 * M));
        ctn_tensor *x = ctn_input(ctx, values, CTN_F32, CTN_SHAPE(1, 1, 1, 1, 1));
        ctn_tensor *y = i == 0   ? ctn_where(c, a, b)
                        : i == 1 ? ctn_matmul(a, many, 0, 0)
                                 : ctn_conv(x, x, NULL, pad);
        assert_null(y);
        if (ctn_error_status() != CTN_ESHAPE || !strstr(ctn_error_message(), "is too large for"))
            fail_msg("call %d: %s", i, ctn_error_message());
        ctn_error_clear();
        ctn_scope_end(ctx);
        ctn_error_clear();
    }
}

static void test_slice_moves_without_a_new_plan(void **state)
{
    ctn_plan_stats was, is;
    (void)state;
    for (int start = 0; start <= 4; start++) {
        ctn_scope_begin(ctx);
        assert_int_equal(ctn_read(ctn_slice(matrix(6, 3), 0, start, 2), result, 6 * sizeof(float)),
                         CTN_OK);
        assert_true(result[0] == (float)(3 * start));
        assert_int_equal(ctn_scope_end(ctx), CTN_OK);
        ctn_context_get_stats(ctx, start == 0 ? &was : &is);
    }
    assert_int_equal(is.misses, was.misses);
    static const int64_t wrong[] = {5, -7, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        ctn_scope_begin(ctx);
        expect_when_read(ctn_slice(matrix(6, 3), 0, wrong[i], 2),
                         "with length 2 does not fit an axis of 6");
        ctn_scope_end(ctx);
        ctn_error_clear();
    }
}

/* The gradient goes where the slice was taken in this step. */
static void test_slice_gradient_moves(void **state)
{
    (void)state;
    for (int start = 0; start <= 4; start++) {
        ctn_scope_begin(ctx);
        ctn_tensor *x = ctn_with_grad(matrix(6, 1)), *gx;
        ctn_tensor *y = ctn_sum(ctn_slice(x, 0, start, 2), CTN_ALL_AXES, 0);
        assert_int_equal(ctn_grad(y, 1, &x, &gx), CTN_OK);
        assert_int_equal(ctn_read(gx, result, 6 * sizeof(float)), CTN_OK);
        for (int i = 0; i < 6; i++) assert_true(result[i] == (float)(i == start || i == start + 1));
        assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    }
}

static void test_nan_wins(void **state)
{
    float x[4] = {1, NAN, 3, 2};
    int64_t place, places[2];
    (void)state;
    ctn_scope_begin(ctx);
    ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(4)), *top;
    assert_true(isnan(ctn_item(ctn_max(t, CTN_ALL_AXES, 0))));
    assert_true(isnan(ctn_item(ctn_min(t, CTN_ALL_AXES, 0))));
    assert_int_equal(ctn_read(ctn_argmax(t, 0), &place, sizeof place), CTN_OK);
    assert_int_equal(place, 1);
    assert_int_equal(ctn_topk(t, 2, 0, NULL, &top), CTN_OK);
    assert_int_equal(ctn_read(top, places, sizeof places), CTN_OK);
    assert_int_equal(places[0], 1);
    assert_int_equal(places[1], 2);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
}

#define EXPECT_NULL(status, call)                                                \
    do {                                                                         \
        ctn_error_clear();                                                       \
        assert_null(call);                                                       \
        if (ctn_error_status() != (status)) fail_msg("%s", ctn_error_message()); \
        ctn_error_clear();                                                       \
    } while (0)

static void test_refused_calls(void **state)
{
    ctn_tensor *many[CTN_MAX_IN + 1], *out[CTN_MAX_OUT + 1];
    (void)state;
    ctn_scope_begin(ctx);
    ctn_tensor *x = matrix(4, 3), *none = matrix(3, 0), *i = ctn_one_hot(NULL, 3, CTN_F32);
    assert_null(i);
    ctn_error_clear();
    for (int k = 0; k <= CTN_MAX_IN; k++) many[k] = ctn_unsqueeze(matrix(1, 3), 0);
    assert_int_equal(ctn_dim(ctn_concat(CTN_MAX_IN + 1, many, 1), 1), CTN_MAX_IN + 1);
    EXPECT_NULL(CTN_EARG, ctn_concat(0, many, 1));
    EXPECT_NULL(CTN_EARG, ctn_stack(0, many, 0));
    EXPECT_NULL(CTN_ESHAPE, ctn_concat(2, ((ctn_tensor *[]){x, matrix(3, 4)}), 0));
    EXPECT_NULL(CTN_ESHAPE, ctn_concat(2, ((ctn_tensor *[]){x, many[0]}), 0));
    EXPECT_NULL(CTN_ESHAPE, ctn_stack(2, ((ctn_tensor *[]){x, matrix(3, 4)}), 0));
    EXPECT_NULL(CTN_ESHAPE, ctn_max(none, 1, (const int64_t[]){1}, 0));
    EXPECT_NULL(CTN_ESHAPE, ctn_argmax(none, 1));
    EXPECT_NULL(CTN_ESHAPE, ctn_mean(x, 1, (const int64_t[]){2}, 0));
    for (int k = 0; k < 5; k++) { /* theta is (N,2,3) */
        const int64_t theta[] = {1, k == 0 ? 3 : 2, k == 1 ? 4 : 3};
        ctn_tensor *t = ctn_input(ctx, values, CTN_F32, k == 2 ? 2 : 3, theta);
        assert_null(ctn_affine_grid(t, k == 3 ? 0 : 4, k == 4 ? 0 : 4, 0));
        assert_non_null(strstr(ctn_error_message(), "affine_grid: theta is"));
        ctn_error_clear();
    }
    EXPECT_NULL(CTN_ESHAPE, ctn_squeeze(x, 0));
    EXPECT_NULL(CTN_ESHAPE, ctn_tril(ctn_reshape(x, 1, (const int64_t[]){-1}), 0));
    EXPECT_NULL(CTN_ESHAPE, ctn_pad(x, (const int64_t[]){0, -1}, NULL, 0));
    EXPECT_NULL(CTN_ESHAPE, ctn_slice(x, 0, 0, 5));
    const int64_t samples[] = {(INT64_C(1) << 30) + 1, 1, 1}, apart[3] = {0};
    ctn_tensor *most = ctn_input_strided(ctx, values, CTN_F32, 3, samples, apart);
    EXPECT_NULL(CTN_ESHAPE,
                ctn_conv(most, ctn_reshape(matrix(1, 1), CTN_SHAPE(1, 1, 1)), NULL, NULL));
    EXPECT_NULL(CTN_EDTYPE, ctn_embedding(x, x));
    assert_int_equal(ctn_topk(x, 4, -1, out, NULL), CTN_ESHAPE);
    ctn_error_clear();
    assert_int_equal(ctn_topk(x, 1, 2, out, NULL), CTN_ESHAPE);
    ctn_error_clear();
    assert_int_equal(ctn_split(x, 0, 2, (const int64_t[]){1, 2}, out), CTN_ESHAPE);
    assert_null(out[0]);
    ctn_error_clear();
    assert_int_equal(ctn_split(x, 0, 0, NULL, out), CTN_EARG);
    ctn_error_clear();
    ctn_scope_end(ctx);
}

static void expect_size(const ctn_tensor *t, int64_t high, int64_t wide)
{
    assert_non_null(t);
    assert_int_equal(ctn_dim(t, 2), high);
    assert_int_equal(ctn_dim(t, 3), wide);
}

static void test_padding_along_one_dimension(void **state)
{
    (void)state;
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *x = ctn_input(ctx, values, CTN_F32, CTN_SHAPE(1, 1, 4, 6));
    ctn_tensor *w = ctn_input(ctx, values, CTN_F32, CTN_SHAPE(1, 1, 3, 3));
    const ctn_conv_opt *high = CTN_OPT(ctn_conv_opt, .pad = {1, CTN_PAD_NONE});
    expect_size(ctn_conv(x, w, NULL, high), 4, 4);
    expect_size(ctn_conv(x, w, NULL, CTN_OPT(ctn_conv_opt, .pad = {CTN_PAD_NONE, 1})), 2, 6);
    expect_size(ctn_conv(x, w, NULL, CTN_OPT(ctn_conv_opt, .pad = {1}, .pad_end = {CTN_PAD_NONE})),
                3, 5);
    expect_size(ctn_conv_transpose(x, w, NULL, high), 4, 8);
    expect_size(ctn_max_pool(x, CTN_OPT(ctn_pool_opt, .kernel = {3}, .stride = {1},
                                        .pad = {1, CTN_PAD_NONE})),
                4, 4);
    assert_null(ctn_conv(x, w, NULL, CTN_OPT(ctn_conv_opt, .pad = {-2})));
    ctn_error_clear();
    /* The same numbers as with explicit zeros. */
    const int64_t one[4] = {0, 0, 1, 0};
    ctn_tensor *d =
        ctn_sub(ctn_conv(x, w, NULL, high), ctn_conv(ctn_pad(x, one, one, 0), w, NULL, NULL));
    assert_true(ctn_item(ctn_max(ctn_abs(d), CTN_ALL_AXES, 0)) == 0);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
}

/* Its gradients are added in f32 and rounded once. */
static void test_low_tensor_used_twice(void **state)
{
    (void)state;
    for (int low = CTN_BF16; low <= CTN_F16; low++) {
        assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
        ctn_tensor *x = ctn_with_grad(matrix(2, 3)), *g = NULL;
        ctn_tensor *h = ctn_cast(x, (ctn_dtype)low), *twice = ctn_add(ctn_mul(h, h), h);
        assert_int_equal(ctn_grad(ctn_sum(ctn_cast(twice, CTN_F32), CTN_ALL_AXES, 0), 1, &x, &g),
                         CTN_OK);
        assert_int_equal(ctn_read(g, result, 6 * sizeof(float)), CTN_OK);
        for (int i = 0; i < 6; i++) assert_true(result[i] == 2 * values[i] + 1);
        assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_out_of_range),
        cmocka_unit_test(test_places_out_of_range),
        cmocka_unit_test(test_too_large_results),
        cmocka_unit_test(test_slice_moves_without_a_new_plan),
        cmocka_unit_test(test_slice_gradient_moves),
        cmocka_unit_test(test_nan_wins),
        cmocka_unit_test(test_refused_calls),
        cmocka_unit_test(test_padding_along_one_dimension),
        cmocka_unit_test(test_low_tensor_used_twice),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
