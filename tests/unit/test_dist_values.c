/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks decide by: values that are reported become visible to schedules and triggers only as
 * means over all ranks, however often the log is written; all ranks know when a state could not be
 * published; a set of extensions that differs between ranks is refused. Threads are ranks.
 * Labels: threads
 */
#include "ranks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include <catena/catena.h>
#include <catena/log.h>

#include "support/folder.h"
#include "train/train.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

enum { SAMPLES = 96, WIDTH = 4 };

static float x[SAMPLES][WIDTH], y[SAMPLES];

typedef struct {
    int log;            /* every so many steps; 0: never */
    int merge;          /* ctn_dist_trainer, with its own trigger */
    int plateau, early; /* decide by train/loss, every 4 steps */
    int best;           /* weights at the smallest train/loss */
    int odd;            /* rank 1 has one extension less */
    int64_t epochs;     /* 0: 4 */
    int64_t stuck;      /* the run ends here, and no state can be published in steps 4 to 16 */
    const char *out;
    ctn_status want;
    const char *part;
    /* results */
    double lr[MOST], loss[MOST];
    ctn_progress at[MOST];
    char ended[MOST][80];
} life;

typedef struct {
    const job *j;
    const life *l;
    ctn_module *net;
    ctn_optim *o;
    ctn_dataset *data;
    ctn_loader *loader;
    ctn_trainer *tr;
} training;

static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    training *t = self;
    return ctn_mean_squared_error(ctn_call(t->net, ctn_step_input(s, 0)), ctn_step_input(s, 1),
                                  CTN_MEAN);
}

/* ---- states that cannot be published --------------------------------------------------------- */

static char warned[400];
static atomic_bool stumbles; /* the file server, when a state gets its name */

static void hear(void *user, const char *text)
{
    (void)user;
    snprintf(warned, sizeof warned, "%s", text);
}

/* Instead of the function of the C library. Rank 0 alone publishes, and hears of the error. */
int rename(const char *from, const char *to)
{
    const char *name = strrchr(from, '/');
    if (name && strncmp(name, "/unfinished-", 12) == 0 && atomic_load(&stumbles)) {
        errno = EIO;
        return -1;
    }
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static bool unfinished(const char *dir)
{
    bool any = false;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;)
        any |= strncmp(e->d_name, "unfinished-", 11) == 0;
    if (d) closedir(d);
    return any;
}

/* Steps wait until all ranks have written their parts, and then until rank 0 has failed to publish,
 * which removes the folder. */
static ctn_status obstruct(void *self, ctn_trainer *tr)
{
    const training *t = self;
    char dir[200];
    ctn_progress p;
    ctn_trainer_progress(tr, &p);
    snprintf(dir, sizeof dir, "%s/state", t->l->out);
    for (int i = 0; p.iteration == 5 && !ctn__checkpoint_written(tr) && i < 6000; i++)
        usleep(10000);
    if (t->j->rank != 0) return CTN_OK;
    if (p.iteration == 4) atomic_store(&stumbles, true);
    for (int i = 0; p.iteration == 7 && unfinished(dir) && i < 6000; i++) usleep(10000);
    if (p.iteration == 16) atomic_store(&stumbles, false);
    return CTN_OK;
}

/* ---- one rank -------------------------------------------------------------------------------- */

static ctn_status make(training *t)
{
    const ctn_field f[] = {{.dtype = CTN_F32, .ndim = 1, .shape = {WIDTH}},
                           {.dtype = CTN_F32, .ndim = 1, .shape = {1}}};
    const life *l = t->l;
    ctn_sampler *s = NULL;
    CTN_TRY(ctn_linear_new(&t->net, t->j->ctx, WIDTH, 1, NULL));
    CTN_TRY(ctn_sgd_new(&t->o, ctn_params(t->net), CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    CTN_TRY(ctn_dist_optim(t->o, t->j->c, NULL));
    CTN_TRY(ctn_arrays_open(&t->data, SAMPLES, 2, f, (const void *[]){x, y}));
    CTN_TRY(ctn_sampler_shuffled(&s, SAMPLES, 1));
    CTN_TRY(ctn_sampler_shard(s, t->j->rank, t->j->size));
    CTN_TRY(ctn_loader_new(&t->loader, t->data, s, CTN_OPT(ctn_loader_opt, .batch = 2)));
    ctn_sampler_free(s);
    return ctn_trainer_new(&t->tr, t->o, t->loader, loss_of, t,
                           CTN_OPT(ctn_trainer_opt, .net = t->net,
                                   .epochs = l->stuck    ? 0
                                             : l->epochs ? l->epochs
                                                         : 4,
                                   .iterations = l->stuck, .out = l->out));
}

static ctn_status extend(training *t)
{
    const life *l = t->l;
    const ctn_trigger four = {.kind = CTN_EVERY_ITERATIONS, .n = 4};
    const ctn_trigger log = {.kind = CTN_EVERY_ITERATIONS, .n = l->log};
    const ctn_patience_opt p = {.struct_size = sizeof p,
                                .key = "train/loss",
                                .patience = 2,
                                .factor = 0.5};
    if (l->log && !(l->odd && t->j->rank == 1)) CTN_TRY(ctn_extend_log(t->tr, &log, NULL));
    if (l->merge) CTN_TRY(ctn_dist_trainer(t->tr, t->j->c, NULL));
    if (l->plateau) CTN_TRY(ctn_extend_plateau(t->tr, &four, "lr", &p));
    if (l->early) CTN_TRY(ctn_extend_early_stop(t->tr, &four, &p));
    if (l->best)
        CTN_TRY(ctn_extend_weights(t->tr, CTN_TRIGGER(CTN_WHEN_MIN, .key = "train/loss"), NULL));
    if (l->stuck == 0) return CTN_OK;
    CTN_TRY(ctn_extend_state(t->tr, CTN_TRIGGER(CTN_AT_ITERATIONS, .at = {4, (double)l->stuck})));
    return ctn_trainer_extend(t->tr,
                              &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                               .name = "obstruct",
                                               .trigger = {.kind = CTN_EVERY_ITERATIONS, .n = 1},
                                               .call = obstruct,
                                               .self = t});
}

static void run_life(job *j)
{
    life *l = j->arg;
    training t = {.j = j, .l = l};
    TRY(j, make(&t));
    TRY(j, extend(&t));
    const ctn_status st = ctn_trainer_run(t.tr);
    /* A rank that is late hears of the refusal from another one. */
    const bool told = l->want < 0 && st == CTN_EPEER;
    CHECK(j, st == l->want || told, "status %d: %s", st, ctn_error_message());
    CHECK(j, !l->part || strstr(ctn_error_message(), l->part), "%s", ctn_error_message());
    ctn_error_clear();
    l->lr[j->rank] = ctn_optim_lr(t.o);
    ctn_trainer_value(t.tr, "train/loss", &l->loss[j->rank]);
    ctn_trainer_progress(t.tr, &l->at[j->rank]);
    const char *why = ctn_trainer_stopped(t.tr);
    snprintf(l->ended[j->rank], sizeof l->ended[0], "%s", why ? why : "");
    ctn_trainer_free(t.tr);
    ctn_loader_free(t.loader);
    ctn_dataset_free(t.data);
    ctn_optim_free(t.o);
    ctn_module_free(t.net);
}

static void on(int size, life *l)
{
    char dir[] = "values.XXXXXX";
    assert_non_null(mkdtemp(dir));
    l->out = dir;
    on_ranks(size, CTN_MODE_PLANNED, run_life, l);
    for (int r = 1; r < size && l->want == CTN_OK; r++) {
        assert_true(l->lr[r] == l->lr[0]);
        assert_true(l->loss[r] == l->loss[0]);
        assert_int_equal(l->at[r].iteration, l->at[0].iteration);
        assert_int_equal(l->at[r].saved, l->at[0].saved);
        assert_string_equal(l->ended[r], l->ended[0]);
    }
    remove_all(dir);
}

/* The log is written more often than ctn_dist_trainer averages. */
static void test_plateau(void **state)
{
    (void)state;
    for (int size = 2; size <= 3; size++) {
        life l = {.log = 4, .merge = 1, .plateau = 1};
        on(size, &l);
        assert_true(l.lr[0] < 0.1);
    }
}

static void test_early_stop(void **state)
{
    (void)state;
    for (int size = 2; size <= 3; size++) {
        life l = {.log = 4, .merge = 1, .early = 1, .best = 1};
        on(size, &l);
        assert_true(l.at[0].epoch < 4);
    }
}

/* Without ctn_dist_trainer every rank would decide by its own samples. */
static void test_own_values(void **state)
{
    (void)state;
    life l = {.log = 4, .plateau = 1, .want = CTN_ESTATE, .part = "call ctn_dist_trainer"};
    on(2, &l);
    l = (life){.log = 4, .early = 1, .want = CTN_ESTATE, .part = "call ctn_dist_trainer"};
    on(2, &l);
    l = (life){.log = 4, .best = 1, .want = CTN_ESTATE, .part = "call ctn_dist_trainer"};
    on(2, &l);
    l = (life){.log = 4, .plateau = 1};
    on(1, &l);
}

static void test_other_extensions(void **state)
{
    (void)state;
    life l = {.log = 4,
              .merge = 1,
              .odd = 1,
              .want = CTN_EARG,
              .part = "rank 0 has the extension log every 4 iterations"};
    on(2, &l);
}

/* Rank 0 could not publish the first state, and the last one is complete: no rank waits for
 * another at the end. */
static void test_unpublished(void **state)
{
    (void)state;
    ctn_set_log(hear, NULL);
    warned[0] = 0;
    life l = {.merge = 1, .stuck = 24};
    on(2, &l);
    ctn_set_log(NULL, NULL);
    assert_non_null(strstr(warned, "rename"));
    assert_int_equal(l.at[0].saved, 24);
}

static int setup(void **state)
{
    (void)state;
    unsigned r = 1;
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < WIDTH; k++) {
            r = r * 1103515245u + 12345u;
            x[i][k] = (float)(r >> 8 & 1023) / 512 - 1;
        }
        r = r * 1103515245u + 12345u;
        y[i] = x[i][0] - 2 * x[i][3] + (float)(r >> 8 & 1023) / 512;
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plateau),          cmocka_unit_test(test_own_values),
        cmocka_unit_test(test_other_extensions), cmocka_unit_test(test_unpublished),
        cmocka_unit_test(test_early_stop),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
#endif
