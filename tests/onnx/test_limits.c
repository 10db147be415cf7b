/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of a few bytes that ask for unlimited time or memory: functions and loops in each other,
 * values that are used again and again, and messages without end. Each is refused with a message
 * that names the limit.
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

/* ---- unlimited work -------------------------------------------------------------------------- */

/* Functions without values, each of which calls the next one twice. */
static void test_functions(void **state)
{
    (void)state;
    enum { LEVELS = 40 };
    static Onnx__FunctionProto f[LEVELS], *functions[LEVELS];
    static Onnx__NodeProto n[LEVELS], *calls[LEVELS][2];
    static char names[LEVELS + 1][16], domain[] = "d";
    for (int i = 0; i <= LEVELS; i++) snprintf(names[i], sizeof names[i], "f%d", i);
    for (int i = 0; i < LEVELS; i++) {
        onnx__function_proto__init(&f[i]);
        onnx__node_proto__init(&n[i]);
        n[i].op_type = names[i + 1];
        n[i].domain = domain;
        calls[i][0] = calls[i][1] = &n[i];
        f[i].name = names[i];
        f[i].domain = domain;
        f[i].node = calls[i];
        f[i].n_node = i + 1 < LEVELS ? 2 : 0;
        functions[i] = &f[i];
    }
    char relu[] = "x y", first[] = "-";
    maker *k = model(13);
    input(k, "x");
    k->model.functions = functions;
    k->model.n_functions = LEVELS;
    Onnx__NodeProto *call_first = node(k, "f0", "n", first);
    call_first->n_output = 0;
    call_first->domain = domain;
    node(k, "Relu", "r", relu);
    refused("functions", k, CTN_EUNSUPPORTED, "CATENA_ONNX_NODES");
}

/* Loops in each other whose bodies only pass the condition on. */
static maker *loops(int levels, int64_t *trips)
{
    enum { MOST_LEVELS = 4 };
    static Onnx__GraphProto g[MOST_LEVELS];
    static Onnx__NodeProto n[MOST_LEVELS], pass[MOST_LEVELS], *nodes[MOST_LEVELS][2];
    static Onnx__ValueInfoProto info_of[MOST_LEVELS][3], *ins[MOST_LEVELS][2],
        *outs[MOST_LEVELS][1];
    static Onnx__AttributeProto body[MOST_LEVELS], *bodies[MOST_LEVELS][1];
    static char names[MOST_LEVELS][3][16], *texts[MOST_LEVELS][4], trip[] = "m", empty[] = "";
    static char loop[] = "Loop", identity[] = "Cast", body_name[] = "body", relu[] = "x y";
    static Onnx__AttributeProto to, *to_list[1] = {&to};
    static char to_name[] = "to";
    onnx__attribute_proto__init(&to);
    to.name = to_name;
    to.has_i = 1;
    to.i = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
    for (int i = 0; i < levels; i++) {
        onnx__graph_proto__init(&g[i]);
        onnx__node_proto__init(&n[i]);
        onnx__node_proto__init(&pass[i]);
        onnx__attribute_proto__init(&body[i]);
        for (int j = 0; j < 3; j++) {
            snprintf(names[i][j], sizeof names[i][j], "%c%d", "icd"[j], i);
            onnx__value_info_proto__init(&info_of[i][j]);
            info_of[i][j].name = names[i][j];
        }
        ins[i][0] = &info_of[i][0];
        ins[i][1] = &info_of[i][1];
        outs[i][0] = &info_of[i][2];
        g[i].input = ins[i];
        g[i].n_input = 2;
        g[i].output = outs[i];
        g[i].n_output = 1;
        texts[i][0] = names[i][1];
        texts[i][1] = names[i][2];
        texts[i][2] = trip;
        texts[i][3] = empty;
        pass[i].op_type = identity;
        pass[i].input = &texts[i][0];
        pass[i].output = &texts[i][1];
        pass[i].n_input = pass[i].n_output = 1;
        pass[i].attribute = to_list;
        pass[i].n_attribute = 1;
        nodes[i][0] = &pass[i];
        nodes[i][1] = i > 0 ? &n[i - 1] : NULL;
        g[i].node = nodes[i];
        g[i].n_node = i > 0 ? 2 : 1;
        body[i].name = body_name;
        body[i].g = &g[i];
        bodies[i][0] = &body[i];
        n[i].op_type = loop;
        n[i].input = &texts[i][2];
        n[i].n_input = 2;
        n[i].attribute = bodies[i];
        n[i].n_attribute = 1;
    }
    maker *k = model(13);
    input(k, "x");
    number(k, trip, trips);
    k->nodes[k->graph.n_node++] = &n[levels - 1];
    memcpy(relu, "x y", 4);
    node(k, "Relu", "r", relu);
    return k;
}

static void test_loops(void **state)
{
    (void)state;
    static int64_t many = 99999, forever = INT64_MAX, few = 10;
    refused("loops in loops", loops(4, &many), CTN_EUNSUPPORTED, "CATENA_ONNX_NODES");
    refused("an endless loop", loops(1, &forever), CTN_EUNSUPPORTED, "CATENA_ONNX_NODES");
    OK(call(loops(2, &few)));
    setenv("CATENA_ONNX_NODES", "100", 1); /* 2 nodes; 10 turns of 3 nodes; 100 turns of 2 */
    refused("a lower limit", loops(2, &few), CTN_EUNSUPPORTED, "more than 100 nodes");
    setenv("CATENA_ONNX_NODES", "300", 1);
    OK(call(loops(2, &few)));
    unsetenv("CATENA_ONNX_NODES");
}

static void test_memory_limit(void **state)
{
    (void)state;
    static int64_t zero = 0, end = 1 << 20, one = 1;
    for (int i = 0; i < 3; i++) { /* 8 MB */
        char range[] = "a b c y";
        maker *k = model(13);
        number(k, "a", &zero);
        number(k, "b", &end);
        number(k, "c", &one);
        node(k, "Range", "n", range);
        if (i > 0) setenv("CATENA_ONNX_MB", i == 1 ? "7" : "9", 1);
        if (i == 1) refused("memory", k, CTN_EUNSUPPORTED, "more than 7 MB");
        else OK(call(k));
    }
    unsetenv("CATENA_ONNX_MB");
}

/* A kernel that becomes wider than any array. */
static void test_antialias(void **state)
{
    (void)state;
    static float region[4] = {0, 0, 1, 1e9f}, scales[2] = {1, 1e-9f};
    char resize[] = "x roi scales y";
    maker *k = model(18);
    input(k, "x");
    weight(k, "roi", 4, 0, region);
    weight(k, "scales", 2, 0, scales);
    Onnx__NodeProto *n = node(k, "Resize", "n", resize);
    text_attr(k, n, "mode", "linear");
    text_attr(k, n, "coordinate_transformation_mode", "tf_crop_and_resize");
    int_attr(k, n, "antialias", 1);
    refused("Resize", k, CTN_EUNSUPPORTED, "CATENA_ONNX_NODES");
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Many tensors with the same place in a file. */
static void test_shared_place(void **state)
{
    (void)state;
    enum { COPIES = 12, BYTES = 1 << 20 };
    static char keys[] = "location", file[] = "shared.bin";
    static uint8_t zero[BYTES];
    write_bytes(file, zero, sizeof zero);
    for (int i = 0; i < 2; i++) {
        char names[] = "x y";
        static char name[COPIES][16];
        maker *k = model(13);
        input(k, "x");
        node(k, "Relu", "r", names);
        onnx__string_string_entry_proto__init(&k->entry[0]);
        k->entry[0].key = keys;
        k->entry[0].value = file;
        k->entries[0] = &k->entry[0];
        for (int j = 0; j < COPIES; j++) {
            snprintf(name[j], sizeof name[j], "w.%d", j);
            Onnx__TensorProto *t = weight(k, name[j], BYTES / 4, 0, NULL);
            t->n_float_data = 0;
            t->has_data_location = 1;
            t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
            t->external_data = (Onnx__StringStringEntryProto **)k->entries;
            t->n_external_data = 1;
        }
        if (i == 0) {
            OK(call(k));
            setenv("CATENA_ONNX_MB", "4", 1);
        } else {
            refused("shared place", k, CTN_EUNSUPPORTED, "more than 4 MB");
        }
    }
    unsetenv("CATENA_ONNX_MB");
    remove(file);
}

/* Shapes without the bytes that they stand for. */
static void test_missing_bytes(void **state)
{
    (void)state;
    static char keys[] = "location", file[] = "short.bin";
    static int64_t dims[1] = {(int64_t)1 << 38};
    char names[] = "w y";
    write_bytes(file, keys, 8);
    maker *k = model(13);
    node(k, "Relu", "r", names);
    onnx__string_string_entry_proto__init(&k->entry[0]);
    k->entry[0].key = keys;
    k->entry[0].value = file;
    k->entries[0] = &k->entry[0];
    Onnx__TensorProto *t = weight(k, "w", 1, 0, NULL);
    t->n_float_data = 0;
    t->dims = dims;
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    t->external_data = (Onnx__StringStringEntryProto **)k->entries;
    t->n_external_data = 1;
    refused("a short file", k, CTN_EIO, "short.bin");
    remove(file);
}

static void test_messages(void **state)
{
    (void)state;
    char names[] = "x y", dots[200], many[] = "a b y";
    static float w[1] = {1};
    ctn_context *ctx = context();
    ctn_module *m = NULL;
    maker *k = model(13);
    input(k, "x");
    node(k, "Relu", "r", names);
    pack(k);
    uint8_t *bytes = malloc(2 * k->n); /* a message in the form of two is merged field by field */
    memcpy(bytes, k->bytes, k->n);
    memcpy(bytes + k->n, k->bytes, k->n);
    assert_fails(ctn__onnx_open_bytes(&m, ctx, "twice.onnx", bytes, 2 * k->n, NULL), CTN_EFORMAT,
                 "'graph' of ModelProto is given twice");
    free(bytes);
    drop(k);
    enum { EMPTY = 8000000 }; /* nodes of two bytes each */
    bytes = malloc(EMPTY + 5);
    const uint8_t head[5] = {0x3a, (EMPTY & 0x7f) | 0x80, (EMPTY >> 7 & 0x7f) | 0x80,
                             (EMPTY >> 14 & 0x7f) | 0x80, EMPTY >> 21};
    memcpy(bytes, head, 5);
    for (int i = 0; i < EMPTY; i++) bytes[5 + i] = i % 2 ? 0 : 0x0a;
    setenv("CATENA_ONNX_MB", "100", 1);
    assert_fails(ctn__onnx_open_bytes(&m, ctx, "many.onnx", bytes, EMPTY + 5, NULL),
                 CTN_EUNSUPPORTED, "more than 100 MB");
    for (int i = 0; i < EMPTY; i++) bytes[i] = i % 2 ? 1 : 0x78; /* numbers of unknown fields */
    assert_fails(ctn__onnx_open_bytes(&m, ctx, "unknown.onnx", bytes, EMPTY, NULL),
                 CTN_EUNSUPPORTED, "more than 100 MB");
    unsetenv("CATENA_ONNX_MB");
    free(bytes);
    ctn_context_free(ctx);

    memset(dots, '.', sizeof dots); /* each dot would be a module in a module */
    memcpy(dots + sizeof dots - 2, "w", 2);
    k = model(13);
    input(k, "a");
    weight(k, dots, 1, 0, w);
    Onnx__NodeProto *n = node(k, "Add", "n", many);
    n->input[1] = dots;
    refused("dots", k, CTN_EFORMAT, "more than 32 parts");
}

/* ---- attributes ------------------------------------------------------------------------------ */

static void test_attributes(void **state)
{
    (void)state;
    static int64_t list[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    static Onnx__AttributeProto some[300], *all[300];
    static char name[] = "alpha";
    for (int i = 0; i < 5; i++) {
        char names[] = "x y";
        maker *k = model(13);
        input(k, "x");
        Onnx__NodeProto *n = node(k, i == 3 ? "Transpose" : "LeakyRelu", "n", names);
        if (i == 0) float_attr(k, n, "alpha", 1), k->attr[0].has_i = 1; /* two values */
        if (i == 1) {
            int_attr(k, n, "alpha", 1);
            k->attr[0].has_type = 1;
            k->attr[0].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        }
        if (i == 2) attr(k, n, "")->has_i = 1;
        if (i == 3) ints_attr(k, n, "perm", 9, list);
        if (i == 4) {
            for (int j = 0; j < 300; j++) {
                onnx__attribute_proto__init(&some[j]);
                some[j].name = name;
                all[j] = &some[j];
            }
            n->attribute = all;
            n->n_attribute = 300;
        }
        static const char *const parts[] = {"another type", "another type", "no name",
                                            "list of 9 numbers", "300 attributes"};
        refused("attribute", k, i == 3 ? CTN_ESHAPE : CTN_EFORMAT, parts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),    cmocka_unit_test(test_loops),
        cmocka_unit_test(test_memory_limit), cmocka_unit_test(test_antialias),
        cmocka_unit_test(test_shared_place), cmocka_unit_test(test_missing_bytes),
        cmocka_unit_test(test_messages),     cmocka_unit_test(test_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77;
}

#endif
