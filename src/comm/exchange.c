/* SPDX-License-Identifier: Apache-2.0
 *
 * Buckets of gradients on their way: see exchange.h. Weights and the like go with them as one message.
 */
#include "comm/exchange.h"

enum { BUCKET = 4 << 20, HELD = 8 }; /* one of so many is held back */

static ctn_status allot(ctn__exchange *x, int buckets)
{
    ctn__free(x->begin);
    ctn__free(x->coll);
    ctn__free(x->back);
    ctn__coll_forget(x->comm, x->number, x->nbucket);
    x->number = ctn__coll_numbers(x->comm, buckets);
    x->nbucket = buckets;
    x->held = x->update ? buckets / HELD : 0;
    x->begin = ctn__calloc((size_t)buckets + 1, sizeof *x->begin);
    x->coll = ctn__calloc((size_t)buckets + 1, sizeof(ctn__coll *));
    x->back = ctn__calloc((size_t)buckets + 1, sizeof(ctn__coll *));
    return x->begin && x->coll && x->back ? CTN_OK : CTN_ENOMEM;
}

/* Borders are multiples of 16 elements, so that vector kernels see whole vectors in a block too. */
ctn_status ctn__exchange_cut(ctn__exchange *x, int64_t bucket)
{
    int64_t length = bucket / (int64_t)sizeof(float) / 16 * 16;
    if (length < 1024) length = 1024;
    CTN_TRY(allot(x, (int)((x->count + length - 1) / length)));
    for (int b = 0; b <= x->nbucket; b++) {
        x->begin[b] = x->count - b * length;
        if (x->begin[b] < 0) x->begin[b] = 0;
    }
    return CTN_OK;
}

ctn_status ctn__exchange_new(ctn__exchange **out, ctn_comm *c, float *w, float *g, int64_t count,
                             int64_t bucket, ctn_dtype wire, bool shard)
{
    *out = NULL;
    ctn__exchange *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    *x = (ctn__exchange){.comm = c,
                         .w = w,
                         .g = g,
                         .count = count,
                         .wire = wire,
                         .values = CTN_F32,
                         .given = bucket > 0 || shard, /* sharded: who owns what stays */
                         .shard = shard};
    int64_t full = c->opt.segment * c->place.size;
    if (bucket <= 0) bucket = full > BUCKET ? full : BUCKET;
    ctn_status st = ctn__exchange_cut(x, bucket);
    if (st < 0) {
        ctn__exchange_free(x);
        return st;
    }
    *out = x;
    return CTN_OK;
}

ctn_status ctn__exchange_cut_at(ctn__exchange *x, int n, const int64_t *begin)
{
    x->given = true;
    x->update = NULL;
    CTN_TRY(allot(x, n));
    for (int i = 0; i <= n; i++) x->begin[i] = begin[n - i];
    return CTN_OK;
}

void ctn__exchange_free(ctn__exchange *x)
{
    if (!x) return;
    ctn__coll_forget(x->comm, x->number, x->nbucket);
    ctn__free(x->begin);
    ctn__free(x->coll);
    ctn__free(x->back);
    ctn__free(x->exact);
    ctn__free(x->aside);
    ctn__free(x);
}

void ctn__exchange_hold(ctn__exchange *x,
                        void (*update)(void *owner, int64_t begin, int64_t end, int threads),
                        void *owner)
{
    x->update = update;
    x->owner = owner;
    x->held = x->nbucket / HELD;
}

/* Those held back start with the one that forward needs first. */
int ctn__exchange_at(const ctn__exchange *x, int s)
{
    return s < x->nbucket - x->held ? s + x->held : x->nbucket - 1 - s;
}

static ctn_status start_one(ctn__exchange *x, int s)
{
    const int b = ctn__exchange_at(x, s);
    if (x->awaited > b) CTN_TRY(ctn__exchange_need(x, x->count, 1)); /* nobody has used it since */
    if (s == 0) {
        if (x->comm->threaded) ctn__progress_park(x->comm, x->polls);
        memcpy(x->control, x->give, sizeof x->control);
        CTN_TRY(ctn__coll_start(x->comm, &x->summing, &ctn__ring, x->control, CTN__GIVEN, CTN_F64,
                                CTN_F64));
    }
    return ctn__coll_again(x->comm, &x->coll[b], x->shard ? &ctn__ring_scatter : NULL,
                           x->g + x->begin[b + 1], x->begin[b] - x->begin[b + 1], CTN_F32, x->wire,
                           x->number + (uint64_t)b);
}

ctn_status ctn__exchange_start(ctn__exchange *x, int s)
{
    for (; x->started <= s && !x->late; x->started++) CTN_TRY(start_one(x, x->started));
    return CTN_OK;
}

/* Steps by turns: a few to warm up, then the best of each kind, summed over ranks by the message of the step after. */
static void try_progress(ctn__exchange *x)
{
    enum { WARM = 3, LAST = WARM + 8 };
    ctn__trial *t = &x->trial;
    const int kind = t->steps % 2 ? CTN__GIVE_THREAD : CTN__GIVE_POLLS;
    const uint64_t now = ctn__now_ns();
    const double took = (double)(now - t->since) * 1e-9;
    if (!t->on) return;
    t->since = now;
    if (t->steps == LAST) {
        x->polls = x->total[CTN__GIVE_POLLS] < x->total[CTN__GIVE_THREAD];
        t->on = false;
        return;
    }
    if (t->steps >= WARM && (x->give[kind] == 0 || took < x->give[kind])) x->give[kind] = took;
    x->polls = ++t->steps % 2 == 0;
    ctn__progress_park(
        x->comm,
        x->polls); /* from here on, not from the next start: values may be on their way back */
}

/* name, lane and bytes: for the timeline. */
static ctn_status take(ctn__exchange *x, ctn__coll **coll, const char *name, int lane,
                       int64_t bytes)
{
    uint64_t t0 = ctn__now_ns(), begin, end;
    CTN_TRY(ctn__coll_await(*coll));
    ctn__coll_times(*coll, &begin, &end);
    uint64_t waited = ctn__now_ns() - t0, from = begin > x->counted ? begin : x->counted;
    x->exposed_ns += waited;
    uint64_t until = end < t0 ? end : t0;
    if (until > from) x->hidden_ns += until - from; /* several on their way count once */
    if (end > x->counted) x->counted = end;
    if (x->trace) ctn__trace_message(x->trace, name, begin, end, lane, bytes);
    ctn__coll_release(*coll);
    *coll = NULL;
    return CTN_OK;
}

static int64_t bytes_of(const ctn__exchange *x, int b, ctn_dtype wire)
{
    return (x->begin[b] - x->begin[b + 1]) * (int64_t)ctn_dtype_size(wire);
}

static ctn_status take_sum(ctn__exchange *x, int b)
{
    return take(x, &x->coll[b], x->shard ? "REDUCESCATTER" : "ALLREDUCE", /* Horovod's */
                CTN__LANE_BUCKET + b, bytes_of(x, b, x->wire));
}

ctn_status ctn__exchange_finish(ctn__exchange *x)
{
    bool late = x->late;
    const int left = x->whole ? 0 : x->held;
    x->late = false;
    for (int s = 0; s < x->nbucket - left; s++) {
        CTN_TRY(ctn__exchange_start(x, x->one_by_one ? s : x->nbucket - 1));
        CTN_TRY(take_sum(x, ctn__exchange_at(x, s)));
    }
    x->awaited = left;
    CTN_TRY(take(x, &x->summing, "ALLREDUCE", CTN__LANE_CONTROL, sizeof x->control));
    memcpy(x->total, x->control, sizeof x->total);
    x->started = 0;
    x->late = late;
    try_progress(x);
    return CTN_OK;
}

void ctn__exchange_own(const ctn__exchange *x, int b, int64_t *begin, int64_t *end)
{
    int size = x->comm->place.size, rank = x->comm->place.rank;
    int64_t n = x->begin[b] - x->begin[b + 1];
    *begin = x->begin[b + 1] + ctn__part(n, size, rank);
    *end = x->begin[b + 1] + ctn__part(n, size, rank + 1);
}

ctn_status ctn__exchange_publish(ctn__exchange *x)
{
    CTN_TRY(ctn__aside_start(x));
    for (int b = x->nbucket; b-- > 0;)
        CTN_TRY(ctn__coll_start(x->comm, &x->back[b], &ctn__ring_gather, x->w + x->begin[b + 1],
                                x->begin[b] - x->begin[b + 1], CTN_F32, x->values));
    x->awaited = x->nbucket;
    return CTN_OK;
}

ctn_status ctn__exchange_need(ctn__exchange *x, int64_t end, int threads)
{
    while (x->awaited > 0 && x->begin[x->awaited] < end) {
        const int b = --x->awaited;
        if (!x->shard) {
            CTN_TRY(take_sum(x, b));
            x->update(x->owner, x->begin[b + 1], x->begin[b], threads);
            continue;
        }
        CTN_TRY(take(x, &x->back[b], "ALLGATHER", CTN__LANE_VALUES + b, bytes_of(x, b, x->values)));
        CTN_TRY(ctn__aside_take(x, b));
    }
    return CTN_OK;
}
