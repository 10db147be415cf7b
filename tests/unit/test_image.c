/* SPDX-License-Identifier: Apache-2.0
 *
 * Image files: partial and scaled JPEG decoding against full decoding, kinds of JPEG and PNG,
 * orientations, damaged and foreign files, a failing allocator. The files are made here. With
 * CATENA_DATA, also photos and the awkward files of oxford-pets-subset. Resampling is in
 * test_resample.c, random choices in test_augment.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
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

#if defined(CTN_HAVE_JPEG) && defined(CTN_HAVE_SPNG)

#include <jpeglib.h>
#include <spng.h>

/* ---- pictures made here ---------------------------------------------------------------------- */

typedef struct {
    unsigned char *at;
    size_t bytes;
} file;

/* Smooth, with a few edges, and different in every corner. */
static uint8_t shade(int64_t x, int64_t y, int c, int64_t w, int64_t h)
{
    double u = (double)x / (double)w, v = (double)y / (double)h;
    double s = 128 + 60 * sin(7 * u + c) + 50 * cos(5 * v + 2 * c) + (u + v > 1.2 ? 15 : 0);
    return (uint8_t)(s < 0 ? 0 : s > 255 ? 255 : s);
}

static uint8_t *picture(int64_t w, int64_t h, int channels)
{
    uint8_t *p = malloc((size_t)(w * h * channels));
    assert_non_null(p);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            for (int c = 0; c < channels; c++) p[(y * w + x) * channels + c] = shade(x, y, c, w, h);
    return p;
}

typedef struct {
    int channels; /* 1, 3; 4: CMYK */
    int sampling; /* of luminance, in both directions; 0: 1 */
    int ycck, progressive, restart, turn, big_endian;
} jpeg_kind;

static void write_turn(j_compress_ptr c, const jpeg_kind *k)
{
    unsigned char m[6 + 8 + 2 + 12 + 4] = "Exif\0";
    unsigned char *t = m + 6;
    const int big = k->big_endian;
    static const unsigned char head[2][18] = {"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0",
                                              "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01"};
    memcpy(t, head[big], sizeof head[big]);
    t[18 + (big ? 1 : 0)] = (unsigned char)k->turn;
    jpeg_write_marker(c, JPEG_APP0 + 1, m, sizeof m);
}

static file make_jpeg(const uint8_t *p, int64_t w, int64_t h, const jpeg_kind *k)
{
    file f = {0};
    unsigned long bytes = 0;
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr err;
    c.err = jpeg_std_error(&err);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &f.at, &bytes);
    c.image_width = (JDIMENSION)w;
    c.image_height = (JDIMENSION)h;
    c.input_components = k->channels;
    c.in_color_space = k->channels == 1 ? JCS_GRAYSCALE : k->channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&c);
    if (k->ycck) jpeg_set_colorspace(&c, JCS_YCCK);
    jpeg_set_quality(&c, 95, TRUE);
    if (k->progressive) jpeg_simple_progression(&c);
    c.restart_in_rows = k->restart;
    c.comp_info[0].h_samp_factor = c.comp_info[0].v_samp_factor = k->sampling ? k->sampling : 1;
    jpeg_start_compress(&c, TRUE);
    if (k->turn) write_turn(&c, k);
    for (int64_t y = 0; y < h; y++) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(p + y * w * k->channels);
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    f.bytes = bytes;
    return f;
}

static file jpeg_of(int64_t w, int64_t h, const jpeg_kind *k)
{
    uint8_t *p = picture(w, h, k->channels);
    file f = make_jpeg(p, w, h, k);
    free(p);
    return f;
}

static uint8_t *decode_raw(const file *f, int64_t h, int64_t w, ctn_image_opt o)
{
    uint8_t *out = malloc((size_t)(h * w * 3));
    assert_non_null(out);
    o.struct_size = sizeof o;
    o.height = h;
    o.width = w;
    o.raw = o.channels_last = 1;
    OK(ctn_image_decode(f->at, f->bytes, &o, NULL, out));
    return out;
}

static double mean_difference(const uint8_t *a, const uint8_t *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += abs(a[i] - b[i]);
    return sum / (double)n;
}

/* ---- JPEG ------------------------------------------------------------------------------------ */

static ctn__pixels read_part(const file *f, int shrink, bool gray, ctn__rect want)
{
    ctn__jpeg *j = NULL;
    ctn__picture pic;
    ctn__pixels px = {0};
    OK(ctn__jpeg_open(&j, f->at, f->bytes, &pic));
    OK(ctn__jpeg_read(j, shrink, gray, &want, &px));
    ctn__jpeg_close(j);
    assert_true(px.part.x <= want.x && px.part.x + px.part.w >= want.x + want.w);
    assert_true(px.part.y <= want.y && px.part.y + px.part.h >= want.y + want.h);
    return px;
}

/* Any part of a picture is bitwise equal to that part of the fully decoded picture. */
static void test_parts(void **state)
{
    (void)state;
    static const jpeg_kind kinds[] = {
        {.channels = 3}, {.channels = 3, .sampling = 2},
        {.channels = 1}, {.channels = 3, .sampling = 2, .progressive = 1},
        {.channels = 4}, {.channels = 3, .sampling = 2, .restart = 1},
    };
    static const ctn__rect parts[] = {
        {0, 0, 1, 1},      {150, 98, 1, 1}, {17, 0, 50, 99},  {33, 21, 64, 40},
        {140, 60, 11, 39}, {1, 1, 149, 97}, {16, 16, 16, 16}, {63, 47, 3, 3},
    };
    const int64_t w = 151, h = 99;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int shrink = 1; shrink <= 8; shrink *= 2) {
            file f = jpeg_of(w, h, &kinds[k]);
            const int64_t sw = (w + shrink - 1) / shrink, sh = (h + shrink - 1) / shrink;
            ctn__pixels full = read_part(&f, shrink, false, (ctn__rect){0, 0, sw, sh});
            assert_true(full.part.w == sw && full.part.h == sh && full.channels == 3);
            for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
                ctn__rect r = {parts[i].x / shrink, parts[i].y / shrink, 0, 0};
                r.w = (parts[i].x + parts[i].w + shrink - 1) / shrink - r.x;
                r.h = (parts[i].y + parts[i].h + shrink - 1) / shrink - r.y;
                ctn__pixels p = read_part(&f, shrink, false, r);
                for (int64_t y = r.y; y < r.y + r.h; y++) {
                    const uint8_t *a = p.at + ((y - p.part.y) * p.part.w + r.x - p.part.x) * 3;
                    const uint8_t *b = full.at + (y * sw + r.x) * 3;
                    if (memcmp(a, b, (size_t)r.w * 3) != 0)
                        fail_msg("kind %zu, 1/%d, part %zu: row %d differs", k, shrink, i, (int)y);
                }
                ctn__free(p.at);
            }
            ctn__free(full.at);
            free(f.at);
        }
}

static void test_jpeg_kinds(void **state)
{
    (void)state;
    const int64_t w = 120, h = 80;
    uint8_t *rgb = picture(w, h, 3);
    static const jpeg_kind kinds[] = {{.channels = 3},
                                      {.channels = 3, .sampling = 2},
                                      {.channels = 3, .progressive = 1}};
    for (size_t k = 0; k < 3; k++) {
        file f = make_jpeg(rgb, w, h, &kinds[k]);
        uint8_t *got = decode_raw(&f, h, w, (ctn_image_opt){.crop = CTN_CROP_WHOLE});
        double d = mean_difference(got, rgb, w * h * 3);
        if (d > 2) fail_msg("kind %zu: differs by %g", k, d);
        free(got);
        /* One of its channels. */
        uint8_t *gray = malloc((size_t)(w * h)), *want = malloc((size_t)(w * h));
        assert_true(gray && want);
        OK(ctn_image_decode(f.at, f.bytes,
                            CTN_OPT(ctn_image_opt, .height = h, .width = w, .crop = CTN_CROP_WHOLE,
                                    .raw = 1, .gray = 1),
                            NULL, gray));
        ctn__rgb_to_gray(rgb, w * h, want);
        assert_true(mean_difference(gray, want, w * h) < 1.5);
        free(gray);
        free(want);
        free(f.at);
    }
    file g = jpeg_of(w, h, &(jpeg_kind){.channels = 1});
    uint8_t *got = decode_raw(&g, h, w, (ctn_image_opt){.crop = CTN_CROP_WHOLE});
    double sum = 0;
    for (int64_t i = 0; i < w * h; i++) {
        assert_true(got[3 * i] == got[3 * i + 1] && got[3 * i] == got[3 * i + 2]);
        sum += abs(got[3 * i] - shade(i % w, i / w, 0, w, h));
    }
    assert_true(sum / (double)(w * h) < 2);
    free(got);
    free(g.at);
    free(rgb);
}

/* Plain CMYK, and inverted as Adobe's programs write it (libjpeg marks YCCK files as Adobe's). */
static void test_cmyk(void **state)
{
    (void)state;
    const int64_t w = 64, h = 48;
    uint8_t *ink = picture(w, h, 4), *want = malloc((size_t)(w * h * 3));
    assert_non_null(want);
    for (int ycck = 0; ycck < 2; ycck++) {
        file f = make_jpeg(ink, w, h, &(jpeg_kind){.channels = 4, .ycck = ycck});
        /* libjpeg writes its Adobe marker for both. Without it, values are plain ink. */
        if (!ycck) {
            unsigned char *m = memmem(f.at, f.bytes, "Adobe", 5);
            assert_non_null(m);
            m[0] = 'X';
        }
        for (int64_t i = 0; i < w * h; i++)
            for (int c = 0; c < 3; c++) {
                int a = ink[4 * i + c], k = ink[4 * i + 3];
                want[3 * i + c] = (uint8_t)((ycck ? a * k : (255 - a) * (255 - k)) / 255);
            }
        uint8_t *got = decode_raw(&f, h, w, (ctn_image_opt){.crop = CTN_CROP_WHOLE});
        double d = mean_difference(got, want, w * h * 3);
        if (d > 2) fail_msg("ycck %d: differs by %g", ycck, d);
        free(got);
        free(f.at);
    }
    free(ink);
    free(want);
}

/* The pixel of the upright W x H picture that stored pixel (x,y) of w x h becomes. */
static void upright(int turn, int64_t x, int64_t y, int64_t w, int64_t h, int64_t *X, int64_t *Y)
{
    static const int table[9][3] = {{0},       {0, 0, 0}, {0, 1, 0}, {0, 1, 1}, {0, 0, 1},
                                    {1, 0, 0}, {1, 1, 0}, {1, 1, 1}, {1, 0, 1}};
    *X = table[turn][0] ? y : x;
    *Y = table[turn][0] ? x : y;
    int64_t W = table[turn][0] ? h : w, H = table[turn][0] ? w : h;
    if (table[turn][1]) *X = W - 1 - *X;
    if (table[turn][2]) *Y = H - 1 - *Y;
}

/* Every orientation of a stored file gives the same upright picture, whole and cropped. */
static void test_turns(void **state)
{
    (void)state;
    const int64_t W = 96, H = 64;
    uint8_t *up = picture(W, H, 3), *stored = malloc((size_t)(W * H * 3));
    assert_non_null(stored);
    file plain = make_jpeg(up, W, H, &(jpeg_kind){.channels = 3});
    for (int turn = 1; turn <= 8; turn++)
        for (int big = 0; big < 2; big++) {
            const int64_t w = turn > 4 ? H : W, h = turn > 4 ? W : H;
            for (int64_t y = 0; y < h; y++)
                for (int64_t x = 0; x < w; x++) {
                    int64_t X, Y;
                    upright(turn, x, y, w, h, &X, &Y);
                    memcpy(stored + (y * w + x) * 3, up + (Y * W + X) * 3, 3);
                }
            file f = make_jpeg(stored, w, h,
                               &(jpeg_kind){.channels = 3, .turn = turn, .big_endian = big});
            static const ctn_image_opt ways[] = {
                {.crop = CTN_CROP_WHOLE},
                {.crop = CTN_CROP_CENTER, .resize = 40},
                {.crop = CTN_CROP_RANDOM, .flip = 1},
                {.crop = CTN_CROP_PAD, .pad = 7, .flip = 1},
            };
            for (int k = 0; k < 8; k++) { /* the decoder scales down the small ones */
                const int64_t oh = k < 4 ? 33 : 9, ow = k < 4 ? 30 : 8;
                uint8_t *got = decode_raw(&f, oh, ow, ways[k % 4]);
                uint8_t *want = decode_raw(&plain, oh, ow, ways[k % 4]);
                double d = mean_difference(got, want, oh * ow * 3);
                if (d > 1) fail_msg("turn %d, way %d: differs by %g", turn, k, d);
                free(got);
                free(want);
            }
            free(f.at);
        }
    free(plain.at);
    free(stored);
    free(up);
}

static void test_exif(void **state)
{
    (void)state;
    unsigned char t[] = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    assert_int_equal(ctn__exif_turn(t, sizeof t - 1), 6);
    for (size_t n = 0; n < 22; n++) assert_int_equal(ctn__exif_turn(t, n), 1);
    for (unsigned char turn = 0; turn < 12; turn++) {
        t[18] = turn;
        assert_int_equal(ctn__exif_turn(t, sizeof t - 1), turn >= 1 && turn <= 8 ? turn : 1);
    }
    t[18] = 6;
    t[12] = 4; /* a long number instead of a short one */
    assert_int_equal(ctn__exif_turn(t, sizeof t - 1), 1);
    t[12] = 3;
    assert_int_equal(ctn__exif_turn(t, sizeof t - 1), 6);
    /* Another entry before it. */
    unsigned char two[] = "MM\0*\0\0\0\x08\0\x02\x01\x0f\0\x03\0\0\0\x01\0\x05\0\0"
                          "\x01\x12\0\x03\0\0\0\x01\0\x03\0\0\0\0\0\0";
    assert_int_equal(ctn__exif_turn(two, sizeof two - 1), 3);
    t[4] = 0xff;
    t[7] = 0xff; /* the directory is far away */
    assert_int_equal(ctn__exif_turn(t, sizeof t - 1), 1);
}

/* ---- PNG ------------------------------------------------------------------------------------- */

static file make_png(const struct spng_ihdr *head, const void *pixels, size_t bytes,
                     struct spng_plte *plte)
{
    file f = {0};
    int code = 0;
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    assert_non_null(ctx);
    struct spng_ihdr h = *head;
    assert_int_equal(spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1), 0);
    assert_int_equal(spng_set_ihdr(ctx, &h), 0);
    if (plte) assert_int_equal(spng_set_plte(ctx, plte), 0);
    assert_int_equal(spng_encode_image(ctx, pixels, bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
    f.at = spng_get_png_buffer(ctx, &f.bytes, &code);
    assert_true(f.at && code == 0);
    spng_ctx_free(ctx);
    return f;
}

static void test_png_kinds(void **state)
{
    (void)state;
    enum { W = 23, H = 17 };
    static const struct {
        uint8_t type, depth;
        int channels;
    } kinds[] = {{SPNG_COLOR_TYPE_GRAYSCALE, 8, 1},       {SPNG_COLOR_TYPE_TRUECOLOR, 8, 3},
                 {SPNG_COLOR_TYPE_INDEXED, 8, 1},         {SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 8, 2},
                 {SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 8, 4}, {SPNG_COLOR_TYPE_GRAYSCALE, 16, 1},
                 {SPNG_COLOR_TYPE_TRUECOLOR, 16, 3}};
    struct spng_plte plte = {.n_entries = 256};
    for (int i = 0; i < 256; i++)
        plte.entries[i] =
            (struct spng_plte_entry){(uint8_t)i, (uint8_t)(255 - i), (uint8_t)(i / 2), 0};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (uint8_t interlaced = 0; interlaced < 2; interlaced++) {
            const int C = kinds[k].channels, wide = kinds[k].depth / 8;
            uint8_t *p = picture(W, H, C), *want = malloc(W * H * 3);
            uint16_t *p16 = malloc(sizeof(uint16_t) * W * H * (size_t)C);
            assert_true(want && p16);
            for (int i = 0; i < W * H * C; i++) p16[i] = (uint16_t)(p[i] << 8 | 0x11);
            for (int i = 0; i < W * H; i++) {
                const uint8_t *v = p + i * C;
                for (int c = 0; c < 3; c++) want[3 * i + c] = C < 3 ? v[0] : v[c];
                if (kinds[k].type == SPNG_COLOR_TYPE_INDEXED)
                    memcpy(want + 3 * i, &plte.entries[v[0]], 3);
            }
            struct spng_ihdr head = {W, H, kinds[k].depth, kinds[k].type, 0, 0, interlaced};
            file f = make_png(&head, wide == 2 ? (void *)p16 : p, W * H * (size_t)(C * wide),
                              kinds[k].type == SPNG_COLOR_TYPE_INDEXED ? &plte : NULL);
            uint8_t *got = decode_raw(&f, H, W, (ctn_image_opt){.crop = CTN_CROP_WHOLE});
            assert_memory_equal(got, want, W * H * 3);
            free(got);
            /* The middle, for which rows are skipped: 10 x 9 of a picture of 23 x 17, unscaled. */
            got = decode_raw(&f, 9, 10, (ctn_image_opt){.crop = CTN_CROP_CENTER, .resize = 17});
            for (int y = 0; y < 9; y++)
                assert_memory_equal(got + y * 30, want + ((y + 4) * W + 6) * 3, 30);
            free(got);
            free(f.at);
            free(p);
            free(p16);
            free(want);
        }
}

/* ---- damaged and foreign files --------------------------------------------------------------- */

static void hurt(const file *f, size_t step)
{
    float out[3 * 20 * 20];
    const ctn_image_opt *ways[] = {CTN_OPT(ctn_image_opt, .height = 20, .width = 20,
                                           .crop = CTN_CROP_WHOLE),
                                   CTN_OPT(ctn_image_opt, .height = 20, .width = 20,
                                           .crop = CTN_CROP_RANDOM)};
    unsigned char *bad = malloc(f->bytes);
    assert_non_null(bad);
    for (size_t n = 0; n < f->bytes; n += step) {
        /* A copy of the exact size, so that a read beyond the end is seen. */
        unsigned char *cut = malloc(n ? n : 1);
        assert_non_null(cut);
        memcpy(cut, f->at, n);
        ctn_status st = ctn_image_decode(cut, n, ways[0], NULL, out);
        if (n + 16 < f->bytes) assert_int_equal(st, CTN_EFORMAT);
        ctn_error_clear();
        free(cut);
        for (int bit = 0; bit < 8; bit += 3)
            for (int k = 0; k < 2; k++) {
                memcpy(bad, f->at, f->bytes);
                bad[n] ^= (unsigned char)(1 << bit);
                st = ctn_image_decode(bad, f->bytes, ways[k], &(ctn_sample){(int64_t)n, 1, 2, 0},
                                      out);
                assert_true(st == CTN_OK || st == CTN_EFORMAT || st == CTN_EUNSUPPORTED);
                if (st != CTN_OK) assert_true(strlen(ctn_error_message()) > 8);
                ctn_error_clear();
            }
    }
    free(bad);
}

static void test_damaged(void **state)
{
    (void)state;
    static const jpeg_kind kinds[] = {{.channels = 3, .sampling = 2, .turn = 6},
                                      {.channels = 3, .progressive = 1},
                                      {.channels = 4, .ycck = 1}};
    for (size_t k = 0; k < 3; k++) {
        file f = jpeg_of(60, 50, &kinds[k]);
        hurt(&f, 50);
        for (size_t n = 0; n < 200; n++) hurt(&(file){f.at, n}, 50);
        free(f.at);
    }
    uint8_t *p = picture(60, 50, 3);
    for (uint8_t interlaced = 0; interlaced < 2; interlaced++) {
        file f =
            make_png(&(struct spng_ihdr){60, 50, 8, SPNG_COLOR_TYPE_TRUECOLOR, 0, 0, interlaced}, p,
                     60 * 50 * 3, NULL);
        f.bytes -= 12; /* the end marker is not needed */
        hurt(&f, 50);
        free(f.at);
    }
    free(p);
}

static void test_foreign(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *part;
        ctn_status st;
    } cases[] = {
        {"GIF89a..............", "the file is GIF", CTN_EUNSUPPORTED},
        {"RIFF....WEBPVP8 ....", "the file is WebP", CTN_EUNSUPPORTED},
        {"BM..................", "the file is BMP", CTN_EUNSUPPORTED},
        {"....ftypavif........", "HEIF", CTN_EUNSUPPORTED},
        {"<html>              ", "starts with bytes 3c 68 74 6d", CTN_EFORMAT},
    };
    float out[3 * 20 * 20];
    const ctn_image_opt *o = CTN_OPT(ctn_image_opt, .height = 20, .width = 20);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_fails(ctn_image_decode(cases[i].bytes, 20, o, NULL, out), cases[i].st,
                     cases[i].part);
    assert_fails(ctn_image_decode("", 0, o, NULL, out), CTN_EFORMAT, "has only 0 bytes");
    assert_fails(ctn_image_decode(NULL, 0, o, NULL, out), CTN_EARG, "NULL");
}

/* A header that promises 65500 x 65500 pixels costs neither memory nor time. */
static void test_bomb(void **state)
{
    (void)state;
    file f = jpeg_of(32, 32, &(jpeg_kind){.channels = 3});
    unsigned char *sof = memmem(f.at, f.bytes, "\xff\xc0", 2);
    assert_non_null(sof);
    for (int i = 0; i < 4; i++) sof[5 + i] = i % 2 ? 0xdc : 0xff;
    float out[3 * 20 * 20];
    assert_fails(ctn_image_decode(f.at, f.bytes, CTN_OPT(ctn_image_opt, .height = 20, .width = 20),
                                  NULL, out),
                 CTN_EUNSUPPORTED, "65500 x 65500");
    free(f.at);
}

/* ---- no memory ------------------------------------------------------------------------------- */

static int64_t grants;

static void *scarce(void *user, size_t bytes, size_t align)
{
    (void)user;
    if (grants-- <= 0) return NULL;
    void *p = NULL;
    return posix_memalign(&p, align, bytes) == 0 ? p : NULL;
}

static void give_back(void *user, void *p)
{
    (void)user;
    free(p);
}

static void test_no_memory(void **state)
{
    (void)state;
    float out[3 * 20 * 20];
    file f = jpeg_of(60, 50, &(jpeg_kind){.channels = 4, .turn = 6});
    int failures = 0;
    for (int64_t n = 0; n < 50; n++) {
        grants = n;
        assert_int_equal(ctn_set_allocator(&(ctn_allocator){scarce, give_back, NULL}), CTN_OK);
        ctn_status st =
            ctn_image_decode(f.at, f.bytes,
                             CTN_OPT(ctn_image_opt, .height = 20, .width = 20, .brightness = 0.1),
                             NULL, out);
        assert_int_equal(ctn_set_allocator(NULL), CTN_OK); /* would fail if memory were left */
        if (st == CTN_OK) break;
        assert_int_equal(st, CTN_ENOMEM);
        ctn_error_clear();
        failures++;
    }
    assert_true(failures >= 4 && failures < 50);
    free(f.at);
}

/* ---- real photos ----------------------------------------------------------------------------- */

/* The members of a plain tar file, in order. */
typedef struct {
    unsigned char *at;
    size_t bytes, pos;
} tar;

static bool tar_next(tar *t, char name[101], file *f)
{
    while (t->pos + 512 <= t->bytes && t->at[t->pos]) {
        const unsigned char *h = t->at + t->pos;
        char size[13] = {0};
        memcpy(name, h, 100);
        name[100] = 0;
        memcpy(size, h + 124, 12);
        f->bytes = (size_t)strtoull(size, NULL, 8);
        f->at = t->at + t->pos + 512;
        t->pos += 512 + (f->bytes + 511) / 512 * 512;
        if (h[156] == '0' && strstr(name, ".jpg")) return true;
    }
    return false;
}

static tar open_photos(void)
{
    tar t = {0};
    char path[4096];
    const char *dir = getenv("CATENA_DATA");
    if (!dir) return t;
    snprintf(path, sizeof path, "%s/oxford-pets-subset/pets.tar", dir);
    FILE *f = fopen(path, "rb");
    if (!f) return t;
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    t.bytes = (size_t)ftell(f);
    assert_int_equal(fseek(f, 0, SEEK_SET), 0);
    t.at = malloc(t.bytes);
    assert_non_null(t.at);
    assert_int_equal(fread(t.at, 1, t.bytes, f), t.bytes);
    fclose(f);
    return t;
}

static void test_edge_files(void **state)
{
    (void)state;
    tar t = open_photos();
    if (!t.at) skip();
    static float out[3 * 224 * 224];
    char name[101];
    file f;
    int seen = 0;
    while (tar_next(&t, name, &f)) {
        if (strncmp(name, "edge/", 5) != 0) continue;
        seen++;
        for (int k = 0; k < 4; k++) {
            ctn_status st =
                ctn_image_decode(f.at, f.bytes, CTN_OPT(ctn_image_opt, .crop = (ctn_crop)k),
                                 &(ctn_sample){seen, 1, 1, 0}, out);
            if (k == CTN_CROP_WHOLE)
                print_message("%s: %s\n", name, st == CTN_OK ? "decoded" : ctn_error_message());
            assert_true(st == CTN_OK || st == CTN_EFORMAT || st == CTN_EUNSUPPORTED);
            if (strstr(name, "is_gif")) assert_fails(st, CTN_EUNSUPPORTED, "the file is GIF");
            else if (!strstr(name, "corrupt")) assert_int_equal(st, CTN_OK);
            ctn_error_clear();
        }
    }
    assert_int_equal(seen, 18);
    free(t.at);
}

/* The same view, computed from the whole picture at full size. */
static void reference(const ctn_image_opt *o, const ctn_sample *s, const ctn__pixels *full,
                      uint8_t *out)
{
    ctn__view v;
    ctn__choose_view(o, s, full->part.w, full->part.h, &v);
    OK(ctn__resample(o, s, full, &v, out));
}

/* Crops of photos, partially decoded and scaled down by the decoder, against the same crops from
 * full decoding. */
static void test_quality(void **state)
{
    (void)state;
    tar t = open_photos();
    if (!t.at) skip();
    static uint8_t got[3 * 224 * 224], want[3 * 224 * 224];
    static const int sides[] = {224, 112, 64, 32};
    double worst = 0, sum = 0;
    int n = 0, shrunk = 0;
    char name[101];
    file f;
    while (tar_next(&t, name, &f)) {
        if (strncmp(name, "photos", 6) != 0) continue;
        ctn__jpeg *j = NULL;
        ctn__picture pic;
        OK(ctn__jpeg_open(&j, f.at, f.bytes, &pic));
        ctn__jpeg_close(j);
        assert_int_equal(pic.turn, 1);
        ctn__pixels full = read_part(&f, 1, false, (ctn__rect){0, 0, pic.width, pic.height});
        for (int k = 0; k < 8; k++) {
            const int64_t side = sides[k / 2];
            ctn_sample s = {n++, 1, 1, 0};
            ctn_image_opt o;
            OK(ctn__image_opt("t", &o,
                              CTN_OPT(ctn_image_opt, .height = side, .width = side, .raw = 1,
                                      .crop = k % 2 ? CTN_CROP_RANDOM : CTN_CROP_CENTER),
                              0, 0));
            OK(ctn__image_load(&o, f.at, f.bytes, &s, got));
            reference(&o, &s, &full, want);
            double d = mean_difference(got, want, 3 * side * side);
            if (d > 0) shrunk++;
            sum += d;
            if (d > worst) worst = d;
            if (d > 2)
                fail_msg("%s, %d px, crop %d: differs by %g levels", name, (int)side, k % 2, d);
        }
        ctn__free(full.at);
    }
    print_message("%d crops, %d differ, mean %.3f, worst %.3f levels\n", n, shrunk, sum / n, worst);
    assert_true(n > 1000 && shrunk > 100);
    free(t.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),      cmocka_unit_test(test_jpeg_kinds),
        cmocka_unit_test(test_cmyk),       cmocka_unit_test(test_turns),
        cmocka_unit_test(test_exif),       cmocka_unit_test(test_png_kinds),
        cmocka_unit_test(test_damaged),    cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_bomb),       cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_edge_files), cmocka_unit_test(test_quality),
    };
    return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* a build without libjpeg-turbo or libspng */
}

#endif
