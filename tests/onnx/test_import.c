/* SPDX-License-Identifier: Apache-2.0
 *
 * The ONNX import as a module: names of weights, training, copies, dynamic shapes, external files,
 * and the errors of files that are malformed or use what is not supported. The models are built
 * here, message by message.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>
#include <catena/onnx.h>

#include <cmocka.h>

#include "onnx/onnx.h"
#include "support/check.h"
#include "support/ok.h"

#ifdef CTN_HAVE_PROTOBUFC

#include "maker.h"

static float w1[6] = {0.5f, -0.25f, 0.125f, 1, -1, 0.75f}, b1[3] = {0.1f, 0.2f, -0.3f};
static float w2[3] = {1, -0.5f, 0.25f}, b2[1] = {0.05f};

/* y = fc2(relu(fc1(x))), x (N,2) -> (N,1) */
static maker *mlp(void)
{
    static char n1[64], n2[16], n3[32]; /* strtok writes into them */
    maker *k = make(13);
    snprintf(n1, sizeof n1, "x net.fc1.weight net.fc1.bias h");
    snprintf(n2, sizeof n2, "h r");
    snprintf(n3, sizeof n3, "r fc2.weight fc2.bias y");
    input(k, "x");
    output(k, "y");
    weight(k, "net.fc1.weight", 3, 2, w1);
    weight(k, "net.fc1.bias", 3, 0, b1);
    weight(k, "fc2.weight", 1, 3, w2);
    weight(k, "fc2.bias", 1, 0, b2);
    int_attr(k, node(k, "Gemm", "first", n1), "transB", 1);
    node(k, "Relu", "act", n2);
    int_attr(k, node(k, "Gemm", "second", n3), "transB", 1);
    pack(k);
    return k;
}

static float mlp_value(const float *x)
{
    float y = b2[0];
    for (int i = 0; i < 3; i++) {
        const float h = w1[2 * i] * x[0] + w1[2 * i + 1] * x[1] + b1[i];
        y += w2[i] * (h > 0 ? h : 0);
    }
    return y;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const float points[8] = {0.3f, -0.7f, 1.5f, 0.25f, -1, 2, 0.125f, 0.5f};

static void check_mlp(ctn_context *ctx, ctn_module *m)
{
    for (int64_t n = 1; n <= 4; n++) { /* any batch size */
        float y[4];
        OK(ctn_scope_begin(ctx));
        ctn_tensor *t = ctn_call(m, ctn_input(ctx, points, CTN_F32, CTN_SHAPE(n, 2)));
        OK(ctn_read(t, y, (size_t)n * sizeof(float)));
        OK(ctn_scope_end(ctx));
        for (int64_t i = 0; i < n; i++) assert_float_equal(y[i], mlp_value(points + 2 * i), 1e-6);
    }
}

static void test_module(void **state)
{
    (void)state;
    ctn_context *ctx = context();
    ctn_module *m = NULL, *copy = NULL;
    maker *k = mlp();
    OK(open(&m, ctx, k, 0));
    drop(k); /* the module does not need the bytes */
    assert_int_equal(ctn_params(m).n, 4);
    assert_non_null(ctn_module_find(m, "net.fc1.weight"));
    assert_non_null(ctn_module_find(m, "fc2.bias")); /* one number, but a weight */
    assert_int_equal(ctn_onnx_inputs(m), 1);
    ctn_onnx_port port;
    OK(ctn_onnx_output(m, 0, &port));
    assert_string_equal(port.name, "y");
    assert_fails(ctn_onnx_input(m, 1, &port), CTN_EARG, "no input 1");
    check_mlp(ctx, m);
    OK(ctn_module_copy(&copy, m));
    ctn_module_free(m);
    check_mlp(ctx, copy);
    ctn_module_free(copy);
    ctn_context_free(ctx);
}

static void test_training(void **state)
{
    (void)state;
    static const float target[4] = {1, -1, 0.5f, 2};
    ctn_context *ctx = context();
    ctn_module *m = NULL;
    ctn_optim *opt = NULL;
    maker *k = mlp();
    double first = 0, last = 0;
    OK(open(&m, ctx, k, 0));
    OK(ctn_sgd_new(&opt, ctn_params(m), CTN_OPT(ctn_sgd_opt, .lr = 0.05)));
    for (int i = 0; i < 50; i++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *y = ctn_call(m, ctn_input(ctx, points, CTN_F32, CTN_SHAPE(4, 2)));
        ctn_tensor *t = ctn_input(ctx, target, CTN_F32, CTN_SHAPE(4, 1));
        ctn_tensor *loss = ctn_mean_squared_error(y, t, CTN_MEAN);
        OK(ctn_backward(opt, loss));
        OK(ctn_optim_step(opt));
        last = ctn_item(loss);
        if (i == 0) first = last;
        OK(ctn_scope_end(ctx));
    }
    assert_true(last < 0.5 * first);
    ctn_optim_free(opt);
    ctn_module_free(m);
    OK(open(&m, ctx, k, 1));
    for (int i = 0; i < 4; i++) assert_false(ctn_var_trainable(ctn_params(m).var[i]));
    ctn_module_free(m);
    drop(k);
    ctn_context_free(ctx);
}

static void test_calls(void **state)
{
    (void)state;
    ctn_context *ctx = context();
    ctn_module *m = NULL, *other = NULL;
    ctn_tensor *y = NULL;
    maker *k = mlp();
    OK(open(&m, ctx, k, 0));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, points, CTN_F32, CTN_SHAPE(4, 2));
    ctn_tensor *two[2] = {x, x};
    assert_fails(ctn_onnx_run(m, 2, two, 1, &y), CTN_EARG, "got 2 inputs");
    assert_fails(ctn_onnx_run(m, 1, two, 2, two), CTN_EARG, "asked for 2 outputs");
    x = ctn_input(ctx, points, CTN_F32, CTN_SHAPE(2, 4));
    assert_fails(ctn_onnx_run(m, 1, &x, 1, &y), CTN_ESHAPE, "Gemm first");
    OK(ctn_linear_new(&other, ctx, 2, 2, NULL));
    assert_fails(ctn_onnx_run(other, 1, &x, 1, &y), CTN_EARG, "not an ONNX model");
    OK(ctn_scope_end(ctx));
    assert_int_equal(ctn_onnx_inputs(other), -1);
    ctn_module_free(other);
    ctn_module_free(m);
    drop(k);
    ctn_context_free(ctx);
}

/* Integers that are known when the model is called, as those of shapes are. */
static void test_integers(void **state)
{
    (void)state;
    enum { N = 8 };
    int64_t a[N] = {7, -7, 7, -7, INT64_MIN, 5, 0, 3}, b[N] = {3, 3, -3, -3, -1, 0, 4, 2}, y[N];
    static const struct {
        const char *op;
        int fmod;
        int64_t want[N];
    } all[] = {
        {"Add", 0, {10, -4, 4, -10, INT64_MAX, 5, 4, 5}},
        {"Sub", 0, {4, -10, 10, -4, INT64_MIN + 1, 5, -4, 1}},
        {"Mul", 0, {21, -21, -21, 21, INT64_MIN, 0, 0, 6}},
        {"Div", 0, {2, -2, -2, 2, 0, 0, 0, 1}},
        {"Mod", 0, {1, 2, -2, -1, 0, 0, 0, 1}},
        {"Mod", 1, {1, -1, 1, -1, 0, 0, 0, 1}},
        {"Max", 0, {7, 3, 7, -3, -1, 5, 4, 3}},
        {"Min", 0, {3, -7, -3, -7, INT64_MIN, 0, 0, 2}},
        {"BitwiseAnd", 0, {3, 1, 5, -7, INT64_MIN, 0, 0, 2}},
        {"BitwiseOr", 0, {7, -5, -1, -3, -1, 5, 4, 3}},
        {"BitwiseXor", 0, {4, -6, -6, 4, INT64_MAX, 5, 4, 1}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ctn_context *ctx = context();
        ctn_module *m = NULL;
        ctn_tensor *t = NULL;
        char names[] = "a b y";
        maker *k = make(18);
        integers(k, "a", N, a);
        integers(k, "b", N, b);
        output(k, "y");
        Onnx__NodeProto *n = node(k, all[i].op, "op", names);
        if (all[i].fmod) int_attr(k, n, "fmod", 1);
        pack(k);
        OK(open(&m, ctx, k, 0));
        OK(ctn_scope_begin(ctx));
        OK(ctn_onnx_run(m, 0, NULL, 1, &t));
        OK(ctn_read(t, y, sizeof y));
        OK(ctn_scope_end(ctx));
        for (int j = 0; j < N; j++)
            if (y[j] != all[i].want[j])
                fail_msg("%s of %lld and %lld: %lld", all[i].op, (long long)a[j], (long long)b[j],
                         (long long)y[j]);
        ctn_module_free(m);
        drop(k);
        ctn_context_free(ctx);
    }
}

/* Negative padding removes elements, on either side. */
static void test_negative_padding(void **state)
{
    (void)state;
    static const float x[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    static const struct {
        int64_t pads[4]; /* before and after the rows and columns: top, left, bottom, right */
        int64_t rows, cols;
        float want[12];
    } all[] = {
        {{0, -1, 0, 0}, 3, 3, {1, 2, 3, 5, 6, 7, 9, 10, 11}},
        {{0, 0, 0, -1}, 3, 3, {0, 1, 2, 4, 5, 6, 8, 9, 10}},
        {{-1, -1, -1, -2}, 1, 1, {5}},
        {{-2, 1, 0, -2}, 1, 3, {0, 8, 9}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ctn_context *ctx = context();
        ctn_module *m = NULL;
        char names[] = "x pads y";
        int64_t pads[4];
        float y[12];
        maker *k = make(13);
        memcpy(pads, all[i].pads, sizeof pads);
        integers(k, "pads", 4, pads);
        input(k, "x");
        output(k, "y");
        node(k, "Pad", "pad", names);
        pack(k);
        OK(open(&m, ctx, k, 0));
        OK(ctn_scope_begin(ctx));
        ctn_tensor *t = ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(3, 4)));
        assert_true(ctn_dim(t, 0) == all[i].rows && ctn_dim(t, 1) == all[i].cols);
        const size_t bytes = (size_t)(all[i].rows * all[i].cols) * sizeof *y;
        OK(ctn_read(t, y, bytes));
        assert_memory_equal(y, all[i].want, bytes);
        OK(ctn_scope_end(ctx));
        ctn_module_free(m);
        drop(k);
        ctn_context_free(ctx);
    }
}

static void test_unsupported(void **state)
{
    (void)state;
    ctn_context *ctx = context();
    ctn_module *m = NULL;
    maker *k = make(13);
    char a[] = "x p", b[] = "p q", c[] = "q r", d[] = "r y";
    input(k, "x");
    output(k, "y");
    node(k, "Foo", "one", a);
    node(k, "Relu", "two", b);
    node(k, "Bar", "three", c);
    node(k, "Foo", "four", d);
    pack(k);
    assert_fails(open(&m, ctx, k, 0), CTN_EUNSUPPORTED,
                 "uses 2 ops that are not supported: Foo (one, four); Bar (three)");
    assert_null(m);
    drop(k);
    k = make(CTN__ONNX_NEWEST + 1);
    pack(k);
    assert_fails(open(&m, ctx, k, 0), CTN_EUNSUPPORTED, "uses opset 29, expected 7 to 28");
    drop(k);
    ctn_context_free(ctx);
}

static void test_malformed(void **state)
{
    (void)state;
    ctn_context *ctx = context();
    ctn_module *m = NULL;
    maker *k = mlp();
    for (size_t n = 0; n < k->n; n++) { /* every truncation is an error or a smaller model */
        if (ctn__onnx_open_bytes(&m, ctx, "cut.onnx", k->bytes, n, NULL) < 0) ctn_error_clear();
        ctn_module_free(m);
        m = NULL;
    }
    drop(k);
    k = make(13);
    char a[] = "nowhere y";
    output(k, "y");
    node(k, "Relu", "two", a);
    pack(k);
    assert_fails(open(&m, ctx, k, 0), CTN_EFORMAT, "Relu 'two' reads 'nowhere' before");
    drop(k);
    k = make(13);
    weight(k, "w", 3, 2, w1)->n_float_data = 5;
    output(k, "w");
    pack(k);
    assert_fails(open(&m, ctx, k, 0), CTN_EFORMAT, "tensor 'w' has 6 elements, but 5 values");
    drop(k);
    assert_fails(ctn_onnx_open(&m, ctx, "does-not-exist.onnx", NULL), CTN_EIO, "does-not-exist");
    ctn_context_free(ctx);
}

/* A graph in an attribute of a node in a graph, and so on. */
static void test_nesting(void **state)
{
    (void)state;
    enum { DEPTH = 200, ROOM = 20000 };
    static uint8_t bytes[ROOM];
    size_t at = ROOM;
    static const uint8_t fields[3] = {0x32, 0x2a,
                                      0x0a}; /* attribute.g, node.attribute, graph.node */
    for (int i = 0; i < 3 * DEPTH; i++) {
        const size_t n = ROOM - at;
        if (n < 128) {
            bytes[--at] = (uint8_t)n;
        } else {
            bytes[--at] = (uint8_t)(n >> 7);
            bytes[--at] = (uint8_t)(n | 0x80);
        }
        bytes[--at] = fields[i % 3];
    }
    const size_t n = ROOM - at;
    bytes[--at] = (uint8_t)(n >> 7);
    bytes[--at] = (uint8_t)(n | 0x80);
    bytes[--at] = 0x3a; /* model.graph */
    ctn_context *ctx = context();
    ctn_module *m = NULL;
    assert_fails(ctn__onnx_open_bytes(&m, ctx, "deep.onnx", bytes + at, ROOM - at, NULL),
                 CTN_EFORMAT, "nested deeper than 64 levels");
    ctn_context_free(ctx);
}

static maker *external(const char *location, const char *offset)
{
    maker *k = make(13);
    char names[] = "w y";
    static const char *const keys[3] = {"location", "offset", "length"};
    const char *const values[3] = {location, offset, "24"};
    Onnx__TensorProto *t = weight(k, "w", 3, 2, w1);
    t->n_float_data = 0;
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    t->external_data = (Onnx__StringStringEntryProto **)k->entries;
    for (int i = 0; i < 3; i++) {
        onnx__string_string_entry_proto__init(&k->entry[i]);
        k->entry[i].key = (char *)(uintptr_t)keys[i];
        k->entry[i].value = (char *)(uintptr_t)values[i];
        k->entries[i] = &k->entry[i];
    }
    t->n_external_data = 3;
    output(k, "y");
    node(k, "Relu", "act", names);
    pack(k);
    return k;
}

static void test_external(void **state)
{
    (void)state;
    static const struct {
        const char *location, *offset, *part;
        ctn_status st;
    } bad[] = {{"../weights.bin", "8", "not a file inside the folder", CTN_EFORMAT},
               {"a/../../weights.bin", "8", "not a file inside the folder", CTN_EFORMAT},
               {"/etc/passwd", "0", "not a file inside the folder", CTN_EFORMAT},
               {"", "0", "not a file inside the folder", CTN_EFORMAT},
               {"weights.bin", "-8", "offset -8", CTN_EFORMAT},
               {"weights.bin", "16", "weights.bin", CTN_EIO},
               {"missing.bin", "8", "missing.bin", CTN_EIO}};
    ctn_context *ctx = context();
    ctn_module *m = NULL;
    char data[32] = {0};
    float y[6];
    memcpy(data + 8, w1, 24);
    write_bytes("weights.bin", data, 32);
    maker *k = external("weights.bin", "8");
    OK(open(&m, ctx, k, 0));
    drop(k);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = NULL;
    OK(ctn_onnx_run(m, 0, NULL, 1, &t));
    OK(ctn_read(t, y, sizeof y));
    OK(ctn_scope_end(ctx));
    for (int i = 0; i < 6; i++) assert_float_equal(y[i], w1[i] > 0 ? w1[i] : 0, 0);
    ctn_module_free(m);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        k = external(bad[i].location, bad[i].offset);
        assert_fails(open(&m, ctx, k, 0), bad[i].st, bad[i].part);
        drop(k);
    }
    remove("weights.bin");
    ctn_context_free(ctx);
}

/* Every allocation fails once; nothing leaks or crashes. */
static void test_memory(void **state)
{
    (void)state;
    maker *k = mlp();
    for (long at = 1;; at++) {
        failing_once f = {.fail_at = at};
        assert_int_equal(ctn_set_allocator(
                             &(ctn_allocator){failing_once_alloc, failing_once_release, &f}),
                         0);
        ctn_context *ctx = NULL;
        ctn_module *m = NULL;
        if (ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)) == CTN_OK &&
            open(&m, ctx, k, 0) == CTN_OK)
            at = LONG_MAX - 1;
        ctn_module_free(m);
        ctn_context_free(ctx);
        ctn_error_clear();
        assert_int_equal(f.live, 0);
        ctn_set_allocator(NULL);
        if (at == LONG_MAX - 1) break;
    }
    drop(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_module),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_negative_padding),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_external),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77;
}

#endif
