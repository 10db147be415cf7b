/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a random program in Catena: see random_machine.h.
 */
#include "random_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/ops.h>
#include <catena/optim.h>

static _Noreturn void failed(machine *m, int at, const char *call)
{
    snprintf(m->why, sizeof m->why, "seed %u, %s, run %d, line %d: %s: %s", m->g->seed, m->name,
             m->run, at, call, ctn_error_message());
    longjmp(m->out, 1);
}

#define MUST(call)                                  \
    do {                                            \
        if ((call) != CTN_OK) failed(m, at, #call); \
    } while (0)

/* ---- several ranks --------------------------------------------------------------------------- */

static int rank_of(const machine *m)
{
    return m->twisted ? ctn_comm_rank(m->comm) : 0;
}

/* The run that data and branches depend on. In a twisted program it is different on each rank. */
static int data_run(const machine *m)
{
    return m->run + RUNS * rank_of(m);
}

static int branch(const machine *m)
{
    return (m->run + rank_of(m)) % RUNS;
}

static ctn_tensor *averaged(const machine *m, ctn_tensor *x)
{
    if (!m->twisted) return x;
    return ctn_scale(ctn_dist_allreduce(m->comm, x), 1.0 / ctn_comm_size(m->comm));
}

static void backward(machine *m, int at, const ins *i, ctn_tensor *loss)
{
    if (rank_of(m) == 1 && (at + m->run) % 5 == 0) {
        MUST(ctn_keep(loss) ? CTN_OK : CTN_ESTATE);
        return;
    }
    MUST(ctn_backward(m->optims[i->pool], loss));
    m->contributed[i->pool]++;
}

static void step(machine *m, int at, const ins *i)
{
    ctn_optim *o = m->optims[i->pool];
    if (m->contributed[i->pool] > 0) MUST(ctn_optim_step(o));
    else MUST(ctn_dist_step_empty(o));
    m->contributed[i->pool] = 0;
}

typedef struct {
    machine *m;
    int at;
} visitor;

static size_t bytes_of(const machine *m, const shape *s)
{
    return (size_t)rp_count(s) * ctn_dtype_size(m->type);
}

static double get(const machine *m, const void *x, int64_t i)
{
    return m->type == CTN_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void put(const machine *m, void *x, int64_t i, double v)
{
    if (m->type == CTN_F64) ((double *)x)[i] = v;
    else ((float *)x)[i] = (float)v;
}

static void note(machine *m, int at, const shape *s, const void *x)
{
    double *v = rp_note(&m->log, at, m->run, rp_count(s), true);
    for (int64_t i = 0; i < rp_count(s); i++) v[i] = get(m, x, i);
}

/* The data of input or variable k. */
static void *filled(const machine *m, int run, int k, const shape *s)
{
    void *x = malloc(bytes_of(m, s) + 8);
    for (int64_t i = 0; i < rp_count(s); i++) put(m, x, i, rp_value(m->g, run, k, i));
    return x;
}

static ctn_status note_state(void *user, const char *name, ctn_dtype type, int ndim,
                             const int64_t *dims, void *data)
{
    const visitor *v = user;
    shape s = {.nd = ndim < MAXDIM ? ndim : MAXDIM};
    (void)name;
    if (type != v->m->type) return CTN_OK;
    for (int i = 0; i < s.nd; i++) s.d[i] = dims[i];
    note(v->m, v->at, &s, data);
    return CTN_OK;
}

/* Saves between scopes, on all ranks, because states of sharded optimizers are gathered. */
static void save(machine *m, int at)
{
    visitor v = {m, at};
    for (int p = 0; p < POOLS && m->comm; p++) {
        if ((at + m->run) % 7 == 0) MUST(ctn_dist_values(m->optims[p]));
        if ((at + m->run) % 3 == 0) MUST(ctn_optim_visit(m->optims[p], note_state, &v));
    }
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* Column-major, or with steps of 2, or both. */
static ctn_tensor *input(machine *m, int at, const ins *i)
{
    int64_t n = rp_count(&i->sh), stride[MAXDIM], s = i->flag[1] ? 2 : 1, idx[MAXDIM];
    void *x = m->data[at];
    if (!x) x = m->data[at] = calloc(2, bytes_of(m, &i->sh) + 8);
    for (int j = 0; j < i->sh.nd; j++) {
        const int k = i->flag[0] ? j : i->sh.nd - 1 - j;
        stride[k] = s;
        s *= i->sh.d[k];
    }
    for (int64_t e = 0; e < n; e++) {
        int64_t off = 0;
        rp_unravel(&i->sh, e, idx);
        for (int k = 0; k < i->sh.nd; k++) off += idx[k] * stride[k];
        put(m, x, off, rp_value(m->g, data_run(m), at, e));
    }
    if (!i->flag[0] && !i->flag[1]) return ctn_input(m->ctx, x, m->type, i->sh.nd, i->sh.d);
    return ctn_input_strided(m->ctx, x, m->type, i->sh.nd, i->sh.d, stride);
}

static ctn_tensor *gather(machine *m, int at, const ins *i, ctn_tensor *x)
{
    int64_t n = rp_count(&i->sh), *idx = m->data[at];
    if (!idx) idx = m->data[at] = malloc((size_t)n * sizeof *idx + 8);
    for (int64_t e = 0; e < n; e++) idx[e] = rp_gather_index(data_run(m), at, e, i->sh.d[i->axis]);
    return ctn_gather(x, ctn_input(m->ctx, idx, CTN_I64, i->sh.nd, i->sh.d), i->axis);
}

static void read_tensor(machine *m, int at, ctn_tensor *t)
{
    const shape s = {1, {ctn_count(t)}};
    void *x = malloc(bytes_of(m, &s) + 8);
    const ctn_status st = ctn_read(t, x, bytes_of(m, &s));
    if (st == CTN_OK) note(m, at, &s, x);
    free(x);
    MUST(st);
}

static void assign_old(machine *m, int at, const ins *i)
{
    const bool eager = m->opt.mode == CTN_MODE_EAGER;
    ctn_tensor *a = averaged(m, m->r[i->in[0]]), *x = ctn_use(m->var[i->var]);
    if (eager) x = ctn_detach(x);
    MUST(ctn_assign(m->var[i->var], a));
    if (i->flag[0]) { /* a value between two assigns */
        x = ctn_use(m->var[i->var]);
        if (eager) x = ctn_detach(x);
        MUST(ctn_assign(m->var[i->var], ctn_neg(x)));
    }
    m->r[i->out] = ctn_detach(ctn_tanh(x));
    if (i->flag[1]) read_tensor(m, at, x);
}

static ctn_tensor *number(const machine *m, double x)
{
    return m->type == CTN_F32 ? ctn_number(m->ctx, x)
                              : ctn_full(m->ctx, x, m->type, CTN_SCALAR_SHAPE);
}

static ctn_tensor *emit(machine *m, int at, const ins *i, op_id op)
{
    ctn_tensor *a = i->nin > 0 ? m->r[i->in[0]] : NULL, *b = i->nin > 1 ? m->r[i->in[1]] : NULL;
    const shape *s = &i->sh;
    switch (op) {
    case INPUT: return input(m, at, i);
    case NUMBER: return number(m, i->s);
    case FULL: return ctn_full(m->ctx, i->s * (1 + m->run), m->type, s->nd, s->d);
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
    case WHERE: return ctn_where(ctn_less(m->r[i->in[2]], number(m, 0)), a, b);
    case MATMUL: return ctn_matmul(a, b, i->flag[0], i->flag[1]);
    case LINEAR: return ctn_linear(a, b, NULL);
    case TRANSPOSE: return ctn_transpose(a, i->n, i->axes);
    case RESHAPE: return ctn_reshape(a, s->nd, s->d);
    case BROADCAST: return ctn_broadcast_to(a, s->nd, s->d);
    case SUM: return ctn_sum(a, i->n, i->axes, i->flag[0]);
    case MEAN: return ctn_mean(a, i->n, i->axes, i->flag[0]);
    case SKIP: return ctn_slice_step(a, i->axis, i->at, s->d[i->axis], 2);
    case SLICE: return ctn_slice(a, i->axis, i->at, s->d[i->axis]);
    case CONCAT: return ctn_concat(2, (ctn_tensor *[]){a, b}, i->axis);
    case SPLIT: {
        ctn_tensor *o[CTN_MAX_OUT] = {NULL};
        int64_t n = ctn_dim(a, (int)i->axis), size[2] = {n / 2, n - n / 2};
        MUST(ctn_split(a, i->axis, 2, size, o));
        m->r[i->out2] = o[1];
        return o[0];
    }
    case GATHER: return gather(m, at, i, a);
    case RANDOM: return ctn_random_uniform(m->ctx, -1, 1, m->type, s->nd, s->d);
    case DROPOUT: return ctn_dropout(a, 0.3);
    case GRAD: {
        ctn_tensor *gx = NULL;
        MUST(ctn_grad(a, 1, &b, &gx));
        return gx;
    }
    default: return NULL;
    }
}

static void swap(machine *m, int at, const ins *i)
{
    ctn_tensor *a = ctn_use(m->var[i->var]), *b = ctn_use(m->var[i->var2]);
    if (m->opt.mode == CTN_MODE_EAGER) {
        a = ctn_detach(a);
        b = ctn_detach(b);
    }
    MUST(ctn_assign(m->var[i->var], b));
    MUST(ctn_assign(m->var[i->var2], a));
}

static void read_var(machine *m, int at, int var,
                     ctn_status (*read)(ctn_var *v, void *dst, size_t bytes))
{
    const shape *s = &m->g->var[var];
    void *x = malloc(bytes_of(m, s) + 8);
    const ctn_status st = read(m->var[var], x, bytes_of(m, s));
    if (st == CTN_OK) note(m, at, s, x);
    free(x);
    MUST(st);
}

/* data: the number of its data */
static void set_var(machine *m, int at, int var, int data)
{
    const shape *s = &m->g->var[var];
    void *x = filled(m, m->run, data, s);
    const ctn_status st = ctn_var_set(m->var[var], x, bytes_of(m, s));
    free(x);
    MUST(st);
}

static void effect(machine *m, int at, const ins *i)
{
    ctn_tensor *a = m->r[i->in[0]];
    if (!(i->cond >> branch(m) & 1)) return;
    switch (i->op) {
    case ASSIGN: MUST(ctn_assign(m->var[i->var], averaged(m, a))); break;
    case SWAP: swap(m, at, i); break;
    case ASSIGN_OLD: assign_old(m, at, i); break;
    case READ: read_tensor(m, at, a); break;
    case READ_VAR: read_var(m, at, i->var, ctn_var_get); break;
    case READ_GRAD:
        if (m->contributed[rp_pool_of(i->var)] == 0) break;
        read_var(m, at, i->var, ctn_var_grad);
        break;
    case SET_VAR: set_var(m, at, i->var, at); break;
    case FLUSH: MUST(ctn_flush(m->ctx)); break;
    case BEGIN: MUST(ctn_scope_begin(m->ctx)); break;
    case RETURN: MUST(ctn_scope_return(m->ctx, a) == a ? CTN_OK : CTN_ESTATE); break;
    case KEEP: MUST(ctn_keep(a) ? CTN_OK : CTN_ESTATE); break;
    case KEEP_GRAPH: MUST(ctn_keep_graph(a) ? CTN_OK : CTN_ESTATE); break;
    case BACKWARD: backward(m, at, i, a); break;
    case STEP: step(m, at, i); break;
    case RETAIN: MUST(ctn_retain(&m->kept[i->var], a)); break;
    case GRAD_OFF: ctn_context_set_grad(m->ctx, 0); break;
    case GRAD_ON: ctn_context_set_grad(m->ctx, 1); break;
    case NEW_SCOPE:
        MUST(ctn_scope_end(m->ctx));
        save(m, at);
        MUST(ctn_scope_begin(m->ctx));
        break;
    default: failed(m, at, "unknown instruction");
    }
}

static void run_once(machine *m)
{
    const program *g = m->g;
    int at = -1;
    for (int v = 0; v < VARS; v++) set_var(m, at, v, 1000 + v);
    MUST(ctn_scope_begin(m->ctx));
    for (at = 0; at < g->n; at++) {
        const ins *i = &g->p[at];
        if (m->fail.how && m->fail.at == at && m->fail.run == m->run) {
            rm_fail(m);
            longjmp(m->out, 1);
        }
        if (i->op >= ASSIGN) {
            effect(m, at, i);
            continue;
        }
        m->r[i->out] = emit(m, at, i, i->cond >> branch(m) & 1 ? i->op : i->other);
        if (!m->r[i->out]) failed(m, at, rp_op_name[i->op]);
        if (m->hostile && !rm_hostile_call(m, at, m->r[i->out])) longjmp(m->out, 1);
    }
    MUST(ctn_scope_end(m->ctx));
    if (m->hostile && !rm_hostile_scope(m)) longjmp(m->out, 1);
    for (int v = 0; v < VARS; v++) read_var(m, g->n + v, v, ctn_var_get);
}

static void make_optimizer(machine *m, int p, ctn_vars vars)
{
    const int at = -1;
    ctn_optim **o = &m->optims[p];
    if (m->optim[p] == ADAM) MUST(ctn_adam_new(o, vars, CTN_OPT(ctn_adam_opt, .lr = rp_rate)));
    else
        MUST(ctn_sgd_new(o, vars,
                         CTN_OPT(ctn_sgd_opt, .lr = rp_rate,
                                 .momentum = m->optim[p] == MOMENTUM ? 0.9 : 0)));
    if (m->clip > 0) ctn_optim_set_clip(*o, m->clip);
    if (m->distribute) MUST(m->distribute(*o, p, m->user));
}

static void run_all(machine *m)
{
    const int at = -1;
    const program *g = m->g;
    m->opt.struct_size = sizeof m->opt;
    m->opt.seed = 3;
    MUST(ctn_context_new(&m->ctx, &m->opt));
    m->type = ctn_context_float_type(m->ctx);
    for (int v = 0; v < VARS; v++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", v);
        MUST(ctn_var_new(&m->var[v], m->ctx, name, v < PARAMS ? CTN_PARAM : CTN_STATE, m->type,
                         g->var[v].nd, g->var[v].d));
    }
    make_optimizer(m, 0, (ctn_vars){2, m->var, NULL});
    make_optimizer(m, 1, (ctn_vars){1, m->var + 2, NULL});
    /* A distributed optimizer gives each rank random numbers of its own. */
    if (m->comm && !m->twisted) MUST(ctn_context_set_share(m->ctx, NULL));
    for (m->run = 0; m->run < RUNS; m->run++) run_once(m);
    for (int p = 0; p < POOLS && m->look; p++) m->look(m->optims[p], &m->looked[p]);
}

void rm_run(machine *m)
{
    if (setjmp(m->out) == 0) run_all(m);
    else if (m->comm && (!m->cause[0] || m->fail.how == GIVES_UP))
        ctn_comm_break(m->comm, m->cause[0] ? m->cause : m->why);
    for (int p = 0; p < POOLS; p++) ctn_optim_free(m->optims[p]);
    for (int v = 0; v < VARS; v++) ctn_var_free(m->var[v]);
    for (int k = 0; k < RETAINED; k++) ctn_retained_free(m->kept[k]);
    ctn_context_free(m->ctx);
    for (int k = 0; k < LEN; k++) free(m->data[k]);
}
