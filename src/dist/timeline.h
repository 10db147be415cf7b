/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks are in a timeline, and their clocks against rank 0's; for timeline.c, and for its tests,
 * which bring clocks of their own.
 */
#ifndef CTN_DIST_TIMELINE_H
#define CTN_DIST_TIMELINE_H

#include "comm/comm.h"

/* n of the ranks of a group: rank 0 and others, evenly spread. Number 0 is rank 0. */
typedef struct {
    int size, n;
} ctn__sample;

ctn__sample ctn__sample_of(int size, int ranks); /* at most `ranks`; 0: 64 */
int ctn__sample_rank(ctn__sample s, int i);      /* number i */
int ctn__sample_number(ctn__sample s, int rank); /* of a rank; -1: it is not among them */

/* Nanoseconds of this rank's clock. */
typedef uint64_t ctn__clock(void *user);

/* How far a rank's clock is ahead of rank 0's, and how wrong this may be. */
typedef struct {
    int64_t ahead_ns, within_ns;
} ctn__clock_offset;

/* of[s.n], filled in on rank 0 only, whose cost it is. Ranks of one node share a clock, so one of them is asked.
 * For the ranks of the sample; others may call it too, and do nothing. */
ctn_status ctn__clock_offsets(ctn_comm *c, ctn__sample s, ctn__clock *now, void *user,
                              ctn__clock_offset *of);

#endif
