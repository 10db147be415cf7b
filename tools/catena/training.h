/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `catena train` share: train.c is the command, setup.c makes optimizer, schedule and
 * extensions from the options, result.c writes the result folder, folder.c sees to it that one job at a
 * time does.
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
    bool marked;    /* UNFINISHED is there */
} training;

/* ---- train.c ---------------------------------------------------------------------------------------- */

bool stop_asked(void); /* by a signal */

/* ---- setup.c ---------------------------------------------------------------------------------------- */

ctn_status setup_optimizer(training *r);
ctn_status setup_trainer(training *r);

/* ---- distribute.c ------------------------------------------------------------------------------------ */

ctn_status distribute_optimizer(training *r);
ctn_status distribute_trainer(training *r, const ctn_trigger *log);
void distribute_end(training *r); /* collective, after the optimizer was freed */

/* ---- folder.c ---------------------------------------------------------------------------------------- */

#define JOB_FILE "job.txt" /* which job has the folder, or had it last */

/* The result folder becomes this job's, made when it is missing; waits where it is not clear whether another job still
 * has it. On rank 0. -1: go on; else the exit code, all told. */
int folder_take(const launch *l, const char *out);
void folder_release(void); /* without effect where it was not taken */
/* There is nothing in it but JOB_FILE, or it does not exist. */
bool folder_empty(const char *path);

/* ---- result.c --------------------------------------------------------------------------------------- */

/* The mark of a training that another run with --resume can bring further. Job scripts go by it, because launchers
 * may lose the exit code. */
#define UNFINISHED "unfinished"

/* Take the folder for this job. One with something in it is refused unless --resume or --force. -1: go on; else the
 * exit code. On rank 0. */
int result_check(const args *a);
/* At the end of a run: removes the mark, unless the run was stopped or another rank failed. */
void result_mark(const args *a, int code);
/* config.yaml, machine.json, classes.txt: what is known before the first step. */
ctn_status result_begin(training *r);
/* plan.txt after the first step. */
ctn_status result_extend(training *r);
/* decisions.txt: which kernels were in use where there was a choice. */
ctn_status result_end(training *r);
/* The final values, for people or as JSON. */
void result_print(const training *r, const char *stopped);

#endif
