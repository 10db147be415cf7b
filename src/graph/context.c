/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts and scopes. A context owns the record of the open outermost scope. When that scope ends,
 * the record is dropped and its memory is reused, so a steady training loop allocates nothing.
 */
#include "graph/graph.h"

static void reset_scope(ctn_context *ctx)
{
    ctn__arena_reset(&ctx->arena);
    ctn__storage_recycle(&ctx->storage);
    ctx->tensors.n = ctx->nodes.n = ctx->tape.n = ctx->slots.n = ctx->emitted.n = 0;
    ctx->emitted_tensors.n = 0;
    ctx->ordinals = 0;
    ctx->blocks = 0;
    ctx->recompute = ctx->recompute_level = 0;
    ctx->step_mark = 0;
    ctx->step_at = NULL;
    ctx->effects = 0;
    ctx->emitting = false;
    if (ctx->flushed_tape > 0 || ctx->broken < 0) ctn__hasher_reset(ctx->hasher);
    ctx->broken = CTN_OK;
    ctx->flushed_nodes = ctx->flushed_tensors = ctx->flushed_tape = 0;
    ctx->flushes++; /* what a failed run has left is pending no more */
    ctx->scope_id++;
}

ctn_status ctn_context_new(ctn_context **out, const ctn_context_opt *opt)
{
    ctn_status st = CTN_OK;
    ctn_context *ctx = ctn__calloc(1, sizeof *ctx);
    *out = NULL;
    if (!ctx) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, fail, ctn__opt("context_new", &ctx->opt, sizeof ctx->opt, opt));
    ctn__env_check();
    const char *source;
    ctx->threads = ctx->opt.threads > 0 ? ctx->opt.threads : ctn__default_threads(&source);
    ctx->eager = ctx->opt.mode == CTN_MODE_EAGER ||
                 (ctx->opt.mode == CTN_MODE_DEFAULT && ctn__env_bool(CTN__ENV_EAGER));
    ctx->fuse = !ctx->opt.no_fuse && ctn__env_bool(CTN__ENV_FUSE);
    ctx->seed = ctx->opt.seed ? ctx->opt.seed : (uint64_t)ctn__env_int(CTN__ENV_SEED);
    ctx->training = ctx->grad_on = true;
    ctx->scope_id = 1;
    ctx->next_uid = ctx->next_var = ctx->flushes = 1;
    if (ctx->opt.precision < CTN_PRECISION_F32 || ctx->opt.precision > CTN_PRECISION_F64)
        CTN_TRY_GOTO(st, fail,
                     ctn_fail(CTN_EARG, "context: unknown precision policy %d",
                              (int)ctx->opt.precision));
    ctx->hasher = ctn__hasher_new();
    if (!ctx->hasher) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    ctx->trace = ctn__trace_new(ctx->opt.spans);
    if (!ctx->trace) CTN_TRY_GOTO(st, fail, ctn_error_status());
    CTN_TRY_GOTO(st, fail, ctn__plan_runner.start(ctx, &ctx->opt));
    *out = ctx;
    return CTN_OK;
fail:
    ctn_context_free(ctx);
    return st;
}

void ctn_context_free(ctn_context *ctx)
{
    if (!ctx) return;
    if (ctx->planner) ctn__plan_runner.stop(ctx);
    ctn__arena_free(&ctx->arena);
    ctn__storage_free(&ctx->storage);
    ctn__vec_free(&ctx->tensors);
    ctn__vec_free(&ctx->nodes);
    ctn__vec_free(&ctx->tape);
    ctn__vec_free(&ctx->slots);
    ctn__vec_free(&ctx->emitted);
    ctn__vec_free(&ctx->emitted_tensors);
    ctn__hasher_free(ctx->hasher);
    ctn__trace_free(ctx->trace);
    ctn__free(ctx);
}

ctn_dtype ctn_context_float_type(const ctn_context *ctx)
{
    return ctx->opt.precision == CTN_PRECISION_F64 ? CTN_F64 : CTN_F32;
}

int ctn_context_threads(const ctn_context *ctx)
{
    return ctx->threads;
}

void ctn_context_get_state(const ctn_context *ctx, ctn_context_state *out)
{
    out->seed = ctx->seed;
    out->step = ctx->step;
}

ctn_status ctn_context_set_state(ctn_context *ctx, const ctn_context_state *in)
{
    if (ctx->level > 0)
        return ctn_fail(CTN_ESTATE, "context_set_state: a scope is open; call it between scopes");
    ctx->seed = in->seed;
    ctx->step = in->step;
    return CTN_OK;
}

ctn_status ctn_context_set_share(ctn_context *ctx, const ctn_share *share)
{
    const ctn_share s = share ? *share : (ctn_share){0};
    if (ctx->level > 0)
        return ctn_fail(CTN_ESTATE, "context_set_share: a scope is open; call it between scopes");
    if (s.rows < 0 || s.rows > s.total || s.first < 0 ||
        (s.rows > 0 &&
         (s.every < 1 || s.first >= s.total || s.rows - 1 > (s.total - 1 - s.first) / s.every)))
        return ctn_fail(CTN_EARG,
                        "context_set_share: %lld rows, the first one %lld and then every %lld, are "
                        "not in a step of %lld rows",
                        (long long)s.rows, (long long)s.first, (long long)s.every,
                        (long long)s.total);
    ctx->share = s;
    return CTN_OK;
}

void ctn_context_get_stats(const ctn_context *ctx, ctn_plan_stats *out)
{
    memset(out, 0, sizeof *out);
    ctn__plan_runner.stats(ctx, out);
    out->recorded_ops = ctx->recorded_ops;
}

int ctn_context_plan_text(ctn_context *ctx, char *buf, size_t n)
{
    return ctn__plan_runner.text(ctx, buf, n);
}

ctn_status ctn_context_write_trace(ctn_context *ctx, const char *path)
{
    return ctn__plan_runner.trace(ctx, path);
}

void ctn_context_set_profile(ctn_context *ctx, int on)
{
    ctx->profile = on != 0;
}

int ctn_context_set_training(ctn_context *ctx, int on)
{
    int was = ctx->training;
    ctx->training = on != 0;
    return was;
}

int ctn_context_training(const ctn_context *ctx)
{
    return ctx->training;
}

int ctn_context_set_grad(ctn_context *ctx, int on)
{
    int was = ctx->grad_on;
    ctx->grad_on = on != 0;
    return was;
}

ctn_status ctn__need_scope(ctn_context *ctx, const char *who)
{
    if (!ctx)
        return ctn_error_status() < 0 ? ctn_error_status()
                                      : ctn_fail(CTN_EARG, "%s: no context", who);
    if (ctx->level == 0)
        return ctn_fail(CTN_ESTATE, "%s: no scope is open; call ctn_scope_begin first", who);
    return CTN_OK;
}

ctn_status ctn_scope_begin(ctn_context *ctx)
{
    if (!ctx) return ctn_fail(CTN_EARG, "scope_begin: no context");
    if (ctx->level >= 250)
        return ctn_fail(CTN_ESTATE, "scope_begin: 250 scopes are open already, the maximum");
    if (ctx->level > 0 && !ctn__tape_add(ctx, CTN__EV_SCOPE, 0, 0)) return CTN_ENOMEM;
    if (ctx->level == 0) CTN_TRY(ctn__pools_arrange(ctx));
    ctx->level++;
    return CTN_OK;
}

/* The user can no longer name tensors of the closing level; a block left open in it ends. */
static void close_level(ctn_context *ctx)
{
    for (size_t i = ctx->tensors.n; i-- > 0;) {
        ctn_tensor *t = ctx->tensors.at[i];
        if (t->level < ctx->level) break; /* recorded before this scope began */
        t->level = 255;
    }
    ctx->level--;
    if (ctx->recompute_level > ctx->level) ctx->recompute = ctx->recompute_level = 0;
}

ctn_status ctn_scope_return_n(ctn_context *ctx, int n, ctn_tensor *const *t)
{
    CTN_TRY(ctn__need_scope(ctx, "scope_return"));
    if (ctx->level < 2)
        return ctn_fail(CTN_ESTATE, "scope_return: no inner scope is open; use ctn_scope_end");
    ctn_status st = CTN_OK;
    if (n < 0 || (n > 0 && !t)) {
        st = ctn_fail(CTN_EARG, "scope_return: got %d tensors at address %p", n, (const void *)t);
        n = 0;
    }
    bool ok = n > 0 || ctn__tape_add(ctx, CTN__EV_RETURN, UINT32_MAX, 0);
    for (int i = 0; ok && i < n; i++) /* the second word says how many follow */
        ok =
            ctn__tape_add(ctx, CTN__EV_RETURN, t[i] ? t[i]->id : UINT32_MAX, (uint64_t)(n - 1 - i));
    close_level(ctx);
    for (int i = 0; ok && i < n; i++)
        if (t[i] && t[i]->level == 255) t[i]->level = (uint8_t)ctx->level;
    return ok ? st : CTN_ENOMEM;
}

ctn_tensor *ctn_scope_return(ctn_context *ctx, ctn_tensor *t)
{
    return ctn_scope_return_n(ctx, 1, &t) == CTN_OK ? t : NULL;
}

ctn_status ctn_recompute_begin(ctn_context *ctx)
{
    CTN_TRY(ctn__need_scope(ctx, "recompute_begin"));
    if (!ctn__tape_add(ctx, CTN__EV_RECOMPUTE, 1, 0)) return CTN_ENOMEM;
    if (ctx->recompute++ == 0) {
        ctx->blocks++;
        ctx->recompute_level = ctx->level;
    }
    return CTN_OK;
}

ctn_status ctn_recompute_end(ctn_context *ctx)
{
    CTN_TRY(ctn__need_scope(ctx, "recompute_end"));
    if (ctx->recompute == 0)
        return ctn_fail(CTN_ESTATE, "recompute_end: no matching ctn_recompute_begin");
    ctx->recompute--;
    return ctn__tape_add(ctx, CTN__EV_RECOMPUTE, 0, 0) ? CTN_OK : CTN_ENOMEM;
}

static ctn_status finish_retained(ctn_context *ctx, ctn_status st)
{
    for (ctn_retained *r = ctx->retained; r; r = r->next) {
        ctn_tensor *t = r->pending;
        r->pending = NULL;
        if (!t || st < 0) continue;
        int into = r->current == 0 ? 1 : 0;
        size_t bytes = ctn__bytes(&t->d);
        if (r->cap[into] < bytes) {
            ctn__free(r->buf[into]);
            r->buf[into] = ctn__aligned(bytes);
            r->cap[into] = r->buf[into] ? bytes : 0;
            if (!r->buf[into]) {
                st = CTN_ENOMEM;
                continue;
            }
        }
        r->d = t->d;
        ctn__plain(&r->d);
        ctn__copy_strided(r->buf[into], &r->d, t->data, &t->d);
        r->current = into;
    }
    return st;
}

ctn_status ctn_scope_end(ctn_context *ctx)
{
    CTN_TRY(ctn__need_scope(ctx, "scope_end"));
    if (ctx->level > 1) {
        bool ok = ctn__tape_add(ctx, CTN__EV_END, 0, 0);
        close_level(ctx);
        return ok ? CTN_OK : CTN_ENOMEM;
    }
    ctn_status st = CTN_OK;
    if (ctx->effects > 0 && ctx->broken == CTN_OK &&
        ctn__tape_add(ctx, CTN__EV_FLUSH, CTN__FLUSH_END, 0)) {
        st = ctn__plan_runner.flush(ctx, CTN__FLUSH_END);
        if (st < 0) ctn__flush_failed(ctx, st);
    }
    st = finish_retained(ctx, ctx->broken < 0 ? ctx->broken : st);
    ctx->step++;
    ctx->level = 0;
    reset_scope(ctx);
    return st;
}

void ctn__flush_failed(ctn_context *ctx, ctn_status st)
{
    ctx->broken = st;
    ctx->effects = 0;
    for (ctn__pool *p = ctx->pools; p; p = p->next)
        if (p->contributions != p->contributions_done) p->contributions = p->contributions_done = 0;
}
