/* SPDX-License-Identifier: Apache-2.0
 *
 * Reduce-scatter by recursive halving and allgather by recursive doubling (comm/halving.h), for
 * blocks that are too short for the messages of a ring. As there, rank r owns block r.
 *
 *   reduce-scatter:  the silent rank of each pair sends everything to the rank that speaks, which
 *                    adds it; halving; the silent rank receives its block.
 *   allgather:       the silent rank sends its block; doubling; it receives everything.
 *
 * Cost: lg p alpha + (p-1)/p n beta [+ (p-1)/p n gamma]; pairs add 2 alpha + n beta [+ n gamma].
 */
#include "comm/halving.h"

/* Sends elements [begin, end) inside a pair, to the rank that speaks or from it. */
static bool pair_round(const ctn__place *me, const ctn__halving *h, ctn__round *r, bool to_speaker,
                       int64_t begin, int64_t end, bool add)
{
    *r = (ctn__round){.kind = CTN__ROUND_EXCHANGE,
                      .to = me->rank ^ 1,
                      .from = me->rank ^ 1,
                      .sbegin = begin,
                      .rbegin = begin,
                      .add = add};
    *(h->silent == to_speaker ? &r->scount : &r->rcount) = end - begin;
    return true;
}

static bool scatter_round(const ctn__place *me, int64_t n, int k, ctn__round *r)
{
    const ctn__halving h = ctn__halving_of(me);
    const int quiet = me->rank & ~1; /* the silent rank of the pair */
    if (h.paired && k == 0) return pair_round(me, &h, r, true, 0, n, true);
    if (h.paired && k == (h.silent ? 1 : h.lg + 1))
        return pair_round(me, &h, r, false, ctn__part(n, me->size, quiet),
                          ctn__part(n, me->size, quiet + 1), false);
    k -= h.paired;
    if (h.silent || k >= h.lg) return false;
    ctn__halving_step(me, &h, n, 1 << (h.lg - 1 - k), true, r);
    return true;
}

static bool gather_round(const ctn__place *me, int64_t n, int k, ctn__round *r)
{
    const ctn__halving h = ctn__halving_of(me);
    const int quiet = me->rank & ~1;
    if (h.paired && k == 0)
        return pair_round(me, &h, r, true, ctn__part(n, me->size, quiet),
                          ctn__part(n, me->size, quiet + 1), false);
    if (h.paired && k == (h.silent ? 1 : h.lg + 1))
        return pair_round(me, &h, r, false, 0, n, false);
    k -= h.paired;
    if (h.silent || k >= h.lg) return false;
    ctn__halving_step(me, &h, n, 1 << k, false, r);
    return true;
}

static double scatter_cost(const ctn__place *me, double bytes, double alpha, double beta,
                           double gamma)
{
    const ctn__halving h = ctn__halving_of(me);
    const double p = 1 << h.lg;
    double cost = h.lg * alpha + bytes * (p - 1) / p * (beta + gamma);
    if (h.extra > 0) cost += 2 * alpha + bytes * (beta + gamma);
    return cost;
}

static double gather_cost(const ctn__place *me, double bytes, double alpha, double beta,
                          double gamma)
{
    (void)gamma;
    return scatter_cost(me, bytes, alpha, beta, 0);
}

const ctn__algorithm ctn__halving_scatter = {.name = "halving reduce-scatter",
                                             .round = scatter_round,
                                             .cost = scatter_cost,
                                             .whole = true};
const ctn__algorithm ctn__doubling_gather = {.name = "doubling allgather",
                                             .round = gather_round,
                                             .cost = gather_cost,
                                             .whole = true};
