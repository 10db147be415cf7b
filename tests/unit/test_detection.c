/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cases of tests/ops cannot express about the ops of detection networks: how bounds are
 * rounded, NaN, indices out of range, refused calls with their messages, and the module of
 * deformable convolution.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <catena/nn.h>
#include <catena/ops.h>
#include <catena/optim.h>

#include "support/check.h"
#include "support/ok.h"

static ctn_context *ctx;
static float values[4096];

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < 4096; i++) values[i] = (float)(i % 61);
    return ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2));
}

static int tear_down(void **state)
{
    (void)state;
    ctn_context_free(ctx);
    return 0;
}

static ctn_tensor *image(int64_t n, int64_t c, int64_t h, int64_t w)
{
    return ctn_input(ctx, values, CTN_F32, CTN_SHAPE(n, c, h, w));
}

/* ---- regions of interest --------------------------------------------------------------------- */

/* The maximum of one region of an image whose pixels are 0, 1, ... 19 in each row. */
static float last_pixel(float from, float to, int inclusive)
{
    const float roi[4] = {0, from, 2, to};
    const int64_t first = 0;
    float x[40], y;
    for (int i = 0; i < 40; i++) x[i] = (float)(i % 20);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_roi_pool(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(1, 1, 2, 20)),
                                 ctn_input(ctx, roi, CTN_F32, CTN_SHAPE(1, 4)),
                                 ctn_input(ctx, &first, CTN_I64, CTN_SHAPE(1)),
                                 CTN_OPT(ctn_roi_opt, .size = {1}, .scale = 0.5, .max = 1,
                                         .inclusive = inclusive));
    OK(ctn_read(t, &y, sizeof y));
    OK(ctn_scope_end(ctx));
    return y;
}

/* Halves are rounded away from 0, and the last pixel belongs to the region only if asked. */
static void test_rounding(void **state)
{
    (void)state;
    assert_true(last_pixel(4, 20, 0) == 9);
    assert_true(last_pixel(4, 20, 1) == 10);
    assert_true(last_pixel(4, 21, 0) == 10); /* 10.5 becomes 11 */
    assert_true(last_pixel(4, 19, 0) == 9);  /* 9.5 becomes 10 */
    assert_true(last_pixel(5, 5, 0) == 3);   /* 2.5 becomes 3, and the region one pixel */
    assert_true(last_pixel(-3, -3, 0) == 0); /* -1.5 becomes -2: outside */
    assert_true(last_pixel(60, 80, 0) == 0); /* outside */
}

static void test_nan_wins(void **state)
{
    const float roi[4] = {0, 0, 4, 4};
    const int32_t first = 0;
    float x[16] = {0}, y[4];
    (void)state;
    x[5] = NAN;
    x[10] = INFINITY;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_roi_pool(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(1, 1, 4, 4)),
                                 ctn_input(ctx, roi, CTN_F32, CTN_SHAPE(1, 4)),
                                 ctn_input(ctx, &first, CTN_I32, CTN_SHAPE(1)),
                                 CTN_OPT(ctn_roi_opt, .size = {2}, .max = 1));
    OK(ctn_read(t, y, sizeof y));
    OK(ctn_scope_end(ctx));
    assert_true(isnan(y[0]));
    assert_true(y[1] == 0 && y[2] == 0 && y[3] == INFINITY);
}

static void test_index_out_of_range(void **state)
{
    const int64_t index[3] = {0, 1, 2};
    float y[3 * 4];
    (void)state;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t =
        ctn_roi_align(image(2, 1, 5, 5), ctn_input(ctx, values, CTN_F32, CTN_SHAPE(3, 4)),
                      ctn_input(ctx, index, CTN_I64, CTN_SHAPE(3)),
                      CTN_OPT(ctn_roi_opt, .size = {2}));
    assert_fails(ctn_read(t, y, sizeof y), CTN_EARG, "roi_align");
    (void)ctn_scope_end(ctx);
    ctn_error_clear();
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

static void test_refused_regions(void **state)
{
    const int64_t index[3] = {0};
    const ctn_roi_opt *two = CTN_OPT(ctn_roi_opt, .size = {2});
    (void)state;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = image(2, 3, 5, 4), *r = ctn_input(ctx, values, CTN_F32, CTN_SHAPE(3, 4));
    ctn_tensor *i = ctn_input(ctx, index, CTN_I64, CTN_SHAPE(3));
    REFUSED(CTN_EARG, "roi_align: size is 0 x 0", ctn_roi_align(x, r, i, NULL));
    REFUSED(CTN_EARG, "roi_pool: size is 2 x -1",
            ctn_roi_pool(x, r, i, CTN_OPT(ctn_roi_opt, .size = {2, -1})));
    REFUSED(CTN_EARG, "scale is -1",
            ctn_roi_pool(x, r, i, CTN_OPT(ctn_roi_opt, .size = {2}, .scale = -1)));
    REFUSED(CTN_EARG, "sampling is -1 x -1",
            ctn_roi_align(x, r, i, CTN_OPT(ctn_roi_opt, .size = {2}, .sampling = {-1})));
    REFUSED(CTN_ESHAPE,
            "roi_pool: x is (2,3,5,4), rois is (4,3), roi_index is (3); expected (N,C,H,W), (R,4)",
            ctn_roi_pool(x, ctn_input(ctx, values, CTN_F32, CTN_SHAPE(4, 3)), i, two));
    REFUSED(CTN_EDTYPE, "roi_align: roi_index is f32", ctn_roi_align(x, r, r, two));
    REFUSED(CTN_EDTYPE, "rois is i64", ctn_roi_align(x, i, i, two));
    assert_null(ctn_roi_align(NULL, r, i, two));
    ctn_error_clear();
    OK(ctn_scope_end(ctx));
}

static void test_refused_strides(void **state)
{
    (void)state;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, values, CTN_F32, CTN_SHAPE(2, 5));
    const int64_t strides[2] = {3, 1}, huge[2] = {INT64_MAX, 1}, back[2] = {-3, 1};
    REFUSED(CTN_ESHAPE,
            "x is (2,5); shape (4,2) with strides (3,1) and offset 0 reads outside of its 10",
            ctn_as_strided(x, CTN_SHAPE(4, 2), strides, 0));
    REFUSED(CTN_ESHAPE, "reads outside", ctn_as_strided(x, CTN_SHAPE(4, 2), huge, 0));
    REFUSED(CTN_ESHAPE, "reads outside", ctn_as_strided(x, CTN_SHAPE(2, 2), back, 2));
    REFUSED(CTN_ESHAPE, "reads outside", ctn_as_strided(x, CTN_SHAPE(1, 1), strides, -1));
    REFUSED(CTN_ESHAPE, "length -1", ctn_as_strided(x, CTN_SHAPE(-1, 1), strides, 0));
    REFUSED(CTN_ESHAPE, "9 dimensions", ctn_as_strided(x, 9, strides, strides, 0));
    OK(ctn_scope_end(ctx));
}

static void test_refused_deform(void **state)
{
    (void)state;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = image(1, 2, 5, 5), *w = image(3, 2, 3, 3), *offset = image(1, 18, 3, 3);
    REFUSED(CTN_ESHAPE, "x is (1,2,5,5), offset is (1,18,3,2), the weight is (3,2,3,3)",
            ctn_deform_conv(x, image(1, 18, 3, 2), w, NULL, NULL, NULL));
    REFUSED(CTN_ESHAPE, "the weight is (3,1,3,3)",
            ctn_deform_conv(x, offset, image(3, 1, 3, 3), NULL, NULL, NULL));
    REFUSED(CTN_ESHAPE, "mask is (1,9,3,2), expected (1,9,3,3)",
            ctn_deform_conv(x, offset, w, NULL, image(1, 9, 3, 2), NULL));
    REFUSED(CTN_EARG, "groups is 2",
            ctn_deform_conv(x, offset, w, NULL, NULL, CTN_OPT(ctn_conv_opt, .groups = 2)));
    REFUSED(CTN_EARG, "at least 1",
            ctn_deform_conv(x, offset, w, NULL, NULL, CTN_OPT(ctn_conv_opt, .stride = {-1})));
    OK(ctn_scope_end(ctx));
}

/* ---- the module ------------------------------------------------------------------------------ */

/* It starts as a usual convolution, and its offsets are trained. */
static void test_module(void **state)
{
    const ctn_conv_module_opt *how =
        CTN_OPT(ctn_conv_module_opt, .stride = {2, 1}, .pad = {1}, .dilation = {1, 2});
    ctn_module *m = NULL;
    ctn_optim *sgd = NULL;
    float before[18 * 2 * 9], after[18 * 2 * 9];
    (void)state;
    OK(ctn_deform_conv_new(&m, ctx, 2, 4, CTN_SHAPE(3, 3), how));
    OK(ctn_sgd_new(&sgd, ctn_params(m), CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    OK(ctn_var_get(ctn_module_find(m, "offset_conv.weight"), before, sizeof before));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = image(2, 2, 7, 9), *y = ctn_call(m, x);
    ctn_tensor *usual =
        ctn_conv(x, ctn_use(ctn_module_find(m, "weight")), ctn_use(ctn_module_find(m, "bias")),
                 CTN_OPT(ctn_conv_opt, .stride = {2, 1}, .pad = {1}, .dilation = {1, 2}));
    ctn_tensor *apart = ctn_max(ctn_abs(ctn_sub(y, usual)), CTN_ALL_AXES, 0);
    assert_true(ctn_item(apart) < 1e-4);
    OK(ctn_backward(sgd, ctn_mean(ctn_square(y), CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(sgd));
    OK(ctn_scope_end(ctx));
    OK(ctn_var_get(ctn_module_find(m, "offset_conv.weight"), after, sizeof after));
    assert_memory_not_equal(before, after, sizeof before);
    ctn_optim_free(sgd);
    ctn_module_free(m);

    assert_fails(ctn_deform_conv_new(&m, ctx, 2, 4, CTN_SHAPE(3), NULL), CTN_EARG,
                 "kernel has 1 dimensions");
    assert_null(m);
    assert_fails(ctn_deform_conv_new(&m, ctx, 0, 4, CTN_SHAPE(3, 3), NULL), CTN_EARG, "0 inputs");
    assert_fails(ctn_deform_conv_new(&m, ctx, 2, 4, CTN_SHAPE(3, 3),
                                     CTN_OPT(ctn_conv_module_opt, .groups = 2)),
                 CTN_EARG, "groups is 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_nan_wins),
        cmocka_unit_test(test_index_out_of_range),
        cmocka_unit_test(test_refused_regions),
        cmocka_unit_test(test_refused_strides),
        cmocka_unit_test(test_refused_deform),
        cmocka_unit_test(test_module),
    };
    return cmocka_run_group_tests_name("detection", tests, set_up, tear_down);
}
