/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators with threads as ranks: every algorithm, type and wire type on 1 to 7 ranks, on
 * one node and on several. Results must be exact for integer-valued floats, and bitwise equal on
 * all ranks and in two runs. Also several operations in flight, a rank that fails or leaves, the
 * small collectives, and refused calls.
 * Labels: threads
 */
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <catena/comm.h>

#include "comm/comm.h"
#include "support/check.h"
#include "support/counted.h"
#include "support/ok.h"

#include <cmocka.h>

/* Sanitizers are up to 20 times slower, so fewer of the long tests run with them. */
#if defined(__SANITIZE_THREAD__)
enum { TSAN = 1, SANITIZED = 1 };
#elif defined(__SANITIZE_ADDRESS__)
enum { TSAN = 0, SANITIZED = 1 };
#else
enum { TSAN = 0, SANITIZED = 0 };
#endif

enum { MOST = 7 };

/* ---- threads as ranks ----------------------------------------------------------------------- */

typedef struct job job;
struct job {
    ctn_comm *c;
    int rank, size;
    void (*work)(job *j);
    void *arg;
    /* The first error. cmocka's asserts work only in the thread that runs the test. */
    char why[400];
    pthread_t thread;
};

#define CHECK(j, ok, ...)                                                               \
    do {                                                                                \
        if (!(ok) && (j)->why[0] == 0) snprintf((j)->why, sizeof(j)->why, __VA_ARGS__); \
    } while (0)
/* A rank that fails tells the others, which would otherwise wait. */
#define TRY(j, call)                                                                       \
    do {                                                                                   \
        ctn_status st_ = (call);                                                           \
        CHECK(j, st_ == CTN_OK, "rank %d: %s: %s", (j)->rank, #call, ctn_error_message()); \
        if (st_ != CTN_OK) {                                                               \
            ctn_error_clear();                                                             \
            return;                                                                        \
        }                                                                                  \
    } while (0)

static void *begin(void *p)
{
    job *j = p;
    j->work(j);
    if (j->why[0] != 0)
        for (int i = 0; i < j->size; i++) ctn_comm_fail(j[i - j->rank].c, j->why);
    return NULL;
}

static void on_all(ctn_comm **c, int size, void (*work)(job *), void *arg)
{
    job j[MOST] = {{0}};
    for (int i = 0; i < size; i++)
        j[i] = (job){.c = c[i], .rank = i, .size = size, .work = work, .arg = arg};
    for (int i = 0; i < size; i++)
        assert_int_equal(pthread_create(&j[i].thread, NULL, begin, &j[i]), 0);
    for (int i = 0; i < size; i++) pthread_join(j[i].thread, NULL);
    for (int i = 0; i < size; i++)
        if (j[i].why[0] != 0) fail_msg("%s", j[i].why);
}

static void open_all(ctn_comm **c, int size, const int *node, const ctn_comm_opt *opt)
{
    ctn__net *net[MOST];
    if (node == NULL) {
        OK(ctn_comm_loopback(c, size, opt));
        return;
    }
    OK(ctn__net_loopback_nodes(net, size, node));
    for (int i = 0; i < size; i++) OK(ctn__comm_new(&c[i], net[i], opt));
}

static void free_all(ctn_comm **c, int size)
{
    for (int i = 0; i < size; i++) ctn_comm_free(c[i]);
}

/* ---- values --------------------------------------------------------------------------------- */

enum { PERIOD = 37 }; /* sums over seven ranks stay below 256, exact in bf16 too */

static int value(int rank, int64_t i)
{
    return (int)(((rank + 1) * 31 + i * 7) % PERIOD) - PERIOD / 2;
}

static void set(void *buf, ctn_dtype type, int64_t i, int v)
{
    switch (type) {
    case CTN_F32: ((float *)buf)[i] = (float)v; break;
    case CTN_F64: ((double *)buf)[i] = v; break;
    case CTN_I32: ((int32_t *)buf)[i] = v; break;
    default: ((int64_t *)buf)[i] = v; break;
    }
}

static void fill(void *buf, ctn_dtype type, int64_t n, int rank)
{
    for (int64_t i = 0; i < n; i++) set(buf, type, i, value(rank, i));
}

/* The first element that is not the sum over all ranks; n if all are right. */
static int64_t wrong(const void *buf, ctn_dtype type, int64_t n, int size)
{
    int64_t sum[PERIOD]; /* one period, of the widest type */
    size_t es = ctn_dtype_size(type);
    for (int64_t i = 0; i < PERIOD; i++) {
        int v = 0;
        for (int r = 0; r < size; r++) v += value(r, i);
        set(sum, type, i, v);
    }
    for (int64_t i = 0; i < n; i += PERIOD) {
        int64_t m = n - i < PERIOD ? n - i : PERIOD;
        if (memcmp((const char *)buf + (size_t)i * es, sum, (size_t)m * es) == 0) continue;
        for (int64_t k = 0; k < m; k++)
            if (memcmp((const char *)buf + (size_t)(i + k) * es, (char *)sum + (size_t)k * es,
                       es) != 0)
                return i + k;
    }
    return n;
}

/* ---- every algorithm ------------------------------------------------------------------------ */

typedef struct {
    int64_t longest, other_longest; /* of f32; of other types */
    bool types;                     /* more than f32 */
} matrix;

static void one_sum(job *j, const char *algorithm, ctn_dtype type, int64_t n, char *buf)
{
    size_t es = ctn_dtype_size(type);
    memset(buf + (size_t)n * es, 0x5a, 64);
    fill(buf, type, n, j->rank);
    TRY(j, ctn_comm_allreduce(j->c, buf, n, type));
    int64_t bad = wrong(buf, type, n, j->size);
    CHECK(j, bad == n, "%s: %d ranks, %s, %lld elements: element %lld is wrong on rank %d",
          algorithm, j->size, ctn_dtype_name(type), (long long)n, (long long)bad, j->rank);
    for (int i = 0; i < 64; i++)
        CHECK(j, buf[(size_t)n * es + (size_t)i] == 0x5a, "%s wrote past the end", algorithm);
}

/* Algorithms that cannot send 16 bits. */
static bool f32_only(const char *name)
{
    return strcmp(name, "flat") == 0 || strcmp(name, "doubling") == 0;
}

static void all_sums(job *j)
{
    const matrix *m = j->arg;
    const ctn_dtype type[] = {CTN_F32, CTN_F64, CTN_I32, CTN_I64};
    const int64_t n[] = {1, 2, 15, 1000, 65537, (1 << 20) + 3};
    char *buf = malloc((size_t)((1 << 20) + 3) * 8 + 64);
    CHECK(j, buf != NULL, "no memory");
    const char *name;
    for (int a = 0; (name = ctn_comm_algorithm_name(a)) != NULL && j->why[0] == 0; a++) {
        if (strcmp(name, "hierarchical") == 0 && j->size > 1 && ctn_comm_nodes(j->c) == j->size)
            continue;
        const bool refused = f32_only(name) && j->size > 1 && j->c->opt.wire != CTN_F32;
        ctn_status st = ctn_comm_set_algorithm(j->c, name);
        CHECK(j, st == (refused ? CTN_EARG : CTN_OK), "%s: %s", name, ctn_error_message());
        if (refused) continue;
        for (int t = 0; t < (m->types ? 4 : 1); t++)
            for (int k = 0; k < 6 && j->why[0] == 0; k++)
                if (n[k] <= (t == 0 ? m->longest : m->other_longest))
                    one_sum(j, name, type[t], n[k], buf);
    }
    free(buf);
}

static void sums(int size, const int *node, const ctn_comm_opt *opt, matrix m)
{
    ctn_comm *c[MOST];
    open_all(c, size, node, opt);
    on_all(c, size, all_sums, &m);
    for (int i = 0; i < size; i++) {
        ctn_comm_stats s = {.struct_size = sizeof s};
        ctn_comm_get_stats(c[i], &s);
        assert_true(s.started == s.finished && s.started > 0 && s.waiting == 0);
        assert_true((s.sent > 0) == (size > 1));
    }
    free_all(c, size);
}

static const int ranks[] = {1, 2, 3, 4, 7};

/* Of f32, and of variants with f32. */
static int64_t longest(int size)
{
    return TSAN && size != 3 ? 65537 : (1 << 20) + 3;
}

static int64_t other_longest(int size)
{
    if (TSAN) return 1000; /* 65537 elements in small pieces are tested below */
    return SANITIZED && size != 3 ? 65537 : (1 << 20) + 3;
}

static void every_algorithm_and_type(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        sums(ranks[i], NULL, &(ctn_comm_opt){.struct_size = sizeof(ctn_comm_opt)},
             (matrix){.longest = longest(ranks[i]),
                      .other_longest = other_longest(ranks[i]),
                      .types = true});
}

static void every_algorithm_with_16_bits_on_the_wire(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        sums(ranks[i % 5], NULL,
             &(ctn_comm_opt){.struct_size = sizeof(ctn_comm_opt),
                             .wire = i < 5 ? CTN_BF16 : CTN_F16},
             (matrix){.longest = other_longest(ranks[i % 5])});
}

static void many_small_pieces(void **state)
{
    (void)state;
    const int window[] = {1, 4};
    for (int i = 0; i < 5; i++)
        for (int w = 0; w < 2; w++)
            sums(ranks[i], NULL,
                 &(ctn_comm_opt){.struct_size = sizeof(ctn_comm_opt),
                                 .segment = 4096,
                                 .window = window[w],
                                 .wire = w ? CTN_BF16 : 0},
                 (matrix){.longest = 65537, .other_longest = 1000, .types = true});
}

static const struct {
    int size, node[MOST];
} nodes[] = {
    {2, {0, 1}},
    {3, {0, 0, 2}},
    {3, {0, 1, 1}},
    {4, {0, 0, 2, 2}},
    {4, {0, 1, 0, 1}},
    {4, {0, 1, 2, 3}},
    {7, {0, 0, 0, 3, 3, 5, 5}},
    {7, {0, 1, 1, 1, 1, 1, 1}},
    {7, {0, 0, 0, 0, 4, 4, 4}},
};
enum { NODES = sizeof nodes / sizeof *nodes };

static void several_nodes(void **state)
{
    (void)state;
    for (int i = TSAN; i < 2 * NODES; i += 1 + TSAN)
        sums(nodes[i / 2].size, nodes[i / 2].node,
             &(ctn_comm_opt){.struct_size = sizeof(ctn_comm_opt),
                             .segment = i % 2 ? 4096 : 0,
                             .rows = nodes[i / 2].size == 4 ? 4 : 0,
                             .wire = i % 2 ? CTN_F16 : 0},
             (matrix){.longest = 65537, .other_longest = 1000, .types = true});
}

static void long_sum(job *j)
{
    int64_t n = (1 << 24) + 3;
    char *buf = malloc((size_t)n * sizeof(float) + 64);
    CHECK(j, buf != NULL, "no memory");
    if (buf != NULL) one_sum(j, "ring", CTN_F32, n, buf);
    free(buf);
}

static void sixteen_million(void **state)
{
    (void)state;
    ctn_comm *c[3];
    if (SANITIZED) skip();
    OK(ctn_comm_loopback(c, 3,
                         &(ctn_comm_opt){.struct_size = sizeof(ctn_comm_opt),
                                         .algorithm = "ring"}));
    on_all(c, 3, long_sum, NULL);
    free_all(c, 3);
}

/* ---- the same bits everywhere --------------------------------------------------------------- */

enum { UNEVEN = 20011 };

static void random_sum(job *j)
{
    float *x = (float *)j->arg + (size_t)j->rank * UNEVEN;
    for (int i = 0; i < UNEVEN; i++) x[i] = (float)ctn__normal(11, (uint64_t)j->rank, (uint64_t)i);
    TRY(j, ctn_comm_allreduce(j->c, x, UNEVEN, CTN_F32));
}

/* How often a value that is sent in 16 bits may be rounded. */
static int most_roundings(int size)
{
    int lg = 0;
    while (1 << lg < size) lg++;
    return lg + 1;
}

static void check_close(const float *x, int size, ctn_dtype wire)
{
    double ulp = wire == CTN_BF16 ? 0x1p-8 : wire == CTN_F16 ? 0x1p-11 : 0x1p-24;
    const int times = wire == CTN_F32 ? 2 * size : most_roundings(size);
    for (int i = 0; i < UNEVEN; i++) {
        double sum = 0, most = 0;
        for (int r = 0; r < size; r++) {
            double v = (double)(float)ctn__normal(11, (uint64_t)r, (uint64_t)i);
            sum += v;
            most += fabs(v);
        }
        if (fabs(sum - (double)x[i]) > 1.01 * ulp * most * times)
            fail_msg("element %d is %g, not %g", i, (double)x[i], sum);
    }
}

static void same_bits(const char *algorithm, int size, const int *node, ctn_dtype wire)
{
    ctn_comm *c[MOST];
    size_t bytes = UNEVEN * sizeof(float);
    float *x = calloc(2 * MOST, bytes), *again = x + (size_t)MOST * UNEVEN;
    assert_non_null(x);
    for (int run = 0; run < 2; run++) {
        open_all(c, size, node,
                 &(ctn_comm_opt){.struct_size = sizeof(ctn_comm_opt),
                                 .algorithm = algorithm,
                                 .wire = wire,
                                 .segment = 4096,
                                 .window = run == 0 ? 4 : 2});
        on_all(c, size, random_sum, run == 0 ? x : again);
        free_all(c, size);
    }
    for (int r = 0; r < size; r++) {
        assert_memory_equal(x + (size_t)r * UNEVEN, x, bytes);
        assert_memory_equal(again + (size_t)r * UNEVEN, x, bytes);
    }
    check_close(x, size, wire);
    free(x);
}

static void the_same_bits_everywhere(void **state)
{
    (void)state;
    const ctn_dtype wire[] = {CTN_F32, CTN_BF16, CTN_F16};
    const int split[] = {0, 0, 0, 3, 3, 5, 5};
    for (int a = 0; ctn_comm_algorithm_name(a) != NULL; a++) {
        for (int w = 0; w < 3; w++) {
            if (w > 0 && f32_only(ctn_comm_algorithm_name(a))) continue; /* refused */
            same_bits(ctn_comm_algorithm_name(a), 6, NULL, wire[w]);
            same_bits(ctn_comm_algorithm_name(a), 7, split, wire[w]);
        }
    }
}

/* 256 and six ones: if partial sums are rounded repeatedly, no 1 is ever seen, because bf16 has
 * no 257. */
static void ones(job *j)
{
    enum { N = 700 };
    float x[N], y[N];
    ctn__coll *k = NULL;
    const char *name;
    for (int a = 0; (name = ctn_comm_algorithm_name(a)) != NULL; a++) {
        if (ctn_comm_set_algorithm(j->c, name) < 0) continue; /* refused */
        for (int i = 0; i < N; i++) x[i] = y[i] = j->rank == 0 ? 256 : 1;
        TRY(j, ctn_comm_allreduce(j->c, x, N, CTN_F32));
        const double sum = 256 + j->size - 1, most = sum * 0x1p-8 * most_roundings(j->size);
        for (int i = 0; i < N; i++)
            CHECK(j, fabs((double)x[i] - sum) <= most, "%s: element %d is %g", name, i,
                  (double)x[i]);
    }
    for (int i = 0; i < N; i++) x[i] = y[i];
    TRY(j, ctn__coll_start(j->c, &k, &ctn__flat, x, N, CTN_F32, CTN_BF16));
    TRY(j, ctn__coll_wait(k));
    for (int i = 0; i < N; i++)
        CHECK(j, fabs((double)x[i] - (256 + j->size - 1)) <= 1, "flat: element %d is %g", i,
              (double)x[i]);
    TRY(j, ctn__coll_start(j->c, &k, &ctn__ring_scatter, y, N, CTN_F32, CTN_BF16));
    TRY(j, ctn__coll_wait(k));
    for (int64_t i = ctn__part(N, j->size, j->rank); i < ctn__part(N, j->size, j->rank + 1); i++)
        CHECK(j, y[i] == (float)(256 + j->size - 1), "the owner of element %d has %g", (int)i,
              (double)y[i]);
}

static void sixteen_bits_are_rounded_few_times(void **state)
{
    (void)state;
    const int split[] = {0, 0, 0, 3, 3, 5, 5};
    for (int i = 1; i < 5; i++) {
        ctn_comm *c[MOST];
        open_all(c, ranks[i], ranks[i] == 7 ? split : NULL,
                 &(ctn_comm_opt){.struct_size = sizeof(ctn_comm_opt), .wire = CTN_BF16});
        on_all(c, ranks[i], ones, NULL);
        free_all(c, ranks[i]);
    }
}

/* ---- several in flight ----------------------------------------------------------------------- */

enum { FLIGHT = 14 };

static void in_flight(job *j)
{
    const ctn__algorithm *fixed[] = {&ctn__ring,         &ctn__hierarchical, &ctn__rsap,
                                     &ctn__rabenseifner, &ctn__flat,         &ctn__torus};
    const ctn_dtype type[] = {CTN_F32, CTN_I64, CTN_F64, CTN_I32, CTN_F32};
    ctn__coll *x[FLIGHT] = {NULL};
    static const int64_t n[] = {5000, 1, 70000, 333, 0, 12345, 4099};
    char *buf = malloc(FLIGHT * 70000 * 8);
    CHECK(j, buf != NULL, "no memory");
    TRY(j, ctn__regions_make(j->c));
    for (int k = 0; k < FLIGHT && j->why[0] == 0; k++) {
        char *at = buf + (size_t)k * 70000 * 8;
        fill(at, type[k % 5], n[k % 7], j->rank);
        ctn_status st = ctn__coll_start(j->c, &x[k], fixed[k * 5 % 6], at, n[k % 7], type[k % 5],
                                        k < 5 ? CTN_BF16 : CTN_F32);
        CHECK(j, st == CTN_OK, "start %d: %s", k, ctn_error_message());
    }
    for (int k = FLIGHT - 1; k >= 0 && j->why[0] == 0; k--) { /* in reverse order */
        uint64_t t0 = 0, t1 = 0;
        while (!ctn__coll_done(x[k]) && k % 2 == 0 && ctn__comm_poll(j->c) == CTN_OK) continue;
        if (ctn__coll_done(x[k])) ctn__coll_times(x[k], &t0, &t1);
        ctn_status st = ctn__coll_wait(x[k]);
        CHECK(j, st == CTN_OK, "wait %d: %s", k, ctn_error_message());
        CHECK(j, t1 >= t0, "it ended before it began");
        CHECK(j, wrong(buf + (size_t)k * 70000 * 8, type[k % 5], n[k % 7], j->size) == n[k % 7],
              "operation %d is wrong on rank %d", k, j->rank);
    }
    free(buf);
}

/* Both halves of the ring: after the scatter, a rank's own block is the sum; after the gather,
 * every rank has all blocks. */
static void scatter_and_gather(job *j)
{
    enum { N = 10007 };
    float x[N];
    ctn__coll *q = NULL;
    int64_t begin_ = ctn__part(N, j->size, j->rank), end = ctn__part(N, j->size, j->rank + 1);
    fill(x, CTN_F32, N, j->rank);
    TRY(j, ctn__coll_start(j->c, &q, &ctn__ring_scatter, x, N, CTN_F32, CTN_F32));
    TRY(j, ctn__coll_wait(q));
    for (int64_t i = 0; i < N; i++)
        if (i < begin_ || i >= end) x[i] = -1;
    TRY(j, ctn__coll_start(j->c, &q, &ctn__ring_gather, x, N, CTN_F32, CTN_F32));
    TRY(j, ctn__coll_wait(q));
    CHECK(j, wrong(x, CTN_F32, N, j->size) == N, "rank %d has wrong blocks", j->rank);
}

static void several_operations_at_once(void **state)
{
    (void)state;
    const int window[] = {1, 4, 32};
    for (int w = 0; w < 3; w++) {
        for (int i = 0; i < 5; i++) {
            ctn_comm *c[MOST];
            OK(ctn_comm_loopback(c, ranks[i],
                                 &(ctn_comm_opt){.struct_size = sizeof(ctn_comm_opt),
                                                 .segment = 4096,
                                                 .window = window[w]}));
            if (w == 1)
                for (int r = 0; r < ranks[i]; r++) OK(ctn__progress_start(c[r]));
            on_all(c, ranks[i], in_flight, NULL);
            on_all(c, ranks[i], scatter_and_gather, NULL);
            free_all(c, ranks[i]);
        }
    }
}

static void choose_and_sum(job *j)
{
    int32_t x[1000];
    fill(x, CTN_I32, 1000, j->rank);
    TRY(j, ctn_comm_allreduce(j->c, x, 1000, CTN_I32));
    CHECK(j, wrong(x, CTN_I32, 1000, j->size) == 1000, "wrong sum on rank %d", j->rank);
    const ctn__algorithm *first = j->c->latest, *later = NULL;
    TRY(j, ctn__comm_choose_one(j->c, 1 << 20, &later)); /* a choice of its own */
    CHECK(j, later && later == j->c->latest, "no algorithm for long vectors");
    TRY(j, ctn__comm_choose_one(j->c, 3900, &later));
    CHECK(j, later == first, "%s for a length that already has %s", later->name, first->name);
}

static void ranks_agree_on_a_choice(void **state)
{
    (void)state;
    ctn_comm *c[4];
    OK(ctn_comm_loopback(c, 4, NULL));
    assert_string_equal(ctn_comm_algorithm(c[0]), "auto");
    on_all(c, 4, choose_and_sum, NULL);
    for (int i = 0; i < 4; i++)
        assert_string_equal(ctn_comm_algorithm(c[i]), ctn_comm_algorithm(c[0]));
    assert_non_null(ctn__algorithm_find(ctn_comm_algorithm(c[0])));
    free_all(c, 4);
}

/* ---- small collectives ---------------------------------------------------------------------- */

static void broadcasts(job *j)
{
    const size_t n[] = {0, 1, 1000, 300000};
    unsigned char *buf = malloc(300000);
    CHECK(j, buf != NULL, "no memory");
    for (int root = 0; root < j->size && j->why[0] == 0; root++) {
        for (int k = 0; k < 4; k++) {
            memset(buf, j->rank == root ? 7 * root + k : 255, n[k]);
            ctn_status st = ctn_comm_broadcast(j->c, buf, n[k], root);
            CHECK(j, st == CTN_OK, "broadcast: %s", ctn_error_message());
            for (size_t i = 0; i < n[k]; i += 1 + n[k] / 7)
                CHECK(j, buf[i] == 7 * root + k, "rank %d does not have what rank %d sent", j->rank,
                      root);
        }
    }
    free(buf);
}

static void gathers(job *j)
{
    int mine[3] = {j->rank, 2 * j->rank, 3 * j->rank}, all[MOST][3];
    memset(all, 0xff, sizeof all);
    TRY(j, ctn_comm_allgather(j->c, mine, sizeof mine, all));
    for (int i = 0; i < j->size * 3; i++)
        CHECK(j, all[i / 3][i % 3] == (i % 3 + 1) * (i / 3), "rank %d: part of rank %d is wrong",
              j->rank, i / 3);
}

/* To each root and back, with doubled values. */
static void to_root_and_back(job *j)
{
    const int n = 3;
    for (int root = 0; root < j->size; root++) {
        int mine[3] = {j->rank, 2 * j->rank, 3 * j->rank}, all[MOST][3];
        memset(all, 0xff, sizeof all);
        TRY(j, ctn_comm_gather(j->c, mine, sizeof mine, j->rank == root ? all : NULL, root));
        for (int i = 0; j->rank == root && i < j->size * n; i++) {
            CHECK(j, all[i / n][i % n] == (i % n + 1) * (i / n), "root %d: part of rank %d is %d",
                  root, i / n, all[i / n][i % n]);
            all[i / n][i % n] *= 2;
        }
        TRY(j, ctn_comm_scatter(j->c, j->rank == root ? all : NULL, sizeof mine, mine, root));
        for (int i = 0; i < n; i++)
            CHECK(j, mine[i] == 2 * (i + 1) * j->rank, "rank %d got %d from root %d", j->rank,
                  mine[i], root);
    }
    CHECK(j, ctn_comm_gather(j->c, NULL, 0, NULL, 0) == CTN_OK, "no bytes");
    CHECK(j, ctn_comm_gather(j->c, j, 1, j, j->size) == CTN_EARG, "no such root");
    CHECK(j, ctn_comm_scatter(j->c, j, 1, j, -1) == CTN_EARG, "no such root");
    ctn_error_clear();
}

static void gather_and_scatter(void **state)
{
    (void)state;
    static const int node[][MOST] = {{0}, {0, 1, 0, 1, 0, 1, 6}, {0, 1, 2, 2, 2, 1, 0}};
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 3; k++) {
            ctn_comm *c[MOST];
            open_all(c, ranks[i], node[k], NULL);
            on_all(c, ranks[i], to_root_and_back, NULL);
            free_all(c, ranks[i]);
        }
    }
}

/* Every rank sends messages of different lengths to every rank, itself included, before it receives
 * any. The content follows from sender, receiver and number. */
static void messages(job *j)
{
    enum { N = 4, LONG = 300000 };
    static const size_t length[N] = {3, 0, LONG, 1};
    unsigned char *buf = malloc(LONG);
    size_t bytes = 99;
    for (int to = 0; to < j->size; to++)
        for (int k = 0; k < N; k++) {
            memset(buf, j->rank + 10 * to + 100 * (k % 2), LONG);
            TRY(j, ctn_comm_send_bytes(j->c, buf, length[k], to));
        }
    TRY(j, ctn_comm_barrier(j->c)); /* other operations may come in between */
    for (int from = j->size - 1; from >= 0; from--)
        for (int k = 0; k < N; k++) {
            TRY(j, ctn_comm_recv_size(j->c, from, &bytes));
            CHECK(j, bytes == length[k], "message %d of rank %d has %zu bytes", k, from, bytes);
            if (k == 2) {
                CHECK(j, ctn_comm_recv_bytes(j->c, buf, 5, from) == CTN_EARG, "too little room");
                ctn_error_clear();
                TRY(j, ctn_comm_recv_size(j->c, from, &bytes)); /* the message is still there */
                CHECK(j, bytes == length[k], "another length");
            }
            memset(buf, 0xff, LONG);
            TRY(j, ctn_comm_recv_bytes(j->c, buf, bytes, from));
            for (size_t i = 0; i < bytes; i++)
                CHECK(j, buf[i] == (unsigned char)(from + 10 * j->rank + 100 * (k % 2)),
                      "message %d of rank %d, byte %zu is %d", k, from, i, buf[i]);
        }
    CHECK(j, ctn_comm_send_bytes(j->c, buf, 1, j->size) == CTN_EARG, "no such rank");
    CHECK(j, ctn_comm_recv_size(j->c, -1, &bytes) == CTN_EARG, "no such rank");
    CHECK(j, ctn_comm_send_bytes(j->c, NULL, 1, 0) == CTN_EARG, "no bytes");
    ctn_error_clear();
    free(buf);
}

static void messages_of_unknown_length(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        ctn_comm *c[MOST];
        open_all(c, ranks[i], NULL, NULL);
        on_all(c, ranks[i], messages, NULL);
        free_all(c, ranks[i]);
    }
}

static void *gather_once(void *p)
{
    ctn_comm *c = p;
    int mine = ctn_comm_rank(c), all[COUNTED_MOST];
    ctn_status st = ctn_comm_gather(c, &mine, sizeof mine, all, 0);
    if (st == CTN_OK) st = ctn_comm_scatter(c, all, sizeof mine, &mine, 0);
    return st == CTN_OK && mine == ctn_comm_rank(c) ? NULL : p;
}

/* What only the root needs costs the other ranks a constant amount, however many there are. */
static void cost_of_gather(void **state)
{
    (void)state;
    enum { NODE = 8 };
    static ctn_comm *c[COUNTED_MOST];
    for (int size = 16; size <= COUNTED_MOST; size *= 4) {
        ctn__net *net[COUNTED_MOST];
        pthread_t thread[COUNTED_MOST];
        int node[COUNTED_MOST];
        for (int r = 0; r < size; r++) node[r] = r / NODE * NODE;
        OK(ctn__net_loopback_nodes(net, size, node));
        counted_use(net, size);
        for (int r = 0; r < size; r++) OK(ctn__comm_new(&c[r], net[r], NULL));
        for (int r = 0; r < size; r++)
            assert_int_equal(pthread_create(&thread[r], NULL, gather_once, c[r]), 0);
        for (int r = 0; r < size; r++) {
            void *wrong_one;
            pthread_join(thread[r], &wrong_one);
            assert_null(wrong_one);
        }
        for (int r = 0; r < size; r++) {
            const int most = r == 0 ? NODE + size / NODE : r % NODE == 0 ? NODE : 1;
            assert_true(counted.sent[r] <= most && counted.received[r] <= most);
        }
        free_all(c, size);
    }
}

static void barriers(job *j)
{
    atomic_int *came = j->arg;
    for (int k = 1; k <= 20; k++) {
        atomic_fetch_add(came, 1);
        TRY(j, ctn_comm_barrier(j->c));
        int n = atomic_load(came);
        CHECK(j, n >= k * j->size, "barrier %d: %d of %d had arrived", k, n, k * j->size);
        TRY(j, ctn_comm_barrier(j->c));
    }
}

static void broadcast_allgather_barrier(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        ctn_comm *c[MOST];
        atomic_int came = 0;
        OK(ctn_comm_loopback(c, ranks[i], NULL));
        on_all(c, ranks[i], broadcasts, NULL);
        on_all(c, ranks[i], gathers, NULL);
        on_all(c, ranks[i], barriers, &came);
        assert_int_equal(came, 20 * ranks[i]);
        free_all(c, ranks[i]);
    }
}

/* ---- a rank that fails ---------------------------------------------------------------------- */

static void *tell(void *p)
{
    ctn_comm *c = p;
    ctn_comm_stats s = {.struct_size = sizeof s};
    do {
        ctn_comm_get_stats(c, &s);
        sched_yield();
    } while (!s.waiting);
    ctn_comm_fail(c, "rank 2 fell over");
    ctn_comm_fail(c, "another message");
    return NULL;
}

static void a_failure_ends_waits(void **state)
{
    (void)state;
    for (int a = 0; ctn_comm_algorithm_name(a) != NULL; a++) {
        ctn_comm *c[3];
        pthread_t thread;
        float x[1000] = {0};
        OK(ctn_comm_loopback(c, 3,
                             &(ctn_comm_opt){.struct_size = sizeof(ctn_comm_opt),
                                             .algorithm = ctn_comm_algorithm_name(a)}));
        assert_int_equal(pthread_create(&thread, NULL, tell, c[0]), 0);
        ctn_status st = a % 2 ? ctn_comm_barrier(c[0]) : ctn_comm_allreduce(c[0], x, 1000, CTN_F32);
        pthread_join(thread, NULL);
        assert_fails(st, CTN_EPEER, "rank 2 fell over");
        assert_fails(ctn_comm_allreduce(c[0], x, 1000, CTN_F32), CTN_EPEER, "rank 2 fell over");
        assert_fails(ctn_comm_barrier(c[0]), CTN_EPEER, "rank 2 fell over");
        assert_fails(ctn_comm_broadcast(c[0], x, 4, 0), CTN_EPEER, "rank 2 fell over");
        assert_fails(ctn_comm_allgather(c[0], x, 4, x), CTN_EPEER, "rank 2 fell over");
        free_all(c, 3);
    }
}

/* Messages about a failure that have arrived at a rank and were not read by it. */
static int unread(ctn_comm *c)
{
    char text[sizeof c->told];
    int n = 0;
    for (bool got = true; got; n += got)
        OK(c->net->vt->heard(c->net, CTN__TAG_FAILED, text, sizeof text, &got));
    return n;
}

/* If all ranks fail, each tells a few others. If one fails, all that are alive learn of it. */
static void a_failure_is_passed_on(void **state)
{
    (void)state;
    enum { RANKS = 32, SENDS = 10 }; /* 2 log2 RANKS */
    static const uint32_t dead[] = {0, 0x50, 0xffff0000, 0x0ff00ff0, 0xaaaaaa8a};
    ctn_comm *c[RANKS];
    int all = 0;
    OK(ctn_comm_loopback(c, RANKS, NULL));
    for (int r = 0; r < RANKS; r++) ctn_comm_break(c[r], "all of us");
    for (int r = 0; r < RANKS; r++) all += unread(c[r]);
    assert_in_range(all, 1, RANKS * SENDS);
    free_all(c, RANKS);
    for (size_t k = 0; k < sizeof dead / sizeof *dead; k++) {
        OK(ctn_comm_loopback(c, RANKS, NULL));
        ctn_comm_break(c[2], "only me");
        for (int turn = 0; turn < RANKS; turn++)
            for (int r = 0; r < RANKS; r++)
                if (!(dead[k] >> r & 1) && ctn__comm_listen(c[r]) < 0) ctn_error_clear();
        all = 0;
        for (int r = 0; r < RANKS; r++) {
            if (!(dead[k] >> r & 1)) assert_string_equal(c[r]->why + (r == 2 ? 0 : 8), "only me");
            all += unread(c[r]);
        }
        assert_in_range(all, 1, RANKS * SENDS);
        free_all(c, RANKS);
    }
}

static void a_rank_that_leaves_is_missed(void **state)
{
    (void)state;
    const char *name[] = {"ring", "flat", "rabenseifner"};
    for (int a = 0; a < 3; a++) {
        ctn_comm *c[2];
        float x[1000] = {0};
        OK(ctn_comm_loopback(c, 2,
                             &(ctn_comm_opt){.struct_size = sizeof(ctn_comm_opt),
                                             .algorithm = name[a]}));
        ctn_comm_free(c[1]);
        assert_fails(ctn_comm_allreduce(c[0], x, 1000, CTN_F32), CTN_EPEER, "rank 1 has left");
        ctn_comm_free(c[0]);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Six ranks on three nodes, given by the lowest rank of each one's node. */
static void nodes_and_local_ranks(void **state)
{
    (void)state;
    enum { RANKS = 6 };
    static const int map[RANKS] = {0, 1, 0, 3, 1, 0}, node[RANKS] = {0, 1, 0, 2, 1, 0};
    static const int local[RANKS] = {0, 0, 1, 0, 1, 2}, size[3] = {3, 2, 1};
    ctn_comm *c[RANKS];
    open_all(c, RANKS, map, NULL);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ctn_comm_nodes(c[r]), 3);
        assert_int_equal(ctn_comm_node(c[r]), node[r]);
        assert_int_equal(ctn_comm_local_rank(c[r]), local[r]);
        assert_int_equal(ctn_comm_local_size(c[r]), size[node[r]]);
        assert_int_equal(c[r]->place.lanes, 1); /* ranks of the smallest node */
        for (int k = 0; k < RANKS; k++) {
            const ctn__place *p = &c[r]->place;
            assert_int_equal(p->members[p->first[node[k]] + local[k]], k);
        }
    }
    free_all(c, RANKS);
}

/* Rows are the largest divisor up to the square root, unless they are given. */
static void rows_of_the_grid(void **state)
{
    (void)state;
    static const int rows[] = {0, 1, 1, 1, 2, 1, 2, 1}; /* by the number of ranks */
    for (int size = 1; size <= 7; size++) {
        ctn_comm *c[7];
        OK(ctn_comm_loopback(c, size, NULL));
        assert_int_equal(c[0]->place.rows, rows[size]);
        assert_int_equal(c[0]->place.cols, size / rows[size]);
        free_all(c, size);
    }
    ctn_comm *c[6];
    OK(ctn_comm_loopback(c, 6, &(ctn_comm_opt){.struct_size = sizeof(ctn_comm_opt), .rows = 3}));
    assert_true(c[5]->place.rows == 3 && c[5]->place.cols == 2);
    free_all(c, 6);
}

/* ---- refused calls --------------------------------------------------------------------------- */

static void wrong_arguments(void **state)
{
    (void)state;
    ctn_comm *c[3];
    float x[3] = {0};
    ctn_comm_opt opt = {.struct_size = sizeof opt};
    assert_fails(ctn_comm_loopback(c, 0, NULL), CTN_EARG, "0 ranks");
    opt.rows = 2;
    assert_fails(ctn_comm_loopback(c, 3, &opt), CTN_EARG, "rows is 2");
    opt = (ctn_comm_opt){.struct_size = sizeof opt, .algorithm = "bucket"};
    assert_fails(ctn_comm_loopback(c, 3, &opt), CTN_EARG, "bucket");
    opt = (ctn_comm_opt){.struct_size = sizeof opt, .wire = CTN_I32};
    assert_fails(ctn_comm_loopback(c, 3, &opt), CTN_EARG, "wire is i32");
    OK(ctn_comm_loopback(c, 3, NULL));
    assert_fails(ctn_comm_allreduce(c[0], x, 3, CTN_BF16), CTN_EDTYPE, "bf16");
    assert_fails(ctn_comm_allreduce(c[0], x, -1, CTN_F32), CTN_EARG, "-1");
    assert_fails(ctn_comm_broadcast(c[0], x, 4, 3), CTN_EARG, "root 3");
    assert_fails(ctn_comm_set_algorithm(c[0], "bucket"), CTN_EARG, "bucket");
    assert_true(ctn_comm_size(c[2]) == 3 && ctn_comm_rank(c[2]) == 2);
    assert_true(ctn_comm_nodes(c[2]) == 1 && ctn_comm_local_rank(c[2]) == 2);
    free_all(c, 3);
    open_all(c, 3, (const int[]){0, 1, 2}, NULL);
    assert_fails(ctn_comm_set_algorithm(c[0], "hierarchical"), CTN_EARG, "hierarchical");
    free_all(c, 3);
}

static void no_memory(void **state)
{
    (void)state;
    for (int left = 0;; left++) {
        ctn_comm *c[3];
        failing f = {.left = left};
        OK(ctn_set_allocator(&(ctn_allocator){failing_alloc, failing_release, &f}));
        ctn_status st = ctn_comm_loopback(c, 3, NULL);
        if (st == CTN_OK) free_all(c, 3);
        assert_int_equal(f.live, 0);
        OK(ctn_set_allocator(NULL));
        if (st == CTN_OK) break;
        assert_fails(st, CTN_ENOMEM, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_and_local_ranks),
        cmocka_unit_test(rows_of_the_grid),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(broadcast_allgather_barrier),
        cmocka_unit_test(gather_and_scatter),
        cmocka_unit_test(messages_of_unknown_length),
        cmocka_unit_test(cost_of_gather),
        cmocka_unit_test(a_failure_ends_waits),
        cmocka_unit_test(a_failure_is_passed_on),
        cmocka_unit_test(a_rank_that_leaves_is_missed),
        cmocka_unit_test(every_algorithm_and_type),
        cmocka_unit_test(every_algorithm_with_16_bits_on_the_wire),
        cmocka_unit_test(many_small_pieces),
        cmocka_unit_test(several_nodes),
        cmocka_unit_test(the_same_bits_everywhere),
        cmocka_unit_test(sixteen_bits_are_rounded_few_times),
        cmocka_unit_test(several_operations_at_once),
        cmocka_unit_test(ranks_agree_on_a_choice),
        cmocka_unit_test(sixteen_million),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
