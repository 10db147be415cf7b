/* SPDX-License-Identifier: Apache-2.0
 *
 * The exchange of one pool of gradients. Buckets are ranges of the pool from its end, where backward writes first, to its beginning. Every
 * exchanging step starts all of them in the same order (rule 13), whatever plan a rank runs, so nothing is negotiated: ranks
 * may take different branches. Called by plan/exchange.c in a run, made by dist/.
 *
 * The order is that of backward, but the first few buckets, of the last layers, are held back until all others have started: the next forward
 * pass reads their values last. The step does not wait for them; they are updated when they are needed.
 */
#ifndef CTN_COMM_EXCHANGE_H
#define CTN_COMM_EXCHANGE_H

#include "comm/comm.h"

/* What goes with the gradients as one small message. */
enum {
    CTN__GIVE_WEIGHT,  /* of the contributions */
    CTN__GIVE_SAMPLES, /* the trainer's: */
    CTN__GIVE_STOP,    /* this rank was asked to stop */
    CTN__GIVE_CLOCK,   /* seconds of rank 0, 0 elsewhere */
    CTN__GIVE_POLLS,   /* seconds of a step without and with the progress thread */
    CTN__GIVE_THREAD,
    CTN__GIVEN
};

typedef struct {
    int64_t begin, end; /* elements of the pool */
} ctn__range;

/* Whether the progress thread pays is found by taking the first steps in turn without and with it. */
typedef struct {
    bool on;
    int steps;      /* taken */
    uint64_t since; /* end of the last one */
} ctn__trial;

typedef struct {
    ctn_comm *comm;
    float *w, *g; /* the pool's: values, gradients */
    int64_t count;
    int nbucket;
    uint64_t number; /* of the first bucket's vector */
    int64_t *begin;  /* [nbucket + 1], falling: bucket b is [begin[b+1], begin[b]) */
    ctn_dtype wire;
    bool given;   /* buckets are as the caller wants them */
    bool settled; /* plans know it: buckets and types stay */
    bool polls;   /* without the progress thread */
    int held;     /* buckets [0, held) are held back */
    bool whole;   /* the step to come wants all sums at once (for their norm) */
    /* Brings the values of [begin, end) up to date, whose sums are there; NULL: nothing is held back. */
    void (*update)(void *owner, int64_t begin, int64_t end, int threads);
    void *owner;
    bool shard;      /* each rank sums its block of each bucket, and gets the others' values back */
    bool late;       /* nothing starts before all gradients are there (for comparison) */
    bool one_by_one; /* and each bucket is waited for before the next (for comparison) */
    ctn_dtype values; /* sharded: as which they come back, */
    int nexact;       /* but for these ranges, which come back exactly: */
    ctn__range *exact;
    float *aside; /* what is in them, one after another */
    int64_t naside;
    double give[CTN__GIVEN];    /* of this rank, in the step to come */
    double total[CTN__GIVEN];   /* their sums over all ranks, after the last finish */
    double control[CTN__GIVEN]; /* on the way from one to the other */
    /* of the step on its way */
    ctn__coll **coll; /* [nbucket] sums */
    ctn__coll **back; /* [nbucket] values of sharded updates */
    ctn__coll *summing, *aside_sum;
    int started;
    int awaited; /* buckets [0, awaited) are still on their way: values, or sums to update them by */
    ctn__trial trial;
    uint64_t exposed_ns, hidden_ns; /* waited for, and done behind kernels, since it was made */
    uint64_t counted;               /* until then */
    ctn__trace *trace;              /* where each bucket's way is kept as a span; NULL: nowhere */
} ctn__exchange;

/* bucket: bytes, 0: 4 MB or what fills the messages of this many ranks. Errors: ENOMEM. */
ctn_status ctn__exchange_new(ctn__exchange **out, ctn_comm *c, float *w, float *g, int64_t count,
                             int64_t bucket, ctn_dtype wire, bool shard);
/* Other buckets, before plans know them. Errors: ENOMEM. */
ctn_status ctn__exchange_cut(ctn__exchange *x, int64_t bucket);
/* n ranges that begin at begin[i] (rising; begin[n] is the end). */
ctn_status ctn__exchange_cut_at(ctn__exchange *x, int n, const int64_t *begin);
void ctn__exchange_free(ctn__exchange *x);
/* From now on some buckets are held back. Before plans know it. */
void ctn__exchange_hold(ctn__exchange *x,
                        void (*update)(void *owner, int64_t begin, int64_t end, int threads),
                        void *owner);
/* The bucket that starts as number s of a step. */
int ctn__exchange_at(const ctn__exchange *x, int s);
/* The gradients of the first s + 1 buckets to start are written. */
ctn_status ctn__exchange_start(ctn__exchange *x, int s);
/* Start what is left, wait for what is not held back. Afterwards g has sums (sharded: the own blocks have), but in buckets [0, awaited). */
ctn_status ctn__exchange_finish(ctn__exchange *x);
/* Own block of bucket b, as a range of the pool. */
void ctn__exchange_own(const ctn__exchange *x, int b, int64_t *begin, int64_t *end);
/* Sharded: from now on values come back as this 16-bit type, but those of n ranges, in rising order, exactly. Errors: ENOMEM. */
ctn_status ctn__exchange_narrow(ctn__exchange *x, ctn_dtype values, int n, const ctn__range *exact);
ctn_status ctn__aside_start(ctn__exchange *x);       /* of publish: what comes back exactly */
ctn_status ctn__aside_take(ctn__exchange *x, int b); /* of need: into bucket b, which is there */
/* Sharded: the own blocks of w are new. Starts to bring every rank's to every rank, first layers first. */
ctn_status ctn__exchange_publish(ctn__exchange *x);
/* Until the values before `end` of the pool are up to date on this rank. */
ctn_status ctn__exchange_need(ctn__exchange *x, int64_t end, int threads);

#endif
