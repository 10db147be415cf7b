/* SPDX-License-Identifier: Apache-2.0
 *
 * Ring with p blocks. In p-1 rounds every rank passes a partial sum to its right neighbour and
 * adds the one from its left. In p-1 more rounds the finished blocks go round (comm/ring.h has
 * one step). The two halves are also operations of their own: a reduce-scatter, after which rank
 * r has the sum of block r, and an allgather, before which it has only that block.
 *
 * Cost: 2 (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma. No algorithm sends fewer bytes, but the
 * latency grows with p.
 */
#include "comm/ring.h"

static bool ring_round(const ctn__place *me, int64_t n, int k, ctn__round *r)
{
    if (k >= 2 * (me->size - 1)) return false;
    ctn__ring_both(me, r, 0, n, me->size, me->rank, k);
    return true;
}

static bool scatter_round(const ctn__place *me, int64_t n, int k, ctn__round *r)
{
    if (k >= me->size - 1) return false;
    ctn__ring_step(me, r, 0, n, me->size, me->rank, k, true);
    return true;
}

static bool gather_round(const ctn__place *me, int64_t n, int k, ctn__round *r)
{
    if (k >= me->size - 1) return false;
    ctn__ring_step(me, r, 0, n, me->size, me->rank, k, false);
    return true;
}

static double scatter_cost(const ctn__place *me, double bytes, double alpha, double beta,
                           double gamma)
{
    return (me->size - 1) * (alpha + bytes / me->size * (beta + gamma));
}

static double gather_cost(const ctn__place *me, double bytes, double alpha, double beta,
                          double gamma)
{
    (void)gamma;
    return scatter_cost(me, bytes, alpha, beta, 0);
}

static double ring_cost(const ctn__place *me, double bytes, double alpha, double beta, double gamma)
{
    return scatter_cost(me, bytes, alpha, beta, gamma) + gather_cost(me, bytes, alpha, beta, 0);
}

const ctn__algorithm ctn__ring = {.name = "ring", .round = ring_round, .cost = ring_cost};
const ctn__algorithm ctn__ring_scatter = {.name = "reduce-scatter",
                                          .round = scatter_round,
                                          .cost = scatter_cost,
                                          .blocks = true};
const ctn__algorithm ctn__ring_gather = {.name = "allgather",
                                         .round = gather_round,
                                         .cost = gather_cost,
                                         .blocks = true};
