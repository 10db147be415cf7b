/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets: valid and hostile idx files, arrays, a failing allocator. With CATENA_DATA, also
 * MNIST itself. Samplers are in test_sampler.c, loaders in test_loader.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include <catena/data.h>

#include "base/base.h"

#ifdef CTN_HAVE_ZLIB
#include <zlib.h>
#endif

/* ---- idx
 * ---------------------------------------------------------------------------------------- */

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    size_t written = fwrite(p, 1, n, f);
    int closed = fclose(f);
    assert_int_equal(written, n);
    assert_int_equal(closed, 0);
}

/* 3 images of 2x2 and their labels. */
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0,  0,  0,   2,   0,  0,
                                 0, 2, 0, 1, 2, 3, 4, 5, 60, 70, 250, 251, 51, 255};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 255};

static void test_idx(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    write_file("i", images, sizeof images);
    write_file("l", labels, sizeof labels);
    OK(ctn_idx_open(&ds, "i", "l", NULL));
    assert_int_equal(ctn_dataset_count(ds), 3);
    assert_int_equal(ctn_dataset_fields(ds), 2);
    assert_int_equal(ctn_dataset_field(ds, 0)->dtype, CTN_F32);
    assert_int_equal(ctn_dataset_field(ds, 0)->ndim, 1);
    assert_int_equal(ctn_dataset_field(ds, 0)->shape[0], 4);
    assert_int_equal(ctn_dataset_field(ds, 1)->dtype, CTN_I64);
    assert_int_equal(ctn_dataset_field(ds, 1)->ndim, 0);
    assert_null(ctn_dataset_field(ds, 2));
    float x[4];
    int64_t t = -1;
    OK(ctn_dataset_get(ds, 2, (void *[]){x, &t}));
    const float want[] = {250 / 255.0f, 251 / 255.0f, 51 / 255.0f, 1.0f};
    assert_memory_equal(x, want, sizeof want);
    assert_int_equal(t, 255);
    assert_fails(ctn_dataset_get(ds, 3, (void *[]){x, &t}), CTN_EARG, "sample 3 of 3");
    ctn_dataset_free(ds);

    OK(ctn_idx_open(&ds, "i", NULL, CTN_OPT(ctn_idx_opt, .raw = 1, .shaped = 1)));
    assert_int_equal(ctn_dataset_fields(ds), 1);
    const ctn_field *f = ctn_dataset_field(ds, 0);
    assert_true(f->dtype == CTN_U8 && f->ndim == 3);
    assert_true(f->shape[0] == 1 && f->shape[1] == 2 && f->shape[2] == 2);
    uint8_t raw[4];
    OK(ctn_dataset_get(ds, 1, (void *[]){raw}));
    assert_memory_equal(raw, images + 20, 4);
    ctn_dataset_free(ds);
    assert_fails(ctn_idx_open(&ds, "i", NULL, &(ctn_idx_opt){.raw = 1}), CTN_EARG, "struct_size");
}

static void test_idx_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *part; /* of the message */
        size_t n;         /* bytes of the file */
        int at, byte;     /* one changed byte */
    } cases[] = {
        {"ends after 0 bytes", 0, 0, 0},     {"ends after 15 bytes", 15, 0, 0},
        {"starts with bytes", 28, 1, 1},     {"element type is 0x0d", 28, 2, 0x0d},
        {"has 1 dimensions", 28, 3, 1},      {"has 255 dimensions", 28, 3, 255},
        {"size 0 in dimension 0", 28, 7, 0}, {"size 0 in dimension 2", 28, 15, 0},
        {"has data after", 28, 7, 2},        {"cannot hold", 28, 7, 4},
        {"cannot hold", 28, 4, 255},         {"cannot hold", 27, 0, 0},
        {"cannot hold", 16, 0, 0},
    };
    ctn_dataset *ds = NULL;
    write_file("l", labels, sizeof labels);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bad[sizeof images];
        memcpy(bad, images, sizeof bad);
        bad[cases[i].at] = (uint8_t)cases[i].byte;
        write_file("bad", bad, cases[i].n);
        assert_fails(ctn_idx_open(&ds, "bad", "l", NULL), CTN_EFORMAT, cases[i].part);
        assert_null(ds);
    }
    /* The header promises 2^96 bytes. */
    uint8_t huge[28] = {0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    write_file("bad", huge, sizeof huge);
    assert_fails(ctn_idx_open(&ds, "bad", "l", NULL), CTN_EFORMAT, "cannot hold");
    write_file("i", images, sizeof images);
    write_file("bad", (uint8_t[]){0, 0, 8, 1, 0, 0, 0, 2, 1, 2}, 10);
    assert_fails(ctn_idx_open(&ds, "i", "bad", NULL), CTN_EFORMAT, "has 2 labels");
    assert_fails(ctn_idx_open(&ds, "absent", "l", NULL), CTN_EIO, "absent");
    assert_fails(ctn_idx_open(&ds, ".", "l", NULL), CTN_EIO, "not a regular file");
}

static void test_idx_gzip(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
#ifdef CTN_HAVE_ZLIB
    gzFile z = gzopen("i.gz", "wb");
    assert_int_equal(gzwrite(z, images, sizeof images), sizeof images);
    gzclose(z);
    OK(ctn_idx_open(&ds, "i.gz", NULL, CTN_OPT(ctn_idx_opt, .raw = 1)));
    uint8_t raw[4];
    OK(ctn_dataset_get(ds, 2, (void *[]){raw}));
    assert_memory_equal(raw, images + 24, 4);
    ctn_dataset_free(ds);
    ds = NULL;
    /* Every truncation and every single damaged byte is refused or gives the right data. */
    uint8_t gz[200];
    FILE *f = fopen("i.gz", "rb");
    size_t n = fread(gz, 1, sizeof gz, f);
    fclose(f);
    for (size_t cut = 0; cut < n; cut++) {
        write_file("bad.gz", gz, cut);
        assert_true(ctn_idx_open(&ds, "bad.gz", NULL, NULL) < 0);
        ctn_error_clear();
    }
    for (size_t at = 0; at < n; at++) {
        gz[at] ^= 0x55;
        write_file("bad.gz", gz, n);
        gz[at] ^= 0x55;
        if (ctn_idx_open(&ds, "bad.gz", NULL, CTN_OPT(ctn_idx_opt, .raw = 1)) == CTN_OK) {
            OK(ctn_dataset_get(ds, 2, (void *[]){raw})); /* a header byte without a meaning */
            assert_memory_equal(raw, images + 24, 4);
            ctn_dataset_free(ds);
            ds = NULL;
        }
        ctn_error_clear();
    }
#else
    write_file("i.gz", "\x1f\x8b\x08", 3);
    assert_fails(ctn_idx_open(&ds, "i.gz", NULL, NULL), CTN_EUNSUPPORTED, "zlib");
#endif
}

static void test_mnist(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    assert_fails(ctn_mnist_open(&ds, ".", CTN_TRAIN), CTN_EIO, "train-images-idx3-ubyte.gz");
    assert_fails(ctn_mnist_open(&ds, ".", (ctn_split)0), CTN_EARG, "split is 0");
    write_file("t10k-images-idx3-ubyte", images, sizeof images);
    write_file("t10k-labels-idx1-ubyte", labels, sizeof labels);
    OK(ctn_mnist_open(&ds, ".", CTN_TEST));
    assert_int_equal(ctn_dataset_count(ds), 3);
    ctn_dataset_free(ds);
}

static void test_mnist_real(void **state)
{
    (void)state;
    const char *data = getenv("CATENA_DATA");
#ifndef CTN_HAVE_ZLIB
    data = NULL;
#endif
    if (!data) {
        print_message("skipped: needs CATENA_DATA and zlib\n");
        skip();
    }
    char dir[1000];
    snprintf(dir, sizeof dir, "%s/mnist", data);
    ctn_dataset *ds = NULL;
    OK(ctn_mnist_open(&ds, dir, CTN_TEST));
    assert_int_equal(ctn_dataset_count(ds), 10000);
    assert_int_equal(ctn_dataset_field(ds, 0)->shape[0], 784);
    float x[784];
    int64_t t, hist[10] = {0};
    for (int64_t i = 0; i < 10000; i++) {
        OK(ctn_dataset_get(ds, i, (void *[]){x, &t}));
        hist[t]++;
        if (i == 0) assert_int_equal(t, 7);
    }
    assert_int_equal(hist[0], 980);
    assert_int_equal(hist[9], 1009);
    ctn_dataset_free(ds);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void test_arrays(void **state)
{
    (void)state;
    const double x[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    const uint8_t t[3] = {7, 8, 9};
    const ctn_field field[] = {{CTN_F64, 1, {2}, 0}, {CTN_U8, 0, {0}, 0}};
    ctn_dataset *ds = NULL;
    OK(ctn_arrays_open(&ds, 3, 2, field, (const void *[]){x, t}));
    double y[2];
    uint8_t u;
    OK(ctn_dataset_get(ds, 1, (void *[]){y, &u}));
    assert_true(y[0] == 3 && y[1] == 4 && u == 8);
    ctn_dataset_free(ds);
    assert_fails(ctn_arrays_open(&ds, 3, 2, field, (const void *[]){x, NULL}), CTN_EARG, "field 1");
    assert_null(ds);
}

/* ---- memory
 * -------------------------------------------------------------------------------------------- */

static ctn_status everything(void)
{
    ctn_status st = CTN_OK;
    ctn_dataset *ds = NULL, *arrays = NULL;
    CTN_TRY_GOTO(st, done, ctn_mnist_open(&ds, ".", CTN_TEST));
    CTN_TRY_GOTO(st, done,
                 ctn_arrays_open(&arrays, 1, 1, &(ctn_field){CTN_U8, 0, {0}, 0},
                                 (const void *[]){images}));
done:
    ctn_dataset_free(arrays);
    ctn_dataset_free(ds);
    return st;
}

static void test_no_memory(void **state)
{
    (void)state;
    write_file("t10k-images-idx3-ubyte", images, sizeof images);
    write_file("t10k-labels-idx1-ubyte", labels, sizeof labels);
    ctn_status st = CTN_ENOMEM;
    int n = 0;
    for (; st == CTN_ENOMEM && n < 1000; n++) {
        failing f = {.left = n};
        OK(ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &f}));
        st = everything();
        assert_int_equal(f.live, 0);
        OK(ctn_set_allocator(NULL));
        assert_int_equal(ctn_error_status(), st);
        ctn_error_clear();
    }
    assert_int_equal(st, CTN_OK);
    assert_true(n > 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idx),        cmocka_unit_test(test_idx_hostile),
        cmocka_unit_test(test_idx_gzip),   cmocka_unit_test(test_mnist),
        cmocka_unit_test(test_mnist_real), cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
