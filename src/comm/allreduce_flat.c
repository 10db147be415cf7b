/* SPDX-License-Identifier: Apache-2.0
 *
 * Allreduce, flat: the transport's own MPI_Allreduce of the whole piece. All other algorithms are
 * compared with it.
 *
 * Cost of the best algorithm that MPI libraries have for long vectors, with p ranks and n bytes:
 *     2 ceil(lg p) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma
 */
#include "comm/comm.h"

static bool flat_round(const ctn__place *me, int64_t n, int k, ctn__round *r)
{
    if (k > 0 || n == 0 || me->size == 1) return false;
    *r = (ctn__round){.kind = CTN__ROUND_NATIVE, .scount = n, .rcount = n, .add = true};
    return true;
}

static double flat_cost(const ctn__place *me, double bytes, double alpha, double beta, double gamma)
{
    int p = me->size, steps = 0;
    while (1 << steps < p) steps++;
    double most = bytes * (p - 1) / p; /* all blocks except one */
    return 2 * steps * alpha + 2 * most * beta + most * gamma;
}

/* The transport cuts pieces further. */
static int flat_parts(const ctn__place *me)
{
    (void)me;
    return 4;
}

const ctn__algorithm ctn__flat = {
    .name = "flat", .round = flat_round, .cost = flat_cost, .parts = flat_parts, .native = true};
