/* SPDX-License-Identifier: Apache-2.0
 *
 * One life of a training: it is built, run, stopped and saved on every rank. See pairs.h.
 */
#include "pairs.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <catena/datasets.h>
#include <catena/ops.h>

#include <cmocka.h>

#include "support/ok.h"

bool loud;

typedef struct {
    ctn_context *ctx;
    ctn_module *net;
    ctn_trainer *tr;
    life *l;
    int rank, group;
    char dir[64];
} subject;

/* A rank as a thread, with its own context and communicators. */
typedef struct {
    life *l;
    const test_world *w;
    ctn_context *ctx;
    ctn_comm *world, *c; /* c: of the group; NULL: the rank does nothing */
    int rank, size, group;
    pthread_t thread;
} job;

typedef struct {
    subject self;
    ctn_dataset *inner, *data, *eval_data;
    int reads_left; /* until one fails */
    pthread_mutex_t lock;
    ctn_loader *loader, *eval;
    ctn_optim *optim, *second;
    ctn_memory *memory;
    ctn_trainer *tr;
} training;

static float images[MOST_SAMPLES][WIDTH], poisoned[MOST_SAMPLES][WIDTH];
static int64_t labels[MOST_SAMPLES];

void fill_samples(void)
{
    for (int i = 0; i < MOST_SAMPLES; i++) {
        for (int k = 0; k < WIDTH; k++)
            images[i][k] = (float)((i * 37 + k * 101) * 7919 % 257 - 128) / 128;
        labels[i] = (i * 7 + i / 3) % CLASSES;
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

static bool fails(const subject *x, failure how)
{
    const setup *s = x->l->s;
    return s->fails == how && x->rank == s->fail_rank && x->group == 0;
}

static ctn_status give_up(const subject *x, const char *where)
{
    atomic_store(&x->l->failed, true);
    return ctn_fail(CTN_EENGINE, "%s of rank %d fails", where, x->rank);
}

static int64_t iteration(const subject *x)
{
    ctn_progress p;
    ctn_trainer_progress(x->tr, &p);
    return p.iteration;
}

static ctn_status failing_extension(void *self, ctn_trainer *tr)
{
    (void)tr;
    return fails(self, IN_EXTENSION) ? give_up(self, "the extension") : CTN_OK;
}

static ctn_status failing_get(void *self, const ctn_sample *s, void *const *dst)
{
    training *t = self;
    pthread_mutex_lock(&t->lock);
    const bool now = fails(&t->self, IN_READ) && t->reads_left-- == 0;
    pthread_mutex_unlock(&t->lock);
    return now ? give_up(&t->self, "a sample") : ctn_dataset_sample(t->inner, s, dst);
}

static int64_t inner_count(void *self)
{
    return ctn_dataset_count(((training *)self)->inner);
}

static int inner_fields(void *self)
{
    return ctn_dataset_fields(((training *)self)->inner);
}

static void inner_field(void *self, int f, ctn_field *out)
{
    *out = *ctn_dataset_field(((training *)self)->inner, f);
}

static const ctn_dataset_vt failing = {.struct_size = sizeof failing,
                                       .count = inner_count,
                                       .fields = inner_fields,
                                       .field = inner_field,
                                       .get = failing_get};

/* ---- the parts of a training ----------------------------------------------------------------- */

/* 1, except in the one bad step. */
static double factor(subject *x)
{
    static const double of_kind[] = {
        [BAD_NAN] = NAN, [BAD_INFINITE] = INFINITY, [BAD_NEGATIVE] = -INFINITY};
    const setup *s = x->l->s;
    const int kind = s->bad ? s->bad : s->nonfinite ? BAD_NAN : 0;
    if (kind == 0 || kind >= BAD_SAMPLE || iteration(x) != (s->bad_at ? s->bad_at : BAD)) return 1;
    if (x->rank != s->bad_rank || atomic_exchange(&x->l->fired[x->group], true)) return 1;
    return of_kind[kind];
}

/* With a feature that deals with bad steps, the loss of one rank is not finite in one step. */
static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    subject *x = self;
    const setup *o = x->l->s;
    ctn_tensor *y = ctn_call(x->net, ctn_step_input(s, 0));
    ctn_tensor *loss = ctn_softmax_cross_entropy(y, ctn_step_input(s, 1));
    const bool trains = ctn_context_training(x->ctx);
    if (!trains && fails(x, IN_EVALUATION)) return give_up(x, "the evaluation"), NULL;
    if (!trains) return loss;
    const bool now = iteration(x) == o->fail_at;
    if (now && fails(x, IN_LOSS)) return give_up(x, "the loss"), NULL;
    if (now && fails(x, IN_KERNEL)) {
        static const int64_t index[1] = {INT64_C(1) << 40};
        atomic_store(&x->l->failed, true);
        ctn_tensor *row = ctn_input(x->ctx, index, CTN_I64, 1, (const int64_t[]){1});
        ctn_tensor *one = ctn_reshape(loss, 1, (const int64_t[]){1});
        return ctn_sum(ctn_gather(one, row, 0), CTN_ALL_AXES, 0);
    }
    if (!o->nonfinite && !o->bad) return loss;
    if (ctn_dim(y, 0) == 0) return loss; /* a step without samples (src/train/empty.c) */
    return ctn_mul(loss, ctn_cast(ctn_number(x->ctx, factor(x)), ctn_context_float_type(x->ctx)));
}

static const ctn_field field[] = {{.dtype = CTN_F32, .ndim = 1, .shape = {WIDTH}},
                                  {.dtype = CTN_I64}};

/* The samples of all ranks, or the own ones of this rank. */
static ctn_status open_samples(training *t, const job *j, const setup *s, ctn_sampler **order)
{
    int first = 0, samples = s->samples ? s->samples : SAMPLES;
    for (int r = 0; s->apart && r < j->rank; r++) first += s->part[r];
    if (s->apart) samples = s->part[j->rank];
    const void *const data[] = {s->bad >= BAD_SAMPLE ? poisoned[first] : images[first],
                                labels + first};
    CTN_TRY(ctn_arrays_open(&t->inner, samples, 2, field, data));
    CTN_TRY(ctn_dataset_new(&t->data, &failing, t));
    CTN_TRY(ctn_sampler_shuffled(order, samples, 3));
    return s->apart ? CTN_OK : ctn_sampler_shard(*order, j->rank, j->size);
}

static ctn_status open_data(training *t, const job *j, const setup *s)
{
    const void *const data[] = {images, labels};
    ctn_sampler *order = NULL;
    ctn_status st = open_samples(t, j, s, &order);
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

static ctn_tensor *forward_twin(void *self, ctn_module *m, ctn_tensor *x)
{
    (void)m;
    return ctn_tanh(ctn_linear(x, ctn_use(self), NULL));
}

/* Two layers with the same weight. */
static ctn_status add_tied(ctn_module **m, int *n, ctn_context *ctx)
{
    CTN_TRY(ctn_linear_new(&m[*n], ctx, HIDDEN, HIDDEN, CTN_OPT(ctn_linear_opt, .no_bias = 1)));
    ctn_var *weight = ctn_params(m[(*n)++]).var[0];
    CTN_TRY(ctn_module_new(&m[*n], ctx, forward_twin, weight, NULL));
    return ctn_module_tie(m[(*n)++], "weight", weight);
}

static ctn_status open_net(training *t, const job *j, const setup *s)
{
    ctn_module *m[8] = {0};
    int n = 0;
    /* The gradient of a bias before a batch normalisation is 0, and its rounding errors would train
     * it. */
    CTN_TRY(ctn_linear_new(&m[n++], j->ctx, WIDTH, HIDDEN,
                           CTN_OPT(ctn_linear_opt, .no_bias = s->norm)));
    if (s->norm) CTN_TRY(ctn_batch_norm_new(&m[n++], j->ctx, HIDDEN, NULL));
    CTN_TRY(ctn_activation_new(&m[n++], j->ctx, ctn_tanh_at));
    if (s->dropout) CTN_TRY(ctn_dropout_new(&m[n++], j->ctx, 0.25));
    if (s->tied) CTN_TRY(add_tied(m, &n, j->ctx));
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
    if (s->two) CTN_TRY(optims[s->second ? s->second : 2](&t->second, last));
    if (!spread(j, s)) return CTN_OK;
    ctn_dist_opt opt = {.struct_size = sizeof opt,
                        .shard = s->shard,
                        .when = s->when,
                        .progress = s->progress,
                        .defer = s->complete ? CTN_DIST_COMPLETE : 0,
                        .exact = s->exact ? 4 : 0,
                        .bucket = s->bucket};
    CTN_TRY(ctn_dist_optim(t->optim, j->c, &opt));
    opt.shard ^= s->shard_second;
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

static ctn_status once(training *t, const char *name, int64_t n, void *self,
                       ctn_status (*call)(void *self, ctn_trainer *tr))
{
    return ctn_trainer_extend(t->tr, &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                      .name = name,
                                                      .self = self,
                                                      .trigger = {.kind = CTN_ONCE, .n = (double)n},
                                                      .call = call});
}

static ctn_status training_new(training *t, const job *j, life *l)
{
    const setup *s = l->s;
    *t = (training){.self = {.ctx = j->ctx, .l = l, .rank = j->rank, .group = j->group},
                    .reads_left = s->fail_at * 3,
                    .lock = PTHREAD_MUTEX_INITIALIZER};
    /* Groups do not share a folder. */
    snprintf(t->self.dir, sizeof t->self.dir, "%s%s", l->dir, j->group ? "/other" : "");
    CTN_TRY(open_data(t, j, s));
    CTN_TRY(open_net(t, j, s));
    CTN_TRY(open_optims(t, j, s));
    if (s->memory) CTN_TRY(ctn_memory_new(&t->memory));
    CTN_TRY(ctn_trainer_new(&t->tr, t->optim, t->loader, loss_of, &t->self,
                            CTN_OPT(ctn_trainer_opt, .net = t->self.net, .epochs = 3,
                                    .accumulate = s->accumulate, .out = t->self.dir)));
    t->self.tr = t->tr;
    if (s->two) CTN_TRY(ctn_trainer_add_optim(t->tr, "head", t->second, loss_of, &t->self));
    const ctn_trigger *logged = s->log ? CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 3) : NULL;
    if (spread(j, s)) CTN_TRY(ctn_dist_trainer(t->tr, j->c, logged));
    CTN_TRY(ctn_extend_log(t->tr, logged, NULL));
    CTN_TRY(ctn_extend_evaluator(t->tr, NULL, t->eval, loss_of, &t->self));
    CTN_TRY(extend(t, s));
    if (s->fails == IN_EXTENSION)
        CTN_TRY(once(t, "failing", s->fail_at, &t->self, failing_extension));
    return l->stop ? once(t, "cut", l->stop - (j->size > 1), NULL, stop_now) : CTN_OK;
}

static void training_free(training *t)
{
    ctn_trainer_free(t->tr);
    ctn_memory_free(t->memory);
    ctn_loader_free(t->loader);
    ctn_loader_free(t->eval);
    ctn_dataset_free(t->data);
    ctn_dataset_free(t->inner);
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

static void run_life(const job *j)
{
    life *l = j->l;
    result *r = &l->of[j->group * j->size + j->rank];
    training t;
    char path[80];
    r->st = training_new(&t, j, l);
    snprintf(path, sizeof path, "%s/cut", t.self.dir);
    if (r->st < 0) ctn_comm_break(j->c, ctn_error_message());
    if (r->st == CTN_OK && l->load) r->st = ctn_trainer_load(t.tr, path);
    if (r->st == CTN_OK) r->st = ctn_trainer_run(t.tr);
    if (r->st == CTN_OK && l->stop) r->st = ctn_trainer_save(t.tr, path);
    if (t.tr) {
        r->iterations = iteration(&t.self);
        ctn_trainer_value(t.tr, "train/loss", &r->loss);
        ctn_trainer_value(t.tr, "val/loss", &r->val);
    }
    if (r->st == CTN_OK && j->size > 1) r->st = ctn_dist_values(t.optim);
    if (r->st == CTN_OK && j->size > 1 && t.second) r->st = ctn_dist_values(t.second);
    if (r->st == CTN_OK) r->st = ctn_module_visit(t.self.net, collect, r);
    if (r->st < 0) {
        r->refused = refusal(r->st) && r->iterations == 0;
        snprintf(r->why, sizeof r->why, "%.*s", (int)strcspn(ctn_error_message(), "\n"),
                 ctn_error_message());
        ctn_error_clear();
    }
    training_free(&t);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static ctn_comm_opt comm_opt(const setup *s)
{
    return (ctn_comm_opt){.struct_size = sizeof(ctn_comm_opt),
                          .algorithm = s->algorithm ? s->algorithm : "ring",
                          .wire = (ctn_dtype)s->wire};
}

static void *run_rank(void *arg)
{
    job *j = arg;
    const ctn_comm_opt opt = comm_opt(j->l->s);
    ctn_error_clear();
    j->group = test_world_group(j->w, ctn_comm_rank(j->world));
    j->rank = test_world_rank(j->w, ctn_comm_rank(j->world));
    j->size = j->w->ranks;
    if (test_world_join(&j->c, j->w, j->world, &opt) == CTN_OK) {
        if (j->c) run_life(j);
    } else if (j->group >= 0) {
        result *r = &j->l->of[j->group * j->size + j->rank];
        r->st = CTN_ESTATE;
        snprintf(r->why, sizeof r->why, "join: %s", ctn_error_message());
    }
    return NULL;
}

static void poison(const setup *s)
{
    memcpy(poisoned, images, sizeof images);
    if (s->bad >= BAD_SAMPLE)
        poisoned[s->bad_at % MOST_SAMPLES][1] = s->bad == BAD_SAMPLE ? NAN : INFINITY;
}

/* All ranks of one life, until they end. */
void lived(life *l, ctn_mode mode, int ranks)
{
    const setup *s = l->s;
    const test_world w = s->world ? test_world_random(ranks, s->world) : test_world_plain(ranks);
    const int size = test_world_size(&w);
    const ctn_comm_opt opt = comm_opt(s);
    job j[WORLD_MOST] = {{0}};
    ctn_comm *comm[WORLD_MOST];
    memset(l->of, 0, sizeof l->of);
    l->ranks = ranks;
    l->groups = w.groups;
    for (int g = 0; g < WORLD_GROUPS && !l->load; g++) atomic_store(&l->fired[g], false);
    poison(s);
    OK(test_world_open(comm, &w, &opt));
    for (int i = 0; i < size; i++) {
        j[i] = (job){.l = l, .w = &w, .world = comm[i]};
        OK(ctn_context_new(&j[i].ctx,
                           CTN_OPT(ctn_context_opt, .threads = 1, .seed = 5, .mode = mode,
                                   .precision = (ctn_precision)s->precision, .slow_precision = 1)));
    }
    for (int i = 0; i < size; i++)
        assert_int_equal(pthread_create(&j[i].thread, NULL, run_rank, &j[i]), 0);
    for (int i = 0; i < size; i++) pthread_join(j[i].thread, NULL);
    for (int i = 0; i < size; i++) {
        ctn_context_free(j[i].ctx);
        if (j[i].c != j[i].world) ctn_comm_free(j[i].c);
        ctn_comm_free(j[i].world);
    }
    if (loud)
        printf("  %s, %d ranks%s%s: %s, %d iterations, loss %.9g, val %.9g\n",
               mode == CTN_MODE_EAGER ? "eager" : "planned", ranks, l->stop ? ", stopped" : "",
               l->load ? ", resumed" : "", l->of->st == CTN_OK ? "ok" : l->of->why,
               (int)l->of->iterations, l->of->loss, l->of->val);
}
