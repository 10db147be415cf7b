/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools: the parameters of one optimizer in one contiguous range, their gradients in another of the same
 * shape, so that one sweep updates all and a bucket of gradients is a plain piece of memory. Each variable
 * starts at a multiple of 16 elements; the padding stays zero. The values stay where they are when the pool goes:
 * variables share the slab.
 */
#include "graph/graph.h"

static ctn_status check_vars(ctn_context *ctx, int n, ctn_var *const *vars)
{
    for (int i = 0; i < n; i++) {
        const ctn_var *v = vars[i];
        if (v->ctx != ctx)
            return ctn_fail(CTN_EARG, "optimizer: parameter %s is of another context", v->name);
        if (v->pool)
            return ctn_fail(
                CTN_ESTATE,
                "optimizer: parameter %s belongs to another optimizer already; free that "
                "one first or give the parameter to one of them",
                v->name);
        if (v->d.dtype != CTN_F32)
            return ctn_fail(CTN_EDTYPE, "optimizer: parameter %s is %s, f32 is needed", v->name,
                            ctn_dtype_name(v->d.dtype));
        for (int j = 0; j < i; j++)
            if (vars[j] == v)
                return ctn_fail(CTN_EARG, "optimizer: parameter %s is given twice", v->name);
    }
    return CTN_OK;
}

ctn_status ctn__pool_new(ctn__pool **out, ctn_context *ctx, int n, ctn_var *const *vars)
{
    *out = NULL;
    CTN_TRY(check_vars(ctx, n, vars));
    if (ctx->level > 0) return ctn_fail(CTN_ESTATE, "optimizer: make it before the scope begins");
    ctn__slab *slab = NULL;
    ctn__pool *p = ctn__calloc(1, sizeof *p);
    if (!p) return CTN_ENOMEM;
    p->ctx = ctx;
    p->nvar = n;
    p->var = ctn__calloc((size_t)n + 1, sizeof *p->var);
    p->begin = ctn__calloc((size_t)n + 1, sizeof *p->begin);
    if (!p->var || !p->begin) goto nomem;
    for (int i = 0; i < n; i++) {
        p->begin[i] = p->count;
        p->count += (ctn__count(&vars[i]->d) + 15) / 16 * 16;
    }
    p->begin[n] = p->count;
    slab = ctn__slab_new((size_t)p->count * sizeof(float), n + 1);
    p->g = ctn__aligned((size_t)p->count * sizeof(float));
    if (!slab || !p->g) goto nomem;
    p->slab = slab;
    p->w = slab->mem;
    ctn__zero(p->g, (size_t)p->count * sizeof(float), ctx->threads);
    ctn__zero(p->w, (size_t)p->count * sizeof(float), ctx->threads);
    for (int i = 0; i < n; i++) {
        ctn_var *v = p->var[i] = vars[i];
        memcpy(p->w + p->begin[i], v->data, ctn__bytes(&v->d));
        ctn__slab_release(v->slab);
        v->slab = slab;
        v->data = p->w + p->begin[i];
        v->grad = p->g + p->begin[i];
        v->pool = p;
    }
    p->uid = ctx->next_uid++;
    p->next = ctx->pools;
    p->link = &ctx->pools;
    if (p->next) p->next->link = &p->next;
    ctx->pools = p;
    *out = p;
    return CTN_OK;
nomem:
    if (slab) {
        slab->refs = 1;
        ctn__slab_release(slab);
    }
    ctn__free(p->g);
    ctn__free(p->var);
    ctn__free(p->begin);
    ctn__free(p);
    return CTN_ENOMEM;
}

/* Updates round as they would in a run. */
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

/* Values of a broken group stay as they are, and so does the error that tells of it. */
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
    *p->link = p->next;
    if (p->next) p->next->link = p->link;
    if (!ctn__exchange_free(p->exchange)) {
        ctn__slab_release(p->slab);
        ctn__free(p->g);
    }
    ctn__free(p->var);
    ctn__free(p->begin);
    ctn__free(p);
}
