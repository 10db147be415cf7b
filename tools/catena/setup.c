/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the optimizer, the schedule and the trainer with its extensions from the options of
 * `catena train`. Values of "auto" and defaults that depend on the network are chosen here and
 * recorded in the configuration.
 */
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "finetune.h"
#include "training.h"

/* ---- the optimizer --------------------------------------------------------------------------- */

/* Samples of all ranks in a batch. */
static int64_t whole_batch(const args *a)
{
    const int64_t total = args_int(a, "total-batch");
    return total > 0 ? total : args_int(a, "batch") * a->job->size;
}

static void settle_optimizer(args *a, const task *t)
{
    if (args_is(a, "optimizer", "auto"))
        args_settle(a, "optimizer", "%s",
                    t->net_is == NET_IMAGE    ? "sgd"
                    : t->net_is == NET_TOKENS ? "adamw"
                                              : "adam");
    optimizer_defaults(a, (double)whole_batch(a) * fmax(1, (double)args_int(a, "accumulate")));
}

ctn_status setup_optimizer(training *r)
{
    args *a = r->t.a;
    settle_optimizer(a, &r->t);
    CTN_TRY(optimizer_new(&r->optim, a, ctn_params(r->t.net)));
    CTN_TRY(finetune_rates(a, r->t.net, r->optim));
    if (args_is(a, "precision", "f16") || (a->job->size > 1 && args_is(a, "wire", "f16")))
        CTN_TRY(ctn_optim_set_loss_scale(r->optim, CTN_OPT(ctn_loss_scale_opt, .dynamic = 1)));
    ctn_optim_set_clip(r->optim, args_real(a, "clip"));
    ctn_optim_set_clip_value(r->optim, args_real(a, "clip-value"));
    ctn_optim_set_lasso(r->optim, args_real(a, "lasso"));
    return distribute_optimizer(r);
}

/* ---- the schedule ---------------------------------------------------------------------------- */

/* Number of optimizer steps in this number of epochs. */
static int64_t steps_of(const training *r, double epochs)
{
    const args *a = r->t.a;
    const double share = (double)ctn_dataset_count(r->t.set[0]) / (double)whole_batch(a);
    const double batches = drops_last(a) ? floor(share) : ceil(share);
    int64_t accumulate = args_int(a, "accumulate");
    return llround(epochs * ceil(batches / (double)(accumulate > 1 ? accumulate : 1)));
}

static ctn_sched_kind sched_kind(const char *name)
{
    static const struct {
        const char *name;
        ctn_sched_kind kind;
    } kinds[] = {
        {"step", CTN_SCHED_STEP},
        {"multistep", CTN_SCHED_MULTISTEP},
        {"inverse", CTN_SCHED_INVERSE},
        {"exponential", CTN_SCHED_EXPONENTIAL},
        {"polynomial", CTN_SCHED_POLYNOMIAL},
        {"linear", CTN_SCHED_LINEAR},
        {"cosine", CTN_SCHED_COSINE},
        {"one-cycle", CTN_SCHED_ONE_CYCLE},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0) return kinds[i].kind;
    return CTN_SCHED_CONSTANT;
}

static ctn_status add_schedule(training *r)
{
    const args *a = r->t.a;
    double epoch[CTN_SCHED_AT], gamma = args_real(a, "gamma");
    double per_epoch = (double)steps_of(r, 1);
    ctn_sched_opt s = {.struct_size = sizeof s,
                       .kind = sched_kind(args_text(a, "schedule")),
                       .warmup = steps_of(r, args_real(a, "warmup")),
                       .every = steps_of(r, args_real(a, "every")),
                       .gamma = gamma,
                       .end = args_real(a, "lr-end"),
                       .power = args_real(a, "power")};
    if (s.kind == CTN_SCHED_EXPONENTIAL) s.gamma = pow(gamma, 1 / per_epoch);
    if (s.kind == CTN_SCHED_INVERSE) s.gamma = gamma / per_epoch;
    if (s.kind == CTN_SCHED_MULTISTEP) {
        int n = args_list(a, "milestones", CTN_SCHED_AT, epoch);
        if (n == 0) return ctn_fail(CTN_EARG, "--schedule multistep needs --milestones");
        for (int i = 0; i < n; i++) s.at[i] = steps_of(r, epoch[i]);
    }
    if (s.kind == CTN_SCHED_CONSTANT && s.warmup == 0) return CTN_OK;
    return ctn_extend_schedule(r->trainer, "lr", &s);
}

/* ---- extensions ------------------------------------------------------------------------------ */

/* The library's progress bars, which move the cursor; it has cleaned the names in them. */
static void show(void *user, const char *text)
{
    (void)user;
    fwrite(text, 1, strlen(text), stderr);
    fflush(stderr);
}

static int columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

static ctn_status add_shown(training *r, const ctn_trigger *log)
{
    args *a = r->t.a;
    ctn_show_opt s = {.struct_size = sizeof s,
                      .write = show,
                      .terminal = isatty(STDERR_FILENO) ? 1 : -1,
                      .columns = columns()};
    if (args_flag(a, "quiet") || a->job->rank != 0) return CTN_OK;
    CTN_TRY(ctn_extend_print(r->trainer, log, NULL, &s));
    return ctn_extend_progress(r->trainer, NULL, &s);
}

ctn_status setup_metric(training *r)
{
    args *a = r->t.a;
    const char *name = args_text(a, "metric");
    if (!r->t.loader[1]) return CTN_OK;
    if (!name[0]) {
        bool accuracy = r->t.classify && r->t.loss == task_loss;
        args_settle(a, "metric", accuracy ? "val/accuracy" : "val/loss");
        name = args_text(a, "metric");
    }
    char first[120];
    metric_first(name, first, sizeof first);
    snprintf(r->metric, sizeof r->metric, "%s%s", strchr(first, '/') ? "" : "val/", first);
    const int larger = metric_larger(name);
    r->larger = larger > 0;
    if (r->t.loss == task_loss && metric_larger(first) >= 0 && metric_larger(first) != larger)
        return ctn_fail(CTN_EARG, "--metric: %s values of %s are better",
                        larger ? "small" : "large", first);
    if (larger >= 0) return CTN_OK;
    return ctn_fail(CTN_EARG,
                    "--metric: are small or large values of %s better? Write %s:min or %s:max",
                    first, first, first);
}

/* Extensions that depend on validation data. */
static ctn_status add_validated(training *r)
{
    const args *a = r->t.a;
    ctn_patience_opt p = {.struct_size = sizeof p, .key = r->metric, .larger = r->larger};
    if (!r->t.loader[1]) {
        if (!args_is(a, "schedule", "plateau") && args_int(a, "early-stop") == 0) return CTN_OK;
        return ctn_fail(CTN_EARG,
                        "--schedule plateau and --early-stop need validation data: use --val "
                        "or --val-share");
    }
    ctn_trigger steps = {.kind = CTN_EVERY_ITERATIONS, .n = (double)args_int(a, "eval-iterations")};
    CTN_TRY(ctn_extend_evaluator(r->trainer, steps.n > 0 ? &steps : NULL, r->t.loader[1], r->t.loss,
                                 r->t.loss_self));
    const ctn_trigger best = {.kind = r->larger ? CTN_WHEN_MAX : CTN_WHEN_MIN, .key = r->metric};
    if (args_int(a, "lora") > 0) CTN_TRY(adapters_best(r, &best));
    else CTN_TRY(ctn_extend_weights(r->trainer, &best, "best.safetensors"));
    if (args_is(a, "schedule", "plateau")) {
        p.patience = args_int(a, "patience");
        p.factor = args_real(a, "gamma");
        CTN_TRY(ctn_extend_plateau(r->trainer, NULL, "lr", &p));
    }
    p.patience = args_int(a, "early-stop");
    return p.patience > 0 ? ctn_extend_early_stop(r->trainer, NULL, &p) : CTN_OK;
}

/* Extensions that watch the loss and the gradients. */
static ctn_status add_guards(training *r)
{
    const args *a = r->t.a;
    const bool skip = args_is(a, "on-nonfinite", "skip");
    const bool rewind = args_is(a, "on-nonfinite", "rewind");
    CTN_TRY(ctn_extend_on_nonfinite(r->trainer, NULL,
                                    CTN_OPT(ctn_nonfinite_opt,
                                            .policy = skip     ? CTN_NONFINITE_SKIP
                                                      : rewind ? CTN_NONFINITE_REWIND
                                                               : CTN_NONFINITE_STOP,
                                            .max_rewinds = args_int(a, "max-rewinds"),
                                            .factor = args_real(a, "rewind-factor"))));
    /* Also if nothing is to be reported, so that a resumed run may decide otherwise. */
    const double spike = args_real(a, "spike");
    return ctn_extend_spikes(r->trainer,
                             CTN_OPT(ctn_spike_opt, .deviations = spike > 0 ? spike : 1e300));
}

static double learning_rate(void *self, ctn_trainer *tr)
{
    (void)self;
    return ctn_optim_lr(ctn_trainer_optim(tr));
}

/* Seconds between saving at the ends of short epochs. */
enum { SAVES_APART = 5 };

static ctn_status add_files(training *r, const ctn_trigger *log)
{
    static const char *const curves[] = {"train/loss", "val/loss", NULL};
    args *a = r->t.a;
    const double share = args_real(a, "save-share");
    const double minutes = args_real(a, "save-minutes");
    const double steps = (double)args_int(a, "save-iterations");
    const ctn_trigger epochs = {.kind = CTN_EVERY_EPOCHS, .n = 1, .apart = SAVES_APART};
    CTN_TRY(ctn_extend_observe(r->trainer, log, "lr", learning_rate, NULL));
    CTN_TRY(ctn_extend_log(r->trainer, log, "log.jsonl"));
    CTN_TRY(ctn_extend_plot(r->trainer, NULL, curves, "loss.svg"));
    if (args_flag(a, "tensorboard"))
        CTN_TRY(ctn_extend_tensorboard(r->trainer, NULL, "tensorboard"));
    CTN_TRY(overview_report(r));
    if (args_int(a, "lora") == 0) /* otherwise adapters_write does it */
        CTN_TRY(ctn_extend_weights(r->trainer, &epochs, "weights.safetensors"));
    if (a->job->size > 1) CTN_TRY(ctn_extend_replicas(r->trainer, NULL));
    return ctn_extend_state(r->trainer, share > 0 ? CTN_TRIGGER(CTN_SHARE_OF_TIME, .n = share)
                                        : minutes > 0
                                            ? CTN_TRIGGER(CTN_EVERY_SECONDS, .n = 60 * minutes)
                                        : steps > 0 ? CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = steps)
                                                    : &epochs);
}

static ctn_status look_for_slow(void *self, ctn_trainer *tr)
{
    (void)tr;
    int64_t n;
    return slow_kernels(self, &n);
}

ctn_status setup_trainer(training *r)
{
    args *a = r->t.a;
    int64_t every = args_int(a, "log-iterations");
    ctn_trigger steps = {.kind = CTN_EVERY_ITERATIONS, .n = (double)every};
    const ctn_trigger *log = every > 0 ? &steps : NULL;
    CTN_TRY(
        ctn_trainer_new(&r->trainer, r->optim, r->t.loader[0], r->t.loss, r->t.loss_self,
                        CTN_OPT(ctn_trainer_opt, .net = r->t.net, .epochs = args_int(a, "epochs"),
                                .iterations = args_int(a, "iterations"),
                                .seconds = 3600 * args_real(a, "hours"),
                                .accumulate = args_int(a, "accumulate"), .out = r->out)));
    CTN_TRY(add_schedule(r));
    if (args_int(a, "unfreeze-at") > 0)
        CTN_TRY(ctn_extend_unfreeze(r->trainer, args_int(a, "unfreeze-at"), NULL,
                                    args_is(a, "freeze-statistics", "auto")));
    if (args_real(a, "ema") > 0) CTN_TRY(ctn_extend_average(r->trainer, args_real(a, "ema")));
    CTN_TRY(add_validated(r));
    CTN_TRY(add_guards(r));
    CTN_TRY(add_files(r, log));
    CTN_TRY(add_shown(r, log));
    CTN_TRY(ctn_trainer_extend(r->trainer, &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                            .name = "slow-kernels",
                                                            .priority = CTN_PRIORITY_SHOW,
                                                            .trigger = {.kind = CTN_ONCE, .n = 1},
                                                            .call = look_for_slow,
                                                            .self = r->t.ctx,
                                                            .rank0_only = 1}));
    CTN_TRY(distribute_trainer(r, log));
    return result_extend(r);
}
