/* SPDX-License-Identifier: Apache-2.0
 *
 * Gather and scatter: one part from each rank to one rank, the root, and back. Parts travel through
 * the first rank of each node, so that the root communicates with nodes instead of ranks. Over TCP
 * it would otherwise need one connection per rank.
 *
 * Cost: one message for an ordinary rank, one per rank of its node for the first rank of a node,
 * and one per rank of its node plus one per other node for the root.
 */
#include "comm/comm.h"

/* The rank that speaks for node n. */
static int leader(const ctn__place *p, int n, int root)
{
    return n == p->node_of[root] ? root : p->members[p->first[n]];
}

/* Ranks of node n, in order; returns how many. */
static int ranks_of(const ctn__place *p, int n, const int **r)
{
    *r = p->members + p->first[n];
    return p->first[n + 1] - p->first[n];
}

static int longest_node(const ctn__place *p)
{
    int most = 0;
    for (int n = 0; n < p->nodes; n++) {
        const int count = p->first[n + 1] - p->first[n];
        if (count > most) most = count;
    }
    return most;
}

static ctn_status check_root(const ctn_comm *c, const char *who, int root)
{
    if (root >= 0 && root < c->place.size) return CTN_OK;
    return ctn_fail(CTN_EARG, "%s: root %d does not exist, there are %d ranks", who, root,
                    c->place.size);
}

/* block: parts of the ranks of one node, in order. */
static ctn_status gather(ctn_comm *c, const char *mine, size_t bytes, char *all, int root,
                         char *block)
{
    const ctn__place *p = &c->place;
    const bool is_root = p->rank == root;
    const int *r;
    int n = ranks_of(p, p->my_node, &r);
    for (int i = 0; i < n; i++) {
        char *to = is_root ? all + (size_t)r[i] * bytes : block + (size_t)i * bytes;
        if (r[i] == p->rank) memmove(to, mine, bytes);
        else CTN_TRY(ctn__gather_receive(c, to, bytes, r[i]));
    }
    if (!is_root) return ctn__gather_send(c, block, (size_t)n * bytes, root);
    for (int node = 0; node < p->nodes; node++) {
        if (node == p->my_node) continue;
        n = ranks_of(p, node, &r);
        CTN_TRY(ctn__gather_receive(c, block, (size_t)n * bytes, r[0]));
        for (int i = 0; i < n; i++)
            memcpy(all + (size_t)r[i] * bytes, block + (size_t)i * bytes, bytes);
    }
    return CTN_OK;
}

/* The reverse of gather. */
static ctn_status scatter(ctn_comm *c, const char *all, size_t bytes, char *mine, int root,
                          char *block)
{
    const ctn__place *p = &c->place;
    const bool is_root = p->rank == root;
    const int *r;
    int n = ranks_of(p, p->my_node, &r);
    if (!is_root) CTN_TRY(ctn__gather_receive(c, block, (size_t)n * bytes, root));
    for (int i = 0; i < n; i++) {
        const char *from = is_root ? all + (size_t)r[i] * bytes : block + (size_t)i * bytes;
        if (r[i] == p->rank) memmove(mine, from, bytes);
        else CTN_TRY(ctn__gather_send(c, from, bytes, r[i]));
    }
    for (int node = 0; is_root && node < p->nodes; node++) {
        if (node == p->my_node) continue;
        n = ranks_of(p, node, &r);
        for (int i = 0; i < n; i++)
            memcpy(block + (size_t)i * bytes, all + (size_t)r[i] * bytes, bytes);
        CTN_TRY(ctn__gather_send(c, block, (size_t)n * bytes, r[0]));
    }
    return CTN_OK;
}

ctn_status ctn_comm_gather(ctn_comm *c, const void *mine, size_t bytes, void *all, int root)
{
    CTN_TRY(check_root(c, "comm_gather", root));
    const int lead = leader(&c->place, c->place.my_node, root);
    if (bytes == 0) return CTN_OK;
    if (c->place.rank != lead) return ctn__gather_send(c, mine, bytes, lead);
    char *block = ctn__malloc(ctn__mul((size_t)longest_node(&c->place), bytes));
    if (!block) return CTN_ENOMEM;
    ctn_status st = gather(c, mine, bytes, all, root, block);
    ctn__free(block);
    return st;
}

ctn_status ctn_comm_scatter(ctn_comm *c, const void *all, size_t bytes, void *mine, int root)
{
    CTN_TRY(check_root(c, "comm_scatter", root));
    const int lead = leader(&c->place, c->place.my_node, root);
    if (bytes == 0) return CTN_OK;
    if (c->place.rank != lead) return ctn__gather_receive(c, mine, bytes, lead);
    char *block = ctn__malloc(ctn__mul((size_t)longest_node(&c->place), bytes));
    if (!block) return CTN_ENOMEM;
    ctn_status st = scatter(c, all, bytes, mine, root, block);
    ctn__free(block);
    return st;
}
