/* SPDX-License-Identifier: Apache-2.0
 *
 * Imported ops at edges that ONNX's own tests of single nodes leave out: attention with windows,
 * past keys and lengths against plain loops, windows of one element, empty lists of axes, and lists
 * of the wrong length.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "onnx/onnx.h"
#include "support/check.h"
#include "support/ok.h"

#ifdef CTN_HAVE_PROTOBUFC

#include "maker.h"

static void assert_close(const char *what, int64_t i, float found, double want)
{
    if (!(fabs((double)found - want) < 1e-5))
        fail_msg("%s: number %d is %g, expected %g", what, (int)i, (double)found, want);
}

/* Calls the model of k with x, an input or NULL, and reads its result of n floats. Drops k. */
static ctn_status call(maker *k, const float *x, int ndim, const int64_t *dims, float *y, int64_t n)
{
    ctn_context *ctx = context();
    ctn_module *m = NULL;
    ctn_tensor *t = NULL;
    pack(k);
    OK(open(&m, ctx, k, 0));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = x ? ctn_input(ctx, x, CTN_F32, ndim, dims) : NULL;
    const ctn_status st = ctn_onnx_run(m, x ? 1 : 0, &in, 1, &t);
    if (st == CTN_OK) {
        assert_int_equal(ctn_count(t), n);
        OK(ctn_read(t, y, (size_t)n * sizeof *y));
    }
    if (ctn_scope_end(ctx) < 0) fail_msg("%s", ctn_error_message());
    ctn_module_free(m);
    drop(k);
    ctn_context_free(ctx);
    return st;
}

/* ---- attention ------------------------------------------------------------------------------- */

enum { B = 2, H = 4, L = 3, NEW = 3, E = 2, LONGEST = NEW + 2 }; /* queries and new keys */

typedef struct {
    int past, kv_heads;
    bool causal;
    int left, right;   /* -1: not given */
    int64_t length[B]; /* of the keys; 0: not given */
    float limit;
} form;

static float q[B][H][L][E], keys[B][H][NEW][E], values[B][H][NEW][E];
static float past_keys[B][H][2][E], past_values[B][H][2][E];

/* The result for query i of head h of sample b. */
static void plain_attention(const form *f, int b, int h, int i, double *y)
{
    const int M = f->past + NEW, kv = h / (H / f->kv_heads);
    const int64_t length = f->length[b] > 0 ? f->length[b] : M;
    const int64_t at = i + (f->length[b] > 0 ? length - L : f->past);
    double sum = 0;
    y[0] = y[1] = 0;
    for (int j = 0; j < M; j++) {
        /* Arrays of fewer heads or past keys have the same memory with other strides. */
        const float *k = j < f->past
                             ? &past_keys[0][0][0][0] + ((b * f->kv_heads + kv) * f->past + j) * E
                             : &keys[0][0][0][0] + ((b * f->kv_heads + kv) * NEW + j - f->past) * E;
        const float *v =
            j < f->past ? &past_values[0][0][0][0] + ((b * f->kv_heads + kv) * f->past + j) * E
                        : &values[0][0][0][0] + ((b * f->kv_heads + kv) * NEW + j - f->past) * E;
        double s = 0;
        for (int e = 0; e < E; e++) s += (double)(q[b][h][i][e] * k[e]) / sqrt(E);
        if (f->limit > 0) s = (double)f->limit * tanh(s / (double)f->limit);
        if (j >= length || (f->causal && j > at) || (f->left >= 0 && at - j > f->left) ||
            (f->right >= 0 && j - at > f->right))
            continue;
        sum += exp(s);
        for (int e = 0; e < E; e++) y[e] += exp(s) * (double)v[e];
    }
    for (int e = 0; e < E && sum > 0; e++) y[e] /= sum;
}

static void check_attention(const form *f)
{
    char names[] = "q k v - pk pv y", fewer[] = "q k v - - - n y", short_names[] = "q k v y";
    char what[100];
    const int64_t kv = f->kv_heads;
    const bool lengths = f->length[0] > 0;
    float y[B][H][L][E];
    ctn_context *ctx = context();
    ctn_module *m = NULL;
    ctn_tensor *x[6], *t = NULL;
    int n = 0;
    snprintf(what, sizeof what, "past %d, %d heads, causal %d, window %d %d, length %d, limit %g",
             f->past, f->kv_heads, f->causal, f->left, f->right, (int)f->length[0],
             (double)f->limit);
    maker *k = make(24);
    Onnx__NodeProto *nd = node(k, "Attention", "a",
                               f->past   ? names
                               : lengths ? fewer
                                         : short_names);
    input(k, "q");
    input(k, "k");
    input(k, "v");
    if (f->past) input(k, "pk"), input(k, "pv");
    if (lengths) input(k, "n");
    output(k, "y");
    if (f->causal) int_attr(k, nd, "is_causal", 1);
    if (f->left >= 0) int_attr(k, nd, "left_window_size", f->left);
    if (f->right >= 0) int_attr(k, nd, "right_window_size", f->right);
    if (f->limit > 0) float_attr(k, nd, "softcap", f->limit);
    pack(k);
    OK(open(&m, ctx, k, 0));
    OK(ctn_scope_begin(ctx));
    x[n++] = ctn_input(ctx, q, CTN_F32, CTN_SHAPE(B, H, L, E));
    x[n++] = ctn_input(ctx, keys, CTN_F32, CTN_SHAPE(B, kv, NEW, E));
    x[n++] = ctn_input(ctx, values, CTN_F32, CTN_SHAPE(B, kv, NEW, E));
    if (f->past) {
        x[n++] = ctn_input(ctx, past_keys, CTN_F32, CTN_SHAPE(B, kv, f->past, E));
        x[n++] = ctn_input(ctx, past_values, CTN_F32, CTN_SHAPE(B, kv, f->past, E));
    }
    if (lengths) x[n++] = ctn_input(ctx, f->length, CTN_I64, CTN_SHAPE(B));
    if (ctn_onnx_run(m, n, x, 1, &t) < 0) fail_msg("%s: %s", what, ctn_error_message());
    OK(ctn_read(t, y, sizeof y));
    OK(ctn_scope_end(ctx));
    for (int i = 0; i < B * H * L; i++) {
        double want[E];
        plain_attention(f, i / L / H, i / L % H, i % L, want);
        for (int e = 0; e < E; e++)
            assert_close(what, i * E + e, (&y[0][0][0][0])[i * E + e], want[e]);
    }
    ctn_module_free(m);
    drop(k);
    ctn_context_free(ctx);
}

static void fill(float *x, int n, double step)
{
    for (int i = 0; i < n; i++) x[i] = (float)sin(step * i + step);
}

static void test_attention(void **state)
{
    (void)state;
    fill(&q[0][0][0][0], B * H * L * E, 0.7);
    fill(&keys[0][0][0][0], B * H * NEW * E, 0.9);
    fill(&values[0][0][0][0], B * H * NEW * E, 1.1);
    fill(&past_keys[0][0][0][0], B * H * 2 * E, 1.3);
    fill(&past_values[0][0][0][0], B * H * 2 * E, 1.7);
    for (int past = 0; past <= 2; past++) /* windows of no and one more key */
        for (int causal = 0; causal < 2; causal++)
            for (int window = 0; window < 9; window++)
                check_attention(&(form){.past = past,
                                        .kv_heads = window % 2 ? 2 : H,
                                        .causal = causal,
                                        .left = window / 3 - 1,
                                        .right = window % 3 - 1});
    for (int causal = 0; causal < 2; causal++) { /* keys of given lengths; limited scores */
        const form some = {.kv_heads = 1, .causal = causal, .left = -1, .right = -1};
        form f = some;
        f.length[0] = 3, f.length[1] = 2;
        check_attention(&f);
        f.left = 0;
        check_attention(&f);
        f = some;
        f.limit = 0.75f;
        check_attention(&f);
        f.past = 1;
        check_attention(&f);
    }
}

/* ---- windows of signals ---------------------------------------------------------------------- */

static void test_windows(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        double want[5]; /* of 5 elements, symmetric */
    } all[] = {{"HannWindow", {0, 0.5, 1, 0.5, 0}},
               {"HammingWindow", {4.0 / 46, 25.0 / 46, 1, 25.0 / 46, 4.0 / 46}},
               {"BlackmanWindow", {0, 0.34, 1, 0.34, 0}}};
    for (int i = 0; i < 3; i++) {
        for (int64_t n = 0; n <= 5; n += n == 1 ? 4 : 1) {
            for (int periodic = 0; periodic < 2; periodic++) {
                char names[] = "n y";
                int64_t size = periodic && n == 5 ? 4 : n; /* the same without the last element */
                float y[5];
                maker *k = make(17);
                integers(k, "n", 1, &size);
                k->tensor[0].n_dims = 0;
                output(k, "y");
                int_attr(k, node(k, all[i].op, "w", names), "periodic", periodic);
                OK(call(k, NULL, 0, NULL, y, size));
                for (int64_t j = 0; j < size; j++) assert_close(all[i].op, j, y[j], all[i].want[j]);
            }
        }
    }
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* x (1,2,2,2), normalised over the axes. Default: all but the channels. Empty list: all. */
static void test_mean_variance(void **state)
{
    (void)state;
    static const float x[8] = {1, 2, 3, 4, 10, 20, 30, 40};
    static const int counts[] = {-1, 0, 2, 3}; /* -1: no list */
    int64_t axes[3] = {2, 3, 1};
    for (int c = 0; c < 4; c++) {
        char names[] = "x y";
        float y[8];
        const int count = counts[c];
        const bool whole = count == 0 || count == 3;
        maker *k = make(13);
        input(k, "x");
        output(k, "y");
        Onnx__NodeProto *n = node(k, "MeanVarianceNormalization", "mvn", names);
        if (count >= 0) ints_attr(k, n, "axes", count, axes);
        OK(call(k, x, CTN_SHAPE(1, 2, 2, 2), y, 8));
        for (int i = 0; i < 8; i++) {
            const int first = whole ? 0 : i / 4 * 4, n_of = whole ? 8 : 4;
            double mean = 0, var = 0;
            for (int j = 0; j < n_of; j++) mean += (double)x[first + j] / n_of;
            for (int j = 0; j < n_of; j++) var += pow((double)x[first + j] - mean, 2) / n_of;
            assert_close("mean_variance", i, y[i], ((double)x[i] - mean) / sqrt(var));
        }
    }
}

/* x (2,3), cropped and padded to the sizes. */
static void test_center_crop_pad(void **state)
{
    (void)state;
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    static const struct {
        int sizes, axes; /* -1: not given */
        int64_t size[3], axis[2];
        const char *refused;
        int64_t n; /* elements of the result */
        float want[8];
    } all[] = {
        {2, -1, {1, 2}, {0}, NULL, 2, {1, 2}},
        {2, -1, {2, 4}, {0}, NULL, 8, {1, 2, 3, 0, 4, 5, 6, 0}},
        {2, -1, {4, 1}, {0}, NULL, 4, {0, 2, 5, 0}},
        {1, 1, {1}, {-1}, NULL, 2, {2, 5}},
        {2, 2, {1, 2}, {1, 0}, NULL, 2, {2, 5}},
        {0, 0, {0}, {0}, NULL, 6, {1, 2, 3, 4, 5, 6}},
        {1, -1, {1}, {0}, "1 sizes", 0, {0}},
        {3, -1, {1, 1, 1}, {0}, "3 sizes", 0, {0}},
        {1, 2, {1}, {0, 1}, "1 sizes", 0, {0}},
        {2, 1, {1, 1}, {0}, "2 sizes", 0, {0}},
        {1, 0, {1}, {0}, "1 sizes", 0, {0}},
        {2, -1, {1, -1}, {0}, "size -1", 0, {0}},
        {1, 1, {1}, {2}, "axis 2 of 2", 0, {0}},
        {1, 1, {1}, {-3}, "axis -3 of 2", 0, {0}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char names[] = "x s y";
        int64_t size[3], axis[2];
        float y[8];
        memcpy(size, all[i].size, sizeof size);
        memcpy(axis, all[i].axis, sizeof axis);
        maker *k = make(18);
        input(k, "x");
        output(k, "y");
        integers(k, "s", all[i].sizes, size);
        Onnx__NodeProto *nd = node(k, "CenterCropPad", "crop", names);
        if (all[i].axes >= 0) ints_attr(k, nd, "axes", all[i].axes, axis);
        const ctn_status st = call(k, x, CTN_SHAPE(2, 3), y, all[i].n);
        if (all[i].refused) assert_fails(st, CTN_ESHAPE, all[i].refused);
        else OK(st);
        for (int64_t j = 0; j < all[i].n; j++)
            assert_close("center_crop_pad", j, y[j], (double)all[i].want[j]);
    }
}

/* An axis of three elements becomes empty, and an empty one stays so. */
static void test_resize_to_nothing(void **state)
{
    (void)state;
    static const float x[3] = {1, 2, 3};
    static float scales[2][2] = {{1, 0.25f}, {1, 2}};
    for (int empty = 0; empty < 2; empty++)
        for (int linear = 0; linear < 2; linear++) {
            char names[] = "x - s y";
            float y[1];
            maker *k = make(13);
            input(k, "x");
            output(k, "y");
            weight(k, "s", 2, 0, scales[empty]);
            text_attr(k, node(k, "Resize", "r", names), "mode", linear ? "linear" : "nearest");
            OK(call(k, x, CTN_SHAPE(1, empty ? 0 : 3), y, 0));
        }
}

/* A matrix has no spatial dimensions. Its size stays the same. */
static void test_resize_matrix(void **state)
{
    (void)state;
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    char names[] = "x - s y";
    float scales[2] = {1, 1}, y[6];
    maker *k = make(18);
    input(k, "x");
    output(k, "y");
    weight(k, "s", 2, 0, scales);
    node(k, "Resize", "resize", names);
    OK(call(k, x, CTN_SHAPE(2, 3), y, 6));
    assert_memory_equal(y, x, sizeof x);
}

/* Integers known before the run have a mean too. */
static void test_mean_of_integers(void **state)
{
    (void)state;
    int64_t x[2] = {1, 5};
    char mean[] = "x m", cast[] = "m y";
    float y;
    maker *k = make(13);
    integers(k, "x", 2, x);
    output(k, "y");
    int_attr(k, node(k, "ReduceMean", "mean", mean), "keepdims", 0);
    int_attr(k, node(k, "Cast", "cast", cast), "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    OK(call(k, NULL, 0, NULL, &y, 1));
    assert_close("mean of integers", 0, y, 3);
}

/* An empty list as a constant: the shape of a scalar. */
static void test_empty_constant(void **state)
{
    (void)state;
    static const float x[1] = {7};
    char list[] = "s", names[] = "x s y";
    float y;
    maker *k = make(13);
    input(k, "x");
    output(k, "y");
    ints_attr(k, node(k, "Constant", "list", list), "value_ints", 0, NULL);
    node(k, "Reshape", "reshape", names);
    OK(call(k, x, CTN_SHAPE(1), &y, 1));
    assert_close("empty constant", 0, y, 7);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A clip, which is never reached here, makes an LSTM take step by step. */
static void test_lstm_steps(void **state)
{
    (void)state;
    enum { STEPS = 3 };
    static const float x[STEPS] = {0.5f, -1, 2};
    static float w[4] = {0.3f, -0.7f, 1.1f, 0.9f}, r[4] = {0.2f, 0.4f, -0.6f, 0.8f};
    char names[] = "x w r y";
    float y[STEPS];
    double h = 0, c = 0;
    maker *k = make(14);
    input(k, "x");
    output(k, "y");
    for (int i = 0; i < 2; i++) { /* (1,4,1) */
        Onnx__TensorProto *t = weight(k, i == 0 ? "w" : "r", 1, 4, i == 0 ? w : r);
        t->dims[2] = 1;
        t->n_dims = 3;
        t->n_float_data = 4;
    }
    Onnx__NodeProto *n = node(k, "LSTM", "lstm", names);
    int_attr(k, n, "hidden_size", 1);
    float_attr(k, n, "clip", 100);
    OK(call(k, x, CTN_SHAPE(STEPS, 1, 1), y, STEPS));
    for (int t = 0; t < STEPS; t++) {
        double of[4]; /* i, o, f, c */
        for (int g = 0; g < 4; g++) {
            of[g] = (double)w[g] * (double)x[t] + (double)r[g] * h;
            of[g] = g < 3 ? 1 / (1 + exp(-of[g])) : tanh(of[g]);
        }
        c = of[2] * c + of[0] * of[3];
        h = of[1] * tanh(c);
        assert_close("lstm", t, y[t], h);
    }
}

/* A body of Scan without nodes, which exchanges its two states and hands on the element. */
static void test_scan_exchanges(void **state)
{
    (void)state;
    static const float x[3] = {7, 8, 9};
    static float a[2] = {1, 2}, b[2] = {3, 4};
    static char text[3][2] = {"s", "t", "e"}, name[] = "body";
    char names[] = "a b x y u v";
    float y[2];
    Onnx__GraphProto g;
    Onnx__ValueInfoProto of[3];
    Onnx__ValueInfoProto *ins[3], *outs[3];
    onnx__graph_proto__init(&g);
    for (int i = 0; i < 3; i++) {
        onnx__value_info_proto__init(&of[i]);
        of[i].name = text[i];
        ins[i] = &of[i];
        outs[i == 2 ? 2 : 1 - i] = &of[i];
    }
    g.input = ins;
    g.output = outs;
    g.n_input = g.n_output = 3;
    maker *k = make(13);
    input(k, "x");
    output(k, "y");
    weight(k, "a", 2, 0, a);
    weight(k, "b", 2, 0, b);
    Onnx__NodeProto *n = node(k, "Scan", "scan", names);
    n->n_input = n->n_output = 3;
    n->output = n->input + 3;
    attr(k, n, name)->g = &g;
    int_attr(k, n, "num_scan_inputs", 1);
    OK(call(k, x, CTN_SHAPE(3), y, 2));
    assert_close("scan", 0, y[0], 3);
    assert_close("scan", 1, y[1], 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention),         cmocka_unit_test(test_windows),
        cmocka_unit_test(test_mean_variance),     cmocka_unit_test(test_center_crop_pad),
        cmocka_unit_test(test_resize_to_nothing), cmocka_unit_test(test_scan_exchanges),
        cmocka_unit_test(test_resize_matrix),     cmocka_unit_test(test_mean_of_integers),
        cmocka_unit_test(test_empty_constant),    cmocka_unit_test(test_lstm_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77;
}

#endif
