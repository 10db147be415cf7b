/* SPDX-License-Identifier: Apache-2.0
 *
 * Frozen parameters (optim/arrange.c) have no gradient memory, no state and no exchange. The
 * others train as if the frozen ones were constants. Parameters that were frozen from the start
 * begin with zero state when they are thawed; those frozen after a step keep their state.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <catena/catena.h>
#include <catena/dist.h>

#include <cmocka.h>

#include "comm/exchange.h"
#include "graph/graph.h"
#include "optim/optim.h"
#include "support/ok.h"

enum { N = 4, I = 32, H = 64, O = 8 };

typedef struct {
    ctn_context *c;
    ctn_var *v[3]; /* big, between, head */
    ctn_optim *o;
    float x[N * I];
} model;

static const int64_t shape[3][2] = {{H, I}, {H, H}, {O, H}};

static size_t bytes_of(int i)
{
    return (size_t)(shape[i][0] * shape[i][1]) * sizeof(float);
}

static void open_model(model *m, float start)
{
    static const char *const names[] = {"big", "between", "head"};
    *m = (model){0};
    OK(ctn_context_new(&m->c, CTN_OPT(ctn_context_opt, .threads = 1)));
    for (int i = 0; i < N * I; i++) m->x[i] = (float)(i % 7) / 7;
    for (int i = 0; i < 3; i++) {
        float w[H * H];
        for (int k = 0; k < H * H; k++) w[k] = start + (float)((k * 31 + i) % 17 - 8) / 100;
        OK(ctn_var_new(&m->v[i], m->c, names[i], CTN_PARAM, CTN_F32, 2, shape[i]));
        OK(ctn_var_set(m->v[i], w, bytes_of(i)));
    }
    OK(ctn_adam_new(&m->o, (ctn_vars){3, m->v, NULL}, CTN_OPT(ctn_adam_opt, .lr = 0.01)));
}

static void close_model(model *m)
{
    ctn_optim_free(m->o);
    for (int i = 0; i < 3; i++) ctn_var_free(m->v[i]);
    ctn_context_free(m->c);
}

static void step(model *m)
{
    OK(ctn_scope_begin(m->c));
    ctn_tensor *x = ctn_input(m->c, m->x, CTN_F32, CTN_SHAPE(N, I));
    x = ctn_tanh(ctn_linear(x, ctn_use(m->v[0]), NULL));
    x = ctn_tanh(ctn_linear(x, ctn_use(m->v[1]), NULL));
    x = ctn_linear(x, ctn_use(m->v[2]), NULL);
    OK(ctn_backward(m->o, ctn_mean(ctn_square(ctn_shift(x, -1)), CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(m->o));
    OK(ctn_scope_end(m->c));
}

static void values(const model *m, int i, float *w)
{
    OK(ctn_var_get(m->v[i], w, bytes_of(i)));
}

static void assert_same(const model *a, const model *b, int i, bool same)
{
    float x[H * H], y[H * H];
    values(a, i, x);
    values(b, i, y);
    assert_int_equal(memcmp(x, y, bytes_of(i)) == 0, same);
}

static int freeze(model *m, const char *what, int on)
{
    return ctn_optim_group(m->o, what, CTN_OPT(ctn_group_opt, .freeze = on));
}

static void takes_no_memory(void **state)
{
    (void)state;
    model m, begin;
    open_model(&m, 0);
    open_model(&begin, 0);
    const int64_t whole = ctn__state_bytes(m.o);
    assert_int_equal(freeze(&m, "b*", 1), 2);
    step(&m);
    assert_int_equal(m.o->pool->count, O * H);
    assert_int_equal(ctn__state_bytes(m.o), whole * O * H / (H * I + H * H + O * H));
    assert_null(m.v[0]->grad);
    assert_same(&m, &begin, 0, true);
    assert_same(&m, &begin, 1, true);
    assert_same(&m, &begin, 2, false);

    /* Thawed, it comes back. */
    assert_int_equal(freeze(&m, "between", -1), 1);
    step(&m);
    assert_int_equal(m.o->pool->count, O * H + H * H);
    assert_same(&m, &begin, 1, false);

    /* Frozen after a step, it keeps its place and state. */
    assert_int_equal(freeze(&m, "head", 1), 1);
    step(&m);
    assert_int_equal(m.o->pool->count, O * H + H * H);
    close_model(&m);
    close_model(&begin);
}

/* The same bits as with an optimizer that does not have the frozen parameter. */
static void others_train_the_same(void **state)
{
    (void)state;
    model m, alone;
    open_model(&m, 0);
    open_model(&alone, 0);
    ctn_optim_free(alone.o);
    OK(ctn_adam_new(&alone.o, (ctn_vars){2, alone.v + 1, NULL}, CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    ctn_var_set_trainable(alone.v[0], 0);
    ctn_var_set_trainable(m.v[0], 0);
    for (int i = 0; i < 5; i++) {
        step(&m);
        step(&alone);
    }
    for (int i = 0; i < 3; i++) assert_same(&m, &alone, i, true);
    /* Thawed, it has the state of a new parameter. */
    ctn_var_set_trainable(m.v[0], 1);
    step(&m);
    assert_int_equal(m.o->pool->var[0] == m.v[0], true);
    assert_same(&m, &alone, 0, false);
    close_model(&m);
    close_model(&alone);
}

static void a_parked_one_may_go(void **state)
{
    (void)state;
    model m;
    open_model(&m, 0);
    assert_int_equal(freeze(&m, "big", 1), 1);
    step(&m);
    ctn_optim *other = NULL;
    assert_int_equal(ctn_sgd_new(&other, (ctn_vars){1, m.v, NULL}, NULL), CTN_ESTATE);
    ctn_error_clear();
    ctn_optim_free(m.o);
    m.o = NULL;
    OK(ctn_sgd_new(&other, (ctn_vars){1, m.v, NULL}, NULL)); /* it is free again */
    ctn_optim_free(other);
    close_model(&m);
    open_model(&m, 0);
    assert_int_equal(freeze(&m, "big", 1), 1);
    OK(ctn_scope_begin(m.c));
    OK(ctn_scope_end(m.c));
    ctn_var_free(m.v[0]); /* before its optimizer */
    m.v[0] = NULL;
    assert_int_equal(freeze(&m, "*", -1), 2);
    ctn_optim_free(m.o);
    for (int i = 1; i < 3; i++) ctn_var_free(m.v[i]);
    ctn_context_free(m.c);
}

static void is_not_exchanged(void **state)
{
    (void)state;
    ctn_comm *c;
    model m;
    OK(ctn_comm_loopback(&c, 1, NULL));
    open_model(&m, 0);
    assert_int_equal(freeze(&m, "b*", 1), 2);
    OK(ctn_dist_optim(m.o, c, NULL));
    assert_int_equal(m.o->pool->count, O * H);
    step(&m);
    assert_int_equal(freeze(&m, "big", -1), 1);
    step(&m); /* from now on it is exchanged */
    assert_int_equal(m.o->pool->count, O * H + H * I);
    assert_int_equal(ctn__exchange_buckets(m.o->pool->exchange)->count, O * H + H * I);
    close_model(&m);
    open_model(&m, 0);
    assert_int_equal(freeze(&m, "b*", 1), 2);
    OK(ctn_dist_optim(m.o, c, CTN_OPT(ctn_dist_opt, .shard = 1)));
    step(&m);
    assert_int_equal(freeze(&m, "big", -1), 1); /* too late for a sharded one */
    assert_int_equal(ctn_scope_begin(m.c), CTN_ESTATE);
    assert_non_null(strstr(ctn_error_message(), "big"));
    ctn_error_clear();
    assert_int_equal(freeze(&m, "big", 1), 1);
    step(&m);
    close_model(&m);
    ctn_comm_free(c);
}

static void backward(model *m)
{
    OK(ctn_scope_begin(m->c));
    ctn_tensor *l = ctn_mul(ctn_use(m->v[0]), ctn_use(m->v[0]));
    l = ctn_add(ctn_sum(l, CTN_ALL_AXES, 0), ctn_sum(ctn_use(m->v[2]), CTN_ALL_AXES, 0));
    OK(ctn_backward(m->o, l));
}

static float first(ctn_var *v, int grad)
{
    float x[H * H];
    const size_t bytes = (size_t)(v->d.dim[0] * v->d.dim[1]) * sizeof *x;
    if (grad) OK(ctn_var_grad(v, x, bytes));
    else OK(ctn_var_get(v, x, bytes));
    return x[0];
}

/* Freezing and thawing between two contributions keeps what is pending, and what is contributed to
 * a thawed parameter counts from then on. An exchange continues with the new order. */
static void gradients_stay(void **state)
{
    (void)state;
    ctn_comm *c;
    OK(ctn_comm_loopback(&c, 1, NULL));
    for (int exchanged = 0; exchanged < 2; exchanged++) {
        model m;
        open_model(&m, 1);
        ctn_optim_free(m.o);
        OK(ctn_sgd_new(&m.o, (ctn_vars){3, m.v, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 0.5)));
        ctn_var_set_trainable(m.v[0], 0);
        if (exchanged) OK(ctn_dist_optim(m.o, c, NULL));
        const float w = first(m.v[0], 0), head = first(m.v[2], 0);
        backward(&m);
        OK(ctn_scope_end(m.c));
        ctn_var_set_trainable(m.v[0], 1);
        backward(&m);
        assert_float_equal(first(m.v[0], 1), 2 * w, 0);
        assert_float_equal(first(m.v[2], 1), 2, 0);
        OK(ctn_scope_end(m.c));
        ctn_var_set_trainable(m.v[2], 0); /* keeps its gradient until the step */
        backward(&m);
        assert_float_equal(first(m.v[0], 1), 4 * w, 0);
        OK(ctn_scope_end(m.c));
        ctn_var_set_trainable(m.v[2], 1);
        backward(&m);
        assert_float_equal(first(m.v[0], 1), 6 * w, 0);
        assert_float_equal(first(m.v[2], 1), exchanged ? 1 : 3, 0);
        OK(ctn_optim_step(m.o));
        OK(ctn_scope_end(m.c));
        assert_float_equal(first(m.v[0], 0), w - 3 * w, 1e-6);
        assert_float_equal(first(m.v[2], 0), head - (exchanged ? 0.5f : 1.5f), 1e-6);
        close_model(&m);
    }
    ctn_comm_free(c);
}

/* It was frozen while gradients were pending and leaves the pool after the step. */
static void is_parked_after_the_step(void **state)
{
    (void)state;
    model m;
    open_model(&m, 0);
    OK(ctn_optim_group(m.o, "between", CTN_OPT(ctn_group_opt, .freeze = 1)) > 0 ? CTN_OK
                                                                                : CTN_EARG);
    backward(&m);
    OK(ctn_scope_end(m.c));
    ctn_var_set_trainable(m.v[0], 0);
    OK(ctn_scope_begin(m.c));
    assert_int_equal(m.o->pool->count, H * I + O * H);
    OK(ctn_optim_step(m.o));
    OK(ctn_scope_end(m.c));
    OK(ctn_scope_begin(m.c));
    assert_int_equal(m.o->pool->count, O * H);
    OK(ctn_scope_end(m.c));
    close_model(&m);
}

static void exact_sums_refuse(void **state)
{
    (void)state;
    ctn_comm *c;
    model m;
    OK(ctn_comm_loopback(&c, 1, NULL));
    open_model(&m, 0);
    ctn_var_set_trainable(m.v[0], 0);
    OK(ctn_dist_optim(m.o, c, CTN_OPT(ctn_dist_opt, .exact = 4)));
    backward(&m);
    OK(ctn_scope_end(m.c));
    ctn_var_set_trainable(m.v[0], 1);
    assert_int_equal(ctn_scope_begin(m.c), CTN_ESTATE);
    assert_non_null(strstr(ctn_error_message(), "take the step first"));
    ctn_error_clear();
    ctn_var_set_trainable(m.v[0], 0);
    OK(ctn_scope_begin(m.c));
    OK(ctn_optim_step(m.o));
    OK(ctn_scope_end(m.c));
    close_model(&m);
    ctn_comm_free(c);
}

/* Parameters may be freed before their optimizer, also empty ones, which begin in the pool where
 * the next one does. What is left trains on. */
static void trained_ones_may_go(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "none", "empty", "b", "c"};
    static const int64_t dim[] = {3, 0, 0, 20, 1};
    ctn_context *c = NULL;
    ctn_optim *o = NULL;
    ctn_var *v[5];
    float left[20];
    OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = 1)));
    for (int i = 0; i < 5; i++) OK(ctn_var_new(&v[i], c, names[i], CTN_PARAM, CTN_F32, 1, &dim[i]));
    OK(ctn_sgd_new(&o, (ctn_vars){5, v, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 1)));
    for (int i = 0; i < 5; i++) assert_int_equal(ctn__pool_find(o->pool, v[i]), i);
    for (int i = 0; i < 5; i++) {
        if (i == 3) continue;
        ctn_var_free(v[i]);
        for (int k = 0; k < 5; k++)
            assert_ptr_equal(o->pool->var[k], k == 3 || k > i ? v[k] : NULL);
    }
    OK(ctn_scope_begin(c));
    OK(ctn_backward(o, ctn_sum(ctn_use(v[3]), CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(c));
    OK(ctn_var_get(v[3], left, sizeof left));
    for (int i = 0; i < 20; i++) assert_true(left[i] == -1);
    ctn_optim_free(o);
    ctn_var_free(v[3]);
    ctn_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_no_memory),     cmocka_unit_test(others_train_the_same),
        cmocka_unit_test(a_parked_one_may_go), cmocka_unit_test(is_not_exchanged),
        cmocka_unit_test(gradients_stay),      cmocka_unit_test(is_parked_after_the_step),
        cmocka_unit_test(exact_sums_refuse),   cmocka_unit_test(trained_ones_may_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
