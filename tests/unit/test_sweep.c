/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer sweeps (engine/sweep.h): kernels in every instruction set of the machine against a
 * naive reference in double precision, or against the same kernel in f64, which golden.optim
 * compares with PyTorch; bitwise equality over thread counts, instruction sets, offsets and
 * lengths; nothing is written outside of the segments; the norm and its check for finite values.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/isa.h"
#include "engine/sweep.h"

#define POOL 70000 /* floats: several shares, several blocks of the norm, not a multiple of 16 */
#define GUARD 12345.0f

static const char *const kind_name[] = {
    "sgd",      "momentum", "nesterov", "adam",     "amsgrad", "rmsprop", "rmsprop momentum",
    "centered", "graves",   "adagrad",  "adadelta", "adamax",  "nadam",   "lion",
    "bound",    "amsbound", "smorms3",  "msvag",    "lamb",    "gradient"};

typedef struct {
    float w[POOL], g[POOL], s1[POOL], s2[POOL], s3[POOL];
    uint16_t low[POOL];
} pools;

static pools start, one, two; /* inputs, and two results to compare */

static struct {
    double w[POOL], g[POOL], s1[POOL], s2[POOL], s3[POOL];
} wide, wide_two;

static uint32_t seed = 1;
static float uniform(float lo, float hi)
{
    seed = seed * 1664525u + 1013904223u;
    return lo + (hi - lo) * (float)(seed >> 8) / 16777216.0f;
}

static void fill(void)
{
    for (int64_t i = 0; i < POOL; i++) {
        start.w[i] = uniform(-1, 1);
        start.g[i] = uniform(-8, 8);
        start.s1[i] = uniform(-0.1f, 0.1f);
        start.s2[i] = uniform(0.01f, 1);
        start.s3[i] = uniform(0.01f, 1);
        start.low[i] = 0xdead;
    }
}

static ctn__sweep_pool view(pools *p)
{
    return (ctn__sweep_pool){p->w, p->g, p->s1, p->s2, p->s3, p->low, false};
}

static ctn__sweep_seg segment(int64_t begin, int64_t end, double lr, double decay, double keep)
{
    const int t = 3;
    return (ctn__sweep_seg){.begin = begin,
                            .end = end,
                            .gscale = 0.125f,
                            .lr = (float)(lr / (1 - pow(0.9, t))),
                            .decay = (float)decay,
                            .keep = (float)keep,
                            .beta1 = 0.9f,
                            .rest1 = 0.1f,
                            .beta2 = 0.999f,
                            .rest2 = 0.001f,
                            .bias2 = (float)(1 / sqrt(1 - pow(0.999, t))),
                            .eps = 1e-8f,
                            .lr2 = 0.02f,
                            .start = 0.25f,
                            .least = 0.01f,
                            .most = 0.3f,
                            .clip = 0.5f,
                            .lasso = 0.125f};
}

/* Coupled, decoupled and no decay; odd boundaries, a gap, an empty segment, one of a single
 * float. */
static int64_t make_segments(ctn__sweep_seg *seg)
{
    seg[0] = segment(5, 1003, 0.1, 0.01, 1);
    seg[1] = segment(1003, 1004, 0.2, 0, 0.99);
    seg[2] = segment(1004, 1004, 0.3, 0, 1);
    seg[3] = segment(1037, 40021, 0.05, 0, 1);
    seg[4] = segment(40021, POOL - 3, 0.01, 0.1, 0.999);
    return 5;
}

/* want: result in double; size: sum of absolute terms, to which the error of a float is
 * relative. */
static void check_near(float got, double want, double size, ctn__sweep_kind kind, const char *what,
                       int64_t i)
{
    if (!(fabs((double)got - want) <= 1e-6 * size))
        fail_msg("%s: %s[%lld] is %.9g, want %.9g", kind_name[kind], what, (long long)i,
                 (double)got, want);
}

static void check_element(ctn__sweep_kind kind, const ctn__sweep_seg *h, const pools *p, int64_t i)
{
    const double w = (double)start.w[i], lr = (double)h->lr;
    const double scaled = (double)h->gscale * (double)start.g[i], decayed = (double)h->decay * w;
    const double d = scaled + decayed, D = fabs(scaled) + fabs(decayed);
    const double b1 = (double)h->beta1, r1 = (double)h->rest1;
    const double b2 = (double)h->beta2, r2 = (double)h->rest2;
    const double m = b1 * (double)start.s1[i] + r1 * d, M = b1 * fabs((double)start.s1[i]) + r1 * D;
    const double v = b2 * (double)start.s2[i] + r2 * d * d,
                 V = b2 * (double)start.s2[i] + r2 * D * D;
    double step = lr * d, size = lr * D;

    if (kind != CTN__SWEEP_SGD) check_near(p->s1[i], m, M, kind, "s1", i);
    if (kind == CTN__SWEEP_MOMENTUM) {
        step = lr * m;
        size = lr * M;
    } else if (kind == CTN__SWEEP_NESTEROV) {
        step = lr * (d + b1 * m);
        size = lr * (D + b1 * M);
    } else if (kind == CTN__SWEEP_ADAM || kind == CTN__SWEEP_AMSGRAD) {
        double root = v;
        check_near(p->s2[i], v, V, kind, "s2", i);
        if (kind == CTN__SWEEP_AMSGRAD) {
            root = fmax(v, (double)start.s3[i]);
            check_near(p->s3[i], root, fmax(V, root), kind, "s3", i);
        }
        step = lr * m / (sqrt(root) * (double)h->bias2 + (double)h->eps);
        size = lr * M / (sqrt(root) * (double)h->bias2 + (double)h->eps);
    }
    check_near(p->w[i], (double)h->keep * w - step, fabs(w) + size, kind, "w", i);
}

static bool changes_gradients(ctn__sweep_kind kind)
{
    return kind == CTN__SWEEP_LAMB || kind == CTN__SWEEP_GRADIENT;
}

static void widen(void)
{
    for (int64_t i = 0; i < POOL; i++) {
        wide.w[i] = (double)start.w[i];
        wide.g[i] = (double)start.g[i];
        wide.s1[i] = (double)start.s1[i];
        wide.s2[i] = (double)start.s2[i];
        wide.s3[i] = (double)start.s3[i];
    }
}

/* The f64 kernel has the same bits on any number of threads, and the f32 kernel is near it. */
static void check_wide(ctn__sweep_kind kind, const ctn__sweep_seg *seg, int64_t segs,
                       const pools *p)
{
    ctn__sweep_pool at = {wide.w, wide.g, wide.s1, wide.s2, wide.s3, NULL, true};
    widen();
    ctn__sweep(kind, &at, seg, segs, 3);
    wide_two = wide;
    widen();
    ctn__sweep(kind, &at, seg, segs, 1);
    assert_memory_equal(&wide, &wide_two, sizeof wide);
    for (int64_t i = 0; i < POOL; i++) {
        check_near(p->w[i], wide.w[i], 10 * fmax(1, fabs(wide.w[i])), kind, "w", i);
        check_near(p->g[i], wide.g[i], 10 * fmax(1, fabs(wide.g[i])), kind, "g", i);
        check_near(p->s1[i], wide.s1[i], 10 * fmax(1, fabs(wide.s1[i])), kind, "s1", i);
        check_near(p->s2[i], wide.s2[i], 10 * fmax(1, fabs(wide.s2[i])), kind, "s2", i);
        check_near(p->s3[i], wide.s3[i], 10 * fmax(1, fabs(wide.s3[i])), kind, "s3", i);
    }
}

/* The nearer of the two neighbouring bfloat16 values, the even one at a tie. */
static uint16_t narrow_reference(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if (isnan(x)) return (uint16_t)((u >> 16) | 0x40u);
    if (isinf(x)) return (uint16_t)(u >> 16);
    uint32_t below = u & 0xffff0000u, rest = u & 0xffffu;
    if (rest > 0x8000u || (rest == 0x8000u && (below & 0x10000u))) below += 0x10000u;
    return (uint16_t)(below >> 16);
}

static void check_all(ctn__sweep_kind kind, const ctn__sweep_seg *seg, int64_t segs, const pools *p)
{
    int64_t next = 0; /* first float not checked yet */
    for (int64_t s = 0; s <= segs; s++) {
        int64_t begin = s < segs ? seg[s].begin : POOL, end = s < segs ? seg[s].end : POOL;
        for (; next < begin; next++) {
            assert_memory_equal(&p->w[next], &start.w[next], sizeof(float));
            assert_memory_equal(&p->s1[next], &start.s1[next], sizeof(float));
            assert_memory_equal(&p->s2[next], &start.s2[next], sizeof(float));
            assert_memory_equal(&p->s3[next], &start.s3[next], sizeof(float));
            assert_int_equal(p->low[next], 0xdead);
        }
        for (; next < end; next++) {
            if (kind <= CTN__SWEEP_AMSGRAD) check_element(kind, &seg[s], p, next);
            assert_int_equal(p->low[next], narrow_reference(p->w[next]));
        }
    }
    if (!changes_gradients(kind)) assert_memory_equal(p->g, start.g, sizeof start.g);
    check_wide(kind, seg, segs, p);
}

/* Calls f once for each instruction set that this machine has. */
static void each_isa(void (*f)(ctn__isa isa))
{
    for (int isa = CTN__ISA_PORTABLE; isa <= CTN__ISA_BEST; isa++)
        if (ctn__isa_limit((ctn__isa)isa) == (ctn__isa)isa) f((ctn__isa)isa);
    ctn__isa_limit(CTN__ISA_BEST);
}

static void kernels_of_isa(ctn__isa isa)
{
    ctn__sweep_seg seg[5];
    const int64_t segs = make_segments(seg);
    for (int kind = 0; kind < CTN__SWEEP_KINDS; kind++) {
        ctn__sweep_pool p = view(&one);
        /* If s1 is a second moment, it is positive, and larger than a square of s2. */
        const bool second = kind >= CTN__SWEEP_RMSPROP && kind <= CTN__SWEEP_ADADELTA;
        fill();
        for (int64_t i = 0; second && i < POOL; i++) start.s1[i] += 2;
        one = start;
        ctn__sweep((ctn__sweep_kind)kind, &p, seg, segs, 1);
        check_all((ctn__sweep_kind)kind, seg, segs, &one);
        for (int threads = 2; threads <= 3; threads++) {
            p = view(&two);
            two = start;
            ctn__sweep((ctn__sweep_kind)kind, &p, seg, segs, threads);
            assert_memory_equal(&one, &two, sizeof one);
        }
        ctn__isa_limit(CTN__ISA_PORTABLE);
        p = view(&two);
        two = start;
        ctn__sweep((ctn__sweep_kind)kind, &p, seg, segs, 1);
        ctn__isa_limit(isa);
        assert_memory_equal(&one, &two, sizeof one);
        p.low = NULL; /* the other code path: all of a segment at once */
        two = start;
        ctn__sweep((ctn__sweep_kind)kind, &p, seg, segs, 2);
        memcpy(two.low, one.low, sizeof two.low);
        assert_memory_equal(&one, &two, sizeof one);
    }
}

static void test_kernels(void **state)
{
    (void)state;
    each_isa(kernels_of_isa);
}

/* The same 100 values give the same bits at every offset and in every length, so body, epilogue
 * and tail of the vector loops agree. */
static void positions_of_isa(ctn__isa isa)
{
    (void)isa;
    for (int kind = 0; kind < CTN__SWEEP_KINDS; kind++) {
        ctn__sweep_pool a = view(&one), b = view(&two);
        ctn__sweep_seg seg = segment(0, 100, 0.1, 0.01, 0.99);
        one = start;
        ctn__sweep((ctn__sweep_kind)kind, &a, &seg, 1, 1);
        for (int64_t at = 0; at < 17; at++) {
            for (int64_t n = 0; n <= 100; n += n < 40 ? 1 : 13) {
                memcpy(two.w + at, start.w, sizeof(float) * 100);
                memcpy(two.g + at, start.g, sizeof(float) * 100);
                memcpy(two.s1 + at, start.s1, sizeof(float) * 100);
                memcpy(two.s2 + at, start.s2, sizeof(float) * 100);
                memcpy(two.s3 + at, start.s3, sizeof(float) * 100);
                two.w[at + n] = GUARD;
                seg.begin = at;
                seg.end = at + n;
                ctn__sweep((ctn__sweep_kind)kind, &b, &seg, 1, 1);
                assert_memory_equal(two.w + at, one.w, sizeof(float) * (size_t)n);
                assert_memory_equal(two.s1 + at, one.s1, sizeof(float) * (size_t)n);
                assert_memory_equal(two.s2 + at, one.s2, sizeof(float) * (size_t)n);
                assert_memory_equal(two.s3 + at, one.s3, sizeof(float) * (size_t)n);
                assert_memory_equal(two.low + at, one.low, sizeof(uint16_t) * (size_t)n);
                assert_true(two.w[at + n] == GUARD);
            }
        }
    }
}

static void test_positions(void **state)
{
    (void)state;
    fill();
    each_isa(positions_of_isa);
}

/* lr = 0 and g > 0 leave w unchanged (-0 too), so low shows the rounding alone: ties, carries,
 * overflow, infinity, NaN, denormals. */
static void narrow_of_isa(ctn__isa isa)
{
    static const uint32_t bits[] = {0x3f808000, 0x3f818000, 0x3f807fff, 0x3f808001, 0x3fffffff,
                                    0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fffffff,
                                    0xffffffff, 0x7f800001, 0x80000000, 0x00000001, 0x00018000,
                                    0x80ffffff, 0xbf808000};
    const int64_t n = (int64_t)(sizeof bits / sizeof *bits);
    ctn__sweep_pool p = view(&one);
    ctn__sweep_seg seg = segment(0, 37 * n, 0, 0, 1);
    (void)isa;
    one = start;
    for (int64_t i = 0; i < 37 * n; i++) {
        memcpy(&one.w[i], &bits[i % n], sizeof bits[0]);
        one.g[i] = 1;
    }
    ctn__sweep(CTN__SWEEP_SGD, &p, &seg, 1, 1);
    for (int64_t i = 0; i < 37 * n; i++) {
        float x;
        memcpy(&x, &bits[i % n], sizeof x);
        if (one.low[i] != narrow_reference(x))
            fail_msg("bfloat16 of %08x is %04x, want %04x", bits[i % n], one.low[i],
                     narrow_reference(x));
    }
}

static void test_narrow(void **state)
{
    (void)state;
    fill();
    each_isa(narrow_of_isa);
}

static void check_infinite_weight(ctn__isa isa)
{
    (void)isa;
    for (int kind = 0; kind < CTN__SWEEP_KINDS; kind++) {
        ctn__sweep_pool p = view(&one);
        ctn__sweep_seg seg = segment(0, 100, 0.1, 0, 1);
        one = start;
        if (kind == CTN__SWEEP_LAMB) continue; /* its update contains the parameter */
        one.w[3] = one.w[97] = -INFINITY;
        one.s1[3] = one.s1[97] = 0.5f; /* may be a second moment */
        ctn__sweep((ctn__sweep_kind)kind, &p, &seg, 1, 1);
        assert_true(isinf(one.w[3]) && isinf(one.w[97]));
    }
}

/* Without decay an infinite parameter (a mask) does not change. NaN reaches AMSGrad's maximum. */
static void test_special(void **state)
{
    (void)state;
    fill();
    each_isa(check_infinite_weight);
    ctn__sweep_pool p = view(&one);
    ctn__sweep_seg seg = segment(0, 100, 0.1, 0, 1);
    one = start;
    one.g[40] = NAN;
    ctn__sweep(CTN__SWEEP_AMSGRAD, &p, &seg, 1, 1);
    assert_true(isnan(one.s3[40]) && isnan(one.w[40]));
    ctn__sweep(CTN__SWEEP_AMSGRAD, &p, &seg, 0, 2); /* no segments */
}

static void norm_of_isa(ctn__isa isa)
{
    static const int64_t lengths[] = {0, 1, 15, 16, 17, 4095, 4096, 4097, 8192, 40001, POOL - 3};
    double partial[(POOL + CTN__SWEEP_BLOCK - 1) / CTN__SWEEP_BLOCK];
    bool finite;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        const int64_t n = lengths[k];
        const float *g = start.g + k % 4;
        double want = 0;
        for (int64_t i = 0; i < n; i++) want += (double)g[i] * (double)g[i];
        double got = ctn__sweep_norm2(g, false, n, partial, 1, &finite);
        assert_true(fabs(got - want) <= 1e-12 * want);
        assert_true(finite);
        for (int threads = 2; threads <= 3; threads++) {
            double other = ctn__sweep_norm2(g, false, n, partial, threads, &finite);
            assert_memory_equal(&got, &other, sizeof got);
        }
        ctn__isa_limit(CTN__ISA_PORTABLE);
        double other = ctn__sweep_norm2(g, false, n, partial, 2, &finite);
        ctn__isa_limit(isa);
        assert_memory_equal(&got, &other, sizeof got);
        widen();
        assert_true(ctn__sweep_norm2(wide.g + k % 4, true, n, partial, 2, &finite) == got);
        double dot = ctn__sweep_dot(g, start.w, false, n, partial, 1);
        assert_true(dot == ctn__sweep_dot(wide.g + k % 4, wide.w, true, n, partial, 3));
    }
    one = start;
    for (int64_t i = 0; i < POOL; i += 997) {
        const float bad[] = {INFINITY, -INFINITY, NAN};
        one.g[i] = bad[i % 3];
        ctn__sweep_norm2(one.g, false, POOL, partial, 2, &finite);
        assert_false(finite);
        one.g[i] = 3e38f; /* its square does not fit in a float */
    }
    ctn__sweep_norm2(one.g, false, POOL, partial, 2, &finite);
    assert_true(finite);
}

static void test_norm(void **state)
{
    (void)state;
    fill();
    each_isa(norm_of_isa);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels), cmocka_unit_test(test_positions),
        cmocka_unit_test(test_narrow),  cmocka_unit_test(test_special),
        cmocka_unit_test(test_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
