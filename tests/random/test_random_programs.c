/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs. A generator (seeded) writes small programs: ops, views of views, variables read and assigned,
 * reads in mid-step, inner scopes, keep, gradients as tensors, two optimizers, steps, retained values. Each runs
 * several times, with branches that depend on the run, in every mode of a context; all must observe the same, and
 * the same as a plain interpreter in double with its own reverse mode. A failing case names its seed:
 *   test_random_programs SEED runs that program alone and prints it.
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
#include <catena/optim.h>

#include <cmocka.h>

#include "random_program.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PROGRAMS = 60 };
#else
enum { PROGRAMS = 1000 };
#endif

/* ---- the program in Catena ----------------------------------------------------------------------- */

typedef struct {
    const char *name;
    ctn_context_opt opt;
    bool check, guard;
} config;

typedef struct {
    const program *g;
    bool eager;
    int run;
    record *log;
    ctn_context *ctx;
    ctn_var *var[VARS];
    ctn_optim *opt[POOLS];
    ctn_retained *kept[RETAINED];
    ctn_tensor *r[REGS];
    void *data[LEN];
} machine;

static const char *current = "";
static uint32_t current_seed;

#define OK(call)                                                                                \
    do {                                                                                        \
        if ((call) != CTN_OK)                                                                   \
            fail_msg("seed %u, %s, run %d, line %d: %s: %s", current_seed, current, m->run, at, \
                     #call, ctn_error_message());                                               \
    } while (0)

static size_t bytes_of(const shape *s)
{
    return (size_t)rp_count(s) * sizeof(float);
}

static ctn_tensor *input(machine *m, int at, const ins *i)
{
    int64_t n = rp_count(&i->sh), stride[MAXDIM], s = 1, idx[MAXDIM];
    float *x = m->data[at];
    if (!x) x = m->data[at] = malloc((size_t)n * sizeof(float) + 8);
    if (!i->flag[0]) {
        rp_fill(x, m->run, at, n);
        return ctn_input(m->ctx, x, CTN_F32, i->sh.nd, i->sh.d);
    }
    for (int k = 0; k < i->sh.nd; k++) {
        stride[k] = s;
        s *= i->sh.d[k];
    }
    for (int64_t e = 0; e < n; e++) {
        int64_t off = 0;
        rp_unravel(&i->sh, e, idx);
        for (int k = 0; k < i->sh.nd; k++) off += idx[k] * stride[k];
        x[off] = rp_value(m->run, at, e);
    }
    return ctn_input_strided(m->ctx, x, CTN_F32, i->sh.nd, i->sh.d, stride);
}

static ctn_tensor *gather(machine *m, int at, const ins *i, ctn_tensor *x)
{
    int64_t n = rp_count(&i->sh), *idx = m->data[at];
    if (!idx) idx = m->data[at] = malloc((size_t)n * sizeof *idx + 8);
    for (int64_t e = 0; e < n; e++) idx[e] = rp_gather_index(m->run, at, e, i->sh.d[i->axis]);
    return ctn_gather(x, ctn_input(m->ctx, idx, CTN_I64, i->sh.nd, i->sh.d), i->axis);
}

static void read_tensor(machine *m, int at, ctn_tensor *t)
{
    int64_t n = ctn_count(t);
    float *v = rp_note(m->log, at, m->run, n < 0 ? 0 : n, true);
    OK(ctn_read(t, v, (size_t)n * sizeof(float)));
}

static void assign_old(machine *m, int at, const ins *i)
{
    ctn_tensor *a = m->r[i->in[0]], *x = ctn_use(m->var[i->var]);
    if (m->eager) x = ctn_detach(x);
    OK(ctn_assign(m->var[i->var], a));
    if (i->flag[0]) { /* a value between two assigns */
        x = ctn_use(m->var[i->var]);
        if (m->eager) x = ctn_detach(x);
        OK(ctn_assign(m->var[i->var], ctn_neg(x)));
    }
    m->r[i->out] = ctn_detach(ctn_tanh(x));
    if (i->flag[1]) read_tensor(m, at, x);
}

static ctn_tensor *emit(machine *m, int at, const ins *i, op_id op)
{
    ctn_tensor *a = i->nin > 0 ? m->r[i->in[0]] : NULL, *b = i->nin > 1 ? m->r[i->in[1]] : NULL;
    const shape *s = &i->sh;
    switch (op) {
    case INPUT: return input(m, at, i);
    case NUMBER: return ctn_number(m->ctx, i->s);
    case FULL: return ctn_full(m->ctx, i->s * (1 + m->run), CTN_F32, s->nd, s->d);
    case USE: return ctn_use(m->var[i->var]);
    case DETACH: return ctn_detach(a);
    case WITH_GRAD: return ctn_with_grad(a);
    case RETAINED_VALUE: return ctn_retained_value(m->kept[i->var]);
    case RELU: return ctn_relu(a);
    case TANH: return ctn_tanh(a);
    case NEG: return ctn_neg(a);
    case SQUARE: return ctn_square(a);
    case ABS: return ctn_abs(a);
    case SIGMOID: return ctn_sigmoid(a);
    case SCALE: return ctn_scale(a, i->s * (1 + m->run));
    case SHIFT: return ctn_shift(a, i->s);
    case ADD: return ctn_add(a, b);
    case SUB: return ctn_sub(a, b);
    case MUL: return ctn_mul(a, b);
    case MAXIMUM: return ctn_maximum(a, b);
    case WHERE: return ctn_where(ctn_less(m->r[i->in[2]], ctn_number(m->ctx, 0)), a, b);
    case MATMUL: return ctn_matmul(a, b, i->flag[0], i->flag[1]);
    case LINEAR: return ctn_linear(a, b, NULL);
    case TRANSPOSE: return ctn_transpose(a, i->n, i->axes);
    case RESHAPE: return ctn_reshape(a, s->nd, s->d);
    case BROADCAST: return ctn_broadcast_to(a, s->nd, s->d);
    case SUM: return ctn_sum(a, i->n, i->axes, i->flag[0]);
    case MEAN: return ctn_mean(a, i->n, i->axes, i->flag[0]);
    case SLICE: return ctn_slice(a, i->axis, i->at, s->d[i->axis]);
    case CONCAT: return ctn_concat(2, (ctn_tensor *[]){a, b}, i->axis);
    case SPLIT: {
        ctn_tensor *o[CTN_MAX_OUT] = {NULL};
        int64_t n = ctn_dim(a, (int)i->axis), size[2] = {n / 2, n - n / 2};
        OK(ctn_split(a, i->axis, 2, size, o));
        m->r[i->out2] = o[1];
        return o[0];
    }
    case GATHER: return gather(m, at, i, a);
    case RANDOM: return ctn_random_uniform(m->ctx, -1, 1, CTN_F32, s->nd, s->d);
    case DROPOUT: return ctn_dropout(a, 0.3);
    case GRAD: {
        ctn_tensor *gx = NULL;
        OK(ctn_grad(a, 1, &b, &gx));
        return gx;
    }
    default: return NULL;
    }
}

static void swap(machine *m, int at, const ins *i)
{
    ctn_tensor *a = ctn_use(m->var[i->var]), *b = ctn_use(m->var[i->var2]);
    if (m->eager) {
        a = ctn_detach(a);
        b = ctn_detach(b);
    }
    OK(ctn_assign(m->var[i->var], b));
    OK(ctn_assign(m->var[i->var2], a));
}

static void effect(machine *m, int at, const ins *i)
{
    ctn_tensor *a = m->r[i->in[0]];
    const shape *vs = i->var >= 0 && i->var < VARS ? &m->g->var[i->var] : NULL;
    float *v;
    if (!(i->cond >> m->run & 1)) return;
    switch (i->op) {
    case ASSIGN: OK(ctn_assign(m->var[i->var], a)); break;
    case SWAP: swap(m, at, i); break;
    case ASSIGN_OLD: assign_old(m, at, i); break;
    case READ: read_tensor(m, at, a); break;
    case READ_VAR:
        v = rp_note(m->log, at, m->run, rp_count(vs), true);
        OK(ctn_var_get(m->var[i->var], v, bytes_of(vs)));
        break;
    case READ_GRAD:
        v = rp_note(m->log, at, m->run, rp_count(vs), true);
        OK(ctn_var_grad(m->var[i->var], v, bytes_of(vs)));
        break;
    case SET_VAR:
        v = malloc(bytes_of(vs) + 8);
        rp_fill(v, m->run, at, rp_count(vs));
        OK(ctn_var_set(m->var[i->var], v, bytes_of(vs)));
        free(v);
        break;
    case FLUSH: OK(ctn_flush(m->ctx)); break;
    case BEGIN: OK(ctn_scope_begin(m->ctx)); break;
    case RETURN: OK(ctn_scope_return(m->ctx, a) == a ? CTN_OK : CTN_ESTATE); break;
    case KEEP: OK(ctn_keep(a) ? CTN_OK : CTN_ESTATE); break;
    case KEEP_GRAPH: OK(ctn_keep_graph(a) ? CTN_OK : CTN_ESTATE); break;
    case BACKWARD: OK(ctn_backward(m->opt[i->pool], a)); break;
    case STEP: OK(ctn_optim_step(m->opt[i->pool])); break;
    case RETAIN: OK(ctn_retain(&m->kept[i->var], a)); break;
    case GRAD_OFF: ctn_set_grad(m->ctx, 0); break;
    case GRAD_ON: ctn_set_grad(m->ctx, 1); break;
    case NEW_SCOPE:
        OK(ctn_scope_end(m->ctx));
        OK(ctn_scope_begin(m->ctx));
        break;
    default: fail_msg("instruction %d", (int)i->op);
    }
}

static void run_once(machine *m)
{
    const program *g = m->g;
    int at = -1;
    for (int v = 0; v < VARS; v++) {
        float *x = malloc(bytes_of(&g->var[v]) + 8);
        rp_fill(x, m->run, 1000 + v, rp_count(&g->var[v]));
        OK(ctn_var_set(m->var[v], x, bytes_of(&g->var[v])));
        free(x);
    }
    OK(ctn_scope_begin(m->ctx));
    for (at = 0; at < g->n; at++) {
        const ins *i = &g->p[at];
        if (i->op >= ASSIGN) {
            effect(m, at, i);
            continue;
        }
        m->r[i->out] = emit(m, at, i, i->cond >> m->run & 1 ? i->op : i->other);
        if (!m->r[i->out])
            fail_msg("seed %u, %s, run %d, line %d: %s", current_seed, current, m->run, at,
                     ctn_error_message());
    }
    OK(ctn_scope_end(m->ctx));
    for (int v = 0; v < VARS; v++) {
        float *x = rp_note(m->log, g->n + v, m->run, rp_count(&g->var[v]), true);
        OK(ctn_var_get(m->var[v], x, bytes_of(&g->var[v])));
    }
}

static void run_catena(const program *g, const config *c, record *log)
{
    machine *m = calloc(1, sizeof *m);
    ctn_context_opt opt = c->opt;
    int at = -1;
    m->g = g;
    m->log = log;
    m->eager = opt.mode == CTN_MODE_EAGER;
    opt.struct_size = sizeof opt;
    opt.seed = 3;
    current = c->name;
    current_seed = g->seed;
    setenv("CATENA_CHECK", c->check ? "1" : "0", 1);
    setenv("CATENA_GUARD", c->guard ? "1" : "0", 1);
    OK(ctn_context_new(&m->ctx, &opt));
    for (int v = 0; v < VARS; v++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", v);
        OK(ctn_var_new(&m->var[v], m->ctx, name, v < PARAMS ? CTN_PARAM : CTN_STATE, CTN_F32,
                       g->var[v].nd, g->var[v].d));
    }
    OK(ctn_sgd_new(&m->opt[0], (ctn_vars){2, m->var, NULL}, CTN_OPT(ctn_sgd_opt, .lr = rp_rate)));
    OK(ctn_sgd_new(&m->opt[1], (ctn_vars){1, m->var + 2, NULL},
                   CTN_OPT(ctn_sgd_opt, .lr = rp_rate)));
    for (m->run = 0; m->run < RUNS; m->run++) run_once(m);
    for (int p = 0; p < POOLS; p++) ctn_optim_free(m->opt[p]);
    for (int v = 0; v < VARS; v++) ctn_var_free(m->var[v]);
    for (int k = 0; k < RETAINED; k++) ctn_retained_free(m->kept[k]);
    ctn_context_free(m->ctx);
    for (int k = 0; k < LEN; k++) free(m->data[k]);
    free(m);
}

/* ---- comparing ---------------------------------------------------------------------------------- */

static long compared, unknown;

static void compare(const program *g, const record *a, const record *b, double tol,
                    const char *what)
{
    if (a->n != b->n) fail_msg("seed %u, %s: %d and %d observations", g->seed, what, a->n, b->n);
    for (int k = 0; k < a->n; k++) {
        const observation *x = &a->s[k], *y = &b->s[k];
        if (x->at != y->at || x->n != y->n) fail_msg("seed %u, %s: out of step", g->seed, what);
        if (!x->known || !y->known) {
            unknown++;
            continue;
        }
        compared++;
        double size = 1;
        for (int64_t e = 0; e < x->n; e++) size = fmax(size, fabs((double)x->v[e]));
        for (int64_t e = 0; e < x->n; e++) {
            double d = fabs((double)x->v[e] - (double)y->v[e]);
            bool nan = isnan(x->v[e]) && isnan(y->v[e]);
            if (!nan && !(d <= tol * size))
                fail_msg("seed %u, %s: run %d, line %d (%s), element %lld: %.9g and %.9g", g->seed,
                         what, x->run, x->at,
                         x->at < g->n ? rp_op_name[g->p[x->at].op] : "variable", (long long)e,
                         (double)x->v[e], (double)y->v[e]);
        }
    }
}

static void one_program(uint32_t seed, bool print)
{
    static const config configs[] = {
        {"eager", {.mode = CTN_MODE_EAGER, .threads = 1}, false, false},
        {"not fused", {.mode = CTN_MODE_PLANNED, .threads = 1, .no_fuse = 1}, true, false},
        {"fused", {.mode = CTN_MODE_PLANNED, .threads = 1}, false, false},
        {"fused, guarded, 2 threads", {.mode = CTN_MODE_PLANNED, .threads = 2}, true, true},
        {"two plans", {.mode = CTN_MODE_PLANNED, .threads = 1, .max_plans = 2}, false, true},
    };
    program *g = malloc(sizeof *g);
    record expect = {0}, eager = {0};
    rp_generate(g, seed);
    if (print) rp_print_program(g);
    rp_run_reference(g, &expect);
    for (size_t c = 0; c < sizeof configs / sizeof *configs; c++) {
        record log = {0};
        char what[64];
        run_catena(g, &configs[c], &log);
        snprintf(what, sizeof what, "%s against the reference", configs[c].name);
        compare(g, &expect, &log, 2e-4, what);
        if (c == 0) {
            eager = log;
            continue;
        }
        snprintf(what, sizeof what, "%s against eager", configs[c].name);
        compare(g, &eager, &log, g->plain ? 0 : 1e-5, what);
        rp_forget(&log);
    }
    rp_forget(&expect);
    rp_forget(&eager);
    free(g);
}

static void all_modes_agree(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= PROGRAMS; seed++) one_program(seed, false);
    print_message("%d programs, %ld values compared, %ld beyond the reference\n", PROGRAMS,
                  compared, unknown);
    assert_true(compared > 20 * PROGRAMS);
}

static uint32_t only;

static void only_one(void **state)
{
    (void)state;
    one_program(only, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_modes_agree)};
    const struct CMUnitTest one[] = {cmocka_unit_test(only_one)};
    if (argc < 2) return cmocka_run_group_tests(tests, NULL, NULL);
    only = (uint32_t)strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(one, NULL, NULL);
}
