/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixup and cutmix of a batch: every pixel is the documented mixture of its two images, labels
 * have the same shares, the shares follow the beta distribution, and the choice depends on the
 * batch only.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "data/mix.h"

enum { C = 3, H = 12, W = 16, SIZE = C * H * W, MOST = 7, CLASSES = 9 };

static const ctn_field image = {.dtype = CTN_F32, .ndim = 3, .shape = {C, H, W}};

static float pixel(int64_t n, int64_t i)
{
    return (float)(n * SIZE + i);
}

/* Mixes n images and their labels 0, 1, ... according to the options. */
static void mix(const ctn_mix_opt *o, const ctn_field *f, int64_t n, uint64_t position, float *x,
                float *parts)
{
    int64_t labels[MOST];
    for (int64_t k = 0; k < n; k++) {
        labels[k] = k;
        for (int64_t i = 0; i < SIZE; i++) x[k * SIZE + i] = pixel(k, i);
    }
    ctn_sampler_state at = {.seed = 3, .epoch = 2, .position = position};
    assert_int_equal(ctn__mix_batch(o, &at, n, f, x, labels, parts), CTN_OK);
}

/* The share of its own image in the label of image k. The rest must belong to the partner. */
static double part_of(const float *parts, int64_t n, int64_t k)
{
    const float *p = parts + k * CLASSES;
    double sum = 0;
    for (int c = 0; c < CLASSES; c++) {
        assert_true(p[c] >= 0 && (p[c] == 0 || c == k || c == n - 1 - k));
        sum += p[c];
    }
    assert_true(fabs(sum - 1) < 1e-6);
    return p[k];
}

static void test_mixup(void **state)
{
    (void)state;
    static float x[MOST * SIZE], parts[MOST * CLASSES];
    const ctn_mix_opt o = {.mixup = 1, .classes = CLASSES};
    for (int64_t n = 1; n <= MOST; n++)
        for (uint64_t at = 0; at < 20; at++) {
            mix(&o, &image, n, at, x, parts);
            for (int64_t k = 0; k < n; k++) {
                double part = part_of(parts, n, k);
                for (int64_t i = 0; i < SIZE; i++) {
                    double want = part * pixel(k, i) + (1 - part) * pixel(n - 1 - k, i);
                    assert_true(fabs(x[k * SIZE + i] - want) < 1e-2);
                }
            }
        }
}

static void test_cutmix(void **state)
{
    (void)state;
    static float x[MOST * SIZE], parts[MOST * CLASSES];
    const ctn_mix_opt o = {.cutmix = 1, .classes = CLASSES};
    int cuts = 0;
    for (int last = 0; last < 2; last++)
        for (uint64_t at = 0; at < 50; at++) {
            ctn_field f = image;
            f.channels_last = last;
            mix(&o, &f, 6, at, x, parts);
            for (int64_t k = 0; k < 6; k++) {
                int64_t x0 = W, x1 = -1, y0 = H, y1 = -1, foreign = 0;
                for (int64_t i = 0; i < SIZE; i++) {
                    int64_t px = last ? i / C % W : i % W, py = last ? i / C / W : i / W % H;
                    float v = x[k * SIZE + i];
                    if (v == pixel(k, i)) continue;
                    assert_true(v == pixel(5 - k, i));
                    foreign++;
                    x0 = px < x0 ? px : x0;
                    x1 = px > x1 ? px : x1;
                    y0 = py < y0 ? py : y0;
                    y1 = py > y1 ? py : y1;
                }
                /* One box in all channels, with the share that the label has. */
                if (foreign) assert_int_equal(foreign, (x1 - x0 + 1) * (y1 - y0 + 1) * C);
                assert_true(fabs(part_of(parts, 6, k) - (1 - (double)foreign / SIZE)) < 1e-6);
                cuts += foreign > 0;
            }
        }
    assert_true(cuts > 300);
}

/* Mean 1/2 and variance 1 / (4 (2a + 1)), for shapes on both sides of 1 and very small. */
static void test_distribution(void **state)
{
    (void)state;
    static const double shapes[] = {1e-3, 0.2, 1, 4};
    enum { N = 20000 };
    const ctn_field one = {.dtype = CTN_F32, .ndim = 3, .shape = {1, 1, 1}};
    for (int s = 0; s < 4; s++) {
        double sum = 0, square = 0;
        for (uint64_t i = 0; i < N; i++) {
            float x[2] = {1, 0}, parts[4];
            ctn_sampler_state at = {.seed = 1, .position = i};
            ctn_mix_opt o = {.mixup = shapes[s], .classes = 2};
            assert_int_equal(ctn__mix_batch(&o, &at, 2, &one, x, (int64_t[]){0, 1}, parts), CTN_OK);
            assert_true(parts[0] >= 0 && parts[0] <= 1 && fabsf(x[0] - parts[0]) < 1e-6f);
            sum += parts[0];
            square += (parts[0] - 0.5) * (parts[0] - 0.5);
        }
        double variance = 1 / (4 * (2 * shapes[s] + 1));
        assert_true(fabs(sum / N - 0.5) < 0.015);
        if (fabs(square / N / variance - 1) > 0.03)
            fail_msg("shape %g: variance %g, expected %g", shapes[s], square / N, variance);
    }
}

static void test_choice(void **state)
{
    (void)state;
    static float a[MOST * SIZE], b[MOST * SIZE], pa[MOST * CLASSES], pb[MOST * CLASSES];
    const ctn_mix_opt both = {.mixup = 1, .cutmix = 1, .classes = CLASSES};
    int cut = 0, other = 0;
    for (uint64_t at = 0; at < 200; at++) {
        mix(&both, &image, 4, at, a, pa);
        mix(&both, &image, 4, at, b, pb);
        assert_memory_equal(a, b, 4 * SIZE * sizeof *a);
        assert_memory_equal(pa, pb, 4 * CLASSES * sizeof *pa);
        mix(&both, &image, 4, at + 1, b, pb);
        bool same = true;
        for (int64_t i = 0; i < 4 * SIZE; i++) same = same && a[i] == b[i];
        other += !same;
        bool whole = true; /* all pixels are from one of the two images */
        for (int64_t i = 0; i < SIZE; i++)
            whole = whole && (a[i] == pixel(0, i) || a[i] == pixel(3, i));
        cut += whole;
    }
    assert_true(cut > 70 && cut < 130 && other > 190);
    /* Off: labels become one-hot, images stay unchanged. */
    const ctn_mix_opt off = {.classes = CLASSES};
    mix(&off, &image, 3, 1, a, pa);
    for (int64_t k = 0; k < 3; k++)
        assert_true(part_of(pa, 3, k) == 1 && a[k * SIZE + 5] == pixel(k, 5));
}

static void refused(const ctn_mix_opt *o, const ctn_field *f, ctn_status want, const char *part)
{
    ctn_mix_opt to;
    assert_int_equal(ctn__mix_opt(&to, o, 2, f), want);
    if (!strstr(ctn_error_message(), part))
        fail_msg("\"%s\" not in \"%s\"", part, ctn_error_message());
    ctn_error_clear();
}

static void test_errors(void **state)
{
    (void)state;
    const ctn_field good[2] = {image, {.dtype = CTN_I64}};
    ctn_mix_opt to;
    assert_int_equal(ctn__mix_opt(&to, CTN_OPT(ctn_mix_opt, .mixup = 0.2, .classes = 9), 2, good),
                     CTN_OK);
    refused(CTN_OPT(ctn_mix_opt, .mixup = -1, .classes = 9), good, CTN_EARG, "mixup is -1");
    refused(CTN_OPT(ctn_mix_opt, .cutmix = NAN, .classes = 9), good, CTN_EARG, "cutmix is");
    refused(CTN_OPT(ctn_mix_opt, .mixup = 1), good, CTN_EARG, "set .classes");
    ctn_field bad[2] = {{.dtype = CTN_U8, .ndim = 3, .shape = {C, H, W}}, {.dtype = CTN_I64}};
    refused(CTN_OPT(ctn_mix_opt, .mixup = 1, .classes = 9), bad, CTN_EDTYPE, "f32 (C,H,W)");
    bad[0] = image;
    bad[1].dtype = CTN_F32;
    refused(CTN_OPT(ctn_mix_opt, .mixup = 1, .classes = 9), bad, CTN_EDTYPE, "a scalar i64");
    static float x[2 * SIZE], parts[2 * CLASSES];
    assert_int_equal(ctn__mix_batch(&(ctn_mix_opt){.mixup = 1, .classes = CLASSES},
                                    &(ctn_sampler_state){0}, 2, &image, x, (int64_t[]){0, 9},
                                    parts),
                     CTN_EARG);
    assert_non_null(strstr(ctn_error_message(), "a label is 9"));
    ctn_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixup),        cmocka_unit_test(test_cutmix),
        cmocka_unit_test(test_distribution), cmocka_unit_test(test_choice),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests_name("mix", tests, NULL, NULL);
}
