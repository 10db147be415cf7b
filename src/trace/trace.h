/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace layer: the counters of a context, a ring of its latest time spans, and a writer for the
 * Chrome trace format (chrome://tracing, Perfetto). Nothing is allocated after creation.
 */
#ifndef CTN_TRACE_TRACE_H
#define CTN_TRACE_TRACE_H

#include "base/base.h"

typedef enum {
#define CTN__COUNTER(id, name) CTN__COUNT_##id,
#include "trace/counters.def"
#undef CTN__COUNTER
    CTN__COUNT_N
} ctn__counter;

/* Rows of the timeline. */
enum {
    CTN__LANE_KERNELS = 0, /* the thread that issues kernels */
    CTN__LANE_INPUT = 1,
    CTN__LANE_CONTROL = 2,     /* the small message that accompanies the gradients */
    CTN__LANE_BUCKET = 16,     /* first bucket of gradients in flight; others follow */
    CTN__LANE_VALUES = 1 << 16 /* first bucket of values returning from a sharded update */
};

typedef struct {
    const char *name; /* not copied; must live until clear or as long as the trace */
    uint64_t t0, t1;  /* ctn__now_ns() */
    int lane;
    int64_t bytes; /* size of a message; 0: none */
} ctn__span;

typedef struct ctn__trace ctn__trace;

/* Keeps the latest `spans` spans; 0: counters only. NULL with EARG or ENOMEM recorded. */
ctn__trace *ctn__trace_new(int64_t spans);
void ctn__trace_free(ctn__trace *t);

/* Counters. Safe from any thread. add counts up; set is for counters of a current value. */
void ctn__trace_add(ctn__trace *t, ctn__counter id, uint64_t n);
void ctn__trace_set(ctn__trace *t, ctn__counter id, uint64_t value);
uint64_t ctn__trace_count(const ctn__trace *t, ctn__counter id);
const char *ctn__counter_name(ctn__counter id);

/* Spans. Safe from any thread. `spans_on` lets a caller skip reading the clock. */
bool ctn__trace_spans_on(const ctn__trace *t);
void ctn__trace_span(ctn__trace *t, const char *name, uint64_t t0, uint64_t t1, int lane);
void ctn__trace_message(ctn__trace *t, const char *name, uint64_t t0, uint64_t t1, int lane,
                        int64_t bytes);
/* Number of spans kept now, and number overwritten so far. */
int64_t ctn__trace_spans(ctn__trace *t);
int64_t ctn__trace_lost(ctn__trace *t);
/* Span i of those kept, in the order of recording; false if i is out of range. */
bool ctn__trace_get(ctn__trace *t, int64_t i, ctn__span *out);

/* Writes spans and counters as Chrome trace JSON. Spans recorded during the call may be missing.
 * Errors: EIO. */
ctn_status ctn__trace_write_chrome(ctn__trace *t, const char *path);

#endif
