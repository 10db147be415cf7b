/* SPDX-License-Identifier: Apache-2.0
 *
 * Clipping of values, L1 decay and gradient noise (golden.optim compares the first two with
 * PyTorch): the noise has the promised variance, the same bits on any number of threads, after a
 * resume and next to parameters that are frozen, and does not reach the padding. Also steps with
 * many rates, and steps that are applied in ranges.
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

#include <cmocka.h>

#include "optim/optim.h"
#include "support/ok.h"

enum { N = 20001, M = 37, STEPS = 6 };

typedef struct {
    int threads, move; /* move: the state goes to a new optimizer before this step */
    bool frozen;       /* a third parameter, before the others, is frozen */
    ctn_dtype type;
} how;

typedef struct {
    int64_t steps;
} saved;

static ctn_status take(void *user, const char *name, ctn_dtype dtype, int ndim, const int64_t *dims,
                       void *data)
{
    (void)dtype;
    (void)ndim;
    (void)dims;
    if (strcmp(name, "steps") == 0) memcpy(user, data, sizeof(int64_t));
    return CTN_OK;
}

static ctn_status give(void *user, const char *name, ctn_dtype dtype, int ndim, const int64_t *dims,
                       void *data)
{
    (void)dtype;
    (void)ndim;
    (void)dims;
    if (strcmp(name, "steps") == 0) memcpy(data, user, sizeof(int64_t));
    return CTN_OK;
}

static ctn_optim *make(ctn_vars vars)
{
    ctn_optim *o;
    OK(ctn_sgd_new(&o, vars, CTN_OPT(ctn_sgd_opt, .lr = 1)));
    ctn_optim_set_noise(o, 0.25, 0.5, 11);
    return o;
}

/* The gradients are zeros, so SGD with rate 1 subtracts the noise. */
static void run(const how *h, void *x)
{
    ctn_context *ctx;
    ctn_var *v[3];
    saved s = {0};
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = h->threads)));
    OK(ctn_var_new(&v[0], ctx, "other", CTN_PARAM, h->type, CTN_SHAPE(5)));
    OK(ctn_var_new(&v[1], ctx, "small", CTN_PARAM, h->type, CTN_SHAPE(M)));
    OK(ctn_var_new(&v[2], ctx, "large", CTN_PARAM, h->type, CTN_SHAPE(N)));
    if (h->frozen) ctn_var_set_trainable(v[0], 0);
    ctn_vars vars = {3, v, NULL};
    ctn_optim *o = make(vars);
    for (int step = 0; step < STEPS; step++) {
        if (step == h->move) {
            OK(ctn_optim_visit(o, take, &s));
            ctn_optim_free(o);
            o = make(vars);
            OK(ctn_optim_visit(o, give, &s));
        }
        OK(ctn_scope_begin(ctx));
        ctn_tensor *a = ctn_sum(ctn_use(v[1]), CTN_ALL_AXES, 0);
        ctn_tensor *b = ctn_sum(ctn_use(v[2]), CTN_ALL_AXES, 0);
        OK(ctn_backward(o, ctn_scale(ctn_add(a, b), 0)));
        OK(ctn_optim_step(o));
        OK(ctn_scope_end(ctx));
    }
    const ctn__pool *p = o->pool;
    for (int i = 0; i < p->nvar; i++)
        for (int64_t k = p->begin[i] + ctn__count(&p->var[i]->d); k < p->begin[i + 1]; k++)
            assert_true(ctn__elem_get(p->w, p->dtype, k) == 0);
    OK(ctn_var_get(v[2], x, N * ctn_dtype_size(h->type)));
    ctn_optim_free(o);
    for (int i = 0; i < 3; i++) ctn_var_free(v[i]);
    ctn_context_free(ctx);
}

static void noise_is_a_pure_function(void **state)
{
    (void)state;
    static double x[N], y[N];
    for (int wide = 0; wide < 2; wide++) {
        const ctn_dtype type = wide ? CTN_F64 : CTN_F32;
        const size_t bytes = N * ctn_dtype_size(type);
        run(&(how){1, -1, false, type}, x);
        run(&(how){3, -1, false, type}, y);
        assert_memory_equal(x, y, bytes);
        run(&(how){2, 3, false, type}, y);
        assert_memory_equal(x, y, bytes);
        run(&(how){1, -1, true, type}, y);
        assert_memory_equal(x, y, bytes);
    }
    /* The variance of a sum of independent numbers; its own deviation is sqrt(2/N) = 1 %. */
    double want = 0, got = 0;
    for (int t = 0; t < STEPS; t++) want += 0.25 / sqrt(1 + t);
    for (int64_t i = 0; i < N; i++) got += y[i] * y[i] / N;
    assert_true(fabs(got / want - 1) < 0.05);
}

enum { MANY = 150, EACH = 3 };

/* w - rate (clip(g) + lasso sign(w)), with a rate for each of many parameters: they form more
 * segments than are swept at once. All numbers are exact. */
static void many_segments(void **state)
{
    (void)state;
    ctn_context *ctx;
    ctn_var *v[MANY];
    ctn_optim *o;
    char name[MANY][16];
    const char *names[MANY];
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    for (int i = 0; i < MANY; i++) {
        const float start[EACH] = {(float)i + 1, (float)-i - 1, 0};
        snprintf(name[i], sizeof name[i], "p%d", i);
        names[i] = name[i];
        OK(ctn_var_new(&v[i], ctx, name[i], CTN_PARAM, CTN_F32, CTN_SHAPE(EACH)));
        OK(ctn_var_set(v[i], start, sizeof start));
    }
    OK(ctn_sgd_new(&o, (ctn_vars){MANY, v, names}, CTN_OPT(ctn_sgd_opt, .lr = 0.5)));
    for (int i = 0; i < MANY; i++)
        assert_int_equal(ctn_optim_group(o, name[i], CTN_OPT(ctn_group_opt, .lr_scale = 1 + i % 8)),
                         1);
    ctn_optim_set_lasso(o, 0.25);
    ctn_optim_set_clip_value(o, 3);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *sum = NULL;
    for (int i = 0; i < MANY; i++) {
        ctn_tensor *one = ctn_scale(ctn_sum(ctn_use(v[i]), CTN_ALL_AXES, 0), i % 9 - 4);
        sum = sum ? ctn_add(sum, one) : one;
    }
    OK(ctn_backward(o, sum));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
    for (int i = 0; i < MANY; i++) {
        static const int sign[EACH] = {1, -1, 0};
        const int g = i % 9 - 4, clipped = g < -3 ? -3 : g > 3 ? 3 : g;
        float w[EACH];
        OK(ctn_var_get(v[i], w, sizeof w));
        for (int k = 0; k < EACH; k++) {
            const double want = sign[k] * (i + 1) - 0.5 * (1 + i % 8) * (clipped + 0.25 * sign[k]);
            if (w[k] != (float)want)
                fail_msg("parameter %d, element %d: %g, expected %g", i, k, (double)w[k], want);
        }
    }
    ctn_optim_free(o);
    for (int i = 0; i < MANY; i++) ctn_var_free(v[i]);
    ctn_context_free(ctx);
}

/* A step that is applied in ranges, which cut segments anywhere, gives the bits of a whole one. */
static void ranges(void **state)
{
    (void)state;
    static float w[2][MANY * 16], m[2][MANY * 16];
    ctn_context *ctx;
    ctn_var *v[MANY];
    ctn_optim *o;
    char name[MANY][16];
    const char *names[MANY];
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    for (int i = 0; i < MANY; i++) {
        snprintf(name[i], sizeof name[i], "p%d", i);
        names[i] = name[i];
        OK(ctn_var_new(&v[i], ctx, name[i], CTN_PARAM, CTN_F32, CTN_SHAPE(EACH)));
    }
    OK(ctn_sgd_new(&o, (ctn_vars){MANY, v, names},
                   CTN_OPT(ctn_sgd_opt, .lr = 0.1, .momentum = 0.9)));
    for (int i = 0; i < MANY; i++)
        (void)ctn_optim_group(o, name[i], CTN_OPT(ctn_group_opt, .lr_scale = 1 + i % 8));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *sum = NULL;
    for (int i = 0; i < MANY; i++) {
        ctn_tensor *one = ctn_sum(ctn_exp(ctn_use(v[i])), CTN_ALL_AXES, 0);
        sum = sum ? ctn_add(sum, one) : one;
    }
    OK(ctn_backward(o, sum));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
    ctn__pool *p = o->pool;
    const int64_t n = p->count, cut[] = {0, 1, 17, 500, 501, n - 1, n};
    const size_t bytes = (size_t)n * sizeof(float);
    assert_true(bytes <= sizeof w[0] && n > 501);
    assert_int_equal(o->nseg, MANY);
    for (int64_t i = 0; i < n; i++) ((float *)p->g)[i] = (float)(i % 7) - 3;
    memcpy(w[0], p->w, bytes);
    memcpy(m[0], o->state[0], bytes);
    ctn__update_range(o, 0, n, 1);
    memcpy(w[1], p->w, bytes);
    memcpy(m[1], o->state[0], bytes);
    memcpy(p->w, w[0], bytes);
    memcpy(o->state[0], m[0], bytes);
    for (size_t k = 0; k + 1 < sizeof cut / sizeof *cut; k++)
        ctn__update_range(o, cut[k], cut[k + 1], 1);
    assert_memory_equal(p->w, w[1], bytes);
    assert_memory_equal(o->state[0], m[1], bytes);
    assert_memory_not_equal(w[0], w[1], bytes);
    ctn_optim_free(o);
    for (int i = 0; i < MANY; i++) ctn_var_free(v[i]);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_is_a_pure_function),
        cmocka_unit_test(many_segments),
        cmocka_unit_test(ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
