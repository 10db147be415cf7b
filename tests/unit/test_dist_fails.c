/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank that fails at a random moment of a distributed training. All other ranks are told, none
 * waits forever, and everything can be freed. Under the address sanitizer this also shows that
 * nothing is used after it was freed.
 * Labels: threads
 */
#include "ranks.h"

#include <time.h>

#include <catena/datasets.h>

#include "support/world.h"

enum { WIDTH = 96, LAYERS = 4, ROWS = 4, STEPS = 8 };

#if defined(__SANITIZE_THREAD__)
enum { TIMES = 30 };
#else
enum { TIMES = 200 };
#endif

typedef struct {
    unsigned seed;
} plan;

static ctn_status one_step(ctn_context *ctx, ctn_module *net, ctn_optim *o, ctn_comm *c, int fail)
{
    float x[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (float)(i % 17) / 17;
    CTN_TRY(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_call(net, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(ROWS, WIDTH)));
    ctn_tensor *loss = ctn_sum(ctn_square(y), CTN_ALL_AXES, 0);
    ctn_status st = CTN_OK;
    if (fail == 2) {
        ctn_comm_break(c, "given up");
        st = CTN_ESTATE;
    } else {
        st = ctn_backward(o, fail == 1 ? NULL : loss);
    }
    if (st == CTN_OK) st = ctn_optim_step(o);
    ctn_status end = ctn_scope_end(ctx);
    return st < 0 ? st : end;
}

static void train(job *j)
{
    static const char *const names[] = {"ring", "flat", "rabenseifner", "torus", "rsap", "auto"};
    unsigned all = ((plan *)j->arg)->seed * 2654435761u, own = all + (unsigned)j->rank * 977;
    const int who = rand_r(&all) % j->size, when = rand_r(&all) % STEPS;
    const int how = 1 + rand_r(&all) % 2, shard = rand_r(&all) % 3 == 0;
    const char *algorithm = shard ? "ring" : names[rand_r(&all) % 6];
    ctn_module *m[2 * LAYERS], *net = NULL;
    ctn_optim *o = NULL;
    ctn_status st = CTN_OK;
    TRY(j, ctn_comm_set_algorithm(j->c, algorithm));
    for (int i = 0; i < LAYERS; i++) {
        TRY(j, ctn_linear_new(&m[2 * i], j->ctx, WIDTH, WIDTH, NULL));
        TRY(j, ctn_activation_new(&m[2 * i + 1], j->ctx, ctn_tanh_at));
    }
    TRY(j, ctn_sequential_new(&net, j->ctx, 2 * LAYERS, m));
    TRY(j, ctn_adam_new(&o, ctn_params(net), NULL));
    /* The other ranks may fail before this one is ready for the first step. */
    st = ctn_dist_optim(o, j->c,
                        CTN_OPT(ctn_dist_opt, .bucket = 4096, .shard = shard,
                                .progress = rand_r(&all) % 2 ? CTN_DIST_POLLS : CTN_DIST_THREAD,
                                .defer = rand_r(&all) % 2 ? CTN_DIST_DEFER : 0));
    for (int i = 0; i < STEPS && st == CTN_OK; i++) {
        const struct timespec nap = {.tv_nsec = rand_r(&own) % 1000000};
        if (rand_r(&own) % 3 == 0) nanosleep(&nap, NULL);
        st = one_step(j->ctx, net, o, j->c, j->rank == who && i == when ? how : 0);
    }
    CHECK(j, st < 0, "the failure of rank %d was not reported", who);
    CHECK(j, j->rank == who || st == CTN_EPEER, "%s", ctn_error_message());
    char name[32];
    snprintf(name, sizeof name, "rank %d", who);
    CHECK(j, j->rank == who || strstr(ctn_error_message(), name), "not named: %s",
          ctn_error_message());
    ctn_error_clear();
    ctn_optim_free(o);
    ctn_module_free(net);
}

static void test_somebody_fails(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TIMES; i++)
        on_ranks(2 + (int)(i % 3), CTN_MODE_PLANNED, train, &(plan){i + 1});
}

/* ---- a sample that cannot be read ------------------------------------------------------------ */

enum { SAMPLES = 30, BATCH = 3 };

/* The samples of rank 0: the one with number `bad` of an epoch of this rank cannot be read. */
typedef struct {
    int bad, accumulate, reads;
} broken;

static int64_t broken_count(void *self)
{
    (void)self;
    return SAMPLES;
}

static int broken_fields(void *self)
{
    (void)self;
    return 1;
}

static void broken_field(void *self, int f, ctn_field *out)
{
    (void)self, (void)f;
    *out = (ctn_field){.dtype = CTN_F32, .ndim = 1, .shape = {1}};
}

static ctn_status broken_get(void *self, const ctn_sample *s, void *const *dst)
{
    broken *b = self;
    if (b->reads++ == b->bad) return ctn_fail(CTN_EIO, "sample %d is broken", (int)s->index);
    *(float *)dst[0] = 1;
    return CTN_OK;
}

static ctn_tensor *broken_loss(void *self, ctn_step *s)
{
    return ctn_mean(ctn_square(ctn_call(self, ctn_step_input(s, 0))), CTN_ALL_AXES, 0);
}

static ctn_status run_broken(const job *j, broken *b)
{
    static const ctn_dataset_vt vt = {.struct_size = sizeof vt,
                                      .count = broken_count,
                                      .fields = broken_fields,
                                      .field = broken_field,
                                      .get = broken_get};
    ctn_dataset *ds = NULL;
    ctn_sampler *order = NULL;
    ctn_loader *loader = NULL;
    ctn_module *net = NULL;
    ctn_optim *o = NULL;
    ctn_trainer *tr = NULL;
    ctn_status st = CTN_OK;
    CTN_TRY_GOTO(st, done, ctn_dataset_new(&ds, &vt, b));
    CTN_TRY_GOTO(st, done, ctn_sampler_sequential(&order, SAMPLES));
    CTN_TRY_GOTO(st, done, ctn_sampler_shard(order, j->rank, j->size));
    CTN_TRY_GOTO(st, done,
                 ctn_loader_new(&loader, ds, order, CTN_OPT(ctn_loader_opt, .batch = BATCH)));
    CTN_TRY_GOTO(st, done, ctn_linear_new(&net, j->ctx, 1, 1, NULL));
    CTN_TRY_GOTO(st, done, ctn_adam_new(&o, ctn_params(net), NULL));
    CTN_TRY_GOTO(st, done, ctn_dist_optim(o, j->c, NULL));
    CTN_TRY_GOTO(st, done,
                 ctn_trainer_new(&tr, o, loader, broken_loss, net,
                                 CTN_OPT(ctn_trainer_opt, .net = net, .epochs = 3,
                                         .accumulate = b->accumulate)));
    CTN_TRY_GOTO(st, done, ctn_dist_trainer(tr, j->c, NULL));
    st = ctn_trainer_run(tr);
done:
    ctn_trainer_free(tr);
    ctn_optim_free(o);
    ctn_module_free(net);
    ctn_loader_free(loader);
    ctn_sampler_free(order);
    ctn_dataset_free(ds);
    return st;
}

static void read_broken(job *j)
{
    broken b = *(broken *)j->arg;
    if (j->rank > 0) b.bad = -1;
    const ctn_status st = run_broken(j, &b);
    CHECK(j, st == (j->rank == 0 ? CTN_EIO : CTN_EPEER), "status %d: %s", st, ctn_error_message());
    CHECK(j, strstr(ctn_error_message(), "is broken"), "%s", ctn_error_message());
    ctn_error_clear();
}

/* Whichever sample it is: the last batch of an epoch once made its rank wait for means of the
 * epoch, while the others waited for it in the next step. */
static void test_a_sample_is_broken(void **state)
{
    (void)state;
    char name[64];
    for (int bad = 0; bad < 2 * SAMPLES / 2; bad++)
        for (int accumulate = 1; accumulate <= 3; accumulate++) {
            snprintf(name, sizeof name, "sample %d, accumulate %d", bad, accumulate);
            test_deadline(300, name);
            on_ranks(2, CTN_MODE_PLANNED, read_broken, &(broken){bad, accumulate, 0});
        }
    test_deadline(0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_somebody_fails),
                                       cmocka_unit_test(test_a_sample_is_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
