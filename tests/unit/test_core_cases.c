/* SPDX-License-Identifier: Apache-2.0
 *
 * Single cases of the core that random programs (test_random_programs.c) have found or cannot
 * reach: values of variables between recorded writes, gradients kept as tensors, plans that see
 * a hit before a miss, failed runs.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <catena/ops.h>
#include <catena/optim.h>

#include "graph/graph.h"
#include "support/check.h"
#include "support/ok.h"

#include <cmocka.h>

static ctn_context *ctx;
static ctn_var *p, *s; /* a parameter and a state, (2) */
static ctn_optim *opt;

static int setup(void **state)
{
    (void)state;
    ctn_error_clear();
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .mode = CTN_MODE_PLANNED)));
    OK(ctn_var_new(&p, ctx, "p", CTN_PARAM, CTN_F32, CTN_SHAPE(2)));
    OK(ctn_var_new(&s, ctx, "s", CTN_STATE, CTN_F32, CTN_SHAPE(2)));
    OK(ctn_sgd_new(&opt, (ctn_vars){1, &p, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 1)));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ctn_optim_free(opt);
    ctn_var_free(p);
    ctn_var_free(s);
    ctn_context_free(ctx);
    return 0;
}

static void start(float a, float b)
{
    OK(ctn_var_set(p, (float[]){a, b}, 8));
    OK(ctn_var_set(s, (float[]){a, b}, 8));
    OK(ctn_scope_begin(ctx));
}

static void expect(ctn_tensor *t, float a, float b)
{
    float x[2];
    OK(ctn_read(t, x, sizeof x));
    assert_float_equal(x[0], a, 1e-5);
    assert_float_equal(x[1], b, 1e-5);
}

static void expect_var(ctn_var *v, float a, float b)
{
    float x[2];
    OK(ctn_var_get(v, x, sizeof x));
    assert_float_equal(x[0], a, 1e-5);
    assert_float_equal(x[1], b, 1e-5);
}

static ctn_tensor *square_sum(ctn_tensor *x)
{
    return ctn_sum(ctn_mul(x, x), CTN_ALL_AXES, 0);
}

static ctn_tensor *grad_by(ctn_tensor *y, ctn_tensor *x)
{
    ctn_tensor *g = NULL;
    OK(ctn_grad(y, 1, &x, &g));
    return g;
}

/* A leaf that was read is stored elsewhere, so a step that did not read it must not find that
 * plan. */
static void reading_a_leaf_is_part_of_the_record(void **state)
{
    (void)state;
    for (int run = 0; run < 4; run++) {
        start((float)run, 1);
        ctn_tensor *x = ctn_use(s);
        if (run % 2 == 0) expect(x, (float)run, 1);
        expect(ctn_scale(x, 2), 2 * (float)run, 2);
        OK(ctn_scope_end(ctx));
    }
}

static void a_leaf_is_read_as_it_was(void **state)
{
    (void)state;
    for (int run = 0; run < 3; run++) {
        start(1, 2);
        ctn_tensor *old = ctn_use(s);
        OK(ctn_assign(s, ctn_scale(old, 10)));
        ctn_tensor *mid = ctn_use(s);
        OK(ctn_assign(s, ctn_scale(mid, 10)));
        if (run < 2) expect(run == 0 ? old : mid, run == 0 ? 1 : 10, run == 0 ? 2 : 20);
        expect_var(s, 100, 200);
        OK(ctn_scope_end(ctx));
        start(1, 2);
        OK(ctn_assign(s, ctn_scale(ctn_use(s), 10)));
        mid = ctn_keep(ctn_use(s));
        OK(ctn_assign(s, ctn_scale(mid, 10)));
        OK(ctn_flush(ctx));
        expect(mid, 10, 20);
        OK(ctn_scope_end(ctx));
    }
}

static void a_leaf_of_an_earlier_run_is_kept(void **state)
{
    (void)state;
    for (int run = 0; run < 2; run++) {
        start(1, 2);
        ctn_tensor *x = ctn_use(p), *l = square_sum(x);
        assert_float_equal(ctn_item(l), 5, 1e-5);
        assert_non_null(ctn_keep(x));
        OK(ctn_backward(opt, l));
        OK(ctn_optim_step(opt));
        expect(x, 1, 2);
        expect(ctn_use(p), -1, -2);
        OK(ctn_scope_end(ctx));
    }
}

/* A step is a write too: reads before it see what was assigned before it. */
static void an_assign_is_seen_before_the_step(void **state)
{
    (void)state;
    for (int run = 0; run < 2; run++) {
        start(1, 2);
        OK(ctn_assign(p, ctn_scale(ctn_use(p), 3)));
        ctn_tensor *y = ctn_keep(ctn_scale(ctn_use(p), 1));
        OK(ctn_backward(opt, square_sum(ctn_use(p)))); /* p = 3 6, gradient 6 12 */
        OK(ctn_optim_step(opt));
        expect(y, 3, 6);
        expect_var(p, -3, -6);
        OK(ctn_scope_end(ctx));
    }
}

static void a_kept_gradient_is_used_after_the_step(void **state)
{
    (void)state;
    for (int run = 0; run < 4; run++) { /* the last two also keep another one with its graph */
        start(1, 2);
        ctn_tensor *x = ctn_with_grad(ctn_use(s)), *x2 = ctn_mul(ctn_mul(x, x), x);
        ctn_tensor *g = ctn_keep(grad_by(ctn_sum(x2, CTN_ALL_AXES, 0), x)), *h = NULL;
        if (run >= 2) h = ctn_keep_graph(grad_by(square_sum(x), x));
        OK(ctn_backward(opt, square_sum(ctn_use(p))));
        OK(ctn_optim_step(opt));
        expect(ctn_scale(g, 2), 6, 24);
        if (h) expect(grad_by(ctn_sum(ctn_mul(h, ctn_with_grad(g)), CTN_ALL_AXES, 0), x), 6, 24);
        OK(ctn_scope_end(ctx));
    }
}

/* The plan of the first part exists, that of the second is built: gradients must flow through
 * the first part too. */
static void a_miss_after_a_hit_differentiates(void **state)
{
    (void)state;
    for (int run = 0; run < 2; run++) {
        start(1, 2);
        OK(ctn_scope_begin(ctx));
        ctn_tensor *x = ctn_use(p), *g = grad_by(ctn_sum(ctn_scale(x, 2), CTN_ALL_AXES, 0), x);
        ctn_tensor *y = ctn_scope_return(ctx, ctn_add(g, x));
        expect(y, 3, 4);
        if (run == 1) y = ctn_scale(y, 2);
        OK(ctn_backward(opt, ctn_sum(y, CTN_ALL_AXES, 0)));
        float grad[2];
        OK(ctn_var_grad(p, grad, sizeof grad));
        assert_float_equal(grad[0], run == 1 ? 2 : 1, 1e-5);
        OK(ctn_optim_step(opt));
        OK(ctn_scope_end(ctx));
    }
}

static void a_constant_gradient_can_be_asked_by(void **state)
{
    (void)state;
    start(1, 2);
    ctn_tensor *x = ctn_use(p), *g = grad_by(ctn_sum(ctn_scale(x, 2), CTN_ALL_AXES, 0), x);
    expect(grad_by(ctn_mul(g, x), g), 1, 2);
    OK(ctn_scope_end(ctx));
}

/* Whether a gradient made by ctn_grad is itself differentiable is part of the record. */
static void grad_mode_of_a_gradient_is_hashed(void **state)
{
    (void)state;
    for (int run = 0; run < 4; run++) {
        start(1, 2);
        ctn_tensor *x = ctn_use(p), *y = square_sum(x);
        ctn_context_set_grad(ctx, run % 2);
        ctn_tensor *g = grad_by(y, x); /* 2 x */
        ctn_context_set_grad(ctx, 1);
        OK(ctn_backward(opt, ctn_sum(ctn_mul(g, x), CTN_ALL_AXES, 0)));
        OK(ctn_optim_step(opt));
        OK(ctn_scope_end(ctx));
        if (run % 2) expect_var(p, 1 - 4, 2 - 8);
        else expect_var(p, 1 - 2, 2 - 4);
    }
}

static void a_parameter_is_a_loss(void **state)
{
    (void)state;
    ctn_var *q;
    ctn_optim *o;
    float g;
    OK(ctn_var_new(&q, ctx, "q", CTN_PARAM, CTN_F32, CTN_SCALAR_SHAPE));
    OK(ctn_sgd_new(&o, (ctn_vars){1, &q, NULL}, NULL));
    OK(ctn_scope_begin(ctx));
    OK(ctn_backward(o, ctn_use(q)));
    OK(ctn_var_grad(q, &g, sizeof g));
    assert_float_equal(g, 1, 0);
    OK(ctn_scope_end(ctx));
    ctn_optim_free(o);
    ctn_var_free(q);
}

/* A slice that does not fit fails at run time. */
static void nothing_is_left_of_a_failed_run(void **state)
{
    (void)state;
    start(1, 2);
    ctn_tensor *x = ctn_use(p), *loss = square_sum(x);
    OK(ctn_flush(ctx));
    ctn_tensor *bad = ctn_slice(x, 0, 2, 1), *behind = ctn_scale(bad, 2);
    float v[2];
    assert_int_equal(ctn_read(behind, v, 4), CTN_EARG);
    /* and does not return what happens to be in its memory */
    assert_int_equal(ctn_read(behind, v, 4), CTN_EARG);
    assert_int_equal(ctn_backward(opt, loss), CTN_EARG);
    assert_int_equal(ctn_assign(s, x), CTN_EARG);
    assert_int_equal(ctn_scope_end(ctx), CTN_EARG);
    ctn_error_clear();
    start(1, 2);
    assert_int_equal(ctn_optim_step(opt), CTN_ESTATE);
    ctn_error_clear();
    OK(ctn_backward(opt, square_sum(ctn_use(p))));
    OK(ctn_optim_step(opt));
    OK(ctn_scope_end(ctx));
    expect_var(p, -1, -2);
}

static long countdown;

static void *alloc(void *user, size_t bytes, size_t align)
{
    (void)user;
    void *q = NULL;
    if (countdown > 0 && --countdown == 0) return NULL;
    return posix_memalign(&q, align < sizeof(void *) ? sizeof(void *) : align, bytes) ? NULL : q;
}

static void release(void *user, void *q)
{
    (void)user;
    free(q);
}

/* An op call fails half-way while effects are pending: the scope ends with an error, the next
 * one works. */
static void half_a_record_does_not_run(void **state)
{
    teardown(state);
    ctn_allocator a = {alloc, release, NULL};
    assert_int_equal(ctn_set_allocator(&a), CTN_OK);
    for (long n = 1; n < 40; n++) {
        setup(state);
        start(1, 2);
        OK(ctn_assign(s, ctn_scale(ctn_use(s), 2)));
        countdown = n;
        ctn_tensor *t = ctn_use(p);
        for (int k = 0; k < 3000 && t && countdown > 0; k++) t = ctn_scale(t, 1);
        ctn_status st = countdown == 0 && !t ? ctn_error_status() : CTN_OK;
        countdown = 0;
        ctn_status end = ctn_scope_end(ctx);
        assert_true(end == CTN_OK || (end == CTN_ENOMEM && st == CTN_ENOMEM));
        if (end == CTN_OK) expect_var(s, 2, 4);
        ctn_error_clear();
        start(1, 2);
        OK(ctn_assign(s, ctn_scale(ctn_use(s), 2)));
        OK(ctn_scope_end(ctx));
        expect_var(s, 2, 4);
        teardown(state);
    }
    assert_int_equal(ctn_set_allocator(NULL), CTN_OK);
    setup(state);
}

/* Refused effects leave the record as it was. After an earlier error, NULL passes that error on. */
static void refused_effects(void **state)
{
    (void)state;
    static const float three[3] = {1, 2, 3};
    static const int64_t two[2] = {1, 2}, one = 1;
    ctn_context *other = NULL;
    OK(ctn_context_new(&other, CTN_OPT(ctn_context_opt, .threads = 1)));
    OK(ctn_scope_begin(other));
    start(1, 2);
    ctn_tensor *far = ctn_full(other, 1, CTN_F32, CTN_SHAPE(2));
    ctn_tensor *long_one = ctn_input(ctx, three, CTN_F32, CTN_SHAPE(3));
    ctn_tensor *whole = ctn_input(ctx, two, CTN_I64, CTN_SHAPE(2));
    ctn_tensor *x = ctn_use(p), *gx[2] = {x, x};
    assert_fails(ctn_assign(s, NULL), CTN_EARG, "is NULL");
    assert_fails(ctn_assign(NULL, x), CTN_EARG, "is NULL");
    assert_fails(ctn_assign(s, far), CTN_EARG, "another context");
    assert_fails(ctn_assign(s, long_one), CTN_ESHAPE, "s is f32 (2), but the tensor is f32 (3)");
    assert_fails(ctn_assign(s, whole), CTN_ESHAPE, "but the tensor is i64 (2)");
    assert_fails(ctn_backward(opt, NULL), CTN_EARG, "the loss is NULL");
    assert_fails(ctn_backward(opt, ctn_sum(far, CTN_ALL_AXES, 0)), CTN_EARG, "another context");
    assert_fails(ctn_backward(opt, x), CTN_ESHAPE, "the loss is f32 (2), expected one float");
    assert_fails(ctn_backward(opt, ctn_input(ctx, &one, CTN_I64, CTN_SHAPE(1))), CTN_ESHAPE,
                 "i64 (1)");
    assert_fails(ctn_backward(opt, square_sum(long_one)), CTN_EGRAD, "no trainable parameter");
    assert_fails(ctn_optim_step(opt), CTN_ESTATE, "no gradient was contributed");
    assert_fails(ctn_grad(NULL, 1, &x, gx), CTN_EARG, "needs y");
    assert_fails(ctn_grad(x, 0, &x, gx), CTN_EARG, "1 to 16 inputs");
    assert_fails(ctn_grad(x, 2, (ctn_tensor *[]){x, NULL}, gx), CTN_EARG, "x 1 is NULL");
    assert_fails(ctn_grad(x, 2, (ctn_tensor *[]){x, long_one}, gx), CTN_EGRAD, "x 1, recorded at");
    assert_true(gx[0] == NULL && gx[1] == NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ctn_fail(CTN_EDTYPE, "earlier"), CTN_EDTYPE);
        assert_fails(i == 0   ? ctn_assign(s, NULL)
                     : i == 1 ? ctn_backward(opt, NULL)
                              : ctn_grad(NULL, 1, &x, gx),
                     CTN_EDTYPE, "earlier");
    }
    OK(ctn_assign(s, ctn_scale(x, 3)));
    OK(ctn_backward(opt, square_sum(x)));
    OK(ctn_optim_step(opt));
    OK(ctn_scope_end(ctx));
    expect_var(s, 3, 6);
    expect_var(p, -1, -2); /* p - 2 p */
    OK(ctn_scope_end(other));
    ctn_context_free(other);
}

/* Two contributions before a step, in the type of the pool. */
static void contributions_add_up(void **state)
{
    (void)state;
    const struct {
        ctn_precision policy;
        ctn_dtype type;
    } kinds[] = {{CTN_PRECISION_F32, CTN_F32},
                 {CTN_PRECISION_BF16, CTN_F32},
                 {CTN_PRECISION_F64, CTN_F64},
                 {CTN_PRECISION_F32, CTN_F64}};
    for (size_t k = 0; k < 2 * sizeof kinds / sizeof *kinds; k++) {
        const ctn_dtype t = kinds[k / 2].type;
        const size_t bytes = 4 * ctn_dtype_size(t);
        const double wide[4] = {1, 2, 3, 4};
        const float narrow[4] = {1, 2, 3, 4};
        ctn_context *c = NULL;
        ctn_var *w = NULL;
        ctn_optim *o = NULL;
        const ctn_status st =
            ctn_context_new(&c,
                            CTN_OPT(ctn_context_opt, .threads = 1, .precision = kinds[k / 2].policy,
                                    .mode = k % 2 ? CTN_MODE_EAGER : CTN_MODE_PLANNED));
        ctn_error_clear();
        if (st == CTN_EUNSUPPORTED) continue; /* a CPU without bf16 */
        OK(st);
        OK(ctn_var_new(&w, c, "w", CTN_PARAM, t, CTN_SHAPE(4)));
        OK(ctn_var_set(w, t == CTN_F64 ? (const void *)wide : narrow, bytes));
        OK(ctn_sgd_new(&o, (ctn_vars){1, &w, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 1)));
        for (int later = 0; later < 2; later++) { /* in one plan, in two */
            double gd[4];
            float gf[4];
            OK(ctn_scope_begin(c));
            OK(ctn_backward(o, square_sum(ctn_use(w))));
            if (later) OK(ctn_flush(c));
            OK(ctn_backward(o, ctn_sum(ctn_scale(ctn_use(w), 3), CTN_ALL_AXES, 0)));
            OK(ctn_var_grad(w, t == CTN_F64 ? (void *)gd : gf, bytes));
            for (int i = 0; i < 4; i++)
                assert_true((t == CTN_F64 ? gd[i] : (double)gf[i]) == 2 * wide[i] + 3);
            OK(ctn_scope_end(c));
            OK(ctn_scope_begin(c)); /* the optimizer starts anew */
            OK(ctn_optim_step(o));
            OK(ctn_var_set(w, t == CTN_F64 ? (const void *)wide : narrow, bytes));
            OK(ctn_scope_end(c));
        }
        ctn_optim_free(o);
        ctn_var_free(w);
        ctn_context_free(c);
    }
}

/* Another type of a variable makes other plans, also of later segments, which do not read it. */
static void plans_depend_on_types_of_variables(void **state)
{
    (void)state;
    for (int run = 0; run < 4; run++) {
        OK(ctn__var_convert(s, CTN_F32));
        OK(ctn_var_set(s, (float[]){1, 2}, 8));
        if (run % 2) OK(ctn__var_convert(s, CTN_F64));
        OK(ctn_scope_begin(ctx));
        ctn_tensor *x = ctn_flip(ctn_use(s), 1, (const int64_t[]){0});
        OK(ctn_flush(ctx));
        assert_true(ctn_item(ctn_sum(ctn_scale(x, 3), CTN_ALL_AXES, 0)) == 9);
        OK(ctn_scope_end(ctx));
    }
}

/* What a failed scope has left pending does not change the plans of the next one. */
static void a_failed_run_leaves_no_pending_writes(void **state)
{
    (void)state;
    const float values[] = {7, 8};
    ctn_plan_stats before, after;
    for (int run = 0; run < 4; run++) {
        if (run % 2) {
            start(1, 2);
            OK(ctn_assign(s, ctn_scale(ctn_use(s), 5)));
            ctn_tensor *bad = ctn_slice(ctn_use(p), 0, 2, 1);
            float v;
            assert_int_equal(ctn_read(bad, &v, 4), CTN_EARG);
            assert_int_equal(ctn_scope_end(ctx), CTN_EARG);
            ctn_error_clear();
        }
        ctn_context_get_stats(ctx, &before);
        OK(ctn_scope_begin(ctx));
        ctn_tensor *x = ctn_use(s);
        OK(ctn_assign(s, ctn_input(ctx, values, CTN_F32, CTN_SHAPE(2))));
        expect(x, run == 0 ? 0 : run == 2 ? 7 : 1, run == 0 ? 0 : run == 2 ? 8 : 2);
        OK(ctn_scope_end(ctx));
        ctn_context_get_stats(ctx, &after);
        if (run > 0) assert_int_equal(after.misses, before.misses);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reading_a_leaf_is_part_of_the_record, setup, teardown),
        cmocka_unit_test_setup_teardown(a_leaf_is_read_as_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(a_leaf_of_an_earlier_run_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(an_assign_is_seen_before_the_step, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kept_gradient_is_used_after_the_step, setup, teardown),
        cmocka_unit_test_setup_teardown(a_miss_after_a_hit_differentiates, setup, teardown),
        cmocka_unit_test_setup_teardown(a_constant_gradient_can_be_asked_by, setup, teardown),
        cmocka_unit_test_setup_teardown(grad_mode_of_a_gradient_is_hashed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_parameter_is_a_loss, setup, teardown),
        cmocka_unit_test_setup_teardown(contributions_add_up, setup, teardown),
        cmocka_unit_test_setup_teardown(plans_depend_on_types_of_variables, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_run_leaves_no_pending_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(refused_effects, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_left_of_a_failed_run, setup, teardown),
        cmocka_unit_test_setup_teardown(half_a_record_does_not_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
