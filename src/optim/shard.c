/* SPDX-License-Identifier: Apache-2.0
 *
 * Sharded updates. After the reduce-scatter, a rank has the sums of its block of every bucket. It
 * keeps optimizer state for these blocks only, packed in bucket order. It updates their values
 * and sends them to the other ranks, overlapped with the beginning of the next step.
 */
#include "optim/optim.h"

#include <math.h>

/* This rank's block of a bucket: a range of the pool's elements, and the index at which its
 * packed state begins. */
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
    int64_t n = ctn__optim_sharded(o) ? own_count(o->pool->exchange) : o->pool->count;
    return n * (o->nstates + (o->master != NULL)) * (int64_t)o->pool->unit;
}

ctn_status ctn__shard_state(ctn_optim *o)
{
    int64_t n = own_count(o->pool->exchange);
    if (o->t > 0)
        return ctn_fail(CTN_ESTATE,
                        "dist_optim: updates can be sharded only before the first step");
    for (int k = 0; k < o->nstates; k++) {
        const size_t bytes = (size_t)n * o->pool->unit;
        void *s = ctn__aligned(bytes + 64);
        if (!s) return CTN_ENOMEM;
        ctn__zero(s, bytes, o->ctx->threads);
        ctn__free(o->state[k]);
        o->state[k] = s;
    }
    return CTN_OK;
}

bool ctn__own_next(const ctn_optim *o, ctn__own *k)
{
    if (!ctn__optim_sharded(o)) {
        *k = (ctn__own){0, o->pool->count, 0, k->next + 1};
        return k->next == 1;
    }
    block b = {k->next - 1, k->begin, k->end, k->packed};
    if (!next_block(o->pool->exchange, &b)) return false;
    *k = (ctn__own){b.begin, b.end, b.packed, b.bucket + 1};
    return true;
}

/* Sum over the trained parameters in this rank's blocks, then over ranks in one small message. */
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
            sum[0] += ctn__optim_norm2(o, p->g, lo, hi - lo, threads, &ok);
            sum[1] += !ok;
        }
    }
    CTN_TRY(ctn__comm_sum(ctn__exchange_comm(x), sum, 2, CTN_F64, theirs));
    o->norm = sqrt(sum[0]);
    *finite = sum[1] == 0;
    return CTN_OK;
}

/* Copy this rank's blocks from packed state to their places in a whole pool (out), or back. */
static void copy_blocks(const ctn_optim *o, float *state, void *whole, bool out)
{
    const ctn__exchange *x = o->pool->exchange;
    for (block k = before_first; next_block(x, &k);) {
        const size_t bytes = (size_t)(k.end - k.begin) * o->pool->unit;
        void *at = ctn__pool_at(o->pool, whole, k.begin);
        if (out) memcpy(at, state + k.packed, bytes);
        else memcpy(state + k.packed, at, bytes);
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

ctn_status ctn__shard_sweep(ctn_optim *o, int threads)
{
    ctn__exchange *x = o->pool->exchange;
    CTN_TRY(make_masters(o));
    for (block k = before_first; next_block(x, &k);)
        ctn__update_part(o, k.begin, k.end, k.packed, threads);
    o->given = ctn__exchange_values(x);
    return ctn__exchange_publish(x);
}

/* Gather all ranks' blocks of bucket b, which lies at `at`. */
static ctn_status gather(const ctn_optim *o, int b, void *at)
{
    const ctn__exchange *x = o->pool->exchange;
    ctn_comm *c = ctn__exchange_comm(x);
    const int64_t n = ctn__bucket_length(ctn__exchange_buckets(x), b);
    ctn__coll *k = NULL;
    CTN_TRY(ctn__coll_start(c, &k, ctn__gather_of(c, n), at, n, CTN_F32, CTN_F32));
    return ctn__coll_wait(k);
}

void ctn__shard_exact(ctn_optim *o)
{
    if (!o->master) return;
    for (block k = before_first; next_block(o->pool->exchange, &k);)
        ctn__master_follow(o->master + k.packed, ctn__pool_at(o->pool, o->pool->w, k.begin),
                           k.end - k.begin, o->given);
    copy_blocks(o, o->master, o->pool->w, true);
    o->given = CTN_F32;
}

ctn_status ctn__shard_values(ctn_optim *o)
{
    CTN_TRY(ctn__pool_settle(o->pool));
    if (!o->master) return CTN_OK;
    ctn__shard_exact(o);
    o->pool->touched++;
    const ctn__buckets *all = ctn__exchange_buckets(o->pool->exchange);
    for (int b = 0; b < all->n; b++)
        CTN_TRY(gather(o, b, ctn__pool_at(o->pool, o->pool->w, all->begin[b + 1])));
    return CTN_OK;
}

/* ---- whole arrays of state, one at a time --------------------------------------------------- */

struct ctn__shard_view {
    ctn_optim *o;
    float *array;     /* as long as the longest parameter */
    float *bucket[3]; /* of each state: the bucket gathered last */
    int have[3];      /* number of that bucket; -1: none */
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

int64_t *ctn__shard_packed(const ctn_optim *o)
{
    const ctn__exchange *x = o->pool->exchange;
    int64_t *packed = ctn__calloc((size_t)ctn__exchange_buckets(x)->n, sizeof *packed);
    for (block k = before_first; packed && next_block(x, &k);) packed[k.bucket] = k.packed;
    return packed;
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
    v->packed = ctn__shard_packed(v->o);
    if (!v->array || !v->packed) return CTN_ENOMEM;
    for (int k = 0; k < v->o->nstates; k++) {
        v->bucket[k] = ctn__aligned((size_t)widest * sizeof *v->bucket[k]);
        if (!v->bucket[k]) return CTN_ENOMEM;
        v->have[k] = -1;
    }
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
    memcpy(v->bucket[k] + (own.begin - all->begin[b + 1]),
           ctn__pool_at(v->o->pool, v->o->state[k], v->packed[b]),
           (size_t)(own.end - own.begin) * sizeof *v->bucket[k]);
    CTN_TRY(gather(v->o, b, v->bucket[k]));
    v->have[k] = b;
    return CTN_OK;
}

/* Buckets are numbered from the end of the pool to its beginning. */
ctn_status ctn__shard_bring(ctn__shard_view *v, int i, int k, void **data)
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
    if (all->n == 0) return; /* a pool without elements */
    for (int b = ctn__buckets_find(all, have.begin); b >= 0 && all->begin[b + 1] < have.end; b--) {
        const ctn__range own = ctn__exchange_own(p->exchange, b), part = overlap(have, own);
        if (part.begin >= part.end) continue;
        memcpy(ctn__pool_at(p, v->o->state[k], v->packed[b] + (part.begin - own.begin)),
               v->array + (part.begin - have.begin),
               (size_t)(part.end - part.begin) * sizeof *v->array);
    }
}

/* Buckets are numbered from the end, so they are passed through backwards. */
ctn_status ctn__shard_slices(ctn_optim *o, const int64_t *packed, int i, int k, ctn_state_fn fn,
                             void *user)
{
    const ctn__pool *p = o->pool;
    const ctn__buckets *all = ctn__exchange_buckets(p->exchange);
    const ctn__range whole = {p->begin[i], p->begin[i] + ctn__count(&p->var[i]->d)};
    if (all->n == 0) return CTN_OK; /* a pool without elements */
    for (int b = ctn__buckets_find(all, whole.begin); b >= 0; b--) {
        if (all->begin[b + 1] >= whole.end) break;
        const ctn__range own = ctn__exchange_own(p->exchange, b), part = overlap(whole, own);
        const int64_t n = part.end - part.begin;
        char name[600];
        if (n <= 0) continue;
        snprintf(name, sizeof name, "%s.state%d[%lld:%lld]", o->name[i], k + 1,
                 (long long)(part.begin - whole.begin), (long long)(part.end - whole.begin));
        CTN_TRY(fn(user, name, p->dtype, 1, &n,
                   ctn__pool_at(p, o->state[k], packed[b] + (part.begin - own.begin))));
    }
    return CTN_OK;
}
