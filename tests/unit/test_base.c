/* SPDX-License-Identifier: Apache-2.0
 *
 * Unit tests of the base layer: errors, memory, arena, text, hash, random numbers, environment,
 * log, topology, floating-point mode (rule 16) and core claims (rule 17).
 */
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>

#include <cmocka.h>

#include <catena/env.h>
#include <catena/log.h>

#include "base/base.h"

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* An allocator that counts, and fails after `left` allocations (left < 0: never). */
typedef struct {
    int left, live;
    size_t last_align;
} failing;

static void *failing_alloc(void *user, size_t bytes, size_t align)
{
    failing *f = user;
    f->last_align = align;
    if (f->left == 0) return NULL;
    if (f->left > 0) f->left--;
    void *p = NULL;
    if (posix_memalign(&p, align, bytes) != 0) return NULL;
    f->live++;
    return p;
}

static void failing_release(void *user, void *p)
{
    failing *f = user;
    if (p != NULL) f->live--;
    free(p);
}

static void use_failing(failing *f, int left)
{
    *f = (failing){.left = left};
    ctn_allocator a = {failing_alloc, failing_release, f};
    assert_int_equal(ctn_set_allocator(&a), CTN_OK);
}

static void use_default(failing *f)
{
    assert_int_equal(f->live, 0);
    assert_int_equal(ctn_set_allocator(NULL), CTN_OK);
    ctn_error_clear();
}

static ctn_status inner(void)
{
    return ctn_fail(CTN_ESHAPE, "linear: x is (%d,%d)", 100, 783);
}

static ctn_status outer(void)
{
    CTN_TRY(inner());
    return CTN_OK;
}

static ctn_status silent(void)
{
    CTN_TRY(CTN_EIO);
    return CTN_OK;
}

static void test_error_record(void **state)
{
    (void)state;
    ctn_error_clear();
    assert_string_equal(ctn_error_message(), "");
    assert_int_equal(ctn_error_status(), CTN_OK);
    assert_int_equal(outer(), CTN_ESHAPE);
    assert_has(ctn_error_message(), "linear: x is (100,783)\n  at ");
    assert_has(ctn_error_message(), " outer");
    ctn_fail(CTN_EIO, "second");
    assert_int_equal(silent(), CTN_EIO);
    assert_null(strstr(ctn_error_message(), "second"));
    assert_null(strstr(ctn_error_message(), "silent"));
    assert_int_equal(ctn_error_status(), CTN_ESHAPE);
    ctn_error_clear();
    assert_int_equal(silent(), CTN_EIO);
    assert_has(ctn_error_message(), ctn_status_text(CTN_EIO));
    ctn_error_clear();
    assert_int_equal(ctn_fail(CTN_END, "not an error"), CTN_END);
    assert_string_equal(ctn_error_message(), "");
    assert_string_equal(ctn_status_text((ctn_status)-999), "unknown status");
    assert_int_equal(ctn_version(), CTN_VERSION);
    assert_string_equal(ctn_version_text(), "0.1.0");
}

/* Names from files must not control a terminal. */
static void test_error_clean(void **state)
{
    (void)state;
    ctn_error_clear();
    ctn_fail(CTN_EARG, "%s",
             "a\x1b[2Jb\x07\rc\x7f\xc2\x9b"
             "d\xff\xc3\xa9\n\te\xe2\x82");
    assert_string_equal(ctn_error_message(), "a?[2Jb??c???d?\xc3\xa9\n\te??");
    ctn_error_clear();
}

/* A name must not look like a line of ours; the trace of an error and prepared texts are lines. */
static void test_error_lines(void **state)
{
    (void)state;
    ctn_error_clear();
    ctn_fail(CTN_EARG, "'%s' is missing", "a\ndone\n\n  at file.c:1 f");
    assert_string_equal(ctn_error_message(), "'a done \n  at file.c:1 f' is missing");
    ctn_error_clear();
    ctn_fail(CTN_EARG, "%s", "a\nb");
    assert_string_equal(ctn_error_message(), "a\nb");
    ctn_error_clear();
}

static void test_error_overflow(void **state)
{
    (void)state;
    char big[5000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    ctn_error_clear();
    ctn_fail(CTN_EARG, "%s", big);
    size_t n = strlen(ctn_error_message());
    assert_true(n < 4096);
    assert_string_equal(ctn_error_message() + n - 4, "x...");
    for (int i = 0; i < 200; i++) ctn_error_trace(CTN_EARG, "some/file.c", i + 1, "function");
    assert_has(ctn_error_message(),
               "x...\n  at some/file.c:1 function\n  at some/file.c:2 function\n");
    assert_true(strlen(ctn_error_message()) < 4096);
    ctn_error_clear();
    ctn_fail(CTN_EARG, "short");
    ctn_error_trace(CTN_EARG, "some/file.c:7", 0, "op"); /* the name includes the line */
    assert_string_equal(ctn_error_message(), "short\n  at some/file.c:7 op");
    ctn_error_clear();
}

static void *other_thread(void *arg)
{
    ctn_fail(CTN_EIO, "in the other thread");
    *(int *)arg = ctn_error_status();
    return NULL;
}

static void test_error_per_thread(void **state)
{
    (void)state;
    pthread_t t;
    int seen = 0;
    ctn_error_clear();
    assert_int_equal(pthread_create(&t, NULL, other_thread, &seen), 0);
    pthread_join(t, NULL);
    assert_int_equal(seen, CTN_EIO);
    assert_int_equal(ctn_error_status(), CTN_OK);
}

static void test_alloc(void **state)
{
    (void)state;
    failing f;
    ctn_error_clear();
    use_failing(&f, -1);
    uint64_t before = ctn_allocations();
    void *p = ctn__malloc(0);
    assert_non_null(p);
    assert_int_equal(ctn_set_allocator(NULL), CTN_ESTATE);
    assert_has(ctn_error_message(), "1 blocks are still allocated");
    ctn_error_clear();
    char *q = ctn__aligned(100);
    assert_int_equal((uintptr_t)q % CTN__ALIGN, 0);
    assert_int_equal(f.last_align, CTN__ALIGN);
    char *z = ctn__calloc(10, 10);
    for (int i = 0; i < 100; i++) assert_int_equal(z[i], 0);
    memset(z, 7, 100);
    z = ctn__grow(z, 100, 1000);
    assert_int_equal(z[99], 7);
    assert_int_equal(ctn_allocations() - before, 4);
    assert_null(ctn__calloc(SIZE_MAX / 2, 3));
    assert_int_equal(ctn_error_status(), CTN_ENOMEM);
    f.left = 0;
    assert_null(ctn__grow(z, 1000, 2000));
    assert_int_equal(z[99], 7);
    assert_null(ctn__strdup("text"));
    assert_int_equal(ctn_allocations() - before, 4);
    ctn__free(p);
    ctn__free(q);
    ctn__free(z);
    ctn__free(NULL);
    use_default(&f);
    ctn_allocator half = {failing_alloc, NULL, NULL};
    assert_int_equal(ctn_set_allocator(&half), CTN_EARG);
    ctn_error_clear();
}

static void test_vec(void **state)
{
    (void)state;
    failing f;
    use_failing(&f, -1);
    CTN__VEC(int32_t) v = {0};
    for (int32_t i = 0; i < 1000; i++) assert_true(ctn__vec_push(&v, i));
    f.left = 0;
    int32_t pushed = 1000;
    while (ctn__vec_push(&v, pushed)) pushed++;
    assert_int_equal(v.n, pushed);
    assert_int_equal(v.n, v.cap);
    for (int32_t i = 0; i < pushed; i++) assert_int_equal(v.at[i], i);
    ctn__vec_free(&v);
    assert_null(v.at);
    use_default(&f);
}

static void test_arena(void **state)
{
    (void)state;
    failing f;
    use_failing(&f, -1);
    ctn__arena a = {0};
    ctn__arena_reset(&a);
    /* Two equal passes, with a large request between small ones. The second pass allocates
     * nothing and gets the same addresses. */
    void *seen[400];
    int blocks = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 400; i++) {
            size_t bytes = i == 200 ? 1000000 : 1000 + (size_t)i;
            unsigned char *p = ctn__arena_get(&a, bytes);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 16, 0);
            memset(p, i & 255, bytes);
            if (pass == 0) seen[i] = p;
            else assert_ptr_equal(seen[i], p);
        }
        if (pass == 0)
            for (int i = 0; i < 400; i++) {
                const unsigned char *p = seen[i];
                assert_int_equal(p[0], i & 255);
                assert_int_equal(p[999 + i], i & 255);
            }
        if (pass == 0) blocks = f.live;
        ctn__arena_reset(&a);
    }
    assert_int_equal(f.live, blocks);
    /* A large request comes first and takes the large chunk. The small chunks stay in use. */
    assert_non_null(ctn__arena_get(&a, 900000));
    for (int i = 0; i < 300; i++) assert_non_null(ctn__arena_get(&a, 1000));
    assert_int_equal(f.live, blocks);
    ctn__arena_reset(&a);
    assert_string_equal(ctn__arena_str(&a, "abc"), "abc");
    assert_string_equal(ctn__arena_printf(&a, "%s-%d", "x", 42), "x-42");
    char *z = ctn__arena_zero(&a, 100);
    for (int i = 0; i < 100; i++) assert_int_equal(z[i], 0);
    assert_null(ctn__arena_get(&a, SIZE_MAX));
    assert_null(ctn__arena_get(&a, SIZE_MAX - 20));
    f.left = 0;
    assert_null(ctn__arena_get(&a, 100000000));
    assert_int_equal(ctn_error_status(), CTN_ENOMEM);
    assert_non_null(ctn__arena_get(&a, 100));
    ctn__arena_free(&a);
    assert_null(a.first);
    use_default(&f);
}

static void test_text(void **state)
{
    (void)state;
    failing f;
    use_failing(&f, -1);
    ctn__text t = {0};
    ctn__text_add(&t, "%s", "");
    assert_string_equal(t.s, "");
    for (int i = 0; i < 1000; i++) ctn__text_add(&t, "%d,", i);
    assert_false(t.failed);
    assert_int_equal(t.n, strlen(t.s));
    assert_has(t.s, "0,1,2,3,");
    assert_has(t.s, "998,999,");
    f.left = 0;
    size_t n = t.n;
    ctn__text_add(&t, "%20000d", 1);
    assert_true(t.failed);
    assert_int_equal(strlen(t.s), n);
    ctn__text_free(&t);
    use_default(&f);
    assert_true(ctn__match("*", ""));
    assert_true(ctn__match("fc?.weight", "fc1.weight"));
    assert_true(ctn__match("*.bn*.weight", "layer1.0.bn2.weight"));
    assert_true(ctn__match("a*b*c", "aXbXbXc"));
    assert_false(ctn__match("a*b*c", "aXbXbX"));
    assert_false(ctn__match("fc?", "fc"));
    assert_false(ctn__match("", "x"));
    assert_true(ctn__match("", ""));
}

static void test_hash(void **state)
{
    (void)state;
    char data[3000];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 7);
    /* XXH3 128 of no bytes, from the xxHash specification. */
    ctn__hash128 none = ctn__hash(data, 0);
    assert_true(none.hi == 0x99aa06d3014798d8u && none.lo == 0x6001c324468d497fu);
    ctn__hasher *h = ctn__hasher_new();
    assert_non_null(h);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < sizeof data; i++) {
            if (i % 100 == 0) {
                ctn__hash128 a = ctn__hasher_value(h), b = ctn__hash(data, i);
                assert_true(a.lo == b.lo && a.hi == b.hi);
            }
            ctn__hasher_add(h, data + i, 1);
        }
        ctn__hasher_reset(h);
    }
    ctn__hasher_free(h);
    failing f;
    use_failing(&f, 0);
    assert_null(ctn__hasher_new());
    use_default(&f);
}

static void test_philox_known_answers(void **state)
{
    (void)state;
    /* Random123, kat_vectors: counter, key, result */
    static const uint32_t kat[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (int k = 0; k < 3; k++) {
        const uint32_t *v = kat[k];
        uint64_t lo = (uint64_t)v[1] << 32 | v[0], hi = (uint64_t)v[3] << 32 | v[2];
        ctn__rand4 r = ctn__philox((uint64_t)v[5] << 32 | v[4], hi, lo);
        assert_memory_equal(r.v, v + 6, sizeof r.v);
    }
}

static void test_distributions(void **state)
{
    (void)state;
    enum { N = 100000 };
    double u1 = 0, u2 = 0, n1 = 0, n2 = 0, n4 = 0, lag = 0, last = 0;
    for (uint64_t i = 0; i < N; i++) {
        double u = ctn__uniform(1, 2, i), x = ctn__normal(1, 3, i);
        assert_true(u >= 0 && u < 1);
        assert_true(isfinite(x));
        u1 += u;
        u2 += u * u;
        n1 += x;
        n2 += x * x;
        n4 += x * x * x * x;
        lag += x * last;
        last = x;
    }
    /* within about 4 standard errors */
    assert_true(fabs(u1 / N - 0.5) < 0.004);
    assert_true(fabs(u2 / N - 1.0 / 3) < 0.004);
    assert_true(fabs(n1 / N) < 0.013);
    assert_true(fabs(n2 / N - 1) < 0.018);
    assert_true(fabs(n4 / N - 3) < 0.13);
    assert_true(fabs(lag / N) < 0.013);
    assert_true(ctn__uniform(1, 2, 3) == ctn__uniform(1, 2, 3));
    assert_true(ctn__uniform(1, 2, 3) != ctn__uniform(1, 3, 3));
    assert_true(ctn__uniform(1, 2, 3) != ctn__uniform(2, 2, 3));
    assert_true(ctn__mix(1, 2) != ctn__mix(2, 1));
    assert_true(ctn__mix(0, 0) != 0);
}

typedef struct {
    int calls;
    char text[4096];
} captured;

static void capture(void *user, const char *message)
{
    captured *c = user;
    c->calls++;
    size_t n = strlen(c->text);
    snprintf(c->text + n, sizeof c->text - n, "%s\n", message);
}

static void test_env(void **state)
{
    (void)state;
    captured c = {0};
    ctn_set_log(capture, &c);
    unsetenv("CATENA_PLANS");
    assert_int_equal(ctn__env_int(CTN__ENV_PLANS), 512);
    setenv("CATENA_PLANS", "", 1);
    assert_int_equal(ctn__env_int(CTN__ENV_PLANS), 512);
    setenv("CATENA_PLANS", "17", 1);
    assert_int_equal(ctn__env_int(CTN__ENV_PLANS), 17);
    setenv("CATENA_FUSE", "Off", 1);
    assert_false(ctn__env_bool(CTN__ENV_FUSE));
    unsetenv("CATENA_FUSE");
    assert_true(ctn__env_bool(CTN__ENV_FUSE));
    setenv("CATENA_DATA", "/some/where", 1);
    assert_string_equal(ctn__env_str(CTN__ENV_DATA), "/some/where");
    assert_int_equal(c.calls, 0);
    ctn_env_entry e;
    for (int i = 0; i < ctn_env_count(); i++) {
        assert_int_equal(ctn_env_get(i, &e), CTN_OK);
        if (strcmp(e.name, "CATENA_PLANS") == 0) {
            assert_string_equal(e.type, "int");
            assert_string_equal(e.value, "17");
            assert_string_equal(e.source, "environment");
        } else if (strcmp(e.name, "CATENA_FUSE") == 0) {
            assert_string_equal(e.type, "bool");
            assert_string_equal(e.value, "1");
            assert_string_equal(e.source, "default");
        }
    }
    assert_int_equal(ctn_env_get(-1, &e), CTN_EARG);
    assert_int_equal(ctn_env_get(ctn_env_count(), &e), CTN_EARG);
    ctn_error_clear();
    setenv("CATENA_PLANS", "12x", 1);
    assert_int_equal(ctn__env_int(CTN__ENV_PLANS), 512);
    assert_int_equal(ctn__env_int(CTN__ENV_PLANS), 512);
    assert_int_equal(c.calls, 1);
    assert_has(c.text, "CATENA_PLANS=12x is not a valid int");
    setenv("CATENA_TREADS", "4", 1);
    ctn__env_check();
    ctn__env_check();
    assert_int_equal(c.calls, 2);
    assert_has(c.text, "CATENA_TREADS is set");
    ctn__warn("%s", "\x1b[31mred");
    assert_has(c.text, "?[31mred");
    ctn_set_log(NULL, NULL);
    ctn__warn("dropped");
    assert_int_equal(c.calls, 3);
    unsetenv("CATENA_TREADS");
    unsetenv("CATENA_PLANS");
    unsetenv("CATENA_DATA");
}

static void test_topology(void **state)
{
    (void)state;
    const ctn__topology *t = ctn__topology_get();
    assert_true(t->cores >= 1 && t->cpus >= t->cores && t->numa >= 1);
    assert_int_equal(t->cpus, omp_get_num_procs());
    const char *from = NULL;
    char *omp = getenv("OMP_NUM_THREADS");
    char *kept = omp != NULL ? strdup(omp) : NULL;
    unsetenv("CATENA_THREADS");
    unsetenv("OMP_NUM_THREADS");
    assert_int_equal(ctn__default_threads(&from), t->cores);
    assert_string_equal(from, "physical cores of the cpuset");
    setenv("OMP_NUM_THREADS", "3,2", 1);
    assert_int_equal(ctn__default_threads(&from), 3);
    assert_string_equal(from, "OMP_NUM_THREADS");
    setenv("CATENA_THREADS", "5", 1);
    assert_int_equal(ctn__default_threads(&from), 5);
    assert_string_equal(from, "CATENA_THREADS");
    setenv("CATENA_THREADS", "-5", 1);
    setenv("OMP_NUM_THREADS", "many", 1);
    assert_int_equal(ctn__default_threads(NULL), t->cores);
    unsetenv("CATENA_THREADS");
    unsetenv("OMP_NUM_THREADS");
    if (kept != NULL) setenv("OMP_NUM_THREADS", kept, 1);
    free(kept);
}

#if defined(__SSE2__)
#include <xmmintrin.h>
static unsigned fp_now(void)
{
    return _mm_getcsr();
}
static void fp_put(unsigned v)
{
    _mm_setcsr(v);
}
/* A different rounding mode and different flags per thread. */
static unsigned fp_odd(int thread)
{
    return 0x1f80u | (unsigned)(thread & 3) << 13 | (unsigned)(thread & 1);
}
enum { FLUSHES = 1 };
#elif defined(__aarch64__)
static unsigned fp_now(void)
{
    uint64_t v;
    __asm__ volatile("mrs %0, fpcr" : "=r"(v));
    return (unsigned)v;
}
static void fp_put(unsigned v)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)v));
}
static unsigned fp_odd(int thread)
{
    return (unsigned)(thread & 3) << 22;
}
enum { FLUSHES = 1 };
#else
#include <fenv.h>
static unsigned fp_now(void)
{
    return (unsigned)fegetround();
}
static void fp_put(unsigned v)
{
    fesetround((int)v);
}
static unsigned fp_odd(int thread)
{
    return thread & 1 ? FE_TOWARDZERO : FE_TONEAREST;
}
enum { FLUSHES = 0 };
#endif

/* Rule 16: every thread computes with flush-to-zero inside and gets its own mode back outside. */
static void test_fpmode(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    unsigned after[THREADS] = {0}, host = fp_now();
    float product[THREADS] = {0};
    int team = 0; /* fewer than THREADS under OMP_THREAD_LIMIT */
    volatile float tiny = 1e-30f;
    ctn__fpmode *m = ctn__fpmode_new(THREADS);
    assert_non_null(m);
    uint64_t before = ctn_allocations();
    int dynamic = omp_get_dynamic();
    omp_set_dynamic(1);
    ctn__fpmode_enter(m);
    assert_int_equal(omp_get_dynamic(), 0);
    ctn__fpmode_leave(m);
    assert_int_equal(omp_get_dynamic(), 1);
    omp_set_dynamic(0);
    for (int underflow = 0; underflow < 2; underflow++) {
#pragma omp parallel num_threads(THREADS)
        {
            fp_put(fp_odd(omp_get_thread_num()));
#pragma omp master
            team = omp_get_num_threads();
        }
        ctn__fpmode_enter(m);
#pragma omp parallel num_threads(THREADS)
        {
            int i = omp_get_thread_num();
            volatile float scale = underflow != 0 && i == team - 1 ? 1e-12f : 1.0f;
            product[i] = tiny * scale;
        }
        bool seen = ctn__fpmode_leave(m);
#pragma omp parallel num_threads(THREADS)
        after[omp_get_thread_num()] = fp_now();
        for (int i = 0; i < team; i++) assert_int_equal(after[i], fp_odd(i));
#pragma omp parallel num_threads(THREADS)
        fp_put(host);
        assert_int_equal(seen, underflow);
        if (FLUSHES && underflow) assert_true(product[team - 1] == 0.0f);
    }
    /* The other threads only join the team of leave, and get the mode of the first. */
#pragma omp parallel num_threads(2)
    {
#pragma omp master
        ctn__fpmode_enter(m);
    }
    (void)ctn__fpmode_leave(m);
#pragma omp parallel num_threads(THREADS)
    after[omp_get_thread_num()] = fp_now();
    for (int i = 0; i < team; i++) assert_int_equal(after[i], host);
    /* Flags that the host raised before are neither counted nor lost. */
    volatile float lost = tiny * tiny;
    unsigned flagged = fp_now();
    ctn__fpmode_enter(m);
    assert_false(ctn__fpmode_leave(m));
    assert_int_equal(fp_now(), flagged);
    (void)lost;
    fp_put(host);
    assert_int_equal(ctn_allocations(), before);
    omp_set_dynamic(dynamic);
    ctn__fpmode_free(m);
    assert_null(ctn__fpmode_new(0));
    ctn_error_clear();
}

/* Rule 17: runs on common cores take turns, runs on disjoint cores overlap. */
typedef struct {
    ctn__coreset cores;
    atomic_int *inside, *worst;
} claimer;

static void *claim_often(void *arg)
{
    claimer *c = arg;
    for (int i = 0; i < 2000; i++) {
        ctn__cores_claim(&c->cores);
        int now = atomic_fetch_add(c->inside, 1) + 1;
        if (now > atomic_load(c->worst)) atomic_store(c->worst, now);
        atomic_fetch_sub(c->inside, 1);
        ctn__cores_release(&c->cores);
    }
    return NULL;
}

static void *claim_and_tell(void *arg)
{
    claimer *c = arg;
    ctn__cores_claim(&c->cores);
    atomic_fetch_add(c->inside, 1);
    ctn__cores_release(&c->cores);
    return NULL;
}

static void sleep_ms(long ms)
{
    struct timespec t = {0, ms * 1000000};
    nanosleep(&t, NULL);
}

static void test_cores(void **state)
{
    (void)state;
    atomic_int inside = 0, worst = 0;
    pthread_t t[4];
    claimer all = {.inside = &inside, .worst = &worst};
    memset(&all.cores, 0xff, sizeof all.cores);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, claim_often, &all), 0);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    assert_int_equal(worst, 1);

    claimer low = {.cores = {{1}}, .inside = &inside, .worst = &worst};
    claimer high = {.cores = {{[15] = 1}}, .inside = &inside, .worst = &worst};
    ctn__cores_claim(&low.cores);
    ctn__cores_claim(&high.cores); /* disjoint: does not wait */
    ctn__cores_release(&high.cores);
    /* A claim of all cores waits for low. A later claim of high queues after it. */
    assert_int_equal(pthread_create(&t[0], NULL, claim_and_tell, &all), 0);
    while (ctn__cores_waiting() < 1) sleep_ms(1);
    assert_int_equal(pthread_create(&t[1], NULL, claim_and_tell, &high), 0);
    while (ctn__cores_waiting() < 2 && inside == 0) sleep_ms(1);
    assert_int_equal(inside, 0);
    ctn__cores_release(&low.cores);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    assert_int_equal(inside, 2);
}

static void test_clock(void **state)
{
    (void)state;
    uint64_t a = ctn__now_ns();
    sleep_ms(2);
    assert_true(ctn__now_ns() - a >= 2000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_record),
        cmocka_unit_test(test_error_clean),
        cmocka_unit_test(test_error_overflow),
        cmocka_unit_test(test_error_lines),
        cmocka_unit_test(test_error_per_thread),
        cmocka_unit_test(test_alloc),
        cmocka_unit_test(test_vec),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_philox_known_answers),
        cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_env),
        cmocka_unit_test(test_topology),
        cmocka_unit_test(test_fpmode),
        cmocka_unit_test(test_cores),
        cmocka_unit_test(test_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
