/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaders when data is damaged or slow: the same samples are left out with the same warnings for
 * any thread count, up to a limit; warnings about a stalled read; threads on given cores; times;
 * mixed batches; and that nobody waits for batches that are no longer wanted.
 * Labels: threads
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* affinity */
#endif
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/ok.h"

#include <catena/data.h>
#include <catena/log.h>

#include "base/base.h"

/* ---- a dataset with faults ------------------------------------------------------------------ */

enum { C = 2, H = 3, W = 4, PIXELS = C * H * W };

/* Sample i: an image of random numbers that depend on all of ctn_sample, and a label. Bad
 * samples write half of the image before they fail. */
typedef struct {
    int64_t count, every, first; /* bad: index % every == first; every 0: none */
    bool tells;                  /* errors name the sample */
    void (*wait)(int64_t index); /* called for each sample; NULL: nothing */
    atomic_int gets, elsewhere;  /* calls; calls on other threads that are not pinned to cpu */
    int cpu;
    pthread_t main_thread;
} faulty;

static int64_t f_count(void *self)
{
    return ((faulty *)self)->count;
}

static int f_fields(void *self)
{
    (void)self;
    return 2;
}

static void f_field(void *self, int f, ctn_field *out)
{
    (void)self;
    *out = f ? (ctn_field){.dtype = CTN_I64} : (ctn_field){CTN_F32, 3, {C, H, W}, 0};
}

static bool bad(const faulty *d, int64_t i)
{
    return d->every && i % d->every == d->first;
}

static void look_where(faulty *d)
{
    cpu_set_t set;
    if (d->cpu < 0 || pthread_equal(pthread_self(), d->main_thread)) return;
    pthread_getaffinity_np(pthread_self(), sizeof set, &set);
    d->elsewhere += CPU_COUNT(&set) != 1 || !CPU_ISSET((size_t)d->cpu, &set);
}

static ctn_status f_get(void *self, const ctn_sample *s, void *const *dst)
{
    faulty *d = self;
    float *x = dst[0];
    d->gets++;
    look_where(d);
    if (d->wait) d->wait(s->index);
    const uint64_t key = ctn__mix(ctn__mix(s->seed, s->epoch), (uint64_t)s->index);
    const bool fails = bad(d, s->index);
    for (int i = 0; i < (fails ? PIXELS / 2 : PIXELS); i++)
        x[i] = (float)ctn__uniform(key, 0, (uint64_t)i);
    if (fails && d->tells)
        return ctn_fail(CTN_EIO, "disk: cats/%lld.jpg: gone", (long long)s->index);
    if (fails) return ctn_fail(CTN_EFORMAT, "jpeg: it ends in the middle");
    *(int64_t *)dst[1] = s->index;
    return CTN_OK;
}

static int f_name(void *self, int64_t index, char *buf, size_t n)
{
    (void)self;
    return snprintf(buf, n, "cats/%lld.jpg", (long long)index);
}

static ctn_dataset *make(faulty *d, int64_t count, int64_t every, int64_t first)
{
    static const ctn_dataset_vt vt = {.struct_size = sizeof vt,
                                      .count = f_count,
                                      .fields = f_fields,
                                      .field = f_field,
                                      .get = f_get,
                                      .name = f_name};
    ctn_dataset *ds = NULL;
    *d = (faulty){.count = count, .every = every, .first = first, .cpu = -1};
    d->main_thread = pthread_self();
    OK(ctn_dataset_new(&ds, &vt, d));
    return ds;
}

static ctn_loader *start(ctn_dataset *ds, const ctn_loader_opt *opt)
{
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    OK(ctn_sampler_shuffled(&s, ctn_dataset_count(ds), 31));
    OK(ctn_loader_new(&l, ds, s, opt));
    ctn_sampler_free(s);
    return l;
}

/* ---- what a run delivered: every byte and every warning -------------------------------------- */

typedef struct {
    char text[60000];
    size_t n;
    atomic_int lines;
} said;

static void hear(void *user, const char *message)
{
    said *w = user;
    w->n += (size_t)snprintf(w->text + w->n, sizeof w->text - w->n, "%s\n", message);
    assert_true(w->n < sizeof w->text);
    w->lines++;
}

typedef struct {
    ctn__hash128 hash; /* of all data, sizes, statuses and states */
    int failed, ends;
    ctn_loader_stats stats;
    said warned;
} result;

static void run(ctn_loader *l, int epochs, result *r)
{
    ctn__hasher *h = ctn__hasher_new();
    assert_non_null(h);
    memset(r, 0, sizeof *r);
    ctn_set_log(hear, &r->warned);
    while (r->ends < epochs) {
        ctn_batch b;
        const ctn_status st = ctn_loader_next(l, &b);
        const ctn_sampler_state at = ctn_loader_get_state(l);
        ctn__hasher_add(h, &st, sizeof st);
        ctn__hasher_add(h, &at, sizeof at);
        ctn__hasher_add(h, &b.n, sizeof b.n);
        for (int f = 0; f < b.fields; f++) {
            size_t bytes = ctn_dtype_size(b.field[f].dtype);
            assert_int_equal(b.field[f].shape[0], b.n);
            for (int k = 0; k < b.field[f].ndim; k++) bytes *= (size_t)b.field[f].shape[k];
            ctn__hasher_add(h, b.data[f], bytes);
        }
        assert_true(st != CTN_OK || b.n > 0);
        r->ends += st == CTN_END;
        r->failed += st < 0;
        if (st < 0) ctn__hasher_add(h, ctn_error_message(), strlen(ctn_error_message()));
        ctn_error_clear();
    }
    ctn_set_log(NULL, NULL);
    ctn_loader_get_stats(l, &r->stats);
    r->hash = ctn__hasher_value(h);
    ctn__hasher_free(h);
}

static void assert_same(const result *a, const result *b)
{
    assert_true(a->hash.lo == b->hash.lo && a->hash.hi == b->hash.hi);
    assert_int_equal(a->failed, b->failed);
    assert_string_equal(a->warned.text, b->warned.text);
    assert_int_equal(a->stats.batches, b->stats.batches);
    assert_int_equal(a->stats.samples, b->stats.samples);
    assert_int_equal(a->stats.skipped, b->stats.skipped);
}

static const int threads[] = {0, 1, 2, 5};

/* ---- skipped samples ------------------------------------------------------------------------- */

static void test_skip_any_threads(void **state)
{
    (void)state;
    static result first, r;
    const ctn_mix_opt *mix = CTN_OPT(ctn_mix_opt, .mixup = 0.3, .cutmix = 1, .classes = 200);
    for (int mixed = 0; mixed < 2; mixed++)
        for (int64_t batch = 1; batch <= 64; batch *= 4)
            for (int i = 0; i < 5; i++) { /* the last repeats the first */
                faulty d;
                ctn_dataset *ds = make(&d, 200, 7, 3);
                ctn_loader *l =
                    start(ds, CTN_OPT(ctn_loader_opt, .batch = batch, .threads = threads[i % 4],
                                      .skip = 0.15, .mix = mixed ? mix : NULL));
                const uint64_t before = ctn_allocations();
                run(l, 3, &r);
                assert_true(ctn_allocations() - before <= 2); /* by the test's own hasher */
                if (i == 0) first = r;
                assert_same(&first, &r);
                assert_int_equal(r.failed, 0);
                assert_int_equal(r.stats.skipped, 3 * 29);
                assert_int_equal(r.stats.samples, 3 * (200 - 29));
                /* Ten samples are named, once each, and the end of each epoch reports the total. */
                assert_int_equal(r.warned.lines, 10 + 3);
                assert_non_null(strstr(r.warned.text, "left out: cats/"));
                assert_non_null(strstr(r.warned.text, "it ends in the middle"));
                assert_non_null(strstr(r.warned.text, "left out 29 of 200 samples in epoch 1"));
                ctn_loader_free(l);
                ctn_dataset_free(ds);
            }
}

/* Nothing is said about good samples. Up to ten bad ones are all named, and not counted. */
static void test_few_warnings(void **state)
{
    (void)state;
    static result r;
    for (int64_t bad_ones = 0; bad_ones <= 12; bad_ones++) {
        faulty d;
        ctn_dataset *ds = make(&d, 24, bad_ones ? 24 / bad_ones : 0, 0);
        const int64_t is = bad_ones ? (24 + d.every - 1) / d.every : 0;
        ctn_loader *l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 24, .skip = 1));
        run(l, 2, &r);
        assert_int_equal(r.stats.skipped, 2 * is);
        /* Beyond ten, a line at the end of each epoch. */
        assert_int_equal(r.warned.lines, is <= 10 ? is : 10 + 2);
        ctn_loader_free(l);
        ctn_dataset_free(ds);
    }
}

/* The remaining samples are in the order of the sampler, without gaps. */
static void test_skip_keeps_order(void **state)
{
    (void)state;
    faulty d;
    ctn_dataset *ds = make(&d, 100, 3, 1);
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    ctn_batch b;
    OK(ctn_sampler_shuffled(&s, 100, 8));
    OK(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 9, .threads = 2, .skip = 1)));
    uint64_t p = 0;
    while (ctn_loader_next(l, &b) == CTN_OK) {
        const uint64_t end = ctn_loader_get_state(l).position;
        int64_t i = 0;
        for (; p < end; p++) {
            const int64_t k = ctn_sampler_index(s, 0, p);
            if (bad(&d, k)) continue;
            assert_int_equal(((int64_t *)b.data[1])[i], k);
            const uint64_t key = ctn__mix(ctn__mix(8, 0), (uint64_t)k);
            assert_true(((float *)b.data[0])[i * PIXELS + 5] == (float)ctn__uniform(key, 0, 5));
            i++;
        }
        assert_int_equal(i, b.n);
    }
    for (; p < 100; p++) assert_true(bad(&d, ctn_sampler_index(s, 0, p))); /* skipped batches */
    ctn_loader_free(l);
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
}

static void test_skip_limit(void **state)
{
    (void)state;
    static result first, r;
    static const struct {
        int64_t count, every; /* samples 0, every, 2 every, ... are bad */
        double skip;
        int failed; /* batches of 1 per epoch */
    } cases[] = {
        {100, 10, 0.10, 0},                        /* exactly as many as allowed */
        {100, 10, 0.09, 1},                        /* the tenth is one too many */
        {100, 10, 0.05, 5},  {100, 100, 0.001, 0}, /* one is always allowed */
        {100, 50, 0.001, 1}, {100, 1, 1.0, 0},     /* nothing but the end */
        {1, 1, 0.5, 0},      {100, 10, 0, 10},     /* none is allowed */
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int i = 0; i < 4; i++) {
            faulty d;
            ctn_dataset *ds = make(&d, cases[c].count, cases[c].every, 0);
            ctn_loader *l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 1, .threads = threads[i],
                                              .skip = cases[c].skip));
            run(l, 2, &r);
            if (i == 0) first = r;
            assert_same(&first, &r);
            assert_int_equal(r.failed, 2 * cases[c].failed);
            ctn_loader_free(l);
            ctn_dataset_free(ds);
        }

    faulty d; /* the error says which sample and how many */
    ctn_dataset *ds = make(&d, 100, 50, 0);
    ctn_loader *l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 100, .skip = 0.01));
    ctn_batch b;
    assert_fails(ctn_loader_next(l, &b), CTN_EFORMAT, "2 samples of this epoch");
    assert_int_equal(b.n, 0);
    OK(ctn_loader_set_state(l, &(ctn_sampler_state){0}));
    const ctn_status st = ctn_loader_next(l, &b);
    assert_fails(st, CTN_EFORMAT, "1 of 100 may be");
    ctn_loader_free(l);
    d.tells = true; /* a name is not repeated */
    l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 100));
    const ctn_status told = ctn_loader_next(l, &b);
    const char *once = strstr(ctn_error_message(), "cats/");
    assert_true(once && !strstr(once + 1, "cats/"));
    assert_fails(told, CTN_EIO, "loader: (epoch 0): disk: cats/");
    ctn_loader_free(l);
    ctn_dataset_free(ds);
}

/* A restart in the middle of damaged data continues with the same bytes. */
static void test_skip_restart(void **state)
{
    (void)state;
    static result whole, rest;
    for (int stop = 0; stop < 9; stop++)
        for (int i = 0; i < 4; i++) {
            faulty d;
            ctn_dataset *ds = make(&d, 60, 4, 2);
            ctn_loader *l =
                start(ds, CTN_OPT(ctn_loader_opt, .batch = 8, .threads = threads[i], .skip = 0.5));
            ctn_batch b;
            for (int k = 0; k < stop; k++) assert_true(ctn_loader_next(l, &b) >= 0);
            const ctn_sampler_state at = ctn_loader_get_state(l);
            run(l, 2, &whole);
            OK(ctn_loader_set_state(l, &at));
            run(l, 2, &rest);
            assert_true(whole.hash.lo == rest.hash.lo && whole.hash.hi == rest.hash.hi);
            ctn_loader_free(l);
            ctn_dataset_free(ds);
        }
}

/* ---- mixed ---------------------------------------------------------------------------------- */

static void test_mix(void **state)
{
    (void)state;
    faulty d;
    ctn_dataset *ds = make(&d, 20, 0, 0);
    ctn_batch b;
    ctn_loader *l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 7, .threads = 1,
                                      .mix = CTN_OPT(ctn_mix_opt, .mixup = 1, .classes = 20)));
    int two = 0;
    while (ctn_loader_next(l, &b) == CTN_OK) {
        assert_true(b.field[1].dtype == CTN_F32 && b.field[1].ndim == 2);
        assert_true(b.field[1].shape[0] == b.n && b.field[1].shape[1] == 20);
        for (int64_t i = 0; i < b.n; i++) {
            float sum = 0;
            int parts = 0;
            for (int k = 0; k < 20; k++) {
                sum += ((float *)b.data[1])[i * 20 + k];
                parts += ((float *)b.data[1])[i * 20 + k] > 0;
            }
            assert_true(sum > 0.9999f && sum < 1.0001f && parts <= 2);
            two += parts == 2;
        }
    }
    assert_true(two >= 17); /* all but the middle one of each odd batch */
    ctn_loader_free(l);
    /* A label outside of the classes loses its batch, even with skip. */
    for (int t = 0; t < 2; t++) {
        l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 20, .threads = t, .skip = 0.5,
                              .mix = CTN_OPT(ctn_mix_opt, .mixup = 1, .classes = 19)));
        assert_fails(ctn_loader_next(l, &b), CTN_EARG, "a label is 19");
        ctn_loader_free(l);
        /* Each failure has its own message, also on the same thread. */
        l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 10, .threads = t,
                              .mix = CTN_OPT(ctn_mix_opt, .mixup = 1, .classes = 1)));
        for (int k = 0; k < 2; k++)
            assert_fails(ctn_loader_next(l, &b), CTN_EARG, "loader: mix: a label is ");
        ctn_loader_free(l);
    }
    ctn_dataset_free(ds);
}

/* An error that the caller has not cleared stays the first one, and nothing is said of it. */
static void test_older_error(void **state)
{
    (void)state;
    static said w;
    faulty d;
    ctn_batch b;
    ctn_dataset *ds = make(&d, 10, 5, 0);
    (void)ctn_fail(CTN_ESTATE, "an older error");
    ctn_set_log(hear, &w);
    ctn_loader *l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 10, .skip = 0.5));
    OK(ctn_loader_next(l, &b));
    ctn_set_log(NULL, NULL);
    assert_int_equal(b.n, 8);
    assert_string_equal(ctn_error_message(), "an older error");
    assert_non_null(strstr(w.text, "cats/5.jpg (epoch 0): "));
    assert_non_null(strstr(w.text, ctn_status_text(CTN_EFORMAT)));
    assert_null(strstr(w.text, "older"));
    ctn_loader_free(l);
    l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 10, .skip = 0.5,
                          .mix = CTN_OPT(ctn_mix_opt, .mixup = 1, .classes = 9)));
    assert_int_equal(ctn_loader_next(l, &b), CTN_EARG); /* sample 9 has label 9 */
    assert_string_equal(ctn_error_message(), "an older error");
    assert_int_equal(ctn_error_status(), CTN_ESTATE);
    ctn_error_clear();
    ctn_loader_free(l);
    ctn_dataset_free(ds);
}

/* ---- slow ----------------------------------------------------------------------------------- */

static said stalled;
static uint64_t stuck_ns;

static void nap_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* Sample 13 is stuck until there are four warnings, in the first epoch only. */
static void get_stuck(int64_t index)
{
    if (index != 13 || stuck_ns > 0) return;
    const uint64_t t0 = ctn__now_ns();
    const int before = stalled.lines;
    while (stalled.lines < before + 4) nap_ms(1);
    stuck_ns = ctn__now_ns() - t0;
}

static void test_stall(void **state)
{
    (void)state;
    faulty d;
    ctn_batch b;
    ctn_dataset *ds = make(&d, 20, 0, 0);
    d.wait = get_stuck;
    ctn_set_log(hear, &stalled);
    ctn_loader *l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 20, .threads = 1, .stall_s = 0.02));
    OK(ctn_loader_next(l, &b));
    assert_int_equal(b.n, 20);
    assert_non_null(strstr(stalled.text, "still reading: cats/13.jpg\n"));
    double seconds = 0; /* of the first warning; a busy machine may be late */
    assert_int_equal(sscanf(stalled.text, "loader: waiting for %lf s,", &seconds), 1);
    assert_true(seconds >= 0.02 && seconds < 10000);
    ctn_loader_stats stats;
    ctn_loader_get_stats(l, &stats);
    /* After 20, 60, 140 and 300 ms, not every 20 ms. */
    assert_true(stats.wait_ns >= 300000000 && stats.fill_ns >= stuck_ns);
    ctn_loader_free(l);

    /* Not stuck: no warning. */
    const int lines = stalled.lines;
    d.wait = NULL;
    l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 20, .threads = 2, .stall_s = 1000));
    OK(ctn_loader_next(l, &b));
    ctn_loader_free(l);
    ctn_set_log(NULL, NULL);
    assert_int_equal(stalled.lines, lines);
    ctn_dataset_free(ds);
}

static void take_ten_ms(int64_t index)
{
    (void)index;
    clock_pass(10);
}

/* Without threads the caller waits while batches are filled. With threads, a caller that comes
 * later does not wait for that. Time passes only in samples. */
static void test_times(void **state)
{
    (void)state;
    faulty d;
    ctn_batch b;
    ctn_loader_stats stats;
    ctn_dataset *ds = make(&d, 8, 0, 0);
    d.wait = take_ten_ms;
    clock_stop();
    ctn_loader *l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 4));
    OK(ctn_loader_next(l, &b));
    ctn_loader_get_stats(l, &stats);
    assert_true(stats.batches == 1 && stats.samples == 4 && stats.skipped == 0);
    assert_true(stats.fill_ns == 40000000 && stats.wait_ns == 40000000);
    ctn_loader_free(l);
    l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 4, .threads = 1));
    do { /* until all three batches are filled for which there is room */
        nap_ms(1);
        ctn_loader_get_stats(l, &stats);
    } while (stats.fill_ns < 120000000);
    OK(ctn_loader_next(l, &b));
    ctn_loader_get_stats(l, &stats);
    assert_int_equal(stats.wait_ns, 0);
    ctn_loader_free(l);
    clock_run();
    ctn_loader_get_stats(NULL, &stats);
    assert_int_equal(stats.batches, 0);
    ctn_dataset_free(ds);
}

static void take_long(int64_t index)
{
    (void)index;
    nap_ms(100);
}

/* Changing the position, or stopping, waits for one sample, not for a whole batch, which would take
 * 200 s. */
static void test_no_wait_for_dropped(void **state)
{
    (void)state;
    faulty d;
    ctn_dataset *ds = make(&d, 4000, 0, 0);
    d.wait = take_long;
    ctn_loader *l = start(ds, CTN_OPT(ctn_loader_opt, .batch = 2000, .threads = 2));
    while (d.gets < 2) nap_ms(1);
    OK(ctn_loader_set_state(l, &(ctn_sampler_state){.position = 3999}));
    ctn_batch b;
    OK(ctn_loader_next(l, &b)); /* the new batch is complete */
    assert_int_equal(b.n, 1);
    ctn_loader_free(l);
    assert_true(d.gets < 2000);
    ctn_dataset_free(ds);
}

/* ---- cores ---------------------------------------------------------------------------------- */

static void test_cores(void **state)
{
    (void)state;
    cpu_set_t before, after;
    faulty d;
    ctn_batch b;
    ctn_dataset *ds = make(&d, 50, 0, 0);
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof before, &before), 0);
    d.cpu = CPU_SETSIZE - 1; /* the last one that this process may use */
    while (!CPU_ISSET((size_t)d.cpu, &before)) d.cpu--;
    ctn_loader *l =
        start(ds, CTN_OPT(ctn_loader_opt, .batch = 5, .threads = 2, .cores = &d.cpu, .ncores = 1));
    for (int i = 0; i < 5; i++) OK(ctn_loader_next(l, &b));
    ctn_loader_free(l);
    assert_int_equal(d.elsewhere, 0);
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));

    ctn_sampler *s = NULL;
    const int absent = 65535, negative = -1;
    OK(ctn_sampler_sequential(&s, 50));
    l = NULL;
    assert_fails(ctn_loader_new(&l, ds, s,
                                CTN_OPT(ctn_loader_opt, .batch = 5, .threads = 2, .cores = &absent,
                                        .ncores = 1)),
                 CTN_EUNSUPPORTED, "65535");
    assert_fails(ctn_loader_new(&l, ds, s,
                                CTN_OPT(ctn_loader_opt, .batch = 5, .cores = &negative,
                                        .ncores = 1)),
                 CTN_EARG, "CPU -1");
    assert_null(l);
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skip_any_threads),
        cmocka_unit_test(test_few_warnings),
        cmocka_unit_test(test_skip_keeps_order),
        cmocka_unit_test(test_skip_limit),
        cmocka_unit_test(test_skip_restart),
        cmocka_unit_test(test_mix),
        cmocka_unit_test(test_older_error),
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_no_wait_for_dropped),
        cmocka_unit_test(test_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
