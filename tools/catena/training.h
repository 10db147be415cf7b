/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `catena train` share: train.c is the command, setup.c makes optimizer, schedule and
 * extensions from the options, result.c writes the result folder.
 */
#ifndef CATENA_TRAINING_H
#define CATENA_TRAINING_H

#include "launch.h"
#include "task.h"

typedef struct {
    task t;
    const char *out;
    ctn_optim *optim;
    ctn_trainer *trainer;
    char
        metric[128]; /* the observation that chooses the best weights, "" without validation data */
    bool larger;     /* is better */
    bool resumed;
    ctn_comm *comm; /* of the exchange; NULL: one rank */
    bool verified;  /* the threads run where they should */
} training;

/* ---- setup.c ---------------------------------------------------------------------------------------- */

ctn_status setup_optimizer(training *r);
ctn_status setup_trainer(training *r);

/* ---- distribute.c ------------------------------------------------------------------------------------ */

ctn_status distribute_optimizer(training *r);
ctn_status distribute_trainer(training *r, const ctn_trigger *log);
void distribute_end(training *r); /* collective, after the optimizer was freed */

/* ---- result.c --------------------------------------------------------------------------------------- */

/* A folder with something in it is refused unless --resume or --force. -1: go on; else the exit code. */
int result_check(const args *a);
/* config.yaml, machine.json, classes.txt: what is known before the first step. */
ctn_status result_begin(training *r);
/* plan.txt after the first step. */
ctn_status result_extend(training *r);
/* decisions.txt: which kernels were in use where there was a choice. */
ctn_status result_end(training *r);
/* The final values, for people or as JSON. */
void result_print(const training *r, const char *stopped);

#endif
