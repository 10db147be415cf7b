/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps with the same bits on any number of ranks, with threads as ranks: losses, weights and
 * running statistics of 1, 2, 3, 4 and 7 ranks, with dropout, incomplete last steps, and a state
 * that another number of ranks continues. Gradients that are not finite are not finite on all.
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

enum { SAMPLES = 62, STEP = 24, BLOCK = 3, WIDTH = 9, HIDDEN = 17, END = 11, VALUES = 2 * HIDDEN };

static float images[SAMPLES][WIDTH];
static float targets[SAMPLES][1];

typedef struct {
    int64_t end;
    const char *load, *save; /* folder; NULL: none */
    bool spoil;              /* one gradient overflows */
    double loss[END + 1];    /* of each step, on rank 0 */
    float w[ROOM][WIDTH * HIDDEN], state[ROOM][VALUES];
} life;

typedef struct {
    const life *l;
    ctn_module *net;
} subject;

static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    const subject *t = self;
    ctn_tensor *y = ctn_call(t->net, ctn_step_input(s, 0));
    ctn_tensor *loss = ctn_mean_squared_error(y, ctn_step_input(s, 1), CTN_MEAN);
    return t->l->spoil ? ctn_scale(loss, 1e20) : loss;
}

static ctn_status note(void *self, ctn_trainer *tr)
{
    life *l = self;
    ctn_progress p;
    ctn_trainer_progress(tr, &p);
    ctn_trainer_value(tr, "train/loss", &l->loss[p.iteration]);
    return CTN_OK;
}

static ctn_status open_loader(ctn_loader **out, ctn_dataset **set, const job *j)
{
    const ctn_field field[] = {{.dtype = CTN_F32, .ndim = 1, .shape = {WIDTH}},
                               {.dtype = CTN_F32, .ndim = 1, .shape = {1}}};
    const void *const data[] = {images, targets};
    ctn_sampler *s = NULL;
    CTN_TRY(ctn_arrays_open(set, SAMPLES, 2, field, data));
    CTN_TRY(ctn_sampler_shuffled(&s, SAMPLES, 3));
    CTN_TRY(ctn_sampler_shard(s, j->rank, j->size));
    ctn_status st = ctn_loader_new(out, *set, s,
                                   CTN_OPT(ctn_loader_opt, .total = STEP, .block = BLOCK,
                                           .threads = j->rank % 2));
    ctn_sampler_free(s);
    return st;
}

static ctn_status open_net(ctn_module **out, const job *j)
{
    ctn_module *m[5] = {0};
    CTN_TRY(ctn_linear_new(&m[0], j->ctx, WIDTH, HIDDEN, NULL));
    CTN_TRY(ctn_batch_norm_new(&m[1], j->ctx, HIDDEN, NULL));
    CTN_TRY(ctn_activation_new(&m[2], j->ctx, ctn_tanh_at));
    CTN_TRY(ctn_dropout_new(&m[3], j->ctx, 0.2));
    CTN_TRY(ctn_linear_new(&m[4], j->ctx, HIDDEN, 1, NULL));
    return ctn_sequential_new(out, j->ctx, 5, m);
}

/* The running mean and variance. */
static ctn_status take_state(void *user, const char *name, ctn_dtype type, int ndim,
                             const int64_t *dim, void *data)
{
    float *to = user;
    (void)type;
    if (ndim != 1 || dim[0] != HIDDEN || !strstr(name, "running")) return CTN_OK;
    memcpy(to + (strstr(name, "mean") ? 0 : HIDDEN), data, HIDDEN * sizeof *to);
    return CTN_OK;
}

static ctn_status run(ctn_trainer *tr, const life *l)
{
    if (l->load) CTN_TRY(ctn_trainer_load(tr, l->load));
    CTN_TRY(ctn_trainer_run(tr));
    return l->save ? ctn_trainer_save(tr, l->save) : CTN_OK;
}

static void live(job *j)
{
    life *l = j->arg;
    subject self = {.l = l};
    ctn_dataset *set = NULL;
    ctn_loader *loader = NULL;
    ctn_optim *o = NULL;
    ctn_trainer *tr = NULL;
    TRY(j, open_loader(&loader, &set, j));
    TRY(j, open_net(&self.net, j));
    TRY(j, ctn_adam_new(&o, ctn_params(self.net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    ctn_optim_set_clip(o, 0.5);
    TRY(j, ctn_dist_optim(o, j->c, CTN_OPT(ctn_dist_opt, .exact = STEP / BLOCK)));
    TRY(j, ctn_trainer_new(&tr, o, loader, loss_of, &self,
                           CTN_OPT(ctn_trainer_opt, .net = self.net, .iterations = l->end)));
    TRY(j, ctn_dist_trainer(tr, j->c, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 1)));
    if (j->rank == 0)
        TRY(j, ctn_trainer_extend(tr, &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                       .name = "note",
                                                       .priority = 1,
                                                       .trigger = {CTN_EVERY_ITERATIONS, 1, NULL},
                                                       .call = note,
                                                       .self = l}));
    TRY(j, run(tr, l));
    TRY(j, ctn_var_get(ctn_params(self.net).var[0], l->w[j->rank], sizeof l->w[0]));
    TRY(j, ctn_module_visit(self.net, take_state, l->state[j->rank]));
    ctn_trainer_free(tr);
    ctn_optim_free(o);
    ctn_loader_free(loader);
    ctn_dataset_free(set);
    ctn_module_free(self.net);
}

static void same(const life *a, const life *b, int size)
{
    for (int r = 0; r < size; r++) {
        assert_memory_equal(b->w[r], a->w[0], sizeof a->w[0]);
        assert_memory_equal(b->state[r], a->state[0], sizeof a->state[0]);
    }
    for (int64_t i = 1; i <= END; i++)
        if (b->loss[i] != 0) assert_true(a->loss[i] == b->loss[i]);
}

static const int sizes[] = {2, 3, 4, 7};

static void test_same_bits(void **state)
{
    static life one, many;
    (void)state;
    one = (life){.end = END};
    on_ranks(1, CTN_MODE_PLANNED, live, &one);
    assert_true(one.loss[END] > 0 && one.loss[1] > 0);
    assert_true(one.state[0][0] != 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        many = (life){.end = END};
        on_ranks(sizes[i], CTN_MODE_PLANNED, live, &many);
        assert_true(many.loss[END] > 0);
        same(&one, &many, sizes[i]);
    }
}

/* Stopped in the middle of an epoch and continued by another number of ranks. */
static void test_resumed(void **state)
{
    static life one, part, rest;
    char dir[] = "exact-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(dir));
    one = (life){.end = END};
    on_ranks(1, CTN_MODE_PLANNED, live, &one);
    part = (life){.end = 5, .save = dir};
    on_ranks(3, CTN_MODE_PLANNED, live, &part);
    rest = (life){.end = END, .load = dir};
    on_ranks(4, CTN_MODE_PLANNED, live, &rest);
    same(&one, &rest, 4);
    remove_all(dir);
}

/* Gradients that do not fit make the parameters NaN on all ranks, and are not silently cut. */
static void test_too_large(void **state)
{
    static life l;
    (void)state;
    l = (life){.end = 1, .spoil = true};
    on_ranks(3, CTN_MODE_PLANNED, live, &l);
    for (int r = 0; r < 3; r++) assert_true(isnan(l.w[r][0]));
}

int main(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < WIDTH; k++) images[i][k] = (float)((i * 31 + k * 17) % 23 - 11) / 11;
        targets[i][0] = (float)(i % 7 - 3) / 3;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
