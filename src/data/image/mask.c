/* SPDX-License-Identifier: Apache-2.0
 *
 * Masks for segmentation: a PNG file whose pixel values, or palette indices, are classes. A mask
 * takes the same view as its image, so that each pixel keeps its class. Since classes cannot be
 * averaged, a pixel of the result is the nearest pixel of the mask.
 */
#include <math.h>

#include "data/image/image.h"

/* For each of n results, the pixel under its centre. The centres are those of resample.c. */
static void nearest(int64_t *out, double from, double length, int64_t n, bool mirror, int64_t lo,
                    int64_t size)
{
    for (int64_t i = 0; i < n; i++) {
        const double centre = from + ((double)i + 0.5) * length / (double)n;
        int64_t k = (int64_t)floor(centre);
        if (k < lo) k = lo;
        if (k >= lo + size) k = lo + size - 1;
        out[mirror ? n - 1 - i : i] = k;
    }
}

static ctn_status sample(const ctn_image_opt *o, const ctn__view *v, const ctn__pixels *px,
                         const ctn__mask_opt *m, int64_t *dst)
{
    const int64_t W = o->width, H = o->height;
    int64_t *x = ctn__malloc((size_t)(v->dst.w + v->dst.h) * sizeof *x);
    if (!x) return CTN_ENOMEM;
    int64_t *y = x + v->dst.w;
    nearest(x, v->x, v->w, v->dst.w, v->mirror_x, v->limit.x, v->limit.w);
    nearest(y, v->y, v->h, v->dst.h, v->mirror_y, v->limit.y, v->limit.h);
    for (int64_t i = 0; i < W * H; i++) dst[i] = CTN__MASK_IGNORED;
    for (int64_t j = 0; j < v->dst.h; j++) {
        const uint8_t *row = px->at + (y[j] - px->part.y) * px->part.w;
        int64_t *to = dst + (v->dst.y + j) * W + v->dst.x;
        for (int64_t i = 0; i < v->dst.w; i++) {
            const int value = row[x[i] - px->part.x];
            to[i] = value == m->ignore ? CTN__MASK_IGNORED : value;
        }
    }
    ctn__free(x);
    return CTN_OK;
}

ctn_status ctn__mask_load(const ctn_image_opt *filled, const ctn__mask_opt *m, const void *file,
                          size_t bytes, const ctn_sample *s, int64_t *dst)
{
    ctn_status st = CTN_OK;
    ctn__png *png = NULL;
    ctn__picture pic = {0};
    ctn__pixels px = {0};
    ctn__view v;
    ctn_image_opt sized, *o = &sized;
    CTN_TRY(ctn__image_sized(o, filled, s));
    if (bytes < 8 || memcmp(file, "\x89PNG\r\n\x1a\n", 8) != 0)
        return ctn_fail(CTN_EUNSUPPORTED, "image: a mask must be a PNG file");
    CTN_TRY_GOTO(st, done, ctn__png_open(&png, file, bytes, &pic));
    if (pic.width != m->width || pic.height != m->height) {
        st = ctn_fail(CTN_EFORMAT, "image: the mask has %lld x %lld pixels, its image %lld x %lld",
                      (long long)pic.width, (long long)pic.height, (long long)m->width,
                      (long long)m->height);
        goto done;
    }
    CTN_TRY_GOTO(st, done, ctn__png_values(png, &px));
    ctn__choose_view(o, s, pic.width, pic.height, &v);
    CTN_TRY_GOTO(st, done, sample(o, &v, &px, m, dst));
done:
    ctn__png_close(png);
    ctn__free(px.at);
    return st;
}
