/* SPDX-License-Identifier: Apache-2.0
 *
 * What one step of a training does and when. schedule.c records it from a plan; the simulator and
 * the model of a job read it. A text file with one line for each of these, in order:
 *   name TEXT           of the network
 *   batch N             samples of a rank
 *   memory BYTES BYTES  of intermediate results, and of the optimizer's state of all parameters
 *   elements N          of the pool of gradients
 *   update SECONDS      of all parameters by one rank
 *   param BEGIN         where each parameter begins, ascending
 *   kernel SECONDS
 *   ready BEGIN END     these gradients are complete
 *   need END            the following kernels need the values before this element
 *   step                waits for the sums, and updates
 */
#ifndef CATENA_SCALE_EVENTS_H
#define CATENA_SCALE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <catena/base.h>

typedef enum { KERNEL, READY, NEED, STEP } event_kind;

typedef struct {
    event_kind kind;
    double seconds;
    int64_t begin, end;
} event;

typedef struct {
    char name[64];
    int64_t batch, elements;
    int64_t results, state;     /* bytes of memory; without those of parameters and gradients */
    double update_s, compute_s; /* compute_s: kernels and update */
    int params;
    int64_t *param; /* [params + 1]: the last one is the end */
    int n, steps;   /* events, and those of them that were read as steps */
    event *event;
} events;

/* An empty step. Errors: ENOMEM. */
ctn_status events_new(events *s);
void events_add(events *s, event e);
void events_param(events *s, int64_t begin); /* the next one, ascending */
/* Let all times together be this long. */
void events_scale(events *s, double seconds);
/* Errors: EIO, EFORMAT, ENOMEM. */
ctn_status events_read(events *s, const char *path);
ctn_status events_write(const events *s, const char *path); /* errors: EIO */
void events_free(events *s);

#endif
