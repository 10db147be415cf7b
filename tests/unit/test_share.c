/* SPDX-License-Identifier: Apache-2.0
 *
 * One set of weights in several contexts (ctn_module_share): threads that evaluate at the same time
 * get the bits of the original, re-laid weights are in memory once, and nobody can write.
 *
 * Labels: threads
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>
#include <catena/zoo.h>

#include <cmocka.h>

#include "support/ok.h"

enum { THREADS = 3, BATCH = 2, SIDE = 32, CLASSES = 10, RUNS = 3 };

static float image[BATCH * 3 * SIDE * SIDE];

static ctn_context *open_context(void)
{
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    ctn_context_set_training(ctx, 0);
    ctn_context_set_grad(ctx, 0);
    return ctx;
}

static ctn_status evaluate(ctn_context *ctx, ctn_module *m, float *y)
{
    CTN_TRY(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, image, CTN_F32, CTN_SHAPE(BATCH, 3, SIDE, SIDE));
    ctn_tensor *out = ctn_call(m, x);
    ctn_status st = out ? ctn_read(out, y, BATCH * CLASSES * sizeof *y) : ctn_error_status();
    ctn_status end = ctn_scope_end(ctx);
    return st < 0 ? st : end;
}

static ctn_module *network(ctn_context *ctx)
{
    ctn_module *m = NULL;
    OK(ctn_zoo_new(&m, ctx, "resnet20_cifar", NULL));
    for (size_t i = 0; i < sizeof image / sizeof *image; i++)
        image[i] = (float)(i * 2654435761u % 1000) / 500 - 1;
    return m;
}

static int64_t bytes_of(ctn_context *ctx)
{
    ctn_plan_stats s = {0};
    ctn_context_get_stats(ctx, &s);
    return s.arena_bytes;
}

typedef struct {
    ctn_context *ctx;
    ctn_module *m;
    float y[RUNS][BATCH * CLASSES];
    ctn_status st;
    pthread_t thread;
} worker;

static void *work(void *user)
{
    worker *w = user;
    w->st = CTN_OK;
    for (int i = 0; i < RUNS && w->st == CTN_OK; i++) w->st = evaluate(w->ctx, w->m, w->y[i]);
    return NULL;
}

static void same_bits_at_the_same_time(void **state)
{
    (void)state;
    float y[BATCH * CLASSES];
    worker w[THREADS];
    ctn_context *ctx = open_context();
    ctn_module *m = network(ctx);
    OK(evaluate(ctx, m, y));
    const int64_t alone = bytes_of(ctx);
    for (int i = 0; i < THREADS; i++) {
        w[i].ctx = open_context();
        OK(ctn_module_share(&w[i].m, w[i].ctx, m));
    }
    ctn_module_free(m); /* the weights stay */
    ctn_context_free(ctx);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(w[i].thread, NULL), 0);
        OK(w[i].st);
        for (int r = 0; r < RUNS; r++) assert_memory_equal(w[i].y[r], y, sizeof y);
        assert_true(bytes_of(w[i].ctx) <= alone); /* without its own copies of weights */
        ctn_module_free(w[i].m);
        ctn_context_free(w[i].ctx);
    }
}

static void nobody_writes(void **state)
{
    (void)state;
    ctn_context *ctx = open_context(), *other = open_context();
    ctn_module *m = network(ctx), *copy = NULL, *again = NULL;
    ctn_optim *o = NULL;
    float bias[CLASSES] = {0};
    OK(ctn_sgd_new(&o, ctn_params(m), CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    assert_int_equal(ctn_module_share(&copy, other, m), CTN_ESTATE);
    assert_non_null(strstr(ctn_error_message(), "optimizer"));
    ctn_error_clear();
    ctn_optim_free(o);
    assert_int_equal(ctn_module_share(&copy, ctx, m), CTN_EARG);
    ctn_error_clear();
    OK(ctn_module_share(&copy, other, m));
    OK(ctn_module_copy(&again, copy)); /* has values of its own */
    ctn_module *both[] = {m, copy};
    for (int i = 0; i < 2; i++) {
        ctn_var *v = ctn_module_find(both[i], "linear.bias");
        assert_non_null(v);
        assert_int_equal(ctn_var_set(v, bias, sizeof bias), CTN_ESTATE);
        assert_non_null(strstr(ctn_error_message(), "shared"));
        ctn_error_clear();
        assert_int_equal(ctn_sgd_new(&o, ctn_params(both[i]), CTN_OPT(ctn_sgd_opt, .lr = 0.1)),
                         CTN_ESTATE);
        ctn_error_clear();
    }
    OK(ctn_var_set(ctn_module_find(again, "linear.bias"), bias, sizeof bias));
    ctn_module_free(again);
    ctn_module_free(copy);
    ctn_module_free(m);
    ctn_context_free(other);
    ctn_context_free(ctx);
}

/* A module with a copy function, and training mode, which would write running statistics. */
static void other_modules(void **state)
{
    (void)state;
    ctn_context *ctx = open_context(), *other = open_context();
    ctn_module *m = NULL, *copy = NULL;
    OK(ctn_lstm_new(&m, ctx, 4, 8, NULL));
    OK(ctn_module_share(&copy, other, m));
    assert_ptr_equal(ctn_module_context(copy), other);
    ctn_module_free(m);
    ctn_module_free(copy);
    m = network(ctx);
    OK(ctn_module_share(&copy, other, m));
    float y[BATCH * CLASSES];
    ctn_context_set_training(other, 1);
    assert_int_equal(evaluate(other, copy, y), CTN_ESTATE);
    ctn_error_clear();
    ctn_module_free(m);
    ctn_module_free(copy);
    ctn_context_free(other);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_at_the_same_time),
        cmocka_unit_test(nobody_writes),
        cmocka_unit_test(other_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
