/* SPDX-License-Identifier: Apache-2.0
 *
 * Recompute. Blocks with batch normalisation and dropout give the same bits with and without
 * marks, however the marks are nested and whatever is read in between. Running statistics are
 * updated once. The arena shrinks, and is exactly as large as the memory that a step touches.
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

#include <catena/nn.h>
#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "plan/plan.h"
#include "support/machine.h"
#include "support/ok.h"

enum { BLOCKS = 4, STEPS = 2, C = 16, SIDE = 12, N = 4, MANY = 64, WEIGHTS = C * C * 9 };

typedef enum { NONE, EACH, NESTED, ALL, PAIRS, INNER } marks;

typedef struct {
    ctn_precision precision;
    bool read, eager, no_fuse;
    marks m;
} setting;

typedef struct {
    float loss[STEPS], grad[BLOCKS][WEIGHTS], shift[BLOCKS][C], weight[BLOCKS][WEIGHTS];
    float mean[BLOCKS][C], var[BLOCKS][C], seen[STEPS];
    int64_t arena;
    uint64_t misses;
    char plan[64];
} outcome;

typedef struct {
    ctn_context *c;
    ctn_var *w[BLOCKS], *scale[BLOCKS], *shift[BLOCKS], *mean[BLOCKS], *var[BLOCKS];
    ctn_optim *o;
} model;

static float images[MANY * C * SIDE * SIDE];
static int64_t batch = N;

static float noise(int i)
{
    return (float)((uint32_t)i * 2654435761u >> 8) / (float)(1 << 23) - 1;
}

static ctn_var *variable(ctn_context *c, ctn_var_kind kind, int n, float base, float spread,
                         int seed)
{
    static float v[WEIGHTS];
    ctn_var *r;
    for (int i = 0; i < n; i++) v[i] = base + spread * noise(seed * 7919 + i);
    if (n == WEIGHTS) OK(ctn_var_new(&r, c, "w", kind, CTN_F32, CTN_SHAPE(C, C, 3, 3)));
    else OK(ctn_var_new(&r, c, "v", kind, CTN_F32, CTN_SHAPE(n)));
    OK(ctn_var_set(r, v, (size_t)n * sizeof *v));
    return r;
}

static void model_new(model *m, const setting *s)
{
    ctn_var *all[3 * BLOCKS];
    OK(ctn_context_new(&m->c, CTN_OPT(ctn_context_opt, .threads = 2, .seed = 3,
                                      .precision = s->precision, .no_fuse = s->no_fuse,
                                      .mode = s->eager ? CTN_MODE_EAGER : CTN_MODE_PLANNED)));
    for (int i = 0; i < BLOCKS; i++) {
        all[3 * i] = m->w[i] = variable(m->c, CTN_PARAM, WEIGHTS, 0, 0.15f, i);
        all[3 * i + 1] = m->scale[i] = variable(m->c, CTN_PARAM, C, 1, 0.2f, i);
        all[3 * i + 2] = m->shift[i] = variable(m->c, CTN_PARAM, C, 0, 0.2f, i + 100);
        m->mean[i] = variable(m->c, CTN_STATE, C, 0, 0.1f, i + 200);
        m->var[i] = variable(m->c, CTN_STATE, C, 1, 0.1f, i + 300);
    }
    OK(ctn_sgd_new(&m->o, (ctn_vars){3 * BLOCKS, all, NULL},
                   CTN_OPT(ctn_sgd_opt, .lr = 0.05, .momentum = 0.9)));
    for (int i = 0; i < MANY * C * SIDE * SIDE; i++) images[i] = noise(i);
}

static void model_free(model *m)
{
    ctn_optim_free(m->o);
    for (int i = 0; i < BLOCKS; i++) {
        ctn_var *v[] = {m->w[i], m->scale[i], m->shift[i], m->mean[i], m->var[i]};
        for (int k = 0; k < 5; k++) ctn_var_free(v[k]);
    }
    ctn_context_free(m->c);
}

/* A residual in every second block, dropout in all. */
static ctn_tensor *block(const model *m, int i, ctn_tensor *x, marks how)
{
    if (how == INNER) OK(ctn_recompute_begin(m->c));
    ctn_tensor *h = ctn_conv(x, ctn_use(m->w[i]), NULL, CTN_OPT(ctn_conv_opt, .pad = {1}));
    h = ctn_batch_norm(h, ctn_use(m->scale[i]), ctn_use(m->shift[i]), m->mean[i], m->var[i], NULL);
    if (how == INNER) OK(ctn_recompute_end(m->c)); /* activation and dropout are outside */
    if (i % 2) h = ctn_add(h, x);
    return ctn_dropout(ctn_relu(h), 0.25);
}

static ctn_tensor *forward(const model *m, const setting *s, float *seen)
{
    ctn_tensor *h = ctn_input(m->c, images, CTN_F32, CTN_SHAPE(batch, C, SIDE, SIDE));
    if (s->m == ALL) OK(ctn_recompute_begin(m->c));
    for (int i = 0; i < BLOCKS; i++) {
        OK(ctn_scope_begin(m->c));
        bool marked = s->m == EACH || s->m == NESTED || (s->m == PAIRS && i % 2 == 0);
        if (marked) OK(ctn_recompute_begin(m->c));
        if (s->m == NESTED) OK(ctn_recompute_begin(m->c));
        h = block(m, i, h, s->m);
        if (s->m == NESTED) OK(ctn_recompute_end(m->c));
        if (marked) OK(ctn_recompute_end(m->c));
        h = ctn_scope_return(m->c, h);
        if (s->read && i == 2) *seen = (float)ctn_item(ctn_mean(h, CTN_ALL_AXES, 0));
    }
    h = ctn_global_avg_pool(h);
    if (s->m == ALL) OK(ctn_recompute_end(m->c));
    return ctn_mean(ctn_square(ctn_shift(h, -0.3)), CTN_ALL_AXES, 0);
}

static void get(ctn_var *v, float *to)
{
    OK(ctn_var_get(v, to,
                   (size_t)ctn_var_desc(v)->dim[0] * (ctn_var_desc(v)->ndim > 1 ? C * 9 : 1) *
                       sizeof *to));
}

static void train(const setting *s, outcome *out)
{
    model m;
    char text[256];
    ctn_plan_stats stats;
    memset(out, 0, sizeof *out);
    model_new(&m, s);
    for (int step = 0; step < STEPS; step++) {
        OK(ctn_scope_begin(m.c));
        OK(ctn_scope_begin(m.c)); /* a read shows what is visible: only the loss */
        ctn_tensor *loss = ctn_scope_return(m.c, forward(&m, s, &out->seen[step]));
        OK(ctn_backward(m.o, loss));
        OK(ctn_optim_step(m.o));
        out->loss[step] = (float)ctn_item(loss);
        OK(ctn_scope_end(m.c));
    }
    for (int i = 0; i < BLOCKS; i++) {
        memcpy(out->grad[i], m.w[i]->grad, sizeof out->grad[i]);
        memcpy(out->shift[i], m.shift[i]->grad, sizeof out->shift[i]);
        get(m.w[i], out->weight[i]);
        get(m.mean[i], out->mean[i]);
        get(m.var[i], out->var[i]);
    }
    ctn_context_get_stats(m.c, &stats);
    out->arena = stats.arena_bytes;
    out->misses = stats.misses;
    assert_true(ctn_context_plan_text(m.c, text, sizeof text) > 0);
    snprintf(out->plan, sizeof out->plan, "%.37s", text); /* "plan " and the hash */
    model_free(&m);
}

/* Compares bits, not values: -0 and 0 differ. */
static bool differ(const void *a, const void *b, size_t n)
{
    return memcmp(a, b, n) != 0;
}

static void assert_same(const char *what, const outcome *a, const outcome *b)
{
    if (differ(a->loss, b->loss, sizeof a->loss)) fail_msg("%s: losses differ", what);
    if (differ(a->seen, b->seen, sizeof a->seen)) fail_msg("%s: reads differ", what);
    if (differ(a->mean, b->mean, sizeof a->mean) || differ(a->var, b->var, sizeof a->var))
        fail_msg("%s: running statistics differ", what);
    if (differ(a->grad, b->grad, sizeof a->grad) || differ(a->shift, b->shift, sizeof a->shift))
        fail_msg("%s: gradients differ", what);
    if (differ(a->weight, b->weight, sizeof a->weight)) fail_msg("%s: weights differ", what);
}

static void same_bits(void **state)
{
    (void)state;
    static outcome plain, marked;
    static const char *const name[] = {"none", "each", "nested", "all", "pairs", "inner"};
    for (int k = 0; k < 12; k++) { /* precision, fusion, a read in mid-step */
        setting s = {.precision = k / 4 == 1 ? CTN_PRECISION_BF16 : CTN_PRECISION_F32,
                     .no_fuse = k % 4 / 2,
                     .read = k % 2,
                     .eager = k / 4 == 2};
        if (s.eager && s.no_fuse) continue;
        if (s.precision == CTN_PRECISION_BF16 && !test_has_bf16()) continue;
        train(&s, &plain);
        for (s.m = EACH; s.m <= (s.eager ? EACH : INNER); s.m++) {
            char what[128];
            snprintf(what, sizeof what, "%s %s%s%s%s", name[s.m], s.precision ? "bf16" : "f32",
                     s.no_fuse ? " unfused" : "", s.read ? " read" : "", s.eager ? " eager" : "");
            train(&s, &marked);
            assert_same(what, &marked, &plain);
            if (s.eager) continue;
            assert_int_equal(marked.misses, plain.misses);
            assert_string_not_equal(marked.plan, plain.plan);
        }
    }
}

static void less_memory(void **state)
{
    (void)state;
    /* Elsewhere, convolutions by matrix products need scratch memory, which marks do not save. */
#if defined(__x86_64__)
    const int64_t percent = 80;
#else
    const int64_t percent = 90;
#endif
    static outcome plain, marked;
    train(&(setting){.m = NONE}, &plain);
    train(&(setting){.m = EACH}, &marked);
    if (marked.arena >= plain.arena * percent / 100)
        fail_msg("the arena has %lld bytes with marks, %lld without", (long long)marked.arena,
                 (long long)plain.arena);
    train(&(setting){.m = PAIRS}, &marked);
    assert_true(marked.arena < plain.arena);
}

/* How many nodes of the last plan are copies. */
static int copies(const ctn_context *c)
{
    const ctn__plan *p = ((const ctn__planner *)c->planner)->last;
    int n = 0;
    for (size_t i = 0; i < p->nodes.n; i++) n += p->nodes.at[i].again;
    return n;
}

/* a = tanh(w), b = exp(a), c = 2 b, and the loss is the sum of c c. The gradients of tanh and exp
 * read their results, and that of the product reads c. What is read after the marked block is
 * kept. */
static void what_is_copied(void **state)
{
    (void)state;
    enum { TANH_EXP_SCALE, ALL_OPS, TWO_BLOCKS, READ_A, ONLY_SCALE, CASES };
    static const int want[CASES] = {
        [TANH_EXP_SCALE] = 2, /* tanh and exp: c is kept */
        [ALL_OPS] = 3,        /* and the scale: only the loss is kept */
        [TWO_BLOCKS] = 1,     /* tanh | exp, scale: a and c are kept */
        [READ_A] = 1,         /* exp: a and c are kept */
        [ONLY_SCALE] = 0,
    };
    for (int k = 0; k < CASES; k++) {
        const float values[3] = {0.5f, -1, 2};
        float grad[3];
        ctn_context *c = NULL;
        ctn_var *w = NULL;
        ctn_optim *o = NULL;
        OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = 1, .no_fuse = 1)));
        OK(ctn_var_new(&w, c, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(3)));
        OK(ctn_var_set(w, values, sizeof values));
        OK(ctn_sgd_new(&o, (ctn_vars){1, &w, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 1e-30)));
        OK(ctn_scope_begin(c));
        if (k != ONLY_SCALE) OK(ctn_recompute_begin(c));
        ctn_tensor *a = ctn_tanh(ctn_use(w));
        if (k == TWO_BLOCKS) {
            OK(ctn_recompute_end(c));
            OK(ctn_recompute_begin(c));
        }
        ctn_tensor *b = ctn_exp(a);
        if (k == ONLY_SCALE) OK(ctn_recompute_begin(c));
        ctn_tensor *y = ctn_scale(b, 2);
        if (k != ALL_OPS) OK(ctn_recompute_end(c));
        ctn_tensor *loss = ctn_sum(ctn_mul(y, y), CTN_ALL_AXES, 0);
        if (k == READ_A) loss = ctn_add(loss, ctn_sum(a, CTN_ALL_AXES, 0));
        if (k == ALL_OPS) OK(ctn_recompute_end(c));
        OK(ctn_backward(o, loss));
        OK(ctn_optim_step(o));
        if (copies(c) != want[k])
            fail_msg("case %d: %d copies, expected %d", k, copies(c), want[k]);
        OK(ctn_scope_end(c));
        memcpy(grad, w->grad, sizeof grad);
        for (int i = 0; i < 3; i++) { /* of 4 exp(2 tanh(w)) */
            const double t = tanh((double)values[i]), d = 1 - t * t;
            const double expected = 8 * exp(2 * t) * d + (k == READ_A ? d : 0);
            assert_true(fabs((double)grad[i] - expected) < 2e-5);
        }
        ctn_optim_free(o);
        ctn_var_free(w);
        ctn_context_free(c);
    }
}

static ctn_tensor *one_block(void *self, ctn_module *module, ctn_tensor *x)
{
    (void)module;
    return block(self, 0, x, NONE);
}

/* The mark of a module applies to its calls and can be removed again. A list passes it on. */
static void marked_module(void **state)
{
    (void)state;
    float grad[3][WEIGHTS];
    char text[3][256];
    model m;
    model_new(&m, &(setting){.m = NONE});
    ctn_module *module, *list;
    OK(ctn_module_new(&module, m.c, one_block, &m, NULL));
    OK(ctn_module_list_new(&list, m.c, 1, &module));
    ctn_context_state start;
    ctn_context_get_state(m.c, &start);
    for (int k = 0; k < 3; k++) {
        static float w[WEIGHTS];
        if (k == 0) get(m.w[0], w);
        OK(ctn_var_set(m.w[0], w, sizeof w));
        OK(ctn_context_set_state(m.c, &start)); /* the same dropout */
        OK(ctn_module_set_recompute(list, k == 1));
        OK(ctn_scope_begin(m.c));
        ctn_tensor *x = ctn_input(m.c, images, CTN_F32, CTN_SHAPE(N, C, SIDE, SIDE));
        ctn_tensor *y = ctn_square(ctn_call(module, x));
        ctn_optim_set_lr(m.o, 1e-30);
        OK(ctn_backward(m.o, ctn_mean(y, CTN_ALL_AXES, 0)));
        OK(ctn_optim_step(m.o));
        OK(ctn_scope_end(m.c));
        memcpy(grad[k], m.w[0]->grad, sizeof grad[k]);
        assert_true(ctn_context_plan_text(m.c, text[k], 38) > 0);
    }
    assert_memory_equal(grad[0], grad[1], sizeof grad[0]);
    assert_memory_equal(grad[0], grad[2], sizeof grad[0]);
    assert_string_not_equal(text[0], text[1]);
    assert_string_equal(text[0], text[2]);
    ctn_module_free(list);
    model_free(&m);
}

static void wrong_marks(void **state)
{
    (void)state;
    model m;
    model_new(&m, &(setting){.m = NONE});
    assert_int_equal(ctn_recompute_begin(m.c), CTN_ESTATE); /* no scope */
    ctn_error_clear();
    OK(ctn_scope_begin(m.c));
    assert_int_equal(ctn_recompute_end(m.c), CTN_ESTATE);
    assert_non_null(strstr(ctn_error_message(), "ctn_recompute_begin"));
    ctn_error_clear();
    OK(ctn_recompute_begin(m.c));
    OK(ctn_recompute_end(m.c));
    assert_int_equal(ctn_recompute_end(m.c), CTN_ESTATE);
    ctn_error_clear();
    OK(ctn_recompute_begin(m.c)); /* never closed: ends with the scope */
    OK(ctn_scope_end(m.c));
    OK(ctn_scope_begin(m.c));
    assert_int_equal(ctn_recompute_end(m.c), CTN_ESTATE);
    ctn_error_clear();
    OK(ctn_scope_begin(m.c)); /* must be closed in the scope where it was opened */
    OK(ctn_recompute_begin(m.c));
    ctn_status st = ctn_scope_end(m.c);
    if (st == CTN_OK) st = ctn_recompute_end(m.c);
    assert_int_equal(st, CTN_ESTATE);
    ctn_error_clear();
    ctn_scope_end(m.c);
    ctn_error_clear();
    model_free(&m);
}

/* ---- the planned peak is the real one -------------------------------------------------------- */

enum { LARGE = 64, PATTERN = 0xa7, ROOM = 4096 };
static struct {
    unsigned char *p;
    size_t bytes;
} large[LARGE];
static int nlarge;

static void *pattern_alloc(void *user, size_t bytes, size_t align)
{
    (void)user;
    void *p = NULL;
    if (posix_memalign(&p, align < 64 ? 64 : align, bytes + ROOM) != 0) return NULL;
    memset(p, PATTERN, bytes + ROOM);
    if (bytes > 65536 && nlarge < LARGE) {
        large[nlarge].p = p;
        large[nlarge++].bytes = bytes;
    }
    return p;
}

static void pattern_free(void *user, void *p)
{
    (void)user;
    for (int i = 0; i < nlarge; i++)
        if (large[i].p == p) large[i].p = NULL;
    free(p);
}

static void arena_is_what_is_used(void **state)
{
    (void)state;
    OK(ctn_set_allocator(&(ctn_allocator){pattern_alloc, pattern_free, NULL}));
    batch = MANY; /* buffers of elementwise loops are sized for large tensors */
    for (int k = 0; k < (test_has_bf16() ? 4 : 2); k++) {
        setting s = {.precision = k / 2 ? CTN_PRECISION_BF16 : CTN_PRECISION_F32,
                     .m = k % 2 ? EACH : NONE};
        model m;
        float seen;
        nlarge = 0;
        model_new(&m, &s);
        OK(ctn_scope_begin(m.c));
        OK(ctn_backward(m.o, forward(&m, &s, &seen)));
        OK(ctn_optim_step(m.o));
        OK(ctn_scope_end(m.c));
        ctn_plan_stats stats;
        ctn_context_get_stats(m.c, &stats);
        int found = 0;
        for (int i = 0; i < nlarge; i++) {
            if (!large[i].p || large[i].bytes != (size_t)stats.arena_bytes) continue;
            size_t top = large[i].bytes + ROOM;
            while (top > 0 && large[i].p[top - 1] == PATTERN) top--;
            found++;
            if (top > large[i].bytes || top < large[i].bytes / 100 * 99)
                fail_msg("setting %d: only %zu bytes of an arena of %zu are used", k, top,
                         large[i].bytes);
        }
        assert_int_equal(found, 1);
        model_free(&m);
    }
    batch = N;
    OK(ctn_set_allocator(NULL));
}

int main(void)
{
    setenv("CATENA_TUNE", "0", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(less_memory),
        cmocka_unit_test(what_is_copied),
        cmocka_unit_test(marked_module),
        cmocka_unit_test(arena_is_what_is_used),
        cmocka_unit_test(wrong_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
