/* SPDX-License-Identifier: Apache-2.0
 *
 * Allreduce after Rabenseifner: few steps, for pieces that are too short for a ring. p is the largest power of two that is not
 * above the number of ranks; e ranks are left over.
 *
 *   1. The first 2e ranks pair up, 0 with 1, 2 with 3 (neighbours are mostly on one node): the even one sends all it has to
 *      the odd one, which adds it. p ranks remain and are numbered anew, 0 to p-1; each will own one of p blocks.
 *   2. Recursive halving: with the member at distance d = p/2, p/4 .. 1, exchange the halves of the blocks that both still hold:
 *      send the half in which the other's block lies, add what comes to the own half.
 *
 *          p = 4      d = 2               d = 1
 *          0: [0 1 2 3] -> keeps [0 1] -> keeps [0]
 *          1: [0 1 2 3] -> keeps [0 1] -> keeps [1]
 *          2: [0 1 2 3] -> keeps [2 3] -> keeps [2]
 *          3: [0 1 2 3] -> keeps [2 3] -> keeps [3]
 *
 *   3. Recursive doubling: the same way back, d = 1, 2 .. p/2; what comes takes its place.
 *   4. The odd ones of step 1 send the result to the even ones.
 *
 * Every block is summed up by one rank, so all ranks end with the same bits.
 *
 * Cost, n bytes; the terms of e only when it is not 0:
 *     2 lg p alpha + 2 (p-1)/p n beta + (p-1)/p n gamma    [+ 2 alpha + 2 n beta + n gamma]
 */
#include "comm/comm.h"

/* lg of the largest power of two that is not above `size` */
static int levels(int size)
{
    int lg = 0;
    while (size >> (lg + 1) > 0) lg++;
    return lg;
}

/* blocks [first, first + count) of p */
static void blocks(int64_t n, int p, int first, int count, int64_t *begin, int64_t *length)
{
    *begin = ctn__part(n, p, first);
    *length = ctn__part(n, p, first + count) - *begin;
}

/* Steps 2 and 3 of member i. */
static void exchange(ctn__round *r, int64_t n, int lg, int i, int k)
{
    bool halving = k < lg;
    int p = 1 << lg, d = halving ? p >> (k + 1) : 1 << (k - lg);
    int mine = i & ~(d - 1), theirs = mine ^ d; /* first blocks of the two halves */
    *r = (ctn__round){.kind = CTN__ROUND_EXCHANGE, .to = i ^ d, .from = i ^ d, .add = halving};
    blocks(n, p, halving ? theirs : mine, d, &r->sbegin, &r->scount);
    blocks(n, p, halving ? mine : theirs, d, &r->rbegin, &r->rcount);
}

static bool rabenseifner_round(const ctn__place *me, int64_t n, int k, ctn__round *r)
{
    int lg = levels(me->size), extra = me->size - (1 << lg);
    bool paired = me->rank < 2 * extra, odd = me->rank & 1;
    *r = (ctn__round){.kind = CTN__ROUND_EXCHANGE, .to = me->rank ^ 1, .from = me->rank ^ 1};
    if (paired && k == 0) { /* step 1 */
        r->add = true;
        *(odd ? &r->rcount : &r->scount) = n;
        return true;
    }
    if (paired && k == (odd ? 2 * lg + 1 : 1)) { /* step 4 */
        *(odd ? &r->scount : &r->rcount) = n;
        return true;
    }
    int step = k - paired;
    if (step >= 2 * lg || (paired && !odd)) return false;
    exchange(r, n, lg, paired ? me->rank / 2 : me->rank - extra, step);
    r->to = r->from = r->to < extra ? 2 * r->to + 1 : r->to + extra;
    return true;
}

static double rabenseifner_cost(const ctn__place *me, double bytes, double alpha, double beta,
                                double gamma)
{
    int lg = levels(me->size), p = 1 << lg;
    double most = bytes * (p - 1) / p;
    double cost = 2 * lg * alpha + 2 * most * beta + most * gamma;
    if (p < me->size) cost += 2 * alpha + 2 * bytes * beta + bytes * gamma;
    return cost;
}

/* Pairs send all, else the first halving is the longest. */
static int rabenseifner_parts(const ctn__place *me)
{
    return 1 << levels(me->size) < me->size ? 1 : 2;
}

const ctn__algorithm ctn__rabenseifner = {.name = "rabenseifner",
                                          .round = rabenseifner_round,
                                          .cost = rabenseifner_cost,
                                          .parts = rabenseifner_parts};
