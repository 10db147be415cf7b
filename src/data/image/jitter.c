/* SPDX-License-Identifier: Apache-2.0
 *
 * Colour jitter like torchvision's ColorJitter, on planes of floats in 0 to 255: brightness,
 * contrast, saturation and hue, each with its own random factor and in a random order. Loops run
 * over planes and have no branches, so that the compiler can vectorise them.
 */
#include "data/image/image.h"

enum { LANES = 16, BLOCK = 1024 };

bool ctn__has_jitter(const ctn_image_opt *o)
{
    return o->brightness > 0 || o->contrast > 0 || o->saturation > 0 || o->hue > 0;
}

static inline float least_of(float a, float b)
{
    return a < b ? a : b;
}

static inline float most_of(float a, float b)
{
    return a > b ? a : b;
}

static inline float clamp(float v)
{
    return least_of(most_of(v, 0), 255);
}

static inline float gray_of(float r, float g, float b)
{
    return 0.299f * r + 0.587f * g + 0.114f * b;
}

void ctn__blend(float *p, int64_t n, float factor, float other)
{
    const float rest = (1 - factor) * other;
    for (int64_t i = 0; i < n; i++) p[i] = clamp(factor * p[i] + rest);
}

/* Sums in a fixed order, independent of the instruction set: LANES partial sums within a block,
 * blocks added up in double. */
static double sum_of(const float *p, int64_t n)
{
    double sum = 0;
    for (int64_t at = 0; at < n; at += BLOCK) {
        float lane[LANES] = {0};
        const int64_t end = at + BLOCK < n ? at + BLOCK : n;
        int64_t i = at;
        for (; i + LANES <= end; i += LANES)
            for (int k = 0; k < LANES; k++) lane[k] += p[i + k];
        for (; i < end; i++) lane[0] += p[i];
        for (int k = 0; k < LANES; k++) sum += lane[k];
    }
    return sum;
}

float ctn__mean_gray(const float *p, int64_t n, int channels)
{
    double mean[3] = {0};
    for (int c = 0; c < channels; c++) mean[c] = sum_of(p + c * n, n) / (double)n;
    return channels == 1 ? (float)mean[0]
                         : (float)(0.299 * mean[0] + 0.587 * mean[1] + 0.114 * mean[2]);
}

void ctn__saturate(float *restrict r, float *restrict g, float *restrict b, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i++) {
        const float rest = (1 - factor) * gray_of(r[i], g[i], b[i]);
        r[i] = clamp(factor * r[i] + rest);
        g[i] = clamp(factor * g[i] + rest);
        b[i] = clamp(factor * b[i] + rest);
    }
}

/* One channel from a hue in sixths of a turn; k is 5, 3, 1 for red, green, blue:
 * most - range max(0, min(t, 4 - t, 1)), t = (k + hue) mod 6. k + hue is in -6 to 18. */
static inline float from_hue(float k, float hue, float most, float range)
{
    float t = k + hue;
    t = t < 0 ? t + 6 : t;
    t = t >= 12 ? t - 12 : t;
    t = t >= 6 ? t - 6 : t;
    return clamp(most - range * most_of(0, least_of(1, least_of(t, 4 - t))));
}

static void turn_hue(float *restrict r, float *restrict g, float *restrict b, int64_t n, float turn)
{
    for (int64_t i = 0; i < n; i++) {
        const float most = most_of(r[i], most_of(g[i], b[i]));
        const float range = most - least_of(r[i], least_of(g[i], b[i]));
        const float over = 1 / (range > 0 ? range : 1); /* grey has no hue and stays grey */
        const float of_r = (g[i] - b[i]) * over, of_g = 2 + (b[i] - r[i]) * over;
        const float of_b = 4 + (r[i] - g[i]) * over;
        const float hue = (most == r[i] ? of_r : most == g[i] ? of_g : of_b) + 6 * turn;
        r[i] = from_hue(5, hue, most, range);
        g[i] = from_hue(3, hue, most, range);
        b[i] = from_hue(1, hue, most, range);
    }
}

static float factor_of(const ctn_sample *s, uint64_t which, double v)
{
    return (float)ctn__draw_between(s, which, v > 1 ? 0 : 1 - v, 1 + v);
}

void ctn__jitter(const ctn_image_opt *o, const ctn_sample *s, float *p, int64_t n, int channels)
{
    int order[4] = {0, 1, 2, 3};
    for (int i = 3; i > 0; i--) {
        int64_t k = ctn__draw_below(s, CTN__DRAW_ORDER + (uint64_t)(3 - i), i + 1);
        int t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    for (int i = 0; i < 4; i++) {
        if (order[i] == 0 && o->brightness > 0)
            ctn__blend(p, n * channels, factor_of(s, CTN__DRAW_BRIGHTNESS, o->brightness), 0);
        if (order[i] == 1 && o->contrast > 0)
            ctn__blend(p, n * channels, factor_of(s, CTN__DRAW_CONTRAST, o->contrast),
                       ctn__mean_gray(p, n, channels));
        if (order[i] == 2 && o->saturation > 0 && channels == 3)
            ctn__saturate(p, p + n, p + 2 * n, n,
                          factor_of(s, CTN__DRAW_SATURATION, o->saturation));
        if (order[i] == 3 && o->hue > 0 && channels == 3)
            turn_hue(p, p + n, p + 2 * n, n,
                     (float)ctn__draw_between(s, CTN__DRAW_HUE, -o->hue, o->hue));
    }
}
