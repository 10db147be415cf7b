/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch renormalisation against its formulas in double precision: results, gradients of x, scale
 * and shift with r and d as constants, running statistics, limits that change between steps, and
 * evaluation. With rmax = 1 and without dmax it is batch normalisation.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <catena/nn.h>
#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "support/ok.h"

enum { N = 4, C = 3, L = 5, M = N * L, ALL = N * C * L };
#define EPS 1e-3
#define MOMENTUM 0.2

typedef struct {
    double x[ALL], g[ALL], scale[C], shift[C];
    double mean[C], var[C]; /* running */
    double y[ALL], gx[ALL], gscale[C], gshift[C];
} numbers;

static double number(int i, int k)
{
    return (double)((i * 37 + k * 101) * 7919 % 257 - 128) / 128;
}

static double within(double x, double limit_low, double limit_high)
{
    return fmin(fmax(x, limit_low), limit_high);
}

/* Results and gradients of sum(y g) for one channel, and the new running statistics. */
static void channel(numbers *a, int c, double rmax, double dmax)
{
    double m = 0, v = 0, gh = 0, gs = 0;
#define EACH(i)                           \
    for (int n_ = 0, i = 0; n_ < M; n_++) \
        if ((i = (n_ / L * C + c) * L + n_ % L), true)
    EACH(i) m += a->x[i] / M;
    EACH(i) v += (a->x[i] - m) * (a->x[i] - m) / M;
    const double s = sqrt(v + EPS), S = sqrt(a->var[c] + EPS);
    const double r = within(s / S, 1 / rmax, rmax), d = within((m - a->mean[c]) / S, -dmax, dmax);
    a->gscale[c] = a->gshift[c] = 0;
    EACH(i)
    {
        const double h = (a->x[i] - m) / s;
        a->y[i] = (h * r + d) * a->scale[c] + a->shift[c];
        a->gscale[c] += a->g[i] * (h * r + d);
        a->gshift[c] += a->g[i];
        gs += a->g[i];
        gh += a->g[i] * h;
    }
    EACH(i) a->gx[i] = a->scale[c] * r / s * (a->g[i] - gs / M - (a->x[i] - m) / s * gh / M);
    a->mean[c] += MOMENTUM * (m - a->mean[c]);
    a->var[c] += MOMENTUM * (v * M / (M - 1.0) - a->var[c]);
#undef EACH
}

static void near(const char *what, int n, const double *got, const double *want)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-12 * (1 + fabs(want[i]))))
            fail_msg("%s: element %d is %.15g, expected %.15g", what, i, got[i], want[i]);
}

static const struct {
    double rmax, dmax; /* as options: 0 and < 0 have a meaning */
    double r, d;       /* what they mean */
} limits[] = {{1, -1, 1, 0}, {1.2, 0.1, 1.2, 0.1}, {1.5, 0.6, 1.5, 0.6}, {0, 0, 3, 5}};

static void steps(ctn_mode mode)
{
    ctn_context *ctx = NULL;
    ctn_var *mean = NULL, *var = NULL;
    numbers a = {.mean = {0.5, -1, 0}, .var = {1, 0.3, 2}};
    double y[ALL], gx[ALL], gc[C];
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .mode = mode)));
    OK(ctn_var_new(&mean, ctx, "mean", CTN_STATE, CTN_F64, CTN_SHAPE(C)));
    OK(ctn_var_new(&var, ctx, "var", CTN_STATE, CTN_F64, CTN_SHAPE(C)));
    OK(ctn_var_set(mean, a.mean, sizeof a.mean));
    OK(ctn_var_set(var, a.var, sizeof a.var));
    ctn_context_set_training(ctx, 1);
    for (int step = 0; step < 4; step++) {
        const ctn_batch_renorm_opt o = {.struct_size = sizeof o,
                                        .eps = EPS,
                                        .momentum = MOMENTUM,
                                        .rmax = limits[step].rmax,
                                        .dmax = limits[step].dmax};
        for (int i = 0; i < ALL; i++) {
            a.x[i] = (1 + i / L % C) * number(i, step) + 0.4 * step;
            a.g[i] = number(i, step + 9);
        }
        for (int c = 0; c < C; c++) {
            a.scale[c] = 1 + 0.5 * c;
            a.shift[c] = number(c, 3);
            channel(&a, c, limits[step].r, limits[step].d);
        }
        OK(ctn_scope_begin(ctx));
        ctn_tensor *in[3] = {ctn_with_grad(ctn_input(ctx, a.x, CTN_F64, CTN_SHAPE(N, C, L))),
                             ctn_with_grad(ctn_input(ctx, a.scale, CTN_F64, CTN_SHAPE(C))),
                             ctn_with_grad(ctn_input(ctx, a.shift, CTN_F64, CTN_SHAPE(C)))};
        ctn_tensor *g = ctn_input(ctx, a.g, CTN_F64, CTN_SHAPE(N, C, L)), *grad[3] = {NULL};
        ctn_tensor *t = ctn_batch_renorm(in[0], in[1], in[2], mean, var, &o);
        OK(ctn_grad(ctn_sum(ctn_mul(t, g), CTN_ALL_AXES, 0), 3, in, grad));
        OK(ctn_read(t, y, sizeof y));
        near("y", ALL, y, a.y);
        OK(ctn_read(grad[0], gx, sizeof gx));
        near("gx", ALL, gx, a.gx);
        OK(ctn_read(grad[1], gc, sizeof gc));
        near("gscale", C, gc, a.gscale);
        OK(ctn_read(grad[2], gc, sizeof gc));
        near("gshift", C, gc, a.gshift);
        OK(ctn_scope_end(ctx));
        OK(ctn_var_get(mean, gc, sizeof gc));
        near("mean", C, gc, a.mean);
        OK(ctn_var_get(var, gc, sizeof gc));
        near("variance", C, gc, a.var);
    }
    ctn_var_free(mean);
    ctn_var_free(var);
    ctn_context_free(ctx);
}

static void formulas(void **state)
{
    (void)state;
    steps(CTN_MODE_PLANNED);
    steps(CTN_MODE_EAGER);
}

/* ---- the module ------------------------------------------------------------------------------ */

static void call(ctn_context *ctx, ctn_module *m, const float *x, float *y)
{
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(N, C, L))), y, ALL * sizeof *y));
    OK(ctn_scope_end(ctx));
}

/* A batch whose statistics are the running ones gives the same in training and evaluation. The
 * limits are no part of the plan. */
static void module(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    ctn_module *norm = NULL, *renorm = NULL, *copy = NULL;
    ctn_plan_stats before, after;
    float x[ALL], y[3][ALL];
    int64_t calls = 0;
    for (int i = 0; i < ALL; i++) x[i] = (float)(3 * number(i, 1) + i / L % C);
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    OK(ctn_batch_norm_new(&norm, ctx, C, NULL));
    OK(ctn_batch_renorm_new(&renorm, ctx, C, NULL));
    OK(ctn_batch_renorm_set_limits(renorm, 1, 0));
    ctn_context_set_training(ctx, 1);
    call(ctx, norm, x, y[0]);
    call(ctx, renorm, x, y[1]);
    for (int i = 0; i < ALL; i++) assert_true(fabsf(y[0][i] - y[1][i]) < 1e-6f);
    ctn_context_get_stats(ctx, &before);
    OK(ctn_batch_renorm_set_limits(renorm, 1e6, 1e6)); /* none: training is as evaluation */
    call(ctx, renorm, x, y[0]);
    for (int k = 0; k < 200; k++) call(ctx, renorm, x, y[1]);
    ctn_context_get_stats(ctx, &after);
    assert_int_equal(after.plans, before.plans);
    ctn_context_set_training(ctx, 0);
    call(ctx, renorm, x, y[2]);
    for (int i = 0; i < ALL; i++) assert_true(fabsf(y[1][i] - y[2][i]) < 1e-5f);
    assert_true(fabsf(y[0][0] - y[2][0]) > 0.1f);
    OK(ctn_var_get(ctn_module_find(renorm, "num_batches_tracked"), &calls, sizeof calls));
    assert_int_equal(calls, 202);
    OK(ctn_module_copy(&copy, renorm));
    call(ctx, copy, x, y[1]);
    assert_memory_equal(y[1], y[2], sizeof y[1]);
    assert_int_equal(ctn_batch_renorm_set_limits(norm, 1, 0), CTN_EARG);
    assert_int_equal(ctn_batch_renorm_set_limits(renorm, 0.5, 0), CTN_EARG);
    ctn_error_clear();
    ctn_module_free(copy);
    ctn_module_free(renorm);
    assert_int_equal(ctn_batch_renorm_new(&renorm, ctx, C,
                                          CTN_OPT(ctn_batch_renorm_module_opt, .rmax = 0.9)),
                     CTN_EARG);
    assert_int_equal(ctn_batch_renorm_new(&renorm, ctx, 0, NULL), CTN_EARG);
    ctn_error_clear();
    ctn_module_free(norm);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(formulas), cmocka_unit_test(module)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
