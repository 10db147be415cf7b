/* SPDX-License-Identifier: Apache-2.0
 *
 * Allreduce by recursive doubling, for short vectors such as the control message of a step. Let q
 * be the largest power of two that is at most p. A rank r >= q first sends its numbers to r - q and
 * receives the result at the end. The other ranks exchange all they have with r xor 1, 2, 4, ...
 * and add it. Addition is commutative, so all ranks end with the same bits. That is not so if
 * messages are rounded, because a rank does not round its own numbers.
 *
 * Cost: lg q (alpha + n beta + n gamma), plus 2 alpha + 2 n beta + n gamma if p is not a power of
 * two.
 */
#include "comm/comm.h"

static bool doubling_round(const ctn__place *me, int64_t n, int k, ctn__round *r)
{
    int q = 1;
    while (2 * q <= me->size) q *= 2;
    const int rank = me->rank, extra = rank + q < me->size; /* another rank sends to this one */
    *r = (ctn__round){.kind = CTN__ROUND_EXCHANGE, .add = true};
    if (rank >= q) {
        r->to = r->from = rank - q;
        r->add = k == 0;
        *(k == 0 ? &r->scount : &r->rcount) = n;
        return k < 2;
    }
    const int step = k - extra;
    if (step < 0 || (extra && 1 << step == q)) {
        r->to = r->from = rank + q;
        r->add = step < 0;
        *(step < 0 ? &r->rcount : &r->scount) = n;
        return true;
    }
    if (step >= 31 || 1 << step >= q) return false;
    r->to = r->from = rank ^ 1 << step;
    r->scount = r->rcount = n;
    return true;
}

static double doubling_cost(const ctn__place *me, double bytes, double alpha, double beta,
                            double gamma)
{
    int lg = 0;
    while (2 << lg <= me->size) lg++;
    double cost = lg * (alpha + bytes * (beta + gamma));
    if (1 << lg < me->size) cost += 2 * alpha + 2 * bytes * beta + bytes * gamma;
    return cost;
}

static int doubling_parts(const ctn__place *me)
{
    (void)me;
    return 1;
}

static bool doubling_fits(const ctn__place *me)
{
    return !me->pairwise || me->size == 1;
}

const ctn__algorithm ctn__doubling = {.name = "doubling",
                                      .round = doubling_round,
                                      .cost = doubling_cost,
                                      .fits = doubling_fits,
                                      .parts = doubling_parts};
