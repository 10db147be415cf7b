/* SPDX-License-Identifier: Apache-2.0
 *
 * The exchange of one pool of gradients with the other ranks, as seen by graph/, plan/, optim/,
 * train/ and distributed/. Every exchanging step starts all buckets in the same order (rule 13),
 * whatever plan a rank runs, so nothing is negotiated and ranks may take different branches.
 *
 * What is in flight after a step is described by one number, ctn__exchange_rest: values and
 * gradients of the elements before it are at rest. For the others, the step has left sums that are
 * still to be applied (held-back buckets) or values that are still to come back (sharded updates).
 * Call ctn__exchange_need before reading or writing an element. Plans do so by a node before the
 * first kernel that touches it (plan/exchange.c), all other code through ctn__pool_settle.
 *
 * Gradients are also in flight between ctn__exchange_ready, which a plan calls after the last
 * kernel that reads or writes them, and ctn__exchange_finish, which it calls before the step.
 * Plans only know about elements. They do not depend on how the pool is cut into buckets or on
 * when that is decided.
 */
#ifndef CTN_COMM_EXCHANGE_H
#define CTN_COMM_EXCHANGE_H

#include "comm/buckets.h"
#include "comm/control.h"

typedef struct ctn__exchange ctn__exchange;

typedef struct {
    int64_t begin, end; /* elements of the pool */
} ctn__range;

/* Applies the last step to the values [begin, end). Their sums have arrived. */
typedef void ctn__update_fn(void *owner, int64_t begin, int64_t end, int threads);

enum { CTN__HOLD = 8 };

typedef struct {
    int64_t bucket;    /* bytes; 0: measured, or derived from the pool and the number of ranks */
    int n;             /* number of buckets if the caller chooses their borders; 0: it does not */
    const int64_t *at; /* [n + 1] borders, ascending */
    ctn_dtype type;    /* of the pool, f32 or f64; f64 neither with shard nor with exact */
    ctn_dtype wire;    /* f32: the type that is sent */
    bool shard;        /* each rank sums its block of each bucket and receives the other values */
    bool late;         /* nothing starts before all gradients are ready (for comparison) */
    bool one_by_one;   /* and each bucket is waited for before the next starts (for comparison) */
    /* A step may leave 1/hold of the elements in flight; sharded: all of them. 0: none. */
    int hold;
    ctn__update_fn *update;
    void *owner;
    /* Sums that do not depend on their order (exact.c), of at most this many contributions of all
     * ranks; 0: ordinary sums. Nothing overlaps then. */
    int64_t exact;
    int progress; /* CTN_DIST_POLLS, CTN_DIST_THREAD, 0: decided in the first steps */
} ctn__exchange_opt;

/* w, g: values and gradients of the pool. Errors: ENOMEM. */
ctn_status ctn__exchange_new(ctn__exchange **out, ctn_comm *c, void *w, void *g, int64_t count,
                             const ctn__exchange_opt *opt);
/* True: the group broke in mid-step, and the transport may still use the pool's memory, which must
 * stay allocated. */
bool ctn__exchange_free(ctn__exchange *x);

/* Call unbind before a pool that is at rest gets other memory, and bind after that, with its values
 * and gradients, their number, and the n borders of buckets that the caller chooses (n 0: it does
 * not). Settings and the numbers of the last step stay; buckets are decided again. Not for sharded
 * updates. On all ranks alike. Errors: ENOMEM. */
void ctn__exchange_unbind(ctn__exchange *x);
ctn_status ctn__exchange_bind(ctn__exchange *x, void *w, void *g, int64_t count, int n,
                              const int64_t *at);

ctn_comm *ctn__exchange_comm(const ctn__exchange *x);
const ctn__buckets *ctn__exchange_buckets(const ctn__exchange *x);
bool ctn__exchange_sharded(const ctn__exchange *x);
bool ctn__exchange_one_by_one(const ctn__exchange *x); /* its buckets are the parameters */
bool ctn__exchange_broken(const ctn__exchange *x);     /* its group has failed */
ctn_dtype ctn__exchange_wire(const ctn__exchange *x);
/* What this rank contributes to the next step; the sum over all ranks in the last one. */
void ctn__exchange_give(ctn__exchange *x, int what, double value);
double ctn__exchange_total(const ctn__exchange *x, int what);

/* ---- what is in flight ---------------------------------------------------------------------- */

/* Elements before this one are at rest. */
int64_t ctn__exchange_rest(const ctn__exchange *x);
/* Elements before this one are at rest after every step and need not be waited for. */
int64_t ctn__exchange_prompt(const ctn__exchange *x);
/* Waits until the elements before `end` are at rest. */
ctn_status ctn__exchange_need(ctn__exchange *x, int64_t end, int threads);

/* ---- a step (plan/exchange.c, optim/) ------------------------------------------------------- */

/* The next step needs all sums at once, for their norm. */
void ctn__exchange_want_all(ctn__exchange *x, bool all);
/* The gradients [begin, end) are complete, and no kernel touches them any more. Call it for each
 * element once per step. Starts the buckets that are now complete. */
ctn_status ctn__exchange_ready(ctn__exchange *x, int64_t begin, int64_t end);
/* Starts the remaining buckets and waits for those that are not held back. Afterwards g contains
 * the sums (sharded: in this rank's blocks) before ctn__exchange_rest. */
ctn_status ctn__exchange_finish(ctn__exchange *x);
/* Exact sums: adds the gradients of one contribution to those of this rank and sets them to zero.
 * The last one is added by ctn__exchange_finish. */
void ctn__exchange_collect(ctn__exchange *x);
bool ctn__exchange_is_exact(const ctn__exchange *x);
/* This rank's block of bucket b, as a range of the pool. */
ctn__range ctn__exchange_own(const ctn__exchange *x, int b);
/* Sharded: this rank's blocks of w are updated. Starts sending all blocks to all ranks, first
 * layers first. */
ctn_status ctn__exchange_publish(ctn__exchange *x);

/* ---- decisions, in the first step ----------------------------------------------------------- */

/* True only once: buckets and types may be decided now and do not change afterwards. Nothing starts
 * before that. */
bool ctn__exchange_decide(ctn__exchange *x);
/* Cuts into buckets of this many bytes, unless the caller has chosen them. Errors: ENOMEM. */
ctn_status ctn__exchange_cut(ctn__exchange *x, int64_t bytes);
/* Sharded: from now on values come back in this 16-bit type, except those in n ranges (ascending),
 * which come back exactly. Errors: ENOMEM. */
ctn_status ctn__exchange_narrow(ctn__exchange *x, ctn_dtype values, int n, const ctn__range *exact);
/* The type in which values come back, and whether those of a range come back exactly. */
ctn_dtype ctn__exchange_values(const ctn__exchange *x);
bool ctn__exchange_exact(const ctn__exchange *x, ctn__range r);

/* ---- queries -------------------------------------------------------------------------------- */

typedef struct {
    double exposed_s, hidden_s; /* time waited; time overlapped with kernels */
    int progress;               /* CTN_DIST_POLLS, CTN_DIST_THREAD, 0: not decided yet */
} ctn__exchange_stats;
ctn__exchange_stats ctn__exchange_look(const ctn__exchange *x);
/* Records each bucket's transfer there as a span; NULL: off. */
void ctn__exchange_trace(ctn__exchange *x, ctn__trace *trace);

#endif
