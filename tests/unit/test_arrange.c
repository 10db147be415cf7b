/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cases of tests/ops cannot express about ops that rearrange: the plans they lead to,
 * scalars that do not change the plan, NaN, low precision, and refused calls with their messages.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <catena/nn.h>
#include <catena/ops.h>

static ctn_context *ctx;
static float values[4096], result[4096];

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < 4096; i++) values[i] = (float)(i % 61);
    return ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2, .mode = CTN_MODE_PLANNED));
}

static int tear_down(void **state)
{
    (void)state;
    ctn_context_free(ctx);
    return 0;
}

static void read_into_result(ctn_tensor *t)
{
    assert_non_null(t);
    assert_int_equal(ctn_read(t, result, (size_t)ctn_count(t) * sizeof(float)), CTN_OK);
}

/* ---- plans ----------------------------------------------------------------------------------- */

typedef struct {
    int nodes, reorders, products, pads;
} seen;

static ctn_status look(void *user, const ctn_plan_node *n)
{
    seen *s = user;
    s->nodes++;
    s->reorders += strcmp(n->op, "reorder") == 0;
    s->products += strcmp(n->op, "matmul") == 0;
    s->pads += strncmp(n->op, "pad", 3) == 0 || strncmp(n->op, "slice", 5) == 0;
    return CTN_OK;
}

static seen last_plan(void)
{
    seen s = {0};
    assert_int_equal(ctn_context_visit_plan(ctx, look, &s), CTN_OK);
    return s;
}

static void test_einsum_is_one_product(void **state)
{
    static const char *const equation[] = {"bij,bjk->bik", "bij,bkj->bik", "bji,bjk->bik"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
        ctn_tensor *x[2] = {ctn_input(ctx, values, CTN_F32, CTN_SHAPE(3, 8, 8)),
                            ctn_input(ctx, values + 100, CTN_F32, CTN_SHAPE(3, 8, 8))};
        read_into_result(ctn_einsum(equation[i], 2, x));
        const seen s = last_plan();
        assert_int_equal(s.products, 1);
        assert_int_equal(s.nodes, 1);
        assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    }
}

/* Two convolutions and the gradients of their weights, padded by an option or by an op. */
static seen plan_of_convolutions(ctn_pad_mode mode, int by_op)
{
    static const int64_t one[4] = {0, 0, 1, 1};
    const ctn_conv_opt *opt = CTN_OPT(ctn_conv_opt, .pad = {by_op ? 0 : 1}, .pad_mode = mode);
    ctn_tensor *w[2], *g[2];
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *x = ctn_input(ctx, values, CTN_F32, CTN_SHAPE(2, 16, 9, 9));
    for (int i = 0; i < 2; i++) {
        w[i] = ctn_with_grad(ctn_input(ctx, values + i, CTN_F32, CTN_SHAPE(16, 16, 3, 3)));
        if (by_op) x = ctn_pad(x, one, one, 0);
        x = ctn_relu(ctn_conv(x, w[i], NULL, opt));
    }
    assert_int_equal(ctn_grad(ctn_sum(x, CTN_ALL_AXES, 0), 2, w, g), CTN_OK);
    /* not a read, which would also keep the intermediate results in their own layout */
    ctn_retained *kept[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) assert_int_equal(ctn_retain(&kept[i], g[i]), CTN_OK);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    for (int i = 0; i < 2; i++) ctn_retained_free(kept[i]);
    return last_plan();
}

static void test_padding_stays_channels_last(void **state)
{
    (void)state;
    const seen zeros = plan_of_convolutions(CTN_PAD_ZEROS, 0);
    const seen reflected = plan_of_convolutions(CTN_PAD_REFLECT, 0);
    const seen by_op = plan_of_convolutions(CTN_PAD_ZEROS, 1);
    assert_int_equal(zeros.pads, 0);
    assert_int_equal(reflected.pads, 3); /* twice forward, once backward */
    assert_int_equal(by_op.pads, 3);
    assert_int_equal(reflected.reorders, zeros.reorders);
    assert_int_equal(by_op.reorders, zeros.reorders);
}

/* ---- scalars --------------------------------------------------------------------------------- */

static void test_moving_places_reuse_the_plan(void **state)
{
    ctn_plan_stats was, is;
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
        ctn_tensor *x = ctn_with_grad(ctn_input(ctx, values, CTN_F32, CTN_SHAPE(9))), *gx;
        ctn_tensor *y = ctn_slice_step(x, 0, 4 + i, 3, -2), *z = ctn_roll(x, 0, i - 2);
        ctn_keep(y);
        ctn_keep(z);
        ctn_tensor *loss = ctn_add(ctn_sum(ctn_mul(y, y), CTN_ALL_AXES, 0), ctn_select(z, 0, i));
        assert_int_equal(ctn_grad(loss, 1, &x, &gx), CTN_OK);
        read_into_result(gx);
        float want[9] = {0};
        for (int k = 0; k < 3; k++) want[4 + i - 2 * k] = 2 * values[4 + i - 2 * k];
        want[2]++; /* place i of z is place 2 of x */
        for (int k = 0; k < 9; k++) assert_true(result[k] == want[k]);
        read_into_result(y);
        for (int k = 0; k < 3; k++) assert_true(result[k] == values[4 + i - 2 * k]);
        read_into_result(z);
        for (int k = 0; k < 9; k++) assert_true(result[k] == values[(k + 9 - (i - 2)) % 9]);
        assert_int_equal(ctn_scope_end(ctx), CTN_OK);
        ctn_context_get_stats(ctx, i == 0 ? &was : &is);
    }
    assert_int_equal(is.misses, was.misses);
}

/* ---- order ----------------------------------------------------------------------------------- */

static void test_nan_and_zeros_are_sorted(void **state)
{
    (void)state;
    for (int n = 8; n <= 80; n += 72) { /* by insertion, and by radix */
        for (int down = 0; down <= 1; down++) {
            float x[80];
            int64_t place[80];
            for (int i = 0; i < n; i++) x[i] = (float)(i % 3 - 1) * INFINITY;
            for (int i = 1; i < n; i += 3) x[i] = i % 2 ? 0.0F : -0.0F;
            x[2] = NAN;
            x[3] = -NAN;
            assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
            ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(n));
            ctn_tensor *y, *order;
            assert_int_equal(ctn_sort(t, 0, down, &y, &order), CTN_OK);
            read_into_result(y);
            assert_int_equal(ctn_read(order, place, (size_t)n * sizeof *place), CTN_OK);
            assert_int_equal(place[n - 2], 2);
            assert_int_equal(place[n - 1], 3);
            for (int i = 0; i < n; i++) assert_memory_equal(&result[i], &x[place[i]], 4);
            for (int i = 1; i < n - 2; i++) {
                assert_true(down ? result[i - 1] >= result[i] : result[i - 1] <= result[i]);
                if (result[i - 1] == result[i]) assert_true(place[i - 1] < place[i]);
            }
            assert_int_equal(ctn_scope_end(ctx), CTN_OK);
        }
    }
}

/* ---- low precision --------------------------------------------------------------------------- */

/* 16-bit elements are moved as they are. */
static void test_low_precision_is_moved(void **state)
{
    static const int64_t one[2] = {0, 1};
    (void)state;
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *x = ctn_input(ctx, values, CTN_F32, CTN_SHAPE(4, 5));
    ctn_tensor *low = ctn_cast(x, CTN_BF16), *d;
    d = ctn_sub(ctn_flip(x, CTN_ALL_AXES), ctn_cast(ctn_flip(low, CTN_ALL_AXES), CTN_F32));
    assert_true(ctn_item(ctn_max(ctn_abs(d), CTN_ALL_AXES, 0)) == 0);
    d = ctn_sub(ctn_pad(x, one, one, 1), ctn_cast(ctn_pad(low, one, one, 1), CTN_F32));
    assert_true(ctn_item(ctn_max(ctn_abs(d), CTN_ALL_AXES, 0)) == 0);
    d = ctn_sub(ctn_diagonal(x, 1), ctn_cast(ctn_diagonal(low, 1), CTN_F32));
    assert_true(ctn_item(ctn_max(ctn_abs(d), CTN_ALL_AXES, 0)) == 0);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
}

/* ---- the module of convolution --------------------------------------------------------------- */

static void test_module_pads(void **state)
{
    static const int64_t one[4] = {0, 0, 1, 2};
    ctn_module *m = NULL, *none = NULL;
    (void)state;
    assert_int_equal(ctn_conv_new(&m, ctx, 3, 4, CTN_SHAPE(3, 3),
                                  CTN_OPT(ctn_conv_module_opt, .pad = {1, 2}, .no_bias = 1,
                                          .pad_mode = CTN_PAD_WRAP)),
                     CTN_OK);
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *x = ctn_input(ctx, values, CTN_F32, CTN_SHAPE(2, 3, 6, 5));
    ctn_tensor *w = ctn_use(ctn_module_find(m, "weight"));
    ctn_tensor *y = ctn_conv(ctn_pad_by(x, CTN_PAD_WRAP, one, one), w, NULL, NULL);
    ctn_tensor *d = ctn_sub(ctn_call(m, x), y);
    assert_true(ctn_item(ctn_max(ctn_abs(d), CTN_ALL_AXES, 0)) == 0);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    assert_int_equal(ctn_conv_transpose_new(&none, ctx, 3, 4, CTN_SHAPE(3, 3),
                                            CTN_OPT(ctn_conv_module_opt, .pad_mode = CTN_PAD_WRAP)),
                     CTN_EARG);
    assert_null(none);
    ctn_error_clear();
    ctn_module_free(m);
}

/* ---- refused calls --------------------------------------------------------------------------- */

#define REFUSED(status, text, call)                                      \
    do {                                                                 \
        ctn_error_clear();                                               \
        assert_null(call);                                               \
        assert_int_equal(ctn_error_status(), status);                    \
        if (!strstr(ctn_error_message(), text))                          \
            fail_msg("\"%s\" is not in: %s", text, ctn_error_message()); \
        ctn_error_clear();                                               \
    } while (0)

static ctn_tensor *matrix(int64_t rows, int64_t columns)
{
    return ctn_input(ctx, values, CTN_F32, CTN_SHAPE(rows, columns));
}

static void test_refused_calls(void **state)
{
    static const int64_t minus[2] = {2, -1}, axis[2] = {1, 0};
    ctn_tensor *out[4];
    (void)state;
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *x = matrix(4, 3), *none = matrix(3, 0);
    REFUSED(CTN_ESHAPE, "cannot take 3 elements with step 2 from axis 0 of (4,3)",
            ctn_slice_step(x, 0, 0, 3, 2));
    REFUSED(CTN_ESHAPE, "with step 0", ctn_slice_step(x, 0, 0, 1, 0));
    REFUSED(CTN_ESHAPE, "axis 2 does not exist in (4,3)", ctn_flip(x, 1, (const int64_t[]){2}));
    REFUSED(CTN_ESHAPE, "axis -3 does not exist", ctn_roll(x, -3, 1));
    REFUSED(CTN_ESHAPE, "cannot repeat (4,3) -1 times", ctn_repeat(x, -1, 0));
    REFUSED(CTN_ESHAPE, "cannot repeat (4,3) -1 times", ctn_tile(x, 2, minus));
    REFUSED(CTN_ESHAPE, "no diagonal with offset 4", ctn_diagonal(x, 4));
    REFUSED(CTN_ESHAPE, "axis 5", ctn_argsort(x, 5, 0));
    REFUSED(CTN_ESHAPE, "after dimension 1 of (3,0)",
            ctn_pad_by(none, CTN_PAD_WRAP, NULL, (const int64_t[]){0, 1}));
    REFUSED(CTN_EARG, "mode 9", ctn_pad_by(x, (ctn_pad_mode)9, NULL, NULL));
    REFUSED(CTN_ESHAPE, "cannot broadcast the mask",
            ctn_masked_fill(ctn_select(x, 0, 0), ctn_greater(x, x), 0));
    REFUSED(CTN_ESHAPE, "one index per row of x", ctn_select_item(x, x));
    assert_int_equal(ctn_separate(x, 0, 3, out), CTN_ESHAPE);
    assert_null(out[0]);
    ctn_error_clear();
    ctn_tensor *two[2] = {x, matrix(2, 5)};
    REFUSED(CTN_ESHAPE, "label 'j' has length 3 in operand 0 and 2 in operand 1",
            ctn_einsum("ij,jk->ik", 2, two));
    REFUSED(CTN_ESHAPE, "operand 1 is (2,5), but has 3 labels", ctn_einsum("ij,jkl", 2, two));
    REFUSED(CTN_EARG, "label 'z' of the result is in no operand", ctn_einsum("ij,kl->z", 2, two));
    REFUSED(CTN_EARG, "label 'i' of the result is repeated", ctn_einsum("ij,kl->ii", 2, two));
    REFUSED(CTN_EARG, "has 1 operands, but got 2 tensors", ctn_einsum("ij", 2, two));
    REFUSED(CTN_EARG, "expected letters", ctn_einsum("i1,kl", 2, two));
    REFUSED(CTN_ESHAPE, "label '...'[-1] has length 3 in operand 0 and 5 in operand 1",
            ctn_einsum("i...,k...->...", 2, two));
    REFUSED(CTN_ESHAPE, "axis 1 of (4,3) and axis 1 of (2,5) have different lengths",
            ctn_tensordot(two[0], two[1], 1, axis, axis));
    REFUSED(CTN_EARG, "pad_mode",
            ctn_conv_transpose(x, x, NULL, CTN_OPT(ctn_conv_opt, .pad_mode = CTN_PAD_WRAP)));
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_einsum_is_one_product),
        cmocka_unit_test(test_padding_stays_channels_last),
        cmocka_unit_test(test_moving_places_reuse_the_plan),
        cmocka_unit_test(test_nan_and_zeros_are_sorted),
        cmocka_unit_test(test_low_precision_is_moved),
        cmocka_unit_test(test_module_pads),
        cmocka_unit_test(test_refused_calls),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
