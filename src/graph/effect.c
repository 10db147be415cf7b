/* SPDX-License-Identifier: Apache-2.0
 *
 * Effects (rule 1): assign, backward, step, and gradients as tensors. Each is a node and an entry
 * on the tape; backward and grad are macros that the planner expands on a miss.
 */
#include "graph/graph.h"

/* Effects recorded after a failed run would never be executed, so recording them is an error. */
static ctn_status not_broken(const ctn_context *ctx, const char *who)
{
    if (ctx->broken == CTN_OK) return CTN_OK;
    return ctn_fail(ctx->broken, "%s: an earlier run in this scope failed; end the scope", who);
}

static void new_version(ctn_var *v, const char *at)
{
    if (v->done_flush != v->ctx->flushes) {
        v->done_flush = v->ctx->flushes;
        v->done = v->version;
    }
    v->version++;
    v->written_at = at;
}

ctn_status ctn_assign_at(const char *at, ctn_var *v, ctn_tensor *t)
{
    if (!t || !v)
        return ctn_error_status() < 0
                   ? ctn_error_status()
                   : ctn_fail(CTN_EARG, "assign: the variable or the tensor is NULL (%s)", at);
    ctn_context *ctx = v->ctx;
    CTN_TRY(ctn__need_scope(ctx, "assign"));
    CTN_TRY(ctn__var_writable(v, "assign"));
    CTN_TRY(not_broken(ctx, "assign"));
    CTN_TRY(ctn__usable(t, "assign", at));
    if (t->ctx != ctx)
        return ctn_fail(CTN_EARG, "assign: the tensor belongs to another context (%s)", at);
    if (t->d.dtype != v->d.dtype || !ctn__same_shape(&t->d, &v->d)) {
        char a[128], b[128];
        return ctn_fail(CTN_ESHAPE, "assign: %s is %s %s, but the tensor is %s %s (%s)", v->name,
                        ctn_dtype_name(v->d.dtype), ctn__shape_text(&v->d, a, sizeof a),
                        ctn_dtype_name(t->d.dtype), ctn__shape_text(&t->d, b, sizeof b), at);
    }
    ctn__leaf(at, v); /* sets base_version for this scope */
    ctn__node *n = ctn__node_new(ctx, CTN__EV_ASSIGN, at, 1, &t, 0);
    if (!n || !ctn__tape_add(ctx, CTN__EV_ASSIGN, v->uid, t->id)) return CTN_ENOMEM;
    n->var = v;
    new_version(v, at);
    ctx->effects++;
    return ctn__after_record(ctx);
}

ctn_status ctn__record_backward(const char *at, ctn__pool *pool, ctn_tensor *loss)
{
    ctn_context *ctx = pool->ctx;
    if (!loss)
        return ctn_error_status() < 0 ? ctn_error_status()
                                      : ctn_fail(CTN_EARG, "backward: the loss is NULL (%s)", at);
    CTN_TRY(ctn__need_scope(ctx, "backward"));
    CTN_TRY(not_broken(ctx, "backward"));
    CTN_TRY(ctn__usable(loss, "backward", at));
    if (loss->ctx != ctx)
        return ctn_fail(CTN_EARG, "backward: the loss belongs to another context (%s)", at);
    if (ctn__count(&loss->d) != 1 || !ctn__is_float(loss->d.dtype)) {
        char s[128];
        return ctn_fail(CTN_ESHAPE,
                        "backward: the loss is %s %s, expected one float; take its sum or mean "
                        "first (%s)",
                        ctn_dtype_name(loss->d.dtype), ctn__shape_text(&loss->d, s, sizeof s), at);
    }
    if (!(loss->flags & CTN__T_GRAD))
        return ctn_fail(CTN_EGRAD,
                        "backward: the loss recorded at %s depends on no trainable "
                        "parameter (%s)",
                        loss->at, at);
    /* The seed is a run-time value of the plan. Reserve its slot first: a slot without a tape entry
     * would shift the later ones. */
    ctn_scalar *seed = ctn__arena_get(&ctx->arena, sizeof *seed);
    if (!seed || !ctn__vec_reserve(&ctx->slots, ctx->slots.n + 1)) return CTN_ENOMEM;
    ctn__node *n = ctn__node_new(ctx, CTN__EV_BACKWARD, at, 1, &loss, 0);
    if (!n) return CTN_ENOMEM;
    *seed = (ctn_scalar){pool->scale, (int32_t)ctx->slots.n};
    n->scalar = seed;
    n->nscalar = 1;
    n->pool = pool;
    n->first = pool->contributions == 0;
    if (!ctn__tape_add(ctx, CTN__EV_BACKWARD, pool->uid << 1 | n->first, loss->id))
        return CTN_ENOMEM;
    ctx->slots.at[ctx->slots.n++] = pool->scale;
    loss->flags |= CTN__T_OUTPUT;
    pool->contributions++;
    ctx->effects++;
    return ctn__after_record(ctx);
}

/* A number for the set of frozen variables in the pool. The step does not write them, so its plan
 * treats them differently. 0: none is frozen. */
static uint64_t frozen_in(const ctn__pool *pool)
{
    uint64_t set = 0;
    for (int i = 0; i < pool->nvar; i++)
        if (pool->var[i] && !pool->var[i]->trainable) set = ctn__mix(set, pool->var[i]->uid + 1);
    return set;
}

ctn_status ctn__record_step(const char *at, ctn__pool *pool)
{
    ctn_context *ctx = pool->ctx;
    CTN_TRY(ctn__need_scope(ctx, "optim_step"));
    CTN_TRY(not_broken(ctx, "optim_step"));
    if (pool->contributions == 0)
        return ctn_fail(CTN_ESTATE,
                        "optim_step: no gradient was contributed; call ctn_backward first "
                        "(%s)",
                        at);
    ctn__node *n = ctn__node_new(ctx, CTN__EV_STEP, at, 0, NULL, 0);
    if (!n || !ctn__tape_add(ctx, CTN__EV_STEP, pool->uid, frozen_in(pool))) return CTN_ENOMEM;
    n->op = pool->step_op;
    n->pool = pool;
    for (int i = 0; i < pool->nvar; i++)
        if (pool->var[i] && pool->var[i]->trainable) new_version(pool->var[i], at);
    ctx->effects++;
    ctn_status st = ctn__plan_runner.flush(ctx, CTN__FLUSH_STEP);
    if (st < 0) {
        ctn__flush_failed(ctx, st);
        return st;
    }
    pool->contributions = pool->contributions_done = 0;
    ctx->step_mark = (uint32_t)ctx->tensors.n;
    ctx->step_at = at;
    return CTN_OK;
}

ctn_status ctn_grad_at(const char *at, ctn_tensor *y, int n, ctn_tensor *const *xs,
                       ctn_tensor **gxs)
{
    for (int i = 0; i < n; i++) gxs[i] = NULL;
    if (!y || n < 1 || n > CTN_MAX_OUT)
        return ctn_error_status() < 0
                   ? ctn_error_status()
                   : ctn_fail(CTN_EARG, "grad: needs y and 1 to %d inputs (%s)", CTN_MAX_OUT, at);
    ctn_context *ctx = y->ctx;
    CTN_TRY(ctn__need_scope(ctx, "grad"));
    CTN_TRY(not_broken(ctx, "grad"));
    CTN_TRY(ctn__usable(y, "grad", at));
    ctn_tensor *in[CTN_MAX_OUT + 1] = {y};
    for (int i = 0; i < n; i++) {
        if (!xs[i])
            return ctn_error_status() < 0 ? ctn_error_status()
                                          : ctn_fail(CTN_EARG, "grad: x %d is NULL (%s)", i, at);
        if (!(xs[i]->flags & CTN__T_GRAD))
            return ctn_fail(CTN_EGRAD,
                            "grad: x %d, recorded at %s, carries no gradient; use "
                            "ctn_with_grad or a parameter (%s)",
                            i, xs[i]->at, at);
        in[i + 1] = xs[i];
    }
    ctn__node *node = ctn__node_new(ctx, CTN__EV_GRAD, at, n + 1, in, n);
    if (!node || !ctn__tape_add(ctx, CTN__EV_GRAD, y->id, (uint64_t)n)) return CTN_ENOMEM;
    node->needs_grad = true;
    for (int i = 0; i < n; i++) {
        if (!ctn__tape_add(ctx, CTN__EV_GRAD, xs[i]->id, ctx->grad_on)) return CTN_ENOMEM;
        ctn_tensor *t = ctn__tensor_new(ctx, at);
        if (!t) return CTN_ENOMEM;
        t->node = node;
        t->out = (uint16_t)i;
        t->d = xs[i]->d;
        ctn__plain(&t->d);
        if (ctx->grad_on) t->flags = CTN__T_GRAD;
        node->out[i] = gxs[i] = t;
    }
    return ctn__after_record(ctx);
}
