/* SPDX-License-Identifier: Apache-2.0
 *
 * The data of `catena timeline`: read.c reads the spans of each rank from the file, timeline.c
 * splits the steps and prints the result.
 */
#ifndef CATENA_TIMELINE_H
#define CATENA_TIMELINE_H

#include "cli.h"

/* The categories of spans in the file. */
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
    int ranks, job_ranks; /* in the file, which may have a sample of the job's ranks; in the job */
    rank_spans *rank;     /* [ranks] */
    double clock_within_us; /* clock accuracy of the worst rank */
    int64_t lost;           /* spans that did not fit in the ring buffers */
} timeline;

/* Errors: EIO, EFORMAT (not JSON, or not a timeline), ENOMEM. Call timeline_free in any case. */
ctn_status timeline_read(timeline *t, const char *path);
void timeline_free(timeline *t);
bool spans_add(spans *s, span x);

#endif
