/* SPDX-License-Identifier: Apache-2.0
 *
 * Every pair of features that can meet in one training. A small network is trained with both of
 * them, and three things must hold:
 *
 *   planned = eager   losses and weights agree
 *   resumed = whole   a run that is stopped, saved, loaded and continued has the same bits
 *   ranks             the losses on one rank and on several agree
 *
 * Or the library refuses the pair before the first step, on every rank, with a message. What is
 * refused is in docs/pairs.md, and a pair that behaves differently from that page is a failure.
 *
 *   test_pairs                 a selection of pairs
 *   test_pairs all             all of them
 *   test_pairs write FILE      all of them, and writes the page
 *   test_pairs FEATURE [FEATURE]   the pairs of one feature, or one pair with its values
 *   test_pairs random COUNT [SEED] trainings with up to eight features, 1 to 4 ranks, random
 *                                  numbers of samples and random places to stop; COUNT 1 prints
 *                                  the values
 */
#include "unit/ranks.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/datasets.h>
#include <catena/train.h>

#include "support/folder.h"
#include "support/machine.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

enum {
    SAMPLES = 44,
    MOST_SAMPLES = 60,
    WIDTH = 6,
    HIDDEN = 8,
    CLASSES = 3,
    STEP = 12,
    EVAL = 10,
    BAD = 4,
    STOP = 6
};
enum { VALUES = 400 }; /* maximum number of saved values of the network */

/* ---- features -------------------------------------------------------------------------------- */

/* What a training consists of. All zero: plain SGD on one rank. */
typedef struct {
    int optim; /* index of optims[] */
    int precision, ranks, shard, when, progress, complete, exact, wire, bucket;
    int norm, sync, frozen_statistics, dropout, recompute, lora, freeze, unfreeze, two, tied;
    int clip, clip_value, lasso, noise, scale, lr_scale, decay_group, schedule;
    int average, plateau, early_stop, nonfinite, spikes, statistics, replicas, state, memory;
    int accumulate, drop_last, threads, weights, log;
    int samples, stop; /* 0: SAMPLES, STOP */
} setup;

typedef ctn_status (*optim_fn)(ctn_optim **o, ctn_vars vars);
#define OPTIM(name, type)                                                           \
    static ctn_status make_##name(ctn_optim **o, ctn_vars vars)                     \
    {                                                                               \
        return ctn_##name##_new(o, vars, CTN_OPT(ctn_##type##_opt, .decay = 1e-3)); \
    }
OPTIM(sgd, sgd)
OPTIM(adam, adam)
OPTIM(adamw, adam)
OPTIM(rmsprop, rmsprop)
OPTIM(adagrad, adagrad)
OPTIM(adadelta, adadelta)
OPTIM(adamax, adamax)
OPTIM(nadam, nadam)
OPTIM(radam, radam)
OPTIM(lion, lion)
OPTIM(lamb, lamb)
OPTIM(lars, lars)
OPTIM(adabound, adabound)
OPTIM(smorms3, smorms3)
OPTIM(msvag, msvag)
OPTIM(adafactor, adafactor)
static ctn_status make_momentum(ctn_optim **o, ctn_vars vars)
{
    return ctn_sgd_new(o, vars, CTN_OPT(ctn_sgd_opt, .momentum = 0.9, .nesterov = 1));
}
static const optim_fn optims[] = {make_sgd,      make_momentum, make_adam,     make_adamw,
                                  make_rmsprop,  make_adagrad,  make_adadelta, make_adamax,
                                  make_nadam,    make_radam,    make_lion,     make_lamb,
                                  make_lars,     make_adabound, make_smorms3,  make_msvag,
                                  make_adafactor};

/* Features with the same letter are alternatives. A feature sets one or two fields. */
typedef struct {
    const char *name;
    char kind;
    size_t at;
    int value;
    size_t also;
    int its;
} feature;
#define SET(field, number) .at = offsetof(setup, field), .value = number
#define ALSO(field, number) .also = offsetof(setup, field), .its = number
static const feature features[] = {
    {"SGD with momentum", 'o', SET(optim, 1)},
    {"Adam", 'o', SET(optim, 2)},
    {"AdamW", 'o', SET(optim, 3)},
    {"RMSprop", 'o', SET(optim, 4)},
    {"Adagrad", 'o', SET(optim, 5)},
    {"Adadelta", 'o', SET(optim, 6)},
    {"Adamax", 'o', SET(optim, 7)},
    {"NAdam", 'o', SET(optim, 8)},
    {"RAdam", 'o', SET(optim, 9)},
    {"Lion", 'o', SET(optim, 10)},
    {"LAMB", 'o', SET(optim, 11)},
    {"LARS", 'o', SET(optim, 12)},
    {"AdaBound", 'o', SET(optim, 13)},
    {"SMORMS3", 'o', SET(optim, 14)},
    {"M-SVAG", 'o', SET(optim, 15)},
    {"Adafactor", 'o', SET(optim, 16)},
    {"a second optimizer", 0, SET(two, 1)},
    {"f64", 'p', SET(precision, CTN_PRECISION_F64)},
    {"bf16", 'p', SET(precision, CTN_PRECISION_BF16)},
    {"f16", 'p', SET(precision, CTN_PRECISION_F16)},
    {"clipping by norm", 0, SET(clip, 1)},
    {"clipping by value", 0, SET(clip_value, 1)},
    {"L1 decay", 0, SET(lasso, 1)},
    {"gradient noise", 0, SET(noise, 1)},
    {"static loss scale", 's', SET(scale, 1)},
    {"dynamic loss scale", 's', SET(scale, 2)},
    {"rates of groups", 0, SET(lr_scale, 1)},
    {"decay of groups", 0, SET(decay_group, 1)},
    {"schedule with warm-up", 0, SET(schedule, 1)},
    {"reduce on plateau", 0, SET(plateau, 1)},
    {"early stopping", 0, SET(early_stop, 1)},
    {"moving average", 'a', SET(average, 1)},
    {"stochastic weight averaging", 'a', SET(average, 2)},
    {"frozen layer", 'f', SET(freeze, 1)},
    {"unfreezing", 'f', SET(freeze, 1), ALSO(unfreeze, 1)},
    {"LoRA", 'f', SET(lora, 1)},
    {"LoRA on bf16 weights", 'f', SET(lora, 2)},
    {"recomputation", 0, SET(recompute, 1)},
    {"gradient accumulation", 0, SET(accumulate, 2)},
    {"batch normalisation", 'n', SET(norm, 1)},
    {"synchronised batch normalisation", 'n', SET(norm, 1), ALSO(sync, 1)},
    {"frozen statistics", 'n', SET(norm, 1), ALSO(frozen_statistics, 1)},
    {"dropout", 0, SET(dropout, 1)},
    {"tied parameters", 0, SET(tied, 1)},
    {"skipping bad steps", 'b', SET(nonfinite, 1)},
    {"rewinding after bad steps", 'b', SET(nonfinite, 2), ALSO(state, 1)},
    {"reports of spikes", 0, SET(spikes, 1)},
    {"parameter statistics", 0, SET(statistics, 1)},
    {"states during the run", 0, SET(state, 1)},
    {"states in memory", 0, SET(memory, 1)},
    {"best weights", 0, SET(weights, 1)},
    {"log every 3 steps", 0, SET(log, 1)},
    {"complete batches only", 0, SET(drop_last, 1)},
    {"loader threads", 0, SET(threads, 1)},
    {"2 ranks", 'r', SET(ranks, 2)},
    {"4 ranks", 'r', SET(ranks, 4)},
    {"sharded updates", 0, SET(shard, 1), ALSO(ranks, 2)},
    {"exact sums", 0, SET(exact, 1), ALSO(ranks, 2)},
    {"bf16 on the wire", 'w', SET(wire, CTN_BF16), ALSO(ranks, 2)},
    {"f16 on the wire", 'w', SET(wire, CTN_F16), ALSO(ranks, 2)},
    {"small buckets", 0, SET(bucket, 64), ALSO(ranks, 2)},
    {"exchange after backward", 'x', SET(when, CTN_DIST_AFTER), ALSO(ranks, 2)},
    {"exchange of each parameter", 'x', SET(when, CTN_DIST_PER_PARAMETER), ALSO(ranks, 2)},
    {"complete steps", 0, SET(complete, 1), ALSO(ranks, 2)},
    {"progress thread", 0, SET(progress, CTN_DIST_THREAD), ALSO(ranks, 2)},
    {"comparison of replicas", 0, SET(replicas, 1), ALSO(ranks, 2)},
};
enum { FEATURES = sizeof features / sizeof *features };

static void put(setup *s, size_t at, int value)
{
    memcpy((char *)s + at, &value, sizeof value);
}

static void apply(setup *s, const feature *f)
{
    put(s, f->at, f->value);
    if (f->its) put(s, f->also, f->its);
}

/* ---- one training ---------------------------------------------------------------------------- */

/* The results of one rank. */
typedef struct {
    ctn_status st;
    bool refused; /* before the first step */
    char why[300];
    int64_t iterations;
    double loss, val; /* train/loss and val/loss at the end */
    int n;            /* values of the network, as double, exact */
    double w[VALUES];
} result;

typedef struct {
    const setup *s;
    const char *dir; /* states and other files */
    int stop;        /* stop after this iteration, and save; 0: run to the end */
    bool load;
    atomic_bool fired; /* the one bad step of this life has happened */
    result of[ROOM];
} life;

typedef struct {
    ctn_context *ctx;
    ctn_module *net;
    ctn_trainer *tr;
    life *l;
    int rank;
} subject;

typedef struct {
    subject self;
    ctn_dataset *data, *eval_data;
    ctn_loader *loader, *eval;
    ctn_optim *optim, *second;
    ctn_memory *memory;
    ctn_trainer *tr;
} training;

static float images[MOST_SAMPLES][WIDTH];
static int64_t labels[MOST_SAMPLES];

static void fill(void)
{
    for (int i = 0; i < MOST_SAMPLES; i++) {
        for (int k = 0; k < WIDTH; k++)
            images[i][k] = (float)((i * 37 + k * 101) * 7919 % 257 - 128) / 128;
        labels[i] = (i * 7 + i / 3) % CLASSES;
    }
}

/* With a feature that deals with bad steps, one step of rank 0 has a loss that is NaN. */
static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    subject *x = self;
    ctn_tensor *y = ctn_call(x->net, ctn_step_input(s, 0));
    ctn_tensor *loss = ctn_softmax_cross_entropy(y, ctn_step_input(s, 1));
    if (!x->l->s->nonfinite || !ctn_context_training(x->ctx)) return loss;
    ctn_progress p;
    ctn_trainer_progress(x->tr, &p);
    const bool bad = x->rank == 0 && p.iteration == BAD && !atomic_exchange(&x->l->fired, true);
    return ctn_mul(loss,
                   ctn_cast(ctn_number(x->ctx, bad ? NAN : 1), ctn_context_float_type(x->ctx)));
}

static ctn_status open_data(training *t, const job *j, const setup *s)
{
    const ctn_field field[] = {{.dtype = CTN_F32, .ndim = 1, .shape = {WIDTH}}, {.dtype = CTN_I64}};
    const void *const data[] = {images, labels};
    ctn_sampler *order = NULL;
    const int samples = s->samples ? s->samples : SAMPLES;
    CTN_TRY(ctn_arrays_open(&t->data, samples, 2, field, data));
    CTN_TRY(ctn_sampler_shuffled(&order, samples, 3));
    ctn_status st = ctn_sampler_shard(order, j->rank, j->size);
    if (st == CTN_OK)
        st = ctn_loader_new(&t->loader, t->data, order,
                            CTN_OPT(ctn_loader_opt, .batch = STEP / j->size, .threads = s->threads,
                                    .drop_last = s->drop_last, .total = s->exact ? STEP : 0,
                                    .block = s->exact ? STEP / 4 : 0));
    ctn_sampler_free(order);
    CTN_TRY(st);
    CTN_TRY(ctn_arrays_open(&t->eval_data, EVAL, 2, field, data));
    CTN_TRY(ctn_sampler_sequential(&order, EVAL));
    st = ctn_sampler_shard(order, j->rank, j->size);
    if (st == CTN_OK)
        st = ctn_loader_new(&t->eval, t->eval_data, order, CTN_OPT(ctn_loader_opt, .batch = 4));
    ctn_sampler_free(order);
    return st;
}

static ctn_status open_net(training *t, const job *j, const setup *s)
{
    ctn_module *m[6] = {0};
    int n = 0;
    /* The gradient of a bias before a batch normalisation is 0, and its rounding errors would train
     * it. */
    CTN_TRY(ctn_linear_new(&m[n++], j->ctx, WIDTH, HIDDEN,
                           CTN_OPT(ctn_linear_opt, .no_bias = s->norm)));
    if (s->norm) CTN_TRY(ctn_batch_norm_new(&m[n++], j->ctx, HIDDEN, NULL));
    CTN_TRY(ctn_activation_new(&m[n++], j->ctx, ctn_tanh_at));
    if (s->dropout) CTN_TRY(ctn_dropout_new(&m[n++], j->ctx, 0.25));
    CTN_TRY(ctn_linear_new(&m[n++], j->ctx, HIDDEN, CLASSES, NULL));
    CTN_TRY(ctn_sequential_new(&t->self.net, j->ctx, n, m));
    if (s->recompute) CTN_TRY(ctn_module_set_recompute(m[0], 1));
    if (s->freeze && ctn_module_set_trainable(t->self.net, "0", 0) < 0) return CTN_EARG;
    if (s->frozen_statistics && ctn_module_freeze_statistics(t->self.net, "1", 1) < 0)
        return CTN_EARG;
    if (s->lora)
        CTN_TRY(ctn_lora_add(t->self.net, CTN_OPT(ctn_lora_opt, .rank = 2,
                                                  .base = s->lora == 2 ? CTN_BF16 : 0)));
    return s->sync && j->size > 1 ? ctn_dist_sync_batch_norm(t->self.net, j->c) : CTN_OK;
}

static ctn_status set_optim(ctn_optim *o, const setup *s)
{
    const double stronger = 0.01;
    if (s->clip) ctn_optim_set_clip(o, 0.3);
    if (s->clip_value) ctn_optim_set_clip_value(o, 0.05);
    if (s->lasso) ctn_optim_set_lasso(o, 1e-3);
    if (s->noise) ctn_optim_set_noise(o, 1e-4, 0.55, 9);
    if (s->scale)
        CTN_TRY(ctn_optim_set_loss_scale(o, CTN_OPT(ctn_loss_scale_opt, .scale = 1024,
                                                    .dynamic = s->scale == 2, .interval = 3)));
    if (s->lr_scale && ctn_optim_group(o, "*.weight", CTN_OPT(ctn_group_opt, .lr_scale = 0.5)) < 0)
        return CTN_EARG;
    if (s->decay_group &&
        ctn_optim_group(o, "*.weight", CTN_OPT(ctn_group_opt, .decay = &stronger)) < 0)
        return CTN_EARG;
    return CTN_OK;
}

/* Exact sums are a setting of several ranks, of which there may be one. */
static bool spread(const job *j, const setup *s)
{
    return j->size > 1 || s->exact;
}

/* Optimizers of the whole network, or one of its last layer and one of the rest. */
static ctn_status open_optims(training *t, const job *j, const setup *s)
{
    const ctn_vars all = ctn_params(t->self.net);
    const int head = s->two ? 2 : 0; /* parameters that belong to the second optimizer */
    const ctn_vars first = {all.n - head, all.var, all.name};
    const ctn_vars last = {head, all.var + first.n, all.name + first.n};
    CTN_TRY(optims[s->optim](&t->optim, first));
    CTN_TRY(set_optim(t->optim, s));
    if (s->two) CTN_TRY(make_adam(&t->second, last));
    if (!spread(j, s)) return CTN_OK;
    const ctn_dist_opt opt = {.struct_size = sizeof opt,
                              .shard = s->shard,
                              .when = s->when,
                              .progress = s->progress,
                              .defer = s->complete ? CTN_DIST_COMPLETE : 0,
                              .exact = s->exact ? 4 : 0,
                              .bucket = s->bucket};
    CTN_TRY(ctn_dist_optim(t->optim, j->c, &opt));
    return s->two ? ctn_dist_optim(t->second, j->c, &opt) : CTN_OK;
}

static ctn_status extend(training *t, const setup *s)
{
    ctn_trainer *tr = t->tr;
    const ctn_trigger *often = CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 2);
    if (s->average == 1) CTN_TRY(ctn_extend_average(tr, 0.8));
    if (s->average == 2) CTN_TRY(ctn_extend_swa(tr, 3, 2));
    if (s->schedule)
        CTN_TRY(ctn_extend_schedule(tr, "lr",
                                    CTN_OPT(ctn_sched_opt, .kind = CTN_SCHED_COSINE, .warmup = 2)));
    if (s->plateau)
        CTN_TRY(ctn_extend_plateau(tr, NULL, "lr",
                                   CTN_OPT(ctn_patience_opt, .key = "val/loss", .patience = 1,
                                           .factor = 0.5, .difference = 0.5)));
    if (s->early_stop)
        CTN_TRY(ctn_extend_early_stop(tr, NULL,
                                      CTN_OPT(ctn_patience_opt, .key = "val/loss", .patience = 3,
                                              .difference = 0.9)));
    if (s->nonfinite)
        CTN_TRY(ctn_extend_on_nonfinite(tr, NULL,
                                        CTN_OPT(ctn_nonfinite_opt,
                                                .policy = s->nonfinite == 1 ? CTN_NONFINITE_SKIP
                                                                            : CTN_NONFINITE_REWIND,
                                                .max_rewinds = 20)));
    if (s->unfreeze) CTN_TRY(ctn_extend_unfreeze(tr, 1, NULL, 1));
    if (s->spikes) CTN_TRY(ctn_extend_spikes(tr, CTN_OPT(ctn_spike_opt, .window = 2)));
    if (s->statistics) CTN_TRY(ctn_extend_param_stats(tr, often, NULL));
    if (s->replicas) CTN_TRY(ctn_extend_replicas(tr, often));
    if (s->weights)
        CTN_TRY(ctn_extend_weights(tr, CTN_TRIGGER(CTN_WHEN_MIN, .key = "val/loss"),
                                   "best.safetensors"));
    if (s->state) CTN_TRY(ctn_extend_state(tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 3)));
    if (s->memory) CTN_TRY(ctn_extend_memory(tr, often, t->memory));
    return CTN_OK;
}

static ctn_status stop_now(void *self, ctn_trainer *tr)
{
    (void)self;
    ctn_trainer_stop(tr, "cut");
    return CTN_OK;
}

static ctn_status training_new(training *t, const job *j, life *l)
{
    const setup *s = l->s;
    *t = (training){.self = {.ctx = j->ctx, .l = l, .rank = j->rank}};
    CTN_TRY(open_data(t, j, s));
    CTN_TRY(open_net(t, j, s));
    CTN_TRY(open_optims(t, j, s));
    if (s->memory) CTN_TRY(ctn_memory_new(&t->memory));
    CTN_TRY(ctn_trainer_new(&t->tr, t->optim, t->loader, loss_of, &t->self,
                            CTN_OPT(ctn_trainer_opt, .net = t->self.net, .epochs = 3,
                                    .accumulate = s->accumulate, .out = l->dir)));
    t->self.tr = t->tr;
    if (s->two) CTN_TRY(ctn_trainer_add_optim(t->tr, "head", t->second, loss_of, &t->self));
    const ctn_trigger *logged = s->log ? CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 3) : NULL;
    if (spread(j, s)) CTN_TRY(ctn_dist_trainer(t->tr, j->c, logged));
    CTN_TRY(ctn_extend_log(t->tr, logged, NULL));
    CTN_TRY(ctn_extend_evaluator(t->tr, NULL, t->eval, loss_of, &t->self));
    CTN_TRY(extend(t, s));
    if (!l->stop) return CTN_OK;
    return ctn_trainer_extend(t->tr, &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                      .name = "cut",
                                                      .trigger = {.kind = CTN_ONCE,
                                                                  .n = l->stop - (j->size > 1)},
                                                      .call = stop_now});
}

static void training_free(training *t)
{
    ctn_trainer_free(t->tr);
    ctn_memory_free(t->memory);
    ctn_loader_free(t->loader);
    ctn_loader_free(t->eval);
    ctn_dataset_free(t->data);
    ctn_dataset_free(t->eval_data);
    ctn_optim_free(t->optim);
    ctn_optim_free(t->second);
    ctn_module_free(t->self.net);
}

static ctn_status collect(void *user, const char *name, ctn_dtype dtype, int ndim,
                          const int64_t *dims, void *data)
{
    result *r = user;
    int64_t n = 1;
    (void)name;
    for (int d = 0; d < ndim; d++) n *= dims[d];
    for (int64_t i = 0; i < n && r->n < VALUES; i++)
        r->w[r->n++] = dtype == CTN_F64   ? ((const double *)data)[i]
                       : dtype == CTN_F32 ? (double)((const float *)data)[i]
                                          : (double)((const uint16_t *)data)[i];
    return CTN_OK;
}

static bool refusal(ctn_status st)
{
    return st == CTN_EARG || st == CTN_ESTATE || st == CTN_EUNSUPPORTED || st == CTN_EDTYPE ||
           st == CTN_EGRAD;
}

/* Runs on every rank. */
static void run_life(job *j)
{
    life *l = j->arg;
    result *r = &l->of[j->rank];
    training t;
    char path[64];
    snprintf(path, sizeof path, "%s/cut", l->dir);
    r->st = training_new(&t, j, l);
    if (r->st == CTN_OK && l->load) r->st = ctn_trainer_load(t.tr, path);
    if (r->st == CTN_OK) r->st = ctn_trainer_run(t.tr);
    if (r->st == CTN_OK && l->stop) r->st = ctn_trainer_save(t.tr, path);
    if (t.tr) {
        ctn_progress p;
        ctn_trainer_progress(t.tr, &p);
        r->iterations = p.iteration;
        ctn_trainer_value(t.tr, "train/loss", &r->loss);
        ctn_trainer_value(t.tr, "val/loss", &r->val);
    }
    if (r->st == CTN_OK && j->size > 1) r->st = ctn_dist_values(t.optim);
    if (r->st == CTN_OK) r->st = ctn_module_visit(t.self.net, collect, r);
    if (r->st < 0) {
        r->refused = refusal(r->st) && r->iterations == 0;
        snprintf(r->why, sizeof r->why, "%.*s", (int)strcspn(ctn_error_message(), "\n"),
                 ctn_error_message());
        ctn_error_clear();
    }
    training_free(&t);
}

/* ---- what must hold -------------------------------------------------------------------------- */

static char why[1000]; /* what did not hold; "": everything */
static bool loud;

static void lived(life *l, ctn_mode mode, int ranks)
{
    precision = (ctn_precision)l->s->precision;
    wire = (ctn_dtype)l->s->wire;
    memset(l->of, 0, sizeof l->of);
    if (!l->load) atomic_store(&l->fired, false);
    on_ranks(ranks, mode, run_life, l);
    if (loud)
        printf("  %s, %d ranks%s%s: %s, %d iterations, loss %.9g, val %.9g\n",
               mode == CTN_MODE_EAGER ? "eager" : "planned", ranks, l->stop ? ", stopped" : "",
               l->load ? ", resumed" : "", l->of->st == CTN_OK ? "ok" : l->of->why,
               (int)l->of->iterations, l->of->loss, l->of->val);
}

/* Whether nothing depends on how the samples are divided among ranks, as the statistics of a batch
 * normalisation do. Unfreezing ends the freezing of statistics too. */
static bool any_ranks(const setup *s)
{
    return !s->norm || s->sync || (s->frozen_statistics && !s->unfreeze);
}

/* All ranks must end alike, with the same weights and the same metrics. */
static bool ranks_agree(const life *l, int ranks)
{
    const bool same = any_ranks(l->s);
    for (int r = 1; r < ranks && !why[0]; r++) {
        const result *a = &l->of[0], *b = &l->of[r];
        if (a->st != b->st && a->st != CTN_EPEER && b->st != CTN_EPEER)
            snprintf(why, sizeof why, "rank 0 ends with status %d (%s), rank %d with %d (%s)",
                     a->st, a->why, r, b->st, b->why);
        else if (a->st == CTN_OK && a->iterations != b->iterations)
            snprintf(why, sizeof why, "rank 0 ends after %d iterations, rank %d after %d",
                     (int)a->iterations, r, (int)b->iterations);
        else if (a->st == CTN_OK && same &&
                 (memcmp(a->w, b->w, sizeof a->w) != 0 || a->val != b->val))
            snprintf(why, sizeof why, "ranks 0 and %d have other weights, or val/loss %.9g, %.9g",
                     r, a->val, b->val);
    }
    return !why[0];
}

static bool near(double a, double b, double by)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= by * (1 + fabs(b));
}

/* Where a run was stopped, the ranks' sums of losses are added up, so their mean may be rounded
 * differently. */
static void compare(const char *what, const result *a, const result *b, double by)
{
    if (why[0]) return;
    if (a->st != b->st || a->iterations != b->iterations)
        snprintf(why, sizeof why, "%s: status %d (%s) after %d iterations against %d (%s) after %d",
                 what, a->st, a->why, (int)a->iterations, b->st, b->why, (int)b->iterations);
    else if (by == 0 ? memcmp(a->w, b->w, sizeof a->w) != 0 || !near(a->loss, b->loss, 1e-14) ||
                           !near(a->val, b->val, 0)
                     : !near(a->loss, b->loss, by) || !near(a->val, b->val, by))
        snprintf(why, sizeof why, "%s: loss %.9g and %.9g, val/loss %.9g and %.9g%s", what, a->loss,
                 b->loss, a->val, b->val, by == 0 ? ", or a bit of the weights" : "");
}

static int ranks_of(const setup *s)
{
    return s->ranks ? s->ranks : 1;
}

/* The result of a pair: tested, or refused with a message. */
typedef struct {
    bool refused;
    char message[300];
} verdict;

static verdict try_pair(const setup *s)
{
    verdict v = {0};
    const double loose =
        s->precision == CTN_PRECISION_BF16 || s->precision == CTN_PRECISION_F16 || s->wire ? 0.02
                                                                                           : 1e-5;
    life whole = {.s = s, .dir = "pair"};
    static life other; /* large */
    why[0] = 0;
    mkdir("pair", 0777);
    lived(&whole, CTN_MODE_PLANNED, ranks_of(s));
    if (ranks_agree(&whole, ranks_of(s)) && whole.of->refused) {
        v.refused = true;
        snprintf(v.message, sizeof v.message, "%s", whole.of->why);
        if (!v.message[0]) snprintf(why, sizeof why, "refused without a message");
    } else if (whole.of->st < 0) {
        snprintf(why, sizeof why, "failed with status %d: %s", whole.of->st, whole.of->why);
    }
    remove_all("pair");
    if (v.refused || why[0]) return v;

    mkdir("pair", 0777);
    other = (life){.s = s, .dir = "pair"};
    lived(&other, CTN_MODE_EAGER, ranks_of(s));
    compare("eager against planned", other.of, whole.of, loose);
    remove_all("pair");

    mkdir("pair", 0777);
    other = (life){.s = s, .dir = "pair", .stop = s->stop ? s->stop : STOP};
    lived(&other, CTN_MODE_PLANNED, ranks_of(s));
    ranks_agree(&other, ranks_of(s));
    if (!why[0] && other.of->st < 0)
        snprintf(why, sizeof why, "stopped: status %d: %s", other.of->st, other.of->why);
    other.stop = 0;
    other.load = true;
    if (!why[0]) lived(&other, CTN_MODE_PLANNED, ranks_of(s));
    compare("resumed against whole", other.of, whole.of, 0);
    remove_all("pair");

    const int ranks = ranks_of(s) == 1 ? 2 : 1;
    setup far = *s;
    if (ranks == 1) far.ranks = far.shard = far.wire = 0;
    if (why[0] || !any_ranks(s)) return v;
    mkdir("pair", 0777);
    other = (life){.s = &far, .dir = "pair"};
    lived(&other, CTN_MODE_PLANNED, ranks);
    compare(ranks == 1 ? "1 rank against several" : "2 ranks against 1", other.of, whole.of, loose);
    remove_all("pair");
    return v;
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { ALTERNATIVES, TESTED, REFUSED, NOT_HERE };
static verdict table[FEATURES][FEATURES];
static char kind[FEATURES][FEATURES];

/* Alternatives do not meet. A feature by itself is a pair too. */
static bool meet(int a, int b)
{
    return a == b || !features[a].kind || features[a].kind != features[b].kind;
}

static setup setup_of(int a, int b)
{
    setup s = {0};
    apply(&s, &features[a]);
    apply(&s, &features[b]);
    if (features[a].at == offsetof(setup, ranks)) apply(&s, &features[a]);
    return s;
}

static bool possible(const setup *s)
{
    if (s->precision == CTN_PRECISION_F16) return test_has_f16();
    return s->precision != CTN_PRECISION_BF16 || test_has_bf16();
}

/* What the page says of a pair: the message with which it is refused, or NULL. */
static const char *page_says(const char *page, int a, int b)
{
    static char message[400];
    char row[200];
    snprintf(row, sizeof row, "\n| %s | %s | ", features[a].name, features[b].name);
    const char *at = page ? strstr(page, row) : NULL;
    if (!at) return NULL;
    at += strlen(row);
    snprintf(message, sizeof message, "%.*s", (int)(strcspn(at, "\n") - 2), at);
    return message;
}

static char *page_read(void)
{
    static char page[200000];
    FILE *f = fopen(CTN_TESTS_DIR "/../docs/pairs.md", "r");
    if (!f) return NULL;
    page[fread(page, 1, sizeof page - 1, f)] = 0;
    fclose(f);
    return page;
}

/* Tries one pair. Returns whether it behaves as the page says; page NULL: whatever it does. */
static bool run_pair(int a, int b, const char *page)
{
    const setup s = setup_of(a, b);
    if (!possible(&s)) {
        kind[a][b] = NOT_HERE;
        return true;
    }
    const verdict v = table[a][b] = try_pair(&s);
    kind[a][b] = v.refused ? REFUSED : TESTED;
    if (!why[0] && page) {
        const char *said = page_says(page, a, b);
        if (!said != !v.refused || (said && strcmp(said, v.message) != 0))
            snprintf(why, sizeof why, "docs/pairs.md says: %s; this build: %s",
                     said ? said : "works", v.refused ? v.message : "works");
    }
    if (why[0]) printf("%s + %s: %s\n", features[a].name, features[b].name, why);
    return !why[0];
}

static void write_page(FILE *f)
{
    fprintf(
        f,
        "# Features that meet\n\n"
        "`tests/pairs/test_pairs.c` trains a small network with every pair of these %d "
        "features. For a pair\nthat works, eager and planned mode agree, a run that is stopped "
        "and resumed has the same bits as one\nthat is not, and one rank and several have the "
        "same losses. A pair that does not work is refused before\nthe first step. The test "
        "writes this page.\n\n"
        "`+` works, `R` is refused (see below), `.` are alternatives, `?` was not tried, because "
        "the CPU that\nwrote this page does not train in that type.\n\n```text\n",
        FEATURES);
    for (int a = 0; a < FEATURES; a++) {
        fprintf(f, "%-33s", features[a].name);
        for (int b = 0; b <= a; b++) fputc(".+R?"[(int)kind[b][a]], f);
        fputc('\n', f);
    }
    fprintf(f, "```\n\nThe columns are the same features from left to right.\n\n"
               "| feature | with | message |\n|---|---|---|\n");
    for (int a = 0; a < FEATURES; a++)
        for (int b = a; b < FEATURES; b++)
            if (kind[a][b] == REFUSED)
                fprintf(f, "| %s | %s | %s |\n", features[a].name, features[b].name,
                        table[a][b].message);
}

enum { PART = 24 }; /* a run without arguments tries one pair of this many */

static int number_of(const char *name)
{
    for (int i = 0; i < FEATURES; i++)
        if (strcmp(features[i].name, name) == 0) return i;
    fprintf(stderr, "test_pairs: there is no feature '%s'\n", name);
    exit(2);
}

/* ---- many features --------------------------------------------------------------------------- */

static uint32_t draw(uint32_t *seed, uint32_t n)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return (*seed >> 3) % n;
}

/* Appends the names of the features to text. */
static setup random_setup(uint32_t seed, char *text, size_t room)
{
    setup s = {0};
    char taken[128] = "";
    const uint32_t n = 2 + draw(&seed, 7);
    for (uint32_t i = 0; i < n; i++) {
        const feature *f = &features[draw(&seed, FEATURES)];
        if (f->kind && strchr(taken, f->kind)) continue;
        if (f->kind) strncat(taken, &f->kind, 1);
        apply(&s, f);
        snprintf(text + strlen(text), room - strlen(text), "%s, ", f->name);
    }
    s.ranks = s.ranks > 1 ? 2 + (int)draw(&seed, 3) : 1 + (int)draw(&seed, 4);
    s.samples = 20 + (int)draw(&seed, MOST_SAMPLES - 19);
    /* To rewind goes back to where a run was stopped, if that was before. */
    s.stop = s.nonfinite == 2 ? STOP : 2 + (int)draw(&seed, 8);
    snprintf(text + strlen(text), room - strlen(text), "%d ranks, %d samples, stop after %d",
             s.ranks, s.samples, s.stop);
    return s;
}

static uint32_t first_seed = 1;
static int programs;

static void random_trainings(void **state)
{
    (void)state;
    int wrong = 0, refused = 0;
    fill();
    loud = programs == 1;
    for (int i = 0; i < programs; i++) {
        char text[600] = "";
        const setup s =
            random_setup((first_seed + (uint32_t)i) * 2654435761u | 1, text, sizeof text);
        if (!possible(&s)) continue;
        const verdict v = try_pair(&s);
        refused += v.refused;
        if (loud && v.refused) printf("refused: %s\n", v.message);
        if (!why[0]) continue;
        wrong++;
        printf("seed %u, %s: %s\n", first_seed + (uint32_t)i, text, why);
    }
    printf("%d random trainings, %d refused, %d wrong\n", programs, refused, wrong);
    assert_int_equal(wrong, 0);
}

/* ---- selection ------------------------------------------------------------------------------- */

static int words;
static char **word;
static bool all, writes;

static void pairs(void **state)
{
    (void)state;
    const char *page = writes ? NULL : page_read();
    const int one = words > 0 ? number_of(word[0]) : -1,
              other = words > 1 ? number_of(word[1]) : -1;
    int tried = 0, wrong = 0;
    fill();
    loud = other >= 0;
    for (int a = 0; a < FEATURES; a++)
        for (int b = a; b < FEATURES; b++) {
            if (!meet(a, b) || (one >= 0 && a != one && b != one)) continue;
            if (other >= 0 && !(a == one && b == other) && !(a == other && b == one)) continue;
            if (!all && one < 0 && (a * 7 + b) % PART != 0) continue;
            tried++;
            wrong += !run_pair(a, b, page);
        }
    printf("%d pairs of %d features, %d wrong\n", tried, FEATURES, wrong);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pairs)},
                            random[] = {cmocka_unit_test(random_trainings)};
    char own[] = "pairs-XXXXXX"; /* several may run at the same time */
    writes = argc == 3 && strcmp(argv[1], "write") == 0;
    all = writes || (argc == 2 && strcmp(argv[1], "all") == 0);
    const bool at_random = argc > 2 && strcmp(argv[1], "random") == 0;
    if (at_random) programs = atoi(argv[2]);
    if (at_random && argc > 3) first_seed = (uint32_t)strtoul(argv[3], NULL, 10);
    words = all ? 0 : argc - 1;
    word = argv + 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    FILE *f = writes ? fopen(argv[2], "w") : NULL;
    if (writes && !f) return perror(argv[2]), 1;
    if (!mkdtemp(own) || chdir(own) != 0) return perror(own), 1;
    const int failed = at_random ? cmocka_run_group_tests(random, NULL, NULL)
                                 : cmocka_run_group_tests(tests, NULL, NULL);
    if (chdir("..") == 0) remove_all(own);
    if (f) write_page(f);
    return failed || (f && fclose(f) != 0);
}

#endif
