/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchange: makes what is in flight in a pool a dependency of the plan. A gradient is handed to
 * the exchange after the last kernel that writes or reads it, and one node before the step waits
 * for the sums. A step may leave values of sharded updates and sums of held-back buckets in
 * flight. The first kernel that reads or writes such a value or gradient, in this plan or a later
 * one, is preceded by a node that waits for it.
 */
#include "plan/plan.h"

static ctn_status ready_run(const ctn_run_args *a)
{
    return ctn__exchange_ready(a->priv, a->attr[0], a->attr[1]);
}

static ctn_status finish_run(const ctn_run_args *a)
{
    return ctn__exchange_finish(a->priv);
}

static ctn_status need_run(const ctn_run_args *a)
{
    return ctn__exchange_need(a->priv, a->attr[0], a->env->threads);
}

static ctn_status decide_run(const ctn_run_args *a);

static ctn_op op_ready = {sizeof(ctn_op), "allreduce", 0, 0, .run = ready_run};
static ctn_op op_decide = {sizeof(ctn_op), "choose_allreduce", 0, 0, .run = decide_run};
static ctn_op op_finish = {sizeof(ctn_op), "wait_allreduce", 0, 0, .run = finish_run};
static ctn_op op_need = {sizeof(ctn_op), "wait_allgather", 0, 0, .run = need_run};
static ctn_op op_update = {sizeof(ctn_op), "wait_update", 0, 0, .run = need_run};

typedef struct {
    int before; /* inserted before this node */
    void *priv;
    ctn_op *op;
    int64_t attr[2];
} insertion;

typedef CTN__VEC(insertion) insertions;

/* The ranges of values and of gradients of a pool that a node reads or writes; may be empty. */
typedef struct {
    ctn__range value, grad;
} touched;

static void widen(ctn__range *r, int64_t begin, int64_t end)
{
    const bool empty = r->begin == r->end;
    if (empty || begin < r->begin) r->begin = begin;
    if (empty || end > r->end) r->end = end;
}

static touched touches(const ctn__plan *p, const ctn__pnode *n, const ctn__pool *pool)
{
    touched t = {0};
    if (n->pool == pool) t.value = t.grad = (ctn__range){0, pool->count}; /* the pool's step */
    for (int k = 0; k < n->nin + n->nout; k++) {
        const int at = k < n->nin ? n->in[k] : n->out[k - n->nin];
        const ctn__value *v = &p->values.at[ctn__value_base(p, at)];
        const bool grad = v->kind == CTN__V_GRAD;
        if ((!grad && v->kind != CTN__V_VAR) || v->var->pool != pool) continue;
        const int64_t begin = ctn__pool_place(pool, v->var);
        widen(grad ? &t.grad : &t.value, begin, begin + ctn__count(&v->var->d));
    }
    return t;
}

/* Argument of the node that makes decisions in the first step; they depend on the plan. */
typedef struct {
    ctn__plan *p;
    const ctn__pool *pool;
} decision;

static ctn_status add_decision(ctn__plan *p, int s, const ctn__pool *pool, insertions *out)
{
    decision *d = ctn__arena_get(&p->mem, sizeof *d);
    if (!d) return CTN_ENOMEM;
    *d = (decision){p, pool};
    insertion in = {s, d, &op_decide, {0, 0}};
    return ctn__vec_push(out, in) ? CTN_OK : CTN_ENOMEM;
}

/* Place the nodes for the step at node s: one where gradients become ready, then the wait. A
 * gradient is ready after the last node that writes or reads it, because its memory changes while
 * it is in flight. A parameter that no node touches is ready from the start. Neighbours that
 * become ready at the same node form one range. */
static ctn_status place_step(ctn__plan *p, int s, insertions *out)
{
    const ctn__pool *pool = p->nodes.at[s].pool;
    ctn__exchange *x = pool->exchange;
    int *ready = ctn__calloc((size_t)pool->nvar + 1, sizeof *ready); /* before this node */
    bool ok = ready != NULL;
    for (int i = 0; ok && i < s; i++) {
        const ctn__range g = touches(p, &p->nodes.at[i], pool).grad;
        if (g.begin == g.end) continue;
        for (int v = ctn__pool_index(pool, g.begin); v < pool->nvar && pool->begin[v] < g.end; v++)
            ready[v] = i + 1;
    }
    for (int v = pool->nvar - 1, end = v; ok && v >= 0; v--) {
        if (v > 0 && ready[v - 1] == ready[v]) continue;
        insertion in = {ready[v], x, &op_ready, {pool->begin[v], pool->begin[end + 1]}};
        ok = ctn__vec_push(out, in);
        end = v - 1;
    }
    ctn__free(ready);
    insertion finish = {s, x, &op_finish, {0, 0}};
    if (!ok || !ctn__vec_push(out, finish)) return CTN_ENOMEM;
    return add_decision(p, s, pool, out);
}

/* Place a wait before the first node that touches what an earlier step may have left in flight.
 * Within the plan nothing else can be in flight, because a step is the last node. */
static ctn_status place_needs(ctn__plan *p, const ctn__pool *pool, insertions *out)
{
    ctn__exchange *x = pool->exchange;
    const bool shard = ctn__exchange_sharded(x); /* then no gradients are in flight after a step */
    int64_t here = ctn__exchange_prompt(x);
    for (size_t i = 0; i < p->nodes.n; i++) {
        const touched t = touches(p, &p->nodes.at[i], pool);
        const int64_t end = shard || t.value.end > t.grad.end ? t.value.end : t.grad.end;
        if (end <= here) continue;
        p->comm = ctn__exchange_comm(x);
        insertion need = {(int)i, x, shard ? &op_need : &op_update, {end, 0}};
        if (!ctn__vec_push(out, need)) return CTN_ENOMEM;
        here = end;
    }
    return CTN_OK;
}

static ctn_status add_node(ctn__plan *p, ctn__pnode *to, const insertion *in)
{
    *to = (ctn__pnode){.op = in->op,
                       .at = "exchange",
                       .nattr = 2,
                       .effect = true,
                       .run = in->op->run,
                       .kernel = "comm",
                       .priv = in->priv};
    to->in = to->out = ctn__arena_get(&p->mem, sizeof(int));
    to->attr = ctn__arena_get(&p->mem, sizeof in->attr);
    to->scalar = ctn__arena_get(&p->mem, sizeof *to->scalar);
    if (!to->in || !to->attr || !to->scalar) return CTN_ENOMEM;
    memcpy(to->attr, in->attr, sizeof in->attr);
    return CTN_OK;
}

/* Order at one place: wait for what the previous step left, gradients that are ready, decisions,
 * wait for the sums. */
static int kind_of(const insertion *i)
{
    return i->op == &op_finish ? 3 : i->op == &op_decide ? 2 : i->op == &op_ready;
}

static int by_place(const void *a, const void *b)
{
    const insertion *x = a, *y = b;
    if (x->before != y->before) return x->before < y->before ? -1 : 1;
    if (x->op != y->op) return kind_of(x) - kind_of(y);
    return x->attr[0] > y->attr[0] ? -1 : x->attr[0] < y->attr[0]; /* from the end of the pool */
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

/* Choose algorithm and bucket size, if the user did not, from the decision table or by timing. The
 * table gets the choice even if no kernels are timed: a training that is resumed with another
 * algorithm would add gradients in another order. */
static ctn_status choose(ctn__plan *p, const ctn__exchange *x)
{
    ctn_comm *c = ctn__exchange_comm(x);
    const ctn__planner *pl = p->ctx->planner;
    ctn__engine *e = pl->engine;
    const ctn__buckets *k = ctn__exchange_buckets(x);
    const int64_t bytes = k->count * (int64_t)k->unit;
    char problem[256], chosen[64];
    if (c->alg) return CTN_OK;
    snprintf(problem, sizeof problem, "allreduce %s %lld bytes, %d ranks, %d nodes, %s",
             ctn_dtype_name(ctn__exchange_wire(x)), (long long)bytes, ctn_comm_size(c),
             ctn_comm_nodes(c), ctn_comm_transport(c));
    const char *known = ctn__choice_find(e, problem);
    CTN_TRY(ctn__comm_choose(c, bytes, known, chosen, sizeof chosen));
    if (known && strcmp(known, chosen) == 0) return CTN_OK;
    CTN_TRY(ctn__choice_put(e, problem, chosen));
    return ctn__engine_timing(e) ? ctn__choices_save(e) : CTN_OK;
}

enum { LOW = 1, EXACT = 2 }; /* how a variable is read: through a cast, or in f32 */

static void find_readers(const ctn__plan *p, const ctn__pool *pool, char *how)
{
    for (size_t i = 0; i < p->nodes.n; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        for (int k = 0; k < n->nin; k++) {
            const ctn__value *v = &p->values.at[ctn__value_base(p, n->in[k])];
            if (v->kind != CTN__V_VAR || v->var->pool != pool || (n->op->flags & CTN_OP_VIEW))
                continue;
            bool cast = n->op == &ctn__op_reorder && p->values.at[n->out[0]].d.dtype != CTN_F32;
            how[ctn__pool_index(pool, ctn__pool_place(pool, v->var))] |= (char)(cast ? LOW : EXACT);
        }
    }
}

/* Sharded values are sent in the type in which rank 0's plan reads them: 16 bits where every
 * reader is a cast. */
static ctn_status narrow(const ctn__plan *p, const ctn__pool *pool)
{
    ctn_status st = CTN_OK;
    ctn__exchange *x = pool->exchange;
    const ctn_precision policy = p->ctx->opt.precision;
    const size_t n = (size_t)pool->nvar;
    int ranges = 0;
    char *how = ctn__calloc(n + 1, 1); /* one per variable, then the type */
    ctn__range *exact = ctn__calloc(n + 1, sizeof *exact);
    if (!how || !exact) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    how[n] = !ctn__low_policy(p->ctx) ? CTN_F32 : policy == CTN_PRECISION_F16 ? CTN_F16 : CTN_BF16;
    find_readers(p, pool, how);
    CTN_TRY_GOTO(st, done, ctn_comm_broadcast(ctn__exchange_comm(x), how, n + 1, 0));
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

/* If this plan reads a variable in f32 that is sent in 16 bits, the next step asks all ranks to
 * send exact values from then on. */
static ctn_status check_narrow(const ctn__plan *p, const ctn__pool *pool)
{
    ctn__exchange *x = pool->exchange;
    if (ctn__exchange_values(x) == CTN_F32) return CTN_OK;
    char *how = ctn__calloc((size_t)pool->nvar + 1, 1);
    if (!how) return CTN_ENOMEM;
    find_readers(p, pool, how);
    for (int i = 0; i < pool->nvar; i++)
        if ((how[i] & EXACT) &&
            !ctn__exchange_exact(x, (ctn__range){pool->begin[i], pool->begin[i + 1]}))
            ctn__exchange_give(x, CTN__GIVE_EXACT, 1);
    ctn__free(how);
    return CTN_OK;
}

/* Runs in the first step, whatever plan each rank runs. The decisions cannot be made while the
 * plan is built: this rank would wait for ranks that wait in a communicating op, which this rank
 * runs only as part of this plan. */
static ctn_status decide_run(const ctn_run_args *a)
{
    const decision *d = a->priv;
    ctn__exchange *x = d->pool->exchange;
    if (!ctn__exchange_decide(x)) return CTN_OK;
    if (ctn__exchange_sharded(x)) return narrow(d->p, d->pool);
    CTN_TRY(choose(d->p, x));
    const int64_t bucket = ctn__exchange_comm(x)->bucket;
    return bucket == 0 ? CTN_OK : ctn__exchange_cut(x, bucket);
}

ctn_status ctn__pass_exchange(ctn__plan *p)
{
    ctn_status st = CTN_OK;
    insertions list = {0};
    for (const ctn__pool *pool = p->ctx->pools; pool; pool = pool->next) {
        if (!pool->exchange) continue;
        for (size_t i = 0; i < p->nodes.n; i++)
            if (p->nodes.at[i].pool == pool) {
                CTN_TRY_GOTO(st, done, place_step(p, (int)i, &list));
                p->comm = ctn__exchange_comm(pool->exchange);
            }
        CTN_TRY_GOTO(st, done, check_narrow(p, pool));
        CTN_TRY_GOTO(st, done, place_needs(p, pool, &list));
    }
    CTN_TRY_GOTO(st, done, insert(p, &list));
done:
    ctn__vec_free(&list);
    return st;
}
