/* SPDX-License-Identifier: Apache-2.0
 *
 * What ctn_context_visit_plan reports about the kernels of a plan: order, bytes, flops, times,
 * layouts, reorders, and the reason for a reference kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "support/machine.h"
#include "support/ok.h"

typedef struct {
    int visits, reorders;
    int64_t reorder_bytes;
    const char *want; /* name of an op */
    ctn_plan_node found;
    char slow[128]; /* its reason, if it is slow */
} seen;

static ctn_status look(void *user, const ctn_plan_node *n)
{
    seen *s = user;
    assert_int_equal(n->struct_size, sizeof *n);
    assert_int_equal(n->index, s->visits++);
    if (strcmp(n->op, "reorder") == 0) {
        s->reorders++;
        s->reorder_bytes += n->bytes;
    }
    if (strcmp(n->op, s->want) != 0) return CTN_OK;
    s->found = *n;
    snprintf(s->slow, sizeof s->slow, "%s", n->slow ? n->slow : "");
    return CTN_OK;
}

static ctn_status stop(void *user, const ctn_plan_node *n)
{
    (void)n;
    ++*(int *)user;
    return CTN_END;
}

static ctn_context *context(void)
{
    ctn_context *c = NULL;
    OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = 1, .mode = CTN_MODE_PLANNED)));
    ctn_context_set_profile(c, 1);
    return c;
}

typedef struct {
    int kernels, reorders;
    int64_t reorder_bytes, arena_bytes, unshared_bytes;
} header;

/* The first line of the text of the last plan. */
static header header_of(ctn_context *c)
{
    char text[512];
    header h = {0};
    long long bytes[3];
    assert_true(ctn_context_plan_text(c, text, sizeof text) > 0);
    const int found = sscanf(text,
                             "plan %*s %d kernels for %*d ops (%*d after simplification), %*d "
                             "fused, %d reorders (%lld bytes), arena %lld bytes (%lld without",
                             &h.kernels, &h.reorders, &bytes[0], &bytes[1], &bytes[2]);
    if (found != 5) fail_msg("%s", text);
    h.reorder_bytes = bytes[0];
    h.arena_bytes = bytes[1];
    h.unshared_bytes = bytes[2];
    return h;
}

static float zeros[2 * 16 * 8 * 8];

static void an_elementwise_op(void **state)
{
    (void)state;
    ctn_context *c = context();
    seen s = {.want = "add"};
    OK(ctn_context_visit_plan(c, look, &s));
    assert_int_equal(s.visits, 0); /* nothing has run yet */
    OK(ctn_scope_begin(c));
    ctn_tensor *x = ctn_input(c, zeros, CTN_F32, CTN_SHAPE(8, 16));
    assert_non_null(ctn_data(ctn_add(x, ctn_input(c, zeros + 128, CTN_F32, CTN_SHAPE(16)))));
    OK(ctn_scope_end(c));
    OK(ctn_context_visit_plan(c, look, &s));
    /* a broadcast operand counts once */
    assert_int_equal(s.found.bytes, (8 * 16 + 16 + 8 * 16) * 4);
    assert_int_equal(s.found.flops, 0);
    assert_true(s.found.ns > 0);
    assert_int_equal(s.found.layouts, CTN_LAYOUT_ROW_MAJOR);
    assert_string_equal(s.slow, "");
    int calls = 0;
    assert_int_equal(ctn_context_visit_plan(c, stop, &calls), CTN_END);
    assert_int_equal(calls, 1);
    assert_int_equal(ctn_context_visit_plan(c, NULL, NULL), CTN_EARG);
    ctn_error_clear();
    ctn_context_free(c);
}

static void a_convolution_is_channels_last(void **state)
{
    (void)state;
    ctn_context *c = context();
    seen s = {.want = "conv"};
    OK(ctn_scope_begin(c));
    ctn_tensor *x = ctn_input(c, zeros, CTN_F32, CTN_SHAPE(2, 16, 8, 8));
    ctn_tensor *w = ctn_input(c, zeros, CTN_F32, CTN_SHAPE(4, 16, 3, 3));
    assert_non_null(ctn_data(ctn_conv(x, w, NULL, CTN_OPT(ctn_conv_opt, .pad = {1}))));
    OK(ctn_scope_end(c));
    OK(ctn_context_visit_plan(c, look, &s));
    assert_int_equal(s.found.flops, 2 * (2 * 4 * 8 * 8) * 16 * 9);
    assert_true(s.found.layouts & CTN_LAYOUT_CHANNELS_LAST);
    assert_true(s.found.reordered >= 1); /* at least the images */
    assert_true(s.reorders >= s.found.reordered);
    const header h = header_of(c);
    assert_int_equal(h.kernels, s.visits);
    assert_int_equal(h.reorders, s.reorders);
    assert_int_equal(h.reorder_bytes, s.reorder_bytes);
    ctn_context_free(c);
}

/* Results that nobody reads are not computed, and do not count. */
static void results_that_are_not_read(void **state)
{
    (void)state;
    static const int64_t t[8] = {0};
    ctn_context *c = context();
    seen s = {.want = "linear_cross_entropy"};
    ctn_context_set_grad(c, 0);
    OK(ctn_scope_begin(c));
    ctn_tensor *x = ctn_input(c, zeros, CTN_F32, CTN_SHAPE(8, 16));
    ctn_tensor *w = ctn_input(c, zeros, CTN_F32, CTN_SHAPE(10, 16));
    ctn_tensor *target = ctn_input(c, t, CTN_I64, CTN_SHAPE(8));
    OK(ctn_scope_begin(c)); /* only the loss is visible outside */
    ctn_tensor *loss = ctn_scope_return(c, ctn_linear_cross_entropy(x, w, target, NULL));
    assert_non_null(ctn_data(loss));
    OK(ctn_scope_end(c));
    OK(ctn_context_visit_plan(c, look, &s));
    assert_int_equal(s.found.bytes, (8 * 16 + 10 * 16 + 1) * 4 + 8 * 8);
    assert_int_equal(s.found.flops, 6 * 8 * 16 * 10); /* with both gradients */
    ctn_context_free(c);
}

/* Each op overwrites the result before it, of which there is no other reader. */
static void results_in_place(void **state)
{
    (void)state;
    enum { N = 10000, BYTES = N * sizeof(float) };
    ctn_context *c = NULL;
    OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = 1, .no_fuse = 1)));
    OK(ctn_scope_begin(c));
    OK(ctn_scope_begin(c)); /* only the sum is visible outside */
    ctn_tensor *y = ctn_exp(ctn_tanh(ctn_random_uniform(c, 0, 1, CTN_F32, CTN_SHAPE(N))));
    y = ctn_scope_return(c, ctn_sum(y, CTN_ALL_AXES, 0));
    assert_true(ctn_item(y) > N);
    OK(ctn_scope_end(c));
    const header h = header_of(c);
    assert_int_equal(h.kernels, 4);
    assert_true(h.arena_bytes >= BYTES && h.arena_bytes < BYTES + BYTES / 2);
    assert_true(h.unshared_bytes >= BYTES && h.unshared_bytes < BYTES + BYTES / 2);
    ctn_context_free(c);
}

static void a_slow_kernel_has_a_reason(void **state)
{
    (void)state;
    static const float x[16] = {0};
    if (!test_has_f16() || ctn__engine_trains_f16()) skip();
    ctn_context *c = context();
    seen s = {.want = "matmul"};
    OK(ctn_scope_begin(c));
    ctn_tensor *t = ctn_cast(ctn_input(c, x, CTN_F32, CTN_SHAPE(4, 4)), CTN_F16);
    const void *y = ctn_data(ctn_cast(ctn_matmul(t, t, 0, 0), CTN_F32));
    if (!y) fail_msg("%s", ctn_error_message());
    OK(ctn_scope_end(c));
    OK(ctn_context_visit_plan(c, look, &s));
    assert_non_null(strstr(s.slow, "f16"));
    ctn_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_elementwise_op),
        cmocka_unit_test(a_convolution_is_channels_last),
        cmocka_unit_test(a_slow_kernel_has_a_reason),
        cmocka_unit_test(results_that_are_not_read),
        cmocka_unit_test(results_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
