/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchange: places communication in a plan that steps an optimizer whose gradients are exchanged. A bucket starts behind the last kernel that
 * writes into it, never before the bucket ahead of it (rule 13); one node before the step waits. What it does not wait for, values of sharded
 * updates and sums of buckets that are held back, is waited for in front of the first use, in this plan or a later one.
 */
#include "plan/plan.h"

static ctn_status start_run(const ctn_run_args *a)
{
    return ctn__exchange_start(a->priv, (int)a->attr[0]);
}

static ctn_status finish_run(const ctn_run_args *a)
{
    return ctn__exchange_finish(a->priv);
}

static ctn_status need_run(const ctn_run_args *a)
{
    return ctn__exchange_need(a->priv, a->attr[0], a->env->threads);
}

static ctn_op op_start = {sizeof(ctn_op), "allreduce", 0, 0, .run = start_run};
static ctn_op op_finish = {sizeof(ctn_op), "wait_allreduce", 0, 0, .run = finish_run};
static ctn_op op_need = {sizeof(ctn_op), "wait_allgather", 0, 0, .run = need_run};
static ctn_op op_update = {sizeof(ctn_op), "wait_update", 0, 0, .run = need_run};

typedef struct {
    int before; /* goes in front of this node */
    ctn__exchange *x;
    ctn_op *op;
    int64_t attr;
} insertion;

typedef CTN__VEC(insertion) insertions;

static bool writes_into(const ctn__plan *p, const ctn__pnode *n, const ctn__pool *pool, int b)
{
    const ctn__exchange *x = pool->exchange;
    for (int k = 0; k < n->nout; k++) {
        const ctn__value *v = &p->values.at[ctn__value_base(p, n->out[k])];
        if (v->kind != CTN__V_GRAD || v->var->pool != pool) continue;
        int64_t begin = (float *)v->var->grad - pool->g, end = begin + ctn__count(&v->var->d);
        if (begin < x->begin[b] && end > x->begin[b + 1]) return true;
    }
    return false;
}

/* Starts of all buckets of the step at node s, and the wait. */
static ctn_status place_step(const ctn__plan *p, int s, insertions *out)
{
    const ctn__pool *pool = p->nodes.at[s].pool;
    ctn__exchange *x = pool->exchange;
    int at = 0;
    for (int k = 0; k < x->nbucket; k++) {
        for (int i = s - 1; i >= at; i--) {
            if (!writes_into(p, &p->nodes.at[i], pool, ctn__exchange_at(x, k))) continue;
            at = i + 1;
            break;
        }
        insertion start = {at, x, &op_start, k};
        if (!ctn__vec_push(out, start)) return CTN_ENOMEM;
    }
    insertion finish = {s, x, &op_finish, 0};
    return ctn__vec_push(out, finish) ? CTN_OK : CTN_ENOMEM;
}

/* How far into the pool the variables of this node reach: those it reads, and those whose gradients it writes, if updates may still want them. */
static int64_t reach(const ctn__plan *p, const ctn__pnode *n, const ctn__pool *pool)
{
    int64_t end = 0;
    if (n->pool == pool) return pool->count;
    for (int k = 0; k < n->nin + (pool->exchange->shard ? 0 : n->nout); k++) {
        const int at = k < n->nin ? n->in[k] : n->out[k - n->nin];
        const ctn__value *v = &p->values.at[ctn__value_base(p, at)];
        if (k < n->nin ? v->kind != CTN__V_VAR : v->kind != CTN__V_GRAD) continue;
        if (v->var->pool != pool) continue;
        int64_t e = (float *)v->var->data - pool->w + ctn__count(&v->var->d);
        if (e > end) end = e;
    }
    return end;
}

/* Waits in front of the first use. One pool at a time is looked at. */
static ctn_status place_needs(const ctn__plan *p, const ctn__pool *pool, insertions *out)
{
    ctn__exchange *x = pool->exchange;
    int64_t here = x->shard ? 0 : x->begin[x->held]; /* all before it has been waited for */
    for (size_t i = 0; i < p->nodes.n; i++) {
        const int64_t end = reach(p, &p->nodes.at[i], pool);
        if (end <= here) continue;
        insertion need = {(int)i, x, x->shard ? &op_need : &op_update, end};
        if (!ctn__vec_push(out, need)) return CTN_ENOMEM;
        here = end;
    }
    return CTN_OK;
}

static ctn_status add_node(ctn__plan *p, ctn__pnode *to, const insertion *in)
{
    *to = (ctn__pnode){.op = in->op,
                       .at = "exchange",
                       .nattr = 1,
                       .effect = true,
                       .run = in->op->run,
                       .kernel = "comm",
                       .priv = in->x};
    to->in = to->out = ctn__arena_get(&p->mem, sizeof(int));
    to->attr = ctn__arena_get(&p->mem, sizeof *to->attr);
    to->scalar = ctn__arena_get(&p->mem, sizeof *to->scalar);
    if (!to->in || !to->attr || !to->scalar) return CTN_ENOMEM;
    to->attr[0] = in->attr;
    p->comm = in->x->comm;
    return CTN_OK;
}

/* At one place: what the step before has left, then starts, then the wait. */
static int kind_of(const insertion *i)
{
    return i->op == &op_finish ? 2 : i->op == &op_start;
}

static int by_place(const void *a, const void *b)
{
    const insertion *x = a, *y = b;
    if (x->before != y->before) return x->before < y->before ? -1 : 1;
    if (x->op != y->op) return kind_of(x) - kind_of(y);
    return x->attr < y->attr ? -1 : x->attr > y->attr;
}

static ctn_status insert(ctn__plan *p, insertions *list)
{
    size_t n = p->nodes.n, k = list->n;
    if (k == 0) return CTN_OK;
    qsort(list->at, k, sizeof *list->at, by_place);
    if (!ctn__vec_reserve(&p->nodes, n + k)) return CTN_ENOMEM;
    p->nodes.n = n + k;
    for (size_t to = n + k, i = n; k > 0;) {
        if (list->at[k - 1].before == (int)i)
            CTN_TRY(add_node(p, &p->nodes.at[--to], &list->at[--k]));
        else p->nodes.at[--to] = p->nodes.at[--i];
    }
    for (size_t i = 0; i < p->nodes.n; i++)
        for (int j = 0; j < p->nodes.at[i].nout; j++)
            p->values.at[p->nodes.at[i].out[j]].node = (int)i;
    return CTN_OK;
}

/* Algorithm and buckets, if the algorithm is left to us: the decision table's, or measured. */
static ctn_status choose(ctn__plan *p, const ctn__exchange *x)
{
    ctn_comm *c = x->comm;
    const ctn__planner *pl = p->ctx->planner;
    ctn__engine *e = pl->engine;
    const int64_t bytes = x->count * (int64_t)sizeof(float);
    char problem[256], chosen[64];
    if (c->alg) return CTN_OK;
    snprintf(problem, sizeof problem, "allreduce %s %lld bytes, %d ranks, %d nodes, %s",
             ctn_dtype_name(x->wire), (long long)bytes, ctn_comm_size(c), ctn_comm_nodes(c),
             ctn_comm_transport(c));
    const char *known = ctn__choice_find(e, problem);
    CTN_TRY(ctn__comm_choose(c, bytes, true, known, chosen, sizeof chosen));
    if (!ctn__engine_timing(e) || (known && strcmp(known, chosen) == 0)) return CTN_OK;
    return ctn__choice_put(e, problem, chosen);
}

enum { LOW = 1, EXACT = 2 }; /* how a variable is read */

static int index_of(const ctn__pool *pool, const ctn_var *v)
{
    int64_t at = (float *)v->data - pool->w;
    int lo = 0, hi = pool->nvar;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (pool->begin[mid] <= at) lo = mid;
        else hi = mid;
    }
    return lo;
}

static void find_readers(const ctn__plan *p, const ctn__pool *pool, char *how)
{
    for (size_t i = 0; i < p->nodes.n; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        for (int k = 0; k < n->nin; k++) {
            const ctn__value *v = &p->values.at[ctn__value_base(p, n->in[k])];
            if (v->kind != CTN__V_VAR || v->var->pool != pool || (n->op->flags & CTN_OP_VIEW))
                continue;
            bool cast = n->op == &ctn__op_reorder && p->values.at[n->out[0]].d.dtype != CTN_F32;
            how[index_of(pool, v->var)] |= cast ? LOW : EXACT;
        }
    }
}

/* Sharded values come back in the type in which this plan, rank 0's, reads them: 16 bits where every reader is a cast. */
static ctn_status narrow(const ctn__plan *p, const ctn__pool *pool)
{
    ctn_status st = CTN_OK;
    ctn__exchange *x = pool->exchange;
    const ctn_precision policy = p->ctx->opt.precision;
    const size_t n = (size_t)pool->nvar;
    int ranges = 0;
    char *how = ctn__calloc(n + 1, 1); /* and the type */
    ctn__range *exact = ctn__calloc(n + 1, sizeof *exact);
    if (!how || !exact) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    how[n] = policy == CTN_PRECISION_F32   ? CTN_F32
             : policy == CTN_PRECISION_F16 ? CTN_F16
                                           : CTN_BF16;
    find_readers(p, pool, how);
    CTN_TRY_GOTO(st, done, ctn_comm_broadcast(x->comm, how, n + 1, 0));
    for (int i = 0; i < pool->nvar; i++) {
        if (how[i] == LOW) continue;
        if (ranges > 0 && exact[ranges - 1].end == pool->begin[i]) ranges--;
        else exact[ranges].begin = pool->begin[i];
        exact[ranges++].end = pool->begin[i + 1];
    }
    if (how[n] != CTN_F32)
        CTN_TRY_GOTO(st, done, ctn__exchange_narrow(x, (ctn_dtype)how[n], ranges, exact));
done:
    ctn__free(how);
    ctn__free(exact);
    return st;
}

/* What the first plan decides. All ranks come here together, with the plan of their first step, whatever it computes. */
static ctn_status settle(ctn__plan *p, const ctn__pool *pool)
{
    ctn__exchange *x = pool->exchange;
    if (x->settled) return CTN_OK;
    x->settled = true;
    if (x->shard) return narrow(p, pool);
    CTN_TRY(choose(p, x));
    return x->given || x->comm->bucket == 0 ? CTN_OK : ctn__exchange_cut(x, x->comm->bucket);
}

ctn_status ctn__pass_exchange(ctn__plan *p)
{
    ctn_status st = CTN_OK;
    insertions list = {0};
    for (const ctn__pool *pool = p->ctx->pools; pool; pool = pool->next) {
        if (!pool->exchange) continue;
        for (size_t i = 0; i < p->nodes.n; i++)
            if (p->nodes.at[i].pool == pool) {
                CTN_TRY_GOTO(st, done, settle(p, pool));
                CTN_TRY_GOTO(st, done, place_step(p, (int)i, &list));
            }
        if (pool->exchange->shard || pool->exchange->held > 0)
            CTN_TRY_GOTO(st, done, place_needs(p, pool, &list));
    }
    CTN_TRY_GOTO(st, done, insert(p, &list));
done:
    ctn__vec_free(&list);
    return st;
}
