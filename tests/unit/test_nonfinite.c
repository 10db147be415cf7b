/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that are not finite, and loss spikes, on one rank and on threads as ranks. A skipped step
 * changes nothing, and all ranks skip it. A rewind goes on from the newest state that is finite,
 * with a smaller learning rate. Counters and factors survive a resume.
 * Labels: threads
 */
#include "ranks.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/datasets.h>
#include <catena/log.h>
#include <catena/train.h>

#include "nn/nn.h"
#include "support/folder.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

enum { SAMPLES = 48, WIDTH = 5, HIDDEN = 6, CLASSES = 3, STEP = 12, VALUES = 81 };

typedef enum { FINE, NAN_LOSS, INF_LOSS, NAN_GRADIENT, BIG_LOSS, INF_WEIGHT } spoil;

/* One life of a training. */
typedef struct {
    const char *out; /* NULL: no files */
    ctn_nonfinite_opt o;
    int64_t iterations;
    int64_t stop; /* after this many steps; 0: at the end */
    int64_t save; /* iterations between saved states; 0: none */
    spoil kind;
    int rank;     /* the rank whose loss is spoiled */
    int64_t from; /* in the steps from this one on ... */
    int times;    /* ... so many times; 0: always */
    int adam, shard, schedule, scale, resume, accumulate;
    int64_t window; /* of the spikes; 0: do not look for any */
    ctn_status want;
    const char *message;
    /* results */
    float w[MOST][VALUES]; /* parameters and running statistics */
    double skipped[MOST], rewinds[MOST], spikes[MOST], lr[MOST];
    int64_t taken[MOST], iteration[MOST], unchanged[MOST];
    double loss; /* train/loss of rank 0 at the end */
} life;

typedef struct {
    life *l;
    job *j;
    ctn_dataset *data;
    ctn_loader *loader;
    ctn_module *net;
    ctn_optim *optim;
    ctn_trainer *tr;
    int spoiled; /* times */
    float was[VALUES];
} training;

static float images[SAMPLES][WIDTH];
static int64_t labels[SAMPLES];
static char warned[2000];

static void hear(void *user, const char *text)
{
    (void)user;
    const size_t n = strlen(warned);
    snprintf(warned + n, sizeof warned - n, "%s\n", text);
}

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < WIDTH; k++)
            images[i][k] = (float)((i * 37 + k * 101) * 7919 % 257 - 128) / 128;
        labels[i] = (i * 7 + i / 3) % CLASSES;
    }
    warned[0] = 0;
    wire = CTN_F32;
    ctn_set_log(hear, NULL);
    return 0;
}

static bool spoils(training *t)
{
    ctn_progress p;
    ctn_trainer_progress(t->tr, &p);
    const life *l = t->l;
    return l->kind && t->j->rank == l->rank && p.iteration + 1 >= l->from &&
           (l->times == 0 || t->spoiled++ < l->times);
}

static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    training *t = self;
    ctn_tensor *x = ctn_step_input(s, 0);
    const bool bad = spoils(t);
    const spoil kind = bad ? t->l->kind : FINE;
    if (kind == NAN_LOSS) x = ctn_scale(x, NAN); /* spoils the running statistics too */
    ctn_tensor *loss = ctn_softmax_cross_entropy(ctn_call(t->net, x), ctn_step_input(s, 1));
    if (kind == INF_LOSS) loss = ctn_shift(loss, INFINITY); /* its gradient is finite */
    if (kind == BIG_LOSS) loss = ctn_shift(loss, 5);
    if (kind == NAN_GRADIENT) /* 0 with the gradient 0 * infinity */
        loss = ctn_add(loss, ctn_sqrt(ctn_scale(loss, 0)));
    return loss;
}

/* Parameters and states, concatenated. */
static ctn_status values_of(const training *t, float out[VALUES])
{
    ctn_vars all = {0};
    size_t at = 0;
    CTN_TRY(ctn__module_vars(t->net, &all));
    for (int i = 0; i < all.n; i++) {
        const ctn_desc *d = ctn_var_desc(all.var[i]);
        size_t n = 1;
        if (d->dtype != CTN_F32) continue;
        for (int k = 0; k < d->ndim; k++) n *= (size_t)d->dim[k];
        CTN_TRY(ctn_var_get(all.var[i], out + at, n * sizeof(float)));
        at += n;
    }
    return at == VALUES ? CTN_OK : ctn_fail(CTN_EARG, "the net has %d values", (int)at);
}

static ctn_status look(void *self, ctn_trainer *tr)
{
    training *t = self;
    float now[VALUES];
    (void)tr;
    CTN_TRY(values_of(t, now));
    if (memcmp(now, t->was, sizeof now) == 0) t->l->unchanged[t->j->rank]++;
    memcpy(t->was, now, sizeof now);
    return CTN_OK;
}

static ctn_status cut(void *self, ctn_trainer *tr)
{
    (void)self;
    ctn_trainer_stop(tr, "cut");
    return CTN_OK;
}

static ctn_status spoil_weight(void *self, ctn_trainer *tr)
{
    training *t = self;
    const float b[CLASSES] = {0, INFINITY, 0};
    (void)tr;
    return ctn_var_set(ctn_module_find(t->net, "3.bias"), b, sizeof b);
}

static ctn_status open_net(training *t)
{
    const life *l = t->l;
    job *j = t->j;
    ctn_module *m[4] = {0};
    CTN_TRY(ctn_linear_new(&m[0], j->ctx, WIDTH, HIDDEN, NULL));
    CTN_TRY(ctn_batch_norm_new(&m[1], j->ctx, HIDDEN, NULL));
    CTN_TRY(ctn_activation_new(&m[2], j->ctx, ctn_tanh_at));
    CTN_TRY(ctn_linear_new(&m[3], j->ctx, HIDDEN, CLASSES, NULL));
    CTN_TRY(ctn_sequential_new(&t->net, j->ctx, 4, m));
    if (l->adam)
        CTN_TRY(ctn_adam_new(&t->optim, ctn_params(t->net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    else
        CTN_TRY(ctn_sgd_new(&t->optim, ctn_params(t->net),
                            CTN_OPT(ctn_sgd_opt, .lr = 0.1, .momentum = 0.9)));
    if (l->scale)
        CTN_TRY(ctn_optim_set_loss_scale(t->optim, CTN_OPT(ctn_loss_scale_opt, .dynamic = 1)));
    return j->size > 1 ? ctn_dist_optim(t->optim, j->c, CTN_OPT(ctn_dist_opt, .shard = l->shard))
                       : CTN_OK;
}

static ctn_status open_data(training *t)
{
    const ctn_field field[] = {{.dtype = CTN_F32, .ndim = 1, .shape = {WIDTH}}, {.dtype = CTN_I64}};
    const void *const data[] = {images, labels};
    ctn_sampler *s = NULL;
    CTN_TRY(ctn_arrays_open(&t->data, SAMPLES, 2, field, data));
    CTN_TRY(ctn_sampler_shuffled(&s, SAMPLES, 3));
    if (t->j->size > 1) CTN_TRY(ctn_sampler_shard(s, t->j->rank, t->j->size));
    CTN_TRY(ctn_loader_new(&t->loader, t->data, s,
                           CTN_OPT(ctn_loader_opt, .batch = STEP / t->j->size)));
    ctn_sampler_free(s);
    return CTN_OK;
}

static ctn_status add(training *t, const char *name, int priority, ctn_trigger when,
                      ctn_status (*call)(void *, ctn_trainer *))
{
    return ctn_trainer_extend(t->tr, CTN_OPT(ctn_extension, .name = name, .priority = priority,
                                             .trigger = when, .call = call, .self = t));
}

static ctn_status open_trainer(training *t)
{
    const life *l = t->l;
    ctn_nonfinite_opt o = l->o;
    o.struct_size = sizeof o;
    CTN_TRY(ctn_trainer_new(&t->tr, t->optim, t->loader, loss_of, t,
                            CTN_OPT(ctn_trainer_opt, .net = t->net, .iterations = l->iterations,
                                    .out = l->out, .accumulate = l->accumulate)));
    if (t->j->size > 1) CTN_TRY(ctn_dist_trainer(t->tr, t->j->c, NULL));
    CTN_TRY(ctn_extend_on_nonfinite(t->tr, NULL, &o));
    CTN_TRY(ctn_extend_average(t->tr, 0.9));
    if (l->window > 0)
        CTN_TRY(ctn_extend_spikes(t->tr, CTN_OPT(ctn_spike_opt, .window = l->window)));
    if (l->schedule)
        CTN_TRY(ctn_extend_schedule(t->tr, "lr", CTN_OPT(ctn_sched_opt, .kind = CTN_SCHED_LINEAR)));
    if (l->out) CTN_TRY(ctn_extend_log(t->tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 2), "log"));
    if (l->save > 0)
        CTN_TRY(ctn_extend_state(t->tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = (double)l->save)));
    if (l->kind == INF_WEIGHT)
        CTN_TRY(add(t, "spoil", 1000, (ctn_trigger){.kind = CTN_ONCE, .n = (double)l->from},
                    spoil_weight));
    if (l->stop > 0)
        CTN_TRY(add(t, "cut", 1,
                    (ctn_trigger){.kind = CTN_ONCE, .n = (double)(l->stop - (t->j->size > 1))},
                    cut));
    return add(t, "look", 2000, (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 1}, look);
}

static double value(const training *t, const char *name)
{
    double v = 0;
    return ctn_trainer_value(t->tr, name, &v) ? v : 0;
}

static void results(training *t)
{
    life *l = t->l;
    job *j = t->j;
    ctn_progress p;
    ctn_trainer_progress(t->tr, &p);
    TRY(j, values_of(t, l->w[j->rank]));
    l->skipped[j->rank] = value(t, "train/skipped");
    l->rewinds[j->rank] = value(t, "train/rewinds");
    l->spikes[j->rank] = value(t, "train/spikes");
    l->lr[j->rank] = ctn_optim_lr(t->optim);
    l->taken[j->rank] = ctn_optim_steps(t->optim);
    l->iteration[j->rank] = p.iteration;
    if (j->rank == 0) l->loss = value(t, "train/loss");
}

static void run_life(job *j)
{
    life *l = j->arg;
    char state[300];
    training t = {.l = l, .j = j};
    l->unchanged[j->rank] = 0;
    TRY(j, open_data(&t));
    TRY(j, open_net(&t));
    TRY(j, open_trainer(&t));
    snprintf(state, sizeof state, "%s/state", l->out ? l->out : "");
    if (l->resume) TRY(j, ctn_trainer_load(t.tr, state));
    ctn_status st = ctn_trainer_run(t.tr);
    CHECK(j, st == l->want && strstr(ctn_error_message(), l->message ? l->message : ""),
          "status %d: %s", st, ctn_error_message());
    ctn_error_clear();
    results(&t);
    ctn_trainer_free(t.tr);
    ctn_loader_free(t.loader);
    ctn_dataset_free(t.data);
    ctn_optim_free(t.optim);
    ctn_module_free(t.net);
}

static void same_on_all(const life *l, int size)
{
    for (int r = 1; r < size; r++) {
        assert_true(l->skipped[r] == l->skipped[0] && l->rewinds[r] == l->rewinds[0]);
        assert_true(l->spikes[r] == l->spikes[0] && l->lr[r] == l->lr[0]);
        assert_int_equal(l->taken[r], l->taken[0]);
        assert_int_equal(l->iteration[r], l->iteration[0]);
        for (int i = 0; i < VALUES; i++) assert_true(isfinite(l->w[r][i]));
        assert_memory_equal(l->w[r], l->w[0], WIDTH * HIDDEN * sizeof(float));
    }
}

static void on(int size, life *l)
{
    on_ranks(size, CTN_MODE_PLANNED, run_life, l);
    same_on_all(l, size);
}

/* ---- skipping -------------------------------------------------------------------------------- */

/* Two steps are left out, whatever is not finite, and the log does not notice. */
static void test_skip(void **state)
{
    (void)state;
    static const spoil kinds[] = {NAN_LOSS, INF_LOSS, NAN_GRADIENT};
    for (int i = 0; i < 3 * 2 * 2; i++) {
        life l = {.o = {.policy = CTN_NONFINITE_SKIP},
                  .iterations = 9,
                  .kind = kinds[i % 3],
                  .from = 4,
                  .times = 2,
                  .adam = i / 3 % 2,
                  .accumulate = 1 + i / 6};
        on_ranks(1, modes[i / 6], run_life, &l);
        const int steps = l.accumulate == 1 ? 2 : 1; /* two batches of one step are spoiled */
        assert_true(l.skipped[0] == steps);
        assert_int_equal(l.unchanged[0], steps);
        assert_int_equal(l.taken[0], 9 - steps);
        assert_true(isfinite(l.loss));
        for (int k = 0; k < VALUES; k++) assert_true(isfinite(l.w[0][k]));
    }
    assert_non_null(strstr(warned, "train/loss is nan at iteration 4: this step is skipped"));
    assert_non_null(strstr(warned, "train/loss is infinite at iteration 4"));
    assert_non_null(strstr(warned, "the gradients of iteration 4 are not finite"));
}

static void test_skip_nothing(void **state)
{
    (void)state;
    life plain = {.iterations = 8}, l = {.iterations = 8, .o = {.policy = CTN_NONFINITE_SKIP}};
    on(1, &plain);
    on(1, &l);
    assert_memory_equal(l.w[0], plain.w[0], sizeof l.w[0]); /* the same bits */
    assert_true(l.skipped[0] == 0 && l.unchanged[0] == 0);
}

static void test_skip_limit(void **state)
{
    (void)state;
    life l = {.o = {.policy = CTN_NONFINITE_SKIP, .max_skips = 3},
              .iterations = 20,
              .kind = NAN_LOSS,
              .from = 5,
              .want = CTN_ENONFINITE,
              .message = "at iteration 7, and this is skipped step 3 in a row"};
    on(1, &l);
    assert_int_equal(l.taken[0], 4);
    l.rank = 1;
    l.message = "iteration 7";
    on(3, &l);
    assert_int_equal(l.taken[0], 4);
}

static void test_skip_on_ranks(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        wire = i / 2 % 2 ? CTN_BF16 : CTN_F32;
        life l = {.o = {.policy = CTN_NONFINITE_SKIP},
                  .iterations = 6,
                  .kind = (spoil)(NAN_LOSS + i / 4),
                  .rank = 1,
                  .from = 3,
                  .times = 1,
                  .adam = 1,
                  .shard = i % 2};
        on(3, &l);
        assert_true(l.skipped[0] == 1);
        assert_int_equal(l.taken[0], 5);
        for (int r = 0; r < 3; r++) assert_int_equal(l.unchanged[r], 1);
    }
}

static void test_skip_resumed(void **state)
{
    (void)state;
    for (int size = 1; size <= 2; size++) {
        char dir[] = "skip.XXXXXX";
        assert_non_null(mkdtemp(dir));
        life whole = {.o = {.policy = CTN_NONFINITE_SKIP, .max_skips = 3},
                      .iterations = 12,
                      .adam = 1,
                      .kind = NAN_LOSS,
                      .from = 5,
                      .times = 2};
        on(size, &whole);
        life l = whole;
        l.out = dir;
        l.save = 100;
        l.stop = 5; /* between the two */
        on(size, &l);
        assert_int_equal(l.iteration[0], 5);
        l.times = 1;
        l.stop = 0;
        l.resume = 1;
        on(size, &l);
        assert_memory_equal(l.w[0], whole.w[0], sizeof l.w[0]); /* statistics are rank 0's */
        assert_true(l.skipped[0] == 2);
        remove_all(dir);
    }
}

/* Dynamic loss scaling skips steps in normal operation: no warning, no rewind. */
static void test_with_loss_scale(void **state)
{
    (void)state;
    char dir[] = "scale.XXXXXX";
    assert_non_null(mkdtemp(dir));
    life l = {.out = dir,
              .save = 2,
              .o = {.policy = CTN_NONFINITE_REWIND, .max_skips = 4},
              .iterations = 12,
              .scale = 1,
              .kind = NAN_GRADIENT,
              .from = 5,
              .times = 3};
    on(1, &l);
    assert_true(l.skipped[0] == 3 && l.rewinds[0] == 0);
    assert_string_equal(warned, "");
    l.times = 4;
    on(1, &l);
    assert_true(l.rewinds[0] == 1);
    remove_all(dir);
}

/* ---- rewinding ------------------------------------------------------------------------------- */

/* Number of lines of a file, which has no line twice, and none that says null. */
static int lines(const char *dir, const char *file)
{
    char path[300], line[1000], last[1000] = "";
    int n = 0;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        char *end = strstr(line, ",\"epoch\"");
        assert_non_null(end);
        assert_null(strstr(line, "null"));
        *end = 0;
        assert_string_not_equal(line, last);
        snprintf(last, sizeof last, "%s", line);
        n++;
    }
    fclose(f);
    return n;
}

static void check_rewind(int size, int shard)
{
    char dir[] = "rewind.XXXXXX";
    assert_non_null(mkdtemp(dir));
    life l = {.out = dir,
              .save = 5,
              .o = {.policy = CTN_NONFINITE_REWIND},
              .iterations = 20,
              .schedule = 1,
              .shard = shard,
              .adam = 1,
              .kind = NAN_LOSS,
              .rank = size - 1,
              .from = 13,
              .times = 2};
    warned[0] = 0;
    on(size, &l);
    assert_true(l.rewinds[0] == 2);
    assert_int_equal(l.iteration[0], 20);
    assert_int_equal(l.taken[0], 20);
    assert_non_null(strstr(warned, "rewinding from iteration 13 to the state of iteration 10 with "
                                   "0.25 times the learning rate (rewind 2 of 3)"));
    assert_int_equal(lines(dir, "log"), 10);
    const life whole = l;
    remove_all(dir);
    assert_int_equal(mkdir(dir, 0777), 0);
    l.stop = 16; /* the same in two lives */
    on(size, &l);
    assert_int_equal(l.iteration[0], 16);
    assert_true(fabs(l.lr[0] - 0.25 * 0.01 * (1 - 16.0 / 20)) < 1e-9);
    l.kind = FINE;
    l.stop = 0;
    l.resume = 1;
    on(size, &l);
    assert_true(l.rewinds[0] == 2);
    assert_memory_equal(l.w[0], whole.w[0], sizeof l.w[0]);
    assert_int_equal(lines(dir, "log"), 10);
    remove_all(dir);
}

static void test_rewind(void **state)
{
    (void)state;
    check_rewind(1, 0);
    check_rewind(3, 0);
    check_rewind(2, 1);
}

static void test_rewind_limit(void **state)
{
    (void)state;
    char dir[] = "limit.XXXXXX";
    assert_non_null(mkdtemp(dir));
    life l = {.out = dir,
              .save = 2,
              .o = {.policy = CTN_NONFINITE_REWIND, .max_rewinds = 2, .factor = 0.1},
              .iterations = 20,
              .kind = NAN_LOSS,
              .rank = 1,
              .from = 6,
              .want = CTN_ENONFINITE,
              .message = "the training was rewound 2 times, which is the limit"};
    on(2, &l);
    assert_true(l.rewinds[0] == 2);
    l.want = CTN_OK; /* the limit counts the whole training */
    l.message = NULL;
    l.kind = FINE;
    l.resume = 1;
    on(2, &l);
    remove_all(dir);
}

static void test_nothing_to_rewind_to(void **state)
{
    (void)state;
    char dir[] = "none.XXXXXX";
    assert_non_null(mkdtemp(dir));
    life l = {.out = dir,
              .o = {.policy = CTN_NONFINITE_REWIND},
              .iterations = 20,
              .kind = NAN_LOSS,
              .from = 3,
              .want = CTN_ESTATE,
              .message = "rewinding needs saved states"};
    on(1, &l);
    l.save = 5;
    l.want = CTN_ENONFINITE;
    l.message = "there is no saved state to rewind to";
    on(1, &l);
    on(2, &l);
    remove_all(dir);
}

/* A training that went on with an infinite weight and saved it: the newest state is of no use. */
static void test_bad_state(void **state)
{
    (void)state;
    char dir[] = "bad.XXXXXX", path[100];
    assert_non_null(mkdtemp(dir));
    life l = {.out = dir, .save = 3, .iterations = 12, .stop = 6, .kind = INF_WEIGHT, .from = 6};
    on(1, &l);
    l.kind = FINE;
    l.stop = 0;
    l.resume = 1;
    l.o.policy = CTN_NONFINITE_REWIND;
    on(1, &l);
    assert_true(l.rewinds[0] == 1);
    assert_int_equal(l.taken[0], 12);
    snprintf(path, sizeof path, "%s/state/damaged-000000001", dir);
    assert_int_equal(access(path, R_OK), 0);
    assert_non_null(strstr(warned, "has values that are not finite: it is put aside"));
    assert_non_null(strstr(warned, "to the state of iteration 3"));
    /* And it would not have been saved: it is noticed before. */
    remove_all(dir);
    assert_int_equal(mkdir(dir, 0777), 0);
    life m = {.out = dir,
              .save = 3,
              .iterations = 12,
              .kind = INF_WEIGHT,
              .from = 6,
              .o = {.policy = CTN_NONFINITE_SKIP},
              .want = CTN_ENONFINITE,
              .message = "parameter 3.bias is not finite at iteration 6"};
    on(1, &m);
    snprintf(path, sizeof path, "%s/state/000000001", dir);
    assert_int_not_equal(access(path, R_OK), 0);
    remove_all(dir);
}

/* ---- spikes ---------------------------------------------------------------------------------- */

static void test_spikes(void **state)
{
    (void)state;
    for (int size = 1; size <= 2; size++) {
        char dir[] = "spike.XXXXXX";
        assert_non_null(mkdtemp(dir));
        life whole = {.iterations = 40,
                      .window = 10,
                      .kind = BIG_LOSS,
                      .rank = size - 1,
                      .from = 25,
                      .times = 1};
        warned[0] = 0;
        on(size, &whole);
        assert_true(whole.spikes[0] == 1);
        assert_non_null(strstr(warned, "loss spike: the loss of iteration 25 is "));
        life l = whole; /* cut right after the spike, which two ranks notice one step later */
        l.out = dir;
        l.save = 100;
        l.stop = 25;
        on(size, &l);
        assert_int_equal(l.iteration[0], 25);
        assert_true(l.spikes[0] == (size == 1));
        l.kind = FINE;
        l.stop = 0;
        l.resume = 1;
        on(size, &l);
        assert_true(l.spikes[0] == 1);
        l.kind = BIG_LOSS; /* too early: there is nothing to compare with */
        l.from = 5;
        l.out = NULL;
        l.save = l.resume = 0;
        on(size, &l);
        assert_true(l.spikes[0] == 0);
        remove_all(dir);
    }
}

static void run_errors(job *j)
{
    training t = {.l = j->arg, .j = j};
    const struct {
        ctn_nonfinite_opt o;
        const char *part;
    } bad[] = {{{.policy = (ctn_nonfinite_policy)7}, "policy 7 does not exist"},
               {{.max_skips = -1}, "max_skips is -1"},
               {{.factor = 2}, "factor 2"}};
    TRY(j, open_data(&t));
    TRY(j, open_net(&t));
    TRY(j, open_trainer(&t));
    for (int i = 0; i < 3; i++) {
        ctn_nonfinite_opt o = bad[i].o;
        o.struct_size = sizeof o;
        CHECK(j, ctn_extend_on_nonfinite(t.tr, NULL, &o) == CTN_EARG, "case %d", i);
        CHECK(j, strstr(ctn_error_message(), bad[i].part), "%s", ctn_error_message());
        ctn_error_clear();
    }
    CHECK(j, ctn_extend_spikes(t.tr, CTN_OPT(ctn_spike_opt, .window = 1)) == CTN_EARG, "window");
    ctn_error_clear();
    ctn_trainer_free(t.tr);
    ctn_loader_free(t.loader);
    ctn_dataset_free(t.data);
    ctn_optim_free(t.optim);
    ctn_module_free(t.net);
}

static void test_errors(void **state)
{
    (void)state;
    on_ranks(1, CTN_MODE_PLANNED, run_errors, &(life){.iterations = 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_skip, setup),
        cmocka_unit_test_setup(test_skip_nothing, setup),
        cmocka_unit_test_setup(test_skip_limit, setup),
        cmocka_unit_test_setup(test_skip_on_ranks, setup),
        cmocka_unit_test_setup(test_skip_resumed, setup),
        cmocka_unit_test_setup(test_with_loss_scale, setup),
        cmocka_unit_test_setup(test_rewind, setup),
        cmocka_unit_test_setup(test_rewind_limit, setup),
        cmocka_unit_test_setup(test_nothing_to_rewind_to, setup),
        cmocka_unit_test_setup(test_bad_state, setup),
        cmocka_unit_test_setup(test_spikes, setup),
        cmocka_unit_test_setup(test_errors, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
