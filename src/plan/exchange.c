/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchange: places communication in a plan that steps an optimizer whose gradients are exchanged. A bucket starts behind the last kernel that
 * writes into it, never before the bucket ahead of it (rule 13); one node before the step waits for all. Where updates are sharded, the
 * values that come back are waited for in front of their first reader, in this plan or a later one.
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
    return ctn__exchange_need(a->priv, a->attr[0]);
}

static ctn_op op_start = {sizeof(ctn_op), "allreduce", 0, 0, .run = start_run};
static ctn_op op_finish = {sizeof(ctn_op), "wait_allreduce", 0, 0, .run = finish_run};
static ctn_op op_need = {sizeof(ctn_op), "wait_allgather", 0, 0, .run = need_run};

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
    for (int b = 0; b < x->nbucket; b++) {
        for (int i = s - 1; i >= at; i--) {
            if (!writes_into(p, &p->nodes.at[i], pool, b)) continue;
            at = i + 1;
            break;
        }
        insertion start = {at, x, &op_start, b};
        if (!ctn__vec_push(out, start)) return CTN_ENOMEM;
    }
    insertion finish = {s, x, &op_finish, 0};
    return ctn__vec_push(out, finish) ? CTN_OK : CTN_ENOMEM;
}

/* Waits for the values of sharded updates in front of the first reader. One pool at a time is looked at. */
static ctn_status place_needs(const ctn__plan *p, const ctn__pool *pool, insertions *out)
{
    int64_t here = 0;
    for (size_t i = 0; i < p->nodes.n; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        int64_t end = n->pool == pool ? pool->count : here;
        for (int k = 0; k < n->nin; k++) {
            const ctn__value *v = &p->values.at[ctn__value_base(p, n->in[k])];
            if (v->kind != CTN__V_VAR || v->var->pool != pool) continue;
            int64_t e = (float *)v->var->data - pool->w + ctn__count(&v->var->d);
            if (e > end) end = e;
        }
        if (end <= here) continue;
        insertion need = {(int)i, pool->exchange, &op_need, end};
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

static int by_place(const void *a, const void *b)
{
    const insertion *x = a, *y = b;
    if (x->before != y->before) return x->before < y->before ? -1 : 1;
    if (x->op != y->op) return x->op == &op_finish ? 1 : y->op == &op_finish ? -1 : 0;
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

/* The algorithm, if it is left to us: the decision table's, or measured. All ranks come here together, with the plan of their first
 * step, whatever it computes. */
static ctn_status choose(ctn__plan *p, const ctn__exchange *x)
{
    ctn_comm *c = x->comm;
    const ctn__planner *pl = p->ctx->planner;
    ctn__engine *e = pl->engine;
    const int64_t bytes = (x->begin[0] - x->begin[1]) * (int64_t)sizeof(float);
    char problem[256];
    if (c->alg || x->shard) return CTN_OK;
    snprintf(problem, sizeof problem, "allreduce %s %lld bytes, %d ranks, %d nodes, %s",
             ctn_dtype_name(x->wire), (long long)bytes, ctn_comm_size(c), ctn_comm_nodes(c),
             ctn_comm_transport(c));
    const char *known = ctn__choice_find(e, problem);
    CTN_TRY(ctn__comm_choose(c, bytes, known));
    if (!ctn__engine_timing(e) || (known && strcmp(known, c->alg->name) == 0)) return CTN_OK;
    return ctn__choice_put(e, problem, c->alg->name);
}

ctn_status ctn__pass_exchange(ctn__plan *p)
{
    ctn_status st = CTN_OK;
    insertions list = {0};
    for (const ctn__pool *pool = p->ctx->pools; pool; pool = pool->next) {
        if (!pool->exchange) continue;
        for (size_t i = 0; i < p->nodes.n; i++)
            if (p->nodes.at[i].pool == pool) {
                CTN_TRY_GOTO(st, done, choose(p, pool->exchange));
                CTN_TRY_GOTO(st, done, place_step(p, (int)i, &list));
            }
        if (pool->exchange->shard) CTN_TRY_GOTO(st, done, place_needs(p, pool, &list));
    }
    CTN_TRY_GOTO(st, done, insert(p, &list));
done:
    ctn__vec_free(&list);
    return st;
}
