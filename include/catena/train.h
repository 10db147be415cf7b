/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer runs the training loop over a loader and calls extensions when their triggers
 * fire: evaluation, logs, progress, schedules, checkpoints. A program that needs more control
 * can write the loop itself with the same parts.
 *
 *     static ctn_tensor *loss(void *net, ctn_step *s)
 *     {
 *         ctn_tensor *y = ctn_call(net, ctn_step_input(s, 0)), *t = ctn_step_input(s, 1);
 *         ctn_report(s, "accuracy", ctn_accuracy(y, t, 1));
 *         return ctn_softmax_cross_entropy(y, t);
 *     }
 *
 *     const ctn_trainer_opt o = {
 *         .struct_size = sizeof o, .net = net, .epochs = 20, .out = "result"};
 *     CTN_TRY(ctn_trainer_new(&tr, opt, loader, loss, net, &o));
 *     CTN_TRY(ctn_extend_evaluator(tr, NULL, test_loader, loss, net));
 *     CTN_TRY(ctn_extend_log(tr, NULL, "log.jsonl"));
 *     CTN_TRY(ctn_trainer_run(tr));
 *
 * All extensions are called on the thread of ctn_trainer_run, between steps, in order of
 * priority. All functions are Local unless the comment says otherwise.
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
typedef struct ctn_step ctn_step; /* one batch, as the loss function sees it */

/* ---- one batch ------------------------------------------------------------------------------ */

/* Records the forward pass and the loss of one batch in the open scope. Training and evaluation
 * call the same function; ctn_context_training tells them apart. Result: the loss, one float;
 * return NULL after an error. */
typedef ctn_tensor *(*ctn_loss_fn)(void *self, ctn_step *s);

/* The context and the batch of this step. Result: borrowed until the loss function returns. */
CTN_API ctn_context *ctn_step_context(const ctn_step *s);
CTN_API const ctn_batch *ctn_step_batch(const ctn_step *s);
/* Field f of the batch as a tensor of the open scope. Result: scope. */
CTN_API ctn_tensor *ctn_step_input_at(const char *at, ctn_step *s, int f);
#define ctn_step_input(s, f) ctn_step_input_at(CTN_HERE, s, f)
/* Report one float under a name. It is read after the step. The log then shows the mean since
 * the previous log entry, weighted by the samples of each batch. The loss itself is reported as
 * "loss" automatically. If value is NULL, the error that caused it is returned. Errors: EARG (not
 * one float), ESTATE (more than 32 names besides "loss"). */
CTN_API ctn_status ctn_report(ctn_step *s, const char *name, ctn_tensor *value);
/* Report a ratio of two floats under a name, such as right pixels / all pixels. The log shows the
 * sum of `above` divided by the sum of `below`, over all batches and ranks since the previous log
 * entry, and an evaluator the same over all samples. `below` is not negative; a batch in which it
 * is 0 adds nothing.
 * Errors: as ctn_report. */
CTN_API ctn_status ctn_report_ratio(ctn_step *s, const char *name, ctn_tensor *above,
                                    ctn_tensor *below);

/* Say what the loss of this batch is a mean over, if it is not the samples: `weight` targets, such
 * as words to guess or pixels that have a label. Batches then count by their targets in gradients,
 * and in the means of the loss and of what ctn_report reports. So these do not depend on how the
 * samples are divided among ranks and batches. 0: no targets, and the batch counts nothing. Call it
 * for each batch of a training or for none. Errors: EARG (negative or not finite). */
CTN_API ctn_status ctn_report_weight(ctn_step *s, double weight);
/* The same for the elements of field f of the batch, integers, that are not `ignore`; the losses of
 * this library ignore -100. Errors: EARG (no such field), EDTYPE. */
CTN_API ctn_status ctn_report_targets(ctn_step *s, int f, int64_t ignore);

/* Report a metric of all samples together, which is not the mean of the metrics of batches. An
 * evaluator adds up its parts, or collects them, over all batches and ranks, and computes the value
 * once at the end. In training nothing is reported, because the network changes from step to step.
 * y are the results of the network and t the targets. metric NULL: the one that is called like the
 * name. A metric that has no value, such as auc if there is only one class, is NaN.
 *
 *   f1, precision, recall    of class 1 of two: y (...,2) logits, or (...) and (...,1) logits of
 *                            class 1; t (...) classes i64, i32, u8 or bool
 *   f1_macro, f1_micro       y (...,C) logits; macro is the mean over all classes that occur or are
 *                            predicted, micro counts all rows together. Likewise precision_macro,
 *                            recall_micro and so on.
 *   miou                     mean over classes, as above, of the intersection over union
 *   auc                      area under the ROC curve; y and t as for f1. Exact: all scores are
 *                            collected, 16 bytes for each on every rank.
 *   r2                       coefficient of determination of each column (channel) of y and t, (N)
 *                            or (N,K,...) floats, then the mean over the columns
 *   relative_l2              norm(y - t) / norm(t) over all elements of all samples
 *   mae, rmse                mean of |y - t|, and root of the mean of (y - t)^2, of all elements
 *
 * Rows of class -100 are ignored; 0 where a divisor is 0. Sums are f64. Errors: EARG (no such
 * metric), ESHAPE, EDTYPE, ESTATE (as ctn_report). */
CTN_API ctn_status ctn_report_metric(ctn_step *s, const char *name, const char *metric,
                                     ctn_tensor *y, ctn_tensor *t);
/* The names of all metrics, ended by NULL. Local. Result: borrowed forever. */
CTN_API const char *const *ctn_metric_names(void);

/* ---- the loop ------------------------------------------------------------------------------- */

typedef struct {
    size_t struct_size;
    ctn_module *net;    /* the network whose weights are saved; NULL: none */
    int64_t epochs;     /* maximum number of epochs; 0: unlimited */
    int64_t iterations; /* maximum number of optimizer steps; 0: unlimited */
    double seconds;     /* maximum wall time of this run, checked after every step; 0: unlimited */
    int64_t accumulate; /* gradient accumulation: batches per optimizer step; 0: 1 */
    /* Result folder; created if missing (on several ranks, by rank 0). NULL: none, and extensions
     * that write files cannot be added. */
    const char *out;
} ctn_trainer_opt;

/* Make a trainer from an optimizer and the loader of its training data. self is passed to loss.
 * opt, loader, self and o->net are borrowed. Result: *tr, owned, ctn_trainer_free. Errors: EARG,
 * EIO, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_trainer_new(ctn_trainer **tr, ctn_optim *opt,
                                                  ctn_loader *loader, ctn_loss_fn loss, void *self,
                                                  const ctn_trainer_opt *o);
/* Also train another optimizer in every iteration, with a loss of its own on the same batch: after
 * the trainer's optimizer, in the order of these calls, each in a scope of its own. The
 * discriminator and the generator of a GAN are trained like this. The loss is reported under the
 * name. ctn_trainer_opt.net is saved with the state, so let it contain all networks. Extensions
 * that change the learning rate or react to infinities do so for the trainer's own optimizer. opt
 * and self are borrowed. Call it before ctn_trainer_load. Errors: EARG, ESTATE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_trainer_add_optim(ctn_trainer *tr, const char *name,
                                                        ctn_optim *opt, ctn_loss_fn loss,
                                                        void *self);
CTN_API void ctn_trainer_free(ctn_trainer *tr); /* frees its extensions too. NULL is allowed. */

/* Train until a limit is reached or the run is stopped. Returns CTN_OK in both cases;
 * ctn_trainer_stopped tells which. Errors: EARG (there is neither a limit nor an extension),
 * ESTATE, those of the loader, the step and the extensions. The `finish` functions of the
 * extensions are called after an error too.
 * Collective after ctn_dist_optim. All ranks take the same number of steps: a rank that runs out
 * of samples before the others takes part without samples. Before the first step the ranks
 * compare their settings (version, samples, batch size, optimizer, limits) and their state
 * (iteration, order of samples, weights); if these differ, every rank fails with EARG and the
 * same message. Either all loaders share one dataset and each has a part of it
 * (ctn_sampler_shard), or no sampler is sharded and each rank has a dataset of its own, possibly
 * larger or smaller than those of the other ranks. If one rank fails, the others fail with
 * EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_trainer_run(ctn_trainer *tr);

/* Stop after the current step, or before the first one if the trainer is not running yet. May be
 * called from a signal handler or another thread. why must stay valid forever, like a string
 * literal; why NULL: withdraw the request. Triggers that fire after the last step do not fire then,
 * because the training run is not complete. A request during or after the last step has no
 * effect. On several ranks all stop after the same step, which is the current one or the
 * next. */
CTN_API void ctn_trainer_stop(ctn_trainer *tr, const char *why);
/* Why the run was stopped or ended early, NULL if it was not. A run that reached its end
 * although it was asked to stop does not count as stopped (see ctn_progress.complete). Result:
 * borrowed from tr. */
CTN_API const char *ctn_trainer_stopped(const ctn_trainer *tr);

/* Progress of the training run. Counts and times include the runs before a resume. */
typedef struct {
    int64_t iteration; /* optimizer steps done */
    int64_t epoch;     /* epochs done */
    double part;       /* share of the current epoch that is done, 0 to 1 */
    /* Share of the whole training run that is done, 0 to 1, according to the limit that is
     * closest; < 0: there is no limit. */
    double total;
    int64_t samples;                    /* samples seen in total */
    double seconds;                     /* seconds in the loop */
    double compute_s, input_s, other_s; /* its parts: steps, waiting for data, extensions */
    int epoch_ended;                    /* the last step was the last one of an epoch */
    /* 1: the last run reached its end, by a limit of the trainer or by an extension, and no work
     * is left. Set at the end of ctn_trainer_run. */
    int complete;
    int64_t saved;   /* iteration of the last state saved by ctn_extend_state; -1: none yet */
    int64_t saves;   /* states saved by ctn_extend_state in this process */
    double pause_s;  /* longest time that saving one of them held up the training */
    double pauses_s; /* all such times together */
    /* Time by which writing them, in the background, slowed the steps down: how much longer steps
     * took while a state was written than the steps before. 0 if it cannot be told. */
    double slowed_s;
} ctn_progress;
CTN_API void ctn_trainer_progress(const ctn_trainer *tr, ctn_progress *out);

/* What the trainer was made from. Result: borrowed from tr. */
CTN_API ctn_optim *ctn_trainer_optim(const ctn_trainer *tr);
CTN_API ctn_loader *ctn_trainer_loader(const ctn_trainer *tr);
CTN_API ctn_module *ctn_trainer_net(const ctn_trainer *tr);
CTN_API const char *ctn_trainer_out(const ctn_trainer *tr);
CTN_API ctn_context *ctn_trainer_context(const ctn_trainer *tr);

/* ---- observed values ------------------------------------------------------------------------ */

/* Record a value under its full name, such as "val/accuracy". Values that the loss function
 * reports during training are named "train/...". Errors: EARG, ENOMEM. */
CTN_API ctn_status ctn_trainer_observe(ctn_trainer *tr, const char *name, double value);
/* Get the last value under a name. Returns 1, or 0 if there is none. For "train/..." it is the
 * mean since the last log entry, or the mean in that entry if nothing was reported since. */
CTN_API int ctn_trainer_value(const ctn_trainer *tr, const char *name, double *value);
/* Name i, in the order of first appearance; NULL after the last one. Result: borrowed from tr. */
CTN_API const char *ctn_trainer_name(const ctn_trainer *tr, int i);

/* The rows that the log extension has written, including those of earlier runs of a resumed
 * training run, for plots and reports: their number, one value of a row (NaN if there is none),
 * and the progress at that row. */
CTN_API int64_t ctn_trainer_rows(const ctn_trainer *tr);
CTN_API double ctn_trainer_row_value(const ctn_trainer *tr, int64_t row, const char *name);
CTN_API void ctn_trainer_row_progress(const ctn_trainer *tr, int64_t row, ctn_progress *out);

/* ---- triggers ------------------------------------------------------------------------------- */

typedef enum {
    CTN_EVERY_EPOCHS = 1, /* every n epochs, and after the last step */
    CTN_EVERY_ITERATIONS,
    CTN_EVERY_SECONDS,
    CTN_ONCE,     /* once, at iteration n */
    CTN_AT_END,   /* after the last step */
    CTN_WHEN_MAX, /* when a new value of `key` is the largest so far */
    CTN_WHEN_MIN, /* when it is the smallest so far */
    /* As often as the extension takes at most n percent of the time, but at most once a second. Its
     * last call is measured, on several ranks by rank 0; of ctn_extend_state all of them, with the
     * time by which writing slows the steps down. */
    CTN_SHARE_OF_TIME,
    CTN_AT_EPOCHS,    /* at the points listed in `at`, such as {30, 60, 80.5} epochs */
    CTN_AT_ITERATIONS /* the same in iterations */
} ctn_trigger_kind;
#define CTN_TRIGGER_AT 16
/* A trigger is a plain value; functions that take one copy its key. For epochs, n may be a
 * fraction such as 0.5. */
typedef struct {
    ctn_trigger_kind kind;
    double n;
    const char *key;
    double at[CTN_TRIGGER_AT]; /* ascending, ended by 0 if there are fewer than 16 */
    /* Every so many epochs or iterations: but not within so many seconds after it last fired,
     * except after the last step. On several ranks the clock is rank 0's. */
    double apart;
} ctn_trigger;
#define CTN_TRIGGER(k, ...) (&(ctn_trigger){.kind = (k), __VA_ARGS__})

/* ---- extensions ----------------------------------------------------------------------------- */

/* Order among extensions that fire after the same step: first compute values (evaluation), then
 * change settings (schedules), write the log, display, save. */
enum {
    CTN_PRIORITY_EVALUATE = 500,
    CTN_PRIORITY_CHANGE = 400,
    CTN_PRIORITY_LOG = 300,
    CTN_PRIORITY_SHOW = 200,
    CTN_PRIORITY_SAVE = 100
};
/* Any function may be NULL. start is called before the first step of a run, call when the trigger
 * fires, finish once at the end of a run, even after an error, visit to save and load state, and
 * release to free self. A state is loaded before start is called. A rewind
 * (ctn_extend_on_nonfinite) looks like a run that ends with an error, and another run. On several
 * ranks, an extension with `visit` must be added on all of them. */
typedef struct {
    size_t struct_size;
    const char *name; /* unique; copied; also the prefix of its saved state */
    int priority;     /* larger values are called first */
    ctn_trigger trigger;
    ctn_status (*start)(void *self, ctn_trainer *tr);
    ctn_status (*call)(void *self, ctn_trainer *tr);
    ctn_status (*finish)(void *self, ctn_trainer *tr);
    ctn_status (*visit)(void *self, ctn_state_fn fn, void *user);
    void (*release)(void *self);
    void *self;     /* on success the trainer owns it; on failure the caller keeps ownership */
    int rank0_only; /* 1: call it on rank 0 only, because it writes or displays */
} ctn_extension;
/* Add an extension. Errors: EARG (the name is taken), ESTATE (the trainer is running), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_trainer_extend(ctn_trainer *tr, const ctn_extension *e);

/* Ready-made extensions. when NULL: the default trigger, which each comment gives in parentheses.
 * Errors: as ctn_trainer_extend; ESTATE also if the extension needs a result folder or a net and
 * the trainer has none. */

/* Evaluate on another loader (every epoch). Everything that loss reports is averaged over all
 * samples, exactly even if batches differ in size, and observed as "val/...". loader is borrowed
 * and read from its beginning each time. During the evaluation the context is in evaluation mode
 * without gradients. self is passed to loss. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_evaluator(ctn_trainer *tr, const ctn_trigger *when,
                                                       ctn_loader *loader, ctn_loss_fn loss,
                                                       void *self);
/* Evaluate once, without a trainer. fn is called with each name and mean. Errors: EARG, ESTATE (a
 * scope is open), those of the loader, loss and fn. */
typedef ctn_status (*ctn_value_fn)(void *user, const char *name, double value);
CTN_API CTN_MUST_CHECK ctn_status ctn_evaluate(ctn_context *ctx, ctn_loader *loader,
                                               ctn_loss_fn loss, void *self, ctn_value_fn fn,
                                               void *user);

/* Write one JSON object per log entry, each on its own line, to out/file (every epoch): the
 * means of the values reported since the last entry, and the values observed since. A resumed
 * run first removes the entries that are newer than the loaded state; a new training empties the
 * file. file NULL: "log.jsonl". */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_log(ctn_trainer *tr, const ctn_trigger *when,
                                                 const char *file);

/* Where the extensions below display text. Nothing else in the library prints. */
typedef struct {
    size_t struct_size;
    void (*write)(void *user, const char *text); /* NULL: standard output */
    void *user;
    int terminal; /* 1: a terminal, -1: not a terminal, 0: detect */
    int columns;  /* width of the terminal; 0: detect */
} ctn_show_opt;
/* Progress bars of the epoch and the whole run, items/s and remaining time, redrawn in place
 * (twice a second). Without a terminal, prints a plain line from time to time instead. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_progress(ctn_trainer *tr, const ctn_trigger *when,
                                                      const ctn_show_opt *opt);
/* Print a table with one line for every log entry (after each log entry). names end with NULL;
 * names NULL: all values. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_print(ctn_trainer *tr, const ctn_trigger *when,
                                                   const char *const *names,
                                                   const ctn_show_opt *opt);

/* Plot values over iterations as an SVG file out/file; names end with NULL (every epoch). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_plot(ctn_trainer *tr, const ctn_trigger *when,
                                                  const char *const *names, const char *file);
/* Write event files for TensorBoard to out/dir (after each log entry). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_tensorboard(ctn_trainer *tr, const ctn_trigger *when,
                                                         const char *dir);
/* Write a self-contained HTML page out/file: curves, throughput, how the time was spent, the
 * plan, final values, and the key-value pairs of `facts` (machine, versions, configuration),
 * which end with NULL (every epoch). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_html(ctn_trainer *tr, const ctn_trigger *when,
                                                  const char *file, const char *title,
                                                  const char *const *facts);

/* Let a hyperparameter ("lr", "momentum", "beta1" and so on, see ctn_optim_set_hyper) follow a
 * schedule: a factor on the value it has when this function is called (every iteration).
 * s->steps 0: the length of the training run. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_schedule(ctn_trainer *tr, const char *hyper,
                                                      const ctn_sched_opt *s);
/* Reduce on plateau: multiply a hyperparameter by factor when an observed value has not
 * improved for `patience` observations (every epoch). If it follows a schedule too, the schedule
 * continues with values that are lower by this factor. */
typedef struct {
    size_t struct_size;
    const char *key;   /* "val/loss" */
    int larger;        /* 1: larger values are better */
    int64_t patience;  /* observations without improvement, at least 1 */
    double factor;     /* plateau only; 0: 0.1 */
    double min;        /* plateau only; lower limit of the hyperparameter */
    double difference; /* relative improvement that counts as better; 0: 1e-4, < 0: any */
} ctn_patience_opt;
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_plateau(ctn_trainer *tr, const ctn_trigger *when,
                                                     const char *hyper,
                                                     const ctn_patience_opt *opt);
/* Early stopping: end the training run when the value has not improved for `patience`
 * observations (every epoch). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_early_stop(ctn_trainer *tr, const ctn_trigger *when,
                                                        const ctn_patience_opt *opt);
/* Observe the result of a function under a name (every epoch). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_observe(ctn_trainer *tr, const ctn_trigger *when,
                                                     const char *name,
                                                     double (*value)(void *self, ctn_trainer *tr),
                                                     void *self);
/* Observe the mean, standard deviation, minimum and maximum of every parameter whose name matches
 * a shell pattern (pattern NULL: all), as "param/NAME/mean", "/std", "/min" and "/max" (every
 * epoch). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_param_stats(ctn_trainer *tr, const ctn_trigger *when,
                                                         const char *pattern);
/* Plot how the values of the parameters whose names match a shell pattern (NULL: all) are
 * distributed over time: one chart for each parameter in the SVG file out/file, with its minimum,
 * maximum, median and the percentiles 2, 16, 84 and 98 over iterations (every epoch). They are
 * observed as "param/NAME/min", "/p2", "/p16", "/p50", "/p84", "/p98" and "/max", and plotted from
 * the log, so ctn_extend_log must be added too. The last entry is plotted at the end of a run. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_param_plot(ctn_trainer *tr, const ctn_trigger *when,
                                                        const char *pattern, const char *file);
/* Fail with ENONFINITE when a reported value, or a parameter or state of net, is not finite.
 * The message names the first such tensor. Reported values are checked in every iteration; the
 * tensors are checked when a value is not finite and when the trigger fires (every epoch). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_fail_on_nonfinite(ctn_trainer *tr,
                                                               const ctn_trigger *when);
/* What to do about a step whose loss or gradients are not finite. */
typedef enum {
    CTN_NONFINITE_STOP = 0, /* fail, as ctn_extend_fail_on_nonfinite does */
    /* Leave out the step: parameters, optimizer state, moving average, states of net (running
     * statistics) and the means of the log stay as they were. Its samples count as used. */
    CTN_NONFINITE_SKIP,
    /* Load the newest state that ctn_extend_state has saved, multiply the learning rate by a
     * factor, and go on from there. A saved state whose values are not finite is put aside and the
     * one before it is loaded. */
    CTN_NONFINITE_REWIND
} ctn_nonfinite_policy;
typedef struct {
    size_t struct_size;
    ctn_nonfinite_policy policy;
    int64_t max_skips;   /* skipped steps in a row after which the run fails; 0: 20 */
    int64_t max_rewinds; /* rewinds after which the run fails, resumed runs included; 0: 3 */
    double factor;       /* of the learning rate at each rewind, in (0,1]; 0: 0.5 */
} ctn_nonfinite_opt;
/* Skip or rewind instead of failing (opt NULL: fail). Adds one pass over the gradients to a step
 * (ctn_optim_set_skip_nonfinite). All ranks do the same, whichever of them has the bad value. With
 * dynamic loss scaling, where skipped steps are normal, a rewind takes place after max_skips
 * skipped steps in a row. Parameters and states are also checked before they are saved. The number
 * of skipped steps is observed as "train/skipped" and that of rewinds as "train/rewinds"; both and
 * the factor are part of the saved state, and the factor works with any schedule. The run fails
 * with ENONFINITE after max_skips or max_rewinds, if there is no state to rewind to, and if a
 * reported value other than the loss is not finite. Errors: also EARG, ESTATE (when a run begins:
 * rewinding needs ctn_extend_state). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_on_nonfinite(ctn_trainer *tr, const ctn_trigger *when,
                                                          const ctn_nonfinite_opt *opt);
/* Report loss spikes: steps whose loss exceeds its running mean by this many deviations. On several
 * ranks the loss is the mean over all of them, and a spike is reported one step later. The number
 * of spikes is observed as "train/spikes", and there is a warning (catena/log.h), at most one in a
 * window. Mean and deviation are exponential averages; the first window of steps only fills them.
 * They are part of the saved state. */
typedef struct {
    size_t struct_size;
    double deviations; /* 0: 10 */
    int64_t window;    /* steps, at least 2; 0: 100 */
} ctn_spike_opt;
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_spikes(ctn_trainer *tr, const ctn_spike_opt *opt);
/* Train the parameters of net that are frozen now and that a pattern stands for, as in
 * ctn_module_set_trainable (pattern NULL: all frozen ones), from the beginning of epoch `epoch` on,
 * counted from 0. statistics 1: batch normalisations of these names whose statistics are frozen now
 * (ctn_module_freeze_statistics) use those of the batch again from then on. May be called several
 * times, for one part of the network after another. A state that was saved before or after that
 * epoch is resumed accordingly. On several ranks, add it on all of them. Errors: also EARG (epoch <
 * 1), ENOTFOUND (no parameter that matches is frozen), ESTATE (the optimizer is sharded). */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_unfreeze(ctn_trainer *tr, int64_t epoch,
                                                      const char *pattern, int statistics);
/* Keep a moving average of the parameters of net: avg = rate avg + (1 - rate) w after every step.
 * Evaluators use the average. If there is a result folder, the average is saved as
 * out/average.safetensors when a run ends or is stopped. rate 0: 0.999. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_average(ctn_trainer *tr, double rate);
/* Stochastic weight averaging: keep the mean of the parameters of net after step `start` and after
 * every `every` steps from then on, with equal weights. Until then the average is the parameters
 * themselves. Otherwise like ctn_extend_average, of which a trainer has at most one. Running
 * statistics are not averaged. A learning rate that stays high suits it: a schedule such as cosine
 * with end > 0, which holds its last value. every 0: 1. Errors: EARG, ESTATE, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_swa(ctn_trainer *tr, int64_t start, int64_t every);

/* Save the weights of net as out/file (every epoch), and once more when a run ends or is
 * stopped. With CTN_WHEN_MAX or CTN_WHEN_MIN, only the best weights are saved; if there is a
 * moving average, these are the averaged ones. file NULL: "weights.safetensors". Where
 * ctn_extend_state saves states too, the file is synced before the next state is. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_weights(ctn_trainer *tr, const ctn_trigger *when,
                                                     const char *file);
/* Compare the parameters of all ranks, which must be the same bit by bit (every 1000 iterations).
 * Faulty memory or a faulty network can make them differ without any other sign. Costs one hash of
 * the parameters and one small message. If they differ, the run fails on every rank with ESTATE and
 * a message that names the iteration, the parameter, and the ranks that have another value than
 * most. Has no effect on one rank. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_replicas(ctn_trainer *tr, const ctn_trigger *when);

/* Save the complete state in the folder out/state as ctn_trainer_save does (every epoch), and once
 * more when a run ends or is stopped. The training waits only while the state is copied; threads
 * write the copy. Whether the folder can be written to is checked before the first step. A later
 * failure, such as a full disk, is reported as a warning and the training goes on; only the last
 * state of a run must succeed. Its priority is 0, so it runs after all the extensions above. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_state(ctn_trainer *tr, const ctn_trigger *when);

/* ---- save and resume ------------------------------------------------------------------------ */

/* Save everything that influences the rest of the training run: parameters, optimizer, loss scale,
 * counters of the random numbers, sampler position, triggers, extensions, tuning decisions, log
 * position. The folder `dir` is created if missing and keeps the last two states, numbered. Each
 * state is written under a temporary name, synced, read back and renamed, so an interrupted save
 * never damages the previous state. Call it between steps. If an extension calls it, a resumed run
 * does not call the extensions of lower priority again for this step. Collective on several ranks:
 * the ranks divide the arrays among them if all of them see the folder; otherwise rank 0 writes
 * everything. Errors: EIO, ENOMEM, ESTATE (no net, or a scope is open), EARG (another part of a
 * split communicator saves in dir). */
CTN_API CTN_MUST_CHECK ctn_status ctn_trainer_save(ctn_trainer *tr, const char *dir);
/* Resume from the newest complete state in dir. A damaged state is skipped with a warning that
 * names it. Call it after all extensions have been added and before ctn_trainer_run. On the same
 * machine with the same number of threads and ranks, the results are bit-identical to those
 * without the interruption, even in the middle of an epoch; on another machine, or with another
 * version or thread count, there is a warning (catena/log.h). A state that does not match is
 * rejected before anything is changed, but a disk error after that leaves the trainer partly
 * changed.
 * Collective on several ranks: the ranks that see dir divide the files among them and send each
 * other the arrays; either all ranks succeed, or all fail with the same message. The number of
 * ranks may differ from when the state was saved as long as ranks x batch x accumulate is the
 * same; the rest of the epoch is then redistributed, each sample once. Seeds (of the context and
 * the sampler) are rank 0's from the state, plus the difference that the rank's own seed had
 * from rank 0's before the call.
 * Errors: ENOTFOUND (no state, or it lacks something that this trainer has), EFORMAT, EIO,
 * ESHAPE, ESTATE (saved with another setup; the message says what differs), EARG (the ranks
 * differ; the message says which and in what), EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_trainer_load(ctn_trainer *tr, const char *dir);

/* The last two states of a training, kept in memory, from which it continues after ranks were lost.
 * Make one before the trainer and keep it until the training has ended. After a run has failed and
 * ctn_comm_lost is true: make a communicator of the ranks that are left (ctn_comm_shrink), free the
 * trainer, its loader and its optimizer, make them again for the new communicator, with the same
 * number of samples per step (ctn_loader_opt.total), and call ctn_trainer_recall. */
typedef struct ctn_memory ctn_memory;
/* Result: owned, ctn_memory_free. Errors: ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_memory_new(ctn_memory **out);
CTN_API void ctn_memory_free(ctn_memory *m); /* NULL is allowed */
/* Copy the state to m at the beginning of a run and later (every 10 seconds). With a sharded
 * optimizer, each rank also keeps a copy of the part of the rank before it, so that the loss of any
 * rank, or of several that are not neighbours, loses nothing. Memory: two copies of what a rank
 * has. Lives as long as the trainer: m. Collective. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_memory(ctn_trainer *tr, const ctn_trigger *when,
                                                    ctn_memory *m);
/* Continue from the newest state that the memories of all ranks have, as ctn_trainer_load does from
 * a file. Seeds are derived from those of the lowest rank that is left. Collective. Errors:
 * ENOTFOUND (a rank has no state, or the part of a lost rank is lost too; then load a saved state),
 * ESTATE, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_trainer_recall(ctn_trainer *tr, ctn_memory *m);

/* ---- looking at saved states ----------------------------------------------------------------- */

/* These functions read the states that ctn_trainer_save and ctn_extend_state have written, without
 * a trainer. dir is the folder of the numbered states, path the folder of one of them. They may be
 * called while a training saves states there; a state that the training removes meanwhile looks
 * damaged or missing. */

/* One state. Numbers are -1 if problem is not NULL. */
typedef struct {
    size_t struct_size;
    int64_t number;   /* the name of its folder; the newest state has the largest one */
    const char *path; /* its folder */
    int64_t iteration, epoch, samples; /* done when it was saved; samples of all ranks */
    int64_t ranks;                     /* that saved it */
    int64_t bytes, files, arrays;      /* a slice of a sharded array counts as an array */
    /* Why the list of its files, or its counters, cannot be read; NULL: they could. The other files
     * are not compared: see ctn_state_verify. */
    const char *problem;
} ctn_state_info;
/* Strings are borrowed during the call. */
typedef ctn_status (*ctn_state_info_fn)(void *user, const ctn_state_info *info);
/* Call fn for each state in dir, oldest first, until a call does not return CTN_OK. Errors:
 * ENOTFOUND (there is no such folder), ENOMEM, what fn returns. */
CTN_API CTN_MUST_CHECK ctn_status ctn_states_visit(const char *dir, ctn_state_info_fn fn,
                                                   void *user);

/* text: one line without its end, borrowed during the call. */
typedef ctn_status (*ctn_text_fn)(void *user, const char *text);
/* Compare the sizes and hashes of all files of a state with those that were saved. Calls fn with
 * one line for each damage. fn NULL: only the status matters. Errors: EFORMAT (damaged), ENOTFOUND
 * (there is no such folder), ENOMEM, what fn returns. */
CTN_API CTN_MUST_CHECK ctn_status ctn_state_verify(const char *path, ctn_text_fn fn, void *user);

/* One array of a state. */
typedef struct {
    size_t struct_size;
    const char *name; /* "net.0.weight"; a slice of a sharded array: "optim.m[0:500]" */
    ctn_dtype dtype;
    int ndim;
    int64_t shape[CTN_MAX_DIMS];
    const char *hash; /* of its bytes, 32 hexadecimal digits */
} ctn_state_array;
/* Strings are borrowed during the call. */
typedef ctn_status (*ctn_state_array_fn)(void *user, const ctn_state_array *array);
/* Call fn for each array of a state, sorted by name, until a call does not return CTN_OK. The
 * values are not read. Two states whose arrays have the same hashes continue with the same bits.
 * Errors: EIO or EFORMAT (the list of the arrays is missing or damaged), ENOTFOUND (there is no
 * such folder), ENOMEM, what fn returns. */
CTN_API CTN_MUST_CHECK ctn_status ctn_state_arrays(const char *path, ctn_state_array_fn fn,
                                                   void *user);

/* Remove all states in dir but the newest `keep`. If all of these are damaged, the newest intact
 * one before them stays too. Errors: EARG (keep < 1), ENOTFOUND (there is no such folder), EIO,
 * ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_states_prune(const char *dir, int64_t keep);

/* Write the parameters and states of the net of a saved state as one file that ctn_weights_load
 * reads. Errors: EFORMAT (damaged), ENOTFOUND (there is no such folder, or it has no net), EIO,
 * ENOMEM, EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_state_export(const char *path, const char *file);

#ifdef __cplusplus
}
#endif
#endif
