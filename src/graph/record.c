/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording of leaves and op calls. This is the hot path of every step: it allocates from the arena
 * only, calls no malloc once the vectors have grown, and makes no indirect call except infer. Every
 * fact that a plan depends on goes on the tape.
 */
#include "graph/graph.h"

/* Out of memory has left an incomplete entry, and such a record must not run. */
static void record_failed(ctn_context *ctx)
{
    if (!ctx->emitting) ctn__flush_failed(ctx, CTN_ENOMEM);
}

static bool tape_room(ctn_context *ctx, size_t words)
{
    bool ok = ctn__vec_reserve(&ctx->tape, ctx->tape.n + words);
    if (!ok) record_failed(ctx);
    return ok;
}

bool ctn__tape_add(ctn_context *ctx, ctn__event ev, uint64_t a, uint64_t b)
{
    if (ctx->emitting) return true;
    if (!tape_room(ctx, 2)) return false;
    ctx->tape.at[ctx->tape.n++] = (uint64_t)ev | a << 8;
    ctx->tape.at[ctx->tape.n++] = b;
    return true;
}

static bool tape_desc(ctn_context *ctx, const ctn_desc *d)
{
    size_t need = 1 + 2 * (size_t)d->ndim;
    if (!tape_room(ctx, need)) return false;
    uint64_t *p = ctx->tape.at + ctx->tape.n;
    *p++ = (uint64_t)d->dtype | (uint64_t)d->ndim << 8 | (uint64_t)d->layout << 16;
    for (int i = 0; i < d->ndim; i++) {
        *p++ = (uint64_t)d->dim[i];
        *p++ = (uint64_t)d->stride[i];
    }
    ctx->tape.n += need;
    return true;
}

ctn_tensor *ctn__tensor_new(ctn_context *ctx, const char *at)
{
    ctn_tensor *t = ctn__arena_get(&ctx->arena, sizeof *t);
    if (!t) {
        record_failed(ctx);
        return NULL;
    }
    t->ctx = ctx;
    t->node = NULL;
    t->id =
        ctx->emitting ? (uint32_t)ctx->emitted_tensors.n | CTN__EMITTED : (uint32_t)ctx->tensors.n;
    t->out = 0;
    t->flags = 0;
    t->level = (uint8_t)(ctx->emitting ? 255 : ctx->level);
    t->at = at;
    t->data = NULL;
    t->var = NULL;
    t->version = 0;
    t->alias = t->grad = NULL;
    t->mark = 0;
    t->d.layout = 0;
    bool ok =
        ctx->emitting ? ctn__vec_push(&ctx->emitted_tensors, t) : ctn__vec_push(&ctx->tensors, t);
    if (!ok) record_failed(ctx);
    return ok ? t : NULL;
}

ctn__node *ctn__node_new(ctn_context *ctx, ctn__event ev, const char *at, int nin,
                         ctn_tensor *const *in, int nout)
{
    ctn__node *n =
        ctn__arena_get(&ctx->arena, sizeof *n + (size_t)(nin + nout) * sizeof(ctn_tensor *));
    if (!n) return NULL;
    memset(n, 0, sizeof *n);
    n->event = ev;
    n->at = at;
    n->nin = (uint16_t)nin;
    n->nout = (uint16_t)nout;
    n->in = (ctn_tensor **)(n + 1);
    n->out = n->in + nin;
    n->emitted = ctx->emitting;
    n->place = ctx->emitting ? ctx->expanding + ctx->emitted.n + 1 : (uint64_t)ctx->nodes.n << 32;
    if (ctx->recompute > 0 && !ctx->emitting) n->block = ctx->blocks;
    for (int i = 0; i < nin; i++) n->in[i] = in[i];
    bool ok = ctx->emitting ? ctn__vec_push(&ctx->emitted, n) : ctn__vec_push(&ctx->nodes, n);
    return ok ? n : NULL;
}

/* ---- leaves --------------------------------------------------------------------------------- */

ctn_tensor *ctn_input_strided_at(const char *at, ctn_context *ctx, const void *data,
                                 ctn_dtype dtype, int ndim, const int64_t *dims,
                                 const int64_t *strides)
{
    if (ctn__need_scope(ctx, "input") < 0) return NULL;
    ctn_desc d = {0};
    if (ctn__desc_set(&d, "input", dtype, ndim, dims) < 0) return NULL;
    if (strides)
        for (int i = 0; i < ndim; i++) d.stride[i] = strides[i];
    if (!data && ctn__count(&d) > 0) {
        ctn_fail(CTN_EARG, "input: data is NULL (%s)", at);
        return NULL;
    }
    ctn_tensor *t = ctn__tensor_new(ctx, at);
    if (!t) return NULL;
    t->d = d;
    static const char nothing; /* address of an empty input without memory */
    const void *from = data ? data : &nothing;
    t->data = (void *)(uintptr_t)from; /* never written: inputs are read-only in every plan */
    if (!ctn__tape_add(ctx, CTN__EV_INPUT, 0, 0) || !tape_desc(ctx, &d)) return NULL;
    return t;
}

ctn_tensor *ctn_input_at(const char *at, ctn_context *ctx, const void *data, ctn_dtype dtype,
                         int ndim, const int64_t *dims)
{
    return ctn_input_strided_at(at, ctx, data, dtype, ndim, dims, NULL);
}

ctn_tensor *ctn_number_at(const char *at, ctn_context *ctx, double value)
{
    if (ctn__need_scope(ctx, "number") < 0) return NULL;
    ctn_tensor *t = ctn__tensor_new(ctx, at);
    if (!t || !ctn__tape_add(ctx, CTN__EV_NUMBER, 0, 0)) return NULL;
    t->number = (float)value;
    t->data = &t->number;
    t->d.dtype = CTN_F32;
    t->d.ndim = 0;
    return t;
}

ctn_tensor *ctn_use_at(const char *at, ctn_var *v)
{
    ctn_tensor *t = ctn__leaf(at, v);
    return t && v->derive ? v->derive(at, v->derived, t) : t;
}

ctn_tensor *ctn__leaf(const char *at, ctn_var *v)
{
    if (!v) {
        if (ctn_error_status() == CTN_OK) ctn_fail(CTN_EARG, "use: no variable (%s)", at);
        return NULL;
    }
    ctn_context *ctx = v->ctx;
    if (ctn__need_scope(ctx, "use") < 0) return NULL;
    bool grad = v->kind == CTN_PARAM && v->trainable && ctx->grad_on;
    if (v->scope_id != ctx->scope_id) {
        v->scope_id = ctx->scope_id;
        v->base_version = v->version;
        v->leaf = NULL;
    }
    if (v->leaf && v->leaf->version == v->version && v->leaf_grad == grad) return v->leaf;
    ctn_tensor *t = ctn__tensor_new(ctx, at);
    if (!t) return NULL;
    t->d = v->d;
    t->var = v;
    t->version = v->version;
    if (grad) t->flags |= CTN__T_GRAD;
    /* the uid stands for the shape too, which never changes */
    const uint64_t writes = v->version - v->base_version, type = (uint64_t)v->d.dtype << 56;
    if (!ctn__tape_add(ctx, CTN__EV_VAR, v->uid << 1 | grad, writes | type)) return NULL;
    v->leaf = t;
    v->leaf_grad = grad;
    return t;
}

ctn_tensor *ctn_with_grad(ctn_tensor *t)
{
    if (!t) return NULL;
    ctn_tensor *r = ctn_detach(t);
    if (!r || !ctn__tape_add(t->ctx, CTN__EV_LEAF, r->id, 0)) return NULL;
    r->flags |= CTN__T_GRAD;
    return r;
}

/* ---- op calls ------------------------------------------------------------------------------- */

ctn_status ctn__usable(const ctn_tensor *t, const char *who, const char *at)
{
    const ctn_context *ctx = t->ctx;
    if (t->id >= ctx->tensors.n || ctx->tensors.at[t->id] != t)
        return ctn_fail(CTN_EGONE, "%s: the tensor belongs to a scope that has ended", who);
    if (t->node == NULL && !t->var) return CTN_OK; /* input, number, retained value */
    if (t->var) {
        if (t->version == t->var->version || t->data) return CTN_OK;
        if (t->var->done_flush == ctx->flushes && t->version >= t->var->done) return CTN_OK;
        return ctn_fail(CTN_EGONE,
                        "%s: the value of %s read at %s was overwritten at %s; read the variable "
                        "again, or keep the value before the write (%s)",
                        who, t->var->name, t->at, t->var->written_at ? t->var->written_at : "?",
                        at);
    }
    if (t->level == 255)
        return ctn_fail(CTN_EGONE,
                        "%s: the tensor recorded at %s belongs to an inner scope that has ended; "
                        "return it with ctn_scope_return (%s)",
                        who, t->at, at);
    if (t->id >= ctx->flushed_tensors) return CTN_OK;
    bool kept = (t->flags & (CTN__T_KEPT | CTN__T_KEPT_GRAPH | CTN__T_OUTPUT)) != 0;
    if (t->data && (kept || t->id >= ctx->step_mark)) return CTN_OK;
    return ctn_fail(CTN_EGONE,
                    "%s: the tensor recorded at %s is gone after the step at %s; keep it "
                    "before the step (%s)",
                    who, t->at, ctx->step_at ? ctx->step_at : "an inner scope", at);
}

static ctn_status check_inputs(const char *at, ctn_context *ctx, const ctn_op *op, int nin,
                               ctn_tensor *const *in)
{
    if (nin > CTN_MAX_IN || (op->nin >= 0 && nin != op->nin))
        return ctn_fail(CTN_EARG, "%s: got %d inputs, expected %d (%s)", op->name, nin,
                        op->nin >= 0 ? op->nin : CTN_MAX_IN, at);
    for (int i = 0; i < nin; i++) {
        const ctn_tensor *t = in[i];
        if (t->ctx != ctx)
            return ctn_fail(CTN_EARG, "%s: input %d belongs to another context (%s)", op->name, i,
                            at);
        if (ctx->emitting) continue;
        if (t->id >= ctx->tensors.n || ctx->tensors.at[t->id] != t)
            return ctn_fail(CTN_EGONE, "%s: input %d belongs to a scope that has ended (%s)",
                            op->name, i, at);
        if ((t->node || t->var) && ctn__usable(t, op->name, at) < 0) return ctn_error_status();
    }
    return CTN_OK;
}

static bool tape_op(ctn_context *ctx, const ctn__node *n)
{
    size_t need = 2 + (size_t)(n->nin + 1) / 2 + n->nattr;
    if (!tape_room(ctx, need)) return false;
    uint64_t *p = ctx->tape.at + ctx->tape.n;
    unsigned flags =
        (unsigned)ctx->grad_on | ((n->op->flags & CTN_OP_TRAIN) && ctx->training ? 2u : 0);
    *p++ = (uint64_t)CTN__EV_OP | (uint64_t)flags << 8 |
           __atomic_load_n(&n->op->uid, __ATOMIC_RELAXED) << 16; /* another thread may set it */
    *p++ = (uint64_t)n->nin | (uint64_t)n->nattr << 16 | (uint64_t)n->nscalar << 32;
    for (int i = 0; i < n->nin; i += 2)
        *p++ = (uint64_t)n->in[i]->id | (uint64_t)(i + 1 < n->nin ? n->in[i + 1]->id : UINT32_MAX)
                                            << 32;
    for (int i = 0; i < n->nattr; i++) *p++ = (uint64_t)n->attr[i];
    ctx->tape.n += need;
    return true;
}

static ctn_status copy_args(ctn_context *ctx, ctn__node *n, const ctn_op_args *args)
{
    if (!args) return CTN_OK;
    n->nattr = (uint16_t)args->nattr;
    n->nscalar = (uint16_t)args->nscalar;
    if (args->nattr > 0) {
        n->attr = ctn__arena_get(&ctx->arena, (size_t)args->nattr * sizeof(int64_t));
        if (!n->attr) return CTN_ENOMEM;
        memcpy(n->attr, args->attr, (size_t)args->nattr * sizeof(int64_t));
    }
    if (args->nscalar > 0) {
        n->scalar = ctn__arena_get(&ctx->arena, (size_t)args->nscalar * sizeof(ctn_scalar));
        if (!n->scalar) return CTN_ENOMEM;
        for (int i = 0; i < args->nscalar; i++) {
            n->scalar[i] = args->scalar[i];
            if (ctx->emitting) continue;
            n->scalar[i].slot = (int32_t)ctx->slots.n;
            if (!ctn__vec_push(&ctx->slots, args->scalar[i].value)) return CTN_ENOMEM;
        }
    }
    return CTN_OK;
}

/* Number an op at its first use. Atomic: contexts in several threads may share a custom op. */
static void give_uid(ctn_op *op)
{
    static uint64_t last;
    uint64_t none = 0, uid = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(&op->uid, &none, uid, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static ctn_status infer(const char *at, const ctn_op *op, int nin, ctn_tensor *const *in,
                        const ctn_op_args *args, ctn_infer_args *ia, const ctn_desc **din)
{
    for (int i = 0; i < nin; i++) din[i] = &in[i]->d;
    ia->name = op->name;
    ia->nin = nin;
    ia->nout = op->nout;
    ia->nattr = args ? args->nattr : 0;
    ia->in = din;
    ia->attr = args ? args->attr : NULL;
    ctn_status st = op->infer(ia);
    if (st < 0) {
        if (ctn_error_status() == CTN_OK)
            ctn_fail(st, "%s: cannot infer the type and shape of its result", op->name);
    }
    for (int i = 0; i < ia->nout && st >= 0; i++) st = ctn__desc_check(&ia->out[i], op->name);
    if (st < 0) ctn_error_trace(st, at, 0, op->name);
    return st;
}

ctn_status ctn_apply_at(const char *at, ctn_context *ctx, ctn_op *op, int nin,
                        ctn_tensor *const *in, const ctn_op_args *args, ctn_tensor **out)
{
    for (int i = 0; i < op->nout; i++) out[i] = NULL;
    for (int i = 0; i < nin; i++)
        if (!in[i])
            return ctn_error_status() < 0
                       ? ctn_error_status()
                       : ctn_fail(CTN_EARG, "%s: input %d is NULL (%s)", op->name, i, at);
    if (!ctx && nin > 0) ctx = in[0]->ctx;
    if (!ctx) return ctn_fail(CTN_EARG, "%s: no context (%s)", op->name, at);
    CTN_TRY(ctn__need_scope(ctx, op->name));
    CTN_TRY(check_inputs(at, ctx, op, nin, in));
    if (ctx->broken < 0)
        return ctn_fail(ctx->broken, "%s: an earlier run in this scope failed; end the scope",
                        op->name);
    if (__atomic_load_n(&op->uid, __ATOMIC_RELAXED) == 0) give_uid(op);

    const ctn_desc *din[CTN_MAX_IN];
    ctn_desc dout[CTN_MAX_OUT];
    ctn_infer_args ia = {.out = dout};
    for (int i = 0; i < op->nout; i++) dout[i].layout = 0;
    if (infer(at, op, nin, in, args, &ia, din) < 0) return ctn_error_status();

    ctn__node *n = ctn__node_new(ctx, CTN__EV_OP, at, nin, in, ia.nout);
    if (!n) return CTN_ENOMEM;
    n->op = op;
    if (copy_args(ctx, n, args) < 0) {
        record_failed(ctx);
        return CTN_ENOMEM;
    }
    if (op->flags & CTN_OP_RANDOM) /* emitted ops do not count: on a hit nothing is emitted */
        n->ordinal = ctx->emitting ? (uint64_t)1 << 63 | ctx->emitted_tensors.n : ctx->ordinals++;
    for (int i = 0; i < nin && op->order != 0; i++)
        n->needs_grad |= (in[i]->flags & CTN__T_GRAD) != 0;
    n->needs_grad |= (op->flags & CTN_OP_REMOTE) != 0;
    n->needs_grad &= ctx->grad_on || ctx->emitting;
    for (int i = 0; i < ia.nout; i++) {
        ctn_tensor *t = ctn__tensor_new(ctx, at);
        if (!t) return CTN_ENOMEM;
        t->node = n;
        t->out = (uint16_t)i;
        t->d = dout[i];
        ctn__plain(&t->d);
        if (n->needs_grad && ctn__is_float(t->d.dtype)) t->flags = CTN__T_GRAD;
        n->out[i] = out[i] = t;
    }
    if (ctx->emitting) return CTN_OK;
    ctx->recorded_ops++;
    if (!tape_op(ctx, n)) return CTN_ENOMEM;
    ctx->effects += (op->flags & CTN_OP_ORDERED) != 0;
    if (ctx->eager) return ctn__after_record(ctx);
    return CTN_OK;
}

ctn_tensor *ctn__apply1(const char *at, ctn_context *ctx, ctn_op *op, int nin,
                        ctn_tensor *const *in, int nattr, const int64_t *attr, int nscalar,
                        const ctn_scalar *scalar)
{
    ctn_tensor *out[CTN_MAX_OUT];
    out[0] = NULL;
    ctn_op_args a = {nattr, nscalar, attr, scalar};
    return ctn_apply_at(at, ctx, op, nin, in, &a, out) < 0 ? NULL : out[0];
}

ctn_status ctn__after_record(ctn_context *ctx)
{
    if (!ctx->eager || ctx->emitting) return CTN_OK;
    return ctn_flush(ctx);
}
