/* SPDX-License-Identifier: Apache-2.0
 *
 * Samplers: that a shuffle is a permutation of every size, differs between epochs and is uniform;
 * that weighted draws follow their weights; that over any number of ranks each sample comes exactly
 * once per epoch, and that a state restored at any position gives the same rest; a failing
 * allocator.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/check.h"

#include <catena/data.h>

#include "base/base.h"
#include "data/loader.h"

#define ok(call) assert_int_equal((call), CTN_OK)

static void check_permutation(int64_t n, uint64_t seed, uint64_t epoch)
{
    ctn_sampler *s = NULL;
    ok(ctn_sampler_shuffled(&s, n, seed));
    uint8_t *seen = calloc((size_t)n, 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = ctn_sampler_at(s, epoch, (uint64_t)i);
        if (k < 0 || k >= n || seen[k])
            fail_msg("n %lld: %lld twice or out", (long long)n, (long long)k);
        seen[k] = 1;
    }
    free(seen);
    assert_int_equal(ctn_sampler_at(s, epoch, (uint64_t)n), -1);
    ctn_sampler_free(s);
}

static void test_shuffle_is_permutation(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 300; n++) check_permutation(n, 1234, (uint64_t)n % 3);
    const int64_t sizes[] = {1023, 1024, 1025, 4095, 4097, 60000, 65536, 65537};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_permutation(sizes[i], UINT64_MAX, UINT64_MAX);
    /* a huge one has no table: any position is found at once, in range */
    ctn_sampler *s = NULL;
    ok(ctn_sampler_shuffled(&s, INT64_MAX, 1));
    for (uint64_t i = 0; i < 100; i++) assert_true(ctn_sampler_at(s, 0, i) >= 0);
    ctn_sampler_free(s);
}

static void test_shuffle_epochs_differ(void **state)
{
    (void)state;
    enum { N = 1000 };
    ctn_sampler *s = NULL, *other = NULL, *again = NULL;
    ok(ctn_sampler_shuffled(&s, N, 1));
    ok(ctn_sampler_shuffled(&other, N, 2));
    ok(ctn_sampler_shuffled(&again, N, 1));
    int same_epoch = 0, same_seed = 0, same_place = 0;
    for (uint64_t i = 0; i < N; i++) {
        same_epoch += ctn_sampler_at(s, 0, i) == ctn_sampler_at(s, 1, i);
        same_seed += ctn_sampler_at(s, 0, i) == ctn_sampler_at(other, 0, i);
        same_place += ctn_sampler_at(s, 0, i) == (int64_t)i;
        assert_int_equal(ctn_sampler_at(s, 7, i), ctn_sampler_at(again, 7, i));
    }
    /* one match is expected in two random permutations */
    assert_true(same_epoch < 10 && same_seed < 10 && same_place < 10);
    ctn_sampler_free(s);
    ctn_sampler_free(other);
    ctn_sampler_free(again);
}

/* Over many epochs two positions get every pair of samples equally often: chi square has f =
 * n(n-1)-1 degrees of freedom, so mean f and deviation sqrt(2 f). */
static void test_shuffle_is_uniform(void **state)
{
    (void)state;
    enum { EPOCHS = 20000 };
    for (int n = 2; n <= 17; n += 3) {
        static int hist[20][20];
        memset(hist, 0, sizeof hist);
        ctn_sampler *s = NULL;
        ok(ctn_sampler_shuffled(&s, n, 42));
        for (uint64_t e = 0; e < EPOCHS; e++)
            hist[ctn_sampler_at(s, e, 0)][ctn_sampler_at(s, e, (uint64_t)n - 1)]++;
        ctn_sampler_free(s);
        double f = n * (n - 1) - 1, expected = EPOCHS / (f + 1), chi = 0;
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++)
                if (i != k) chi += (hist[i][k] - expected) * (hist[i][k] - expected) / expected;
        if (chi > f + 5 * sqrt(2 * f))
            fail_msg("n %d: chi square %g, about %g expected", n, chi, f);
    }
}

static void test_sampler_state(void **state)
{
    (void)state;
    ctn_sampler *s = NULL;
    ok(ctn_sampler_sequential(&s, 10));
    for (uint64_t i = 0; i < 10; i++) assert_int_equal(ctn_sampler_at(s, 3, i), i);
    ok(ctn_sampler_state_set(s, &(ctn_sampler_state){5, 6, 10}));
    ctn_sampler_state got = ctn_sampler_state_get(s);
    assert_true(got.seed == 5 && got.epoch == 6 && got.position == 10);
    assert_fails(ctn_sampler_state_set(s, &(ctn_sampler_state){5, 6, 11}), CTN_EARG, "position 11");
    ctn_sampler_free(s);
    assert_fails(ctn_sampler_shuffled(&s, -1, 0), CTN_EARG, "count is -1");
    ctn_sampler_free(NULL);
}

/* ---- weights ---------------------------------------------------------------------------------- */

/* Draws follow the weights: each share within 5 deviations of its binomial, zeros never. */
static void check_weights(int64_t n, const double *weight)
{
    enum { EPOCHS = 400000 };
    double sum = 0, all = 0;
    int64_t *hist = calloc((size_t)n, sizeof *hist);
    ctn_sampler *s = NULL;
    ok(ctn_sampler_weighted(&s, n, weight, 3));
    assert_int_equal(ctn_sampler_count(s), n);
    for (int64_t i = 0; i < n; i++) sum += weight[i] / 1e300;
    for (uint64_t e = 0; e < (uint64_t)(EPOCHS / n); e++)
        for (int64_t i = 0; i < n; i++, all++) {
            const int64_t k = ctn_sampler_at(s, e, (uint64_t)i);
            assert_true(k >= 0 && k < n);
            hist[k]++;
        }
    for (int64_t i = 0; i < n; i++) {
        const double p = weight[i] / 1e300 / sum, sd = sqrt(all * p * (1 - p));
        if (fabs((double)hist[i] - all * p) > 5 * sd + 1e-6 * all)
            fail_msg("n %lld: sample %lld drawn %lld times, %g expected", (long long)n,
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
    check_weights(4, (double[]){1e308, 1e308, 1.7e308, 0}); /* whose sum is infinite */
    double w[333]; /* thirds do not add up to whole columns: what rounding leaves over is tested */
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
    ok(ctn_sampler_weighted(&s, 8, w, 1));
    ok(ctn_sampler_weighted(&again, 8, w, 1));
    ok(ctn_sampler_weighted(&other, 8, w, 2));
    int epochs = 0, seeds = 0;
    for (uint64_t e = 0; e < 100; e++)
        for (uint64_t i = 0; i < 8; i++) {
            const int64_t k = ctn_sampler_at(s, e, i);
            assert_int_equal(k, ctn_sampler_at(again, e, i));
            epochs += k == ctn_sampler_at(s, e + 1, i);
            seeds += k == ctn_sampler_at(other, e, i);
        }
    /* two draws agree with the sum of p squared, 173 / 961: 144 of 800, deviation 11 */
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
    ok(ctn_sampler_weighted(&s, 0, NULL, 0));
    assert_int_equal(ctn_sampler_at(s, 0, 0), -1);
    ctn_sampler_free(s);
}

/* ---- ranks ------------------------------------------------------------------------------------ */

enum { SEQUENTIAL, SHUFFLED, WEIGHTED, KINDS };
static const int ranks[] = {1, 2, 3, 7, 64};
static const int64_t sizes[] = {0, 1, 2, 5, 6, 7, 63, 64, 65, 100, 447, 1000};
enum { RANKS = sizeof ranks / sizeof ranks[0], SIZES = sizeof sizes / sizeof sizes[0] };

static ctn_sampler *make(int kind, int64_t n, uint64_t seed, int rank, int size)
{
    double w[1000];
    for (int i = 0; i < 1000; i++) w[i] = i % 5 + 0.5;
    ctn_sampler *s = NULL;
    if (kind == SEQUENTIAL) ok(ctn_sampler_sequential(&s, n));
    else if (kind == SHUFFLED) ok(ctn_sampler_shuffled(&s, n, seed));
    else ok(ctn_sampler_weighted(&s, n, w, seed));
    ok(ctn_sampler_shard(s, rank, size));
    return s;
}

/* Position p of rank r is position p * size + r of the whole order, so every sample of the whole
 * comes exactly once over all ranks; parts differ by one at most. */
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
            const int64_t k = ctn_sampler_at(s, epoch, (uint64_t)p);
            assert_int_equal(k, ctn_sampler_at(whole, epoch, (uint64_t)(p * size + rank)));
            seen[k]++;
        }
        assert_int_equal(ctn_sampler_at(s, epoch, (uint64_t)count), -1);
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

/* Every rank's own order changes with the epoch, once there is enough to order. */
static void test_ranks_epochs_differ(void **state)
{
    (void)state;
    for (int kind = SHUFFLED; kind < KINDS; kind++)
        for (int r = 0; r < RANKS; r++)
            for (int rank = 0; rank < ranks[r]; rank++) {
                ctn_sampler *s = make(kind, 1000, 5, rank, ranks[r]);
                int64_t same = 0, count = ctn_sampler_count(s);
                for (int64_t p = 0; p < count; p++)
                    same += ctn_sampler_at(s, 0, (uint64_t)p) == ctn_sampler_at(s, 1, (uint64_t)p);
                assert_true(same < count / 2);
                ctn_sampler_free(s);
            }
}

/* The rest of an epoch, and the one after it, through a loader that starts at a position of the whole
 * order: the samples behind it are dealt out to the ranks. */
static void check_rest(ctn_dataset *ds, int kind, int rank, int size, uint64_t position)
{
    const uint64_t n = (uint64_t)ctn_dataset_count(ds), step = (uint64_t)size,
                   first = (uint64_t)rank;
    ctn_sampler *s = make(kind, (int64_t)n, 0, rank, size); /* the seed comes with the state */
    ctn_sampler *whole = make(kind, (int64_t)n, 77, 0, 1);
    ctn_loader *l = NULL;
    ctn_batch b;
    ok(ctn_sampler_state_set(s, &(ctn_sampler_state){77, 4, position}));
    ok(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 3)));
    for (uint64_t epoch = 4; epoch < 6; epoch++, position = 0) {
        uint64_t k = position + first;
        while (ctn_loader_next(l, &b) == CTN_OK)
            for (int64_t i = 0; i < b.n; i++, k += step)
                assert_int_equal(((int64_t *)b.data[0])[i], ctn_sampler_at(whole, epoch, k));
        assert_true(k >= n && k - n < step); /* all of them */
        const ctn_sampler_state now = ctn_loader_state_get(l);
        assert_true(now.seed == 77 && now.epoch == epoch + 1 && now.position == 0);
    }
    ctn_loader_free(l);
    ctn_sampler_free(whole);
    ctn_sampler_free(s);
}

static ctn_dataset *numbers(int64_t n)
{
    static int64_t index[100];
    ctn_dataset *ds = NULL;
    for (int64_t i = 0; i < 100; i++) index[i] = i;
    ok(ctn_arrays_open(&ds, n, 1, &(ctn_field){CTN_I64, 0, {0}, 0}, (const void *[]){index}));
    return ds;
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
                    assert_fails(ctn_sampler_state_set(s, &(ctn_sampler_state){.position = n + 1}),
                                 CTN_EARG, "other data");
                    ctn_sampler_free(s);
                }
        ctn_dataset_free(ds);
    }
}

/* `size` ranks go on from a state for so many batches; *at becomes the state of all of them. */
static void live(ctn_dataset *ds, int size, int batches, int threads, ctn_sampler_state *at,
                 int *seen)
{
    const ctn_sampler_state from = *at;
    for (int rank = 0; rank < size; rank++) {
        ctn_sampler *s = make(SHUFFLED, ctn_dataset_count(ds), 0, rank, size);
        ctn_loader *l = NULL;
        ctn_batch b;
        ok(ctn_sampler_state_set(s, &from));
        ok(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 3, .threads = threads)));
        for (int t = 0; t < batches && ctn__loader_next_of_all(l, &b) == CTN_OK; t++)
            for (int64_t j = 0; j < b.n; j++) seen[((int64_t *)b.data[0])[j]]++;
        const ctn_sampler_state now = ctn_loader_state_get(l);
        if (rank == 0) *at = now;
        assert_memory_equal(at, &now, sizeof now);
        ctn_loader_free(l);
        ctn_sampler_free(s);
    }
}

/* One epoch in which the number of ranks changes after every two batches: rank 0's state goes to all of
 * the next ones, and every sample comes once. */
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
    ok(ctn_sampler_sequential(&s, 10));
    assert_fails(ctn_sampler_shard(s, 3, 3), CTN_EARG, "part 3 of 3");
    assert_fails(ctn_sampler_shard(s, -1, 3), CTN_EARG, "part -1 of 3");
    assert_fails(ctn_sampler_shard(s, 0, 0), CTN_EARG, "part 0 of 0");
    assert_int_equal(ctn_sampler_count(s), 10); /* and stays as it was */
    ctn_sampler_free(s);
    ok(ctn_sampler_sequential(&s, INT64_MAX));
    ok(ctn_sampler_shard(s, 1, 2));
    const int64_t count = ctn_sampler_count(s);
    assert_int_equal(count, INT64_MAX / 2);
    assert_int_equal(ctn_sampler_at(s, 0, (uint64_t)count - 1), INT64_MAX - 2);
    ctn_sampler_free(s);
}

/* ---- memory ----------------------------------------------------------------------------------- */

/* The loader holds the table of weights when the sampler is gone. */
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
        ok(ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &f}));
        st = everything();
        assert_int_equal(f.live, 0);
        ok(ctn_set_allocator(NULL));
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
        cmocka_unit_test(test_shuffle_is_uniform),
        cmocka_unit_test(test_sampler_state),
        cmocka_unit_test(test_weighted),
        cmocka_unit_test(test_weighted_is_pure),
        cmocka_unit_test(test_weighted_refuses),
        cmocka_unit_test(test_ranks_share_the_epoch),
        cmocka_unit_test(test_ranks_epochs_differ),
        cmocka_unit_test(test_position_restores),
        cmocka_unit_test(test_ranks_change),
        cmocka_unit_test(test_shard_refuses),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
