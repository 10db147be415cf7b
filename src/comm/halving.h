/* SPDX-License-Identifier: Apache-2.0
 *
 * Recursive halving and doubling with any number of ranks. p is the largest power of two that is at
 * most the number of ranks, and e is the number of ranks beyond p. The first 2e ranks form pairs, 0
 * with 1, 2 with 3 (neighbours are mostly on one node). The odd rank of a pair speaks for both, so
 * there are p members, 0 to p-1. The vector is cut into one block per rank, and a member has the
 * blocks of its ranks.
 *
 *   halving:   at distance d = p/2, p/4 .. 1, two members exchange halves of the blocks that both
 *              still hold: each sends the half with the other's block and adds the received half to
 *              its own.
 *
 *          p = 4      d = 2               d = 1
 *          0: [0 1 2 3] -> keeps [0 1] -> keeps [0]
 *          1: [0 1 2 3] -> keeps [0 1] -> keeps [1]
 *          2: [0 1 2 3] -> keeps [2 3] -> keeps [2]
 *          3: [0 1 2 3] -> keeps [2 3] -> keeps [3]
 *
 *   doubling:  the reverse, d = 1, 2 .. p/2; received data overwrites.
 *
 * Every block is summed by one member, so all ranks can end with the same bits.
 */
#ifndef CTN_COMM_HALVING_H
#define CTN_COMM_HALVING_H

#include "comm/comm.h"

typedef struct {
    int lg, extra; /* lg p, and e */
    int member;    /* the member that speaks for this rank */
    bool paired;
    bool silent; /* the other rank of the pair speaks */
} ctn__halving;

static inline ctn__halving ctn__halving_of(const ctn__place *me)
{
    ctn__halving h = {0};
    while (me->size >> (h.lg + 1) > 0) h.lg++;
    h.extra = me->size - (1 << h.lg);
    h.paired = me->rank < 2 * h.extra;
    h.silent = h.paired && !(me->rank & 1);
    h.member = h.paired ? me->rank / 2 : me->rank - h.extra;
    return h;
}

/* The first rank of member i. */
static inline int ctn__halving_first(const ctn__halving *h, int i)
{
    return i < h->extra ? 2 * i : i + h->extra;
}

/* One exchange at distance d, for a rank that speaks. */
static inline void ctn__halving_step(const ctn__place *me, const ctn__halving *h, int64_t n, int d,
                                     bool halving, ctn__round *r)
{
    const int mine = h->member & ~(d - 1), theirs = mine ^ d; /* first members of the two halves */
    const int other = h->member ^ d, rank = ctn__halving_first(h, other) + (other < h->extra);
    const int out = halving ? theirs : mine, in = halving ? mine : theirs;
    *r = (ctn__round){.kind = CTN__ROUND_EXCHANGE, .to = rank, .from = rank, .add = halving};
    r->sbegin = ctn__part(n, me->size, ctn__halving_first(h, out));
    r->scount = ctn__part(n, me->size, ctn__halving_first(h, out + d)) - r->sbegin;
    r->rbegin = ctn__part(n, me->size, ctn__halving_first(h, in));
    r->rcount = ctn__part(n, me->size, ctn__halving_first(h, in + d)) - r->rbegin;
}

#endif
