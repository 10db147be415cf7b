/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning very long programs on a small stack, and which loops and kernels a plan has. That the
 * time of planning is linear in the length of the program is measured by `dev/bench planning`.
 */
#include <pthread.h>
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

enum { LONG = 60000, WIDE = 5000 };

/* Neighbours cancel except for 1/4 per pair. */
static ctn_tensor *chain(ctn_tensor *x, int ops)
{
    for (int i = 0; i < ops; i++) x = i % 2 ? ctn_shift(x, -0.75) : ctn_shift(x, 1);
    return x;
}

typedef struct {
    int64_t width;
    bool graded;
    const char *wrong;
} long_case;

static void *run_long(void *arg)
{
    long_case *c = arg;
    ctn_context *ctx = NULL;
    ctn_var *w = NULL;
    ctn_optim *o = NULL;
    float *x = calloc((size_t)c->width, sizeof *x);
    ctn_error_clear();
    c->wrong = "an error";
    if (ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)) < 0) return NULL;
    if (ctn_var_new(&w, ctx, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(c->width)) < 0) return NULL;
    if (ctn_sgd_new(&o, (ctn_vars){1, &w, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 1)) < 0) return NULL;
    if (ctn_scope_begin(ctx) < 0) return NULL;
    ctn_tensor *in = c->graded ? ctn_use(w) : ctn_input(ctx, x, CTN_F32, CTN_SHAPE(c->width));
    ctn_tensor *y = chain(in, LONG);
    if (c->graded) {
        if (ctn_backward(o, ctn_sum(y, CTN_ALL_AXES, 0)) < 0 || ctn_optim_step(o) < 0) return NULL;
        if (ctn_scope_end(ctx) < 0 || ctn_var_get(w, x, (size_t)c->width * sizeof *x) < 0)
            return NULL;
        c->wrong = x[0] == -1 && x[c->width - 1] == -1 ? NULL : "another gradient than 1";
    } else {
        if (ctn_read(y, x, (size_t)c->width * sizeof *x) < 0 || ctn_scope_end(ctx) < 0) return NULL;
        c->wrong = x[0] == LONG / 8.0f ? NULL : "another sum";
    }
    ctn_optim_free(o);
    ctn_var_free(w);
    ctn_context_free(ctx);
    free(x);
    return NULL;
}

static void test_long_programs(void **state)
{
    (void)state;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 512 * 1024);
    for (int k = 0; k < 4; k++) {
        long_case c = {.width = k % 2 ? WIDE : 4, .graded = k >= 2};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, &small, run_long, &c), 0);
        pthread_join(thread, NULL);
        if (c.wrong) fail_msg("width %d: %s: %s", (int)c.width, c.wrong, ctn_error_message());
    }
    pthread_attr_destroy(&small);
}

/* ---- loops of elementwise ops --------------------------------------------------------------- */

static ctn_status count_nodes(void *user, const ctn_plan_node *n)
{
    (void)n;
    ++*(int *)user;
    return CTN_OK;
}

static ctn_context *current;
static const float zeros[WIDE];

/* The number of nodes in a plan that computes only y from x. */
static int nodes_of(ctn_tensor *(*fn)(ctn_tensor *x))
{
    ctn_context *ctx = NULL;
    static float x[WIDE], y[WIDE];
    int n = 0;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    ctn_context_set_grad(ctx, 0);
    current = ctx;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(WIDE));
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_scope_return(ctx, fn(in)), y, sizeof y));
    OK(ctn_context_visit_plan(ctx, count_nodes, &n));
    OK(ctn_scope_end(ctx));
    ctn_context_free(ctx);
    return n;
}

static ctn_tensor *hundred_ops(ctn_tensor *x)
{
    return chain(x, 100);
}

/* x and its sigmoid are read twice, but only here. */
static ctn_tensor *diamonds(ctn_tensor *x)
{
    for (int i = 0; i < 10; i++) {
        ctn_tensor *s = ctn_sigmoid(ctn_tanh(x));
        x = ctn_add(ctn_mul(s, x), ctn_mul(s, s));
    }
    return x;
}

/* More inputs than one loop can take. */
static ctn_tensor *wide_sum(ctn_tensor *x)
{
    ctn_tensor *sum = x;
    for (int i = 0; i < 3 * CTN_MAX_IN; i++)
        sum = ctn_add(sum, ctn_input(current, zeros, CTN_F32, CTN_SHAPE(WIDE)));
    return sum;
}

static void test_one_loop(void **state)
{
    (void)state;
    assert_int_equal(nodes_of(hundred_ops), 1);
    assert_int_equal(nodes_of(diamonds), 1);
    const int n = nodes_of(wide_sum);
    assert_true(n > 1 && n <= 5);
}

/* ---- no reference kernels ------------------------------------------------------------------- */

static ctn_status find_slow(void *user, const ctn_plan_node *n)
{
    if (n->slow) snprintf(user, 200, "%s: %s", n->op, n->slow);
    return CTN_OK;
}

/* The gradient that arrives at a product is one number, broadcast everywhere. */
static void test_broadcast_gradients(void **state)
{
    (void)state;
    enum { N = 64 };
    for (int batched = 0; batched < 2; batched++) {
        ctn_context *ctx = NULL;
        ctn_var *w = NULL;
        ctn_optim *o = NULL;
        static float x[2 * N * N], got[N * N];
        char slow[200] = "";
        for (int i = 0; i < 2 * N * N; i++) x[i] = (float)(i % 5);
        OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
        OK(ctn_var_new(&w, ctx, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(N, N)));
        OK(ctn_sgd_new(&o, (ctn_vars){1, &w, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 1)));
        OK(ctn_scope_begin(ctx));
        ctn_tensor *in = batched ? ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, N, N))
                                 : ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2 * N, N));
        ctn_tensor *y =
            batched ? ctn_matmul(in, ctn_use(w), 0, 0) : ctn_linear(in, ctn_use(w), NULL);
        OK(ctn_backward(o, ctn_sum(y, CTN_ALL_AXES, 0)));
        OK(ctn_optim_step(o));
        OK(ctn_context_visit_plan(ctx, find_slow, slow));
        OK(ctn_scope_end(ctx));
        if (slow[0]) fail_msg("%s", slow);
        OK(ctn_var_get(w, got, sizeof got));
        float want = 0; /* of the first input feature */
        for (int i = 0; i < 2 * N; i++) want -= x[i * N];
        assert_true(got[0] == want);
        ctn_optim_free(o);
        ctn_var_free(w);
        ctn_context_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_long_programs),
                                       cmocka_unit_test(test_one_loop),
                                       cmocka_unit_test(test_broadcast_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
