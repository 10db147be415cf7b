/* SPDX-License-Identifier: Apache-2.0
 *
 * Augmentation: image options, which part of an image is chosen and how often, padded crops,
 * layouts, colour jitter. Random choices must depend on seed, epoch and sample only.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "data/data.h"
#include "data/image/image.h"

static void test_options(void **state)
{
    (void)state;
    ctn_image_opt o;
    OK(ctn__image_opt("t", &o, NULL, 224, 224));
    assert_true(o.height == 224 && o.width == 224 && o.resize == 256 && o.pad == 4);
    assert_true(o.scale[0] == 0.08 && o.scale[1] == 1 && o.std[2] == 1);
    static const struct {
        ctn_image_opt o;
        const char *part;
    } bad[] = {
        {{.height = -1}, "images are -1 x 224"}, {{.width = 70000}, "x 70000"},
        {{.crop = (ctn_crop)9}, "crop is 9"},    {{.resize = -3}, "resize is -3"},
        {{.scale = {0.5, 0.2}}, "scale is"},     {{.scale = {0.5, 2}}, "scale is"},
        {{.ratio = {-1, 2}}, "ratio is"},        {{.hue = 0.6}, "jitter is"},
        {{.brightness = -1}, "jitter is"},       {{.std = {-1, 1, 1}}, "std is"},
        {{.mean = {NAN, 1, 1}}, "not finite"},   {{.crop = CTN_CROP_PAD, .pad = 224}, "pad is 224"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ctn_image_opt b = bad[i].o;
        b.struct_size = sizeof b;
        assert_fails(ctn__image_opt("t", &o, &b, 224, 224), CTN_EARG, bad[i].part);
    }
}

/* ---- choices --------------------------------------------------------------------------------- */

static void test_random_part(void **state)
{
    (void)state;
    ctn_image_opt o;
    OK(ctn__image_opt("t", &o, CTN_OPT(ctn_image_opt, .crop = CTN_CROP_RANDOM, .flip = 1), 224,
                      224));
    const int64_t W = 500, H = 375;
    double area = 0, x = 0, flipped = 0;
    enum { N = 20000 };
    for (int64_t i = 0; i < N; i++) {
        ctn__view v, again;
        ctn_sample s = {i, 5, 3, 0};
        ctn__choose_view(&o, &s, W, H, &v);
        ctn__choose_view(&o, &s, W, H, &again);
        assert_memory_equal(&v.limit, &again.limit, sizeof v.limit);
        assert_true(v.mirror_x == again.mirror_x);
        const ctn__rect *l = &v.limit;
        assert_true(l->x >= 0 && l->y >= 0 && l->x + l->w <= W && l->y + l->h <= H);
        double share = (double)(l->w * l->h) / (double)(W * H), ratio = (double)l->w / (double)l->h;
        assert_true(share > 0.078 && share <= 1);
        assert_true(ratio > 0.74 && ratio < 1.35);
        area += share;
        x += ((double)l->x + (double)l->w / 2) / (double)W;
        flipped += v.mirror_x;
    }
    /* The average of torchvision's algorithm for this picture. */
    if (fabs(area / N - 0.4328) > 0.006) fail_msg("mean area is %g", area / N);
    assert_true(fabs(x / N - 0.5) < 0.01);
    assert_true(fabs(flipped / N - 0.5) < 0.015);
    ctn__view a, b;
    ctn__choose_view(&o, &(ctn_sample){7, 5, 3, 0}, W, H, &a);
    ctn__choose_view(&o, &(ctn_sample){7, 5, 4, 0}, W, H, &b);
    assert_true(memcmp(&a.limit, &b.limit, sizeof a.limit) != 0);
    ctn__choose_view(&o, &(ctn_sample){7, 6, 3, 0}, W, H, &b);
    assert_true(memcmp(&a.limit, &b.limit, sizeof a.limit) != 0);
    /* No attempt fits a strip: use its middle with the nearest aspect ratio. */
    ctn__choose_view(&o, &(ctn_sample){7, 5, 3, 0}, 1000, 10, &a);
    assert_true(a.limit.h == 10 && a.limit.w == 13 && a.limit.x == 493);
    ctn__choose_view(&o, &(ctn_sample){7, 5, 3, 0}, 1, 1, &a);
    assert_true(a.limit.h == 1 && a.limit.w == 1);
}

static void test_center(void **state)
{
    (void)state;
    ctn_image_opt o;
    ctn__view v;
    OK(ctn__image_opt("t", &o, NULL, 224, 224));
    ctn__choose_view(&o, &(ctn_sample){0}, 512, 768, &v);
    /* 512 x 768 is resized to 256 x 384, then 224 x 224 is cropped at (16,80). */
    assert_true(v.x == 32 && v.y == 160 && v.w == 448 && v.h == 448);
    assert_true(v.dst.x == 0 && v.dst.w == 224 && v.limit.w == 512);
    /* Smaller than the result: black around it. */
    OK(ctn__image_opt("t", &o, CTN_OPT(ctn_image_opt, .resize = 100), 224, 224));
    ctn__choose_view(&o, &(ctn_sample){0}, 50, 100, &v);
    assert_true(v.w == 50 && v.h == 100 && v.dst.x == 62 && v.dst.w == 100 && v.dst.y == 12);
}

/* ---- augmenting ------------------------------------------------------------------------------ */

enum { SIDE = 32, COUNT = 6 };

static ctn_dataset *images(uint8_t *pixels, int64_t *labels, int channels, int channels_last)
{
    ctn_dataset *ds = NULL;
    const ctn_field f[2] = {{.dtype = CTN_U8,
                             .ndim = 3,
                             .shape = {channels, SIDE, SIDE},
                             .channels_last = channels_last},
                            {.dtype = CTN_I64}};
    for (int i = 0; i < COUNT * channels * SIDE * SIDE; i++) pixels[i] = (uint8_t)(i * 31 + i / 97);
    for (int i = 0; i < COUNT; i++) labels[i] = 10 + i;
    OK(ctn_arrays_open(&ds, COUNT, 2, f, (const void *const[]){pixels, labels}));
    return ds;
}

/* Padded crops are the image itself, shifted, mirrored or not, with zeros around it. */
static void test_pad(void **state)
{
    (void)state;
    static uint8_t pixels[COUNT * 3 * SIDE * SIDE], out[3 * SIDE * SIDE];
    int64_t labels[COUNT], label;
    ctn_dataset *ds = NULL;
    OK(ctn_augment_new(&ds, images(pixels, labels, 3, 0),
                       CTN_OPT(ctn_image_opt, .crop = CTN_CROP_PAD, .flip = 1, .raw = 1)));
    assert_true(ctn_dataset_count(ds) == COUNT && ctn_dataset_fields(ds) == 2);
    int moved[9][9] = {{0}}, mirrored = 0;
    for (int e = 0; e < 400; e++) {
        ctn_sample s = {e % COUNT, 11, (uint64_t)e, 0};
        OK(ctn_dataset_sample(ds, &s, (void *[]){out, &label}));
        assert_int_equal(label, 10 + e % COUNT);
        const uint8_t *in = pixels + (e % COUNT) * 3 * SIDE * SIDE;
        int found = 0;
        for (int flip = 0; flip < 2; flip++)
            for (int dy = -4; dy <= 4; dy++)
                for (int dx = -4; dx <= 4; dx++) {
                    bool same = true;
                    for (int i = 0; i < 3 * SIDE * SIDE && same; i++) {
                        int c = i / (SIDE * SIDE), y = i / SIDE % SIDE, x = i % SIDE;
                        int sx = (flip ? SIDE - 1 - x : x) + dx, sy = y + dy;
                        bool inside = sx >= 0 && sx < SIDE && sy >= 0 && sy < SIDE;
                        same = out[i] == (inside ? in[(c * SIDE + sy) * SIDE + sx] : 0);
                    }
                    if (!same) continue;
                    found++;
                    moved[dy + 4][dx + 4]++;
                    mirrored += flip;
                }
        assert_int_equal(found, 1);
    }
    int places = 0;
    for (int i = 0; i < 81; i++) places += moved[i / 9][i % 9] > 0;
    assert_true(places > 70 && mirrored > 150 && mirrored < 250);
    ctn_dataset_free(ds);
}

/* Without options, images are returned unchanged, in every layout. */
static void test_augment_identity(void **state)
{
    (void)state;
    static uint8_t pixels[COUNT * 3 * SIDE * SIDE], raw[3 * SIDE * SIDE];
    static float out[3 * SIDE * SIDE];
    int64_t labels[COUNT], label;
    for (int kind = 0; kind < 8; kind++) {
        const int C = kind & 1 ? 1 : 3, from_last = kind & 2 ? 1 : 0, to_last = kind & 4 ? 1 : 0;
        ctn_dataset *ds = NULL;
        OK(ctn_augment_new(&ds, images(pixels, labels, C, from_last),
                           CTN_OPT(ctn_image_opt, .channels_last = to_last, .mean = {0.1, 0.2, 0.3},
                                   .std = {0.5, 0.6, 0.7})));
        const ctn_field *f = ctn_dataset_field(ds, 0);
        assert_true(f->dtype == CTN_F32 && f->shape[0] == C && f->channels_last == to_last);
        OK(ctn_dataset_get(ds, 2, (void *[]){out, &label}));
        const double mean[] = {0.1, 0.2, 0.3}, std[] = {0.5, 0.6, 0.7};
        for (int c = 0; c < C; c++)
            for (int i = 0; i < SIDE * SIDE; i++) {
                uint8_t in =
                    pixels[2 * C * SIDE * SIDE + (from_last ? i * C + c : c * SIDE * SIDE + i)];
                float got = out[to_last ? i * C + c : c * SIDE * SIDE + i];
                assert_true(fabs(got - (in / 255.0 - mean[c]) / std[c]) < 1e-6);
            }
        ctn_dataset_free(ds);
    }
    ctn_dataset *ds = NULL, *base = images(pixels, labels, 3, 0);
    OK(ctn_augment_new(&ds, base, CTN_OPT(ctn_image_opt, .gray = 1, .raw = 1)));
    OK(ctn_dataset_get(ds, 0, (void *[]){raw, &label}));
    for (int i = 0; i < SIDE * SIDE; i++) {
        const uint8_t rgb[3] = {pixels[i], pixels[i + SIDE * SIDE], pixels[i + 2 * SIDE * SIDE]};
        uint8_t g;
        ctn__rgb_to_gray(rgb, 1, &g);
        assert_int_equal(raw[i], g);
    }
    ctn_dataset_free(ds);
    base = images(pixels, labels, 3, 0);
    assert_fails(ctn_augment_new(&ds, base, CTN_OPT(ctn_image_opt, .hue = 3)), CTN_EARG, "jitter");
    assert_null(ds);
    ctn_dataset_free(base);
    OK(ctn_arrays_open(&base, 1, 1, &(ctn_field){.dtype = CTN_F32, .ndim = 1, .shape = {4}},
                       (const void *const[]){out}));
    assert_fails(ctn_augment_new(&ds, base, NULL), CTN_EARG, "u8 (1,H,W) or (3,H,W)");
    ctn_dataset_free(base);
}

/* ---- colours --------------------------------------------------------------------------------- */

/* Jitters pixels (n,3); the library works on planes. */
static void jitter(ctn_image_opt o, int64_t index, float *p, int64_t n)
{
    ctn_image_opt filled;
    float plane[3 * 40];
    assert_true(n <= 40);
    o.struct_size = sizeof o;
    OK(ctn__image_opt("t", &filled, &o, 8, 8));
    for (int64_t i = 0; i < 3 * n; i++) plane[i % 3 * n + i / 3] = p[i];
    ctn__jitter(&filled, &(ctn_sample){index, 1, 1, 0}, plane, n, 3);
    for (int64_t i = 0; i < 3 * n; i++) p[i] = plane[i % 3 * n + i / 3];
}

static void test_jitter(void **state)
{
    (void)state;
    const float start[2][3] = {{200, 100, 50}, {20, 60, 120}};
    double least = 9, most = 0;
    for (int64_t i = 0; i < 200; i++) {
        float p[2][3];
        memcpy(p, start, sizeof p);
        jitter((ctn_image_opt){.brightness = 0.2}, i, p[0], 2);
        double f = p[0][0] / 200.0;
        assert_true(f >= 0.8 - 1e-6 && f <= 1.2 + 1e-6 && fabs(p[1][2] / 120.0 - f) < 1e-5);
        least = f < least ? f : least;
        most = f > most ? f : most;

        memcpy(p, start, sizeof p);
        jitter((ctn_image_opt){.saturation = 0.5}, i, p[0], 2);
        double g = 0.299 * 200 + 0.587 * 100 + 0.114 * 50;
        double h = 0.299 * p[0][0] + 0.587 * p[0][1] + 0.114 * p[0][2];
        assert_true(p[0][0] >= 254.9 || fabs(g - h) < 0.01); /* grey stays grey, unless clipped */

        memcpy(p, start, sizeof p);
        jitter((ctn_image_opt){.contrast = 0.3}, i, p[0], 2);
        double k = (p[0][1] - p[1][1]) / 40.0; /* differences scale equally, the mean stays */
        assert_true(k >= 0.7 - 1e-5 && k <= 1.3 + 1e-5);
        assert_true(fabs((p[0][1] - p[0][2]) - 50 * k) < 1e-3);
        double before = 0, after = 0;
        for (int q = 0; q < 2; q++) {
            before += 0.299 * start[q][0] + 0.587 * start[q][1] + 0.114 * start[q][2];
            after += 0.299 * p[q][0] + 0.587 * p[q][1] + 0.114 * p[q][2];
        }
        assert_true(p[1][0] == 0 || fabs(before - after) < 1e-2); /* unless clipped */
    }
    assert_true(least < 0.82 && most > 1.18);
}

/* The usual case distinction, in double. */
static void turned(const float *in, double turn, double *out)
{
    double r = in[0], g = in[1], b = in[2];
    double most = fmax(r, fmax(g, b)), range = most - fmin(r, fmin(g, b));
    double hue = 0;
    if (range > 0)
        hue = most == r ? (g - b) / range : most == g ? 2 + (b - r) / range : 4 + (r - g) / range;
    hue = fmod(hue + 6 * turn + 12, 6);
    double least = most - range, part = hue - floor(hue);
    double up = least + range * part, down = most - range * part;
    const double rgb[6][3] = {{most, up, least},   {down, most, least}, {least, most, up},
                              {least, down, most}, {up, least, most},   {most, least, down}};
    memcpy(out, rgb[(int)hue % 6], 3 * sizeof *out);
}

static void test_hue(void **state)
{
    (void)state;
    enum { N = 40 };
    ctn_image_opt o = {.hue = 0.5};
    double least = 1, most = -1;
    for (int64_t i = 0; i < 100; i++) {
        float in[N * 3], p[N * 3];
        ctn_sample s = {i, 1, 1, 0};
        double turn = ctn__draw_between(&s, CTN__DRAW_HUE, -0.5, 0.5);
        for (int k = 0; k < N * 3; k++) in[k] = (float)((k * 97 + i * 31) % 256);
        in[0] = in[1] = in[2] = 77; /* grey, and ties */
        in[3] = in[4];
        in[7] = in[8];
        memcpy(p, in, sizeof p);
        jitter(o, i, p, N);
        for (int k = 0; k < N; k++) {
            double want[3];
            turned(in + 3 * k, turn, want);
            for (int c = 0; c < 3; c++)
                if (fabs(p[3 * k + c] - want[c]) > 2e-3)
                    fail_msg("(%g %g %g) by %g: %g, expected %g", in[3 * k], in[3 * k + 1],
                             in[3 * k + 2], turn, p[3 * k + c], want[c]);
        }
        least = turn < least ? turn : least;
        most = turn > most ? turn : most;
    }
    assert_true(least < -0.45 && most > 0.45);
}

/* All operations occur, strong ones change more, values stay in range, and constant images keep
 * their level unless an operation moves or maps it. */
static void test_randaugment(void **state)
{
    (void)state;
    enum { H = 12, W = 16, N = 3 * H * W };
    static float start[N], p[N], again[N], other[N];
    double change[2] = {0};
    int same = 0;
    for (int i = 0; i < N; i++) start[i] = (float)(i * 37 % 251);
    for (int strong = 0; strong < 2; strong++)
        for (int64_t i = 0; i < 300; i++) {
            const ctn_image_opt o = {.height = H,
                                     .width = W,
                                     .randaugment = 1,
                                     .magnitude = strong ? 30 : 3};
            const ctn_sample s = {.seed = 1, .index = i};
            double sum = 0;
            memcpy(p, start, sizeof p);
            memcpy(again, start, sizeof p);
            ctn__randaugment(&o, &s, p, other, 3);
            ctn__randaugment(&o, &s, again, other, 3);
            assert_memory_equal(p, again, sizeof p);
            for (int k = 0; k < N; k++) {
                assert_true(p[k] >= 0 && p[k] <= 255);
                sum += fabsf(p[k] - start[k]) / N;
            }
            same += sum == 0;
            change[strong] += sum / 300;
        }
    assert_true(same > 20 && same < 200); /* none, and operations too weak to move a pixel */
    assert_true(change[0] > 1 && change[1] > 1.5 * change[0]);
    ctn_dataset *ds = NULL;
    static uint8_t pixels[COUNT * 3 * SIDE * SIDE];
    int64_t labels[COUNT];
    ctn_dataset *base = images(pixels, labels, 3, 0);
    assert_fails(ctn_augment_new(&ds, base,
                                 CTN_OPT(ctn_image_opt, .randaugment = 2, .magnitude = 31)),
                 CTN_EARG, "magnitude 31");
    ctn_dataset_free(base);
}

/* ---- RandAugment ----------------------------------------------------------------------------- */

enum { AUG_H = 24, AUG_W = 26, AUG_AREA = AUG_H * AUG_W };
/* In the order in which they are drawn. */
enum {
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
};

/* The pixel (x,y) of a channel, 0 outside the image. */
static double pixel(const double *in, int c, double x, double y)
{
    const int ix = (int)floor(x + 0.5), iy = (int)floor(y + 0.5);
    if (ix < 0 || iy < 0 || ix >= AUG_W || iy >= AUG_H) return 0;
    return in[c * AUG_AREA + iy * AUG_W + ix];
}

static double gray_at(const double *in, int channels, int k)
{
    if (channels == 1) return in[k];
    return 0.299 * in[k] + 0.587 * in[AUG_AREA + k] + 0.114 * in[2 * AUG_AREA + k];
}

/* What Pillow's ImageOps.equalize gives for a pixel of value v. */
static double equalized(const double *plane, double v)
{
    double most = 0;
    int lower = 0, top = 0;
    for (int k = 0; k < AUG_AREA; k++) {
        most = fmax(most, plane[k]);
        lower += plane[k] < v;
    }
    for (int k = 0; k < AUG_AREA; k++) top += plane[k] == most;
    const int step = (AUG_AREA - top) / 255;
    return fmin(255, floor((double)(step / 2 + lower) / step));
}

/* The value of an operation at one pixel, from the definitions of torchvision and Pillow; part is
 * the signed strength. */
static double augmented(const double *in, int channels, int op, double part, int c, int x, int y)
{
    const int k = y * AUG_W + x;
    const double *plane = in + c * AUG_AREA, v = plane[k], factor = 1 + 0.9 * part;
    const double dx = x - (AUG_W - 1) / 2.0, dy = y - (AUG_H - 1) / 2.0, turn = part * acos(-1) / 6;
    double other = 0, lo = 255, hi = 0;
    switch (op) {
    case SHEAR_X: return pixel(in, c, x + 0.3 * part * dy, y);
    case SHEAR_Y: return pixel(in, c, x, y + 0.3 * part * dx);
    case TRANSLATE_X: return pixel(in, c, x + 150 * part * AUG_W / 331, y);
    case TRANSLATE_Y: return pixel(in, c, x, y + 150 * part * AUG_H / 331);
    case ROTATE:
        return pixel(in, c, x - dx + cos(turn) * dx + sin(turn) * dy,
                     y - dy - sin(turn) * dx + cos(turn) * dy);
    case BRIGHTNESS: break;
    case SATURATION: other = channels == 1 ? v : gray_at(in, channels, k); break;
    case CONTRAST:
        for (int i = 0; i < AUG_AREA; i++) other += gray_at(in, channels, i) / AUG_AREA;
        break;
    case SHARPNESS:
        if (x == 0 || y == 0 || x == AUG_W - 1 || y == AUG_H - 1) return v;
        for (int i = -1; i <= 1; i++)
            for (int j = -1; j <= 1; j++)
                other += pixel(in, c, x + j, y + i) * (i == 0 && j == 0 ? 5 : 1) / 13;
        break;
    case POSTERIZE: {
        const double unit = exp2(nearbyint(4 * fabs(part)));
        return floor(v / unit) * unit;
    }
    case SOLARIZE: return v < 255 * (1 - fabs(part)) ? v : 255 - v;
    case AUTO_CONTRAST:
        for (int i = 0; i < AUG_AREA; i++) {
            lo = fmin(lo, plane[i]);
            hi = fmax(hi, plane[i]);
        }
        return (v - lo) * 255 / (hi - lo);
    case EQUALIZE: return equalized(plane, v);
    default: return v;
    }
    return fmin(255, fmax(0, factor * v + (1 - factor) * other));
}

static void augment_all(double *in, int channels, int op, double part)
{
    static double out[3 * AUG_AREA];
    for (int i = 0; i < channels * AUG_AREA; i++)
        out[i] = augmented(in, channels, op, part, i / AUG_AREA, i % AUG_W, i / AUG_W % AUG_H);
    memcpy(in, out, (size_t)(channels * AUG_AREA) * sizeof *in);
}

/* Every operation in both directions, with three strengths, on colour and gray images, and moves
 * after another operation. */
static void test_randaugment_values(void **state)
{
    (void)state;
    static float p[3 * AUG_AREA], buffer[3 * AUG_AREA];
    static double want[3 * AUG_AREA];
    int done[3][OPERATIONS][2] = {{{0}}}, after = 0;
    for (int64_t i = 0; i < 1500; i++) {
        const ctn_sample s = {.seed = 3, .index = i};
        const int strength = (int)(i % 3), channels = i % 4 == 3 ? 1 : 3,
                  count = i % 5 == 4 ? 2 : 1;
        const ctn_image_opt o = {.height = AUG_H,
                                 .width = AUG_W,
                                 .randaugment = count,
                                 .magnitude = (double[]){3, 17, 30}[strength]};
        int op[2], minus[2];
        for (int k = 0; k < 2; k++) {
            op[k] = (int)ctn__draw_below(&s, CTN__DRAW_RANDAUGMENT + 2 * (uint64_t)k, OPERATIONS);
            minus[k] = ctn__draw(&s, CTN__DRAW_RANDAUGMENT + 2 * (uint64_t)k + 1) < 0.5;
        }
        /* Other operations amplify the rounding of the first one. */
        if (count == 2 ? op[1] > ROTATE : done[strength][op[0]][minus[0]]++ > 1) continue;
        after += count == 2;
        for (int k = 0; k < channels * AUG_AREA; k++)
            p[k] = (float)(want[k] = 9 + (k * 37 + k / 7) % (200 + 20 * (k / AUG_AREA)));
        ctn__randaugment(&o, &s, p, buffer, channels);
        for (int k = 0; k < count; k++)
            augment_all(want, channels, op[k], (minus[k] ? -1 : 1) * o.magnitude / 30);
        for (int k = 0; k < channels * AUG_AREA; k++)
            if (fabs(p[k] - want[k]) > 1e-3)
                fail_msg("operation %d, magnitude %g, value %d: %g, expected %g", op[0],
                         o.magnitude, k, p[k], want[k]);
    }
    assert_true(after > 20);
    for (int k = 0; k < 3 * OPERATIONS * 2; k++) assert_true((&done[0][0][0])[k] > 0);
}

/* Every image of every batch is the same for any thread count, including no threads. */
static void test_threads(void **state)
{
    (void)state;
    static uint8_t pixels[COUNT * 3 * SIDE * SIDE];
    static float want[2 * COUNT * 3 * 20 * 20];
    int64_t labels[COUNT];
    static const int threads[] = {0, 1, 2, 5, 5};
    for (int t = 0; t < 5; t++) {
        ctn_dataset *ds = NULL;
        ctn_sampler *sampler = NULL;
        ctn_loader *l = NULL;
        ctn_batch b;
        int64_t at = 0;
        OK(ctn_augment_new(&ds, images(pixels, labels, 3, 0),
                           CTN_OPT(ctn_image_opt, .height = 20, .width = 20,
                                   .crop = CTN_CROP_RANDOM, .flip = 1, .brightness = 0.4,
                                   .contrast = 0.4, .saturation = 0.4, .hue = 0.1,
                                   .randaugment = 2)));
        OK(ctn_sampler_shuffled(&sampler, COUNT, 5));
        OK(ctn_loader_new(&l, ds, sampler,
                          CTN_OPT(ctn_loader_opt, .batch = 4, .threads = threads[t],
                                  .mix = CTN_OPT(ctn_mix_opt, .mixup = 1, .classes = 99))));
        for (int epoch = 0; epoch < 2; epoch++) {
            ctn_status st;
            while ((st = ctn_loader_next(l, &b)) == CTN_OK) {
                const int64_t n = b.n * 3 * 20 * 20;
                if (t == 0) memcpy(want + at, b.data[0], (size_t)n * sizeof *want);
                else assert_memory_equal(want + at, b.data[0], (size_t)n * sizeof *want);
                at += n;
            }
            assert_int_equal(st, CTN_END);
        }
        assert_int_equal(at, sizeof want / sizeof *want);
        ctn_loader_free(l);
        ctn_sampler_free(sampler);
        ctn_dataset_free(ds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_random_part),
        cmocka_unit_test(test_center),
        cmocka_unit_test(test_pad),
        cmocka_unit_test(test_augment_identity),
        cmocka_unit_test(test_jitter),
        cmocka_unit_test(test_hue),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_randaugment),
        cmocka_unit_test(test_randaugment_values),
    };
    return cmocka_run_group_tests_name("augment", tests, NULL, NULL);
}
