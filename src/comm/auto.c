/* SPDX-License-Identifier: Apache-2.0
 *
 * Choices by measurement. The algorithm is the fastest of those that fit. With thousands of ranks
 * it would take long to measure the slow ones, so those are left out whose cost by their own
 * formula is several times the least one; the formulas get the latency and the rate of messages
 * between the two halves of the job. The length into which long vectors are cut is the shortest
 * that reaches the network's full rate, because a shorter bucket of gradients can start earlier.
 * The time of the slowest rank counts, and rank 0's choice is broadcast, so all ranks agree
 * whatever their clocks say. The choice of an earlier run is reused.
 */
#include <math.h>

#include "comm/comm.h"

enum { ROUNDS = 3, MB = 1 << 20, BUCKET = 4, STREAM = 16, LONGEST = 64 }; /* MB */
enum { MESSAGE = 65536 };                                                 /* bytes */

#define STEADY 0.02   /* two rounds that differ by less end a measurement */
#define SLOW 3        /* times the least cost: not worth a measurement */
#define ADDING 0.1e-9 /* seconds to add a byte */

static const int lengths[] = {1, BUCKET, STREAM}; /* MB */

typedef struct {
    int algorithm; /* -1: not known */
    int mb;        /* length of a bucket */
} choice;

typedef struct {
    ctn_comm *c;
    float *buf;
    bool regions; /* the transport supports them on every rank */
} bench;

static int64_t elements(int64_t bytes, int most)
{
    return (bytes < (int64_t)most * MB ? bytes : (int64_t)most * MB) / (int64_t)sizeof(float) + 1;
}

/* Milliseconds of the slowest rank for n elements, cut into vectors of `step`; best of ROUNDS. All
 * ranks get the same value. */
static ctn_status time_stream(const bench *b, const ctn__algorithm *a, int64_t n, int64_t step,
                              double *ms)
{
    ctn_comm *c = b->c;
    double last = 0, best = 1e30;
    for (int i = 0; i <= ROUNDS; i++) { /* the first one is a warm-up */
        ctn__coll *x[STREAM + 1] = {0};
        int k = 0;
        CTN_TRY(ctn_comm_barrier(c));
        uint64_t t0 = ctn__now_ns();
        for (int64_t at = 0; at < n; at += step, k++)
            CTN_TRY(ctn__coll_start(c, &x[k], a, b->buf + at, n - at < step ? n - at : step,
                                    CTN_F32, c->opt.wire));
        for (int j = 0; j < k; j++) CTN_TRY(ctn__coll_wait(x[j]));
        double t = (double)(ctn__now_ns() - t0) * 1e-6;
        CTN_TRY(ctn__comm_max_small(c, 1, &t));
        if (i > 0 && t < best) best = t;
        if (i > 0 && fabs(t - last) < STEADY * t) break;
        last = t;
    }
    *ms = best;
    return CTN_OK;
}

/* The same for one vector. Of a very long one, two parts are measured, and their times continued
 * along a straight line, so that it needs no more memory. */
static ctn_status time_vector(const bench *b, const ctn__algorithm *a, int64_t bytes, double *ms)
{
    const int64_t n = elements(bytes, LONGEST);
    double half = 0;
    CTN_TRY(time_stream(b, a, n, n, ms));
    if (bytes <= (int64_t)LONGEST * MB) return CTN_OK;
    CTN_TRY(time_stream(b, a, n / 2, n / 2, &half));
    const double rest = (double)bytes / sizeof(float) - (double)n;
    *ms += (*ms - half) * rest / ((double)n / 2);
    return CTN_OK;
}

/* Seconds of a message to the other half of the job while all ranks send one. */
static ctn_status time_message(const bench *b, size_t bytes, double *seconds)
{
    const ctn__place *p = &b->c->place;
    const int half = p->size / 2;
    char *in = (char *)b->buf + MESSAGE;
    *seconds = 1e30;
    for (int i = 0; i <= ROUNDS; i++) {
        uint64_t t0 = ctn__now_ns();
        CTN_TRY(ctn__comm_swap(b->c, CTN__TAG_SMALL, b->buf, bytes, (p->rank + half) % p->size, in,
                               bytes, (p->rank + p->size - half) % p->size));
        const double t = (double)(ctn__now_ns() - t0) * 1e-9;
        if (i > 0 && t < *seconds) *seconds = t;
    }
    return ctn__comm_max_small(b->c, 1, seconds);
}

static bool usable(const bench *b, const ctn__algorithm *a)
{
    if (!ctn__algorithm_fits(a, b->c) || (a->region && !b->regions)) return false;
    return !a->native || !b->c->guest; /* it cannot be cancelled when a rank fails */
}

/* Algorithms worth a measurement, as bits: rank 0's list, because a measurement is collective. */
static ctn_status choose_candidates(const bench *b, int64_t bytes, uint32_t *list)
{
    const ctn__algorithm *a;
    double least = 1e30, alpha, message, cost[CTN__ALGORITHMS] = {0};
    *list = 0;
    CTN_TRY(time_message(b, 1, &alpha));
    CTN_TRY(time_message(b, MESSAGE, &message));
    const double beta = message > alpha ? (message - alpha) / MESSAGE : 0;
    const double sent = (double)bytes / sizeof(float) * (double)ctn_dtype_size(b->c->opt.wire);
    for (int i = 0; (a = ctn__algorithm_at(i)); i++) {
        cost[i] = usable(b, a) ? a->cost(&b->c->place, sent, alpha, beta, ADDING) : 1e30;
        if (cost[i] < least) least = cost[i];
    }
    /* What the transport's own one does is not known. */
    for (int i = 0; (a = ctn__algorithm_at(i)); i++)
        if (usable(b, a) && (cost[i] <= SLOW * least || a->native)) *list |= 1u << i;
    return ctn_comm_broadcast(b->c, list, sizeof *list, 0);
}

static ctn_status fastest(const bench *b, int64_t bytes, int *algorithm)
{
    const ctn__algorithm *a;
    uint32_t list;
    double ms = 0, best = 1e30;
    CTN_TRY(choose_candidates(b, bytes, &list));
    for (int i = 0; (a = ctn__algorithm_at(i)); i++) {
        if (!(list >> i & 1)) continue;
        CTN_TRY(time_vector(b, a, bytes, &ms));
        if (ms >= best) continue;
        best = ms;
        *algorithm = i;
    }
    return CTN_OK;
}

static ctn_status shortest(const bench *b, int64_t bytes, choice *best)
{
    enum { N = sizeof lengths / sizeof *lengths };
    double ms[N] = {0}, least = 1e30;
    int n = 0; /* lengths beyond the stream make no difference */
    do {
        CTN_TRY(time_stream(b, ctn__algorithm_at(best->algorithm), elements(bytes, STREAM),
                            (int64_t)lengths[n] * MB / (int64_t)sizeof(float), &ms[n]));
        if (ms[n] < least) least = ms[n];
    } while ((int64_t)lengths[n++] * MB < bytes && n < N);
    while (n > 0)
        if (ms[--n] <= 1.05 * least) best->mb = lengths[n];
    return CTN_OK;
}

/* Making regions blocks inside the transport. The barrier notices a rank that has failed before,
 * while the wait can still end. */
static ctn_status make_regions(ctn_comm *c)
{
    if (!c->region) CTN_TRY(ctn_comm_barrier(c));
    return ctn__regions_make(c);
}

/* An MPI library may have no memory that other ranks can see. Then the algorithms that need it are
 * left out on all ranks. They are also left out if ranks may be lost (ctn__algorithm_fits). */
static ctn_status try_regions(bench *b)
{
    if (b->c->net->survives) return CTN_OK;
    ctn_status st = make_regions(b->c);
    if (b->c->failed) return st;
    double missing = st < 0;
    if (st < 0) ctn_error_clear();
    CTN_TRY(ctn__comm_max_small(b->c, 1, &missing));
    b->regions = missing == 0;
    return CTN_OK;
}

/* With `cut`, bytes are cut into buckets; otherwise they are one vector. */
static ctn_status measure(ctn_comm *c, int64_t bytes, bool cut, choice *best)
{
    ctn_status st = CTN_OK;
    const int64_t vector = cut && bytes > BUCKET * MB ? BUCKET * MB : bytes;
    size_t room = (size_t)elements(bytes, cut ? STREAM : LONGEST) * sizeof(float);
    if (room < 2 * (size_t)MESSAGE) room = 2 * (size_t)MESSAGE;
    bench b = {.c = c, .buf = ctn__aligned(room)};
    if (!b.buf) return CTN_ENOMEM;
    memset(b.buf, 0, room);
    CTN_TRY_GOTO(st, done, try_regions(&b));
    CTN_TRY_GOTO(st, done, fastest(&b, vector, &best->algorithm));
    CTN_TRY_GOTO(st, done, ctn_comm_broadcast(c, best, sizeof *best, 0));
    if (cut) CTN_TRY_GOTO(st, done, shortest(&b, bytes, best));
    CTN_TRY_GOTO(st, done, ctn_comm_broadcast(c, best, sizeof *best, 0));
done:
    if (st == CTN_OK || !ctn__comm_abandon(c)) ctn__free(b.buf);
    return st;
}

/* Parses text such as "ring, 4 MB". */
static choice parse(const ctn_comm *c, const char *known)
{
    char name[32];
    const ctn__algorithm *a = NULL;
    choice k = {-1, 0};
    if (!known || sscanf(known, "%31[^,], %d MB", name, &k.mb) != 2) return k;
    for (int i = 0; (a = ctn__algorithm_at(i)); i++)
        if (strcmp(a->name, name) == 0 && ctn__algorithm_fits(a, c) && k.mb > 0) k.algorithm = i;
    return k;
}

ctn_status ctn__comm_choose(ctn_comm *c, int64_t bytes, const char *known, char *chosen,
                            size_t room)
{
    choice k = parse(c, known);
    CTN_TRY(ctn_comm_broadcast(c, &k, sizeof k, 0));
    if (k.algorithm < 0) CTN_TRY(measure(c, bytes, true, &k));
    const ctn__algorithm *a = ctn__algorithm_at(k.algorithm);
    if (a->region) CTN_TRY(make_regions(c));
    c->alg = c->latest = a;
    c->bucket = (int64_t)k.mb * MB;
    snprintf(chosen, room, "%s, %d MB", c->alg->name, k.mb);
    return CTN_OK;
}

ctn_status ctn__comm_choose_one(ctn_comm *c, int64_t bytes, const ctn__algorithm **out)
{
    int length = 0; /* lengths up to four times as long share a choice */
    for (int64_t n = bytes; n > 3; n /= 4) length++;
    if (!c->choice[length]) {
        choice k = {-1, 0};
        CTN_TRY(measure(c, bytes, false, &k));
        c->choice[length] = ctn__algorithm_at(k.algorithm);
    }
    *out = c->latest = c->choice[length];
    return CTN_OK;
}
