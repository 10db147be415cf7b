/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables: named values that outlive scopes. A variable owns its memory until an optimizer moves
 * it into a pool. Every write makes a new version (rule 2).
 */
#include "graph/graph.h"

ctn__slab *ctn__slab_new(size_t bytes, int refs, int threads)
{
    ctn__slab *s = ctn__malloc(sizeof *s);
    if (!s) return NULL;
    atomic_init(&s->refs, refs);
    s->mem = ctn__aligned(bytes);
    if (!s->mem) {
        ctn__free(s);
        return NULL;
    }
    ctn__zero(s->mem, bytes, threads);
    return s;
}

void ctn__slab_release(ctn__slab *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) > 1) return;
    ctn__free(s->mem);
    ctn__free(s);
}

static void release_shared(ctn__shared *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) > 1) return;
    ctn__plan_runner.free_copies(s->copies);
    pthread_mutex_destroy(&s->lock);
    ctn__slab_release(s->slab);
    ctn__free(s);
}

ctn_status ctn__var_writable(const ctn_var *v, const char *who)
{
    if (!v->shared) return CTN_OK;
    return ctn_fail(CTN_ESTATE,
                    "%s: %s is shared with other contexts (ctn_module_share) and cannot be written",
                    who, v->name);
}

ctn_status ctn__var_share(ctn_var *to, ctn_var *from)
{
    if (from->pool || from->parked)
        return ctn_fail(CTN_ESTATE,
                        "module_share: parameter %s belongs to an optimizer; free the optimizer "
                        "first",
                        from->name);
    if (!from->shared) {
        ctn__shared *s = ctn__calloc(1, sizeof *s);
        if (!s) return CTN_ENOMEM;
        atomic_init(&s->refs, 1);
        pthread_mutex_init(&s->lock, NULL);
        s->slab = from->slab;
        from->slab = NULL;
        from->shared = s;
    }
    atomic_fetch_add(&from->shared->refs, 1);
    ctn__slab_release(to->slab);
    to->slab = NULL;
    to->shared = from->shared;
    to->data = from->data;
    return CTN_OK;
}

ctn_status ctn_var_new(ctn_var **out, ctn_context *ctx, const char *name, ctn_var_kind kind,
                       ctn_dtype dtype, int ndim, const int64_t *dims)
{
    *out = NULL;
    if (!ctx || !name) return ctn_fail(CTN_EARG, "var_new: needs a context and a name");
    ctn_desc d = {0};
    CTN_TRY(ctn__desc_set(&d, name, dtype, ndim, dims));
    ctn_var *v = ctn__calloc(1, sizeof *v);
    if (!v) return CTN_ENOMEM;
    v->ctx = ctx;
    v->kind = kind;
    v->d = d;
    v->trainable = kind == CTN_PARAM;
    v->name = ctn__strdup(name);
    v->slab = ctn__slab_new(ctn__bytes(&d), 1, ctx->threads);
    if (!v->name || !v->slab) {
        ctn__free(v->name);
        ctn__slab_release(v->slab);
        ctn__free(v);
        return CTN_ENOMEM;
    }
    v->data = v->slab->mem;
    v->uid = ctx->next_var++;
    v->next = ctx->vars;
    v->link = &ctx->vars;
    if (v->next) v->next->link = &v->next;
    ctx->vars = v;
    *out = v;
    return CTN_OK;
}

void ctn_var_free(ctn_var *v)
{
    if (!v) return;
    if (v->pool) { /* the pool remains, without this variable */
        ctn__pool_leave(v->pool);
        v->pool->var[ctn__pool_find(v->pool, v)] = NULL;
    }
    for (int i = 0; v->parked && i < v->parked->nparked; i++)
        if (v->parked->parked[i] == v) v->parked->parked[i] = NULL;
    ctn__plan_runner.forget(v->ctx, v);
    *v->link = v->next;
    if (v->next) v->next->link = v->link;
    ctn__slab_release(v->slab);
    release_shared(v->shared);
    ctn__free(v->name);
    ctn__free(v->derived);
    ctn__free(v);
}

ctn_status ctn__var_convert(ctn_var *v, ctn_dtype dtype)
{
    ctn_desc d = v->d;
    const int64_t n = ctn__count(&d);
    d.dtype = dtype;
    if (dtype == v->d.dtype) return CTN_OK;
    CTN_TRY(ctn__var_writable(v, "converting the type"));
    if (v->pool)
        return ctn_fail(CTN_ESTATE,
                        "parameter %s belongs to an optimizer; free the optimizer first", v->name);
    ctn__slab *to = ctn__slab_new(ctn__bytes(&d), 1, v->ctx->threads);
    if (!to) return CTN_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        ctn__elem_set(to->mem, dtype, i, ctn__elem_get(v->data, v->d.dtype, i));
    ctn__plan_runner.forget(v->ctx, v);
    ctn__slab_release(v->slab);
    v->slab = to;
    v->data = to->mem;
    v->d = d;
    v->version++;
    return CTN_OK;
}

const char *ctn_var_name(const ctn_var *v)
{
    return v->name;
}

const ctn_desc *ctn_var_desc(const ctn_var *v)
{
    return &v->d;
}

ctn_var_kind ctn_var_kind_of(const ctn_var *v)
{
    return v->kind;
}

ctn_context *ctn_var_context(const ctn_var *v)
{
    return v->ctx;
}

void ctn_var_set_trainable(ctn_var *v, int on)
{
    const bool now = v->kind == CTN_PARAM && on;
    v->ctx->regroup |= now != v->trainable;
    v->trainable = now;
}

int ctn_var_trainable(const ctn_var *v)
{
    return v->trainable;
}

static ctn_status check_bytes(const char *who, const ctn_var *v, size_t bytes)
{
    if (bytes == ctn__bytes(&v->d)) return CTN_OK;
    char s[128];
    return ctn_fail(CTN_EARG, "%s: got a buffer of %zu bytes, but %s %s %s has %zu", who, bytes,
                    v->name, ctn_dtype_name(v->d.dtype), ctn__shape_text(&v->d, s, sizeof s),
                    ctn__bytes(&v->d));
}

static ctn_status run_pending(ctn_var *v)
{
    if (v->ctx->level > 0 && v->ctx->broken == CTN_OK) CTN_TRY(ctn_flush(v->ctx));
    return ctn__pool_settle(v->pool);
}

ctn_status ctn_var_get(ctn_var *v, void *dst, size_t bytes)
{
    CTN_TRY(check_bytes("var_get", v, bytes));
    CTN_TRY(run_pending(v));
    memcpy(dst, v->data, bytes);
    return CTN_OK;
}

ctn_status ctn_var_set(ctn_var *v, const void *src, size_t bytes)
{
    CTN_TRY(check_bytes("var_set", v, bytes));
    CTN_TRY(ctn__var_writable(v, "var_set"));
    CTN_TRY(run_pending(v));
    memcpy(v->data, src, bytes);
    v->version++;
    v->written_at = "ctn_var_set";
    return CTN_OK;
}

ctn_status ctn_var_grad(ctn_var *v, void *dst, size_t bytes)
{
    CTN_TRY(check_bytes("var_grad", v, bytes));
    CTN_TRY(run_pending(v));
    if (!v->pool || v->pool->contributions_done == 0)
        return ctn_fail(CTN_ESTATE, "var_grad: %s has no gradient; call ctn_backward first",
                        v->name);
    memcpy(dst, v->grad, bytes);
    return CTN_OK;
}
