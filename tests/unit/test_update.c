/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of variables in place: assign(v, put_rows(v, ...)) writes into v if nothing else reads
 * the old value. Random programs with reads, further writes and saves before, between and after the
 * update must give the bits of eager mode, where nothing is written in place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <catena/context.h>
#include <catena/ops.h>

#include "../support/ok.h"

#include <cmocka.h>

enum { N = 2, M = 6, E = 3, COUNT = N * M * E, PROGRAMS = 400, STEPS = 3, MOVES = 7, SEEN = 4000 };

typedef struct {
    float seen[SEEN]; /* everything that the program has read */
    int n;
} record;

typedef struct {
    ctn_context *ctx;
    ctn_var *v, *w;
    record *r;
    uint32_t random;
    ctn_tensor *held, *sum;   /* an earlier value of v; a number that depends on what was read */
    float rows[MOVES][N * E]; /* what is written; inputs are borrowed until the scope ends */
    int64_t at[MOVES][N];
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

static void set(machine *m, ctn_var *v, ctn_tensor *t)
{
    OK(ctn_assign(v, t));
    m->held = NULL; /* it may have been overwritten */
}

static void put(machine *m, int move, ctn_var *v)
{
    for (int i = 0; i < N * E; i++) m->rows[move][i] = (float)draw(m, 1000) / 100;
    for (int i = 0; i < N; i++) m->at[move][i] = draw(m, M);
    ctn_tensor *y = ctn_input(m->ctx, m->rows[move], CTN_F32, CTN_SHAPE(N, 1, E));
    ctn_tensor *at = ctn_input(m->ctx, m->at[move], CTN_I64, CTN_SHAPE(N));
    ctn_tensor *x = draw(m, 8) == 0 && m->held ? m->held : ctn_use(v);
    set(m, v, ctn_put_rows(x, y, at));
}

static void read_tensor(machine *m, ctn_tensor *t)
{
    const float *p = ctn_data(t);
    assert_non_null(p);
    see(m, p, (int)ctn_count(t));
}

static void make_move(machine *m, int move)
{
    ctn_var *v = draw(m, 4) == 0 ? m->w : m->v;
    switch (draw(m, 8)) {
    case 0:
    case 1:
    case 2: put(m, move, v); break;
    case 3: m->held = ctn_use(v); break;
    case 4: m->sum = ctn_add(m->sum, ctn_sum(ctn_use(v), CTN_ALL_AXES, 0)); break;
    case 5: set(m, m->w, ctn_use(m->v)); break;
    case 6: set(m, v, ctn_add(ctn_use(v), ctn_use(m->w))); break;
    default: read_tensor(m, ctn_sum(ctn_use(v), CTN_ALL_AXES, 0)); break;
    }
}

/* One scope with a few moves in an inner scope, whose tensors a read does not compute. */
static void run_scope(machine *m)
{
    float all[COUNT];
    OK(ctn_scope_begin(m->ctx));
    m->held = NULL;
    m->sum = ctn_full(m->ctx, 0, CTN_F32, CTN_SCALAR_SHAPE);
    OK(ctn_scope_begin(m->ctx));
    for (int i = 0; i < MOVES; i++) make_move(m, i);
    m->sum = ctn_scope_return(m->ctx, m->sum);
    read_tensor(m, m->sum);
    OK(ctn_scope_end(m->ctx));
    OK(ctn_var_get(m->v, all, sizeof all));
    see(m, all, COUNT);
    OK(ctn_var_get(m->w, all, sizeof all));
    see(m, all, COUNT);
}

static void run_program(uint32_t program, int eager, record *r)
{
    static machine m;
    float start[COUNT];
    m = (machine){.r = r, .random = program * 7919u + 1};
    for (int i = 0; i < COUNT; i++) start[i] = (float)i / 8;
    OK(ctn_context_new(&m.ctx, CTN_OPT(ctn_context_opt, .threads = 1,
                                       .mode = eager ? CTN_MODE_EAGER : CTN_MODE_PLANNED)));
    OK(ctn_var_new(&m.v, m.ctx, "v", CTN_STATE, CTN_F32, CTN_SHAPE(N, M, E)));
    OK(ctn_var_new(&m.w, m.ctx, "w", CTN_STATE, CTN_F32, CTN_SHAPE(N, M, E)));
    OK(ctn_var_set(m.v, start, sizeof start));
    for (int i = 0; i < STEPS; i++) run_scope(&m);
    ctn_var_free(m.v);
    ctn_var_free(m.w);
    ctn_context_free(m.ctx);
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
            if (memcmp(&planned.seen[k], &eager.seen[k], sizeof(float)) != 0)
                fail_msg("program %u: number %d is %g planned and %g eager", i, k,
                         (double)planned.seen[k], (double)eager.seen[k]);
    }
}

/* The plan of the plain case has no copy: the arena stays smaller than the variable. */
static void in_place(void **state)
{
    (void)state;
    enum { ROOM = 4096 };
    static float row[64];
    const int64_t at[1] = {ROOM - 1};
    ctn_context *ctx = NULL;
    ctn_var *v = NULL;
    ctn_plan_stats stats = {0};
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    OK(ctn_var_new(&v, ctx, "cache", CTN_STATE, CTN_F32, CTN_SHAPE(1, ROOM, 64)));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *all = ctn_put_rows(ctn_use(v), ctn_input(ctx, row, CTN_F32, CTN_SHAPE(1, 1, 64)),
                                   ctn_input(ctx, at, CTN_I64, CTN_SHAPE(1)));
    OK(ctn_assign(v, all));
    OK(ctn_scope_end(ctx));
    ctn_context_get_stats(ctx, &stats);
    assert_true(stats.arena_bytes < ROOM * 64);
    ctn_var_free(v);
    ctn_context_free(ctx);
}

/* Rows out of range and wrong shapes are errors. */
static void errors(void **state)
{
    (void)state;
    static float x[2 * 4 * 3], y[2 * 2 * 3];
    const int64_t at[2] = {0, 3};
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *tx = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 4, 3));
    ctn_tensor *ty = ctn_input(ctx, y, CTN_F32, CTN_SHAPE(2, 2, 3));
    ctn_tensor *ta = ctn_input(ctx, at, CTN_I64, CTN_SHAPE(2));
    assert_null(ctn_put_rows(ty, tx, ta)); /* more rows than there are */
    assert_int_equal(ctn_error_status(), CTN_ESHAPE);
    ctn_error_clear();
    assert_null(ctn_data(ctn_put_rows(tx, ty, ta))); /* rows 3 and 4 of 4 */
    assert_int_equal(ctn_error_status(), CTN_EARG);
    ctn_error_clear();
    (void)ctn_scope_end(ctx);
    ctn_error_clear();
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs),
        cmocka_unit_test(in_place),
        cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
