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
#include "io/checkpoint/checkpoint.h"

struct ctn__other;

#define CTN__REPORTS 32 /* maximum number of names that a loss function may report */

/* ---- one batch (report.c) -------------------------------------------------------------------- */

/* The values of a batch are retained, which makes them outputs of the plan: reading them runs
 * nothing. They are available once the scope has ended. */
typedef struct ctn__metric ctn__metric;
typedef struct {
    char *name;
    ctn_retained *kept;        /* of a metric: its parts, f64 */
    ctn_retained *below;       /* of a ratio: its divisor */
    const ctn__metric *metric; /* NULL: a mean or a ratio */
    bool given;                /* reported in this batch */
    bool ratio;
} ctn__report_slot;

struct ctn_step {
    ctn_context *ctx;
    const ctn_batch *batch;
    ctn_status error; /* first failure of a ctn_report whose result the loss function ignored */
    double weight;    /* targets of the batch; negative: not reported, so its samples count */
    int targets;      /* field that they were counted in; -1: none */
    int n;
    ctn__report_slot slot[CTN__REPORTS + 1]; /* one more for the loss */
};

void ctn__step_begin(ctn_step *s, const ctn_batch *b);
/* What the means of the batch count: its targets, or else its samples. */
double ctn__step_weight(const ctn_step *s);
/* Calls the loss function in the open scope and reports its loss too, under this name. NULL on
 * failure, with the reason in *st. */
ctn_tensor *ctn__step_loss(ctn_step *s, const char *name, ctn_loss_fn loss, void *self,
                           ctn_status *st);
/* After the scope has ended: calls fn with each value of the batch. weight: that of the value in a
 * mean; a value is a sum divided by its weight. */
typedef ctn_status (*ctn__reported_fn)(void *user, const char *name, double value, double weight);
ctn_status ctn__step_read(const ctn_step *s, ctn__reported_fn fn, void *user);
void ctn__step_free(ctn_step *s);

/* ---- values (report.c) ----------------------------------------------------------------------- */

typedef struct {
    char *name;
    double value;       /* last observation; for reported values, their mean at the last log */
    double sum, weight; /* of what was reported since the last log */
    double last;        /* last reported value of this rank; 0: it has reported none */
    double before[3];   /* sum, weight and last before this step (nonfinite.c) */
    int64_t count;      /* how often `value` was set; triggers compare it to detect a new one */
    bool fresh;         /* observed since the last log */
    bool reported;      /* by the loss function, as "train/..." */
} ctn__observed;

/* NULL if there is none. The pointer is valid until the next new name is added. */
ctn__observed *ctn__value_find(const ctn_trainer *tr, const char *name);
/* The same, but adds the name if it is missing. Errors: EARG (not a printable name), ENOMEM. */
ctn_status ctn__value_get(ctn_trainer *tr, const char *name, ctn__observed **out);
/* Adds a value with its weight, for a mean the number of samples. */
ctn_status ctn__value_report(ctn_trainer *tr, const char *name, double value, double weight);
void ctn__values_forget(ctn_trainer *tr);

/* ---- metrics (metrics.c) --------------------------------------------------------------------- */

/* A metric of all samples together. Each batch has parts, numbers that are recorded as one f64
 * tensor. They are added up over batches and ranks or, if `all`, written one after another in any
 * order, and the value follows from them once at the end. */
struct ctn__metric {
    const char *name;
    int what, over; /* for functions that several metrics share */
    bool all;
    /* NULL after an error. */
    ctn_tensor *(*parts)(const ctn__metric *m, ctn_tensor *y, ctn_tensor *t);
    /* May change the parts. */
    ctn_status (*finish)(const ctn__metric *m, int64_t n, double *part, double *value);
};
/* NULL if there is none, with an error if it was asked for by name. */
const ctn__metric *ctn__metric_find(const char *name);
const ctn__metric *ctn__metric_number(int i);
int ctn__metric_index(const ctn__metric *m);

/* What a metric knows about the batches so far. */
typedef struct {
    const char *name;
    const ctn__metric *metric;
    CTN__VEC(double) part;
} ctn__measured;

/* ---- several ranks (distributed/metrics.c) --------------------------------------------------- */

/* A sum over samples, and their number. */
typedef struct {
    const char *name;
    double sum, weight;
} ctn__weighted;

/* fn calls `to` with the sums over all ranks. All ranks get the same sums, even if they pass
 * different names. */
typedef ctn_status (*ctn__weighted_fn)(void *user, const ctn__weighted *v);
typedef ctn_status (*ctn__measured_fn)(void *user, ctn__measured *v);
typedef struct {
    ctn_status (*fn)(void *self, int n, const ctn__weighted *v, ctn__weighted_fn to, void *user);
    void *self;
    /* The same for metrics: `to` gets the parts of all ranks. */
    ctn_status (*measured)(void *self, int n, ctn__measured *v, ctn__measured_fn to, void *user);
} ctn__merge;

/* Sums over all ranks of what was reported since the last log, computed by tr->merge (report.c).
 * Collective. */
ctn_status ctn__values_merge(ctn_trainer *tr, ctn__weighted_fn to, void *user);
/* Replaces what was reported since the last call by its mean, with tr->merge over all ranks, also
 * on a rank that had no samples. This is the only way for reported values to become visible to
 * triggers and schedules. Collective. */
ctn_status ctn__values_publish(ctn_trainer *tr);
/* ESTATE if a decision by the value `key` could differ between ranks. */
ctn_status ctn__values_common(const ctn_trainer *tr, const char *who, const char *key);
/* ctn_evaluate over several ranks; over this rank only if m is NULL or has no function. */
ctn_status ctn__evaluate(ctn_context *ctx, ctn_loader *loader, ctn_loss_fn loss, void *self,
                         ctn_value_fn fn, void *user, const ctn__merge *m);

/* ---- rows of the log (log.c) ----------------------------------------------------------------- */

/* Only what the row has is kept, because a file may have a new name in every row. */
typedef struct {
    ctn_progress progress;
    int n;
    struct ctn__row_value {
        int name; /* in tr->values, ascending */
        double v;
    } *at;
} ctn__row;

/* ---- triggers (trigger.c) -------------------------------------------------------------------- */

typedef struct {
    ctn_trigger t; /* key is owned */
    double best;
    int64_t seen;  /* count of the value when it was last checked */
    bool has_best; /* best, seen and has_best are saved */
    double fired;  /* when it last fired, in seconds of this run */
    double cost;   /* seconds that the last call took on this rank */
    bool due;      /* CTN_SHARE_OF_TIME: rank 0 wants it to fire after this step */
} ctn__trigger;

/* usual is the default if `when` is NULL. Errors: EARG, ENOMEM. */
ctn_status ctn__trigger_init(ctn__trigger *g, const ctn_trigger *when, ctn_trigger usual);
void ctn__trigger_free(ctn__trigger *g);
/* Called once after each step. */
bool ctn__trigger_fires(ctn__trigger *g, const ctn_trainer *tr);
/* The triggers by share of time: which of them should fire, by this rank's clock, as a sum of
 * 2^(number of the extension); and what was decided for all ranks. */
double ctn__triggers_due(const ctn_trainer *tr);
void ctn__triggers_set(ctn_trainer *tr, double due);

/* ---- extensions (trainer.c) ------------------------------------------------------------------ */

typedef struct {
    ctn_extension e; /* name is owned */
    ctn__trigger trigger;
    bool built_in; /* may be collective: all ranks must have it */
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
/* The place in the samples of the next batch to be used. */
ctn_sampler_state ctn__trainer_position(const ctn_trainer *tr);
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

/* ---- what is trained (params.c) -------------------------------------------------------------- */

int ctn__trainer_optims(const ctn_trainer *tr);
/* 0: the trainer's own; others follow in the order in which they were added. */
ctn_optim *ctn__trainer_optim(const ctn_trainer *tr, int i);
bool ctn__trainer_sharded(const ctn_trainer *tr); /* any of the optimizers */
/* Waits until no value of the net is in flight. Call it before values are read or written outside
 * of plans. It may wait for the other ranks to make progress, but not for a call. */
ctn_status ctn__trainer_settle(const ctn_trainer *tr);
/* The same, and restores f32 values that are sent in 16 bits. Collective. */
ctn_status ctn__trainer_values(const ctn_trainer *tr);
/* A parameter that all ranks have, trained or frozen. */
typedef struct {
    int optim; /* number of its optimizer; -1: none has it */
    const char *name;
    const ctn_var *var;
} ctn__common_param;
typedef CTN__VEC(ctn__common_param) ctn__common_params;
/* All of them, by optimizer. The caller frees the list, also on failure. Errors: ENOMEM. */
ctn_status ctn__trainer_params(const ctn_trainer *tr, ctn__common_params *out);
uint64_t ctn__common_hash(const ctn__common_param *p); /* of its values */

/* ---- steps of several ranks (group.c) -------------------------------------------------------- */

ctn_comm *ctn__trainer_comm(const ctn_trainer *tr); /* NULL: one rank */
bool ctn__writes(const ctn_trainer *tr);            /* true on rank 0, which writes and prints */
/* Called before the first step of a run and before a state is loaded. Checks that all ranks have
 * the same setup; with `state`, also that they are at the same point of the training with the
 * same weights. Collective. Errors: EARG on all ranks, naming the rank and the difference. */
ctn_status ctn__group_agree(ctn_trainer *tr, bool state);
/* Does each rank have its own dataset rather than a share of a common one? */
bool ctn__group_apart(const ctn_trainer *tr);
/* Called when a run begins: its steps continue the numbers that rank 0's context has used. */
ctn_status ctn__group_begin(ctn_trainer *tr);
/* Called before the batch of this round runs for this optimizer: its random numbers follow from the
 * iteration and from the place of its samples in the step (rule 14). */
void ctn__group_place(ctn_trainer *tr, int64_t round, int optim);
/* The same for a batch whose share of the samples is known. */
void ctn__group_place_at(ctn_trainer *tr, const ctn_share *share, int optim);
/* Called after a step and after an extension, so that neither a saved state nor what follows
 * depends on what this rank has run in it. */
void ctn__group_leave(ctn_trainer *tr);
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

/* ---- ranks without samples (empty.c) --------------------------------------------------------- */

/* Do the passes of other ranks need one of a rank that has no samples? */
bool ctn__empty_joins(const ctn_trainer *tr);
/* That pass, for the loss of one optimizer. It contributes nothing. */
ctn_status ctn__empty_pass(ctn_trainer *tr, const struct ctn__other *o);
/* The backward pass of a batch without targets, in its scope, for ranks that may wait for it. */
ctn_status ctn__empty_backward(ctn_optim *o, ctn_tensor *loss);

/* ---- the batches of a step, for all optimizers (rounds.c) ------------------------------------ */

typedef struct ctn__rounds ctn__rounds;
/* Are there several optimizers, and several batches in a step? */
bool ctn__rounds_needed(const ctn_trainer *tr);
/* A step begins. */
void ctn__rounds_begin(ctn_trainer *tr);
/* Copy the current batch, for the optimizers after the trainer's own. */
ctn_status ctn__rounds_keep(ctn_trainer *tr);
size_t ctn__rounds_count(const ctn_trainer *tr);
/* Make batch i of this step the current one again, for an optimizer. */
void ctn__rounds_take(ctn_trainer *tr, size_t i, int optim);
void ctn__rounds_free(ctn_trainer *tr);

/* ---- the same bits on any number of ranks (exact.c) ------------------------------------------ */

/* Does the loader deliver blocks, whose gradients are summed exactly? */
bool ctn__exact(const ctn_trainer *tr);
/* Fails if the optimizer or the options do not suit that. */
ctn_status ctn__exact_check(const ctn_trainer *tr);
/* Batches of a step on each rank, some of which may be empty. */
int64_t ctn__exact_rounds(const ctn_trainer *tr);
/* Called before and after a batch, and before the step: what a block computes depends on the state
 * before the step and on its number, and what it leaves behind is summed exactly. */
ctn_status ctn__exact_before(ctn_trainer *tr, int64_t round);
ctn_status ctn__exact_after(ctn_trainer *tr);
ctn_status ctn__exact_step(ctn_trainer *tr);
/* A reported value, rounded such that sums of it are exact. */
double ctn__exact_value(double value);
void ctn__exact_free(ctn_trainer *tr);

/* ---- states (state.c) ------------------------------------------------------------------------ */

/* Who saved a state. */
typedef struct {
    int64_t ranks;
    int64_t parts;   /* shares of the dataset, one per rank; 1: each rank had its own dataset */
    int64_t batches; /* used of the epoch */
} ctn__saved_by;

enum { CTN__STATES_KEPT = 2 };               /* in a folder */
#define CTN__STATE_TRAINER "trainer.txt"     /* the file of a state with its counters */
#define CTN__STATE_DECISIONS "decisions.txt" /* and with the kernels in use */
/* Fails unless path is a folder (states.c). Errors: EARG, ENOTFOUND. */
ctn_status ctn__state_need(const char *who, const char *path);
/* Does the trainer have all that a state needs, and is it between steps? */
ctn_status ctn__state_possible(const ctn_trainer *tr, const char *who);
/* Copies the state of the trainer and starts to write it; all that the saver says applies.
 * Collective. */
ctn_status ctn__state_begin(ctn_trainer *tr, ctn__saver *s);
/* Can a state be written to the saver's folder? Collective. */
ctn_status ctn__state_check(ctn_trainer *tr, ctn__saver *s);
/* Waits until the state that was begun is complete. Collective. */
ctn_status ctn__state_finish(ctn__saver *s);
/* The texts of a state. The caller frees them, also on failure. Local. */
ctn_status ctn__state_texts(const ctn_trainer *tr, ctn__ckpt_text text[CTN__CKPT_TEXTS]);
/* Copies all arrays that this rank has. Collective. */
ctn_status ctn__state_copy(ctn_trainer *tr, ctn__snapshot *s);
/* Where a state comes from. Both functions are collective; all ranks get rank 0's texts. */
typedef struct {
    ctn_status (*text)(void *self, const char *file, char **text);
    ctn_status (*load)(void *self, int n, const ctn_state_part *parts);
    void *self;
    const char *where; /* for messages */
} ctn__state_source;
/* Continues from that state. Collective. */
ctn_status ctn__state_restore(ctn_trainer *tr, const ctn__state_source *from);
/* Has this rank written its part of the state that the extension (checkpoint.c) is saving? */
bool ctn__checkpoint_written(const ctn_trainer *tr);
/* Called after each step: publishes that state once all ranks have written it. Collective. */
ctn_status ctn__checkpoint_step(ctn_trainer *tr);

/* Seconds that saving a state costs, on this rank; 0: not known yet. */
double ctn__checkpoint_cost(const ctn_trainer *tr);
/* The folder of the states that the extension saves; NULL: there is no such extension. */
const char *ctn__checkpoint_dir(const ctn_trainer *tr);
/* Syncs the files of weights that were written since the last state (weights.c). */
ctn_status ctn__weights_sync(ctn_trainer *tr);
/* Completes the state in the making, before an older one is loaded. Collective. */
ctn_status ctn__checkpoint_settle(ctn_trainer *tr);

/* ---- states of the net (net_states.c) -------------------------------------------------------- */

typedef struct {
    CTN__VEC(ctn_var *) var;
    char *copy; /* of their values, one after another */
} ctn__net_states;
/* Finds the states of the net, with room for a copy. May be called again. Errors: ENOMEM. */
ctn_status ctn__net_states_make(ctn__net_states *k, const ctn_trainer *tr);
void ctn__net_states_take(ctn__net_states *k); /* copies their values */
void ctn__net_states_put_back(ctn__net_states *k);
void ctn__net_states_free(ctn__net_states *k);

/* ---- values that are not finite (nonfinite.c, rewind.c) -------------------------------------- */

typedef struct ctn__nonfinite {
    ctn__trigger trigger; /* when to check parameters and states */
    ctn_nonfinite_opt o;  /* defaults are filled in */
    ctn_trainer *tr;
    int64_t skipped, in_row, rewinds; /* steps skipped: all, and last in a row; rewinds. Saved */
    double rate;                      /* factor of the learning rate. Saved */
    int64_t before;                   /* ctn_optim_skipped before this step */
    bool was;                         /* the optimizer skipped such steps before the run */
    ctn__net_states states;           /* states of the net before this step */
    char why[300];                    /* what has ended the run */
} ctn__nonfinite;

/* Called before and after each step: keep and bring back what a skipped step must not change. No
 * effect without the extension, or if it ends the training. */
void ctn__nonfinite_before(ctn_trainer *tr);
void ctn__nonfinite_after(ctn_trainer *tr);
/* A loss whose gradients are not finite if its value is not. */
ctn_tensor *ctn__nonfinite_loss(const ctn_trainer *tr, ctn_tensor *loss);
/* Fails on all ranks, and may ask for a rewind, if a parameter or state is not finite on one of
 * them. No effect where `before` has none. Collective. */
ctn_status ctn__nonfinite_check(ctn_trainer *tr);
/* Does any rank have a parameter or a state of the net that is not finite? *name: the first one of
 * this rank; NULL: it has none. Collective. */
ctn_status ctn__nonfinite_anywhere(ctn_trainer *tr, bool *any, const char **name,
                                   const char **kind);
/* After a run has failed with tr->rewind: makes the trainer ready to run again from the newest
 * state that is finite. Collective. */
ctn_status ctn__rewind(ctn_trainer *tr);

typedef struct ctn__unfreeze ctn__unfreeze;
/* Train or freeze what the extension says for the time after this number of epochs (unfreeze.c). No
 * effect without it. Errors: ENOMEM, ESTATE. */
ctn_status ctn__unfreeze_at(ctn_trainer *tr, int64_t epoch);

typedef struct ctn__average ctn__average;
/* Swaps the weights with their moving average; a second call swaps them back, and cannot fail if
 * no step was taken in between. Without an average it has no effect. Errors: ENOMEM, EPEER. */
ctn_status ctn__average_swap(ctn_trainer *tr);

/* Sums over samples or targets of the loss, for the mean over all ranks (group.c, spike.c). */
typedef struct {
    double sum, weight; /* of the losses of a step */
} ctn__step_sum;
typedef struct {
    ctn__step_sum now;  /* of the step just done, on this rank */
    ctn__step_sum last; /* of the step before it; sent with the gradients of the step just done */
    double mean;        /* of the last step of which all ranks know it; NaN: none */
    bool wanted;
} ctn__step_losses;
/* The mean over all ranks of the last loss of which all ranks know it, and the step it is of. NaN:
 * there is none. */
double ctn__trainer_loss(const ctn_trainer *tr, int64_t *iteration);

/* An optimizer that the trainer trains besides its own (trainer.c). */
typedef struct ctn__other {
    char *name; /* of its loss */
    ctn_optim *optim;
    ctn_loss_fn loss;
    void *self;
} ctn__other;

struct ctn_trainer {
    ctn_optim *optim;
    CTN__VEC(ctn__other) others;
    ctn_loader *loader;
    ctn_loss_fn loss;
    void *self;
    ctn_trainer_opt o; /* out is owned */
    ctn_context *ctx;
    ctn_step step;
    CTN__VEC(ctn__extended *) ext; /* by priority, then in the order of registration */
    CTN__VEC(ctn__observed) values;
    CTN__VEC(int) value_slots; /* hash table of positions in values, plus 1; 0: free */
    CTN__VEC(ctn__row) rows;
    ctn__average *average;     /* of the extension; NULL: none */
    ctn__unfreeze *unfreeze;   /* of the extension; NULL: none */
    ctn__merge merge;          /* averages values over ranks */
    ctn__nonfinite *nonfinite; /* of the extension; NULL: none */
    bool skipped;              /* the step just done changed nothing */
    bool rewind;               /* the run has failed, but may go on from a saved state */

    int64_t iteration, epoch, samples;
    ctn__step_losses losses;
    struct ctn__blocks *blocks; /* exact.c; NULL: not needed yet */
    struct ctn__rounds *rounds; /* rounds.c; NULL: not needed yet */
    int64_t saved;              /* iteration of the last state that the extension saved; -1: none */
    struct ctn__checkpointer *checkpointer; /* of the extension; NULL: none */
    CTN__VEC(const char *) unsynced; /* files that are synced before the next state is saved */
    double pause, pauses;            /* seconds that saving held up the training: longest, all */
    double slowed;        /* seconds by which it slowed steps down; noise can make it negative */
    int64_t saves;        /* states saved by the extension */
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
    int64_t begin;        /* position of the first batch of this step */
    uint64_t before;      /* steps of the context before those of this trainer */
    ctn_status ahead;     /* the loader's error, returned by the next step */

    /* on several ranks (group.c) */
    bool agreed;  /* all ranks stop because one of them was asked to */
    bool written; /* all ranks have written their parts of a state, as of the last step */
    bool shared;  /* the error that ends the run is the same on all ranks: nobody has to be told */
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
