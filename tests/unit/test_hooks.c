/* SPDX-License-Identifier: Apache-2.0
 *
 * Clipping of values, L1 decay and gradient noise (golden.optim compares the first two with
 * PyTorch): the noise has the promised variance, the same bits on any number of threads, after a
 * resume and next to parameters that are frozen, and does not reach the padding.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_is_a_pure_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
