/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of a communicator in a Cartesian grid, in row-major order: the last dimension varies
 * fastest. Used by halo.c and field.c.
 */
#ifndef CTN_DISTRIBUTED_GRID_H
#define CTN_DISTRIBUTED_GRID_H

#include "distributed/distributed.h"

struct ctn_dist_grid {
    ctn_comm *c;
    int ndim;
    int ranks[CTN_MAX_SPATIAL], at[CTN_MAX_SPATIAL]; /* number of ranks; position of this one */
    unsigned periodic;
};

/* Does a block continue on another rank, or at the other end of the field? */
static inline bool ctn__grid_divides(const ctn_dist_grid *g, int i)
{
    return g->ranks[i] > 1 || (g->periodic >> i & 1);
}

#endif
