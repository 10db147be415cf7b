/* SPDX-License-Identifier: Apache-2.0
 *
 * k ranks with batch size b train like one rank with batch size kb: an MLP, and ResNet-20 with
 * synchronised batch normalisation, with every algorithm, with bitwise equal results in two
 * runs, and with sharded updates, where each rank holds a part of the optimizer state. In f64 they
 * agree to 1e-12. Ranks may take different branches and may have nothing to contribute. Prints the
 * figures.
 *
 * argv: steps of each training (100).
 */
#include <math.h>
#include <string.h>

#include <catena/catena.h>
#include <catena/dist.h>
#include <catena/zoo.h>

#include "cases.h"

enum { MOST_STEPS = 1000 };

typedef struct {
    const char *net;
    int64_t batch, size; /* batch size of one rank; floats per sample */
    int64_t shape[4];
    int ndim;
    double lr;
    int adam;
} problem;

static const problem problems[] = {
    {"mlp", 8, 784, {0, 784}, 2, 1e-3, 1},
    {"resnet20_cifar", 8, 3 * 32 * 32, {0, 3, 32, 32}, 4, 2e-4, 0},
};

static int steps = 100;

static float noise(uint64_t key, uint64_t i)
{
    uint64_t x = (key * 0x9e3779b97f4a7c15u) ^ (i * 0xbf58476d1ce4e5b9u);
    x ^= x >> 31;
    x *= 0x94d049bb133111ebu;
    x ^= x >> 29;
    return (float)(x >> 40) * 0x1p-23f - 1.0f;
}

typedef struct {
    ctn_comm *comm; /* NULL: one rank trains on everything */
    int shard, empty, f64;
    double loss[MOST_STEPS];
    float weights[16]; /* some, at the end */
    int64_t state_bytes;
} training;

/* One step on samples [first, first + n) of batch s. empty: this rank has no samples in this
 * step. */
static double step(ctn_context *ctx, ctn_module *net, ctn_optim *o, const problem *p, int s,
                   int64_t first, int64_t n, int empty)
{
    static float x[64 * 3 * 32 * 32];
    int64_t t[64], shape[4];
    double loss = 0;
    for (int64_t i = 0; i < n * p->size; i++)
        x[i] = noise((uint64_t)s + 1, (uint64_t)(first * p->size + i));
    for (int64_t i = 0; i < n; i++) t[i] = (first + i + s) % 10;
    memcpy(shape, p->shape, sizeof shape);
    shape[0] = n;
    DONE(ctn_scope_begin(ctx));
    if (empty) {
        DONE(ctn_dist_step_empty(o));
    } else {
        ctn_tensor *in = ctn_input(ctx, x, CTN_F32, p->ndim, shape);
        ctn_tensor *y = ctn_call(net, ctn_cast(in, ctn_context_float_type(ctx)));
        ctn_tensor *l = ctn_softmax_cross_entropy(y, ctn_input(ctx, t, CTN_I64, CTN_SHAPE(n)));
        DONE(ctn_backward(o, l));
        DONE(ctn_optim_step(o));
        loss = ctn_item(l);
    }
    DONE(ctn_scope_end(ctx));
    return loss;
}

static void train(const problem *p, training *r, int ranks)
{
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    ctn_optim *o = NULL;
    int rank = r->comm ? ctn_comm_rank(r->comm) : 0;
    DONE(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = 3,
                                       .precision = r->f64 ? CTN_PRECISION_F64 : 0)));
    DONE(ctn_zoo_new(&net, ctx, p->net, NULL));
    if (p->adam) DONE(ctn_adam_new(&o, ctn_params(net), CTN_OPT(ctn_adam_opt, .lr = p->lr)));
    else DONE(ctn_sgd_new(&o, ctn_params(net), CTN_OPT(ctn_sgd_opt, .lr = p->lr, .momentum = 0.9)));
    if (r->comm) {
        DONE(ctn_dist_sync_batch_norm(net, r->comm));
        DONE(
            ctn_dist_optim(o, r->comm, CTN_OPT(ctn_dist_opt, .shard = r->shard, .bucket = 300000)));
    }
    for (int s = 0; s < steps; s++) {
        int64_t n = r->comm ? p->batch : p->batch * ranks;
        int nothing = r->empty && rank == s % ranks;
        double loss = step(ctx, net, o, p, s, rank * p->batch, n, nothing), weight = !nothing;
        if (r->comm) DONE(ctn_dist_mean(r->comm, 1, &loss, &weight));
        r->loss[s] = loss;
    }
    ctn_dist_stats stats = {.struct_size = sizeof stats};
    ctn_dist_get_stats(o, &stats);
    r->state_bytes = stats.state_bytes;
    ctn_vars v = ctn_params(net);
    const ctn_desc *d = ctn_var_desc(v.var[0]);
    size_t bytes = ctn_dtype_size(d->dtype);
    for (int i = 0; i < d->ndim; i++) bytes *= (size_t)d->dim[i];
    float *w = malloc(bytes);
    CHECK(w);
    DONE(ctn_var_get(v.var[0], w, bytes));
    memcpy(r->weights, w, sizeof r->weights);
    free(w);
    ctn_optim_free(o);
    ctn_module_free(net);
    ctn_context_free(ctx);
}

static double apart(const training *a, const training *b, int from, int to)
{
    double most = 0;
    for (int s = from; s < to && s < steps; s++)
        most = fmax(most, fabs(a->loss[s] - b->loss[s]) / fabs(b->loss[s]));
    return most;
}

static void compare(ctn_comm *c, const problem *p)
{
    static training one, all, again, shard;
    int ranks = ctn_comm_size(c), root = ctn_comm_rank(c) == 0;
    memset(&one, 0, sizeof one);
    if (root) train(p, &one, ranks);
    DONE(ctn_comm_broadcast(c, &one, sizeof one, 0));
    one.comm = NULL;
    for (int i = 0; ctn_comm_algorithm_name(i); i++) {
        const char *name = ctn_comm_algorithm_name(i);
        if (ctn_comm_set_algorithm(c, name) < 0) {
            ctn_error_clear();
            continue;
        }
        all = again = (training){.comm = c};
        train(p, &all, ranks);
        double ten = apart(&all, &one, 0, 10), rest = apart(&all, &one, 10, steps);
        if (root)
            printf("%-15s %d ranks %-13s %.1e in 10 steps, %.1e in %d\n", p->net, ranks, name, ten,
                   rest, steps);
        CHECK(ten <= 1e-5);
        CHECK(rest <= 1e-2);
        if (i > 1) continue; /* flat and ring run twice */
        train(p, &again, ranks);
        for (int k = 0; k < steps; k++) CHECK(all.loss[k] == again.loss[k]);
        for (int k = 0; k < 16; k++) CHECK(all.weights[k] == again.weights[k]);
    }
    DONE(ctn_comm_set_algorithm(c, "ring"));
    shard = (training){.comm = c, .shard = 1};
    train(p, &shard, ranks);
    double far = apart(&shard, &all, 0, 10),
           part = (double)shard.state_bytes / (double)all.state_bytes;
    if (root)
        printf("%-15s %d ranks sharded       %.1e from unsharded in 10 steps, state %.3f of it\n",
               p->net, ranks, far, part);
    CHECK(far <= 1e-6);
    CHECK(ranks == 1 || part <= 1.08 / ranks);
    if (!p->adam) return; /* batch statistics need the samples of all ranks */
    again = (training){.comm = c, .empty = 1};
    train(p, &again, ranks); /* ranks take turns in having no samples; none waits forever */
}

static void compare_f64(ctn_comm *c, const problem *p)
{
    static training one, all;
    const int ranks = ctn_comm_size(c), root = ctn_comm_rank(c) == 0;
    one = (training){.f64 = 1};
    all = (training){.f64 = 1, .comm = c};
    if (root) train(p, &one, ranks);
    train(p, &all, ranks);
    if (!root) return;
    const double far = apart(&all, &one, 0, 20);
    printf("%-15s %d ranks f64           %.1e in 20 steps\n", p->net, ranks, far);
    CHECK(far <= 1e-12);
}

int main(int argc, char **argv)
{
    ctn_comm *c = NULL;
    setenv("CATENA_TUNE", "0", 1); /* one rank and many must run the same kernels */
    DONE(ctn_mpi_init(&argc, &argv));
    if (argc > 1) steps = atoi(argv[1]);
    CHECK(steps >= 1 && steps <= MOST_STEPS);
    DONE(ctn_comm_open(&c, CTN_OPT(ctn_comm_opt, .algorithm = "ring")));
    CHECK(ctn_comm_size(c) <= 7);
    compare_f64(c, &problems[0]);
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) compare(c, &problems[i]);
    ctn_comm_free(c);
    DONE(ctn_mpi_finalize());
    return 0;
}
