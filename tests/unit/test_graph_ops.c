/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops of graphs: the errors they report, NaN in a maximum, ids that are sorted only once per step,
 * and the same bits on 1 to 4 threads for segments of very different lengths.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include <catena/catena.h>

static ctn_context *ctx;
static float values[64];

static int set_up(void **state)
{
    (void)state;
    return ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2)) < 0;
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

#define EXPECT(status, text, call)                                                \
    do {                                                                          \
        assert_null(call);                                                        \
        if (ctn_error_status() != (status) || !strstr(ctn_error_message(), text)) \
            fail_msg("%s", ctn_error_message());                                  \
        ctn_error_clear();                                                        \
    } while (0)

static void test_shapes(void **state)
{
    (void)state;
    static const int64_t id[4] = {0};
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = matrix(4, 3), *four = ctn_input(ctx, id, CTN_I64, CTN_SHAPE(4));
    ctn_tensor *two = ctn_input(ctx, id, CTN_I64, CTN_SHAPE(2, 2)), *v = matrix(3, 1);
    EXPECT(CTN_ESHAPE, "index_select: axis 2", ctn_index_select(x, four, 2));
    EXPECT(CTN_ESHAPE, "index_select: index is (2,2)", ctn_index_select(x, two, 0));
    EXPECT(CTN_EDTYPE, "index_select: indices are f32", ctn_index_select(x, x, 0));
    EXPECT(CTN_ESHAPE,
           "index_add along axis 0: shapes do not match: x is (3,1), index is (4), "
           "src is (4,3)",
           ctn_index_add(v, four, x, 0));
    EXPECT(CTN_ESHAPE, "scatter along axis 0", ctn_scatter(v, two, x, 0));
    EXPECT(CTN_ESHAPE, "x is (3,1), ids are (4)", ctn_segment_sum(v, four, 2));
    EXPECT(CTN_ESHAPE, "x is (3,1), ids are (4)", ctn_segment_softmax(v, four, 2));
    EXPECT(CTN_EDTYPE, "segment_max: input is i64", ctn_segment_max(four, four, 2));
    EXPECT(CTN_ESHAPE, "number of segments is -1", ctn_segment_mean(x, four, -1));
    EXPECT(CTN_ESHAPE, "rowptr is (2,2), col is (4)", ctn_spmm(two, four, NULL, x));
    EXPECT(CTN_ESHAPE, "spmm: value is (3,1), col is (4), x is (4,3)", ctn_spmm(four, four, v, x));
    OK(ctn_scope_end(ctx));
}

static void expect_when_run(ctn_tensor *t, const char *text)
{
    static float result[64];
    assert_non_null(t);
    assert_int_equal(ctn_read(t, result, (size_t)ctn_count(t) * sizeof(float)), CTN_EARG);
    if (!strstr(ctn_error_message(), text)) fail_msg("%s", ctn_error_message());
    ctn_error_clear();
}

static void test_indices(void **state)
{
    (void)state;
    static const int64_t bad[4] = {0, 3, 1, 2}, col[4] = {0, 1, 4, 0};
    static const int64_t late[3] = {1, 2, 4}, down[4] = {0, 3, 2, 4}, good[3] = {0, 2, 4};
    static const struct {
        const int64_t *rowptr;
        int64_t n;
        const char *text;
    } rows[] = {{late, 3, "rowptr is from 1 to 4, expected 0 to 4"},
                {down, 4, "rowptr descends from 3 to 2 after row 1"},
                {good, 3, "is 4, outside 0 to 3"}};
    for (int i = 0; i < 5; i++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *x = matrix(4, 3), *ids = ctn_input(ctx, bad, CTN_I64, CTN_SHAPE(4));
        ctn_tensor *c = ctn_input(ctx, col, CTN_I64, CTN_SHAPE(4));
        if (i == 0) expect_when_run(ctn_segment_sum(x, ids, 3), "is 3, outside 0 to 2");
        if (i == 1) expect_when_run(ctn_index_select(x, c, 0), "is 4, outside 0 to 3");
        if (i >= 2)
            expect_when_run(ctn_spmm(ctn_input(ctx, rows[i - 2].rowptr, CTN_I64,
                                               CTN_SHAPE(rows[i - 2].n)),
                                     c, NULL, x),
                            rows[i - 2].text);
        (void)ctn_scope_end(ctx);
        ctn_error_clear();
    }
}

static void test_nan(void **state)
{
    (void)state;
    const float x[5] = {1, NAN, 2, -3, -INFINITY};
    const int32_t ids[5] = {0, 0, 0, 1, 3};
    float y[4];
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_segment_max(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(5)),
                                ctn_input(ctx, ids, CTN_I32, CTN_SHAPE(5)), 4),
                y, sizeof y));
    OK(ctn_scope_end(ctx));
    assert_true(isnan(y[0]) && y[1] == -3 && y[2] == 0 && y[3] == -INFINITY);
}

/* Two layers, forward and backward, sort the targets once and the sources once. */
static void test_sorted_once(void **state)
{
    (void)state;
    static char text[1 << 16];
    const int64_t source[6] = {0, 1, 2, 3, 0, 1}, target[6] = {3, 2, 1, 0, 0, 1};
    ctn_retained *kept = NULL;
    int found = 0;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_with_grad(matrix(4, 3)), *g;
    ctn_tensor *s = ctn_input(ctx, source, CTN_I64, CTN_SHAPE(6));
    ctn_tensor *t = ctn_input(ctx, target, CTN_I64, CTN_SHAPE(6));
    ctn_tensor *h = ctn_tanh(ctn_segment_sum(ctn_index_select(x, s, 0), t, 4));
    h = ctn_segment_sum(ctn_index_select(h, s, 0), t, 4);
    OK(ctn_grad(ctn_sum(ctn_square(h), CTN_ALL_AXES, 0), 1, &x, &g));
    OK(ctn_retain(&kept, g));
    OK(ctn_scope_end(ctx));
    assert_true(ctn_context_plan_text(ctx, text, sizeof text) < (int)sizeof text);
    for (const char *p = text; (p = strstr(p, " group_ids")); p++) found++;
    assert_int_equal(found, 2);
    ctn_retained_free(kept);
}

enum { E = 30000, N = 700, D = 21 };

/* Half of the rows belong to one segment. */
static void test_threads(void **state)
{
    (void)state;
    static float x[E][D], weight[E], y[4][N][D];
    static int64_t ids[E];
    for (int i = 0; i < E; i++) {
        ids[i] = rand() % 2 ? 5 : rand() % N;
        weight[i] = (float)rand() / (float)RAND_MAX;
        for (int k = 0; k < D; k++) x[i][k] = (float)rand() / (float)RAND_MAX;
    }
    for (int threads = 1; threads <= 4; threads++) {
        ctn_context *c = NULL;
        ctn_tensor *rowptr, *order;
        OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = threads)));
        OK(ctn_scope_begin(c));
        ctn_tensor *in = ctn_input(c, x, CTN_F32, CTN_SHAPE(E, D));
        ctn_tensor *id = ctn_input(c, ids, CTN_I64, CTN_SHAPE(E));
        ctn_tensor *w = ctn_input(c, weight, CTN_F32, CTN_SHAPE(E));
        OK(ctn_group_ids(id, N, &rowptr, &order));
        ctn_tensor *sum = ctn_spmm(rowptr, order, ctn_index_select(w, order, 0), in);
        sum = ctn_add(sum, ctn_segment_mean(ctn_segment_softmax(in, id, N), id, N));
        OK(ctn_read(sum, y[threads - 1], sizeof y[0]));
        OK(ctn_scope_end(c));
        ctn_context_free(c);
        assert_memory_equal(y[threads - 1], y[0], sizeof y[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),  cmocka_unit_test(test_indices),
        cmocka_unit_test(test_nan),     cmocka_unit_test(test_sorted_once),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
