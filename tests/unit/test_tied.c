/* SPDX-License-Identifier: Apache-2.0
 *
 * A table used by an embedding and by the last layer: the plan adds the rows of one gradient to the
 * other in place, in the memory of the optimizer, and computes the loss's gradients with the
 * loss scale in them. Random programs with further uses of the table, several backward passes
 * before a step, and reads of values and gradients in between must train as in eager mode.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <catena/ops.h>
#include <catena/optim.h>

#include "support/check.h"
#include "support/ok.h"

#include <cmocka.h>

enum { V = 12, D = 4, N = 10, COUNT = V * D, PROGRAMS = 200, STEPS = 3, PASSES = 2, SEEN = 2000 };

typedef struct {
    float seen[SEEN]; /* everything that the program has read */
    int n;
} record;

typedef struct {
    ctn_context *ctx;
    ctn_var *table, *mix;
    ctn_optim *optim;
    record *r;
    uint32_t random;
    int64_t words[PASSES][N], next[PASSES][N]; /* inputs are borrowed until the scope ends */
} machine;

static uint32_t draw(machine *m, uint32_t n)
{
    m->random = m->random * 1664525u + 1013904223u;
    return (m->random >> 8) % n;
}

static void see(machine *m, const float *p, int n)
{
    assert_true(m->r->n + n <= SEEN);
    memcpy(m->r->seen + m->r->n, p, (size_t)n * sizeof *p);
    m->r->n += n;
}

static void read_tensor(machine *m, ctn_tensor *t)
{
    const float *p = ctn_data(t);
    assert_non_null(p);
    see(m, p, (int)ctn_count(t));
}

static void read_gradient(machine *m)
{
    float g[COUNT];
    OK(ctn_var_grad(m->table, g, sizeof g));
    see(m, g, COUNT);
}

/* The loss of a small language model; what else it does with the table is drawn. */
static ctn_tensor *loss_of(machine *m, int pass)
{
    for (int i = 0; i < N; i++) {
        m->words[pass][i] = draw(m, V);
        m->next[pass][i] = draw(m, V);
    }
    ctn_tensor *table = ctn_use(m->table);
    ctn_tensor *words = ctn_input(m->ctx, m->words[pass], CTN_I64, CTN_SHAPE(N));
    ctn_tensor *next = ctn_input(m->ctx, m->next[pass], CTN_I64, CTN_SHAPE(N));
    ctn_tensor *x = ctn_embedding(draw(m, 4) == 0 ? ctn_use(m->table) : table, words);
    if (draw(m, 4) == 0) x = ctn_add(x, ctn_embedding(table, next));
    x = ctn_tanh(ctn_linear(x, ctn_use(m->mix), NULL));
    if (draw(m, 4) == 0) read_tensor(m, x);
    ctn_tensor *loss = ctn_linear_cross_entropy(x, table, next, NULL);
    if (draw(m, 4) == 0) loss = ctn_mul(loss, loss);
    if (draw(m, 4) == 0) loss = ctn_add(loss, ctn_mean(ctn_square(table), CTN_ALL_AXES, 0));
    if (draw(m, 4) == 0) read_tensor(m, loss);
    return loss;
}

static void run_step(machine *m)
{
    float all[COUNT];
    const int passes = draw(m, 3) == 0 ? PASSES : 1;
    OK(ctn_scope_begin(m->ctx));
    for (int i = 0; i < passes; i++) {
        ctn_tensor *loss = loss_of(m, i);
        OK(ctn_backward(m->optim, loss));
        if (draw(m, 4) == 0) read_tensor(m, loss);
        if (draw(m, 4) == 0) read_gradient(m);
    }
    OK(ctn_optim_step(m->optim));
    OK(ctn_scope_end(m->ctx));
    OK(ctn_var_get(m->table, all, sizeof all));
    see(m, all, COUNT);
}

static void machine_new(machine *m, int eager)
{
    static const char *const names[] = {"table", "mix"};
    float start[COUNT];
    ctn_var *vars[2];
    for (int i = 0; i < COUNT; i++) start[i] = (float)((i * 37) % 17 - 8) / 8;
    OK(ctn_context_new(&m->ctx, CTN_OPT(ctn_context_opt, .threads = 1,
                                        .mode = eager ? CTN_MODE_EAGER : CTN_MODE_PLANNED)));
    OK(ctn_var_new(&m->table, m->ctx, "table", CTN_PARAM, CTN_F32, CTN_SHAPE(V, D)));
    OK(ctn_var_new(&m->mix, m->ctx, "mix", CTN_PARAM, CTN_F32, CTN_SHAPE(D, D)));
    OK(ctn_var_set(m->table, start, sizeof start));
    OK(ctn_var_set(m->mix, start, D * D * sizeof *start));
    vars[0] = m->table;
    vars[1] = m->mix;
    OK(ctn_sgd_new(&m->optim, (ctn_vars){2, vars, names}, CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    OK(ctn_optim_set_loss_scale(m->optim, CTN_OPT(ctn_loss_scale_opt, .scale = 48)));
}

static void machine_free(machine *m)
{
    ctn_optim_free(m->optim);
    ctn_var_free(m->table);
    ctn_var_free(m->mix);
    ctn_context_free(m->ctx);
}

static void run_program(uint32_t program, int eager, record *r)
{
    static machine m;
    m = (machine){.r = r, .random = program * 7919u + 1};
    machine_new(&m, eager);
    for (int i = 0; i < STEPS; i++) run_step(&m);
    machine_free(&m);
}

static void programs(void **state)
{
    (void)state;
    static record planned, eager;
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        planned.n = eager.n = 0;
        run_program(i, 0, &planned);
        run_program(i, 1, &eager);
        assert_int_equal(planned.n, eager.n);
        for (int k = 0; k < planned.n; k++)
            if (!(fabsf(planned.seen[k] - eager.seen[k]) <= 2e-6f * (1 + fabsf(eager.seen[k]))))
                fail_msg("program %u: number %d is %g planned and %g eager", i, k,
                         (double)planned.seen[k], (double)eager.seen[k]);
    }
}

/* No gradient of the table is in the arena. */
static void in_place(void **state)
{
    (void)state;
    enum { WORDS = 4096, WIDE = 64, ROWS = 2 };
    static const char *const names[] = {"table"};
    const int64_t words[ROWS] = {5, WORDS - 1};
    ctn_context *ctx = NULL;
    ctn_var *v = NULL;
    ctn_optim *o = NULL;
    ctn_plan_stats stats = {0};
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    OK(ctn_var_new(&v, ctx, "table", CTN_PARAM, CTN_F32, CTN_SHAPE(WORDS, WIDE)));
    OK(ctn_sgd_new(&o, (ctn_vars){1, &v, names}, CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *at = ctn_input(ctx, words, CTN_I64, CTN_SHAPE(ROWS));
    ctn_tensor *x = ctn_embedding(ctn_use(v), at);
    OK(ctn_backward(o, ctn_linear_cross_entropy(x, ctn_use(v), at, NULL)));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
    ctn_context_get_stats(ctx, &stats);
    assert_true(stats.arena_bytes < (int64_t)WORDS * WIDE * 2);
    ctn_optim_free(o);
    ctn_var_free(v);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs),
        cmocka_unit_test(in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
