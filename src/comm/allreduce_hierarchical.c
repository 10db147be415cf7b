/* SPDX-License-Identifier: Apache-2.0
 *
 * Allreduce in two levels: through shared memory inside a node and by rings between nodes, so that
 * each byte crosses a node's link once in each direction. There are N nodes and L lanes, where L is
 * the number of ranks that every node has. Local rank l < L owns slice l (of L); others own none.
 *
 *   1. Share: copy the piece, except the own slice, into the own region.
 *   2. Sum: add the slices in the node's other regions to the own slice, in order of local ranks.
 *   3. Allreduce the slice by a ring of the ranks with the same local number, one from each node.
 *   4. Share the own slice.
 *   5. Fetch the other slices from their owners' regions.
 *
 *         node 0             node 1
 *         rank 0  [A b]  <->  rank 3  [A b]       L = 2: ranks 0 and 3 sum slice A, then exchange
 *         rank 1  [a B]  <->  rank 4  [a B]       it; 1 and 4 do the same with B;
 *         rank 2  [a b]                           2 only shares and fetches
 *
 * A rank that is alone on its node skips steps 1, 2, 4 and 5; with one node, step 3 is skipped. In
 * step 4 a rank writes only where nobody reads in step 2, so nobody waits for a slow sum. A slice
 * has the same bits on all its owners.
 *
 * Cost, n bytes, M ranks on the node that has the most. Lanes run at the same time but share the
 * node's link, so beta counts the bytes of the node, not of the rank; passes over memory count as
 * sums:
 *     2(N-1) alpha + 2 (N-1)/N n beta + (N-1)/N n/L gamma    [+ (2 + (M-2)/L) n gamma if M > 1]
 */
#include "comm/ring.h"

static bool hierarchical_round(const ctn__place *me, int64_t n, int k, ctn__round *r)
{
    bool alone = me->locals == 1, owner = me->local < me->lanes;
    int64_t begin = owner ? ctn__part(n, me->lanes, me->local) : n;
    int64_t count = owner ? ctn__part(n, me->lanes, me->local + 1) - begin : 0;
    int step = alone ? k : k - 2, steps = owner ? 2 * (me->nodes - 1) : 0;
    *r = (ctn__round){
        .sbegin = begin, .scount = count, .rbegin = begin, .rcount = count, .add = false};
    if (step == -2) {
        r->kind = CTN__ROUND_SHARE;
        r->sbegin = 0;
        r->scount = n;
    } else if (step == -1) {
        r->kind = CTN__ROUND_SUM;
        r->add = true;
    } else if (step < steps) {
        ctn__ring_both(me, r, begin, count, me->nodes, me->my_node, step);
        r->to = me->members[me->first[r->to] + me->local];
        r->from = me->members[me->first[r->from] + me->local];
    } else if (alone || step > steps + 1) {
        return false;
    } else {
        r->kind = step == steps ? CTN__ROUND_SHARE : CTN__ROUND_FETCH;
        if (step == steps) r->rcount = 0;
    }
    return true;
}

/* The slowest node decides, and all ranks must get the same cost. */
static int most_ranks(const ctn__place *me)
{
    int most = 0;
    for (int n = 0; n < me->nodes; n++)
        if (me->first[n + 1] - me->first[n] > most) most = me->first[n + 1] - me->first[n];
    return most;
}

static double hierarchical_cost(const ctn__place *me, double bytes, double alpha, double beta,
                                double gamma)
{
    double N = me->nodes, L = me->lanes, M = most_ranks(me);
    double most = bytes * (N - 1) / N;
    double cost = 2 * (N - 1) * alpha + 2 * most * beta + most / L * gamma;
    if (M > 1) cost += (2 + (M - 2) / L) * bytes * gamma;
    return cost;
}

static int hierarchical_parts(const ctn__place *me)
{
    return me->lanes * me->nodes;
}

/* With one rank per node it would be the ring under another name. */
static bool hierarchical_fits(const ctn__place *me)
{
    return me->size == 1 || me->nodes < me->size;
}

const ctn__algorithm ctn__hierarchical = {.name = "hierarchical",
                                          .round = hierarchical_round,
                                          .cost = hierarchical_cost,
                                          .parts = hierarchical_parts,
                                          .region = true,
                                          .fits = hierarchical_fits};
