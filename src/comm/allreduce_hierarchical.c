/* SPDX-License-Identifier: Apache-2.0
 *
 * Allreduce in two levels: through shared memory inside a node, by rings between nodes, so that each byte crosses a node's link
 * once each way. N nodes; L lanes: the ranks that every node has. Local rank l < L owns slice l (of L); others own none.
 *
 *   1. Share: copy the piece, but for the own slice, into the own region.
 *   2. Sum: to the own slice those of the other regions of the node, in the order of local ranks.
 *   3. Allreduce of the slice by ring among the ranks with the same local number, one of each node.
 *   4. Share the own slice.
 *   5. Fetch the other slices out of their owners' regions.
 *
 *         node 0             node 1
 *         rank 0  [A b]  <->  rank 3  [A b]       L = 2: slice A is summed by 0 and by 3, which then exchange it,
 *         rank 1  [a B]  <->  rank 4  [a B]       B by 1 and 4; 2 only gives and takes
 *         rank 2  [a b]
 *
 * Steps 1, 2, 4 and 5 are left out by a rank that is alone in its node, 3 when there is one node. In step 4 a rank writes only where
 * nobody has read in step 2, so that nobody waits for a slow sum. A slice has the same bits on all its owners.
 *
 * Cost, n bytes, M the ranks of the own node. Lanes run at the same time but share the node's link, so beta counts the node's
 * bytes, not the rank's; passes over memory count as sums:
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

static double hierarchical_cost(const ctn__place *me, double bytes, double alpha, double beta,
                                double gamma)
{
    double N = me->nodes, L = me->lanes, M = me->locals;
    double most = bytes * (N - 1) / N;
    double cost = 2 * (N - 1) * alpha + 2 * most * beta + most / L * gamma;
    if (M > 1) cost += (2 + (M - 2) / L) * bytes * gamma;
    return cost;
}

static int hierarchical_parts(const ctn__place *me)
{
    return me->lanes * me->nodes;
}

/* With one rank in each node it is the ring under another name. */
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
