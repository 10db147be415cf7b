/* SPDX-License-Identifier: Apache-2.0
 *
 * The executor: sets addresses, enters the floating-point mode and thread count of a run (rule 16),
 * calls the kernels one after another, and restores the caller's mode and thread count.
 */
#include "plan/plan.h"

/* Allocate the addresses and arguments of every node. */
ctn_status ctn__plan_args(ctn__planner *pl, ctn__plan *p)
{
    for (size_t i = 0; i < p->nodes.n; i++) {
        ctn__pnode *n = &p->nodes.at[i];
        ctn_desc *d = ctn__arena_get(&p->mem, (size_t)(n->nin + n->nout + 1) * sizeof *d);
        n->pin = ctn__arena_zero(&p->mem, (size_t)(n->nin + 1) * sizeof *n->pin);
        n->pout = ctn__arena_zero(&p->mem, (size_t)(n->nout + 1) * sizeof *n->pout);
        n->values = ctn__arena_zero(&p->mem, (size_t)(n->nscalar + 1) * sizeof *n->values);
        if (!d || !n->pin || !n->pout || !n->values) return CTN_ENOMEM;
        for (int k = 0; k < n->nin; k++) {
            d[k] = ctn__node_desc(p, n, p->values.at[n->in[k]].d);
            n->external |= p->values.at[ctn__value_base(p, n->in[k])].kind != CTN__V_TEMP;
        }
        for (int k = 0; k < n->nout; k++) {
            d[n->nin + k] = ctn__node_desc(p, n, p->values.at[n->out[k]].d);
            n->external |= p->values.at[n->out[k]].kind != CTN__V_TEMP;
        }
        for (int k = 0; k < n->nscalar; k++) n->values[k] = n->scalar[k].value;
        n->args = (ctn_run_args){.nin = n->nin,
                                 .nout = n->nout,
                                 .nattr = n->nattr,
                                 .nscalar = n->nscalar,
                                 .in = n->pin,
                                 .out = n->pout,
                                 .din = d,
                                 .dout = d + n->nin,
                                 .attr = n->attr,
                                 .scalar = n->values,
                                 .ordinal = n->ordinal,
                                 .env = &pl->env,
                                 .priv = n->pool ? n->pool->owner : n->priv};
    }
    return CTN_OK;
}

static ctn_status grow_arena(ctn__planner *pl, size_t bytes)
{
    if (bytes <= pl->arena_bytes) return CTN_OK;
    char *n = ctn__aligned(bytes);
    if (!n)
        return ctn_fail(CTN_ENOMEM, "the plan's arena of %zu bytes does not fit in memory", bytes);
    ctn__free(pl->arena); /* nothing lives in it between runs */
    pl->arena = n;
    pl->arena_bytes = bytes;
    return CTN_OK;
}

/* There is no arena if all results are empty. */
static char *in_arena(const ctn__planner *pl, size_t offset)
{
    return pl->arena ? pl->arena + offset : NULL;
}

static ctn_status address(const ctn__planner *pl, const ctn__plan *p, int v, void **out)
{
    ctn_context *ctx = p->ctx;
    const ctn__value *val = &p->values.at[ctn__value_base(p, v)];
    switch (val->kind) {
    case CTN__V_TEMP: *out = in_arena(pl, val->offset); break;
    case CTN__V_VAR: *out = val->var->data; break;
    case CTN__V_GRAD: *out = val->var->grad; break;
    case CTN__V_KEPT: *out = ctn__kept_memory(val->kept); break;
    case CTN__V_CONST: *out = ctn__constants_at(p, val->offset); break;
    case CTN__V_BIND: {
        ctn_tensor *t = ctn__tensor_by_id(ctx, val->tensor);
        if (val->output && !t->data) {
            t->data = ctn__storage_get(&ctx->storage, ctn__bytes(&t->d) + pl->guard);
            if (!t->data) return CTN_ENOMEM;
        }
        *out = t->data;
        break;
    }
    }
    return CTN_OK;
}

static ctn_status bind_node(ctn__planner *pl, ctn__plan *p, ctn__pnode *n)
{
    void *at = NULL;
    for (int k = 0; k < n->nin; k++) {
        CTN_TRY(address(pl, p, n->in[k], &at));
        n->pin[k] = at;
    }
    for (int k = 0; k < n->nout; k++) {
        const ctn__value *v = &p->values.at[n->out[k]];
        at = NULL;
        if (k == 0 || v->kind != CTN__V_TEMP || v->uses > 0)
            CTN_TRY(address(pl, p, n->out[k], &at));
        n->pout[k] = at;
    }
    n->args.scratch = in_arena(pl, n->scratch_offset);
    return CTN_OK;
}

static ctn_status bind_plan(ctn__planner *pl, ctn__plan *p)
{
    CTN_TRY(grow_arena(pl, p->arena_bytes));
    bool moved = p->arena_base != pl->arena;
    for (size_t i = 0; i < p->nodes.n; i++) {
        ctn__pnode *n = &p->nodes.at[i];
        if (moved || n->external) CTN_TRY(bind_node(pl, p, n));
        for (int k = 0; k < n->nscalar; k++) {
            if (n->scalar[k].slot < 0) continue;
            const double now = p->ctx->slots.at[n->scalar[k].slot];
            if (n->constant && !(n->values[k] == now)) ctn__constants_made(p, false);
            n->values[k] = now;
        }
    }
    p->arena_base = pl->arena;
    return CTN_OK;
}

/* Guard bytes after output k of a node, or after its scratch (CATENA_GUARD). */
static char *guard_at(const ctn__plan *p, const ctn__pnode *n, int k)
{
    if (k < n->nout) {
        const ctn__value *v = &p->values.at[n->out[k]];
        bool ours = v->kind == CTN__V_TEMP || (v->kind == CTN__V_BIND && v->output);
        return ours && n->pout[k] ? (char *)n->pout[k] + ctn__bytes(&v->d) : NULL;
    }
    return n->scratch > 0 ? (char *)n->args.scratch + n->scratch : NULL;
}

enum { GUARD = 0xa5 };

static ctn_status run_guarded(const ctn__planner *pl, const ctn__plan *p, const ctn__pnode *n)
{
    char *g;
    for (int k = 0; k <= n->nout; k++)
        if ((g = guard_at(p, n, k))) memset(g, GUARD, pl->guard);
    CTN_TRY(n->run(&n->args));
    for (int k = 0; k <= n->nout; k++) {
        g = guard_at(p, n, k);
        for (size_t i = 0; g && i < pl->guard; i++)
            if ((unsigned char)g[i] != GUARD)
                return ctn_fail(CTN_ESTATE, "%s wrote past the end of its %s (kernel %s)",
                                n->op->name, k < n->nout ? "result" : "scratch", n->kernel);
    }
    return CTN_OK;
}

/* MPI makes no progress unless it is called, so it is polled after every kernel. Short polls are
 * left out of the trace. */
static ctn_status poll(const ctn__plan *p, bool timed)
{
    if (!timed) return ctn__comm_poll(p->comm);
    const uint64_t t0 = ctn__now_ns();
    ctn_status st = ctn__comm_poll(p->comm);
    const uint64_t t1 = ctn__now_ns();
    if (t1 - t0 > 2000) ctn__trace_span(p->ctx->trace, "progress", t0, t1, CTN__LANE_KERNELS);
    return st;
}

/* Check a kept copy that is considered fresh: make it again and compare (CATENA_CHECK). */
static ctn_status check_kept(const ctn__plan *p, const ctn__pnode *n)
{
    const ctn__value *v = &p->values.at[n->out[0]];
    void *again = ctn__aligned(ctn__bytes(&v->d));
    if (!again) return CTN_ENOMEM;
    memcpy(again, n->pout[0], ctn__bytes(&v->d)); /* including its padding */
    ctn_run_args a = n->args;
    a.out = &again;
    ctn_status st = n->run(&a);
    if (st == CTN_OK && memcmp(again, n->pout[0], ctn__bytes(&v->d)) != 0)
        st = ctn_fail(CTN_ESTATE, "internal error: the kept copy of %s is out of date",
                      v->var->name);
    ctn__free(again);
    return st;
}

/* Run a node whose results are considered up to date, and compare (CATENA_CHECK). */
static ctn_status check_constant(const ctn__plan *p, const ctn__pnode *n)
{
    ctn__hash128 before[CTN_MAX_OUT] = {{0}};
    for (int k = 0; k < n->nout; k++) {
        const ctn__value *v = &p->values.at[n->out[k]];
        if (v->kind == CTN__V_CONST) before[k] = ctn__hash(n->pout[k], ctn__bytes(&v->d));
    }
    CTN_TRY(n->run(&n->args));
    for (int k = 0; k < n->nout; k++) {
        const ctn__value *v = &p->values.at[n->out[k]];
        if (v->kind != CTN__V_CONST) continue;
        const ctn__hash128 now = ctn__hash(n->pout[k], ctn__bytes(&v->d));
        if (memcmp(&now, &before[k], sizeof now) != 0)
            return ctn_fail(CTN_ESTATE, "internal error: a constant result of %s is out of date",
                            n->op->name);
    }
    return CTN_OK;
}

static ctn_status run_node(const ctn__planner *pl, const ctn__plan *p, const ctn__pnode *n,
                           bool fresh)
{
    if (n->constant && fresh) return pl->check ? check_constant(p, n) : CTN_OK;
    if (n->makes && ctn__kept_fresh(n->makes)) {
        ctn__trace_add(p->ctx->trace, CTN__COUNT_KEPT_BYTES,
                       ctn__bytes(&n->args.din[0]) + ctn__bytes(&n->args.dout[0]));
        return pl->check ? check_kept(p, n) : CTN_OK;
    }
    const ctn_status st = pl->guard ? run_guarded(pl, p, n) : n->run(&n->args);
    if (n->makes) ctn__kept_made(n->makes, st == CTN_OK);
    return st;
}

static ctn_status run_nodes(const ctn__planner *pl, ctn__plan *p)
{
    ctn_context *ctx = p->ctx;
    const bool fresh = ctn__constants_fresh(p);
    bool timed = ctx->profile || ctn__trace_spans_on(ctx->trace);
    for (size_t i = 0; i < p->nodes.n; i++) {
        ctn__pnode *n = &p->nodes.at[i];
        uint64_t t0 = timed ? ctn__now_ns() : 0;
        ctn_status st = run_node(pl, p, n, fresh);
        if (timed) {
            uint64_t t1 = ctn__now_ns();
            if (ctx->profile && (n->ns == 0 || t1 - t0 < n->ns)) n->ns = t1 - t0;
            ctn__trace_span(ctx->trace, n->op->name, t0, t1, 0);
        }
        if (st < 0) {
            if (ctn_error_status() == CTN_OK) ctn_fail(st, "%s failed", n->op->name);
            return ctn_error_trace(st, n->at, 0, n->op->name);
        }
        if (p->comm) CTN_TRY(poll(p, timed));
    }
    return CTN_OK;
}

ctn_status ctn__plan_run(ctn__planner *pl, ctn__plan *p)
{
    ctn_context *ctx = p->ctx;
    CTN_TRY(bind_plan(pl, p));
    pl->env = (ctn_run_env){ctx->seed, ctx->step, ctx->threads, ctx->share};
    ctn__cores_claim(&pl->cores);
    int was = ctn__threads_enter(ctx->threads);
    ctn__fpmode_enter(pl->fp);
    ctn_status st = run_nodes(pl, p);
    ctn__constants_made(p, st == CTN_OK);
    if (ctn__fpmode_leave(pl->fp)) ctn__trace_add(ctx->trace, CTN__COUNT_UNDERFLOW_RUNS, 1);
    ctn__threads_leave(was);
    ctn__cores_release(&pl->cores);
    p->runs++;
    ctn__trace_add(ctx->trace, CTN__COUNT_RUNS, 1);
    ctn__trace_add(ctx->trace, CTN__COUNT_KERNELS, p->nodes.n);
    ctn__trace_add(ctx->trace, CTN__COUNT_REORDER_BYTES, p->reorder_bytes);
    pl->last = p;
    return st;
}
