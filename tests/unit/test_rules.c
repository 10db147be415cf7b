/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbered rules of the core (ARCHITECTURE.md), one test or more each, named by the rule.
 * Labels: threads
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <catena/log.h>
#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "ops/ops.h"
#include "plan/plan.h"
#include "support/ok.h"

#if defined(__SANITIZE_THREAD__)
enum { THREADS = 1 }; /* the barriers of libgomp are invisible to the thread sanitizer */
#else
enum { THREADS = 2 };
#endif

static ctn_context *ctx;

static ctn_context *context(ctn_mode mode, int no_fuse)
{
    ctn_context *c;
    OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = THREADS, .seed = 7, .mode = mode,
                                   .no_fuse = no_fuse)));
    return c;
}

static int setup(void **state)
{
    (void)state;
    ctn_error_clear();
    ctx = context(CTN_MODE_PLANNED, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ctn_context_free(ctx);
    return 0;
}

static ctn_var *variable(ctn_context *c, const char *name, ctn_var_kind kind, int n,
                         const float *values)
{
    ctn_var *v;
    OK(ctn_var_new(&v, c, name, kind, CTN_F32, CTN_SHAPE(n)));
    if (values) OK(ctn_var_set(v, values, (size_t)n * sizeof(float)));
    return v;
}

static float first(ctn_var *v)
{
    float x[64];
    OK(ctn_var_get(v, x, (size_t)ctn_var_desc(v)->dim[0] * sizeof(float)));
    return x[0];
}

static ctn_plan_stats stats(void)
{
    ctn_plan_stats s;
    ctn_context_get_stats(ctx, &s);
    return s;
}

static ctn_optim *sgd(ctn_var *v, double lr)
{
    ctn_optim *o;
    OK(ctn_sgd_new(&o, (ctn_vars){1, &v, NULL}, CTN_OPT(ctn_sgd_opt, .lr = lr)));
    return o;
}

static ctn_tensor *square_sum(ctn_tensor *x)
{
    return ctn_sum(ctn_mul(x, x), CTN_ALL_AXES, 0);
}

/* ---- effects and versions ------------------------------------------------------------------- */

static void rule_1_effects_run_once_in_order(void **state)
{
    (void)state;
    ctn_var *a = variable(ctx, "a", CTN_STATE, 1, (float[]){1}),
            *b = variable(ctx, "b", CTN_STATE, 1, NULL);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *one = ctn_full(ctx, 1, CTN_F32, CTN_SHAPE(1));
    OK(ctn_assign(a, ctn_add(ctn_use(a), one)));        /* a = 2 */
    OK(ctn_assign(b, ctn_add(ctn_use(a), ctn_use(a)))); /* b = 4, sees the new a */
    OK(ctn_assign(a, ctn_add(ctn_use(a), ctn_use(b)))); /* a = 6 */
    ctn_tensor *dead = ctn_relu(one);
    (void)dead;
    OK(ctn_scope_end(ctx)); /* the end of the outermost scope runs them */
    assert_float_equal(first(a), 6, 0);
    assert_float_equal(first(b), 4, 0);
    OK(ctn_scope_begin(ctx)); /* swap: both read the old values */
    ctn_tensor *ta = ctn_use(a), *tb = ctn_use(b);
    OK(ctn_assign(a, tb));
    OK(ctn_assign(b, ta));
    OK(ctn_scope_end(ctx));
    assert_float_equal(first(a), 4, 0);
    assert_float_equal(first(b), 6, 0);
    OK(ctn_scope_begin(ctx)); /* nothing but dead code: nothing runs */
    uint64_t runs = stats().runs;
    ctn_relu(ctn_full(ctx, 1, CTN_F32, CTN_SHAPE(1)));
    OK(ctn_scope_end(ctx));
    assert_int_equal(stats().runs, runs);
    ctn_var_free(a);
    ctn_var_free(b);
}

static void rule_2_versions(void **state)
{
    (void)state;
    ctn_var *w = variable(ctx, "w", CTN_PARAM, 1, (float[]){3});
    ctn_optim *o = sgd(w, 0.5);
    OK(ctn_scope_begin(ctx));                    /* update, then forward in one scope */
    OK(ctn_backward(o, square_sum(ctn_use(w)))); /* gradient 6, w = 3 - 0.5*6 = 0 */
    OK(ctn_optim_step(o));
    ctn_tensor *y = ctn_add(ctn_use(w), ctn_full(ctx, 1, CTN_F32, CTN_SHAPE(1)));
    assert_float_equal(ctn_item(y), 1, 1e-6);
    OK(ctn_scope_end(ctx));
    float three = 3;
    OK(ctn_var_set(w, &three, sizeof three));
    /* Backward through a graph that saved w, after w was changed, is an error that names both
     * lines. */
    OK(ctn_scope_begin(ctx));
    ctn_tensor *loss = ctn_keep_graph(square_sum(ctn_use(w)));
    OK(ctn_backward(o, square_sum(ctn_use(w))));
    OK(ctn_optim_step(o));
    OK(ctn_backward(o, loss));
    assert_int_equal(ctn_optim_step(o), CTN_EGONE);
    assert_non_null(strstr(ctn_error_message(), "w as it was at"));
    assert_non_null(strstr(ctn_error_message(), "changed at"));
    ctn_error_clear();
    ctn_scope_end(ctx);
    ctn_error_clear();
    /* A value set by the user in mid-scope is seen by later reads only. */
    OK(ctn_scope_begin(ctx));
    ctn_tensor *before = ctn_mul(ctn_use(w), ctn_use(w));
    OK(ctn_var_set(w, &three, sizeof three));
    ctn_tensor *after = ctn_mul(ctn_use(w), ctn_use(w));
    assert_float_equal(ctn_item(before), 0, 1e-6);
    assert_float_equal(ctn_item(after), 9, 1e-6);
    OK(ctn_scope_end(ctx));
    ctn_optim_free(o);
    ctn_var_free(w);
}

static void check_rule_3(ctn_mode mode)
{
    ctn_context *c = context(mode, 0);
    ctn_var *w = variable(c, "w", CTN_PARAM, 1, (float[]){3});
    ctn_optim *o = sgd(w, 0.5);
    OK(ctn_scope_begin(c));
    ctn_tensor *y = ctn_mul(ctn_use(w), ctn_use(w)), *kept = ctn_keep(ctn_relu(y));
    ctn_tensor *loss = ctn_sum(y, CTN_ALL_AXES, 0);
    OK(ctn_backward(o, loss));
    OK(ctn_optim_step(o));
    assert_float_equal(ctn_item(loss), 9, 0); /* the loss and kept tensors are outputs */
    assert_float_equal(ctn_item(kept), 9, 0);
    assert_true(isnan(ctn_item(y)));
    assert_int_equal(ctn_error_status(), CTN_EGONE);
    assert_non_null(strstr(ctn_error_message(), "keep it before the step"));
    ctn_error_clear();
    assert_null(ctn_relu(y)); /* and it cannot be used */
    assert_int_equal(ctn_error_status(), CTN_EGONE);
    ctn_error_clear();
    OK(ctn_scope_end(c));
    ctn_optim_free(o);
    ctn_var_free(w);
    ctn_context_free(c);
}

static void rule_3_gone_after_the_step(void **state)
{
    (void)state;
    check_rule_3(CTN_MODE_PLANNED);
    check_rule_3(CTN_MODE_EAGER);
}

static void rule_4_contributions(void **state)
{
    (void)state;
    ctn_var *w = variable(ctx, "w", CTN_PARAM, 1, (float[]){1}),
            *u = variable(ctx, "u", CTN_PARAM, 1, (float[]){2});
    ctn_optim *o = sgd(w, 1), *p = sgd(u, 1), *bad = NULL;
    /* A parameter belongs to one optimizer. */
    assert_int_equal(ctn_sgd_new(&bad, (ctn_vars){1, &w, NULL}, NULL), CTN_ESTATE);
    ctn_error_clear();
    OK(ctn_scope_begin(ctx));
    assert_int_equal(ctn_optim_step(o), CTN_ESTATE); /* a step without a contribution */
    ctn_error_clear();
    ctn_tensor *loss = ctn_sum(ctn_mul(ctn_use(w), ctn_use(u)), CTN_ALL_AXES, 0);
    OK(ctn_backward(o, loss));                                 /* dw = u = 2, du is not touched */
    OK(ctn_backward(o, ctn_sum(ctn_use(w), CTN_ALL_AXES, 0))); /* dw = 1: adds up to 3 */
    float g;
    OK(ctn_var_grad(w, &g, sizeof g));
    assert_float_equal(g, 3, 0);
    assert_int_equal(ctn_var_grad(u, &g, sizeof g), CTN_ESTATE);
    ctn_error_clear();
    OK(ctn_optim_step(o));
    assert_int_equal(ctn_optim_step(o), CTN_ESTATE); /* consumed and cleared */
    ctn_error_clear();
    OK(ctn_scope_end(ctx));
    assert_float_equal(first(w), -2, 0);
    assert_float_equal(first(u), 2, 0);
    OK(ctn_scope_begin(ctx)); /* contributions of several scopes add up too */
    OK(ctn_backward(o, ctn_sum(ctn_use(w), CTN_ALL_AXES, 0)));
    OK(ctn_scope_end(ctx));
    OK(ctn_scope_begin(ctx));
    OK(ctn_backward(o, ctn_sum(ctn_use(w), CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
    assert_float_equal(first(w), -4, 0);
    ctn_optim_free(o);
    ctn_optim_free(p);
    ctn_var_free(w);
    ctn_var_free(u);
}

static void rule_4_tied_parameter(void **state)
{
    (void)state;
    ctn_var *w = variable(ctx, "w", CTN_PARAM, 1, (float[]){3}), *both[2] = {w, w};
    ctn_optim *o;
    OK(ctn_sgd_new(&o, (ctn_vars){2, both, (const char *const[]){"in", "out"}},
                   CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    OK(ctn_scope_begin(ctx));
    OK(ctn_backward(o, square_sum(ctn_use(w))));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
    assert_float_equal(first(w), 2.4f, 1e-6);
    ctn_optim_free(o);
    ctn_var_free(w);
}

static void rule_4_grad_of_grad(void **state)
{
    (void)state;
    float v = 2;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_with_grad(ctn_input(ctx, &v, CTN_F32, CTN_SHAPE(1))), *g, *gg, *ggg;
    ctn_tensor *x2 = ctn_mul(x, x), *y = ctn_mul(x2, x2); /* x^4: 4x^3 = 32, 12x^2 = 48, 24x = 48 */
    OK(ctn_grad(y, 1, &x, &g));
    OK(ctn_grad(g, 1, &x, &gg));
    OK(ctn_grad(gg, 1, &x, &ggg));
    assert_float_equal(ctn_item(g), 32, 1e-4);
    assert_float_equal(ctn_item(gg), 48, 1e-4);
    assert_float_equal(ctn_item(ggg), 48, 1e-4);
    OK(ctn_scope_end(ctx));
}

static void rule_5_read_in_mid_step(void **state)
{
    (void)state;
    ctn_var *w = variable(ctx, "w", CTN_PARAM, 1, (float[]){2});
    ctn_optim *o = sgd(w, 0.25);
    for (int step = 0; step < 3; step++) {
        float two = 2;
        OK(ctn_var_set(w, &two, sizeof two));
        OK(ctn_scope_begin(ctx));
        ctn_tensor *h = ctn_mul(ctn_use(w), ctn_use(w)); /* 4 */
        double seen = ctn_item(h);                       /* flushes */
        assert_float_equal(seen, 4, 0);
        if (seen > 0) h = ctn_mul(h, ctn_use(w)); /* w^3, gradient 3 w^2 = 12 */
        OK(ctn_backward(o, ctn_sum(h, CTN_ALL_AXES, 0)));
        OK(ctn_optim_step(o));
        OK(ctn_scope_end(ctx));
        assert_float_equal(first(w), 2 - 0.25 * 12, 1e-6);
    }
    assert_int_equal(stats().misses, 2); /* one plan up to the read, one after it */
    OK(ctn_scope_begin(ctx));            /* only the result leaves an inner scope */
    ctn_tensor *x = ctn_full(ctx, 3, CTN_F32, CTN_SHAPE(1));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *hidden = ctn_mul(x, x), *result = ctn_scope_return(ctx, ctn_relu(hidden));
    assert_float_equal(ctn_item(result), 9, 0);
    assert_true(isnan(ctn_item(hidden)));
    assert_int_equal(ctn_error_status(), CTN_EGONE);
    ctn_error_clear();
    OK(ctn_scope_end(ctx));
    ctn_optim_free(o);
    ctn_var_free(w);
}

static void rule_6_retained(void **state)
{
    (void)state;
    ctn_retained *r = NULL;
    float one = 1;
    for (int i = 0; i < 5; i++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *x = ctn_input(ctx, &one, CTN_F32, CTN_SHAPE(1));
        if (i > 0) x = ctn_add(ctn_retained_value(r), x);
        OK(ctn_retain(&r, x));
        OK(ctn_scope_end(ctx));
    }
    OK(ctn_scope_begin(ctx));
    ctn_tensor *v = ctn_retained_value(r), *g;
    assert_float_equal(ctn_item(v), 5, 0);
    assert_int_equal(ctn_grad(ctn_mul(v, v), 1, &v, &g), CTN_EGRAD); /* detached */
    ctn_error_clear();
    OK(ctn_scope_end(ctx));
    ctn_retained_free(r);
}

static void rule_7_borrowed_inputs(void **state)
{
    (void)state;
    float x[6] = {1, 2, 3, 4, 5, 6};
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(6)), *s = ctn_sum(t, CTN_ALL_AXES, 0);
    x[0] = 10; /* read when the plan runs; no copy was made */
    assert_float_equal(ctn_item(s), 30, 0);
    /* The column-major memory of a (2,3) matrix, without a copy. */
    ctn_tensor *m =
        ctn_input_strided(ctx, x, CTN_F32, 2, (const int64_t[]){2, 3}, (const int64_t[]){1, 2});
    ctn_tensor *p = ctn_matmul(m, m, 0, 1);
    float want[4] = {10 * 10 + 9 + 25, 10 * 2 + 12 + 30, 10 * 2 + 12 + 30, 4 + 16 + 36}, got[4];
    OK(ctn_read(p, got, sizeof got));
    assert_memory_equal(got, want, sizeof got);
    /* Zero rows are valid. */
    ctn_tensor *none = ctn_input(ctx, NULL, CTN_F32, CTN_SHAPE(0, 6));
    OK(ctn_read(none, got, 0));
    ctn_tensor *w = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(1, 6));
    ctn_tensor *y = ctn_relu(ctn_linear(none, w, NULL));
    assert_int_equal(ctn_count(y), 0);
    assert_non_null(ctn_data(y));
    assert_float_equal(ctn_item(ctn_sum(y, CTN_ALL_AXES, 0)), 0, 0);
    OK(ctn_scope_end(ctx));
}

/* ---- hash and plans ------------------------------------------------------------------------- */

static int warnings;
static char warning[512];
static void on_warning(void *user, const char *message)
{
    (void)user;
    warnings++;
    snprintf(warning, sizeof warning, "%s", message);
}

static void rule_8_what_is_hashed(void **state)
{
    (void)state;
    float x[100] = {1};
    for (int i = 0; i < 10; i++) { /* values do not make new plans */
        OK(ctn_scope_begin(ctx));
        x[0] = (float)i;
        ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(4));
        ctn_tensor *y = ctn_add(t, ctn_full(ctx, i, CTN_F32, CTN_SHAPE(4)));
        assert_float_equal(((const float *)ctn_data(y))[0], (float)(2 * i), 0);
        OK(ctn_scope_end(ctx));
    }
    assert_int_equal(stats().misses, 1);
    ctn_set_log(on_warning, NULL);
    warnings = 0;
    for (int i = 0; i < 40; i++) { /* shapes do, and a series of them is reported once, by name */
        OK(ctn_scope_begin(ctx));
        assert_non_null(ctn_data(ctn_relu(ctn_input(ctx, x, CTN_F32, CTN_SHAPE((int64_t)i + 1)))));
        OK(ctn_scope_end(ctx));
    }
    ctn_set_log(NULL, NULL);
    assert_int_equal(stats().misses, 41);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, "dimension 0 of input 0"));
    ctn_var *w = variable(ctx, "w", CTN_PARAM, 4, NULL);
    uint64_t misses = stats().misses;
    for (int i = 0; i < 4; i++) { /* so do the trainable flag and gradient mode */
        ctn_var_set_trainable(w, i & 1);
        ctn_context_set_grad(ctx, i & 2);
        OK(ctn_scope_begin(ctx));
        assert_non_null(ctn_data(ctn_mul(ctn_use(w), ctn_use(w))));
        OK(ctn_scope_end(ctx));
    }
    /* A frozen parameter makes the same plan with and without gradient mode. */
    assert_int_equal(stats().misses - misses, 3);
    ctn_context_set_grad(ctx, 1);
    ctn_var_free(w);
}

/* Each input of an op is hashed: one of up to five is another tensor, or none. */
static void rule_8_every_input_is_hashed(void **state)
{
    (void)state;
    static const float x[2] = {1, 2};
    for (int n = 2; n <= 5; n++) {
        for (int other = 0; other <= n; other++) {
            ctn_tensor *t[2], *in[5];
            float y[5];
            OK(ctn_scope_begin(ctx));
            for (int i = 0; i < 2; i++) t[i] = ctn_input(ctx, &x[i], CTN_F32, CTN_SHAPE(1));
            for (int i = 0; i < n; i++) in[i] = t[i == other];
            OK(ctn_read(ctn_concat(n, in, 0), y, (size_t)n * sizeof *y));
            for (int i = 0; i < n; i++) assert_float_equal(y[i], x[i == other], 0);
            OK(ctn_scope_end(ctx));
        }
    }
    assert_int_equal(stats().misses, 3 + 4 + 5 + 6);
}

static void rule_9_one_arena(void **state)
{
    (void)state;
    static float x[4096];
    int64_t largest = 0;
    for (int i = 1; i <= 300; i++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(i, 8));
        OK(ctn_scope_begin(ctx));
        ctn_tensor *y =
            ctn_scope_return(ctx, ctn_sum(ctn_mul(ctn_relu(ctn_add(t, t)), t), CTN_ALL_AXES, 0));
        assert_true(ctn_item(y) == 0);
        OK(ctn_scope_end(ctx));
        int64_t one = (int64_t)((ctn__planner *)ctx->planner)->last->arena_bytes;
        if (one > largest) largest = one;
    }
    assert_int_equal(stats().plans, 300);
    assert_int_equal(stats().arena_bytes, largest);
}

/* Six steps of a small net. `look` adds an evaluation with another shape, a miss, after the
 * third. The text is that of the last training plan. */
static void planned_training(ctn_context *c, bool look, float *w, char *text, size_t n)
{
    static float x[8 * 32], start[32 * 32];
    for (int i = 0; i < 8 * 32; i++) x[i] = (float)(i * 37 % 101) / 101;
    for (int i = 0; i < 32 * 32; i++) start[i] = (float)(i * 53 % 97 - 48) / 97;
    ctn_var *v;
    OK(ctn_var_new(&v, c, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(32, 32)));
    OK(ctn_var_set(v, start, sizeof start));
    ctn_optim *o = sgd(v, 0.01);
    for (int step = 0; step < 6; step++) {
        OK(ctn_scope_begin(c));
        ctn_tensor *t = ctn_input(c, x, CTN_F32, CTN_SHAPE(8, 32));
        ctn_tensor *h = ctn_relu(ctn_linear(t, ctn_use(v), NULL));
        OK(ctn_backward(o, square_sum(ctn_linear(ctn_tanh(h), ctn_use(v), NULL))));
        OK(ctn_optim_step(o));
        OK(ctn_scope_end(c));
        assert_true(ctn_context_plan_text(c, text, n) < (int)n);
        if (step != 2 || !look) continue;
        OK(ctn_scope_begin(c));
        t = ctn_input(c, x, CTN_F32, CTN_SHAPE(3, 32));
        assert_non_null(ctn_data(ctn_relu(ctn_linear(t, ctn_use(v), NULL))));
        OK(ctn_scope_end(c));
    }
    OK(ctn_var_get(v, w, sizeof start));
    ctn_optim_free(o);
    ctn_var_free(v);
}

static void rule_10_planning_is_a_pure_function(void **state)
{
    (void)state;
    static float w[3][32 * 32];
    static char text[3][16384];
    for (int i = 0; i < 3; i++) {
        ctn_context *c = context(CTN_MODE_PLANNED, 0);
        planned_training(c, i == 2, w[i], text[i], sizeof text[i]);
        ctn_context_free(c);
    }
    /* The text contains the whole plan: key, order, kernels, layouts and offsets. */
    assert_string_equal(text[0], text[1]);
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    assert_string_equal(text[0], text[2]); /* a miss in mid-run changes nothing either */
    assert_memory_equal(w[0], w[2], sizeof w[0]);
}

static void rule_11_order_of_derivatives(void **state)
{
    (void)state;
    float x[6] = {1, 2, 3, 4, 5, 6};
    int64_t c[2] = {0, 2};
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_with_grad(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 3))), *g, *gg;
    ctn_tensor *classes = ctn_input(ctx, c, CTN_I64, CTN_SHAPE(2));
    OK(ctn_grad(ctn_softmax_cross_entropy(t, classes), 1, &t, &g));
    OK(ctn_grad(ctn_sum(ctn_square(g), CTN_ALL_AXES, 0), 1, &t, &gg)); /* second order */
    assert_non_null(ctn_data(gg));
    OK(ctn_grad(ctn_softmax_cross_entropy(t, t), 1, &t, &g)); /* targets have no gradient */
    assert_null(ctn_data(g));
    assert_int_equal(ctn_error_status(), CTN_EGRAD);
    assert_non_null(strstr(ctn_error_message(), "softmax_cross_entropy"));
    ctn_error_clear();
    ctn_scope_end(ctx);
    ctn_error_clear();
}

static int fused_nodes(const ctn_context *c)
{
    return ((const ctn__planner *)c->planner)->last->fused;
}

enum { LONG = 100003 };

static void chain(ctn_context *c, const float *x, float *y, float *gx)
{
    OK(ctn_scope_begin(c));
    ctn_tensor *t = ctn_with_grad(ctn_input(c, x, CTN_F32, CTN_SHAPE(LONG))), *g;
    ctn_tensor *h = ctn_add(ctn_scale(ctn_relu(t), 1.7), ctn_number(c, 0.3));
    h = ctn_shift(ctn_mul(ctn_tanh(h), t), -0.2);
    OK(ctn_grad(ctn_sum(ctn_mul(h, h), CTN_ALL_AXES, 0), 1, &t, &g));
    OK(ctn_read(g, gx, LONG * sizeof(float)));
    OK(ctn_scope_end(c));
    OK(ctn_scope_begin(c)); /* forward only: nobody reads what is in between */
    t = ctn_input(c, x, CTN_F32, CTN_SHAPE(LONG));
    OK(ctn_scope_begin(c));
    h = ctn_add(ctn_scale(ctn_relu(t), 1.7), ctn_number(c, 0.3));
    h = ctn_scope_return(c, ctn_shift(ctn_mul(ctn_tanh(h), t), -0.2));
    OK(ctn_read(h, y, LONG * sizeof(float)));
    OK(ctn_scope_end(c));
}

static void rule_11_fused_as_unfused(void **state)
{
    (void)state;
    static float x[LONG], y[2][LONG], g[2][LONG], z[2][64 * 50];
    for (int i = 0; i < LONG; i++) x[i] = (float)(i * 7919 % 10007 - 5000) / 2500;
    for (int plain = 0; plain < 2; plain++) {
        ctn_context *c = context(CTN_MODE_PLANNED, plain);
        chain(c, x, y[plain], g[plain]);
        assert_true(plain ? fused_nodes(c) == 0 : fused_nodes(c) > 0);
        OK(ctn_scope_begin(c));
        ctn_tensor *t = ctn_input(c, x, CTN_F32, CTN_SHAPE(64, 100)),
                   *w = ctn_input(c, x + 6400, CTN_F32, CTN_SHAPE(50, 100)),
                   *b = ctn_input(c, x + 11400, CTN_F32, CTN_SHAPE(50));
        OK(ctn_scope_begin(c));
        ctn_tensor *r = ctn_scope_return(c, ctn_relu(ctn_linear(t, w, b)));
        OK(ctn_read(r, z[plain], sizeof z[plain]));
        assert_true(plain ? fused_nodes(c) == 0 : fused_nodes(c) > 0);
        OK(ctn_scope_end(c));
        ctn_context_free(c);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]); /* the ops' own kernels run on each tile */
    assert_memory_equal(g[0], g[1], sizeof g[0]);
    for (int i = 0; i < 64 * 50; i++)
        assert_true(fabsf(z[0][i] - z[1][i]) <= 1e-6f * fmaxf(1, fabsf(z[1][i])));
}

static void rule_12_pool_is_one_range(void **state)
{
    (void)state;
    ctn_var *v[3] = {variable(ctx, "a", CTN_PARAM, 3, (float[]){1, 2, 3}),
                     variable(ctx, "b", CTN_PARAM, 17, NULL),
                     variable(ctx, "c", CTN_PARAM, 1, (float[]){9})};
    ctn_optim *o;
    OK(ctn_adam_new(&o, (ctn_vars){3, v, NULL}, NULL));
    assert_ptr_equal(v[1]->data, (float *)v[0]->data + 16);
    assert_ptr_equal(v[2]->data, (float *)v[1]->data + 32);
    assert_ptr_equal(v[2]->grad, (float *)v[0]->grad + 48);
    for (int i = 0; i < 3; i++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *l = ctn_add(square_sum(ctn_use(v[0])),
                                ctn_add(square_sum(ctn_use(v[1])), square_sum(ctn_use(v[2]))));
        OK(ctn_backward(o, l));
        OK(ctn_optim_step(o));
        OK(ctn_scope_end(ctx));
    }
    for (int i = 3; i < 16; i++)
        assert_float_equal(((float *)v[0]->data)[i], 0, 0); /* padding stays zero */
    ctn_optim_free(o);
    assert_float_equal(first(v[2]), 8.997f, 1e-4); /* values survive the optimizer */
    for (int i = 0; i < 3; i++) ctn_var_free(v[i]);
}

static void rule_13_zeros_without_gradient(void **state)
{
    (void)state;
    ctn_var *v[2] = {variable(ctx, "used", CTN_PARAM, 1, (float[]){1}),
                     variable(ctx, "unused", CTN_PARAM, 1, (float[]){1})};
    ctn_optim *o;
    OK(ctn_sgd_new(&o, (ctn_vars){2, v, NULL}, NULL));
    OK(ctn_scope_begin(ctx));
    OK(ctn_backward(o, square_sum(ctn_use(v[1])))); /* leaves a gradient in the second ... */
    OK(ctn_optim_step(o));
    OK(ctn_backward(o, square_sum(ctn_use(v[0])))); /* ... which must be zero now */
    float g;
    OK(ctn_var_grad(v[1], &g, sizeof g));
    assert_float_equal(g, 0, 0);
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
    ctn_optim_free(o);
    ctn_var_free(v[0]);
    ctn_var_free(v[1]);
}

/* ---- numbers, threads, guests --------------------------------------------------------------- */

/* One step with four random ops: normal, normal, dropout, dropout of ones. */
enum { DRAWN = 20000 };
typedef struct {
    float v[4][DRAWN];
} draws;

static void draw(ctn_context *c, bool read_between, draws *d)
{
    OK(ctn_scope_begin(c));
    ctn_tensor *t[4], *one = ctn_full(c, 1, CTN_F32, CTN_SHAPE(DRAWN));
    for (int i = 0; i < 4; i++) {
        t[i] =
            i < 2 ? ctn_random_normal(c, 0, 1, CTN_F32, CTN_SHAPE(DRAWN)) : ctn_dropout(one, 0.5);
        if (read_between) OK(ctn_read(t[i], d->v[i], sizeof d->v[i]));
    }
    for (int i = 0; i < 4; i++) OK(ctn_read(t[i], d->v[i], sizeof d->v[i]));
    OK(ctn_scope_end(c));
}

static void rule_14_random_streams(void **state)
{
    (void)state;
    static draws step[3], again;
    for (int s = 0; s < 3; s++) draw(ctx, false, &step[s]);
    for (int i = 0; i < 4; i++) /* other steps, and other ops of one step, draw other numbers */
        assert_memory_not_equal(step[0].v[i], step[1].v[i], sizeof step[0].v[i]);
    assert_memory_not_equal(step[0].v[0], step[0].v[1], sizeof step[0].v[0]);
    assert_memory_not_equal(step[0].v[2], step[0].v[3], sizeof step[0].v[2]);
    for (int k = 0; k < 4; k++) { /* threads, mode and mid-step reads do not matter */
        ctn_context *c;
        OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = k == 0 ? 1 : THREADS, .seed = 7,
                                       .mode = k == 2 ? CTN_MODE_EAGER : CTN_MODE_PLANNED)));
        for (int s = 0; s < 3; s++) {
            draw(c, k == 3, &again);
            assert_memory_equal(&again, &step[s], sizeof again);
        }
        ctn_context_free(c);
    }
    ctn_context_state saved = {7, 1}, now; /* the state moves to a context with another seed */
    ctn_context *c;
    OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = 1, .seed = 8)));
    draw(c, false, &again);
    assert_memory_not_equal(&again, &step[0], sizeof again);
    OK(ctn_context_set_state(c, &saved));
    for (int s = 1; s < 3; s++) {
        draw(c, false, &again);
        assert_memory_equal(&again, &step[s], sizeof again);
    }
    ctn_context_get_state(c, &now);
    ctn_context_get_state(ctx, &saved);
    assert_memory_equal(&now, &saved, sizeof now);
    ctn_context_free(c);
}

static void rule_14_dropout_gradient_has_the_same_mask(void **state)
{
    (void)state;
    static float x[DRAWN], y[2][DRAWN], g[2][DRAWN];
    for (int i = 0; i < DRAWN; i++) x[i] = (float)(i % 17 + 1);
    int kept = 0;
    for (int s = 0; s < 2; s++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *t = ctn_with_grad(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(DRAWN))), *gt;
        ctn_tensor *d = ctn_dropout(t, 0.25);
        OK(ctn_grad(ctn_sum(d, CTN_ALL_AXES, 0), 1, &t, &gt));
        OK(ctn_read(d, y[s], sizeof y[s]));
        OK(ctn_read(gt, g[s], sizeof g[s]));
        OK(ctn_scope_end(ctx));
        for (int i = 0; i < DRAWN; i++) {
            assert_true(g[s][i] == 0 || g[s][i] == (float)(1 / 0.75));
            assert_true(y[s][i] == x[i] * g[s][i]);
            kept += g[s][i] != 0;
        }
    }
    assert_memory_not_equal(g[0], g[1], sizeof g[0]);
    assert_true(abs(kept - 30000) < 500); /* of 40000; 500 is near six deviations */
    ctn_context_set_training(ctx, 0);
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_dropout(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(DRAWN)), 0.25), y[0],
                sizeof y[0]));
    OK(ctn_scope_end(ctx));
    assert_memory_equal(y[0], x, sizeof x);
}

static void rule_15_types(void **state)
{
    (void)state;
    double x[2] = {1e-12, 1};
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_input(ctx, x, CTN_F64, CTN_SHAPE(2));
    double s;
    OK(ctn_read(ctn_sum(t, CTN_ALL_AXES, 0), &s, sizeof s));
    assert_true(s == 1 + 1e-12);
    float f[2] = {1, 2};
    assert_null(ctn_add(t, ctn_input(ctx, f, CTN_F32, CTN_SHAPE(2))));
    assert_int_equal(ctn_error_status(), CTN_EDTYPE);
    ctn_error_clear();
    OK(ctn_scope_end(ctx));
}

static void rule_16_error_leaves_context_usable(void **state)
{
    (void)state;
    float x[6] = {1, 2, 3, 4, 5, 6};
    int64_t bad = 99;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 3)),
               *u = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(3, 2));
    assert_null(ctn_relu(ctn_add(t, u))); /* the message has shapes, op and line */
    assert_int_equal(ctn_error_status(), CTN_ESHAPE);
    assert_non_null(strstr(ctn_error_message(), "add: shapes (2,3) and (3,2)"));
    assert_non_null(strstr(ctn_error_message(), "test_rules.c"));
    ctn_error_clear();
    OK(ctn_scope_end(ctx));
    OK(ctn_scope_begin(ctx)); /* an error at run time */
    t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(1, 3));
    ctn_tensor *l = ctn_softmax_cross_entropy(t, ctn_input(ctx, &bad, CTN_I64, CTN_SHAPE(1)));
    assert_true(isnan(ctn_item(l)));
    assert_int_equal(ctn_error_status(), CTN_EARG);
    ctn_error_clear();
    ctn_scope_end(ctx);
    ctn_error_clear();
    OK(ctn_scope_begin(ctx)); /* the next step works */
    bad = 1;
    t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(1, 3));
    l = ctn_softmax_cross_entropy(t, ctn_input(ctx, &bad, CTN_I64, CTN_SHAPE(1)));
    assert_float_equal(ctn_item(l), 1.40760596, 1e-6);
    OK(ctn_scope_end(ctx));
}

#if defined(__x86_64__)
#include <immintrin.h>

static void rule_16_floating_point_mode_is_restored(void **state)
{
    (void)state;
    float x[4] = {1e-30f, 1, 1, 1}, y[4];
    unsigned was = _mm_getcsr(), odd = (was | _MM_ROUND_UP) & ~0x3fu;
    _mm_setcsr(odd);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(4));
    OK(ctn_read(ctn_mul(t, t), y, sizeof y));
    OK(ctn_scope_end(ctx));
    unsigned now = _mm_getcsr();
    _mm_setcsr(was);
    assert_int_equal(now & ~0x3fu, odd);
    assert_float_equal(y[0], 0, 0); /* 1e-60 is flushed in any case; next, a denormal result */
    x[0] = 1e-20f;
    OK(ctn_scope_begin(ctx));
    t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(4));
    OK(ctn_read(ctn_mul(t, t), y, sizeof y)); /* 1e-40 */
    OK(ctn_scope_end(ctx));
    assert_float_equal(y[0], 0, 0);
    assert_int_equal(stats().underflow_runs, 2);
}
#endif

typedef struct {
    ctn_context *c;
    double sum;
} worker;

static void *work(void *p)
{
    worker *w = p;
    static const float x[64] = {1, 2, 3};
    for (int i = 0; i < 200; i++) {
        if (ctn_scope_begin(w->c) < 0) return NULL;
        ctn_tensor *t = ctn_input(w->c, x, CTN_F32, CTN_SHAPE(8, 8));
        w->sum += ctn_item(ctn_sum(ctn_matmul(t, t, 0, 1), CTN_ALL_AXES, 0));
        if (ctn_scope_end(w->c) < 0) return NULL;
    }
    return p;
}

static void rule_17_contexts_in_threads(void **state)
{
    (void)state;
    static const int core[2] = {0, 1};
    for (int disjoint = 0; disjoint < 2; disjoint++) {
        worker w[2] = {{NULL, 0}, {NULL, 0}};
        pthread_t t[2];
        for (int i = 0; i < 2; i++) {
            OK(ctn_context_new(&w[i].c, CTN_OPT(ctn_context_opt, .threads = 1,
                                                .cores = disjoint ? &core[i] : NULL, .ncores = 1)));
            assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
        }
        for (int i = 0; i < 2; i++) {
            void *done;
            pthread_join(t[i], &done);
            assert_non_null(done);
            assert_float_equal(w[i].sum, 200 * 14, 0);
            ctn_context_free(w[i].c);
        }
    }
}

/* ---- beyond the rules ------------------------------------------------------------------------ */

static void forward_only_keeps_nothing(void **state)
{
    (void)state;
    static float x[256 * 256];
    OK(ctn_scope_begin(ctx));
    ctn_context_set_grad(ctx, 0);
    ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(256, 256));
    OK(ctn_scope_begin(ctx));
    for (int i = 0; i < 20; i++) t = ctn_relu(ctn_add(t, t));
    t = ctn_scope_return(ctx, t);
    assert_non_null(ctn_data(t));
    assert_true(stats().arena_bytes <= 256 * 256 * 4 * 2 + (1 << 20));
    ctn_context_set_grad(ctx, 1);
    OK(ctn_scope_end(ctx));
}

static void a_tensor_prints_itself(void **state)
{
    (void)state;
    float x[4] = {1, 2, 3, -4.5f};
    char buf[256];
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 2));
    assert_true(ctn_tensor_text(t, buf, sizeof buf) > 0);
    assert_non_null(strstr(buf, "f32 (2,2)"));
    assert_non_null(strstr(buf, "-4.5"));
    OK(ctn_scope_end(ctx));
}

static void a_trace_is_written(void **state)
{
    (void)state;
    static char text[65536];
    char path[64];
    float x[4] = {1, 2, 3, 4};
    ctn_context *c;
    OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = 1, .spans = 100)));
    for (int i = 0; i < 3; i++) {
        OK(ctn_scope_begin(c));
        assert_non_null(ctn_data(ctn_relu(ctn_input(c, x, CTN_F32, CTN_SHAPE(4)))));
        OK(ctn_scope_end(c));
    }
    snprintf(path, sizeof path, "trace-%d.json", (int)getpid());
    OK(ctn_context_write_trace(c, path));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    unlink(path);
    int spans = 0;
    text[n] = 0;
    for (const char *p = text; (p = strstr(p, "\"relu\"")) != NULL; p++) spans++;
    assert_int_equal(spans, 3);
    assert_non_null(strstr(text, "plan_hits"));
    ctn_context_free(c);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(rule_1_effects_run_once_in_order),
        T(rule_2_versions),
        T(rule_3_gone_after_the_step),
        T(rule_4_contributions),
        T(rule_4_tied_parameter),
        T(rule_4_grad_of_grad),
        T(rule_5_read_in_mid_step),
        T(rule_6_retained),
        T(rule_7_borrowed_inputs),
        T(rule_8_what_is_hashed),
        T(rule_8_every_input_is_hashed),
        T(rule_9_one_arena),
        T(rule_10_planning_is_a_pure_function),
        T(rule_11_order_of_derivatives),
        T(rule_11_fused_as_unfused),
        T(rule_12_pool_is_one_range),
        T(rule_13_zeros_without_gradient),
        T(rule_14_random_streams),
        T(rule_14_dropout_gradient_has_the_same_mask),
        T(rule_15_types),
        T(rule_16_error_leaves_context_usable),
#if defined(__x86_64__)
        T(rule_16_floating_point_mode_is_restored),
#endif
        T(rule_17_contexts_in_threads),
        T(forward_only_keeps_nothing),
        T(a_tensor_prints_itself),
        T(a_trace_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
