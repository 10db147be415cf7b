/* SPDX-License-Identifier: Apache-2.0
 *
 * User-defined datasets and loaders: checks of the function table, batches that do not depend on
 * the thread count or the depth, tails, ranks, errors that name the sample, restart from a
 * state, no signals on loader threads, no allocation while running, batches as tensors in both
 * layouts, a failing allocator. Faults of the data or the file system are in
 * test_loader_faults.c.
 * Labels: threads
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include <catena/catena.h>

#include "base/base.h"

/* ---- user-defined datasets ------------------------------------------------------------------- */

/* Sample i: x (3) f32 = i, i+.25, i+.5; t i32 = 10 i. Fails at sample `bad`. */
typedef struct {
    int64_t count, bad;
    int fields, freed;
    bool silent;      /* fails without a message */
    int signals_open; /* how often get ran on another thread with a signal unblocked */
    pthread_t main_thread;
    ctn_field field;
} made;

static int64_t made_count(void *self)
{
    return ((made *)self)->count;
}

static int made_fields(void *self)
{
    return ((made *)self)->fields;
}

static void made_field(void *self, int f, ctn_field *out)
{
    *out = f == 0 ? ((made *)self)->field : (ctn_field){.dtype = CTN_I32};
}

static ctn_status made_get(void *self, const ctn_sample *s, void *const *dst)
{
    made *m = self;
    const int64_t i = s->index;
    if (i == m->bad) return m->silent ? CTN_EIO : ctn_fail(CTN_EIO, "made: the disk is gone");
    float *x = dst[0];
    for (int k = 0; k < 3; k++) x[k] = (float)i + 0.25f * (float)k;
    *(int32_t *)dst[1] = (int32_t)(10 * i);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (!pthread_equal(pthread_self(), m->main_thread) && !sigismember(&mask, SIGTERM))
        m->signals_open = 1;
    return CTN_OK;
}

static void made_free(void *self)
{
    ((made *)self)->freed++;
}

static const ctn_dataset_vt made_vt = {.struct_size = sizeof(ctn_dataset_vt),
                                       .count = made_count,
                                       .fields = made_fields,
                                       .field = made_field,
                                       .get = made_get,
                                       .free = made_free};

static ctn_dataset *make(made *m, int64_t count, int64_t bad)
{
    *m = (made){.count = count,
                .bad = bad,
                .fields = 2,
                .main_thread = pthread_self(),
                .field = {CTN_F32, 1, {3}, 0}};
    ctn_dataset *ds = NULL;
    OK(ctn_dataset_new(&ds, &made_vt, m));
    return ds;
}

static void test_dataset_checks(void **state)
{
    (void)state;
    made m;
    ctn_dataset *ds = make(&m, 5, -1);
    ctn_dataset_free(ds);
    assert_int_equal(m.freed, 1);
    ctn_dataset_free(NULL);
    ctn_dataset_vt vt = made_vt;
    vt.get = NULL;
    assert_fails(ctn_dataset_new(&ds, &vt, &m), CTN_EARG, "get");
    vt.struct_size = 0;
    assert_fails(ctn_dataset_new(&ds, &vt, &m), CTN_EARG, "struct_size");
    m.count = -1;
    assert_fails(ctn_dataset_new(&ds, &made_vt, &m), CTN_EARG, "count is -1");
    m.count = 1;
    m.fields = CTN_DATA_FIELDS + 1;
    assert_fails(ctn_dataset_new(&ds, &made_vt, &m), CTN_EARG, "9 fields");
    m.fields = 2;
    m.field.dtype = (ctn_dtype)99;
    assert_fails(ctn_dataset_new(&ds, &made_vt, &m), CTN_EDTYPE, "dtype 99");
    m.field = (ctn_field){CTN_F32, CTN_MAX_DIMS, {1, 1, 1, 1, 1, 1, 1, 1}, 0};
    assert_fails(ctn_dataset_new(&ds, &made_vt, &m), CTN_EARG, "8 dimensions");
    m.field = (ctn_field){CTN_F32, 2, {3, 0}, 0};
    assert_fails(ctn_dataset_new(&ds, &made_vt, &m), CTN_EARG, "size 0 in dimension 1");
    m.field = (ctn_field){CTN_F32, 3, {INT64_MAX, INT64_MAX, 4}, 0};
    assert_fails(ctn_dataset_new(&ds, &made_vt, &m), CTN_EARG, "too large");
    assert_int_equal(m.freed, 1); /* on failure the caller keeps ownership */
}

/* ---- loader
 * -------------------------------------------------------------------------------------------- */

/* What a run delivered: t of every sample, and batch sizes, with 0 at the end of an epoch. */
typedef struct {
    int32_t t[4000];
    int64_t n[4000];
    int samples, calls;
} record;

static void run(ctn_loader *l, int calls, record *r)
{
    for (int c = 0; c < calls; c++) {
        ctn_batch b;
        ctn_status st = ctn_loader_next(l, &b);
        assert_int_equal(st, b.n ? CTN_OK : CTN_END);
        r->n[r->calls++] = b.n;
        if (st == CTN_END) continue;
        assert_int_equal(b.fields, 2);
        assert_true(b.field[0].ndim == 2 && b.field[0].shape[0] == b.n && b.field[0].shape[1] == 3);
        assert_true(b.field[1].ndim == 1 && b.field[1].shape[0] == b.n);
        assert_true(b.field[0].dtype == CTN_F32 && b.field[1].dtype == CTN_I32);
        for (int f = 0; f < 2; f++) assert_int_equal((uintptr_t)b.data[f] % 64, 0);
        const float *x = b.data[0];
        const int32_t *t = b.data[1];
        for (int64_t i = 0; i < b.n; i++) {
            assert_true((int32_t)x[3 * i] * 10 == t[i] && x[3 * i + 2] == x[3 * i] + 0.5f);
            r->t[r->samples++] = t[i];
        }
    }
}

static void assert_same(const record *a, const record *b)
{
    assert_int_equal(a->calls, b->calls);
    assert_int_equal(a->samples, b->samples);
    assert_memory_equal(a->n, b->n, sizeof a->n[0] * (size_t)a->calls);
    assert_memory_equal(a->t, b->t, sizeof a->t[0] * (size_t)a->samples);
}

static void test_loader_threads_agree(void **state)
{
    (void)state;
    static record first, r;
    for (int drop = 0; drop < 2; drop++)
        for (int batch = 1; batch <= 23; batch += drop ? 7 : 11)
            for (int depth = 0; depth < 5; depth += 2)
                for (int threads = 0; threads <= 3; threads += threads ? 2 : 1) {
                    made m;
                    ctn_dataset *ds = make(&m, 23, -1);
                    ctn_sampler *s = NULL;
                    ctn_loader *l = NULL;
                    OK(ctn_sampler_shuffled(&s, 23, 9));
                    OK(ctn_loader_new(&l, ds, s,
                                      CTN_OPT(ctn_loader_opt, .batch = batch, .threads = threads,
                                              .depth = depth, .drop_last = drop)));
                    ctn_sampler_free(s);
                    memset(&r, 0, sizeof r);
                    uint64_t before = ctn_allocations();
                    run(l, 80, &r);
                    assert_int_equal(ctn_allocations(), before);
                    if (threads == 0) first = r;
                    assert_same(&first, &r);
                    ctn_loader_free(l);
                    assert_int_equal(m.signals_open, 0);
                    ctn_dataset_free(ds);
                }
}

static void test_loader_tail(void **state)
{
    (void)state;
    for (int threads = 0; threads <= 2; threads += 2) {
        made m;
        ctn_dataset *ds = make(&m, 7, -1);
        ctn_sampler *s = NULL;
        ctn_loader *l = NULL;
        static record r;
        memset(&r, 0, sizeof r);
        OK(ctn_sampler_sequential(&s, 7));
        OK(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 3, .threads = threads)));
        run(l, 8, &r);
        const int64_t n[] = {3, 3, 1, 0, 3, 3, 1, 0};
        assert_memory_equal(r.n, n, sizeof n);
        for (int i = 0; i < 14; i++) assert_int_equal(r.t[i], i % 7 * 10);
        ctn_loader_free(l);
        OK(ctn_loader_new(&l, ds, s,
                          CTN_OPT(ctn_loader_opt, .batch = 3, .threads = threads, .drop_last = 1)));
        memset(&r, 0, sizeof r);
        run(l, 6, &r);
        const int64_t dropped[] = {3, 3, 0, 3, 3, 0};
        assert_memory_equal(r.n, dropped, sizeof dropped);
        ctn_loader_free(l);
        ctn_sampler_free(s);
        ctn_dataset_free(ds);
    }
}

static void test_loader_restart(void **state)
{
    (void)state;
    static record whole, part, after;
    made m;
    ctn_dataset *ds = make(&m, 50, -1);
    ctn_sampler *s = NULL;
    OK(ctn_sampler_shuffled(&s, 50, 77));
    for (int threads = 0; threads <= 3; threads++)
        for (int stop = 0; stop < 16; stop++) {
            ctn_loader *l = NULL, *l2 = NULL;
            const ctn_loader_opt *opt = CTN_OPT(ctn_loader_opt, .batch = 8, .threads = threads);
            OK(ctn_loader_new(&l, ds, s, opt));
            memset(&part, 0, sizeof part);
            memset(&after, 0, sizeof after);
            run(l, stop, &part);
            ctn_sampler_state saved = ctn_loader_get_state(l);
            whole = part;
            run(l, 20, &whole);
            /* Going back in the same loader, and a new loader from the state. */
            OK(ctn_loader_set_state(l, &saved));
            after = part;
            run(l, 20, &after);
            assert_same(&whole, &after);
            ctn_sampler *s2 = NULL;
            OK(ctn_sampler_shuffled(&s2, 50, 0));
            OK(ctn_sampler_set_state(s2, &saved));
            OK(ctn_loader_new(&l2, ds, s2, opt));
            after = part;
            run(l2, 20, &after);
            assert_same(&whole, &after);
            saved.position = 51;
            assert_fails(ctn_loader_set_state(l2, &saved), CTN_EARG, "position 51");
            run(l2, 1, &after); /* it still works */
            ctn_sampler_free(s2);
            ctn_loader_free(l);
            ctn_loader_free(l2);
        }
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
}

static void test_loader_errors(void **state)
{
    (void)state;
    for (int threads = 0; threads <= 3; threads++)
        for (int silent = 0; silent < 2; silent++) {
            made m;
            ctn_dataset *ds = make(&m, 9, 4);
            m.silent = silent;
            ctn_sampler *s = NULL;
            ctn_loader *l = NULL;
            ctn_batch b;
            static record r;
            memset(&r, 0, sizeof r);
            OK(ctn_sampler_sequential(&s, 9));
            OK(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 3, .threads = threads)));
            for (int epoch = 0; epoch < 3; epoch++) {
                run(l, 1, &r);
                ctn_status st = ctn_loader_next(l, &b);
                assert_non_null(strstr(ctn_error_message(), "sample 4"));
                assert_fails(st, CTN_EIO, silent ? "input or output" : "the disk is gone");
                assert_int_equal(b.n, 0);
                run(l, 2, &r); /* continues after the lost batch, then reaches the end */
            }
            assert_int_equal(r.samples, 18);
            assert_int_equal(r.t[3], 60);
            ctn_loader_free(l);
            ctn_sampler_free(s);
            ctn_dataset_free(ds);
        }
}

static void test_loader_refuses(void **state)
{
    (void)state;
    made m;
    ctn_dataset *ds = make(&m, 9, -1);
    ctn_sampler *s = NULL, *ten = NULL;
    ctn_loader *l = NULL;
    OK(ctn_sampler_sequential(&s, 9));
    OK(ctn_sampler_sequential(&ten, 10));
    assert_fails(ctn_loader_new(&l, ds, ten, CTN_OPT(ctn_loader_opt, .batch = 1)), CTN_EARG,
                 "9 samples, the sampler is for 10");
    assert_fails(ctn_loader_new(&l, ds, s, NULL), CTN_EARG, "batch is 0");
    assert_fails(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 1, .threads = -1)),
                 CTN_EARG, "threads is -1");
    assert_fails(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 10, .drop_last = 1)),
                 CTN_EARG, "no batch would ever come");
    assert_fails(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = INT64_MAX)), CTN_EARG,
                 "does not fit");
    assert_fails(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 1, .skip = 1.5)),
                 CTN_EARG, "skip is 1.5");
    assert_fails(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 1, .stall_s = -1)),
                 CTN_EARG, "stall_s is -1");
    assert_fails(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 1, .ncores = 2)),
                 CTN_EARG, "ncores is 2");
    assert_null(l);
    ctn_loader_free(NULL);
    ctn_sampler_free(s);
    ctn_sampler_free(ten);
    ctn_dataset_free(ds);

    /* An empty dataset has nothing but the end. */
    ds = make(&m, 0, -1);
    OK(ctn_sampler_shuffled(&s, 0, 1));
    OK(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 4, .threads = 2)));
    ctn_batch b;
    assert_int_equal(ctn_loader_next(l, &b), CTN_END);
    assert_int_equal(ctn_loader_next(l, &b), CTN_END);
    ctn_loader_free(l);
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
}

/* k ranks with batch size b together equal one rank with batch size k b. With drop_last all
 * ranks have the same number of batches. */
static void test_loader_ranks(void **state)
{
    (void)state;
    enum { N = 50, BATCH = 3 };
    static record whole;
    for (int drop = 0; drop < 2; drop++)
        for (int size = 1; size <= 7; size += 2) {
            made m;
            ctn_dataset *ds = make(&m, N, -1);
            ctn_sampler *s = NULL;
            ctn_loader *l = NULL, *part[7] = {0};
            OK(ctn_sampler_shuffled(&s, N, 4));
            OK(ctn_loader_new(&l, ds, s,
                              CTN_OPT(ctn_loader_opt, .batch = BATCH * (int64_t)size,
                                      .drop_last = drop)));
            for (int rank = 0; rank < size; rank++) {
                OK(ctn_sampler_shard(s, rank, size));
                OK(ctn_loader_new(&part[rank], ds, s,
                                  CTN_OPT(ctn_loader_opt, .batch = BATCH, .threads = 1,
                                          .drop_last = drop)));
            }
            ctn_sampler_free(s);
            memset(&whole, 0, sizeof whole);
            int end[7] = {0};
            for (int64_t n = -1; n != 0; n = whole.n[whole.calls - 1]) {
                const int first = whole.samples;
                run(l, 1, &whole);
                for (int rank = 0; rank < size; rank++) {
                    ctn_batch b;
                    if (end[rank]) continue;
                    end[rank] = ctn_loader_next(part[rank], &b) == CTN_END;
                    for (int64_t i = 0; i < b.n; i++)
                        assert_int_equal(((int32_t *)b.data[1])[i],
                                         whole.t[first + (int)i * size + rank]);
                    /* A rank may have one batch less, but never one more. */
                    assert_true(whole.n[whole.calls - 1] > 0 || end[rank]);
                    if (drop) assert_int_equal(end[rank], whole.n[whole.calls - 1] == 0);
                }
            }
            assert_int_equal(whole.samples, drop ? N / (BATCH * size) * BATCH * size : N);
            for (int rank = 0; rank < size; rank++) ctn_loader_free(part[rank]);
            ctn_loader_free(l);
            ctn_dataset_free(ds);
        }
}

/* A field stored as (H,W,C) gives the same tensor (N,C,H,W) as one stored as (C,H,W). */
static void test_batch_layouts(void **state)
{
    (void)state;
    enum { N = 3, C = 2, H = 4, W = 5 };
    float nchw[N][C][H][W], nhwc[N][H][W][C], got[2][N][C][H][W];
    for (int i = 0; i < N * C * H * W; i++) {
        const int w = i % W, h = i / W % H, c = i / (W * H) % C, n = i / (W * H * C);
        nchw[n][c][h][w] = nhwc[n][h][w][c] = (float)i;
    }
    ctn_context *ctx = NULL;
    ctn_dataset *ds = NULL;
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    ctn_batch b;
    const ctn_field field[] = {{CTN_F32, 3, {C, H, W}, 0}, {CTN_F32, 3, {C, H, W}, 1}};
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_arrays_open(&ds, N, 2, field, (const void *[]){nchw, nhwc}));
    OK(ctn_sampler_sequential(&s, N));
    OK(ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = N)));
    OK(ctn_loader_next(l, &b));
    assert_true(!b.field[0].channels_last && b.field[1].channels_last);
    OK(ctn_scope_begin(ctx));
    for (int f = 0; f < 2; f++) {
        ctn_tensor *x = ctn_batch_tensor(ctx, &b, f);
        assert_non_null(x);
        OK(ctn_read(ctn_add(x, x), got[f], sizeof got[f]));
    }
    OK(ctn_scope_end(ctx));
    assert_true(got[0][2][1][3][4] == 2 * nchw[2][1][3][4]);
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    ctn_loader_free(l);
    ctn_sampler_free(s);
    ctn_dataset_free(ds);
    ctn_context_free(ctx);
}

/* ---- memory
 * -------------------------------------------------------------------------------------------- */

static ctn_status everything(void)
{
    ctn_status st = CTN_OK;
    made m = {.count = 5, .bad = -1, .fields = 2, .main_thread = pthread_self()};
    m.field = (ctn_field){CTN_F32, 1, {3}, 0};
    ctn_dataset *ds = NULL;
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    ctn_batch b;
    CTN_TRY_GOTO(st, done, ctn_dataset_new(&ds, &made_vt, &m));
    CTN_TRY_GOTO(st, done, ctn_sampler_shuffled(&s, 5, 1));
    CTN_TRY_GOTO(st, done,
                 ctn_loader_new(&l, ds, s, CTN_OPT(ctn_loader_opt, .batch = 2, .threads = 2)));
    CTN_TRY_GOTO(st, done, ctn_loader_next(l, &b));
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
        cmocka_unit_test(test_dataset_checks), cmocka_unit_test(test_loader_threads_agree),
        cmocka_unit_test(test_loader_tail),    cmocka_unit_test(test_loader_restart),
        cmocka_unit_test(test_loader_errors),  cmocka_unit_test(test_loader_refuses),
        cmocka_unit_test(test_loader_ranks),   cmocka_unit_test(test_batch_layouts),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
