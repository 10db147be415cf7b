/* SPDX-License-Identifier: Apache-2.0
 *
 * Rabenseifner's allreduce: few steps, for pieces that are too short for a ring. Recursive halving,
 * after which every member has the sum of its blocks, is followed by recursive doubling
 * (comm/halving.h). Before that, the silent rank of each pair sends everything to the rank that
 * speaks, which adds it; at the end the silent rank receives the result.
 *
 * Cost, n bytes, p members; the terms in brackets apply if ranks form pairs:
 *     2 lg p alpha + 2 (p-1)/p n beta + (p-1)/p n gamma    [+ 2 alpha + 2 n beta + n gamma]
 */
#include "comm/halving.h"

static bool rabenseifner_round(const ctn__place *me, int64_t n, int k, ctn__round *r)
{
    const ctn__halving h = ctn__halving_of(me);
    *r = (ctn__round){.kind = CTN__ROUND_EXCHANGE, .to = me->rank ^ 1, .from = me->rank ^ 1};
    if (h.paired && k == 0) {
        r->add = true;
        *(h.silent ? &r->scount : &r->rcount) = n;
        return true;
    }
    if (h.paired && k == (h.silent ? 1 : 2 * h.lg + 1)) {
        *(h.silent ? &r->rcount : &r->scount) = n;
        return true;
    }
    k -= h.paired;
    if (k >= 2 * h.lg || h.silent) return false;
    const bool halving = k < h.lg;
    ctn__halving_step(me, &h, n, halving ? 1 << (h.lg - 1 - k) : 1 << (k - h.lg), halving, r);
    return true;
}

static double rabenseifner_cost(const ctn__place *me, double bytes, double alpha, double beta,
                                double gamma)
{
    const int lg = ctn__halving_of(me).lg, p = 1 << lg;
    double most = bytes * (p - 1) / p;
    double cost = 2 * lg * alpha + 2 * most * beta + most * gamma;
    if (p < me->size) cost += 2 * alpha + 2 * bytes * beta + bytes * gamma;
    return cost;
}

/* Pairs send everything. Otherwise the first halving sends the longest message. */
static int rabenseifner_parts(const ctn__place *me)
{
    return ctn__halving_of(me).extra > 0 ? 1 : 2;
}

const ctn__algorithm ctn__rabenseifner = {.name = "rabenseifner",
                                          .round = rabenseifner_round,
                                          .cost = rabenseifner_cost,
                                          .parts = rabenseifner_parts};
