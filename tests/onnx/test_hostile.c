/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that were made to read or write outside of arrays: tensors with several lists of values,
 * sizes whose product overflows, axes that are given twice, missing numbers, and divisors of 0.
 * Each is refused with a message.
 */
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

#include "hostile.h"

#define VAST ((int64_t)1 << 61)

enum {
    FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
    UINT8 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8,
    INT32 = ONNX__TENSOR_PROTO__DATA_TYPE__INT32,
    INT64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
    BOOL = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL
};

/* An array of zeros of this shape, which is not known while recording if it is large. names: those
 * of the shape and the array. */
static void zeros(maker *k, const char *shape, char *names, int type, int n, int64_t *dims)
{
    static Onnx__TensorProto value;
    static int64_t one = 1;
    static uint8_t raw[4];
    onnx__tensor_proto__init(&value);
    value.dims = &one;
    value.n_dims = 1;
    value.has_data_type = 1;
    value.data_type = type;
    value.has_raw_data = 1;
    value.raw_data = (ProtobufCBinaryData){type == FLOAT ? 4 : 1, raw};
    integers(k, shape, n, dims);
    attr(k, node(k, "ConstantOfShape", "zeros", names), "value")->t = &value;
}

/* ---- values of tensors ----------------------------------------------------------------------- */

static void test_lists(void **state)
{
    (void)state;
    static float f[4] = {1, 2, 3, 4};
    static double d[64];
    static int32_t i32[4] = {1, 0, 1, 0};
    static int64_t i64[64];
    static uint64_t u64[4];
    static uint8_t raw[32];
    for (int i = 0; i < 8; i++) {
        char names[] = "c y";
        maker *k = model(13);
        node(k, "Identity", "id", names);
        Onnx__TensorProto *t = weight(k, "c", 4, 0, f);
        if (i == 0) t->double_data = d, t->n_double_data = 64;
        if (i == 1) t->data_type = INT64, t->int64_data = i64, t->n_int64_data = 4;
        if (i == 2) t->raw_data = (ProtobufCBinaryData){16, raw}, t->has_raw_data = 1;
        if (i == 3) t->data_type = INT32; /* a list of another type only */
        if (i == 4) t->uint64_data = u64, t->n_uint64_data = 4;
        if (i >= 5) {
            t->n_float_data = 0;
            t->data_type = BOOL;
            t->int32_data = i32;
            t->n_int32_data = 4;
        }
        if (i == 5) t->double_data = d, t->n_double_data = 64;
        if (i == 6) t->int64_data = i64, t->n_int64_data = 64;
        if (i == 7) {
            t->has_data_location = 1;
            t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
        }
        refused("lists", k, CTN_EFORMAT, "expected one");
    }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void test_overflow(void **state)
{
    (void)state;
    static int64_t depth = VAST + 1, large[1] = {(int64_t)1 << 46}, three[1] = {3};
    static int64_t column[2] = {(int64_t)1 << 46, 1}; /* tensors have at most 2^47 bytes */
    static int64_t steps[3] = {((int64_t)1 << 44) - 1, 1, 1}, image[5] = {1, 1, 1, 1, 1};
    static int64_t heads[4] = {1, 1, (int64_t)1 << 31, 1}, tall[2] = {1 << 17, 1};
    static int64_t sizes[2] = {1 << 17, 1 << 28}, taps[3] = {1, 2, 2};
    static int64_t apart[3] = {1, 1 << 20, 1 << 21};
    static int64_t pads[6] = {0, 1 << 20, 1 << 21, 0, 1 << 20, 1 << 21};
    static float w[1] = {1}, levels[2] = {0, 1};
    const char *const memory = "CATENA_ONNX_MB";

    char one_hot[] = "i d v y";
    static int64_t index[2] = {0, 1};
    maker *k = model(13);
    integers(k, "i", 2, index);
    number(k, "d", &depth);
    weight(k, "v", 2, 0, levels);
    node(k, "OneHot", "n", one_hot);
    refused("OneHot", k, CTN_EUNSUPPORTED, memory);

    char shape[] = "s x", resize[] = "x - - z y";
    k = model(18);
    zeros(k, "s", shape, FLOAT, 2, tall);
    integers(k, "z", 2, sizes);
    Onnx__NodeProto *n = node(k, "Resize", "n", resize);
    text_attr(k, n, "mode", "linear");
    text_attr(k, n, "keep_aspect_ratio_policy", "not_smaller");
    refused("Resize", k, CTN_ESHAPE, "size ");

    char shape2[] = "s x", pool[] = "x y";
    k = model(13);
    zeros(k, "s", shape2, FLOAT, 5, image);
    n = node(k, "AveragePool", "n", pool);
    ints_attr(k, n, "kernel_shape", 3, taps);
    ints_attr(k, n, "dilations", 3, apart);
    ints_attr(k, n, "pads", 6, pads);
    refused("AveragePool", k, CTN_EUNSUPPORTED, memory);

    /* Millions of windows that contain nothing but padding. */
    char shape_lp[] = "s x", lp[] = "x y";
    static int64_t kernel[2] = {127, 3}, around[4] = {32767, 127, 2, 2};
    static int64_t plain[4] = {1, 1, 28, 28};
    k = model(18);
    zeros(k, "s", shape_lp, FLOAT, 4, plain);
    n = node(k, "LpPool", "n", lp);
    ints_attr(k, n, "kernel_shape", 2, kernel);
    ints_attr(k, n, "pads", 4, around);
    refused("LpPool", k, CTN_EFORMAT, "padding of 32767 and 2, expected less than the kernel, 127");

    /* A long kernel, and few elements far from each other in a vast padded input. */
    for (int k2 = 0; k2 < 2; k2++) {
        char shape_m[] = "s x", max[] = "x y";
        static int64_t tall_kernel[2] = {20001, 1}, tall_pads[4] = {20000, 0, 20000, 0};
        static int64_t wide_kernel[2] = {2, 2}, wide_pads[4] = {12000, 12000, 12000, 12000};
        static int64_t far[2] = {12001, 12001}, tiny[4] = {2, 1, 4, 4};
        maker *q = model(18);
        zeros(q, "s", shape_m, FLOAT, 4, tiny);
        Onnx__NodeProto *pool_m = node(q, "MaxPool", "n", max);
        ints_attr(q, pool_m, "kernel_shape", 2, k2 ? wide_kernel : tall_kernel);
        ints_attr(q, pool_m, "pads", 4, k2 ? wide_pads : tall_pads);
        if (k2) ints_attr(q, pool_m, "dilations", 2, far);
        refused("MaxPool", q, CTN_EUNSUPPORTED, k2 ? "CATENA_ONNX_" : "more than 4096 elements");
    }

    /* A scale for blocks that would be repeated 2^43 times, and more blocks than elements. */
    for (int many = 0; many < 2; many++) {
        char shape_q[] = "s x", shape_z[] = "t scale", quantize[] = "x scale y";
        static int64_t few[2] = {3, 4}, two[2] = {3, 2}, five[2] = {3, 5};
        maker *q = model(21);
        zeros(q, "s", shape_q, FLOAT, 2, few);
        zeros(q, "t", shape_z, FLOAT, 2, many ? five : two);
        Onnx__NodeProto *node_q = node(q, "QuantizeLinear", "n", quantize);
        int_attr(q, node_q, "block_size", many ? 1 : (int64_t)1 << 43);
        if (many) refused("QuantizeLinear", q, CTN_ESHAPE, "5 blocks of 1 for 4 elements");
        else refused("QuantizeLinear", q, CTN_ESHAPE, "2 blocks of 8796093022208 for 4 elements");
    }

    char shape3[] = "s x", reverse[] = "x l y";
    k = model(13);
    zeros(k, "s", shape3, UINT8, 2, column);
    integers(k, "l", 1, three);
    n = node(k, "ReverseSequence", "n", reverse);
    refused("ReverseSequence", k, CTN_EUNSUPPORTED, memory);

    char shape4[] = "s i", gather[] = "x i y";
    k = model(13);
    input(k, "x");
    zeros(k, "s", shape4, UINT8, 2, column);
    node(k, "GatherND", "n", gather);
    refused("GatherND", k, CTN_EUNSUPPORTED, memory);

    char shape5[] = "s x", rnn[] = "x w r y";
    k = model(13);
    zeros(k, "s", shape5, FLOAT, 3, steps);
    for (int i = 0; i < 2; i++) {
        Onnx__TensorProto *t = weight(k, i ? "r" : "w", 1, 1, w);
        static int64_t cube[3] = {1, 1, 1};
        t->dims = cube;
        t->n_dims = 3;
    }
    n = node(k, "RNN", "n", rnn);
    float_attr(k, n, "clip", 1);
    int_attr(k, n, "hidden_size", 1);
    refused("RNN", k, CTN_EUNSUPPORTED, "CATENA_ONNX_");

    char shape6[] = "s x", attention[] = "x x x y";
    k = model(24);
    zeros(k, "s", shape6, FLOAT, 4, heads);
    n = node(k, "Attention", "n", attention);
    int_attr(k, n, "is_causal", 1);
    int_attr(k, n, "left_window_size", 3);
    refused("Attention", k, CTN_EUNSUPPORTED, memory);

    char shape_of_bytes[] = "s x", bytes[] = "x x x y";
    static int64_t small[] = {1, 1, 2, 2};
    k = model(24);
    zeros(k, "s", shape_of_bytes, UINT8, 4, small);
    n = node(k, "Attention", "n", bytes);
    int_attr(k, n, "is_causal", 1);
    int_attr(k, n, "left_window_size", 3);
    refused("Attention", k, CTN_EARG, "expected floats");

    char range[] = "a b c y";
    static int64_t zero = 0, end = (int64_t)1 << 33, one = 1;
    k = model(13);
    number(k, "a", &zero);
    number(k, "b", &end);
    number(k, "c", &one);
    node(k, "Range", "n", range);
    refused("Range", k, CTN_EUNSUPPORTED, memory);

    char shape7[] = "s x", flat[] = "x y";
    k = model(13);
    zeros(k, "s", shape7, UINT8, 1, large);
    node(k, "NonZero", "n", flat);
    refused("NonZero", k, CTN_EUNSUPPORTED, memory);
}

/* Shapes whose number of elements, times the 8 bytes of an index, overflows. */
static void test_vast(void **state)
{
    (void)state;
    static int64_t column[2] = {VAST, 1}, steps[3] = {VAST - 1, 1, 1}, cube[3] = {1, 1, 1};
    static int64_t three[1] = {3};
    static float w[1] = {1};

    char shape[] = "s x", reverse[] = "x l y";
    maker *k = model(13);
    zeros(k, "s", shape, UINT8, 2, column);
    integers(k, "l", 1, three);
    node(k, "ReverseSequence", "n", reverse);
    refused("ReverseSequence", k, CTN_ESHAPE, "too large");

    char shape2[] = "s i", gather[] = "x i y";
    k = model(13);
    input(k, "x");
    zeros(k, "s", shape2, UINT8, 2, column);
    node(k, "GatherND", "n", gather);
    refused("GatherND", k, CTN_ESHAPE, "too large");

    char shape3[] = "s x", rnn[] = "x w r y";
    k = model(13);
    zeros(k, "s", shape3, FLOAT, 3, steps);
    for (int i = 0; i < 2; i++) {
        Onnx__TensorProto *t = weight(k, i ? "r" : "w", 1, 1, w);
        t->dims = cube;
        t->n_dims = 3;
    }
    Onnx__NodeProto *n = node(k, "RNN", "n", rnn);
    float_attr(k, n, "clip", 1);
    int_attr(k, n, "hidden_size", 1);
    refused("RNN", k, CTN_ESHAPE, "too large");
}

/* Dimensions that only an empty array can have. */
static void test_empty(void **state)
{
    (void)state;
    static int64_t wide[2] = {(int64_t)1 << 44, 0}, reps[2] = {VAST, 1};
    static int64_t other[3] = {(int64_t)1 << 44, 1, 0}, many[3] = {(int64_t)1 << 40, 2, 0};
    static int64_t index[2] = {0, 1};

    char shape[] = "s x", eye[] = "x y";
    maker *k = model(13);
    zeros(k, "s", shape, FLOAT, 2, wide);
    node(k, "EyeLike", "n", eye);
    OK(call(k));

    char shape2[] = "s x", gather[] = "x i y";
    k = model(13);
    zeros(k, "s", shape2, FLOAT, 3, many);
    integers(k, "i", 2, index);
    int_attr(k, node(k, "Gather", "n", gather), "axis", 1);
    OK(call(k));

    char shape3[] = "s x", tile[] = "x r y";
    k = model(13);
    zeros(k, "s", shape3, FLOAT, 2, wide);
    integers(k, "r", 2, reps);
    node(k, "Tile", "n", tile);
    refused("Tile", k, CTN_ESHAPE, "too large");

    char shape4[] = "s x", shape5[] = "t z", add[] = "x z y";
    k = model(13);
    zeros(k, "s", shape4, FLOAT, 2, wide);
    zeros(k, "t", shape5, FLOAT, 3, other);
    node(k, "Add", "n", add);
    refused("Add", k, CTN_ESHAPE, "too large");
}

/* ---- reads outside of arrays ----------------------------------------------------------------- */

static void test_reads(void **state)
{
    (void)state;
    static int64_t many[128 * 128], twice[2] = {0, 0}, shape[2] = {128, 128}, a[1] = {7};
    static uint8_t bytes[16384];

    char transpose[] = "c y";
    maker *k = model(13);
    integers(k, "c", 128 * 128, many);
    k->tensor[0].dims = shape;
    k->tensor[0].n_dims = 2;
    ints_attr(k, node(k, "Transpose", "n", transpose), "perm", 2, twice);
    refused("Transpose", k, CTN_EFORMAT, "axis 0 is given twice");

    char where[] = "b a c y";
    k = model(13);
    for (int i = 0; i < 2; i++) {
        Onnx__TensorProto *t = weight(k, i ? "c" : "b", i ? 16384 : 1, 0, NULL);
        t->n_float_data = 0;
        t->data_type = i ? UINT8 : BOOL;
        t->has_raw_data = 1;
        t->raw_data = (ProtobufCBinaryData){i ? 16384 : 1, bytes};
    }
    integers(k, "a", 1, a);
    node(k, "Where", "n", where);
    refused("Where", k, CTN_EDTYPE, "expected one type");

    char empty[] = "s", at[] = "s y";
    k = model(13);
    node(k, "SequenceEmpty", "e", empty);
    node(k, "SequenceAt", "n", at);
    refused("SequenceAt", k, CTN_EARG, "of a sequence of 0");

    char none[] = "s", size[] = "s y";
    k = model(13);
    node(k, "SequenceEmpty", "e", none);
    node(k, "Size", "n", size);
    refused("Size", k, CTN_EFORMAT, "input 0 is not a tensor");

    char nothing[] = "- y";
    k = model(13);
    node(k, "Size", "n", nothing);
    refused("Size", k, CTN_EFORMAT, "input 0 is not a tensor");

    static int64_t tuple[3] = {0, 0, 0};
    for (int batch = 0; batch < 2; batch++) { /* three indices of two dimensions; no tuples left */
        char make_x[] = "d x", gather[] = "x i y";
        k = model(13);
        zeros(k, "d", make_x, UINT8, 2, shape);
        integers(k, "i", batch ? 1 : 3, tuple);
        int_attr(k, node(k, "GatherND", "n", gather), "batch_dims", batch);
        refused("GatherND", k, CTN_ESHAPE, "the indices do not fit 2 dimensions");
    }

    static const struct {
        const char *op, *names; /* x: the input, e: no number, n: one, s: four */
    } all[] = {{"TopK", "x e y"},   {"CumSum", "x e y"},   {"Trilu", "x e y"},
               {"Clip", "x e n y"}, {"Clip", "x n e y"},   {"Range", "e n n y"},
               {"Pad", "x s e y"},  {"Range", "n n e y"},  {"HannWindow", "e y"},
               {"If", "e y"},       {"OneHot", "x e s y"}, {"Dropout", "x e y"},
               {"TopK", "x s y"},   {"HannWindow", "s y"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        static int64_t number_of[4] = {1};
        Onnx__GraphProto branch = ONNX__GRAPH_PROTO__INIT;
        char names[16];
        snprintf(names, sizeof names, "%s", all[i].names);
        k = model(17);
        input(k, "x");
        integers(k, "e", 0, number_of);
        integers(k, "s", 4, number_of);
        number(k, "n", number_of);
        Onnx__NodeProto *n = node(k, all[i].op, "n", names);
        if (strcmp(all[i].op, "If") == 0) {
            attr(k, n, "then_branch")->g = &branch;
            attr(k, n, "else_branch")->g = &branch;
        }
        refused(all[i].op, k, CTN_ESHAPE, "expected one number");
    }
}

/* ---- divisors -------------------------------------------------------------------------------- */

/* Numbers of windows and groups that divide something. */
static void test_divisors(void **state)
{
    (void)state;
    static int64_t shape[4] = {1, 2, 4, 4}, zero[2] = {0, 0}, one[1] = {1},
                   wshape[4] = {2, 2, 1, 1};
    static float w[4] = {1, 1, 1, 1};
    static const struct {
        const char *op, *attr;
        int kind; /* 0: the attribute is 0, 1: two zeros, 2: a list of one number */
    } all[] = {{"Conv", "group", 0},
               {"Conv", "strides", 1},
               {"Conv", "strides", 2},
               {"ConvTranspose", "group", 0},
               {"ConvTranspose", "strides", 1},
               {"MaxPool", "kernel_shape", 1},
               {"AveragePool", "strides", 2},
               {"SpaceToDepth", "blocksize", 0},
               {"DepthToSpace", "blocksize", 0},
               {"LRN", "size", 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char make_x[] = "s x", two[] = "x w y", single[] = "x y";
        const bool conv = strncmp(all[i].op, "Conv", 4) == 0;
        maker *k = model(13);
        zeros(k, "s", make_x, FLOAT, 4, shape);
        if (conv) {
            Onnx__TensorProto *t = weight(k, "w", 2, 2, w);
            t->dims = wshape;
            t->n_dims = 4;
        }
        Onnx__NodeProto *n = node(k, all[i].op, "n", conv ? two : single);
        if (strstr(all[i].op, "Pool") && strcmp(all[i].attr, "kernel_shape") != 0)
            ints_attr(k, n, "kernel_shape", 2, wshape + 2);
        if (all[i].kind == 0) int_attr(k, n, all[i].attr, 0);
        else ints_attr(k, n, all[i].attr, all[i].kind == 1 ? 2 : 1, all[i].kind == 1 ? zero : one);
        const ctn_status st = call(k);
        if (st >= 0 && strcmp(all[i].attr, "group") != 0) /* 0 groups: the default of ctn_conv */
            fail_msg("%s with %s is not refused", all[i].op, all[i].attr);
        ctn_error_clear();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists), cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_vast),  cmocka_unit_test(test_empty),
        cmocka_unit_test(test_reads), cmocka_unit_test(test_divisors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77;
}

#endif
