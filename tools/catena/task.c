/* SPDX-License-Identifier: Apache-2.0
 *
 * The network of a task, its loss, and the mean and deviation of its data. These are stored as
 * state of the network (input_mean, input_std, target_mean, target_std), so a weights file
 * contains all that prediction needs.
 */
#include "task.h"
#include "launch.h"
#include "model.h"
#include "segment.h"
#include "watchdog/watchdog.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <catena/ops.h>
#include <catena/zoo.h>

/* ---- beginning and end ----------------------------------------------------------------------- */

net_kind net_kind_of(const char *zoo)
{
    if (strcmp(zoo, "mlp") == 0) return NET_FLAT;
    if (strcmp(zoo, "unet") == 0 || strcmp(zoo, "fno") == 0) return NET_FIELD;
    return strncmp(zoo, "gpt", 3) == 0 || strcmp(zoo, "bert") == 0 ? NET_TOKENS : NET_IMAGE;
}

ctn_status task_begin(task *t, args *a, task_use use)
{
    *t = (task){.a = a, .use = use, .now = DOING_SETUP, .held_out = args_flag(a, "held-out")};
    if (is_published(a->operand)) {
        t->published = true;
        t->net_is = NET_TOKENS;
    } else if (is_onnx(a->operand)) {
        t->net_is = NET_OWN;
    } else if (strchr(a->operand, '/')) {
        t->net_is = NET_OWN;
        CTN_TRY(own_open(t, a->operand));
    } else {
        t->zoo = a->operand;
        t->net_is = net_kind_of(t->zoo);
        t->masked = strcmp(t->zoo, "bert") == 0;
    }
    CTN_TRY(open_context(&t->ctx, a, timeline_room(a)));
    if (is_onnx(a->operand)) return onnx_open(t, a->operand);
    if (!t->published) return CTN_OK;
    CTN_TRY(make_language(a, t->ctx, 0, &t->net)); /* what it predicts decides about the data */
    t->masked = ctn_module_predicts(t->net) == CTN_PREDICTS_MASKED;
    return CTN_OK;
}

void task_free(task *t)
{
    for (int k = 0; k < 2; k++) ctn_loader_free(t->loader[k]);
    for (int k = 0; k < 2; k++) ctn_dataset_free(t->set[k]);
    while (t->nbase > 0) ctn_dataset_free(t->base[--t->nbase]);
    ctn_tokenizer_free(t->tokenizer);
    ctn_module_free(t->net);
    ctn_context_free(t->ctx);
    own_close(t);
}

/* ---- the network ----------------------------------------------------------------------------- */

int64_t field_elements(const ctn_field *f)
{
    int64_t n = 1;
    for (int i = 0; i < f->ndim; i++) n *= f->shape[i];
    return n;
}

ctn_status check_sizes(const char *name, const ctn_field *f)
{
    double n = 1;
    for (int i = 0; i < f->ndim; i++) {
        n *= (double)f->shape[i];
        if (f->shape[i] < 1) return ctn_fail(CTN_EARG, "--%s: sizes must be at least 1", name);
    }
    if (n <= INT32_MAX) return CTN_OK;
    return ctn_fail(CTN_EARG, "--%s: %g values, expected at most %d", name, n, INT32_MAX);
}

/* The shape of a result: from the target if there is one, else from --target-shape. */
static ctn_status settle_target(task *t)
{
    double shape[CTN_MAX_DIMS];
    if (t->classify) return CTN_OK;
    if (t->target.dtype == 0) {
        t->target = (ctn_field){.dtype = CTN_F32};
        t->target.ndim = args_list(t->a, "target-shape", CTN_MAX_DIMS - 1, shape);
        for (int i = 0; i < t->target.ndim; i++) t->target.shape[i] = (int64_t)shape[i];
        CTN_TRY(check_sizes("target-shape", &t->target));
        if (t->target.ndim == 0)
            return ctn_fail(CTN_EARG,
                            "the shape of a result is unknown: use --target-shape, or keep "
                            "config.yaml beside the weights");
    }
    char text[256] = "";
    for (int i = 0; i < t->target.ndim; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i ? "," : "",
                 (long long)t->target.shape[i]);
    args_settle(t->a, "target-shape", "%s", t->target.ndim ? text : "1");
    return CTN_OK;
}

typedef ctn_tensor *(*activation_fn)(const char *at, ctn_tensor *x);

static activation_fn activation_of(const args *a)
{
    static const struct {
        const char *name;
        activation_fn fn;
    } known[] = {{"gelu", ctn_gelu_at},
                 {"tanh", ctn_tanh_at},
                 {"sigmoid", ctn_sigmoid_at},
                 {"softplus", ctn_softplus_at}};
    if (option_find(a->cmd, "activation", 10) < 0) return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (args_is(a, "activation", known[i].name)) return known[i].fn;
    return NULL;
}

static ctn_status make_mlp(task *t, int64_t outputs)
{
    enum { MOST = 64 };
    double hidden[MOST];
    int64_t size[MOST + 2];
    int n = args_list(t->a, "hidden", MOST, hidden);
    size[0] = field_elements(&t->input);
    for (int i = 0; i < n; i++) {
        size[i + 1] = (int64_t)hidden[i];
        if (size[i + 1] < 1) return ctn_fail(CTN_EARG, "--hidden: sizes must be at least 1");
    }
    size[n + 1] = outputs;
    return ctn_zoo_mlp(&t->net, t->ctx,
                       CTN_OPT(ctn_mlp_opt, .n = n + 2, .size = size,
                               .activation = activation_of(t->a),
                               .dropout = args_real(t->a, "dropout")));
}

/* Without --modes, 12 along each dimension, or all that a short one has. */
static ctn_status make_fno(task *t, int64_t in, int64_t out)
{
    ctn_fno_opt o = {.struct_size = sizeof o,
                     .spatial = t->spatial,
                     .in_channels = in,
                     .out_channels = out,
                     .width = args_int(t->a, "width"),
                     .layers = (int)args_int(t->a, "depth")};
    double modes[CTN_MAX_SPATIAL];
    char text[128] = "";
    const int given = args_list(t->a, "modes", CTN_MAX_SPATIAL, modes);
    if (given > 1 && given != t->spatial)
        return ctn_fail(CTN_EARG, "--modes: got %d numbers, expected 1 or %d", given, t->spatial);
    for (int i = 0; i < t->spatial; i++) {
        const int64_t half = t->input.shape[1 + i] / 2;
        o.modes[i] = given ? (int64_t)modes[given > 1 ? i : 0] : half < 12 ? half : 12;
        if (o.modes[i] < 1) return ctn_fail(CTN_EARG, "--modes: numbers must be at least 1");
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i ? "," : "",
                 (long long)o.modes[i]);
    }
    args_settle(t->a, "modes", "%s", text);
    return ctn_zoo_fno(&t->net, t->ctx, &o);
}

static ctn_status make_field(task *t)
{
    t->spatial = (int)args_int(t->a, "spatial");
    if (t->spatial == 0) t->spatial = t->input.ndim - 1;
    if (t->input.ndim != t->spatial + 1 || t->spatial < 1 || t->spatial > 3)
        return ctn_fail(CTN_ESHAPE,
                        "%s needs samples with channels and 1 to 3 spatial dimensions, or "
                        "without channels and with --spatial; these samples have %d dimensions",
                        t->zoo, t->input.ndim);
    args_settle(t->a, "spatial", "%d", (int)args_int(t->a, "spatial"));
    const int64_t in = t->input.shape[0], out = t->classify ? t->classes : t->target.shape[0];
    if (strcmp(t->zoo, "fno") == 0) return make_fno(t, in, out);
    return ctn_zoo_unet(&t->net, t->ctx,
                        CTN_OPT(ctn_unet_opt, .spatial = t->spatial, .in_channels = in,
                                .out_channels = out, .width = args_int(t->a, "width"),
                                .depth = (int)args_int(t->a, "depth")));
}

static ctn_status make_own(task *t)
{
    ctn_model_opt o = {.struct_size = sizeof o,
                       .input = t->input,
                       .target = t->target,
                       .classes = t->classify ? t->classes : 0,
                       .args = args_text(t->a, "model-args")};
    /* The network sees what the datasets deliver, and standardised data is f32. */
    if (o.input.dtype == CTN_F64) o.input.dtype = CTN_F32;
    if (o.target.dtype == CTN_F64) o.target.dtype = CTN_F32;
    CTN_TRY(t->own->make(&t->net, t->ctx, &o));
    if (!t->net) return ctn_fail(CTN_EARG, "%s: make returned no network", t->own->name);
    return CTN_OK;
}

ctn_status make_language(const args *a, ctn_context *ctx, int64_t vocabulary, ctn_module **net)
{
    enum { BLOCK = 512 }; /* of BERT, for any sequences that are not longer */
    const int64_t length = args_int(a, "length"), width = args_int(a, "width");
    const int layers = (int)args_int(a, "depth"), heads = (int)args_int(a, "heads");
    if (is_published(a->operand)) {
        CTN_TRY(ctn_zoo_open(net, ctx, a->operand));
        if (ctn_module_predicts(*net) != CTN_PREDICTS_OTHER) return CTN_OK;
        return ctn_fail(CTN_EUNSUPPORTED,
                        "%s is not a language model, and the command takes no other published "
                        "networks; use it in C (ctn_zoo_open)",
                        a->operand);
    }
    if (strcmp(a->operand, "bert") == 0)
        return ctn_zoo_bert(net, ctx,
                            CTN_OPT(ctn_bert_opt, .vocabulary = vocabulary,
                                    .block = length > BLOCK ? length : BLOCK, .width = width,
                                    .layers = layers, .heads = heads));
    if (strcmp(a->operand, "gpt") != 0)
        return ctn_zoo_new(net, ctx, a->operand, CTN_OPT(ctn_zoo_opt, .classes = vocabulary));
    return ctn_zoo_gpt(net, ctx,
                       CTN_OPT(ctn_gpt_opt, .vocabulary = vocabulary, .block = length,
                               .width = width, .layers = layers, .heads = heads));
}

static ctn_status make_net(task *t)
{
    int64_t outputs = t->classify ? t->classes : field_elements(&t->target);
    int64_t channels = t->input.ndim >= 3 ? t->input.shape[0] : 1;
    switch (t->net_is) {
    case NET_OWN: return t->onnx ? CTN_OK : make_own(t);
    case NET_FLAT: return make_mlp(t, outputs);
    case NET_FIELD: return make_field(t);
    case NET_TOKENS: return t->published ? CTN_OK : make_language(t->a, t->ctx, outputs, &t->net);
    default:
        return ctn_zoo_new(&t->net, t->ctx, t->zoo,
                           CTN_OPT(ctn_zoo_opt, .classes = outputs, .in_channels = channels));
    }
}

/* State for the mean and deviation of one field: one pair per index of its first dimension, a
 * channel. A perceptron has no channels, each of its numbers has its own pair. */
static ctn_status add_moments(task *t, int f)
{
    static const char *const names[2][2] = {{"input_mean", "input_std"},
                                            {"target_mean", "target_std"}};
    const ctn_field *field = f == 0 ? &t->input : &t->target;
    int64_t n = t->net_is == NET_FLAT ? field_elements(field)
                : field->ndim > 0     ? field->shape[0]
                                      : 1;
    for (int k = 0; k < 2; k++)
        CTN_TRY(ctn_module_state(&t->moment[f][k], t->net, names[f][k], CTN_F64, 1, &n,
                                 CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT, .value = k)));
    return CTN_OK;
}

/* Flat images, as in MNIST, are squares. */
static ctn_status check_image(const task *t)
{
    const int64_t n = t->input.ndim == 1 ? t->input.shape[0] : 0;
    const int64_t side = (int64_t)lround(sqrt((double)n));
    if (t->net_is != NET_IMAGE || t->use != FOR_TRAINING || (t->input.ndim > 0 && side * side == n))
        return CTN_OK; /* weights say later what they were trained as */
    return ctn_fail(CTN_ESHAPE,
                    "%s takes images, (channels,height,width), and samples of %lld numbers are "
                    "none: use mlp",
                    t->zoo, (long long)field_elements(&t->input));
}

ctn_status task_net(task *t)
{
    t->now = DOING_SETUP;
    if (t->onnx) CTN_TRY(onnx_results(t));
    if (t->classify && t->classes < 1)
        return ctn_fail(CTN_EARG, "the number of classes is unknown: use --classes");
    if ((t->kind == DATA_TOKENS) != (t->net_is == NET_TOKENS) && t->net_is != NET_OWN)
        return ctn_fail(
            CTN_ESHAPE,
            "%s does not fit this data: language models such as gpt need tokens, and only they "
            "accept them",
            t->a->operand);
    CTN_TRY(check_image(t));
    CTN_TRY(settle_target(t));
    CTN_TRY(make_net(t));
    if (args_flag(t->a, "recompute")) CTN_TRY(recompute_blocks(t->net));
    for (int f = 0; f < 2; f++)
        if (t->standardize[f]) CTN_TRY(add_moments(t, f));
    if (t->classify) args_settle(t->a, "classes", "%lld", (long long)t->classes);
    if (args_is(t->a, "loss", "auto"))
        args_settle(t->a, "loss", t->classify ? "cross-entropy" : "mse");
    t->loss = t->own && t->own->loss ? t->own->loss : task_loss;
    t->loss_self = t->own && t->own->loss ? (void *)t->net : (void *)t;
    return option_find(t->a->cmd, "metric", 6) < 0 ? CTN_OK : metrics_check(t);
}

/* ---- mean and deviation ---------------------------------------------------------------------- */

/* A sample has the name of its input, also if the target is wrong. */
static ctn_status explain_value(const task *t, int f)
{
    char first[2048];
    snprintf(first, sizeof first, "%s", ctn_error_message());
    ctn_error_clear();
    return ctn_fail(CTN_EFORMAT, "%s: %s%s", args_text(t->a, f == 0 ? "data" : "target"), first,
                    strstr(first, "not finite") ? "; NaN can be replaced with --fill" : "");
}

/* Rank 0 reads the data and computes them; the other ranks receive the numbers. */
static ctn_status moments_of(task *t, int f, int64_t n, double *mean, double *std)
{
    ctn_comm *c = t->a->job->comm;
    const size_t bytes = (size_t)n * sizeof(double);
    if (t->a->job->rank == 0) {
        const ctn_status st = ctn_dataset_moments(t->set[0], f, n, mean, std);
        if (st == CTN_EFORMAT) return explain_value(t, f);
        CTN_TRY(st);
    }
    if (!c) return CTN_OK;
    CTN_TRY(ctn_comm_broadcast(c, mean, bytes, 0));
    return ctn_comm_broadcast(c, std, bytes, 0);
}

ctn_status task_moments(task *t)
{
    t->now = DOING_DATA;
    for (int f = 0; f < 2; f++) {
        ctn_status st = CTN_OK;
        int64_t n = 0;
        double *mean = NULL, *std = NULL;
        if (!t->moment[f][0]) continue;
        CTN_TRY(task_moment_values(t, f, &n, &mean, &std));
        size_t bytes = (size_t)n * sizeof(double);
        CTN_TRY_GOTO(st, done, moments_of(t, f, n, mean, std));
        CTN_TRY_GOTO(st, done, ctn_var_set(t->moment[f][0], mean, bytes));
        CTN_TRY_GOTO(st, done, ctn_var_set(t->moment[f][1], std, bytes));
    done:
        free(mean);
        free(std);
        CTN_TRY(st);
    }
    return CTN_OK;
}

ctn_status task_moment_values(const task *t, int f, int64_t *n, double **mean, double **std)
{
    ctn_status st = CTN_OK;
    *n = ctn_var_desc(t->moment[f][0])->dim[0];
    size_t bytes = (size_t)*n * sizeof(double);
    *mean = malloc(bytes);
    *std = malloc(bytes);
    if (!*mean || !*std) st = ctn_fail(CTN_ENOMEM, "no memory for %lld means", (long long)*n);
    if (st == CTN_OK) st = ctn_var_get(t->moment[f][0], *mean, bytes);
    if (st == CTN_OK) st = ctn_var_get(t->moment[f][1], *std, bytes);
    if (st == CTN_OK) return CTN_OK;
    free(*mean);
    free(*std);
    *mean = *std = NULL;
    return st;
}

/* ---- forward pass and loss ------------------------------------------------------------------- */

/* Reshape images without channels, or flat ones as in MNIST, for image networks. */
static ctn_tensor *as_image(ctn_tensor *x)
{
    int64_t n = ctn_dim(x, 0);
    if (ctn_ndim(x) == 2) {
        int64_t side = (int64_t)lround(sqrt((double)ctn_dim(x, 1)));
        return ctn_reshape(x, CTN_SHAPE(n, 1, side, -1));
    }
    if (ctn_ndim(x) == 3) return ctn_reshape(x, CTN_SHAPE(n, 1, ctn_dim(x, 1), ctn_dim(x, 2)));
    return x;
}

static ctn_tensor *as_input(const task *t, ctn_tensor *x)
{
    if (t->net_is == NET_IMAGE) return as_image(x);
    if (t->net_is == NET_FLAT && ctn_ndim(x) != 2)
        return ctn_reshape(x, CTN_SHAPE(ctn_dim(x, 0), -1));
    return x;
}

ctn_tensor *task_forward(task *t, ctn_tensor *x)
{
    return ctn_call(t->net, as_input(t, x));
}

/* In training, googlenet has the logits of its auxiliary classifiers too. */
static ctn_tensors forward_all(task *t, ctn_tensor *x)
{
    if (t->zoo && strcmp(t->zoo, "googlenet") == 0) return ctn_call_multi(t->net, as_input(t, x));
    ctn_tensor *y = task_forward(t, x);
    return (ctn_tensors){y != NULL, {y}};
}

/* The losses of the auxiliary classifiers count 0.3 each, as published. */
static ctn_tensor *class_loss(const ctn_tensors *y, ctn_tensor *target, double smoothing)
{
    ctn_tensor *sum = NULL;
    for (int i = 0; i < y->n; i++) {
        ctn_tensor *loss = ctn_softmax_cross_entropy_with(y->t[i], target,
                                                          CTN_OPT(ctn_softmax_cross_entropy_opt,
                                                                  .smoothing = smoothing));
        sum = i == 0 ? loss : ctn_add(sum, ctn_scale(loss, 0.3));
    }
    return sum;
}

/* The mean over samples of |y - t| / |t|, where |...| is the root of the sum of squares. */
static ctn_tensor *relative_l2(ctn_tensor *y, ctn_tensor *target)
{
    if (!y || !target) return NULL;
    if (ctn_count(y) != ctn_count(target)) {
        ctn_fail(CTN_ESHAPE, "relative-l2: got %lld values for %lld targets, expected as many",
                 (long long)ctn_count(y), (long long)ctn_count(target));
        return NULL;
    }
    const int64_t n = ctn_dim(y, 0), rest[] = {1};
    y = ctn_reshape(y, CTN_SHAPE(n, -1));
    target = ctn_reshape(target, CTN_SHAPE(n, -1));
    ctn_tensor *error = ctn_sum(ctn_square(ctn_sub(y, target)), 1, rest, 0);
    ctn_tensor *norm = ctn_sum(ctn_square(target), 1, rest, 0);
    return ctn_mean(ctn_div(ctn_sqrt(error), ctn_sqrt(norm)), CTN_ALL_AXES, 0);
}

ctn_tensor *task_loss(void *self, ctn_step *s)
{
    task *t = self;
    enum { LARGE = 8192, IGNORED = -100 };
    watchdog_at(ctn_context_training(t->ctx) ? AT_COMPUTE : AT_EVALUATE, -1);
    ctn_tensor *target = ctn_step_input(s, 1);
    /* Training with a large vocabulary: the network computes the loss itself, so the logits of all
     * tokens never exist at the same time, and there is no accuracy. */
    if (t->net_is == NET_TOKENS && t->classes > LARGE && ctn_context_training(t->ctx) &&
        args_real(t->a, "smoothing") == 0) {
        ctn_report_targets(s, 1, IGNORED);
        return token_loss(t->net, ctn_step_input(s, 0), target);
    }
    ctn_tensors all = forward_all(t, ctn_step_input(s, 0));
    ctn_tensor *y = all.n > 0 ? all.t[0] : NULL;
    if (t->classify) {
        double smoothing = ctn_context_training(t->ctx) ? args_real(t->a, "smoothing") : 0;
        bool mixed = ctn_dtype_of(target) == ctn_context_float_type(t->ctx);
        if (t->pixels) y = all.t[0] = channels_last(y);
        if (t->pixels) ctn_report_metric(s, "miou", NULL, y, target);
        if (!mixed) ctn_report_targets(s, 1, IGNORED);
        if (!mixed) metrics_report(t, s, y, target);
        if (!mixed) ctn_report(s, "accuracy", ctn_accuracy(y, target, 1));
        if (!mixed && t->classes > 20 && t->kind != DATA_TOKENS)
            ctn_report(s, "top5", ctn_accuracy(y, target, 5));
        return class_loss(&all, target, smoothing);
    }
    if (t->net_is != NET_FIELD && y) {
        y = ctn_reshape(y, CTN_SHAPE(ctn_dim(y, 0), -1));
        target = ctn_reshape(target, CTN_SHAPE(ctn_dim(target, 0), -1));
    }
    metrics_report(t, s, y, target);
    if (args_is(t->a, "loss", "mae")) return ctn_mean_absolute_error(y, target, CTN_MEAN);
    if (args_is(t->a, "loss", "relative-l2")) return relative_l2(y, target);
    if (args_is(t->a, "loss", "huber")) return ctn_huber(y, target, 1.0, CTN_MEAN);
    return ctn_mean_squared_error(y, target, CTN_MEAN);
}
