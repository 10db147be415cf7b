/* SPDX-License-Identifier: Apache-2.0
 *
 * The control message: a few numbers of each rank that are summed over all ranks together with the gradients of a step, so that what the ranks
 * must agree on costs no message of its own.
 */
#ifndef CTN_COMM_CONTROL_H
#define CTN_COMM_CONTROL_H

#include "comm/comm.h"

enum {
    CTN__GIVE_WEIGHT,  /* of the contributions */
    CTN__GIVE_SAMPLES, /* the trainer's: */
    CTN__GIVE_STOP,    /* this rank was asked to stop */
    CTN__GIVE_CLOCK,   /* seconds of rank 0, 0 elsewhere */
    CTN__GIVE_POLLS,   /* seconds of a step without and with the progress thread */
    CTN__GIVE_THREAD,
    CTN__GIVE_EXACT, /* this rank reads in f32 what comes back in 16 bits */
    CTN__GIVEN
};

typedef struct {
    double give[CTN__GIVEN];    /* of this rank, in the step to come */
    double total[CTN__GIVEN];   /* their sums over all ranks, after the last step */
    double sending[CTN__GIVEN]; /* on the way from one to the other */
    ctn__coll *sum;             /* NULL: nothing is on its way */
} ctn__control;

#endif
