/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of PyTorch: files that torch.save has written (tests/fuzz/corpus_pytorch.py), and
 * archives made here, most of them hostile. Nothing that a pickle names is called, and nothing
 * outside its archive is read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <catena/io.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "io/pytorch.h"
#include "tensor/tensor.h"

#define SAVED CTN_TESTS_DIR "/fuzz/corpus/pytorch/"

/* ---- files of torch.save -------------------------------------------------------------------- */

/* Assert name, type and shape of array i, and its values as doubles. */
static void assert_array(const ctn_weights *w, const char *name, ctn_dtype dtype, int ndim,
                         const int64_t *shape, const double *values)
{
    ctn_weights_array a = {0};
    const int64_t i = ctn_weights_find(w, name);
    double found[64];
    if (i < 0) fail_msg("no array %s", name);
    OK(ctn_weights_get_array(w, i, &a));
    assert_string_equal(a.name, name);
    assert_int_equal(a.dtype, dtype);
    assert_int_equal(a.ndim, ndim);
    for (int d = 0; d < ndim; d++) assert_int_equal(a.shape[d], shape[d]);
    OK(ctn_weights_read(w, i, 0, found, a.bytes));
    const int64_t n = (int64_t)(a.bytes / ctn_dtype_size(dtype));
    for (int64_t k = 0; k < n; k++)
        if (ctn__elem_get(found, dtype, k) != values[k])
            fail_msg("%s: element %d is %g, expected %g", name, (int)k,
                     ctn__elem_get(found, dtype, k), values[k]);
}

#define VALUES(...) ((const double[]){__VA_ARGS__})

static void test_types(void **state)
{
    static const struct {
        const char *name;
        ctn_dtype dtype;
    } types[] = {{"f32", CTN_F32}, {"f64", CTN_F64}, {"f16", CTN_F16}, {"bf16", CTN_BF16},
                 {"i64", CTN_I64}, {"i32", CTN_I32}, {"u8", CTN_U8}};
    ctn_weights *w = NULL;
    (void)state;
    OK(ctn_weights_open(&w, SAVED "types.pt"));
    assert_string_equal(ctn_weights_format(w), "pytorch");
    assert_int_equal(ctn_weights_arrays(w), 8);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        assert_array(w, types[i].name, types[i].dtype, CTN_SHAPE(2, 3), VALUES(0, 1, 2, 3, 4, 5));
    assert_array(w, "bool", CTN_BOOL, CTN_SHAPE(2, 3), VALUES(0, 1, 1, 1, 1, 1));
    float f[6];
    OK(ctn_weights_read(w, ctn_weights_find(w, "bf16"), CTN_F32, f, sizeof f));
    assert_true(f[5] == 5);
    assert_fails(ctn_weights_read(w, ctn_weights_find(w, "i64"), CTN_F32, f, sizeof f), CTN_EDTYPE,
                 "'i64' is i64, which cannot be converted to f32");
    assert_fails(ctn_weights_read(w, 0, 0, f, 5), CTN_EARG, "needs 24 bytes, got 5");
    assert_fails(ctn_weights_read(w, 8, 0, f, 24), CTN_EARG, "array 8 of a file with 8");
    assert_int_equal(ctn_weights_find(w, "none"), -1);
    ctn_weights_free(w);
}

static void test_views(void **state)
{
    ctn_weights *w = NULL;
    double count[24], transposed[24];
    (void)state;
    for (int i = 0; i < 24; i++) {
        const int row = i / 4, column = i % 4;
        count[i] = i;
        transposed[i] = 6 * column + row;
    }
    OK(ctn_weights_open(&w, SAVED "views.pt"));
    assert_array(w, "whole", CTN_F32, CTN_SHAPE(4, 6), count);
    assert_array(w, "transposed", CTN_F32, CTN_SHAPE(6, 4), transposed);
    assert_array(w, "part", CTN_F32, CTN_SHAPE(2, 3), VALUES(8, 9, 10, 14, 15, 16));
    assert_array(w, "column", CTN_F32, CTN_SHAPE(4), VALUES(1, 7, 13, 19));
    assert_array(w, "steps", CTN_F32, CTN_SHAPE(2, 2), VALUES(0, 3, 12, 15));
    assert_array(w, "expanded", CTN_F32, CTN_SHAPE(2, 3), VALUES(0, 1, 2, 0, 1, 2));
    assert_array(w, "scalar", CTN_F32, CTN_SCALAR_SHAPE, VALUES(7));
    assert_array(w, "empty", CTN_F32, CTN_SHAPE(0, 3), count);
    assert_array(w, "parameter", CTN_F32, CTN_SHAPE(6), count);
    ctn_weights_free(w);
}

static void test_dictionaries(void **state)
{
    ctn_weights *w = NULL;
    (void)state;
    OK(ctn_weights_open(&w, SAVED "training.pt"));
    assert_int_equal(ctn_weights_arrays(w), 2);
    assert_array(w, "fc.weight", CTN_F32, CTN_SHAPE(2, 3), VALUES(0, 1, 2, 3, 4, 5));
    assert_array(w, "fc.bias", CTN_F32, CTN_SHAPE(2), VALUES(0, 1));
    ctn_weights_free(w);
    OK(ctn_weights_open(&w, SAVED "nested.pt"));
    assert_int_equal(ctn_weights_arrays(w), 6);
    assert_array(w, "encoder.a", CTN_F32, CTN_SHAPE(6), VALUES(0, 1, 2, 3, 4, 5));
    assert_array(w, "encoder.layers.1", CTN_F32, CTN_SHAPE(6), VALUES(12, 13, 14, 15, 16, 17));
    assert_array(w, "3", CTN_F32, CTN_SHAPE(6), VALUES(18, 19, 20, 21, 22, 23));
    assert_array(w, "decoder.fc.bias", CTN_F32, CTN_SHAPE(2), VALUES(0, 1));
    ctn_weights_free(w);
    for (int i = 4; i <= 5; i++) {
        char path[512];
        snprintf(path, sizeof path, SAVED "protocol%d.pt", i);
        OK(ctn_weights_open(&w, path));
        assert_array(w, "fc.bias", CTN_F32, CTN_SHAPE(2), VALUES(-i, 1 - i));
        ctn_weights_free(w);
    }
}

static void test_refused(void **state)
{
    ctn_weights *w = NULL;
    (void)state;
    assert_fails(ctn_weights_open(&w, SAVED "int8.pt"), CTN_EDTYPE, "torch CharStorage");
    assert_fails(ctn_weights_open(&w, SAVED "sparse.pt"), CTN_EFORMAT, "to_dense()");
    assert_fails(ctn_weights_open(&w, SAVED "module.pt"), CTN_EFORMAT,
                 "an object of class 'torch.nn.modules.linear Linear'; save model.state_dict()");
    assert_fails(ctn_weights_open(&w, SAVED "legacy.pt"), CTN_EFORMAT,
                 "torch.save(torch.load(sys.argv[1]");
    assert_fails(ctn_weights_open(&w, SAVED "script.pt"), CTN_EFORMAT,
                 "torch.save(torch.jit.load(sys.argv[1]");
    assert_fails(ctn_weights_open(&w, SAVED "none.pt"), CTN_EIO, "none.pt");
    assert_null(w);
}

/* ---- archives made here --------------------------------------------------------------------- */

typedef struct {
    unsigned char p[1 << 16], list[1 << 12];
    size_t n, listed;
    int entries;
} archive;

static void number(unsigned char *p, int bytes, uint64_t n)
{
    for (int i = 0; i < bytes; i++) p[i] = (unsigned char)(n >> 8 * i);
}

static void append(archive *a, const void *data, size_t n)
{
    if (n) memcpy(a->p + a->n, data, n);
    a->n += n;
}

static void append_line(archive *a, const void *data, size_t n)
{
    memcpy(a->list + a->listed, data, n);
    a->listed += n;
}

/* wide: the numbers are in ZIP64 fields. */
static void add(archive *a, const char *name, const void *data, size_t n, bool wide)
{
    unsigned char head[30] = "PK\3\4", line[46] = "PK\1\2", extra[28] = {1, 0, 24, 0};
    const size_t k = strlen(name);
    number(head + 26, 2, k);
    number(line + 20, 4, wide ? UINT32_MAX : n);
    number(line + 24, 4, wide ? UINT32_MAX : n);
    number(line + 28, 2, k);
    number(line + 30, 2, wide ? sizeof extra : 0);
    number(line + 42, 4, wide ? UINT32_MAX : a->n);
    number(extra + 4, 8, n);
    number(extra + 12, 8, n);
    number(extra + 20, 8, a->n);
    append_line(a, line, sizeof line);
    append_line(a, name, k);
    if (wide) append_line(a, extra, sizeof extra);
    append(a, head, sizeof head);
    append(a, name, k);
    append(a, data, n);
    a->entries++;
}

static void finish(archive *a, bool wide)
{
    unsigned char end[22] = "PK\5\6", end64[56] = "PK\6\6", locator[20] = "PK\6\7";
    const size_t at = a->n;
    append(a, a->list, a->listed);
    number(end64 + 32, 8, (uint64_t)a->entries);
    number(end64 + 40, 8, a->listed);
    number(end64 + 48, 8, at);
    number(locator + 8, 8, a->n);
    if (wide) {
        append(a, end64, sizeof end64);
        append(a, locator, sizeof locator);
    }
    number(end + 10, 2, wide ? UINT16_MAX : (uint64_t)a->entries);
    number(end + 12, 4, wide ? UINT32_MAX : a->listed);
    number(end + 16, 4, wide ? UINT32_MAX : at);
    append(a, end, sizeof end);
}

static ctn_status parse(ctn__pt_file **f, const archive *a)
{
    return ctn__pt_parse(f, "made", a->p, a->n);
}

/* The parts of a pickle, as strings of C with their lengths. */
typedef struct {
    char p[1 << 15];
    size_t n;
} pickle;
#define ADD(pickle, text) put(pickle, text, sizeof(text) - 1)
static void put(pickle *p, const char *text, size_t n)
{
    memcpy(p->p + p->n, text, n);
    p->n += n;
}
static void put_text(pickle *p, const char *text)
{
    unsigned char length[4];
    number(length, 4, strlen(text));
    ADD(p, "X");
    put(p, (const char *)length, 4);
    put(p, text, strlen(text));
}
static void put_int(pickle *p, int64_t x)
{
    unsigned char eight[8];
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    number(eight, 8, bits);
    ADD(p, "\x8a\x08");
    put(p, (const char *)eight, 8);
}
/* A call that rebuilds a tensor of two dimensions on storage `key` of this type. */
static void put_typed(pickle *p, const char *type, const char *key, int64_t offset,
                      const int64_t size[2], const int64_t stride[2])
{
    ADD(p, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_text(p, "storage");
    ADD(p, "ctorch\n");
    put(p, type, strlen(type));
    ADD(p, "\n");
    put_text(p, key);
    put_text(p, "cpu");
    put_int(p, 4);
    ADD(p, "tQ");
    put_int(p, offset);
    for (int i = 0; i < 2; i++) {
        const int64_t *x = i == 0 ? size : stride;
        put_int(p, x[0]);
        put_int(p, x[1]);
        ADD(p, "\x86");
    }
    ADD(p, "\x89}tR");
}
static void put_tensor(pickle *p, const char *key, int64_t offset, const int64_t size[2],
                       const int64_t stride[2])
{
    put_typed(p, "FloatStorage", key, offset, size, stride);
}

/* An archive with this pickle and a storage of the floats 1, 2, 3, 4. */
static void make(archive *a, const pickle *p)
{
    const float values[4] = {1, 2, 3, 4};
    a->n = a->listed = 0;
    a->entries = 0;
    add(a, "x/data.pkl", p->p, p->n, false);
    add(a, "x/data/0", values, sizeof values, false);
    finish(a, false);
}

static ctn_status read_pickle(const pickle *p, ctn__pt_file **f)
{
    static archive a;
    make(&a, p);
    return parse(f, &a);
}

static void refuse(const pickle *p, ctn_status st, const char *part)
{
    ctn__pt_file *f = NULL;
    assert_fails(read_pickle(p, &f), st, part);
    assert_null(f);
}

#define SIZES(a, b) ((const int64_t[]){a, b})

static void begin_dict(pickle *p)
{
    p->n = 0;
    ADD(p, "\x80\x02}");
    put_text(p, "w");
}

static void test_made(void **state)
{
    static pickle p;
    ctn__pt_file *f = NULL;
    float values[4] = {0};
    (void)state;
    begin_dict(&p);
    put_tensor(&p, "0", 0, SIZES(2, 2), SIZES(1, 2));
    ADD(&p, "s.");
    OK(read_pickle(&p, &f));
    assert_int_equal(ctn__pt_count(f), 1);
    OK(ctn__pt_read(f, ctn__pt_at(f, 0), values));
    assert_true(values[0] == 1 && values[1] == 3 && values[2] == 2 && values[3] == 4);
    ctn__pt_close(f);
    unsigned char byte = 0; /* an array of one byte */
    begin_dict(&p);
    put_typed(&p, "ByteStorage", "0", 3, SIZES(1, 1), SIZES(1, 1));
    ADD(&p, "s.");
    OK(read_pickle(&p, &f));
    OK(ctn__pt_read(f, ctn__pt_at(f, 0), &byte));
    assert_int_equal(byte, 0x3f);
    ctn__pt_close(f);
}

static void test_never_calls(void **state)
{
    static pickle p;
    ctn__pt_file *f = NULL;
    (void)state;
    unlink("called");
    p.n = 0;
    ADD(&p, "\x80\x02}");
    put_text(&p, "evil");
    ADD(&p, "cos\nsystem\n");
    put_text(&p, "touch called");
    ADD(&p, "\x85Rs"); /* os.system("touch called") as the value of a key */
    put_text(&p, "evil2");
    ADD(&p, "\x8c\x08"
            "builtins\x8c\x04"
            "eval\x93");
    put_text(&p, "open('called', 'w')");
    ADD(&p, "\x85\x81}bs"); /* NEWOBJ and BUILD */
    put_text(&p, "w");
    put_tensor(&p, "0", 0, SIZES(1, 4), SIZES(4, 1));
    ADD(&p, "s.");
    OK(read_pickle(&p, &f));
    assert_int_equal(ctn__pt_count(f), 1);
    assert_string_equal(ctn__pt_at(f, 0)->name, "w");
    ctn__pt_close(f);
    assert_int_equal(access("called", F_OK), -1);
    p.n = 0; /* the whole file is a call */
    ADD(&p, "\x80\x02"
            "cposix\nsystem\n");
    put_text(&p, "touch called");
    ADD(&p, "\x85R.");
    refuse(&p, CTN_EFORMAT, "found no tensors in dictionaries or lists, but an object of class");
    assert_int_equal(access("called", F_OK), -1);
}

static void test_hostile_tensors(void **state)
{
    static const struct {
        const char *key;
        int64_t offset, size[2], stride[2];
        const char *message;
    } cases[] = {
        {"0", 0, {2, 3}, {3, 1}, "goes beyond the end of its storage"},
        {"0", 3, {1, 2}, {2, 1}, "goes beyond the end of its storage"},
        {"0", 5, {1, 1}, {1, 1}, "goes beyond the end of its storage"},
        {"0", 0, {2, 2}, {INT64_MAX, 1}, "goes beyond the end of its storage"},
        {"0", 0, {INT64_MAX, INT64_MAX}, {1, 1}, "its size overflows"},
        {"0", 0, {INT64_MAX, 0}, {1, INT64_MAX}, "its size overflows"},
        {"0", 0, {(1 << 22) + 1, 1}, {0, 1}, "is larger than its storage"},
        {"0", 0, {INT64_C(1) << 33, 1}, {0, 1}, "is larger than its storage"},
        {"0", 0, {-1, 2}, {2, 1}, "its offset, sizes or strides"},
        {"0", -1, {1, 2}, {2, 1}, "its offset, sizes or strides"},
        {"0", 0, {1, 2}, {2, -1}, "its offset, sizes or strides"},
        {"1", 0, {1, 2}, {2, 1}, "the archive has no storage 'x/data/1'"},
        {"../../etc/passwd", 0, {1, 2}, {2, 1}, "the archive has no storage"},
        {"/etc/passwd", 0, {1, 2}, {2, 1}, "the archive has no storage"},
    };
    static pickle p;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_dict(&p);
        put_tensor(&p, cases[i].key, cases[i].offset, cases[i].size, cases[i].stride);
        ADD(&p, "s.");
        refuse(&p, CTN_EFORMAT, cases[i].message);
    }
    begin_dict(&p);
    ADD(&p, "ctorch._utils\n_rebuild_tensor_v2\n)Rs.");
    refuse(&p, CTN_EFORMAT, "its offset, sizes or strides");
    begin_dict(&p);
    put_tensor(&p, "0", 0, SIZES(1, 4), SIZES(4, 1));
    put_text(&p, "w");
    ADD(&p, "K\x01s.");
    refuse(&p, CTN_EFORMAT, "does not end with one value");
    begin_dict(&p);
    put_tensor(&p, "0", 0, SIZES(1, 4), SIZES(4, 1));
    ADD(&p, "s");
    put_text(&p, "w");
    put_tensor(&p, "0", 0, SIZES(1, 4), SIZES(4, 1));
    ADD(&p, "s.");
    refuse(&p, CTN_EFORMAT, "'w': the name appears twice");
}

static void test_hostile_pickles(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        ctn_status st;
        const char *message;
    } cases[] = {
#define CASE(text, st, message) {text, sizeof(text) - 1, st, message}
        CASE("", CTN_EFORMAT, "the pickle has no end"),
        CASE("\x80\x02", CTN_EFORMAT, "the pickle has no end"),
        CASE("\x80\x06.", CTN_EFORMAT, "a protocol after 5"),
        CASE("\x80\x02.", CTN_EFORMAT, "does not end with one value"),
        CASE("\x80\x02(.", CTN_EFORMAT, "does not end with one value"),
        CASE("\x80\x02X\xff\xff\xff\xff.", CTN_EFORMAT, "goes beyond the end"),
        CASE("\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", CTN_EFORMAT, "goes beyond the end"),
        CASE("\x80\x02\x8b\xff\xff\xff\xff.", CTN_EFORMAT, "goes beyond the end"),
        CASE("\x80\x02Nr\xff\xff\xff\xff.", CTN_EFORMAT, "the number of a memo is too large"),
        CASE("\x80\x02h\x07.", CTN_EFORMAT, "there is no such memo"),
        CASE("\x80\x02q\x00.", CTN_EFORMAT, "the stack is empty"),
        CASE("\x80\x02t.", CTN_EFORMAT, "there is no mark"),
        CASE("\x80\x02(N0"
             "0.",
             CTN_EFORMAT, "the stack is empty"),
        CASE("\x80\x02N(\x86.", CTN_EFORMAT, "the stack has too few values"),
        CASE("\x80\x02}Ns.", CTN_EFORMAT, "the stack has too few values"),
        CASE("\x80\x02}(Nu.", CTN_EFORMAT, "a key has no value"),
        CASE("\x80\x02(Nd.", CTN_EFORMAT, "a key has no value"),
        CASE("\x80\x02)Na.", CTN_EFORMAT, "not a list"),
        CASE("\x80\x02]NNs.", CTN_EFORMAT, "not a dictionary"),
        CASE("\x80\x02"
             "cos\nsystem",
             CTN_EFORMAT, "a name to import has no end"),
        CASE("\x80\x02NN\x93.", CTN_EFORMAT, "a name to import is not a short string"),
        CASE("I1\n.", CTN_EFORMAT, "opcode 0x49 at byte 40 is not one that torch.save writes"),
        CASE("\x80\x02"
             "ios\nsystem\n.",
             CTN_EFORMAT, "opcode 0x69"),
        CASE("\x80\x02\x82\x01.", CTN_EFORMAT, "opcode 0x82"),
        CASE("\x80\x05\x97.", CTN_EFORMAT, "opcode 0x97"),
        CASE("\x80\x02N.", CTN_EFORMAT, "found no tensors"),
        CASE("\x80\x02}.", CTN_EFORMAT, "found no tensors"),
        /* a dictionary and a list that contain themselves */
        CASE("\x80\x02}q\x00K\x01h\x00s.", CTN_EFORMAT, "nested too deeply"),
        CASE("\x80\x02]q\x00(h\x00h\x00h\x00"
             "e.",
             CTN_EFORMAT, "nested too deeply"),
#undef CASE
    };
    static pickle p;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        p.n = 0;
        put(&p, cases[i].text, cases[i].n);
        refuse(&p, cases[i].st, cases[i].message);
    }
}

/* List i has list i - 1 twice; list 0 is on the stack and has memo 0. */
static void put_doublings(pickle *p)
{
    for (int i = 1; i < 60; i++) {
        const char list[] = {'0', ']',           '(', 'h', (char)(i - 1),
                             'h', (char)(i - 1), 'e', 'q', (char)i};
        put(p, list, sizeof list);
    }
}

/* Structures that are small as a pickle and enormous when they are written out. */
static void test_bombs(void **state)
{
    static pickle p;
    (void)state;
    p.n = 0; /* 10000 lists inside each other */
    for (int i = 0; i < 10000; i++) ADD(&p, "]");
    for (int i = 1; i < 10000; i++) ADD(&p, "a");
    ADD(&p, ".");
    refuse(&p, CTN_EFORMAT, "nested too deeply");
    p.n = 0; /* 2^59 empty lists */
    ADD(&p, "]q\0");
    put_doublings(&p);
    ADD(&p, ".");
    refuse(&p, CTN_EFORMAT, "found no tensors");
    p.n = 0; /* the same with a tensor inside */
    ADD(&p, "](");
    put_tensor(&p, "0", 0, SIZES(1, 4), SIZES(4, 1));
    ADD(&p, "eq\0");
    put_doublings(&p);
    ADD(&p, ".");
    refuse(&p, CTN_EFORMAT, "the same dictionaries or lists occur too many times");
    p.n = 0; /* a long list with one tensor, a thousand times */
    ADD(&p, "\x80\x02(](");
    for (int i = 0; i < 10000; i++) ADD(&p, "N");
    put_tensor(&p, "0", 0, SIZES(1, 4), SIZES(4, 1));
    ADD(&p, "eq\0");
    for (int i = 1; i < 1000; i++) ADD(&p, "h\0");
    ADD(&p, "l.");
    refuse(&p, CTN_EFORMAT, "the same dictionaries or lists occur too many times");
}

/* A few names for the same tensors are fine. */
static void test_shared(void **state)
{
    static pickle p;
    ctn__pt_file *f = NULL;
    (void)state;
    p.n = 0;
    ADD(&p, "\x80\x02}(");
    put_text(&p, "model_a");
    ADD(&p, "}q\0");
    put_text(&p, "w");
    put_tensor(&p, "0", 0, SIZES(1, 4), SIZES(4, 1));
    ADD(&p, "s");
    for (int i = 0; i < 20; i++) {
        put_text(&p, (const char[]){'m', (char)('b' + i), 0});
        ADD(&p, "h\0");
    }
    ADD(&p, "u.");
    OK(read_pickle(&p, &f));
    assert_int_equal(ctn__pt_count(f), 21);
    assert_string_equal(ctn__pt_at(f, 20)->name, "mu.w");
    ctn__pt_close(f);
}

/* ---- archives ------------------------------------------------------------------------------- */

static void one_tensor(pickle *p)
{
    begin_dict(p);
    put_tensor(p, "0", 0, SIZES(1, 4), SIZES(4, 1));
    ADD(p, "s.");
}

static void test_archives(void **state)
{
    static archive a;
    static pickle p;
    const unsigned char big[16] = {0x3f, 0x80, 0, 0, 0x40, 0, 0, 0, 0x40, 0x40, 0, 0, 0x40, 0x80};
    float values[4] = {0};
    ctn__pt_file *f = NULL;
    (void)state;
    one_tensor(&p);
    add(&a, "archive/data.pkl", p.p, p.n, true); /* ZIP64, big-endian, with a comment */
    add(&a, "archive/byteorder", "big", 3, true);
    add(&a, "archive/data/0", big, sizeof big, true);
    finish(&a, true);
    number(a.p + a.n - 2, 2, 5);
    append(&a, "PK\5\6!", 5);
    OK(parse(&f, &a));
    OK(ctn__pt_read(f, ctn__pt_at(f, 0), values));
    assert_true(values[0] == 1 && values[1] == 2 && values[2] == 3 && values[3] == 4);
    ctn__pt_close(f);
    for (size_t n = 0; n < a.n; n++) { /* every truncated file is refused */
        unsigned char *exact = malloc(n + 1);
        assert_non_null(exact);
        memcpy(exact, a.p, n);
        assert_fails(ctn__pt_parse(&f, "made", exact, n), CTN_EFORMAT, "made");
        free(exact);
    }
    make(&a, &p);
    a.p[a.n - 22 - a.listed + 10] = 8; /* the method of the first entry */
    assert_fails(parse(&f, &a), CTN_EFORMAT, "'x/data.pkl' is compressed");
    make(&a, &p);
    a.p[a.n - 22 - 46 - strlen("x/data/0") + 8] = 1; /* flags of the second */
    assert_fails(parse(&f, &a), CTN_EFORMAT, "'x/data/0' is encrypted");
    make(&a, &p);
    number(a.p + a.n - 22 + 10, 2, 3);
    assert_fails(parse(&f, &a), CTN_EFORMAT, "the directory has 2 entries, but 3 are announced");
    make(&a, &p);
    number(a.p + a.n - 22 - 46 - strlen("x/data/0") + 42, 4, 5); /* not a local header */
    assert_fails(parse(&f, &a), CTN_EFORMAT, "'x/data/0' is said to be at byte 5");
    make(&a, &p);
    number(a.p + a.n - 22 - 46 - strlen("x/data/0") + 20, 4, 5000);
    number(a.p + a.n - 22 - 46 - strlen("x/data/0") + 24, 4, 5000);
    assert_fails(parse(&f, &a), CTN_EFORMAT, "overlaps the directory");
    a.n = a.listed = 0;
    a.entries = 0;
    add(&a, "x/other", "", 0, false);
    finish(&a, false);
    assert_fails(parse(&f, &a), CTN_EFORMAT, "not a checkpoint of PyTorch");
}

static void test_no_memory(void **state)
{
    ctn_status st = CTN_ENOMEM;
    (void)state;
    for (int left = 0; st == CTN_ENOMEM; left++) {
        failing fail = {.left = left};
        ctn_weights *w = NULL;
        assert_true(left < 1000);
        ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &fail});
        st = ctn_weights_open(&w, SAVED "training.pt");
        ctn_weights_free(w);
        ctn_set_allocator(NULL);
        assert_int_equal(fail.live, 0);
        ctn_error_clear();
    }
    assert_int_equal(st, CTN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_dictionaries),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_made),
        cmocka_unit_test(test_never_calls),
        cmocka_unit_test(test_hostile_tensors),
        cmocka_unit_test(test_hostile_pickles),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_archives),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
