/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of allreduce algorithms. To add one, write a file and add a line here. The order is
 * that of ctn_comm_algorithm_name; if measurement finds no difference, the first one wins.
 */
#include "comm/comm.h"

static const ctn__algorithm *const table[CTN__ALGORITHMS] = {
    &ctn__flat,  &ctn__ring, &ctn__rabenseifner, &ctn__hierarchical,
    &ctn__torus, &ctn__rsap, &ctn__doubling,
};

const ctn__algorithm *ctn__algorithm_at(int i)
{
    return i >= 0 && i < CTN__ALGORITHMS ? table[i] : NULL;
}

const ctn__algorithm *ctn__algorithm_find(const char *name)
{
    for (int i = 0; ctn__algorithm_at(i) != NULL; i++)
        if (strcmp(name, table[i]->name) == 0) return table[i];
    return NULL;
}

bool ctn__algorithm_fits(const ctn__algorithm *a, const ctn_comm *c)
{
    if (a->native && c->opt.wire != CTN_F32 && c->place.size > 1) return false;
    if ((a->native || a->region) && c->net->survives && c->place.size > 1) return false;
    return !a->fits || a->fits(&c->place);
}

/* A 4 kB message costs hardly more than an empty one, from shared memory to TCP. */
static bool long_blocks(const ctn_comm *c, int64_t count)
{
    return count / c->place.size >= 4096 / (int64_t)sizeof(float);
}

const ctn__algorithm *ctn__scatter_of(const ctn_comm *c, int64_t count)
{
    return long_blocks(c, count) ? &ctn__ring_scatter : &ctn__halving_scatter;
}

const ctn__algorithm *ctn__gather_of(const ctn_comm *c, int64_t count)
{
    return long_blocks(c, count) ? &ctn__ring_gather : &ctn__doubling_gather;
}
