/* SPDX-License-Identifier: Apache-2.0
 *
 * The exchange of buckets of gradients; see exchange.h.
 */
#include "comm/flight.h"

#include <catena/dist.h>

/* Default buckets: long enough that messages between many ranks are not too short, but not so long
 * that a pool has fewer than 16. */
enum { BUCKET = 4 << 20, FEWEST = 16 };

static int64_t default_bucket(const ctn_comm *c, const ctn__buckets *k)
{
    const int64_t full = c->opt.segment * c->place.size;
    const int64_t most = k->count * (int64_t)k->unit / FEWEST;
    const int64_t bytes = full < most ? full : most;
    return bytes > BUCKET ? bytes : BUCKET;
}

/* Allocates what the current buckets need. */
static ctn_status allot(ctn__exchange *x)
{
    const int n = x->buckets.n;
    ctn__free(x->sum);
    ctn__free(x->values);
    ctn__free(x->missing);
    x->number = ctn__coll_numbers(x->comm, n);
    x->sum = ctn__calloc((size_t)n + 1, sizeof(ctn__coll *));
    x->values = ctn__calloc((size_t)n + 1, sizeof(ctn__coll *));
    x->missing = ctn__calloc((size_t)n + 1, sizeof *x->missing);
    return x->sum && x->values && x->missing ? CTN_OK : CTN_ENOMEM;
}

ctn_status ctn__exchange_cut(ctn__exchange *x, int64_t bytes)
{
    /* With sharding, the ownership of blocks must not change. */
    if (x->opt.bucket > 0 || x->opt.n > 0 || x->opt.shard) return CTN_OK;
    ctn__coll_forget(x->comm, x->number, x->buckets.n);
    CTN_TRY(ctn__buckets_cut(&x->buckets, bytes));
    return allot(x);
}

static ctn_status first_cut(ctn__exchange *x)
{
    const ctn__exchange_opt *o = &x->opt;
    if (o->n > 0) CTN_TRY(ctn__buckets_cut_at(&x->buckets, o->n, o->at));
    else
        CTN_TRY(ctn__buckets_cut(&x->buckets,
                                 o->bucket > 0 ? o->bucket : default_bucket(x->comm, &x->buckets)));
    return allot(x);
}

void ctn__exchange_unbind(ctn__exchange *x)
{
    ctn__coll_forget(x->comm, x->number, x->buckets.n);
}

ctn_status ctn__exchange_bind(ctn__exchange *x, void *w, void *g, int64_t count, int n,
                              const int64_t *at)
{
    x->w = w;
    x->g = g;
    x->opt.n = n;
    x->opt.at = at;
    x->decided = false;
    ctn__buckets_free(&x->buckets);
    x->buckets =
        (ctn__buckets){.count = count, .prompt = count, .unit = ctn_dtype_size(x->opt.type)};
    if (!x->opt.shard && x->opt.hold > 0) x->buckets.prompt = count - count / x->opt.hold;
    CTN_TRY(first_cut(x));
    x->opt.at = NULL; /* belongs to the caller */
    if (x->opt.exact == 0) return CTN_OK;
    ctn__free(x->exact);
    x->exact = ctn__calloc((size_t)count + 1, sizeof *x->exact);
    return x->exact ? CTN_OK : CTN_ENOMEM;
}

ctn_status ctn__exchange_new(ctn__exchange **out, ctn_comm *c, void *w, void *g, int64_t count,
                             const ctn__exchange_opt *opt)
{
    *out = NULL;
    ctn_status st = CTN_OK;
    ctn__exchange *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    *x = (ctn__exchange){.comm = c,
                         .opt = *opt,
                         .polls = opt->progress == CTN_DIST_POLLS,
                         .narrow = {.type = CTN_F32}};
    if (opt->type != CTN_F32) x->opt.wire = opt->type;
    CTN_TRY_GOTO(st, fail, ctn__exchange_bind(x, w, g, count, opt->n, opt->at));
    if (!x->polls) CTN_TRY_GOTO(st, fail, ctn__progress_start(c));
    x->trial.on = c->threaded && opt->progress == 0 && !opt->late;
    *out = x;
    return CTN_OK;
fail:
    (void)ctn__exchange_free(x);
    return st;
}

static void release(ctn__coll **c)
{
    if (*c) ctn__coll_release(*c);
    *c = NULL;
}

static bool in_flight(const ctn__exchange *x)
{
    bool any = x->control.sum || x->narrow.sum;
    for (int b = 0; x->sum && x->values && b < x->buckets.n; b++) any |= x->sum[b] || x->values[b];
    return any;
}

bool ctn__exchange_free(ctn__exchange *x)
{
    if (!x) return false;
    if (ctn__comm_abandon(x->comm) && in_flight(x)) return true; /* keep everything */
    release(&x->control.sum);                                    /* from a failed step */
    release(&x->narrow.sum);
    for (int b = 0; x->sum && x->values && b < x->buckets.n; b++) {
        release(&x->sum[b]);
        release(&x->values[b]);
    }
    ctn__coll_forget(x->comm, x->number, x->buckets.n);
    ctn__buckets_free(&x->buckets);
    ctn__free(x->sum);
    ctn__free(x->values);
    ctn__free(x->missing);
    ctn__free(x->narrow.exact);
    ctn__free(x->narrow.aside);
    ctn__free(x->exact);
    ctn__free(x);
    return false;
}

/* ---- queries -------------------------------------------------------------------------------- */

ctn_comm *ctn__exchange_comm(const ctn__exchange *x)
{
    return x->comm;
}

const ctn__buckets *ctn__exchange_buckets(const ctn__exchange *x)
{
    return &x->buckets;
}

bool ctn__exchange_sharded(const ctn__exchange *x)
{
    return x->opt.shard;
}

bool ctn__exchange_one_by_one(const ctn__exchange *x)
{
    return x->opt.one_by_one;
}

bool ctn__exchange_broken(const ctn__exchange *x)
{
    return x->comm->failed;
}

ctn_dtype ctn__exchange_wire(const ctn__exchange *x)
{
    return x->opt.wire;
}

void ctn__exchange_give(ctn__exchange *x, int what, double value)
{
    x->control.give[what] = value;
}

double ctn__exchange_total(const ctn__exchange *x, int what)
{
    return x->control.total[what];
}

void ctn__exchange_want_all(ctn__exchange *x, bool all)
{
    x->all = all;
}

int64_t ctn__exchange_rest(const ctn__exchange *x)
{
    return x->buckets.begin[x->awaited];
}

int64_t ctn__exchange_prompt(const ctn__exchange *x)
{
    return x->opt.shard && x->opt.hold > 0 ? 0 : x->buckets.prompt;
}

ctn__exchange_stats ctn__exchange_look(const ctn__exchange *x)
{
    const bool polls = x->polls || !x->comm->threaded;
    return (ctn__exchange_stats){.exposed_s = (double)x->timing.exposed_ns * 1e-9,
                                 .hidden_s = (double)x->timing.hidden_ns * 1e-9,
                                 .progress = x->trial.on ? 0
                                             : polls     ? CTN_DIST_POLLS
                                                         : CTN_DIST_THREAD};
}

void ctn__exchange_trace(ctn__exchange *x, ctn__trace *trace)
{
    x->timing.trace = trace;
}

bool ctn__exchange_decide(ctn__exchange *x)
{
    const bool first = !x->decided;
    x->decided = true;
    return first;
}

/* ---- a step --------------------------------------------------------------------------------- */

static ctn_status start_control(ctn__exchange *x)
{
    ctn__control *k = &x->control;
    CTN_TRY(ctn__comm_listen(x->comm)); /* before sending what nobody would receive */
    if (x->comm->threaded) ctn__progress_park(x->comm, x->polls);
    memcpy(k->sending, k->give, sizeof k->sending);
    return ctn__coll_start(x->comm, &k->sum, &ctn__doubling, k->sending, CTN__GIVEN, CTN_F64,
                           CTN_F64);
}

static void *element(const ctn__exchange *x, void *array, int64_t i)
{
    return (char *)array + (size_t)i * x->buckets.unit;
}

static ctn_status start_one(ctn__exchange *x, int s)
{
    const ctn__buckets *k = &x->buckets;
    const int b = ctn__buckets_order(k, s);
    /* Held back by the last step, and nobody has needed it since. */
    if (x->sum[b]) CTN_TRY(ctn__exchange_need(x, k->count, 1));
    if (s == 0) CTN_TRY(start_control(x));
    const int64_t n = ctn__bucket_length(k, b);
    return ctn__coll_again(x->comm, &x->sum[b], x->opt.shard ? ctn__scatter_of(x->comm, n) : NULL,
                           element(x, x->g, k->begin[b + 1]), n, x->opt.type, x->opt.wire,
                           x->number + (uint64_t)b);
}

static ctn_status start_until(ctn__exchange *x, int s)
{
    for (; x->started <= s; x->started++) CTN_TRY(start_one(x, x->started));
    return CTN_OK;
}

static void begin_step(ctn__exchange *x)
{
    for (int b = 0; b < x->buckets.n; b++) x->missing[b] = ctn__bucket_length(&x->buckets, b);
    x->begun = true;
}

ctn_status ctn__exchange_ready(ctn__exchange *x, int64_t begin, int64_t end)
{
    const ctn__buckets *k = &x->buckets;
    if (x->opt.late || !x->decided || begin == end) return CTN_OK;
    /* Without an algorithm, one must be chosen first, which blocks. */
    if (!x->opt.shard && !x->comm->alg) return CTN_OK;
    if (!x->begun) begin_step(x);
    for (int b = ctn__buckets_find(k, end - 1); b < k->n && k->begin[b] > begin; b++) {
        const int64_t lo = begin > k->begin[b + 1] ? begin : k->begin[b + 1];
        x->missing[b] -= (end < k->begin[b] ? end : k->begin[b]) - lo;
    }
    while (x->started < k->n && x->missing[ctn__buckets_order(k, x->started)] == 0)
        CTN_TRY(start_until(x, x->started));
    return CTN_OK;
}

/* Waits for *coll and releases it. NULL: it was taken before something after it failed, in a call
 * that is repeated. name, lane and bytes are for the timeline. */
static ctn_status take(ctn__exchange *x, ctn__coll **coll, const char *name, int lane,
                       int64_t bytes)
{
    ctn__timing *t = &x->timing;
    uint64_t t0 = ctn__now_ns(), begin, end;
    if (!*coll) return CTN_OK;
    CTN_TRY(ctn__coll_await(*coll));
    ctn__coll_times(*coll, &begin, &end);
    const uint64_t from = begin > t->counted ? begin : t->counted, until = end < t0 ? end : t0;
    t->exposed_ns += ctn__now_ns() - t0;
    if (until > from) t->hidden_ns += until - from; /* overlapping transfers count once */
    if (end > t->counted) t->counted = end;
    if (t->trace) ctn__trace_message(t->trace, name, begin, end, lane, bytes);
    ctn__coll_release(*coll);
    *coll = NULL;
    return CTN_OK;
}

static int64_t bytes_of(const ctn__exchange *x, int b, ctn_dtype wire)
{
    return ctn__bucket_length(&x->buckets, b) * (int64_t)ctn_dtype_size(wire);
}

static ctn_status take_sum(ctn__exchange *x, int b)
{
    return take(x, &x->sum[b], x->opt.shard ? "REDUCESCATTER" : "ALLREDUCE", /* Horovod's names */
                CTN__LANE_BUCKET + b, bytes_of(x, b, x->opt.wire));
}

static ctn_status finish_control(ctn__exchange *x, int left)
{
    ctn__control *c = &x->control;
    CTN_TRY(take(x, &c->sum, "ALLREDUCE", CTN__LANE_CONTROL, sizeof c->sending));
    memcpy(c->total, c->sending, sizeof c->total);
    x->awaited = left;
    x->started = 0;
    x->begun = false;
    return CTN_OK;
}

ctn_status ctn__exchange_finish(ctn__exchange *x)
{
    const ctn__buckets *k = &x->buckets;
    const int left = x->all ? 0 : k->held;
    if (x->exact) {
        CTN_TRY(start_control(x));
        CTN_TRY(ctn__exact_sum(x));
        return finish_control(x, 0);
    }
    if (!x->opt.one_by_one) CTN_TRY(start_until(x, k->n - 1));
    for (int s = 0; s < k->n - left; s++) {
        CTN_TRY(start_until(x, s));
        CTN_TRY(take_sum(x, ctn__buckets_order(k, s)));
    }
    if (k->n == 0) CTN_TRY(start_control(x)); /* a pool without elements */
    CTN_TRY(finish_control(x, left));
    if (x->control.total[CTN__GIVE_EXACT] > 0) x->narrow.type = CTN_F32; /* from this step on */
    ctn__trial_step(x);
    return CTN_OK;
}

ctn__range ctn__exchange_own(const ctn__exchange *x, int b)
{
    const int size = x->comm->place.size, rank = x->comm->place.rank;
    const int64_t n = ctn__bucket_length(&x->buckets, b), begin = x->buckets.begin[b + 1];
    return (ctn__range){begin + ctn__part(n, size, rank), begin + ctn__part(n, size, rank + 1)};
}

ctn_status ctn__exchange_publish(ctn__exchange *x)
{
    const ctn__buckets *k = &x->buckets;
    CTN_TRY(ctn__aside_start(x));
    for (int b = k->n; b-- > 0;) {
        const int64_t n = ctn__bucket_length(k, b);
        CTN_TRY(ctn__coll_start(x->comm, &x->values[b], ctn__gather_of(x->comm, n),
                                element(x, x->w, k->begin[b + 1]), n, CTN_F32, x->narrow.type));
    }
    x->awaited = k->n;
    return x->opt.hold > 0 ? CTN_OK : ctn__exchange_need(x, k->count, 1);
}

/* Brings bucket b to rest. */
static ctn_status settle(ctn__exchange *x, int b, int threads)
{
    const ctn__buckets *k = &x->buckets;
    if (!x->opt.shard) {
        CTN_TRY(take_sum(x, b));
        x->opt.update(x->opt.owner, k->begin[b + 1], k->begin[b], threads);
        return CTN_OK;
    }
    CTN_TRY(
        take(x, &x->values[b], "ALLGATHER", CTN__LANE_VALUES + b, bytes_of(x, b, x->narrow.type)));
    return ctn__aside_take(x, b);
}

ctn_status ctn__exchange_need(ctn__exchange *x, int64_t end, int threads)
{
    while (ctn__exchange_rest(x) < end) {
        CTN_TRY(settle(x, x->awaited - 1, threads));
        x->awaited--;
    }
    return CTN_OK;
}
