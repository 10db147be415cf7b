/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of optimizers, loss scaling and schedules: the defaults that the header promises, what is
 * refused and what is just allowed. Also skipped steps, and LARS next to zeros. The updates
 * themselves are compared with PyTorch in golden.optim.
 */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

static ctn_context *ctx;
static ctn_var *var;
static float input[3]; /* the gradient of var */

static int set_up(void **state)
{
    (void)state;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    OK(ctn_var_new(&var, ctx, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(3)));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ctn_var_free(var);
    ctn_context_free(ctx);
    return 0;
}

static ctn_vars vars(void)
{
    return (ctn_vars){1, &var, NULL};
}

static void step(ctn_optim *o)
{
    OK(ctn_scope_begin(ctx));
    ctn_tensor *g = ctn_input(ctx, input, CTN_F32, CTN_SHAPE(3));
    OK(ctn_backward(o, ctn_sum(ctn_mul(ctn_use(var), g), CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
}

static void set_gradient(float a, float b, float c)
{
    input[0] = a;
    input[1] = b;
    input[2] = c;
}

/* ---- defaults -------------------------------------------------------------------------------- */

typedef struct {
    const char *name; /* NULL ends a list */
    double value;
} hyper;

static void hypers_are(const char *what, ctn_status st, ctn_optim *o, const hyper *h)
{
    OK(st);
    for (; h->name; h++)
        if (ctn_optim_hyper(o, h->name) != h->value)
            fail_msg("%s: %s is %g, expected %g", what, h->name, ctn_optim_hyper(o, h->name),
                     h->value);
    ctn_optim_free(o);
}

#define HYPERS(kind, opt, ...)                                             \
    do {                                                                   \
        ctn_optim *o = NULL;                                               \
        ctn_status st = ctn_##kind##_new(&o, vars(), opt);                 \
        hypers_are(#kind, st, o, (const hyper[]){__VA_ARGS__, {NULL, 0}}); \
    } while (0)

static void defaults(void **state)
{
    (void)state;
    HYPERS(sgd, NULL, {"lr", 0.01}, {"decay", 0});
    HYPERS(adam, NULL, {"lr", 1e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"decay", 0});
    HYPERS(adamw, NULL, {"lr", 1e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"decay", 0.01});
    HYPERS(adamw, CTN_OPT(ctn_adam_opt, .decay = -1), {"decay", 0});
    HYPERS(rmsprop, NULL, {"lr", 0.01}, {"alpha", 0.99}, {"eps", 1e-8}, {"decay", 0});
    HYPERS(adagrad, NULL, {"lr", 0.01}, {"lr_decay", 0}, {"eps", 1e-10});
    HYPERS(adadelta, NULL, {"lr", 1}, {"rho", 0.9}, {"eps", 1e-6});
    HYPERS(adamax, NULL, {"lr", 0.002}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8});
    HYPERS(nadam, NULL, {"lr", 0.002}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8},
           {"momentum_decay", 0.004});
    HYPERS(radam, NULL, {"lr", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8});
    HYPERS(lion, NULL, {"lr", 0.0001}, {"beta1", 0.9}, {"beta2", 0.99}, {"decay", 0});
    HYPERS(lamb, NULL, {"lr", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-6});
    HYPERS(lars, NULL, {"lr", 0.1}, {"momentum", 0.9}, {"trust", 0.001}, {"eps", 0});
    HYPERS(lars, CTN_OPT(ctn_lars_opt, .momentum = -1), {"momentum", 0});
    HYPERS(adabound, NULL, {"lr", 0.001}, {"final_lr", 0.1}, {"gamma", 0.001}, {"beta1", 0.9},
           {"beta2", 0.999}, {"eps", 1e-8});
    HYPERS(smorms3, NULL, {"lr", 0.001}, {"eps", 1e-16});
    HYPERS(msvag, NULL, {"lr", 0.1}, {"beta", 0.9});
    HYPERS(adafactor, NULL, {"lr", 0.01}, {"beta2_decay", -0.8}, {"eps1", 0x1p-23}, {"eps2", 0.001},
           {"clip", 1});
    HYPERS(lbfgs, NULL, {"lr", 1});
}

/* ---- refused --------------------------------------------------------------------------------- */

#define REFUSED(kind, type, message, ...)                                                  \
    do {                                                                                   \
        ctn_optim *o = NULL;                                                               \
        assert_fails(ctn_##kind##_new(&o, vars(), CTN_OPT(ctn_##type##_opt, __VA_ARGS__)), \
                     CTN_EARG, message);                                                   \
        assert_null(o);                                                                    \
    } while (0)
#define ALLOWED(kind, type, ...)                                                  \
    do {                                                                          \
        ctn_optim *o = NULL;                                                      \
        OK(ctn_##kind##_new(&o, vars(), CTN_OPT(ctn_##type##_opt, __VA_ARGS__))); \
        ctn_optim_free(o);                                                        \
    } while (0)
#define BETAS(kind, type)                                            \
    do {                                                             \
        REFUSED(kind, type, #type ": beta1 is 1", .beta1 = 1);       \
        REFUSED(kind, type, #type ": beta1 is -0.1", .beta1 = -0.1); \
        REFUSED(kind, type, "beta2 1, both", .beta2 = 1);            \
        REFUSED(kind, type, "beta2 -0.1, both", .beta2 = -0.1);      \
        REFUSED(kind, type, "must be in [0,1)", .beta2 = NAN);       \
        ALLOWED(kind, type, .beta1 = 0.999999, .beta2 = 0.999999);   \
    } while (0)

static void refused_options(void **state)
{
    (void)state;
    BETAS(adam, adam);
    BETAS(adamw, adam);
    BETAS(adamax, adamax);
    BETAS(nadam, nadam);
    BETAS(radam, radam);
    BETAS(lion, lion);
    BETAS(lamb, lamb);
    BETAS(adabound, adabound);
    REFUSED(adabound, adabound, "final_lr is -1", .final_lr = -1);
    REFUSED(adabound, adabound, "gamma -1", .gamma = -1);
    REFUSED(adadelta, adadelta, "rho is 1", .rho = 1);
    REFUSED(adadelta, adadelta, "rho is -0.5", .rho = -0.5);
    REFUSED(rmsprop, rmsprop, "alpha is 1 ", .alpha = 1);
    REFUSED(rmsprop, rmsprop, "alpha is -0.5", .alpha = -0.5);
    REFUSED(rmsprop, rmsprop, "momentum 1,", .momentum = 1);
    REFUSED(rmsprop, rmsprop, "momentum -0.5", .momentum = -0.5);
    ALLOWED(rmsprop, rmsprop, .momentum = 0.5, .alpha = 0.5, .centered = 1);
    REFUSED(adagrad, adagrad, "lr_decay is -1", .lr_decay = -1);
    REFUSED(adagrad, adagrad, "initial -1", .initial = -1);
    REFUSED(lars, lars, "momentum is 1,", .momentum = 1);
    REFUSED(lars, lars, "trust -1", .trust = -1);
    REFUSED(lars, lars, "eps -1", .eps = -1);
    REFUSED(msvag, msvag, "beta is 1,", .beta = 1);
    REFUSED(msvag, msvag, "beta is -1", .beta = -1);
    REFUSED(adafactor, adafactor, "beta2_decay is 0.5", .beta2_decay = 0.5);
    REFUSED(adafactor, adafactor, "eps1 is -1", .eps1 = -1);
    REFUSED(adafactor, adafactor, "eps2 is -1", .eps2 = -1);
    REFUSED(adafactor, adafactor, "clip is -1", .clip = -1);
    REFUSED(sgd, sgd, "Nesterov needs momentum", .nesterov = 1);
    REFUSED(sgd, sgd, "no dampening", .nesterov = 1, .momentum = 0.9, .dampening = 0.1);
    ALLOWED(sgd, sgd, .nesterov = 1, .momentum = 0.9);
    ALLOWED(sgd, sgd, .momentum = 0.9, .dampening = 0.1);
    REFUSED(lbfgs, lbfgs, "iterations is -1", .iterations = -1);
    REFUSED(lbfgs, lbfgs, "evaluations -1", .evaluations = -1);
    REFUSED(lbfgs, lbfgs, "history -1", .history = -1);
}

static void hypers_can_be_set(void **state)
{
    (void)state;
    ctn_optim *o = NULL;
    OK(ctn_adam_new(&o, vars(), NULL));
    OK(ctn_optim_set_hyper(o, "beta1", 0));
    OK(ctn_optim_set_hyper(o, "eps", 2));
    assert_true(ctn_optim_hyper(o, "beta1") == 0 && ctn_optim_hyper(o, "eps") == 2);
    assert_fails(ctn_optim_set_hyper(o, "beta2", 1), CTN_EARG, "beta2 is 1, it must be in [0,1)");
    assert_fails(ctn_optim_set_hyper(o, "beta2", -0.1), CTN_EARG, "beta2 is -0.1");
    assert_fails(ctn_optim_set_hyper(o, "eps", INFINITY), CTN_EARG, "it must be finite");
    assert_fails(ctn_optim_set_hyper(o, "rho", 1), CTN_ENOTFOUND,
                 "adam has no rho; it has lr, decay, beta1, beta2, eps");
    assert_fails(ctn_optim_set_hyper(o, NULL, 1), CTN_ENOTFOUND, "hyperparameter NULL");
    assert_fails(ctn_optim_set_hyper(NULL, "lr", 1), CTN_ENOTFOUND, "no optimizer");
    assert_true(isnan(ctn_optim_hyper(NULL, "lr")) && isnan(ctn_optim_hyper(o, NULL)));
    assert_true(ctn_optim_hyper(o, "beta2") == 0.999);
    ctn_optim_free(o);
}

static ctn_status far_entry(void *user, const char *name, ctn_dtype dtype, int ndim,
                            const int64_t *dim, void *data)
{
    (void)dtype, (void)ndim, (void)dim;
    int64_t *first = user;
    if (strcmp(name, "lbfgs.first") != 0) return CTN_OK;
    if (*first == 0) *(int64_t *)data = INT64_C(1) << 40; /* a hostile file */
    *first = *(int64_t *)data;
    return CTN_OK;
}

/* A state that is refused leaves no position behind that the next step would use. */
static void refused_history(void **state)
{
    (void)state;
    ctn_optim *o = NULL;
    int64_t first = 0;
    OK(ctn_lbfgs_new(&o, vars(), CTN_OPT(ctn_lbfgs_opt, .iterations = INT_MAX)));
    assert_fails(ctn_optim_visit(o, far_entry, &first), CTN_EFORMAT, "saved history");
    OK(ctn_optim_visit(o, far_entry, &first));
    assert_int_equal(first, 0);
    ctn_optim_free(o);
}

/* ---- schedules ------------------------------------------------------------------------------- */

static void schedules(void **state)
{
    (void)state;
    static const ctn_sched_opt bad[] = {
        {.kind = CTN_SCHED_STEP, .every = 5},
        {.kind = CTN_SCHED_STEP, .every = -5, .gamma = 0.5},
        {.kind = CTN_SCHED_MULTISTEP, .gamma = 0.5},
        {.kind = CTN_SCHED_MULTISTEP, .at = {5}},
        {.kind = CTN_SCHED_MULTISTEP, .gamma = 0.5, .at = {5, 5}},
        {.kind = CTN_SCHED_MULTISTEP, .gamma = 0.5, .at = {5, 9, 8}},
        {.kind = CTN_SCHED_INVERSE, .gamma = 1},
        {.kind = CTN_SCHED_INVERSE, .power = 1},
        {.kind = CTN_SCHED_ONE_CYCLE},
        {.kind = CTN_SCHED_ONE_CYCLE, .steps = 5, .start = -1},
        {.kind = CTN_SCHED_ONE_CYCLE, .steps = 5, .end = -1},
        {.kind = CTN_SCHED_ONE_CYCLE, .steps = 5, .rise = -0.1},
        {.kind = CTN_SCHED_ONE_CYCLE, .steps = 5, .rise = 1},
        {.kind = CTN_SCHED_COSINE_RESTARTS, .steps = 5, .gamma = 0.5},
        {.kind = CTN_SCHED_COSINE_RESTARTS, .steps = 5, .gamma = -1},
        {.swa_start = -1},
        {.swa_start = 1, .swa_steps = -1},
        {.kind = (ctn_sched_kind)99},
    };
    ctn_optim *o = NULL;
    OK(ctn_sgd_new(&o, vars(), CTN_OPT(ctn_sgd_opt, .lr = 1)));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ctn_sched_opt s = bad[i];
        s.struct_size = sizeof s;
        if (ctn_optim_set_schedule(o, &s) != CTN_EARG) fail_msg("schedule %zu was not refused", i);
        ctn_error_clear();
    }
    /* Some steps, and as many as there is room for. */
    ctn_sched_opt s = {.struct_size = sizeof s, .kind = CTN_SCHED_MULTISTEP, .gamma = 0.5};
    s.at[0] = 2;
    s.at[1] = 3;
    OK(ctn_optim_set_schedule(o, &s));
    for (int i = 0; i < CTN_SCHED_AT; i++) s.at[i] = 2 + i;
    OK(ctn_optim_set_schedule(o, &s));
    set_gradient(0, 0, 0);
    for (int i = 0; i < CTN_SCHED_AT + 3; i++) {
        const int halves = i < 2 ? 0 : i - 1 < CTN_SCHED_AT ? i - 1 : CTN_SCHED_AT;
        assert_true(ctn_optim_lr(o) == ldexp(1, -halves));
        step(o);
    }
    ctn_optim_free(o);
}

/* ---- steps that are skipped ------------------------------------------------------------------ */

static void loss_scales(void **state)
{
    (void)state;
    static const ctn_loss_scale_opt bad[] = {
        {.scale = 0},
        {.scale = 1e31},
        {.scale = 1e-31},
        {.scale = NAN},
        {.dynamic = 1, .growth = 0.5},
        {.dynamic = 1, .growth = INFINITY},
        {.dynamic = 1, .backoff = -1},
        {.dynamic = 1, .backoff = 1.5},
        {.dynamic = 1, .interval = -1},
        {.dynamic = 1, .scale = 8, .min = 16},
        {.dynamic = 1, .scale = 8, .max = 4},
        {.dynamic = 1, .scale = 8, .max = 1e31},
    };
    ctn_optim *o = NULL;
    OK(ctn_sgd_new(&o, vars(), NULL));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ctn_loss_scale_opt s = bad[i];
        s.struct_size = sizeof s;
        if (ctn_optim_set_loss_scale(o, &s) != CTN_EARG) fail_msg("scale %zu was not refused", i);
        ctn_error_clear();
        assert_true(ctn_optim_loss_scale(o) == 1);
    }
    OK(ctn_optim_set_loss_scale(o, CTN_OPT(ctn_loss_scale_opt, .dynamic = 1)));
    assert_true(ctn_optim_loss_scale(o) == 65536);
    /* The default minimum is 1, or less if the scale is. */
    static const double start[] = {2, 0.5};
    for (int i = 0; i < 2; i++) {
        OK(ctn_optim_set_loss_scale(o,
                                    CTN_OPT(ctn_loss_scale_opt, .dynamic = 1, .scale = start[i])));
        set_gradient(INFINITY, 0, 0);
        step(o);
        assert_true(ctn_optim_loss_scale(o) == (i ? 0.5 : 1));
        step(o);
        assert_true(ctn_optim_loss_scale(o) == (i ? 0.5 : 1));
    }
    assert_int_equal(ctn_optim_skipped(o), 4);
    assert_int_equal(ctn_optim_steps(o), 0);
    /* Good steps are counted from the last change of the options on. */
    const ctn_loss_scale_opt two = {.struct_size = sizeof two,
                                    .dynamic = 1,
                                    .scale = 4,
                                    .interval = 2};
    set_gradient(1, 1, 1);
    OK(ctn_optim_set_loss_scale(o, &two));
    step(o);
    OK(ctn_optim_set_loss_scale(o, &two));
    step(o);
    assert_true(ctn_optim_loss_scale(o) == 4);
    step(o);
    assert_true(ctn_optim_loss_scale(o) == 8);
    OK(ctn_optim_set_loss_scale(o, NULL));
    assert_true(ctn_optim_loss_scale(o) == 1);
    ctn_optim_free(o);
}

static void steps_that_are_not_finite(void **state)
{
    (void)state;
    ctn_optim *o = NULL;
    float w[3] = {1, 2, 3};
    OK(ctn_var_set(var, w, sizeof w));
    OK(ctn_sgd_new(&o, vars(), CTN_OPT(ctn_sgd_opt, .lr = 0.5)));
    ctn_optim_set_skip_nonfinite(o, 1);
    set_gradient(1, NAN, 1);
    step(o);
    OK(ctn_var_get(var, w, sizeof w));
    assert_true(w[0] == 1 && w[1] == 2 && w[2] == 3);
    assert_true(ctn_optim_skipped(o) == 1 && ctn_optim_steps(o) == 0);
    assert_true(!isfinite(ctn_optim_norm(o)));
    set_gradient(2, 0, 4);
    step(o);
    OK(ctn_var_get(var, w, sizeof w));
    assert_true(w[0] == 0 && w[1] == 2 && w[2] == 1);
    assert_true(ctn_optim_skipped(o) == 1 && ctn_optim_steps(o) == 1);
    assert_true(fabs(ctn_optim_norm(o) - sqrt(20)) < 1e-6);
    ctn_optim_set_skip_nonfinite(o, 0);
    set_gradient(0, INFINITY, 0);
    step(o);
    OK(ctn_var_get(var, w, sizeof w));
    assert_true(w[0] == 0 && isinf(w[1]) && ctn_optim_skipped(o) == 1);
    assert_true(ctn_optim_norm(o) == 0);
    ctn_optim_free(o);
}

/* The trust ratio is 1 if the parameter or its gradient is 0. */
static void lars_next_to_zeros(void **state)
{
    (void)state;
    ctn_optim *o = NULL;
    float w[3] = {0};
    OK(ctn_var_set(var, w, sizeof w));
    OK(ctn_lars_new(&o, vars(),
                    CTN_OPT(ctn_lars_opt, .lr = 0.5, .momentum = -1, .trust = 0.25, .eps = 3)));
    set_gradient(0, 6, 8);
    step(o);
    OK(ctn_var_get(var, w, sizeof w));
    assert_true(w[0] == 0 && w[1] == -3 && w[2] == -4);
    step(o); /* |w| = 5, |g| = 10: w -= 0.5 * 0.25 * 5 / (10 + 3) g */
    OK(ctn_var_get(var, w, sizeof w));
    assert_true(fabs(w[1] - (-3 - 6 * 0.625 / 13)) < 1e-6);
    assert_true(fabs(w[2] - (-4 - 8 * 0.625 / 13)) < 1e-6);
    ctn_optim_free(o);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(defaults),    T(refused_options),           T(hypers_can_be_set),  T(schedules),
        T(loss_scales), T(steps_that_are_not_finite), T(lars_next_to_zeros), T(refused_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
