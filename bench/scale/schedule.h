/* SPDX-License-Identifier: Apache-2.0
 *
 * What one step of a training does and when, as `catena scale` has recorded it from a plan. A text
 * file with one line for each of these, in order:
 *   elements N          of the pool of gradients
 *   update SECONDS      of all parameters by one rank
 *   param BEGIN         where each parameter begins, ascending
 *   kernel SECONDS
 *   ready BEGIN END     these gradients are complete
 *   need END            the following kernels need the values before this element
 *   step                waits for the sums, and updates
 */
#ifndef CATENA_SCALE_SCHEDULE_H
#define CATENA_SCALE_SCHEDULE_H

#include "comm/exchange.h"

#include "adapter.h"

typedef enum { KERNEL, READY, NEED, STEP } event_kind;

typedef struct {
    event_kind kind;
    double seconds;
    int64_t begin, end;
} event;

typedef struct {
    int64_t elements;
    double update_s, compute_s; /* compute_s: kernels and update */
    int params;
    int64_t *param; /* [params + 1] */
    int events;
    event *event;
} schedule;

/* Errors: EIO, EFORMAT, ENOMEM. */
ctn_status schedule_read(schedule *s, const char *path);
void schedule_free(schedule *s);

#endif
