/* SPDX-License-Identifier: Apache-2.0
 *
 * A timeline as `catena timeline` sees it: timeline_read.c takes the spans of each rank out of the
 * file, timeline.c splits the steps and prints.
 */
#ifndef CATENA_TIMELINE_H
#define CATENA_TIMELINE_H

#include "cli.h"

/* The categories that the writer gives to spans. */
typedef enum {
    SPAN_COMPUTE,
    SPAN_OPTIMIZER,
    SPAN_START,
    SPAN_WAIT,
    SPAN_PROGRESS,
    SPAN_INPUT,
    SPAN_EXCHANGE,
    SPAN_STEP,
    SPAN_KINDS
} span_kind;

typedef struct {
    double t0, t1; /* ms */
} span;

typedef struct {
    span *at;
    size_t n, room;
} spans;

typedef struct {
    int rank;
    char name[100]; /* "rank 0 (host)" */
    spans of[SPAN_KINDS];
} rank_spans;

typedef struct {
    int ranks, job_ranks;   /* in the file; of the job, of which these may be a sample */
    rank_spans *rank;       /* [ranks] */
    double clock_within_us; /* of the worst rank */
    int64_t lost;           /* spans that rings had no room for */
} timeline;

/* Errors: EIO, EFORMAT (no JSON, or not a timeline), ENOMEM. Free it in any case. */
ctn_status timeline_read(timeline *t, const char *path);
void timeline_free(timeline *t);
bool spans_add(spans *s, span x);

#endif
