/* SPDX-License-Identifier: Apache-2.0
 *
 * An optimizer on several ranks: its pool gets an exchange, which plans start bucket by bucket in every step (plan/exchange.c). Ranks
 * must have the same parameters in the same order; this is compared once.
 */
#include <catena/dist.h>

#include "optim/optim.h"

/* A digest of the pool's layout on every rank. */
static ctn_status compare(const ctn_optim *o, ctn_comm *c)
{
    ctn_status st = CTN_OK;
    int size = ctn_comm_size(c);
    const ctn__pool *p = o->pool;
    ctn__hash128 mine = ctn__hash(p->begin, ((size_t)p->nvar + 1) * sizeof *p->begin);
    ctn__hash128 *all = ctn__calloc((size_t)size, sizeof *all);
    if (!all) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn_comm_allgather(c, &mine, sizeof mine, all));
    for (int r = 0; r < size && st == CTN_OK; r++)
        if (memcmp(&all[r], &all[0], sizeof mine) != 0)
            st = ctn_fail(CTN_EARG, "dist_optim: ranks 0 and %d have different parameters", r);
done:
    ctn__free(all);
    return st;
}

ctn_status ctn_dist_optim(ctn_optim *o, ctn_comm *c, const ctn_dist_opt *opt)
{
    ctn_dist_opt d = {0};
    if (!o || !c) return ctn_fail(CTN_EARG, "dist_optim: an optimizer and a communicator");
    CTN_TRY(ctn__opt("dist_optim", &d, sizeof d, opt));
    ctn__pool *p = o->pool;
    if (p->exchange)
        return ctn_fail(CTN_ESTATE, "dist_optim: the optimizer is distributed already");
    if (p->ctx->level > 0 || p->contributions > 0)
        return ctn_fail(CTN_ESTATE, "dist_optim: call it between scopes");
    CTN_TRY(compare(o, c));
    CTN_TRY(ctn_comm_broadcast(c, p->w, (size_t)p->count * sizeof *p->w, 0));
    CTN_TRY(ctn__exchange_new(&p->exchange, c, p->w, p->g, p->count, d.bucket, c->opt.wire,
                              d.shard != 0));
    ctn__exchange *x = p->exchange;
    x->late = d.when != CTN_DIST_OVERLAP;
    x->one_by_one = d.when == CTN_DIST_PER_PARAMETER;
    if (x->one_by_one) CTN_TRY(ctn__exchange_cut_at(x, p->nvar, p->begin));
    if (!x->late && !x->shard) ctn__exchange_hold(x, ctn__update_range, o);
    for (int i = 0; i < p->nvar; i++) /* plans made before know nothing of it */
        if (p->var[i]) ctn__plan_runner.forget(p->ctx, p->var[i]);
    ctn__plan_runner.forget(p->ctx, p);
    if (d.shard) CTN_TRY(ctn__shard_state(o));
    x->polls = d.progress == CTN_DIST_POLLS;
    if (!x->polls) CTN_TRY(ctn__progress_start(c));
    x->trial.on = c->threaded && d.progress == 0 && !x->late;
    return CTN_OK;
}

void ctn_dist_look(const ctn_optim *o, ctn_dist_stats *out)
{
    const ctn__exchange *x = o->pool->exchange;
    ctn_dist_stats s = {.struct_size = out->struct_size};
    if (x)
        s = (ctn_dist_stats){.struct_size = out->struct_size,
                             .exposed_s = (double)x->exposed_ns * 1e-9,
                             .hidden_s = (double)x->hidden_ns * 1e-9,
                             .buckets = x->nbucket,
                             .bucket = (x->begin[0] - x->begin[1]) * (int64_t)sizeof(float),
                             .progress = x->trial.on                      ? 0
                                         : x->polls || !x->comm->threaded ? CTN_DIST_POLLS
                                                                          : CTN_DIST_THREAD,
                             .state_bytes = ctn__state_bytes(o)};
    memcpy(out, &s, out->struct_size < sizeof s ? out->struct_size : sizeof s);
}

ctn_status ctn_dist_values(ctn_optim *o)
{
    if (!o) return ctn_fail(CTN_EARG, "dist_values: an optimizer");
    if (o->ctx->level > 0) return ctn_fail(CTN_ESTATE, "dist_values: call it between scopes");
    return ctn__shard_values(o);
}

ctn_status ctn_dist_step_empty_at(const char *at, ctn_optim *o)
{
    if (!o || !o->pool->exchange)
        return ctn_fail(CTN_EARG, "dist_step_empty: not a distributed optimizer (%s)", at);
    if (o->pool->contributions > 0)
        return ctn_fail(CTN_ESTATE, "dist_step_empty: there are contributions; use optim_step (%s)",
                        at);
    return ctn__step_empty(at, o);
}
