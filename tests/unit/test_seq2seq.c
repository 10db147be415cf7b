/* SPDX-License-Identifier: Apache-2.0
 *
 * The sequence-to-sequence network of the zoo: shapes, padding that does not change the result,
 * copies, gradients, a few steps of training.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "nn/nn.h"

enum { SOURCE = 6, TARGET = 4, WORDS = 9 };

/* Logits of two sequences of 6 and 3 tokens, whose padding is the given token. */
static void translate(ctn_context *ctx, ctn_module *m, int64_t padding, float *y)
{
    const int64_t p = padding, source[2][SOURCE] = {{1, 2, 3, 4, 5, 6}, {6, 5, 4, p, p, p}};
    static const int64_t target[2][TARGET] = {{0, 1, 2, 3}, {0, 3, 2, 1}}, lengths[2] = {6, 3};
    OK(ctn_scope_begin(ctx));
    const ctn_tensors out = ctn_call_multi(m, ctn_input(ctx, source, CTN_I64, CTN_SHAPE(2, SOURCE)),
                                           ctn_input(ctx, target, CTN_I64, CTN_SHAPE(2, TARGET)),
                                           ctn_input(ctx, lengths, CTN_I64, CTN_SHAPE(2)));
    const float *data = ctn_data(out.t[0]);
    if (!data) fail_msg("%s", ctn_error_message());
    assert_int_equal(ctn_ndim(out.t[0]), 3);
    assert_int_equal(ctn_dim(out.t[0], 1), TARGET);
    assert_int_equal(ctn_dim(out.t[0], 2), WORDS);
    memcpy(y, data, 2 * TARGET * WORDS * sizeof *y);
    OK(ctn_scope_end(ctx));
}

/* The second sequence without its padding gives the same logits. */
static void translate_alone(ctn_context *ctx, ctn_module *m, const float *expected)
{
    static const int64_t source[1][3] = {{6, 5, 4}}, target[1][TARGET] = {{0, 3, 2, 1}};
    OK(ctn_scope_begin(ctx));
    const float *y = ctn_data(ctn_call_multi(m, ctn_input(ctx, source, CTN_I64, CTN_SHAPE(1, 3)),
                                             ctn_input(ctx, target, CTN_I64, CTN_SHAPE(1, TARGET)))
                                  .t[0]);
    if (!y) fail_msg("%s", ctn_error_message());
    for (int i = 0; i < TARGET * WORDS; i++) assert_true(fabsf(y[i] - expected[i]) < 1e-5f);
    OK(ctn_scope_end(ctx));
}

/* Learns to reverse three tokens: every parameter has a gradient, and the loss decreases. */
static void train_reversal(ctn_context *ctx, ctn_module *m)
{
    static const int64_t source[2][3] = {{1, 2, 3}, {4, 2, 5}},
                         target[2][3] = {{0, 3, 2}, {0, 5, 2}};
    static const int64_t next[2][3] = {{3, 2, 1}, {5, 2, 4}};
    static float grad[64 * 64];
    ctn_optim *opt = NULL;
    const ctn_vars p = ctn_params(m);
    double first = 0, last = 0;
    OK(ctn_adam_new(&opt, p, CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    for (int step = 0; step < 100; step++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *y = ctn_call_multi(m, ctn_input(ctx, source, CTN_I64, CTN_SHAPE(2, 3)),
                                       ctn_input(ctx, target, CTN_I64, CTN_SHAPE(2, 3)))
                            .t[0];
        ctn_tensor *loss =
            ctn_softmax_cross_entropy(y, ctn_input(ctx, next, CTN_I64, CTN_SHAPE(2, 3)));
        OK(ctn_backward(opt, loss));
        for (int i = 0; step == 0 && i < p.n; i++) {
            const int64_t n = ctn__count(ctn_var_desc(p.var[i]));
            double norm = 0;
            OK(ctn_var_grad(p.var[i], grad, (size_t)n * sizeof *grad));
            for (int64_t k = 0; k < n; k++) norm += fabs((double)grad[k]);
            if (!(norm > 0)) fail_msg("%s has no gradient", p.name[i]);
        }
        OK(ctn_optim_step(opt));
        last = ctn_item(loss);
        if (step == 0) first = last;
        OK(ctn_scope_end(ctx));
    }
    if (!(last < 0.1 * first)) fail_msg("loss went from %g to %g", first, last);
    ctn_optim_free(opt);
}

static void test_both_kinds(void **state)
{
    ctn_context *ctx = NULL;
    (void)state;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1)));
    for (int both = 0; both < 2; both++) {
        ctn_module *m = NULL, *copy = NULL;
        float a[2 * TARGET * WORDS], b[2 * TARGET * WORDS];
        OK(ctn_zoo_seq2seq(&m, ctx,
                           CTN_OPT(ctn_seq2seq_opt, .vocabulary = 7, .target_vocabulary = WORDS,
                                   .width = 8, .hidden = 12, .layers = 2, .bidirectional = both)));
        const ctn_var *w = ctn_module_find(m, "encoder.lstm.weight_hh_l1");
        assert_int_equal(ctn_var_desc(w)->dim[0], both ? 24 : 48);
        assert_int_equal(ctn_var_desc(w)->dim[1], both ? 6 : 12);
        translate(ctx, m, 0, a);
        translate(ctx, m, 3, b);
        assert_memory_equal(a, b, sizeof a);
        translate_alone(ctx, m, a + TARGET * WORDS);
        OK(ctn_module_copy(&copy, m));
        translate(ctx, copy, 0, b);
        assert_memory_equal(a, b, sizeof a);
        ctn_module_free(copy);
        train_reversal(ctx, m);
        ctn_module_free(m);
    }
    ctn_context_free(ctx);
}

static void test_no_target(void **state)
{
    static const int64_t x[2] = {1, 2};
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    (void)state;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_zoo_seq2seq(&m, ctx, NULL));
    OK(ctn_scope_begin(ctx));
    assert_null(ctn_call(m, ctn_input(ctx, x, CTN_I64, CTN_SHAPE(1, 2))));
    assert_fails(ctn_error_status(), CTN_EARG, "no target");
    (void)ctn_scope_end(ctx);
    ctn_error_clear();
    ctn_module_free(m);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_kinds),
        cmocka_unit_test(test_no_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
