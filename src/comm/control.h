/* SPDX-License-Identifier: Apache-2.0
 *
 * The control message: a few numbers of each rank that are summed over all ranks together with the
 * gradients of a step, so that agreement between the ranks costs no message of its own.
 */
#ifndef CTN_COMM_CONTROL_H
#define CTN_COMM_CONTROL_H

#include "comm/comm.h"

enum {
    CTN__GIVE_WEIGHT,  /* weight of this rank's contributions */
    CTN__GIVE_SAMPLES, /* from the trainer: samples, */
    CTN__GIVE_STOP,    /* this rank was asked to stop, */
    CTN__GIVE_CLOCK,   /* seconds of rank 0 (0 on other ranks) */
    CTN__GIVE_WRITTEN, /* this rank's part of the state that is being saved is on disk */
    CTN__GIVE_DUE,     /* of rank 0: which extensions run after this step (0 on other ranks) */
    CTN__GIVE_LOSS,    /* sum of the losses of the step before over its samples or targets, */
    CTN__GIVE_TARGETS, /* and their number */
    CTN__GIVE_POLLS,   /* seconds of a step without the progress thread */
    CTN__GIVE_THREAD,  /* and with it */
    CTN__GIVE_EXACT,   /* this rank reads in f32 what comes back in 16 bits */
    CTN__GIVEN
};

typedef struct {
    double give[CTN__GIVEN];    /* of this rank, for the next step */
    double total[CTN__GIVEN];   /* sums over all ranks, after the last step */
    double sending[CTN__GIVEN]; /* in flight between the two */
    ctn__coll *sum;             /* NULL: nothing is in flight */
} ctn__control;

#endif
