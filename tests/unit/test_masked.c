/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples for masked-language training: the shares of the choices over many tokens, targets,
 * special tokens, choices that depend on seed, epoch and index alone, and refused input.
 * Labels: threads
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <catena/datasets.h>

#include "support/check.h"
#include "support/ok.h"

#ifdef CTN_HAVE_UTF8PROC

enum { WINDOW = 100, WINDOWS = 1000, LENGTH = WINDOW + 2, WORDS = 200, TOKENS = 5 + WORDS };
enum { PAD, UNK, CLS, SEP, MASK, FIRST };

static int64_t text[WINDOWS][WINDOW];

/* A vocabulary of five special tokens and WORDS words. */
static ctn_tokenizer *open_words(void)
{
    ctn_tokenizer *t = NULL;
    FILE *f = fopen("masked.txt", "w");
    assert_non_null(f);
    fputs("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", f);
    for (int i = 0; i < WORDS; i++) fprintf(f, "w%d\n", i);
    assert_int_equal(fclose(f), 0);
    OK(ctn_tokenizer_open(&t, "masked.txt", NULL));
    unlink("masked.txt");
    return t;
}

/* Words, and a special token at every 25th place. */
static ctn_dataset *open_text(void)
{
    const ctn_field field = {CTN_I64, 1, {WINDOW}, 0};
    const void *data = text;
    ctn_dataset *ds = NULL;
    for (int64_t i = 0; i < WINDOWS * WINDOW; i++)
        text[i / WINDOW][i % WINDOW] = i % 25 == 7 ? i / 25 % FIRST : FIRST + i * i % 191;
    OK(ctn_arrays_open(&ds, WINDOWS, 1, &field, &data));
    return ds;
}

static ctn_dataset *open_masked(const ctn_mask_opt *opt)
{
    ctn_tokenizer *t = open_words();
    ctn_dataset *ds = NULL;
    OK(ctn_dataset_mask(&ds, open_text(), t, opt));
    ctn_tokenizer_free(t);
    return ds;
}

typedef struct {
    int64_t x[LENGTH], y[LENGTH];
} sample;

static sample take(const ctn_dataset *ds, int64_t index, uint64_t seed, uint64_t epoch)
{
    sample s;
    OK(ctn_dataset_sample(ds, &(ctn_sample){index, seed, epoch, 0}, (void *[]){s.x, s.y}));
    return s;
}

/* ---- tests ----------------------------------------------------------------------------------- */

typedef struct {
    int64_t words, chosen, masked, other, same;
} counts;

/* Checks every token of a sample and counts what happened to it. */
static void count(const sample *s, const int64_t *window, counts *n)
{
    assert_true(s->x[0] == CLS && s->y[0] == -100);
    assert_true(s->x[LENGTH - 1] == SEP && s->y[LENGTH - 1] == -100);
    for (int i = 0; i < WINDOW; i++) {
        const int64_t x = s->x[i + 1], y = s->y[i + 1], was = window[i];
        n->words += was >= FIRST;
        if (y == -100) {
            assert_int_equal(x, was);
            continue;
        }
        assert_int_equal(y, was);
        assert_true(was >= FIRST); /* special tokens are never chosen */
        assert_true(x == MASK || (x >= FIRST && x < TOKENS));
        n->chosen++;
        n->masked += x == MASK;
        n->other += x != MASK && x != was;
        n->same += x == was;
    }
}

static void assert_share(int64_t part, int64_t all, double low, double high)
{
    const double share = (double)part / (double)all;
    if (share < low || share > high) fail_msg("%g is not in %g to %g", share, low, high);
}

/* 100,000 tokens, of which 96,000 are words: 14,400 are chosen. */
static void test_shares(void **state)
{
    (void)state;
    ctn_dataset *ds = open_masked(NULL);
    counts n = {0};
    assert_int_equal(ctn_dataset_count(ds), WINDOWS);
    assert_int_equal(ctn_dataset_fields(ds), 2);
    assert_int_equal(ctn_dataset_field(ds, 1)->shape[0], LENGTH);
    for (int64_t i = 0; i < WINDOWS; i++) {
        const sample s = take(ds, i, 1, 0);
        count(&s, text[i], &n);
    }
    assert_int_equal(n.words, 96 * WINDOWS);
    assert_share(n.chosen, n.words, 0.149, 0.151);
    assert_share(n.masked, n.chosen, 0.785, 0.815);
    assert_share(n.other, n.chosen, 0.089, 0.111);
    assert_share(n.same, n.chosen, 0.089, 0.111);
    ctn_dataset_free(ds);
}

static void test_other_shares(void **state)
{
    (void)state;
    ctn_dataset *ds =
        open_masked(CTN_OPT(ctn_mask_opt, .chosen = 0.5, .masked = -1, .random = 0.25));
    counts n = {0};
    for (int64_t i = 0; i < 100; i++) {
        const sample s = take(ds, i, 1, 0);
        count(&s, text[i], &n);
    }
    assert_share(n.chosen, n.words, 0.5, 0.5);
    assert_int_equal(n.masked, 0);
    assert_share(n.other, n.chosen, 0.22, 0.28);
    ctn_dataset_free(ds);
    ds = open_masked(CTN_OPT(ctn_mask_opt, .chosen = 1e-9));
    n = (counts){0};
    for (int64_t i = 0; i < 100; i++) {
        const sample s = take(ds, i, 1, 0);
        count(&s, text[i], &n);
    }
    assert_int_equal(n.chosen, 100); /* at least one of each window */
    ctn_dataset_free(ds);
}

static bool equal(sample a, sample b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void test_determinism(void **state)
{
    (void)state;
    ctn_dataset *a = open_masked(NULL), *b = open_masked(NULL);
    const sample s = take(a, 17, 3, 5);
    take(b, 18, 3, 5); /* other samples in between change nothing */
    assert_true(equal(s, take(b, 17, 3, 5)));
    assert_false(equal(s, take(a, 17, 4, 5)));
    assert_false(equal(s, take(a, 17, 3, 6)));
    const sample next = take(a, 18, 3, 5);
    int same = 0;
    for (int i = 0; i < LENGTH; i++) same += (s.y[i] < 0) == (next.y[i] < 0);
    assert_true(same < LENGTH - 10); /* other places in another window */
    ctn_dataset_free(a);
    ctn_dataset_free(b);
}

/* Batches of a loader, on any number of threads. */
static void test_threads(void **state)
{
    (void)state;
    ctn_dataset *ds = open_masked(NULL);
    ctn_loader *l[2] = {NULL, NULL};
    for (int k = 0; k < 2; k++) {
        ctn_sampler *order = NULL;
        OK(ctn_sampler_shuffled(&order, WINDOWS, 9));
        OK(ctn_loader_new(&l[k], ds, order,
                          CTN_OPT(ctn_loader_opt, .batch = 32, .threads = 3 * k)));
        ctn_sampler_free(order);
    }
    for (int i = 0; i < 40; i++) { /* beyond the end of the first epoch */
        ctn_batch b[2];
        const ctn_status st = ctn_loader_next(l[0], &b[0]);
        assert_int_equal(ctn_loader_next(l[1], &b[1]), st);
        for (int f = 0; f < b[0].fields && st == CTN_OK; f++)
            assert_memory_equal(b[0].data[f], b[1].data[f],
                                (size_t)b[0].n * LENGTH * sizeof(int64_t));
    }
    for (int k = 0; k < 2; k++) ctn_loader_free(l[k]);
    ctn_dataset_free(ds);
}

/* A window of a token file, which has a second field, without tokens around it. */
static void test_bare_windows(void **state)
{
    (void)state;
    static const uint8_t tokens[] = {6, 7, SEP, 8, 9, 10, 11};
    ctn_tokenizer *t = open_words();
    ctn_dataset *base = NULL, *ds = NULL;
    int64_t x[3], y[3];
    write_bytes("masked.bin", tokens, sizeof tokens);
    OK(ctn_tokens_open(&base, "masked.bin", CTN_OPT(ctn_tokens_opt, .length = 3, .bytes = 1)));
    OK(ctn_dataset_mask(&ds, base, t,
                        CTN_OPT(ctn_mask_opt, .chosen = 1, .masked = 1, .random = -1, .begin = "",
                                .end = "")));
    OK(ctn_dataset_get(ds, 0, (void *[]){x, y}));
    assert_true(x[0] == MASK && x[1] == MASK && x[2] == SEP);
    assert_true(y[0] == 6 && y[1] == 7 && y[2] == -100);
    ctn_dataset_free(ds);
    ctn_tokenizer_free(t);
    unlink("masked.bin");
}

static void test_refused(void **state)
{
    (void)state;
    static const float numbers[2] = {1, 2};
    const ctn_field field = {CTN_F32, 1, {2}, 0};
    ctn_tokenizer *t = open_words();
    ctn_dataset *base = open_text(), *arrays = NULL, *ds = NULL;
    OK(ctn_arrays_open(&arrays, 1, 1, &field, (const void *[]){numbers}));
    assert_fails(ctn_dataset_mask(&ds, arrays, t, NULL), CTN_EARG, "a dataset of tokens");
    assert_fails(ctn_dataset_mask(&ds, base, NULL, NULL), CTN_EARG, "NULL");
    assert_fails(ctn_dataset_mask(&ds, base, t, CTN_OPT(ctn_mask_opt, .chosen = 2)), CTN_EARG,
                 "chosen is 2");
    assert_fails(ctn_dataset_mask(&ds, base, t, CTN_OPT(ctn_mask_opt, .random = 0.3)), CTN_EARG,
                 "random is 0.3");
    assert_fails(ctn_dataset_mask(&ds, base, t, CTN_OPT(ctn_mask_opt, .mask = "<mask>")),
                 CTN_ENOTFOUND, "no token '<mask>'");
    OK(ctn_dataset_mask(&ds, base, t, NULL));
    sample s;
    text[1][3] = TOKENS;
    assert_fails(ctn_dataset_get(ds, 1, (void *[]){s.x, s.y}), CTN_EFORMAT, "has token 205");
    OK(ctn_dataset_get(ds, 0, (void *[]){s.x, s.y}));
    ctn_dataset_free(ds);
    ctn_dataset_free(arrays);
    ctn_tokenizer_free(t);
}

/* Everything is freed after a failed allocation, and the caller keeps the base. */
static void test_failing_allocator(void **state)
{
    (void)state;
    static failing memory;
    ctn_tokenizer *t = NULL;
    ctn_dataset *base = NULL, *ds = NULL;
    memory.left = 1000;
    OK(ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &memory}));
    t = open_words();
    base = open_text();
    const int before = memory.live;
    ctn_status st = CTN_ENOMEM;
    int n = 0;
    for (; st == CTN_ENOMEM; n++) {
        memory.left = n;
        st = ctn_dataset_mask(&ds, base, t, NULL);
        ctn_error_clear();
        if (st < 0) assert_int_equal(memory.live, before);
    }
    assert_int_equal(st, CTN_OK);
    assert_true(n > 3);
    ctn_dataset_free(ds);
    ctn_tokenizer_free(t);
    assert_int_equal(memory.live, 0);
    OK(ctn_set_allocator(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_allocator), /* must run before anything else allocates */
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_other_shares),
        cmocka_unit_test(test_determinism),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_bare_windows),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    puts("skipped: built without utf8proc");
    return 77;
}

#endif
