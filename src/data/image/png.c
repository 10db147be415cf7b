/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads PNG files with libspng; the only file that uses it. Every kind of PNG is converted to
 * 8-bit RGB: palettes are resolved, 16-bit values lose their lower byte, and transparency is
 * dropped (like Pillow's convert('RGB')). Rows after the part to decode are not decompressed,
 * unless the file is interlaced.
 */
#include "data/image/image.h"

#ifdef CTN_HAVE_SPNG

#include <spng.h>

enum { MAX_CHUNK = 1 << 24, MAX_CHUNKS = 1 << 26 };

struct ctn__png {
    spng_ctx *ctx;
    struct spng_ihdr head;
};

static ctn_status failed(int code)
{
    ctn_status st = code == SPNG_EMEM ? CTN_ENOMEM : CTN_EFORMAT;
    if (code == SPNG_EUSER_WIDTH || code == SPNG_EUSER_HEIGHT) st = CTN_EUNSUPPORTED;
    return ctn_fail(st, "png: %s", spng_strerror(code));
}

static ctn_status header(ctn__png *p, const void *file, size_t bytes, ctn__picture *pic)
{
    p->ctx = spng_ctx_new(0);
    if (!p->ctx) return ctn_fail(CTN_ENOMEM, "png: out of memory");
    int code = spng_set_image_limits(p->ctx, CTN__IMAGE_MAX_SIDE, CTN__IMAGE_MAX_SIDE);
    if (!code) code = spng_set_chunk_limits(p->ctx, MAX_CHUNK, MAX_CHUNKS);
    if (!code) code = spng_set_png_buffer(p->ctx, file, bytes);
    if (!code) code = spng_get_ihdr(p->ctx, &p->head);
    if (code) return failed(code);
    *pic = (ctn__picture){p->head.width, p->head.height, 1};
    struct spng_exif exif;
    if (spng_get_exif(p->ctx, &exif) == 0) pic->turn = ctn__exif_turn(exif.data, exif.length);
    return CTN_OK;
}

ctn_status ctn__png_open(ctn__png **out, const void *file, size_t bytes, ctn__picture *pic)
{
    ctn__png *p = ctn__calloc(1, sizeof *p);
    if (!p) return CTN_ENOMEM;
    ctn_status st = header(p, file, bytes, pic);
    if (st == CTN_OK) *out = p;
    else ctn__png_close(p);
    return st;
}

void ctn__png_close(ctn__png *p)
{
    if (!p) return;
    spng_ctx_free(p->ctx);
    ctn__free(p);
}

/* Decodes rows up to the last one of the part. Rows above the part go to the first row, where they
 * are overwritten. */
static int read_rows(spng_ctx *ctx, const ctn__pixels *out)
{
    const size_t step = (size_t)out->part.w * 3;
    int code = spng_decode_image(ctx, NULL, 0, SPNG_FMT_RGB8, SPNG_DECODE_PROGRESSIVE);
    for (int64_t y = -out->part.y; !code && y < out->part.h; y++) {
        code = spng_decode_row(ctx, out->at + (y < 0 ? 0 : (size_t)y * step), step);
        if (code == SPNG_EOI && y == out->part.h - 1) code = 0;
    }
    return code;
}

ctn_status ctn__png_read(ctn__png *p, bool gray, const ctn__rect *want, ctn__pixels *out)
{
    const bool whole = p->head.interlace_method != SPNG_INTERLACE_NONE;
    out->channels = 3;
    out->part = (ctn__rect){0, whole ? 0 : want->y, p->head.width,
                            whole ? (int64_t)p->head.height : want->h};
    CTN_TRY(ctn__pixels_new(out));
    const int64_t n = out->part.w * out->part.h;
    int code = whole ? spng_decode_image(p->ctx, out->at, (size_t)n * 3, SPNG_FMT_RGB8, 0)
                     : read_rows(p->ctx, out);
    if (code) return failed(code);
    if (gray) {
        ctn__rgb_to_gray(out->at, n, out->at);
        out->channels = 1;
    }
    return CTN_OK;
}

/* Spreads n packed values of 1, 2 or 4 bits to bytes, the first value from the highest bits. */
static void unpack(uint8_t *to, const uint8_t *from, int64_t n, int bits)
{
    const int per = 8 / bits, mask = (1 << bits) - 1;
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint8_t)(from[i / per] >> (8 - bits * (int)(i % per + 1)) & mask);
}

ctn_status ctn__png_values(ctn__png *p, ctn__pixels *out)
{
    const int bits = p->head.bit_depth, kind = p->head.color_type;
    const int64_t W = p->head.width, H = p->head.height;
    if ((kind != SPNG_COLOR_TYPE_GRAYSCALE && kind != SPNG_COLOR_TYPE_INDEXED) || bits > 8)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "png: a mask must have one value per pixel, gray or from a palette, of at "
                        "most 8 bits");
    *out = (ctn__pixels){.part = {0, 0, W, H}, .channels = 1};
    CTN_TRY(ctn__pixels_new(out));
    const size_t row = ((size_t)W * (size_t)bits + 7) / 8;
    uint8_t *packed = bits == 8 ? out->at : ctn__malloc(ctn__mul(row, (size_t)H));
    if (!packed) return CTN_ENOMEM;
    const int code = spng_decode_image(p->ctx, packed, row * (size_t)H, SPNG_FMT_RAW, 0);
    for (int64_t y = 0; bits < 8 && !code && y < H; y++)
        unpack(out->at + y * W, packed + (size_t)y * row, W, bits);
    if (packed != out->at) ctn__free(packed);
    return code ? failed(code) : CTN_OK;
}

#else

static ctn_status missing(void)
{
    return ctn_fail(CTN_EUNSUPPORTED, "png: built without libspng");
}

ctn_status ctn__png_open(ctn__png **p, const void *file, size_t bytes, ctn__picture *pic)
{
    (void)p, (void)file, (void)bytes, (void)pic;
    return missing();
}

ctn_status ctn__png_read(ctn__png *p, bool gray, const ctn__rect *want, ctn__pixels *out)
{
    (void)p, (void)gray, (void)want, (void)out;
    return missing();
}

ctn_status ctn__png_values(ctn__png *p, ctn__pixels *out)
{
    (void)p, (void)out;
    return missing();
}

void ctn__png_close(ctn__png *p)
{
    (void)p;
}

#endif
