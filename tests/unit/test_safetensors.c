/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors files: round trip of every type, exact bytes, a table of hostile headers that must
 * each be refused with a specific message, every truncation and every damaged byte of a valid
 * file, atomic replacement, an index of several files, a failing allocator. With CATENA_DATA, also
 * the weights of a published ResNet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "io/safetensors.h"
#include "io/safetensors_json.h"

#ifndef CTN_HAVE_YYJSON

static void test_without_yyjson(void **state)
{
    (void)state;
    ctn__st_file *f = NULL;
    assert_fails(ctn__st_parse(&f, "t", "\2\0\0\0\0\0\0\0{}", 10), CTN_EUNSUPPORTED, "yyjson");
    ctn__st_writer *w = NULL;
    OK(ctn__st_begin(&w, "none.safetensors"));
    assert_fails(ctn__st_finish(w), CTN_EUNSUPPORTED, "yyjson");
    ctn__st_writer_free(w);
    assert_int_equal(access("none.safetensors", F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_yyjson)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static size_t read_file(const char *path, unsigned char *p, size_t room)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(p, 1, room, f);
    fclose(f);
    return n;
}

static const float weight[6] = {1, -2, 3.5f, 0, 1e-40f, 1e30f};
static const double wide[2] = {3.25, -1};
static const uint16_t half[3] = {0x3c00, 0xbc00, 1};
static const int64_t ids[1] = {INT64_MIN};
static const uint8_t bytes[5] = {0, 1, 2, 254, 255};

static const struct {
    const char *name;
    ctn_dtype dtype;
    int ndim;
    int64_t shape[2];
    const void *data;
} sample[] = {{"b", CTN_U8, 1, {5}, bytes},
              {"w", CTN_F32, 2, {2, 3}, weight},
              {"caf\xc3\xa9 \"q\"\n", CTN_BF16, 1, {3}, half},
              {"half", CTN_F16, 2, {3, 1}, half},
              {"scalar", CTN_I64, 0, {0}, ids},
              {"empty", CTN_I32, 2, {0, 4}, NULL},
              {"wide", CTN_F64, 1, {2}, wide},
              {"flags", CTN_BOOL, 1, {2}, bytes}};
enum { SAMPLE = sizeof sample / sizeof *sample };

static ctn_status write_sample(const char *path)
{
    ctn_status st = CTN_OK;
    ctn__st_writer *w = NULL;
    CTN_TRY_GOTO(st, done, ctn__st_begin(&w, path));
    for (int i = 0; i < SAMPLE; i++)
        CTN_TRY_GOTO(st, done,
                     ctn__st_add(w, sample[i].name, sample[i].dtype, sample[i].ndim,
                                 sample[i].shape));
    CTN_TRY_GOTO(st, done, ctn__st_add_metadata(w, "format", "pt"));
    CTN_TRY_GOTO(st, done, ctn__st_add_metadata(w, "epoch", "12"));
    for (int i = SAMPLE - 1; i >= 0; i--) /* in any order */
        CTN_TRY_GOTO(st, done, ctn__st_put(w, sample[i].name, sample[i].data));
    CTN_TRY_GOTO(st, done, ctn__st_finish(w));
done:
    ctn__st_writer_free(w);
    return st;
}

static void assert_array(const ctn__st_file *f, const char *name, ctn_dtype dtype, int ndim,
                         const int64_t *shape, const void *data, size_t n)
{
    const ctn__st_array *a = ctn__st_find(f, name);
    assert_non_null(a);
    assert_string_equal(a->name, name);
    assert_int_equal(a->dtype, dtype);
    assert_int_equal(a->ndim, ndim);
    for (int d = 0; d < ndim; d++) assert_int_equal(a->shape[d], shape[d]);
    assert_int_equal(a->bytes, n);
    unsigned char got[64] = {0};
    assert_true(n < sizeof got);
    OK(ctn__st_read(f, a, got));
    if (n) assert_memory_equal(got, data, n);
}

static void test_round_trip(void **state)
{
    (void)state;
    ctn__st_file *f = NULL;
    OK(write_sample("a.safetensors"));
    OK(ctn__st_open(&f, "a.safetensors"));
    assert_int_equal(ctn__st_count(f), 8);
    assert_array(f, "b", CTN_U8, 1, (int64_t[]){5}, bytes, 5);
    assert_array(f, "w", CTN_F32, 2, (int64_t[]){2, 3}, weight, 24);
    assert_array(f, "caf\xc3\xa9 \"q\"\n", CTN_BF16, 1, (int64_t[]){3}, half, 6);
    assert_array(f, "half", CTN_F16, 2, (int64_t[]){3, 1}, half, 6);
    assert_array(f, "scalar", CTN_I64, 0, NULL, ids, 8);
    assert_array(f, "empty", CTN_I32, 2, (int64_t[]){0, 4}, NULL, 0);
    assert_array(f, "wide", CTN_F64, 1, (int64_t[]){2}, wide, 16);
    assert_array(f, "flags", CTN_BOOL, 1, (int64_t[]){2}, bytes, 2);
    assert_null(ctn__st_find(f, "absent"));
    assert_null(ctn__st_at(f, 8));
    size_t at = 0; /* large elements first, so that all are aligned when mapped */
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(at % ctn_dtype_size(ctn__st_at(f, i)->dtype), 0);
        at += ctn__st_at(f, i)->bytes;
    }
    assert_string_equal(ctn__st_metadata(f, "format"), "pt");
    assert_null(ctn__st_metadata(f, "absent"));
    assert_int_equal(ctn__st_metadata_count(f), 2);
    const char *key = NULL;
    assert_string_equal(ctn__st_metadata_at(f, 0, &key), "12");
    assert_string_equal(key, "epoch");
    ctn__st_close(f);
    ctn__st_close(NULL);

    /* The same input gives the same bytes. */
    static unsigned char a[4096], b[4096];
    OK(write_sample("b.safetensors"));
    size_t n = read_file("a.safetensors", a, sizeof a);
    assert_int_equal(read_file("b.safetensors", b, sizeof b), n);
    assert_memory_equal(a, b, n);
}

static void test_exact_bytes(void **state)
{
    (void)state;
    static const char want[] = "\120\0\0\0\0\0\0\0"
                               "{\"__metadata__\":{\"k\":\"v\"},"
                               "\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}"
                               "  \7\10";
    ctn__st_writer *w = NULL;
    unsigned char got[200];
    OK(ctn__st_begin(&w, "exact.safetensors"));
    OK(ctn__st_add(w, "x", CTN_U8, 1, (int64_t[]){2}));
    OK(ctn__st_add_metadata(w, "k", "v"));
    assert_fails(ctn__st_finish(w), CTN_ESTATE, "'x' was never put");
    OK(ctn__st_put(w, "x", "\7\10"));
    assert_fails(ctn__st_put(w, "x", "\7\10"), CTN_ESTATE, "already put");
    assert_fails(ctn__st_add(w, "y", CTN_U8, 0, NULL), CTN_ESTATE, "after the first put");
    OK(ctn__st_finish(w));
    assert_fails(ctn__st_finish(w), CTN_ESTATE, "already finished");
    ctn__st_writer_free(w);
    size_t n = read_file("exact.safetensors", got, sizeof got);
    assert_int_equal(n, sizeof want - 1);
    assert_memory_equal(got, want, n);
}

static void test_empty(void **state)
{
    (void)state;
    ctn__st_writer *w = NULL;
    ctn__st_file *f = NULL;
    OK(ctn__st_begin(&w, "empty.safetensors"));
    OK(ctn__st_finish(w));
    ctn__st_writer_free(w);
    OK(ctn__st_open(&f, "empty.safetensors"));
    assert_int_equal(ctn__st_count(f), 0);
    assert_null(ctn__st_find(f, "x"));
    assert_null(ctn__st_metadata(f, "x"));
    ctn__st_close(f);
}

/* Writes json with its true length in front and `data` zero bytes after it. */
static ctn_status parse(ctn__st_file **f, const char *json, size_t data)
{
    static unsigned char p[4096];
    size_t n = strlen(json);
    assert_true(8 + n + data <= sizeof p);
    memset(p, 0, sizeof p);
    for (int i = 0; i < 8; i++) p[i] = (unsigned char)(n >> 8 * i);
    snprintf((char *)p + 8, sizeof p - 8, "%s", json);
    return ctn__st_parse(f, "t", p, 8 + n + data);
}

#define ENTRY(dtype, shape, offsets) \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE(dtype, shape, offsets) "{\"x\":" ENTRY(dtype, shape, offsets) "}"

static void test_hostile_headers(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        size_t data;
        ctn_status st;
        const char *part; /* of the message */
    } cases[] = {
        {"", 0, CTN_EFORMAT, "start with '{'"},
        {" {}", 0, CTN_EFORMAT, "start with '{'"},
        {"[]", 0, CTN_EFORMAT, "start with '{'"},
        {"{", 0, CTN_EFORMAT, "not JSON"},
        {"{}}", 0, CTN_EFORMAT, "not JSON"},
        {"{\"x\":1,}", 0, CTN_EFORMAT, "not JSON"},
        {"{\"\xff\":1}", 0, CTN_EFORMAT, "not JSON"},
        {"{}", 1, CTN_EFORMAT, "1 bytes of data, but the arrays cover 0"},
        {"{\"x\":1}", 0, CTN_EFORMAT, "exactly dtype"},
        {"{\"x\":[]}", 0, CTN_EFORMAT, "exactly dtype"},
        {"{\"x\":{}}", 0, CTN_EFORMAT, "exactly dtype"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, CTN_EFORMAT, "exactly dtype"},
        {"{\"x\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
         CTN_EFORMAT, "exactly dtype"},
        {"{\"x\":{\"dtype\":\"U8\",\"dtype\":\"F32\",\"shape\":[1]}}", 1, CTN_EFORMAT,
         "exactly dtype"},
        {"{\"a\\u0000b\":" ENTRY("U8", "[1]", "[0,1]") "}", 1, CTN_EFORMAT, "U+0000"},
        {ONE("f32", "[1]", "[0,4]"), 4, CTN_EFORMAT, "dtype of 'x' is f32"},
        {ONE("", "[1]", "[0,4]"), 4, CTN_EFORMAT, "dtype of 'x'"},
        {ONE("F32\\u0000", "[1]", "[0,4]"), 4, CTN_EFORMAT, "not a plain string"},
        {"{\"x\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, CTN_EFORMAT,
         "not a plain string"},
        {ONE("I16", "[1]", "[0,2]"), 2, CTN_EDTYPE, "type I16"},
        {ONE("F8_E4M3", "[1]", "[0,1]"), 1, CTN_EDTYPE, "type F8_E4M3"},
        {ONE("U8", "1", "[0,1]"), 1, CTN_EFORMAT, "shape of 'x' is not an array"},
        {ONE("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, CTN_EFORMAT, "at most 8 sizes"},
        {ONE("U8", "[-1]", "[0,1]"), 1, CTN_EFORMAT, "not an integer >= 0"},
        {ONE("U8", "[1.0]", "[0,1]"), 1, CTN_EFORMAT, "not an integer >= 0"},
        {ONE("U8", "[\"1\"]", "[0,1]"), 1, CTN_EFORMAT, "not an integer >= 0"},
        {ONE("U8", "[18446744073709551615]", "[0,1]"), 1, CTN_EFORMAT, "not an integer >= 0"},
        {ONE("U8", "[1e3]", "[0,1000]"), 1000, CTN_EFORMAT, "not an integer >= 0"},
        {ONE("F32", "[4294967296,4294967296]", "[0,0]"), 0, CTN_EFORMAT, "overflows"},
        {ONE("F64", "[2305843009213693952]", "[0,0]"), 0, CTN_EFORMAT, "overflows"},
        {ONE("F32", "[0,4294967296,4294967296]", "[0,0]"), 0, CTN_EFORMAT, "overflows"},
        {ONE("U8", "[1]", "1"), 1, CTN_EFORMAT, "not two integers"},
        {ONE("U8", "[1]", "[0]"), 1, CTN_EFORMAT, "not two integers"},
        {ONE("U8", "[1]", "[0,1,2]"), 1, CTN_EFORMAT, "not two integers"},
        {ONE("U8", "[1]", "[-1,0]"), 1, CTN_EFORMAT, "not two integers"},
        {ONE("U8", "[1]", "{\"a\":0,\"b\":1}"), 1, CTN_EFORMAT, "not two integers"},
        {ONE("U8", "[2]", "[0,1]"), 1, CTN_EFORMAT, "its shape needs 2 bytes"},
        {ONE("F32", "[1]", "[0,1]"), 1, CTN_EFORMAT, "its shape needs 4 bytes"},
        {ONE("U8", "[1]", "[1,0]"), 1, CTN_EFORMAT, "1 to 0"},
        {ONE("U8", "[1]", "[1,2]"), 2, CTN_EFORMAT, "expected to begin at 0"},
        {ONE("U8", "[2]", "[0,2]"), 1, CTN_EFORMAT, "end within 1 bytes"},
        {ONE("U8", "[1]", "[18446744073709551615,18446744073709551615]"), 1, CTN_EFORMAT,
         "its shape needs 1 bytes"},
        {ONE("U8", "[0]", "[5,5]"), 0, CTN_EFORMAT, "expected to begin at 0"},
        {ONE("U8", "[1]", "[0,1]"), 2, CTN_EFORMAT, "2 bytes of data, but the arrays cover 1"},
        {"{\"x\":" ENTRY("U8", "[2]", "[0,2]") ",\"y\":" ENTRY("U8", "[2]", "[1,3]") "}", 3,
         CTN_EFORMAT, "expected to begin at 2"},
        {"{\"x\":" ENTRY("U8", "[2]", "[0,2]") ",\"y\":" ENTRY("U8", "[2]", "[0,2]") "}", 2,
         CTN_EFORMAT, "expected to begin at 2"},
        {"{\"x\":" ENTRY("U8", "[1]", "[0,1]") ",\"y\":" ENTRY("U8", "[1]", "[2,3]") "}", 3,
         CTN_EFORMAT, "expected to begin at 1"},
        {"{\"x\":" ENTRY("U8", "[1]", "[0,1]") ",\"x\":" ENTRY("U8", "[1]", "[1,2]") "}", 2,
         CTN_EFORMAT, "'x' appears twice"},
        {"{\"__metadata__\":7}", 0, CTN_EFORMAT, "__metadata__ is not an object"},
        {"{\"__metadata__\":{\"a\":1}}", 0, CTN_EFORMAT, "__metadata__ entry 0"},
        {"{\"__metadata__\":{\"a\":\"\\u0000\"}}", 0, CTN_EFORMAT, "__metadata__ entry 0"},
        {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, CTN_EFORMAT, "key 'a' appears twice"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, CTN_EFORMAT, "__metadata__ appears twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ctn__st_file *f = NULL;
        assert_fails(parse(&f, cases[i].json, cases[i].data), cases[i].st, cases[i].part);
        assert_null(f);
    }
}

static void test_odd_but_valid(void **state)
{
    (void)state;
    ctn__st_file *f = NULL;
    /* The order of the text is not that of the file; spaces at the end; an empty array in
     * between. */
    OK(parse(&f,
             "{\"b\":" ENTRY("U8", "[2]", "[4,6]") ", \"a\":" ENTRY(
                 "F32", "[]", "[0,4]") ","
                                       "\"e\":" ENTRY("F32", "[0]", "[4,4]") "}   ",
             6));
    assert_int_equal(ctn__st_count(f), 3);
    assert_string_equal(ctn__st_at(f, 0)->name, "a");
    assert_string_equal(ctn__st_at(f, 1)->name, "e");
    assert_string_equal(ctn__st_at(f, 2)->name, "b");
    assert_int_equal(ctn__st_find(f, "a")->ndim, 0);
    ctn__st_close(f);
}

static void test_hostile_length(void **state)
{
    (void)state;
    ctn__st_file *f = NULL;
    unsigned char p[16] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    assert_fails(ctn__st_parse(&f, "t", p, 7), CTN_EFORMAT, "too few");
    assert_fails(ctn__st_parse(&f, "t", p, 0), CTN_EFORMAT, "too few");
    assert_fails(ctn__st_parse(&f, "t", p, 10), CTN_EFORMAT, "header of 3 bytes in a file of 10");
    memset(p, 255, 8);
    assert_fails(ctn__st_parse(&f, "t", p, 16), CTN_EFORMAT, "18446744073709551615 bytes");
    /* A header over the limit, in a sparse file that could hold it. */
    FILE *big = fopen("big.safetensors", "wb");
    const uint64_t n = CTN__ST_HEADER_MAX + 1;
    for (int i = 0; i < 8; i++) putc((int)(n >> 8 * i & 255), big);
    assert_int_equal(fflush(big), 0);
    assert_int_equal(ftruncate(fileno(big), (off_t)n + 8), 0);
    fclose(big);
    assert_fails(ctn__st_open(&f, "big.safetensors"), CTN_EFORMAT, "at most 100000000");
    unlink("big.safetensors");
    assert_fails(ctn__st_open(&f, "absent"), CTN_EIO, "absent");
    assert_fails(ctn__st_open(&f, "."), CTN_EIO, "not a regular file");
    fclose(fopen("zero", "wb"));
    assert_fails(ctn__st_open(&f, "zero"), CTN_EFORMAT, "0 bytes are too few");
    assert_null(f);
}

/* Every truncation is refused. A damaged byte is refused or still gives arrays inside of the
 * file. */
static void test_damage(void **state)
{
    (void)state;
    static unsigned char p[4096], *q;
    OK(write_sample("a.safetensors"));
    size_t n = read_file("a.safetensors", p, sizeof p);
    ctn__st_file *f = NULL;
    for (size_t cut = 0; cut < n; cut++) {
        q = malloc(cut ? cut : 1); /* exact size, for the address sanitizer */
        memcpy(q, p, cut);
        assert_true(ctn__st_parse(&f, "t", q, cut) < 0);
        assert_true(*ctn_error_message());
        ctn_error_clear();
        free(q);
    }
    volatile unsigned char sum = 0;
    for (size_t at = 0; at < n; at++)
        for (int bit = 0; bit < 8; bit++) {
            q = malloc(n);
            memcpy(q, p, n);
            q[at] ^= (unsigned char)(1 << bit);
            if (ctn__st_parse(&f, "t", q, n) == CTN_OK) {
                for (size_t i = 0; i < ctn__st_count(f); i++) {
                    unsigned char got[4096];
                    OK(ctn__st_read(f, ctn__st_at(f, i), got));
                    sum = (unsigned char)(sum + got[0]);
                }
                ctn__st_close(f);
            }
            f = NULL;
            ctn_error_clear();
            free(q);
        }
}

/* Another process truncates the file while it is open: an error, no signal. */
static void test_shortened(void **state)
{
    (void)state;
    ctn__st_file *f = NULL;
    unsigned char got[64];
    OK(write_sample("a.safetensors"));
    OK(ctn__st_open(&f, "a.safetensors"));
    assert_int_equal(truncate("a.safetensors", 300), 0);
    assert_fails(ctn__st_read(f, ctn__st_find(f, "b"), got), CTN_EIO,
                 "safetensors: a.safetensors: became shorter");
    assert_int_equal(truncate("a.safetensors", 0), 0);
    assert_fails(ctn__st_read(f, ctn__st_at(f, 0), got), CTN_EIO, "nothing to read at byte");
    ctn__st_close(f);
    unlink("a.safetensors");
}

static void test_writer_refuses(void **state)
{
    (void)state;
    ctn__st_writer *w = NULL;
    OK(ctn__st_begin(&w, "no/such/folder/x"));
    assert_fails(ctn__st_add(w, "__metadata__", CTN_U8, 0, NULL), CTN_EARG, "__metadata__");
    assert_fails(ctn__st_add(w, "", CTN_U8, 0, NULL), CTN_EARG, "named ''");
    assert_fails(ctn__st_add(w, "x", (ctn_dtype)0, 0, NULL), CTN_EDTYPE, "dtype 0");
    assert_fails(ctn__st_add(w, "x", CTN_U8, 9, (int64_t[9]){0}), CTN_EARG, "9 dimensions");
    assert_fails(ctn__st_add(w, "x", CTN_U8, 1, (int64_t[]){-1}), CTN_EARG, "size -1");
    assert_fails(ctn__st_add(w, "x", CTN_F32, 2, (int64_t[]){INT64_MAX, 9}), CTN_EARG, "'x'");
    OK(ctn__st_add(w, "x", CTN_U8, 0, NULL));
    OK(ctn__st_add_metadata(w, "k", "v"));
    assert_fails(ctn__st_add_metadata(w, "k", "v"), CTN_EARG, "already added");
    assert_fails(ctn__st_put(w, "x", NULL), CTN_ESTATE, "has no data");
    assert_fails(ctn__st_put(w, "y", bytes), CTN_ESTATE, "'y' was not added");
    assert_fails(ctn__st_put(w, "x", bytes), CTN_EIO, "no/such/folder");
    ctn__st_writer_free(w);
    ctn__st_writer_free(NULL);

    /* Names are compared when the file is begun. */
    OK(ctn__st_begin(&w, "twice.safetensors"));
    for (int i = 0; i < 5; i++) OK(ctn__st_add(w, &"abcbd"[i], CTN_U8, 0, NULL));
    OK(ctn__st_add(w, "cbd", CTN_F32, 0, NULL));
    for (int i = 0; i < 2; i++)
        assert_fails(ctn__st_put(w, "d", bytes), CTN_EARG, "'cbd' was already added");
    assert_fails(ctn__st_finish(w), CTN_ESTATE, "was never put");
    ctn__st_writer_free(w);
    assert_int_equal(access("twice.safetensors", F_OK), -1);

    /* A name that is not UTF-8 is refused, and the existing file is kept. */
    static unsigned char a[4096], b[4096];
    OK(write_sample("kept.safetensors"));
    size_t n = read_file("kept.safetensors", a, sizeof a);
    OK(ctn__st_begin(&w, "kept.safetensors"));
    OK(ctn__st_add(w, "\xff", CTN_U8, 0, NULL));
    assert_fails(ctn__st_put(w, "\xff", bytes), CTN_EARG, "UTF-8");
    ctn__st_writer_free(w);
    assert_int_equal(read_file("kept.safetensors", b, sizeof b), n);
    assert_memory_equal(a, b, n);

    /* The target is a folder: the temporary file is removed afterwards. */
    mkdir("folder", 0777);
    char temporary[100];
    snprintf(temporary, sizeof temporary, "folder.tmp-%ld-0", (long)getpid());
    OK(ctn__st_begin(&w, "folder"));
    assert_fails(ctn__st_finish(w), CTN_EIO, "cannot rename");
    ctn__st_writer_free(w);
    assert_int_equal(access(temporary, F_OK), -1);
    rmdir("folder");
}

/* Types in the order that needs the most moves, and names that differ at their ends. */
static void test_many_arrays(void **state)
{
    (void)state;
    enum { ARRAYS = 500000 };
    ctn__st_writer *w = NULL;
    char name[64];
    OK(ctn__st_begin(&w, "many.safetensors"));
    for (int i = 0; i < ARRAYS; i++) {
        snprintf(name, sizeof name, "model.encoder.layer.attention.weight%07d", i);
        OK(ctn__st_add(w, name, i < ARRAYS / 2 ? CTN_U8 : CTN_F32, 1, (int64_t[]){0}));
    }
    for (int i = 0; i < ARRAYS; i++)
        if (ctn__st_put(w, "other", NULL) != CTN_ESTATE) fail_msg("another array was put");
    ctn_error_clear();
    ctn__st_writer_free(w);
}

/* ---- an index of several files --------------------------------------------------------------- */

#define INDEX "parts/model.safetensors.index.json"

/* A file with arrays of one byte: the number of the file. */
static void write_part(const char *path, uint8_t number, int n, const char *const *names)
{
    ctn__st_writer *w = NULL;
    OK(ctn__st_begin(&w, path));
    for (int i = 0; i < n; i++) OK(ctn__st_add(w, names[i], CTN_U8, 0, NULL));
    OK(ctn__st_add_metadata(w, "format", "pt"));
    for (int i = 0; i < n; i++) OK(ctn__st_put(w, names[i], &number));
    OK(ctn__st_finish(w));
    ctn__st_writer_free(w);
}

static void write_parts(void)
{
    mkdir("parts", 0777);
    write_part("parts/1.safetensors", 1, 2, (const char *const[]){"a", "b"});
    write_part("parts/2.safetensors", 2, 2, (const char *const[]){"c", "0"});
    write_part("parts/3.safetensors", 3, 1, (const char *const[]){"b"});
}

static void write_index(const char *json)
{
    write_bytes(INDEX, json, strlen(json));
}

static void assert_byte(const ctn__st_file *f, const char *name, uint8_t want)
{
    assert_array(f, name, CTN_U8, 0, NULL, &want, 1);
}

static void test_index(void **state)
{
    (void)state;
    ctn__st_file *f = NULL;
    write_parts();
    write_index("{\"metadata\": {\"total_size\": 3}, \"weight_map\": {\"c\": \"2.safetensors\","
                "\"b\": \"1.safetensors\", \"a\": \"1.safetensors\"}}");
    OK(ctn__st_open(&f, INDEX));
    assert_int_equal(ctn__st_count(f), 4); /* the index does not name 0 */
    assert_byte(f, "a", 1);
    assert_byte(f, "b", 1);
    assert_byte(f, "c", 2);
    assert_byte(f, "0", 2);
    assert_null(ctn__st_find(f, "d"));
    assert_int_equal(ctn__st_metadata_count(f), 0);
    ctn__st_close(f);

    char *json = NULL;
    OK(ctn__st_json_index_write(1, (const char *const[]){"c"},
                                (const char *const[]){"2.safetensors"}, 12, &json));
    assert_non_null(strstr(json, "\"total_size\": 12"));
    write_index(json);
    ctn__free(json);
    OK(ctn__st_open(&f, INDEX));
    assert_byte(f, "c", 2);
    ctn__st_close(f);

    write_index("{\"weight_map\": {}}");
    OK(ctn__st_open(&f, INDEX));
    assert_int_equal(ctn__st_count(f), 0);
    ctn__st_close(f);

    write_index("{\"weight_map\": {\"a\": \"1.safetensors\"}}");
    assert_int_equal(rename(INDEX, "1.json"), 0); /* the folder of the index counts */
    assert_fails(ctn__st_open(&f, "1.json"), CTN_EIO, "1.safetensors");
    assert_null(f);
    unlink("1.json");
}

static void test_hostile_index(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        ctn_status want;
        const char *part;
    } cases[] = {
        {"", CTN_EFORMAT, "index is not JSON"},
        {"[]", CTN_EFORMAT, "no weight_map"},
        {"{\"metadata\":{}}", CTN_EFORMAT, "no weight_map"},
        {"{\"weight_map\":[\"a\"]}", CTN_EFORMAT, "no weight_map"},
        {"{\"weight_map\":{\"a\":1}}", CTN_EFORMAT, "entry 0 of weight_map"},
        {"{\"weight_map\":{\"a\\u0000\":\"1.safetensors\"}}", CTN_EFORMAT, "without U+0000"},
        {"{\"weight_map\":{\"a\":\"\"}}", CTN_EFORMAT, "'a' is said to be in ''"},
        {"{\"weight_map\":{\"a\":\"/1.safetensors\"}}", CTN_EFORMAT, "in '/1.safetensors'"},
        {"{\"weight_map\":{\"a\":\"..\"}}", CTN_EFORMAT, "in '..'"},
        {"{\"weight_map\":{\"a\":\"../parts/1.safetensors\"}}", CTN_EFORMAT, "in '../parts"},
        {"{\"weight_map\":{\"a\":\".\"}}", CTN_EIO, "not a regular file"},
        {"{\"weight_map\":{\"a\":\"4.safetensors\"}}", CTN_EIO, "parts/4.safetensors"},
        {"{\"weight_map\":{\"a\":\"2.safetensors\"}}", CTN_EFORMAT,
         "'a' is in 2.safetensors, but that file lacks it"},
        {"{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"3.safetensors\"}}", CTN_EFORMAT,
         "'b' is in two files, parts/1.safetensors and parts/3.safetensors"},
        /* an index is not one of its files */
        {"{\"weight_map\":{\"a\":\"model.safetensors.index.json\"}}", CTN_EFORMAT, "header of"},
    };
    write_parts();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ctn__st_file *f = NULL;
        write_index(cases[i].json);
        assert_fails(ctn__st_open(&f, INDEX), cases[i].want, cases[i].part);
        assert_null(f);
    }
    unlink(INDEX);
    ctn__st_file *f = NULL;
    assert_fails(ctn__st_open(&f, INDEX), CTN_EIO, INDEX);
}

static void test_index_no_memory(void **state)
{
    (void)state;
    ctn_status st = CTN_ENOMEM;
    int n = 0;
    write_parts();
    write_index("{\"weight_map\":{\"a\":\"1.safetensors\",\"c\":\"2.safetensors\"}}");
    for (; st == CTN_ENOMEM && n < 1000; n++) {
        failing mem = {.left = n};
        ctn__st_file *f = NULL;
        OK(ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &mem}));
        st = ctn__st_open(&f, INDEX);
        ctn__st_close(f);
        assert_int_equal(mem.live, 0);
        OK(ctn_set_allocator(NULL));
        assert_int_equal(ctn_error_status(), st);
        ctn_error_clear();
    }
    assert_int_equal(st, CTN_OK);
    assert_true(n > 15);
}

static void test_no_memory(void **state)
{
    (void)state;
    ctn_status st = CTN_ENOMEM;
    int n = 0;
    for (; st == CTN_ENOMEM && n < 1000; n++) {
        failing mem = {.left = n};
        ctn__st_file *f = NULL;
        OK(ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &mem}));
        st = write_sample("memory.safetensors");
        if (st == CTN_OK) st = ctn__st_open(&f, "memory.safetensors");
        ctn__st_close(f);
        assert_int_equal(mem.live, 0);
        OK(ctn_set_allocator(NULL));
        assert_int_equal(ctn_error_status(), st);
        ctn_error_clear();
    }
    assert_int_equal(st, CTN_OK);
    assert_true(n > 15);
}

static void test_real(void **state)
{
    (void)state;
    const char *data = getenv("CATENA_DATA");
    if (!data) {
        print_message("skipped: needs CATENA_DATA\n");
        skip();
    }
    char path[1000];
    snprintf(path, sizeof path, "%s/weights/cifar10-resnet/resnet20-12fca82f.safetensors", data);
    ctn__st_file *f = NULL;
    OK(ctn__st_open(&f, path));
    int64_t parameters = 0;
    for (size_t i = 0; i < ctn__st_count(f); i++) {
        const ctn__st_array *a = ctn__st_at(f, i);
        assert_ptr_equal(ctn__st_find(f, a->name), a);
        bool trained = !strstr(a->name, "running_") && !strstr(a->name, "num_batches");
        if (trained) parameters += (int64_t)(a->bytes / ctn_dtype_size(a->dtype));
    }
    assert_int_equal(parameters, 269722); /* ResNet-20 with parameter-free shortcuts */
    ctn__st_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_exact_bytes),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_hostile_headers),
        cmocka_unit_test(test_odd_but_valid),
        cmocka_unit_test(test_hostile_length),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_writer_refuses),
        cmocka_unit_test(test_many_arrays),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_real),
        cmocka_unit_test(test_shortened),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_hostile_index),
        cmocka_unit_test(test_index_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
