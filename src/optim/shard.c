/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of parts of the pool, of sharded ones before all: after the reduce-scatter a rank has the sums of its block of every bucket; it keeps
 * optimizer state for those blocks only, packed in bucket order, updates their values and gives them to the other ranks, which go on
 * meanwhile.
 *
 * Where values are given in 16 bits, the pool has what all ranks have, rounded, and the f32 that updates add up in are state too, the masters.
 * A master is good as long as it rounds to the value in the pool; otherwise somebody has set the value, and the master follows.
 */
#include "optim/optim.h"

#include <math.h>

#include "tensor/half.h"

/* This rank's block of a bucket: elements of the pool, and where its state begins in the packed pools. */
typedef struct {
    int bucket; /* -1: before the first */
    int64_t begin, end, packed;
} block;

static const block before_first = {.bucket = -1};

static bool next_block(const ctn__exchange *x, block *k)
{
    k->packed += (k->end - k->begin + 15) / 16 * 16;
    if (++k->bucket >= ctn__exchange_buckets(x)->n) return false;
    const ctn__range own = ctn__exchange_own(x, k->bucket);
    k->begin = own.begin;
    k->end = own.end;
    return true;
}

static int64_t own_count(const ctn__exchange *x)
{
    block k = before_first;
    while (next_block(x, &k)) continue;
    return k.packed;
}

int64_t ctn__state_bytes(const ctn_optim *o)
{
    const ctn__exchange *x = o->pool->exchange;
    int64_t n = x && ctn__exchange_sharded(x) ? own_count(x) : o->pool->count;
    return n * (o->nstates + (o->master != NULL)) * (int64_t)sizeof(float);
}

ctn_status ctn__shard_state(ctn_optim *o)
{
    int64_t n = own_count(o->pool->exchange);
    if (o->t > 0) return ctn_fail(CTN_ESTATE, "dist_optim: shard before the first step");
    for (int k = 0; k < o->nstates; k++) {
        float *s = ctn__aligned((size_t)n * sizeof *s + 64);
        if (!s) return CTN_ENOMEM;
        ctn__zero(s, (size_t)n * sizeof *s, o->ctx->threads);
        ctn__free(o->state[k]);
        o->state[k] = s;
    }
    return CTN_OK;
}

/* Sums over this rank's blocks of what is trained, then one message of two doubles. */
ctn_status ctn__shard_norm(ctn_optim *o, int threads, bool *finite)
{
    ctn__exchange *x = o->pool->exchange;
    const ctn__pool *p = o->pool;
    double sum[2] = {0, 0}, theirs[2];
    for (block k = before_first; next_block(x, &k);) {
        for (int i = 0; i < p->nvar; i++) {
            int64_t lo = p->begin[i] > k.begin ? p->begin[i] : k.begin;
            int64_t hi = p->begin[i + 1] < k.end ? p->begin[i + 1] : k.end;
            bool ok;
            if (lo >= hi || !ctn__trained(o, i)) continue;
            sum[0] += ctn__sweep_norm2(p->g + lo, hi - lo, o->partial, threads, &ok);
            sum[1] += !ok;
        }
    }
    CTN_TRY(ctn__comm_sum(ctn__exchange_comm(x), sum, 2, CTN_F64, theirs));
    o->norm = sqrt(sum[0]);
    *finite = sum[1] == 0;
    return CTN_OK;
}

/* Own blocks from or to their places in a whole pool. */
static void copy_blocks(const ctn_optim *o, float *state, float *whole, bool out)
{
    const ctn__exchange *x = o->pool->exchange;
    for (block k = before_first; next_block(x, &k);) {
        size_t bytes = (size_t)(k.end - k.begin) * sizeof *state;
        if (out) memcpy(whole + k.begin, state + k.packed, bytes);
        else memcpy(state + k.packed, whole + k.begin, bytes);
    }
}

static ctn_status make_masters(ctn_optim *o)
{
    const ctn__exchange *x = o->pool->exchange;
    if (ctn__exchange_values(x) == CTN_F32 || o->master) return CTN_OK;
    o->master = ctn__aligned((size_t)own_count(x) * sizeof *o->master + 64);
    if (!o->master) return CTN_ENOMEM;
    copy_blocks(o, o->master, o->pool->w, false);
    o->given = CTN_F32;
    return CTN_OK;
}

static void follow(float *master, const float *w, int64_t n, ctn_dtype type)
{
    for (int64_t i = 0; i < n; i++) {
        float seen = type == CTN_BF16  ? ctn__bf16_get(ctn__bf16_put(master[i]))
                     : type == CTN_F16 ? ctn__f16_get(ctn__f16_put(master[i]))
                                       : master[i];
        if (seen != w[i]) master[i] = w[i];
    }
}

static void sweep_block(ctn_optim *o, const block *k, int threads)
{
    const ctn__pool *p = o->pool;
    ctn__sweep_seg seg[64];
    ctn__sweep_pool at = {.w = p->w + k->begin, .g = p->g + k->begin};
    if (o->master) {
        at.w = o->master + k->packed;
        follow(at.w, p->w + k->begin, k->end - k->begin, o->given);
    }
    if (o->nstates > 0) at.s1 = o->state[0] + k->packed;
    if (o->nstates > 1) at.s2 = o->state[1] + k->packed;
    if (o->nstates > 2) at.s3 = o->state[2] + k->packed;
    for (int64_t i = 0; i < o->nseg;) {
        int64_t n = 0;
        for (; i < o->nseg && n < 64; i++) {
            ctn__sweep_seg one = o->seg[i];
            one.begin = one.begin > k->begin ? one.begin : k->begin;
            one.end = one.end < k->end ? one.end : k->end;
            if (one.begin >= one.end) continue;
            one.begin -= k->begin;
            one.end -= k->begin;
            seg[n++] = one;
        }
        ctn__sweep(o->kind, &at, seg, n, threads);
    }
    if (o->master) memcpy(p->w + k->begin, at.w, (size_t)(k->end - k->begin) * sizeof *at.w);
}

void ctn__update_range(void *owner, int64_t begin, int64_t end, int threads)
{
    ctn_optim *o = owner;
    ctn__sweep_pool all = {
        .w = o->pool->w, .g = o->pool->g, .s1 = o->state[0], .s2 = o->state[1], .s3 = o->state[2]};
    if (end - begin == o->pool->count) ctn__sweep(o->kind, &all, o->seg, o->nseg, threads);
    else sweep_block(o, &(block){.begin = begin, .end = end, .packed = begin}, threads);
}

ctn_status ctn__shard_sweep(ctn_optim *o, int threads)
{
    ctn__exchange *x = o->pool->exchange;
    CTN_TRY(make_masters(o));
    for (block k = before_first; next_block(x, &k);) sweep_block(o, &k, threads);
    o->given = ctn__exchange_values(x);
    return ctn__exchange_publish(x);
}

/* Every rank's block of a bucket that lies at `at`. */
static ctn_status gather(const ctn_optim *o, int b, float *at)
{
    const ctn__exchange *x = o->pool->exchange;
    ctn_comm *c = ctn__exchange_comm(x);
    const int64_t n = ctn__bucket_length(ctn__exchange_buckets(x), b);
    ctn__coll *k = NULL;
    CTN_TRY(ctn__coll_start(c, &k, ctn__gather_of(c, n), at, n, CTN_F32, CTN_F32));
    return ctn__coll_wait(k);
}

ctn_status ctn__shard_values(ctn_optim *o)
{
    CTN_TRY(ctn__pool_settle(o->pool));
    if (!o->master) return CTN_OK;
    for (block k = before_first; next_block(o->pool->exchange, &k);)
        follow(o->master + k.packed, o->pool->w + k.begin, k.end - k.begin, o->given);
    copy_blocks(o, o->master, o->pool->w, true);
    o->pool->touched++;
    const ctn__buckets *all = ctn__exchange_buckets(o->pool->exchange);
    for (int b = 0; b < all->n; b++) CTN_TRY(gather(o, b, o->pool->w + all->begin[b + 1]));
    return CTN_OK;
}

/* ---- whole arrays of state, one at a time -------------------------------------------------------- */

struct ctn__shard_view {
    ctn_optim *o;
    float *array;     /* room for the longest parameter */
    float *bucket[3]; /* of each state, the bucket gathered last */
    int have[3];      /* its number, -1: none */
    int64_t *packed;  /* of each bucket: where this rank's block begins in the packed state */
};

void ctn__shard_view_free(ctn__shard_view *v)
{
    if (!v) return;
    for (int k = 0; k < 3; k++) ctn__free(v->bucket[k]);
    ctn__free(v->array);
    ctn__free(v->packed);
    ctn__free(v);
}

static ctn_status view_room(ctn__shard_view *v)
{
    const ctn__pool *p = v->o->pool;
    const ctn__buckets *all = ctn__exchange_buckets(p->exchange);
    int64_t longest = 0, widest = 0;
    for (int i = 0; i < p->nvar; i++)
        if (p->begin[i + 1] - p->begin[i] > longest) longest = p->begin[i + 1] - p->begin[i];
    for (int b = 0; b < all->n; b++)
        if (ctn__bucket_length(all, b) > widest) widest = ctn__bucket_length(all, b);
    v->array = ctn__aligned((size_t)longest * sizeof *v->array);
    v->packed = ctn__calloc((size_t)all->n, sizeof *v->packed);
    if (!v->array || !v->packed) return CTN_ENOMEM;
    for (int k = 0; k < v->o->nstates; k++) {
        v->bucket[k] = ctn__aligned((size_t)widest * sizeof *v->bucket[k]);
        if (!v->bucket[k]) return CTN_ENOMEM;
        v->have[k] = -1;
    }
    for (block k = before_first; next_block(p->exchange, &k);) v->packed[k.bucket] = k.packed;
    return CTN_OK;
}

ctn_status ctn__shard_view_new(ctn__shard_view **out, ctn_optim *o)
{
    ctn__shard_view *v = *out = ctn__calloc(1, sizeof *v);
    if (!v) return CTN_ENOMEM;
    v->o = o;
    ctn_status st = view_room(v);
    if (st == CTN_OK) return CTN_OK;
    ctn__shard_view_free(v);
    *out = NULL;
    return st;
}

static ctn__range overlap(ctn__range a, ctn__range b)
{
    return (ctn__range){a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

static ctn_status bring_bucket(ctn__shard_view *v, int k, int b)
{
    const ctn__exchange *x = v->o->pool->exchange;
    const ctn__buckets *all = ctn__exchange_buckets(x);
    const ctn__range own = ctn__exchange_own(x, b);
    if (v->have[k] == b) return CTN_OK;
    v->have[k] = -1;
    memcpy(v->bucket[k] + (own.begin - all->begin[b + 1]), v->o->state[k] + v->packed[b],
           (size_t)(own.end - own.begin) * sizeof *v->bucket[k]);
    CTN_TRY(gather(v->o, b, v->bucket[k]));
    v->have[k] = b;
    return CTN_OK;
}

/* Buckets lie from the end of the pool to its beginning. */
ctn_status ctn__shard_bring(ctn__shard_view *v, int i, int k, float **data)
{
    const ctn__pool *p = v->o->pool;
    const ctn__buckets *all = ctn__exchange_buckets(p->exchange);
    const ctn__range want = {p->begin[i], p->begin[i + 1]};
    ctn__range part = {0};
    for (int b = ctn__buckets_find(all, want.begin); part.end < want.end; b--) {
        part = overlap(want, (ctn__range){all->begin[b + 1], all->begin[b]});
        CTN_TRY(bring_bucket(v, k, b));
        memcpy(v->array + (part.begin - want.begin),
               v->bucket[k] + (part.begin - all->begin[b + 1]),
               (size_t)(part.end - part.begin) * sizeof *v->array);
    }
    *data = v->array;
    return CTN_OK;
}

void ctn__shard_keep(ctn__shard_view *v, int i, int k)
{
    const ctn__pool *p = v->o->pool;
    const ctn__buckets *all = ctn__exchange_buckets(p->exchange);
    const ctn__range have = {p->begin[i], p->begin[i + 1]};
    for (int b = ctn__buckets_find(all, have.begin); b >= 0 && all->begin[b + 1] < have.end; b--) {
        const ctn__range own = ctn__exchange_own(p->exchange, b), part = overlap(have, own);
        if (part.begin >= part.end) continue;
        memcpy(v->o->state[k] + v->packed[b] + (part.begin - own.begin),
               v->array + (part.begin - have.begin),
               (size_t)(part.end - part.begin) * sizeof *v->array);
    }
}
