/* SPDX-License-Identifier: Apache-2.0
 *
 * Samplers. A shuffle is a permutation for every size, differs between epochs and is uniform.
 * Weighted draws follow their weights. Buckets hold similar lengths and differ between epochs.
 * With any number of ranks, each sample is drawn exactly once per epoch. A state restored at any
 * position continues with the same samples. Also a failing allocator.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include <catena/data.h>

#include "base/base.h"
#include "data/loader.h"

static void check_permutation(int64_t n, uint64_t seed, uint64_t epoch)
{
    ctn_sampler *s = NULL;
    OK(ctn_sampler_shuffled(&s, n, seed));
    uint8_t *seen = calloc((size_t)n, 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = ctn_sampler_index(s, epoch, (uint64_t)i);
        if (k < 0 || k >= n || seen[k])
            fail_msg("n %lld: %lld is repeated or out of range", (long long)n, (long long)k);
        seen[k] = 1;
    }
    free(seen);
    assert_int_equal(ctn_sampler_index(s, epoch, (uint64_t)n), -1);
    ctn_sampler_free(s);
}

static void test_shuffle_is_permutation(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 300; n++) check_permutation(n, 1234, (uint64_t)n % 3);
    const int64_t sizes[] = {1023, 1024, 1025, 4095, 4097, 60000, 65536, 65537};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_permutation(sizes[i], UINT64_MAX, UINT64_MAX);
    /* A huge shuffle has no table: any position is found at once, in range. */
    ctn_sampler *s = NULL;
    OK(ctn_sampler_shuffled(&s, INT64_MAX, 1));
    for (uint64_t i = 0; i < 100; i++) assert_true(ctn_sampler_index(s, 0, i) >= 0);
    ctn_sampler_free(s);
}

static void test_shuffle_epochs_differ(void **state)
{
    (void)state;
    enum { N = 1000 };
    ctn_sampler *s = NULL, *other = NULL, *again = NULL;
    OK(ctn_sampler_shuffled(&s, N, 1));
    OK(ctn_sampler_shuffled(&other, N, 2));
    OK(ctn_sampler_shuffled(&again, N, 1));
    int same_epoch = 0, same_seed = 0, same_place = 0;
    for (uint64_t i = 0; i < N; i++) {
        same_epoch += ctn_sampler_index(s, 0, i) == ctn_sampler_index(s, 1, i);
        same_seed += ctn_sampler_index(s, 0, i) == ctn_sampler_index(other, 0, i);
        same_place += ctn_sampler_index(s, 0, i) == (int64_t)i;
        assert_int_equal(ctn_sampler_index(s, 7, i), ctn_sampler_index(again, 7, i));
    }
    /* One match is expected in two random permutations. */
    assert_true(same_epoch < 10 && same_seed < 10 && same_place < 10);
    ctn_sampler_free(s);
    ctn_sampler_free(other);
    ctn_sampler_free(again);
}

/* Saved positions name the same samples in every version of the library. */
static void test_shuffle_stays(void **state)
{
    (void)state;
    static const struct {
        int64_t count;
        uint64_t seed, epoch, from;
        int64_t want[8];
    } pinned[] = {
        {10, 1, 0, 0, {9, 8, 1, 3, 4, 7, 0, 6}},
        {1000, 1234, 3, 500, {345, 825, 826, 724, 838, 20, 333, 450}},
        {60000, 7, 1, 59992, {6205, 51364, 59246, 9805, 38042, 57999, 9546, 9302}},
        {INT64_C(1) << 40,
         7,
         2,
         123456789,
         {289860102873, 841698092783, 330790006329, 519806966742, 154560910879, 143155330255,
          975749535052, 145768781441}},
    };
    for (size_t k = 0; k < sizeof pinned / sizeof *pinned; k++) {
        ctn_sampler *s = NULL;
        OK(ctn_sampler_shuffled(&s, pinned[k].count, pinned[k].seed));
        for (uint64_t i = 0; i < 8; i++)
            assert_int_equal(ctn_sampler_index(s, pinned[k].epoch, pinned[k].from + i),
                             pinned[k].want[i]);
        ctn_sampler_free(s);
    }
}

/* Over many epochs, two positions get every pair of samples equally often. Chi-square has f =
 * n(n-1)-1 degrees of freedom, hence mean f and deviation sqrt(2 f). */
static void test_shuffle_is_uniform(void **state)
{
    (void)state;
    enum { EPOCHS = 20000 };
    for (int n = 2; n <= 17; n += 3) {
        static int hist[20][20];
        memset(hist, 0, sizeof hist);
        ctn_sampler *s = NULL;
        OK(ctn_sampler_shuffled(&s, n, 42));
        for (uint64_t e = 0; e < EPOCHS; e++)
            hist[ctn_sampler_index(s, e, 0)][ctn_sampler_index(s, e, (uint64_t)n - 1)]++;
        ctn_sampler_free(s);
        double f = n * (n - 1) - 1, expected = EPOCHS / (f + 1), chi = 0;
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++)
                if (i != k) chi += (hist[i][k] - expected) * (hist[i][k] - expected) / expected;
        if (chi > f + 5 * sqrt(2 * f))
            fail_msg("n %d: chi-square %g, expected about %g", n, chi, f);
    }
}

static void test_sampler_state(void **state)
{
    (void)state;
    ctn_sampler *s = NULL;
    OK(ctn_sampler_sequential(&s, 10));
    for (uint64_t i = 0; i < 10; i++) assert_int_equal(ctn_sampler_index(s, 3, i), i);
    OK(ctn_sampler_set_state(s, &(ctn_sampler_state){5, 6, 10}));
    ctn_sampler_state got = ctn_sampler_get_state(s);
    assert_true(got.seed == 5 && got.epoch == 6 && got.position == 10);
    assert_fails(ctn_sampler_set_state(s, &(ctn_sampler_state){5, 6, 11}), CTN_EARG, "position 11");
    ctn_sampler_free(s);
    assert_fails(ctn_sampler_shuffled(&s, -1, 0), CTN_EARG, "count is -1");
    ctn_sampler_free(NULL);
}

/* ---- weights -------------------------------------------------------------------------------- */

/* Draws follow the weights: each share is within 5 deviations of its binomial, zeros are never
 * drawn. */
static void check_weights(int64_t n, const double *weight)
{
    enum { EPOCHS = 400000 };
    double sum = 0, all = 0;
    int64_t *hist = calloc((size_t)n, sizeof *hist);
    ctn_sampler *s = NULL;
    OK(ctn_sampler_weighted(&s, n, weight, 3));
    assert_int_equal(ctn_sampler_count(s), n);
    for (int64_t i = 0; i < n; i++) sum += weight[i] / 1e300;
    for (uint64_t e = 0; e < (uint64_t)(EPOCHS / n); e++)
        for (int64_t i = 0; i < n; i++, all++) {
            const int64_t k = ctn_sampler_index(s, e, (uint64_t)i);
            assert_true(k >= 0 && k < n);
            hist[k]++;
        }
    for (int64_t i = 0; i < n; i++) {
        const double p = weight[i] / 1e300 / sum, sd = sqrt(all * p * (1 - p));
        if (fabs((double)hist[i] - all * p) > 5 * sd + 1e-6 * all)
            fail_msg("n %lld: sample %lld drawn %lld times, expected %g", (long long)n,
                     (long long)i, (long long)hist[i], all * p);
        if (weight[i] == 0) assert_int_equal(hist[i], 0);
    }
    free(hist);
    ctn_sampler_free(s);
}

static void test_weighted(void **state)
{
    (void)state;
    check_weights(1, (double[]){1e300});
    check_weights(2, (double[]){0, 1e295});
    check_weights(5, (double[]){1e300, 2e300, 0, 3e300, 4e300});
    check_weights(4, (double[]){1e308, 1e308, 1.7e308, 0}); /* their sum is infinite */
    /* Thirds do not add up to whole columns, which tests the rounding remainder. */
    double w[333];
    for (int i = 0; i < 333; i++) w[i] = i % 7 == 3 ? 0 : 1e300 / (1 + i % 9);
    check_weights(333, w);
    for (int i = 0; i < 333; i++) w[i] = i % 2 ? 0.1e300 : 0;
    check_weights(333, w);
}

static void test_weighted_is_pure(void **state)
{
    (void)state;
    const double w[] = {3, 1, 4, 1, 5, 9, 2, 6};
    ctn_sampler *s = NULL, *again = NULL, *other = NULL;
    OK(ctn_sampler_weighted(&s, 8, w, 1));
    OK(ctn_sampler_weighted(&again, 8, w, 1));
    OK(ctn_sampler_weighted(&other, 8, w, 2));
    int epochs = 0, seeds = 0;
    for (uint64_t e = 0; e < 100; e++)
        for (uint64_t i = 0; i < 8; i++) {
            const int64_t k = ctn_sampler_index(s, e, i);
            assert_int_equal(k, ctn_sampler_index(again, e, i));
            epochs += k == ctn_sampler_index(s, e + 1, i);
            seeds += k == ctn_sampler_index(other, e, i);
        }
    /* Two draws are equal with probability sum of p squared = 173 / 961: 144 of 800, deviation
     * 11. */
    assert_in_range(epochs, 144 - 55, 144 + 55);
    assert_in_range(seeds, 144 - 55, 144 + 55);
    ctn_sampler_free(s);
    ctn_sampler_free(again);
    ctn_sampler_free(other);
}

static void test_weighted_refuses(void **state)
{
    (void)state;
    ctn_sampler *s = NULL;
    assert_fails(ctn_sampler_weighted(&s, 2, (double[]){0, 0}, 0), CTN_EARG, "all weights are 0");
    assert_fails(ctn_sampler_weighted(&s, 2, (double[]){1, -1}, 0), CTN_EARG, "weight 1 is -1");
    assert_fails(ctn_sampler_weighted(&s, 2, (double[]){NAN, 1}, 0), CTN_EARG, "weight 0 is");
    assert_fails(ctn_sampler_weighted(&s, 2, (double[]){1, INFINITY}, 0), CTN_EARG, "weight 1 is");
    assert_fails(ctn_sampler_weighted(&s, 2, NULL, 0), CTN_EARG, "NULL");
    assert_fails(ctn_sampler_weighted(&s, -2, (double[]){1}, 0), CTN_EARG, "count is -2");
    assert_null(s);
    OK(ctn_sampler_weighted(&s, 0, NULL, 0));
    assert_int_equal(ctn_sampler_index(s, 0, 0), -1);
    ctn_sampler_free(s);
}

/* ---- buckets -------------------------------------------------------------------------------- */

enum { LENGTHS = 1000 };
static int64_t some_lengths[LENGTHS]; /* 10 to 500 */

static int set_lengths(void **state)
{
    (void)state;
    for (int64_t i = 0; i < LENGTHS; i++) some_lengths[i] = 10 + i * 7919 % 491;
    return 0;
}

/* Padding of all batches of an epoch, relative to all elements. */
static double waste(const ctn_sampler *s, uint64_t epoch, int64_t n, int64_t batch)
{
    double rows = 0, all = 0;
    for (int64_t k = 0; k < n; k += batch) {
        const int64_t end = k + batch < n ? k + batch : n;
        int64_t longest = 0;
        for (int64_t i = k; i < end; i++) {
            const int64_t one = some_lengths[ctn_sampler_index(s, epoch, (uint64_t)i)];
            longest = one > longest ? one : longest;
            rows += (double)one;
        }
        all += (double)(longest * (end - k));
    }
    return 1 - rows / all;
}

/* Every epoch visits each sample once, in batches of similar lengths. */
static void test_buckets_are_similar(void **state)
{
    (void)state;
    const int64_t sizes[] = {1000, 997, 64, 16, 15, 1}, batches[] = {1, 7, 16};
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 3; b++) {
            const int64_t n = sizes[a], batch = batches[b];
            ctn_sampler *s = NULL;
            OK(ctn_sampler_bucketed(&s, n, some_lengths, batch, 3));
            for (uint64_t epoch = 0; epoch < 5; epoch++) {
                uint8_t seen[LENGTHS] = {0};
                for (int64_t i = 0; i < n; i++) {
                    const int64_t k = ctn_sampler_index(s, epoch, (uint64_t)i);
                    assert_true(k >= 0 && k < n && !seen[k]++);
                }
                if (n >= 997) assert_true(waste(s, epoch, n, batch) < 0.06);
            }
            ctn_sampler_free(s);
        }
}

/* Who is together in a batch, the order of batches and who is in the incomplete last one change
 * with the epoch and the seed. The table of lengths does not depend on the seed. */
static void test_buckets_change(void **state)
{
    (void)state;
    enum { N = 1000, BATCH = 16, FULL = N / BATCH };
    ctn_sampler *s = NULL, *again = NULL, *other = NULL;
    OK(ctn_sampler_bucketed(&s, N, some_lengths, BATCH, 1));
    OK(ctn_sampler_bucketed(&again, N, some_lengths, BATCH, 9));
    OK(ctn_sampler_bucketed(&other, N, some_lengths, BATCH, 2));
    OK(ctn_sampler_set_state(again, &(ctn_sampler_state){.seed = 1}));
    int together = 0, seeds = 0, last[LENGTHS] = {0}, lasts = 0;
    for (uint64_t e = 0; e < 40; e++) {
        int batch_of[2][LENGTHS];
        for (uint64_t i = 0; i < N; i++) {
            const int64_t k = ctn_sampler_index(s, e, i);
            assert_int_equal(k, ctn_sampler_index(again, e, i));
            batch_of[0][k] = (int)i / BATCH;
            batch_of[1][ctn_sampler_index(s, e + 1, i)] = (int)i / BATCH;
            seeds += k == ctn_sampler_index(other, e, i);
            if (i >= FULL * BATCH) lasts += last[k]++ == 0;
        }
        /* pairs of one batch that are together in the next epoch again */
        for (uint64_t i = 0; i + 1 < N; i += BATCH) {
            const int64_t a = ctn_sampler_index(s, e, i), b = ctn_sampler_index(s, e, i + 1);
            together += batch_of[1][a] == batch_of[1][b];
        }
    }
    /* 40 x 63 pairs; two of one window of 32 are in the same batch about every third time. */
    if (together > 40 * 63 / 2) fail_msg("%d pairs stay together", together);
    assert_true(seeds < 40 * N / 50);
    assert_true(lasts > 100); /* samples that were in an incomplete batch */
    ctn_sampler_free(s);
    ctn_sampler_free(again);
    ctn_sampler_free(other);
}

/* Samples of equal length are not taken in the order of the dataset. */
static void test_buckets_of_equal_lengths(void **state)
{
    (void)state;
    static const int64_t same[LENGTHS];
    ctn_sampler *s = NULL;
    double distance = 0;
    OK(ctn_sampler_bucketed(&s, LENGTHS, same, 4, 1));
    for (uint64_t i = 0; i < LENGTHS; i += 2)
        distance += fabs((double)(ctn_sampler_index(s, 0, i) - ctn_sampler_index(s, 0, i + 1)));
    assert_true(distance / (LENGTHS / 2) > LENGTHS / 4.0); /* a third is expected */
    ctn_sampler_free(s);
}

static void test_buckets_refuse(void **state)
{
    (void)state;
    ctn_sampler *s = NULL;
    const int64_t n[] = {3, -1};
    assert_fails(ctn_sampler_bucketed(&s, 2, n, 1, 0), CTN_EARG, "length 1 is -1");
    assert_fails(ctn_sampler_bucketed(&s, 1, n, 0, 0), CTN_EARG, "batch is 0");
    assert_fails(ctn_sampler_bucketed(&s, 1, NULL, 1, 0), CTN_EARG, "NULL");
    assert_fails(ctn_sampler_bucketed(&s, -1, n, 1, 0), CTN_EARG, "count is -1");
    assert_fails(ctn_sampler_new(&s, 1, NULL, NULL, 0), CTN_EARG, "NULL");
    assert_null(s);
    OK(ctn_sampler_bucketed(&s, 0, NULL, 5, 0));
    assert_int_equal(ctn_sampler_index(s, 0, 0), -1);
    ctn_sampler_free(s);
}

/* ---- orders of the user --------------------------------------------------------------------- */

/* A rotation of the samples by seed and epoch; *user is their number. */
static int64_t rotated(void *user, const ctn_sampler_state *at)
{
    const uint64_t n = *(const uint64_t *)user;
    return (int64_t)((at->position + at->seed + 3 * at->epoch) % n);
}

static const uint64_t *number(int64_t n)
{
    static uint64_t numbers[1001];
    numbers[n] = (uint64_t)n;
    return &numbers[n];
}

static ctn_dataset *numbers(int64_t n)
{
    static int64_t index[100];
    ctn_dataset *ds = NULL;
    for (int64_t i = 0; i < 100; i++) index[i] = i;
    OK(ctn_arrays_open(&ds, n, 1, &(ctn_field){CTN_I64, 0, {0}, 0}, (const void *[]){index}));
    return ds;
}

static int64_t twice(void *user, const ctn_sampler_state *at)
{
    (void)user;
    return (int64_t)at->position / 2 + (at->position == 15 ? 100 : 0);
}

/* An epoch may have more positions than samples, and a wrong index is an error that names it. */
static void test_own_order(void **state)
{
    (void)state;
    ctn_dataset *ds = numbers(8);
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    ctn_batch b;
    OK(ctn_sampler_new(&s, 16, twice, NULL, 0));
    assert_int_equal(ctn_sampler_total(s), 16);
    OK(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 12, .threads = 2)));
    OK(ctn_loader_next(l, &b));
    for (int64_t i = 0; i < 12; i++) assert_int_equal(((int64_t *)b.data[0])[i], i / 2);
    assert_fails(ctn_loader_next(l, &b), CTN_EARG, "there is no sample 107 of 8");
    assert_int_equal(ctn_loader_next(l, &b), CTN_END);
    ctn_loader_free(l);
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
}

/* ---- ranks ---------------------------------------------------------------------------------- */

enum { SEQUENTIAL, SHUFFLED, WEIGHTED, BUCKETED, OWN, KINDS };
static const int ranks[] = {1, 2, 3, 7, 64};
static const int64_t sizes[] = {0, 1, 2, 5, 6, 7, 63, 64, 65, 100, 447, 1000};
enum { RANKS = sizeof ranks / sizeof ranks[0], SIZES = sizeof sizes / sizeof sizes[0] };

static ctn_sampler *make(int kind, int64_t n, uint64_t seed, int rank, int size)
{
    double w[1000];
    for (int i = 0; i < 1000; i++) w[i] = i % 5 + 0.5;
    ctn_sampler *s = NULL;
    if (kind == SEQUENTIAL) OK(ctn_sampler_sequential(&s, n));
    else if (kind == SHUFFLED) OK(ctn_sampler_shuffled(&s, n, seed));
    else if (kind == WEIGHTED) OK(ctn_sampler_weighted(&s, n, w, seed));
    else if (kind == BUCKETED) OK(ctn_sampler_bucketed(&s, n, some_lengths, 20, seed));
    else OK(ctn_sampler_new(&s, n, rotated, (void *)number(n), seed));
    OK(ctn_sampler_shard(s, rank, size));
    return s;
}

/* Position p of rank r is position p * size + r of the whole order, so every sample is used
 * exactly once over all ranks, and parts differ by at most one. */
static void check_ranks(int kind, int64_t n, int size, uint64_t epoch)
{
    int seen[1000] = {0};
    int64_t all = 0;
    ctn_sampler *whole = make(kind, n, 11, 0, 1);
    for (int rank = 0; rank < size; rank++) {
        ctn_sampler *s = make(kind, n, 11, rank, size);
        const int64_t count = ctn_sampler_count(s);
        assert_int_equal(ctn_sampler_total(s), n);
        assert_true(count == n / size || count == n / size + 1);
        for (int64_t p = 0; p < count; p++) {
            const int64_t k = ctn_sampler_index(s, epoch, (uint64_t)p);
            assert_int_equal(k, ctn_sampler_index(whole, epoch, (uint64_t)(p * size + rank)));
            seen[k]++;
        }
        assert_int_equal(ctn_sampler_index(s, epoch, (uint64_t)count), -1);
        all += count;
        ctn_sampler_free(s);
    }
    ctn_sampler_free(whole);
    assert_int_equal(all, n);
    if (kind == WEIGHTED) return;
    for (int64_t i = 0; i < n; i++)
        if (seen[i] != 1)
            fail_msg("kind %d, %lld samples, %d ranks, epoch %llu: sample %lld %d times", kind,
                     (long long)n, size, (unsigned long long)epoch, (long long)i, seen[i]);
}

static void test_ranks_share_the_epoch(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < SIZES; i++)
                for (uint64_t epoch = 0; epoch < 3; epoch++)
                    check_ranks(kind, sizes[i], ranks[r], epoch);
}

/* Every rank's own order changes with the epoch, if there is enough to order. */
static void test_ranks_epochs_differ(void **state)
{
    (void)state;
    for (int kind = SHUFFLED; kind < KINDS; kind++)
        for (int r = 0; r < RANKS; r++)
            for (int rank = 0; rank < ranks[r]; rank++) {
                ctn_sampler *s = make(kind, 1000, 5, rank, ranks[r]);
                int64_t same = 0, count = ctn_sampler_count(s);
                for (int64_t p = 0; p < count; p++)
                    same += ctn_sampler_index(s, 0, (uint64_t)p) ==
                            ctn_sampler_index(s, 1, (uint64_t)p);
                assert_true(same < count / 2);
                ctn_sampler_free(s);
            }
}

/* The rest of an epoch, and the next one, through a loader that starts at a position of the
 * whole order: the samples after it are distributed to the ranks. */
static void check_rest(ctn_dataset *ds, int kind, int rank, int size, uint64_t position)
{
    const uint64_t n = (uint64_t)ctn_dataset_count(ds), step = (uint64_t)size,
                   first = (uint64_t)rank;
    ctn_sampler *s = make(kind, (int64_t)n, 0, rank, size); /* the seed comes with the state */
    ctn_sampler *whole = make(kind, (int64_t)n, 77, 0, 1);
    ctn_loader *l = NULL;
    ctn_batch b;
    OK(ctn_sampler_set_state(s, &(ctn_sampler_state){77, 4, position}));
    OK(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 3)));
    for (uint64_t epoch = 4; epoch < 6; epoch++, position = 0) {
        uint64_t k = position + first;
        while (ctn_loader_next(l, &b) == CTN_OK)
            for (int64_t i = 0; i < b.n; i++, k += step)
                assert_int_equal(((int64_t *)b.data[0])[i], ctn_sampler_index(whole, epoch, k));
        assert_true(k >= n && k - n < step); /* all of them */
        const ctn_sampler_state now = ctn_loader_get_state(l);
        assert_true(now.seed == 77 && now.epoch == epoch + 1 && now.position == 0);
    }
    ctn_loader_free(l);
    ctn_sampler_free(whole);
    ctn_sampler_free(s);
}

static void test_position_restores(void **state)
{
    (void)state;
    const int64_t some[] = {0, 1, 5, 65};
    for (int i = 0; i < 4; i++) {
        ctn_dataset *ds = numbers(some[i]);
        for (int kind = 0; kind < KINDS; kind++)
            for (int r = 0; r < RANKS; r++)
                for (int rank = 0; rank < ranks[r]; rank++) {
                    ctn_sampler *s = make(kind, some[i], 77, rank, ranks[r]);
                    const uint64_t n = (uint64_t)some[i];
                    for (uint64_t p = 0; p <= n; p++) check_rest(ds, kind, rank, ranks[r], p);
                    assert_fails(ctn_sampler_set_state(s, &(ctn_sampler_state){.position = n + 1}),
                                 CTN_EARG, "other data");
                    ctn_sampler_free(s);
                }
        ctn_dataset_free(ds);
    }
}

/* `size` ranks continue from a state for this number of batches. *at becomes their common state. */
static void live(ctn_dataset *ds, int size, int batches, int threads, ctn_sampler_state *at,
                 int *seen)
{
    const ctn_sampler_state from = *at;
    for (int rank = 0; rank < size; rank++) {
        ctn_sampler *s = make(SHUFFLED, ctn_dataset_count(ds), 0, rank, size);
        ctn_loader *l = NULL;
        ctn_batch b;
        OK(ctn_sampler_set_state(s, &from));
        OK(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 3, .threads = threads)));
        for (int t = 0; t < batches && ctn__loader_next_of_all(l, &b) == CTN_OK; t++)
            for (int64_t j = 0; j < b.n; j++) seen[((int64_t *)b.data[0])[j]]++;
        const ctn_sampler_state now = ctn_loader_get_state(l);
        if (rank == 0) *at = now;
        assert_memory_equal(at, &now, sizeof now);
        ctn_loader_free(l);
        ctn_sampler_free(s);
    }
}

/* One epoch in which the number of ranks changes after every two batches: the next ranks all
 * start from rank 0's state, and every sample is used once. */
static void test_ranks_change(void **state)
{
    (void)state;
    static const int lives[][4] = {{2, 3, 1}, {3, 2, 64, 1}, {7, 1, 7, 2}, {64, 3, 2, 7}};
    for (int64_t n = 1; n < 90; n += 11)
        for (int k = 0; k < 8; k++) {
            ctn_dataset *ds = numbers(n);
            const int *size = lives[k / 2];
            int seen[100] = {0};
            ctn_sampler_state at = {.seed = 9, .epoch = 2};
            for (int i = 0; i < 4 && at.epoch == 2 && size[i] > 0; i++)
                live(ds, size[i], i < 3 && size[i + 1] > 0 ? 2 : 1000, k % 2, &at, seen);
            for (int64_t i = 0; i < n; i++) assert_int_equal(seen[i], 1);
            ctn_dataset_free(ds);
        }
}

static void test_shard_refuses(void **state)
{
    (void)state;
    ctn_sampler *s = NULL;
    OK(ctn_sampler_sequential(&s, 10));
    assert_fails(ctn_sampler_shard(s, 3, 3), CTN_EARG, "rank is 3 of 3");
    assert_fails(ctn_sampler_shard(s, -1, 3), CTN_EARG, "rank is -1 of 3");
    assert_fails(ctn_sampler_shard(s, 0, 0), CTN_EARG, "rank is 0 of 0");
    assert_int_equal(ctn_sampler_count(s), 10); /* it is unchanged */
    ctn_sampler_free(s);
    OK(ctn_sampler_sequential(&s, INT64_MAX));
    OK(ctn_sampler_shard(s, 1, 2));
    const int64_t count = ctn_sampler_count(s);
    assert_int_equal(count, INT64_MAX / 2);
    assert_int_equal(ctn_sampler_index(s, 0, (uint64_t)count - 1), INT64_MAX - 2);
    ctn_sampler_free(s);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* The loader keeps the table of weights after the sampler is freed. */
static ctn_status everything(void)
{
    ctn_status st = CTN_OK;
    const int64_t x[2] = {0, 1};
    ctn_dataset *ds = NULL;
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    ctn_batch b;
    CTN_TRY_GOTO(st, done,
                 ctn_arrays_open(&ds, 2, 1, &(ctn_field){CTN_I64, 0, {0}, 0}, (const void *[]){x}));
    CTN_TRY_GOTO(st, done, ctn_sampler_weighted(&s, 2, (double[]){0, 1}, 1));
    CTN_TRY_GOTO(st, done, ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 2)));
    ctn_sampler_free(s);
    s = NULL;
    CTN_TRY_GOTO(st, done, ctn_loader_next(l, &b));
    assert_int_equal(((int64_t *)b.data[0])[0], 1);
done:
    ctn_loader_free(l);
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
    return st;
}

static void test_no_memory(void **state)
{
    (void)state;
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
        cmocka_unit_test(test_shuffle_is_permutation),
        cmocka_unit_test(test_shuffle_epochs_differ),
        cmocka_unit_test(test_shuffle_stays),
        cmocka_unit_test(test_shuffle_is_uniform),
        cmocka_unit_test(test_sampler_state),
        cmocka_unit_test(test_weighted),
        cmocka_unit_test(test_weighted_is_pure),
        cmocka_unit_test(test_weighted_refuses),
        cmocka_unit_test(test_buckets_are_similar),
        cmocka_unit_test(test_buckets_change),
        cmocka_unit_test(test_buckets_of_equal_lengths),
        cmocka_unit_test(test_buckets_refuse),
        cmocka_unit_test(test_own_order),
        cmocka_unit_test(test_ranks_share_the_epoch),
        cmocka_unit_test(test_ranks_epochs_differ),
        cmocka_unit_test(test_position_restores),
        cmocka_unit_test(test_ranks_change),
        cmocka_unit_test(test_shard_refuses),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, set_lengths, NULL);
}
