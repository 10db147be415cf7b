/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of text: columns, numbers, quoted cells, missing values, classes, errors that name the
 * line and the column. Labels: threads
 */
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <catena/datasets.h>

#include <cmocka.h>

#include "support/check.h"

#define PATH "test-csv.csv"
#define NAMES(...) ((const char *const[]){__VA_ARGS__})

/* Opens a table that consists of this text. */
static ctn_status open_text(ctn_dataset **ds, const char *text, const ctn_csv_opt *opt)
{
    write_bytes(PATH, text, strlen(text));
    return ctn_csv_open(ds, PATH, opt);
}

static void check_f32(ctn_dataset *ds, int f, int64_t sample, int n, const float *want)
{
    float got[2][8];
    int64_t label;
    void *dst[2] = {got[0], got[1]};
    if (ctn_dataset_fields(ds) > 1 && ctn_dataset_field(ds, 1)->dtype == CTN_I64) dst[1] = &label;
    assert_int_equal(ctn_dataset_get(ds, sample, dst), CTN_OK);
    for (int i = 0; i < n; i++)
        if (got[f][i] != want[i])
            fail_msg("field %d, sample %lld, value %d: %.9g, expected %.9g", f, (long long)sample,
                     i, (double)got[f][i], (double)want[i]);
}

static int64_t class_of(ctn_dataset *ds, int64_t sample)
{
    double x[8];
    int64_t label = -1;
    assert_int_equal(ctn_dataset_get(ds, sample, (void *[]){x, &label}), CTN_OK);
    return label;
}

static void test_columns(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    static const char text[] = "a,b,price,name\n1,2,3,x\n4,5,6,y\n";
    assert_int_equal(open_text(&ds, text,
                               CTN_OPT(ctn_csv_opt, .ninputs = 2, .inputs = NAMES("b", "0"),
                                       .ntargets = 1, .targets = NAMES("price"))),
                     CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 2);
    assert_int_equal(ctn_dataset_fields(ds), 2);
    assert_int_equal(ctn_dataset_field(ds, 0)->shape[0], 2);
    assert_int_equal(ctn_dataset_field(ds, 1)->ndim, 0);
    check_f32(ds, 0, 1, 2, (float[]){5, 4});
    check_f32(ds, 1, 1, 1, (float[]){6});
    assert_string_equal(ctn_csv_column(ds, 0, 1), "a");
    assert_string_equal(ctn_csv_column(ds, 1, 0), "price");
    assert_null(ctn_csv_column(ds, 1, 1));
    assert_null(ctn_csv_column(ds, 0, -1));
    assert_null(ctn_dataset_class(ds, 0));
    ctn_dataset_free(ds);

    /* All but the targets, in f64, without a header. */
    assert_int_equal(open_text(&ds, "1;2;3\n4;5;6",
                               CTN_OPT(ctn_csv_opt, .separator = ";", .no_header = 1, .keep_f64 = 1,
                                       .ntargets = 2, .targets = NAMES("2", "0"))),
                     CTN_OK);
    double x[1], y[2];
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){x, y}), CTN_OK);
    assert_true(x[0] == 5 && y[0] == 6 && y[1] == 4);
    assert_string_equal(ctn_csv_column(ds, 0, 0), "1");
    ctn_dataset_free(ds);

    assert_int_equal(open_text(&ds, "a\n1\n2\n", NULL), CTN_OK);
    assert_int_equal(ctn_dataset_fields(ds), 1);
    ctn_dataset_free(ds);
}

/* Many columns, all of them inputs, in another order than in the file. */
static void test_wide(void **state)
{
    (void)state;
    enum { COLUMNS = 300 };
    static char text[3 * COLUMNS * 8], name[COLUMNS][16];
    static const char *inputs[COLUMNS + 1];
    static float x[COLUMNS];
    size_t n = 0;
    for (int row = 0; row < 3; row++)
        for (int k = 0; k < COLUMNS; k++)
            n += (size_t)sprintf(text + n, "%s%d%c", row ? "" : "c", 1000 * row + k,
                                 k + 1 < COLUMNS ? ',' : '\n');
    for (int k = 0; k < COLUMNS; k++) {
        snprintf(name[k], sizeof name[k], "c%d", k);
        inputs[COLUMNS - 1 - k] = name[k];
    }
    inputs[COLUMNS] = "0";
    ctn_dataset *ds = NULL;
    ctn_csv_opt o = {.struct_size = sizeof o, .ninputs = COLUMNS, .inputs = inputs};
    assert_int_equal(open_text(&ds, text, &o), CTN_OK);
    assert_int_equal(ctn_dataset_fields(ds), 1);
    assert_int_equal(ctn_dataset_field(ds, 0)->shape[0], COLUMNS);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){x}), CTN_OK);
    for (int k = 0; k < COLUMNS; k++) {
        assert_true(x[k] == (float)(2000 + COLUMNS - 1 - k));
        assert_string_equal(ctn_csv_column(ds, 0, k), name[COLUMNS - 1 - k]);
    }
    assert_null(ctn_csv_column(ds, 0, COLUMNS));
    ctn_dataset_free(ds);
    o.ninputs = COLUMNS + 1;
    assert_fails(open_text(&ds, text, &o), CTN_EARG, "301 inputs and 0 targets of 300 columns");
    o = (ctn_csv_opt){.struct_size = sizeof o, .ntargets = COLUMNS + 1, .targets = inputs};
    assert_fails(open_text(&ds, text, &o), CTN_EARG, "0 inputs and 301 targets of 300 columns");
    o.ntargets = COLUMNS;
    assert_fails(open_text(&ds, text, &o), CTN_EARG, "none is an input");
    o.ntargets = COLUMNS - 1;
    assert_int_equal(open_text(&ds, text, &o), CTN_OK);
    assert_int_equal(ctn_dataset_field(ds, 0)->shape[0], 1);
    assert_int_equal(ctn_dataset_field(ds, 1)->shape[0], COLUMNS - 1);
    assert_string_equal(ctn_csv_column(ds, 0, 0), "c0");
    assert_string_equal(ctn_csv_column(ds, 1, 0), "c299");
    ctn_dataset_free(ds);
}

static void test_cells(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    /* A byte order mark, CR LF, an empty line, quotes, spaces, and no end of the last line. */
    static const char text[] = "\xef\xbb\xbf"
                               "\"first \"\"x\"\"\",b\r\n\r\n\"1\" , -2 \r\n+3.5e1,\"4\"";
    assert_int_equal(open_text(&ds, text, NULL), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 2);
    check_f32(ds, 0, 0, 2, (float[]){1, -2});
    check_f32(ds, 0, 1, 2, (float[]){35, 4});
    assert_string_equal(ctn_csv_column(ds, 0, 0), "first \"x\"");
    ctn_dataset_free(ds);
    /* A quoted cell with a separator and an end of a line; a quote inside an unquoted one. */
    assert_int_equal(open_text(&ds, "v,t\n1,\"a,\nb\"\n2,5\"\n3,\"a,\nb\"\n",
                               CTN_OPT(ctn_csv_opt, .ntargets = 1, .targets = NAMES("t"))),
                     CTN_OK);
    assert_int_equal(ctn_dataset_classes(ds), 2);
    assert_string_equal(ctn_dataset_class(ds, 0), "5\"");
    assert_string_equal(ctn_dataset_class(ds, 1), "a,\nb");
    assert_int_equal(class_of(ds, 0), 1);
    assert_int_equal(class_of(ds, 1), 0);
    assert_int_equal(class_of(ds, 2), 1);
    ctn_dataset_free(ds);
    /* A tab divides cells, so it is not white space around an empty one. */
    write_bytes("t.tsv", "a\tb\tc\n\t2\t\n", 10);
    assert_int_equal(ctn_csv_open(&ds, "t.tsv", CTN_OPT(ctn_csv_opt, .fill = 1, .fill_value = -1)),
                     CTN_OK);
    assert_int_equal(ctn_dataset_field(ds, 0)->shape[0], 3);
    check_f32(ds, 0, 0, 3, (float[]){-1, 2, -1});
    ctn_dataset_free(ds);
    unlink("t.tsv");
    /* A name that is a number comes before the number of a column. */
    assert_int_equal(open_text(&ds, "1,0\n7,8\n",
                               CTN_OPT(ctn_csv_opt, .ntargets = 1, .targets = NAMES("1"))),
                     CTN_OK);
    check_f32(ds, 0, 0, 1, (float[]){8});
    check_f32(ds, 1, 0, 1, (float[]){7});
    ctn_dataset_free(ds);
}

/* Every number is rounded as the C library does. */
static void test_numbers(void **state)
{
    (void)state;
    static const char *const number[] = {"0",
                                         "-0",
                                         "1.",
                                         ".5",
                                         "1e22",
                                         "1e23",
                                         "123456789012345678",
                                         "9007199254740993",
                                         "0.1234567890123456789",
                                         "1e-22",
                                         "1e-23",
                                         "4.9e-324",
                                         "1e-400",
                                         "1.7976931348623157e308",
                                         "00000000000000000000000001.50",
                                         "0.00000000000000000000000000001",
                                         "3.14159265358979323846",
                                         "123456789012345678901234567890",
                                         "12e+2",
                                         "1e10",
                                         "25e-11",
                                         "123e+19",
                                         "7E-3"};
    char text[2048] = "x\n";
    const int n = sizeof number / sizeof *number;
    ctn_dataset *ds = NULL;
    double v = 0;
    for (int i = 0; i < n; i++) strcat(strcat(text, number[i]), "\n");
    assert_int_equal(open_text(&ds, text, CTN_OPT(ctn_csv_opt, .keep_f64 = 1)), CTN_OK);
    for (int i = 0; i < n; i++) {
        const double want = strtod(number[i], NULL);
        assert_int_equal(ctn_dataset_get(ds, i, (void *[]){&v}), CTN_OK);
        if (memcmp(&v, &want, sizeof v) != 0) fail_msg("%s: %.17g", number[i], v);
    }
    ctn_dataset_free(ds);
    static const char *const other[] = {"1e", "--1", "1.2.3", "0x10", "inf", "1 2", "e5", ".", "+"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        snprintf(text, sizeof text, "x\n1\n%s\n", other[i]);
        assert_fails(open_text(&ds, text, NULL), CTN_EFORMAT, "line 3, column \"x\"");
    }
    assert_fails(open_text(&ds, "x\n1e39\n", NULL), CTN_EFORMAT, "too large");
    assert_fails(open_text(&ds, "x\n1e999\n", CTN_OPT(ctn_csv_opt, .keep_f64 = 1)), CTN_EFORMAT,
                 "too large");
}

static void test_missing(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    static const char text[] = "a,b\n1,\nNA,2\n?,nan\n\"\",null\nN/A,3\n";
    const ctn_csv_opt fill = {.struct_size = sizeof fill, .fill = 1, .fill_value = -9};
    assert_fails(open_text(&ds, text, NULL), CTN_EFORMAT,
                 "line 2, column \"b\": the value is missing");
    assert_null(ds);
    assert_int_equal(open_text(&ds, text, &fill), CTN_OK);
    check_f32(ds, 0, 0, 2, (float[]){1, -9});
    check_f32(ds, 0, 1, 2, (float[]){-9, 2});
    check_f32(ds, 0, 2, 2, (float[]){-9, -9});
    check_f32(ds, 0, 3, 2, (float[]){-9, -9});
    check_f32(ds, 0, 4, 2, (float[]){-9, 3});
    ctn_dataset_free(ds);
    /* A missing class is an error in any case. */
    ctn_csv_opt o = fill;
    o.ntargets = 1;
    o.targets = NAMES("b");
    assert_fails(open_text(&ds, "a,b\n1,x\n2,\n", &o), CTN_EFORMAT, "line 3");
}

static void test_classes(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL, *val = NULL;
    ctn_csv_opt o = {.struct_size = sizeof o, .ntargets = 1, .targets = NAMES("t")};
    assert_int_equal(open_text(&ds, "x,t\n1,red\n2,blue\n3,green\n4,blue\n5,7\n", &o), CTN_OK);
    assert_int_equal(ctn_dataset_field(ds, 1)->dtype, CTN_I64);
    assert_int_equal(ctn_dataset_classes(ds), 4);
    assert_string_equal(ctn_dataset_class(ds, 0), "7");
    assert_string_equal(ctn_dataset_class(ds, 1), "blue");
    static const int64_t want[] = {3, 1, 2, 1, 0};
    for (int i = 0; i < 5; i++) assert_int_equal(class_of(ds, i), want[i]);
    o.like = ds;
    assert_int_equal(open_text(&val, "x,t\n1,red\n2,\"red\"\n3,7\n", &o), CTN_OK);
    assert_int_equal(ctn_dataset_classes(val), 4);
    assert_int_equal(class_of(val, 1), 3);
    assert_int_equal(class_of(val, 2), 0);
    ctn_dataset_free(val);
    assert_fails(open_text(&val, "x,t\n1,pink\n", &o), CTN_EFORMAT, "\"pink\" does not occur");
    assert_fails(open_text(&val, "x,z,t\n1,2,red\n", &o), CTN_EARG, "2 inputs");
    ctn_dataset_free(ds);
    o.like = NULL;
    /* Sorted by bytes, also if one begins with the other; doubled quotes count once. */
    assert_int_equal(open_text(&ds, "x,t\n1,ab\n2,\"a\"\"\"\n3,a\n4,abc\n5,\"a\"\"\"\n6,b\n", &o),
                     CTN_OK);
    static const char *const sorted[] = {"a", "a\"", "ab", "abc", "b"};
    assert_int_equal(ctn_dataset_classes(ds), 5);
    for (int i = 0; i < 5; i++) assert_string_equal(ctn_dataset_class(ds, i), sorted[i]);
    static const int64_t order[] = {2, 1, 0, 3, 1, 4};
    for (int i = 0; i < 6; i++) assert_int_equal(class_of(ds, i), order[i]);
    ctn_dataset_free(ds);
    /* Numbers are classes only on request. */
    assert_int_equal(open_text(&ds, "x,t\n1,2\n2,0\n", &o), CTN_OK);
    assert_int_equal(ctn_dataset_field(ds, 1)->dtype, CTN_F32);
    ctn_dataset_free(ds);
    o.classes = 1;
    assert_int_equal(open_text(&ds, "x,t\n1,2\n2,0\n", &o), CTN_OK);
    assert_int_equal(class_of(ds, 0), 2);
    assert_int_equal(ctn_dataset_classes(ds), 0);
    ctn_dataset_free(ds);
    assert_fails(open_text(&ds, "x,t\n1,2\n2,0.5\n", &o), CTN_EFORMAT, "not a class");
    assert_fails(open_text(&ds, "x,t\n1,2\n2,-1\n", &o), CTN_EFORMAT, "not a class");
}

static void test_categories(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL, *val = NULL;
    static const char text[] = "c,x\nwest,1\neast,2\nwest,3\n";
    assert_fails(open_text(&ds, text, NULL), CTN_EFORMAT, "set categories in ctn_csv_opt");
    ctn_csv_opt o = {.struct_size = sizeof o, .categories = 1};
    assert_int_equal(open_text(&ds, text, &o), CTN_OK);
    check_f32(ds, 0, 0, 2, (float[]){1, 1});
    check_f32(ds, 0, 1, 2, (float[]){0, 2});
    o.like = ds;
    assert_int_equal(open_text(&val, "c,x\nwest,1\n", &o), CTN_OK);
    check_f32(val, 0, 0, 2, (float[]){1, 1});
    ctn_dataset_free(val);
    ctn_dataset_free(ds);
    /* Several hundred texts, in an order that is not theirs. */
    char *many = malloc(100000);
    size_t n = (size_t)sprintf(many, "c\n");
    for (int i = 0; i < 5000; i++) n += (size_t)sprintf(many + n, "k%03d\n", i * 7 % 500);
    o.like = NULL;
    assert_int_equal(open_text(&ds, many, &o), CTN_OK);
    for (int i = 0; i < 5000; i += 13) check_f32(ds, 0, i, 1, (float[]){(float)(i * 7 % 500)});
    ctn_dataset_free(ds);
    free(many);
}

static void test_errors(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    const ctn_csv_opt none = {.struct_size = sizeof none};
    ctn_csv_opt o = none;
    assert_fails(open_text(&ds, "a,b\n1,2\n\n3\n", NULL), CTN_EFORMAT,
                 "line 4 has 1 cells, the first line has 2");
    assert_fails(open_text(&ds, "a,b\n1,2,3\n", NULL), CTN_EFORMAT, "line 2 has 3 cells");
    assert_fails(open_text(&ds, "a\n1\n\"2\n", NULL), CTN_EFORMAT, "line 3, column \"a\": a quote");
    assert_fails(open_text(&ds, "a\n1\n\"2\"x\n", NULL), CTN_EFORMAT, "a quote");
    assert_fails(open_text(&ds, "a,b\n", NULL), CTN_EFORMAT, "no values");
    assert_fails(open_text(&ds, "", NULL), CTN_EFORMAT, "no values");
    write_bytes(PATH, "a\n\0\n", 4);
    assert_fails(ctn_csv_open(&ds, PATH, NULL), CTN_EFORMAT, "zero byte");
    assert_fails(ctn_csv_open(&ds, "no-such.csv", NULL), CTN_EIO, "no-such.csv");
    o.ntargets = 1;
    o.targets = NAMES("c");
    assert_fails(open_text(&ds, "a,b\n1,2\n", &o), CTN_ENOTFOUND, "\"c\"");
    o.targets = NAMES("2");
    assert_fails(open_text(&ds, "a,b\n1,2\n", &o), CTN_ENOTFOUND, "\"2\"");
    o.targets = NAMES("a");
    assert_fails(open_text(&ds, "a,a\n1,2\n", &o), CTN_EARG, "both named");
    assert_fails(open_text(&ds, "a\n1\n", &o), CTN_EARG, "none is an input");
    o.ninputs = 1;
    o.inputs = NAMES("a");
    assert_fails(open_text(&ds, "a,b\n1,2\n", &o), CTN_EARG, "chosen twice");
    o = none;
    o.separator = "e";
    assert_fails(open_text(&ds, "a,b\n1,2\n", &o), CTN_EARG, "separator");
    o = none;
    o.ntargets = 2;
    o.targets = NAMES("b", "c");
    assert_fails(open_text(&ds, "a,b,c\n1,2,x\n", &o), CTN_EFORMAT, "several targets");
    assert_null(ds);
}

static void test_refused_options(void **state)
{
    (void)state;
    static const char *const separators[] = {"", ",,", "\"", "\r", "\n", ".", "+", "-", "7", "e"};
    static const char text[] = "a,b\n1,2\n";
    const ctn_csv_opt none = {.struct_size = sizeof none};
    ctn_dataset *ds = NULL, *other = NULL;
    ctn_csv_opt o = none;
    for (size_t i = 0; i < sizeof separators / sizeof *separators; i++) {
        o.separator = separators[i];
        assert_fails(open_text(&ds, text, &o), CTN_EARG, "the separator is");
    }
    o = none;
    o.ninputs = -1;
    assert_fails(open_text(&ds, text, &o), CTN_EARG, "-1 inputs and 0 targets");
    o.ninputs = 1;
    assert_fails(open_text(&ds, text, &o), CTN_EARG, "1 inputs and 0 targets, but no names");
    o.inputs = NAMES(NULL);
    assert_fails(open_text(&ds, text, &o), CTN_EARG, "NULL");
    o = none;
    o.ntargets = -1;
    assert_fails(open_text(&ds, text, &o), CTN_EARG, "0 inputs and -1 targets");
    o.ntargets = 1;
    assert_fails(open_text(&ds, text, &o), CTN_EARG, "0 inputs and 1 targets, but no names");
    static const char *const absent[] = {"1x", "-1", "c", "99999999999999999999", ""};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        o.targets = &absent[i];
        assert_fails(open_text(&ds, text, &o), CTN_ENOTFOUND,
                     "the first of the 2 columns is \"a\"");
    }
    o = none;
    o.classes = 1;
    assert_fails(open_text(&ds, text, &o), CTN_EARG, "classes need one target, there are 0");
    o = none;
    o.fill = 1;
    o.fill_value = INFINITY;
    assert_fails(open_text(&ds, text, &o), CTN_EARG, "fill_value is not finite");
    /* .like: a dataset of another kind, and other numbers of inputs and targets. */
    const float x = 1;
    const ctn_field f = {.dtype = CTN_F32};
    assert_int_equal(ctn_arrays_open(&other, 1, 1, &f, (const void *[]){&x}), CTN_OK);
    o = none;
    o.like = other;
    assert_fails(open_text(&ds, text, &o), CTN_EARG, ".like is not a dataset of ctn_csv_open");
    ctn_dataset_free(other);
    o.like = NULL;
    o.ntargets = 1;
    o.targets = NAMES("b");
    assert_int_equal(open_text(&other, "a,b\n1,x\n2,y\n", &o), CTN_OK);
    o.like = other;
    o.ntargets = 2;
    o.targets = NAMES("b", "c");
    assert_fails(open_text(&ds, "a,b,c\n1,x,2\n", &o), CTN_EARG,
                 "has 1 inputs and 2 targets, but " PATH " has 1 inputs and 1 targets");
    o.ntargets = 0; /* inputs alone, to predict */
    assert_int_equal(open_text(&ds, "a\n5\n", &o), CTN_OK);
    assert_int_equal(ctn_dataset_fields(ds), 1);
    check_f32(ds, 0, 0, 1, (float[]){5});
    ctn_dataset_free(ds);
    ctn_dataset_free(other);
    assert_fails(ctn_csv_open(NULL, PATH, NULL), CTN_EARG, "NULL argument");
    assert_fails(ctn_csv_open(&ds, NULL, NULL), CTN_EARG, "NULL argument");
}

/* What messages show: the line where a cell begins, and at most 40 bytes of it. */
static void test_messages(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    ctn_csv_opt o = {.struct_size = sizeof o, .ntargets = 1, .targets = NAMES("t"), .classes = 1};
    assert_fails(open_text(&ds, "x\n\"1\"\n\n\"2\n3\"\n", NULL), CTN_EFORMAT,
                 "line 4, column \"x\": \"2 3\" is not a number");
    assert_fails(open_text(&ds, "x\n1\n0123456789012345678901234567890123456789\n5x\n", NULL),
                 CTN_EFORMAT, "line 4, column \"x\": \"5x\" is not a number");
    assert_fails(open_text(&ds, "x\n1\n0123456789012345678901234567890123456789x\n", NULL),
                 CTN_EFORMAT, "\"0123456789012345678901234567890123456789\" is not a number");
    assert_fails(open_text(&ds, "x,t\n1,\n", &o), CTN_EFORMAT,
                 "line 2, column \"t\": the class is missing");
    assert_fails(open_text(&ds, "x,t\n1,1000000000000000\n", &o), CTN_EFORMAT, "is not a class");
    assert_int_equal(open_text(&ds, "x,t\n1,999999999999999\n2,0\n", &o), CTN_OK);
    assert_int_equal(class_of(ds, 0), 999999999999999);
    assert_int_equal(class_of(ds, 1), 0);
    char name[64];
    ctn_dataset_name(ds, 1, name, sizeof name);
    assert_string_equal(name, PATH "[1]");
    ctn_dataset_free(ds);
    assert_fails(open_text(&ds, "x\n-1e39\n", NULL), CTN_EFORMAT, "\"-1e39\" is too large");
    /* The first value of a column decides whether it is text, after missing ones. */
    o = (ctn_csv_opt){.struct_size = sizeof o, .categories = 1, .fill = 1, .fill_value = -1};
    assert_int_equal(open_text(&ds, "c,x\nNA,1\n7,?\nb,3\n", &o), CTN_EFORMAT);
    ctn_error_clear();
    assert_int_equal(open_text(&ds, "c,x\nNA,1\nb,?\n7,3\n", &o), CTN_OK);
    check_f32(ds, 0, 0, 2, (float[]){-1, 1});
    check_f32(ds, 0, 1, 2, (float[]){1, -1});
    check_f32(ds, 0, 2, 2, (float[]){0, 3});
    ctn_dataset_free(ds);
}

/* A table large enough for several threads, and the first of its errors. */
static void test_large(void **state)
{
    (void)state;
    enum { ROWS = 20000 };
    char *text = malloc(ROWS * 40);
    size_t n = (size_t)sprintf(text, "a,b,t\n");
    for (int i = 0; i < ROWS; i++)
        n += (size_t)sprintf(text + n, "%d,%.17g,%s\n", i, i / 7.0, i % 3 ? "no" : "yes");
    ctn_dataset *ds = NULL;
    const ctn_csv_opt o = {.struct_size = sizeof o,
                           .keep_f64 = 1,
                           .ntargets = 1,
                           .targets = NAMES("t")};
    assert_int_equal(open_text(&ds, text, &o), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), ROWS);
    for (int i = 0; i < ROWS; i++) {
        double x[2];
        int64_t label;
        assert_int_equal(ctn_dataset_get(ds, i, (void *[]){x, &label}), CTN_OK);
        if (x[0] != i || x[1] != i / 7.0 || label != !(i % 3)) fail_msg("row %d", i);
    }
    ctn_dataset_free(ds);
    *strstr(text, "\n15000,") = ',';
    *strstr(text, "\n4998,") = ',';
    assert_fails(open_text(&ds, text, &o), CTN_EFORMAT, "line 4999 has 6 cells");
    free(text);
}

/* A host with another decimal point. */
static void test_locale(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8")) skip();
    assert_int_equal(open_text(&ds, "x\n0.1234567890123456789\n", NULL), CTN_OK);
    check_f32(ds, 0, 0, 1, (float[]){0.1234567890123456789f});
    ctn_dataset_free(ds);
    setlocale(LC_NUMERIC, "C");
}

/* Every allocation may fail; nothing is lost. */
static void *no_large_block(void *user, size_t bytes, size_t align)
{
    return bytes > (size_t)64 << 20 ? NULL : failing_alloc(user, bytes, align);
}

/* Wide first rows and many short ones: there is no memory for all cells that there might be. */
static void test_short_rows(void **state)
{
    (void)state;
    enum { SIDE = 30000 };
    failing f = {.left = INT_MAX};
    ctn_dataset *ds = NULL;
    const ctn_csv_opt o = {.struct_size = sizeof o, .categories = 1};
    char *text = malloc(6 * SIDE + 1), *p = text;
    assert_non_null(text);
    for (int i = 0; i < 2 * SIDE; i++) p += sprintf(p, i % SIDE == SIDE - 1 ? "x\n" : "x,");
    for (int i = 0; i < SIDE; i++) p += sprintf(p, "x\n");
    ctn_set_allocator(&(ctn_allocator){no_large_block, failing_release, &f});
    const ctn_status st = open_text(&ds, text, &o);
    ctn_set_allocator(NULL);
    assert_fails(st, CTN_EFORMAT, "line 3 has 1 cells, the first line has 30000");
    assert_int_equal(f.live, 0);
    free(text);
}

static void test_no_memory(void **state)
{
    (void)state;
    static const char text[] = "c,x,t\nwest,1,a\neast,2,\"b\"\"c\"\n";
    const ctn_csv_opt o = {.struct_size = sizeof o,
                           .categories = 1,
                           .ntargets = 1,
                           .targets = NAMES("t")};
    write_bytes(PATH, text, sizeof text - 1);
    ctn_status st = CTN_ENOMEM;
    for (int left = 0; st != CTN_OK && left < 200; left++) {
        failing f = {.left = left};
        ctn_dataset *ds = NULL;
        ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &f});
        st = ctn_csv_open(&ds, PATH, &o);
        if (st != CTN_OK) assert_int_equal(st, CTN_ENOMEM);
        ctn_dataset_free(ds);
        ctn_set_allocator(NULL);
        ctn_error_clear();
        assert_int_equal(f.live, 0);
    }
    assert_int_equal(st, CTN_OK);
    unlink(PATH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),         cmocka_unit_test(test_wide),
        cmocka_unit_test(test_cells),           cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_missing),         cmocka_unit_test(test_classes),
        cmocka_unit_test(test_categories),      cmocka_unit_test(test_errors),
        cmocka_unit_test(test_refused_options), cmocka_unit_test(test_messages),
        cmocka_unit_test(test_large),           cmocka_unit_test(test_locale),
        cmocka_unit_test(test_short_rows),      cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
