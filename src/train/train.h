/* SPDX-License-Identifier: Apache-2.0
 *
 * The internal view of the trainer. trainer.c runs the loop, report.c collects values, and
 * trigger.c decides when extensions run. Every extension is one file that registers itself with
 * ctn__extend and keeps its own struct as self. Everything except the stop request runs on the
 * thread that called ctn_trainer_run.
 *
 * Invariant: everything that determines the rest of a training is part of the saved state
 * (state.c): counters, values, triggers, and whatever an extension visits. The clock of triggers
 * that fire by time is not.
 */
#ifndef CTN_TRAIN_TRAIN_H
#define CTN_TRAIN_TRAIN_H

#include <stdatomic.h>

#include <catena/train.h>

#include "graph/graph.h"

#define CTN__REPORTS 32 /* maximum number of names that a loss function may report */

/* ---- one batch (report.c) -------------------------------------------------------------------- */

/* The values of a batch are retained, which makes them outputs of the plan: reading them runs
 * nothing. They are available once the scope has ended. */
typedef struct {
    char *name;
    ctn_retained *kept;
    bool given; /* reported in this batch */
} ctn__report_slot;

struct ctn_step {
    ctn_context *ctx;
    const ctn_batch *batch;
    ctn_status error; /* first failure of a ctn_report whose result the loss function ignored */
    int n;
    ctn__report_slot slot[CTN__REPORTS + 1]; /* one more for the loss */
};

void ctn__step_begin(ctn_step *s, const ctn_batch *b);
/* Calls the loss function in the open scope and reports its loss too. NULL on failure, with the
 * reason in *st. */
ctn_tensor *ctn__step_loss(ctn_step *s, ctn_loss_fn loss, void *self, ctn_status *st);
/* After the scope has ended: calls fn with each value of the batch. */
ctn_status ctn__step_read(const ctn_step *s, ctn_value_fn fn, void *user);
void ctn__step_free(ctn_step *s);

/* ---- values (report.c) ----------------------------------------------------------------------- */

typedef struct {
    char *name;
    double value;       /* last observation; for reported values, their mean at the last log */
    double sum, weight; /* of what was reported since the last log */
    double last;        /* last reported value */
    int64_t count;      /* how often `value` was set; triggers compare it to detect a new one */
    bool fresh;         /* observed since the last log */
    bool reported;      /* by the loss function, as "train/..." */
} ctn__observed;

/* NULL if there is none. The pointer is valid until the next new name is added. */
ctn__observed *ctn__value_find(const ctn_trainer *tr, const char *name);
/* The same, but adds the name if it is missing. Errors: EARG (not a printable name), ENOMEM. */
ctn_status ctn__value_get(ctn_trainer *tr, const char *name, ctn__observed **out);
/* Adds a value reported for a batch of n samples. */
ctn_status ctn__value_report(ctn_trainer *tr, const char *name, double value, int64_t n);

/* ---- several ranks (distributed/metrics.c) --------------------------------------------------- */

/* A mean and the number of samples that it was taken over. */
typedef struct {
    const char *name;
    double value, weight;
} ctn__weighted;

/* fn calls `to` with the means over all ranks. All ranks get the same means, even if they pass
 * different names. */
typedef ctn_status (*ctn__weighted_fn)(void *user, const ctn__weighted *v);
typedef struct {
    ctn_status (*fn)(void *self, int n, const ctn__weighted *v, ctn__weighted_fn to, void *user);
    void *self;
} ctn__merge;

/* Means over all ranks of what was reported since the last log, computed by tr->merge (report.c).
 * Collective. */
ctn_status ctn__values_merge(ctn_trainer *tr, ctn__weighted_fn to, void *user);
/* ctn_evaluate over several ranks; over this rank only if m is NULL or has no function. */
ctn_status ctn__evaluate(ctn_context *ctx, ctn_loader *loader, ctn_loss_fn loss, void *self,
                         ctn_value_fn fn, void *user, const ctn__merge *m);

/* ---- rows of the log (log.c) ----------------------------------------------------------------- */

typedef struct {
    ctn_progress progress;
    int n;     /* number of values: one for each of the first n names */
    double *v; /* NaN: no value in this row */
} ctn__row;

/* ---- triggers (trigger.c) -------------------------------------------------------------------- */

typedef struct {
    ctn_trigger t; /* key is owned */
    double best;
    int64_t seen;  /* count of the value when it was last checked */
    bool has_best; /* best, seen and has_best are saved */
    double fired;  /* when it last fired, in seconds of this run */
} ctn__trigger;

/* usual is the default if `when` is NULL. Errors: EARG, ENOMEM. */
ctn_status ctn__trigger_init(ctn__trigger *g, const ctn_trigger *when, ctn_trigger usual);
void ctn__trigger_free(ctn__trigger *g);
/* Called once after each step. */
bool ctn__trigger_fires(ctn__trigger *g, const ctn_trainer *tr);

/* ---- extensions (trainer.c) ------------------------------------------------------------------ */

typedef struct {
    ctn_extension e; /* name is owned */
    ctn__trigger trigger;
} ctn__extended;

/* ctn_trainer_extend for the built-in extensions; `usual` is the default if `when` is NULL. Takes
 * ownership of self even on failure, where it releases self. */
ctn_status ctn__extend(ctn_trainer *tr, const ctn_extension *e, const ctn_trigger *when,
                       ctn_trigger usual);
/* ESTATE if the trainer has no result folder. who starts the message, such as "extend_log". */
ctn_status ctn__need_out(const ctn_trainer *tr, const char *who);
/* Ends the training from inside an extension, as if it had reached its end. why must stay valid
 * forever. */
void ctn__trainer_end(ctn_trainer *tr, const char *why);
/* Optimizer steps in the whole training; 0: not known. */
int64_t ctn__trainer_length(const ctn_trainer *tr);
/* Completed epochs plus the fraction of the current one. */
double ctn__trainer_epochs(const ctn_trainer *tr);
/* Seconds since the start of this run, or the length of the last one if none is running. */
double ctn__trainer_clock(const ctn_trainer *tr);
/* ctn_progress.total at the given place in the training. */
double ctn__trainer_total(const ctn_trainer *tr, int64_t iteration, double epochs, double seconds);

/* Detects that a value has stopped improving (early_stop.c). */
typedef struct {
    ctn_patience_opt o; /* key is owned, defaults are filled in */
    double best;
    int64_t bad;  /* observations since the best one */
    int64_t seen; /* count of the value when it was last checked */
    bool has_best;
} ctn__patience;
ctn_status ctn__patience_init(ctn__patience *p, const char *who, const ctn_patience_opt *o);
void ctn__patience_free(ctn__patience *p);
/* Checks a new observation, if there is one. True if it used up the patience. */
bool ctn__patience_ends(ctn__patience *p, const ctn_trainer *tr);
ctn_status ctn__patience_visit(ctn__patience *p, ctn_state_fn fn, void *user);

/* ---- steps of several ranks (group.c) -------------------------------------------------------- */

ctn_comm *ctn__trainer_comm(const ctn_trainer *tr); /* NULL: one rank */
bool ctn__writes(const ctn_trainer *tr);            /* true on rank 0, which writes and prints */
/* Called before the first step of a run and before a state is loaded. Checks that all ranks have
 * the same setup; with `state`, also that they are at the same point of the training with the
 * same weights. Collective. Errors: EARG on all ranks, naming the rank and the difference. */
ctn_status ctn__group_agree(ctn_trainer *tr, bool state);
/* Does each rank have its own dataset rather than a share of a common one? */
bool ctn__group_apart(const ctn_trainer *tr);
/* Called before a step, so that its random numbers do not depend on what this rank ran before. */
void ctn__group_step(ctn_trainer *tr);
/* Called before and after a step: what is sent with the gradients, and what was received. */
void ctn__group_give(ctn_trainer *tr, int64_t samples);
void ctn__group_take(ctn_trainer *tr);
double ctn__group_clock(const ctn_trainer *tr); /* rank 0's, as of the last step */
/* Batches per epoch on the rank that has the most. */
int64_t ctn__group_batches(const ctn_trainer *tr);
/* Batches of this epoch that have been used. */
int64_t ctn__group_used(const ctn_trainer *tr);
/* The next batch of this rank. It is empty while only other ranks have samples left. CTN_END: the
 * epoch has ended on all ranks. */
ctn_status ctn__group_next(ctn_trainer *tr);
/* Called after rank 0's state was loaded: moves this rank to its own place in the samples. shift
 * is how far this rank's seeds of the context and the sampler are from rank 0's. */
ctn_status ctn__group_resume(ctn_trainer *tr, const uint64_t shift[2]);
/* Sums what was reported since the last log on rank 0, whose state is saved. Collective. */
ctn_status ctn__group_values(ctn_trainer *tr);
/* Copies rank 0's states of the net (running statistics) to all ranks. Collective. */
ctn_status ctn__group_states(ctn_trainer *tr);

/* ---- numbered folders (numbered.c) ----------------------------------------------------------- */

/* `dir` holds folders 000000001, 000000002, ..., each with a list of its files, their sizes and
 * their hashes. A folder is written atomically, and the last two are kept. There may be only one
 * writer at a time. */
/* Makes an empty folder to write to. Result: its path. Errors: EIO, ENOMEM. */
ctn_status ctn__numbered_begin(ctn__text *path, const char *dir);
/* Called when all files are written: lists and syncs them, gives the folder the next number, and
 * removes old folders. */
ctn_status ctn__numbered_commit(const char *path, const char *dir);
void ctn__numbered_drop(const char *path); /* removes it after a failure; NULL is fine */
/* The newest intact folder. Damaged ones are skipped with a warning and renamed, so that they do
 * not count towards the two that are kept. Errors: ENOTFOUND, EFORMAT (all are damaged),
 * ENOMEM. */
ctn_status ctn__numbered_latest(ctn__text *path, const char *dir);
/* Reads a file of a folder as 0-terminated text; the caller frees it. Errors: EIO, ENOMEM. */
ctn_status ctn__numbered_read(const char *path, const char *file, char **text, size_t *n);
ctn_status ctn__numbered_write(const char *path, const char *file, const ctn__text *text);

/* ---- states (state.c) ------------------------------------------------------------------------ */

/* Who saved a state. */
typedef struct {
    int64_t ranks;
    int64_t parts;   /* shares of the dataset, one per rank; 1: each rank had its own dataset */
    int64_t batches; /* used of the epoch */
} ctn__saved_by;

typedef struct ctn__average ctn__average;
/* Swaps the weights with their moving average; a second call swaps them back. NULL: no effect. */
void ctn__average_swap(ctn__average *a);

struct ctn_trainer {
    ctn_optim *optim;
    ctn_loader *loader;
    ctn_loss_fn loss;
    void *self;
    ctn_trainer_opt o; /* out is owned */
    ctn_context *ctx;
    ctn_step step;
    CTN__VEC(ctn__extended *) ext; /* by priority, then in the order of registration */
    CTN__VEC(ctn__observed) values;
    CTN__VEC(ctn__row) rows;
    ctn__average *average; /* of the extension; NULL: none */
    ctn__merge merge;      /* averages values over ranks */

    int64_t iteration, epoch, samples;
    int64_t saved;        /* iteration of the last state that the extension saved; -1: none */
    double was;           /* ctn__trainer_epochs before the step just done */
    bool epoch_ended;     /* by the step just done */
    bool last;            /* the step just done was the last: CTN_AT_END triggers fire */
    bool complete;        /* the run has reached its end and was not stopped early */
    bool running;         /* inside ctn_trainer_run */
    bool resumed;         /* a state was loaded */
    ctn_status status;    /* of the run that is ending; read by `finish` of the extensions */
    const char *ended;    /* why an extension ended the run; NULL: none did */
    ctn_batch batch;      /* the next batch, if held */
    bool held;            /* the next batch has been taken from the loader ... */
    ctn_sampler_state at; /* ... which was at this position before */
    ctn_status ahead;     /* the loader's error, returned by the next step */

    /* on several ranks (group.c) */
    bool agreed; /* all ranks stop because one of them was asked to */
    /* where each rank has its own dataset: */
    int64_t batches;  /* per epoch on the rank that has the most; 0: not known yet */
    int64_t in_epoch; /* taken in this epoch, including empty ones */
    bool dry;         /* this rank has used up its samples of the epoch */

    ctn__saved_by loaded;       /* who saved the state that was loaded */
    ctn_sampler_state restored; /* position of its loader */

    double seconds;                     /* of earlier runs */
    double compute_s, input_s, other_s; /* of all runs */
    uint64_t began;                     /* start of this run, in ns */
    double ran;                         /* seconds of the last run, once it is over */
    _Atomic(const char *) stop;
};

#endif
