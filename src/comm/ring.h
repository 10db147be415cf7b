/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of a ring of `m` members that work on elements [begin, begin + n), cut into m blocks.
 * Member i always sends to i + 1 and receives from i - 1. `to` and `from` are members, which the
 * caller converts to ranks. The rings of torus, rsap and hierarchical are made of these steps.
 *
 *     scatter, step s of m - 1:  send block i-s-1, add the received data to block i-s-2;
 *                                at the end member i has the sum of block i
 *     gather,  step s of m - 1:  send block i-s, receive block i-s-1
 *
 * With a 16-bit wire type, a partial sum that travels round the ring would be rounded at every
 * hop. In this case the scatter is pairwise: every member sends its part of a block, rounded
 * once, to the block's owner, which adds in f32. The number of messages and bytes is the same,
 * but they are sent between more pairs.
 *
 *     pairwise, step s of m - 1: send block i+s+1 to its owner, add data from i-s-1 to block i
 */
#ifndef CTN_COMM_RING_H
#define CTN_COMM_RING_H

#include "comm/comm.h"

static inline void ctn__ring_step(const ctn__place *me, ctn__round *r, int64_t begin, int64_t n,
                                  int m, int i, int s, bool scatter)
{
    const bool pairwise = scatter && me->pairwise;
    const int far = pairwise ? s + 1 : 1;
    int out = (i - s - scatter + 2 * m) % m, in = (out + m - 1) % m;
    if (pairwise) {
        out = (i + far) % m;
        in = i;
    }
    int64_t sbegin = ctn__part(n, m, out), rbegin = ctn__part(n, m, in);
    *r = (ctn__round){.kind = CTN__ROUND_EXCHANGE,
                      .to = (i + far) % m,
                      .from = (i + m - far) % m,
                      .sbegin = begin + sbegin,
                      .scount = ctn__part(n, m, out + 1) - sbegin,
                      .rbegin = begin + rbegin,
                      .rcount = ctn__part(n, m, in + 1) - rbegin,
                      .add = scatter};
}

/* Step k of both halves; the first m - 1 steps are the scatter. */
static inline void ctn__ring_both(const ctn__place *me, ctn__round *r, int64_t begin, int64_t n,
                                  int m, int i, int k)
{
    bool scatter = k < m - 1;
    ctn__ring_step(me, r, begin, n, m, i, scatter ? k : k - (m - 1), scatter);
}

#endif
