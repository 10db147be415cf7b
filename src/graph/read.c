/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading values: flush, read, item, data, keep and retain. A read in mid-step runs everything
 * recorded so far (rule 5); results that are still visible then live in the scope's storage.
 */
#include <math.h>

#include "graph/graph.h"

ctn_status ctn_flush(ctn_context *ctx)
{
    CTN_TRY(ctn__need_scope(ctx, "flush"));
    if (ctx->broken < 0)
        return ctn_fail(ctx->broken, "flush: an earlier run in this scope failed; end the scope");
    if (ctx->flushed_nodes == ctx->nodes.n) return CTN_OK;
    if (!ctn__tape_add(ctx, CTN__EV_FLUSH, CTN__FLUSH_READ, 0)) return CTN_ENOMEM;
    ctn_status st = ctn__plan_runner.flush(ctx, CTN__FLUSH_READ);
    if (st < 0) ctn__flush_failed(ctx, st);
    return st;
}

/* Copy the value of a variable's leaf. The entry on the tape makes later plans read the copy. */
static ctn_status copy_leaf(ctn_tensor *t)
{
    ctn_context *ctx = t->ctx;
    CTN_TRY(ctn__pool_settle(t->var->pool));
    if (!ctn__tape_add(ctx, CTN__EV_LEAF, t->id, 1)) return CTN_ENOMEM;
    t->data = ctn__storage_get(&ctx->storage, ctn__bytes(&t->d));
    if (!t->data) return CTN_ENOMEM;
    memcpy(t->data, t->var->data, ctn__bytes(&t->d));
    return CTN_OK;
}

/* Called before a flush: save a leaf that recorded writes are about to overwrite. */
static ctn_status save_leaf(ctn_tensor *t)
{
    const ctn_var *v = t->var;
    if (t->version == v->version) return CTN_OK;
    if (t->version == v->done) return copy_leaf(t); /* not yet overwritten */
    if (!ctn__tape_add(t->ctx, CTN__EV_KEEP, t->id, CTN__T_KEPT)) return CTN_ENOMEM;
    t->flags |= CTN__T_KEPT; /* it lies between two recorded writes: the plan outputs it */
    return CTN_OK;
}

ctn_status ctn__materialise(ctn_tensor *t, const char *who)
{
    if (!t)
        return ctn_error_status() < 0 ? ctn_error_status()
                                      : ctn_fail(CTN_EARG, "%s: no tensor", who);
    ctn_context *ctx = t->ctx;
    CTN_TRY(ctn__need_scope(ctx, who));
    CTN_TRY(ctn__usable(t, who, t->at));
    /* a failed run may have allocated memory for results that it did not compute */
    bool failed = ctx->broken < 0 && t->node && t->id >= ctx->flushed_tensors;
    if (t->data && !failed) return CTN_OK;
    if (t->var) CTN_TRY(save_leaf(t));
    CTN_TRY(ctn_flush(ctx));
    if (t->var && !t->data) CTN_TRY(copy_leaf(t));
    if (!t->data)
        return ctn_fail(CTN_ESTATE, "%s: the value recorded at %s was not computed", who, t->at);
    return CTN_OK;
}

ctn_status ctn_read(ctn_tensor *t, void *dst, size_t bytes)
{
    CTN_TRY(ctn__materialise(t, "read"));
    if (bytes != ctn__bytes(&t->d)) {
        char s[128];
        return ctn_fail(CTN_EARG, "read: got a buffer of %zu bytes, but %s %s has %zu", bytes,
                        ctn_dtype_name(t->d.dtype), ctn__shape_text(&t->d, s, sizeof s),
                        ctn__bytes(&t->d));
    }
    ctn_desc plain = t->d;
    ctn__plain(&plain);
    ctn__copy_strided(dst, &plain, t->data, &t->d);
    return CTN_OK;
}

double ctn_item(ctn_tensor *t)
{
    if (ctn__materialise(t, "item") < 0) return NAN;
    if (ctn__count(&t->d) != 1) {
        char s[128];
        ctn_fail(CTN_ESHAPE, "item: the tensor is %s, expected one element",
                 ctn__shape_text(&t->d, s, sizeof s));
        return NAN;
    }
    return ctn__elem_get(t->data, t->d.dtype, 0);
}

const void *ctn_data(ctn_tensor *t)
{
    if (ctn__materialise(t, "data") < 0) return NULL;
    if (ctn__is_plain(&t->d)) return t->data;
    ctn_desc plain = t->d;
    ctn__plain(&plain);
    void *p = ctn__storage_get(&t->ctx->storage, ctn__bytes(&plain));
    if (p) ctn__copy_strided(p, &plain, t->data, &t->d);
    return p;
}

int ctn_tensor_text(ctn_tensor *t, char *buf, size_t n)
{
    if (ctn__materialise(t, "tensor_text") < 0) return ctn_error_status();
    return ctn__tensor_format(&t->d, t->data, buf, n);
}

static ctn_tensor *keep(ctn_tensor *t, uint8_t flag)
{
    if (!t) return NULL;
    ctn_context *ctx = t->ctx;
    if (ctn__need_scope(ctx, "keep") < 0 || ctn__usable(t, "keep", t->at) < 0) return NULL;
    if (!ctn__tape_add(ctx, CTN__EV_KEEP, t->id, flag)) return NULL;
    t->flags |= flag;
    /* a leaf recorded before the last run is not considered when outputs are chosen: copy it now */
    if (t->var && !t->data && t->id < ctx->flushed_tensors && copy_leaf(t) < 0) return NULL;
    return t;
}

ctn_tensor *ctn_keep(ctn_tensor *t)
{
    return keep(t, CTN__T_KEPT);
}

ctn_tensor *ctn_keep_graph(ctn_tensor *t)
{
    return keep(t, CTN__T_KEPT_GRAPH);
}

ctn_status ctn_retain(ctn_retained **r, ctn_tensor *t)
{
    if (!t)
        return ctn_error_status() < 0 ? ctn_error_status()
                                      : ctn_fail(CTN_EARG, "retain: no tensor");
    ctn_context *ctx = t->ctx;
    CTN_TRY(ctn__need_scope(ctx, "retain"));
    CTN_TRY(ctn__usable(t, "retain", t->at));
    if (!*r) {
        ctn_retained *n = ctn__calloc(1, sizeof *n);
        if (!n) return CTN_ENOMEM;
        n->ctx = ctx;
        n->current = -1;
        n->next = ctx->retained;
        n->link = &ctx->retained;
        if (n->next) n->next->link = &n->next;
        ctx->retained = n;
        *r = n;
    }
    if ((*r)->ctx != ctx)
        return ctn_fail(CTN_EARG, "retain: the tensor belongs to another context");
    if (!t->node) { /* a leaf: make it a value of its own */
        t = ctn_detach(t);
        if (!t) return ctn_error_status();
    }
    if (!ctn__tape_add(ctx, CTN__EV_RETAIN, t->id, 0)) return CTN_ENOMEM;
    t->flags |= CTN__T_OUTPUT;
    if (!t->data) ctx->effects++;
    (*r)->pending = t;
    return CTN_OK;
}

ctn_tensor *ctn_retained_value_at(const char *at, ctn_retained *r)
{
    if (!r || r->current < 0) {
        ctn_fail(CTN_ESTATE, "retained_value: no scope that retained a value has ended yet (%s)",
                 at);
        return NULL;
    }
    return ctn_input_at(at, r->ctx, r->buf[r->current], r->d.dtype, r->d.ndim, r->d.dim);
}

void ctn_retained_free(ctn_retained *r)
{
    if (!r) return;
    *r->link = r->next;
    if (r->next) r->next->link = r->link;
    ctn__free(r->buf[0]);
    ctn__free(r->buf[1]);
    ctn__free(r);
}

int ctn_ndim(const ctn_tensor *t)
{
    return t ? t->d.ndim : -1;
}

int64_t ctn_dim(const ctn_tensor *t, int axis)
{
    int a = t ? ctn__axis(t->d.ndim, axis) : -1;
    return a < 0 ? -1 : t->d.dim[a];
}

int64_t ctn_count(const ctn_tensor *t)
{
    return t ? ctn__count(&t->d) : -1;
}

ctn_dtype ctn_dtype_of(const ctn_tensor *t)
{
    return t ? t->d.dtype : (ctn_dtype)0;
}
