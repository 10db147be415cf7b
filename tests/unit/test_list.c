/* SPDX-License-Identifier: Apache-2.0
 *
 * Images that a list names, with and without classes, and images with masks: the mask must follow
 * its image through every crop, scale and flip.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/image.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/folder.h"

/* ---- PNG files, not compressed --------------------------------------------------------------- */

static uint8_t *put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) *p++ = (uint8_t)(v >> (24 - 8 * i));
    return p;
}

static uint8_t *put_chunk(uint8_t *p, const char *name, const uint8_t *data, size_t n)
{
    uint32_t crc = UINT32_MAX;
    p = put32(p, (uint32_t)n);
    uint8_t *from = p;
    memcpy(p, name, 4);
    if (n) memcpy(p + 4, data, n);
    p += 4 + n;
    for (; from < p; from++) {
        crc ^= *from;
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return put32(p, ~crc);
}

/* rows: packed as in the file, `row` bytes each. kind: the colour type of PNG. */
static void write_png(const char *path, int width, int height, int bits, int kind,
                      const uint8_t *rows, int row)
{
    static uint8_t file[70000], data[65000];
    uint8_t head[13] = {0}, palette[3 * 256] = {0}, *p = file, *d = data;
    const size_t n = (size_t)height * (size_t)(row + 1);
    uint32_t a = 1, b = 0; /* Adler-32 */
    put32(put32(head, (uint32_t)width), (uint32_t)height);
    head[8] = (uint8_t)bits;
    head[9] = (uint8_t)kind;
    *d++ = 0x78, *d++ = 1, *d++ = 1; /* one stored block */
    *d++ = (uint8_t)n, *d++ = (uint8_t)(n >> 8), *d++ = (uint8_t)~n, *d++ = (uint8_t)(~n >> 8);
    uint8_t *begin = d;
    for (int y = 0; y < height; y++, d += row) {
        *d++ = 0; /* no filter */
        memcpy(d, rows + y * row, (size_t)row);
    }
    for (; begin < d; begin++) {
        a = (a + *begin) % 65521;
        b = (b + a) % 65521;
    }
    d = put32(d, b << 16 | a);
    memcpy(p, "\x89PNG\r\n\x1a\n", 8);
    p = put_chunk(p + 8, "IHDR", head, sizeof head);
    if (kind == 3) p = put_chunk(p, "PLTE", palette, (size_t)3 << bits);
    p = put_chunk(p, "IDAT", data, (size_t)(d - data));
    p = put_chunk(p, "IEND", NULL, 0);
    write_bytes(path, file, (size_t)(p - file));
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

static void test_list(void **state)
{
    (void)state;
    static const uint8_t level[2][4] = {{10, 10, 10, 10}, {200, 200, 200, 200}};
    const ctn_image_opt o = {.struct_size = sizeof o,
                             .height = 2,
                             .width = 2,
                             .crop = CTN_CROP_WHOLE,
                             .raw = 1,
                             .gray = 1};
    ctn_dataset *ds = NULL;
    uint8_t x[4];
    int64_t label = -1;
    char name[64];
    mkdir("listed", 0777);
    write_png("listed/a.png", 2, 2, 8, 0, level[0], 2);
    write_png("listed/b c.png", 2, 2, 8, 0, level[1], 2);
    write_text("listed/train.txt", "a.png 7\r\n\nb c.png\t0\n./a.png  2");
    assert_int_equal(ctn_image_list_open(&ds, "listed/train.txt", NULL, &o), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), 3);
    assert_int_equal(ctn_dataset_fields(ds), 2);
    assert_int_equal(ctn_dataset_get(ds, 1, (void *[]){x, &label}), CTN_OK);
    assert_true(x[0] == 200 && label == 0);
    assert_int_equal(ctn_dataset_get(ds, 2, (void *[]){x, &label}), CTN_OK);
    assert_true(x[3] == 10 && label == 2);
    ctn_dataset_name(ds, 1, name, sizeof name);
    assert_string_equal(name, "listed/b c.png");
    ctn_dataset_free(ds);
    /* Without classes, with another root. */
    write_text("names.txt", "b c.png\n");
    assert_int_equal(ctn_image_list_open(&ds, "names.txt", "listed", &o), CTN_OK);
    assert_int_equal(ctn_dataset_fields(ds), 1);
    assert_int_equal(ctn_dataset_get(ds, 0, (void *[]){x}), CTN_OK);
    assert_int_equal(x[0], 200);
    ctn_dataset_free(ds);
    assert_int_equal(ctn_image_list_open(&ds, "names.txt", NULL, &o), CTN_OK);
    assert_fails(ctn_dataset_get(ds, 0, (void *[]){x}), CTN_EIO, "b c.png");
    ctn_dataset_free(ds);
    write_text("names.txt", "a.png 1\nb.png\n");
    assert_fails(ctn_image_list_open(&ds, "names.txt", NULL, &o), CTN_EFORMAT,
                 "names.txt: line 2 has no class");
    write_text("names.txt", "\n \n");
    assert_fails(ctn_image_list_open(&ds, "names.txt", NULL, &o), CTN_ENOTFOUND, "names no images");
    assert_fails(ctn_image_list_open(&ds, "absent.txt", NULL, &o), CTN_EIO, "absent.txt");
    unlink("names.txt");
    remove_all("listed");
}

/* ---- masks ----------------------------------------------------------------------------------- */

enum { W = 60, H = 48, LEVEL = 50 };

/* Blocks of 12 x 12 pixels of classes 0 to 4; the image is LEVEL times the class, plus 10. */
static int block_class(int x, int y)
{
    return (x / 12 + 2 * (y / 12)) % 5;
}

static void write_pair(void)
{
    static uint8_t image[H * W], mask[H * W];
    for (int i = 0; i < H * W; i++) {
        mask[i] = (uint8_t)block_class(i % W, i / W);
        image[i] = (uint8_t)(LEVEL * mask[i] + 10);
    }
    mkdir("seg", 0777);
    mkdir("seg/images", 0777);
    mkdir("seg/masks", 0777);
    write_png("seg/images/one.png", W, H, 8, 0, image, W);
    write_png("seg/masks/one.png", W, H, 8, 0, mask, W);
    /* These are not images. */
    write_text("seg/images/.one.png", "hidden");
    write_text("seg/images/notes.txt", "another type");
    write_text("seg/images/README", "no type");
}

/* Image and mask agree, except near the edges of blocks, where the image is a mean. */
static void check_views(const ctn_image_opt *image)
{
    ctn_dataset *ds = NULL;
    static uint8_t x[64 * 64];
    static int64_t y[64 * 64];
    assert_int_equal(ctn_segmentation_open(&ds, "seg",
                                           CTN_OPT(ctn_segmentation_opt, .image = image)),
                     CTN_OK);
    assert_int_equal(ctn_dataset_field(ds, 1)->dtype, CTN_I64);
    assert_int_equal(ctn_dataset_field(ds, 1)->ndim, 2);
    const int64_t n = image->height * image->width;
    int64_t seen = 0, wrong = 0, outside = 0;
    for (uint64_t epoch = 0; epoch < 20; epoch++) {
        const ctn_sample s = {.seed = 3, .epoch = epoch};
        assert_int_equal(ctn_dataset_sample(ds, &s, (void *[]){x, y}), CTN_OK);
        for (int64_t i = 0; i < n; i++, seen++) {
            if (y[i] == -100) {
                assert_int_equal(x[i], 0); /* padding */
                outside++;
            } else if (abs(x[i] - (int)(LEVEL * y[i] + 10)) > LEVEL / 2) {
                wrong++;
            }
        }
    }
    if (wrong * 20 > seen) fail_msg("crop %d: %d of %d", image->crop, (int)wrong, (int)seen);
    assert_true((outside > 0) == (image->crop == CTN_CROP_PAD));
    ctn_dataset_free(ds);
}

static void test_views(void **state)
{
    (void)state;
    write_pair();
    ctn_image_opt o = {.struct_size = sizeof o, .raw = 1, .gray = 1, .flip = 1};
    o.height = 64, o.width = 56, o.crop = CTN_CROP_RANDOM, o.scale[0] = 0.2;
    check_views(&o);
    o.crop = CTN_CROP_WHOLE;
    check_views(&o);
    o.height = 40, o.width = 44, o.resize = 44, o.crop = CTN_CROP_CENTER;
    check_views(&o);
    o.height = H, o.width = W, o.pad = 5, o.crop = CTN_CROP_PAD;
    check_views(&o);
    /* Without a change of size, the mask is exact. */
    o.flip = 0, o.crop = CTN_CROP_WHOLE;
    ctn_dataset *ds = NULL;
    static uint8_t x[W * H];
    static int64_t y[W * H];
    assert_int_equal(ctn_segmentation_open(&ds, "seg", CTN_OPT(ctn_segmentation_opt, .image = &o)),
                     CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 0, (void *[]){x, y}), CTN_OK);
    for (int i = 0; i < W * H; i++) assert_int_equal(y[i], block_class(i % W, i / W));
    ctn_dataset_free(ds);
}

/* Bits, palettes, pixels to ignore, names of classes, lists of pairs, and what is refused. */
static void test_masks(void **state)
{
    (void)state;
    static const uint8_t bits1[] = {0xa0, 0x40}, bits4[] = {0x12, 0x30, 0x4f, 0xf0},
                         bytes[] = {0, 1, 2, 255, 4, 5}, colours[18] = {0};
    const ctn_image_opt o = {
        .struct_size = sizeof o, .height = 2, .width = 3, .crop = CTN_CROP_WHOLE, .raw = 1};
    ctn_segmentation_opt so = {.struct_size = sizeof so, .image = &o};
    ctn_dataset *ds = NULL;
    uint8_t x[18];
    int64_t y[6];
    write_pair();
    write_png("seg/i.png", 3, 2, 8, 0, bytes, 3);
    write_png("seg/1.png", 3, 2, 1, 0, bits1, 1);
    write_png("seg/4.png", 3, 2, 4, 3, bits4, 2);
    write_png("seg/8.png", 3, 2, 8, 3, bytes, 3);
    write_png("seg/rgb.png", 3, 2, 8, 2, colours, 9);
    write_text("seg/pairs.txt", "i.png 1.png\ni.png\t4.png\ni.png 8.png\ni.png rgb.png\n"
                                "i.png masks/one.png\ni.png pairs.txt\n");
    assert_int_equal(ctn_segmentation_open(&ds, "seg/pairs.txt", &so), CTN_OK);
    static const int64_t want[3][6] = {{1, 0, 1, 0, 1, 0},
                                       {1, 2, 3, 4, 15, 15},
                                       {0, 1, 2, -100, 4, 5}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ctn_dataset_get(ds, i, (void *[]){x, y}), CTN_OK);
        assert_memory_equal(y, want[i], sizeof y);
    }
    assert_fails(ctn_dataset_get(ds, 3, (void *[]){x, y}), CTN_EUNSUPPORTED, "seg/rgb.png");
    assert_fails(ctn_dataset_get(ds, 4, (void *[]){x, y}), CTN_EFORMAT, "60 x 48 pixels");
    assert_fails(ctn_dataset_get(ds, 5, (void *[]){x, y}), CTN_EUNSUPPORTED, "must be a PNG");
    ctn_dataset_free(ds);
    so.ignore = -1;
    assert_int_equal(ctn_segmentation_open(&ds, "seg/pairs.txt", &so), CTN_OK);
    assert_int_equal(ctn_dataset_get(ds, 2, (void *[]){x, y}), CTN_OK);
    assert_int_equal(y[3], 255);
    ctn_dataset_free(ds);
    write_text("seg/classes.txt", "sky\nroad\n");
    assert_int_equal(ctn_segmentation_open(&ds, "seg", &so), CTN_OK);
    assert_int_equal(ctn_dataset_classes(ds), 2);
    assert_string_equal(ctn_dataset_class(ds, 1), "road");
    unlink("seg/masks/one.png");
    assert_fails(ctn_dataset_get(ds, 0, (void *[]){x, y}), CTN_EIO, "seg/masks/one.png");
    ctn_dataset_free(ds);
    write_text("seg/pairs.txt", "i.png\n");
    assert_fails(ctn_segmentation_open(&ds, "seg/pairs.txt", &so), CTN_EFORMAT, "line 1");
    assert_fails(ctn_segmentation_open(&ds, "absent", &so), CTN_EIO, "absent");
    unlink("seg/images/one.png");
    assert_fails(ctn_segmentation_open(&ds, "seg", &so), CTN_ENOTFOUND, "no JPEG or PNG");
    remove_all("seg");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
