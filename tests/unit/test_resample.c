/* SPDX-License-Identifier: Apache-2.0
 *
 * Resampling of pixels: every type, layout, mirroring, enlargement and reduction against a naive
 * resampler in double, and the instruction sets against each other.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/image/image.h"
#include "engine/isa.h"
#include "support/ok.h"

/* Smooth, with a few edges, and different in every corner. */
static uint8_t shade(int64_t x, int64_t y, int c, int64_t w, int64_t h)
{
    double u = (double)x / (double)w, v = (double)y / (double)h;
    double s = 128 + 60 * sin(7 * u + c) + 50 * cos(5 * v + 2 * c) + (u + v > 1.2 ? 15 : 0);
    return (uint8_t)(s < 0 ? 0 : s > 255 ? 255 : s);
}

static uint8_t *picture(int64_t w, int64_t h, int channels)
{
    uint8_t *p = malloc((size_t)(w * h * channels));
    assert_non_null(p);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            for (int c = 0; c < channels; c++) p[(y * w + x) * channels + c] = shade(x, y, c, w, h);
    return p;
}

/* ---- resampling ------------------------------------------------------------------------------ */

static double weight(double at, double centre, double support)
{
    double d = fabs(at - centre) / support;
    return d < 1 ? 1 - d : 0;
}

/* Value c of the view's pixel (i,j), directly from the definition. */
static double naive(const ctn__pixels *p, const ctn__view *v, int64_t i, int64_t j, int c)
{
    if (v->mirror_x) i = v->dst.w - 1 - i;
    if (v->mirror_y) j = v->dst.h - 1 - j;
    double sx = v->w / (double)v->dst.w, sy = v->h / (double)v->dst.h;
    double cx = v->x + ((double)i + 0.5) * sx, cy = v->y + ((double)j + 0.5) * sy;
    double rx = sx > 1 ? sx : 1, ry = sy > 1 ? sy : 1, sum = 0, all = 0;
    const ctn__rect *l = &v->limit;
    for (int64_t y = l->y; y < l->y + l->h; y++) {
        double wy = weight((double)y + 0.5, cy, ry);
        if (wy == 0) continue;
        for (int64_t x = l->x; x < l->x + l->w; x++) {
            double w = wy * weight((double)x + 0.5, cx, rx);
            int64_t at = (y - p->part.y) * p->part.w + x - p->part.x;
            if (w > 0) sum += w * p->at[at * p->channels + c];
            all += w;
        }
    }
    return sum / all;
}

static double value_at(const ctn_image_opt *o, const void *dst, int C, int64_t x, int64_t y, int c)
{
    int64_t at =
        o->channels_last ? (y * o->width + x) * C + c : ((int64_t)c * o->height + y) * o->width + x;
    return o->raw ? ((const uint8_t *)dst)[at] : ((const float *)dst)[at];
}

/* Jitter goes through planes of floats; one of 1e-12 changes nothing. */
static void check_jittered(const ctn__pixels *p, const ctn__view *v, ctn_image_opt o, double jitter)
{
    int C = p->channels;
    o.struct_size = sizeof o;
    o.gray = C == 1;
    OK(ctn__image_opt("test", &o,
                      &(ctn_image_opt){.struct_size = sizeof o,
                                       .height = o.height,
                                       .width = o.width,
                                       .raw = o.raw,
                                       .channels_last = o.channels_last,
                                       .brightness = jitter,
                                       .mean = {0.4, 0.5, 0.6},
                                       .std = {0.2, 0.3, 0.4}},
                      0, 0));
    float *dst = malloc((size_t)(o.height * o.width * C) * sizeof *dst);
    assert_non_null(dst);
    OK(ctn__resample(&o, &(ctn_sample){0}, p, v, dst));
    for (int c = 0; c < C; c++)
        for (int64_t y = 0; y < o.height; y++)
            for (int64_t x = 0; x < o.width; x++) {
                int64_t i = x - v->dst.x, j = y - v->dst.y;
                bool in = i >= 0 && i < v->dst.w && j >= 0 && j < v->dst.h;
                double want = in ? naive(p, v, i, j, c) : 0;
                if (!o.raw) want = (want / 255 - o.mean[c]) / o.std[c];
                double got = value_at(&o, dst, C, x, y, c);
                if (fabs(got - want) > (o.raw ? 0.5001 : 2e-5))
                    fail_msg("(%d,%d,%d) is %.7g, expected %.7g", c, (int)y, (int)x, got, want);
            }
    free(dst);
}

static void check_view(const ctn__pixels *p, const ctn__view *v, ctn_image_opt o)
{
    check_jittered(p, v, o, 0);
    check_jittered(p, v, o, 1e-12);
}

static void test_resample(void **state)
{
    (void)state;
    static const struct {
        int64_t w, h; /* of the picture */
        ctn__view v;
        int64_t height, width;
    } cases[] = {
        {40, 30, {0, 0, 40, 30, {0, 0, 40, 30}, {0, 0, 40, 30}, false, false}, 30, 40},
        {40, 30, {0, 0, 40, 30, {0, 0, 40, 30}, {0, 0, 17, 11}, true, false}, 11, 17},
        {40, 30, {5, 7, 20, 10, {5, 7, 20, 10}, {0, 0, 33, 41}, false, true}, 41, 33},
        {97, 83, {3.25, 7.5, 80.5, 70.25, {0, 0, 97, 83}, {0, 0, 9, 7}, true, true}, 7, 9},
        {97, 83, {3, 7, 80, 70, {3, 7, 80, 70}, {2, 3, 20, 30}, true, false}, 35, 24},
        {200, 3, {0, 0, 200, 3, {0, 0, 200, 3}, {0, 0, 1, 8}, false, false}, 8, 1},
        {1, 1, {0, 0, 1, 1, {0, 0, 1, 1}, {0, 0, 5, 4}, false, false}, 4, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int kind = 0; kind < 8; kind++) {
            int C = kind & 1 ? 1 : 3;
            ctn__pixels p = {picture(cases[i].w, cases[i].h, C), {0, 0, cases[i].w, cases[i].h}, C};
            check_view(&p, &cases[i].v,
                       (ctn_image_opt){.height = cases[i].height,
                                       .width = cases[i].width,
                                       .raw = kind & 2,
                                       .channels_last = kind & 4});
            free(p.at);
        }
}

/* All instruction sets give the same bits. */
static void test_kernels(void **state)
{
    (void)state;
#if defined(__x86_64__)
    const ctn__resample_kernels *best = &ctn__resample_avx2;
    if (!__builtin_cpu_supports("avx2")) return;
#elif defined(__aarch64__)
    const ctn__resample_kernels *best = &ctn__resample_sve;
    if (ctn__sve_bits() == 0) return;
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    enum { N = 301, TAPS = 9 };
    static uint8_t rows[TAPS][N];
    const uint8_t *src[TAPS];
    float w[N * TAPS], a[N], b[N], oa[4 * 100], ob[4 * 100];
    int32_t first[100];
    for (int k = 0; k < TAPS; k++) {
        src[k] = rows[k];
        for (int i = 0; i < N; i++) rows[k][i] = (uint8_t)(37 * i + 91 * k * k);
    }
    for (int i = 0; i < N * TAPS; i++) w[i] = (float)((i * 7919) % 1000) / 3000.0f;
    for (int i = 0; i < 100; i++) first[i] = i * 9 / 10;
    for (int taps = 1; taps <= TAPS; taps++) {
        ctn__resample_portable.vertical(a, src, w, taps, N);
        best->vertical(b, src, w, taps, N);
        assert_memory_equal(a, b, sizeof a);
        for (int c = 1; c <= 3; c += 2) {
            int64_t n = c == 1 ? 100 : 90;
            ctn__resample_portable.horizontal(oa, a, first, w, taps, n, c);
            best->horizontal(ob, a, first, w, taps, n, c);
            assert_memory_equal(oa, ob, (size_t)(c == 1 ? n : 4 * n) * sizeof *oa);
        }
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resample),
        cmocka_unit_test(test_kernels),
    };
    return cmocka_run_group_tests_name("resample", tests, NULL, NULL);
}
