/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `catena train` share: train.c is the command, setup.c makes the optimizer,
 * the schedule and the extensions from the options, result.c writes the result folder, and
 * folder.c makes sure that only one job at a time does so.
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
    char metric[128]; /* the value that selects the best weights; "": no validation data */
    bool larger;      /* a larger metric is better */
    bool resumed;
    ctn_comm *comm;     /* of the gradient exchange; NULL: one rank */
    bool verified;      /* the binding of the threads was checked */
    bool marked;        /* the file UNFINISHED was written */
    ctn_memory *memory; /* to continue from after a loss of ranks; NULL: not possible */
    int lives;          /* how often ranks were lost before */
} training;

/* ---- train.c --------------------------------------------------------------------------------- */

bool stop_asked(void); /* by a signal */

/* ---- survive.c ------------------------------------------------------------------------------- */

/* After a run has failed: if that is because ranks are lost, and the others can continue without
 * them, divide the job and its settings among these. Then all is made again and continues from
 * memory. Collective over the ranks that are left. */
bool survive(args *a);
/* Divide the samples of a step (of all ranks) among the ranks: settles --batch, --total-batch. */
void divide_step(args *a, int64_t total);

/* ---- setup.c --------------------------------------------------------------------------------- */

ctn_status setup_optimizer(training *r);
ctn_status setup_metric(training *r); /* chooses what selects the best weights */
ctn_status setup_trainer(training *r);

/* ---- optimizer.c ----------------------------------------------------------------------------- */

/* Set --lr and --decay to the defaults of --optimizer. samples: of one step. */
void optimizer_defaults(args *a, double samples);
/* Make the optimizer that --optimizer names. */
ctn_status optimizer_new(ctn_optim **o, const args *a, ctn_vars params);

/* ---- overview.c ------------------------------------------------------------------------------ */

int64_t parameter_count(ctn_module *net); /* a tied parameter counts once */
void overview_show(const training *r);    /* one line on rank 0, unless --quiet */
ctn_status overview_report(training *r);  /* the page report.html */

/* ---- data_show.c ----------------------------------------------------------------------------- */

/* Lines about arrays and tables on rank 0, unless --quiet. Before the data is standardised. */
ctn_status data_show(task *t);

/* ---- adapters.c ------------------------------------------------------------------------------ */

/* --lora: save the adapters whenever they are the best ones. */
ctn_status adapters_best(training *r, const ctn_trigger *when);

/* ---- distribute.c ---------------------------------------------------------------------------- */

ctn_status distribute_optimizer(training *r);
ctn_status distribute_trainer(training *r, const ctn_trigger *log);
void distribute_end(training *r); /* collective; call it after freeing the optimizer */

/* ---- folder.c -------------------------------------------------------------------------------- */

#define JOB_FILE "job.txt" /* names the job that has the folder, or had it last */
/* Its first line: the job has the folder; it has ended, and the training is complete. */
#define JOB_RUNNING "running"
#define JOB_COMPLETE "complete"
/* The root causes of failures, and whether the other ranks continued. */
#define FAILURES "failures.txt"

/* Take the result folder for this job; makes it if it is missing. Waits if it is unclear whether
 * another job still has it. On rank 0. Returns -1 to continue, else the exit code; the error was
 * then printed. */
int folder_take(const launch *l, const char *out);
/* Take the folder from a rank of this job that is lost. If it is only cut off, it ends itself when
 * it finds another name in JOB_FILE. On the new rank 0. Returns -1 or the exit code. */
int folder_inherit(const launch *l, const char *out);
/* complete: the training is. No effect if the folder was not taken. */
void folder_release(bool complete);
/* Whether the folder contains nothing but JOB_FILE, or does not exist. */
bool folder_empty(const char *path);

/* ---- result.c -------------------------------------------------------------------------------- */

/* A file that marks a training which another run with --resume can continue. Job scripts check
 * it because launchers may lose the exit code. */
#define UNFINISHED "unfinished"

/* Take the folder for this job. Without --resume or --force, a folder that is not empty is
 * refused. On rank 0. Returns -1 to continue, else the exit code. */
int result_check(const args *a);
/* At the end of a run, remove the mark unless the run was stopped or another rank failed. */
void result_mark(const args *a, int code);
/* Write what is known before the first step: config.yaml, machine.json, classes.txt. */
ctn_status result_begin(training *r);
/* Add the extensions that write plan.txt after the first step, and the mark. */
ctn_status result_extend(training *r);
/* Write decisions.txt: which kernels were chosen where there was a choice. */
ctn_status result_end(training *r);
/* Whether nothing is left to train. --hours ends a run, but not a training that has another end. */
bool result_complete(const training *r);
/* Print the final values as text or JSON. */
void result_print(const training *r, const char *stopped);

#endif
