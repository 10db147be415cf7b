/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of an exchange, for exchange.c, narrow.c and trial.c. Others include exchange.h.
 */
#ifndef CTN_COMM_FLIGHT_H
#define CTN_COMM_FLIGHT_H

#include "comm/exchange.h"

/* Values of sharded updates that come back in 16 bits, and those that come back exactly
 * (narrow.c). */
typedef struct {
    ctn_dtype type; /* CTN_F32: all come back exactly */
    int nexact;
    ctn__range *exact;
    float *aside; /* the values of these ranges, one after another */
    int64_t count;
    ctn__coll *sum;
} ctn__narrow;

/* The first steps alternate without and with the progress thread, to find out whether it helps
 * (trial.c). */
typedef struct {
    bool on;
    int steps;      /* taken so far */
    uint64_t since; /* end of the last one */
} ctn__trial;

typedef struct {
    uint64_t exposed_ns, hidden_ns;
    uint64_t counted; /* everything before this time is already counted */
    ctn__trace *trace;
} ctn__timing;

struct ctn__exchange {
    ctn_comm *comm;
    void *w, *g; /* elements of opt.type */
    ctn__exchange_opt opt;
    ctn__buckets buckets;
    uint64_t number; /* of the first bucket's vector */
    bool decided;
    bool all;           /* the next step needs all sums at once */
    bool polls;         /* without the progress thread */
    ctn__coll **sum;    /* [buckets.n] of the step in flight */
    ctn__coll **values; /* [buckets.n] of sharded updates */
    bool begun;         /* some gradients of this step are ready */
    int64_t *missing;   /* [buckets.n] elements of each bucket that are not ready yet */
    int started;        /* number of buckets started, in their order */
    int awaited;        /* buckets [0, awaited) are not at rest */
    ctn__narrow narrow;
    ctn__control control;
    ctn__trial trial;
    ctn__timing timing;
    int64_t *exact; /* [count + 1] sums so far, and how many values cannot be added; NULL: off */
};

/* Part of publish: starts the values that come back exactly. */
ctn_status ctn__aside_start(ctn__exchange *x);
/* Part of need: puts them into bucket b, which has arrived. */
ctn_status ctn__aside_take(ctn__exchange *x, int b);
void ctn__trial_step(ctn__exchange *x); /* a step has ended */
/* Replaces the gradients by the exact sums of all contributions of all ranks. */
ctn_status ctn__exact_sum(ctn__exchange *x);

#endif
