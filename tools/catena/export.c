/* SPDX-License-Identifier: Apache-2.0
 *
 * catena export: writes a network with given weights as an ONNX model. No data is needed: what the
 * network looks like follows from config.yaml beside the weights, from the weights and from
 * options. If the data of the training was standardised, the model does that too, so it takes and
 * gives values in their own units.
 *
 * A network that began as the folder of a published model is written as such a folder again if --to
 * ends in a slash.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <catena/io.h>
#include <catena/onnx_export.h>
#include <catena/ops.h>

#include "infer.h"
#include "model.h"

/* ---- what the weights say -------------------------------------------------------------------- */

/* The header of a safetensors file, JSON as text; NULL: this is not such a file. */
static char *header_of(const char *path)
{
    enum { MOST = 100 << 20 };
    unsigned char size[8];
    uint64_t n = 0;
    char *text = NULL;
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    if (fread(size, 1, sizeof size, f) == sizeof size)
        for (int i = 7; i >= 0; i--) n = n << 8 | size[i];
    if (n > 0 && n < MOST) text = malloc((size_t)n + 1);
    if (text && fread(text, 1, (size_t)n, f) == n) {
        text[n] = 0;
    } else {
        free(text);
        text = NULL;
    }
    fclose(f);
    return text;
}

/* The second dimension of a matrix in the header; 0: it is not there. */
static int64_t columns_of(const char *header, const char *name)
{
    char quoted[128];
    long long rows = 0, columns = 0;
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(header, quoted), *shape = at ? strstr(at, "\"shape\":") : NULL;
    if (!shape || sscanf(shape, "\"shape\":[%lld,%lld]", &rows, &columns) != 2) return 0;
    return columns > 0 && columns <= INT32_MAX ? columns : 0;
}

/* ---- the network ----------------------------------------------------------------------------- */

/* The shape of one sample: --input, else the usual one. */
static ctn_status settle_input(task *t, const char *header)
{
    double shape[CTN_MAX_DIMS];
    int64_t channels, size, classes;
    const int given = args_list(t->a, "input", CTN_MAX_DIMS - 1, shape);
    model_usual(t->zoo ? t->zoo : "", &channels, &size, &classes);
    t->input = (ctn_field){.dtype = t->net_is == NET_TOKENS ? CTN_I64 : CTN_F32, .ndim = given};
    for (int i = 0; i < given; i++) t->input.shape[i] = (int64_t)shape[i];
    if (given > 0) return check_sizes("input", &t->input);
    if (args_int(t->a, "size") > 0) size = args_int(t->a, "size");
    switch (t->net_is) {
    case NET_TOKENS:
        t->input.ndim = 1;
        t->input.shape[0] = args_int(t->a, "length");
        return CTN_OK;
    case NET_FLAT:
        t->input.ndim = 1;
        t->input.shape[0] = header ? columns_of(header, "0.weight") : 0;
        if (t->input.shape[0] == 0) t->input.shape[0] = size;
        return CTN_OK;
    case NET_IMAGE:
        t->input = (ctn_field){.dtype = CTN_F32, .ndim = 3, .shape = {channels, size, size}};
        return CTN_OK;
    default:
        if (t->onnx && onnx_input(t)) return CTN_OK;
        return ctn_fail(CTN_EARG,
                        "the shape of a sample is unknown: use --input, for example --input "
                        "1,64,64 (channels first)");
    }
}

/* What task_data learns from data. */
static ctn_status describe(task *t)
{
    int64_t channels, size, classes;
    char *header = header_of(weights_of(t->a));
    const bool standard = header && strstr(header, "\"input_mean\"");
    const ctn_status st = settle_input(t, header);
    model_usual(t->zoo ? t->zoo : "", &channels, &size, &classes);
    t->kind = t->net_is == NET_TOKENS ? DATA_TOKENS : DATA_ARRAYS;
    t->classify = args_text(t->a, "target-shape")[0] == 0 && t->net_is != NET_FIELD;
    if (args_int(t->a, "classes") > 0) t->classify = true;
    t->classes = args_int(t->a, "classes") > 0 ? args_int(t->a, "classes") : classes;
    t->standardize[0] = standard && !args_is(t->a, "standardize", "none");
    t->standardize[1] = t->standardize[0] && strstr(header, "\"target_mean\"");
    free(header);
    return st;
}

/* One number per index of the dimension after the batch, or per element of a sample, as it
 * broadcasts with x. */
static ctn_tensor *moment(ctn_var *v, ctn_tensor *x)
{
    int64_t dims[CTN_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1}, each = 1;
    const int64_t n = ctn_var_desc(v)->dim[0];
    for (int i = 1; i < ctn_ndim(x); i++) each *= ctn_dim(x, i);
    for (int i = 1; i < ctn_ndim(x); i++) dims[i] = each == n ? ctn_dim(x, i) : i == 1 ? n : 1;
    return ctn_reshape(ctn_cast(ctn_use(v), ctn_dtype_of(x)), ctn_ndim(x), dims);
}

static ctn_tensor *forward(void *self, ctn_module *m, ctn_tensor *x)
{
    task *t = self;
    (void)m;
    if (t->moment[0][0])
        x = ctn_div(ctn_sub(x, moment(t->moment[0][0], x)), moment(t->moment[0][1], x));
    ctn_tensor *y = x ? task_forward(t, x) : NULL;
    if (!y || !t->moment[1][0]) return y;
    return ctn_add(ctn_mul(y, moment(t->moment[1][1], y)), moment(t->moment[1][0], y));
}

/* ---- open lengths ---------------------------------------------------------------------------- */

static bool is_prime(int64_t n)
{
    for (int64_t k = 2; k * k <= n; k++)
        if (n % k == 0) return false;
    return n > 1;
}

/* The largest prime number up to `most` that divides no size of a parameter; 0: there is none. */
static int64_t free_length(ctn_module *net, int64_t most)
{
    const ctn_vars all = ctn_params(net);
    for (int64_t p = most; p > 16; p--) {
        bool divides = !is_prime(p);
        for (int i = 0; i < all.n && !divides; i++) {
            const ctn_desc *d = ctn_var_desc(all.var[i]);
            for (int k = 0; k < d->ndim; k++) divides = divides || d->dim[k] % p == 0;
        }
        if (!divides) return p;
    }
    return 0;
}

static ctn_status open_length(task *t, int64_t *length)
{
    *length = 0;
    if (!args_flag(t->a, "any-length")) return CTN_OK;
    if (t->net_is != NET_TOKENS)
        return ctn_fail(CTN_EARG, "--any-length is for language models, and %s is none",
                        t->a->operand);
    *length = free_length(t->net, t->input.shape[0]);
    if (*length == 0) return ctn_fail(CTN_EARG, "--any-length needs a --length of at least 17");
    t->input.shape[0] = *length;
    return CTN_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void show(const task *t, const char *to, int64_t length)
{
    const args *a = t->a;
    char shape[128] = "";
    json j = {0};
    for (int i = 0; i < t->input.ndim; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), ",%lld",
                 (long long)t->input.shape[i]);
    if (length > 0) snprintf(shape, sizeof shape, ",length");
    if (!args_flag(a, "json")) {
        say(stdout, "%s: %s, input %s (%s%s)\n", to, a->operand, ctn_dtype_name(t->input.dtype),
            args_int(a, "batch") ? args_text(a, "batch") : "batch", shape);
        return;
    }
    json_open(&j, NULL, '{');
    json_text(&j, "network", a->operand);
    json_text(&j, "to", to);
    json_text(&j, "input_type", ctn_dtype_name(t->input.dtype));
    json_open(&j, "input_shape", '[');
    for (int i = 0; i < t->input.ndim; i++) json_int(&j, NULL, length ? -1 : t->input.shape[i]);
    json_close(&j, ']');
    json_bool(&j, "standardised", t->standardize[0]);
    json_close(&j, '}');
}

/* The model takes f32, which rounds values that vary little around a large mean. */
static ctn_status warn_rounding(const task *t)
{
    int64_t n = 0;
    double *mean = NULL, *std = NULL;
    if (!t->moment[0][0]) return CTN_OK;
    CTN_TRY(task_moment_values(t, 0, &n, &mean, &std));
    for (int64_t k = 0; k < n; k++) {
        if (fabs(mean[k]) < 1e4 * std[k] || fabs(mean[k]) < 1e4) continue;
        say(stderr,
            "warning: the model takes f32, but its input %lld varies by %.3g around %.9g, which "
            "f32 rounds to %.1g: subtract a constant from the data before the training\n",
            (long long)k, std[k], mean[k], fabs(mean[k]) * FLT_EPSILON / 2);
        break;
    }
    free(mean);
    free(std);
    return CTN_OK;
}

/* The folder of a published model, with the weights of --weights and the adapters merged. */
static ctn_status export_folder(task *t, args *a, const char *to)
{
    json j = {0};
    if (!t->published)
        return ctn_fail(CTN_EARG,
                        "%s did not begin as the folder of a published model, so it can only be "
                        "written as an ONNX model: use --to FILE.onnx",
                        a->operand);
    CTN_TRY(task_weights(t, weights_of(a)));
    CTN_TRY(adapters_open(a, t->net));
    t->now = DOING_SETUP;
    CTN_TRY(ctn_published_write(t->net, a->operand, to));
    if (!args_flag(a, "json")) {
        say(stdout, "%s: a published model like %s\n", to, a->operand);
        return CTN_OK;
    }
    json_open(&j, NULL, '{');
    json_text(&j, "network", a->operand);
    json_text(&j, "to", to);
    json_close(&j, '}');
    return CTN_OK;
}

static ctn_status export(task *t, args *a)
{
    ctn_module *whole = NULL;
    const char *to = args_text(a, "to");
    int64_t length;
    CTN_TRY(task_begin(t, a, FOR_PREDICTION));
    if (!to[0]) return ctn_fail(CTN_EARG, "no file to write: use --to FILE.onnx");
    if (ends_with(to, "/")) return export_folder(t, a, to);
    CTN_TRY(describe(t));
    CTN_TRY(task_net(t));
    CTN_TRY(task_weights(t, weights_of(a)));
    CTN_TRY(adapters_open(a, t->net));
    CTN_TRY(warn_rounding(t));
    t->now = DOING_SETUP;
    CTN_TRY(open_length(t, &length));
    CTN_TRY(ctn_module_new(&whole, t->ctx, forward, t, NULL));
    const ctn_status st = ctn_onnx_export_module(
        whole, to, 1, &t->input,
        CTN_OPT(ctn_onnx_export_opt, .opset = (int)args_int(a, "opset"),
                .fold_batch_norm = args_flag(a, "fold"), .external = args_flag(a, "external"),
                .batch = args_int(a, "batch"), .any_length = length, .module = t->net));
    ctn_module_free(whole);
    if (st == CTN_OK) show(t, to, length);
    return st;
}

static int run(args *a)
{
    return infer_command(a, export);
}

static const option options[] = {
    {"weights", "FILE", "",
     "weights as a safetensors file; settings of the network come from config.yaml beside it",
     GROUP_COMMON},
    {"to", "FILE", "",
     "ONNX file to write; of a published model, also a folder like its own: --to DIR/",
     GROUP_COMMON},
    {"adapters", "DIR", "", "folder of low-rank adapters (LoRA) for the weights, as peft writes it",
     GROUP_NETWORK},
    {"input", "N,...", "",
     "shape of one sample, without the batch (default: from the weights, or the usual one)",
     GROUP_COMMON},
    {"batch", "N", "0", "the only batch size of the model; 0: any", GROUP_COMMON},
    {"fold", NULL, NULL, "fold batch normalisation into the convolutions before it", GROUP_COMMON},
    {"any-length", NULL, NULL, "language models: any length, not only --length", GROUP_COMMON},
    {"opset", "N", "18", "version of the ONNX operators, 18 to 21", GROUP_COMMON},
    {"external", NULL, NULL, "write the values of the weights to a second file, FILE.data",
     GROUP_COMMON},
    {"classes", "N", "0", "number of classes, or vocabulary size; 0: the usual number",
     GROUP_NETWORK},
    {"hidden", "N,...", "1000,1000", "mlp: sizes of the hidden layers", GROUP_NETWORK},
    {"activation", "relu|gelu|tanh|sigmoid|softplus", "relu", "mlp: function between the layers",
     GROUP_NETWORK},
    {"dropout", "X", "0", "mlp: rate of dropout in training", GROUP_NETWORK},
    {"width", "N", "0", "unet, fno, gpt, bert: number of channels; 0: the usual number",
     GROUP_NETWORK},
    {"depth", "N", "0", "unet, fno, gpt, bert: number of levels or layers; 0: the usual number",
     GROUP_NETWORK},
    {"modes", "N,...", "",
     "fno: frequencies kept along each dimension (default: 12, or half of the points)",
     GROUP_NETWORK},
    {"heads", "N", "0", "gpt, bert: number of attention heads; 0: the usual number", GROUP_NETWORK},
    {"spatial", "N", "0",
     "unet, fno: spatial dimensions of a sample; 0: all but the first, the channels",
     GROUP_NETWORK},
    {"length", "N", "128", "tokens per sample", GROUP_NETWORK},
    {"size", "N", "0", "image height and width; 0: the network's usual size", GROUP_NETWORK},
    {"target-shape", "N,...", "", "shape of one result, if the network predicts numbers",
     GROUP_NETWORK},
    {"standardize", "auto|none", "auto",
     "auto: the model standardises its data if the weights were trained so", GROUP_NETWORK},
    {"model-args", "TEXT", "", "text passed to your own network", GROUP_NETWORK},
    {"threads", "N", "0", "number of compute threads; 0: as shown by catena info", GROUP_PRECISION},
    {"json", NULL, NULL, "print one JSON object that says what was written", GROUP_OUTPUT},
    {0},
};

const command cmd_export = {
    .name = "export",
    .operands = "[NETWORK]",
    .summary = "Write a network as an ONNX model, or as a published model.",
    .words = ctn_zoo_names,
    .optional = true, /* config.yaml beside the weights names it */
    .options = options,
    .examples = "  catena export result/ --to model.onnx\n"
                "  catena export --weights result/best.safetensors --to model.onnx\n"
                "  catena export resnet50 --weights resnet50.safetensors --to resnet50.onnx "
                "--fold\n"
                "  catena export ./tuned --to tuned-gpt2/              a folder for transformers\n",
    .run = run,
    .ranks = RANKS_ONE,
    .paths = "a result folder or a network of your own: ./result, ./mymodel.so",
};
