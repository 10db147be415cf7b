/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays in files: .npy of every version, type, order and byte order; damaged files; output
 * equal to that of NumPy; HDF5 through the plug-in, if it was built.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/datasets.h>
#include <catena/log.h>

#include <cmocka.h>

#include "support/check.h"

/* Writes a .npy file of any version with this dictionary. */
static void write_npy(const char *path, int version, const char *dict, const void *data, size_t n)
{
    static uint8_t all[8192];
    const size_t k = strlen(dict);
    const size_t start = version == 1 ? 10 : 12;
    memcpy(all, "\x93NUMPY", 6);
    all[6] = (uint8_t)version;
    all[7] = 0;
    all[8] = (uint8_t)k;
    all[9] = (uint8_t)(k >> 8);
    all[10] = all[11] = 0;
    memcpy(all + start, dict, k);
    memcpy(all + start + k, data, n);
    write_bytes(path, all, start + k + n);
}

static ctn_status open_one(ctn_dataset **ds, const char *path)
{
    return ctn_files_open(ds, 1, (const char *[]){path}, NULL);
}

/* numpy.lib.format of arange(6, dtype='<f4').reshape(2, 3), version 1.0, as NumPy 1.16 wrote it */
static const char golden_head[] =
    "\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    "                                                          \n";

static void test_golden(void **state)
{
    (void)state;
    const float x[6] = {0, 1, 2, 3, 4, 5};
    float y[3];
    char got[128 + 24];
    const ctn_field field = {CTN_F32, 1, {3}, 0};
    assert_int_equal(sizeof golden_head - 1, 128);
    assert_int_equal(ctn_npy_save("golden.npy", 2, &field, x), CTN_OK);
    FILE *f = fopen("golden.npy", "rb");
    assert_int_equal(fread(got, 1, sizeof got, f), sizeof got);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    assert_memory_equal(got, golden_head, 128);
    assert_memory_equal(got + 128, x, sizeof x);

    ctn_dataset *ds = NULL;
    assert_int_equal(open_one(&ds, "golden.npy"), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 2);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){y}), CTN_OK);
    assert_true(y[0] == 3 && y[1] == 4 && y[2] == 5);
    char name[64];
    ctn_dataset_name(ds, 1, name, sizeof name);
    assert_string_equal(name, "golden.npy[1]");
    ctn_dataset_free(ds);
}

/* Each type: two samples, 1 and -2 (or the largest), in both byte orders. */
static void test_types(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        uint8_t data[2][8]; /* little-endian */
        int bytes;
        ctn_dtype dtype;
        double value[2];
    } cases[] = {
        {"f2", {{0, 0x3c}, {0, 0xc0}}, 2, CTN_F32, {1, -2}},
        {"f4", {{0, 0, 0x80, 0x3f}, {0, 0, 0, 0xc0}}, 4, CTN_F32, {1, -2}},
        {"f8", {{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, {0, 0, 0, 0, 0, 0, 0, 0xc0}}, 8, CTN_F32, {1, -2}},
        {"i1", {{1}, {0xfe}}, 1, CTN_I64, {1, -2}},
        {"i2", {{1}, {0xfe, 0xff}}, 2, CTN_I64, {1, -2}},
        {"i4", {{1}, {0xfe, 0xff, 0xff, 0xff}}, 4, CTN_I32, {1, -2}},
        {"i8", {{1}, {0xfe, 255, 255, 255, 255, 255, 255, 255}}, 8, CTN_I64, {1, -2}},
        {"u1", {{1}, {255}}, 1, CTN_U8, {1, 255}},
        {"u2", {{1}, {255, 255}}, 2, CTN_I64, {1, 65535}},
        {"u4", {{1}, {255, 255, 255, 255}}, 4, CTN_I64, {1, 4294967295.0}},
        {"u8", {{1}, {0, 0, 0, 0, 1}}, 8, CTN_I64, {1, 4294967296.0}},
        {"b1", {{7}, {0}}, 1, CTN_BOOL, {1, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int big = 0; big < 2; big++) {
            uint8_t data[16];
            char dict[128];
            const int n = cases[i].bytes;
            for (int s = 0; s < 2; s++)
                for (int b = 0; b < n; b++) data[s * n + b] = cases[i].data[s][big ? n - 1 - b : b];
            snprintf(dict, sizeof dict, "{'shape':(2,),'fortran_order':False,\"descr\":'%c%s'}\n",
                     n == 1 ? '|'
                     : big  ? '>'
                            : '<',
                     cases[i].descr);
            write_npy("types.npy", 1 + (int)i % 3, dict, data, 2 * (size_t)n);
            ctn_dataset *ds = NULL;
            assert_int_equal(open_one(&ds, "types.npy"), CTN_OK);
            assert_int_equal(ctn_dataset_field(ds, 0)->dtype, cases[i].dtype);
            assert_int_equal(ctn_dataset_field(ds, 0)->ndim, 0);
            for (int s = 0; s < 2; s++) {
                union {
                    float f;
                    int64_t l;
                    int32_t w;
                    uint8_t b;
                } v = {.l = -1};
                assert_int_equal(ctn_dataset_get(ds, s, (void *[]){&v}), CTN_OK);
                double got = cases[i].dtype == CTN_F32   ? (double)v.f
                             : cases[i].dtype == CTN_I64 ? (double)v.l
                             : cases[i].dtype == CTN_I32 ? v.w
                                                         : v.b;
                if (got != cases[i].value[s])
                    fail_msg("%s, %s-endian, sample %d: %g", cases[i].descr, big ? "big" : "little",
                             s, got);
            }
            ctn_dataset_free(ds);
        }
}

static void test_fortran_and_f64(void **state)
{
    (void)state;
    double data[2 * 3 * 4 * 5];
    /* Element (n,a,b,c) has the value 1000n + 100a + 10b + c, in column-major order: the first
     * index is the fastest. */
    for (int c = 0, k = 0; c < 5; c++)
        for (int b = 0; b < 4; b++)
            for (int a = 0; a < 3; a++)
                for (int n = 0; n < 2; n++) data[k++] = 1000 * n + 100 * a + 10 * b + c + 1e-9;
    write_npy("fortran.npy", 1,
              "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3, 4, 5), }\n", data,
              sizeof data);
    for (int keep = 0; keep < 2; keep++) {
        double d[60];
        float f[60];
        ctn_dataset *ds = NULL;
        assert_int_equal(ctn_files_open(&ds, 1, (const char *[]){"fortran.npy"},
                                        CTN_OPT(ctn_files_opt, .keep_f64 = keep)),
                         CTN_OK);
        const ctn_field *field = ctn_dataset_field(ds, 0);
        assert_int_equal(field->dtype, keep ? CTN_F64 : CTN_F32);
        assert_true(field->ndim == 3 && field->shape[0] == 3 && field->shape[2] == 5);
        assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){keep ? (void *)d : f}), CTN_OK);
        for (int i = 0; i < 60; i++) {
            const int whole = 1000 + 100 * (i / 20) + 10 * (i / 5 % 4) + i % 5;
            const double want = whole + 1e-9;
            assert_true(keep ? d[i] == want : f[i] == (float)want);
        }
        ctn_dataset_free(ds);
    }
    /* With one dimension both orders are the same. */
    write_npy("fortran1.npy", 1, "{'descr': '<f8', 'fortran_order': True, 'shape': (3L,), }\n",
              data, 24);
    ctn_dataset *ds = NULL;
    float v;
    assert_int_equal(open_one(&ds, "fortran1.npy"), CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 2, (void *[]){&v}), CTN_OK);
    assert_true(v == (float)data[2]);
    ctn_dataset_free(ds);
}

static void refuse(const char *dict, size_t bytes, ctn_status want, const char *part)
{
    static const uint8_t zeros[256];
    ctn_dataset *ds = NULL;
    write_npy("bad.npy", 1, dict, zeros, bytes);
    assert_fails(open_one(&ds, "bad.npy"), want, part);
    assert_null(ds);
}

static void test_hostile(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
#define D(descr, order, shape) \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"
    refuse(D("'<f4'", "False", "(2, 3)"), 23, CTN_EFORMAT, "promises 24");
    refuse(D("'<f4'", "False", "(9223372036854775807, 9223372036854775807)"), 24, CTN_EFORMAT,
           "promises");
    refuse(D("'<f4'", "False", "(99999999999999999999,)"), 24, CTN_EFORMAT, "damaged header");
    refuse(D("'<f4'", "False", "(-1,)"), 24, CTN_EFORMAT, "damaged header");
    refuse(D("'<f4'", "False", "()"), 24, CTN_ESHAPE, "one number");
    refuse(D("'<f4'", "False", "(2, 0)"), 24, CTN_ESHAPE, "size 0");
    refuse(D("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), 24, CTN_EUNSUPPORTED, "8 dimensions");
    refuse(D("'<f4'", "Maybe", "(2,)"), 24, CTN_EFORMAT, "damaged header");
    refuse(D("'<f4'", "False", "(2"), 24, CTN_EFORMAT, "damaged header");
    refuse(D("'<c8'", "False", "(2,)"), 24, CTN_EDTYPE, "'<c8'");
    refuse(D("'<f16'", "False", "(2,)"), 24, CTN_EDTYPE, "'<f16'");
    refuse(D("'|O'", "False", "(2,)"), 24, CTN_EDTYPE, "'|O'");
    refuse(D("'<f99999999999'", "False", "(2,)"), 24, CTN_EDTYPE, "99999");
    refuse(D("''", "False", "(2,)"), 24, CTN_EDTYPE, "''");
    refuse(D("'*f4'", "False", "(2,)"), 24, CTN_EDTYPE, "'*f4'");
    refuse(D("'<f04'", "False", "(2,)"), 24, CTN_EDTYPE, "'<f04'");
    refuse(D("'<f'", "False", "(2,)"), 24, CTN_EDTYPE, "'<f'");
    refuse(D("[('a', '<f4')]", "False", "(2,)"), 24, CTN_EUNSUPPORTED, "records");
    refuse("{'descr': '<f4', 'shape': (2,), }", 24, CTN_EFORMAT, "damaged header");
    refuse("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 24,
           CTN_EFORMAT, "damaged header");
    refuse(D("'<f4'", "False", "(2,)") " x", 24, CTN_EFORMAT, "damaged header");
    refuse(D("'<f4'", "False", "(2,), 'more': 1"), 24, CTN_EFORMAT, "damaged header");
    refuse("", 24, CTN_EFORMAT, "damaged header");
    refuse("{'descr", 24, CTN_EFORMAT, "damaged header");
    write_bytes("bad.npy", "\x93NUMPY\x01\0\xff\xff{}", 12);
    assert_fails(open_one(&ds, "bad.npy"), CTN_EFORMAT, "ends within its header");
    write_bytes("bad.npy", "\x93NUMPY\x02\0\x01\0\0", 11);
    assert_fails(open_one(&ds, "bad.npy"), CTN_EFORMAT, "ends within its header");
    write_bytes("bad.npy", "\x93NUMPY\x04\0\x01\0\0\0", 12);
    assert_fails(open_one(&ds, "bad.npy"), CTN_EUNSUPPORTED, "version is 4");
    write_bytes("bad.npy", "PK\3\4", 4);
    assert_fails(open_one(&ds, "bad.npy"), CTN_EFORMAT, "bad.npy: is not a .npy file");
    write_bytes("bad.npy", "", 0);
    assert_fails(open_one(&ds, "bad.npy"), CTN_EFORMAT, "bad.npy: is empty");
    assert_fails(open_one(&ds, "absent.npy"), CTN_EIO, "absent.npy: No such file");
    assert_fails(open_one(&ds, "."), CTN_EIO, "not a regular file");

    uint8_t large[8] = {0, 0, 0, 0, 0, 0, 0, 0x80};
    int64_t v;
    write_npy("bad.npy", 1, D("'<u8'", "False", "(1,)"), large, 8);
    assert_int_equal(open_one(&ds, "bad.npy"), CTN_OK);
    assert_fails(ctn_dataset_get(ds, 0, (void *[]){&v}), CTN_EFORMAT,
                 "rows 0 to 0 have numbers too");
    ctn_dataset_free(ds);
}

static void test_several(void **state)
{
    (void)state;
    const ctn_field x = {CTN_F32, 2, {2, 2}, 0}, y = {CTN_I64, 0, {0}, 0};
    const float xs[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const int64_t ys[3] = {5, -6, 7};
    float gx[4];
    int64_t gy;
    ctn_dataset *ds = NULL;
    assert_int_equal(ctn_npy_save("x.npy", 3, &x, xs), CTN_OK);
    assert_int_equal(ctn_npy_save("y.npy", 3, &y, ys), CTN_OK);
    assert_int_equal(ctn_npy_save("y2.npy", 2, &y, ys), CTN_OK);
    assert_int_equal(ctn_npy_save("y0.npy", 0, &y, NULL), CTN_OK);
    assert_int_equal(ctn_files_open(&ds, 2, (const char *[]){"x.npy", "y.npy"}, NULL), CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){gx, &gy}), CTN_OK);
    assert_true(gx[0] == 4 && gx[3] == 7 && gy == -6);
    ctn_dataset_free(ds);
    assert_fails(ctn_files_open(&ds, 2, (const char *[]){"x.npy", "y2.npy"}, NULL), CTN_ESHAPE,
                 "x.npy has 3 samples, y2.npy has 2");
    assert_int_equal(open_one(&ds, "y0.npy"), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 0);
    ctn_dataset_free(ds);
    assert_fails(ctn_files_open(&ds, 2, (const char *[]){"x.npy", NULL}, NULL), CTN_EARG,
                 "path of field 1 is NULL");
    assert_fails(ctn_files_open(NULL, 1, (const char *[]){"x.npy"}, NULL), CTN_EARG, "NULL");
    assert_fails(ctn_files_open(&ds, 1, NULL, NULL), CTN_EARG, "NULL argument");
    assert_fails(ctn_files_open(&ds, 0, (const char *[]){"x.npy"}, NULL), CTN_EARG, "0 fields");
    assert_fails(ctn_files_open(&ds, CTN_DATA_FIELDS + 1, (const char *[]){"x.npy"}, NULL),
                 CTN_EARG, "fields, expected 1 to");
    assert_fails(ctn_npy_save("no/such/folder.npy", 3, &y, ys), CTN_EIO, "no/such/folder.npy");
    const ctn_field low = {CTN_BF16, 0, {0}, 0};
    assert_fails(ctn_npy_save("low.npy", 1, &low, ys), CTN_EDTYPE, "bf16");
    assert_int_not_equal(access("low.npy", F_OK), 0);
}

/* Names that need more than the path of a file. */
static void test_names(void **state)
{
    (void)state;
    static const char *const paths[][2] = {{"a.h5", "a.h5:/name (h5ls"},
                                           {"a.hdf5", "a.hdf5:/name (h5ls"},
                                           {"a.nc", "a.nc:/name (ncdump -h"},
                                           {"a.nc4", "a.nc4:/name (ncdump -h"},
                                           {"a.npz", ".npz archives are not supported"}};
    ctn_dataset *ds = NULL;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_fails(open_one(&ds, paths[i][0]), CTN_EFORMAT, paths[i][1]);
    assert_fails(open_one(&ds, "h5"), CTN_EIO, "h5: No such file");
    assert_fails(ctn_files_open(&ds, 1, (const char *[]){"a.h5:/x"},
                                CTN_OPT(ctn_files_opt, .offsets = (const char *[]){"o.npy"})),
                 CTN_EUNSUPPORTED, "a ragged field must be a .npy file");
}

/* Dimensions of size 1, and as many as there can be: with offsets, one less. */
static void test_dimensions(void **state)
{
    (void)state;
    const int32_t data[2] = {5, 6};
    const int64_t offsets[3] = {0, 1, 2};
    int32_t got[2] = {0};
    ctn_dataset *ds = NULL;
    const ctn_files_opt ragged = {.struct_size = sizeof ragged,
                                  .offsets = (const char *[]){"offsets.npy"}};
    write_npy("offsets.npy", 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }",
              offsets, sizeof offsets);
    write_npy("d8.npy", 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,1,1,1,1,1,1,1), }",
              data, sizeof data);
    write_npy("d7.npy", 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,1,1,1,1,1,1), }",
              data, sizeof data);
    assert_int_equal(open_one(&ds, "d8.npy"), CTN_OK);
    assert_int_equal(ctn_dataset_field(ds, 0)->ndim, 7);
    for (int d = 0; d < 7; d++) assert_int_equal(ctn_dataset_field(ds, 0)->shape[d], 1);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){got}), CTN_OK);
    assert_int_equal(got[0], 6);
    ctn_dataset_free(ds);
    assert_fails(ctn_files_open(&ds, 1, (const char *[]){"d8.npy"}, &ragged), CTN_ESHAPE,
                 "d8.npy: has 8 dimensions, too many for a ragged field");
    assert_int_equal(ctn_files_open(&ds, 1, (const char *[]){"d7.npy"}, &ragged), CTN_OK);
    assert_int_equal(ctn_dataset_field(ds, 0)->ndim, 7);
    assert_int_equal(ctn_dataset_field(ds, 0)->shape[0], CTN_RAGGED);
    assert_int_equal(ctn_dataset_length(ds, 0, 1), 1);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){got}), CTN_OK);
    assert_int_equal(got[0], 6);
    ctn_dataset_free(ds);
}

/* ---- files that are not held in memory ------------------------------------------------------ */

enum { MANY = 40000 }; /* elements of a sample: more than are converted at once */

static void count_warnings(void *user, const char *text)
{
    ++*(int *)user;
    assert_non_null(strstr(text, "column-major"));
}

/* Long samples are read on demand, with the same numbers as short ones in every type. */
static void test_long_samples(void **state)
{
    (void)state;
    static const char *const kinds[] = {"<f4", ">f4", "<f8", "<i2", "|u1", "<i4"};
    static uint8_t data[2 * MANY * 8];
    static float f[MANY];
    static int64_t l[MANY];
    static int32_t w[MANY];
    static uint8_t b[MANY];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const int es = kinds[k][2] - '0';
        const size_t n = (size_t)2 * MANY * (size_t)es;
        char dict[128];
        for (size_t i = 0; i < n; i++) data[i] = (uint8_t)(i * 7 % 61);
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (2, %d)}",
                 kinds[k], MANY);
        write_npy("long.npy", 1, dict, "", 0);
        FILE *out = fopen("long.npy", "ab");
        assert_int_equal(fwrite(data, 1, n, out), n);
        fclose(out);
        ctn_dataset *ds = NULL;
        int warnings = 0;
        ctn_set_log(count_warnings, &warnings);
        assert_int_equal(open_one(&ds, "long.npy"), CTN_OK);
        ctn_set_log(NULL, NULL);
        assert_int_equal(warnings, 0);
        const ctn_dtype type = ctn_dataset_field(ds, 0)->dtype;
        void *to = type == CTN_F32   ? (void *)f
                   : type == CTN_I64 ? (void *)l
                   : type == CTN_I32 ? (void *)w
                                     : b;
        assert_int_equal(ctn_dataset_get(ds, 1, &to), CTN_OK);
        for (int i = 0; i < MANY; i++) {
            uint8_t e[8] = {0};
            double d;
            float s;
            for (int j = 0; j < es; j++)
                e[kinds[k][0] == '>' ? es - 1 - j : j] = data[(MANY + i) * es + j];
            memcpy(&d, e, 8);
            memcpy(&s, e, 4);
            bool good = es == 8           ? f[i] == (float)d
                        : type == CTN_F32 ? f[i] == s
                        : type == CTN_I64 ? l[i] == (e[0] | e[1] << 8)
                        : type == CTN_I32 ? w[i] == (e[0] | e[1] << 8 | e[2] << 16 | e[3] << 24)
                                          : b[i] == e[0];
            if (!good) fail_msg("%s: element %d", kinds[k], i);
        }
        ctn_dataset_free(ds);
    }
    unlink("long.npy");
}

/* Creates a sparse file of zeros that is too large to be kept in memory. */
static int sparse(const char *path, const char *dict, off_t size)
{
    write_npy(path, 1, dict, "", 0);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), size), 0);
    fclose(f);
    return (int)(10 + strlen(dict)); /* offset of the data */
}

static void test_large_column_major(void **state)
{
    (void)state;
    enum { COUNT = 20000000 };
    int start = sparse("columns.npy",
                       "{'descr': '<f4', 'fortran_order': True, 'shape': (20000000, 2, 2), }\n",
                       (off_t)340000000);
    FILE *out = fopen("columns.npy", "r+b");
    for (int k = 0; k < 4; k++) { /* element (7, a, b), at 7 + COUNT (a + 2b), is 10a + b */
        const int a = k % 2, b = k / 2;
        const float v = (float)(10 * a + b);
        fseek(out, start + 4L * (7 + (long)COUNT * k), SEEK_SET);
        assert_int_equal(fwrite(&v, 4, 1, out), 1);
    }
    fclose(out);
    ctn_dataset *ds = NULL;
    int warnings = 0;
    ctn_set_log(count_warnings, &warnings);
    assert_int_equal(open_one(&ds, "columns.npy"), CTN_OK);
    ctn_set_log(NULL, NULL);
    assert_int_equal(warnings, 1);
    float y[4] = {-1, -1, -1, -1};
    assert_int_equal(ctn_dataset_get(ds, 7, (void *[]){y}), CTN_OK);
    assert_true(y[0] == 0 && y[1] == 1 && y[2] == 10 && y[3] == 11);
    ctn_dataset_free(ds);
    unlink("columns.npy");
}

/* Another process truncates a file while it is in use: an error with its name, no signal. */
static void test_shortened(void **state)
{
    (void)state;
    static const struct {
        const char *dict;
        off_t size, cut;
        const char *part;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 40000), }\n", 500000, 400000,
         "files: cut.npy: became shorter while it was in use: nothing to read at byte 400000"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (20000000, 2), }\n", 340000000, 4096,
         "nothing to read at byte 3"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (40000000, 2), }\n", 340000000, 4096,
         "nothing to read at byte"},
    };
    static float x[40000];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ctn_dataset *ds = NULL;
        int64_t last;
        sparse("cut.npy", cases[i].dict, cases[i].size);
        assert_int_equal(open_one(&ds, "cut.npy"), CTN_OK);
        last = ctn_dataset_count(ds) - 1;
        assert_int_equal(ctn_dataset_get(ds, last, (void *[]){x}), CTN_OK);
        assert_int_equal(truncate("cut.npy", cases[i].cut), 0);
        assert_int_equal(ctn_dataset_get(ds, 0, (void *[]){x}), i == 2 ? CTN_EIO : CTN_OK);
        ctn_error_clear();
        assert_fails(ctn_dataset_get(ds, last, (void *[]){x}), CTN_EIO, cases[i].part);
        ctn_dataset_free(ds);
    }
    unlink("cut.npy");
}

static bool have_python(const char *module)
{
    char line[128];
    snprintf(line, sizeof line, "python3 -c 'import %s' 2>/dev/null", module);
    return system(line) == 0;
}

static void test_numpy(void **state)
{
    (void)state;
    if (!have_python("numpy")) skip();
    const ctn_field field = {CTN_F64, 2, {2, 2}, 0};
    const double xs[8] = {0, 1, 2, 3, 4, 5, 6, 7.5};
    assert_int_equal(ctn_npy_save("to_numpy.npy", 2, &field, xs), CTN_OK);
    assert_int_equal(system("python3 -c \"import numpy as n; a = n.load('to_numpy.npy');"
                            "assert a.dtype == 'f8' and a.shape == (2, 2, 2) and a[1, 1, 1] == 7.5;"
                            "n.save('from_numpy.npy', n.asfortranarray(a.astype('>f4')))\""),
                     0);
    ctn_dataset *ds = NULL;
    float y[4];
    assert_int_equal(open_one(&ds, "from_numpy.npy"), CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){y}), CTN_OK);
    assert_true(y[0] == 4 && y[1] == 5 && y[2] == 6 && y[3] == 7.5f);
    ctn_dataset_free(ds);
}

/* ---- HDF5 ------------------------------------------------------------------------------------ */

/* Tests run in <build>/tests/unit/NAME.work; the plug-in is in <build>. */
static bool have_plugin(void)
{
    if (access("../../../libcatena_hdf5.so", R_OK) != 0) return false;
    setenv("CATENA_PLUGIN_DIR", "../../..", 1);
    return true;
}

static void test_no_plugin(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    setenv("CATENA_PLUGIN_DIR", "nowhere", 1);
    assert_fails(open_one(&ds, "x.h5:/a"), CTN_EUNSUPPORTED, "libhdf5-dev");
    unsetenv("CATENA_PLUGIN_DIR");
}

static const uint8_t hdf5_file[] = {
#include "hdf5_file.inc"
};

static void test_hdf5(void **state)
{
    (void)state;
    if (!have_plugin()) skip();
    write_bytes("t.h5", hdf5_file, sizeof hdf5_file);
    ctn_dataset *ds = NULL;
    float x[4];
    int64_t y;
    int32_t c[2];
    assert_int_equal(ctn_files_open(&ds, 3, (const char *[]){"t.h5:/g/x", "t.h5:/y", "t.h5:/c"},
                                    NULL),
                     CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 3);
    assert_int_equal(ctn_dataset_field(ds, 0)->dtype, CTN_F32);
    assert_int_equal(ctn_dataset_field(ds, 0)->shape[0], 4);
    assert_int_equal(ctn_dataset_field(ds, 1)->dtype, CTN_I64);
    assert_int_equal(ctn_dataset_field(ds, 2)->dtype, CTN_I32);
    assert_int_equal(ctn_dataset_get(ds, 2, (void *[]){x, &y, c}), CTN_OK);
    assert_true(x[0] == 1 && x[3] == 1.375f && y == 300 && c[0] == 4 && c[1] == 5);
    char name[64];
    ctn_dataset_name(ds, 2, name, sizeof name);
    assert_string_equal(name, "t.h5:/g/x[2]");
    ctn_dataset_free(ds);
    assert_fails(open_one(&ds, "t.h5:/absent"), CTN_EIO, "t.h5:/absent");
    assert_fails(open_one(&ds, "absent.h5:/x"), CTN_EIO, "absent.h5:/x");
    assert_fails(open_one(&ds, "t.h5:/g"), CTN_EIO, "t.h5:/g");
    assert_fails(open_one(&ds, "t.h5:/s"), CTN_ESHAPE, "t.h5:/s: is one number");
    write_bytes("bad.h5", hdf5_file, sizeof hdf5_file / 2);
    assert_fails(open_one(&ds, "bad.h5:/g/x"), CTN_EIO, "bad.h5:/g/x");
    write_bytes("bad.h5", "this is no HDF5 file", 20);
    assert_fails(open_one(&ds, "bad.h5:/x"), CTN_EIO, "bad.h5:/x");
}

/* ---- NetCDF ---------------------------------------------------------------------------------- */

static const uint8_t netcdf_file[] = {
#include "netcdf_file.inc"
};

static void test_netcdf(void **state)
{
    (void)state;
    if (!have_plugin()) skip();
    write_bytes("t.nc", netcdf_file, sizeof netcdf_file);
    ctn_dataset *ds = NULL;
    float t[4], tu[8];
    int32_t k[4];
    static const char *const paths[] = {"t.nc:/t", "t.nc:/t,u", "t.nc:/k"};
    assert_int_equal(ctn_files_open(&ds, 3, paths, NULL), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 3);
    assert_int_equal(ctn_dataset_field(ds, 0)->dtype, CTN_F32); /* packed integers */
    assert_int_equal(ctn_dataset_field(ds, 0)->ndim, 2);
    assert_int_equal(ctn_dataset_field(ds, 1)->ndim, 3);
    assert_int_equal(ctn_dataset_field(ds, 1)->shape[0], 2);
    assert_int_equal(ctn_dataset_field(ds, 2)->dtype, CTN_I32);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){t, tu, k}), CTN_OK);
    assert_true(t[0] == 120 && isnan(t[1]) && t[2] == 130 && t[3] == 135);
    assert_true(tu[0] == 120 && isnan(tu[1]) && tu[3] == 135 && tu[4] == 4 && tu[7] == 7);
    assert_true(k[0] == 4 && k[3] == 7);
    assert_fails(ctn_dataset_get(ds, 2, (void *[]){t, tu, k}), CTN_EFORMAT,
                 "t.nc:/k: sample 2: a value is missing");
    ctn_dataset_free(ds);
    assert_int_equal(ctn_files_open(&ds, 3, paths,
                                    CTN_OPT(ctn_files_opt, .fill = 1, .fill_value = -7)),
                     CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 2, (void *[]){t, tu, k}), CTN_OK);
    assert_true(tu[6] == 10 && tu[7] == -7 && k[0] == -7 && k[1] == 9);
    ctn_dataset_free(ds);
    /* The attributes mean nothing in other HDF5 files. */
    write_bytes("t.h5", netcdf_file, sizeof netcdf_file);
    int64_t raw[4];
    assert_int_equal(open_one(&ds, "t.h5:/t"), CTN_OK);
    assert_int_equal(ctn_dataset_field(ds, 0)->dtype, CTN_I64);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){raw}), CTN_OK);
    assert_true(raw[0] == 40 && raw[1] == -999);
    ctn_dataset_free(ds);
    assert_fails(open_one(&ds, "t.nc:/t,w"), CTN_ESHAPE, "w has another shape");
    write_bytes("t5.nc", hdf5_file, sizeof hdf5_file);
    assert_fails(open_one(&ds, "t5.nc:/g/x,/c"), CTN_ESHAPE, "/c has another shape");
    assert_fails(open_one(&ds, "t.nc:/t,absent"), CTN_EIO, "t.nc:/t,absent");
    assert_fails(open_one(&ds, "t.nc"), CTN_EFORMAT, "t.nc:/name");
    write_bytes("classic.nc", "CDF\1\0\0\0\0", 8);
    assert_fails(open_one(&ds, "classic.nc:/t"), CTN_EUNSUPPORTED, "nccopy -k nc4 classic.nc");
}

/* One field of several variables: how many, and of which type. */
static void test_netcdf_variables(void **state)
{
    (void)state;
    if (!have_plugin()) skip();
    static const struct {
        const char *names;
        int keep_f64;
        ctn_dtype dtype;
        int64_t first, ndim; /* dimensions of a sample */
    } cases[] = {
        {"k", 0, CTN_I32, 2, 2},     {"k,k", 0, CTN_I32, 2, 3},     {"k,u", 0, CTN_F32, 2, 3},
        {"u,k,t", 0, CTN_F32, 3, 3}, {"t,k,u,t", 1, CTN_F32, 4, 3}, {"w", 0, CTN_F32, 2, 1},
        {"w,w", 1, CTN_F64, 2, 2},   {"t", 1, CTN_F32, 2, 2},
    };
    ctn_dataset *ds = NULL;
    write_bytes("t.nc", netcdf_file, sizeof netcdf_file);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[64];
        const char *paths[] = {path};
        snprintf(path, sizeof path, "t.nc:/%s", cases[i].names);
        assert_int_equal(ctn_files_open(&ds, 1, paths,
                                        CTN_OPT(ctn_files_opt, .keep_f64 = cases[i].keep_f64)),
                         CTN_OK);
        const ctn_field *f = ctn_dataset_field(ds, 0);
        if (f->dtype != cases[i].dtype || f->ndim != cases[i].ndim ||
            f->shape[0] != cases[i].first || f->shape[f->ndim - 1] != 2)
            fail_msg("%s: type %d, %d dimensions, the first is %lld", path, (int)f->dtype, f->ndim,
                     (long long)f->shape[0]);
        ctn_dataset_free(ds);
    }
    /* Each variable has its own place in the sample. */
    float x[12];
    assert_int_equal(open_one(&ds, "t.nc:/u,k,t"), CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 0, (void *[]){x}), CTN_OK);
    const float want[12] = {0, 1, 2, 3, 0, 1, 2, 3, 100, 105, 110, 115};
    for (int i = 0; i < 12; i++) assert_true(x[i] == want[i]);
    ctn_dataset_free(ds);
    /* At most 256 variables, and names below 1024 bytes. */
    char many[2048] = "t.nc:/t";
    for (int i = 1; i < 256; i++) strcat(many, ",t");
    assert_int_equal(open_one(&ds, many), CTN_OK);
    assert_int_equal(ctn_dataset_field(ds, 0)->shape[0], 256);
    ctn_dataset_free(ds);
    assert_fails(open_one(&ds, strcat(many, ",t")), CTN_EARG, "more than 256 variables");
    char name[1040] = "t.nc:/";
    memset(name + 6, 'x', 1022);
    assert_fails(open_one(&ds, name), CTN_EIO, "t.nc:/xxx");
    name[6 + 1022] = 'x';
    assert_fails(open_one(&ds, name), CTN_EARG, "a name is too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),           cmocka_unit_test(test_types),
        cmocka_unit_test(test_fortran_and_f64),  cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_several),          cmocka_unit_test(test_names),
        cmocka_unit_test(test_dimensions),       cmocka_unit_test(test_numpy),
        cmocka_unit_test(test_no_plugin),        cmocka_unit_test(test_hdf5),
        cmocka_unit_test(test_long_samples),     cmocka_unit_test(test_large_column_major),
        cmocka_unit_test(test_shortened),        cmocka_unit_test(test_netcdf),
        cmocka_unit_test(test_netcdf_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
