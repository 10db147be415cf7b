/* SPDX-License-Identifier: Apache-2.0
 *
 * The CIFAR-10 reader: values, order across files, hostile files, a failing allocator.
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
    assert_fails(ctn_cifar10_open(&ds, "d", (ctn_split)7, NULL), CTN_EARG, "split is 7");
    assert_fails(ctn_cifar10_open(NULL, "d", CTN_TEST, NULL), CTN_EARG, "NULL");
    assert_null(ds);
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
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
