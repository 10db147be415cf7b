/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules against their formulas and, for one-cycle and multistep, against values of PyTorch's
 * OneCycleLR and MultiStepLR. Hyperparameters by name: which ones an optimizer has, which values
 * it refuses, that a change needs no new plan, and that they are part of the state.
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

#include <cmocka.h>

#include "optim/optim.h"
#include "support/ok.h"

#define SCHED(...) CTN_OPT(ctn_sched_opt, __VA_ARGS__)

static void assert_near(double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol * fmax(1e-300, fabs(want))))
        fail_msg("%.17g, expected %.17g", got, want);
}

/* torch.optim.lr_scheduler.OneCycleLR(SGD(lr=1), max_lr=1, total_steps=N): get_last_lr() of each
 * step. The second has pct_start=0.25, div_factor=10, final_div_factor=100. */
static void test_one_cycle(void **state)
{
    (void)state;
    static const double ten[10] = {0.04,
                                   0.52,
                                   1,
                                   0.950484632013474,
                                   0.811745653949763,
                                   0.611262021936289,
                                   0.388741978063711,
                                   0.188258346050237,
                                   0.0495193679865263,
                                   4e-06};
    static const double quarter[8] = {0.1,    1,       0.933079689190327,  0.75025,
                                      0.5005, 0.25075, 0.0679203108096729, 0.001};
    for (int i = 0; i < 10; i++)
        assert_near(ctn_sched_factor(SCHED(.kind = CTN_SCHED_ONE_CYCLE, .steps = 10), i), ten[i],
                    1e-12);
    for (int i = 0; i < 8; i++)
        assert_near(ctn_sched_factor(SCHED(.kind = CTN_SCHED_ONE_CYCLE, .steps = 8, .rise = 0.25,
                                           .start = 0.1, .end = 0.001),
                                     i),
                    quarter[i], 1e-12);
    const ctn_sched_opt *s = SCHED(.kind = CTN_SCHED_ONE_CYCLE, .steps = 1000);
    assert_near(ctn_sched_factor(s, 0), 0.04, 1e-15);
    assert_near(ctn_sched_factor(s, 299), 1, 1e-15);
    assert_near(ctn_sched_factor(s, 999), 4e-6, 1e-9);
    assert_near(ctn_sched_factor(s, 5000), 4e-6, 1e-9); /* after the end it stays constant */
    for (int64_t i = 0; i < 999; i++)                   /* up, then down */
        assert_true(i < 299 ? ctn_sched_factor(s, i) < ctn_sched_factor(s, i + 1)
                            : ctn_sched_factor(s, i) > ctn_sched_factor(s, i + 1));
}

static void test_formulas(void **state)
{
    (void)state;
    const ctn_sched_opt *m = SCHED(.kind = CTN_SCHED_MULTISTEP, .gamma = 0.1, .at = {3, 5, 9});
    static const double multi[] = {1, 1, 1, .1, .1, .01, .01, .01, .01, .001, .001};
    for (int i = 0; i < 11; i++) assert_near(ctn_sched_factor(m, i), multi[i], 1e-12);
    for (int i = 0; i < 50; i++) {
        assert_near(ctn_sched_factor(SCHED(.kind = CTN_SCHED_INVERSE, .gamma = 0.5, .power = 0.75),
                                     i),
                    1 / pow(1 + 0.5 * i, 0.75), 1e-14);
        assert_near(ctn_sched_factor(SCHED(.kind = CTN_SCHED_COSINE, .steps = 40, .end = 0.1), i),
                    0.1 + 0.45 * (1 + cos(M_PI * (i < 40 ? i : 40) / 40)), 1e-14);
        assert_near(ctn_sched_factor(SCHED(.kind = CTN_SCHED_EXPONENTIAL, .gamma = 0.9), i),
                    pow(0.9, i), 1e-14);
    }
    const ctn_sched_opt *w =
        SCHED(.kind = CTN_SCHED_MULTISTEP, .warmup = 4, .gamma = 0.5, .at = {2});
    static const double warm[] = {.25, .5, .75, 1, 1, 1, .5, .5};
    for (int i = 0; i < 8; i++) assert_near(ctn_sched_factor(w, i), warm[i], 1e-15);
}

static void refuses(const ctn_sched_opt *s, const char *part)
{
    ctn_sched_opt out;
    ctn_error_clear();
    assert_int_equal(ctn__sched_check(&out, s, 0), CTN_EARG);
    if (!strstr(ctn_error_message(), part)) fail_msg("%s", ctn_error_message());
    ctn_error_clear();
}

static void test_refusals(void **state)
{
    (void)state;
    ctn_sched_opt out;
    refuses(SCHED(.kind = CTN_SCHED_ONE_CYCLE), "steps");
    refuses(SCHED(.kind = CTN_SCHED_ONE_CYCLE, .steps = 5, .rise = 1), "rise");
    refuses(SCHED(.kind = CTN_SCHED_MULTISTEP, .gamma = 0.1), "at");
    refuses(SCHED(.kind = CTN_SCHED_MULTISTEP, .gamma = 0.1, .at = {5, 5}), "ascend");
    refuses(SCHED(.kind = CTN_SCHED_INVERSE, .gamma = 0.1), "power");
    refuses(SCHED(.kind = (ctn_sched_kind)99), "99");
    OK(ctn__sched_check(&out, SCHED(.kind = CTN_SCHED_ONE_CYCLE, .warmup = 3), 10));
    assert_int_equal(out.steps, 7);
}

/* ---- hyperparameters ------------------------------------------------------------------------- */

static ctn_context *ctx;
static ctn_var *var[2];

static ctn_vars vars_new(void)
{
    static const char *const names[2] = {"w", "b"};
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    for (int i = 0; i < 2; i++) {
        const float one = 1;
        OK(ctn_var_new(&var[i], ctx, names[i], CTN_PARAM, CTN_F32, 1, (const int64_t[]){1}));
        OK(ctn_var_set(var[i], &one, sizeof one));
    }
    return (ctn_vars){2, var, names};
}

static void vars_free(ctn_optim *o)
{
    ctn_optim_free(o);
    for (int i = 0; i < 2; i++) ctn_var_free(var[i]);
    ctn_context_free(ctx);
}

/* The gradient of both parameters is 1. */
static void step(ctn_optim *o, float out[2])
{
    OK(ctn_scope_begin(ctx));
    OK(ctn_backward(o, ctn_sum(ctn_add(ctn_use(var[0]), ctn_use(var[1])), CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
    for (int i = 0; i < 2; i++) OK(ctn_var_get(var[i], &out[i], sizeof *out));
}

static void test_sgd_hyper(void **state)
{
    (void)state;
    ctn_optim *o = NULL;
    float w[2];
    ctn_plan_stats before, after;
    OK(ctn_sgd_new(&o, vars_new(), CTN_OPT(ctn_sgd_opt, .lr = 0.25, .momentum = 0.5)));
    assert_int_equal(ctn_optim_group(o, "b", CTN_OPT(ctn_group_opt, .decay = &(double){0.0})), 1);
    step(o, w);
    assert_true(w[0] == 0.75f && w[1] == 0.75f); /* b = 1 */
    ctn_context_get_stats(ctx, &before);
    OK(ctn_optim_set_hyper(o, "momentum", 0));
    OK(ctn_optim_set_hyper(o, "lr", 0.5));
    OK(ctn_optim_set_hyper(o, "decay", 1));
    step(o, w);
    assert_true(w[0] == 0.75f - 0.5f * 1.75f); /* its gradient and decay, without momentum */
    assert_true(w[1] == 0.25f);                /* its own decay stays 0 */
    ctn_context_get_stats(ctx, &after);
    assert_int_equal(before.misses, after.misses);
    assert_true(ctn_optim_hyper(o, "momentum") == 0 && ctn_optim_hyper(o, "decay") == 1);
    assert_true(isnan(ctn_optim_hyper(o, "beta2")) && isnan(ctn_optim_hyper(o, "x")));
    assert_int_equal(ctn_optim_set_hyper(o, "beta1", 0.5), CTN_ENOTFOUND);
    assert_non_null(strstr(ctn_error_message(), "momentum"));
    ctn_error_clear();
    assert_int_equal(ctn_optim_set_hyper(o, "momentum", 1), CTN_EARG);
    assert_int_equal(ctn_optim_set_hyper(o, "lr", NAN), CTN_EARG);
    ctn_error_clear();
    vars_free(o);
    OK(ctn_sgd_new(&o, vars_new(), NULL)); /* without momentum it has no state for it */
    assert_int_equal(ctn_optim_set_hyper(o, "momentum", 0.5), CTN_ENOTFOUND);
    ctn_error_clear();
    vars_free(o);
}

typedef struct {
    char name[16][32];
    double value[16];
    int n;
    bool load;
} scalars;

static ctn_status visit(void *user, const char *name, ctn_dtype dtype, int ndim,
                        const int64_t *dims, void *data)
{
    scalars *s = user;
    (void)dims;
    if (ndim > 0 || dtype != CTN_F64) return CTN_OK;
    if (s->load) memcpy(data, &s->value[s->n], sizeof(double));
    else memcpy(&s->value[s->n], data, sizeof(double));
    snprintf(s->name[s->n++], 32, "%s", name);
    return CTN_OK;
}

static void test_hyper_state(void **state)
{
    (void)state;
    ctn_optim *o = NULL;
    static const char *const names[] = {"lr", "decay", "beta1", "beta2", "eps"};
    static const double values[] = {0.5, 0.25, 0.125, 0.75, 0.0625};
    scalars s = {0};
    OK(ctn_adamw_new(&o, vars_new(), NULL));
    for (int i = 0; i < 5; i++) OK(ctn_optim_set_hyper(o, names[i], values[i]));
    OK(ctn_optim_visit(o, visit, &s));
    vars_free(o);
    OK(ctn_adamw_new(&o, vars_new(), NULL));
    s.n = 0;
    s.load = true;
    OK(ctn_optim_visit(o, visit, &s));
    for (int i = 0; i < 5; i++) assert_true(ctn_optim_hyper(o, names[i]) == values[i]);
    assert_true(o->group[0].decay == 0.25);
    vars_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_cycle),
                                       cmocka_unit_test(test_formulas),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_sgd_hyper),
                                       cmocka_unit_test(test_hyper_state)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
