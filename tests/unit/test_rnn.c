/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent modules and ops: parameters and their initial values, messages of wrong inputs, a
 * sequence cut in two with its state carried over, dropout between layers, kernels, gradients of
 * gradients, and a failing allocator. The values are held against PyTorch in
 * tests/golden/test_rnn.c and against a reference in tests/ops/cases_rnn.c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "nn/nn.h"

enum { T = 6, N = 3, I = 2, H = 5 };

static float x[T * N * I];

static int set_up(void **state)
{
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 1)));
    for (int i = 0; i < T * N * I; i++) x[i] = (float)sin(i);
    *state = ctx;
    return 0;
}

static int tear_down(void **state)
{
    assert_string_equal(ctn_error_message(), "");
    ctn_context_free(*state);
    return 0;
}

static void test_params(void **state)
{
    static const char *const names[] = {"weight_ih_l0",         "weight_hh_l0",
                                        "weight_hr_l0",         "weight_ih_l0_reverse",
                                        "weight_hh_l0_reverse", "weight_hr_l0_reverse",
                                        "weight_ih_l1"};
    static const int64_t dims[][2] = {{20, 2}, {20, 3}, {3, 5}, {20, 2}, {20, 3}, {3, 5}, {20, 6}};
    ctn_module *m = NULL;
    OK(ctn_lstm_new(&m, *state, I, H,
                    CTN_OPT(ctn_rnn_module_opt, .layers = 2, .bidirectional = 1, .no_bias = 1,
                            .projection = 3)));
    const ctn_vars p = ctn_params(m);
    assert_int_equal(p.n, 12);
    for (int k = 0; k < 7; k++) {
        const ctn_desc *d = ctn_var_desc(p.var[k]);
        float v[120], least = 0, most = 0;
        const float bound = 1 / sqrtf(H);
        assert_string_equal(p.name[k], names[k]);
        assert_int_equal(d->dim[0], dims[k][0]);
        assert_int_equal(d->dim[1], dims[k][1]);
        const int n = (int)(d->dim[0] * d->dim[1]);
        OK(ctn_var_get(p.var[k], v, (size_t)n * sizeof *v));
        for (int i = 0; i < n; i++) {
            least = fminf(least, v[i]);
            most = fmaxf(most, v[i]);
        }
        assert_true(least >= -bound && least < -0.5f * bound);
        assert_true(most <= bound && most > 0.5f * bound);
    }
    ctn_module_free(m);
}

static void test_refused_options(void **state)
{
    ctn_module *m = NULL;
    assert_fails(ctn_lstm_new(NULL, *state, I, H, NULL), CTN_EARG, "NULL argument");
    assert_fails(ctn_gru_new(&m, *state, 0, H, NULL), CTN_EARG, "must be positive");
    assert_fails(ctn_gru_new(&m, *state, I, H, CTN_OPT(ctn_rnn_module_opt, .projection = 2)),
                 CTN_EARG, "only an LSTM has a projection");
    assert_fails(ctn_lstm_new(&m, *state, I, H, CTN_OPT(ctn_rnn_module_opt, .projection = H)),
                 CTN_EARG, "expected less than the state of 5");
    assert_fails(ctn_rnn_new(&m, *state, I, H, CTN_OPT(ctn_rnn_module_opt, .dropout = 1)), CTN_EARG,
                 "dropout is 1");
    ctn_error_clear();
}

static void refused(ctn_module *m, ctn_tensors in, const char *part)
{
    assert_int_equal(ctn_call_multi_at(CTN_HERE, m, in).n, 0);
    assert_fails(ctn_error_status(), ctn_error_status(), part);
    ctn_error_clear();
}

static void test_refused_inputs(void **state)
{
    static const int64_t lengths[N] = {2, 7, 1};
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    float y[T * N * H];
    OK(ctn_gru_new(&m, ctx, I, H, NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(T, N, I));
    refused(m, CTN_TENSORS(ctn_reshape(in, CTN_SHAPE(T, N * I))),
            "x is (6,6), expected (steps,samples,2)");
    refused(m, CTN_TENSORS(in, in), "h0 is (6,3,2), expected (1,3,5)");
    refused(m, CTN_TENSORS(in, NULL, in), "lengths is f32 (6,3,2), expected (3) of i64 or i32");
    refused(m, CTN_TENSORS(in, NULL, NULL, in), "got 4 inputs, expected x, h0, lengths");
    ctn_tensor *len = ctn_input(ctx, lengths, CTN_I64, CTN_SHAPE(N));
    ctn_tensors out = ctn_call_multi(m, in, NULL, len);
    assert_int_equal(out.n, 2);
    assert_fails(ctn_read(out.t[0], y, sizeof y), CTN_EARG, "is 7, outside 0 to 6");
    assert_int_equal(ctn_scope_end(ctx), CTN_EARG); /* it runs what was recorded */
    ctn_error_clear();
    ctn_module_free(m);
}

static void test_refused_weights(void **state)
{
    static const float w[4 * H * H];
    ctn_context *ctx = *state;
    ctn_tensor *y = NULL;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(T, N, I));
    ctn_tensor *w_ih = ctn_input(ctx, w, CTN_F32, CTN_SHAPE(3 * H, I));
    ctn_tensor *w_hh = ctn_input(ctx, w, CTN_F32, CTN_SHAPE(4 * H, H));
    const ctn_rnn_weights weights = {.w_ih = w_ih, .w_hh = w_hh}, none = {.w_ih = w_ih};
    assert_fails(ctn_lstm(in, &weights, NULL, &y, NULL, NULL), CTN_ESHAPE,
                 "lstm: w_ih is (15,2), expected (20,2)");
    assert_fails(ctn_gru(in, &weights, NULL, &y, NULL), CTN_ESHAPE,
                 "gru: w_hh is (20,5), expected (3 H,H)");
    assert_null(y);
    ctn_error_clear();
    assert_fails(ctn_rnn(in, &none, NULL, &y, NULL), CTN_EARG, "weights are NULL");
    ctn_error_clear();
    const ctn_rnn_weights low = {.w_ih = ctn_input(ctx, w, CTN_BF16, CTN_SHAPE(H, I)),
                                 .w_hh = ctn_input(ctx, w, CTN_BF16, CTN_SHAPE(H, H))};
    assert_fails(ctn_rnn(ctn_cast(in, CTN_BF16), &low, NULL, &y, NULL), CTN_EDTYPE,
                 "rnn: input is bf16, expected f32 or f64");
    ctn_error_clear();
    OK(ctn_scope_end(ctx));
}

/* Two halves, the second with the final state of the first, give the same as the whole. */
static void test_carried_state(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    ctn_retained *h = NULL, *c = NULL;
    float whole[T][N * H], half[T][N * H];
    OK(ctn_lstm_new(&m, ctx, I, H, CTN_OPT(ctn_rnn_module_opt, .layers = 2)));
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(T, N, I))), whole, sizeof whole));
    OK(ctn_scope_end(ctx));
    for (int k = 0; k < 2; k++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *in = ctn_input(ctx, x + k * T / 2 * N * I, CTN_F32, CTN_SHAPE(T / 2, N, I));
        ctn_tensors out = ctn_call_multi(m, in, k ? ctn_retained_value(h) : NULL,
                                         k ? ctn_retained_value(c) : NULL);
        OK(ctn_retain(&h, out.t[1]));
        OK(ctn_retain(&c, out.t[2]));
        OK(ctn_read(out.t[0], half + k * T / 2, sizeof half / 2));
        OK(ctn_scope_end(ctx));
    }
    for (int t = 0; t < T; t++)
        for (int i = 0; i < N * H; i++) assert_true(fabsf(whole[t][i] - half[t][i]) < 1e-6f);
    ctn_retained_free(h);
    ctn_retained_free(c);
    ctn_module_free(m);
}

static double sum_of_y(ctn_context *ctx, ctn_module *m)
{
    OK(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(T, N, I)));
    const double s = ctn_item(ctn_sum(y, CTN_ALL_AXES, 0));
    OK(ctn_scope_end(ctx));
    return s;
}

static void test_dropout(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    OK(ctn_rnn_new(&m, ctx, I, H, CTN_OPT(ctn_rnn_module_opt, .layers = 2, .dropout = 0.5)));
    const double first = sum_of_y(ctx, m);
    assert_true(sum_of_y(ctx, m) != first); /* other elements are dropped in each step */
    ctn_context_set_training(ctx, 0);
    const double all = sum_of_y(ctx, m);
    assert_true(sum_of_y(ctx, m) == all);
    ctn_context_set_training(ctx, 1);
    ctn_module_free(m);
}

static ctn_status find_reference(void *user, const ctn_plan_node *n)
{
    int *found = user;
    found[strstr(n->kernel, "ref") != NULL]++;
    return CTN_OK;
}

static void test_kernels(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    ctn_optim *opt = NULL;
    int found[2] = {0};
    OK(ctn_lstm_new(&m, ctx, I, H, NULL));
    OK(ctn_sgd_new(&opt, ctn_params(m), NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(T, N, I)));
    OK(ctn_backward(opt, ctn_sum(ctn_square(y), CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(opt));
    OK(ctn_context_visit_plan(ctx, find_reference, found));
    OK(ctn_scope_end(ctx));
    assert_true(found[0] > 0);
    assert_int_equal(found[1], 0);
    ctn_optim_free(opt);
    ctn_module_free(m);
}

static ctn_status second_gradient(ctn_context *ctx, ctn_module *m)
{
    ctn_tensor *g = NULL, *gg = NULL;
    float v[T * N * I];
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_with_grad(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(T, N, I)));
    ctn_tensor *loss = ctn_sum(ctn_square(ctn_call(m, in)), CTN_ALL_AXES, 0);
    ctn_status st = ctn_grad(loss, 1, &in, &g);
    if (st == CTN_OK) st = ctn_grad(ctn_sum(ctn_square(g), CTN_ALL_AXES, 0), 1, &in, &gg);
    if (st == CTN_OK) st = ctn_read(gg, v, sizeof v);
    ctn_status end = ctn_scope_end(ctx);
    return st < 0 ? st : end;
}

static void test_second_gradient(void **state)
{
    ctn_module *m = NULL;
    OK(ctn_gru_new(&m, *state, I, H, NULL));
    assert_fails(second_gradient(*state, m), CTN_EGRAD, ".composed = 1");
    ctn_error_clear();
    ctn_module_free(m);
    OK(ctn_gru_new(&m, *state, I, H, CTN_OPT(ctn_rnn_module_opt, .composed = 1)));
    OK(second_gradient(*state, m));
    ctn_module_free(m);
}

static ctn_status scenario(void)
{
    static const int64_t lengths[N] = {2, 6, 1};
    ctn_status st = CTN_OK;
    ctn_context *ctx = NULL;
    ctn_module *m = NULL, *copy = NULL;
    ctn_optim *opt = NULL;
    CTN_TRY_GOTO(st, done, ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    CTN_TRY_GOTO(st, done,
                 ctn_lstm_new(&m, ctx, I, H, CTN_OPT(ctn_rnn_module_opt, .bidirectional = 1)));
    CTN_TRY_GOTO(st, done, ctn_module_copy(&copy, m));
    CTN_TRY_GOTO(st, done, ctn_sgd_new(&opt, ctn_params(copy), NULL));
    CTN_TRY_GOTO(st, done, ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(T, N, I));
    ctn_tensor *len = ctn_input(ctx, lengths, CTN_I64, CTN_SHAPE(N));
    ctn_tensors out = ctn_call_multi(copy, in, NULL, NULL, len);
    if (out.n == 0) st = ctn_error_status();
    if (st == CTN_OK) st = ctn_backward(opt, ctn_sum(out.t[0], CTN_ALL_AXES, 0));
    if (st == CTN_OK) st = ctn_optim_step(opt);
    ctn_status end = ctn_scope_end(ctx);
    if (st == CTN_OK) st = end;
done:
    ctn_optim_free(opt);
    ctn_module_free(copy);
    ctn_module_free(m);
    ctn_context_free(ctx);
    return st;
}

static void test_memory(void **state)
{
    (void)state;
    static failing_once memory;
    ctn_allocator a = {failing_once_alloc, failing_once_release, &memory};
    OK(ctn_set_allocator(&a));
    OK(scenario());
    assert_int_equal(memory.live, 0);
    const long all = memory.calls;
    for (memory.fail_at = 1; memory.fail_at <= all; memory.fail_at++) {
        ctn_error_clear();
        memory.calls = 0;
        ctn_status st = scenario();
        if (memory.live != 0)
            fail_msg("allocation %ld: %ld blocks leaked", memory.fail_at, memory.live);
        if (st < 0 && (st != CTN_ENOMEM || ctn_error_message()[0] == 0))
            fail_msg("allocation %ld: status %d, message '%s'", memory.fail_at, st,
                     ctn_error_message());
    }
    ctn_error_clear();
    OK(ctn_set_allocator(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_params, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused_options, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused_inputs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused_weights, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_carried_state, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dropout, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_kernels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_second_gradient, set_up, tear_down),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
