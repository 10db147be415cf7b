/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks with samples of their own, of which one has few or none: it takes steps without samples,
 * and a value that it has never reported, or long ago, is no reason to stop. Blocks are refused.
 * Labels: threads
 */
#include "ranks.h"

#include <sys/stat.h>

#include <catena/datasets.h>
#include <catena/train.h>

#include "support/folder.h"
#include "support/world.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

enum { SAMPLES = 16, BATCH = 2, EPOCHS = 2 };

typedef struct {
    int samples[2]; /* of the ranks */
    int64_t bad;    /* step of rank 0 whose loss is NaN; -1: none */
    ctn_nonfinite_policy policy;
    int blocks; /* the loader delivers blocks */
} life;

typedef struct {
    const life *l;
    job *j;
    ctn_module *net;
    ctn_trainer *tr;
} subject;

static float images[SAMPLES];

static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    const subject *x = self;
    ctn_progress p;
    ctn_tensor *y = ctn_call(x->net, ctn_step_input(s, 0));
    ctn_trainer_progress(x->tr, &p);
    ctn_tensor *loss = ctn_mean(ctn_square(ctn_shift(y, 1)), CTN_ALL_AXES, 0);
    return x->j->rank == 0 && p.iteration == x->l->bad ? ctn_scale(loss, NAN) : loss;
}

static ctn_status train(subject *x)
{
    static const ctn_field field[] = {{.dtype = CTN_F32, .ndim = 1, .shape = {1}}};
    static const void *const data[] = {images};
    const int n = x->l->samples[x->j->rank];
    ctn_dataset *ds = NULL;
    ctn_sampler *order = NULL;
    ctn_loader *loader = NULL;
    ctn_optim *o = NULL;
    ctn_status st = CTN_OK;
    CTN_TRY_GOTO(st, done, ctn_arrays_open(&ds, n, 1, field, data));
    CTN_TRY_GOTO(st, done, ctn_sampler_sequential(&order, n));
    CTN_TRY_GOTO(st, done,
                 ctn_loader_new(&loader, ds, order,
                                CTN_OPT(ctn_loader_opt, .batch = BATCH,
                                        .total = x->l->blocks ? 2 * BATCH : 0,
                                        .block = x->l->blocks ? BATCH : 0)));
    CTN_TRY_GOTO(st, done, ctn_linear_new(&x->net, x->j->ctx, 1, 1, NULL));
    CTN_TRY_GOTO(st, done, ctn_adam_new(&o, ctn_params(x->net), NULL));
    CTN_TRY_GOTO(st, done,
                 ctn_dist_optim(o, x->j->c, CTN_OPT(ctn_dist_opt, .exact = x->l->blocks ? 2 : 0)));
    CTN_TRY_GOTO(st, done,
                 ctn_trainer_new(&x->tr, o, loader, loss_of, x,
                                 CTN_OPT(ctn_trainer_opt, .net = x->net, .epochs = EPOCHS,
                                         .out = "uneven")));
    CTN_TRY_GOTO(st, done, ctn_dist_trainer(x->tr, x->j->c, NULL));
    CTN_TRY_GOTO(st, done,
                 ctn_extend_on_nonfinite(x->tr, NULL,
                                         CTN_OPT(ctn_nonfinite_opt, .policy = x->l->policy)));
    CTN_TRY_GOTO(st, done, ctn_extend_state(x->tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 1)));
    st = ctn_trainer_run(x->tr);
done:
    ctn_trainer_free(x->tr);
    ctn_optim_free(o);
    ctn_module_free(x->net);
    ctn_loader_free(loader);
    ctn_sampler_free(order);
    ctn_dataset_free(ds);
    return st;
}

static void run_life(job *j)
{
    subject x = {.l = j->arg, .j = j};
    TRY(j, train(&x));
}

/* Blocks of samples that are the same for any number of ranks: ranks with samples of their own once
 * waited for each other forever. */
static void run_blocks(job *j)
{
    subject x = {.l = j->arg, .j = j};
    const ctn_status st = train(&x);
    CHECK(j, st == CTN_EARG && strstr(ctn_error_message(), "ctn_sampler_shard"), "status %d: %s",
          st, ctn_error_message());
    ctn_error_clear();
}

static void test_blocks(void **state)
{
    (void)state;
    test_deadline(300, "a loader with blocks");
    on_ranks(2, CTN_MODE_PLANNED, run_blocks, &(life){{14, 6}, -1, CTN_NONFINITE_STOP, 1});
    remove_all("uneven");
    test_deadline(0, NULL);
}

static void live(const life *l)
{
    mkdir("uneven", 0777);
    on_ranks(2, CTN_MODE_PLANNED, run_life, (void *)(uintptr_t)l);
    remove_all("uneven");
}

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) images[i] = (float)i / SAMPLES;
    return 0;
}

/* Saving a state gives rank 0 the sums of all ranks. */
static void test_rank_without_samples(void **state)
{
    (void)state;
    live(&(life){{0, 8}, -1, CTN_NONFINITE_STOP, 0});
    live(&(life){{8, 0}, -1, CTN_NONFINITE_STOP, 0});
    live(&(life){{2, 16}, -1, CTN_NONFINITE_STOP, 0});
}

/* The last value of rank 0 is of a step that was skipped. */
static void test_skipped_before_the_end(void **state)
{
    (void)state;
    live(&(life){{4, 16}, 1, CTN_NONFINITE_SKIP, 0});
    live(&(life){{2, 16}, 0, CTN_NONFINITE_SKIP, 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rank_without_samples),
                                       cmocka_unit_test(test_skipped_before_the_end),
                                       cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests(tests, fill, NULL);
}

#endif
