/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks of all ranks against rank 0's; for timeline.c, and for its tests, which bring clocks of
 * their own.
 */
#ifndef CTN_DIST_TIMELINE_H
#define CTN_DIST_TIMELINE_H

#include "comm/comm.h"

/* Nanoseconds of this rank's clock. */
typedef uint64_t ctn__clock(void *user);

/* How far a rank's clock is ahead of rank 0's, and how wrong this may be. */
typedef struct {
    int64_t ahead_ns, within_ns;
} ctn__clock_offset;

/* of[size], filled in on rank 0 only. Ranks of one node share a clock, so one of them is asked.
 * Collective. */
ctn_status ctn__clock_offsets(ctn_comm *c, ctn__clock *now, void *user, ctn__clock_offset *of);

#endif
