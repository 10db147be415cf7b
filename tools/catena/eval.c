/* SPDX-License-Identifier: Apache-2.0
 *
 * catena eval: loss and accuracy of a network with given weights; for regression the errors in the units
 * of the target.
 */
#include <math.h>
#include <string.h>

#include "infer.h"

typedef struct {
    json *j; /* NULL: text */
    bool accuracy;
} values;

static void value(values *v, const char *name, double x)
{
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
    ctn_status st = infer(t, add_errors, &e);
    if (st == CTN_OK) {
        value(v, "mae", e.absolute / e.n);
        value(v, "rmse", sqrt(e.square / e.n));
    }
    units_free(&e.u);
    return st;
}

static ctn_status evaluate(task *t, args *a)
{
    json out = {0};
    values v = {.j = args_flag(a, "json") ? &out : NULL};
    CTN_TRY(task_begin(t, a, FOR_EVALUATION));
    CTN_TRY(task_data(t));
    CTN_TRY(task_net(t));
    CTN_TRY(task_weights(t, args_text(a, "weights")));
    CTN_TRY(task_loaders(t));
    t->now = DOING_RUN;
    int64_t samples = ctn_dataset_count(t->set[0]);
    if (v.j) {
        json_open(v.j, NULL, '{');
        json_text(v.j, "network", a->operand);
        json_text(v.j, "precision", args_text(a, "precision"));
        json_int(v.j, "samples", samples);
    } else {
        printf("%s, %lld samples\n", a->operand, (long long)samples);
    }
    CTN_TRY(ctn_evaluate(t->ctx, t->loader[0], t->loss, t->loss_self, take_value, &v));
    if (!t->classify && t->loss == task_loss) CTN_TRY(show_errors(&v, t));
    if (v.j) json_close(v.j, '}');
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
};
