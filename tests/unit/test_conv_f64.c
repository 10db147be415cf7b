/* SPDX-License-Identifier: Apache-2.0
 *
 * f64 convolutions (ops/common/conv_f64*.c) against plain loops: random sizes, strides, padding,
 * dilation and groups, some across the edges of blocks and chunks, every instruction set of the
 * machine. The bits do not depend on the thread count.
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
#include "ops/common/conv_f64.h"

typedef ctn__conv_f64_problem problem;

static uint32_t seed = 1;

static int64_t draw(int64_t low, int64_t high)
{
    seed = seed * 1664525u + 1013904223u;
    return low + (int64_t)(seed >> 8) % (high - low + 1);
}

static double *numbers(int64_t n)
{
    double *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i <= n; i++) x[i] = (double)draw(-1000, 1000) / 1000;
    return x;
}

/* Sizes up to `most` in each dimension; y follows from the others. */
static problem random_problem(int64_t most, int64_t channels)
{
    problem p = {.N = draw(1, 3), .G = draw(0, 3) ? 1 : 2, .taps = 1, .image = {1, 1}};
    p.Ig = draw(1, channels);
    p.Og = draw(1, channels);
    const int missing = (int)draw(0, 2);
    for (int i = 0; i < 3; i++) {
        const bool used = i >= missing;
        p.w[i] = used ? draw(1, 4) : 1;
        p.stride[i] = used ? draw(1, 3) : 1;
        p.dilation[i] = used ? draw(1, 2) : 1;
        p.pad[i] = used ? draw(0, 3) : 0;
        const int64_t reach = (p.w[i] - 1) * p.dilation[i] + 1, end = used ? draw(0, 2) : 0;
        p.x[i] = used ? draw(1, i == 0 ? 6 : most) : 1;
        if (p.x[i] + p.pad[i] + end < reach) p.x[i] = reach;
        p.y[i] = (p.x[i] + p.pad[i] + end - reach) / p.stride[i] + 1;
        p.taps *= p.w[i];
        p.image[0] *= p.x[i];
        p.image[1] *= p.y[i];
    }
    return p;
}

/* Adds every product of an element of x, one of w and one of y to what stands for NULL's place. */
static void plain(const problem *p, const double *x, const double *w, const double *y, double *to)
{
    const int64_t Ig = p->Ig, Og = p->Og;
    for (int64_t n = 0; n < p->N * p->G; n++)
        for (int64_t o = 0; o < Og; o++)
            for (int64_t q = 0; q < p->image[1]; q++)
                for (int64_t t = 0; t < p->taps; t++) {
                    const int64_t k[3] = {t / p->w[2] / p->w[1], t / p->w[2] % p->w[1],
                                          t % p->w[2]};
                    const int64_t m[3] = {q / p->y[2] / p->y[1], q / p->y[2] % p->y[1],
                                          q % p->y[2]};
                    int64_t at = 0;
                    bool inside = true;
                    for (int i = 0; i < 3; i++) {
                        const int64_t v = m[i] * p->stride[i] - p->pad[i] + k[i] * p->dilation[i];
                        inside &= v >= 0 && v < p->x[i];
                        at = at * p->x[i] + v;
                    }
                    for (int64_t c = 0; inside && c < Ig; c++) {
                        const int64_t ix = (n * Ig + c) * p->image[0] + at;
                        const int64_t iw = ((n % p->G * Og + o) * Ig + c) * p->taps + t;
                        const int64_t iy = (n * Og + o) * p->image[1] + q;
                        if (!y) to[iy] += x[ix] * w[iw];
                        else if (!x) to[ix] += y[iy] * w[iw];
                        else to[iw] += x[ix] * y[iy];
                    }
                }
}

static void run(problem *p, ctn__conv_kind kind, int threads, const double *x, const double *w,
                const double *y, double *to)
{
    p->kind = kind;
    p->threads = threads;
    p->tile = ctn__f64_tile_best();
    p->cols = (int64_t)p->tile.vectors * p->tile.lanes;
    ctn__conv_f64_room r = {0};
    for (int pass = 0; pass < 2; pass++) {
        if (kind == CTN__CONV_WEIGHTS) ctn__conv_f64_weights(p, x, y, to, &r);
        else ctn__conv_f64_image(p, x ? x : y, w, NULL, false, to, &r);
        if (pass == 0) {
            const size_t used = r.used;
            r = (ctn__conv_f64_room){.base = malloc(used + 8)};
            assert_non_null(r.base);
            memset(r.base, 0xff, used); /* NaN */
        }
    }
    free(r.base);
}

static void check(problem *p, ctn__conv_kind kind)
{
    const int64_t nx = p->N * p->G * p->Ig * p->image[0], ny = p->N * p->G * p->Og * p->image[1];
    const int64_t nw = p->G * p->Og * p->Ig * p->taps;
    const int64_t n = kind == CTN__CONV_FORWARD ? ny : kind == CTN__CONV_DATA ? nx : nw;
    double *x = numbers(nx), *w = numbers(nw), *y = numbers(ny);
    double *want = calloc((size_t)n + 1, sizeof *want), *got = numbers(n), *other = numbers(n);
    assert_non_null(want);
    const double *gx = kind == CTN__CONV_DATA ? NULL : x;
    const double *gw = kind == CTN__CONV_WEIGHTS ? NULL : w;
    const double *gy = kind == CTN__CONV_FORWARD ? NULL : y;
    plain(p, gx, gw, gy, want);
    run(p, kind, 1, gx, gw, gy, got);
    run(p, kind, 3, gx, gw, gy, other);
    assert_memory_equal(got, other, (size_t)n * sizeof *got);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-12 * (1 + fabs(want[i]))))
            fail_msg("kind %d, element %lld: %.17g instead of %.17g (x %lldx%lldx%lld, "
                     "w %lldx%lldx%lld, %lld to %lld channels)",
                     (int)kind, (long long)i, got[i], want[i], (long long)p->x[0],
                     (long long)p->x[1], (long long)p->x[2], (long long)p->w[0], (long long)p->w[1],
                     (long long)p->w[2], (long long)p->Ig, (long long)p->Og);
    free(x);
    free(w);
    free(y);
    free(want);
    free(got);
    free(other);
}

static void random_sizes(void **state)
{
    (void)state;
    for (int isa = CTN__ISA_PORTABLE; isa <= CTN__ISA_BEST; isa++) {
        if (ctn__isa_limit((ctn__isa)isa) != (ctn__isa)isa) break;
        for (int i = 0; i < 80; i++) {
            problem p = random_problem(i % 8 ? 12 : 40, i % 8 ? 40 : 12);
            for (int kind = 0; kind < 3; kind++) check(&p, (ctn__conv_kind)kind);
        }
    }
    ctn__isa_limit(CTN__ISA_BEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
