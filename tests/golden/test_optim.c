/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizers, schedules and clipping against PyTorch (optim.py): every loss, norm and parameter
 * of 20 steps of a two-layer net, planned and eager, in f32 and f64. Also checks that a frozen
 * parameter keeps its value and its state bit for bit, and that state moved by name into a new
 * optimizer continues the run.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "optim.inc"
#include "support/ok.h"

enum { STEPS = 20, PARAMS = 51 };

static ctn_context *ctx;
static ctn_dtype type = CTN_F32; /* of the net */
static ctn_var *var[4];
static const char *const names[4] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
static const int64_t shape[4][2] = {{6, 4}, {6, 0}, {3, 6}, {3, 0}};

/* n numbers of the net's type */
static void value(int seed, double scale, int64_t n, void *x)
{
    for (int64_t i = 0; i < n; i++) {
        const double v = scale * (double)(((i * 37 + seed * 101) * 7919) % 257 - 128) / 128;
        if (type == CTN_F64) ((double *)x)[i] = v;
        else ((float *)x)[i] = (float)v;
    }
}

static int64_t count(int i)
{
    return shape[i][0] * (shape[i][1] ? shape[i][1] : 1);
}

static ctn_vars net_new(void)
{
    for (int i = 0; i < 4; i++) {
        double x[24];
        char own[16]; /* groups use the names in ctn_vars, not this one */
        snprintf(own, sizeof own, "v%d", i);
        OK(ctn_var_new(&var[i], ctx, own, CTN_PARAM, type, shape[i][1] ? 2 : 1, shape[i]));
        value(i + 1, 0.7, count(i), x);
        OK(ctn_var_set(var[i], x, (size_t)count(i) * ctn_dtype_size(type)));
    }
    return (ctn_vars){4, var, names};
}

static void net_free(void)
{
    for (int i = 0; i < 4; i++) ctn_var_free(var[i]);
}

static ctn_tensor *record_loss(int step)
{
    static double x[20], t[15];
    value(20 + step, 1, 20, x);
    value(60 + step, 1, 15, t);
    ctn_tensor *h = ctn_tanh(
        ctn_linear(ctn_input(ctx, x, type, CTN_SHAPE(5, 4)), ctn_use(var[0]), ctn_use(var[1])));
    ctn_tensor *y = ctn_linear(h, ctn_use(var[2]), ctn_use(var[3]));
    return ctn_mean_squared_error(y, ctn_input(ctx, t, type, CTN_SHAPE(5, 3)), CTN_MEAN);
}

static double train_step(ctn_optim *o, int step)
{
    OK(ctn_scope_begin(ctx));
    ctn_tensor *loss = record_loss(step);
    OK(ctn_backward(o, loss));
    OK(ctn_optim_step(o));
    double l = ctn_item(loss);
    OK(ctn_scope_end(ctx));
    return l;
}

static void near(const char *what, int i, double got, double want, double size)
{
    if (!(fabs(got - want) <= (type == CTN_F64 ? 1e-12 : 1e-5) * size))
        fail_msg("%s: value %d is %.15g, PyTorch has %.15g", what, i, got, want);
}

/* Relative to the largest element of the parameter, because an element near zero carries the
 * rounding of the others. */
static void check_params(const char *what, const double *want)
{
    for (int i = 0; i < 4; want += count(i), i++) {
        double x[24], size = 0;
        OK(ctn_var_get(var[i], x, (size_t)count(i) * ctn_dtype_size(type)));
        for (int64_t k = 0; k < count(i); k++) size = fmax(size, fabs(want[k]));
        for (int64_t k = 0; k < count(i); k++)
            near(what, (int)k, type == CTN_F64 ? x[k] : (double)((float *)x)[k], want[k], size);
    }
}

/* ---- state by name -------------------------------------------------------------------------- */

typedef struct {
    char name[40][64];
    unsigned char x[40][24 * sizeof(double)];
    int n;
    bool load;
} state_copy;

static ctn_status visit(void *user, const char *name, ctn_dtype dtype, int ndim,
                        const int64_t *dims, void *data)
{
    state_copy *s = user;
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= dims[i];
    assert_true(s->n < 40 && n <= 24);
    if (s->load) assert_string_equal(s->name[s->n], name);
    else snprintf(s->name[s->n], sizeof s->name[0], "%s", name);
    size_t bytes = (size_t)n * ctn_dtype_size(dtype);
    if (s->load) memcpy(data, s->x[s->n], bytes);
    else memcpy(s->x[s->n], data, bytes);
    s->n++;
    return CTN_OK;
}

static state_copy state_of(ctn_optim *o)
{
    state_copy s = {0};
    OK(ctn_optim_visit(o, visit, &s));
    return s;
}

static void assert_state_still(const state_copy *a, const state_copy *b, const char *prefix)
{
    int found = 0;
    assert_int_equal(a->n, b->n);
    for (int i = 0; i < a->n; i++) {
        if (strncmp(a->name[i], prefix, strlen(prefix)) != 0) continue;
        if (memcmp(a->x[i], b->x[i], sizeof a->x[i]) != 0)
            fail_msg("%s changed while its parameter was frozen", a->name[i]);
        found++;
    }
    assert_true(found > 0);
}

/* ---- the cases ------------------------------------------------------------------------------ */

#define MAKE(name, call, type, ...)                          \
    static ctn_status make_##name(ctn_optim **o, ctn_vars v) \
    {                                                        \
        return call(o, v, CTN_OPT(type, __VA_ARGS__));       \
    }
#define SGD(name, ...) MAKE(name, ctn_sgd_new, ctn_sgd_opt, __VA_ARGS__)
#define ADAM(name, ...) MAKE(name, ctn_adam_new, ctn_adam_opt, __VA_ARGS__)
#define ADAMW(name, ...) MAKE(name, ctn_adamw_new, ctn_adam_opt, __VA_ARGS__)
SGD(sgd, .lr = 0.1)
SGD(sgd_decay, .lr = 0.1, .decay = 0.05)
SGD(momentum, .lr = 0.05, .momentum = 0.9)
SGD(dampening, .lr = 0.1, .momentum = 0.9, .dampening = 0.3, .decay = 0.01)
SGD(nesterov, .lr = 0.05, .momentum = 0.8, .nesterov = 1, .decay = 0.01)
ADAM(adam, .lr = 0.02)
ADAM(adam_decay, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .decay = 0.1)
ADAMW(adamw, .lr = 0.02)
ADAMW(adamw_none, .lr = 0.02, .decay = -1)
ADAM(amsgrad, .lr = 0.02, .beta2 = 0.5, .amsgrad = 1)
SGD(clipped, .lr = 0.2, .momentum = 0.5)
SGD(freeze_momentum, .lr = 0.1, .momentum = 0.9, .dampening = 0.5)

MAKE(rmsprop, ctn_rmsprop_new, ctn_rmsprop_opt, .lr = 0.01)
MAKE(rmsprop_momentum, ctn_rmsprop_new, ctn_rmsprop_opt, .lr = 0.004, .alpha = 0.9, .momentum = 0.8,
     .decay = 0.1)
MAKE(rmsprop_centered, ctn_rmsprop_new, ctn_rmsprop_opt, .lr = 0.01, .eps = 1e-3, .centered = 1)
MAKE(graves, ctn_rmsprop_new, ctn_rmsprop_opt, .lr = 0.004, .alpha = 0.95, .eps = 1e-2,
     .momentum = 0.9, .centered = 1)
MAKE(adagrad, ctn_adagrad_new, ctn_adagrad_opt, .lr = 0.05)
MAKE(adagrad_more, ctn_adagrad_new, ctn_adagrad_opt, .lr = 0.1, .lr_decay = 0.1, .decay = 0.1,
     .initial = 0.2, .eps = 1e-6)
MAKE(adadelta, ctn_adadelta_new, ctn_adadelta_opt, .lr = 0)
MAKE(adadelta_more, ctn_adadelta_new, ctn_adadelta_opt, .lr = 2, .rho = 0.8, .eps = 1e-4,
     .decay = 0.1)
MAKE(adamax, ctn_adamax_new, ctn_adamax_opt, .lr = 0.02)
MAKE(adamax_more, ctn_adamax_new, ctn_adamax_opt, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95,
     .eps = 1e-3, .decay = 0.1)
MAKE(nadam, ctn_nadam_new, ctn_nadam_opt, .lr = 0.02)
MAKE(nadam_more, ctn_nadam_new, ctn_nadam_opt, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-5,
     .decay = 0.1, .momentum_decay = 0.05, .decoupled = 1)
MAKE(radam, ctn_radam_new, ctn_radam_opt, .lr = 0.02)
MAKE(radam_more, ctn_radam_new, ctn_radam_opt, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.9, .decay = 0.1)
MAKE(lion, ctn_lion_new, ctn_lion_opt, .lr = 0.01, .decay = 0.1)
MAKE(lamb, ctn_lamb_new, ctn_lamb_opt, .lr = 0.02, .decay = 0.05)
MAKE(lars, ctn_lars_new, ctn_lars_opt, .lr = 0.5, .momentum = 0.8, .trust = 0.05, .decay = 0.01)
MAKE(adabound, ctn_adabound_new, ctn_adabound_opt, .lr = 0.02, .gamma = 0.01)
MAKE(amsbound, ctn_adabound_new, ctn_adabound_opt, .lr = 0.02, .gamma = 0.01, .beta2 = 0.5,
     .amsbound = 1)
MAKE(smorms3, ctn_smorms3_new, ctn_smorms3_opt, .lr = 0.02)
MAKE(msvag, ctn_msvag_new, ctn_msvag_opt, .lr = 0.2)
MAKE(adafactor, ctn_adafactor_new, ctn_adafactor_opt, .lr = 0.5)
MAKE(adafactor_more, ctn_adafactor_new, ctn_adafactor_opt, .lr = 0.3, .beta2_decay = -0.5,
     .eps1 = 1e-4, .eps2 = 0.5, .clip = 1.2, .decay = 0.1)
MAKE(adafactor_fixed, ctn_adafactor_new, ctn_adafactor_opt, .lr = 0.02, .beta2_decay = -0.6,
     .clip = 0.9, .decay = 0.1, .fixed_step = 1)
SGD(all_clips, .lr = 0.2)

static ctn_status make_groups_sgd(ctn_optim **o, ctn_vars v)
{
    static const double none = 0;
    OK(ctn_sgd_new(o, v, CTN_OPT(ctn_sgd_opt, .lr = 0.03, .momentum = 0.9, .decay = 0.05)));
    assert_int_equal(ctn_optim_group(*o, "*.bias",
                                     CTN_OPT(ctn_group_opt, .lr_scale = 3, .decay = &none)),
                     2);
    return CTN_OK;
}

static ctn_status make_groups_adamw(ctn_optim **o, ctn_vars v)
{
    static const double none = 0, some = 0.2;
    OK(ctn_adamw_new(o, v, CTN_OPT(ctn_adam_opt, .lr = 0.02)));
    /* A later call overrides an earlier one, but keeps what it does not name. */
    assert_int_equal(ctn_optim_group(*o, "*", CTN_OPT(ctn_group_opt, .decay = &some)), 4);
    assert_int_equal(ctn_optim_group(*o, "fc?.bias", CTN_OPT(ctn_group_opt, .lr_scale = 3)), 2);
    assert_int_equal(ctn_optim_group(*o, "*.bias", CTN_OPT(ctn_group_opt, .decay = &none)), 2);
    assert_int_equal(ctn_optim_group(*o, "v*", CTN_OPT(ctn_group_opt, .freeze = 1)), 0);
    return CTN_OK;
}

static void thaw(ctn_optim *o, int step)
{
    if (step == 0) ctn_optim_group(o, "fc2.bias", CTN_OPT(ctn_group_opt, .freeze = 1));
    if (step == 3) ctn_optim_group(o, "fc2.bias", CTN_OPT(ctn_group_opt, .freeze = -1));
    if (step == 5) ctn_optim_group(o, "fc1.*", CTN_OPT(ctn_group_opt, .freeze = 1));
    if (step == 9) ctn_optim_group(o, "fc1.*", CTN_OPT(ctn_group_opt, .freeze = -1));
}

typedef struct {
    const char *name;
    const double *want;
    size_t nwant;
    ctn_status (*make)(ctn_optim **o, ctn_vars v);
    double clip, clip_value, lasso;
    void (*before)(ctn_optim *o, int step);
    const ctn_sched_opt *sched;
    int move; /* before this step the optimizer is recreated and its state moved over */
} scenario;

static ctn_optim *make(const scenario *c, ctn_vars vars)
{
    ctn_optim *o;
    OK(c->make(&o, vars));
    ctn_optim_set_clip(o, c->clip);
    ctn_optim_set_clip_value(o, c->clip_value);
    ctn_optim_set_lasso(o, c->lasso);
    if (c->sched) OK(ctn_optim_set_schedule(o, c->sched));
    return o;
}

static ctn_optim *moved(const scenario *c, ctn_optim *o)
{
    state_copy s = state_of(o);
    ctn_optim_free(o);
    o = make(c, (ctn_vars){4, var, names});
    s.load = true;
    s.n = 0;
    OK(ctn_optim_visit(o, visit, &s));
    return o;
}

static void run(const scenario *c, ctn_mode mode)
{
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .mode = mode)));
    ctn_optim *o = make(c, net_new());
    assert_int_equal(c->nwant, STEPS + (c->clip > 0 ? STEPS : 0) + PARAMS);
    for (int step = 0; step < STEPS; step++) {
        if (c->move && step == c->move) o = moved(c, o);
        if (c->before) c->before(o, step);
        near(c->name, step, train_step(o, step), c->want[step], 1);
        if (c->clip > 0) near(c->name, STEPS + step, ctn_optim_norm(o), c->want[STEPS + step], 1);
    }
    assert_int_equal(ctn_optim_steps(o), STEPS);
    check_params(c->name, c->want + c->nwant - PARAMS);
    ctn_optim_free(o);
    net_free();
    ctn_context_free(ctx);
}

static const ctn_sched_opt step3 = {.kind = CTN_SCHED_STEP, .every = 3, .gamma = 0.5};
static const ctn_sched_opt warm_cosine = {.kind = CTN_SCHED_COSINE,
                                          .warmup = 4,
                                          .steps = 12,
                                          .end = 0.1};

static void optimizers_agree_with_pytorch(void **state)
{
    (void)state;
    ctn_sched_opt s1 = step3, s2 = warm_cosine;
    s1.struct_size = s2.struct_size = sizeof s1;
#define C(golden, how, ...) \
    {#golden, golden, sizeof golden / sizeof *golden, make_##how, __VA_ARGS__}
    const scenario all[] = {
        C(sgd, sgd, .clip = 0),
        C(sgd_decay, sgd_decay, .clip = 0),
        C(momentum, momentum, .clip = 0),
        C(dampening, dampening, .clip = 0),
        C(nesterov, nesterov, .clip = 0),
        C(adam, adam, .clip = 0),
        C(adam_decay, adam_decay, .clip = 0),
        C(adamw, adamw, .clip = 0),
        C(adamw_none, adamw_none, .clip = 0),
        C(amsgrad, amsgrad, .clip = 0),
        C(adam_clip, adam, .clip = 0.4),
        C(sgd_clip, clipped, .clip = 0.3),
        C(groups_sgd, groups_sgd, .clip = 0),
        C(groups_adamw, groups_adamw, .clip = 0),
        C(freeze_momentum, freeze_momentum, .before = thaw),
        C(freeze_adam, adam, .before = thaw),
        C(freeze_adam, adam, .before = thaw, .move = 11),
        C(freeze_clip, adamw, .clip = 0.3, .before = thaw),
        C(sgd_step, clipped, .sched = &s1),
        C(adam_warm_cosine, adam, .sched = &s2),
        C(adam_warm_cosine, adam, .sched = &s2, .move = 7),
        C(rmsprop, rmsprop, .move = 9),
        C(rmsprop_momentum, rmsprop_momentum, .move = 9),
        C(rmsprop_centered, rmsprop_centered, .move = 9),
        C(graves, graves, .move = 9),
        C(adagrad, adagrad, .move = 9),
        C(adagrad_more, adagrad_more, .move = 9),
        C(adadelta, adadelta, .move = 9),
        C(adadelta_more, adadelta_more, .move = 9),
        C(adamax, adamax, .move = 9),
        C(adamax_more, adamax_more, .move = 9),
        C(nadam, nadam, .move = 9),
        C(nadam_more, nadam_more, .move = 9),
        C(radam, radam, .move = 9),
        C(radam_more, radam_more, .move = 9),
        C(lion, lion, .move = 9),
        C(lamb, lamb, .move = 9),
        C(lars, lars, .move = 9),
        C(adabound, adabound, .move = 9),
        C(amsbound, amsbound, .move = 9),
        C(smorms3, smorms3, .move = 9),
        C(msvag, msvag, .move = 9),
        C(adafactor, adafactor, .move = 9),
        C(adafactor_more, adafactor_more, .move = 9),
        C(adafactor_fixed, adafactor_fixed, .move = 9),
        C(clip_value, clipped, .clip_value = 0.02),
        C(lasso, adam, .lasso = 0.03),
        C(all_clips, all_clips, .clip = 0.3, .clip_value = 0.02, .lasso = 0.03),
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int wide = 0; wide < 2; wide++) {
            type = wide ? CTN_F64 : CTN_F32;
            run(&all[i], CTN_MODE_PLANNED);
            run(&all[i], CTN_MODE_EAGER);
        }
    }
    type = CTN_F32;
}

/* |w| = 5, |g| = 2, so the rate is 0.5 * 5 / (2 + 0.1 * 5 + 2.5) = 0.5. */
static void lars_divides_by_eps_too(void **state)
{
    (void)state;
    ctn_var *v;
    ctn_optim *o;
    double w[2] = {3, 4};
    const double g[2] = {1.2, 1.6};
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_var_new(&v, ctx, "v", CTN_PARAM, CTN_F64, CTN_SHAPE(2)));
    OK(ctn_var_set(v, w, sizeof w));
    OK(ctn_lars_new(&o, (ctn_vars){1, &v, NULL},
                    CTN_OPT(ctn_lars_opt, .lr = 0.1, .momentum = 0.9, .trust = 0.5, .decay = 0.1,
                            .eps = 2.5)));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *product = ctn_mul(ctn_use(v), ctn_input(ctx, g, CTN_F64, CTN_SHAPE(2)));
    OK(ctn_backward(o, ctn_sum(product, CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
    OK(ctn_var_get(v, w, sizeof w));
    for (int i = 0; i < 2; i++) {
        const double before = 3 + i, want = before - 0.1 * 0.5 * (g[i] + 0.1 * before);
        if (!(fabs(w[i] - want) < 1e-12)) fail_msg("element %d is %g, expected %g", i, w[i], want);
    }
    ctn_optim_free(o);
    ctn_var_free(v);
    ctn_context_free(ctx);
}

static void types_do_not_mix(void **state)
{
    (void)state;
    OK(ctn_context_new(&ctx, NULL));
    ctn_vars vars = net_new();
    ctn_optim *o;
    ctn_var_free(var[2]);
    OK(ctn_var_new(&var[2], ctx, "v2", CTN_PARAM, CTN_F64, CTN_SHAPE(3, 6)));
    assert_int_equal(make_adam(&o, vars), CTN_EDTYPE);
    assert_non_null(strstr(ctn_error_message(), "v2 is f64, but v0 is f32"));
    ctn_error_clear();
    ctn_var_set_trainable(var[2], 0); /* outside the pool, any type is possible */
    OK(make_adam(&o, vars));
    ctn_optim_free(o);
    net_free();
    ctn_context_free(ctx);
}

static void frozen_is_untouched(void **state)
{
    (void)state;
    ctn_status (*const makes[])(ctn_optim **,
                                ctn_vars) = {make_dampening,  make_nesterov, make_adam,
                                             make_adam_decay, make_adamw,    make_amsgrad,
                                             make_graves,     make_adadelta, make_lamb,
                                             make_lars,       make_smorms3,  make_nadam};
    for (size_t k = 0; k < sizeof makes / sizeof *makes; k++) {
        OK(ctn_context_new(&ctx, NULL));
        ctn_optim *o;
        OK(makes[k](&o, net_new()));
        for (int step = 0; step < 4; step++) train_step(o, step);
        assert_int_equal(ctn_optim_group(o, "fc1.*", CTN_OPT(ctn_group_opt, .freeze = 1)), 2);
        state_copy a = state_of(o);
        float was[24], now[24], head[18], head_now[18];
        OK(ctn_var_get(var[0], was, sizeof was));
        OK(ctn_var_get(var[2], head, sizeof head));
        for (int step = 4; step < 8; step++) train_step(o, step);
        state_copy b = state_of(o);
        OK(ctn_var_get(var[0], now, sizeof now));
        OK(ctn_var_get(var[2], head_now, sizeof head_now));
        /* no decay, and no momentum from earlier steps */
        assert_memory_equal(was, now, sizeof was);
        assert_memory_not_equal(head, head_now, sizeof head);
        assert_state_still(&a, &b, "fc1.");
        ctn_optim_free(o);
        net_free();
        ctn_context_free(ctx);
    }
}

/* Frozen between backward and step: its contribution no longer counts, not even in the norm. */
static void frozen_after_backward(void **state)
{
    (void)state;
    OK(ctn_context_new(&ctx, NULL));
    ctn_optim *o;
    OK(make_adam(&o, net_new()));
    ctn_optim_set_clip(o, 1e9);
    OK(ctn_scope_begin(ctx));
    OK(ctn_backward(o, record_loss(0)));
    float was[24], now[24], g[6], h[3];
    OK(ctn_var_get(var[0], was, sizeof was));
    OK(ctn_var_grad(var[1], g, sizeof g));
    OK(ctn_var_grad(var[3], h, sizeof h));
    ctn_optim_group(o, "*.weight", CTN_OPT(ctn_group_opt, .freeze = 1));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
    double sum = 0;
    for (int i = 0; i < 6; i++) sum += (double)g[i] * (double)g[i];
    for (int i = 0; i < 3; i++) sum += (double)h[i] * (double)h[i];
    assert_true(fabs(ctn_optim_norm(o) - sqrt(sum)) < 1e-12);
    OK(ctn_var_get(var[0], now, sizeof now));
    assert_memory_equal(was, now, sizeof was);
    ctn_optim_free(o);
    net_free();
    ctn_context_free(ctx);
}

static void everything_frozen_is_an_error(void **state)
{
    (void)state;
    OK(ctn_context_new(&ctx, NULL));
    ctn_optim *o;
    OK(make_sgd(&o, net_new()));
    ctn_optim_group(o, "*", CTN_OPT(ctn_group_opt, .freeze = 1));
    OK(ctn_scope_begin(ctx));
    assert_int_equal(ctn_backward(o, record_loss(0)), CTN_EGRAD);
    assert_non_null(strstr(ctn_error_message(), "no trainable parameter"));
    ctn_error_clear();
    OK(ctn_scope_end(ctx));
    ctn_optim_free(o);
    net_free();
    ctn_context_free(ctx);
}

/* ---- schedules ------------------------------------------------------------------------------ */

static void schedules_agree_with_pytorch(void **state)
{
    (void)state;
    const struct {
        const char *name;
        const double *want;
        ctn_sched_opt s;
    } all[] = {
        {"step", f_step, step3},
        {"exponential", f_exponential, {.kind = CTN_SCHED_EXPONENTIAL, .gamma = 0.9}},
        {"cosine", f_cosine, {.kind = CTN_SCHED_COSINE, .steps = 12, .end = 0.1}},
        {"annealing", f_annealing, {.kind = CTN_SCHED_COSINE, .steps = 20, .end = 0.1}},
        {"linear", f_linear, {.kind = CTN_SCHED_LINEAR, .steps = 10, .end = 0.2}},
        {"polynomial", f_polynomial, {.kind = CTN_SCHED_POLYNOMIAL, .steps = 12, .power = 2}},
        {"warm", f_warm, {.warmup = 5}},
        {"warm_cosine", f_warm_cosine, warm_cosine},
        {"restarts", f_restarts, {.kind = CTN_SCHED_COSINE_RESTARTS, .steps = 5, .end = 0.1}},
        {"restarts2", f_restarts2, {.kind = CTN_SCHED_COSINE_RESTARTS, .steps = 3, .gamma = 2}},
        {"swa", f_swa, {.swa_start = 4, .swa_steps = 8, .swa_end = 0.2}},
        {"swa_linear",
         f_swa_linear,
         {.kind = CTN_SCHED_EXPONENTIAL,
          .gamma = 0.9,
          .swa_start = 6,
          .swa_steps = 5,
          .swa_end = 0.3,
          .swa_linear = 1}},
        {"warm_linear",
         f_warm_linear,
         {.kind = CTN_SCHED_LINEAR, .warmup = 3, .steps = 10, .end = 0.2}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int step = 0; step < STEPS; step++)
            if (!(fabs(ctn_sched_factor(&all[i].s, step) - all[i].want[step]) < 1e-11))
                fail_msg("%s at step %d: %.12g, PyTorch has %.12g", all[i].name, step,
                         ctn_sched_factor(&all[i].s, step), all[i].want[step]);
    /* Decay to a value other than zero, which PyTorch does not have: end + (1-end)(1-x)^power. */
    ctn_sched_opt p = {.kind = CTN_SCHED_POLYNOMIAL, .steps = 8, .power = 3, .end = 0.25};
    assert_true(fabs(ctn_sched_factor(&p, 4) - (0.25 + 0.75 * 0.125)) < 1e-12);
    assert_float_equal(ctn_sched_factor(&p, 100), 0.25, 0);
}

static void schedules_that_cannot_be(void **state)
{
    (void)state;
    OK(ctn_context_new(&ctx, NULL));
    ctn_optim *o;
    OK(make_sgd(&o, net_new()));
    const ctn_sched_opt bad[] = {
        {.kind = CTN_SCHED_COSINE},
        {.kind = CTN_SCHED_LINEAR, .steps = -1},
        {.kind = CTN_SCHED_POLYNOMIAL, .steps = 5},
        {.kind = CTN_SCHED_STEP, .gamma = 0.5},
        {.kind = CTN_SCHED_EXPONENTIAL},
        {.kind = CTN_SCHED_COSINE_RESTARTS},
        {.kind = CTN_SCHED_COSINE_RESTARTS, .steps = 5, .gamma = 1.5},
        {.warmup = -1},
        {.swa_start = 5, .swa_end = -1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ctn_sched_opt s = bad[i];
        s.struct_size = sizeof s;
        assert_int_equal(ctn_optim_set_schedule(o, &s), CTN_EARG);
        ctn_error_clear();
        assert_true(ctn_optim_lr(o) == 0.1);
    }
    OK(ctn_optim_set_schedule(o, CTN_OPT(ctn_sched_opt, .warmup = 4)));
    assert_true(fabs(ctn_optim_lr(o) - 0.025) < 1e-15);
    OK(ctn_optim_set_schedule(o, NULL));
    assert_true(ctn_optim_lr(o) == 0.1);
    ctn_optim_set_lr(o, 0.5);
    assert_float_equal(ctn_optim_lr(o), 0.5, 0);
    ctn_optim_free(o);
    net_free();
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers_agree_with_pytorch),
        cmocka_unit_test(lars_divides_by_eps_too),
        cmocka_unit_test(types_do_not_mix),
        cmocka_unit_test(frozen_is_untouched),
        cmocka_unit_test(frozen_after_backward),
        cmocka_unit_test(everything_frozen_is_an_error),
        cmocka_unit_test(schedules_agree_with_pytorch),
        cmocka_unit_test(schedules_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
