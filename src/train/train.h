/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer as the files of train/ see it. trainer.c runs the loop, report.c collects values, trigger.c
 * says when; every extension is one file that adds itself by ctn__extend and keeps its own struct as
 * self. Everything runs on the thread of ctn_trainer_run but the stop request.
 *
 * Invariant: what decides the rest of a training is in the state of state.c: counters, values, triggers
 * and whatever an extension visits. Times are not.
 */
#ifndef CTN_TRAIN_TRAIN_H
#define CTN_TRAIN_TRAIN_H

#include <stdatomic.h>

#include <catena/train.h>

#include "graph/graph.h"

#define CTN__REPORTS 32 /* names that a loss function may report */

/* ---- one batch (report.c) -------------------------------------------------------------------- */

/* Values of a batch are retained, so that they are outputs of the plan and reading them runs nothing;
 * they are there once the scope has ended. */
typedef struct {
    char *name;
    ctn_retained *kept;
    bool given; /* by this batch */
} ctn__report_slot;

struct ctn_step {
    ctn_context *ctx;
    const ctn_batch *batch;
    ctn_status error; /* the first of a ctn_report that the loss function did not look at */
    int n;
    ctn__report_slot slot[CTN__REPORTS + 1]; /* and the loss */
};

void ctn__step_begin(ctn_step *s, const ctn_batch *b);
/* The loss function in the open scope; the loss is reported too. NULL: *st says why. */
ctn_tensor *ctn__step_loss(ctn_step *s, ctn_loss_fn loss, void *self, ctn_status *st);
/* After the scope: calls fn with each value of the batch. */
ctn_status ctn__step_read(const ctn_step *s, ctn_value_fn fn, void *user);
void ctn__step_free(ctn_step *s);

/* ---- values (report.c) ----------------------------------------------------------------------- */

typedef struct {
    char *name;
    double value;       /* last one observed; of reported values their mean at the last log */
    double sum, weight; /* reported since the last log */
    double last;        /* reported last */
    int64_t count;      /* how many became `value`: triggers compare it */
    bool fresh;         /* observed since the last log */
    bool reported;      /* "train/..." */
} ctn__observed;

/* NULL when there is none. The pointer lasts until the next name appears. */
ctn__observed *ctn__value_find(const ctn_trainer *tr, const char *name);
/* The same, made when missing. Errors: EARG (a name that is not printable), ENOMEM. */
ctn_status ctn__value_get(ctn_trainer *tr, const char *name, ctn__observed **out);
/* One reported value of a batch of n samples. */
ctn_status ctn__value_report(ctn_trainer *tr, const char *name, double value, int64_t n);

/* ---- several ranks (dist/metrics.c) ------------------------------------------------------------ */

/* A mean and the samples behind it. */
typedef struct {
    const char *name;
    double value, weight;
} ctn__weighted;

/* Calls `to` with the means over all ranks, the same on each; names may differ between them. */
typedef ctn_status (*ctn__weighted_fn)(void *user, const ctn__weighted *v);
typedef struct {
    ctn_status (*fn)(void *self, int n, const ctn__weighted *v, ctn__weighted_fn to, void *user);
    void *self;
} ctn__merge;

/* What was reported since the last log as means over all ranks, by tr->merge (report.c). Collective. */
ctn_status ctn__values_merge(ctn_trainer *tr, ctn__weighted_fn to, void *user);
/* ctn_evaluate over several ranks; m NULL, or without a function: over this one. */
ctn_status ctn__evaluate(ctn_context *ctx, ctn_loader *loader, ctn_loss_fn loss, void *self,
                         ctn_value_fn fn, void *user, const ctn__merge *m);

/* ---- rows of the log (log.c) ----------------------------------------------------------------- */

typedef struct {
    ctn_progress progress;
    int n;     /* values: those of the first n names */
    double *v; /* NaN: none */
} ctn__row;

/* ---- triggers (trigger.c) -------------------------------------------------------------------- */

typedef struct {
    ctn_trigger t; /* key is owned */
    double best;
    int64_t seen;  /* count of the value when it was looked at last */
    bool has_best; /* best, seen and has_best are saved */
    double fired;  /* second of this run */
} ctn__trigger;

/* usual: when `when` is NULL. Errors: EARG, ENOMEM. */
ctn_status ctn__trigger_init(ctn__trigger *g, const ctn_trigger *when, ctn_trigger usual);
void ctn__trigger_free(ctn__trigger *g);
/* Asked once after each step. */
bool ctn__trigger_fires(ctn__trigger *g, const ctn_trainer *tr);

/* ---- extensions (trainer.c) ------------------------------------------------------------------ */

typedef struct {
    ctn_extension e; /* name is owned */
    ctn__trigger trigger;
} ctn__extended;

/* ctn_trainer_extend for the ready-made ones: when NULL means usual. self goes over also when this
 * fails: it is released then. */
ctn_status ctn__extend(ctn_trainer *tr, const ctn_extension *e, const ctn_trigger *when,
                       ctn_trigger usual);
/* ESTATE when the trainer has no folder; who: "extend_log". */
ctn_status ctn__need_out(const ctn_trainer *tr, const char *who);
/* End the training from inside, as when an end is reached; why is borrowed forever. */
void ctn__trainer_end(ctn_trainer *tr, const char *why);
/* Steps of the optimizer in the whole training and in an epoch; 0: not known. */
int64_t ctn__trainer_length(const ctn_trainer *tr);
/* Epochs done and part of the current one as one number. */
double ctn__trainer_epochs(const ctn_trainer *tr);
/* Seconds of this run, or of the last one. */
double ctn__trainer_clock(const ctn_trainer *tr);
/* Fills in `total` for a row or now. */
double ctn__trainer_total(const ctn_trainer *tr, int64_t iteration, double epochs, double seconds);

/* Has a value stopped improving (early_stop.c)? */
typedef struct {
    ctn_patience_opt o; /* key is owned, defaults are filled in */
    double best;
    int64_t bad;  /* observations since it */
    int64_t seen; /* count of the value when it was looked at last */
    bool has_best;
} ctn__patience;
ctn_status ctn__patience_init(ctn__patience *p, const char *who, const ctn_patience_opt *o);
void ctn__patience_free(ctn__patience *p);
/* Looks at a new observation, if there is one; true when it was one too many without improvement. */
bool ctn__patience_ends(ctn__patience *p, const ctn_trainer *tr);
ctn_status ctn__patience_visit(ctn__patience *p, ctn_state_fn fn, void *user);

/* ---- steps of several ranks (group.c) ---------------------------------------------------------- */

ctn_comm *ctn__trainer_comm(const ctn_trainer *tr); /* NULL: one rank */
bool ctn__writes(const ctn_trainer *tr);            /* files and terminal are rank 0's */
/* Before the first step of a run, and before a state is loaded: every rank was made of the same; with
 * `state` it is also at the same place with the same weights. Collective. Errors: EARG, on all ranks,
 * which names the rank that differs and in what. */
ctn_status ctn__group_agree(ctn_trainer *tr, bool state);
/* Does each rank have samples of its own, and not a part of those of all? */
bool ctn__group_apart(const ctn_trainer *tr);
/* Before a step: its random numbers do not depend on what this rank did otherwise. */
void ctn__group_step(ctn_trainer *tr);
/* Around a step: what goes with the gradients, and what came. */
void ctn__group_give(ctn_trainer *tr, int64_t samples);
void ctn__group_take(ctn_trainer *tr);
double ctn__group_clock(const ctn_trainer *tr); /* rank 0's, as of the last step */
/* Batches of an epoch, on the rank that has most. */
int64_t ctn__group_batches(const ctn_trainer *tr);
/* Batches of this epoch that are used. */
int64_t ctn__group_used(const ctn_trainer *tr);
/* The next batch of this rank, an empty one while only others have some. CTN_END: the epoch ended, for all. */
ctn_status ctn__group_next(ctn_trainer *tr);
/* Everything goes to this rank's place after a state of rank 0 was loaded. shift: what is added to the seeds of context and
 * sampler, by which those of this rank differ from rank 0's. */
ctn_status ctn__group_resume(ctn_trainer *tr, const uint64_t shift[2]);
/* What was reported since the last log goes to rank 0, whose state is saved. Collective. */
ctn_status ctn__group_values(ctn_trainer *tr);
/* States of the net (running statistics) become rank 0's. Collective. */
ctn_status ctn__group_states(ctn_trainer *tr);

/* ---- numbered folders (numbered.c) --------------------------------------------------------------- */

/* A folder `dir` of folders 000000001, 000000002, ..., each with a list of its files, their sizes and
 * hashes. One appears whole or not at all; the last two are kept. One writer at a time. */
/* An empty one to write to. Result: its path. Errors: EIO, ENOMEM. */
ctn_status ctn__numbered_begin(ctn__text *path, const char *dir);
/* Its files are complete: list them, sync, and give it the next number; older ones go. */
ctn_status ctn__numbered_commit(const char *path, const char *dir);
void ctn__numbered_drop(const char *path); /* after a failure; NULL is fine */
/* The newest whole one. Damaged ones are passed over with a warning and renamed, so that they do not count
 * as kept. Errors: ENOTFOUND, EFORMAT (none is whole), ENOMEM. */
ctn_status ctn__numbered_latest(ctn__text *path, const char *dir);
/* A file of a folder as text that ends in 0, to be freed. Errors: EIO, ENOMEM. */
ctn_status ctn__numbered_read(const char *path, const char *file, char **text, size_t *n);
ctn_status ctn__numbered_write(const char *path, const char *file, const ctn__text *text);

/* ---- states (state.c) ----------------------------------------------------------------------------- */

/* Of a saved state: who saved it. */
typedef struct {
    int64_t ranks;
    int64_t parts;   /* of the samples, one for each rank; 1: each rank had samples of its own */
    int64_t batches; /* of the epoch that were used */
} ctn__saved_by;

typedef struct ctn__average ctn__average;
/* Exchange the weights with their moving average; a second call takes it back. NULL: nothing. */
void ctn__average_swap(ctn__average *a);

struct ctn_trainer {
    ctn_optim *optim;
    ctn_loader *loader;
    ctn_loss_fn loss;
    void *self;
    ctn_trainer_opt o; /* out is owned */
    ctn_context *ctx;
    ctn_step step;
    CTN__VEC(ctn__extended *) ext; /* by priority, then in the order they were added */
    CTN__VEC(ctn__observed) values;
    CTN__VEC(ctn__row) rows;
    ctn__average *average; /* of the extension, NULL: none */
    ctn__merge merge;      /* of what evaluators find */

    int64_t iteration, epoch, samples;
    int64_t saved;        /* iteration of the last state that the extension saved, -1: none */
    double was;           /* ctn__trainer_epochs before the step just done */
    bool epoch_ended;     /* by the step just done */
    bool last;            /* the step just done was the last: triggers at the end fire */
    bool complete;        /* the run has ended and reached its end: it was not stopped before */
    bool running;         /* inside ctn_trainer_run */
    bool resumed;         /* a state was loaded */
    ctn_status status;    /* of the run that ends: what finish finds */
    const char *ended;    /* an extension ended it, NULL: none */
    ctn_batch batch;      /* the next one, if held */
    bool held;            /* already taken from the loader, ... */
    ctn_sampler_state at; /* ... which was here before */
    ctn_status ahead;     /* the loader's error, told by the next step */

    /* on several ranks (group.c) */
    bool agreed; /* all ranks stop: one of them was asked to */
    /* with samples of their own: */
    int64_t batches;  /* of an epoch, on the rank that has most; 0: not known yet */
    int64_t in_epoch; /* of this epoch taken, empty ones too */
    bool dry;         /* this rank's samples of the epoch are used up */

    ctn__saved_by loaded;       /* the state that was loaded */
    ctn_sampler_state restored; /* where its loader was */

    double seconds;                     /* of earlier runs */
    double compute_s, input_s, other_s; /* of all */
    uint64_t began;                     /* this run, ns */
    double ran;                         /* its seconds once it is over */
    _Atomic(const char *) stop;
};

#endif
