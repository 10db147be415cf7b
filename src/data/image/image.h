/* SPDX-License-Identifier: Apache-2.0
 *
 * What the image files share. A picture passes through four stages: a reader (jpeg.c, png.c)
 * reports its size and orientation, augment.c chooses the part to use, the reader decodes only
 * that part, and resample.c turns it into the result in one pass. folder.c, shards.c, list.c and
 * pack.c use only the first part of this header.
 */
#ifndef CTN_DATA_IMAGE_IMAGE_H
#define CTN_DATA_IMAGE_IMAGE_H

#include <catena/image.h>
#include "base/base.h"

/* Copies the caller's options (NULL: all defaults) to *to, checks them and fills in defaults;
 * height and width are the defaults of these two. `who` starts messages. Errors: EARG. */
ctn_status ctn__image_opt(const char *who, ctn_image_opt *to, const ctn_image_opt *from,
                          int64_t height, int64_t width);
/* Type and shape of the image that filled options produce. */
void ctn__image_field(const ctn_image_opt *filled, ctn_field *out);
/* ctn_image_decode with filled options. */
ctn_status ctn__image_load(const ctn_image_opt *filled, const void *file, size_t bytes,
                           const ctn_sample *s, void *dst);

/* Do the first bytes of a file say that it is an image that can be decoded? Errors: EFORMAT,
 * EUNSUPPORTED. */
ctn_status ctn__image_check(const void *file, size_t bytes);

/* The options for the size that a sample asks for. Errors: EARG (no such size, or pad is
 * too large for it). */
ctn_status ctn__image_sized(ctn_image_opt *to, const ctn_image_opt *filled, const ctn_sample *s);
int ctn__images_resize(void *self); /* 1: ctn_dataset_vt.resizes of datasets of images */

/* Width and height of the upright image in a file. Errors: as ctn_image_decode. */
ctn_status ctn__image_size(const void *file, size_t bytes, int64_t *width, int64_t *height);

/* ---- masks: mask.c --------------------------------------------------------------------------- */

enum { CTN__MASK_IGNORED = -100 }; /* the class that losses and metrics ignore */

typedef struct {
    int64_t width, height; /* of the image that the mask belongs to */
    int64_t ignore;        /* pixel value that becomes CTN__MASK_IGNORED; -1: none */
} ctn__mask_opt;
/* The classes (height, width) of a mask, in the view that filled options and s choose for its
 * image. Errors: EFORMAT, EUNSUPPORTED, ENOMEM. */
ctn_status ctn__mask_load(const ctn_image_opt *filled, const ctn__mask_opt *m, const void *file,
                          size_t bytes, const ctn_sample *s, int64_t *dst);

/* ---- readers: jpeg.c, png.c, exif.c ---------------------------------------------------------- */

enum { CTN__IMAGE_MAX_SIDE = 65535, CTN__IMAGE_MAX_PIXELS = 1 << 28 };

/* A rectangle of whole pixels with its first one at (x,y). */
typedef struct {
    int64_t x, y, w, h;
} ctn__rect;

/* What the header of a file says. */
typedef struct {
    int64_t width, height; /* as stored */
    int turn;              /* EXIF orientation, 1 to 8: how to turn the picture upright */
} ctn__picture;

/* A decoded part of a picture: rows of part.w * channels bytes. Free `at` with ctn__free. */
typedef struct {
    uint8_t *at;
    ctn__rect part;
    int channels; /* 1 or 3 */
} ctn__pixels;

/* The file is borrowed until close, which accepts NULL. read decodes the picture shrunk by 1, 2,
 * 4 or 8 (PNG: 1), at least the part `want` of it; ctn__pixels.part is the part that was decoded.
 * gray: one channel. Call read once per open. Errors: EFORMAT, EUNSUPPORTED, ENOMEM. */
typedef struct ctn__jpeg ctn__jpeg;
ctn_status ctn__jpeg_open(ctn__jpeg **j, const void *file, size_t bytes, ctn__picture *p);
ctn_status ctn__jpeg_read(ctn__jpeg *j, int shrink, bool gray, const ctn__rect *want,
                          ctn__pixels *out);
void ctn__jpeg_close(ctn__jpeg *j);

typedef struct ctn__png ctn__png;
ctn_status ctn__png_open(ctn__png **p, const void *file, size_t bytes, ctn__picture *pic);
ctn_status ctn__png_read(ctn__png *p, bool gray, const ctn__rect *want, ctn__pixels *out);
/* The values as stored, of all pixels: gray levels or palette indices, one byte each. Call it
 * instead of read. Errors: EUNSUPPORTED (colours, or more than 8 bits). */
ctn_status ctn__png_values(ctn__png *p, ctn__pixels *out);
void ctn__png_close(ctn__png *p);

/* Orientation in a block of EXIF data, which starts with its TIFF header; 1 if there is none. */
int ctn__exif_turn(const void *tiff, size_t bytes);
/* Allocates out->at for the pixels of out->part with out->channels. */
ctn_status ctn__pixels_new(ctn__pixels *out);
/* Luma of n RGB pixels with the weights of ITU-R BT.601; may work in place. */
void ctn__rgb_to_gray(const uint8_t *rgb, int64_t n, uint8_t *gray);

/* ---- choices: augment.c ---------------------------------------------------------------------- */

/* Which part of a picture goes where. The box (x, y, w, h) is in fractional pixels of the picture;
 * filters read beyond it, up to `limit`. It fills dst, a rectangle of the result; the rest of the
 * result is black. */
typedef struct {
    double x, y, w, h;
    ctn__rect limit;
    ctn__rect dst;
    bool mirror_x, mirror_y; /* the box is read backwards */
} ctn__view;

/* Chooses the view of an upright picture of width x height, from filled options and the random
 * numbers of s. */
void ctn__choose_view(const ctn_image_opt *o, const ctn_sample *s, int64_t width, int64_t height,
                      ctn__view *v);
/* Converts the view to the picture before it is turned upright, except that its rows and columns
 * are already exchanged if turn > 4. width and height are those of the upright picture. */
void ctn__turn_view(ctn__view *v, int turn, int64_t width, int64_t height);

/* Numbers of the random draws. Each try of the random crop uses four. */
enum {
    CTN__DRAW_FLIP,
    CTN__DRAW_PAD_X,
    CTN__DRAW_PAD_Y,
    CTN__DRAW_ORDER, /* uses this number and the next two */
    CTN__DRAW_BRIGHTNESS = 8,
    CTN__DRAW_CONTRAST,
    CTN__DRAW_SATURATION,
    CTN__DRAW_HUE,
    CTN__DRAW_CROP = 16,
    CTN__DRAW_RANDAUGMENT = 64 /* each operation uses two */
};
/* Uniform in [0,1); a function of the seed, epoch and index of the sample, and of `which`. */
double ctn__draw(const ctn_sample *s, uint64_t which);
static inline double ctn__draw_between(const ctn_sample *s, uint64_t which, double lo, double hi)
{
    return lo + ctn__draw(s, which) * (hi - lo);
}
/* A random number from 0 to n-1. */
static inline int64_t ctn__draw_below(const ctn_sample *s, uint64_t which, int64_t n)
{
    return (int64_t)(ctn__draw(s, which) * (double)n);
}

/* ---- colours: jitter.c ----------------------------------------------------------------------- */

bool ctn__has_jitter(const ctn_image_opt *o);
/* v = factor v + (1 - factor) other, with one `other` for all n values. */
void ctn__blend(float *p, int64_t n, float factor, float other);
/* Mean gray level of planes (channels, n), summed in a fixed order. */
float ctn__mean_gray(const float *p, int64_t n, int channels);
/* Blends each of n pixels with its gray level. */
void ctn__saturate(float *restrict r, float *restrict g, float *restrict b, int64_t n,
                   float factor);
/* Applies random colour jitter to planes (channels, n) with values in 0 to 255. */
void ctn__jitter(const ctn_image_opt *o, const ctn_sample *s, float *planes, int64_t n,
                 int channels);

/* ---- RandAugment: randaugment.c -------------------------------------------------------------- */

/* Applies random operations to planes (channels, height, width) with values in 0 to 255; other is
 * a buffer of the same size. */
void ctn__randaugment(const ctn_image_opt *o, const ctn_sample *s, float *planes, float *other,
                      int channels);

/* ---- resampling: resample.c ------------------------------------------------------------------ */

/* The pixels that a view depends on. */
ctn__rect ctn__view_reach(const ctn__view *v);
/* Turns a view of the pixels into the image at dst, as the filled options say: resizes with a
 * triangle filter as wide as the reduction, mirrors, jitters, normalises, converts. Errors:
 * ENOMEM. */
ctn_status ctn__resample(const ctn_image_opt *o, const ctn_sample *s, const ctn__pixels *src,
                         const ctn__view *v, void *dst);

/* Inner loops for one instruction set, compiled from resample_body.h; all give the same bits. */
typedef struct {
    /* row[i] = sum over k of weight[k] * src[k][i], i < n */
    void (*vertical)(float *row, const uint8_t *const *src, const float *weight, int64_t taps,
                     int64_t n);
    /* out[x][c] = sum over k of weight[x*taps + k] * row[(first[x] + k) * channels + c]; three
     * channels write a fourth, unused value per pixel and read one value past the end of the
     * row. */
    void (*horizontal)(float *out, const float *row, const int32_t *first, const float *weight,
                       int64_t taps, int64_t n, int channels);
    /* plane[c][x] = in[x][c] * scale[c] + shift[c]; in has n pixels of 1 or 4 values each */
    void (*planes)(float *const *plane, const float *in, int64_t n, int channels,
                   const float *scale, const float *shift);
} ctn__resample_kernels;
extern const ctn__resample_kernels ctn__resample_portable, ctn__resample_avx2, ctn__resample_sve;

#endif
