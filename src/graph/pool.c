/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools: the parameters of one optimizer lie in one contiguous range, and their gradients in
 * another with the same offsets. So one sweep updates all of them, and a bucket of gradients is
 * contiguous memory. Each variable starts at a multiple of 16 elements; the padding is always
 * zero. When a pool is freed, the values stay where they are, because the variables share the
 * slab.
 */
#include "graph/graph.h"

static ctn_status check_vars(ctn_context *ctx, int n, ctn_var *const *vars)
{
    const uint64_t search = ++ctx->searches;
    for (int i = 0; i < n; i++) {
        ctn_var *v = vars[i];
        if (v->ctx != ctx)
            return ctn_fail(CTN_EARG, "optimizer: parameter %s belongs to another context",
                            v->name);
        CTN_TRY(ctn__var_writable(v, "optimizer"));
        if (v->pool || v->parked)
            return ctn_fail(
                CTN_ESTATE,
                "optimizer: parameter %s already belongs to another optimizer; free that "
                "one first, or give the parameter to only one of them",
                v->name);
        if (!ctn__var_first(v, search))
            return ctn_fail(CTN_EARG, "optimizer: parameter %s is given twice", v->name);
    }
    return CTN_OK;
}

static int64_t padded(const ctn_var *v)
{
    return (ctn__count(&v->d) + 15) / 16 * 16;
}

int64_t ctn__pool_length(int n, ctn_var *const *vars)
{
    int64_t count = 0;
    for (int i = 0; i < n; i++) count += padded(vars[i]);
    return count;
}

/* Move v to `to`, which lies in slab. */
static void move(ctn_var *v, ctn__slab *slab, void *to)
{
    memcpy(to, v->data, ctn__bytes(&v->d));
    ctn__slab_release(v->slab);
    v->slab = slab;
    v->data = to;
}

/* Give a variable of the pool that is parked memory of its own, so that the old slab can be freed.
 * If this allocation fails, the variable stays where it is. */
static void park(ctn__pool *p, ctn_var *v)
{
    if (v->parked == p) return;
    v->parked = p;
    if (v->pool != p) return;
    ctn__plan_runner.forget(p->ctx, v); /* plans that write its gradient */
    v->pool = NULL;
    v->grad = NULL;
    ctn__slab *own = ctn__slab_new(ctn__bytes(&v->d), 1, p->ctx->threads);
    if (own) move(v, own, own->mem);
}

/* Parameters that are not trained may have any type. */
static ctn_status check_types(int n, ctn_var *const *vars)
{
    for (int i = 0; i < n; i++) {
        const ctn_dtype type = vars[i]->d.dtype, first = vars[0]->d.dtype;
        if (type != CTN_F32 && type != CTN_F64)
            return ctn_fail(
                CTN_EDTYPE,
                "optimizer: parameter %s is %s, expected f32 or f64, because it is trained",
                vars[i]->name, ctn_dtype_name(type));
        if (type != first)
            return ctn_fail(CTN_EDTYPE,
                            "optimizer: parameter %s is %s, but %s is %s; make one optimizer for "
                            "the parameters of each type",
                            vars[i]->name, ctn_dtype_name(type), vars[0]->name,
                            ctn_dtype_name(first));
    }
    return CTN_OK;
}

ctn_status ctn__pool_remake(ctn__pool *p, int n, ctn_var *const *vars, int nparked,
                            ctn_var *const *parked)
{
    ctn_context *ctx = p->ctx;
    char *g = NULL;
    ctn__slab *slab = NULL, *old = p->slab;
    CTN_TRY(check_types(n, vars));
    ctn_var **in = ctn__calloc((size_t)n + 1, sizeof *in);
    ctn_var **out = ctn__calloc((size_t)nparked + 1, sizeof *out);
    int64_t *begin = ctn__calloc((size_t)n + 1, sizeof *begin);
    if (!in || !out || !begin) goto nomem;
    for (int i = 0; i < n; i++) begin[i + 1] = begin[i] + padded(vars[i]);
    const int64_t count = begin[n];
    const ctn_dtype dtype = n > 0 ? vars[0]->d.dtype : CTN_F32;
    const size_t unit = ctn_dtype_size(dtype), bytes = (size_t)count * unit;
    slab = ctn__slab_new(bytes, n + 1, ctx->threads);
    g = ctn__aligned(bytes);
    if (!slab || !g) goto nomem;
    ctn__plan_runner.forget(ctx, p);
    ctn__zero(g, bytes, ctx->threads);
    void *old_g = p->g;
    ctn__free(p->var);
    ctn__free(p->parked);
    ctn__free(p->begin);
    p->var = in;
    p->parked = out;
    p->begin = begin;
    p->nvar = n;
    p->nparked = nparked;
    p->count = count;
    p->dtype = dtype;
    p->unit = unit;
    p->slab = slab;
    p->w = slab->mem;
    p->g = g;
    p->uid = ctx->next_uid++;
    for (int i = 0; i < n; i++) {
        ctn_var *v = in[i] = vars[i];
        void *to = ctn__pool_at(p, g, begin[i]);
        if (v->pool == p && p->contributions > 0) memcpy(to, v->grad, ctn__bytes(&v->d));
        v->grad = to;
        move(v, slab, ctn__pool_at(p, p->w, begin[i]));
        v->pool = p;
        v->parked = NULL;
    }
    for (int i = 0; i < nparked; i++)
        if ((out[i] = parked[i])) park(p, out[i]);
    ctn__free(old_g);
    ctn__slab_release(old);
    return CTN_OK;
nomem:
    if (slab) {
        atomic_store(&slab->refs, 1);
        ctn__slab_release(slab);
    }
    ctn__free(g);
    ctn__free(in);
    ctn__free(out);
    ctn__free(begin);
    return CTN_ENOMEM;
}

ctn_status ctn__pool_new(ctn__pool **out, ctn_context *ctx, int n, ctn_var *const *vars,
                         int nparked)
{
    *out = NULL;
    CTN_TRY(check_vars(ctx, n + nparked, vars));
    if (ctx->level > 0)
        return ctn_fail(CTN_ESTATE,
                        "optimizer: a scope is open; create the optimizer between scopes");
    ctn__pool *p = ctn__calloc(1, sizeof *p);
    if (!p) return CTN_ENOMEM;
    p->ctx = ctx;
    const ctn_status st = ctn__pool_remake(p, n, vars, nparked, vars + n);
    if (st < 0) {
        ctn__free(p);
        return st;
    }
    p->next = ctx->pools;
    p->link = &ctx->pools;
    if (p->next) p->next->link = &p->next;
    ctx->pools = p;
    *out = p;
    return CTN_OK;
}

ctn_status ctn__pools_arrange(ctn_context *ctx)
{
    if (!ctx->regroup) return CTN_OK;
    ctx->regroup = false; /* an owner that has to wait sets it again */
    for (ctn__pool *p = ctx->pools; p; p = p->next) {
        const ctn_status st = p->arrange ? p->arrange(p->owner) : CTN_OK;
        ctx->regroup |= st < 0;
        CTN_TRY(st);
    }
    return CTN_OK;
}

/* Waiting may apply updates, which must round as they do in a run: same floating-point mode. */
ctn_status ctn__pool_settle(ctn__pool *p)
{
    if (!p || !p->exchange || ctn__exchange_rest(p->exchange) == p->count) return CTN_OK;
    ctn__fpmode *fp = ctn__fpmode_new(1);
    if (!fp) return CTN_ENOMEM;
    ctn__fpmode_enter(fp);
    ctn_status st = ctn__exchange_need(p->exchange, p->count, 1);
    ctn__fpmode_leave(fp);
    ctn__fpmode_free(fp);
    return st;
}

/* If the group has failed, the values and the error that explains it are left as they are. */
void ctn__pool_leave(ctn__pool *p)
{
    if (p && p->exchange && !ctn__exchange_broken(p->exchange)) (void)ctn__pool_settle(p);
}

void ctn__pool_free(ctn__pool *p)
{
    if (!p) return;
    ctn__pool_leave(p);
    ctn__plan_runner.forget(p->ctx, p);
    for (int i = 0; i < p->nvar; i++) {
        if (!p->var[i]) continue;
        if (p->exchange) ctn__plan_runner.forget(p->ctx, p->var[i]);
        p->var[i]->grad = NULL;
        p->var[i]->pool = NULL;
    }
    for (int i = 0; i < p->nparked; i++)
        if (p->parked[i]) p->parked[i]->parked = NULL;
    *p->link = p->next;
    if (p->next) p->next->link = p->link;
    if (!ctn__exchange_free(p->exchange)) {
        ctn__slab_release(p->slab);
        ctn__free(p->g);
    }
    ctn__free(p->var);
    ctn__free(p->parked);
    ctn__free(p->begin);
    ctn__free(p);
}
