/* SPDX-License-Identifier: Apache-2.0
 *
 * The update of a range of the pool: the whole pool, the buckets whose sums have arrived, or a
 * rank's own block of a bucket (shard.c), whose state has other offsets than its values.
 *
 * If ranks exchange values in 16 bits, the pool holds the rounded values that all ranks share.
 * The f32 values in which updates accumulate, the masters, are then part of the state. A master
 * is valid as long as it rounds to the value in the pool. Otherwise the user has set the value,
 * and the master is set to it.
 */
#include "optim/optim.h"
#include "tensor/half.h"

void ctn__master_follow(float *master, const float *w, int64_t n, ctn_dtype type)
{
    for (int64_t i = 0; i < n; i++) {
        float seen = type == CTN_BF16  ? ctn__bf16_get(ctn__bf16_put(master[i]))
                     : type == CTN_F16 ? ctn__f16_get(ctn__f16_put(master[i]))
                                       : master[i];
        if (seen != w[i]) master[i] = w[i];
    }
}

/* The intersections of the segments with [begin,end), relative to begin, starting with segment
 * *i. At most n of them; returns how many. */
static int64_t cut_segments(const ctn_optim *o, int64_t begin, int64_t end, int64_t *i,
                            ctn__sweep_seg *seg, int64_t n)
{
    int64_t found = 0;
    for (; *i < o->nseg && found < n; ++*i) {
        ctn__sweep_seg one = o->seg[*i];
        one.begin = one.begin > begin ? one.begin : begin;
        one.end = one.end < end ? one.end : end;
        if (one.begin >= one.end) continue;
        one.begin -= begin;
        one.end -= begin;
        seg[found++] = one;
    }
    return found;
}

static ctn__sweep_pool pools(const ctn_optim *o, int64_t begin, int64_t packed)
{
    const ctn__pool *p = o->pool;
    ctn__sweep_pool at = {.w = ctn__pool_at(p, p->w, begin),
                          .g = ctn__pool_at(p, p->g, begin),
                          .f64 = p->dtype == CTN_F64};
    if (o->nstates > 0) at.s1 = ctn__pool_at(p, o->state[0], packed);
    if (o->nstates > 1) at.s2 = ctn__pool_at(p, o->state[1], packed);
    if (o->nstates > 2) at.s3 = ctn__pool_at(p, o->state[2], packed);
    return at;
}

static void sweep_part(const ctn_optim *o, ctn__sweep_kind kind, const ctn__sweep_pool *at,
                       int64_t begin, int64_t end, int threads)
{
    ctn__sweep_seg seg[64];
    for (int64_t i = 0; i < o->nseg;) {
        int64_t n = cut_segments(o, begin, end, &i, seg, 64);
        ctn__sweep(kind, at, seg, n, threads);
    }
}

void ctn__update_part(ctn_optim *o, int64_t begin, int64_t end, int64_t packed, int threads)
{
    ctn__sweep_pool at = pools(o, begin, packed);
    void *w = at.w;
    if (o->master) { /* only f32 */
        at.w = o->master + packed;
        ctn__master_follow(at.w, w, end - begin, o->given);
    }
    sweep_part(o, o->kind, &at, begin, end, threads);
    if (o->master) memcpy(w, at.w, (size_t)(end - begin) * o->pool->unit);
}

void ctn__sweep_gradients(ctn_optim *o, ctn__sweep_kind kind, int threads)
{
    for (ctn__own k = {0}; ctn__own_next(o, &k);) {
        const ctn__sweep_pool at = pools(o, k.begin, k.packed);
        sweep_part(o, kind, &at, k.begin, k.end, threads);
    }
}

void ctn__update_range(void *owner, int64_t begin, int64_t end, int threads)
{
    ctn_optim *o = owner;
    const ctn__sweep_pool all = pools(o, 0, 0);
    if (end - begin == o->pool->count) ctn__sweep(o->kind, &all, o->seg, o->nseg, threads);
    else ctn__update_part(o, begin, end, begin, threads);
}
