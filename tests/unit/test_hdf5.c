/* SPDX-License-Identifier: Apache-2.0
 *
 * HDF5 files that ask for more than they contain: other files, code, memory. test_npy.c reads good
 * ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <catena/datasets.h>

#include <cmocka.h>

#include "support/check.h"

static const uint8_t other_file[] = {
#include "hdf5_file.inc"
};
static const uint8_t hostile_file[] = {
#include "hdf5_hostile.inc"
};

static const uint8_t filters_file[] = {
#include "hdf5_filters.inc"
};

static const uint8_t chunk_file[5946] = {
#include "hdf5_chunk.inc"
};

/* Tests run in <build>/tests/unit/NAME.work; the plug-in is in <build>. */
static int setup(void **state)
{
    (void)state;
    setenv("CATENA_PLUGIN_DIR", "../../..", 1);
    unsetenv("CATENA_HDF5_TRUST");
    write_bytes("hostile.h5", hostile_file, sizeof hostile_file);
    write_bytes("hostile.nc", hostile_file, sizeof hostile_file);
    write_bytes("other.h5", other_file, sizeof other_file);
    write_bytes("filters.h5", filters_file, sizeof filters_file);
    write_bytes("secret\033.txt", "key", 3);
    return 0;
}

static bool have_plugin(void)
{
    return access("../../../libcatena_hdf5.so", R_OK) == 0;
}

static ctn_status open_one(ctn_dataset **ds, const char *path)
{
    return ctn_files_open(ds, 1, (const char *[]){path}, NULL);
}

static void test_refused(void **state)
{
    (void)state;
    if (!have_plugin()) skip();
    static const struct {
        const char *path;
        ctn_status status;
        const char *why;
    } cases[] = {
        {"hostile.h5:/link", CTN_EUNSUPPORTED, "is a link into another file (other.h5)"},
        {"hostile.h5:/through", CTN_EUNSUPPORTED, "is a link into another file (other.h5)"},
        {"hostile.h5:/far/x", CTN_EUNSUPPORTED, "is a link into another file (other.h5)"},
        {"hostile.nc:/mine,far/x", CTN_EUNSUPPORTED, "is a link into another file (other.h5)"},
        {"hostile.h5:/external", CTN_EUNSUPPORTED, "elements in another file (secret?.txt)"},
        {"hostile.h5:/virtual", CTN_EUNSUPPORTED, "is a virtual dataset"},
        {"hostile.h5:/nested", CTN_EUNSUPPORTED, "is a virtual dataset"},
        {"hostile.h5:/filter", CTN_EUNSUPPORTED, "needs filter 32015, and only deflate"},
        {"filters.h5:/twice", CTN_EUNSUPPORTED, "needs filter 1 twice"},
        {"filters.h5:/scale", CTN_EUNSUPPORTED, "needs filter 6"},
        {"filters.h5:/nbit", CTN_EUNSUPPORTED, "needs filter 5"},
        {"hostile.h5:/wide", CTN_EFORMAT, "an array of 9223372036854775808 bytes cannot"},
        {"hostile.h5:/many", CTN_EFORMAT, "an array of 18446744073709551615 bytes cannot"},
        {"hostile.h5:/sparse", CTN_EFORMAT, "an array of 17179869184 bytes cannot"},
        {"hostile.h5:/chunk", CTN_EFORMAT, "a chunk of 2147483648 bytes cannot"},
    };
    ctn_dataset *ds = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ctn_status st = open_one(&ds, cases[i].path);
        assert_non_null(strstr(ctn_error_message(), "CATENA_HDF5_TRUST=1"));
        assert_fails(st, cases[i].status, cases[i].why);
    }
}

static void test_own(void **state)
{
    (void)state;
    if (!have_plugin()) skip();
    static const char *const paths[] = {"hostile.h5:/mine", "hostile.h5:/soft"};
    ctn_dataset *ds = NULL;
    float x = 0, y = 0;
    assert_int_equal(ctn_files_open(&ds, 2, paths, NULL), CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 2, (void *[]){&x, &y}), CTN_OK);
    assert_true(x == 3 && y == 3);
    ctn_dataset_free(ds);
    assert_fails(open_one(&ds, "hostile.h5:/absent"), CTN_EIO, "object 'absent' doesn't exist");
}

/* What a file leaves out is 0, and not what was in the caller's memory. */
static void test_absent(void **state)
{
    (void)state;
    if (!have_plugin()) skip();
    ctn_dataset *ds = NULL;
    float x[2] = {5, 5};
    assert_int_equal(open_one(&ds, "filters.h5:/never"), CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){x}), CTN_OK);
    assert_true(x[0] == 0 && x[1] == 0);
    ctn_dataset_free(ds);
    assert_fails(open_one(&ds, "filters.h5:/none"), CTN_EUNSUPPORTED, "has no elements");
}

/* Opening a pipe must not wait for its writer. */
static void test_pipe(void **state)
{
    (void)state;
    if (!have_plugin()) skip();
    ctn_dataset *ds = NULL;
    unlink("pipe.h5");
    assert_int_equal(mkfifo("pipe.h5", 0600), 0);
    assert_fails(open_one(&ds, "pipe.h5:/x"), CTN_EIO, "not a regular file");
    unlink("pipe.h5");
}

/* A chunk larger than HDF5's cache is decompressed once, and not for every sample: the file has
 * 250,000 of them in 6 kB. */
static void test_large_chunk(void **state)
{
    (void)state;
    if (!have_plugin()) skip();
    ctn_dataset *ds = NULL;
    write_bytes("chunk.h5", chunk_file, sizeof chunk_file);
    assert_int_equal(open_one(&ds, "chunk.h5:/a"), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 250000);
    const clock_t begin = clock();
    for (int64_t i = 0; i < 5000; i++) {
        float x[4] = {1, 1, 1, 1};
        assert_int_equal(ctn_dataset_get(ds, i * 50, (void *[]){x}), CTN_OK);
        assert_true(x[0] == 0 && x[3] == 0);
    }
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 3); /* 20 s if each is decompressed */
    ctn_dataset_free(ds);
}

static void test_trusted(void **state)
{
    (void)state;
    if (!have_plugin()) skip();
    static const char *const paths[] = {"hostile.h5:/link", "hostile.h5:/through",
                                        "hostile.h5:/external", "hostile.h5:/virtual"};
    ctn_dataset *ds = NULL;
    int64_t link = 0, through = 0, made = 0;
    uint8_t outside = 0;
    setenv("CATENA_HDF5_TRUST", "1", 1);
    assert_int_equal(ctn_files_open(&ds, 4, paths, NULL), CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 2, (void *[]){&link, &through, &outside, &made}), CTN_OK);
    assert_true(link == 300 && through == 300 && outside == 'y' && made == 300);
    ctn_dataset_free(ds);
    assert_int_equal(open_one(&ds, "hostile.h5:/sparse"), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 1 << 30);
    ctn_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_refused, setup),
        cmocka_unit_test_setup(test_own, setup),
        cmocka_unit_test_setup(test_absent, setup),
        cmocka_unit_test_setup(test_pipe, setup),
        cmocka_unit_test_setup(test_trusted, setup),
        cmocka_unit_test_setup(test_large_chunk, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
