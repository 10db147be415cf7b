/* SPDX-License-Identifier: Apache-2.0
 *
 * Kept copies of weights (plan/kept.c). Random sequences of evaluation, accumulation, steps,
 * writes, freezing and loading give the same bits as the same sequence in which every variable
 * is rewritten before every run, so that no copy is ever valid. Copies are also used: a second
 * evaluation reorders no weight.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "support/machine.h"
#include "support/ok.h"

enum { N = 2, C = 16, SIDE = 8, VARS = 4, MOST = C * C * 9, IMAGES = N * C * SIDE * SIDE };

typedef struct {
    ctn_context *c;
    ctn_var *v[VARS];
    ctn_optim *o;
    float seen[256]; /* one loss of each run */
    int runs;
} model;

static const int64_t shape[VARS][4] = {{C, C, 3, 3}, {C, C, 1, 1}, {C, C, 3, 3}, {10, C}};
static float image[IMAGES];

static size_t bytes_of(int i)
{
    return (size_t)(i < 3 ? C * C * (i == 1 ? 1 : 9) : 10 * C) * sizeof(float);
}

static void fill(float *x, int n, uint32_t seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
}

static void open_model(model *m, ctn_precision precision)
{
    *m = (model){0};
    OK(ctn_context_new(&m->c, CTN_OPT(ctn_context_opt, .threads = 2, .precision = precision)));
    for (int i = 0; i < VARS; i++) {
        float w[MOST];
        OK(ctn_var_new(&m->v[i], m->c, "w", CTN_PARAM, CTN_F32, i < 3 ? 4 : 2, shape[i]));
        fill(w, MOST, 7u + (uint32_t)i);
        OK(ctn_var_set(m->v[i], w, bytes_of(i)));
    }
    OK(ctn_sgd_new(&m->o, (ctn_vars){VARS, m->v, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 0.01)));
}

static void close_model(model *m)
{
    ctn_optim_free(m->o);
    for (int i = 0; i < VARS; i++) ctn_var_free(m->v[i]);
    ctn_context_free(m->c);
}

static ctn_tensor *loss_of(model *m)
{
    const ctn_conv_opt *same = CTN_OPT(ctn_conv_opt, .pad = {1});
    ctn_tensor *x = ctn_input(m->c, image, CTN_F32, CTN_SHAPE(N, C, SIDE, SIDE));
    x = ctn_relu(ctn_conv(x, ctn_use(m->v[0]), NULL, same));
    x = ctn_tanh(ctn_conv(x, ctn_use(m->v[1]), NULL, NULL));
    x = ctn_global_avg_pool(ctn_conv(x, ctn_use(m->v[2]), NULL, same));
    x = ctn_linear(ctn_reshape(x, CTN_SHAPE(N, C)), ctn_use(m->v[3]), NULL);
    return ctn_mean(ctn_square(x), CTN_ALL_AXES, 0);
}

/* Makes every kept copy outdated. */
static void write_all(model *m)
{
    float w[MOST];
    for (int i = 0; i < VARS; i++) {
        OK(ctn_var_get(m->v[i], w, bytes_of(i)));
        OK(ctn_var_set(m->v[i], w, bytes_of(i)));
    }
}

/* Two more steps: one parameter is frozen between backward and step, or is a constant of the loss.
 */
enum { EVALUATE, ACCUMULATE, STEP, WRITE, FREEZE, ASSIGN, FREEZE_STEP, CONSTANT_STEP, ACTIONS };

/* The loss, with parameter i read while gradients are off. */
static ctn_tensor *loss_without(model *m, int i)
{
    ctn_context_set_grad(m->c, 0);
    ctn_tensor *w = ctn_mean(ctn_square(ctn_use(m->v[i])), CTN_ALL_AXES, 0);
    ctn_tensor *x = ctn_input(m->c, image, CTN_F32, CTN_SHAPE(N, C, SIDE, SIDE));
    if (i < 3)
        x = ctn_conv(x, ctn_use(m->v[i]), NULL, CTN_OPT(ctn_conv_opt, .pad = {i == 1 ? 0 : 1}));
    w = ctn_add(w, ctn_mean(x, CTN_ALL_AXES, 0));
    ctn_context_set_grad(m->c, 1);
    const int k = (i + 1) % VARS;
    return ctn_add(w, ctn_mean(ctn_square(ctn_use(m->v[k])), CTN_ALL_AXES, 0));
}

static void act(model *m, int what, uint32_t seed)
{
    float w[MOST];
    const int i = (int)(seed % VARS);
    switch (what) {
    case WRITE:
        fill(w, MOST, seed);
        OK(ctn_var_set(m->v[i], w, bytes_of(i)));
        return;
    case FREEZE:
        if (i < 3) ctn_var_set_trainable(m->v[i], !ctn_var_trainable(m->v[i]));
        return;
    default: break;
    }
    const bool steps = what == STEP || what == FREEZE_STEP || what == CONSTANT_STEP;
    const int trained = ctn_var_trainable(m->v[i]);
    if (what == CONSTANT_STEP) ctn_var_set_trainable(m->v[(i + 1) % VARS], 1);
    OK(ctn_scope_begin(m->c));
    ctn_tensor *l = what == CONSTANT_STEP ? loss_without(m, i) : loss_of(m);
    if (what == ASSIGN) {
        OK(ctn_assign(m->v[i], ctn_scale(ctn_use(m->v[i]), 0.9)));
        l = ctn_add(l, loss_of(m)); /* before and after the assign */
    }
    if (what == ACCUMULATE || steps) OK(ctn_backward(m->o, l));
    if (what == FREEZE_STEP) ctn_var_set_trainable(m->v[i], 0);
    if (steps) OK(ctn_optim_step(m->o));
    m->seen[m->runs++] = (float)ctn_item(l);
    OK(ctn_scope_end(m->c));
    if (what == FREEZE_STEP) ctn_var_set_trainable(m->v[i], trained);
}

static void the_same_as_without(void **state)
{
    (void)state;
    fill(image, IMAGES, 3);
    for (uint32_t seed = 1; seed <= 12; seed++) {
        static model kept, plain;
        const ctn_precision p =
            seed % 3 == 0 && test_has_bf16() ? CTN_PRECISION_BF16 : CTN_PRECISION_F32;
        uint32_t s = seed;
        open_model(&kept, p);
        open_model(&plain, p);
        for (int k = 0; k < 60; k++) {
            s = s * 1664525u + 1013904223u;
            const int what = (int)((s >> 16) % (ACTIONS + 3)); /* mostly evaluation */
            write_all(&plain);
            act(&kept, what < ACTIONS ? what : EVALUATE, s >> 8);
            act(&plain, what < ACTIONS ? what : EVALUATE, s >> 8);
        }
        assert_int_equal(kept.runs, plain.runs);
        assert_memory_equal(kept.seen, plain.seen, (size_t)kept.runs * sizeof(float));
        for (int i = 0; i < VARS; i++) {
            float a[MOST], b[MOST];
            OK(ctn_var_get(kept.v[i], a, bytes_of(i)));
            OK(ctn_var_get(plain.v[i], b, bytes_of(i)));
            assert_memory_equal(a, b, bytes_of(i));
        }
        close_model(&kept);
        close_model(&plain);
    }
}

static uint64_t kept_bytes(const model *m)
{
    return ctn__trace_count(m->c->trace, CTN__COUNT_KEPT_BYTES);
}

static void copies_are_used(void **state)
{
    (void)state;
    model m;
    fill(image, IMAGES, 3);
    open_model(&m, CTN_PRECISION_F32);
    act(&m, EVALUATE, 0);
    assert_int_equal(kept_bytes(&m), 0);
    act(&m, EVALUATE, 0);
    const uint64_t once = kept_bytes(&m);
    assert_true(once > 0);
    act(&m, STEP, 0);
    assert_int_equal(kept_bytes(&m), once); /* the plan of a step makes its own copies */
    act(&m, EVALUATE, 0);
    assert_int_equal(kept_bytes(&m), once); /* the kept ones were outdated */
    act(&m, EVALUATE, 0);
    assert_int_equal(kept_bytes(&m), 2 * once);
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_as_without),
                                       cmocka_unit_test(copies_are_used)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
