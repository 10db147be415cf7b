/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules with several inputs and results, and visits of modules: the same bits as without modules,
 * with and without recomputation, nested in both ways; inputs that are left out; errors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <catena/ops.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "nn/nn.h"

enum { N = 3, C = 4, PARAMS = 4 };

static const float input[N * C] = {0.5f, -1, 2, 0.25f, 1, 1.5f, -0.5f, 0, -2, 0.75f, 0.125f, 1};
static const float state[N * C] = {1, 0.5f, -1, 2, 0.25f, 0, 1, -0.5f, 1.5f, -1, 0.5f, 0.75f};
static const float chosen[N * C] = {1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1};

static int set_up(void **test)
{
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 1)));
    *test = ctx;
    return 0;
}

static int tear_down(void **test)
{
    assert_string_equal(ctn_error_message(), "");
    ctn_context_free(*test);
    return 0;
}

/* The ops of a cell, from two parts that are already computed: x, h or NULL, and mask or NULL. */
static ctn_tensors cell_ops(ctn_tensor *x, ctn_tensor *h, ctn_tensor *mask)
{
    ctn_tensor *y = ctn_tanh(h ? ctn_add(x, h) : x);
    if (mask) y = ctn_mul(y, mask);
    return CTN_TENSORS(y, ctn_sigmoid(y), ctn_square(y));
}

/* x (N,C), h (N,C) or left out, mask (N,C) or left out -> y, new h, penalty */
static ctn_tensors cell_forward(void *self, ctn_module *m, ctn_tensors x)
{
    (void)self;
    ctn_tensor *a = ctn_call(ctn_module_child(m, 0), x.t[0]);
    ctn_tensor *b = x.t[1] ? ctn_call(ctn_module_child(m, 1), x.t[1]) : NULL;
    return cell_ops(a, b, x.t[2]);
}

static ctn_tensor *linear_ops(ctn_module *m, const char *name, ctn_tensor *x)
{
    char weight[32], bias[32];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    return ctn_linear(x, ctn_use(ctn_module_find(m, weight)), ctn_use(ctn_module_find(m, bias)));
}

static ctn_module *new_cell(ctn_context *ctx)
{
    ctn_module *m = NULL, *part = NULL;
    OK(ctn_module_new_multi(&m, ctx, cell_forward, NULL, NULL));
    OK(ctn_linear_new(&part, ctx, C, C, NULL));
    OK(ctn_module_add(m, "a", part));
    OK(ctn_linear_new(&part, ctx, C, C, NULL));
    OK(ctn_module_add(m, "b", part));
    return m;
}

/* ---- values and gradients -------------------------------------------------------------------- */

typedef struct {
    float y[3][N * C], gw[2][C * C], gb[2][C];
    char plan[40]; /* "plan " and the hash */
} outcome;

/* Two steps of the cell and a loss that depends on all results. */
static void run(ctn_module *m, bool modules, bool masked, outcome *out)
{
    ctn_context *ctx = ctn_module_context(m);
    ctn_vars p = ctn_params(m);
    ctn_tensor *w[PARAMS], *g[PARAMS];
    memset(out, 0, sizeof *out);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, input, CTN_F32, CTN_SHAPE(N, C));
    ctn_tensor *h = ctn_input(ctx, state, CTN_F32, CTN_SHAPE(N, C));
    ctn_tensor *mask = masked ? ctn_input(ctx, chosen, CTN_F32, CTN_SHAPE(N, C)) : NULL;
    ctn_tensors y = {0};
    for (int k = 0; k < 2; k++) {
        y = modules ? ctn_call_multi(m, x, h, mask)
                    : cell_ops(linear_ops(m, "a", x), linear_ops(m, "b", h), mask);
        assert_int_equal(y.n, 3);
        for (int i = 3; i < CTN_MAX_TENSORS; i++) assert_null(y.t[i]);
        x = y.t[0];
        h = y.t[1];
    }
    ctn_tensor *loss = ctn_sum(ctn_add(ctn_mul(y.t[0], y.t[1]), y.t[2]), CTN_ALL_AXES, 0);
    for (int i = 0; i < PARAMS; i++) w[i] = ctn_use(p.var[i]);
    OK(ctn_grad(loss, PARAMS, w, g));
    for (int i = 0; i < 3; i++) OK(ctn_read(y.t[i], out->y[i], sizeof out->y[i]));
    assert_true(ctn_context_plan_text(ctx, out->plan, 38) > 0);
    for (int i = 0; i < 2; i++) {
        OK(ctn_read(g[2 * i], out->gw[i], sizeof out->gw[i]));
        OK(ctn_read(g[2 * i + 1], out->gb[i], sizeof out->gb[i]));
    }
    OK(ctn_scope_end(ctx));
}

static void assert_same(const outcome *a, const outcome *b)
{
    assert_memory_equal(a->y, b->y, sizeof a->y);
    assert_memory_equal(a->gw, b->gw, sizeof a->gw);
    assert_memory_equal(a->gb, b->gb, sizeof a->gb);
}

static void same_as_ops(void **test)
{
    (void)test;
    for (int k = 0; k < 4; k++) {
        ctn_context *ctx = NULL;
        OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 1,
                                         .mode = k / 2 ? CTN_MODE_EAGER : CTN_MODE_PLANNED)));
        ctn_module *m = new_cell(ctx);
        outcome plain, called, again;
        run(m, false, k % 2, &plain);
        assert_true(plain.gw[0][0] != 0 && plain.gw[1][0] != 0);
        run(m, true, k % 2, &called);
        assert_same(&called, &plain);
        OK(ctn_module_set_recompute(m, 1));
        run(m, true, k % 2, &again);
        assert_same(&again, &plain);
        if (k < 2) assert_string_not_equal(called.plan, again.plan);
        ctn_module_free(m);
        ctn_context_free(ctx);
    }
}

/* One module with one input inside of one with several, and the reverse. */
static ctn_tensor *outer_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    (void)self;
    return ctn_call_multi(ctn_module_child(m, 0), x, x).t[1];
}

static ctn_tensor *outer_ops(ctn_module *outer, ctn_tensor *x)
{
    ctn_module *cell = ctn_module_child(outer, 0);
    return cell_ops(linear_ops(cell, "a", x), linear_ops(cell, "b", x), NULL).t[1];
}

static void nested(void **test)
{
    ctn_context *ctx = *test;
    ctn_module *outer = NULL, *seq = NULL, *part[2] = {NULL, NULL};
    float a[N * C], b[N * C];
    OK(ctn_module_new(&outer, ctx, outer_forward, NULL, NULL));
    OK(ctn_module_add(outer, "cell", new_cell(ctx)));
    part[0] = new_cell(ctx); /* called with one input; the first result goes on */
    OK(ctn_activation_new(&part[1], ctx, ctn_relu_at));
    OK(ctn_sequential_new(&seq, ctx, 2, part));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, input, CTN_F32, CTN_SHAPE(N, C));
    OK(ctn_read(ctn_call(outer, x), a, sizeof a));
    OK(ctn_read(outer_ops(outer, x), b, sizeof b));
    assert_memory_equal(a, b, sizeof a);
    OK(ctn_read(ctn_call(seq, x), a, sizeof a));
    OK(ctn_read(ctn_relu(cell_ops(linear_ops(seq, "0.a", x), NULL, NULL).t[0]), b, sizeof b));
    assert_memory_equal(a, b, sizeof a);
    ctn_tensors one = ctn_call_multi(part[1], x);
    assert_int_equal(one.n, 1);
    OK(ctn_read(one.t[0], a, sizeof a));
    assert_true(a[0] == 0.5f && a[1] == 0);
    OK(ctn_scope_end(ctx));
    ctn_module_free(outer);
    ctn_module_free(seq);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static ctn_tensors make_list(void *self, ctn_module *m, ctn_tensors x)
{
    (void)m;
    ctn_tensors y = *(ctn_tensors *)self;
    for (int i = 0; i < CTN_MAX_TENSORS; i++)
        if (y.t[i]) y.t[i] = x.t[0]; /* any pointer stands for a result */
    return y;
}

static void assert_none(ctn_tensors y, ctn_status want, const char *part)
{
    assert_int_equal(y.n, 0);
    assert_null(y.t[0]);
    assert_fails(ctn_error_status(), want, part);
}

static void wrong_inputs(void **test)
{
    ctn_context *ctx = *test, *other = NULL;
    ctn_module *m = new_cell(ctx), *list = NULL;
    ctn_tensors many = {.n = 9};
    float y[N * C];
    OK(ctn_context_new(&other, NULL));
    OK(ctn_module_list_new(&list, ctx, 0, NULL));
    OK(ctn_scope_begin(other));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, input, CTN_F32, CTN_SHAPE(N, C));
    ctn_tensor *far = ctn_input(other, input, CTN_F32, CTN_SHAPE(N, C));
    many.t[0] = x;
    assert_none(ctn_call_multi(m, NULL, x), CTN_EARG, "no input (");
    assert_none(ctn_call_multi(NULL, x), CTN_EARG, "no module (");
    assert_none(ctn_call_multi_at(CTN_HERE, m, (ctn_tensors){0}), CTN_EARG, "no input (");
    assert_none(ctn_call_multi_at(CTN_HERE, m, many), CTN_EARG, "got 9 inputs, expected 1 to 8");
    assert_none(ctn_call_multi(m, x, far), CTN_EARG, "input 1 belong to different contexts");
    assert_none(ctn_call_multi(ctn_module_child(m, 1), x, x), CTN_EARG,
                "b got 2 inputs, expected 1 (");
    assert_none(ctn_call_multi(list, x), CTN_EARG, "no forward function");
    assert_none(ctn_call_multi(m, ctn_reshape(x, CTN_SHAPE(C, N)), x), CTN_ESHAPE, "linear: ");
    /* NULL is left out, unless an op failed to make it. */
    assert_none(ctn_call_multi(m, x, ctn_matmul(x, x, 0, 0)), CTN_ESHAPE, "matmul");
    assert_int_equal(ctx->level, 1);
    OK(ctn_read(ctn_call_multi(m, x, NULL).t[2], y, sizeof y));
    OK(ctn_scope_end(ctx));
    assert_none(ctn_call_multi(m, x), CTN_ESTATE, "no scope is open");
    OK(ctn_scope_end(other));
    ctn_module_free(list);
    ctn_module_free(m);
    ctn_context_free(other);
}

static void wrong_results(void **test)
{
    ctn_context *ctx = *test;
    ctn_module *m = NULL;
    ctn_tensors y = {0};
    OK(ctn_module_new_multi(&m, ctx, make_list, &y, NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, input, CTN_F32, CTN_SHAPE(N, C));
    assert_none(ctn_call_multi(m, x), CTN_EARG, "forward of module returned NULL without an error");
    y = CTN_TENSORS(x, NULL, x);
    assert_none(ctn_call_multi(m, x), CTN_EARG, "forward of module returned NULL without an error");
    y.n = 9;
    assert_none(ctn_call_multi(m, x), CTN_EARG, "returned 9 results, expected 1 to 8");
    y.n = -1;
    assert_none(ctn_call_multi(m, x), CTN_EARG, "returned -1 results");
    y = CTN_TENSORS(x, x, x, x, x, x, x, x);
    assert_int_equal(ctn_call_multi(m, x, NULL).n, 8);
    y.n = 2; /* what follows is not a result */
    assert_null(ctn_call_multi(m, x).t[2]);
    assert_ptr_equal(ctn_call(m, x), x);
    assert_int_equal(ctx->level, 1);
    OK(ctn_scope_end(ctx));
    ctn_module_free(m);
}

static void several_escape(void **test)
{
    ctn_context *ctx = *test;
    float y[N * C];
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, input, CTN_F32, CTN_SHAPE(N, C));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *inside = ctn_relu(x), *out[] = {ctn_square(inside), NULL, ctn_tanh(inside), x};
    OK(ctn_scope_return_n(ctx, 4, out));
    assert_int_equal(ctx->level, 1);
    assert_fails(ctn_read(inside, y, sizeof y), CTN_EGONE, "inner scope");
    OK(ctn_read(out[0], y, sizeof y));
    OK(ctn_read(out[2], y, sizeof y));
    OK(ctn_read(x, y, sizeof y));
    OK(ctn_scope_begin(ctx));
    inside = ctn_relu(x);
    OK(ctn_scope_return_n(ctx, 0, NULL));
    assert_fails(ctn_read(inside, y, sizeof y), CTN_EGONE, "inner scope");
    for (int n = -1; n < 2; n += 2) {
        OK(ctn_scope_begin(ctx));
        assert_fails(ctn_scope_return_n(ctx, n, NULL), CTN_EARG,
                     n < 0 ? "-1 tensors" : "1 tensors");
        assert_int_equal(ctx->level, 1);
    }
    assert_fails(ctn_scope_return_n(ctx, 4, out), CTN_ESTATE, "no inner scope");
    OK(ctn_scope_end(ctx));
    assert_fails(ctn_scope_return_n(ctx, 4, out), CTN_ESTATE, "no scope");
}

/* ---- visits ---------------------------------------------------------------------------------- */

typedef struct {
    char names[256];
    const char *stop;
    ctn_module *found;
} seen;

static ctn_status see(void *user, const char *name, ctn_module *m)
{
    seen *s = user;
    strcat(strcat(s->names, name), " ");
    s->found = m;
    return s->stop && strcmp(s->stop, name) == 0 ? CTN_END : CTN_OK;
}

static void visit(void **test)
{
    ctn_context *ctx = *test;
    ctn_module *net = NULL, *part[2] = {new_cell(ctx), new_cell(ctx)};
    seen s = {0};
    OK(ctn_sequential_new(&net, ctx, 2, part));
    OK(ctn_module_visit_modules(net, see, &s));
    assert_string_equal(s.names, " 0 0.a 0.b 1 1.a 1.b ");
    s = (seen){.stop = "0.b"};
    assert_int_equal(ctn_module_visit_modules(net, see, &s), CTN_END);
    assert_string_equal(s.names, " 0 0.a 0.b ");
    assert_ptr_equal(s.found, ctn_module_child(part[0], 1));
    s = (seen){0};
    OK(ctn_module_visit_modules(part[1], see, &s));
    assert_string_equal(s.names, " a b ");
    assert_fails(ctn_module_visit_modules(NULL, see, &s), CTN_EARG, "needs a module");
    assert_fails(ctn_module_visit_modules(net, NULL, &s), CTN_EARG, "and a function");
    ctn_module_free(net);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_ops), CASE(nested),         CASE(wrong_inputs),
        CASE(wrong_results),           CASE(several_escape), CASE(visit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
