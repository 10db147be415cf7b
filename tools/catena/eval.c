/* SPDX-License-Identifier: Apache-2.0
 *
 * catena eval: loss and accuracy of a network with given weights; for regression the errors in the units
 * of the target.
 */
#include <math.h>
#include <string.h>

#include <catena/dist.h>

#include "infer.h"
#include "launch.h"

typedef struct {
    json *j;     /* NULL: text */
    bool silent; /* another rank shows them */
} values;

static void value(values *v, const char *name, double x)
{
    if (v->silent) return;
    if (v->j) json_real(v->j, name, x);
    else printf("  %-16s %.6g\n", name, x);
}

/* Names come as "loss" or "val/loss". */
static ctn_status take_value(void *user, const char *name, double x)
{
    const char *slash = strrchr(name, '/');
    value(user, slash ? slash + 1 : name, x);
    return CTN_OK;
}

typedef struct {
    units u;
    double absolute, square, n;
} errors;

static ctn_status add_errors(void *user, const ctn_batch *b, const float *y, int64_t per,
                             int64_t first)
{
    errors *e = user;
    const float *t = b->data[1];
    (void)first;
    for (int64_t i = 0; i < b->n * per; i++) {
        double d = ((double)y[i] - t[i]) * units_scale(&e->u, i % per, per);
        e->absolute += fabs(d);
        e->square += d * d;
    }
    e->n += (double)(b->n * per);
    return CTN_OK;
}

static ctn_status show_errors(values *v, task *t)
{
    errors e = {0};
    CTN_TRY(units_get(&e.u, t));
    ctn_comm *c = t->a->job->comm;
    double mean[2] = {0}, weight[2] = {0};
    ctn_status st = infer(t, add_errors, &e);
    if (st == CTN_OK && c) { /* over all ranks */
        mean[0] = e.n > 0 ? e.absolute / e.n : 0;
        mean[1] = e.n > 0 ? e.square / e.n : 0;
        weight[0] = weight[1] = e.n;
        st = ctn_dist_mean(c, 2, mean, weight);
        e = (errors){.u = e.u, .absolute = mean[0], .square = mean[1], .n = 1};
    }
    if (st == CTN_OK) {
        value(v, "mae", e.absolute / e.n);
        value(v, "rmse", sqrt(e.square / e.n));
    }
    units_free(&e.u);
    return st;
}

static void head(values *v, const args *a, int64_t samples)
{
    if (v->silent) return;
    if (v->j) {
        json_open(v->j, NULL, '{');
        json_text(v->j, "network", a->operand);
        json_text(v->j, "precision", args_text(a, "precision"));
        json_int(v->j, "samples", samples);
    } else {
        printf("%s, %lld samples\n", a->operand, (long long)samples);
    }
}

static ctn_status evaluate(task *t, args *a)
{
    json out = {0};
    ctn_comm *c = a->job->comm;
    values v = {.j = args_flag(a, "json") ? &out : NULL, .silent = a->job->rank != 0};
    CTN_TRY(task_begin(t, a, FOR_EVALUATION));
    CTN_TRY(task_data(t));
    CTN_TRY(task_net(t));
    CTN_TRY(task_weights(t, args_text(a, "weights")));
    CTN_TRY(task_loaders(t));
    t->now = DOING_RUN;
    head(&v, a, ctn_dataset_count(t->set[0]));
    if (c)
        CTN_TRY(ctn_dist_evaluate(c, t->ctx, t->loader[0], t->loss, t->loss_self, take_value, &v));
    else CTN_TRY(ctn_evaluate(t->ctx, t->loader[0], t->loss, t->loss_self, take_value, &v));
    if (!t->classify && t->loss == task_loss) CTN_TRY(show_errors(&v, t));
    if (v.j && !v.silent) json_close(v.j, '}');
    return CTN_OK;
}

static int run(args *a)
{
    return infer_command(a, evaluate);
}

static const option options[] = {
    {"weights", "FILE", "", "safetensors; config.yaml beside it tells about the network"},
    TASK_DATA_OPTIONS,
    {"split", "train|test", "test", "which part of MNIST, CIFAR-10 or a folder with both"},
    TASK_NET_OPTIONS,
    TASK_RUN_OPTIONS,
    LAUNCH_OPTIONS,
    {"json", NULL, NULL, "one JSON object"},
    {0},
};

const command cmd_eval = {
    .name = "eval",
    .operands = "NETWORK",
    .summary = "Evaluate a network with given weights on data.",
    .words = task_names,
    .options = options,
    .examples =
        "  catena eval mlp --weights digits/best.safetensors --data mnist\n"
        "  catena eval cifar-resnet20 --weights resnet20.safetensors --data cifar-10-batches-bin --json\n"
        "  catena eval unet --weights result/weights.safetensors --data x.npy --target y.npy\n",
    .run = run,
    .paths = true,
    .ranks = RANKS_JOB,
};
