/* SPDX-License-Identifier: Apache-2.0
 *
 * Training of a network of the zoo with threads as ranks, for tests that compare 1 rank x 32
 * samples with 4 ranks x 8, and with 2 batches of 4 ranks x 4 per step.
 */
#ifndef ZOO_RANKS_H
#define ZOO_RANKS_H

#include "ranks.h"

#include <catena/datasets.h>
#include <catena/ops_sequence.h>
#include <catena/train.h>
#include <catena/zoo.h>

#include "base/base.h"

enum { SAMPLES = 96, STEP = 32, STEPS = 10, RANKS = 4 };
enum { WORDS = 13, TOKENS = 8, CLASSES = 3, NODES = 5, EDGES = 8, LARGEST = 3 * 32 * 32 };

typedef enum { IMAGES, FIELDS, TEXT, MASKED, PAIRS, GRAPHS, MESHES } kind;

typedef struct {
    const char *name;
    ctn_status (*make)(ctn_module **m, ctn_context *ctx);
    kind kind;
    ctn_field x;
    double lr;
    /* Over a batch, so 2 batches are not 1 of twice the size. Such networks are trained in f64:
     * channels with hardly any variance enlarge the roundings of f32 to 1e-2 within 10 steps. */
    bool normalises;
} network;

#define FLOATS(n, ...)                                        \
    {                                                         \
        .dtype = CTN_F32, .ndim = n, .shape = { __VA_ARGS__ } \
    }
#define WORDS_OF(n)                                 \
    {                                               \
        .dtype = CTN_I64, .ndim = 1, .shape = { n } \
    }

/* ---- the data -------------------------------------------------------------------------------- */

static float values[SAMPLES * LARGEST];
static int64_t labels[SAMPLES], words[SAMPLES * TOKENS], masked[SAMPLES * TOKENS];

static void fill(void)
{
    for (int64_t i = 0; i < SAMPLES * LARGEST; i++)
        values[i] = (float)ctn__normal(3, 1, (uint64_t)i);
    for (int64_t i = 0; i < SAMPLES; i++) labels[i] = (i * 7 + i / 3) % CLASSES;
    for (int64_t i = 0; i < SAMPLES * TOKENS; i++) {
        words[i] = (int64_t)(ctn__uniform(3, 2, (uint64_t)i) * WORDS);
        masked[i] =
            ctn__uniform(3, 3, (uint64_t)i) < 0.2 ? words[i] : -100; /* none in some samples */
    }
}

static ctn_status open_data(const network *n, ctn_dataset **ds)
{
    const ctn_field label = {.dtype = CTN_I64}, text = WORDS_OF(TOKENS);
    const bool reads = n->x.dtype == CTN_I64;
    const ctn_field field[2] = {n->x, n->kind == FIELDS ? n->x : reads ? text : label};
    const void *const data[2] = {reads ? (const void *)words : (const void *)values,
                                 n->kind == FIELDS   ? (const void *)(values + 7)
                                 : n->kind == MASKED ? (const void *)masked
                                 : reads             ? (const void *)words
                                                     : (const void *)labels};
    return ctn_arrays_open(ds, SAMPLES - (n->kind == FIELDS), 2, field, data);
}

/* ---- the losses ------------------------------------------------------------------------------ */

typedef struct {
    const network *n;
    ctn_module *net;
    double *loss; /* of each step */
    int64_t edges[STEP * EDGES][2];
} subject;

/* The graphs of a batch, all with the same edges, as one graph. */
static ctn_tensor *on_graphs(subject *x, ctn_tensor *in)
{
    ctn_context *ctx = ctn_module_context(x->net);
    const int64_t N = ctn_dim(in, 0);
    for (int64_t i = 0; i < N * EDGES; i++) {
        x->edges[i][0] = i / EDGES * NODES + i % EDGES % NODES;
        x->edges[i][1] = i / EDGES * NODES + (i % EDGES * 3 + 1) % NODES;
    }
    ctn_tensor *edges = ctn_input(ctx, x->edges, CTN_I64, CTN_SHAPE(N * EDGES, 2));
    ctn_tensor *nodes = ctn_reshape(in, CTN_SHAPE(N * NODES, 6));
    ctn_tensor *y;
    if (x->n->kind == MESHES) {
        ctn_tensor *from = ctn_reshape(ctn_slice(edges, 1, 0, 1), CTN_SHAPE(N * EDGES));
        y = ctn_call_multi(x->net, nodes, edges, ctn_index_select(nodes, from, 0)).t[0];
    } else {
        y = ctn_call_multi(x->net, nodes, edges).t[0];
    }
    const int64_t mean[] = {1};
    return y ? ctn_mean(ctn_reshape(y, CTN_SHAPE(N, NODES, CLASSES)), 1, mean, 0) : NULL;
}

static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    subject *x = self;
    ctn_tensor *in = ctn_step_input(s, 0), *t = ctn_step_input(s, 1), *sum = NULL;
    switch (x->n->kind) {
    case FIELDS: return ctn_mean_squared_error(ctn_call(x->net, in), t, CTN_MEAN);
    case TEXT: return ctn_call_multi(x->net, in, t).t[0];
    case MASKED:
        ctn_report_targets(s, 1, -100);
        return ctn_call_multi(x->net, in, NULL, NULL, t).t[0];
    case PAIRS: return ctn_softmax_cross_entropy(ctn_call_multi(x->net, in, t).t[0], t);
    case GRAPHS:
    case MESHES: return ctn_softmax_cross_entropy(on_graphs(x, in), t);
    case IMAGES: break;
    }
    const ctn_tensors y = ctn_call_multi(x->net, in); /* googlenet has three results */
    for (int i = 0; i < y.n; i++) {
        ctn_tensor *loss = ctn_softmax_cross_entropy(y.t[i], t);
        sum = i == 0 ? loss : ctn_add(sum, ctn_scale(loss, 0.3));
    }
    return sum;
}

/* ---- a training ------------------------------------------------------------------------------ */

typedef struct {
    const network *n;
    int64_t accumulate;
    double loss[STEPS];
} life;

static ctn_status note(void *self, ctn_trainer *tr)
{
    subject *x = self;
    ctn_progress p;
    ctn_trainer_progress(tr, &p);
    ctn_trainer_value(tr, "train/loss", &x->loss[p.iteration - 1]);
    return CTN_OK;
}

static ctn_status open_loader(ctn_loader **l, const job *j, ctn_dataset *ds, int64_t batch)
{
    ctn_sampler *s = NULL;
    CTN_TRY(ctn_sampler_shuffled(&s, ctn_dataset_count(ds), 3));
    ctn_status st = ctn_sampler_shard(s, j->rank, j->size);
    if (st == CTN_OK) st = ctn_loader_new(l, ds, s, CTN_OPT(ctn_loader_opt, .batch = batch));
    ctn_sampler_free(s);
    return st;
}

static ctn_status run(job *j, life *l, subject *x, ctn_optim *o, ctn_loader *loader)
{
    ctn_trainer *tr = NULL;
    const ctn_trigger each = {.kind = CTN_EVERY_ITERATIONS, .n = 1};
    const ctn_extension e = {.struct_size = sizeof e,
                             .name = "note",
                             .call = note,
                             .self = x,
                             .priority = -1,
                             .trigger = each};
    CTN_TRY(ctn_trainer_new(&tr, o, loader, loss_of, x,
                            CTN_OPT(ctn_trainer_opt, .net = x->net, .iterations = STEPS,
                                    .accumulate = l->accumulate)));
    ctn_status st = ctn_dist_trainer(tr, j->c, &each);
    if (st == CTN_OK) st = ctn_trainer_extend(tr, &e);
    if (st == CTN_OK) st = ctn_trainer_run(tr);
    ctn_trainer_free(tr);
    return st;
}

static void train(job *j)
{
    life *l = j->arg;
    double unused[STEPS];
    ctn_dataset *ds = NULL;
    ctn_loader *loader = NULL;
    ctn_optim *o = NULL;
    subject *x = calloc(1, sizeof *x);
    CHECK(j, x, "no memory");
    *x = (subject){.n = l->n, .loss = j->rank == 0 ? l->loss : unused};
    TRY(j, l->n->make(&x->net, j->ctx));
    TRY(j, open_data(l->n, &ds));
    TRY(j, open_loader(&loader, j, ds, STEP / j->size / l->accumulate));
    TRY(j,
        ctn_sgd_new(&o, ctn_params(x->net), CTN_OPT(ctn_sgd_opt, .lr = l->n->lr, .momentum = 0.9)));
    TRY(j, ctn_dist_optim(o, j->c, NULL));
    TRY(j, ctn_dist_sync_batch_norm(x->net, j->c));
    TRY(j, run(j, l, x, o, loader));
    ctn_loader_free(loader);
    ctn_dataset_free(ds);
    ctn_optim_free(o);
    ctn_module_free(x->net);
    free(x);
}

/* Batch normalisation is synchronised over ranks, but not over the batches of a step. */
static bool normalises(const network *n)
{
    return n->normalises;
}

static void compare(const network *n, const life *one, const life *many)
{
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(one->loss[i] - many->loss[i]) < 1e-5))
            fail_msg("%s, %d batches per step: loss %d is %.9g, expected %.9g", n->name,
                     (int)many->accumulate, i + 1, many->loss[i], one->loss[i]);
}

static void compare_all(size_t count, const network *networks)
{
    fill();
    for (size_t k = 0; k < count; k++) {
        const network *n = &networks[k];
        const uint64_t t0 = ctn__now_ns();
        life one = {.n = n, .accumulate = 1}, many = one, parts = {.n = n, .accumulate = 2};
        precision = n->normalises ? CTN_PRECISION_F64 : CTN_PRECISION_F32;
        on_ranks(1, CTN_MODE_PLANNED, train, &one);
        on_ranks(RANKS, CTN_MODE_PLANNED, train, &many);
        compare(n, &one, &many);
        if (!normalises(n)) {
            on_ranks(RANKS, CTN_MODE_PLANNED, train, &parts);
            compare(n, &one, &parts);
        }
        print_message("%-14s %.2f s, last loss %.6f\n", n->name,
                      (double)(ctn__now_ns() - t0) * 1e-9, one.loss[STEPS - 1]);
    }
}

#endif
