/* SPDX-License-Identifier: Apache-2.0
 *
 * Adafactor: arrays of three dimensions against the formulas in double precision, the same bits on
 * one and two threads for large parameters, how small its state is, and what is refused. The steps
 * of matrices and vectors are compared with PyTorch in tests/golden/test_optim.c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/dist.h>
#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "support/ok.h"

static double number(int64_t i, int64_t k)
{
    return (double)((i * 37 + k * 101) * 7919 % 257 - 128) / 128;
}

/* A step whose gradient is g. */
static void take_step(ctn_context *ctx, ctn_optim *o, ctn_var *v, const void *g)
{
    const ctn_desc *d = ctn_var_desc(v);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_mul(ctn_use(v), ctn_input(ctx, g, d->dtype, d->ndim, d->dim));
    OK(ctn_backward(o, ctn_sum(t, CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
}

/* ---- three dimensions ------------------------------------------------------------------------ */

enum { B = 2, R = 3, C = 5, ALL = B * R * C };

typedef struct {
    double w[ALL], row[B][R], col[B][C];
} numbers;

static void reference(numbers *a, const double *g, int t, double lr)
{
    double u[ALL], w2 = 0, u2 = 0;
    const double k = pow(t, -0.8);
    for (int b = 0; b < B; b++) {
        double row[R] = {0}, col[C] = {0}, mean = 0;
        for (int i = 0; i < R * C; i++) {
            const double x = g[b * R * C + i];
            row[i / C] += x * x / C;
            col[i % C] += x * x / R;
        }
        for (int i = 0; i < R; i++) mean += (a->row[b][i] += k * (row[i] - a->row[b][i])) / R;
        for (int j = 0; j < C; j++) a->col[b][j] += k * (col[j] - a->col[b][j]);
        for (int i = 0; i < R * C; i++) {
            const double v = a->row[b][i / C] * a->col[b][i % C] / mean;
            u[b * R * C + i] = g[b * R * C + i] / sqrt(v);
        }
    }
    for (int i = 0; i < ALL; i++) {
        w2 += a->w[i] * a->w[i] / ALL;
        u2 += u[i] * u[i] / ALL;
    }
    const double step = fmax(1e-3, sqrt(w2)) * fmin(lr, 1 / sqrt(t)) / fmax(1, sqrt(u2));
    for (int i = 0; i < ALL; i++) a->w[i] -= step * u[i];
}

static void three_dimensions(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    ctn_var *v = NULL;
    ctn_optim *o = NULL;
    numbers a = {0};
    double w[ALL], g[ALL];
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    OK(ctn_var_new(&v, ctx, "v", CTN_PARAM, CTN_F64, CTN_SHAPE(B, R, C)));
    for (int i = 0; i < ALL; i++) a.w[i] = number(i, 1);
    OK(ctn_var_set(v, a.w, sizeof a.w));
    OK(ctn_adafactor_new(&o, (ctn_vars){1, &v, NULL}, CTN_OPT(ctn_adafactor_opt, .lr = 0.4)));
    for (int t = 1; t <= 9; t++) {
        for (int i = 0; i < ALL; i++) g[i] = number(i, t + 3) + 0.1;
        take_step(ctx, o, v, g);
        reference(&a, g, t, 0.4);
        OK(ctn_var_get(v, w, sizeof w));
        for (int i = 0; i < ALL; i++)
            if (!(fabs(w[i] - a.w[i]) < 1e-12))
                fail_msg("step %d, element %d: %.15g, expected %.15g", t, i, w[i], a.w[i]);
    }
    ctn_optim_free(o);
    ctn_var_free(v);
    ctn_context_free(ctx);
}

/* ---- threads --------------------------------------------------------------------------------- */

static ctn_status count_elements(void *user, const char *name, ctn_dtype dtype, int ndim,
                                 const int64_t *dims, void *data)
{
    int64_t n = 1;
    (void)name, (void)data;
    for (int i = 0; i < ndim; i++) n *= dims[i];
    if (dtype == CTN_F32) *(int64_t *)user += n;
    return CTN_OK;
}

static void on_threads(int threads, int ndim, const int64_t *dims, float *out, int64_t state)
{
    ctn_context *ctx = NULL;
    ctn_var *v = NULL;
    ctn_optim *o = NULL;
    int64_t n = 1, found = 0;
    for (int i = 0; i < ndim; i++) n *= dims[i];
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = threads)));
    OK(ctn_var_new(&v, ctx, "v", CTN_PARAM, CTN_F32, ndim, dims));
    for (int64_t i = 0; i < n; i++) x[i] = (float)number(i, 2);
    OK(ctn_var_set(v, x, (size_t)n * sizeof *x));
    OK(ctn_adafactor_new(&o, (ctn_vars){1, &v, NULL}, NULL));
    for (int t = 0; t < 3; t++) {
        for (int64_t i = 0; i < n; i++) x[i] = (float)number(i, t + 5);
        take_step(ctx, o, v, x);
    }
    OK(ctn_var_get(v, out, (size_t)n * sizeof *out));
    OK(ctn_optim_visit(o, count_elements, &found));
    assert_int_equal(found, state);
    ctn_optim_free(o);
    ctn_var_free(v);
    ctn_context_free(ctx);
    free(x);
}

static void same_on_any_number_of_threads(void **state)
{
    (void)state;
    static const struct {
        int ndim;
        int64_t dims[4], state;
    } all[] = {{2, {301, 203}, 301 + 203}, {1, {50001}, 50001}, {4, {33, 65, 3, 3}, 33 * 65 * 6}};
    static float one[70000], two[70000];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        memset(one, 0, sizeof one);
        memset(two, 0, sizeof two);
        on_threads(1, all[i].ndim, all[i].dims, one, all[i].state);
        on_threads(2, all[i].ndim, all[i].dims, two, all[i].state);
        assert_memory_equal(one, two, sizeof one);
    }
}

static void refused(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    ctn_comm *c = NULL;
    ctn_var *v = NULL;
    ctn_optim *o = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    OK(ctn_comm_loopback(&c, 1, NULL));
    OK(ctn_var_new(&v, ctx, "v", CTN_PARAM, CTN_F32, CTN_SHAPE(4, 3)));
    const ctn_vars vars = {1, &v, NULL};
    assert_int_equal(ctn_adafactor_new(&o, vars, CTN_OPT(ctn_adafactor_opt, .beta2_decay = 0.5)),
                     CTN_EARG);
    assert_int_equal(ctn_adafactor_new(&o, vars, CTN_OPT(ctn_adafactor_opt, .clip = -1)), CTN_EARG);
    ctn_error_clear();
    OK(ctn_adafactor_new(&o, vars, NULL));
    assert_int_equal(ctn_dist_optim(o, c, CTN_OPT(ctn_dist_opt, .shard = 1)), CTN_EARG);
    assert_non_null(strstr(ctn_error_message(), "cannot be sharded"));
    ctn_error_clear();
    OK(ctn_dist_optim(o, c, NULL));
    ctn_optim_free(o);
    ctn_var_free(v);
    ctn_comm_free(c);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_dimensions),
        cmocka_unit_test(same_on_any_number_of_threads),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
