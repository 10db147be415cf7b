/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of an exchange: exchange.c, narrow.c and trial.c. Everybody else sees exchange.h.
 */
#ifndef CTN_COMM_FLIGHT_H
#define CTN_COMM_FLIGHT_H

#include "comm/exchange.h"

/* Values of sharded updates that come back in 16 bits, and those that do not (narrow.c). */
typedef struct {
    ctn_dtype type; /* CTN_F32: all come back exactly */
    int nexact;
    ctn__range *exact;
    float *aside; /* what is in these ranges, one after another */
    int64_t count;
    ctn__coll *sum;
} ctn__narrow;

/* Whether the progress thread pays is found by taking the first steps in turn without and with it (trial.c). */
typedef struct {
    bool on;
    int steps;      /* taken */
    uint64_t since; /* end of the last one */
} ctn__trial;

typedef struct {
    uint64_t exposed_ns, hidden_ns;
    uint64_t counted; /* until then */
    ctn__trace *trace;
} ctn__timing;

struct ctn__exchange {
    ctn_comm *comm;
    float *w, *g;
    ctn__exchange_opt opt;
    ctn__buckets buckets;
    uint64_t number; /* of the first bucket's vector */
    bool decided;
    bool all;           /* the step to come wants all sums at once */
    bool polls;         /* without the progress thread */
    ctn__coll **sum;    /* [buckets.n] of the step on its way */
    ctn__coll **values; /* [buckets.n] of sharded updates */
    bool begun;         /* gradients of this step are ready, */
    int64_t *missing;   /* [buckets.n] but so many elements of each bucket */
    int started;        /* buckets, in their order */
    int awaited;        /* buckets [0, awaited) are not at rest */
    ctn__narrow narrow;
    ctn__control control;
    ctn__trial trial;
    ctn__timing timing;
};

ctn_status ctn__aside_start(ctn__exchange *x);       /* of publish: what comes back exactly */
ctn_status ctn__aside_take(ctn__exchange *x, int b); /* of need: into bucket b, which is there */
void ctn__trial_step(ctn__exchange *x);              /* a step has ended */

#endif
