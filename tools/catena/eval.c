/* SPDX-License-Identifier: Apache-2.0
 *
 * catena eval: loss and accuracy of a network with given weights; for regression, the errors in
 * the units of the target.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <catena/dist.h>

#include "infer.h"
#include "launch.h"
#include "segment.h"

typedef struct {
    json *j;     /* NULL: text */
    bool silent; /* another rank prints them */
    bool tokens; /* the loss is one of text */
    bool pixels; /* miou is computed over all samples, not here */
    bool errors; /* mae and rmse are shown with those of each output */
} values;

static void value(values *v, const char *name, double x)
{
    if (v->silent) return;
    if (v->j) json_real(v->j, name, x);
    else say(stdout, "  %-16s %.6g\n", name, x);
}

/* A name is either "loss" or "val/loss". */
static ctn_status take_value(void *user, const char *name, double x)
{
    const values *v = user;
    const char *slash = strrchr(name, '/');
    if (slash) name = slash + 1;
    if (v->pixels && strcmp(name, "miou") == 0) return CTN_OK;
    if (v->errors && (strcmp(name, "mae") == 0 || strcmp(name, "rmse") == 0)) return CTN_OK;
    value(user, name, x);
    if (v->tokens && strcmp(name, "loss") == 0) value(user, "perplexity", exp(x));
    return CTN_OK;
}

/* Errors of each output: an element of a flat target, a channel of a field. */
enum { MOST_OUTPUTS = 64 };
typedef struct {
    units u;
    int64_t outputs; /* 1: there are too many to show, they are taken together */
    double absolute[MOST_OUTPUTS], square[MOST_OUTPUTS], n[MOST_OUTPUTS];
} errors;

static ctn_status add_errors(void *user, const ctn_batch *b, const float *y, int64_t per,
                             int64_t first)
{
    errors *e = user;
    const float *t = b->data[1];
    (void)first;
    for (int64_t i = 0; i < b->n * per; i++) {
        const int64_t k = i % per / (per / e->outputs);
        double d = ((double)y[i] - t[i]) * units_scale(&e->u, i % per, per);
        e->absolute[k] += fabs(d);
        e->square[k] += d * d;
        e->n[k]++;
    }
    return CTN_OK;
}

/* The sums of one rank become means over all ranks. */
static ctn_status join_errors(errors *e, ctn_comm *c)
{
    double mean[2 * MOST_OUTPUTS], weight[2 * MOST_OUTPUTS];
    for (int64_t k = 0; k < e->outputs; k++) {
        mean[2 * k] = e->n[k] > 0 ? e->absolute[k] / e->n[k] : 0;
        mean[2 * k + 1] = e->n[k] > 0 ? e->square[k] / e->n[k] : 0;
        weight[2 * k] = weight[2 * k + 1] = e->n[k];
    }
    if (c) CTN_TRY(ctn_dist_mean(c, (int)(2 * e->outputs), mean, weight));
    for (int64_t k = 0; k < e->outputs; k++) {
        e->absolute[k] = mean[2 * k];
        e->square[k] = mean[2 * k + 1];
    }
    return CTN_OK;
}

/* mae and rmse of all outputs together, then, if there are several, of each. */
static void print_errors(values *v, const errors *e)
{
    double mae = 0, mse = 0;
    char name[32];
    for (int64_t k = 0; k < e->outputs; k++) {
        mae += e->absolute[k] / (double)e->outputs;
        mse += e->square[k] / (double)e->outputs;
    }
    value(v, "mae", mae);
    value(v, "rmse", sqrt(mse));
    for (int64_t k = 0; e->outputs > 1 && k < e->outputs; k++) {
        snprintf(name, sizeof name, "mae[%lld]", (long long)k);
        value(v, name, e->absolute[k]);
        snprintf(name, sizeof name, "rmse[%lld]", (long long)k);
        value(v, name, sqrt(e->square[k]));
    }
}

static ctn_status show_errors(values *v, task *t)
{
    errors e = {.outputs = t->target.ndim > 0 ? t->target.shape[0] : 1};
    if (e.outputs > MOST_OUTPUTS) e.outputs = 1;
    CTN_TRY(units_get(&e.u, t));
    ctn_status st = infer(t, field_elements(&t->target), add_errors, &e);
    if (st == CTN_OK) st = join_errors(&e, t->a->job->comm);
    if (st == CTN_OK) print_errors(v, &e);
    units_free(&e.u);
    return st;
}

static ctn_status show_iou(values *v, task *t)
{
    double mean = 0, *each = calloc((size_t)t->classes, sizeof *each);
    if (!each) return ctn_fail(CTN_ENOMEM, "no memory for %lld classes", (long long)t->classes);
    const ctn_status st = exact_iou(t, &mean, each);
    if (st == CTN_OK) value(v, "miou", mean);
    for (int64_t k = 0; st == CTN_OK && k < t->classes; k++) {
        char name[64];
        const char *class = ctn_dataset_class(t->set[0], k);
        if (class) snprintf(name, sizeof name, "iou[%.48s]", class);
        else snprintf(name, sizeof name, "iou[%lld]", (long long)k);
        if (each[k] >= 0) value(v, name, each[k]);
    }
    free(each);
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
        say(stdout, "%s, %lld samples\n", a->operand, (long long)samples);
    }
}

static ctn_status evaluate_to(task *t, args *a, json *out)
{
    ctn_comm *c = a->job->comm;
    values v = {.j = out, .silent = a->job->rank != 0};
    CTN_TRY(task_begin(t, a, FOR_EVALUATION));
    CTN_TRY(task_data(t));
    CTN_TRY(task_net(t));
    CTN_TRY(task_weights(t, weights_of(a)));
    CTN_TRY(adapters_open(a, t->net));
    CTN_TRY(task_loaders(t));
    t->now = DOING_RUN;
    v.tokens = t->net_is == NET_TOKENS;
    v.pixels = t->pixels;
    v.errors = !t->classify && t->loss == task_loss;
    head(&v, a, ctn_dataset_count(t->set[0]));
    if (c)
        CTN_TRY(ctn_dist_evaluate(c, t->ctx, t->loader[0], t->loss, t->loss_self, take_value, &v));
    else CTN_TRY(ctn_evaluate(t->ctx, t->loader[0], t->loss, t->loss_self, take_value, &v));
    if (v.errors) CTN_TRY(show_errors(&v, t));
    if (t->pixels && t->loss == task_loss) CTN_TRY(show_iou(&v, t));
    if (v.j && !v.silent) json_close(v.j, '}');
    return CTN_OK;
}

static ctn_status evaluate(task *t, args *a)
{
    json out = {0};
    if (!args_flag(a, "json")) return evaluate_to(t, a, NULL);
    CTN_TRY(json_hold(&out));
    const ctn_status st = evaluate_to(t, a, &out);
    const ctn_status end = json_release(&out, st == CTN_OK);
    return st < 0 ? st : end;
}

static int run(args *a)
{
    return infer_command(a, evaluate);
}

static const option options[] = {
    {"weights", "FILE", "",
     "weights (safetensors or PyTorch); settings of the network come from config.yaml beside them",
     GROUP_COMMON},
    {"adapters", "DIR", "", "folder of low-rank adapters (LoRA) for the weights, as peft writes it",
     GROUP_NETWORK},
    TASK_DATA_OPTIONS,
    {"held-out", NULL, NULL,
     "evaluate the samples that the training held out with --val-share or --val; --data is then "
     "that of the training",
     GROUP_COMMON},
    {"val-share", "X", "0", "for --held-out: the share (default: that of the training)",
     GROUP_DATA},
    {"seed", "N", "0", "for --held-out: the seed of the training (default: its own)", GROUP_DATA},
    {"split", "train|test", "test", "part of MNIST, CIFAR, SVHN or of a folder that has both",
     GROUP_DATA},
    {"metric", "NAMES", "",
     "further metrics: f1, precision, recall, auc (two classes); f1_macro, f1_micro and so on; "
     "miou; r2, relative_l2 (numbers, whose mae and rmse are always shown)",
     GROUP_COMMON},
    TASK_NET_OPTIONS,
    TASK_RUN_OPTIONS,
    LAUNCH_OPTIONS,
    {"json", NULL, NULL, "print one JSON object", GROUP_OUTPUT},
    {0},
};

const command cmd_eval = {
    .name = "eval",
    .operands = "[NETWORK]",
    .summary = "Evaluate a network with given weights on data.",
    .words = ctn_zoo_names,
    .optional = true, /* config.yaml beside the weights names it */
    .options = options,
    .examples =
        "  catena eval ./digits --data mnist                   the best weights of a training\n"
        "  catena eval --weights digits/weights.safetensors --data mnist\n"
        "  catena eval ./result --held-out              the samples of --val-share 0.1\n"
        "  catena eval resnet20_cifar --weights resnet20.safetensors --data cifar-10-batches-bin "
        "--json\n"
        "  catena eval --weights result/weights.safetensors --data x.npy --target y.npy\n",
    .run = run,
    .paths = OWN_OR_RESULT,
    .ranks = RANKS_JOB,
};
