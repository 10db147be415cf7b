/* SPDX-License-Identifier: Apache-2.0
 *
 * RandAugment (Cubuk et al. 2020): a few operations, chosen at random from 14, all with the same
 * strength. They work on planes of floats in 0 to 255, after the image has its final size. The
 * strengths are those of torchvision with 31 magnitudes; shear is about the centre of the image.
 * Pixels from outside the image are black.
 */
#include <math.h>

#include "data/image/image.h"

enum { MOST_MAGNITUDE = 30, LEVELS = 256 };

typedef enum {
    NONE,
    SHEAR_X,
    SHEAR_Y,
    TRANSLATE_X,
    TRANSLATE_Y,
    ROTATE,
    BRIGHTNESS,
    SATURATION,
    CONTRAST,
    SHARPNESS,
    POSTERIZE,
    SOLARIZE,
    AUTO_CONTRAST,
    EQUALIZE,
    OPERATIONS
} operation;

typedef struct {
    float *p, *other; /* (channels, H, W) */
    int64_t H, W;
    int channels;
} planes;

static int level(float v)
{
    return v <= 0 ? 0 : v >= LEVELS - 1 ? LEVELS - 1 : (int)(v + 0.5f);
}

static void copy_back(planes *a)
{
    memcpy(a->p, a->other, (size_t)(a->channels * a->H * a->W) * sizeof *a->p);
}

/* Pixel (x,y) of the result is the one nearest to m (x,y,1), relative to the centre. */
static void move(planes *a, const double m[6])
{
    const double cx = (double)(a->W - 1) / 2, cy = (double)(a->H - 1) / 2;
    const int64_t area = a->H * a->W;
    for (int64_t y = 0; y < a->H; y++)
        for (int64_t x = 0; x < a->W; x++) {
            const double dx = (double)x - cx, dy = (double)y - cy;
            const double fx = nearbyint(m[0] * dx + m[1] * dy + m[2] + cx);
            const double fy = nearbyint(m[3] * dx + m[4] * dy + m[5] + cy);
            const bool in = fx >= 0 && fy >= 0 && fx < (double)a->W && fy < (double)a->H;
            const int64_t from = in ? (int64_t)fy * a->W + (int64_t)fx : 0;
            for (int c = 0; c < a->channels; c++)
                a->other[c * area + y * a->W + x] = in ? a->p[c * area + from] : 0;
        }
    copy_back(a);
}

static void rotate(planes *a, double degrees)
{
    const double t = degrees * 3.14159265358979323846 / 180, c = cos(t), s = sin(t);
    move(a, (double[6]){c, s, 0, -s, c, 0});
}

/* Blends with a smoothed image; the outermost pixels stay. */
static void sharpen(planes *a, float factor)
{
    memcpy(a->other, a->p, (size_t)(a->channels * a->H * a->W) * sizeof *a->p);
    for (int c = 0; c < a->channels; c++)
        for (int64_t y = 1; y < a->H - 1; y++)
            for (int64_t x = 1; x < a->W - 1; x++) {
                const int64_t at = (c * a->H + y) * a->W + x;
                const float *p = a->p + at, *up = p - a->W, *down = p + a->W;
                const float sum =
                    up[-1] + up[0] + up[1] + p[-1] + 5 * p[0] + p[1] + down[-1] + down[0] + down[1];
                const float v = factor * p[0] + (1 - factor) * (sum / 13);
                a->other[at] = v < 0 ? 0 : v > 255 ? 255 : v;
            }
    copy_back(a);
}

/* Drops the lowest bits. */
static void posterize(planes *a, int bits)
{
    const int mask = 0xff << (8 - bits) & 0xff;
    for (int64_t i = 0; i < a->channels * a->H * a->W; i++)
        a->p[i] = (float)(level(a->p[i]) & mask);
}

static void solarize(planes *a, float threshold)
{
    for (int64_t i = 0; i < a->channels * a->H * a->W; i++)
        if (a->p[i] >= threshold) a->p[i] = 255 - a->p[i];
}

/* Stretches each channel to 0 to 255. */
static void auto_contrast(planes *a)
{
    const int64_t area = a->H * a->W;
    for (int c = 0; c < a->channels; c++) {
        float *p = a->p + c * area, lo = p[0], hi = p[0];
        for (int64_t i = 1; i < area; i++) {
            lo = p[i] < lo ? p[i] : lo;
            hi = p[i] > hi ? p[i] : hi;
        }
        for (int64_t i = 0; hi > lo && i < area; i++) p[i] = (p[i] - lo) * (255 / (hi - lo));
    }
}

/* Makes all levels of each channel about equally frequent. */
static void equalize(planes *a)
{
    const int64_t area = a->H * a->W;
    for (int c = 0; c < a->channels; c++) {
        int64_t count[LEVELS] = {0}, last = LEVELS - 1;
        float table[LEVELS], *p = a->p + c * area;
        for (int64_t i = 0; i < area; i++) count[level(p[i])]++;
        while (last > 0 && count[last] == 0) last--;
        const int64_t step = (area - count[last]) / (LEVELS - 1);
        if (step == 0) continue;
        int64_t below = step / 2;
        for (int k = 0; k < LEVELS; below += count[k++])
            table[k] = (float)(below / step < LEVELS ? below / step : LEVELS - 1);
        for (int64_t i = 0; i < area; i++) p[i] = table[level(p[i])];
    }
}

/* part: the strength, -1 to 1. */
static void apply(planes *a, operation op, double part)
{
    const int64_t area = a->H * a->W, all = a->channels * area;
    const float factor = (float)(1 + 0.9 * part);
    const double far = 150.0 / 331 * part, size = fabs(part);
    switch (op) {
    case SHEAR_X: move(a, (double[6]){1, 0.3 * part, 0, 0, 1, 0}); break;
    case SHEAR_Y: move(a, (double[6]){1, 0, 0, 0.3 * part, 1, 0}); break;
    case TRANSLATE_X: move(a, (double[6]){1, 0, far * (double)a->W, 0, 1, 0}); break;
    case TRANSLATE_Y: move(a, (double[6]){1, 0, 0, 0, 1, far * (double)a->H}); break;
    case ROTATE: rotate(a, 30 * part); break;
    case BRIGHTNESS: ctn__blend(a->p, all, factor, 0); break;
    case CONTRAST: ctn__blend(a->p, all, factor, ctn__mean_gray(a->p, area, a->channels)); break;
    case SATURATION:
        if (a->channels == 3) ctn__saturate(a->p, a->p + area, a->p + 2 * area, area, factor);
        break;
    case SHARPNESS: sharpen(a, factor); break;
    case POSTERIZE: posterize(a, 8 - (int)nearbyint(4 * size)); break;
    case SOLARIZE: solarize(a, (float)(255 * (1 - size))); break;
    case AUTO_CONTRAST: auto_contrast(a); break;
    case EQUALIZE: equalize(a); break;
    default: break;
    }
}

void ctn__randaugment(const ctn_image_opt *o, const ctn_sample *s, float *p, float *other,
                      int channels)
{
    planes a = {p, other, o->height, o->width, channels};
    for (int i = 0; i < o->randaugment; i++) {
        const uint64_t draw = CTN__DRAW_RANDAUGMENT + 2 * (uint64_t)i;
        const operation op = (operation)ctn__draw_below(s, draw, OPERATIONS);
        const double part = o->magnitude / MOST_MAGNITUDE;
        apply(&a, op, ctn__draw(s, draw + 1) < 0.5 ? -part : part);
    }
}
