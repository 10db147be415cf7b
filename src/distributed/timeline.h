/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks are in a timeline, and how their clocks differ from rank 0's. Used by timeline.c and
 * by its tests, which supply their own clocks.
 */
#ifndef CTN_DISTRIBUTED_TIMELINE_H
#define CTN_DISTRIBUTED_TIMELINE_H

#include "comm/comm.h"

/* A sample of n of the `size` ranks: rank 0 and others, evenly spread. Number 0 is rank 0. */
typedef struct {
    int size, n;
} ctn__sample;

ctn__sample ctn__sample_of(int size, int ranks); /* at most `ranks`; 0: 64 */
int ctn__sample_rank(ctn__sample s, int i);      /* the rank with number i */
int ctn__sample_number(ctn__sample s, int rank); /* number of a rank; -1: not in the sample */

/* Reads this rank's clock, in nanoseconds. */
typedef uint64_t ctn__clock(void *user);

/* How far a rank's clock is ahead of rank 0's, and the maximum error of that. */
typedef struct {
    int64_t ahead_ns, within_ns;
} ctn__clock_offset;

/* Fills in of[s.n] on rank 0. The ranks of a node share a clock, so only one of them is asked.
 * Called by all ranks of the sample; on any other rank it does nothing. */
ctn_status ctn__clock_offsets(ctn_comm *c, ctn__sample s, ctn__clock *now, void *user,
                              ctn__clock_offset *of);

#endif
