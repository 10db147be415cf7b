/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan cache: a hash table with a least-recently-used list, limited in plans and in bytes.
 */
#include "plan/plan.h"

static size_t bucket_of(const ctn__planner *pl, ctn__hash128 key)
{
    return (size_t)key.lo & (pl->nbucket - 1);
}

static void unlink_lru(ctn__planner *pl, ctn__plan *p)
{
    if (p->newer) p->newer->older = p->older;
    else pl->newest = p->older;
    if (p->older) p->older->newer = p->newer;
    else pl->oldest = p->newer;
    p->newer = p->older = NULL;
}

static void push_newest(ctn__planner *pl, ctn__plan *p)
{
    p->older = pl->newest;
    if (pl->newest) pl->newest->newer = p;
    else pl->oldest = p;
    pl->newest = p;
}

ctn__plan *ctn__cache_find(ctn__planner *pl, ctn__hash128 key)
{
    if (pl->nbucket == 0) return NULL;
    ctn__plan *p = pl->bucket[bucket_of(pl, key)];
    while (p && (p->key.lo != key.lo || p->key.hi != key.hi)) p = p->chain;
    if (p && p != pl->newest) {
        unlink_lru(pl, p);
        push_newest(pl, p);
    }
    return p;
}

void ctn__cache_drop(ctn__planner *pl, ctn__plan *p)
{
    ctn__plan **link = &pl->bucket[bucket_of(pl, p->key)];
    while (*link != p) link = &(*link)->chain;
    *link = p->chain;
    unlink_lru(pl, p);
    pl->nplans--;
    pl->plan_bytes -= p->bytes;
    if (pl->last == p) pl->last = NULL;
    ctn__plan_free(p);
}

ctn_status ctn__cache_add(ctn__planner *pl, ctn__plan *p)
{
    if (pl->nbucket == 0) {
        size_t n = 64;
        while (n < (size_t)pl->max_plans && n < 65536) n *= 2;
        pl->bucket = ctn__calloc(n, sizeof *pl->bucket);
        if (!pl->bucket) {
            ctn__plan_free(p);
            return CTN_ENOMEM;
        }
        pl->nbucket = n;
    }
    while (pl->oldest &&
           (pl->nplans >= pl->max_plans || pl->plan_bytes + p->bytes > pl->max_bytes)) {
        ctn__cache_drop(pl, pl->oldest);
        ctn__trace_add(pl->trace, CTN__COUNT_PLAN_EVICTIONS, 1);
    }
    ctn__plan **b = &pl->bucket[bucket_of(pl, p->key)];
    p->chain = *b;
    *b = p;
    push_newest(pl, p);
    pl->nplans++;
    pl->plan_bytes += p->bytes;
    return CTN_OK;
}

void ctn__cache_clear(ctn__planner *pl)
{
    while (pl->oldest) ctn__cache_drop(pl, pl->oldest);
    ctn__free(pl->bucket);
    pl->bucket = NULL;
    pl->nbucket = 0;
}
