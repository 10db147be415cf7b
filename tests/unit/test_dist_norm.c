/* SPDX-License-Identifier: Apache-2.0
 *
 * Synchronised batch normalisation with threads as ranks, compared with one rank that has all
 * samples: the layer alone, also in a model in ONNX format, a network trained by a distributed
 * optimizer with batches of different sizes, and a trainer in which ranks run out of samples.
 * Labels: threads
 */
#include "ranks.h"

#include <unistd.h>

#include <catena/datasets.h>
#include <catena/onnx.h>
#include <catena/onnx_export.h>
#include <catena/train.h>

#include "base/base.h"
#include "optim/optim.h"

/* ---- synchronised batch normalisation -------------------------------------------------------- */

enum { CHANNELS = 5, SIDE = 3, SAMPLES = 6, SPATIAL = SIDE * SIDE };
enum { ELEMENTS = SAMPLES * CHANNELS * SPATIAL };

typedef struct {
    int part[MOST]; /* number of samples of each rank */
    int flat;       /* (N,C) instead of (N,C,H,W) */
    int conv;       /* preceded by a convolution: channels-last */
    int recompute;
    const char *model; /* a file in ONNX format with the layer; NULL: the module */
    double far;        /* mean of x, in standard deviations */
} norm_case;

typedef struct {
    float y[ELEMENTS], gx[ELEMENTS];
    float gscale[CHANNELS], gshift[CHANNELS], mean[CHANNELS], var[CHANNELS];
} norm_result;

static float noise(uint64_t what, int64_t i)
{
    return (float)(ctn__uniform(what, 3, (uint64_t)i) * 2 - 1);
}

static ctn_status make_norm(const job *j, const norm_case *n, ctn_module **out, ctn_module **bn)
{
    ctn_module *m[2] = {0};
    float w[CHANNELS], b[CHANNELS];
    CTN_TRY(n->model ? ctn_onnx_open(bn, j->ctx, n->model, NULL)
                     : ctn_batch_norm_new(bn, j->ctx, CHANNELS, NULL));
    for (int c = 0; c < CHANNELS; c++) {
        w[c] = 1 + 0.3f * noise(1, c);
        b[c] = noise(2, c);
    }
    CTN_TRY(ctn_var_set(ctn_module_find(*bn, "weight"), w, sizeof w));
    CTN_TRY(ctn_var_set(ctn_module_find(*bn, "bias"), b, sizeof b));
    *out = *bn;
    if (n->conv) {
        float k[CHANNELS * CHANNELS];
        for (int i = 0; i < CHANNELS * CHANNELS; i++) k[i] = noise(5, i);
        CTN_TRY(ctn_conv_new(&m[0], j->ctx, CHANNELS, CHANNELS, CTN_SHAPE(1, 1), NULL));
        CTN_TRY(ctn_var_set(ctn_module_find(m[0], "weight"), k, sizeof k));
        CTN_TRY(ctn_var_set(ctn_module_find(m[0], "bias"), b, sizeof b));
        m[1] = *bn;
        CTN_TRY(ctn_sequential_new(out, j->ctx, 2, m));
    }
    return ctn_module_set_recompute(*out, n->recompute);
}

/* Runs samples [first, first + rows) in two steps, so that running statistics cover two batches. */
static void run_samples(job *j, const norm_case *n, ctn_module *net, ctn_module *bn, int first,
                        int rows, norm_result *r)
{
    const int64_t row = CHANNELS * (n->flat ? 1 : SPATIAL);
    float x[ELEMENTS], w[ELEMENTS]; /* the same on all ranks */
    for (int64_t i = 0; i < SAMPLES * row; i++) {
        x[i] = noise(3, i) + (float)n->far;
        w[i] = noise(4, i);
    }
    ctn_var *scale = ctn_module_find(bn, "weight"), *shift = ctn_module_find(bn, "bias");
    const int64_t dims[4] = {rows, CHANNELS, SIDE, SIDE};
    const int nd = n->flat ? 2 : 4;
    for (int step = 0; step < 2; step++) {
        ctn_tensor *g[3];
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *tx = ctn_with_grad(ctn_input(j->ctx, x + first * row, CTN_F32, nd, dims));
        ctn_tensor *y = ctn_call(net, tx);
        ctn_tensor *tw = ctn_input(j->ctx, w + first * row, CTN_F32, nd, dims);
        ctn_tensor *of[3] = {tx, ctn_use(scale), ctn_use(shift)};
        ctn_tensor *loss = ctn_sum(ctn_mul(ctn_square(y), tw), CTN_ALL_AXES, 0);
        TRY(j, ctn_grad(loss, 3, of, g));
        for (int k = 0; k < 3; k++) CHECK(j, ctn_keep(g[k]), "%s", ctn_error_message());
        TRY(j, ctn_read(y, r->y + first * row, (size_t)(rows * row) * sizeof(float)));
        TRY(j, ctn_read(g[0], r->gx + first * row, (size_t)(rows * row) * sizeof(float)));
        TRY(j, ctn_read(g[1], r->gscale, sizeof r->gscale));
        TRY(j, ctn_read(g[2], r->gshift, sizeof r->gshift));
        TRY(j, ctn_scope_end(j->ctx));
    }
    TRY(j, ctn_var_get(ctn_module_find(bn, "running_mean"), r->mean, sizeof r->mean));
    TRY(j, ctn_var_get(ctn_module_find(bn, "running_var"), r->var, sizeof r->var));
}

static void compare(job *j, const char *what, const float *got, const float *want, int64_t n,
                    double tol)
{
    for (int64_t i = 0; i < n; i++)
        CHECK(j, fabs((double)got[i] - (double)want[i]) <= tol * fmax(1, fabs((double)want[i])),
              "%s[%d] is %.8g, one rank has %.8g", what, (int)i, (double)got[i], (double)want[i]);
}

static void run_norm(job *j)
{
    const norm_case *n = j->arg;
    const int64_t row = CHANNELS * (n->flat ? 1 : SPATIAL);
    ctn_module *net = NULL, *bn = NULL;
    norm_result *one = calloc(2, sizeof *one), *all = one + 1;
    int first = 0;
    for (int r = 0; r < j->rank; r++) first += n->part[r];
    TRY(j, make_norm(j, n, &net, &bn));
    run_samples(j, n, net, bn, 0, SAMPLES, one); /* alone, with all samples */
    ctn_module_free(net);
    if (j->why[0]) return;
    TRY(j, make_norm(j, n, &net, &bn));
    TRY(j, ctn_dist_sync_batch_norm(net, j->c));
    run_samples(j, n, net, bn, first, n->part[j->rank], all);
    if (j->why[0]) return;
    const double tol = 1e-5 * fmax(1, n->far / 10);
    const int64_t at = first * row, mine = n->part[j->rank] * row;
    compare(j, "y", all->y + at, one->y + at, mine, tol);
    compare(j, "gx", all->gx + at, one->gx + at, mine, tol);
    if (j->why[0]) return;
    TRY(j, ctn_comm_allreduce(j->c, all->gscale, CHANNELS, CTN_F32));
    TRY(j, ctn_comm_allreduce(j->c, all->gshift, CHANNELS, CTN_F32));
    compare(j, "gscale", all->gscale, one->gscale, CHANNELS, tol);
    compare(j, "gshift", all->gshift, one->gshift, CHANNELS, tol);
    compare(j, "running_mean", all->mean, one->mean, CHANNELS, 1e-6);
    compare(j, "running_var", all->var, one->var, CHANNELS, 1e-5);
    ctn_context_set_training(j->ctx, 0); /* evaluation is local, so only rank 0 does it */
    if (j->rank == 0 && !j->why[0]) {
        TRY(j, ctn_scope_begin(j->ctx));
        float x[2 * CHANNELS * SPATIAL] = {0};
        ctn_tensor *y = ctn_call(net, ctn_input(j->ctx, x, CTN_F32, n->flat ? 2 : 4,
                                                ((int64_t[]){2, CHANNELS, SIDE, SIDE})));
        CHECK(j, ctn_data(y), "%s", ctn_error_message());
        TRY(j, ctn_scope_end(j->ctx));
    }
    ctn_module_free(net);
    free(one);
}

static void test_sync_batch_norm(void **state)
{
    (void)state;
    static const norm_case cases[] = {
        {.part = {3, 1, 2}},
        {.part = {2, 2, 2}, .flat = 1},
        {.part = {3, 0, 3}},
        {.part = {1, 1, 4}, .conv = 1},
        {.part = {3, 1, 2}, .recompute = 1, .conv = 1},
        {.part = {1, 3, 2}, .far = 100},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int m = 0; m < 2; m++) {
            on_ranks(3, modes[m], run_norm, (void *)(uintptr_t)&cases[k]);
        }
    on_ranks(1, CTN_MODE_PLANNED, run_norm, &(norm_case){.part = {SAMPLES}});
    on_ranks(4, CTN_MODE_PLANNED, run_norm, &(norm_case){.part = {1, 2, 1, 2}});
}

/* Does a call of a model in training change its running statistics? */
static bool changes_statistics(ctn_module *m)
{
    ctn_context *ctx = ctn_module_context(m);
    float x[2 * CHANNELS * SPATIAL], before[CHANNELS], after[CHANNELS];
    for (int i = 0; i < 2 * CHANNELS * SPATIAL; i++) x[i] = noise(6, i);
    OK(ctn_var_get(ctn_module_find(m, "running_mean"), before, sizeof before));
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_call(m, ctn_input(ctx, x, CTN_F32, 4, ((int64_t[]){2, CHANNELS, SIDE, SIDE}))),
                x, sizeof x));
    OK(ctn_scope_end(ctx));
    OK(ctn_var_get(ctn_module_find(m, "running_mean"), after, sizeof after));
    return memcmp(before, after, sizeof after) != 0;
}

static void freeze_model(ctn_context *ctx, const char *path)
{
    ctn_module *m = NULL;
    OK(ctn_onnx_open(&m, ctx, path, NULL));
    assert_int_equal(ctn_module_freeze_statistics(m, "*", 1), 1);
    assert_false(changes_statistics(m));
    assert_int_equal(ctn_module_freeze_statistics(m, NULL, 1), 1); /* like the parameters */
    assert_true(changes_statistics(m));
    assert_int_equal(ctn_module_set_trainable(m, NULL, 0), 2);
    assert_false(changes_statistics(m));
    assert_int_equal(ctn_module_freeze_statistics(m, NULL, 0), 1);
    assert_true(changes_statistics(m));
    ctn_module_free(m);
}

static void test_model(void **state)
{
    (void)state;
    const ctn_field in = {.dtype = CTN_F32, .ndim = 3, .shape = {CHANNELS, SIDE, SIDE}};
    char path[] = "/tmp/catena-norm-XXXXXX.onnx";
    ctn_context *ctx = NULL;
    ctn_module *bn = NULL;
    const int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    close(fd);
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_batch_norm_new(&bn, ctx, CHANNELS, NULL));
    const ctn_status st = ctn_onnx_export_module(bn, path, 1, &in, NULL);
    if (st == CTN_OK) freeze_model(ctx, path);
    ctn_module_free(bn);
    ctn_context_free(ctx);
    if (st == CTN_OK) {
        on_ranks(3, CTN_MODE_PLANNED, run_norm, &(norm_case){.part = {3, 1, 2}, .model = path});
        on_ranks(3, CTN_MODE_EAGER, run_norm, &(norm_case){.part = {3, 0, 3}, .model = path});
    }
    unlink(path);
    if (st == CTN_EUNSUPPORTED) skip(); /* built without protobuf-c */
    OK(st);
}

/* ---- training -------------------------------------------------------------------------------- */

enum { STEPS = 10 };

typedef struct {
    int part[MOST];
    int shard;
    double loss[STEPS];
} train_case;

static ctn_status make_net(ctn_context *ctx, ctn_module **net)
{
    ctn_module *m[7] = {0};
    CTN_TRY(ctn_conv_new(&m[0], ctx, 2, 4, CTN_SHAPE(3, 3), NULL));
    CTN_TRY(ctn_batch_norm_new(&m[1], ctx, 4, NULL));
    CTN_TRY(ctn_activation_new(&m[2], ctx, ctn_relu_at));
    CTN_TRY(ctn_flatten_new(&m[3], ctx));
    CTN_TRY(ctn_linear_new(&m[4], ctx, 4 * 4, 300, NULL)); /* several buckets */
    CTN_TRY(ctn_activation_new(&m[5], ctx, ctn_tanh_at));
    CTN_TRY(ctn_linear_new(&m[6], ctx, 300, 3, NULL));
    return ctn_sequential_new(net, ctx, 7, m);
}

enum { IMAGE = 2 * 4 * 4 };

/* Steps on samples [first, first + rows) of SAMPLES; losses are means over these. */
static void run_steps(job *j, ctn_module *net, ctn_optim *o, int first, int rows, double *loss)
{
    float x[SAMPLES * IMAGE];
    int64_t t[SAMPLES];
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < SAMPLES * IMAGE; i++) x[i] = noise(10 + (uint64_t)s, i);
        for (int i = 0; i < SAMPLES; i++) t[i] = (i + s) % 3;
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *y =
            ctn_call(net, ctn_input(j->ctx, x + first * IMAGE, CTN_F32, CTN_SHAPE(rows, 2, 4, 4)));
        ctn_tensor *l =
            ctn_softmax_cross_entropy(y, ctn_input(j->ctx, t + first, CTN_I64, CTN_SHAPE(rows)));
        TRY(j, ctn__backward_weighted(CTN_HERE, o, l, (double)rows));
        TRY(j, ctn_optim_step(o));
        loss[s] = ctn_item(l);
        TRY(j, ctn_scope_end(j->ctx));
    }
}

static void run_training(job *j)
{
    train_case *c = j->arg;
    ctn_module *net = NULL;
    ctn_optim *o = NULL;
    double loss[STEPS], weight[STEPS];
    int first = 0;
    for (int r = 0; r < j->rank; r++) first += c->part[r];
    const int rows = j->size > 1 ? c->part[j->rank] : SAMPLES;
    TRY(j, make_net(j->ctx, &net));
    TRY(j, ctn_adam_new(&o, ctn_params(net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    if (j->size > 1) {
        TRY(j, ctn_dist_sync_batch_norm(net, j->c));
        TRY(j, ctn_dist_optim(o, j->c, CTN_OPT(ctn_dist_opt, .shard = c->shard, .bucket = 4096)));
    }
    run_steps(j, net, o, first, rows, loss);
    if (j->why[0]) return;
    for (int s = 0; s < STEPS; s++) weight[s] = rows;
    TRY(j, ctn_dist_mean(j->c, STEPS, loss, weight));
    if (j->rank == 0) memcpy(c->loss, loss, sizeof loss);
    ctn_optim_free(o);
    ctn_module_free(net);
}

static void test_training(void **state)
{
    (void)state;
    static const int parts[][MOST] = {{2, 2, 2}, {3, 1, 2}};
    for (int k = 0; k < 2; k++)
        for (int shard = 0; shard < 2; shard++) {
            train_case one = {0}, all = {.shard = shard};
            memcpy(all.part, parts[k], sizeof all.part);
            on_ranks(1, CTN_MODE_PLANNED, run_training, &one);
            on_ranks(3, CTN_MODE_PLANNED, run_training, &all);
            for (int s = 0; s < STEPS; s++)
                if (!(fabs(all.loss[s] - one.loss[s]) <= 1e-5 * one.loss[s]))
                    fail_msg("parts %d, shard %d, step %d: %.8g, one rank has %.8g", k, shard, s,
                             all.loss[s], one.loss[s]);
        }
}

/* ---- a trainer ------------------------------------------------------------------------------- */

enum { ROWS = 17, WIDTH = 4, TOTAL = 16, MOST_WEIGHTS = 64 };

static float points[ROWS][WIDTH], answers[ROWS];

typedef struct {
    int64_t accumulate, bad; /* bad: a sample that cannot be read; -1: none */
    int two;                 /* a second optimizer */
    float w[MOST][MOST_WEIGHTS];
} empty_case;

typedef struct {
    const empty_case *c;
    ctn_module *net, *gain, *all;
} learner;

/* The mean of no rows is NaN, which the gain would pass on to its gradient. */
static ctn_tensor *gained_loss(void *self, ctn_step *s)
{
    learner *l = self;
    ctn_tensor *y = ctn_call(l->net, ctn_step_input(s, 0));
    ctn_tensor *e = ctn_mean_squared_error(y, ctn_step_input(s, 1), CTN_MEAN);
    return ctn_sum(ctn_call(l->gain, ctn_reshape(e, CTN_SHAPE(1, 1))), CTN_ALL_AXES, 0);
}

static ctn_status read_point(void *user, const ctn_sample *s, void *const *src, void *const *dst)
{
    const empty_case *c = user;
    if (s->index == c->bad) return ctn_fail(CTN_EFORMAT, "sample %d is bad", (int)s->index);
    memcpy(dst[0], src[0], sizeof points[0]);
    memcpy(dst[1], src[1], sizeof answers[0]);
    return CTN_OK;
}

static ctn_status make_learner(learner *l, ctn_context *ctx, ctn_comm *c)
{
    ctn_module *m[3] = {0};
    CTN_TRY(ctn_linear_new(&m[0], ctx, WIDTH, 6, NULL));
    CTN_TRY(ctn_batch_norm_new(&m[1], ctx, 6, NULL));
    CTN_TRY(ctn_linear_new(&m[2], ctx, 6, 1, NULL));
    CTN_TRY(ctn_sequential_new(&l->net, ctx, 3, m));
    CTN_TRY(ctn_linear_new(&l->gain, ctx, 1, 1, NULL));
    ctn_module *both[2] = {l->net, l->gain};
    CTN_TRY(ctn_module_list_new(&l->all, ctx, 2, both));
    return c ? ctn_dist_sync_batch_norm(l->all, c) : CTN_OK;
}

static ctn_status weights_of(ctn_module *m, float *out)
{
    const ctn_vars p = ctn_params(m);
    for (int i = 0; i < p.n; i++) {
        const int64_t n = ctn__count(ctn_var_desc(p.var[i]));
        CTN_TRY(ctn_var_get(p.var[i], out, (size_t)n * sizeof *out));
        out += n;
    }
    return CTN_OK;
}

static void run_trainer(job *j)
{
    empty_case *c = j->arg;
    const ctn_field f[] = {{.dtype = CTN_F32, .ndim = 1, .shape = {WIDTH}},
                           {.dtype = CTN_F32, .ndim = 1, .shape = {1}}};
    learner l = {.c = c};
    ctn_optim *o[2] = {NULL};
    ctn_dataset *arrays = NULL, *data = NULL;
    ctn_sampler *s = NULL;
    ctn_loader *loader = NULL;
    ctn_trainer *tr = NULL;
    TRY(j, make_learner(&l, j->ctx, j->size > 1 ? j->c : NULL));
    TRY(j,
        ctn_sgd_new(&o[0], ctn_params(c->two ? l.net : l.all), CTN_OPT(ctn_sgd_opt, .lr = 0.05)));
    TRY(j, ctn_dist_optim(o[0], j->c, CTN_OPT(ctn_dist_opt, .bucket = 64)));
    if (c->two) TRY(j, ctn_sgd_new(&o[1], ctn_params(l.gain), CTN_OPT(ctn_sgd_opt, .lr = 0.05)));
    if (c->two) TRY(j, ctn_dist_optim(o[1], j->c, NULL));
    TRY(j, ctn_arrays_open(&arrays, ROWS, 2, f, (const void *[]){points, answers}));
    TRY(j, ctn_dataset_transform(&data, arrays, 2, f, read_point, c));
    TRY(j, ctn_sampler_shuffled(&s, ROWS, 1));
    TRY(j, ctn_sampler_shard(s, j->rank, j->size));
    TRY(j, ctn_loader_new(&loader, data, s,
                          CTN_OPT(ctn_loader_opt, .batch = TOTAL / j->size / c->accumulate,
                                  .skip = c->bad < 0 ? 0 : 0.5)));
    TRY(j, ctn_trainer_new(&tr, o[0], loader, gained_loss, &l,
                           CTN_OPT(ctn_trainer_opt, .net = l.all, .epochs = 3,
                                   .accumulate = c->accumulate)));
    if (c->two) TRY(j, ctn_trainer_add_optim(tr, "gain", o[1], gained_loss, &l));
    TRY(j, ctn_dist_trainer(tr, j->c, NULL));
    TRY(j, ctn_trainer_run(tr));
    TRY(j, weights_of(l.all, c->w[j->rank]));
    ctn_trainer_free(tr);
    ctn_loader_free(loader);
    ctn_sampler_free(s);
    ctn_dataset_free(data);
    for (int k = 0; k < 2; k++) ctn_optim_free(o[k]);
    ctn_module_free(l.all);
}

/* 17 samples in steps of 16: all ranks but one have none in the last step of an epoch. */
static void test_no_samples(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < WIDTH; k++) points[i][k] = noise(20, i * WIDTH + k);
        answers[i] = noise(21, i);
    }
    for (int k = 0; k < 6; k++) {
        empty_case one = {.accumulate = 1 + k / 3, .bad = k % 3 == 1 ? 5 : -1, .two = k % 3 == 2};
        empty_case all = one;
        on_ranks(1, CTN_MODE_PLANNED, run_trainer, &one);
        for (int size = 2; size <= 4; size += 2) {
            on_ranks(size, CTN_MODE_PLANNED, run_trainer, &all);
            for (int r = 1; r < size; r++) assert_memory_equal(all.w[r], all.w[0], sizeof all.w[0]);
            for (int i = 0; i < MOST_WEIGHTS; i++)
                if (!(fabsf(all.w[0][i] - one.w[0][i]) <= 1e-4f))
                    fail_msg("case %d, %d ranks, weight %d: %.8g, one rank has %.8g", k, size, i,
                             (double)all.w[0][i], (double)one.w[0][i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sync_batch_norm),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_no_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
