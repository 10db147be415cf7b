/* SPDX-License-Identifier: Apache-2.0
 *
 * Token files, and datasets made from others: parts, joins, renumbered classes, transforms, mean
 * and deviation. Each is compared with a few lines of plain C.
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
#include <unistd.h>

#include <catena/datasets.h>

#include <cmocka.h>

#include "support/check.h"

/* ---- a dataset that returns what it was asked: index as i64, and index, seed, epoch as f64 --- */

struct probe {
    int64_t count;
    int base;
};

static int64_t probe_count(void *self)
{
    return ((struct probe *)self)->count;
}

static int probe_fields(void *self)
{
    (void)self;
    return 2;
}

static void probe_field(void *self, int f, ctn_field *out)
{
    (void)self;
    *out = f == 0 ? (ctn_field){.dtype = CTN_I64} : (ctn_field){CTN_F64, 1, {3}, 0};
}

static ctn_status probe_get(void *self, const ctn_sample *s, void *const *dst)
{
    *(int64_t *)dst[0] = ((struct probe *)self)->base + s->index;
    memcpy(dst[1], (double[]){(double)s->index, (double)s->seed, (double)s->epoch},
           3 * sizeof(double));
    return CTN_OK;
}

static int probe_name(void *self, int64_t index, char *buf, size_t n)
{
    return snprintf(buf, n, "p%d", ((struct probe *)self)->base + (int)index);
}

static const char *probe_class(void *self, int64_t k)
{
    (void)self;
    return k == 0 ? "cat" : k == 1 ? "dog" : NULL;
}

static int freed;

static void probe_free(void *self)
{
    (void)self;
    freed++;
}

static const ctn_dataset_vt probe_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = probe_count,
    .fields = probe_fields,
    .field = probe_field,
    .get = probe_get,
    .free = probe_free,
    .name = probe_name,
    .class_name = probe_class,
};

static ctn_dataset *probe(struct probe *p)
{
    ctn_dataset *ds = NULL;
    assert_int_equal(ctn_dataset_new(&ds, &probe_vt, p), CTN_OK);
    return ds;
}

static int64_t index_of(ctn_dataset *ds, int64_t i, double seen[3])
{
    int64_t v = -1;
    double ignored[3];
    assert_int_equal(ctn_dataset_sample(ds, &(ctn_sample){i, 7, 3, 0},
                                        (void *[]){&v, seen ? seen : ignored}),
                     CTN_OK);
    return v;
}

/* ---- parts and joins ------------------------------------------------------------------------- */

static void test_slice_and_subset(void **state)
{
    (void)state;
    struct probe p = {10, 100};
    ctn_dataset *base = probe(&p), *ds = NULL;
    double seen[3];
    char name[16];
    assert_int_equal(ctn_dataset_slice(&ds, base, 4, 6), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 6);
    assert_int_equal(index_of(ds, 5, seen), 109);
    assert_true(seen[0] == 9 && seen[1] == 7 && seen[2] == 3); /* the same as for the whole */
    ctn_dataset_name(ds, 5, name, sizeof name);
    assert_string_equal(name, "p109");
    assert_int_equal(ctn_dataset_classes(ds), 2);
    assert_string_equal(ctn_dataset_class(ds, 1), "dog");
    ctn_dataset_free(ds);
    assert_int_equal(ctn_dataset_slice(&ds, base, 10, 0), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 0);
    ctn_dataset_free(ds);
    assert_fails(ctn_dataset_slice(&ds, base, 5, 6), CTN_EARG,
                 "6 samples from 5 on, but there are 10");
    assert_fails(ctn_dataset_slice(&ds, base, -1, 2), CTN_EARG, "from -1");
    assert_fails(ctn_dataset_slice(&ds, base, INT64_MAX, INT64_MAX), CTN_EARG, "slice");

    int64_t list[] = {9, 0, 9};
    assert_int_equal(ctn_dataset_subset(&ds, base, 3, list), CTN_OK);
    list[0] = 5; /* the list was copied */
    assert_int_equal(index_of(ds, 0, NULL), 109);
    assert_int_equal(index_of(ds, 1, NULL), 100);
    assert_int_equal(index_of(ds, 2, NULL), 109);
    ctn_dataset_free(ds);
    list[1] = 10;
    assert_fails(ctn_dataset_subset(&ds, base, 3, list), CTN_EARG, "entry 1 is sample 10");
    freed = 0;
    ctn_dataset_free(base);
    assert_int_equal(freed, 1);
}

static void test_split(void **state)
{
    (void)state;
    struct probe p = {1001, 0};
    ctn_dataset *base = probe(&p), *a = NULL, *b = NULL;
    uint8_t first[1001];
    int same = 0;
    for (int round = 0; round < 3; round++) {
        uint8_t seen[1001] = {0};
        assert_int_equal(ctn_dataset_split(&a, &b, base, 0.25, round == 2 ? 6 : 5), CTN_OK);
        assert_int_equal(ctn_dataset_count(b), 250);
        assert_int_equal(ctn_dataset_count(a), 751);
        for (int64_t i = 0; i < 751; i++) seen[index_of(a, i, NULL)] |= 1;
        for (int64_t i = 0; i < 250; i++) seen[index_of(b, i, NULL)] |= 2;
        for (int i = 0; i < 1001; i++) assert_true(seen[i] == 1 || seen[i] == 2);
        if (round == 1) assert_memory_equal(seen, first, sizeof seen); /* the same seed */
        if (round == 2)
            for (int i = 0; i < 1001; i++) same += seen[i] == 2 && first[i] == 2;
        memcpy(first, seen, sizeof seen);
        ctn_dataset_free(a);
        ctn_dataset_free(b);
    }
    assert_true(same < 125); /* 62 expected: another seed */
    assert_int_equal(ctn_dataset_split(&a, &b, base, 0, 1), CTN_OK);
    assert_int_equal(ctn_dataset_count(b), 0);
    ctn_dataset_free(a);
    ctn_dataset_free(b);
    assert_fails(ctn_dataset_split(&a, &b, base, NAN, 1), CTN_EARG, "share");
    assert_fails(ctn_dataset_split(&a, &b, base, 1.5, 1), CTN_EARG, "share is 1.5");
    ctn_dataset_free(base);
}

static void test_concat(void **state)
{
    (void)state;
    struct probe p[4] = {{3, 0}, {0, 100}, {2, 200}, {1, 300}};
    ctn_dataset *part[4], *ds = NULL;
    double seen[2][3];
    char name[16];
    for (int i = 0; i < 4; i++) part[i] = probe(&p[i]);
    assert_int_equal(ctn_dataset_concat(&ds, 4, part), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 6);
    const int64_t want[] = {0, 1, 2, 200, 201, 300};
    for (int i = 0; i < 6; i++) assert_int_equal(index_of(ds, i, NULL), want[i]);
    assert_int_equal(index_of(ds, 0, seen[0]), 0);
    assert_int_equal(index_of(ds, 3, seen[1]), 200);
    assert_true(seen[0][1] == 7 && seen[1][1] != 7); /* the other part makes other random choices */
    ctn_dataset_name(ds, 4, name, sizeof name);
    assert_string_equal(name, "p201");
    freed = 0;
    ctn_dataset_free(ds);
    assert_int_equal(freed, 4);

    const float x = 1;
    const ctn_field f = {.dtype = CTN_F32};
    part[0] = probe(&p[0]);
    assert_int_equal(ctn_arrays_open(&part[1], 1, 1, &f, (const void *[]){&x}), CTN_OK);
    assert_fails(ctn_dataset_concat(&ds, 2, part), CTN_EARG, "part 1 has 1 fields, part 0 has 2");
    assert_fails(ctn_dataset_concat(&ds, 0, part), CTN_EARG, "0 parts");
    assert_fails(ctn_dataset_concat(&ds, 2, NULL), CTN_EARG, "NULL argument");
    assert_fails(ctn_dataset_concat(NULL, 2, part), CTN_EARG, "NULL argument");
    assert_fails(ctn_dataset_concat(&ds, 2, (ctn_dataset *[]){part[0], part[0]}), CTN_EARG,
                 "the same dataset");
    ctn_dataset_free(part[0]);
    ctn_dataset_free(part[1]);
}

/* Fields must agree in type, number of dimensions, sizes and order. */
static void test_concat_fields(void **state)
{
    (void)state;
    static const double zeros[12];
    static const ctn_field other[] = {
        {CTN_F64, 2, {2, 3}, 0}, {CTN_F32, 1, {2}, 0},    {CTN_F32, 3, {2, 3, 1}, 0},
        {CTN_F32, 2, {3, 3}, 0}, {CTN_F32, 2, {2, 2}, 0}, {CTN_F32, 2, {2, 3}, 1},
    };
    const ctn_field f = {CTN_F32, 2, {2, 3}, 0};
    ctn_dataset *ds = NULL;
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        ctn_dataset *part[2] = {NULL, NULL};
        for (int k = 0; k < 2; k++)
            assert_int_equal(ctn_arrays_open(&part[k], 1, 2, (ctn_field[]){f, k ? other[i] : f},
                                             (const void *[]){zeros, zeros}),
                             CTN_OK);
        assert_fails(ctn_dataset_concat(&ds, 2, part), CTN_EARG,
                     "field 1 of part 1 has another type or shape");
        assert_null(ds);
        assert_int_equal(ctn_dataset_concat(&ds, 1, part), CTN_OK);
        ctn_dataset_free(ds);
        ctn_dataset_free(part[1]);
    }
    struct probe huge[2] = {{INT64_MAX, 0}, {1, 0}};
    ctn_dataset *part[] = {probe(&huge[0]), probe(&huge[1])};
    freed = 0;
    assert_fails(ctn_dataset_concat(&ds, 2, part), CTN_EARG, "2^63");
    assert_fails(ctn_dataset_concat(&ds, 2, (ctn_dataset *[]){part[0], NULL}), CTN_EARG,
                 "part 1 is NULL");
    assert_int_equal(freed, 0);
    ctn_dataset_free(part[0]);
    ctn_dataset_free(part[1]);
}

/* ---- classes renumbered ---------------------------------------------------------------------- */

/* Sample i: a ragged row of i numbers and the class i; the classes 0 and 1 have names. */
static int64_t two_count(void *self)
{
    (void)self;
    return 3;
}

static void two_field(void *self, int f, ctn_field *out)
{
    (void)self;
    *out = f == 0 ? (ctn_field){CTN_F32, 1, {CTN_RAGGED}, 0} : (ctn_field){.dtype = CTN_I64};
}

static ctn_status two_get(void *self, const ctn_sample *s, void *const *dst)
{
    (void)self;
    for (int64_t i = 0; i < s->index; i++) ((float *)dst[0])[i] = (float)s->size;
    *(int64_t *)dst[1] = s->index;
    return CTN_OK;
}

static int64_t two_length(void *self, int f, int64_t index)
{
    (void)self, (void)f;
    return index;
}

static int two_resizes(void *self)
{
    return *(const int *)self;
}

static const ctn_dataset_vt two_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = two_count,
    .fields = probe_fields,
    .field = two_field,
    .get = two_get,
    .free = probe_free,
    .class_name = probe_class,
    .length = two_length,
    .resizes = two_resizes,
};

static void test_relabel(void **state)
{
    (void)state;
    const char *names[] = {"bird", "dog", "cow", "cat"};
    int resizes = 1;
    int64_t label = -1;
    float x[2] = {0};
    ctn_dataset *base = NULL, *ds = NULL;
    assert_int_equal(ctn_dataset_new(&base, &two_vt, &resizes), CTN_OK);
    freed = 0;
    assert_fails(ctn_dataset_relabel(&ds, base, 3, names), CTN_ENOTFOUND,
                 "'cat' is not one of the 3 known classes: 'bird', ...");
    assert_fails(ctn_dataset_relabel(&ds, base, 1, &names[3]), CTN_ENOTFOUND,
                 "'dog' is not one of the 1 known classes: 'cat'");
    assert_fails(ctn_dataset_relabel(&ds, base, 0, names), CTN_EARG, "needs a dataset and names");
    assert_fails(ctn_dataset_relabel(&ds, base, 4, NULL), CTN_EARG, "needs a dataset and names");
    assert_fails(ctn_dataset_relabel(&ds, NULL, 4, names), CTN_EARG, "needs a dataset and names");
    assert_fails(ctn_dataset_relabel(NULL, base, 4, names), CTN_EARG, "NULL argument");
    assert_null(ds);
    assert_int_equal(freed, 0);
    assert_int_equal(ctn_dataset_relabel(&ds, base, 4, names), CTN_OK);
    names[3] = "nothing"; /* the list was copied */
    assert_int_equal(ctn_dataset_count(ds), 3);
    assert_int_equal(ctn_dataset_classes(ds), 4);
    assert_string_equal(ctn_dataset_class(ds, 3), "cat");
    assert_null(ctn_dataset_class(ds, 4));
    assert_int_equal(ctn_dataset_length(ds, 0, 2), 2);
    assert_int_equal(ctn_dataset_resizes(ds), 1);
    assert_int_equal(ctn_dataset_get(ds, 0, (void *[]){x, &label}), CTN_OK);
    assert_int_equal(label, 3);
    assert_int_equal(ctn_dataset_sample(ds, &(ctn_sample){1, 0, 0, 5}, (void *[]){x, &label}),
                     CTN_OK);
    assert_int_equal(label, 1);
    assert_true(x[0] == 5 && x[1] == 0);
    assert_fails(ctn_dataset_get(ds, 2, (void *[]){x, &label}), CTN_EFORMAT,
                 "sample 2 has class 2, but there are 2");
    ctn_dataset_free(ds);
    assert_int_equal(freed, 1);

    struct probe p = {3, 0};
    base = probe(&p); /* its field 1 is no class */
    assert_fails(ctn_dataset_relabel(&ds, base, 4, names), CTN_EARG, "no classes with names");
    ctn_dataset_free(base);
    const int64_t ids[3] = {0};
    const ctn_field field[] = {{.dtype = CTN_I64}, {.dtype = CTN_I64}}; /* no names */
    assert_int_equal(ctn_arrays_open(&base, 3, 2, field, (const void *[]){ids, ids}), CTN_OK);
    assert_fails(ctn_dataset_relabel(&ds, base, 4, names), CTN_EARG, "no classes with names");
    ctn_dataset_free(base);
}

/* Parts and joins pass on lengths and sizes; a join can make another size if all parts can. */
static void test_passed_on(void **state)
{
    (void)state;
    int resizes[] = {1, 0};
    ctn_dataset *base[2] = {NULL, NULL}, *ds = NULL;
    for (int i = 0; i < 2; i++)
        assert_int_equal(ctn_dataset_new(&base[i], &two_vt, &resizes[i]), CTN_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ctn_dataset_slice(&ds, base[i], 1, 2), CTN_OK);
        assert_int_equal(ctn_dataset_resizes(ds), !i);
        assert_int_equal(ctn_dataset_length(ds, 0, 1), 2);
        assert_int_equal(ctn_dataset_length(ds, 0, 2), -1);
        assert_int_equal(ctn_dataset_length(ds, 0, -1), -1);
        assert_int_equal(ctn_dataset_length(ds, 1, 1), 1);
        ctn_dataset_free(ds);
    }
    assert_int_equal(ctn_dataset_concat(&ds, 2, base), CTN_OK);
    assert_int_equal(ctn_dataset_resizes(ds), 0);
    assert_int_equal(ctn_dataset_length(ds, 0, 2), 2);
    assert_int_equal(ctn_dataset_length(ds, 0, 4), 1);
    assert_string_equal(ctn_dataset_class(ds, 1), "dog");
    assert_fails(ctn_dataset_sample(ds, &(ctn_sample){1, 0, 0, 5}, (void *[]){NULL, NULL}),
                 CTN_EARG, "size 5");
    ctn_dataset_free(ds);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ctn_dataset_new(&base[i], &two_vt, &resizes[0]), CTN_OK);
    assert_int_equal(ctn_dataset_concat(&ds, 2, base), CTN_OK);
    assert_int_equal(ctn_dataset_resizes(ds), 1);
    ctn_dataset_free(ds);
}

/* ---- transform ------------------------------------------------------------------------------- */

static ctn_status doubled(void *user, const ctn_sample *s, void *const *src, void *const *dst)
{
    const double *x = src[1];
    if (s->index == 2) return ctn_fail(CTN_EFORMAT, "sample 2 is refused");
    ((float *)dst[0])[0] = (float)(*(double *)user * x[0]);
    ((float *)dst[0])[1] = (float)x[1];
    return CTN_OK;
}

static void test_transform(void **state)
{
    (void)state;
    struct probe p = {4, 0};
    double factor = 2;
    float y[2];
    ctn_dataset *base = probe(&p), *ds = NULL;
    const ctn_field field = {CTN_F32, 1, {2}, 0};
    assert_fails(ctn_dataset_transform(&ds, base, 0, &field, doubled, &factor), CTN_EARG,
                 "0 fields");
    assert_int_equal(ctn_dataset_transform(&ds, base, 1, &field, doubled, &factor), CTN_OK);
    assert_int_equal(ctn_dataset_sample(ds, &(ctn_sample){3, 9, 0, 0}, (void *[]){y}), CTN_OK);
    assert_true(y[0] == 6 && y[1] == 9);
    assert_fails(ctn_dataset_get(ds, 2, (void *[]){y}), CTN_EFORMAT, "sample 2 is refused");
    assert_int_equal(ctn_dataset_classes(ds), 2);
    freed = 0;
    ctn_dataset_free(ds);
    assert_int_equal(freed, 1);
}

/* ---- mean and deviation ---------------------------------------------------------------------- */

enum { COUNT = 37, CHANNELS = 3, EACH = 5 };

static void moments_of(const double *x, bool last, int c, double *mean, double *std)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < COUNT * CHANNELS * EACH; i++)
        if ((last ? i % CHANNELS : i / EACH % CHANNELS) == c) sum += x[i];
    *mean = sum / (COUNT * EACH);
    for (int i = 0; i < COUNT * CHANNELS * EACH; i++)
        if ((last ? i % CHANNELS : i / EACH % CHANNELS) == c)
            squares += (x[i] - *mean) * (x[i] - *mean);
    *std = sqrt(squares / (COUNT * EACH));
}

static void test_moments(void **state)
{
    (void)state;
    static double x[COUNT * CHANNELS * EACH];
    int64_t label[COUNT] = {0};
    uint32_t r = 1;
    for (int i = 0; i < COUNT * CHANNELS * EACH; i++) {
        r = r * 1664525u + 1013904223u;
        /* ill-conditioned */
        x[i] = 1e6 + (i / EACH % CHANNELS) * 1000 + (double)(r >> 8) * 0x1p-24;
    }
    for (int last = 0; last < 2; last++) {
        const ctn_field field[2] = {{CTN_F64, 2, {CHANNELS, EACH}, last}, {.dtype = CTN_I64}};
        ctn_dataset *base = NULL, *ds = NULL;
        double mean[CHANNELS], std[CHANNELS], m, s;
        assert_int_equal(ctn_arrays_open(&base, COUNT, 2, field, (const void *[]){x, label}),
                         CTN_OK);
        assert_int_equal(ctn_dataset_moments(base, 0, CHANNELS, mean, std), CTN_OK);
        for (int c = 0; c < CHANNELS; c++) {
            moments_of(x, last, c, &m, &s);
            assert_true(fabs(mean[c] - m) < 1e-9 * fabs(m) && fabs(std[c] - s) < 1e-6 * s);
        }
        assert_fails(ctn_dataset_moments(base, 0, 2, mean, std), CTN_EARG, "3 channels");
        assert_fails(ctn_dataset_moments(base, 1, 1, mean, std), CTN_EDTYPE, "i64");
        assert_fails(ctn_dataset_moments(base, 2, 1, mean, std), CTN_EARG, "field 2 of 2");
        assert_fails(ctn_dataset_standardize(&ds, base, 0, CHANNELS, mean,
                                             (const double[]){1, 0, 1}),
                     CTN_EARG, "channel 1");
        assert_int_equal(ctn_dataset_standardize(&ds, base, 0, CHANNELS, mean, std), CTN_OK);
        assert_int_equal(ctn_dataset_field(ds, 0)->dtype, CTN_F32);
        assert_int_equal(ctn_dataset_field(ds, 0)->channels_last, last);
        float y[CHANNELS * EACH];
        int64_t t;
        assert_int_equal(ctn_dataset_get(ds, 11, (void *[]){y, &t}), CTN_OK);
        for (int i = 0; i < CHANNELS * EACH; i++) {
            const int c = last ? i % CHANNELS : i / EACH;
            assert_true(y[i] == (float)((x[11 * CHANNELS * EACH + i] - mean[c]) / std[c]));
        }
        /* The output has mean 0 and deviation 1. */
        assert_int_equal(ctn_dataset_moments(ds, 0, CHANNELS, mean, std), CTN_OK);
        for (int c = 0; c < CHANNELS; c++)
            assert_true(fabs(mean[c]) < 1e-6 && fabs(std[c] - 1) < 1e-5);
        ctn_dataset_free(ds);
    }
}

/* n elements instead of n channels: one mean and deviation for each. */
static void test_moments_of_elements(void **state)
{
    (void)state;
    enum { SAMPLES = 50, ROWS = 3, COLUMNS = 2, ALL = ROWS * COLUMNS };
    float x[SAMPLES][ALL], y[ALL];
    double mean[ALL], std[ALL];
    for (int i = 0; i < SAMPLES; i++)
        for (int k = 0; k < ALL; k++) x[i][k] = (float)(i % 10) * (k % 2 ? 1e6f : 1e-3f) + (float)k;
    for (int last = 0; last < 2; last++) {
        const ctn_field field = {CTN_F32, 2, {ROWS, COLUMNS}, last};
        ctn_dataset *ds = NULL, *to = NULL;
        assert_int_equal(ctn_arrays_open(&ds, SAMPLES, 1, &field, (const void *[]){x}), CTN_OK);
        assert_int_equal(ctn_dataset_moments(ds, 0, ALL, mean, std), CTN_OK);
        for (int k = 0; k < ALL; k++) {
            const double scale = k % 2 ? 1e6 : 1e-3;
            assert_true(fabs(mean[k] - (4.5 * scale + k)) < 1e-6 * (4.5 * scale + k));
            assert_true(fabs(std[k] - sqrt(8.25) * scale) < 1e-3 * scale);
        }
        assert_int_equal(ctn_dataset_standardize(&to, ds, 0, ALL, mean, std), CTN_OK);
        assert_int_equal(ctn_dataset_get(to, 7, (void *[]){y}), CTN_OK);
        for (int k = 0; k < ALL; k++)
            assert_true(y[k] == (float)(((double)x[7][k] - mean[k]) / std[k]));
        ctn_dataset_free(to);
    }
}

static void test_moments_of_constants(void **state)
{
    (void)state;
    float x[100][2];
    double mean[2], std[2];
    const ctn_field field = {CTN_F32, 1, {2}, 0};
    ctn_dataset *ds = NULL;
    for (int i = 0; i < 100; i++) {
        x[i][0] = 0.1f;
        x[i][1] = 0;
    }
    assert_int_equal(ctn_arrays_open(&ds, 100, 1, &field, (const void *[]){x}), CTN_OK);
    assert_int_equal(ctn_dataset_moments(ds, 0, 2, mean, std), CTN_OK);
    assert_true(fabs(mean[0] - (double)0.1f) < 1e-15 && mean[1] == 0);
    assert_true(std[0] == 1 && std[1] == 1);
    x[42][1] = INFINITY;
    assert_fails(ctn_dataset_moments(ds, 0, 2, mean, std), CTN_EFORMAT, "sample 42 is not finite");
    ctn_dataset_free(ds);
    /* A scalar is one channel. */
    const ctn_field scalar = {.dtype = CTN_F32};
    const float v[] = {1, 3};
    assert_int_equal(ctn_arrays_open(&ds, 2, 1, &scalar, (const void *[]){v}), CTN_OK);
    assert_int_equal(ctn_dataset_moments(ds, 0, 1, mean, std), CTN_OK);
    assert_true(mean[0] == 2 && std[0] == 1);
    ctn_dataset_free(ds);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void test_tokens(void **state)
{
    (void)state;
    static const uint8_t two[] = {1, 0, 2, 0, 3, 0, 255, 255, 5, 0, 6, 0, 7, 0};
    static const uint8_t four[] = {1, 0, 0, 0, 255, 255, 255, 255, 3, 0, 0, 0};
    int64_t x[3], y[3];
    char name[16];
    ctn_dataset *ds = NULL;
    write_bytes("two.bin", two, sizeof two);
    assert_int_equal(ctn_tokens_open(&ds, "two.bin", CTN_OPT(ctn_tokens_opt, .length = 3)), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 2);
    assert_int_equal(ctn_dataset_field(ds, 1)->shape[0], 3);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){x, y}), CTN_OK);
    assert_true(x[0] == 65535 && x[1] == 5 && x[2] == 6);
    assert_true(y[0] == 5 && y[1] == 6 && y[2] == 7);
    ctn_dataset_name(ds, 1, name, sizeof name); /* its first token */
    assert_string_equal(name, "two.bin[3]");
    ctn_dataset_free(ds);
    assert_int_equal(ctn_tokens_open(&ds, "two.bin",
                                     CTN_OPT(ctn_tokens_opt, .length = 3, .stride = 1)),
                     CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 4);
    assert_int_equal(ctn_dataset_get(ds, 3, (void *[]){x, y}), CTN_OK);
    assert_true(x[0] == 65535 && y[2] == 7); /* the last byte of the file */
    ctn_dataset_name(ds, 3, name, sizeof name);
    assert_string_equal(name, "two.bin[3]");
    ctn_dataset_free(ds);
    write_bytes("four.bin", four, sizeof four);
    assert_int_equal(ctn_tokens_open(&ds, "four.bin",
                                     CTN_OPT(ctn_tokens_opt, .length = 2, .bytes = 4)),
                     CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 0, (void *[]){x, y}), CTN_OK);
    assert_true(x[0] == 1 && x[1] == 4294967295 && y[1] == 3);
    ctn_dataset_free(ds);
    write_bytes("text", "ab\xff", 3);
    assert_int_equal(ctn_tokens_open(&ds, "text", CTN_OPT(ctn_tokens_opt, .length = 1, .bytes = 1)),
                     CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 2);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){x, y}), CTN_OK);
    assert_true(x[0] == 'b' && y[0] == 255);
    ctn_dataset_free(ds);
    assert_fails(ctn_tokens_open(&ds, "two.bin", CTN_OPT(ctn_tokens_opt, .length = 7)), CTN_EARG,
                 "has 7 tokens, but a sample of length 7 needs one more");
    assert_fails(ctn_tokens_open(&ds, "two.bin", CTN_OPT(ctn_tokens_opt, .bytes = 4)), CTN_EFORMAT,
                 "14 bytes");
    assert_fails(ctn_tokens_open(&ds, "two.bin", CTN_OPT(ctn_tokens_opt, .bytes = 3)), CTN_EARG,
                 "bytes is 3");
    assert_fails(ctn_tokens_open(&ds, "two.bin", CTN_OPT(ctn_tokens_opt, .length = INT64_MAX)),
                 CTN_EARG, "one more");
    assert_fails(ctn_tokens_open(&ds, "absent", NULL), CTN_EIO, "absent");
    assert_fails(ctn_tokens_open(NULL, "two.bin", NULL), CTN_EARG, "NULL argument");
    assert_fails(ctn_tokens_open(&ds, NULL, NULL), CTN_EARG, "NULL argument");
    assert_fails(ctn_tokens_open(&ds, "two.bin", CTN_OPT(ctn_tokens_opt, .length = -1)), CTN_EARG,
                 "length is -1");
    assert_fails(ctn_tokens_open(&ds, "two.bin", CTN_OPT(ctn_tokens_opt, .stride = -1)), CTN_EARG,
                 "stride is -1");
}

/* Long samples are read on demand; if the file is truncated meanwhile, that is an error. */
static void test_tokens_shortened(void **state)
{
    (void)state;
    enum { LENGTH = 40000, TOKENS = 3 * LENGTH + 1 };
    static uint8_t data[2 * TOKENS];
    static int64_t x[LENGTH], y[LENGTH];
    ctn_dataset *ds = NULL;
    for (int i = 0; i < TOKENS; i++) {
        data[2 * i] = (uint8_t)i;
        data[2 * i + 1] = (uint8_t)(i >> 8);
    }
    write_bytes("long.bin", data, sizeof data);
    assert_int_equal(ctn_tokens_open(&ds, "long.bin", CTN_OPT(ctn_tokens_opt, .length = LENGTH)),
                     CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 3);
    assert_int_equal(ctn_dataset_get(ds, 2, (void *[]){x, y}), CTN_OK);
    for (int i = 0; i < LENGTH; i++)
        assert_true(x[i] == ((2 * LENGTH + i) & 65535) && y[i] == ((2 * LENGTH + i + 1) & 65535));
    assert_int_equal(truncate("long.bin", 100000), 0);
    assert_int_equal(ctn_dataset_get(ds, 0, (void *[]){x, y}), CTN_OK);
    assert_fails(ctn_dataset_get(ds, 2, (void *[]){x, y}), CTN_EIO,
                 "tokens: long.bin: became shorter while it was in use: nothing to read at byte "
                 "160000");
    ctn_dataset_free(ds);
    unlink("long.bin");
}

/* ---- a failing allocator --------------------------------------------------------------------- */

static failing memory;

/* Uses everything above once. */
static ctn_status use_all(void)
{
    static const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const ctn_field in = {CTN_F32, 1, {2}, 0};
    float y[2];
    double mean[2], std[2];
    ctn_status st = CTN_OK;
    ctn_dataset *base = NULL, *a = NULL, *b = NULL, *c = NULL, *t = NULL, *part[2] = {NULL, NULL};
    CTN_TRY_GOTO(st, done, ctn_npy_save("oom.npy", 4, &in, x));
    CTN_TRY_GOTO(st, done, ctn_tokens_open(&t, "two.bin", CTN_OPT(ctn_tokens_opt, .length = 3)));
    CTN_TRY_GOTO(st, done, ctn_files_open(&base, 1, (const char *[]){"oom.npy"}, NULL));
    CTN_TRY_GOTO(st, done, ctn_dataset_split(&part[0], &part[1], base, 0.5, 1));
    CTN_TRY_GOTO(st, done, ctn_dataset_subset(&a, part[0], 1, (const int64_t[]){1}));
    CTN_TRY_GOTO(st, done, ctn_dataset_concat(&b, 2, part));
    part[0] = part[1] = NULL;
    CTN_TRY_GOTO(st, done, ctn_dataset_moments(b, 0, 2, mean, std));
    CTN_TRY_GOTO(st, done, ctn_dataset_standardize(&c, b, 0, 2, mean, std));
    b = NULL;
    CTN_TRY_GOTO(st, done, ctn_dataset_get(c, 3, (void *[]){y}));
done:
    ctn_dataset_free(a);
    ctn_dataset_free(c);
    ctn_dataset_free(b);
    ctn_dataset_free(part[0]);
    ctn_dataset_free(part[1]);
    ctn_dataset_free(base);
    ctn_dataset_free(t);
    return st;
}

static void test_failing_allocator(void **state)
{
    (void)state;
    ctn_status st = CTN_ENOMEM;
    int n = 0;
    write_bytes("two.bin", "12345678", 8);
    assert_int_equal(ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &memory}),
                     CTN_OK);
    for (; st == CTN_ENOMEM; n++) {
        memory.left = n;
        st = use_all();
        ctn_error_clear();
        assert_int_equal(memory.live, 0);
    }
    assert_int_equal(st, CTN_OK);
    assert_true(n > 15);
    assert_int_equal(ctn_set_allocator(NULL), CTN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_allocator), /* must run before anything else allocates */
        cmocka_unit_test(test_slice_and_subset),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_concat),
        cmocka_unit_test(test_concat_fields),
        cmocka_unit_test(test_relabel),
        cmocka_unit_test(test_passed_on),
        cmocka_unit_test(test_transform),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_moments_of_elements),
        cmocka_unit_test(test_moments_of_constants),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_tokens_shortened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
