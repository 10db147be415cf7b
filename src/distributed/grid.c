/* SPDX-License-Identifier: Apache-2.0
 *
 * Grids of ranks, for fields that are divided over them.
 */
#include "distributed/grid.h"

static ctn_status check(const ctn_comm *c, int ndim, const int64_t *ranks, unsigned periodic)
{
    int64_t product = 1;
    if (ndim < 1 || ndim > CTN_MAX_SPATIAL || !ranks)
        return ctn_fail(CTN_EARG, "dist_grid_new: got %d dimensions, expected 1 to %d", ndim,
                        CTN_MAX_SPATIAL);
    for (int i = 0; i < ndim; i++) {
        if (ranks[i] < 1 || ranks[i] > ctn_comm_size(c))
            return ctn_fail(CTN_EARG, "dist_grid_new: got %lld ranks in dimension %d of %d in all",
                            (long long)ranks[i], i, ctn_comm_size(c));
        product *= ranks[i];
    }
    if (product != ctn_comm_size(c))
        return ctn_fail(CTN_EARG, "dist_grid_new: the grid has %lld places, but there are %d ranks",
                        (long long)product, ctn_comm_size(c));
    if (periodic >> ndim)
        return ctn_fail(CTN_EARG, "dist_grid_new: periodic is %#x, but there are %d dimensions",
                        periodic, ndim);
    return CTN_OK;
}

ctn_status ctn_dist_grid_new(ctn_dist_grid **out, ctn_comm *c, int ndim, const int64_t *ranks,
                             unsigned periodic)
{
    if (!out || !c) return ctn_fail(CTN_EARG, "dist_grid_new: NULL argument");
    *out = NULL;
    CTN_TRY(check(c, ndim, ranks, periodic));
    ctn_dist_grid *g = ctn__calloc(1, sizeof *g);
    if (!g) return CTN_ENOMEM;
    *g = (ctn_dist_grid){.c = c, .ndim = ndim, .periodic = periodic};
    for (int i = ndim - 1, rest = ctn_comm_rank(c); i >= 0; i--) {
        g->ranks[i] = (int)ranks[i];
        g->at[i] = rest % g->ranks[i];
        rest /= g->ranks[i];
    }
    *out = g;
    return CTN_OK;
}

void ctn_dist_grid_free(ctn_dist_grid *g)
{
    ctn__free(g);
}

int64_t ctn_dist_grid_begin(const ctn_dist_grid *g, int dimension, int64_t length)
{
    if (dimension < 0 || dimension >= g->ndim) return 0;
    return ctn__part(length, g->ranks[dimension], g->at[dimension]);
}

int64_t ctn_dist_grid_length(const ctn_dist_grid *g, int dimension, int64_t length)
{
    if (dimension < 0 || dimension >= g->ndim) return length;
    return ctn__part(length, g->ranks[dimension], g->at[dimension] + 1) -
           ctn_dist_grid_begin(g, dimension, length);
}
