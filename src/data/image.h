/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of images share. The way of a picture: a reader (jpeg.c, png.c) tells its size and
 * turn, augment.c chooses the part that is wanted, the reader decodes no more than that, resample.c
 * makes the result of it in one pass. folder.c and shards.c use the first three functions only.
 */
#ifndef CTN_DATA_IMAGE_H
#define CTN_DATA_IMAGE_H

#include <catena/image.h>
#include "base/base.h"

/* Fill *to from the caller's options (NULL: all defaults), checked, defaults put in; `who` starts
 * messages. height and width: what 0 means for them. Errors: EARG. */
ctn_status ctn__image_opt(const char *who, ctn_image_opt *to, const ctn_image_opt *from,
                          int64_t height, int64_t width);
/* Type and shape of the image that filled options make. */
void ctn__image_field(const ctn_image_opt *filled, ctn_field *out);
/* ctn_image_decode with filled options. */
ctn_status ctn__image_load(const ctn_image_opt *filled, const void *file, size_t bytes,
                           const ctn_sample *s, void *dst);

/* ---- readers: jpeg.c, png.c, exif.c ---------------------------------------------------------- */

enum { CTN__IMAGE_MAX_SIDE = 65535, CTN__IMAGE_MAX_PIXELS = 1 << 28 };

/* Whole pixels from (x,y) on. */
typedef struct {
    int64_t x, y, w, h;
} ctn__rect;

/* What a header tells. */
typedef struct {
    int64_t width, height; /* as stored */
    int turn;              /* EXIF's orientation, 1 to 8: how to turn it for the viewer */
} ctn__picture;

/* A part of a picture in memory: rows of part.w * channels bytes. Free at with ctn__free. */
typedef struct {
    uint8_t *at;
    ctn__rect part;
    int channels; /* 1 or 3 */
} ctn__pixels;

/* A file is borrowed until close, which takes NULL. read: the picture shrunk by 1, 2, 4 or 8
 * (PNG: 1), at least the part `want` of it; in ctn__pixels.part stands what was decoded. gray:
 * one channel. Once per open. Errors: EFORMAT, EUNSUPPORTED, ENOMEM. */
typedef struct ctn__jpeg ctn__jpeg;
ctn_status ctn__jpeg_open(ctn__jpeg **j, const void *file, size_t bytes, ctn__picture *p);
ctn_status ctn__jpeg_read(ctn__jpeg *j, int shrink, bool gray, const ctn__rect *want,
                          ctn__pixels *out);
void ctn__jpeg_close(ctn__jpeg *j);

typedef struct ctn__png ctn__png;
ctn_status ctn__png_open(ctn__png **p, const void *file, size_t bytes, ctn__picture *pic);
ctn_status ctn__png_read(ctn__png *p, bool gray, const ctn__rect *want, ctn__pixels *out);
void ctn__png_close(ctn__png *p);

/* Orientation in a block of EXIF data (a TIFF header and what follows); 1 when it has none. */
int ctn__exif_turn(const void *tiff, size_t bytes);
/* Room for the pixels of out->part with out->channels. */
ctn_status ctn__pixels_new(ctn__pixels *out);
/* Brightness of n pixels of red, green, blue, as ITU-R 601 weighs them; in place is fine. */
void ctn__rgb_to_gray(const uint8_t *rgb, int64_t n, uint8_t *gray);

/* ---- choices: augment.c ---------------------------------------------------------------------- */

/* Which part of a picture goes where. The box is in pixels of the picture, in fractions; filters
 * reach beyond it up to `limit`. It fills dst, whole pixels of the result, the rest is black. */
typedef struct {
    double x, y, w, h;
    ctn__rect limit;
    ctn__rect dst;
    bool mirror_x, mirror_y; /* the box is read backwards */
} ctn__view;

/* The view of a picture of width x height, turned upright already, that filled options and s
 * choose. */
void ctn__choose_view(const ctn_image_opt *o, const ctn_sample *s, int64_t width, int64_t height,
                      ctn__view *v);
/* The same view of the picture before it is turned upright, except that its rows and columns are
 * exchanged already where turn > 4. width, height: upright. */
void ctn__turn_view(ctn__view *v, int turn, int64_t width, int64_t height);

/* Numbers of the draws. A try of the random crop takes four. */
enum {
    CTN__DRAW_FLIP,
    CTN__DRAW_PAD_X,
    CTN__DRAW_PAD_Y,
    CTN__DRAW_ORDER, /* and the next two */
    CTN__DRAW_BRIGHTNESS = 8,
    CTN__DRAW_CONTRAST,
    CTN__DRAW_SATURATION,
    CTN__DRAW_HUE,
    CTN__DRAW_CROP = 16
};
/* Uniform in [0,1), from seed, epoch and index. */
double ctn__draw(const ctn_sample *s, uint64_t which);
static inline double ctn__draw_between(const ctn_sample *s, uint64_t which, double lo, double hi)
{
    return lo + ctn__draw(s, which) * (hi - lo);
}
/* One of 0 to n-1. */
static inline int64_t ctn__draw_below(const ctn_sample *s, uint64_t which, int64_t n)
{
    return (int64_t)(ctn__draw(s, which) * (double)n);
}

/* ---- colours: jitter.c ----------------------------------------------------------------------- */

bool ctn__has_jitter(const ctn_image_opt *o);
/* Colour jitter, drawn from s, of planes (channels, n) in 0 to 255. */
void ctn__jitter(const ctn_image_opt *o, const ctn_sample *s, float *planes, int64_t n,
                 int channels);

/* ---- resampling: resample.c ------------------------------------------------------------------ */

/* The pixels that a view depends on. */
ctn__rect ctn__view_reach(const ctn__view *v);
/* One view of pixels to dst as the filled options want it: resize with a triangle filter as wide as
 * the reduction, mirror, jitter, normalise, convert. Errors: ENOMEM. */
ctn_status ctn__resample(const ctn_image_opt *o, const ctn_sample *s, const ctn__pixels *src,
                         const ctn__view *v, void *dst);

/* Inner loops for one instruction set, resample_body.h compiled for it; all give the same bits. */
typedef struct {
    /* row[i] = sum over k of weight[k] * src[k][i], i < n */
    void (*vertical)(float *row, const uint8_t *const *src, const float *weight, int64_t taps,
                     int64_t n);
    /* out[x][c] = sum over k of weight[x*taps + k] * row[(first[x] + k) * channels + c]; three
     * channels write a fourth, unused value per pixel and read one beyond the row. */
    void (*horizontal)(float *out, const float *row, const int32_t *first, const float *weight,
                       int64_t taps, int64_t n, int channels);
    /* in (n) of 1 or 4 values each to planes: plane[c][x] = in[x][c] * scale[c] + shift[c] */
    void (*planes)(float *const *plane, const float *in, int64_t n, int channels,
                   const float *scale, const float *shift);
} ctn__resample_kernels;
extern const ctn__resample_kernels ctn__resample_portable, ctn__resample_avx2;

#endif
