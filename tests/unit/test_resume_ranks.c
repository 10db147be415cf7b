/* SPDX-License-Identifier: Apache-2.0
 *
 * A training that 4 ranks have saved in the middle of an epoch continues on 1, 2, 3 and 7 ranks,
 * with sharded state or without: its losses are those of the uninterrupted training up to rounding,
 * and each sample of an epoch is used exactly once. A state saved in f32 is loaded under a bf16
 * policy, and the other way round, without a changed bit. Ranks are threads.
 * Labels: threads
 */
#include "ranks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include <catena/catena.h>

#include "base/base.h"
#include "support/machine.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

/* ---- a training ------------------------------------------------------------------------------ */

/* 84 samples per step can be divided among 1, 2, 3, 4 and 7 ranks. The last step of an epoch has
 * fewer. */
enum { SAMPLES = 554, STEP = 84, STEPS = 7, EPOCHS = 2, CUT = 3, WIDTH = 6, SAVERS = 4 };

static float inputs[SAMPLES][WIDTH], targets[SAMPLES];
static int64_t numbers[SAMPLES];
static atomic_int seen[SAMPLES]; /* how often each sample was trained on */

static void fill(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < WIDTH; k++)
            inputs[i][k] = (float)((i * 37 + k * 101) * 7919 % 257 - 128) / 128;
        targets[i] = inputs[i][0] - 2 * inputs[i][3];
        numbers[i] = i;
        seen[i] = 0;
    }
}

/* One life of a training. */
typedef struct {
    const char *dir;
    int shard;
    ctn_precision precision;
    bool resumes;
    int64_t stop;        /* save and stop after this step; 0: at the end, without saving */
    ctn__hash128 values; /* of parameters and state, when saved or loaded */
} life;

typedef struct {
    ctn_context *ctx;
    ctn_module *net;
    ctn_dataset *data;
    ctn_loader *loader;
    ctn_optim *optim;
    ctn_trainer *tr;
} training;

static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    const training *t = self;
    const ctn_batch *b = ctn_step_batch(s);
    for (int64_t i = 0; i < b->n; i++) seen[((const int64_t *)b->data[2])[i]]++;
    ctn_tensor *y = ctn_call(t->net, ctn_step_input(s, 0));
    return ctn_mean_squared_error(y, ctn_step_input(s, 1), CTN_MEAN);
}

static ctn_status open_data(training *t, const job *j)
{
    const ctn_field field[] = {{.dtype = CTN_F32, .ndim = 1, .shape = {WIDTH}},
                               {.dtype = CTN_F32, .ndim = 1, .shape = {1}},
                               {.dtype = CTN_I64}};
    const void *const data[] = {inputs, targets, numbers};
    ctn_sampler *s = NULL;
    CTN_TRY(ctn_arrays_open(&t->data, SAMPLES, 3, field, data));
    CTN_TRY(ctn_sampler_shuffled(&s, SAMPLES, 3));
    CTN_TRY(ctn_sampler_shard(s, j->rank, j->size));
    CTN_TRY(
        ctn_loader_new(&t->loader, t->data, s, CTN_OPT(ctn_loader_opt, .batch = STEP / j->size)));
    ctn_sampler_free(s);
    return CTN_OK;
}

static ctn_status open_net(training *t, const job *j, const life *l)
{
    ctn_module *m[3] = {0};
    CTN_TRY(ctn_context_new(&t->ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = 5,
                                             .precision = l->precision)));
    CTN_TRY(ctn_linear_new(&m[0], t->ctx, WIDTH, 16, NULL));
    CTN_TRY(ctn_activation_new(&m[1], t->ctx, ctn_tanh_at));
    CTN_TRY(ctn_linear_new(&m[2], t->ctx, 16, 1, NULL));
    CTN_TRY(ctn_sequential_new(&t->net, t->ctx, 3, m));
    CTN_TRY(ctn_adam_new(&t->optim, ctn_params(t->net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    return j->size == 1 ? CTN_OK
                        : ctn_dist_optim(t->optim, j->c, CTN_OPT(ctn_dist_opt, .shard = l->shard));
}

static ctn_status stop(void *self, ctn_trainer *tr)
{
    (void)self;
    ctn_trainer_stop(tr, "cut");
    return CTN_OK;
}

static ctn_status training_new(training *t, const job *j, const life *l)
{
    const ctn_trigger each = {.kind = CTN_EVERY_ITERATIONS, .n = 1};
    CTN_TRY(open_data(t, j));
    CTN_TRY(open_net(t, j, l));
    CTN_TRY(
        ctn_trainer_new(&t->tr, t->optim, t->loader, loss_of, t,
                        CTN_OPT(ctn_trainer_opt, .net = t->net, .epochs = EPOCHS, .out = l->dir)));
    CTN_TRY(ctn_extend_log(t->tr, &each, "log"));
    if (l->stop > 0) /* ranks agree on a stop in the next step */
        CTN_TRY(ctn_trainer_extend(t->tr, &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                           .name = "cut",
                                                           .trigger = {.kind = CTN_ONCE,
                                                                       .n = (double)l->stop - 1},
                                                           .call = stop}));
    return j->size == 1 ? CTN_OK : ctn_dist_trainer(t->tr, j->c, &each);
}

static void training_free(training *t)
{
    ctn_trainer_free(t->tr);
    ctn_loader_free(t->loader);
    ctn_dataset_free(t->data);
    ctn_optim_free(t->optim);
    ctn_module_free(t->net);
    ctn_context_free(t->ctx);
}

static ctn_status add(void *user, const char *name, ctn_dtype type, int ndim, const int64_t *dim,
                      void *data)
{
    ctn__hash128 *h = user;
    size_t bytes = ctn_dtype_size(type);
    for (int i = 0; i < ndim; i++) bytes *= (size_t)dim[i];
    const ctn__hash128 part[3] = {*h, ctn__hash(name, strlen(name)), ctn__hash(data, bytes)};
    *h = ctn__hash(part, sizeof part);
    return CTN_OK;
}

/* All parameters and the state of the optimizer, whole on every rank. */
static ctn_status sum_up(const training *t, const job *j, ctn__hash128 *h)
{
    *h = (ctn__hash128){0};
    if (j->size > 1) CTN_TRY(ctn_dist_values(t->optim));
    CTN_TRY(ctn_module_visit(t->net, add, h));
    return ctn_optim_visit(t->optim, add, h);
}

static void run_life(job *j)
{
    life *l = j->arg;
    training t = {0};
    ctn__hash128 h = {0};
    ctn_progress p;
    char state[96];
    snprintf(state, sizeof state, "%s/state", l->dir);
    TRY(j, training_new(&t, j, l));
    if (l->resumes) {
        TRY(j, ctn_trainer_load(t.tr, state));
        TRY(j, sum_up(&t, j, &h));
        CHECK(j, h.lo == l->values.lo && h.hi == l->values.hi, "the loaded values differ");
    }
    TRY(j, ctn_trainer_run(t.tr));
    ctn_trainer_progress(t.tr, &p);
    CHECK(j, p.iteration == (l->stop ? l->stop : STEPS * EPOCHS), "%d steps", (int)p.iteration);
    if (l->stop) {
        TRY(j, ctn_trainer_save(t.tr, state));
        TRY(j, sum_up(&t, j, &h));
        if (j->rank == 0) l->values = h;
    }
    training_free(&t);
}

/* ---- other numbers of ranks ------------------------------------------------------------------ */

/* The losses of all steps, from the log. */
static void read_losses(const char *dir, double loss[STEPS * EPOCHS])
{
    char path[96], line[1000];
    int n = 0;
    snprintf(path, sizeof path, "%s/log", dir);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "\"train/loss\":");
        assert_non_null(at);
        assert_true(n < STEPS * EPOCHS);
        loss[n++] = strtod(at + strlen("\"train/loss\":"), NULL);
    }
    fclose(f);
    assert_int_equal(n, STEPS * EPOCHS);
}

static void compare_losses(const char *dir, const double *want, int size, int shard)
{
    double loss[STEPS * EPOCHS], most = 0;
    read_losses(dir, loss);
    for (int i = 0; i < STEPS * EPOCHS; i++) {
        const double d = fabs(loss[i] - want[i]) / want[i];
        if (d > most) most = d;
        if (i < CUT) assert_true(d == 0);
    }
    print_message("4 ranks, then %d, %s: losses differ by up to %.1e\n", size,
                  shard ? "sharded" : "not sharded", most);
    assert_true(most <= 1e-6);
}

static void continue_on(int size, life saved, const double *want, const int *before)
{
    life l = saved;
    l.stop = 0;
    l.resumes = true;
    for (int i = 0; i < SAMPLES; i++) seen[i] = before[i];
    on_ranks(size, CTN_MODE_PLANNED, run_life, &l);
    for (int i = 0; i < SAMPLES; i++) assert_int_equal(seen[i], EPOCHS);
    compare_losses(l.dir, want, size, l.shard);
}

static void change_ranks(int shard)
{
    static const int sizes[] = {1, 2, 3, 7};
    char whole_dir[] = "whole.XXXXXX", dir[] = "saved.XXXXXX";
    double want[STEPS * EPOCHS];
    int before[SAMPLES], used = 0;
    assert_non_null(mkdtemp(whole_dir));
    assert_non_null(mkdtemp(dir));
    life whole = {.dir = whole_dir, .shard = shard}, saved = {.dir = dir, .shard = shard};
    fill();
    on_ranks(SAVERS, CTN_MODE_PLANNED, run_life, &whole);
    read_losses(whole_dir, want);
    fill();
    saved.stop = CUT;
    on_ranks(SAVERS, CTN_MODE_PLANNED, run_life, &saved);
    for (int i = 0; i < SAMPLES; i++) used += before[i] = seen[i];
    assert_int_equal(used, CUT * STEP);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        continue_on(sizes[i], saved, want, before);
}

static void test_plain(void **state)
{
    (void)state;
    change_ranks(0);
}

static void test_sharded(void **state)
{
    (void)state;
    change_ranks(1);
}

/* ---- another precision ----------------------------------------------------------------------- */

/* run_life compares the values after loading with those that were saved. */
static void test_precision(void **state)
{
    (void)state;
    static const ctn_precision policy[] = {CTN_PRECISION_F32, CTN_PRECISION_BF16};
    if (!test_has_bf16()) skip();
    for (int k = 0; k < 4; k++) {
        char dir[] = "policy.XXXXXX";
        assert_non_null(mkdtemp(dir));
        life l = {.dir = dir, .shard = k % 2, .precision = policy[k / 2], .stop = CUT};
        fill();
        on_ranks(SAVERS, CTN_MODE_PLANNED, run_life, &l);
        l.precision = policy[1 - k / 2];
        l.resumes = true;
        l.stop = 0;
        on_ranks(SAVERS, CTN_MODE_PLANNED, run_life, &l);
        on_ranks(3, CTN_MODE_PLANNED, run_life, &l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_sharded),
                                       cmocka_unit_test(test_precision)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
