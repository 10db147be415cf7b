/* SPDX-License-Identifier: Apache-2.0
 *
 * States in memory, with threads as ranks. Four ranks train and are then gone, except for some,
 * which continue from their memories on fewer ranks. They must end with the same weights as ranks
 * that load the same state from a file. Open MPI's real loss of ranks is in tests/cluster.
 * Labels: threads
 */
#include "ranks.h"

#include <stdbool.h>
#include <unistd.h>

#include <catena/catena.h>

#include "support/folder.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

enum { FIRST = 4, STEP = 12, SAMPLES = 60, WIDTH = 9, HIDDEN = 33, END = 14 };

static float images[SAMPLES][WIDTH], targets[SAMPLES][1];

/* Part of a training: from its beginning, from memory or from a file, up to an iteration. */
typedef struct {
    bool shard;
    double dropout;
    int64_t end;
    ctn_memory **from, **to; /* of each rank; NULL: none */
    const char *load, *save; /* folder; NULL: none */
    ctn_status want;
    int64_t began[ROOM];
    float w[ROOM][WIDTH * HIDDEN];
} life;

typedef struct {
    ctn_module *net;
    ctn_dataset *data;
    ctn_loader *loader;
    ctn_optim *optim;
    ctn_trainer *tr;
} training;

static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    ctn_tensor *y = ctn_call(self, ctn_step_input(s, 0));
    return ctn_mean_squared_error(y, ctn_step_input(s, 1), CTN_MEAN);
}

static ctn_status open_data(training *t, const job *j)
{
    const ctn_field field[] = {{.dtype = CTN_F32, .ndim = 1, .shape = {WIDTH}},
                               {.dtype = CTN_F32, .ndim = 1, .shape = {1}}};
    const void *const data[] = {images, targets};
    ctn_sampler *s = NULL;
    CTN_TRY(ctn_arrays_open(&t->data, SAMPLES, 2, field, data));
    CTN_TRY(ctn_sampler_shuffled(&s, SAMPLES, 3));
    CTN_TRY(ctn_sampler_shard(s, j->rank, j->size));
    ctn_status st = ctn_loader_new(&t->loader, t->data, s, CTN_OPT(ctn_loader_opt, .total = STEP));
    ctn_sampler_free(s);
    return st;
}

static ctn_status open_training(training *t, const job *j, const life *l)
{
    ctn_module *m[4] = {0};
    *t = (training){0};
    CTN_TRY(open_data(t, j));
    CTN_TRY(ctn_linear_new(&m[0], j->ctx, WIDTH, HIDDEN, NULL));
    CTN_TRY(ctn_activation_new(&m[1], j->ctx, ctn_tanh_at));
    CTN_TRY(ctn_dropout_new(&m[2], j->ctx, l->dropout));
    CTN_TRY(ctn_linear_new(&m[3], j->ctx, HIDDEN, 1, NULL));
    CTN_TRY(ctn_sequential_new(&t->net, j->ctx, 4, m));
    CTN_TRY(ctn_adam_new(&t->optim, ctn_params(t->net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    ctn_context_state s; /* other masks on each rank */
    ctn_context_get_state(j->ctx, &s);
    s.seed += (uint64_t)j->rank * 1000;
    CTN_TRY(ctn_context_set_state(j->ctx, &s));
    CTN_TRY(
        ctn_dist_optim(t->optim, j->c, CTN_OPT(ctn_dist_opt, .shard = l->shard, .bucket = 512)));
    CTN_TRY(ctn_trainer_new(&t->tr, t->optim, t->loader, loss_of, t->net,
                            CTN_OPT(ctn_trainer_opt, .net = t->net, .iterations = l->end)));
    CTN_TRY(ctn_extend_average(t->tr, 0.9));
    if (l->to)
        CTN_TRY(
            ctn_extend_memory(t->tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 3), l->to[j->rank]));
    return ctn_dist_trainer(t->tr, j->c, NULL);
}

static void close_training(training *t)
{
    ctn_trainer_free(t->tr);
    ctn_optim_free(t->optim);
    ctn_loader_free(t->loader);
    ctn_dataset_free(t->data);
    ctn_module_free(t->net);
}

static ctn_status run(training *t, const job *j, life *l)
{
    ctn_progress p;
    if (l->from) CTN_TRY(ctn_trainer_recall(t->tr, l->from[j->rank]));
    if (l->load) CTN_TRY(ctn_trainer_load(t->tr, l->load));
    ctn_trainer_progress(t->tr, &p);
    l->began[j->rank] = p.iteration;
    CTN_TRY(ctn_trainer_run(t->tr));
    return l->save ? ctn_trainer_save(t->tr, l->save) : CTN_OK;
}

static void live(job *j)
{
    life *l = j->arg;
    training t;
    TRY(j, open_training(&t, j, l));
    const ctn_status st = run(&t, j, l);
    CHECK(j, st == l->want, "status %d: %s", st, ctn_error_message());
    if (st == CTN_OK) {
        TRY(j, ctn_dist_values(t.optim));
        TRY(j, ctn_var_get(ctn_params(t.net).var[0], l->w[j->rank], sizeof l->w[0]));
    }
    ctn_error_clear();
    close_training(&t);
}

/* A training of four ranks up to an iteration, with their memories. */
static void train(ctn_memory **memory, bool shard, double dropout, int64_t end)
{
    static life l;
    for (int r = 0; r < FIRST; r++) OK(ctn_memory_new(&memory[r]));
    l = (life){.shard = shard, .dropout = dropout, .end = end, .to = memory};
    on_ranks(FIRST, CTN_MODE_PLANNED, live, &l);
}

/* Four ranks train and copy their states at iterations 3 and 6; those with a bit in `left`
 * continue. ahead: those with a bit in it have also copied their states at iteration 9. */
static void survive(bool shard, int left, int ahead)
{
    ctn_memory *memory[FIRST], *later[FIRST], *theirs[FIRST];
    char dir[] = "memory-XXXXXX";
    /* If rank 0 is lost, seeds are derived from another rank's. */
    const double dropout = left & 1 ? 0.2 : 0;
    int n = 0;
    static life file, loaded, recalled;
    assert_non_null(mkdtemp(dir));
    train(memory, shard, dropout, 7);
    train(later, shard, dropout, 10);
    for (int r = 0; r < FIRST; r++)
        if (left >> r & 1) theirs[n++] = ahead >> r & 1 ? later[r] : memory[r];
    file = (life){.shard = shard, .dropout = dropout, .end = 6, .save = dir};
    on_ranks(FIRST, CTN_MODE_PLANNED, live, &file);
    loaded = (life){.shard = shard, .dropout = dropout, .end = END, .load = dir};
    on_ranks(n, CTN_MODE_PLANNED, live, &loaded);
    recalled = (life){.shard = shard, .dropout = dropout, .end = END, .from = theirs};
    recalled.to = theirs; /* for the next loss */
    on_ranks(n, CTN_MODE_PLANNED, live, &recalled);
    for (int r = 0; r < n; r++) {
        assert_int_equal(recalled.began[r], 6);
        assert_memory_equal(recalled.w[r], loaded.w[0], sizeof loaded.w[0]);
    }
    for (int r = 0; r < FIRST; r++) ctn_memory_free(memory[r]);
    for (int r = 0; r < FIRST; r++) ctn_memory_free(later[r]);
    remove_all(dir);
}

static void test_one_lost(void **state)
{
    (void)state;
    for (int r = 0; r < FIRST; r++) survive(false, 15 & ~(1 << r), 0);
}

static void test_one_lost_of_shards(void **state)
{
    (void)state;
    for (int r = 0; r < FIRST; r++) survive(true, 15 & ~(1 << r), 0);
}

static void test_several_lost(void **state)
{
    (void)state;
    survive(false, 2, 0);
    survive(true, 5, 0);
    survive(true, 10, 0);
}

/* A rank was lost while the others copied: not all of them have completed the newest state. */
static void test_not_all_have_it(void **state)
{
    (void)state;
    survive(false, 7, 5);
    survive(true, 13, 8);
}

static void test_neighbours_lost(void **state)
{
    (void)state;
    ctn_memory *memory[FIRST], *theirs[2], *none[2];
    static life l;
    for (int r = 0; r < 2; r++) OK(ctn_memory_new(&none[r]));
    train(memory, true, 0, 7);
    theirs[0] = memory[0], theirs[1] = memory[3];
    l = (life){.shard = true, .end = END, .from = theirs, .want = CTN_ENOTFOUND};
    on_ranks(2, CTN_MODE_PLANNED, live, &l);
    l = (life){.end = END, .from = none, .want = CTN_ENOTFOUND};
    on_ranks(2, CTN_MODE_PLANNED, live, &l);
    for (int r = 0; r < FIRST; r++) ctn_memory_free(memory[r]);
    for (int r = 0; r < 2; r++) ctn_memory_free(none[r]);
}

int main(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < WIDTH; k++) images[i][k] = (float)((i * 31 + k * 17) % 23 - 11) / 11;
        targets[i][0] = (float)(i % 7 - 3) / 3;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_lost),        cmocka_unit_test(test_one_lost_of_shards),
        cmocka_unit_test(test_several_lost),    cmocka_unit_test(test_not_all_have_it),
        cmocka_unit_test(test_neighbours_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
