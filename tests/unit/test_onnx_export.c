/* SPDX-License-Identifier: Apache-2.0
 *
 * Export to ONNX: every network of the zoo, in a small form where there is one, and recurrent and
 * graph networks. The files are read back: names and values of the initializers, inputs and
 * outputs, and that every value is made before it is read. dev/onnx-zoo runs the models with
 * onnxruntime. For that, `test_onnx_export --write FOLDER NAME [fold] [external] [OPSET]` writes a
 * model with inputs and our own results, `--list` prints the names, and `--ops` which ops have a
 * form in ONNX.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "nn/nn.h"
#include "onnx/emit.h"

#ifdef CTN_HAVE_PROTOBUFC

/* ---- the networks ---------------------------------------------------------------------------- */

typedef ctn_status make_fn(ctn_module **m, ctn_context *ctx, const char *name);

#define MAKE(family, ...)                                                               \
    static ctn_status make_##family(ctn_module **m, ctn_context *ctx, const char *name) \
    {                                                                                   \
        (void)name;                                                                     \
        return ctn_zoo_##family(m, ctx, CTN_OPT(ctn_##family##_opt, __VA_ARGS__));      \
    }
MAKE(bert, .vocabulary = 60, .block = 16, .width = 32, .layers = 2, .heads = 4)
MAKE(gpt, .vocabulary = 60, .block = 16, .width = 32, .layers = 2, .heads = 4)
MAKE(llama, .vocabulary = 60, .block = 16, .width = 32, .layers = 2, .heads = 4, .kv_heads = 2,
     .window = 5)
MAKE(vit, .classes = 7, .image = 32, .patch = 8, .width = 32, .layers = 2, .heads = 4)
MAKE(seq2seq, .vocabulary = 30, .width = 12, .hidden = 16, .bidirectional = 1)
MAKE(gcn, .in_channels = 6, .classes = 3)
MAKE(gat, .in_channels = 6, .classes = 3, .heads = 2)
MAKE(meshgraphnet, .node_in = 6, .edge_in = 2, .out = 3, .hidden = 16, .steps = 2)
MAKE(fno, .spatial = 1, .width = 8, .modes = {4}, .hidden = 16)
MAKE(unet, .spatial = 1, .width = 4, .depth = 2)
MAKE(resnet, .depth = 18, .width = 8, .classes = 5)
MAKE(mobilenet_v2, .width = 0.25, .classes = 5)

static ctn_status make_zoo(ctn_module **m, ctn_context *ctx, const char *name)
{
    return ctn_zoo_new(m, ctx, name, NULL);
}

static ctn_status make_lstm(ctn_module **m, ctn_context *ctx, const char *name)
{
    (void)name;
    return ctn_lstm_new(m, ctx, 6, 5,
                        CTN_OPT(ctn_rnn_module_opt, .layers = 2, .bidirectional = 1,
                                .batch_first = 1));
}

static ctn_status make_gru(ctn_module **m, ctn_context *ctx, const char *name)
{
    (void)name;
    return ctn_gru_new(m, ctx, 6, 5, CTN_OPT(ctn_rnn_module_opt, .batch_first = 1));
}

static ctn_status make_rnn(ctn_module **m, ctn_context *ctx, const char *name)
{
    (void)name;
    return ctn_rnn_new(m, ctx, 6, 5,
                       CTN_OPT(ctn_rnn_module_opt, .relu = 1, .no_bias = 1, .batch_first = 1));
}

static ctn_tensor *frequencies(const char *at, ctn_tensor *x)
{
    return ctn_rfft_at(at, x, 2, (const int64_t[]){1, 2}, CTN_FFT_ORTHO);
}

static ctn_tensor *values_again(const char *at, ctn_tensor *x)
{
    x = ctn_rfft_at(at, x, 1, (const int64_t[]){2}, CTN_FFT_BACKWARD);
    return ctn_irfft_at(at, x, 1, (const int64_t[]){2}, 6, CTN_FFT_BACKWARD);
}

static ctn_status make_irfft(ctn_module **m, ctn_context *ctx, const char *name)
{
    ctn_module *part[2] = {NULL};
    (void)name;
    CTN_TRY(ctn_linear_new(&part[0], ctx, 6, 6, NULL));
    CTN_TRY(ctn_activation_new(&part[1], ctx, values_again));
    return ctn_sequential_new(m, ctx, 2, part);
}

static ctn_status make_rfft(ctn_module **m, ctn_context *ctx, const char *name)
{
    ctn_module *part[2] = {NULL};
    (void)name;
    CTN_TRY(ctn_linear_new(&part[0], ctx, 6, 6, NULL));
    CTN_TRY(ctn_activation_new(&part[1], ctx, frequencies));
    return ctn_sequential_new(m, ctx, 2, part);
}

static ctn_tensor *shifted(const char *at, ctn_tensor *x)
{
    return ctn_roll_at(at, x, -1, 2);
}

static ctn_status make_roll(ctn_module **m, ctn_context *ctx, const char *name)
{
    ctn_module *part[2] = {NULL};
    (void)name;
    CTN_TRY(ctn_linear_new(&part[0], ctx, 6, 6, NULL));
    CTN_TRY(ctn_activation_new(&part[1], ctx, shifted));
    return ctn_sequential_new(m, ctx, 2, part);
}

/* Reflects two values, with more padding than values. */
static ctn_tensor *reflected(const char *at, ctn_tensor *x)
{
    return ctn_pad_by_at(at, x, CTN_PAD_REFLECT, (const int64_t[]){0, 3}, (const int64_t[]){0, 1});
}

static ctn_status make_reflect(ctn_module **m, ctn_context *ctx, const char *name)
{
    ctn_module *part[2] = {NULL};
    (void)name;
    CTN_TRY(ctn_linear_new(&part[0], ctx, 2, 2, NULL));
    CTN_TRY(ctn_activation_new(&part[1], ctx, reflected));
    return ctn_sequential_new(m, ctx, 2, part);
}

/* Sizes of the first dimension: samples; in graphs, nodes and edges. Of sequences, the length may
 * be open as well. */
typedef enum { SAMPLES, SEQUENCES, NODES, EDGES } first;
typedef struct {
    ctn_field field;
    int64_t below; /* of integers */
    first of;
} input;
typedef struct {
    const char *name;
    make_fn *make;
    bool large; /* for dev/onnx-zoo only */
    int n;
    input in[3];
} net;

#define IMAGE(c, s) {{CTN_F32, 3, {c, s, s}, 0}, 0, SAMPLES}
#define TOKENS(t, v) {{CTN_I64, 1, {t}, 0}, v, SAMPLES}
#define ANY_TOKENS(t, v) {{CTN_I64, 1, {t}, 0}, v, SEQUENCES}
#define LENGTHS(t) {{CTN_I64, 0, {0}, 0}, t, SAMPLES}
#define VALUES(a, b) {{CTN_F32, 2, {a, b}, 0}, 0, SAMPLES}
#define GRAPH_IN                       \
    {{CTN_F32, 1, {6}, 0}, 0, NODES},  \
    {                                  \
        {CTN_I64, 1, {2}, 0}, 4, EDGES \
    }
static const net nets[] = {
    {"mlp", make_zoo, false, 1, {{{CTN_F32, 1, {784}, 0}, 0, SAMPLES}}},
    {"lenet5", make_zoo, false, 1, {IMAGE(1, 28)}},
    {"resnet20_cifar", make_zoo, false, 1, {IMAGE(3, 32)}},
    {"resnet32_cifar", make_zoo, true, 1, {IMAGE(3, 32)}},
    {"resnet44_cifar", make_zoo, true, 1, {IMAGE(3, 32)}},
    {"resnet56_cifar", make_zoo, true, 1, {IMAGE(3, 32)}},
    {"resnet18", make_zoo, true, 1, {IMAGE(3, 64)}},
    {"resnet34", make_zoo, true, 1, {IMAGE(3, 64)}},
    {"resnet50", make_zoo, true, 1, {IMAGE(3, 64)}},
    {"resnet101", make_zoo, true, 1, {IMAGE(3, 64)}},
    {"resnet152", make_zoo, true, 1, {IMAGE(3, 64)}},
    {"mobilenet_v2", make_zoo, true, 1, {IMAGE(3, 64)}},
    {"vgg11", make_zoo, true, 1, {IMAGE(3, 64)}},
    {"vgg13", make_zoo, true, 1, {IMAGE(3, 64)}},
    {"vgg16", make_zoo, true, 1, {IMAGE(3, 64)}},
    {"vgg19", make_zoo, true, 1, {IMAGE(3, 64)}},
    {"unet", make_zoo, true, 1, {IMAGE(1, 32)}},
    {"fno", make_zoo, false, 1, {IMAGE(1, 32)}},
    {"vit", make_zoo, true, 1, {IMAGE(3, 224)}},
    {"gpt", make_zoo, false, 1, {TOKENS(24, 256)}},
    {"gpt2", make_zoo, true, 1, {TOKENS(16, 256)}},
    {"bert", make_zoo, true, 1, {TOKENS(16, 256)}},
    {"resnet_small", make_resnet, false, 1, {IMAGE(3, 33)}},
    {"mobilenet_small", make_mobilenet_v2, false, 1, {IMAGE(3, 33)}},
    {"unet_small", make_unet, false, 1, {VALUES(1, 16)}},
    {"fno_small", make_fno, false, 1, {VALUES(1, 16)}},
    {"vit_small", make_vit, false, 1, {IMAGE(3, 32)}},
    {"gpt_small", make_gpt, false, 1, {TOKENS(12, 60)}},
    {"llama_small", make_llama, false, 1, {TOKENS(12, 60)}},
    {"bert_small", make_bert, false, 2, {TOKENS(12, 60), LENGTHS(12)}},
    {"seq2seq", make_seq2seq, false, 3, {TOKENS(9, 30), TOKENS(7, 30), LENGTHS(9)}},
    {"gpt_any_length", make_gpt, false, 1, {ANY_TOKENS(13, 60)}},
    {"llama_any_length", make_llama, false, 1, {ANY_TOKENS(13, 60)}},
    {"bert_any_length", make_bert, false, 2, {ANY_TOKENS(13, 60), LENGTHS(4)}},
    {"lstm", make_lstm, false, 1, {VALUES(8, 6)}},
    {"gru", make_gru, false, 1, {VALUES(8, 6)}},
    {"rnn", make_rnn, false, 1, {VALUES(8, 6)}},
    {"rfft", make_rfft, false, 1, {VALUES(5, 6)}},
    {"roll", make_roll, false, 1, {VALUES(5, 6)}},
    {"reflect", make_reflect, false, 1, {{{CTN_F32, 1, {2}, 0}, 0, SAMPLES}}},
    {"irfft", make_irfft, false, 1, {VALUES(5, 6)}},
    {"gcn", make_gcn, false, 2, {GRAPH_IN}},
    {"gat", make_gat, false, 2, {GRAPH_IN}},
    {"meshgraphnet", make_meshgraphnet, false, 3, {GRAPH_IN, {{CTN_F32, 1, {2}, 0}, 0, EDGES}}},
};
enum { NETS = sizeof nets / sizeof *nets };

static bool is_graph(const net *t)
{
    return t->in[0].of == NODES;
}

/* 0: the length is fixed. */
static int64_t any_length(const net *t)
{
    return t->in[0].of == SEQUENCES ? t->in[0].field.shape[0] : 0;
}

static uint64_t drawn = 1;
static double draw(void)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (double)(drawn >> 40) / (double)(1 << 24);
}

/* Values that a training could have left: statistics and biases are not 0 and 1. */
static void vary(ctn_module *m)
{
    ctn_vars all;
    OK(ctn__module_vars(m, &all));
    for (int i = 0; i < all.n; i++) {
        ctn_var *v = all.var[i];
        if (v->d.dtype != CTN_F32 || v->d.ndim != 1) continue;
        float *p = v->data;
        for (int64_t k = 0; k < ctn__count(&v->d); k++) p[k] += (float)(0.3 * draw() - 0.1);
        v->version++;
    }
}

static void open_net(const net *t, ctn_context **ctx, ctn_module **m)
{
    drawn = 1;
    OK(ctn_context_new(ctx, CTN_OPT(ctn_context_opt, .seed = 1)));
    OK(t->make(m, *ctx, t->name));
    vary(*m);
    (void)ctn_context_set_training(*ctx, 0);
    (void)ctn_context_set_grad(*ctx, 0);
}

/* Graphs have two open sizes, nodes and edges, so they are recorded here. */
static void export_net(const net *t, ctn_module *m, const char *path,
                       const ctn_onnx_export_opt *opt)
{
    ctn_field in[3];
    ctn_onnx_export_opt o = opt ? *opt : (ctn_onnx_export_opt){0};
    o.struct_size = sizeof o;
    for (int i = 0; i < t->n; i++) in[i] = t->in[i].field;
    if (!is_graph(t)) {
        o.any_length = any_length(t);
        OK(ctn_onnx_export_module(m, path, t->n, in, &o));
        return;
    }
    static const double zero;
    static const int64_t nothing[CTN_MAX_DIMS];
    o.any_batch = 1009;
    o.any_length = 1013;
    o.module = m;
    OK(ctn_scope_begin(m->ctx));
    ctn_tensors x = {.n = t->n};
    for (int i = 0; i < t->n; i++)
        x.t[i] = ctn_input_strided(m->ctx, &zero, in[i].dtype, 2,
                                   ((const int64_t[]){t->in[i].of == NODES ? 1009 : 1013,
                                                      in[i].shape[0]}),
                                   nothing);
    ctn_tensors y = ctn_call_multi_at(CTN_HERE, m, x);
    if (y.n == 0) fail_msg("%s: %s", t->name, ctn_error_message());
    OK(ctn_onnx_export(path, x, y, &o));
    OK(ctn_scope_end(m->ctx));
}

/* ---- for onnxruntime ------------------------------------------------------------------------- */

static void *make_input(const input *in, int64_t rows, size_t *bytes)
{
    int64_t count = rows;
    for (int i = 0; i < in->field.ndim; i++) count *= in->field.shape[i];
    *bytes = (size_t)count * ctn_dtype_size(in->field.dtype);
    void *p = malloc(*bytes + 1);
    assert_non_null(p);
    for (int64_t i = 0; i < count; i++) {
        double v = 2 * draw() - 1;
        if (in->field.dtype != CTN_F32) v = floor(draw() * (double)in->below);
        if (in->field.dtype != CTN_F32 && in->field.ndim == 0) v++; /* a length */
        ctn__elem_set(p, in->field.dtype, i, v);
    }
    return p;
}

static void save_result(const char *folder, const net *t, int64_t batch, int i, ctn_tensor *y)
{
    char path[512];
    const size_t bytes = (size_t)ctn_count(y) * ctn_dtype_size(ctn_dtype_of(y));
    void *p = malloc(bytes + 1);
    assert_non_null(p);
    OK(ctn_read(y, p, bytes));
    ctn_field f = {.dtype = ctn_dtype_of(y), .ndim = ctn_ndim(y) - 1};
    for (int k = 0; k < f.ndim; k++) f.shape[k] = ctn_dim(y, k + 1);
    snprintf(path, sizeof path, "%s/%s.b%lld.out%d.npy", folder, t->name, (long long)batch, i);
    OK(ctn_npy_save(path, ctn_dim(y, 0), &f, p));
    free(p);
}

static void save_case(const char *folder, const net *t, ctn_module *m, int64_t batch)
{
    char path[512];
    void *data[3];
    ctn_tensors x = {.n = t->n};
    OK(ctn_scope_begin(m->ctx));
    for (int i = 0; i < t->n; i++) {
        input other = t->in[i], *in = &other;
        if (in->of == SEQUENCES) in->field.shape[0] = 3 + 2 * batch;
        const int64_t rows = in->of <= SEQUENCES ? batch
                             : in->of == NODES   ? 4 + batch
                                                 : 6 + 2 * batch;
        int64_t dims[CTN_MAX_DIMS] = {rows};
        size_t bytes;
        data[i] = make_input(in, rows, &bytes);
        for (int k = 0; k < in->field.ndim; k++) dims[1 + k] = in->field.shape[k];
        x.t[i] = ctn_input(m->ctx, data[i], in->field.dtype, in->field.ndim + 1, dims);
        snprintf(path, sizeof path, "%s/%s.b%lld.in%d.npy", folder, t->name, (long long)batch, i);
        OK(ctn_npy_save(path, rows, &in->field, data[i]));
    }
    ctn_tensors y = ctn_call_multi_at(CTN_HERE, m, x);
    if (y.n == 0) fail_msg("%s: %s", t->name, ctn_error_message());
    for (int i = 0; i < y.n; i++) save_result(folder, t, batch, i, y.t[i]);
    OK(ctn_scope_end(m->ctx));
    for (int i = 0; i < t->n; i++) free(data[i]);
}

static int write_case(const char *folder, const char *name, const ctn_onnx_export_opt *opt)
{
    for (int i = 0; i < NETS; i++) {
        const net *t = &nets[i];
        ctn_context *ctx = NULL;
        ctn_module *m = NULL;
        char path[512];
        if (strcmp(t->name, name) != 0) continue;
        open_net(t, &ctx, &m);
        snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
        export_net(t, m, path, opt);
        save_case(folder, t, m, 1);
        save_case(folder, t, m, 3);
        ctn_module_free(m);
        ctn_context_free(ctx);
        return 0;
    }
    fprintf(stderr, "no network '%s'\n", name);
    return 1;
}

/* ---- the files ------------------------------------------------------------------------------- */

static Onnx__ModelProto *read_model(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    uint8_t *bytes = malloc((size_t)n);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)n, f), n);
    fclose(f);
    Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, (size_t)n, bytes);
    free(bytes);
    assert_non_null(m);
    return m;
}

typedef struct {
    size_t n;
    const char **name;
} known;

static bool knows(const known *k, const char *name)
{
    for (size_t i = 0; i < k->n; i++)
        if (strcmp(k->name[i], name) == 0) return true;
    return false;
}

/* Every value is made once, and before it is read. */
static void check_order(const Onnx__GraphProto *g)
{
    size_t most = g->n_input + g->n_initializer;
    for (size_t i = 0; i < g->n_node; i++) most += g->node[i]->n_output;
    known k = {.name = calloc(most, sizeof(char *))};
    assert_non_null(k.name);
    for (size_t i = 0; i < g->n_input; i++) k.name[k.n++] = g->input[i]->name;
    for (size_t i = 0; i < g->n_initializer; i++) {
        assert_false(knows(&k, g->initializer[i]->name));
        k.name[k.n++] = g->initializer[i]->name;
    }
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *n = g->node[i];
        for (size_t j = 0; j < n->n_input; j++)
            if (n->input[j][0] && !knows(&k, n->input[j]))
                fail_msg("%s reads %s, which nothing has made", n->name, n->input[j]);
        for (size_t j = 0; j < n->n_output; j++) {
            assert_false(knows(&k, n->output[j]));
            k.name[k.n++] = n->output[j];
        }
    }
    for (size_t i = 0; i < g->n_output; i++) assert_true(knows(&k, g->output[i]->name));
    free(k.name);
}

/* Initializers are variables of the network, with their names, shapes and values. */
static void check_weights(const Onnx__GraphProto *g, ctn_module *m)
{
    assert_true(g->n_initializer > 0);
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__TensorProto *t = g->initializer[i];
        const ctn_var *v = ctn_module_find(m, t->name);
        if (!v) fail_msg("%s", ctn_error_message());
        assert_int_equal(t->n_dims, v->d.ndim);
        assert_memory_equal(t->dims, v->d.dim, t->n_dims * sizeof *t->dims);
        assert_int_equal(t->raw_data.len, ctn__bytes(&v->d));
        assert_memory_equal(t->raw_data.data, v->data, t->raw_data.len);
    }
}

static const Onnx__TensorShapeProto *shape_of(const Onnx__ValueInfoProto *v)
{
    assert_int_equal(v->type->value_case, ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE);
    return v->type->tensor_type->shape;
}

static void test_zoo(void **state)
{
    (void)state;
    for (int i = 0; i < NETS; i++) {
        const net *t = &nets[i];
        ctn_context *ctx = NULL;
        ctn_module *m = NULL;
        if (t->large) continue;
        open_net(t, &ctx, &m);
        export_net(t, m, "net.onnx", NULL);
        Onnx__ModelProto *p = read_model("net.onnx");
        const Onnx__GraphProto *g = p->graph;
        assert_int_equal(p->opset_import[0]->version, 18);
        assert_int_equal(g->n_input, t->n);
        assert_string_equal(g->input[0]->name, "input");
        assert_string_equal(g->output[0]->name, "output");
        const Onnx__TensorShapeProto *s = shape_of(g->input[0]);
        assert_string_equal(s->dim[0]->dim_param, "batch");
        if (any_length(t)) assert_string_equal(s->dim[1]->dim_param, "length");
        for (int k = 0; k < t->in[0].field.ndim && !any_length(t); k++)
            assert_int_equal(s->dim[1 + k]->dim_value, t->in[0].field.shape[k]);
        check_order(g);
        check_weights(g, m);
        onnx__model_proto__free_unpacked(p, NULL);
        ctn_module_free(m);
        ctn_context_free(ctx);
    }
    unlink("net.onnx");
}

/* ---- the round trip -------------------------------------------------------------------------- */

/* Runs both networks on the same input; returns the largest difference relative to the largest
 * value. */
static double compare_nets(const net *t, ctn_module *a, ctn_module *b, int64_t batch)
{
    void *data[3];
    double worst = 0, most = 1e-30;
    ctn_tensors x = {.n = t->n};
    ctn_tensor *y[CTN_MAX_OUT] = {NULL};
    OK(ctn_scope_begin(a->ctx));
    for (int i = 0; i < t->n; i++) {
        const input *in = &t->in[i];
        const int64_t rows = in->of <= SEQUENCES ? batch : in->of == NODES ? 4 + batch : 6 + batch;
        int64_t dims[CTN_MAX_DIMS] = {rows};
        size_t bytes;
        data[i] = make_input(in, rows, &bytes);
        for (int k = 0; k < in->field.ndim; k++) dims[1 + k] = in->field.shape[k];
        x.t[i] = ctn_input(a->ctx, data[i], in->field.dtype, in->field.ndim + 1, dims);
    }
    const ctn_tensors want = ctn_call_multi_at(CTN_HERE, a, x);
    assert_true(want.n > 0);
    assert_int_equal(ctn_onnx_outputs(b), want.n);
    OK(ctn_onnx_run(b, x.n, x.t, want.n, y));
    for (int i = 0; i < want.n; i++) {
        const int64_t n = ctn_count(want.t[i]);
        assert_int_equal(ctn_count(y[i]), n);
        const void *p = ctn_data(want.t[i]), *q = ctn_data(y[i]);
        assert_true(p != NULL && q != NULL);
        for (int64_t k = 0; k < n; k++) {
            const double u = ctn__elem_get(p, ctn_dtype_of(want.t[i]), k);
            const double v = ctn__elem_get(q, ctn_dtype_of(y[i]), k);
            if (!(fabs(u - v) <= worst)) worst = fabs(u - v);
            if (fabs(u) > most) most = fabs(u);
        }
    }
    OK(ctn_scope_end(a->ctx));
    for (int i = 0; i < t->n; i++) free(data[i]);
    return worst / most;
}

/* Exported and imported, a network gives the same results and has the same names and values.
 * Exported again, it has the same weights. */
static void test_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < NETS; i++) {
        const net *t = &nets[i];
        ctn_context *ctx = NULL;
        ctn_module *m = NULL, *back = NULL;
        if (t->large) continue;
        open_net(t, &ctx, &m);
        export_net(t, m, "net.onnx", NULL);
        OK(ctn_onnx_open(&back, ctx, "net.onnx", NULL));
        Onnx__ModelProto *p = read_model("net.onnx");
        for (size_t k = 0; k < p->graph->n_initializer; k++) {
            const Onnx__TensorProto *w = p->graph->initializer[k];
            const ctn_var *v = w->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT
                                   ? ctn_module_find(back, w->name)
                                   : NULL;
            if (w->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT) continue;
            if (!v) fail_msg("%s: %s", t->name, ctn_error_message());
            assert_memory_equal(w->raw_data.data, v->data, w->raw_data.len);
        }
        onnx__model_proto__free_unpacked(p, NULL);
        for (int64_t batch = 1; batch <= 3; batch += 2) {
            const double off = compare_nets(t, m, back, batch);
            if (!(off <= 1e-5)) fail_msg("%s, batch %d: differs by %g", t->name, (int)batch, off);
        }
        ctn_module_free(back);
        ctn_module_free(m);
        ctn_context_free(ctx);
    }
    unlink("net.onnx");
}

static int count_type(const Onnx__GraphProto *g, const char *type)
{
    int n = 0;
    for (size_t i = 0; i < g->n_node; i++) n += strcmp(g->node[i]->op_type, type) == 0;
    return n;
}

static const net *find_net(const char *name)
{
    for (int i = 0; i < NETS; i++)
        if (strcmp(nets[i].name, name) == 0) return &nets[i];
    return NULL;
}

/* Batch normalisation is one operator, or none of its own when it is folded. */
static void test_fold(void **state)
{
    const net *t = find_net("resnet_small");
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    (void)state;
    open_net(t, &ctx, &m);
    export_net(t, m, "plain.onnx", NULL);
    export_net(t, m, "fold.onnx", CTN_OPT(ctn_onnx_export_opt, .fold_batch_norm = 1));
    Onnx__ModelProto *p = read_model("plain.onnx"), *f = read_model("fold.onnx");
    assert_int_equal(count_type(p->graph, "BatchNormalization"), 20);
    assert_int_equal(count_type(p->graph, "Sqrt"), 0);
    assert_int_equal(count_type(f->graph, "BatchNormalization"), 0);
    assert_int_equal(count_type(f->graph, "Conv"), count_type(p->graph, "Conv"));
    assert_int_equal(f->graph->n_initializer, 2 * 20 + 2);
    assert_string_equal(f->graph->initializer[0]->name, "conv1.weight");
    assert_string_equal(f->graph->initializer[1]->name, "conv1.bias");
    check_order(f->graph);
    onnx__model_proto__free_unpacked(p, NULL);
    onnx__model_proto__free_unpacked(f, NULL);
    ctn_module_free(m);
    ctn_context_free(ctx);
    unlink("plain.onnx");
    unlink("fold.onnx");
}

/* A convolution that is called twice keeps its weight, which cannot be folded into two. */
static ctn_tensor *twice(void *self, ctn_module *m, ctn_tensor *x)
{
    ctn_module *conv = ctn_module_child(m, 0), *norm = ctn_module_child(m, 1);
    (void)self;
    return ctn_call(norm, ctn_call(conv, ctn_call(norm, ctn_call(conv, x))));
}

static void test_fold_shared(void **state)
{
    ctn_context *ctx = NULL;
    ctn_module *m = NULL, *conv = NULL, *norm = NULL;
    const ctn_field f = {.dtype = CTN_F32, .ndim = 2, .shape = {2, 5}};
    (void)state;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_module_new(&m, ctx, twice, NULL, NULL));
    OK(ctn_conv_new(&conv, ctx, 2, 2, CTN_SHAPE(1), NULL));
    OK(ctn_module_add(m, "conv", conv));
    OK(ctn_batch_norm_new(&norm, ctx, 2, NULL));
    OK(ctn_module_add(m, "norm", norm));
    OK(ctn_onnx_export_module(m, "twice.onnx", 1, &f,
                              CTN_OPT(ctn_onnx_export_opt, .fold_batch_norm = 1)));
    Onnx__ModelProto *p = read_model("twice.onnx");
    assert_int_equal(count_type(p->graph, "BatchNormalization"), 2);
    check_order(p->graph);
    check_weights(p->graph, m);
    onnx__model_proto__free_unpacked(p, NULL);
    ctn_module_free(m);
    ctn_context_free(ctx);
    unlink("twice.onnx");
}

/* The version of the format that belongs to each version of the operators. */
static void test_versions(void **state)
{
    static const int64_t ir[] = {8, 9, 9, 10};
    const net *t = find_net("mlp");
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    (void)state;
    open_net(t, &ctx, &m);
    for (int opset = 18; opset <= 21; opset++) {
        export_net(t, m, "out.onnx", CTN_OPT(ctn_onnx_export_opt, .opset = opset));
        Onnx__ModelProto *p = read_model("out.onnx");
        assert_int_equal(p->opset_import[0]->version, opset);
        assert_int_equal(p->ir_version, ir[opset - 18]);
        onnx__model_proto__free_unpacked(p, NULL);
    }
    ctn_module_free(m);
    ctn_context_free(ctx);
    unlink("out.onnx");
}

/* Values in a second file, a fixed batch, other names. */
static void test_options(void **state)
{
    static const char *const keys[] = {"location", "offset", "length"};
    const net *t = find_net("mlp");
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    (void)state;
    open_net(t, &ctx, &m);
    const char *const x[] = {"pixels", NULL}, *const y[] = {"classes", NULL};
    export_net(t, m, "out.onnx",
               CTN_OPT(ctn_onnx_export_opt, .external = 1, .batch = 4, .opset = 21, .in_names = x,
                       .out_names = y));
    Onnx__ModelProto *p = read_model("out.onnx");
    const Onnx__GraphProto *g = p->graph;
    assert_int_equal(p->opset_import[0]->version, 21);
    assert_string_equal(g->input[0]->name, "pixels");
    assert_string_equal(g->output[0]->name, "classes");
    assert_int_equal(shape_of(g->input[0])->dim[0]->dim_value, 4);
    FILE *f = fopen("out.onnx.data", "rb");
    assert_non_null(f);
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__TensorProto *w = g->initializer[i];
        const ctn_var *v = ctn_module_find(m, w->name);
        for (int k = 0; k < 3; k++) assert_string_equal(w->external_data[k]->key, keys[k]);
        assert_string_equal(w->external_data[0]->value, "out.onnx.data");
        const size_t bytes = (size_t)atoll(w->external_data[2]->value);
        assert_int_equal(bytes, ctn__bytes(&v->d));
        char *values = malloc(bytes);
        assert_non_null(values);
        assert_int_equal(fseek(f, atol(w->external_data[1]->value), SEEK_SET), 0);
        assert_int_equal(fread(values, 1, bytes, f), bytes);
        assert_memory_equal(values, v->data, bytes);
        free(values);
    }
    fclose(f);
    onnx__model_proto__free_unpacked(p, NULL);
    ctn_module_free(m);
    ctn_context_free(ctx);
    unlink("out.onnx");
    unlink("out.onnx.data");
}

/* All ops without a form in ONNX are listed; sizes that cannot be told are refused. */
static void test_refused(void **state)
{
    ctn_context *ctx = NULL;
    static const float data[1009 * 3];
    (void)state;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, data, CTN_F32, CTN_SHAPE(1009, 3));
    ctn_tensor *y = ctn_add(ctn_lgamma(x), ctn_digamma(ctn_lgamma(ctn_relu(x))));
    assert_fails(ctn_onnx_export("bad.onnx", CTN_TENSORS(x), CTN_TENSORS(y), NULL),
                 CTN_EUNSUPPORTED, "lgamma (");
    assert_fails(ctn_onnx_export("bad.onnx", CTN_TENSORS(x), CTN_TENSORS(y), NULL),
                 CTN_EUNSUPPORTED, ", digamma (");
    assert_fails(ctn_onnx_export("bad.onnx", CTN_TENSORS(x), CTN_TENSORS(ctn_dropout(x, 0.5)),
                                 NULL),
                 CTN_EUNSUPPORTED, "training mode");
    const ctn_onnx_export_opt *any = CTN_OPT(ctn_onnx_export_opt, .any_batch = 1009);
    y = ctn_pad_by(x, CTN_PAD_WRAP, ((const int64_t[]){1, 0}), ((const int64_t[]){0, 0}));
    assert_fails(ctn_onnx_export("bad.onnx", CTN_TENSORS(x), CTN_TENSORS(y), any), CTN_EUNSUPPORTED,
                 "the size of axis 0 is open");
    y = ctn_relu(x);
    assert_fails(ctn_onnx_export("bad.onnx", CTN_TENSORS(x), CTN_TENSORS(y),
                                 CTN_OPT(ctn_onnx_export_opt, .any_batch = 1013)),
                 CTN_EARG, "no input has that size");
    assert_fails(ctn_onnx_export("bad.onnx", CTN_TENSORS(x), CTN_TENSORS(y),
                                 CTN_OPT(ctn_onnx_export_opt, .any_batch = 1008)),
                 CTN_EARG, "a prime number");
    ctn_var *w = NULL;
    OK(ctn_var_new(&w, ctx, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(3)));
    assert_fails(ctn_onnx_export("bad.onnx", CTN_TENSORS(x), CTN_TENSORS(ctn_add(x, ctn_use(w))),
                                 CTN_OPT(ctn_onnx_export_opt, .any_batch = 1009, .any_length = 3)),
                 CTN_EARG, "w is (3)");
    assert_fails(ctn_onnx_export("bad.onnx", CTN_TENSORS(x), CTN_TENSORS(y),
                                 CTN_OPT(ctn_onnx_export_opt, .opset = 9)),
                 CTN_EARG, "expected 18 to 21");
    assert_fails(ctn_onnx_export("no/such/folder.onnx", CTN_TENSORS(x), CTN_TENSORS(y), NULL),
                 CTN_EIO, "folder.onnx");
    assert_int_not_equal(access("bad.onnx", F_OK), 0);
    OK(ctn_scope_end(ctx));
    ctn_var_free(w);
    ctn_context_free(ctx);
}

/* A mean over the batch, written as a sum times a number. */
static ctn_tensor *by_batch(void *self, ctn_module *m, ctn_tensor *x)
{
    const int64_t axis = 0;
    (void)self, (void)m;
    return ctn_scale(ctn_sum(x, 1, &axis, 1), 1 / (double)ctn_dim(x, 0));
}

static void test_depends_on_batch(void **state)
{
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    const ctn_field f = {.dtype = CTN_F32, .ndim = 1, .shape = {3}};
    (void)state;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .mode = CTN_MODE_EAGER)));
    OK(ctn_module_new(&m, ctx, by_batch, NULL, NULL));
    assert_fails(ctn_onnx_export_module(m, "bad.onnx", 1, &f, NULL), CTN_EUNSUPPORTED,
                 "another batch size");
    assert_int_not_equal(access("bad.onnx", F_OK), 0);
    OK(ctn_onnx_export_module(m, "good.onnx", 1, &f, CTN_OPT(ctn_onnx_export_opt, .batch = 4)));
    assert_int_equal(ctn_context_training(ctx), 1);
    unlink("good.onnx");
    ctn_module_free(m);
    ctn_context_free(ctx);
}

/* Outputs that are inputs or the same value twice are copies. */
static void test_outputs(void **state)
{
    ctn_context *ctx = NULL;
    static const float data[6];
    (void)state;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, data, CTN_F32, CTN_SHAPE(2, 3)), *y = ctn_exp(x);
    OK(ctn_onnx_export("same.onnx", CTN_TENSORS(x), CTN_TENSORS(y, y, x), NULL));
    OK(ctn_scope_end(ctx));
    Onnx__ModelProto *p = read_model("same.onnx");
    check_order(p->graph);
    assert_int_equal(count_type(p->graph, "Identity"), 2);
    assert_string_equal(p->graph->output[2]->name, "output3");
    onnx__model_proto__free_unpacked(p, NULL);
    ctn_context_free(ctx);
    unlink("same.onnx");
}

/* As many inputs and outputs as there can be. */
static void test_most_tensors(void **state)
{
    ctn_context *ctx = NULL;
    static const float data[6];
    ctn_tensors x = {.n = CTN_MAX_TENSORS}, y = x;
    char name[24];
    (void)state;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_scope_begin(ctx));
    for (int i = 0; i < CTN_MAX_TENSORS; i++) {
        x.t[i] = ctn_input(ctx, data, CTN_F32, CTN_SHAPE(2, 3));
        y.t[i] = ctn_exp(x.t[i]);
    }
    OK(ctn_onnx_export("most.onnx", x, y, NULL));
    OK(ctn_scope_end(ctx));
    Onnx__ModelProto *p = read_model("most.onnx");
    check_order(p->graph);
    assert_int_equal(p->graph->n_input, CTN_MAX_TENSORS);
    assert_int_equal(p->graph->n_output, CTN_MAX_TENSORS);
    for (int i = 1; i < CTN_MAX_TENSORS; i++) {
        snprintf(name, sizeof name, "output%d", i + 1);
        assert_string_equal(p->graph->output[i]->name, name);
    }
    onnx__model_proto__free_unpacked(p, NULL);
    ctn_context_free(ctx);
    unlink("most.onnx");
}

static failing_once memory;

static ctn_status export_once(const net *t)
{
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    ctn_field in[3];
    for (int i = 0; i < t->n; i++) in[i] = t->in[i].field;
    CTN_TRY(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    ctn_status st = t->make(&m, ctx, t->name);
    if (st == CTN_OK)
        st = ctn_onnx_export_module(m, "once.onnx", t->n, in,
                                    CTN_OPT(ctn_onnx_export_opt, .fold_batch_norm = 1,
                                            .external = 1));
    ctn_module_free(m);
    ctn_context_free(ctx);
    return st;
}

/* Wherever memory runs out, the export fails, frees everything and leaves no model behind. */
static void test_failing_allocator(void **state)
{
    static const char *const names[] = {"unet_small", "gru", "gpt_small"};
    (void)state;
    OK(ctn_set_allocator(&(ctn_allocator){failing_once_alloc, failing_once_release, &memory}));
    for (int i = 0; i < 3; i++) {
        ctn_status st = CTN_ENOMEM;
        for (memory.fail_at = 1; st == CTN_ENOMEM; memory.fail_at++) {
            memory.calls = 0;
            st = export_once(find_net(names[i]));
            if (memory.live != 0)
                fail_msg("%s: %ld left after failure %ld", names[i], memory.live, memory.fail_at);
            if (st == CTN_ENOMEM) assert_int_not_equal(access("once.onnx", F_OK), 0);
            else OK(st);
            ctn_error_clear();
        }
        assert_int_equal(unlink("once.onnx"), 0);
        assert_int_equal(unlink("once.onnx.data"), 0);
    }
    OK(ctn_set_allocator(NULL));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_allocator), /* must run before anything else allocates */
        cmocka_unit_test(test_zoo),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_fold_shared),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_most_tensors),
        cmocka_unit_test(test_depends_on_batch),
    };
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        for (int i = 0; i < NETS; i++) printf("%s\n", nets[i].name);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--ops") == 0) {
#define CTN__OP(name) printf("%s %s\n", #name, ctn__emit_find(&ctn__op_##name) ? "yes" : "no");
#include "ops/ops.def"
#undef CTN__OP
        return 0;
    }
    if (argc > 3 && strcmp(argv[1], "--write") == 0) {
        ctn_onnx_export_opt o = {.struct_size = sizeof o};
        for (int i = 4; i < argc; i++) {
            o.fold_batch_norm |= strcmp(argv[i], "fold") == 0;
            o.external |= strcmp(argv[i], "external") == 0;
            if (atoi(argv[i]) > 0) o.opset = atoi(argv[i]);
        }
        return write_case(argv[2], argv[3], &o);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* built without protobuf-c */
}

#endif
