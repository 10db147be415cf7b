/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators of parts of the ranks. A transport that can split does so itself (MPI). The ranks
 * of a loopback group are threads of one process, so the first rank of a part makes the new group
 * and gives the others the address of their place in it.
 */
#include <unistd.h>

#include "comm/comm.h"

typedef struct {
    int color, key;
} wish;

/* A rank of the new group and its position in the old one. */
typedef struct {
    int key, rank;
} member;

static int by_key(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : 1;
}

/* Makes the group of these members; their nodes are those that they share in c. */
static ctn_status make_group(const ctn_comm *c, const member *m, int n, ctn__net ***out)
{
    ctn__net **net = ctn__calloc((size_t)n, sizeof(ctn__net *));
    int *node = ctn__calloc((size_t)n, sizeof *node);
    ctn_status st = net && node ? CTN_OK : CTN_ENOMEM;
    for (int i = 0; i < n && st == CTN_OK; i++) /* the first member on the same node */
        while (c->net->node[m[node[i]].rank] != c->net->node[m[i].rank]) node[i]++;
    if (st == CTN_OK) st = ctn__net_loopback_nodes(net, n, node);
    ctn__free(node);
    if (st < 0) ctn__free(net);
    else *out = net;
    return st;
}

/* nets: the group, of which this rank takes its own place; NULL on the other ranks. all: room for
 * one address per rank. */
static ctn_status hand_out(ctn_comm *c, const member *m, int n, ctn__net **nets, uintptr_t *all,
                           ctn__net **out)
{
    const uintptr_t mine = (uintptr_t)nets;
    ctn_status st = ctn_comm_allgather(c, &mine, sizeof mine, all);
    for (int i = 0; i < n && st == CTN_OK; i++) {
        ctn__net **group = (ctn__net **)all[m[0].rank];
        if (m[i].rank == c->place.rank && group) *out = group[i];
    }
    /* The first rank frees the list when all have read it. */
    if (st == CTN_OK) st = ctn_comm_barrier(c);
    ctn__free(nets);
    if (st == CTN_OK && n > 0 && !*out)
        st = ctn_fail(CTN_ENOMEM, "comm_split: rank %d is out of memory", m[0].rank);
    return st;
}

static ctn_status split_loopback(ctn_comm *c, int color, int key, ctn__net **out)
{
    const size_t size = (size_t)c->place.size;
    ctn__net **nets = NULL;
    ctn_status st = CTN_OK;
    wish *all = ctn__calloc(size, sizeof *all);
    member *m = ctn__calloc(size, sizeof *m);
    uintptr_t *address = ctn__calloc(size, sizeof *address);
    int n = 0;
    if (!all || !m || !address) {
        st = ctn__comm_alone(c, CTN_ENOMEM);
        goto done;
    }
    CTN_TRY_GOTO(st, done, ctn_comm_allgather(c, &(wish){color, key}, sizeof *all, all));
    for (int r = 0; r < c->place.size; r++)
        if (color >= 0 && all[r].color == color) m[n++] = (member){all[r].key, r};
    qsort(m, (size_t)n, sizeof *m, by_key);
    /* Without memory, nets stays NULL, and the whole part fails. */
    if (n > 0 && m[0].rank == c->place.rank) (void)make_group(c, m, n, &nets);
    CTN_TRY_GOTO(st, done, hand_out(c, m, n, nets, address, out));
done:
    ctn__free(all);
    ctn__free(m);
    ctn__free(address);
    return st;
}

/* All parts of a communicator, and parts of parts, are one family. Rank 0 names it. */
static ctn_status name_family(ctn_comm *c)
{
    uint64_t name = c->family;
    if (name == 0) name = ctn__mix(ctn__mix((uint64_t)getpid(), ctn__now_ns()), (uintptr_t)c) | 1;
    CTN_TRY(ctn_comm_broadcast(c, &name, sizeof name, 0));
    c->family = name;
    return CTN_OK;
}

ctn_status ctn_comm_split(ctn_comm **out, ctn_comm *c, int color, int key, const ctn_comm_opt *opt)
{
    ctn__net *net = NULL;
    if (!out || !c) return ctn_fail(CTN_EARG, "comm_split: NULL argument");
    *out = NULL;
    if (c->failed) return ctn_fail(CTN_EPEER, "%s", c->why);
    CTN_TRY(name_family(c));
    c->splits++;
    if (c->net->vt->split) CTN_TRY(c->net->vt->split(c->net, color, key, &net));
    else if (ctn__net_is_loopback(c->net)) CTN_TRY(split_loopback(c, color, key, &net));
    else return ctn_fail(CTN_ESTATE, "comm_split: not possible with %s", c->net->name);
    if (!net) return CTN_OK;
    CTN_TRY(ctn__comm_new(out, net, opt));
    (*out)->guest = c->guest;
    (*out)->family = c->family;
    (*out)->member = ctn__mix(c->member, ctn__mix(c->splits, (uint64_t)color)) | 1;
    return CTN_OK;
}
