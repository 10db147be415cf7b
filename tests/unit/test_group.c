/* SPDX-License-Identifier: Apache-2.0
 *
 * Distributed training with threads as ranks. Differences between ranks are named on all of them
 * before the first step. Rank 0's state can be resumed by all ranks, and by another number of
 * ranks, with each sample of the epoch used once. Ranks with different numbers of samples take
 * the same number of steps. An error of one rank ends the others.
 * Labels: threads
 */
#include "ranks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/datasets.h>
#include <catena/log.h>
#include <catena/train.h>

#include "optim/optim.h"
#include "support/folder.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

/* ---- a small classification ------------------------------------------------------------------ */

enum { SAMPLES = 58, WIDTH = 6, HIDDEN = 8, CLASSES = 3, STEP = 12, EVAL = 7 };

static float images[SAMPLES + 20][WIDTH];
static int64_t labels[SAMPLES + 20];
static int64_t numbers[SAMPLES + 20];
static atomic_int seen[SAMPLES + 20]; /* how often each sample was trained on */
static bool bad[SAMPLES + 20];        /* cannot be read */

static void fill(void)
{
    for (int i = 0; i < SAMPLES + 20; i++) {
        for (int k = 0; k < WIDTH; k++)
            images[i][k] = (float)((i * 37 + k * 101) * 7919 % 257 - 128) / 128;
        labels[i] = (i * 7 + i / 3) % CLASSES;
        numbers[i] = i;
        atomic_store(&seen[i], 0);
        bad[i] = false;
    }
}

/* One life of a training: settings that are the same for all ranks, and the results. */
typedef struct {
    const char *dir;     /* folder of the state; NULL: no state */
    int64_t batch;       /* batch size per rank; 0: STEP / size */
    int64_t accumulate;  /* 0: 1 */
    int64_t epochs;      /* 0: 2 */
    int64_t stop;        /* save and stop after this step; 0: at the end */
    int64_t more[MOST];  /* samples that a rank has in addition */
    int own;             /* each rank has its own samples: [10 * rank, + more) */
    double dropout;      /* with a different seed on each rank */
    int schedule;        /* over the length of the training */
    int blind;           /* only rank 0 sees the folder */
    int fails;           /* the loss of this rank fails in step 2; 0: none */
    int twice;           /* stop, and run again */
    int shard;           /* sharded optimizer state */
    double skip;         /* share of samples that may be skipped */
    int refuses;         /* this rank, counted from 1, refuses what it loads; 0: none */
    int flips;           /* a bit flips on this rank after step 3; 0: none */
    ctn_status want;     /* expected from load or run */
    const char *message; /* part of the error message */
    /* results */
    float w[MOST][WIDTH * HIDDEN + HIDDEN];
    double loss[MOST]; /* train/loss at the end */
    ctn_progress at[MOST];
    char error[MOST][400];
} life;

typedef struct {
    const life *l;
    int rank;
    int64_t calls;
    ctn_module *net;
    ctn_context *ctx;
} subject;

static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    subject *x = self;
    if (ctn_context_training(x->ctx)) {
        const ctn_batch *b = ctn_step_batch(s);
        for (int64_t i = 0; i < b->n; i++)
            atomic_fetch_add(&seen[((const int64_t *)b->data[2])[i]], 1);
        if (x->l->fails && x->rank == x->l->fails && ++x->calls == 7 + 2) {
            ctn_fail(CTN_EARG, "this rank's solver delivered nothing");
            return NULL;
        }
    }
    return ctn_softmax_cross_entropy(ctn_call(x->net, ctn_step_input(s, 0)), ctn_step_input(s, 1));
}

/* A number of an extension that is saved with the state. */
static ctn_status visit_number(void *self, ctn_state_fn fn, void *user)
{
    const subject *x = self;
    int64_t number = x->calls;
    CTN_TRY(fn(user, "number", CTN_I64, 0, NULL, &number));
    if (number == x->calls || x->rank != x->l->refuses - 1) return CTN_OK;
    return ctn_fail(CTN_EIO, "the disk of this rank is full");
}

static ctn_status stop(void *self, ctn_trainer *tr)
{
    (void)self;
    ctn_trainer_stop(tr, "cut");
    return CTN_OK;
}

/* What a faulty memory does: the library is not told. */
static ctn_status flip(void *self, ctn_trainer *tr)
{
    const subject *x = self;
    unsigned *word = (void *)((float *)ctn_trainer_optim(tr)->pool->w + WIDTH * HIDDEN / 2);
    if (x->rank == x->l->flips) *word ^= 1;
    return CTN_OK;
}

typedef struct {
    subject self;
    ctn_dataset *data, *eval_data;
    ctn_loader *loader, *eval;
    ctn_optim *optim;
    ctn_trainer *tr;
} training;

static ctn_status read_one(void *user, const ctn_sample *s, void *const *src, void *const *dst)
{
    (void)user;
    if (bad[s->index]) return ctn_fail(CTN_EFORMAT, "sample %d is bad", (int)s->index);
    memcpy(dst[0], src[0], sizeof images[0]);
    memcpy(dst[1], src[1], sizeof(int64_t));
    memcpy(dst[2], src[2], sizeof(int64_t));
    return CTN_OK;
}

static ctn_status open_data(training *t, const job *j, const life *l)
{
    const ctn_field field[] = {{.dtype = CTN_F32, .ndim = 1, .shape = {WIDTH}},
                               {.dtype = CTN_I64},
                               {.dtype = CTN_I64}};
    const int64_t first = l->own ? 10 * j->rank : 0;
    const int64_t count = (l->own ? 0 : SAMPLES) + l->more[j->rank];
    const void *const data[] = {images[first], &labels[first], &numbers[first]};
    ctn_sampler *s = NULL;
    ctn_dataset *arrays = NULL;
    CTN_TRY(ctn_arrays_open(&arrays, count, 3, field, data));
    CTN_TRY(ctn_dataset_transform(&t->data, arrays, 3, field, read_one, NULL));
    CTN_TRY(ctn_sampler_shuffled(&s, count, 3));
    if (!l->own) CTN_TRY(ctn_sampler_shard(s, j->rank, j->size));
    CTN_TRY(ctn_loader_new(&t->loader, t->data, s,
                           CTN_OPT(ctn_loader_opt, .batch = l->batch ? l->batch : STEP / j->size,
                                   .threads = j->rank % 2, .skip = l->skip)));
    ctn_sampler_free(s);
    CTN_TRY(ctn_arrays_open(&t->eval_data, EVAL, 3, field, data));
    CTN_TRY(ctn_sampler_sequential(&s, EVAL));
    CTN_TRY(ctn_sampler_shard(s, j->rank, j->size));
    CTN_TRY(ctn_loader_new(&t->eval, t->eval_data, s, CTN_OPT(ctn_loader_opt, .batch = 1)));
    ctn_sampler_free(s);
    return CTN_OK;
}

static ctn_status open_net(training *t, const job *j, const life *l)
{
    ctn_module *m[4] = {0};
    CTN_TRY(ctn_linear_new(&m[0], j->ctx, WIDTH, HIDDEN, NULL));
    CTN_TRY(ctn_activation_new(&m[1], j->ctx, ctn_tanh_at));
    CTN_TRY(ctn_dropout_new(&m[2], j->ctx, l->dropout));
    CTN_TRY(ctn_linear_new(&m[3], j->ctx, HIDDEN, CLASSES, NULL));
    CTN_TRY(ctn_sequential_new(&t->self.net, j->ctx, 4, m));
    CTN_TRY(ctn_adam_new(&t->optim, ctn_params(t->self.net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    if (l->dropout > 0) { /* as a program may do, for different masks on each rank */
        ctn_context_state s;
        ctn_context_get_state(j->ctx, &s);
        s.seed += (uint64_t)j->rank * 1000;
        CTN_TRY(ctn_context_set_state(j->ctx, &s));
    }
    return ctn_dist_optim(t->optim, j->c, CTN_OPT(ctn_dist_opt, .shard = l->shard));
}

static ctn_status training_new(training *t, const job *j, const life *l)
{
    *t = (training){.self = {.l = l, .rank = j->rank, .ctx = j->ctx}};
    CTN_TRY(open_data(t, j, l));
    CTN_TRY(open_net(t, j, l));
    CTN_TRY(
        ctn_trainer_new(&t->tr, t->optim, t->loader, loss_of, &t->self,
                        CTN_OPT(ctn_trainer_opt, .net = t->self.net,
                                .epochs = l->epochs ? l->epochs : 2, .accumulate = l->accumulate)));
    CTN_TRY(ctn_dist_trainer(t->tr, j->c, NULL));
    CTN_TRY(ctn_extend_evaluator(t->tr, CTN_TRIGGER(CTN_EVERY_EPOCHS, .n = 0.5), t->eval, loss_of,
                                 &t->self));
    if (l->schedule)
        CTN_TRY(ctn_extend_schedule(t->tr, "lr", CTN_OPT(ctn_sched_opt, .kind = CTN_SCHED_COSINE)));
    t->self.calls = l->refuses ? 0 : 7;
    CTN_TRY(ctn_trainer_extend(t->tr, &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                       .name = "number",
                                                       .trigger = {.kind = CTN_AT_END},
                                                       .visit = visit_number,
                                                       .self = &t->self}));
    if (l->flips) {
        CTN_TRY(ctn_extend_replicas(t->tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 2)));
        CTN_TRY(ctn_trainer_extend(t->tr, &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                           .name = "flip",
                                                           .trigger = {.kind = CTN_ONCE, .n = 3},
                                                           .call = flip,
                                                           .self = &t->self}));
    }
    if (l->stop > 1) /* ranks agree on a stop in the next step */
        CTN_TRY(ctn_trainer_extend(t->tr, &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                           .name = "cut",
                                                           .trigger = {.kind = CTN_ONCE,
                                                                       .n = (double)(l->stop - 1)},
                                                           .call = stop}));
    return CTN_OK;
}

static void training_free(training *t)
{
    ctn_trainer_free(t->tr);
    ctn_loader_free(t->loader);
    ctn_loader_free(t->eval);
    ctn_dataset_free(t->data);
    ctn_dataset_free(t->eval_data);
    ctn_optim_free(t->optim);
    ctn_module_free(t->self.net);
}

static ctn_status live(training *t, const job *j, const life *l)
{
    if (l->dir) {
        ctn_status st = ctn_trainer_load(t->tr, l->blind && j->rank > 0 ? "/nowhere" : l->dir);
        if (st != CTN_ENOTFOUND) CTN_TRY(st);
        ctn_error_clear();
    }
    ctn_progress p;
    ctn_trainer_progress(t->tr, &p);
    if (l->stop > 0 && p.iteration == l->stop - 1) ctn_trainer_stop(t->tr, "cut");
    CTN_TRY(ctn_trainer_run(t->tr));
    if (l->twice) {
        ctn_trainer_stop(t->tr, NULL);
        CTN_TRY(ctn_trainer_run(t->tr));
    }
    return l->dir ? ctn_trainer_save(t->tr, l->blind && j->rank > 0 ? "/nowhere" : l->dir) : CTN_OK;
}

static void run_life(job *j)
{
    life *l = j->arg;
    training t;
    float *w = l->w[j->rank];
    TRY(j, training_new(&t, j, l));
    const ctn_status st = live(&t, j, l);
    snprintf(l->error[j->rank], sizeof l->error[0], "%.*s", (int)strcspn(ctn_error_message(), "\n"),
             ctn_error_message());
    const int failing = l->fails ? l->fails : l->refuses - 1;
    const bool other = failing >= 0 && j->rank != failing;
    CHECK(j, st == (other ? CTN_EPEER : l->want), "status %d: %s", st, ctn_error_message());
    if (l->message) CHECK(j, strstr(l->error[j->rank], l->message), "%s", l->error[j->rank]);
    ctn_trainer_progress(t.tr, &l->at[j->rank]);
    ctn_trainer_value(t.tr, "train/loss", &l->loss[j->rank]);
    if (st == CTN_OK) {
        const ctn_vars p = ctn_params(t.self.net);
        TRY(j, ctn_var_get(p.var[0], w, WIDTH * HIDDEN * sizeof *w));
        TRY(j, ctn_var_get(p.var[1], w + WIDTH * HIDDEN, HIDDEN * sizeof *w));
    }
    ctn_error_clear();
    training_free(&t);
}

static void on(int size, life *l)
{
    on_ranks(size, CTN_MODE_PLANNED, run_life, l);
    for (int r = 1; r < size && l->want == CTN_OK; r++) {
        assert_memory_equal(l->w[r], l->w[0], sizeof l->w[0]);
        assert_int_equal(l->at[r].iteration, l->at[0].iteration);
        assert_int_equal(l->at[r].samples, l->at[0].samples);
        assert_true(l->at[r].part == l->at[0].part);
        if (l->at[0].part == 0) assert_true(l->loss[r] == l->loss[0]);
    }
    for (int r = 1; r < size && l->want < 0 && !l->fails && !l->refuses; r++)
        assert_string_equal(l->error[r], l->error[0]);
}

/* ---- agreement ------------------------------------------------------------------------------- */

static void run_agree(job *j)
{
    char text[200];
    const int odd = *(const int *)j->arg; /* bit mask of ranks that have something else */
    TRY(j, ctn_comm_agree(j->c, "the same\nfor all\n"));
    snprintf(text, sizeof text, "60000 samples\nseed %d\n", odd >> j->rank & 1 ? 7 : 1);
    const ctn_status st = ctn_comm_agree(j->c, text);
    if (odd == 0) CHECK(j, st == CTN_OK, "%s", ctn_error_message());
    else CHECK(j, st == CTN_EARG, "status %d", st);
    const char *want = odd == 4    ? "rank 2 has seed 7, rank 0 has seed 1"
                       : odd == 10 ? "ranks 1 and 3 have seed 7, rank 0 has seed 1"
                       : odd == 1  ? "ranks 1, 2 and 3 have seed 1, rank 0 has seed 7"
                                   : "";
    const char *got = ctn_error_message();
    CHECK(j, strncmp(got, want, strlen(want)) == 0, "%s", got);
    ctn_error_clear();
    CHECK(j, ctn_comm_agree(j->c, j->rank == 3 ? "a\nb" : "a\nb\nc") == CTN_EARG, "fewer lines");
    got = ctn_error_message();
    CHECK(j, strstr(got, "rank 3 has nothing, rank 0 has c"), "%s", got);
    ctn_error_clear();
    TRY(j, ctn_comm_agree(j->c, "")); /* the group still works */
}

static void test_agree(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++)
        on_ranks(4, CTN_MODE_PLANNED, run_agree, &(int){(int[]){0, 4, 10, 1}[k]});
}

static void test_other_data(void **state)
{
    (void)state;
    life l = {.more = {0, 14},
              .want = CTN_EARG,
              .message = "rank 1 has 72 training samples, rank 0 has 58 training samples"};
    on(2, &l);
    l.more[2] = 14;
    l.message = "ranks 1 and 2 have 72 training samples";
    on(3, &l);
    for (int i = 0; i < SAMPLES; i++) assert_int_equal(seen[i], 0); /* nothing was trained yet */
}

static void test_one_fails(void **state)
{
    (void)state;
    life l = {.fails = 2, .want = CTN_EARG, .message = "this rank's solver delivered nothing"};
    on(3, &l);
    for (int r = 0; r < 2; r++) assert_non_null(strstr(l.error[r], "rank 2"));
}

/* One bit of one rank's weights: found at the next check, with the parameter and the rank. */
static void test_flipped_bit(void **state)
{
    (void)state;
    life l = {.flips = 2,
              .want = CTN_ESTATE,
              .message = "replicas: after iteration 4, 0.weight has other values on rank 2 than"};
    on(4, &l);
}

/* ---- different samples on each rank ---------------------------------------------------------- */

static char warned[400];
static void hear(void *user, const char *text)
{
    (void)user;
    snprintf(warned, sizeof warned, "%s", text);
}

static void check_own(const int64_t have[MOST], int schedule)
{
    char dir[] = "own.XXXXXX";
    int64_t all = 0, most = 0;
    assert_non_null(mkdtemp(dir));
    life l = {.own = 1, .batch = 3, .schedule = schedule};
    memcpy(l.more, have, sizeof l.more);
    for (int r = 0; r < 3; r++) {
        all += have[r];
        if (have[r] > most) most = have[r];
    }
    on(3, &l);
    const life whole = l;
    assert_int_equal(whole.at[0].iteration, 2 * ((most + 2) / 3));
    assert_int_equal(whole.at[0].samples, 2 * all);
    l.dir = dir; /* the same in lives of one step each */
    fill();
    for (l.stop = 1; l.stop <= whole.at[0].iteration; l.stop++) on(3, &l);
    assert_memory_equal(l.w, whole.w, sizeof l.w);
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < 10; i++) assert_int_equal(seen[10 * r + i], i < have[r] ? 2 : 0);
    remove_all(dir);
}

static void test_own_samples(void **state)
{
    (void)state;
    ctn_set_log(hear, NULL);
    warned[0] = 0;
    check_own((const int64_t[MOST]){5, 5, 5}, 1);
    assert_string_equal(warned, "");
    check_own((const int64_t[MOST]){9, 4, 7}, 0);
    assert_non_null(strstr(warned, "rank 1 has 2 batches in an epoch, rank 0 has 3"));
    check_own((const int64_t[MOST]){0, 8, 2}, 1);
    assert_non_null(strstr(warned, "rank 0 has 0 batches in an epoch, rank 1 has 3"));
    ctn_set_log(NULL, NULL);
}

static void test_own_samples_elsewhere(void **state)
{
    (void)state;
    char dir[] = "else.XXXXXX";
    assert_non_null(mkdtemp(dir));
    life l = {.own = 1, .batch = 3, .epochs = 3, .more = {9, 9, 9}, .dir = dir, .stop = 4};
    on(3, &l);
    l.want = CTN_ESTATE;
    l.message = "load it on 3 ranks";
    on(2, &l);
    l.want = CTN_OK;
    l.message = NULL;
    l.stop = 6; /* the end of an epoch */
    on(3, &l);
    l.stop = 0;
    on(2, &l);
    assert_int_equal(l.at[0].iteration, 9);
    remove_all(dir);
}

/* ---- states ---------------------------------------------------------------------------------- */

/* Rank 0's state on ranks that see no folder, stopped and resumed at every step, with dropout
 * masks that differ between ranks and evaluation parts of different sizes: the same bits as
 * without interruption. */
static void test_resume(void **state)
{
    (void)state;
    for (int size = 2; size <= 3; size++) {
        const int k = size - 2;
        char dir[] = "group.XXXXXX";
        assert_non_null(mkdtemp(dir));
        life l = {.dropout = 0.4,
                  .schedule = 1,
                  .shard = k,
                  .accumulate = k + 1,
                  .batch = STEP / size / (k + 1)};
        fill();
        on(size, &l);
        const life whole = l;
        l.dir = dir;
        l.blind = 1;
        fill();
        for (l.stop = 1; l.stop <= whole.at[0].iteration; l.stop++) on(size, &l);
        assert_memory_equal(l.w, whole.w, sizeof l.w);
        assert_true(fabs(l.loss[0] - whole.loss[0]) < 1e-12);
        for (int i = 0; i < SAMPLES; i++) assert_int_equal(seen[i], 2);
        remove_all(dir);
    }
}

/* A batch that one rank cannot read counts as empty there, so that ranks stay at the same
 * position. */
static void test_left_out(void **state)
{
    (void)state;
    char dir[] = "skip.XXXXXX";
    life l = {.dir = dir, .skip = 0.5};
    assert_non_null(mkdtemp(dir));
    for (int rank = 0; rank < 2; rank++) { /* the second batch of rank 0, the third of rank 1 */
        ctn_sampler *s = NULL;
        OK(ctn_sampler_shuffled(&s, SAMPLES, 3));
        OK(ctn_sampler_shard(s, rank, 3));
        for (uint64_t i = 0; i < 4; i++)
            bad[ctn_sampler_index(s, 0, 4 * (uint64_t)(rank + 1) + i)] = true;
        ctn_sampler_free(s);
    }
    for (l.stop = 1; l.stop <= 10; l.stop++) on(3, &l);
    for (int i = 0; i < SAMPLES; i++) assert_int_equal(seen[i], bad[i] ? 0 : 2);
    assert_int_equal(l.at[0].samples, 2 * (SAMPLES - 8));
    assert_true(l.at[0].epoch == 2 && l.at[0].part == 0);
    remove_all(dir);
}

/* Runs the same trainer a second time. */
static void test_run_again(void **state)
{
    (void)state;
    life l = {0}, cut = {.stop = 3, .twice = 1};
    on(3, &l);
    fill();
    on(3, &cut);
    assert_memory_equal(l.w, cut.w, sizeof l.w);
    for (int i = 0; i < SAMPLES; i++) assert_int_equal(seen[i], 2);
}

/* 2, 3 and 1 ranks in one epoch, and again in the next: each step has the same samples, each
 * sample is used once per epoch, and the weights are those of one rank up to rounding. */
static void test_other_ranks(void **state)
{
    (void)state;
    static const struct {
        int size;
        int64_t batch, accumulate, stop;
    } part[] = {{2, 6, 1, 2}, {3, 4, 1, 3}, {1, 12, 1, 4}, {1, 4, 3, 6},
                {4, 3, 1, 7}, {2, 3, 2, 8}, {3, 4, 1, 0}};
    char dir[] = "change.XXXXXX";
    assert_non_null(mkdtemp(dir));
    life one = {.schedule = 1}, l = {.schedule = 1, .dir = dir, .blind = 1};
    fill();
    on(1, &one);
    fill();
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        l.batch = part[i].batch;
        l.accumulate = part[i].accumulate;
        l.stop = part[i].stop;
        on(part[i].size, &l);
        for (int k = 0; k < SAMPLES && part[i].stop == 4; k++) assert_true(seen[k] <= 1);
    }
    for (int i = 0; i < SAMPLES; i++) assert_int_equal(seen[i], 2);
    assert_int_equal(l.at[0].iteration, one.at[0].iteration);
    assert_int_equal(l.at[0].samples, one.at[0].samples);
    assert_true(fabs(l.loss[0] - one.loss[0]) < 1e-4);
    for (size_t i = 0; i < sizeof one.w[0] / sizeof(float); i++)
        assert_true(fabsf(one.w[0][i] - l.w[0][i]) < 1e-3f);
    remove_all(dir);
}

static void test_another_step_is_refused(void **state)
{
    (void)state;
    char dir[] = "refuse.XXXXXX";
    assert_non_null(mkdtemp(dir));
    life l = {.dir = dir, .stop = 2, .batch = 6};
    on(2, &l);
    l.want = CTN_ESTATE;
    l.message =
        "58 samples in steps of 12, by 2 ranks; this job has 58 samples in steps of 18, on 3.";
    on(3, &l);
    remove_all(dir);
}

/* A rank, 0 or another, that fails in the middle of loading ends the others. */
static void test_one_cannot_load(void **state)
{
    (void)state;
    char dir[] = "alone.XXXXXX";
    assert_non_null(mkdtemp(dir));
    life l = {.dir = dir, .stop = 2};
    on(3, &l);
    l.want = CTN_EIO;
    l.message = "the disk of this rank is full";
    for (l.refuses = 1; l.refuses <= 3; l.refuses++) {
        on(3, &l);
        for (int r = 0; r < 3; r++) {
            char who[32];
            snprintf(who, sizeof who, "rank %d: ", l.refuses - 1);
            if (r != l.refuses - 1) assert_non_null(strstr(l.error[r], who));
        }
    }
    remove_all(dir);
}

/* The newest state is damaged: all ranks load the previous one. */
static void test_damaged(void **state)
{
    (void)state;
    char dir[] = "damaged.XXXXXX", path[128];
    assert_non_null(mkdtemp(dir));
    life l = {.dir = dir, .blind = 1, .stop = 2};
    on(3, &l);
    l.stop = 3;
    on(3, &l);
    snprintf(path, sizeof path, "%s/000000001/state.safetensors", dir);
    assert_int_equal(truncate(path, 100), 0);
    ctn_set_log(hear, NULL);
    l.stop = 3; /* from step 2 */
    on(3, &l);
    ctn_set_log(NULL, NULL);
    assert_non_null(strstr(warned, "000000001 is damaged"));
    assert_int_equal(l.at[0].iteration, 3);
    for (int i = 1; i < 3; i++) assert_int_equal(l.at[i].iteration, 3);
    remove_all(dir);
}

static int setup(void **state)
{
    (void)state;
    fill();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_agree, setup),
        cmocka_unit_test_setup(test_other_data, setup),
        cmocka_unit_test_setup(test_one_fails, setup),
        cmocka_unit_test_setup(test_own_samples, setup),
        cmocka_unit_test_setup(test_own_samples_elsewhere, setup),
        cmocka_unit_test_setup(test_flipped_bit, setup),
        cmocka_unit_test_setup(test_resume, setup),
        cmocka_unit_test_setup(test_left_out, setup),
        cmocka_unit_test_setup(test_run_again, setup),
        cmocka_unit_test_setup(test_other_ranks, setup),
        cmocka_unit_test_setup(test_another_step_is_refused, setup),
        cmocka_unit_test_setup(test_one_cannot_load, setup),
        cmocka_unit_test_setup(test_damaged, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
