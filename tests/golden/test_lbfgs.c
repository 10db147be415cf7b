/* SPDX-License-Identifier: Apache-2.0
 *
 * L-BFGS against PyTorch (lbfgs.py), in f64: the losses and parameters of every iteration on
 * Rosenbrock's function, on functions with many valleys and on a small net, with and without line
 * search, and of steps that end by themselves. Also: the same bits on any number of threads and
 * after a resume, frozen parameters, f32, and errors.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "lbfgs.inc"
#include "support/ok.h"

enum { STEPS = 20, MOST = 51 };

static ctn_var *var[4];

typedef struct {
    int nvar;
    int64_t shape[4][2]; /* second 0: one dimension */
    void (*start)(void);
    ctn_closure_fn loss;
} problem;

static int64_t count(const problem *p, int i)
{
    return p->shape[i][0] * (p->shape[i][1] ? p->shape[i][1] : 1);
}

static void value(int seed, double scale, int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = scale * (double)(((i * 37 + seed * 101) * 7919) % 257 - 128) / 128;
}

static void start_points(void)
{
    const double x[3] = {-1.2, 0.5, 2}, y[3] = {1, -1, 3};
    OK(ctn_var_set(var[0], x, sizeof x));
    OK(ctn_var_set(var[1], y, sizeof y));
}

static ctn_tensor *rosenbrock(void *user, ctn_context *ctx)
{
    int *calls = user;
    ctn_tensor *x = ctn_use(var[0]), *y = ctn_use(var[1]);
    (void)ctx;
    if (calls) ++*calls;
    ctn_tensor *a = ctn_sub(y, ctn_mul(x, x)), *b = ctn_shift(ctn_neg(x), 1);
    ctn_tensor *sum = ctn_add(ctn_scale(ctn_mul(a, a), 100), ctn_mul(b, b));
    return ctn_sum(sum, CTN_ALL_AXES, 0);
}

static ctn_tensor *waves(void *user, ctn_context *ctx)
{
    ctn_tensor *x = ctn_use(var[0]), *y = ctn_use(var[1]);
    (void)user, (void)ctx;
    ctn_tensor *a = ctn_scale(ctn_square(x), 0.05), *b = ctn_scale(ctn_sin(ctn_scale(x, 3)), 2);
    ctn_tensor *c = ctn_scale(ctn_square(ctn_sub(y, x)), 0.2);
    return ctn_sum(ctn_add(ctn_add(a, b), c), CTN_ALL_AXES, 0);
}

static ctn_tensor *dents(void *user, ctn_context *ctx)
{
    ctn_tensor *x = ctn_use(var[0]), *y = ctn_use(var[1]);
    (void)user, (void)ctx;
    ctn_tensor *a = ctn_shift(ctn_neg(ctn_exp(ctn_scale(ctn_square(x), -0.5))), 1);
    ctn_tensor *b = ctn_scale(ctn_square(ctn_tanh(y)), 0.5), *c = ctn_scale(ctn_square(y), 0.01);
    return ctn_sum(ctn_add(ctn_add(a, b), c), CTN_ALL_AXES, 0);
}

static void start_net(void)
{
    static const int64_t n[4] = {24, 6, 18, 3};
    for (int i = 0; i < 4; i++) {
        double x[24];
        value(i + 1, 0.7, n[i], x);
        OK(ctn_var_set(var[i], x, (size_t)n[i] * sizeof *x));
    }
}

static ctn_tensor *network(void *user, ctn_context *ctx)
{
    static double x[20], t[15];
    int *calls = user;
    if (calls) ++*calls;
    value(20, 1, 20, x);
    value(60, 1, 15, t);
    ctn_tensor *h = ctn_tanh(
        ctn_linear(ctn_input(ctx, x, CTN_F64, CTN_SHAPE(5, 4)), ctn_use(var[0]), ctn_use(var[1])));
    return ctn_mean_squared_error(ctn_linear(h, ctn_use(var[2]), ctn_use(var[3])),
                                  ctn_input(ctx, t, CTN_F64, CTN_SHAPE(5, 3)), CTN_MEAN);
}

static const problem points = {2, {{3, 0}, {3, 0}}, start_points, rosenbrock};
static const problem wavy = {2, {{3, 0}, {3, 0}}, start_points, waves};
static const problem dented = {2, {{3, 0}, {3, 0}}, start_points, dents};
static const problem net = {4, {{6, 4}, {6, 0}, {3, 6}, {3, 0}}, start_net, network};

static ctn_context *begin(const problem *p, int threads)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    ctn_context *ctx;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = threads)));
    for (int i = 0; i < p->nvar; i++)
        OK(ctn_var_new(&var[i], ctx, names[i], CTN_PARAM, CTN_F64, p->shape[i][1] ? 2 : 1,
                       p->shape[i]));
    p->start();
    return ctx;
}

static void end(const problem *p, ctn_context *ctx)
{
    for (int i = 0; i < p->nvar; i++) ctn_var_free(var[i]);
    ctn_context_free(ctx);
}

static ctn_vars vars_of(const problem *p)
{
    return (ctn_vars){p->nvar, var, NULL};
}

/* Returns how many. */
static int64_t values(const problem *p, double *x)
{
    int64_t n = 0;
    for (int i = 0; i < p->nvar; n += count(p, i), i++)
        OK(ctn_var_get(var[i], x + n, (size_t)count(p, i) * sizeof *x));
    return n;
}

/* Rounding errors grow most in the steps of waves (lbfgs.py). */
static void near(const char *what, int64_t i, double got, double want)
{
    const double tolerance = strcmp(what, "waves") == 0 ? 1e-7 : 1e-9;
    if (!(fabs(got - want) <= tolerance * fmax(1, fabs(want))))
        fail_msg("%s: value %lld is %.15g, PyTorch has %.15g", what, (long long)i, got, want);
}

/* want: of each step the loss before and 6 parameters after it, then all parameters. */
static void check_steps(const char *what, const problem *p, const ctn_lbfgs_opt *opt,
                        const double *want, size_t n)
{
    double x[MOST], loss;
    ctn_context *ctx = begin(p, 1);
    ctn_optim *o;
    OK(ctn_lbfgs_new(&o, vars_of(p), opt));
    int64_t all = 0;
    for (int step = 0; step < STEPS; step++, want += 7) {
        OK(ctn_lbfgs_step(o, p->loss, NULL, &loss));
        all = values(p, x);
        near(what, step * 7, loss, want[0]);
        for (int i = 0; i < 6; i++) near(what, step * 7 + 1 + i, x[i], want[1 + i]);
    }
    assert_int_equal(n, STEPS * 7 + all);
    for (int64_t i = 0; i < all; i++) near(what, STEPS * 7 + i, x[i], want[i]);
    assert_int_equal(ctn_optim_steps(o), STEPS);
    ctn_optim_free(o);
    end(p, ctx);
}

#define GOLDEN(name) name, sizeof name / sizeof *name

static void iterations_agree_with_pytorch(void **state)
{
    (void)state;
    check_steps("rosenbrock", &points, CTN_OPT(ctn_lbfgs_opt, .iterations = 1, .evaluations = 25),
                GOLDEN(lbfgs_rosenbrock));
    check_steps("short history", &points,
                CTN_OPT(ctn_lbfgs_opt, .lr = 0.5, .iterations = 1, .evaluations = 25, .history = 3),
                GOLDEN(lbfgs_short));
    check_steps("small steps", &points,
                CTN_OPT(ctn_lbfgs_opt, .lr = 0.01, .iterations = 1, .evaluations = 25),
                GOLDEN(lbfgs_small));
    check_steps("waves", &wavy, CTN_OPT(ctn_lbfgs_opt, .lr = 5, .iterations = 1, .evaluations = 25),
                GOLDEN(lbfgs_waves));
    check_steps("dents", &dented,
                CTN_OPT(ctn_lbfgs_opt, .lr = 10, .iterations = 1, .evaluations = 25),
                GOLDEN(lbfgs_dents));
    check_steps("network", &net, CTN_OPT(ctn_lbfgs_opt, .iterations = 1, .evaluations = 25),
                GOLDEN(lbfgs_network));
    check_steps("fixed length", &net,
                CTN_OPT(ctn_lbfgs_opt, .lr = 0.1, .iterations = 1, .evaluations = 25,
                        .no_line_search = 1),
                GOLDEN(lbfgs_fixed));
}

static void check_whole(const char *what, const problem *p, const ctn_lbfgs_opt *opt,
                        const double *want, size_t n)
{
    double x[MOST], loss;
    int calls = 0;
    ctn_context *ctx = begin(p, 1);
    ctn_optim *o;
    OK(ctn_lbfgs_new(&o, vars_of(p), opt));
    OK(ctn_lbfgs_step(o, p->loss, &calls, &loss));
    near(what, 0, loss, want[0]);
    assert_int_equal(n, 1 + values(p, x));
    for (size_t i = 1; i < n; i++) near(what, (int64_t)i, x[i - 1], want[i]);
    assert_true(calls > 10);
    ctn_optim_free(o);
    end(p, ctx);
}

static void whole_steps_agree_with_pytorch(void **state)
{
    (void)state;
    check_whole("rosenbrock", &points, CTN_OPT(ctn_lbfgs_opt, .iterations = 200),
                GOLDEN(lbfgs_whole));
    check_whole("few evaluations", &net,
                CTN_OPT(ctn_lbfgs_opt, .iterations = 30, .evaluations = 17), GOLDEN(lbfgs_few));
}

/* ---- resume, threads, frozen parameters ------------------------------------------------------ */

typedef struct {
    unsigned char data[65536];
    size_t at;
    int load;
} saved;

static ctn_status visit(void *user, const char *name, ctn_dtype dtype, int ndim,
                        const int64_t *dims, void *data)
{
    saved *s = user;
    size_t bytes = ctn_dtype_size(dtype);
    (void)name;
    for (int i = 0; i < ndim; i++) bytes *= (size_t)dims[i];
    assert_true(s->at + bytes <= sizeof s->data);
    if (s->load) memcpy(data, s->data + s->at, bytes);
    else memcpy(s->data + s->at, data, bytes);
    s->at += bytes;
    return CTN_OK;
}

/* 6 steps of 3 iterations; before step `move` a new optimizer takes over the state. */
static void run(int threads, int move, double *x)
{
    static saved s;
    const ctn_lbfgs_opt *opt = CTN_OPT(ctn_lbfgs_opt, .iterations = 3, .history = 4);
    ctn_context *ctx = begin(&net, threads);
    ctn_optim *o;
    OK(ctn_lbfgs_new(&o, vars_of(&net), opt));
    for (int step = 0; step < 6; step++) {
        if (step == move) {
            s = (saved){0};
            OK(ctn_optim_visit(o, visit, &s));
            ctn_optim_free(o);
            OK(ctn_lbfgs_new(&o, vars_of(&net), opt));
            s.at = 0;
            s.load = 1;
            OK(ctn_optim_visit(o, visit, &s));
        }
        OK(ctn_lbfgs_step(o, network, NULL, NULL));
    }
    values(&net, x);
    ctn_optim_free(o);
    end(&net, ctx);
}

static void threads_and_resume_keep_the_bits(void **state)
{
    (void)state;
    double x[MOST], y[MOST];
    run(1, -1, x);
    run(3, -1, y);
    assert_memory_equal(x, y, sizeof x);
    run(1, 2, y);
    assert_memory_equal(x, y, sizeof x);
}

static void frozen_parameters_stay(void **state)
{
    (void)state;
    double was[6], now[6], first, last;
    ctn_context *ctx = begin(&net, 1);
    ctn_optim *o;
    OK(ctn_lbfgs_new(&o, vars_of(&net), NULL));
    OK(ctn_lbfgs_step(o, network, NULL, &first));
    assert_int_equal(ctn_optim_group(o, "b", CTN_OPT(ctn_group_opt, .freeze = 1)), 1);
    OK(ctn_var_get(var[1], was, sizeof was));
    OK(ctn_lbfgs_step(o, network, NULL, NULL));
    OK(ctn_lbfgs_step(o, network, NULL, &last));
    OK(ctn_var_get(var[1], now, sizeof now));
    assert_memory_equal(was, now, sizeof was);
    assert_true(last < first);
    ctn_optim_free(o);
    end(&net, ctx);
}

/* 3 x - log(x) */
static ctn_tensor *barrier(void *user, ctn_context *ctx)
{
    ctn_tensor *x = ctn_use(var[0]);
    (void)user, (void)ctx;
    return ctn_sum(ctn_sub(ctn_scale(x, 3), ctn_log(x)), CTN_ALL_AXES, 0);
}

/* The first points of the search are below 0, where the loss is NaN. */
static void a_search_leaves_nan(void **state)
{
    (void)state;
    double x[3] = {1, 1, 1}, first;
    ctn_context *ctx = begin(&points, 1);
    ctn_optim *o;
    OK(ctn_var_set(var[0], x, sizeof x));
    OK(ctn_lbfgs_new(&o, (ctn_vars){1, var, NULL},
                     CTN_OPT(ctn_lbfgs_opt, .lr = 10, .iterations = 1, .evaluations = 25)));
    OK(ctn_lbfgs_step(o, barrier, NULL, &first));
    near("barrier", 0, first, 9);
    OK(ctn_var_get(var[0], x, sizeof x));
    for (int i = 0; i < 3; i++) assert_true(x[i] > 0 && x[i] < 1);
    ctn_optim_free(o);
    end(&points, ctx);
}

static ctn_tensor *nothing(void *user, ctn_context *ctx)
{
    (void)user;
    (void)ctx;
    return NULL;
}

/* Gradients that the program asks for between steps do not count in a step. */
static void other_gradients_do_not_count(void **state)
{
    (void)state;
    double now[2][3], first;
    for (int k = 0; k < 2; k++) {
        ctn_context *ctx = begin(&points, 1);
        ctn_optim *o;
        OK(ctn_lbfgs_new(&o, vars_of(&points), CTN_OPT(ctn_lbfgs_opt, .iterations = 2)));
        for (int step = 0; step < 2; step++) {
            OK(ctn_scope_begin(ctx));
            if (k == 1) OK(ctn_backward(o, waves(NULL, ctx)));
            OK(ctn_scope_end(ctx));
            OK(ctn_lbfgs_step(o, rosenbrock, NULL, &first));
        }
        OK(ctn_var_get(var[0], now[k], sizeof now[k]));
        ctn_optim_free(o);
        end(&points, ctx);
    }
    assert_memory_equal(now[0], now[1], sizeof now[0]);
}

static ctn_tensor *calls_backward(void *user, ctn_context *ctx)
{
    ctn_tensor *loss = rosenbrock(NULL, ctx);
    return ctn_backward((ctn_optim *)user, loss) == CTN_OK ? loss : NULL;
}

static void errors_name_the_reason(void **state)
{
    (void)state;
    ctn_context *ctx = begin(&points, 1);
    ctn_optim *o;
    OK(ctn_lbfgs_new(&o, vars_of(&points), NULL));
    assert_int_equal(ctn_lbfgs_step(o, nothing, NULL, NULL), CTN_EARG);
    assert_non_null(strstr(ctn_error_message(), "the closure returned no loss"));
    ctn_error_clear();
    assert_int_equal(ctn_lbfgs_step(o, calls_backward, o, NULL), CTN_ESTATE);
    assert_non_null(strstr(ctn_error_message(), "the closure only returns the loss"));
    ctn_error_clear();
    OK(ctn_scope_begin(ctx));
    assert_int_equal(ctn_lbfgs_step(o, rosenbrock, NULL, NULL), CTN_ESTATE);
    ctn_error_clear();
    OK(ctn_backward(o, rosenbrock(NULL, ctx)));
    assert_int_equal(ctn_optim_step(o), CTN_ESTATE);
    assert_non_null(strstr(ctn_error_message(), "ctn_lbfgs_step"));
    ctn_error_clear();
    OK(ctn_scope_end(ctx));
    ctn_optim_free(o);
    assert_int_equal(ctn_lbfgs_new(&o, vars_of(&points), CTN_OPT(ctn_lbfgs_opt, .iterations = -1)),
                     CTN_EARG);
    ctn_error_clear();
    end(&points, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iterations_agree_with_pytorch),
        cmocka_unit_test(whole_steps_agree_with_pytorch),
        cmocka_unit_test(threads_and_resume_keep_the_bits),
        cmocka_unit_test(frozen_parameters_stay),
        cmocka_unit_test(other_gradients_do_not_count),
        cmocka_unit_test(a_search_leaves_nan),
        cmocka_unit_test(errors_name_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
