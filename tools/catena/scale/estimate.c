/* SPDX-License-Identifier: Apache-2.0
 *
 * See estimate.h. A sum costs its rounds times alpha and its bytes times beta, as in the formulas
 * of src/comm/allreduce_*.c. A step is replayed event by event: a bucket starts when its gradients
 * are complete, and its bytes follow those of the bucket before it.
 */
#include "scale/estimate.h"

#include <math.h>
#include <string.h>

#define CONVERTING 0.2e-9 /* seconds to convert a byte to 16 bits and back, half of it hidden */

enum {
    HOLD = 8,        /* a step may leave 1/HOLD of the elements in flight */
    FITTED_FROM = 16 /* ranks: fewer were not simulated */
};

static int rows_of(int64_t ranks)
{
    int64_t rows = 1;
    for (int64_t r = 2; r <= ranks / r; r++)
        if (ranks % r == 0) rows = r;
    return (int)rows;
}

/* Messages one after the other, and bytes sent by a rank for each byte of the vector. */
static void shape(const char *algorithm, int64_t ranks, double *rounds, double *volume)
{
    const double p = (double)ranks, lg = floor(log2(p)), rows = rows_of(ranks), cols = p / rows;
    const bool pairs = exp2(lg) < p;
    *volume = 2 * (p - 1) / p;
    *rounds = 2 * (p - 1);
    if (strcmp(algorithm, "torus") == 0) *rounds = 2 * (rows + cols - 2);
    if (strcmp(algorithm, "rsap") == 0) *rounds = cols - 1 + 2 * (rows - 1) + 2;
    if (strcmp(algorithm, "rabenseifner") == 0) {
        *rounds = 2 * lg + 2 * pairs;
        *volume += 2 * pairs;
    }
    if (strcmp(algorithm, "doubling") == 0) {
        *rounds = lg + 2 * pairs;
        *volume = lg + 2 * pairs;
    }
}

static const fitted *find(const char *machine, const char *algorithm)
{
    for (const fitted *f = fitted_costs; f->platform; f++)
        if (strcmp(f->platform, machine) == 0 && strcmp(f->algorithm, algorithm) == 0) return f;
    return NULL;
}

/* The parts of a sum that depend on the number of messages, and on the bytes. */
static bool parts_of(const char *machine, const char *algorithm, int64_t ranks, double bytes,
                     double *latency, double *transfer)
{
    const fitted *f = find(machine, algorithm);
    double rounds, volume;
    if (!f) return false;
    shape(algorithm, ranks, &rounds, &volume);
    const double p = (double)(ranks > FITTED_FROM ? ranks : FITTED_FROM);
    *latency = rounds * f->alpha * pow(p, f->alpha_grows);
    *transfer = volume * (bytes * f->beta * pow(p, f->beta_grows) +
                          bytes / (1 + bytes / f->alone) * f->gamma);
    return true;
}

double estimate_sum(const char *machine, const char *algorithm, int64_t ranks, double bytes)
{
    double latency, transfer;
    if (ranks < 2) return 0;
    if (!parts_of(machine, algorithm, ranks, bytes, &latency, &transfer)) return -1;
    return latency + transfer;
}

/* ---- a step ---------------------------------------------------------------------------------- */

enum { MOST_BUCKETS = 4096 };

typedef struct {
    const events *e;
    const exchange_way *w;
    double latency, transfer; /* of a bucket */
    double update_s;          /* of an element, on this rank */
    int n, started;        /* buckets; bucket 0 has the last elements, whose gradients come first */
    int held;              /* buckets that a step may leave in flight, from bucket 0 on */
    int needed;            /* the next of those of the last step; -1: none is in flight */
    int64_t length;        /* elements of a bucket */
    double clock, free_at; /* of the rank, and of its network */
    double done[MOST_BUCKETS];
} replay;

static int64_t begin_of(const replay *r, int b)
{
    const int64_t at = r->e->elements - (int64_t)(b + 1) * r->length;
    return at > 0 ? at : 0;
}

/* The bucket that a step starts as number i (src/comm/buckets.c): those that are held back last,
 * and of them first the one that is needed first. */
static int order(const replay *r, int i)
{
    return i < r->n - r->held ? i + r->held : r->n - 1 - i;
}

static void send(replay *r, int b, double factor)
{
    const double begin = fmax(r->clock, r->free_at);
    r->free_at = begin + factor * r->transfer;
    r->done[b] = r->free_at + factor * r->latency;
}

static void settle(replay *r, int b)
{
    r->clock = fmax(r->clock, r->done[b]);
    if (!r->w->shard) r->clock += r->update_s * (double)r->length;
}

/* The buckets that contain the elements before `end` come to rest. */
static void need(replay *r, int64_t end)
{
    while (r->needed >= 0 && begin_of(r, r->needed) < end) settle(r, r->needed--);
}

static void start(replay *r, int64_t ready)
{
    for (; r->started < r->n && begin_of(r, order(r, r->started)) >= ready; r->started++)
        send(r, order(r, r->started), r->w->shard ? 0.5 : 1);
}

static void finish(replay *r)
{
    start(r, 0);
    r->started = 0;
    r->clock = fmax(r->clock, r->done[r->n - 1]); /* the last one of those that are not held */
    for (int b = r->held; b < r->n; b++) settle(r, b);
    r->needed = r->held - 1;
    if (!r->w->shard) return;
    r->clock += r->update_s * (double)r->e->elements;
    for (int b = r->n; b-- > 0;) send(r, b, 0.5);
    r->needed = r->n - 1;
}

static void play(replay *r)
{
    for (int i = 0; i < r->e->n; i++) {
        const event *e = &r->e->event[i];
        switch (e->kind) {
        case KERNEL: r->clock += e->seconds; break;
        case READY: start(r, e->begin); break;
        case NEED: need(r, e->end); break;
        case STEP: finish(r); break;
        }
    }
}

double estimate_step(const events *e, const char *machine, int64_t ranks, const exchange_way *w)
{
    static replay r;
    if (ranks < 2) return e->compute_s;
    r = (replay){.e = e, .w = w, .length = w->bucket / 4};
    if (r.length > e->elements) r.length = e->elements;
    if (e->elements / r.length >= MOST_BUCKETS) r.length = e->elements / (MOST_BUCKETS - 1);
    r.n = (int)((e->elements + r.length - 1) / r.length);
    while (!w->shard && begin_of(&r, r.held) >= e->elements - e->elements / HOLD) r.held++;
    r.needed = -1;
    r.update_s = e->update_s / (double)e->elements / (double)(w->shard ? ranks : 1);
    const double bytes = (double)r.length * w->wire;
    if (!parts_of(machine, w->shard ? "ring" : w->algorithm, ranks, bytes, &r.latency, &r.transfer))
        return -1;
    if (w->wire == 2) {
        const bool put = strcmp(w->algorithm, "rsap") == 0; /* what is put was converted once */
        const double sent = 2 * (double)(ranks - 1) / (double)ranks * bytes;
        const double work = (put ? 0.75 : 1) * sent * CONVERTING;
        r.transfer = fmax(r.transfer, work) + (put ? 0 : fmin(r.transfer, work) / 2);
    }
    play(&r);
    const double begin = r.clock;
    play(&r);
    return r.clock - begin;
}

double estimate_sent(const events *e, int64_t ranks, const exchange_way *w)
{
    double rounds, volume;
    if (ranks < 2) return 0;
    shape(w->shard ? "ring" : w->algorithm, ranks, &rounds, &volume);
    return volume * w->wire * (double)e->elements;
}

/* Beyond the simulations, only what has been simulated farthest. */
static bool is_candidate(const fitted *f, const char *machine, int64_t ranks,
                         const exchange_way *asked)
{
    int64_t known = 0;
    for (const fitted *g = fitted_costs; g->platform; g++)
        if (strcmp(g->platform, machine) == 0 && g->most > known) known = g->most;
    if (strcmp(f->platform, machine) != 0) return false;
    if (asked->shard) return strcmp(f->algorithm, "ring") == 0;
    if (asked->algorithm) return strcmp(asked->algorithm, f->algorithm) == 0;
    return ranks <= f->most || f->most >= known;
}

/* Does a way replace the best one so far? A step that is a thousandth slower is as fast. */
static bool is_better(double s, double sent, double best, double best_sent)
{
    const double margin = 0.001 * best;
    return s < best - margin || (s < best + margin && sent < best_sent);
}

double estimate_best(const events *e, const char *machine, int64_t ranks, exchange_way *way)
{
    static const int mb[] = {1, 4, 16};
    const exchange_way asked = *way;
    double best = HUGE_VAL, sent = HUGE_VAL;
    for (const fitted *f = fitted_costs; f->platform; f++) {
        if (!is_candidate(f, machine, ranks, &asked)) continue;
        for (int wire = 4; wire >= 2; wire -= 2)
            for (size_t i = 0; i < sizeof mb / sizeof *mb; i++) {
                const exchange_way w = {f->algorithm, wire, (int64_t)mb[i] << 20, asked.shard};
                if (asked.wire && asked.wire != wire) continue;
                if (wire == 2 && strcmp(f->algorithm, "doubling") == 0) continue;
                const double s = estimate_step(e, machine, ranks, &w);
                const double bytes = estimate_sent(e, ranks, &w);
                if (s < 0 || (best < HUGE_VAL && !is_better(s, bytes, best, sent))) continue;
                best = s;
                sent = bytes;
                *way = w;
            }
    }
    return best < HUGE_VAL ? best : -1;
}
