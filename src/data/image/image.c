/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns an image file in memory into one field of a sample: finds its format, chooses the part to
 * use, decides how far the decoder may shrink it, and calls the functions that do the work.
 * Called by ctn_image_decode, folders and shards from many threads at once; keeps no state
 * between files.
 */
#include "data/image/image.h"

#include <math.h>

/* ---- options --------------------------------------------------------------------------------- */

static ctn_status check_numbers(const char *who, const ctn_image_opt *o)
{
    const double v[] = {o->brightness, o->contrast, o->saturation, o->hue,     o->scale[0],
                        o->scale[1],   o->ratio[0], o->ratio[1],   o->mean[0], o->mean[1],
                        o->mean[2],    o->std[0],   o->std[1],     o->std[2]};
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
        if (!isfinite(v[i])) return ctn_fail(CTN_EARG, "%s: an image option is not finite", who);
    if (o->scale[0] <= 0 || o->scale[0] > o->scale[1] || o->scale[1] > 1)
        return ctn_fail(CTN_EARG, "%s: scale is %g to %g, expected an interval within 0 to 1", who,
                        o->scale[0], o->scale[1]);
    if (o->ratio[0] <= 0 || o->ratio[0] > o->ratio[1])
        return ctn_fail(CTN_EARG, "%s: ratio is %g to %g, expected a positive interval", who,
                        o->ratio[0], o->ratio[1]);
    if (o->brightness < 0 || o->contrast < 0 || o->saturation < 0 || o->hue < 0 || o->hue > 0.5)
        return ctn_fail(CTN_EARG,
                        "%s: jitter is %g %g %g %g, expected 0 or more and a hue of at most 0.5",
                        who, o->brightness, o->contrast, o->saturation, o->hue);
    for (int c = 0; c < 3; c++)
        if (o->std[c] <= 0)
            return ctn_fail(CTN_EARG, "%s: std is %g, it must be positive", who, o->std[c]);
    return CTN_OK;
}

ctn_status ctn__image_opt(const char *who, ctn_image_opt *to, const ctn_image_opt *from,
                          int64_t height, int64_t width)
{
    CTN_TRY(ctn__opt(who, to, sizeof *to, from));
    if (to->height == 0) to->height = height;
    if (to->width == 0) to->width = width;
    if (to->height < 1 || to->width < 1 || to->height > CTN__IMAGE_MAX_SIDE ||
        to->width > CTN__IMAGE_MAX_SIDE || to->height * to->width > CTN__IMAGE_MAX_PIXELS)
        return ctn_fail(CTN_EARG, "%s: images are %lld x %lld, expected 1 to %d per side", who,
                        (long long)to->height, (long long)to->width, CTN__IMAGE_MAX_SIDE);
    if ((int)to->crop < CTN_CROP_CENTER || (int)to->crop > CTN_CROP_WHOLE)
        return ctn_fail(CTN_EARG, "%s: crop is %d, expected a ctn_crop", who, (int)to->crop);
    if (to->resize == 0) to->resize = to->height * 8 / 7;
    if (to->pad == 0) to->pad = 4;
    if (to->resize < 1 || to->resize > CTN__IMAGE_MAX_SIDE || to->pad < 0 ||
        to->pad > CTN__IMAGE_MAX_SIDE)
        return ctn_fail(CTN_EARG, "%s: resize is %lld and pad is %lld, expected at most %d", who,
                        (long long)to->resize, (long long)to->pad, CTN__IMAGE_MAX_SIDE);
    if (to->crop == CTN_CROP_PAD && (to->pad >= to->height || to->pad >= to->width))
        return ctn_fail(CTN_EARG, "%s: pad is %lld for images of %lld x %lld, expected less", who,
                        (long long)to->pad, (long long)to->height, (long long)to->width);
    if (to->scale[0] == 0) to->scale[0] = 0.08;
    if (to->scale[1] == 0) to->scale[1] = 1;
    if (to->ratio[0] == 0) to->ratio[0] = 3.0 / 4;
    if (to->ratio[1] == 0) to->ratio[1] = 4.0 / 3;
    if (to->magnitude == 0) to->magnitude = 9;
    if (to->randaugment < 0 || to->randaugment > 16 || !(to->magnitude > 0 && to->magnitude <= 30))
        return ctn_fail(CTN_EARG,
                        "%s: randaugment has %d operations of magnitude %g, expected at most 16 of "
                        "magnitude 0 to 30",
                        who, to->randaugment, to->magnitude);
    for (int c = 0; c < 3; c++)
        if (to->std[c] == 0) to->std[c] = 1;
    return check_numbers(who, to);
}

ctn_status ctn__image_sized(ctn_image_opt *to, const ctn_image_opt *filled, const ctn_sample *s)
{
    *to = *filled;
    if (s->size == 0) return CTN_OK;
    if (s->size < 0 || s->size > CTN__IMAGE_MAX_SIDE)
        return ctn_fail(CTN_EARG, "image: size is %lld, expected 0 to %d", (long long)s->size,
                        CTN__IMAGE_MAX_SIDE);
    to->height = to->width = s->size;
    to->resize = filled->resize * s->size / filled->height; /* the same part of the image */
    if (to->resize < 1) to->resize = 1;
    if (to->crop == CTN_CROP_PAD && to->pad >= s->size)
        return ctn_fail(CTN_EARG, "image: pad is %lld for images of size %lld, expected less",
                        (long long)to->pad, (long long)s->size);
    return CTN_OK;
}

int ctn__images_resize(void *self)
{
    (void)self;
    return 1;
}

void ctn__image_field(const ctn_image_opt *o, ctn_field *out)
{
    *out = (ctn_field){.dtype = o->raw ? CTN_U8 : CTN_F32,
                       .ndim = 3,
                       .shape = {o->gray ? 1 : 3, o->height, o->width},
                       .channels_last = o->channels_last != 0};
}

/* ---- pixels ---------------------------------------------------------------------------------- */

ctn_status ctn__pixels_new(ctn__pixels *out)
{
    size_t row = (size_t)out->part.w * (size_t)out->channels;
    out->at = ctn__malloc(ctn__mul(row, (size_t)out->part.h));
    return out->at ? CTN_OK : CTN_ENOMEM;
}

void ctn__rgb_to_gray(const uint8_t *rgb, int64_t n, uint8_t *gray)
{
    /* 0.299, 0.587 and 0.114 in 1/65536 */
    for (int64_t i = 0; i < n; i++, rgb += 3)
        gray[i] = (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 32768u) >> 16);
}

static ctn__rect exchanged(ctn__rect r)
{
    return (ctn__rect){r.y, r.x, r.h, r.w};
}

/* Exchanges rows and columns. */
static ctn_status transpose(ctn__pixels *p)
{
    ctn__pixels t = {.part = exchanged(p->part), .channels = p->channels};
    CTN_TRY(ctn__pixels_new(&t));
    const int64_t w = p->part.w, h = p->part.h, c = p->channels;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            for (int64_t k = 0; k < c; k++) t.at[(x * h + y) * c + k] = p->at[(y * w + x) * c + k];
    ctn__free(p->at);
    *p = t;
    return CTN_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef enum { KIND_JPEG, KIND_PNG } kind;

static ctn_status find_kind(const uint8_t *file, size_t bytes, kind *out)
{
    static const struct {
        const char *name;
        size_t at, n;
        const char *magic;
    } kinds[] = {
        {"JPEG", 0, 3, "\xff\xd8\xff"},
        {"PNG", 0, 8, "\x89PNG\r\n\x1a\n"},
        {"GIF", 0, 4, "GIF8"},
        {"WebP", 8, 4, "WEBP"},
        {"BMP", 0, 2, "BM"},
        {"TIFF", 0, 4, "II*\0"},
        {"TIFF", 0, 4, "MM\0*"},
        {"HEIF or AVIF", 4, 4, "ftyp"},
        {"JPEG XL", 0, 2, "\xff\x0a"},
        {"JPEG XL", 4, 4, "JXL "},
        {"JPEG 2000", 4, 4, "jP  "},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (bytes < kinds[i].at + kinds[i].n) continue;
        if (memcmp(file + kinds[i].at, kinds[i].magic, kinds[i].n) != 0) continue;
        *out = (kind)i;
        if (i <= KIND_PNG) return CTN_OK;
        return ctn_fail(CTN_EUNSUPPORTED, "image: the file is %s, expected JPEG or PNG",
                        kinds[i].name);
    }
    if (bytes < 4) return ctn_fail(CTN_EFORMAT, "image: the file has only %zu bytes", bytes);
    return ctn_fail(CTN_EFORMAT,
                    "image: starts with bytes %02x %02x %02x %02x: neither JPEG nor PNG", file[0],
                    file[1], file[2], file[3]);
}

ctn_status ctn__image_check(const void *file, size_t bytes)
{
    kind k;
    return find_kind(file, bytes, &k);
}

typedef struct {
    ctn__jpeg *jpeg;
    ctn__png *png;
    ctn__picture pic;
    ctn__pixels pixels;
} image;

static ctn_status image_open(image *m, const void *file, size_t bytes)
{
    kind k = KIND_JPEG;
    CTN_TRY(find_kind(file, bytes, &k));
    if (k == KIND_JPEG) CTN_TRY(ctn__jpeg_open(&m->jpeg, file, bytes, &m->pic));
    else CTN_TRY(ctn__png_open(&m->png, file, bytes, &m->pic));
    if (m->pic.width * m->pic.height > CTN__IMAGE_MAX_PIXELS)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "image: has %lld x %lld pixels, expected at most %d million",
                        (long long)m->pic.width, (long long)m->pic.height,
                        CTN__IMAGE_MAX_PIXELS / 1000000);
    return CTN_OK;
}

static void image_close(image *m)
{
    ctn__jpeg_close(m->jpeg);
    ctn__png_close(m->png);
    ctn__free(m->pixels.at);
}

/* How far the JPEG decoder may shrink the picture before the filter does the rest. SLACK keeps the
 * filter wide enough to hide that the decoder's own reduction is sharper. */
#define SLACK 1.5

static int shrink_of(const ctn__view *v)
{
    double fx = v->w / (double)v->dst.w, fy = v->h / (double)v->dst.h;
    double f = (fx < fy ? fx : fy) / SLACK;
    return f >= 8 ? 8 : f >= 4 ? 4 : f >= 2 ? 2 : 1;
}

static void shrink_view(ctn__view *v, int by)
{
    v->x /= by;
    v->y /= by;
    v->w /= by;
    v->h /= by;
    ctn__rect *l = &v->limit;
    int64_t x1 = (l->x + l->w + by - 1) / by, y1 = (l->y + l->h + by - 1) / by;
    l->x /= by;
    l->y /= by;
    l->w = x1 - l->x;
    l->h = y1 - l->y;
}

static ctn_status image_read(image *m, bool gray, ctn__view *v)
{
    const bool turned = m->pic.turn > 4;
    int shrink = m->jpeg ? shrink_of(v) : 1;
    shrink_view(v, shrink);
    ctn__rect want = ctn__view_reach(v);
    if (turned) want = exchanged(want);
    if (m->jpeg) CTN_TRY(ctn__jpeg_read(m->jpeg, shrink, gray, &want, &m->pixels));
    else CTN_TRY(ctn__png_read(m->png, gray, &want, &m->pixels));
    return turned ? transpose(&m->pixels) : CTN_OK;
}

ctn_status ctn__image_load(const ctn_image_opt *filled, const void *file, size_t bytes,
                           const ctn_sample *s, void *dst)
{
    ctn_status st = CTN_OK;
    image m = {0};
    ctn__view v;
    ctn_image_opt sized, *o = &sized;
    CTN_TRY(ctn__image_sized(o, filled, s));
    CTN_TRY_GOTO(st, done, image_open(&m, file, bytes));
    const bool turned = m.pic.turn > 4;
    const int64_t w = turned ? m.pic.height : m.pic.width;
    const int64_t h = turned ? m.pic.width : m.pic.height;
    ctn__choose_view(o, s, w, h, &v);
    ctn__turn_view(&v, m.pic.turn, w, h);
    CTN_TRY_GOTO(st, done, image_read(&m, o->gray != 0, &v));
    CTN_TRY_GOTO(st, done, ctn__resample(o, s, &m.pixels, &v, dst));
done:
    image_close(&m);
    return st;
}

ctn_status ctn__image_size(const void *file, size_t bytes, int64_t *width, int64_t *height)
{
    image m = {0};
    const ctn_status st = image_open(&m, file, bytes);
    const bool turned = m.pic.turn > 4;
    *width = turned ? m.pic.height : m.pic.width;
    *height = turned ? m.pic.width : m.pic.height;
    image_close(&m);
    return st;
}

ctn_status ctn_image_decode(const void *file, size_t bytes, const ctn_image_opt *opt,
                            const ctn_sample *s, void *dst)
{
    if (!file || !dst) return ctn_fail(CTN_EARG, "image: NULL argument");
    ctn_image_opt o;
    CTN_TRY(ctn__image_opt("image", &o, opt, 224, 224));
    return ctn__image_load(&o, file, bytes, s ? s : &(ctn_sample){0}, dst);
}
