/* SPDX-License-Identifier: Apache-2.0
 *
 * The position of a rank: nodes and local numbers from the transport's map of nodes, and the grid
 * of torus and rsap. Made once per communicator, with the same tables on every rank.
 */
#include "comm/comm.h"

/* The largest divisor of size up to its square root, so the grid is wide rather than high. */
static int square_rows(int size)
{
    int rows = 1;
    for (int r = 2; r <= size / r; r++)
        if (size % r == 0) rows = r;
    return rows;
}

/* Nodes are numbered by their lowest rank; members are in rank order. `first` must be zeroed and
 * have room for one entry more than there are nodes. */
static ctn_status fill(const ctn__net *net, ctn__place *p, int *node_of, int *local_of, int *first,
                       int *members)
{
    for (int r = 0; r < net->size; r++) {
        int lowest = net->node[r];
        if (lowest < 0 || lowest > r || net->node[lowest] != lowest)
            return ctn_fail(CTN_EENGINE,
                            "comm: bad node map from %s: the lowest rank of rank %d's node is %d",
                            net->name, r, lowest);
        node_of[r] = lowest == r ? p->nodes++ : node_of[lowest];
        local_of[r] = first[node_of[r] + 1]++;
    }
    p->lanes = net->size;
    for (int n = 0; n < p->nodes; n++) {
        if (first[n + 1] < p->lanes) p->lanes = first[n + 1];
        first[n + 1] += first[n];
    }
    for (int r = 0; r < net->size; r++) members[first[node_of[r]] + local_of[r]] = r;
    return CTN_OK;
}

ctn_status ctn__place_make(ctn_comm *c)
{
    const ctn__net *net = c->net;
    ctn__place *p = &c->place;
    size_t size = (size_t)net->size;
    *p = (ctn__place){.rank = net->rank, .size = net->size};
    p->rows = c->opt.rows == 0 ? square_rows(net->size) : c->opt.rows;
    if (p->rows < 1 || net->size % p->rows != 0)
        return ctn_fail(CTN_EARG, "comm: rows is %d, which does not divide the number of ranks, %d",
                        p->rows, net->size);
    p->cols = net->size / p->rows;

    c->tables = ctn__calloc(4 * size + 1, sizeof *c->tables);
    if (c->tables == NULL) return CTN_ENOMEM;
    int *node_of = c->tables, *local_of = node_of + size, *members = local_of + size;
    int *first = members + size;
    CTN_TRY(fill(net, p, node_of, local_of, first, members));
    p->node_of = node_of;
    p->local_of = local_of;
    p->members = members;
    p->first = first;
    p->my_node = node_of[p->rank];
    p->local = local_of[p->rank];
    p->locals = first[p->my_node + 1] - first[p->my_node];
    return CTN_OK;
}
