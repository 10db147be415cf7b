/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of a ring among `m` members that work on elements [begin, begin + n), cut into m blocks. Member i always sends to
 * i + 1 and hears from i - 1; to and from are members, not ranks yet. The rings of torus, rsap and hierarchical
 * are made of it.
 *
 *     scatter, step s of m - 1:  send block i-s-1, add what comes to block i-s-2;  after it member i has the sum of block i
 *     gather,  step s of m - 1:  send block i-s, take block i-s-1
 */
#ifndef CTN_COMM_RING_H
#define CTN_COMM_RING_H

#include "comm/comm.h"

static inline void ctn__ring_step(ctn__round *r, int64_t begin, int64_t n, int m, int i, int s,
                                  bool scatter)
{
    int out = (i - s - scatter + 2 * m) % m, in = (out + m - 1) % m;
    int64_t sbegin = ctn__part(n, m, out), rbegin = ctn__part(n, m, in);
    *r = (ctn__round){.kind = CTN__ROUND_EXCHANGE,
                      .to = (i + 1) % m,
                      .from = (i + m - 1) % m,
                      .sbegin = begin + sbegin,
                      .scount = ctn__part(n, m, out + 1) - sbegin,
                      .rbegin = begin + rbegin,
                      .rcount = ctn__part(n, m, in + 1) - rbegin,
                      .add = scatter};
}

/* Step k of both halves, the first m - 1 of them the scatter's. */
static inline void ctn__ring_both(ctn__round *r, int64_t begin, int64_t n, int m, int i, int k)
{
    bool scatter = k < m - 1;
    ctn__ring_step(r, begin, n, m, i, scatter ? k : k - (m - 1), scatter);
}

#endif
