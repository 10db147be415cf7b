/* SPDX-License-Identifier: Apache-2.0
 *
 * Loss scaling. Powers of two change no bit of a training, with and without clipping, planned
 * and eager. The scale grows and backs off as configured without a new plan. A skipped step
 * changes nothing. State moved by name continues exactly. A failing allocation breaks and leaks
 * nothing.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/ops.h>
#include <catena/optim.h>

#include "support/check.h"
#include "support/ok.h"

#include <cmocka.h>

#define SCALE(...) CTN_OPT(ctn_loss_scale_opt, __VA_ARGS__)

enum { VARS = 4, STEPS = 8, MOST = 24 };

static ctn_context *ctx;
static ctn_var *var[VARS];
static const int64_t shape[VARS][2] = {{6, 4}, {6, 0}, {3, 6}, {3, 0}};
static float bad; /* added to one input; infinite to spoil a step */

static void value(int seed, int64_t n, float *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((double)(((i * 37 + seed * 101) * 7919) % 257 - 128) / 128);
}

static int64_t count(int i)
{
    return shape[i][0] * (shape[i][1] ? shape[i][1] : 1);
}

static ctn_vars net_new(ctn_mode mode)
{
    static const char *const names[VARS] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .mode = mode, .threads = 1)));
    for (int i = 0; i < VARS; i++) {
        float x[MOST];
        OK(ctn_var_new(&var[i], ctx, names[i], CTN_PARAM, CTN_F32, shape[i][1] ? 2 : 1, shape[i]));
        value(i + 1, count(i), x);
        OK(ctn_var_set(var[i], x, (size_t)count(i) * sizeof(float)));
    }
    return (ctn_vars){VARS, var, names};
}

static void net_free(ctn_optim *o)
{
    ctn_optim_free(o);
    for (int i = 0; i < VARS; i++) ctn_var_free(var[i]);
    ctn_context_free(ctx);
}

static ctn_tensor *record_loss(int step)
{
    /* Inputs are read when the plan runs, so two losses of one step need separate data. */
    static float data[2][35];
    float *x = data[step >= 40], *t = x + 20;
    value(20 + step, 20, x);
    value(60 + step, 15, t);
    x[7] += bad;
    ctn_tensor *h = ctn_tanh(
        ctn_linear(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(5, 4)), ctn_use(var[0]), ctn_use(var[1])));
    ctn_tensor *y = ctn_linear(h, ctn_use(var[2]), ctn_use(var[3]));
    return ctn_mean_squared_error(y, ctn_input(ctx, t, CTN_F32, CTN_SHAPE(5, 3)), CTN_MEAN);
}

static void train_step(ctn_optim *o, int step)
{
    OK(ctn_scope_begin(ctx));
    OK(ctn_backward(o, record_loss(step)));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
}

static void bad_step(ctn_optim *o)
{
    bad = INFINITY;
    train_step(o, 0);
    bad = 0;
}

/* Every parameter, and every array of the optimizer except those of the scaling itself. */
typedef struct {
    float w[VARS][MOST];
    char name[MOST][64];
    unsigned char x[MOST][MOST * sizeof(double)];
    int n;
    bool load, all;
} image;

static ctn_status visit(void *user, const char *name, ctn_dtype dtype, int ndim,
                        const int64_t *dims, void *data)
{
    image *s = user;
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= dims[i];
    assert_true(s->n < MOST && n <= MOST);
    if (!s->all && (strstr(name, "loss_scale") || strcmp(name, "skipped") == 0)) return CTN_OK;
    if (s->load) assert_string_equal(s->name[s->n], name);
    else snprintf(s->name[s->n], sizeof s->name[0], "%s", name);
    size_t bytes = (size_t)n * ctn_dtype_size(dtype);
    if (s->load) memcpy(data, s->x[s->n], bytes);
    else memcpy(s->x[s->n], data, bytes);
    s->n++;
    return CTN_OK;
}

static image *image_of(ctn_optim *o, bool all)
{
    image *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->all = all;
    OK(ctn_optim_visit(o, visit, s));
    for (int i = 0; i < VARS; i++)
        OK(ctn_var_get(var[i], s->w[i], (size_t)count(i) * sizeof(float)));
    return s;
}

static void assert_same(image *a, image *b)
{
    assert_memory_equal(a, b, sizeof *a);
    free(a);
    free(b);
}

/* ---- the same training with and without scaling ---------------------------------------------- */

static ctn_status make_sgd(ctn_optim **o, ctn_vars v)
{
    return ctn_sgd_new(o, v, CTN_OPT(ctn_sgd_opt, .lr = 0.1, .decay = 0.05));
}

static ctn_status make_nesterov(ctn_optim **o, ctn_vars v)
{
    return ctn_sgd_new(o, v, CTN_OPT(ctn_sgd_opt, .lr = 0.05, .momentum = 0.9, .nesterov = 1));
}

static ctn_status make_adamw(ctn_optim **o, ctn_vars v)
{
    return ctn_adamw_new(o, v, CTN_OPT(ctn_adam_opt, .lr = 0.02));
}

static ctn_status make_amsgrad(ctn_optim **o, ctn_vars v)
{
    return ctn_adam_new(o, v, CTN_OPT(ctn_adam_opt, .lr = 0.02, .amsgrad = 1));
}

typedef ctn_status (*maker)(ctn_optim **o, ctn_vars v);
static const maker makers[] = {make_sgd, make_nesterov, make_adamw, make_amsgrad};
enum { MAKERS = sizeof makers / sizeof *makers };

typedef struct {
    maker make;
    ctn_mode mode;
    double clip;
    int twice;  /* two contributions per step */
    int spoilt; /* a bad step before this one */
} training;

static image *train(const training *t, const ctn_loss_scale_opt *scale)
{
    ctn_optim *o;
    OK(t->make(&o, net_new(t->mode)));
    ctn_optim_set_clip(o, t->clip);
    OK(ctn_optim_set_schedule(o, CTN_OPT(ctn_sched_opt, .kind = CTN_SCHED_COSINE, .steps = 10)));
    OK(ctn_optim_set_loss_scale(o, scale));
    for (int step = 0; step < STEPS; step++) {
        if (scale && t->spoilt && step == t->spoilt) bad_step(o);
        OK(ctn_scope_begin(ctx));
        OK(ctn_backward(o, record_loss(step)));
        if (t->twice) {
            /* The gradients of one step have one scale, whatever is set in between. */
            if (scale) OK(ctn_optim_set_loss_scale(o, SCALE(.scale = 4)));
            OK(ctn_backward(o, record_loss(step + 40)));
            if (scale) OK(ctn_optim_set_loss_scale(o, scale));
        }
        OK(ctn_optim_step(o));
        OK(ctn_scope_end(ctx));
    }
    assert_int_equal(ctn_optim_steps(o), STEPS);
    assert_int_equal(ctn_optim_skipped(o), scale && t->spoilt ? 1 : 0);
    image *s = image_of(o, false);
    net_free(o);
    return s;
}

static void powers_of_two_change_nothing(void **state)
{
    (void)state;
    for (int k = 0; k < MAKERS; k++)
        for (int how = 0; how < 16; how++) {
            training t = {.make = makers[k],
                          .mode = how & 1 ? CTN_MODE_EAGER : CTN_MODE_PLANNED,
                          .clip = how & 2 ? 0.3 : 0,
                          .twice = how & 4,
                          .spoilt = how & 8 ? 3 : 0};
            image *plain = train(&t, NULL);
            image *again = train(&t, NULL);
            assert_memory_equal(plain, again, sizeof *plain);
            free(again);
            image *copy = malloc(sizeof *copy);
            assert_non_null(copy);
            *copy = *plain;
            assert_same(copy, train(&t, SCALE(.scale = 1024)));
            assert_same(plain, train(&t, SCALE(.dynamic = 1, .interval = 2, .max = 1 << 20)));
        }
}

/* Not a power of two: equal up to the rounding of the scale and of its reciprocal. */
static void any_scale_is_divided_out(void **state)
{
    (void)state;
    training t = {.make = make_adamw, .clip = 0.3};
    image *a = train(&t, NULL), *b = train(&t, SCALE(.scale = 1000.1));
    for (int i = 0; i < VARS; i++)
        for (int64_t j = 0; j < count(i); j++)
            assert_true(fabs((double)a->w[i][j] - (double)b->w[i][j]) < 1e-5);
    free(a);
    free(b);
}

static void clipping_sees_unscaled_gradients(void **state)
{
    (void)state;
    double norm[2];
    for (int scaled = 0; scaled < 2; scaled++) {
        ctn_optim *o;
        OK(make_sgd(&o, net_new(CTN_MODE_PLANNED)));
        ctn_optim_set_clip(o, 1e9);
        if (scaled) OK(ctn_optim_set_loss_scale(o, SCALE(.scale = 4096)));
        train_step(o, 0);
        norm[scaled] = ctn_optim_norm(o);
        net_free(o);
    }
    assert_true(norm[0] > 0 && norm[0] == norm[1]);
}

/* ---- the scale ------------------------------------------------------------------------------ */

static void it_grows_and_backs_off(void **state)
{
    (void)state;
    ctn_optim *o;
    OK(make_sgd(&o, net_new(CTN_MODE_PLANNED)));
    assert_true(ctn_optim_loss_scale(o) == 1);
    OK(ctn_optim_set_loss_scale(o, SCALE(.dynamic = 1)));
    assert_true(ctn_optim_loss_scale(o) == 65536);
    OK(ctn_optim_set_loss_scale(o, SCALE(.dynamic = 1, .scale = 8, .interval = 3, .growth = 4,
                                         .max = 64, .min = 4)));
    const double want[] = {8, 8, 32, 32, 32, 64, 64, 64, 64, 64};
    for (int i = 0; i < 10; i++) {
        train_step(o, i);
        assert_true(ctn_optim_loss_scale(o) == want[i]);
    }
    bad_step(o); /* the count of good steps starts again */
    assert_true(ctn_optim_loss_scale(o) == 32);
    train_step(o, 0);
    train_step(o, 1);
    assert_true(ctn_optim_loss_scale(o) == 32);
    train_step(o, 2);
    assert_true(ctn_optim_loss_scale(o) == 64);
    for (int i = 0; i < 6; i++) bad_step(o);
    assert_true(ctn_optim_loss_scale(o) == 4);
    assert_int_equal(ctn_optim_skipped(o), 7);
    assert_int_equal(ctn_optim_steps(o), 13);
    ctn_plan_stats s;
    ctn_context_get_stats(ctx, &s);
    assert_int_equal(s.plans, 1);
    assert_int_equal(s.misses, 1);
    OK(ctn_optim_set_loss_scale(o, SCALE(.scale = 512))); /* static: stays the same */
    bad_step(o);
    assert_true(ctn_optim_loss_scale(o) == 512);
    assert_int_equal(ctn_optim_skipped(o), 8);
    OK(ctn_optim_set_loss_scale(o, NULL));
    assert_true(ctn_optim_loss_scale(o) == 1);
    train_step(o, 0);
    ctn_context_get_stats(ctx, &s);
    assert_int_equal(s.misses, 1); /* switching scaling on and off makes no plan either */
    net_free(o);
}

static void a_skipped_step_leaves_every_bit(void **state)
{
    (void)state;
    for (int k = 0; k < MAKERS; k++) {
        ctn_optim *o;
        OK(makers[k](&o, net_new(CTN_MODE_PLANNED)));
        OK(ctn_optim_set_schedule(o, CTN_OPT(ctn_sched_opt, .warmup = 100)));
        OK(ctn_optim_set_loss_scale(o, SCALE(.dynamic = 1)));
        for (int i = 0; i < 3; i++) train_step(o, i);
        double lr = ctn_optim_lr(o);
        image *was = image_of(o, false);
        bad_step(o);
        bad_step(o);
        assert_same(was, image_of(o, false));
        assert_true(!isfinite(ctn_optim_norm(o)));
        assert_true(ctn_optim_lr(o) == lr);
        assert_true(ctn_optim_loss_scale(o) == 16384);
        assert_int_equal(ctn_optim_skipped(o), 2);
        assert_int_equal(ctn_optim_steps(o), 3);
        train_step(o, 3);
        assert_true(isfinite(ctn_optim_norm(o)) && ctn_optim_norm(o) > 0);
        net_free(o);
    }
}

/* w = (1, 1), loss = a sum(w), so its gradient is the scale times a. */
static void step_of(ctn_optim *o, ctn_var *w, double a)
{
    OK(ctn_scope_begin(ctx));
    OK(ctn_backward(o, ctn_scale(ctn_sum(ctn_use(w), CTN_ALL_AXES, 0), a)));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
}

static void only_what_is_not_finite_is_skipped(void **state)
{
    (void)state;
    ctn_var *w;
    ctn_optim *o;
    const float one[2] = {1, 1};
    float now[2];
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    OK(ctn_var_new(&w, ctx, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(2)));
    OK(ctn_var_set(w, one, sizeof one));
    OK(ctn_sgd_new(&o, (ctn_vars){1, &w, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 1)));
    OK(ctn_optim_set_loss_scale(o,
                                SCALE(.dynamic = 1, .scale = 0x1p80, .interval = 1, .max = 1e30)));
    step_of(o, w, 0x1p20); /* 2^100: its square does not fit in a float */
    assert_int_equal(ctn_optim_skipped(o), 0);
    OK(ctn_var_get(w, now, sizeof now));
    assert_true(now[0] == 1 - 0x1p20f && now[1] == now[0]);
    assert_true(ctn_optim_norm(o) == sqrt(2) * 0x1p20);
    step_of(o, w, 0x1p60); /* 2^81 * 2^60 overflows, 2^60 would not */
    assert_int_equal(ctn_optim_skipped(o), 1);
    assert_true(ctn_optim_loss_scale(o) == 0x1p80);
    OK(ctn_var_get(w, now, sizeof now));
    assert_true(now[0] == 1 - 0x1p20f);
    step_of(o, w, (double)NAN);
    assert_int_equal(ctn_optim_skipped(o), 2);
    OK(ctn_optim_set_loss_scale(o, NULL)); /* off: the gradient is applied as it is */
    step_of(o, w, (double)INFINITY);
    OK(ctn_var_get(w, now, sizeof now));
    assert_true(isinf(now[0]));
    assert_int_equal(ctn_optim_skipped(o), 2);
    ctn_optim_free(o);
    ctn_var_free(w);
    ctn_context_free(ctx);
}

static void options_that_cannot_be(void **state)
{
    (void)state;
    ctn_optim *o;
    OK(make_sgd(&o, net_new(CTN_MODE_PLANNED)));
    OK(ctn_optim_set_loss_scale(o, SCALE(.scale = 2)));
    const ctn_loss_scale_opt refused[] = {
        {.scale = 0},
        {.scale = -1},
        {.scale = (double)NAN},
        {.scale = (double)INFINITY},
        {.scale = 1e31},
        {.scale = 1e-31},
        {.dynamic = 1, .growth = 0.5},
        {.dynamic = 1, .growth = (double)INFINITY},
        {.dynamic = 1, .backoff = 2},
        {.dynamic = 1, .backoff = -1},
        {.dynamic = 1, .interval = -1},
        {.dynamic = 1, .scale = 8, .max = 4},
        {.dynamic = 1, .scale = 8, .min = 16},
        {.dynamic = 1, .max = 1e40},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ctn_loss_scale_opt s = refused[i];
        s.struct_size = sizeof s;
        assert_int_equal(ctn_optim_set_loss_scale(o, &s), CTN_EARG);
        assert_non_null(strstr(ctn_error_message(), "loss_scale"));
        ctn_error_clear();
        assert_true(ctn_optim_loss_scale(o) == 2);
    }
    /* the maximum is raised as well */
    OK(ctn_optim_set_loss_scale(o, SCALE(.dynamic = 1, .scale = 1e9)));
    OK(ctn_optim_set_loss_scale(o, SCALE(.dynamic = 1, .scale = 0.5)));
    net_free(o);
}

/* ---- state ---------------------------------------------------------------------------------- */

static ctn_optim *scaled_adam(ctn_vars v)
{
    ctn_optim *o;
    OK(make_adamw(&o, v));
    OK(ctn_optim_set_loss_scale(o, SCALE(.dynamic = 1, .scale = 8, .interval = 5)));
    return o;
}

static void state_moves_by_name(void **state)
{
    (void)state;
    image *end[2];
    for (int move = 0; move < 2; move++) {
        ctn_vars v = net_new(CTN_MODE_PLANNED);
        ctn_optim *o = scaled_adam(v);
        for (int i = 0; i < 12; i++) {
            if (i == 2) bad_step(o);
            if (i == 5 && move) { /* three good steps into an interval */
                image *s = image_of(o, true);
                ctn_optim_free(o);
                o = scaled_adam(v);
                s->load = true;
                s->n = 0;
                OK(ctn_optim_visit(o, visit, s));
                free(s);
            }
            train_step(o, i);
        }
        assert_true(ctn_optim_loss_scale(o) == 16);
        assert_int_equal(ctn_optim_skipped(o), 1);
        end[move] = image_of(o, true);
        net_free(o);
    }
    assert_same(end[0], end[1]);
}

static ctn_status spoil(void *user, const char *name, ctn_dtype dtype, int ndim,
                        const int64_t *dims, void *data)
{
    (void)dtype, (void)ndim, (void)dims;
    if (strcmp(name, "loss_scale") == 0) *(double *)data = *(const double *)user;
    return CTN_OK;
}

static void a_spoilt_scale_is_not_loaded(void **state)
{
    (void)state;
    ctn_optim *o = scaled_adam(net_new(CTN_MODE_PLANNED));
    double wrong[] = {(double)NAN, 0, -8, (double)INFINITY};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ctn_optim_visit(o, spoil, &wrong[i]), CTN_EFORMAT);
        ctn_error_clear();
        assert_true(ctn_optim_loss_scale(o) == 8);
    }
    net_free(o);
}

/* ---- failing allocations --------------------------------------------------------------------- */

static failing_once memory;

/* After the first failure, continues like a stubborn program: the record must stay consistent. */
static ctn_status scenario(double *out)
{
    ctn_status st = CTN_OK, first = CTN_OK;
    ctn_var *w = NULL;
    ctn_optim *o = NULL;
    const float one[2] = {1, 1};
    float now[2] = {0, 0};
    ctx = NULL;
    CTN_TRY_GOTO(st, done, ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    CTN_TRY_GOTO(st, done, ctn_var_new(&w, ctx, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(2)));
    CTN_TRY_GOTO(st, done, ctn_var_set(w, one, sizeof one));
    CTN_TRY_GOTO(st, done, ctn_sgd_new(&o, (ctn_vars){1, &w, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 1)));
    CTN_TRY_GOTO(st, done, ctn_optim_set_loss_scale(o, SCALE(.dynamic = 1, .interval = 1)));
    for (int i = 0; i < 3; i++) {
        st = ctn_scope_begin(ctx);
        if (st == CTN_OK)
            st = ctn_backward(o, ctn_scale(ctn_sum(ctn_use(w), CTN_ALL_AXES, 0),
                                           i == 1 ? INFINITY : 2));
        if (st == CTN_OK) st = ctn_optim_step(o);
        ctn_status end = ctn_scope_end(ctx);
        if (first == CTN_OK) first = st < 0 ? st : end;
    }
    CTN_TRY_GOTO(st, done, ctn_var_get(w, now, sizeof now));
    *out = (double)now[0] + (double)ctn_optim_steps(o) * 2;
    st = first;
done:
    ctn_optim_free(o);
    ctn_var_free(w);
    ctn_context_free(ctx);
    return st;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    ctn_allocator a = {failing_once_alloc, failing_once_release, &memory};
    OK(ctn_set_allocator(&a));
    double out = 0;
    memory.calls = 0;
    memory.fail_at = 0;
    OK(scenario(&out));
    assert_true(out == 1); /* w = 1 - 2 * steps */
    long all = memory.calls;
    for (memory.fail_at = 1; memory.fail_at <= all; memory.fail_at++) {
        ctn_error_clear();
        memory.calls = 0;
        out = 1;
        ctn_status st = scenario(&out);
        assert_int_equal(memory.live, 0);
        assert_true(st == CTN_OK || st == CTN_ENOMEM);
        assert_true(out == 1); /* perhaps fewer steps, but each one is right */
    }
    ctn_error_clear();
    OK(ctn_set_allocator(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_of_two_change_nothing),
        cmocka_unit_test(any_scale_is_divided_out),
        cmocka_unit_test(clipping_sees_unscaled_gradients),
        cmocka_unit_test(it_grows_and_backs_off),
        cmocka_unit_test(a_skipped_step_leaves_every_bit),
        cmocka_unit_test(only_what_is_not_finite_is_skipped),
        cmocka_unit_test(options_that_cannot_be),
        cmocka_unit_test(state_moves_by_name),
        cmocka_unit_test(a_spoilt_scale_is_not_loaded),
        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
