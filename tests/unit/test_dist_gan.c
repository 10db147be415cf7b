/* SPDX-License-Identifier: Apache-2.0
 *
 * A trainer with two optimizers on several ranks, threads of one process. Everything that looks at
 * the weights between steps waits for the updates of both that are still in flight. States are
 * complete with any choice of sharded optimizers. Ranks that differ, in any of the parameters, are
 * refused or reported, and so is an optimizer that exchanges nothing.
 * Labels: threads
 */
#include "ranks.h"

#include <unistd.h>

#include <catena/catena.h>

#include "optim/optim.h"
#include "support/folder.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

enum { SAMPLES = 48, BATCH = 4, NOISE = 3, WIDE = 32, ROWS = 2 };
enum { MAKES = NOISE * WIDE + WIDE + 2 * WIDE + 2, JUDGES = 2 * WIDE + WIDE + WIDE + 1 };
enum { WEIGHTS = MAKES + JUDGES };

static float points[SAMPLES][ROWS];

/* One life of a training: settings that are the same for all ranks, and the results. */
typedef struct {
    int defer;        /* of both optimizers */
    int shard;        /* bit 0: the first optimizer, bit 1: the second */
    int average;      /* a moving average of the parameters */
    int best;         /* also weights by value */
    int plot;         /* of a parameter, instead of its statistics */
    int alone;        /* the optimizer that is not distributed, from 1; 0: none */
    int frozen;       /* the first layer of the generator */
    const char *odd;  /* rank 1 has another value in this parameter of the net; NULL: none */
    int64_t odd_at;   /* after this step; 0: before the run */
    int64_t steps;    /* 0: 20 */
    const char *dir;  /* of a state that is loaded, and saved at the end; NULL: none */
    const char *out;  /* result folder */
    ctn_status want;  /* expected of the run */
    const char *part; /* of its message */
    /* results */
    float w[MOST][WEIGHTS], mean[WEIGHTS];
    double seen[MOST][2]; /* sums of the minima and means (plot: medians) of a parameter */
} life;

typedef struct {
    const job *j;
    life *l;
    ctn_module *net, *generator, *judge;
    ctn_optim *judges, *makes;
    ctn_dataset *data;
    ctn_loader *loader, *eval;
    ctn_trainer *tr;
} gan;

static ctn_tensor *made(gan *g, ctn_step *s)
{
    const int64_t n = ctn_step_batch(s)->n;
    return ctn_call(g->generator, ctn_full(g->j->ctx, 0.3, CTN_F32, CTN_SHAPE(n, NOISE)));
}

static ctn_tensor *judged(gan *g, ctn_tensor *x, double answer)
{
    ctn_tensor *y = ctn_call(g->judge, x);
    ctn_tensor *t = y ? ctn_full(g->j->ctx, answer, CTN_F32, CTN_SHAPE(ctn_dim(y, 0), 1)) : NULL;
    return ctn_sigmoid_cross_entropy(y, t, CTN_MEAN);
}

static ctn_tensor *judge_loss(void *self, ctn_step *s)
{
    return ctn_add(judged(self, ctn_step_input(s, 0), 1),
                   judged(self, ctn_detach(made(self, s)), 0));
}

static ctn_tensor *generator_loss(void *self, ctn_step *s)
{
    return judged(self, made(self, s), 1);
}

/* What a faulty memory does. */
static ctn_status spoil(void *self, ctn_trainer *tr)
{
    const gan *g = self;
    ctn_var *v = ctn_module_find(g->net, g->l->odd);
    (void)tr;
    if (v && g->j->rank == 1) ((float *)v->data)[1] += 1;
    return v ? CTN_OK : ctn_error_status();
}

/* Runs after the statistics. */
static ctn_status note(void *self, ctn_trainer *tr)
{
    const gan *g = self;
    const char *const keys[] = {"param/0.2.bias/min",
                                g->l->plot ? "param/0.2.bias/p50" : "param/0.2.bias/mean"};
    for (int i = 0; i < 2; i++) {
        double v = 0;
        CTN_TRY(ctn_trainer_value(tr, keys[i], &v));
        g->l->seen[g->j->rank][i] += v;
    }
    return CTN_OK;
}

static ctn_status make_data(gan *g)
{
    const ctn_field field = {.dtype = CTN_F32, .ndim = 1, .shape = {ROWS}};
    ctn_sampler *s = NULL;
    CTN_TRY(ctn_arrays_open(&g->data, SAMPLES, 1, &field, (const void *[]){points}));
    CTN_TRY(ctn_sampler_shuffled(&s, SAMPLES, 1));
    CTN_TRY(ctn_sampler_shard(s, g->j->rank, g->j->size));
    CTN_TRY(ctn_loader_new(&g->loader, g->data, s, CTN_OPT(ctn_loader_opt, .batch = BATCH)));
    CTN_TRY(ctn_loader_new(&g->eval, g->data, s, CTN_OPT(ctn_loader_opt, .batch = BATCH)));
    ctn_sampler_free(s);
    return CTN_OK;
}

static ctn_status make_nets(gan *g)
{
    const int64_t from[] = {NOISE, WIDE, 2}, to[] = {2, WIDE, 1};
    const life *l = g->l;
    ctn_context *ctx = g->j->ctx;
    CTN_TRY(ctn_zoo_mlp(&g->generator, ctx, CTN_OPT(ctn_mlp_opt, .n = 3, .size = from)));
    CTN_TRY(ctn_zoo_mlp(&g->judge, ctx, CTN_OPT(ctn_mlp_opt, .n = 3, .size = to)));
    ctn_module *both[2] = {g->generator, g->judge};
    CTN_TRY(ctn_module_list_new(&g->net, ctx, 2, both));
    if (l->frozen) ctn_var_set_trainable(ctn_params(g->generator).var[0], 0);
    CTN_TRY(ctn_adam_new(&g->judges, ctn_params(g->judge), NULL));
    CTN_TRY(ctn_adam_new(&g->makes, ctn_params(g->generator), NULL));
    for (int k = 0; k < 2; k++)
        if (l->alone != k + 1)
            CTN_TRY(
                ctn_dist_optim(k ? g->makes : g->judges, g->j->c,
                               CTN_OPT(ctn_dist_opt, .defer = l->defer, .bucket = 64,
                                       .shard = l->shard >> k & 1, .progress = CTN_DIST_POLLS)));
    return CTN_OK;
}

static ctn_status extend(gan *g)
{
    const life *l = g->l;
    const ctn_trigger every = {.kind = CTN_EVERY_ITERATIONS, .n = 3};
    CTN_TRY(ctn_dist_trainer(g->tr, g->j->c, NULL));
    if (l->plot) {
        CTN_TRY(ctn_extend_param_plot(g->tr, &every, "0.2.bias", "plot.svg"));
        CTN_TRY(ctn_extend_log(g->tr, NULL, NULL));
    } else {
        CTN_TRY(ctn_extend_param_stats(g->tr, &every, "0.2.bias"));
    }
    CTN_TRY(ctn_trainer_extend(g->tr, &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                       .name = "note",
                                                       .trigger = every,
                                                       .call = note,
                                                       .self = g}));
    if (l->average) {
        CTN_TRY(ctn_extend_average(g->tr, 0.9));
        CTN_TRY(ctn_extend_evaluator(g->tr, &every, g->eval, judge_loss, g));
    }
    if (l->best)
        CTN_TRY(ctn_extend_weights(g->tr, CTN_TRIGGER(CTN_WHEN_MIN, .key = "val/loss"), NULL));
    if (!l->odd) return CTN_OK;
    CTN_TRY(ctn_extend_replicas(g->tr, &every));
    return ctn_trainer_extend(g->tr, &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                      .name = "spoil",
                                                      .trigger = {.kind = CTN_ONCE,
                                                                  .n = (double)l->odd_at +
                                                                       99 * (l->odd_at == 0)},
                                                      .call = spoil,
                                                      .self = g});
}

static ctn_status gan_new(gan *g)
{
    const life *l = g->l;
    CTN_TRY(make_data(g));
    CTN_TRY(make_nets(g));
    CTN_TRY(ctn_trainer_new(&g->tr, g->judges, g->loader, judge_loss, g,
                            CTN_OPT(ctn_trainer_opt, .net = g->net, .out = l->out,
                                    .iterations = l->steps ? l->steps : 20)));
    CTN_TRY(ctn_trainer_add_optim(g->tr, "generator", g->makes, generator_loss, g));
    CTN_TRY(extend(g));
    return l->odd && l->odd_at == 0 ? spoil(g, g->tr) : CTN_OK;
}

static void gan_free(gan *g)
{
    ctn_trainer_free(g->tr);
    ctn_loader_free(g->loader);
    ctn_loader_free(g->eval);
    ctn_dataset_free(g->data);
    ctn_optim_free(g->makes);
    ctn_optim_free(g->judges);
    ctn_module_free(g->net);
}

static ctn_status weights_of(const gan *g, float *out)
{
    const ctn_vars p = ctn_params(g->net);
    for (int i = 0; i < p.n; i++) {
        const int64_t n = ctn__count(ctn_var_desc(p.var[i]));
        CTN_TRY(ctn_var_get(p.var[i], out, (size_t)n * sizeof *out));
        out += n;
    }
    return CTN_OK;
}

static ctn_status live(gan *g)
{
    const life *l = g->l;
    if (l->dir) {
        const ctn_status st = ctn_trainer_load(g->tr, l->dir);
        if (st != CTN_ENOTFOUND) CTN_TRY(st);
        ctn_error_clear();
    }
    CTN_TRY(ctn_trainer_run(g->tr));
    return l->dir ? ctn_trainer_save(g->tr, l->dir) : CTN_OK;
}

static void run_life(job *j)
{
    life *l = j->arg;
    gan g = {.j = j, .l = l};
    TRY(j, gan_new(&g));
    const ctn_status st = live(&g);
    if (st == CTN_OK) TRY(j, weights_of(&g, l->w[j->rank]));
    /* A rank that is late hears of the refusal from another one. */
    const bool told = l->want < 0 && st == CTN_EPEER;
    CHECK(j, st == l->want || told, "status %d: %s", st, ctn_error_message());
    CHECK(j, !l->part || strstr(ctn_error_message(), l->part), "%s", ctn_error_message());
    ctn_error_clear();
    if (l->average && st == CTN_OK && j->rank == 0) {
        ctn_trainer_free(g.tr); /* all files are written */
        g.tr = NULL;
        char path[64];
        TRY(j, ctn_comm_barrier(j->c));
        snprintf(path, sizeof path, "%s/average.safetensors", l->out);
        TRY(j, ctn_weights_load(g.net, path, NULL));
        TRY(j, weights_of(&g, l->mean));
    } else if (l->average && st == CTN_OK) TRY(j, ctn_comm_barrier(j->c));
    gan_free(&g);
}

static void on(int size, life *l)
{
    on_ranks(size, CTN_MODE_PLANNED, run_life, l);
    for (int r = 1; r < size && l->want == CTN_OK; r++)
        assert_memory_equal(l->w[r], l->w[0], sizeof l->w[0]);
}

/* ---- values in flight ------------------------------------------------------------------------ */

/* The average, its file, evaluations and statistics are the same whether updates are deferred. */
static void test_average(void **state)
{
    (void)state;
    for (int shard = 0; shard < 4; shard++) {
        char dir[] = "average.XXXXXX";
        assert_non_null(mkdtemp(dir));
        life at_rest = {.defer = CTN_DIST_COMPLETE, .shard = shard, .average = 1, .out = dir};
        life l = {.defer = CTN_DIST_DEFER, .shard = shard, .average = 1, .best = 1, .out = dir};
        on(2, &at_rest);
        on(2, &l);
        assert_memory_equal(l.w, at_rest.w, sizeof l.w);
        assert_memory_equal(l.mean, at_rest.mean, sizeof l.mean);
        assert_memory_equal(l.seen, at_rest.seen, sizeof l.seen);
        assert_true(memcmp(l.mean, l.w[0], sizeof l.mean) != 0);
        remove_all(dir);
    }
}

static void test_statistics(void **state)
{
    (void)state;
    for (int plot = 0; plot < 2; plot++) {
        char dir[] = "statistics.XXXXXX";
        assert_non_null(mkdtemp(dir));
        life at_rest = {.defer = CTN_DIST_COMPLETE, .plot = plot, .out = dir};
        life l = {.defer = CTN_DIST_DEFER, .plot = plot, .out = dir};
        on(2, &at_rest);
        on(2, &l);
        assert_true(l.seen[0][0] < l.seen[0][1]);
        assert_memory_equal(l.seen, at_rest.seen, sizeof l.seen);
        remove_all(dir);
    }
}

/* ---- states ---------------------------------------------------------------------------------- */

static void check_states(int size, int shard, const char *mb)
{
    char dir[] = "states.XXXXXX";
    setenv("CATENA_CHECKPOINT_MB", mb, 1);
    assert_non_null(mkdtemp(dir));
    life whole = {.shard = shard, .steps = 12}, l = {.shard = shard, .dir = dir};
    on(size, &whole);
    for (l.steps = 5; l.steps <= 12; l.steps += 7) on(size, &l);
    assert_memory_equal(l.w, whole.w, sizeof l.w);
    remove_all(dir);
}

static void test_states(void **state)
{
    (void)state;
    for (int shard = 0; shard < 4; shard++)
        for (int size = 2; size <= 3; size++) {
            check_states(size, shard, "0");
            check_states(size, shard, "16");
        }
    unsetenv("CATENA_CHECKPOINT_MB");
}

/* ---- ranks that differ ----------------------------------------------------------------------- */

static void test_other_values(void **state)
{
    (void)state;
    life l = {.want = CTN_ESTATE, .odd_at = 4, .frozen = 1};
    l.odd = "0.2.weight";
    l.part = "replicas: after iteration 6, generator.2.weight has other values on rank 1 than";
    on(2, &l);
    l.odd = "0.0.weight"; /* frozen */
    l.part = "replicas: after iteration 6, generator.0.weight has other values on rank 1 than";
    on(3, &l);
    l.want = CTN_EARG; /* before the first step */
    l.odd_at = 0;
    l.part = "rank 1 has weights of optimizer generator with the hash";
    on(2, &l);
    l.odd = "0.2.weight";
    on(2, &l);
}

static void test_not_distributed(void **state)
{
    (void)state;
    life l = {.want = CTN_ESTATE, .alone = 2, .part = "optimizer generator is not distributed"};
    on(2, &l);
    l.alone = 1;
    l.part = "the trainer's own optimizer is not distributed";
    on(2, &l);
}

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        points[i][0] = (float)(i % 7) / 7;
        points[i][1] = (float)(i % 5) / 5 + 1;
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_average),         cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_states),          cmocka_unit_test(test_other_values),
        cmocka_unit_test(test_not_distributed),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
#endif
