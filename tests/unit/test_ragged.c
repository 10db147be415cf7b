/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples of unequal length: arrays, files and datasets made from others; batches that are padded
 * with the right bytes, at any number of threads and ranks, from any state on; lengths that a
 * user's table gets wrong; few shapes and no allocation in a long run; a failing allocator.
 * Labels: threads
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include <catena/catena.h>

/* ---- the data: words i64 (L), points f32 (M,2), a class i64 ---------------------------------- */

enum { COUNT = 50, MOST = 13 };
static int64_t word[COUNT * MOST], class[COUNT], offset[2][COUNT + 1];
static float point[COUNT * MOST][2];
static const int64_t no_rows[] = {0, 0};

static int64_t words(int64_t i)
{
    return i * 7 % MOST;
} /* some are 0 */
static int64_t points(int64_t i)
{
    return 1 + i * 5 % 9;
}

static const ctn_field field[] = {{CTN_I64, 1, {CTN_RAGGED}, 0},
                                  {CTN_F32, 2, {CTN_RAGGED, 2}, 0},
                                  {CTN_I64, 0, {0}, 0}};

static int64_t word_of(int64_t i, int64_t k)
{
    return 1000 * i + k;
}
static float point_of(int64_t i, int64_t k, int c)
{
    return (float)(100 * i + 2 * k + c);
}

static int set_up(void **state)
{
    (void)state;
    for (int64_t i = 0; i < COUNT; i++) {
        class[i] = i % 3;
        offset[0][i + 1] = offset[0][i] + words(i);
        offset[1][i + 1] = offset[1][i] + points(i);
        for (int64_t k = 0; k < words(i); k++) word[offset[0][i] + k] = word_of(i, k);
        for (int64_t k = 0; k < points(i); k++)
            for (int c = 0; c < 2; c++) point[offset[1][i] + k][c] = point_of(i, k, c);
    }
    return 0;
}

static ctn_status open_arrays(ctn_dataset **ds)
{
    return ctn_ragged_open(ds, COUNT, 3, field, (const void *[]){word, point, class},
                           (const int64_t *[]){offset[0], offset[1], NULL});
}

/* Sample `index` of ds is sample i of the data, and not a byte more is written. */
static void check_sample(const ctn_dataset *ds, int64_t index, int64_t i)
{
    int64_t w[MOST + 1], t[2];
    float p[MOST + 1][2];
    memset(w, 0x55, sizeof w);
    memset(p, 0x55, sizeof p);
    memset(t, 0x55, sizeof t);
    assert_int_equal(ctn_dataset_length(ds, 0, index), words(i));
    assert_int_equal(ctn_dataset_length(ds, 1, index), points(i));
    OK(ctn_dataset_get(ds, index, (void *[]){w, p, t}));
    for (int64_t k = 0; k < words(i); k++) assert_int_equal(w[k], word_of(i, k));
    assert_int_equal(w[words(i)], 0x5555555555555555);
    for (int64_t k = 0; k < points(i); k++)
        assert_true(p[k][0] == point_of(i, k, 0) && p[k][1] == point_of(i, k, 1));
    assert_memory_equal(p[points(i)], &t[1], sizeof p[0]);
    assert_int_equal(t[0], i % 3);
}

static void test_arrays(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    OK(open_arrays(&ds));
    for (int64_t i = 0; i < COUNT; i++) check_sample(ds, i, i);
    assert_int_equal(ctn_dataset_field(ds, 1)->shape[0], CTN_RAGGED);
    assert_int_equal(ctn_dataset_length(ds, 2, 0), 1); /* a scalar */
    assert_int_equal(ctn_dataset_length(ds, 0, -1), -1);
    assert_int_equal(ctn_dataset_length(ds, 0, COUNT), -1);
    assert_int_equal(ctn_dataset_length(ds, 3, 0), -1);
    ctn_dataset_free(ds);
    /* Offsets need not begin at 0, and samples may all be empty. */
    const int64_t some[] = {2, 5};
    OK(ctn_ragged_open(&ds, 1, 1, field, (const void *[]){word}, (const int64_t *[]){some}));
    int64_t got[3];
    OK(ctn_dataset_get(ds, 0, (void *[]){got}));
    assert_memory_equal(got, word + 2, sizeof got);
    ctn_dataset_free(ds);
    OK(ctn_ragged_open(&ds, 1, 1, field, (const void *[]){NULL}, (const int64_t *[]){no_rows}));
    ctn_dataset_free(ds);
    OK(ctn_arrays_open(&ds, 2, 1, &(ctn_field){CTN_F32, 1, {2}, 0}, (const void *[]){point}));
    assert_int_equal(ctn_dataset_length(ds, 0, 1), 2); /* not ragged */
    ctn_dataset_free(ds);
}

static void test_arrays_refuse(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    const void *data[] = {word};
    const int64_t *good[] = {offset[0]}, *none[] = {NULL}, *bad[] = {(int64_t[]){0, 3, 2}},
                  *negative[] = {(int64_t[]){-1, 3}};
    ctn_field last = {CTN_U8, 3, {CTN_RAGGED, 2, 2}, 1}, second = {CTN_F32, 2, {2, CTN_RAGGED}, 0};
    assert_fails(ctn_ragged_open(&ds, 2, 1, field, data, bad), CTN_EARG, "offset 2 is 2");
    assert_fails(ctn_ragged_open(&ds, 1, 1, field, data, negative), CTN_EARG, "offset 0 is -1");
    assert_fails(ctn_ragged_open(&ds, 2, 1, field, data, none), CTN_EARG, "offsets are NULL");
    assert_fails(ctn_ragged_open(&ds, 2, 1, &field[2], data, good), CTN_EARG, "offsets are set");
    assert_fails(ctn_ragged_open(&ds, COUNT, 1, field, (const void *[]){NULL}, good), CTN_EARG,
                 "is NULL");
    assert_fails(ctn_ragged_open(&ds, 1, 1, &last, data, good), CTN_EARG, "channels-last");
    assert_fails(ctn_arrays_open(&ds, 1, 1, &second, data), CTN_EARG, "size -1 in dimension 1");
    assert_fails(ctn_arrays_open(&ds, 1, 1, field, data), CTN_EARG, "ragged");
    assert_fails(ctn_npy_save("never.npy", 1, field, word), CTN_EARG, "ragged");
    assert_null(ds);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Everything that a loader delivered. */
typedef struct {
    unsigned char bytes[1 << 18];
    size_t n;
} record;

static void add(record *r, const void *p, size_t n)
{
    assert_true(r->n + n <= sizeof r->bytes);
    memcpy(r->bytes + r->n, p, n);
    r->n += n;
}

static void run(ctn_loader *l, int calls, record *r)
{
    static const size_t size[] = {8, 8, 8, 8, 8}; /* bytes of a row */
    while (calls-- > 0) {
        ctn_batch b;
        assert_true(ctn_loader_next(l, &b) >= 0);
        add(r, &b.n, sizeof b.n);
        for (int f = 0; f < b.fields; f++) {
            const int64_t rows = f < 2 ? b.field[f].shape[1] : 1;
            add(r, b.field[f].shape, sizeof b.field[f].shape[0] * 2);
            add(r, b.data[f], (size_t)(b.n * rows) * size[f]);
        }
    }
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Rows of the data, then padding, in sample i at slot k of a batch. */
static void check_row(const ctn_batch *b, int64_t k, int64_t i)
{
    const int64_t L = b->field[0].shape[1], M = b->field[1].shape[1];
    const int64_t *w = (int64_t *)b->data[0] + k * L;
    const float *p = (float *)b->data[1] + k * M * 2;
    for (int64_t j = 0; j < L; j++) assert_int_equal(w[j], j < words(i) ? word_of(i, j) : -100);
    for (int64_t j = 0; j < 2 * M; j++)
        assert_true(p[j] == (j < 2 * points(i) ? point_of(i, j / 2, (int)(j % 2)) : 0.5f));
    assert_int_equal(((int64_t *)b->data[2])[k], i % 3);
    assert_int_equal(((int64_t *)b->data[3])[k], words(i));
    assert_int_equal(((int64_t *)b->data[4])[k], points(i));
}

static void test_padding(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    ctn_sampler *s = NULL;
    OK(open_arrays(&ds));
    OK(ctn_sampler_sequential(&s, COUNT));
    for (int64_t batch = 1; batch <= 51; batch += 10)
        for (int64_t multiple = 0; multiple <= 8; multiple += 4) {
            ctn_loader *l = NULL;
            ctn_batch b;
            int64_t i = 0;
            OK(ctn_loader_new(&l, ds, s,
                              CTN_OPT(ctn_loader_opt, .batch = batch, .pad_multiple = multiple,
                                      .pad_value = {-100, 0.5})));
            for (; ctn_loader_next(l, &b) == CTN_OK; i += b.n) {
                int64_t longest[2] = {0, 0}, m = multiple ? multiple : 1;
                for (int64_t k = i; k < i + b.n; k++) {
                    longest[0] = larger(longest[0], words(k));
                    longest[1] = larger(longest[1], points(k));
                }
                assert_int_equal(b.fields, 5);
                for (int f = 0; f < 5; f++) assert_int_equal((uintptr_t)b.data[f] % 64, 0);
                for (int f = 0; f < 2; f++) {
                    assert_int_equal(b.field[f].shape[0], b.n);
                    assert_int_equal(b.field[f].shape[1], (larger(longest[f], 1) + m - 1) / m * m);
                    assert_true(b.field[3 + f].dtype == CTN_I64 && b.field[3 + f].ndim == 1);
                    assert_int_equal(b.field[3 + f].shape[0], b.n);
                }
                assert_true(b.field[0].ndim == 2 && b.field[1].ndim == 3);
                for (int64_t k = 0; k < b.n; k++) check_row(&b, k, i + k);
            }
            assert_int_equal(i, COUNT);
            ctn_loader_free(l);
        }
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
}

static ctn_sampler *bucketed(const ctn_dataset *ds, int64_t batch, uint64_t seed)
{
    ctn_sampler *s = NULL;
    int64_t n[COUNT];
    for (int64_t i = 0; i < COUNT; i++) n[i] = ctn_dataset_length(ds, 0, i);
    OK(ctn_sampler_bucketed(&s, COUNT, n, batch, seed));
    return s;
}

/* The same bytes with any number of threads, and after going on from a state in mid-epoch, in the
 * same loader and in a new one. Nothing is allocated. */
static void test_threads_and_states(void **state)
{
    (void)state;
    static record first, all, part;
    ctn_dataset *ds = NULL;
    OK(open_arrays(&ds));
    for (int threads = 0; threads <= 3; threads += threads ? 2 : 1)
        for (int stop = 0; stop < 10; stop += 3) {
            ctn_loader *l = NULL, *again = NULL;
            ctn_sampler *s = bucketed(ds, 8, 5), *other = bucketed(ds, 8, 0);
            const ctn_loader_opt *opt = CTN_OPT(ctn_loader_opt, .batch = 8, .threads = threads,
                                                .pad_multiple = 4, .pad_value = {-100});
            OK(ctn_loader_new(&l, ds, s, opt));
            const uint64_t before = ctn_allocations();
            all.n = part.n = 0;
            run(l, stop, &all);
            const size_t at = all.n;
            const ctn_sampler_state saved = ctn_loader_get_state(l);
            run(l, 20 - stop, &all);
            if (threads == 0 && stop == 0) first = all;
            assert_int_equal(all.n, first.n);
            assert_memory_equal(all.bytes, first.bytes, first.n);
            OK(ctn_loader_set_state(l, &saved));
            run(l, 20 - stop, &part);
            assert_int_equal(ctn_allocations(), before);
            assert_memory_equal(part.bytes, all.bytes + at, part.n);
            OK(ctn_sampler_set_state(other, &saved)); /* brings the seed */
            OK(ctn_loader_new(&again, ds, other, opt));
            part.n = 0;
            run(again, 20 - stop, &part);
            assert_int_equal(part.n, all.n - at);
            assert_memory_equal(part.bytes, all.bytes + at, part.n);
            ctn_loader_free(l);
            ctn_loader_free(again);
            ctn_sampler_free(s);
            ctn_sampler_free(other);
        }
    ctn_dataset_free(ds);
}

/* All ranks together see each sample once per epoch; a rank pads by its own samples. */
static void test_ranks(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    OK(open_arrays(&ds));
    for (int size = 1; size <= 3; size++)
        for (int drop = 0; drop < 2; drop++) {
            int seen[COUNT] = {0}, total = 0;
            for (int rank = 0; rank < size; rank++) {
                ctn_loader *l = NULL;
                ctn_batch b;
                ctn_sampler *s = bucketed(ds, 4 * size, 3);
                OK(ctn_sampler_shard(s, rank, size));
                OK(ctn_loader_new(&l, ds, s,
                                  CTN_OPT(ctn_loader_opt, .batch = 4, .threads = 1,
                                          .drop_last = drop, .pad_value = {-100, 0.5})));
                for (; ctn_loader_next(l, &b) == CTN_OK; total += (int)b.n)
                    for (int64_t k = 0; k < b.n; k++) {
                        const float *p = (float *)b.data[1] + 2 * k * b.field[1].shape[1];
                        const int64_t i = (int64_t)p[0] / 100;
                        check_row(&b, k, i);
                        seen[i]++;
                    }
                ctn_loader_free(l);
                ctn_sampler_free(s);
            }
            assert_int_equal(total, drop ? COUNT / (4 * size) * 4 * size : COUNT);
            for (int i = 0; i < COUNT; i++) assert_true(seen[i] == 1 || (drop && seen[i] == 0));
        }
    ctn_dataset_free(ds);
}

/* Targets that are padded with -100 do not count in the loss. */
static void test_padded_targets(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    ctn_dataset *ds = NULL;
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    ctn_batch b;
    int64_t t[] = {1, 0, 1, 1}, at[] = {0, 1, 4};
    float x[2 * 16 * 2] = {0};
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_ragged_open(&ds, 2, 1, field, (const void *[]){t}, (const int64_t *[]){at}));
    OK(ctn_sampler_sequential(&s, 2));
    OK(ctn_loader_new(&l, ds, s,
                      CTN_OPT(ctn_loader_opt, .batch = 2, .pad_multiple = 16,
                              .pad_value = {-100})));
    OK(ctn_loader_next(l, &b));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 16, 2));
    assert_true(
        fabs(ctn_item(ctn_softmax_cross_entropy(y, ctn_batch_tensor(ctx, &b, 0))) - log(2)) < 1e-6);
    OK(ctn_scope_end(ctx));
    ctn_loader_free(l);
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
    ctn_context_free(ctx);
}

/* Every type can be padded with a value that it has. */
static void test_pad_values(void **state)
{
    (void)state;
    static const struct {
        ctn_dtype dtype;
        double value;
        uint64_t bits; /* 0: refused */
    } cases[] = {
        {CTN_F64, 0.1, 0x3fb999999999999a},
        {CTN_F32, -2, 0xc0000000},
        {CTN_BF16, 1, 0x3f80},
        {CTN_F16, 1, 0x3c00},
        {CTN_I64, -1, UINT64_MAX},
        {CTN_I32, -1, UINT32_MAX},
        {CTN_U8, 255, 255},
        {CTN_BOOL, 1, 1},
        {CTN_U8, 256, 0},
        {CTN_U8, -1, 0},
        {CTN_I32, 1e10, 0},
        {CTN_I64, 0.5, 0},
        {CTN_I64, 1e300, 0},
        {CTN_BOOL, 2, 0},
        {CTN_I32, NAN, 0},
    };
    ctn_sampler *s = NULL;
    OK(ctn_sampler_sequential(&s, 1));
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        ctn_dataset *ds = NULL;
        ctn_loader *l = NULL;
        ctn_batch b;
        const ctn_field one = {cases[c].dtype, 2, {CTN_RAGGED, 3}, 0};
        OK(ctn_ragged_open(&ds, 1, 1, &one, (const void *[]){NULL}, (const int64_t *[]){no_rows}));
        const ctn_status st =
            ctn_loader_new(&l, ds, s,
                           CTN_OPT(ctn_loader_opt, .batch = 1, .pad_value = {cases[c].value}));
        if (cases[c].bits == 0) {
            assert_fails(st, CTN_EARG, "pad_value[0]");
        } else {
            OK(st);
            OK(ctn_loader_next(l, &b));
            const size_t size = ctn_dtype_size(cases[c].dtype);
            assert_int_equal(b.field[0].shape[1], 1);
            for (size_t i = 0; i < 3; i++)
                assert_memory_equal((char *)b.data[0] + i * size, &cases[c].bits, size);
        }
        ctn_loader_free(l);
        ctn_dataset_free(ds);
    }
    ctn_sampler_free(s);
}

/* ---- tables of the user ---------------------------------------------------------------------- */

/* Sample i has i + 1 rows, all i; sample `bad` cannot be read, or has the length `wrong`. */
typedef struct {
    int64_t bad, wrong;
    int fields;
} made;

static int64_t made_count(void *self)
{
    (void)self;
    return 9;
}

static int made_fields(void *self)
{
    return ((made *)self)->fields;
}

static void made_field(void *self, int f, ctn_field *out)
{
    (void)self, (void)f;
    *out = (ctn_field){CTN_I32, 1, {CTN_RAGGED}, 0};
}

static ctn_status made_get(void *self, const ctn_sample *s, void *const *dst)
{
    const made *m = self;
    for (int f = 0; f < m->fields; f++)
        for (int64_t i = 0; i <= s->index; i++) ((int32_t *)dst[f])[i] = (int32_t)s->index;
    return s->index == m->bad ? ctn_fail(CTN_EIO, "made: the disk is gone") : CTN_OK;
}

static int64_t made_length(void *self, int f, int64_t index)
{
    const made *m = self;
    (void)f;
    return m->wrong && index == 4 ? m->wrong : index + 1;
}

static const ctn_dataset_vt made_vt = {.struct_size = sizeof(ctn_dataset_vt),
                                       .count = made_count,
                                       .fields = made_fields,
                                       .field = made_field,
                                       .get = made_get,
                                       .length = made_length};

static void test_table(void **state)
{
    (void)state;
    made m = {.bad = -1, .fields = 5};
    ctn_dataset *ds = NULL;
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    ctn_dataset_vt old = made_vt;
    old.struct_size = offsetof(ctn_dataset_vt, length); /* of a program that knows no length */
    assert_fails(ctn_dataset_new(&ds, &old, &m), CTN_EARG, "length of the table");
    OK(ctn_dataset_new(&ds, &made_vt, &m));
    OK(ctn_sampler_sequential(&s, 9));
    assert_fails(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 1)), CTN_EARG,
                 "has 5 fields, too many");
    ctn_dataset_free(ds);
    m.fields = 1;
    OK(ctn_dataset_new(&ds, &made_vt, &m));
    assert_fails(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 1, .pad_multiple = -1)),
                 CTN_EARG, "pad_multiple is -1");
    assert_fails(ctn_loader_new(&l, ds, s,
                                CTN_OPT(ctn_loader_opt, .batch = 1,
                                        .mix = CTN_OPT(ctn_mix_opt, .mixup = 1, .classes = 2))),
                 CTN_EARG, "field 0 is ragged");
    m.wrong = INT64_MAX;
    assert_fails(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 2)), CTN_EARG,
                 "does not fit");
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
}

/* A sample that cannot be read, or whose length is wrong, is left out or named. It counts for the
 * padding if its length was right. */
static void test_unreadable(void **state)
{
    (void)state;
    const int64_t wrong[] = {0, -3, 1000};
    for (int kind = 0; kind < 3; kind++)
        for (int skip = 0; skip < 2; skip++) {
            made m = {.bad = kind == 0 ? 4 : -1, .fields = 1};
            ctn_dataset *ds = NULL;
            ctn_sampler *s = NULL;
            ctn_loader *l = NULL;
            ctn_batch b;
            m.wrong = wrong[kind] < 0 ? wrong[kind] : 0;
            OK(ctn_dataset_new(&ds, &made_vt, &m));
            OK(ctn_sampler_sequential(&s, 9));
            OK(ctn_loader_new(&l, ds, s,
                              CTN_OPT(ctn_loader_opt, .batch = 5, .skip = 0.5 * skip,
                                      .pad_value = {7})));
            m.wrong = wrong[kind]; /* the loader has measured: 1000 is too long now */
            const ctn_status st = ctn_loader_next(l, &b);
            if (!skip) {
                assert_non_null(strstr(ctn_error_message(), "sample 4"));
                assert_fails(st, kind ? CTN_EFORMAT : CTN_EIO,
                             kind ? "field 0 has length" : "disk is gone");
            } else {
                const int64_t L = kind ? 4 : 5;
                OK(st);
                assert_true(b.n == 4 && b.field[0].shape[1] == L && b.fields == 2);
                for (int64_t i = 0; i < 4 * L; i++)
                    assert_int_equal(((int32_t *)b.data[0])[i], i % L <= i / L ? i / L : 7);
                for (int64_t i = 0; i < 4; i++) assert_int_equal(((int64_t *)b.data[1])[i], i + 1);
            }
            OK(ctn_loader_next(l, &b));
            assert_true(b.n == 4 && b.field[0].shape[1] == 9);
            ctn_loader_free(l);
            ctn_sampler_free(s);
            ctn_dataset_free(ds);
        }
}

/* ---- datasets made from others --------------------------------------------------------------- */

static void test_parts(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL, *part = NULL, *second = NULL, *both = NULL;
    OK(open_arrays(&ds));
    OK(ctn_dataset_slice(&part, ds, 10, 5));
    for (int64_t i = 0; i < 5; i++) check_sample(part, i, 10 + i);
    OK(ctn_dataset_subset(&second, ds, 3, (int64_t[]){7, 0, 49}));
    check_sample(second, 0, 7);
    check_sample(second, 2, 49);
    OK(ctn_dataset_concat(&both, 2, (ctn_dataset *[]){part, second}));
    check_sample(both, 4, 14);
    check_sample(both, 5, 7);
    ctn_dataset_free(both);
    OK(ctn_dataset_split(&part, &second, ds, 0.2, 1));
    int64_t sum = 0;
    for (int64_t i = 0; i < 40; i++) sum += ctn_dataset_length(part, 0, i);
    for (int64_t i = 0; i < 10; i++) sum += ctn_dataset_length(second, 0, i);
    assert_int_equal(sum, offset[0][COUNT]);
    ctn_dataset_free(part);
    ctn_dataset_free(second);
    /* A ragged and a fixed field are not the same. */
    OK(ctn_ragged_open(&part, 1, 1, field, (const void *[]){word}, (const int64_t *[]){offset[0]}));
    OK(ctn_arrays_open(&second, 1, 1, &(ctn_field){CTN_I64, 1, {1}, 0}, (const void *[]){word}));
    assert_fails(ctn_dataset_concat(&both, 2, (ctn_dataset *[]){part, second}), CTN_EARG,
                 "another type or shape");
    ctn_dataset_free(part);
    ctn_dataset_free(second);
    ctn_dataset_free(ds);
}

/* The class, words as f64, the second coordinate of points; ragged ones have the length of field 1
 * (which is ragged in the base) or 0 (the first ragged one). */
static ctn_status turn(void *user, const ctn_sample *s, void *const *src, void *const *dst)
{
    const int64_t *w = src[0];
    const float(*p)[2] = src[1];
    memcpy(dst[0], src[2], 8);
    for (int64_t k = 0; k < points(s->index); k++) ((float *)dst[1])[k] = p[k][1];
    for (int64_t k = 0; k < words(s->index); k++) ((double *)dst[2])[k] = (double)w[k];
    ++*(int *)user;
    return CTN_OK;
}

static void test_transform(void **state)
{
    (void)state;
    ctn_dataset *base = NULL, *ds = NULL;
    int calls = 0;
    const ctn_field to[] = {{CTN_I64, 0, {0}, 0},
                            {CTN_F32, 1, {CTN_RAGGED}, 0},
                            {CTN_F64, 1, {CTN_RAGGED}, 0}};
    OK(open_arrays(&base));
    OK(ctn_dataset_transform(&ds, base, 3, to, turn, &calls));
    for (int64_t i = 0; i < COUNT; i++) {
        int64_t t;
        float y[MOST];
        double x[MOST];
        assert_int_equal(ctn_dataset_length(ds, 0, i), 1);
        assert_int_equal(ctn_dataset_length(ds, 1, i), points(i));
        assert_int_equal(ctn_dataset_length(ds, 2, i), words(i));
        OK(ctn_dataset_get(ds, i, (void *[]){&t, y, x}));
        assert_int_equal(t, i % 3);
        for (int64_t k = 0; k < points(i); k++) assert_true(y[k] == point_of(i, k, 1));
        for (int64_t k = 0; k < words(i); k++) assert_true(x[k] == (double)word_of(i, k));
    }
    assert_int_equal(calls, COUNT);
    ctn_dataset_free(ds);
    OK(ctn_arrays_open(&base, 1, 1, &to[0], (const void *[]){class}));
    assert_fails(ctn_dataset_transform(&ds, base, 2, to, turn, NULL), CTN_EARG,
                 "no field of the base");
    ctn_dataset_free(base);
}

static void test_standardize(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL, *out = NULL;
    double mean[2], std[2], sum[2] = {0}, squares[2] = {0};
    const double n = (double)offset[1][COUNT];
    for (int64_t i = 0; i < offset[1][COUNT]; i++)
        for (int c = 0; c < 2; c++) sum[c] += (double)point[i][c] / n;
    for (int64_t i = 0; i < offset[1][COUNT]; i++)
        for (int c = 0; c < 2; c++)
            squares[c] += ((double)point[i][c] - sum[c]) * ((double)point[i][c] - sum[c]) / n;
    OK(open_arrays(&ds));
    OK(ctn_dataset_moments(ds, 1, 2, mean, std));
    for (int c = 0; c < 2; c++) {
        assert_true(fabs(mean[c] - sum[c]) < 1e-9 * fabs(sum[c]));
        assert_true(fabs(std[c] - sqrt(squares[c])) < 1e-9 * std[c]);
    }
    OK(ctn_dataset_standardize(&out, ds, 1, 2, mean, std));
    for (int64_t i = 0; i < COUNT; i++) {
        int64_t w[MOST], t;
        float p[MOST][2];
        assert_int_equal(ctn_dataset_length(out, 0, i), words(i));
        OK(ctn_dataset_get(out, i, (void *[]){w, p, &t}));
        for (int64_t k = 0; k < points(i); k++)
            for (int c = 0; c < 2; c++)
                assert_true(fabs((double)p[k][c] - ((double)point_of(i, k, c) - mean[c]) / std[c]) <
                            1e-5);
    }
    ctn_dataset_free(out);
    /* f64 (L) has one pair; empty samples do not count; more dimensions are refused. */
    double x[] = {1, 2, 6};
    const ctn_field plain = {CTN_F64, 1, {CTN_RAGGED}, 0},
                    cube = {CTN_F64, 3, {CTN_RAGGED, 1, 1}, 0};
    const int64_t *at[] = {(int64_t[]){0, 1, 1, 3}};
    OK(ctn_ragged_open(&ds, 3, 1, &plain, (const void *[]){x}, at));
    OK(ctn_dataset_moments(ds, 0, 1, mean, std));
    assert_true(fabs(mean[0] - 3) < 1e-12 && fabs(std[0] - sqrt(14.0 / 3)) < 1e-12);
    OK(ctn_dataset_standardize(&out, ds, 0, 1, mean, std));
    float y[2];
    OK(ctn_dataset_get(out, 2, (void *[]){y}));
    assert_true(fabs((double)y[1] - 3 / std[0]) < 1e-6);
    OK(ctn_dataset_get(out, 1, (void *[]){y}));
    ctn_dataset_free(out);
    OK(ctn_ragged_open(&ds, 3, 1, &cube, (const void *[]){x}, at));
    assert_fails(ctn_dataset_moments(ds, 0, 1, mean, std), CTN_EARG, "ragged with 3 dimensions");
    ctn_dataset_free(ds);
    OK(ctn_ragged_open(&ds, 1, 1, &plain, (const void *[]){x}, (const int64_t *[]){no_rows}));
    assert_fails(ctn_dataset_moments(ds, 0, 1, mean, std), CTN_EARG, "empty");
    ctn_dataset_free(ds);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void save_all(void)
{
    OK(ctn_npy_save("word.npy", offset[0][COUNT], &field[2], word));
    OK(ctn_npy_save("point.npy", offset[1][COUNT], &(ctn_field){CTN_F32, 1, {2}, 0}, point));
    OK(ctn_npy_save("class.npy", COUNT, &field[2], class));
    OK(ctn_npy_save("word_at.npy", COUNT + 1, &field[2], offset[0]));
    int32_t narrow[COUNT + 1]; /* any integer type serves for offsets */
    for (int i = 0; i <= COUNT; i++) narrow[i] = (int32_t)offset[1][i];
    OK(ctn_npy_save("point_at.npy", COUNT + 1, &(ctn_field){.dtype = CTN_I32}, narrow));
}

static const char *const path[] = {"word.npy", "point.npy", "class.npy"};

static ctn_status open_files(ctn_dataset **ds, const char *const *offsets)
{
    return ctn_files_open(ds, 3, path, CTN_OPT(ctn_files_opt, .offsets = offsets));
}

/* Writes the points as a column-major array. */
static void save_columns(void)
{
    const int64_t n = offset[1][COUNT];
    FILE *f = fopen("point.npy", "wb");
    assert_non_null(f);
    char head[119];
    snprintf(head, sizeof head, "{'descr': '<f4', 'fortran_order': True, 'shape': (%d, 2), }",
             (int)n);
    fwrite("\x93NUMPY\1\0\x76\0", 1, 10, f);
    fprintf(f, "%-117s\n", head);
    for (int c = 0; c < 2; c++)
        for (int64_t i = 0; i < n; i++) fwrite(&point[i][c], 4, 1, f);
    assert_int_equal(fclose(f), 0);
}

static void test_files(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    char name[64];
    const char *at[] = {"word_at.npy", "point_at.npy", NULL};
    save_all();
    for (int columns = 0; columns < 2; columns++) {
        if (columns) save_columns();
        OK(open_files(&ds, at));
        assert_int_equal(ctn_dataset_count(ds), COUNT);
        for (int64_t i = 0; i < COUNT; i++) check_sample(ds, i, i);
        ctn_dataset_name(ds, 3, name, sizeof name);
        assert_string_equal(name, "word.npy[3]");
        ctn_dataset_free(ds);
    }
}

static void test_files_refuse(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    save_all();
    const char *at[] = {"point.npy", "point_at.npy", NULL};
    assert_fails(open_files(&ds, at), CTN_EFORMAT, "numpy.cumsum");
    at[0] = "missing.npy";
    assert_fails(open_files(&ds, at), CTN_EIO, "missing.npy");
    at[0] = "short.npy";
    OK(ctn_npy_save("short.npy", COUNT, &field[2], offset[0]));
    assert_fails(open_files(&ds, at), CTN_ESHAPE, "has 49 samples");
    int64_t wrong[COUNT + 1] = {5};
    OK(ctn_npy_save("short.npy", COUNT + 1, &field[2], wrong));
    assert_fails(open_files(&ds, at), CTN_EARG, "short.npy: offset 1 is 0");
    memset(wrong, 0, sizeof wrong);
    wrong[COUNT] = offset[0][COUNT] + 1;
    OK(ctn_npy_save("short.npy", COUNT + 1, &field[2], wrong));
    assert_fails(open_files(&ds, at), CTN_ESHAPE, "the last offset is");
    assert_fails(ctn_files_open(&ds, 1, (const char *[]){"x.h5:/word"},
                                CTN_OPT(ctn_files_opt, .offsets = at)),
                 CTN_EUNSUPPORTED, "must be a .npy file");
    assert_null(ds);
}

/* ---- long runs and memory -------------------------------------------------------------------- */

/* 2,000 batches of 8 with lengths from 10 to 500, padded to multiples of 16: returns the share of
 * padding. */
static double long_run(ctn_dataset *ds, ctn_sampler *s)
{
    enum { BATCHES = 2000 };
    ctn_loader *l = NULL;
    ctn_batch b;
    int seen[40] = {0}, shapes = 0;
    double rows = 0, all = 0;
    OK(ctn_loader_new(&l, ds, s,
                      CTN_OPT(ctn_loader_opt, .batch = 8, .threads = 1, .pad_multiple = 16)));
    const uint64_t before = ctn_allocations();
    for (int k = 0; k < BATCHES;) {
        if (ctn_loader_next(l, &b) == CTN_END) continue;
        const int64_t L = b.field[0].shape[1];
        assert_true(L % 16 == 0 && L <= 512 && b.n == 8);
        shapes += seen[L / 16]++ == 0;
        all += (double)(b.n * L);
        for (int64_t i = 0; i < b.n; i++) rows += (double)((int64_t *)b.data[1])[i];
        k++;
    }
    assert_int_equal(ctn_allocations(), before);
    assert_true(shapes <= 40);
    ctn_loader_free(l);
    ctn_sampler_free(s);
    return 1 - rows / all;
}

static void test_long_run(void **state)
{
    (void)state;
    enum { N = 4000 };
    static int64_t n[N], at[N + 1];
    static uint8_t data[N * 500];
    ctn_dataset *ds = NULL;
    ctn_sampler *s = NULL;
    for (int i = 0; i < N; i++) at[i + 1] = at[i] + (n[i] = 10 + (int64_t)i * 7919 % 491);
    OK(ctn_ragged_open(&ds, N, 1, &(ctn_field){CTN_U8, 1, {CTN_RAGGED}, 0}, (const void *[]){data},
                       (const int64_t *[]){at}));
    OK(ctn_sampler_shuffled(&s, N, 1));
    const double plain = long_run(ds, s);
    OK(ctn_sampler_bucketed(&s, N, n, 8, 1));
    const double buckets = long_run(ds, s);
    if (plain < 0.35 || buckets > 0.06)
        fail_msg("padding: %.3f in shuffled order, %.3f in buckets", plain, buckets);
    ctn_dataset_free(ds);
}

static ctn_status everything(void)
{
    ctn_status st = CTN_OK;
    ctn_dataset *ds = NULL, *files = NULL, *std = NULL;
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    ctn_batch b;
    double mean[2], dev[2];
    const char *at[] = {"word_at.npy", "point_at.npy", NULL};
    CTN_TRY_GOTO(st, done, open_arrays(&ds));
    CTN_TRY_GOTO(st, done, open_files(&files, at));
    CTN_TRY_GOTO(st, done, ctn_dataset_moments(files, 1, 2, mean, dev));
    CTN_TRY_GOTO(st, done, ctn_dataset_standardize(&std, files, 1, 2, mean, dev));
    files = NULL;
    CTN_TRY_GOTO(st, done, ctn_sampler_bucketed(&s, COUNT, offset[0], 4, 1));
    CTN_TRY_GOTO(st, done,
                 ctn_loader_new(&l, std, s, CTN_OPT(ctn_loader_opt, .batch = 2, .threads = 2)));
    CTN_TRY_GOTO(st, done, ctn_loader_next(l, &b));
done:
    ctn_loader_free(l);
    ctn_sampler_free(s);
    ctn_dataset_free(std);
    ctn_dataset_free(files);
    ctn_dataset_free(ds);
    return st;
}

static void test_no_memory(void **state)
{
    (void)state;
    save_all();
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
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays),     cmocka_unit_test(test_arrays_refuse),
        cmocka_unit_test(test_padding),    cmocka_unit_test(test_threads_and_states),
        cmocka_unit_test(test_ranks),      cmocka_unit_test(test_padded_targets),
        cmocka_unit_test(test_pad_values), cmocka_unit_test(test_table),
        cmocka_unit_test(test_unreadable), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_transform),  cmocka_unit_test(test_standardize),
        cmocka_unit_test(test_files),      cmocka_unit_test(test_files_refuse),
        cmocka_unit_test(test_long_run),   cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
