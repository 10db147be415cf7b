/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer: runs the loop over a loader, and calls extensions when their triggers fire:
 * evaluation, logs, progress, schedules, saved states. A program that outgrows it writes the loop
 * by hand with the same parts.
 *
 * static ctn_tensor *loss(void *net, ctn_step *s) { ctn_tensor *y = ctn_call(net, ctn_step_input(s,
 * 0)), *t = ctn_step_input(s, 1); ctn_report(s, "accuracy", ctn_accuracy(y, t, 1)); return
 * ctn_softmax_cross_entropy(y, t); }
 *
 * Everything is called on the thread of ctn_trainer_run, between steps, in the order of priority.
 * All functions are Local.
 */
#ifndef CATENA_TRAIN_H
#define CATENA_TRAIN_H

#include <catena/data.h>
#include <catena/io.h>
#include <catena/nn.h>
#include <catena/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ctn_trainer ctn_trainer;
typedef struct ctn_step ctn_step;

/* ---- one batch ------------------------------------------------------------------------------- */

/* Records the forward pass and the loss of one batch in the open scope; training and evaluation
 * call the same function (ctn_training tells which). Result: the loss, one float; NULL reports an
 * error. */
typedef ctn_tensor *(*ctn_loss_fn)(void *self, ctn_step *s);

CTN_API ctn_context *ctn_step_context(const ctn_step *s);
CTN_API const ctn_batch *ctn_step_batch(const ctn_step *s);
/* Field f of the batch as a tensor of the open scope. Result: scope. */
CTN_API ctn_tensor *ctn_step_input_at(const char *at, ctn_step *s, int f);
#define ctn_step_input(s, f) ctn_step_input_at(CTN_HERE, s, f)
/* One float to be observed under a name: kept, read after the step, averaged over the samples
 * until the log is written. The loss itself is reported as "loss". A NULL tensor is passed on as
 * the error it is. Errors: EARG (not one float), ESTATE (too many names: 32). */
CTN_API ctn_status ctn_report(ctn_step *s, const char *name, ctn_tensor *value);

/* ---- the loop -------------------------------------------------------------------------------- */

typedef struct {
    size_t struct_size;
    ctn_module *net;    /* what is saved as weights; NULL: nothing is */
    int64_t epochs;     /* end after so many; 0: no such end */
    int64_t iterations; /* the same in steps of the optimizer */
    double seconds;     /* the same in time of this run; it ends at the next step */
    int64_t accumulate; /* batches per step of the optimizer; 0: 1 */
    /* Result folder, made when missing, on several ranks by rank 0. NULL: extensions that write
     * files refuse. */
    const char *out;
} ctn_trainer_opt;

/* A trainer over an optimizer and the loader of its training data, which are borrowed, as are net
 * and self. Result: *tr, ctn_trainer_free. Errors: EARG, EIO, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_trainer_new(ctn_trainer **tr, ctn_optim *opt,
                                                  ctn_loader *loader, ctn_loss_fn loss, void *self,
                                                  const ctn_trainer_opt *o);
CTN_API void ctn_trainer_free(ctn_trainer *tr); /* with its extensions; NULL is fine */

/* Train until an end is reached or somebody stops. Result: CTN_OK, also after a stop
 * (ctn_trainer_stopped tells). Errors: those of loader, step and extensions; finish of the
 * extensions has run then too.
 * After ctn_dist_optim Collective. All ranks take the same number of steps: one whose samples are
 * used up before the others' takes part without any. Before the first step the ranks compare what
 * they were made of (version, samples, batch, optimizer, ends) and where they are (iteration, order
 * of samples, weights): if they differ, every rank fails with EARG and the same message. Each rank's
 * loader has a part of the same samples (ctn_sampler_shard), or all have samples of their own
 * (samplers that are not sharded), which may be more or fewer. An error of one rank ends the others
 * with EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_trainer_run(ctn_trainer *tr);

/* End after the step that runs now, before the first one if it does not run yet. It may come from
 * a signal handler or another thread; why is borrowed forever (a literal). NULL takes it back.
 * Triggers at the end do not fire: the training is not at its end. A request that comes during the
 * last step or after it changes nothing. On several ranks all stop after the same step, which is
 * the one that runs or the next one. */
CTN_API void ctn_trainer_stop(ctn_trainer *tr, const char *why);
/* Why it was stopped or ended early, NULL when it was not. A run that was asked to stop and reached
 * its end all the same was not stopped (ctn_progress.complete). Result: borrowed. */
CTN_API const char *ctn_trainer_stopped(const ctn_trainer *tr);

/* Where the training is. seconds count over all runs of a resumed training. */
typedef struct {
    int64_t iteration; /* optimizer steps done */
    int64_t epoch;     /* epochs done */
    double part;       /* of the current epoch, 0 to 1 */
    double total;      /* of the whole training by the end that comes first, 0 to 1; < 0: unknown */
    int64_t samples;   /* seen in all */
    double seconds;    /* in the loop */
    double compute_s, input_s, other_s; /* of these: steps, waiting for data, extensions */
    int epoch_ended;                    /* the step just done was the last of an epoch */
    /* The last run reached its end, by one of the trainer's options or by an extension: no work is
     * left. Set when ctn_trainer_run returns. */
    int complete;
    int64_t saved; /* iteration of the last state that ctn_extend_state has saved, -1: none yet */
} ctn_progress;
CTN_API void ctn_trainer_progress(const ctn_trainer *tr, ctn_progress *out);

/* What a trainer was made of. Result: borrowed. */
CTN_API ctn_optim *ctn_trainer_optim(const ctn_trainer *tr);
CTN_API ctn_loader *ctn_trainer_loader(const ctn_trainer *tr);
CTN_API ctn_module *ctn_trainer_net(const ctn_trainer *tr);
CTN_API const char *ctn_trainer_out(const ctn_trainer *tr);
CTN_API ctn_context *ctn_trainer_context(const ctn_trainer *tr);

/* ---- observations ---------------------------------------------------------------------------- */

/* A value seen now, by its whole name: "val/accuracy". Training values are "train/...". Errors:
 * EARG, ENOMEM. */
CTN_API ctn_status ctn_trainer_observe(ctn_trainer *tr, const char *name, double value);
/* The last value under a name (of training values the mean since the log was last written, or that
 * of the last log when nothing came since). Returns 0 when there is none. */
CTN_API int ctn_trainer_value(const ctn_trainer *tr, const char *name, double *value);
/* All names in the order of their first appearance; NULL beyond the last. Result: borrowed. */
CTN_API const char *ctn_trainer_name(const ctn_trainer *tr, int i);

/* The rows that the log extension wrote, also those of earlier runs of a resumed training: for
 * plots and reports. Value k of row i, in the order of ctn_trainer_name; NaN where there is none.
 * */
CTN_API int64_t ctn_trainer_rows(const ctn_trainer *tr);
CTN_API double ctn_trainer_row_value(const ctn_trainer *tr, int64_t row, const char *name);
CTN_API void ctn_trainer_row_progress(const ctn_trainer *tr, int64_t row, ctn_progress *out);

/* ---- triggers -------------------------------------------------------------------------------- */

typedef enum {
    CTN_EVERY_EPOCHS = 1, /* and after the last step, wherever that is */
    CTN_EVERY_ITERATIONS,
    CTN_EVERY_SECONDS,
    CTN_ONCE,     /* at iteration n */
    CTN_AT_END,   /* after the last step */
    CTN_WHEN_MAX, /* a new observation of `key` is the largest so far */
    CTN_WHEN_MIN  /* the smallest */
} ctn_trigger_kind;
/* A plain value; key is copied where it is kept. Epochs may be fractions: 0.5. */
typedef struct {
    ctn_trigger_kind kind;
    double n;
    const char *key;
} ctn_trigger;
#define CTN_TRIGGER(k, ...) (&(ctn_trigger){.kind = (k), __VA_ARGS__})

/* ---- extensions ------------------------------------------------------------------------------ */

/* Order among extensions that fire after the same step: values are made (evaluation), changed
 * (schedules), written (log), shown, saved. */
enum {
    CTN_PRIORITY_EVALUATE = 500,
    CTN_PRIORITY_CHANGE = 400,
    CTN_PRIORITY_LOG = 300,
    CTN_PRIORITY_SHOW = 200,
    CTN_PRIORITY_SAVE = 100
};
/* Any function may be NULL. start runs before the first step (after a state was loaded), call when
 * the trigger fires, finish once at the end, whatever it was, visit for saved states; release
 * frees self. On several ranks an extension with `visit` must be added on all of them. */
typedef struct {
    size_t struct_size;
    const char *name; /* unique; copied; prefix of its saved state */
    int priority;     /* larger first */
    ctn_trigger trigger;
    ctn_status (*start)(void *self, ctn_trainer *tr);
    ctn_status (*call)(void *self, ctn_trainer *tr);
    ctn_status (*finish)(void *self, ctn_trainer *tr);
    ctn_status (*visit)(void *self, ctn_state_fn fn, void *user);
    void (*release)(void *self);
    void *self;     /* goes over to the trainer, stays the caller's if adding fails */
    int rank0_only; /* on several ranks: it writes or shows, and does so on rank 0 */
} ctn_extension;
/* Add one. Errors: EARG (the name is taken), ESTATE (the trainer runs), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_trainer_extend(ctn_trainer *tr, const ctn_extension *e);

/* The ready-made ones. when NULL: the usual trigger, in parentheses. Errors: as ctn_trainer_extend;
 * ESTATE for those that write files into a trainer without a folder. */

/* Means of all that loss reports over another loader, each weighted by its samples, as "val/...":
 * exact over uneven batches (every epoch). loader is borrowed, and read from its beginning each
 * time. The context is set to evaluation without gradients meanwhile. self: of the loss function.
 * */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_evaluator(ctn_trainer *tr, const ctn_trigger *when,
                                                       ctn_loader *loader, ctn_loss_fn loss,
                                                       void *self);
/* The same once, by hand. fn is called for each name. */
typedef ctn_status (*ctn_value_fn)(void *user, const char *name, double value);
CTN_API CTN_MUST_CHECK ctn_status ctn_evaluate(ctn_context *ctx, ctn_loader *loader,
                                               ctn_loss_fn loss, void *self, ctn_value_fn fn,
                                               void *user);

/* Mean of what was reported since the last time, as one JSON object per line in out/file (every
 * epoch). A resumed training cuts the file back to the state's position first. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_log(ctn_trainer *tr, const ctn_trigger *when,
                                                 const char *file);

/* Where extensions show text: NULL in an option means standard output. Nothing else in the library
 * prints; adding such an extension is asking for it. */
typedef struct {
    size_t struct_size;
    void (*write)(void *user, const char *text); /* NULL: standard output */
    void *user;
    int terminal; /* 1: it is one, -1: it is not, 0: look */
    int columns;  /* of the terminal; 0: look */
} ctn_show_opt;
/* Bars of epoch and whole, items/s, time left, redrawn in place (twice a second; plain lines now
 * and then where there is no terminal). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_progress(ctn_trainer *tr, const ctn_trigger *when,
                                                      const ctn_show_opt *opt);
/* A line of a table for every line of the log; names NULL: all (after the log). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_print(ctn_trainer *tr, const ctn_trigger *when,
                                                   const char *const *names,
                                                   const ctn_show_opt *opt);

/* Curves of values over iterations as an SVG file out/file; names end with NULL (every epoch). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_plot(ctn_trainer *tr, const ctn_trigger *when,
                                                  const char *const *names, const char *file);
/* Event files for TensorBoard in out/dir (at every line of the log). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_tensorboard(ctn_trainer *tr, const ctn_trigger *when,
                                                         const char *dir);
/* One self-contained page out/file: curves, throughput, time split, plan, final values, and the
 * key-value pairs of `facts` (machine, versions, configuration), ended by NULL (every epoch). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_html(ctn_trainer *tr, const ctn_trigger *when,
                                                  const char *file, const char *title,
                                                  const char *const *facts);

/* A hyperparameter ("lr", "momentum", "beta1", "beta2", "decay"; see ctn_optim_set_hyper) by a
 * schedule relative to its value at the start (every iteration). steps 0 in the schedule: the
 * length of the training. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_schedule(ctn_trainer *tr, const char *hyper,
                                                      const ctn_sched_opt *s);
/* Multiply it by factor when an observation has not improved for `patience` triggers (every
 * epoch). */
typedef struct {
    size_t struct_size;
    const char *key;   /* "val/loss" */
    int larger;        /* 1: larger is better */
    int64_t patience;  /* observations without improvement, at least 1 */
    double factor;     /* 0: 0.1; plateau only */
    double min;        /* lowest value of the hyperparameter; plateau only */
    double difference; /* relative, to count as better; 0: 1e-4, < 0: none */
} ctn_patience_opt;
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_plateau(ctn_trainer *tr, const ctn_trigger *when,
                                                     const char *hyper,
                                                     const ctn_patience_opt *opt);
/* End the training when it has not (every epoch). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_early_stop(ctn_trainer *tr, const ctn_trigger *when,
                                                        const ctn_patience_opt *opt);
/* Observe a number that a function gives, under a name (every epoch). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_observe(ctn_trainer *tr, const ctn_trigger *when,
                                                     const char *name,
                                                     double (*value)(void *self, ctn_trainer *tr),
                                                     void *self);
/* Mean, deviation, smallest and largest of every parameter whose name matches a shell pattern, as
 * "param/NAME/mean" and so on (every epoch). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_param_stats(ctn_trainer *tr, const ctn_trigger *when,
                                                         const char *pattern);
/* End with ENONFINITE and the name of the first bad tensor when a reported value, a parameter or a
 * state of net is not finite (every iteration for values; tensors are looked at only then, and
 * when it fires). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_fail_on_nonfinite(ctn_trainer *tr,
                                                               const ctn_trigger *when);
/* A moving average of the weights of net: avg = rate avg + (1 - rate) w after every step.
 * Evaluators see the average, and it is saved beside the weights (out/average.safetensors at the
 * end). rate 0: 0.999. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_average(ctn_trainer *tr, double rate);

/* Weights of net as out/file (every epoch, and those of the end); with CTN_WHEN_MAX or _MIN the
 * best, which are the averaged ones where there is a moving average. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_weights(ctn_trainer *tr, const ctn_trigger *when,
                                                     const char *file);
/* The whole state in the folder out/state (every epoch, and at the end or a stop):
 * ctn_trainer_save. It runs behind all others. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_state(ctn_trainer *tr, const ctn_trigger *when);

/* ---- save and resume ------------------------------------------------------------------------- */

/* Everything that influences the rest of the training: parameters, optimizer, loss scale, random
 * counters, sampler position, triggers, extensions, tuning decisions, log position. `dir` becomes
 * a folder of the last two states, numbered; each is written under another name, synced and
 * renamed, so that there is a whole one at any moment. Between steps; from an extension those of
 * lower priority count as called. On several ranks Collective, and the state is rank 0's, which
 * writes it. Errors: EIO, ENOMEM, ESTATE (no net, a scope is open). */
CTN_API CTN_MUST_CHECK ctn_status ctn_trainer_save(ctn_trainer *tr, const char *dir);
/* Go on from the newest state in dir that is whole (a damaged one is named by a warning and passed
 * over), after all extensions were added and before run: the same bits as without the break, in
 * mid-epoch too, on the same machine with as many threads and ranks; elsewhere with a warning. What
 * does not fit is refused before anything is changed; a disk that fails later leaves some of it
 * changed.
 * On several ranks Collective: rank 0 reads, the others get the state from it and do not look at
 * dir, and all fail with the same message or none does. The number of ranks may be another one than
 * when it was saved, as long as ranks x batch x accumulate is the same: the rest of the epoch is
 * dealt out anew, each sample once. A rank whose seeds (of the context, of samples of its own) differ
 * from rank 0's keeps the difference.
 * Errors: ENOTFOUND (no state, or one without something this trainer has), EFORMAT, EIO, ESHAPE,
 * ESTATE (saved by another setup: says what differs), EARG (ranks differ: says which and in what),
 * EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_trainer_load(ctn_trainer *tr, const char *dir);

#ifdef __cplusplus
}
#endif
#endif
