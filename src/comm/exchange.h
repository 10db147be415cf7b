/* SPDX-License-Identifier: Apache-2.0
 *
 * The exchange of one pool of gradients with other ranks, as graph/, plan/, optim/, train/ and dist/ see it. Every exchanging step starts all buckets in the
 * same order (rule 13), whatever plan a rank runs, so nothing is negotiated: ranks may take different branches.
 *
 * What is in flight after a step is one number, ctn__exchange_rest: values and gradients of the elements before it are at rest. From there on the
 * step has left sums that are still to be applied (held-back buckets) or values that still come back (sharded updates). Whoever
 * reads or writes an element calls ctn__exchange_need first: plans by a node in front of the first kernel that touches it
 * (plan/exchange.c), everybody else through ctn__pool_settle. Gradients are also in flight between ctn__exchange_ready, which a plan calls
 * after the last kernel that reads or writes them, and ctn__exchange_finish, which it calls before the step. Plans speak of elements only:
 * how the pool is cut into buckets, and when that is decided, is none of their business.
 */
#ifndef CTN_COMM_EXCHANGE_H
#define CTN_COMM_EXCHANGE_H

#include "comm/buckets.h"
#include "comm/control.h"

typedef struct ctn__exchange ctn__exchange;

typedef struct {
    int64_t begin, end; /* elements of the pool */
} ctn__range;

/* Applies the last step to the values [begin, end), whose sums have arrived. */
typedef void ctn__update_fn(void *owner, int64_t begin, int64_t end, int threads);

enum { CTN__HOLD = 8 };

typedef struct {
    int64_t bucket;    /* bytes; 0: as measured, or by pool and number of ranks */
    int n;             /* buckets at borders of the caller's: begin[0..n], rising; 0: not so */
    const int64_t *at; /* [n + 1] */
    ctn_dtype wire;
    bool shard;      /* each rank sums its block of each bucket, and gets the others' values back */
    bool late;       /* nothing starts before all gradients are there (for comparison) */
    bool one_by_one; /* and each bucket is waited for before the next (for comparison) */
    int hold; /* one of this many elements may be left in flight by a step; sharded: all of them; 0: none */
    ctn__update_fn *update;
    void *owner;
    int progress; /* CTN_DIST_POLLS, CTN_DIST_THREAD, 0: found out by the first steps */
} ctn__exchange_opt;

/* w, g: values and gradients of the pool. Errors: ENOMEM. */
ctn_status ctn__exchange_new(ctn__exchange **out, ctn_comm *c, float *w, float *g, int64_t count,
                             const ctn__exchange_opt *opt);
/* True: the transport may still use the pool's memory, because the group broke in mid-step; it must stay. */
bool ctn__exchange_free(ctn__exchange *x);

ctn_comm *ctn__exchange_comm(const ctn__exchange *x);
const ctn__buckets *ctn__exchange_buckets(const ctn__exchange *x);
bool ctn__exchange_sharded(const ctn__exchange *x);
bool ctn__exchange_broken(const ctn__exchange *x); /* its group is */
ctn_dtype ctn__exchange_wire(const ctn__exchange *x);
/* What this rank gives in the step to come; what all gave in the last one. */
void ctn__exchange_give(ctn__exchange *x, int what, double value);
double ctn__exchange_total(const ctn__exchange *x, int what);

/* ---- what is in flight -------------------------------------------------------------------------------- */

/* Elements before it are at rest. */
int64_t ctn__exchange_rest(const ctn__exchange *x);
/* Elements before it are at rest after every step: nobody needs to ask for them. */
int64_t ctn__exchange_prompt(const ctn__exchange *x);
/* Wait until the elements before `end` are at rest. */
ctn_status ctn__exchange_need(ctn__exchange *x, int64_t end, int threads);

/* ---- a step (plan/exchange.c, optim/) ------------------------------------------------------------------ */

/* The step to come wants all sums at once, for their norm. */
void ctn__exchange_want_all(ctn__exchange *x, bool all);
/* The gradients [begin, end) are written, and no kernel touches them any more. Each element once per step. Starts the buckets that this completes. */
ctn_status ctn__exchange_ready(ctn__exchange *x, int64_t begin, int64_t end);
/* Start what is left, wait for what is not held back. Afterwards g has sums (sharded: in the own blocks) before ctn__exchange_rest. */
ctn_status ctn__exchange_finish(ctn__exchange *x);
/* Own block of bucket b, as a range of the pool. */
ctn__range ctn__exchange_own(const ctn__exchange *x, int b);
/* Sharded: the own blocks of w are new. Starts to bring every rank's to every rank, first layers first. */
ctn_status ctn__exchange_publish(ctn__exchange *x);

/* ---- decisions, in the first step ------------------------------------------------------------------------ */

/* True once: buckets and types may be decided now, and stay from then on. Nothing starts before that. */
bool ctn__exchange_decide(ctn__exchange *x);
/* Cut into buckets of this many bytes, unless the caller has said how. Errors: ENOMEM. */
ctn_status ctn__exchange_cut(ctn__exchange *x, int64_t bytes);
/* Sharded: from now on values come back as this 16-bit type, but those of n ranges, in rising order, exactly. Errors: ENOMEM. */
ctn_status ctn__exchange_narrow(ctn__exchange *x, ctn_dtype values, int n, const ctn__range *exact);
/* The type that values come back in, and whether those of a range do so exactly. */
ctn_dtype ctn__exchange_values(const ctn__exchange *x);
bool ctn__exchange_exact(const ctn__exchange *x, ctn__range r);

/* ---- looking -------------------------------------------------------------------------------------------- */

typedef struct {
    double exposed_s, hidden_s; /* waited for; done while kernels ran */
    int progress;               /* CTN_DIST_POLLS, CTN_DIST_THREAD, 0: not decided yet */
} ctn__exchange_stats;
ctn__exchange_stats ctn__exchange_look(const ctn__exchange *x);
/* Each bucket's way is kept there as a span; NULL: nowhere. */
void ctn__exchange_trace(ctn__exchange *x, ctn__trace *trace);

#endif
