/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks are in a timeline, and how far their clocks are from rank 0's. Rank 0 asks one rank
 * of each node for its time repeatedly and uses the answer with the shortest round trip.
 *
 * Cost: 2 ROUNDS messages on rank 0 for each node with ranks in the sample, as many on the first
 * of these ranks, and none on the others.
 */
#include "distributed/timeline.h"

#include <catena/dist.h>

enum {
    ROUNDS = 32, /* round trips per clock */
    SAMPLED = 64 /* default number of ranks in the sample */
};

/* ---- the sample ------------------------------------------------------------------------------ */

ctn__sample ctn__sample_of(int size, int ranks)
{
    const int most = ranks > 0 ? ranks : SAMPLED;
    return (ctn__sample){.size = size, .n = size < most ? size : most};
}

int ctn__sample_rank(ctn__sample s, int i)
{
    return (int)((int64_t)i * s.size / s.n);
}

int ctn__sample_number(ctn__sample s, int rank)
{
    const int i = (int)(((int64_t)rank * s.n + s.size - 1) / s.size);
    return i < s.n && ctn__sample_rank(s, i) == rank ? i : -1;
}

int ctn_dist_timeline_has(int rank, int size, int ranks)
{
    if (rank < 0 || rank >= size) return 0;
    return ctn__sample_number(ctn__sample_of(size, ranks), rank) >= 0;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

/* On rank 0. Rank r reads its clock between t0 and t1 of rank 0's clock. */
static ctn_status ask(ctn_comm *c, int r, ctn__clock *now, void *user, ctn__clock_offset *of)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        char go = 0;
        uint64_t theirs = 0, t0 = now(user);
        CTN_TRY(ctn__comm_swap(c, CTN__TAG_CLOCK, &go, 1, r, &theirs, sizeof theirs, r));
        uint64_t t1 = now(user), took = t1 - t0;
        if (took >= best) continue;
        best = took;
        of->ahead_ns = (int64_t)(theirs - (t0 + took / 2));
        of->within_ns = (int64_t)(took / 2);
    }
    return CTN_OK;
}

static ctn_status answer(ctn_comm *c, ctn__clock *now, void *user)
{
    for (int i = 0; i < ROUNDS; i++) {
        char go = 0;
        CTN_TRY(ctn__comm_swap(c, CTN__TAG_CLOCK, NULL, 0, 0, &go, 1, 0));
        uint64_t t = now(user);
        CTN_TRY(ctn__comm_swap(c, CTN__TAG_CLOCK, &t, sizeof t, 0, NULL, 0, 0));
    }
    return CTN_OK;
}

/* True if this rank is the first of the sample on its node, and the node is not rank 0's. */
static bool is_asked(const ctn__place *me, ctn__sample s)
{
    const int *member = me->members + me->first[me->my_node];
    while (ctn__sample_number(s, *member) < 0 && *member != me->rank) member++;
    return me->my_node != me->node_of[0] && ctn__sample_number(s, me->rank) >= 0 &&
           *member == me->rank;
}

ctn_status ctn__clock_offsets(ctn_comm *c, ctn__sample s, ctn__clock *now, void *user,
                              ctn__clock_offset *of)
{
    const ctn__place *me = &c->place;
    ctn_status st = CTN_OK;
    if (me->rank > 0) return is_asked(me, s) ? answer(c, now, user) : CTN_OK;
    /* per node: 1 + the number of its rank that was asked; 0: not asked yet */
    int *known = ctn__calloc((size_t)me->nodes, sizeof *known);
    if (!known) return CTN_ENOMEM;
    for (int i = 0; i < s.n && st == CTN_OK; i++) {
        const int rank = ctn__sample_rank(s, i), node = me->node_of[rank];
        of[i] = (ctn__clock_offset){0, 0};
        if (node == me->my_node) continue;
        if (known[node]) of[i] = of[known[node] - 1];
        else st = ask(c, rank, now, user, &of[i]);
        if (!known[node]) known[node] = i + 1;
    }
    ctn__free(known);
    return st;
}
