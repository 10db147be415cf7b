/* SPDX-License-Identifier: Apache-2.0
 *
 * An optimizer on several ranks. Its pool gets an exchange, which plans start bucket by bucket in
 * every step (plan/exchange.c). All ranks must have the same parameters in the same order, which is
 * checked once.
 */
#include <catena/dist.h>

#include "optim/optim.h"

/* Compares hashes of the pool's layout, at the cost of one broadcast and one maximum. */
static ctn_status compare(const ctn_optim *o, ctn_comm *c)
{
    const ctn__pool *p = o->pool;
    ctn__hash128 mine = ctn__hash(p->begin, ((size_t)p->nvar + 1) * sizeof *p->begin);
    mine.lo += (uint64_t)p->dtype;
    ctn__hash128 first = mine;
    CTN_TRY(ctn_comm_broadcast(c, &first, sizeof first, 0));
    const int size = ctn_comm_size(c);
    const bool differs = memcmp(&first, &mine, sizeof mine) != 0;
    double lowest = differs ? size - ctn_comm_rank(c) : 0; /* largest on the lowest rank */
    CTN_TRY(ctn__comm_max_small(c, 1, &lowest));
    if (lowest == 0) return CTN_OK;
    return ctn_fail(CTN_EARG, "dist_optim: ranks 0 and %d have different parameters",
                    size - (int)lowest);
}

/* How much a step may leave in flight. On a communicator that the caller supplied it is nothing,
 * unless the caller asks for it: then reading a parameter never waits for other ranks, which may be
 * in MPI calls of their own. */
static int hold(const ctn_comm *c, const ctn_dist_opt *d)
{
    const bool defer = d->defer == 0 ? !c->guest : d->defer == CTN_DIST_DEFER;
    return defer && d->when == CTN_DIST_OVERLAP ? CTN__HOLD : 0;
}

ctn_status ctn_dist_optim(ctn_optim *o, ctn_comm *c, const ctn_dist_opt *opt)
{
    ctn_dist_opt d = {0};
    if (!o || !c) return ctn_fail(CTN_EARG, "dist_optim: needs an optimizer and a communicator");
    CTN_TRY(ctn__opt("dist_optim", &d, sizeof d, opt));
    ctn__pool *p = o->pool;
    if (p->exchange)
        return ctn_fail(CTN_ESTATE, "dist_optim: the optimizer is already distributed");
    if (o->lbfgs)
        return ctn_fail(CTN_EARG, "dist_optim: lbfgs cannot be distributed; use another optimizer");
    if (p->dtype != CTN_F32 && (d.shard || d.exact > 0))
        return ctn_fail(CTN_EDTYPE,
                        "dist_optim: %s is possible with f32 parameters only; these are %s",
                        d.shard ? "shard" : "exact", ctn_dtype_name(p->dtype));
    if (o->factored && d.shard)
        return ctn_fail(CTN_EARG,
                        "dist_optim: the state of adafactor cannot be sharded; it is small");
    if (p->ctx->level > 0 || p->contributions > 0)
        return ctn_fail(CTN_ESTATE, "dist_optim: call it between scopes");
    if (d.exact < 0 || (d.exact > 0 && (d.shard || c->opt.wire != CTN_F32)))
        return ctn_fail(CTN_EARG, "dist_optim: exact sums are not possible with shard or with a "
                                  "wire type other than f32");
    CTN_TRY(ctn__optim_arrange(o)); /* frozen parameters are not exchanged */
    CTN_TRY(compare(o, c));
    CTN_TRY(ctn_comm_broadcast(c, p->w, (size_t)p->count * p->unit, 0));
    for (int i = 0; i < p->nparked; i++) {
        ctn_var *v = p->parked[i];
        if (!v) continue;
        v->version++;
        CTN_TRY(ctn_comm_broadcast(c, v->data, ctn__bytes(&v->d), 0));
    }
    const bool one_by_one = d.when == CTN_DIST_PER_PARAMETER;
    const ctn__exchange_opt e = {.bucket = d.bucket,
                                 .n = one_by_one ? p->nvar : 0,
                                 .at = p->begin,
                                 .type = p->dtype,
                                 .wire = c->opt.wire,
                                 .shard = d.shard != 0,
                                 .late = d.when != CTN_DIST_OVERLAP || d.exact > 0,
                                 .exact = d.exact,
                                 .one_by_one = one_by_one,
                                 .hold = d.exact > 0 ? 0 : hold(c, &d),
                                 .update = ctn__update_range,
                                 .owner = o,
                                 .progress = d.progress};
    CTN_TRY(ctn__exchange_new(&p->exchange, c, p->w, p->g, p->count, &e));
    p->ctx->share = (ctn_share){.part = (uint64_t)ctn_comm_rank(c)};
    for (int i = 0; i < p->nvar; i++) /* earlier plans do not know the exchange */
        if (p->var[i]) ctn__plan_runner.forget(p->ctx, p->var[i]);
    ctn__plan_runner.forget(p->ctx, p);
    return d.shard ? ctn__shard_state(o) : CTN_OK;
}

void ctn_dist_get_stats(const ctn_optim *o, ctn_dist_stats *out)
{
    const ctn__exchange *x = o->pool->exchange;
    ctn_dist_stats s = {.struct_size = out->struct_size};
    if (x) {
        const ctn__exchange_stats e = ctn__exchange_look(x);
        const ctn__buckets *k = ctn__exchange_buckets(x);
        s = (ctn_dist_stats){.struct_size = out->struct_size,
                             .exposed_s = e.exposed_s,
                             .hidden_s = e.hidden_s,
                             .buckets = k->n,
                             .bucket = k->n > 0 ? ctn__bucket_length(k, 0) * (int64_t)k->unit : 0,
                             .progress = e.progress,
                             .state_bytes = ctn__state_bytes(o)};
    }
    memcpy(out, &s, out->struct_size < sizeof s ? out->struct_size : sizeof s);
}

ctn_status ctn_dist_values(ctn_optim *o)
{
    if (!o) return ctn_fail(CTN_EARG, "dist_values: needs an optimizer");
    if (o->ctx->level > 0) return ctn_fail(CTN_ESTATE, "dist_values: call it between scopes");
    return ctn__shard_values(o);
}

ctn_status ctn_dist_step_empty_at(const char *at, ctn_optim *o)
{
    if (!o || !o->pool->exchange)
        return ctn_fail(CTN_EARG, "dist_step_empty: not a distributed optimizer (%s)", at);
    if (o->pool->contributions > 0)
        return ctn_fail(CTN_ESTATE,
                        "dist_step_empty: this rank has contributions; use optim_step (%s)", at);
    return ctn__step_empty(at, o);
}
