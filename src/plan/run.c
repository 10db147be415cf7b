/* SPDX-License-Identifier: Apache-2.0
 *
 * The runner that the graph layer calls: it hashes what was recorded since the last flush, finds or
 * builds the plan, runs it, and marks the record as done.
 */
#include "plan/plan.h"

static ctn_status check_precision(const ctn__planner *pl, const ctn_context_opt *opt)
{
    if (opt->precision == CTN_PRECISION_F32 || opt->precision == CTN_PRECISION_F64) return CTN_OK;
    const bool f16 = opt->precision == CTN_PRECISION_F16;
    if (!ctn__engine_has(pl->engine, f16 ? CTN_F16 : CTN_BF16))
        return ctn_fail(CTN_EUNSUPPORTED,
                        "context: oneDNN %s on this CPU (%s) has no kernels for %s: use f32",
                        ctn__engine_version(), ctn__engine_isa(), f16 ? "f16" : "bf16");
    if (!f16 && !ctn__engine_fast_bf16())
        ctn__warn("this CPU (%s) has no bf16 instructions; bf16 is emulated and slower than f32",
                  ctn__engine_isa());
    if (f16 && !opt->slow_precision && !ctn__engine_trains_f16())
        return ctn_fail(
            CTN_EUNSUPPORTED,
            "context: this CPU (%s) has only slow reference kernels for training in f16; "
            "use bf16, or set slow_precision to use f16 anyway",
            ctn__engine_isa());
    return CTN_OK;
}

static ctn_status start(ctn_context *ctx, const ctn_context_opt *opt)
{
    ctn__planner *pl = ctn__calloc(1, sizeof *pl);
    if (!pl) return CTN_ENOMEM;
    ctx->planner = pl;
    pl->trace = ctx->trace;
    pl->max_plans = opt->max_plans > 0 ? opt->max_plans : ctn__env_int(CTN__ENV_PLANS);
    pl->max_bytes = opt->max_plan_bytes > 0 ? (size_t)opt->max_plan_bytes
                                            : (size_t)ctn__env_int(CTN__ENV_PLAN_MB) << 20;
    if (pl->max_plans < 1) pl->max_plans = 1;
    pl->check = ctn__env_bool(CTN__ENV_CHECK);
    pl->guard = ctn__env_bool(CTN__ENV_GUARD) ? CTN__ALIGN : 0;
#ifdef CTN_DEBUG
    pl->check = true;
#endif
    if (opt->cores) {
        for (int i = 0; i < opt->ncores; i++) {
            if (opt->cores[i] < 0 || opt->cores[i] >= 1024)
                return ctn_fail(CTN_EARG, "context: core is %d, expected 0 to 1023", opt->cores[i]);
            pl->cores.word[opt->cores[i] / 64] |= (uint64_t)1 << (opt->cores[i] % 64);
        }
    } else {
        memset(&pl->cores, 0xff, sizeof pl->cores);
    }
    pl->tune = ctn__env_bool(CTN__ENV_TUNE);
    pl->fp = ctn__fpmode_new(ctx->threads);
    if (!pl->fp) return CTN_ENOMEM;
    CTN_TRY(ctn__engine_new(&pl->engine, ctx->threads));
    return check_precision(pl, opt);
}

static void stop(ctn_context *ctx)
{
    ctn__planner *pl = ctx->planner;
    ctn__cache_clear(pl);
    ctn__plan_free(pl->uncached);
    ctn__engine_free(pl->engine);
    ctn__fpmode_free(pl->fp);
    ctn__free(pl->arena);
    ctn__kept_drop(pl, NULL);
    ctn__free(pl->miss_tape);
    ctn__free(pl);
    ctx->planner = NULL;
}

static size_t plan_cost(const ctn__plan *p)
{
    size_t bytes = sizeof *p + p->nodes.cap * sizeof *p->nodes.at +
                   p->values.cap * sizeof *p->values.at + p->ntape * sizeof *p->tape +
                   ctn__arena_bytes(&p->mem) + ctn__constants_bytes(p);
    for (size_t i = 0; i < p->nodes.n; i++)
        if (p->nodes.at[i].priv)
            bytes += p->nodes.at[i].priv_bytes ? p->nodes.at[i].priv_bytes : 1024;
    return bytes;
}

static ctn_status keep_tape(const ctn_context *ctx, ctn__plan *p)
{
    p->ntape = ctx->tape.n;
    p->tape = ctn__malloc(p->ntape * sizeof *p->tape);
    if (!p->tape) return CTN_ENOMEM;
    memcpy(p->tape, ctx->tape.at, p->ntape * sizeof *p->tape);
    return CTN_OK;
}

static ctn_status build(ctn_context *ctx, ctn__planner *pl, ctn__flush_kind kind, ctn__hash128 key,
                        ctn__plan **out)
{
    ctn__plan *p = NULL;
    int was = ctn__threads_enter(ctx->threads); /* kernels are made for this number of threads */
    uint64_t t0 = ctn__now_ns();
    ctn__engine_set_timing(pl->engine, pl->tune && !pl->stepped && !ctx->eager);
    ctn_status st = ctn__plan_build(&p, ctx, kind);
    const bool timed = ctn__engine_timing(pl->engine); /* only then is the table written */
    if (st == CTN_OK && timed) st = ctn__choices_save(pl->engine);
    ctn__trace_add(ctx->trace, CTN__COUNT_PLAN_NS, ctn__now_ns() - t0);
    ctn__threads_leave(was);
    if (st == CTN_OK && pl->check) st = keep_tape(ctx, p);
    if (st < 0) {
        ctn__plan_free(p);
        return st;
    }
    ctn__note_slow(pl, p);
    p->key = key;
    p->bytes = plan_cost(p);
    if (ctx->eager) {
        if (pl->last == pl->uncached) pl->last = NULL;
        ctn__plan_free(pl->uncached);
        pl->uncached = p;
    } else {
        CTN_TRY(ctn__cache_add(pl, p));
    }
    *out = p;
    return CTN_OK;
}

static ctn_status find(ctn_context *ctx, ctn__planner *pl, ctn__flush_kind kind, ctn__plan **out)
{
    if (ctx->eager) return build(ctx, pl, kind, (ctn__hash128){0, 0}, out);
    ctn__hasher_add(ctx->hasher, ctx->tape.at + ctx->flushed_tape,
                    (ctx->tape.n - ctx->flushed_tape) * sizeof *ctx->tape.at);
    ctn__hash128 key = ctn__hasher_value(ctx->hasher);
    ctn__plan *p = ctn__cache_find(pl, key);
    if (!p) {
        ctn__trace_add(ctx->trace, CTN__COUNT_PLAN_MISSES, 1);
        ctn__note_miss(ctx, pl);
        return build(ctx, pl, kind, key, out);
    }
    ctn__trace_add(ctx->trace, CTN__COUNT_PLAN_HITS, 1);
    if (p->tape &&
        (p->ntape != ctx->tape.n || memcmp(p->tape, ctx->tape.at, p->ntape * sizeof *p->tape) != 0))
        return ctn_fail(CTN_ESTATE, "internal error: two different records have the same hash");
    *out = p;
    if (!p->keeps_emitted) return CTN_OK;
    ctn__node_list nodes = {0};
    ctn_status st = ctn__expand(ctx, ctx->flushed_nodes, ctx->nodes.n, &nodes);
    ctn__vec_free(&nodes);
    return st;
}

static ctn_status flush(ctn_context *ctx, ctn__flush_kind kind)
{
    ctn__planner *pl = ctx->planner;
    ctn__plan *p = NULL;
    size_t emitted = ctx->emitted_tensors.n;
    ctn_status st = find(ctx, pl, kind, &p);
    if (st == CTN_OK && p) st = ctn__plan_run(pl, p);
    ctx->emitted.n = 0;
    if (st < 0 || !p) return st;
    pl->stepped |= kind == CTN__FLUSH_STEP;
    bool expanded = ctx->emitted_tensors.n > emitted;
    if (!p->keeps_emitted) ctx->emitted_tensors.n = emitted;
    for (size_t i = ctx->flushed_tensors; expanded && i < ctx->tensors.n; i++) {
        ctn_tensor *t = ctx->tensors.at[i], *r = ctn__real(t);
        if (t == r) continue; /* a result of ctn_grad is one value with two tensors */
        if (!t->data) t->data = r->data;
        else if (!r->data) r->data = t->data;
        if (!p->keeps_emitted) t->alias = NULL; /* same as after a hit, which emits nothing */
    }
    ctx->flushes++;
    ctx->flushed_nodes = ctx->nodes.n;
    ctx->flushed_tensors = ctx->tensors.n;
    ctx->flushed_tape = ctx->tape.n;
    ctx->effects = 0;
    for (ctn__pool *q = ctx->pools; q; q = q->next) q->contributions_done = q->contributions;
    return CTN_OK;
}

static bool points_to(const ctn__plan *p, const void *what)
{
    for (size_t i = 0; i < p->values.n; i++)
        if (p->values.at[i].var == what) return true;
    for (size_t i = 0; i < p->nodes.n; i++)
        if (p->nodes.at[i].pool == what) return true;
    return false;
}

/* Drop the plans that point to a variable or pool which is about to be freed or moved. */
static void forget(ctn_context *ctx, const void *what)
{
    ctn__planner *pl = ctx->planner;
    if (!pl) return;
    for (ctn__plan *p = pl->oldest, *next; p; p = next) {
        next = p->newer;
        if (points_to(p, what)) ctn__cache_drop(pl, p);
    }
    if (pl->uncached && points_to(pl->uncached, what)) {
        if (pl->last == pl->uncached) pl->last = NULL;
        ctn__plan_free(pl->uncached);
        pl->uncached = NULL;
    }
    if (what) ctn__kept_drop(pl, what);
}

static void stats(const ctn_context *ctx, ctn_plan_stats *out)
{
    const ctn__planner *pl = ctx->planner;
    const ctn__trace *t = ctx->trace;
    out->hits = ctn__trace_count(t, CTN__COUNT_PLAN_HITS);
    out->misses = ctn__trace_count(t, CTN__COUNT_PLAN_MISSES);
    out->evictions = ctn__trace_count(t, CTN__COUNT_PLAN_EVICTIONS);
    out->runs = ctn__trace_count(t, CTN__COUNT_RUNS);
    out->underflow_runs = ctn__trace_count(t, CTN__COUNT_UNDERFLOW_RUNS);
    out->plans = pl->nplans;
    out->plan_bytes = (int64_t)pl->plan_bytes;
    out->arena_bytes = (int64_t)(pl->arena_bytes + pl->kept_bytes);
}

static ctn_status trace(ctn_context *ctx, const char *path)
{
    const ctn__planner *pl = ctx->planner;
    ctn__trace_set(ctx->trace, CTN__COUNT_PLANS, (uint64_t)pl->nplans);
    ctn__trace_set(ctx->trace, CTN__COUNT_PLAN_BYTES, pl->plan_bytes);
    ctn__trace_set(ctx->trace, CTN__COUNT_ARENA_BYTES, pl->arena_bytes);
    return ctn__trace_write_chrome(ctx->trace, path);
}

static int text(ctn_context *ctx, char *buf, size_t n)
{
    const ctn__planner *pl = ctx->planner;
    ctn__text t = {0};
    if (pl->last) ctn__plan_print(pl->last, &t);
    else ctn__text_add(&t, "no plan has run yet\n");
    int len = t.failed ? CTN_ENOMEM : snprintf(buf, n, "%s", t.s ? t.s : "");
    ctn__text_free(&t);
    return len;
}

const ctn__runner ctn__plan_runner = {start, stop, flush, forget, ctn__kept_free_all,
                                      stats, text, trace};
