/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of CIFAR-10, CIFAR-100 and SVHN: values, order across files, hostile files, a failing
 * allocator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <catena/data.h>

#ifdef CTN_HAVE_ZLIB
#include <zlib.h>
#endif

#include <cmocka.h>

#include "support/check.h"

enum { RECORD = 3073 };

/* n records; the label of record i is first + i, pixel p is p + label modulo 256. */
static void write_records(const char *path, int first, int n, int bytes)
{
    static uint8_t r[4 * RECORD];
    for (int i = 0; i < n; i++) {
        r[i * RECORD] = (uint8_t)(first + i);
        for (int p = 0; p < RECORD - 1; p++) r[i * RECORD + 1 + p] = (uint8_t)(p + first + i);
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(r, 1, (size_t)bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    (void)state;
    char path[64];
    mkdir("d", 0777);
    for (int i = 1; i <= 5; i++) {
        snprintf(path, sizeof path, "d/data_batch_%d.bin", i);
        write_records(path, i, 1 + i % 2, (1 + i % 2) * RECORD);
    }
    write_records("d/test_batch.bin", 9, 1, RECORD);
    return 0;
}

static void test_values(void **state)
{
    (void)state;
    static float x[3072];
    static uint8_t u[3072];
    int64_t t = -1;
    ctn_dataset *ds = NULL;
    assert_int_equal(ctn_cifar10_open(&ds, "d", CTN_TRAIN, NULL), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 2 + 1 + 2 + 1 + 2);
    assert_int_equal(ctn_dataset_fields(ds), 2);
    const ctn_field *f = ctn_dataset_field(ds, 0);
    assert_true(f->dtype == CTN_F32 && f->ndim == 3);
    assert_true(f->shape[0] == 3 && f->shape[1] == 32 && f->shape[2] == 32);
    /* the second sample of file 3 */
    assert_int_equal(ctn_dataset_get(ds, 4, (void *[]){x, &t}), CTN_OK);
    assert_int_equal(t, 4);
    for (int p = 0; p < 3072; p++) assert_true(x[p] == (float)((p + 4) % 256) / 255.0f);
    ctn_dataset_free(ds);

    assert_int_equal(ctn_cifar10_open(&ds, "d", CTN_TEST,
                                      CTN_OPT(ctn_cifar_opt, .mean = {0, 0.5, 0},
                                              .std = {0, 0, 2})),
                     CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 1);
    assert_int_equal(ctn_dataset_get(ds, 0, (void *[]){x, &t}), CTN_OK);
    assert_true(x[3] == 12 / 255.0f);
    assert_true(x[1024 + 3] == 12 / 255.0f - 0.5f);
    assert_true(x[2048 + 3] == 12 / 255.0f / 2);
    ctn_dataset_free(ds);

    assert_int_equal(ctn_cifar10_open(&ds, "d", CTN_TEST, CTN_OPT(ctn_cifar_opt, .raw = 1)),
                     CTN_OK);
    assert_int_equal(ctn_dataset_field(ds, 0)->dtype, CTN_U8);
    assert_int_equal(ctn_dataset_get(ds, 0, (void *[]){u, &t}), CTN_OK);
    assert_int_equal(u[250], 259 - 256);
    ctn_dataset_free(ds);
}

static void test_hostile(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    mkdir("h", 0777);
    remove("h/test_batch.bin"); /* a pipe, if the last run of this test was killed */
    assert_fails(ctn_cifar10_open(&ds, "h", CTN_TEST, NULL), CTN_EIO, "h/test_batch.bin");
    write_records("h/test_batch.bin", 0, 2, 2 * RECORD - 1);
    assert_fails(ctn_cifar10_open(&ds, "h", CTN_TEST, NULL), CTN_EFORMAT, "6145 bytes");
    write_records("h/test_batch.bin", 0, 0, 0);
    assert_fails(ctn_cifar10_open(&ds, "h", CTN_TEST, NULL), CTN_EFORMAT, "0 bytes");
    write_records("h/test_batch.bin", 9, 2, 2 * RECORD);
    assert_fails(ctn_cifar10_open(&ds, "h", CTN_TEST, NULL), CTN_EFORMAT, "record 1 has label 10");
    remove("h/test_batch.bin");
    mkdir("h/test_batch.bin", 0777);
    assert_fails(ctn_cifar10_open(&ds, "h", CTN_TEST, NULL), CTN_EIO, "not a regular file");
    remove("h/test_batch.bin");
    assert_int_equal(mkfifo("h/test_batch.bin", 0600), 0); /* nobody will ever write to it */
    assert_fails(ctn_cifar10_open(&ds, "h", CTN_TEST, NULL), CTN_EIO, "not a regular file");
    remove("h/test_batch.bin");
    assert_fails(ctn_cifar10_open(&ds, "d", (ctn_split)7, NULL), CTN_EARG, "split is 7");
    assert_fails(ctn_cifar10_open(NULL, "d", CTN_TEST, NULL), CTN_EARG, "NULL");
    assert_null(ds);
}

/* ---- CIFAR-100 ------------------------------------------------------------------------------- */

/* Two records with the labels (19, 99) and (coarse, fine). */
static void write_pairs(const char *path, int coarse, int fine)
{
    static uint8_t r[2 * (RECORD + 1)];
    for (int i = 0; i < 2; i++) {
        uint8_t *p = r + i * (RECORD + 1);
        p[0] = (uint8_t)(i ? coarse : 19);
        p[1] = (uint8_t)(i ? fine : 99);
        for (int k = 0; k < 3072; k++) p[2 + k] = (uint8_t)(k + i);
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(r, 1, sizeof r, f), sizeof r);
    assert_int_equal(fclose(f), 0);
}

static void test_cifar100(void **state)
{
    (void)state;
    static float x[3072];
    int64_t t = -1;
    ctn_dataset *ds = NULL;
    mkdir("c", 0777);
    write_pairs("c/train.bin", 3, 42);
    write_pairs("c/test.bin", 20, 1);
    assert_int_equal(ctn_cifar100_open(&ds, "c", CTN_TRAIN, NULL), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 2);
    assert_int_equal(ctn_dataset_get(ds, 0, (void *[]){x, &t}), CTN_OK);
    assert_int_equal(t, 99);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){x, &t}), CTN_OK);
    assert_int_equal(t, 42);
    for (int p = 0; p < 3072; p++) assert_true(x[p] == (float)((p + 1) % 256) / 255.0f);
    ctn_dataset_free(ds);
    assert_int_equal(ctn_cifar100_open(&ds, "c", CTN_TRAIN, CTN_OPT(ctn_cifar_opt, .coarse = 1)),
                     CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){x, &t}), CTN_OK);
    assert_int_equal(t, 3);
    ctn_dataset_free(ds);
    assert_fails(ctn_cifar100_open(&ds, "c", CTN_TEST, NULL), CTN_EFORMAT,
                 "record 1 has coarse label 20, expected 0 to 19");
    write_pairs("c/test.bin", 19, 100);
    assert_fails(ctn_cifar100_open(&ds, "c", CTN_TEST, NULL), CTN_EFORMAT,
                 "record 1 has fine label 100, expected 0 to 99");
    write_records("c/test.bin", 0, 2, 2 * RECORD);
    assert_fails(ctn_cifar100_open(&ds, "c", CTN_TEST, NULL), CTN_EFORMAT, "multiple of 3074");
    assert_fails(ctn_cifar100_open(&ds, "d", CTN_TEST, NULL), CTN_EIO, "d/test.bin");
}

/* ---- SVHN ------------------------------------------------------------------------------------ */

typedef struct {
    uint8_t at[1 << 17];
    size_t n;
} bytes;

static void add_word(bytes *b, uint32_t v)
{
    for (int i = 0; i < 4; i++) b->at[b->n++] = (uint8_t)(v >> 8 * i);
}

/* An array of u8 as MATLAB writes it, whose name has one letter. */
static void add_array(bytes *b, char name, int ndim, const uint32_t *dim, uint32_t values,
                      const uint8_t *v)
{
    const uint32_t start = (uint32_t)b->n, pad = (8 - values % 8) % 8, even = ndim % 2 ? 4 : 0;
    add_word(b, 14);
    add_word(b, 16 + 8 + 4 * (uint32_t)ndim + even + 8 + 8 + values + pad);
    const uint32_t head[] = {6, 8, 9, 0, 5, 4 * (uint32_t)ndim};
    for (int i = 0; i < 6; i++) add_word(b, head[i]);
    for (int i = 0; i < ndim; i++) add_word(b, dim[i]);
    b->n += even;
    add_word(b, 1 << 16 | 1); /* a small element: 1 byte of text */
    add_word(b, (uint8_t)name);
    add_word(b, 2);
    add_word(b, values);
    memcpy(b->at + b->n, v, values);
    b->n += values + pad;
    assert_int_equal((b->n - start) % 8, 0);
}

/* Pixel (c,y,x) of image i is 100 i + 50 c + 3 y + x, modulo 256. Before the images there is an
 * array with `others` values that nobody reads. */
static void make_mat(bytes *b, uint32_t others, uint32_t digits, const uint8_t *digit)
{
    static uint8_t x[3 * 3072];
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < 3; c++)
            for (int k = 0; k < 1024; k++) /* rows vary fastest */
                x[i * 3072 + c * 1024 + k] = (uint8_t)(100 * i + 50 * c + 3 * (k % 32) + k / 32);
    memset(b, 0, sizeof *b);
    memcpy(b->at + 124, "\0\1IM", 4);
    b->n = 128;
    static const uint8_t other[70000];
    add_array(b, 'z', 2, (uint32_t[]){others, 1}, others, other);
    add_array(b, 'X', 4, (uint32_t[]){32, 32, 3, 3}, sizeof x, x);
    add_array(b, 'y', 2, (uint32_t[]){digits, 1}, digits, digit);
}

#ifdef CTN_HAVE_ZLIB
/* Every array of the file as a zlib stream, which has no padding. */
static void pack_mat(const bytes *from, bytes *to)
{
    memcpy(to->at, from->at, 128);
    to->n = 128;
    for (size_t at = 128; at < from->n;) {
        const uint8_t *p = from->at + at;
        const size_t n = 8 + (p[4] | (size_t)p[5] << 8 | (size_t)p[6] << 16);
        uLongf room = sizeof to->at - to->n - 8;
        assert_int_equal(compress(to->at + to->n + 8, &room, p, n), Z_OK);
        add_word(to, 15);
        add_word(to, (uint32_t)room);
        to->n += room;
        at += n;
    }
}
#endif

static void test_svhn(void **state)
{
    (void)state;
    static bytes b;
    static float x[3072];
    int64_t t = -1;
    ctn_dataset *ds = NULL;
    mkdir("s", 0777);
    make_mat(&b, 70000, 3, (const uint8_t[]){1, 10, 9});
    write_bytes("s/train_32x32.mat", b.at, b.n);
    assert_int_equal(ctn_svhn_open(&ds, "s", CTN_TRAIN, NULL), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ctn_dataset_get(ds, i, (void *[]){x, &t}), CTN_OK);
        assert_int_equal(t, i == 0 ? 1 : i == 1 ? 0 : 9);
        for (int p = 0; p < 3072; p++) {
            const int v = 100 * i + 50 * (p / 1024) + 3 * (p % 1024 / 32) + p % 32;
            assert_true(x[p] == (float)(v % 256) / 255.0f);
        }
    }
    ctn_dataset_free(ds);
#ifdef CTN_HAVE_ZLIB
    static bytes packed;
    make_mat(&b, 5, 3, (const uint8_t[]){1, 10, 9});
    pack_mat(&b, &packed);
    write_bytes("s/train_32x32.mat", packed.at, packed.n);
    assert_int_equal(ctn_svhn_open(&ds, "s", CTN_TRAIN, NULL), CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 2, (void *[]){x, &t}), CTN_OK);
    assert_true(t == 9 && x[3071] == (float)((200 + 100 + 93 + 31) % 256) / 255.0f);
    ctn_dataset_free(ds);
#endif
    for (size_t n = 0; n < b.n; n += n < 300 ? 1 : 97) { /* cut off anywhere */
        write_bytes("s/test_32x32.mat", b.at, n);
        assert_int_equal(ctn_svhn_open(&ds, "s", CTN_TEST, NULL), CTN_EFORMAT);
        assert_null(ds);
        ctn_error_clear();
    }
    make_mat(&b, 5, 2, (const uint8_t[]){1, 10});
    write_bytes("s/test_32x32.mat", b.at, b.n);
    assert_fails(ctn_svhn_open(&ds, "s", CTN_TEST, NULL), CTN_EFORMAT,
                 "X has 3 images, but y has 2 digits");
    make_mat(&b, 5, 3, (const uint8_t[]){1, 11, 9});
    write_bytes("s/test_32x32.mat", b.at, b.n);
    assert_fails(ctn_svhn_open(&ds, "s", CTN_TEST, NULL), CTN_EFORMAT,
                 "image 1 has label 11, expected 1 to 10");
    assert_fails(ctn_svhn_open(&ds, "d", CTN_TEST, NULL), CTN_EIO, "d/test_32x32.mat");
    assert_fails(ctn_svhn_open(&ds, "s", (ctn_split)0, NULL), CTN_EARG, "split is 0");
}

static failing memory;

static void test_failing_allocator(void **state)
{
    (void)state;
    ctn_status st = CTN_ENOMEM;
    int n = 0;
    assert_int_equal(ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &memory}),
                     CTN_OK);
    for (; st == CTN_ENOMEM; n++) {
        ctn_dataset *ds = NULL;
        memory.left = n;
        st = ctn_cifar10_open(&ds, "d", CTN_TRAIN, NULL);
        ctn_dataset_free(ds);
        ctn_error_clear();
        assert_int_equal(memory.live, 0);
    }
    assert_int_equal(st, CTN_OK);
    assert_true(n > 5);
    assert_int_equal(ctn_set_allocator(NULL), CTN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_allocator), /* must run before anything else allocates */
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_cifar100),
        cmocka_unit_test(test_svhn),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
