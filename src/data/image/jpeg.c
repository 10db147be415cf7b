/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads JPEG files with libjpeg-turbo; the only file that uses it. Outside the part to decode,
 * only the entropy code is parsed, and nothing after the last row. libjpeg reports errors with
 * longjmp, so everything that must survive one is in struct ctn__jpeg.
 *
 * A file is rejected as damaged if pixels of the decoded part are lost: it is truncated, has a
 * bad code, or has a marker where data should be. Errors that cost no pixels (stray bytes before
 * a marker) are ignored.
 */
#include "data/image/image.h"

#ifdef CTN_HAVE_JPEG

#include <setjmp.h>

#include <jpeglib.h>

#include <jerror.h>

#ifndef LIBJPEG_TURBO_VERSION
#error "this is not libjpeg-turbo's jpeglib.h: install it, or set -DCATENA_JPEG=OFF"
#endif

enum { MAX_SCANS = 500, MAX_MEMORY = 1 << 30, MARGIN = 2, ROWS_AT_ONCE = 16 };

struct ctn__jpeg {
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr err;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    ctn_status st;       /* the error that caused the jump */
    uint8_t *cmyk;       /* one row */
    bool made, inverted; /* c must be destroyed; CMYK is stored as 255 - x */
};

static ctn_status status_of(int code)
{
    switch (code) {
    case JERR_OUT_OF_MEMORY: return CTN_ENOMEM;
    case JERR_NO_BACKING_STORE:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL: return CTN_EUNSUPPORTED;
    default: return CTN_EFORMAT;
    }
}

static _Noreturn void on_error(j_common_ptr c)
{
    ctn__jpeg *j = c->client_data;
    char text[JMSG_LENGTH_MAX];
    c->err->format_message(c, text);
    j->st = status_of(c->err->msg_code);
    if (c->err->msg_code == JERR_NO_BACKING_STORE)
        ctn_fail(j->st, "jpeg: decoding would take more than %d MB", MAX_MEMORY >> 20);
    else ctn_fail(j->st, "jpeg: %s", text);
    longjmp(j->back, 1);
}

static void on_message(j_common_ptr c, int level)
{
    if (level >= 0) return;
    switch (c->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC: on_error(c);
    default: break;
    }
}

static void print_nothing(j_common_ptr c)
{
    (void)c;
}

/* Limits the number of scans, because a few kilobytes of empty scans can cause hours of work. */
static void on_progress(j_common_ptr c)
{
    ctn__jpeg *j = c->client_data;
    if (j->c.input_scan_number <= MAX_SCANS) return;
    j->st = ctn_fail(CTN_EFORMAT, "jpeg: more than %d scans", MAX_SCANS);
    longjmp(j->back, 1);
}

static int turn_of(const struct jpeg_decompress_struct *c)
{
    static const char id[6] = "Exif\0";
    for (jpeg_saved_marker_ptr m = c->marker_list; m; m = m->next)
        if (m->data_length > sizeof id && memcmp(m->data, id, sizeof id) == 0)
            return ctn__exif_turn(m->data + sizeof id, m->data_length - sizeof id);
    return 1;
}

static ctn_status header(ctn__jpeg *j, const void *file, size_t bytes, ctn__picture *p)
{
    struct jpeg_decompress_struct *c = &j->c;
    c->err = jpeg_std_error(&j->err);
    c->client_data = j;
    j->err.error_exit = on_error;
    j->err.emit_message = on_message;
    j->err.output_message = print_nothing;
    if (setjmp(j->back)) return j->st;
    jpeg_create_decompress(c);
    j->made = true;
    c->client_data = j;
    c->progress = &j->progress;
    j->progress.progress_monitor = on_progress;
    c->mem->max_memory_to_use = MAX_MEMORY;
    jpeg_mem_src(c, file, (unsigned long)bytes);
    jpeg_save_markers(c, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(c, TRUE);
    *p = (ctn__picture){c->image_width, c->image_height, turn_of(c)};
    return CTN_OK;
}

ctn_status ctn__jpeg_open(ctn__jpeg **out, const void *file, size_t bytes, ctn__picture *p)
{
    ctn__jpeg *j = ctn__calloc(1, sizeof *j);
    if (!j) return CTN_ENOMEM;
    ctn_status st = header(j, file, bytes, p);
    if (st == CTN_OK) *out = j;
    else ctn__jpeg_close(j);
    return st;
}

void ctn__jpeg_close(ctn__jpeg *j)
{
    if (!j) return;
    if (j->made) jpeg_destroy_decompress(&j->c);
    ctn__free(j->cmyk);
    ctn__free(j);
}

/* Chooses an output of 1, 3 or 4 (CMYK) values per pixel. */
static ctn_status choose_colours(ctn__jpeg *j, bool gray)
{
    struct jpeg_decompress_struct *c = &j->c;
    switch (c->jpeg_color_space) {
    case JCS_GRAYSCALE:
    case JCS_YCbCr:
    case JCS_RGB: c->out_color_space = gray ? JCS_GRAYSCALE : JCS_RGB; return CTN_OK;
    case JCS_CMYK:
    case JCS_YCCK:
        c->out_color_space = JCS_CMYK;
        j->inverted = c->saw_Adobe_marker;
        return CTN_OK;
    default:
        return ctn_fail(CTN_EUNSUPPORTED, "jpeg: %d components, expected 1, 3 or 4",
                        c->num_components);
    }
}

static void cmyk_to_rgb(const uint8_t *in, int64_t n, bool inverted, uint8_t *rgb)
{
    const int flip = inverted ? 0 : 255;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++)
            rgb[3 * i + k] =
                (uint8_t)(((in[4 * i + k] ^ flip) * (in[4 * i + 3] ^ flip) + 127) / 255);
}

/* Starts decoding and restricts it to the columns of `want`. */
static void seek(struct jpeg_decompress_struct *c, const ctn__rect *want, ctn__rect *part)
{
    jpeg_start_decompress(c);
    /* If chroma is subsampled, the chroma of a pixel also depends on its neighbours. */
    const int64_t margin = c->max_h_samp_factor > 1 ? MARGIN : 0;
    int64_t x0 = want->x - margin, x1 = want->x + want->w + margin;
    if (x0 < 0) x0 = 0;
    if (x1 > (int64_t)c->output_width) x1 = c->output_width;
    JDIMENSION x = (JDIMENSION)x0, w = (JDIMENSION)(x1 - x0);
    if (w < c->output_width) jpeg_crop_scanline(c, &x, &w);
    else x = 0;
    *part = (ctn__rect){x, want->y, w, want->h};
}

static void rows_of(ctn__jpeg *j, const ctn__pixels *out, bool gray)
{
    struct jpeg_decompress_struct *c = &j->c;
    const bool cmyk = c->out_color_space == JCS_CMYK;
    const int64_t step = out->part.w * out->channels;
    if (out->part.y > 0) jpeg_skip_scanlines(c, (JDIMENSION)out->part.y);
    for (int64_t y = 0; y < out->part.h;) {
        JSAMPROW row[ROWS_AT_ONCE];
        int64_t n = cmyk ? 1 : out->part.h - y;
        if (n > ROWS_AT_ONCE) n = ROWS_AT_ONCE;
        for (int64_t i = 0; i < n; i++) row[i] = cmyk ? j->cmyk : out->at + (y + i) * step;
        int64_t got = jpeg_read_scanlines(c, row, (JDIMENSION)n);
        if (got == 0) ERREXIT(c, JERR_INPUT_EMPTY); /* or this would never end */
        if (cmyk && got == 1) cmyk_to_rgb(j->cmyk, out->part.w, j->inverted, out->at + y * step);
        y += got;
    }
    if (cmyk && gray) ctn__rgb_to_gray(out->at, out->part.w * out->part.h, out->at);
}

ctn_status ctn__jpeg_read(ctn__jpeg *j, int shrink, bool gray, const ctn__rect *want,
                          ctn__pixels *out)
{
    struct jpeg_decompress_struct *c = &j->c;
    CTN_TRY(choose_colours(j, gray));
    c->scale_num = 1;
    c->scale_denom = (unsigned)shrink;
    out->channels = gray && c->out_color_space != JCS_CMYK ? 1 : 3;
    if (setjmp(j->back)) return j->st;
    seek(c, want, &out->part);
    CTN_TRY(ctn__pixels_new(out));
    if (c->out_color_space == JCS_CMYK && !(j->cmyk = ctn__malloc((size_t)out->part.w * 4)))
        return CTN_ENOMEM;
    rows_of(j, out, gray);
    if (gray) out->channels = 1;
    return CTN_OK;
}

#else

static ctn_status missing(void)
{
    return ctn_fail(CTN_EUNSUPPORTED, "jpeg: built without libjpeg-turbo");
}

ctn_status ctn__jpeg_open(ctn__jpeg **j, const void *file, size_t bytes, ctn__picture *p)
{
    (void)j, (void)file, (void)bytes, (void)p;
    return missing();
}

ctn_status ctn__jpeg_read(ctn__jpeg *j, int shrink, bool gray, const ctn__rect *want,
                          ctn__pixels *out)
{
    (void)j, (void)shrink, (void)gray, (void)want, (void)out;
    return missing();
}

void ctn__jpeg_close(ctn__jpeg *j)
{
    (void)j;
}

#endif
