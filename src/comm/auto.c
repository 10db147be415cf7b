/* SPDX-License-Identifier: Apache-2.0
 *
 * Choices by measurement. The algorithm is the fastest of those that fit. The length into which
 * long vectors are cut is the shortest that reaches the network's full rate, because a shorter
 * bucket of gradients can start earlier. The time of the slowest rank counts, and rank 0's choice
 * is broadcast, so all ranks agree whatever their clocks say. The choice of an earlier run is
 * reused.
 */
#include "comm/comm.h"

enum { ROUNDS = 3, MB = 1 << 20, BUCKET = 4, STREAM = 16 }; /* MB */

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

/* Time of the slowest rank for n elements, cut into vectors of `step`; best of ROUNDS. */
static ctn_status time_stream(const bench *b, const ctn__algorithm *a, int64_t n, int64_t step,
                              double *ms)
{
    ctn_comm *c = b->c;
    double best = 1e30;
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
        if (i > 0 && t < best) best = t;
    }
    *ms = best;
    return ctn__comm_max_small(c, 1, ms);
}

static ctn_status fastest(const bench *b, int64_t bytes, int *algorithm)
{
    const ctn__algorithm *a;
    double ms = 0, best = 1e30;
    const int64_t n = elements(bytes, BUCKET);
    for (int i = 0; (a = ctn__algorithm_at(i)); i++) {
        if (!ctn__algorithm_fits(a, b->c) || (a->region && !b->regions)) continue;
        if (a->native && b->c->guest) continue; /* it cannot be cancelled when a rank fails */
        CTN_TRY(time_stream(b, a, n, n, &ms));
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

static ctn_status measure(ctn_comm *c, int64_t bytes, bool cut, choice *best)
{
    ctn_status st = CTN_OK;
    bench b = {.c = c, .buf = ctn__aligned((size_t)elements(bytes, STREAM) * sizeof *b.buf)};
    if (!b.buf) return CTN_ENOMEM;
    memset(b.buf, 0, (size_t)elements(bytes, STREAM) * sizeof *b.buf);
    CTN_TRY_GOTO(st, done, try_regions(&b));
    CTN_TRY_GOTO(st, done, fastest(&b, bytes, &best->algorithm));
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

ctn_status ctn__comm_choose(ctn_comm *c, int64_t bytes, bool cut, const char *known, char *chosen,
                            size_t room)
{
    choice k = parse(c, known);
    CTN_TRY(ctn_comm_broadcast(c, &k, sizeof k, 0));
    if (k.algorithm < 0) CTN_TRY(measure(c, bytes, cut, &k));
    const ctn__algorithm *a = ctn__algorithm_at(k.algorithm);
    if (a->region) CTN_TRY(make_regions(c));
    c->alg = a;
    c->bucket = (int64_t)k.mb * MB;
    snprintf(chosen, room, "%s, %d MB", c->alg->name, k.mb);
    return CTN_OK;
}
