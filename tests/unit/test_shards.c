/* SPDX-License-Identifier: Apache-2.0
 *
 * Image folders, tar shards, their stored indexes, staging, packing. The images are 4x4 PNG
 * files of one colour, made here, so that a sample shows which file it came from.
 */
#include <dirent.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/image.h>
#include <catena/log.h>

#include <cmocka.h>

#include "support/check.h"

#include "data/source.h"

enum { SIDE = 4, ROW = 1 + 3 * SIDE, PIXELS = SIDE * ROW };

#define SMALL \
    CTN_OPT(ctn_image_opt, .height = SIDE, .width = SIDE, .crop = CTN_CROP_WHOLE, .raw = 1)

/* The bytes of a text without its final 0. */
static void put_text(void *to, const char *text, size_t n)
{
    memcpy(to, text, n);
}

static size_t read_bytes(const char *path, uint8_t *data, size_t most)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(data, 1, most, f);
    fclose(f);
    return n;
}

/* ---- images ---------------------------------------------------------------------------------- */

static uint32_t crc(const uint8_t *p, size_t n)
{
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
    return p + 4;
}

static uint8_t *chunk(uint8_t *p, const char *type, const uint8_t *data, size_t n)
{
    uint8_t *from = put32(p, (uint32_t)n);
    memcpy(from, type, 4);
    if (n) memcpy(from + 4, data, n);
    return put32(from + 4 + n, crc(from, n + 4));
}

/* One colour, as stored (uncompressed) deflate blocks. Returns the number of bytes. */
static size_t make_png(uint8_t *out, uint8_t r, uint8_t g, uint8_t b)
{
    static const uint8_t head[13] = {0, 0, 0, SIDE, 0, 0, 0, SIDE, 8, 2, 0, 0, 0};
    uint8_t z[2 + 5 + PIXELS + 4] = {0x78, 1, 1, PIXELS, 0, 255 - PIXELS, 255}, *x = z + 7;
    uint32_t s1 = 1, s2 = 0;
    for (int i = 0; i < PIXELS; i++) {
        const int at = i % ROW;
        x[i] = at == 0 ? 0 : at % 3 == 1 ? r : at % 3 == 2 ? g : b;
        s1 = (s1 + x[i]) % 65521;
        s2 = (s2 + s1) % 65521;
    }
    put32(x + PIXELS, s2 << 16 | s1);
    put_text(out, "\x89PNG\r\n\x1a\n", 8);
    uint8_t *p = chunk(out + 8, "IHDR", head, sizeof head);
    p = chunk(p, "IDAT", z, sizeof z);
    p = chunk(p, "IEND", NULL, 0);
    return (size_t)(p - out);
}

static void write_png(const char *path, uint8_t r, uint8_t g)
{
    uint8_t png[256];
    write_bytes(path, png, make_png(png, r, g, 77));
}

struct got {
    uint8_t r, g, b;
    int64_t label;
};

static struct got get(ctn_dataset *ds, int64_t i)
{
    uint8_t x[3 * SIDE * SIDE];
    struct got y;
    ctn_status st = ctn_dataset_get(ds, i, (void *[]){x, &y.label});
    if (st != CTN_OK) fail_msg("sample %d: %s", (int)i, ctn_error_message());
    y.r = x[0];
    y.g = x[SIDE * SIDE];
    y.b = x[2 * SIDE * SIDE];
    assert_int_equal(y.b, 77);
    return y;
}

/* ---- tar files ------------------------------------------------------------------------------- */

struct tar {
    uint8_t data[1 << 16];
    size_t n;
};

static void tar_add(struct tar *t, const char *name, const void *data, size_t n, char type)
{
    uint8_t *h = t->data + t->n;
    unsigned sum = 0;
    memset(h, 0, 512 + (n + 511) / 512 * 512);
    snprintf((char *)h, 100, "%s", name);
    put_text(h + 100, "0000644", 7);
    snprintf((char *)h + 124, 12, "%011o", (unsigned)n);
    put_text(h + 136, "00000000000", 11);
    memset(h + 148, ' ', 8);
    h[156] = (uint8_t)type;
    put_text(h + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++) sum += h[i];
    snprintf((char *)h + 148, 8, "%06o", sum & 0777777u);
    memcpy(h + 512, data, n);
    t->n += 512 + (n + 511) / 512 * 512;
}

static void tar_png(struct tar *t, const char *name, uint8_t r, uint8_t g)
{
    uint8_t png[256];
    tar_add(t, name, png, make_png(png, r, g, 77), '0');
}

static void tar_end(struct tar *t, const char *path)
{
    memset(t->data + t->n, 0, 1024);
    write_bytes(path, t->data, t->n + 1024);
    t->n = 0;
}

static struct tar tar;

/* Everything a tar file may contain: classes before and after images, folders, other files, long
 * names. */
static void write_sample_tar(const char *path)
{
    char longer[190];
    memset(longer, 'x', sizeof longer);
    put_text(longer, "p/", 2);
    memcpy(longer + 180, ".png", 5);
    tar.n = 0;
    tar_add(&tar, "d/", "", 0, '5');
    tar_add(&tar, "d/000.cls", "3", 1, '0');
    tar_png(&tar, "d/000.png", 10, 3);
    tar_add(&tar, "d/000.json", "{}", 2, '0');
    tar_png(&tar, "d/001.PNG", 11, 4);
    tar_png(&tar, "d/001.seg.png", 99, 99); /* another extension */
    tar_add(&tar, "d/001.cls", "4\n", 2, '0');
    tar_add(&tar, "d/002.cls", "9", 1, '0');         /* no image, so no sample */
    tar_png(&tar, "d/._003.png", 98, 98);            /* hidden */
    tar_add(&tar, "d/004.png", "d/000.png", 0, '2'); /* a link */
    tar_add(&tar, "././@LongLink", longer, 185, 'L');
    tar_png(&tar, "cut off", 12, 5);
    tar_add(&tar, "d/005.cls", "6", 1, '0');
    tar_png(&tar, "d/005.png", 13, 6);
    tar_end(&tar, path);
}

static int warnings;

static void count_warning(void *user, const char *message)
{
    (void)user;
    (void)message;
    warnings++;
}

static ctn_status open_shards(ctn_dataset **ds, const char *path)
{
    return ctn_shards_open(ds, path, CTN_OPT(ctn_shards_opt, .image = SMALL));
}

static void test_shard(void **state)
{
    (void)state;
    unlink("a.tar.index");
    write_sample_tar("a.tar");
    for (int round = 0; round < 2; round++) { /* without and with a stored index */
        ctn_dataset *ds = NULL;
        char name[512];
        assert_int_equal(access("a.tar.index", F_OK) == 0, round);
        assert_int_equal(open_shards(&ds, "a.tar"), CTN_OK);
        assert_int_equal(ctn_dataset_count(ds), 4);
        assert_int_equal(ctn_dataset_classes(ds), 0);
        struct got a = get(ds, 0), b = get(ds, 1), d = get(ds, 3);
        assert_true(a.r == 10 && a.g == 3 && a.label == 3);
        assert_true(b.r == 11 && b.g == 4 && b.label == 4);
        assert_true(d.r == 13 && d.g == 6 && d.label == 6);
        ctn_dataset_name(ds, 1, name, sizeof name);
        assert_string_equal(name, "a.tar:d/001.PNG");
        ctn_dataset_name(ds, 2, name, sizeof name); /* the complete long name */
        assert_int_equal(strlen(name), strlen("a.tar:") + 184);
        uint8_t x[48];
        int64_t t;
        assert_fails(ctn_dataset_get(ds, 2, (void *[]){x, &t}), CTN_EFORMAT, "has no class");
        ctn_dataset_free(ds);
    }
}

static void test_index_is_not_believed(void **state)
{
    (void)state;
    static uint8_t good[4096], bad[4096];
    ctn_dataset *ds = NULL;
    struct stat info;
    write_sample_tar("b.tar");
    unlink("b.tar.index");
    assert_int_equal(open_shards(&ds, "b.tar"), CTN_OK);
    ctn_dataset_free(ds);
    assert_int_equal(stat("b.tar", &info), 0);
    const size_t n = read_bytes("b.tar.index", good, sizeof good);
    assert_true(n > sizeof(ctn__shard_head) && n < sizeof good);

    /* With any byte changed or any length, the index is rebuilt with the same result. */
    for (size_t i = 0; i <= n; i++) {
        memcpy(bad, good, n);
        if (i < n) bad[i] ^= 0x41;
        write_bytes("b.tar.index", bad, i < n && i % 2 ? i : n);
        assert_int_equal(open_shards(&ds, "b.tar"), CTN_OK);
        assert_int_equal(ctn_dataset_count(ds), 4);
        struct got d = get(ds, 3);
        assert_true(d.r == 13 && d.label == 6);
        ctn_dataset_free(ds);
        if (i > 80) i += 7;
    }
    assert_int_equal(read_bytes("b.tar.index", bad, sizeof bad), n);
    assert_memory_equal(good, bad, n);

    /* Even with a matching hash, every number is checked. */
    static const struct {
        size_t at, bytes;
    } field[] = {
        {offsetof(ctn__shard_head, n), 8},
        {offsetof(ctn__shard_head, name_bytes), 8},
        {sizeof(ctn__shard_head) + offsetof(ctn__shard_entry, offset), 8},
        {sizeof(ctn__shard_head) + offsetof(ctn__shard_entry, bytes), 4},
        {sizeof(ctn__shard_head) + offsetof(ctn__shard_entry, name), 4},
        {sizeof(ctn__shard_head) + offsetof(ctn__shard_entry, label), 4},
    };
    for (size_t k = 0; k < sizeof field / sizeof *field; k++) {
        union {
            ctn__shard_head h;
            uint8_t all[4096];
        } u;
        ctn__shard_index x;
        memcpy(u.all, good, n);
        assert_true(ctn__shard_index_check(&x, &u.h, n, &info));
        memset(u.all + field[k].at, 0xfe, field[k].bytes);
        u.h.hash = ctn__hash(&u.h + 1, n - sizeof u.h).lo;
        if (ctn__shard_index_check(&x, &u.h, n, &info))
            fail_msg("bad field %d is accepted", (int)k);
    }

    /* Another tar file of the same size: its time differs. */
    tar.n = 0;
    write_sample_tar("b.tar");
    tar.data[512 + 512] = '5'; /* the class of the first sample */
    write_bytes("b.tar", tar.data, (size_t)info.st_size);
    assert_int_equal(open_shards(&ds, "b.tar"), CTN_OK);
    assert_int_equal(get(ds, 0).label, 5);
    ctn_dataset_free(ds);
}

static void test_where_indexes_go(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    write_sample_tar("c.tar");
    unlink("c.tar.index");
    mkdir("indexes", 0777);
    assert_int_equal(system("rm -f indexes/*"), 0);
    const ctn_shards_opt *opt = CTN_OPT(ctn_shards_opt, .image = SMALL, .index_dir = "indexes");
    assert_int_equal(ctn_shards_open(&ds, "c.tar", opt), CTN_OK);
    ctn_dataset_free(ds);
    assert_int_not_equal(access("c.tar.index", F_OK), 0);
    assert_int_equal(system("ls indexes/c.tar-*.index >/dev/null"), 0);

    /* A folder has the name of the index beside the shard, so it goes to the cache folder. */
    assert_int_equal(system("rm -rf cache; mkdir -p c.tar.index/full"), 0);
    setenv("CATENA_CACHE_DIR", "cache", 1);
    warnings = 0;
    ctn_set_log(count_warning, NULL);
    assert_int_equal(open_shards(&ds, "c.tar"), CTN_OK);
    ctn_dataset_free(ds);
    assert_int_equal(system("ls cache/c.tar-*.index >/dev/null"), 0);
    assert_int_equal(warnings, 0);

    /* Nowhere to store it: works, with a warning. */
    ctn_dataset *again = NULL;
    assert_int_equal(system("rm -rf cache && : > cache"), 0);
    assert_int_equal(open_shards(&again, "c.tar"), CTN_OK);
    assert_int_equal(ctn_dataset_count(again), 4);
    assert_string_equal(ctn_error_message(), "");
    ctn_dataset_free(again);
    assert_int_equal(warnings, 1);
    ctn_set_log(NULL, NULL);
    setenv("CATENA_CACHE_DIR", "none", 1);
    assert_int_equal(system("rm -rf cache c.tar.index"), 0);
}

static void test_hostile(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    write_bytes("h.tar", "", 0);
    assert_fails(open_shards(&ds, "h.tar"), CTN_EFORMAT, "h.tar");
    write_bytes("h.tar", "\x1f\x8b\x08 a compressed file, or so it seems", 38);
    assert_fails(open_shards(&ds, "h.tar"), CTN_EFORMAT,
                 "h.tar: not a complete, uncompressed tar file");
    tar.n = 0;
    tar_png(&tar, "0.png", 1, 1);
    write_bytes("h.tar", tar.data, 512 + 100); /* ends within the image */
    assert_fails(open_shards(&ds, "h.tar"), CTN_EFORMAT, "h.tar: ends within 0.png");
    tar_add(&tar, "0.cls", "x1", 2, '0');
    tar_end(&tar, "h.tar");
    assert_fails(open_shards(&ds, "h.tar"), CTN_EFORMAT, "0.cls contains \"x1\"");
    tar_add(&tar, "0.cls", "99999999999", 11, '0');
    tar_end(&tar, "h.tar");
    assert_fails(open_shards(&ds, "h.tar"), CTN_EFORMAT, "expected a class number");
    tar_add(&tar, "0.txt", "1", 1, '0');
    tar_end(&tar, "h.tar");
    assert_fails(open_shards(&ds, "h.tar"), CTN_ENOTFOUND, "no JPEG or PNG files");
    assert_fails(open_shards(&ds, "absent.tar"), CTN_EIO, "absent.tar: No such file");

    /* A damaged image is an error of its sample, which is named. */
    uint8_t x[48];
    int64_t t;
    tar_add(&tar, "0.png", "no png", 6, '0');
    tar_add(&tar, "0.cls", "0", 1, '0');
    tar_png(&tar, "1.png", 5, 5);
    tar_add(&tar, "1.cls", "1", 1, '0');
    tar_end(&tar, "h.tar");
    assert_int_equal(open_shards(&ds, "h.tar"), CTN_OK);
    assert_true(ctn_dataset_get(ds, 0, (void *[]){x, &t}) < 0);
    assert_non_null(strstr(ctn_error_message(), "h.tar:0.png"));
    ctn_error_clear();
    assert_int_equal(get(ds, 1).r, 5);
    assert_int_equal(truncate("h.tar", 600), 0); /* while it is in use */
    assert_fails(ctn_dataset_get(ds, 1, (void *[]){x, &t}), CTN_EIO, "became shorter");
    ctn_dataset_free(ds);
}

static void write_numbered(const char *path, int k)
{
    tar.n = 0;
    tar_png(&tar, "0.png", (uint8_t)(100 + k), 0);
    tar_add(&tar, "0.cls", "0", 1, '0');
    tar_end(&tar, path);
}

static void test_several(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    assert_int_equal(system("rm -rf many; mkdir many"), 0);
    for (int k = 8; k < 12; k++) {
        char path[32];
        snprintf(path, sizeof path, "many/s-%03d.tar", k);
        write_numbered(path, k);
    }
    write_bytes("many/classes.txt", "cat\nhot dog\r\n", 13);
    static const char *const paths[] = {"many", "many/s-{008..011}.tar"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_shards(&ds, paths[i]), CTN_OK);
        assert_int_equal(ctn_dataset_count(ds), 4);
        for (int k = 0; k < 4; k++) assert_int_equal(get(ds, k).r, 108 + k);
        assert_int_equal(ctn_dataset_classes(ds), 2);
        assert_string_equal(ctn_dataset_class(ds, 1), "hot dog");
        ctn_dataset_free(ds);
    }
    assert_fails(open_shards(&ds, "many/s-{008..012}.tar"), CTN_EIO, "s-012.tar: No such file");
    assert_fails(open_shards(&ds, "many/s-{8..}.tar"), CTN_EARG, "two numbers");
    assert_fails(open_shards(&ds, "many/s-{9..8}.tar"), CTN_EARG, "two numbers");
    assert_fails(open_shards(&ds, "many/s-{0000001..1000001}.tar"), CTN_EARG,
                 "names 1000001 shards, at most 1000000");
    assert_fails(open_shards(&ds, "many/s-{8..9.tar"), CTN_EARG, "braces");
    assert_fails(open_shards(&ds, "many/s-}8..9{.tar"), CTN_EARG, "braces");
    mkdir("empty", 0777);
    assert_fails(open_shards(&ds, "empty"), CTN_ENOTFOUND, "no .tar files");
}

static void test_stage(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    char name[128];
    assert_int_equal(system("rm -rf stage s.tar*"), 0);
    write_numbered("s.tar", 1);
    const ctn_shards_opt *opt = CTN_OPT(ctn_shards_opt, .image = SMALL, .stage = "stage/deep");
    assert_int_equal(ctn_shards_open(&ds, "s.tar", opt), CTN_OK);
    assert_int_equal(get(ds, 0).r, 101);
    ctn_dataset_name(ds, 0, name, sizeof name);
    assert_string_equal(name, "s.tar:0.png");
    ctn_dataset_free(ds);
    assert_int_equal(system("cmp -s s.tar stage/deep/*-s.tar && ! ls stage/deep/*tmp* 2>/dev/null"),
                     0);
    /* The copy is what is read, and is made only once: its bytes are changed, size and time are
     * not. */
    write_numbered("other.tar", 2);
    assert_int_equal(system("touch -r s.tar other.tar && cp -p other.tar stage/deep/*-s.tar"), 0);
    assert_int_equal(ctn_shards_open(&ds, "s.tar", opt), CTN_OK);
    assert_int_equal(get(ds, 0).r, 102);
    ctn_dataset_free(ds);
    /* A newer original is copied again. */
    write_numbered("s.tar", 3);
    assert_int_equal(ctn_shards_open(&ds, "s.tar", opt), CTN_OK);
    assert_int_equal(get(ds, 0).r, 103);
    ctn_dataset_free(ds);
    write_bytes("file", "", 0);
    assert_fails(ctn_shards_open(&ds, "s.tar",
                                 CTN_OPT(ctn_shards_opt, .image = SMALL, .stage = "file/x")),
                 CTN_EIO, "file/x");
}

/* Copies that somebody else could have put there are not read, although size and time match. */
static void test_stage_of_others(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    char own[64], command[256];
    snprintf(own, sizeof own, "stage/catena-%ld", (long)geteuid());
    assert_int_equal(system("rm -rf stage s.tar*"), 0);
    write_numbered("s.tar", 1);
    write_numbered("other.tar", 2);
    const ctn_shards_opt *opt = CTN_OPT(ctn_shards_opt, .image = SMALL, .stage = "stage");
    const ctn_shards_opt *below = CTN_OPT(ctn_shards_opt, .image = SMALL, .stage = own);
    assert_int_equal(system("touch -r s.tar other.tar && mkdir -m 777 stage"), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ctn_shards_open(&ds, "s.tar", i ? below : opt), CTN_OK);
        assert_int_equal(get(ds, 0).r, 101);
        ctn_dataset_free(ds);
        snprintf(command, sizeof command, "cp -p other.tar %s/*-s.tar && chmod 666 %s/*-s.tar", own,
                 own);
        assert_int_equal(system(command), 0);
    }
    snprintf(command, sizeof command, "rm -r %s && mkdir -m 777 %s", own, own);
    assert_int_equal(system(command), 0);
    assert_fails(ctn_shards_open(&ds, "s.tar", opt), CTN_EIO, "others can change");
    if (geteuid() == 0) {
        assert_int_equal(chmod(own, 0755), 0);
        assert_int_equal(chown(own, 65534, 65534), 0);
        assert_fails(ctn_shards_open(&ds, "s.tar", opt), CTN_EIO, "belongs to you");
    }
    assert_int_equal(system("rm -rf stage"), 0);
}

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

/* An index from another rank: nothing is opened before a sample is read, and not too many files
 * stay open. */
static void test_given_index(void **state)
{
    (void)state;
    enum { SHARDS = 300, KEPT = 256 };
    static char index[SHARDS * 400];
    ctn_dataset *first = NULL, *ds = NULL;
    char path[64];
    assert_int_equal(system("rm -rf given given2 stage2; mkdir given"), 0);
    for (int k = 0; k < SHARDS; k++) {
        snprintf(path, sizeof path, "given/%03d.tar", k);
        write_numbered(path, k % 100);
    }
    write_bytes("given/classes.txt", "cat\n", 4);
    /* Stores no index, because 300 of them take time. */
    assert_int_equal(ctn_shards_open(&first, "given",
                                     CTN_OPT(ctn_shards_opt, .image = SMALL, .index_dir = "none")),
                     CTN_OK);
    const size_t n = ctn_shards_index(first, NULL, 0);
    assert_true(n > 0 && n < sizeof index);
    assert_int_equal(ctn_shards_index(first, index, n), n);
    ctn_dataset_free(first);

    assert_int_equal(rename("given", "given2"), 0);
    const ctn_shards_opt *opt =
        CTN_OPT(ctn_shards_opt, .image = SMALL, .index = index, .index_bytes = n);
    assert_int_equal(ctn_shards_open(&ds, "given", opt), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), SHARDS);
    assert_string_equal(ctn_dataset_class(ds, 0), "cat");
    uint8_t x[48];
    int64_t t;
    assert_fails(ctn_dataset_get(ds, 7, (void *[]){x, &t}), CTN_EIO, "given/007.tar: No such file");
    assert_int_equal(rename("given2", "given"), 0);
    const int before = open_files();
    for (int k = 0; k < 5; k++) assert_int_equal(get(ds, 7).r, 107);
    assert_int_equal(open_files(), before + 1);
    for (int k = 0; k < SHARDS; k++) assert_int_equal(get(ds, k).r, 100 + k % 100);
    assert_int_equal(open_files(), before + KEPT);
    ctn_dataset_free(ds);
    assert_int_equal(open_files(), before);

    /* A shard that is no longer the one in the index. */
    assert_int_equal(ctn_shards_open(&ds, "given", opt), CTN_OK);
    assert_int_equal(truncate("given/003.tar", 1000), 0);
    assert_fails(ctn_dataset_get(ds, 3, (void *[]){x, &t}), CTN_EIO,
                 "given/003.tar: was changed after it was indexed (1000 bytes");
    assert_int_equal(system("touch -d '1 hour ago' given/004.tar"), 0);
    assert_fails(ctn_dataset_get(ds, 4, (void *[]){x, &t}), CTN_EIO, "given/004.tar: was changed");
    ctn_dataset_free(ds);

    /* Truncated or damaged in transit. */
    for (size_t i = 0; i < 2000; i += i < 200 ? 1 : 37) {
        char *bad = malloc(n);
        memcpy(bad, index, n);
        bad[i] ^= 0x11;
        const ctn_shards_opt *o =
            CTN_OPT(ctn_shards_opt, .image = SMALL, .index = bad, .index_bytes = i % 2 ? n : i);
        /* only a name or a time changed */
        if (ctn_shards_open(&ds, "given", o) >= 0) ctn_dataset_free(ds);
        else assert_int_equal(ctn_error_status(), CTN_EFORMAT);
        ctn_error_clear();
        free(bad);
    }
}

/* A rank that was given the index does not touch the original of a staged shard. */
static void test_given_index_staged(void **state)
{
    (void)state;
    static char index[4096];
    ctn_dataset *ds = NULL;
    assert_int_equal(system("rm -rf stage2 u.tar*"), 0);
    write_numbered("u.tar", 5);
    const ctn_shards_opt *opt = CTN_OPT(ctn_shards_opt, .image = SMALL, .stage = "stage2");
    assert_int_equal(ctn_shards_open(&ds, "u.tar", opt), CTN_OK);
    const size_t n = ctn_shards_index(ds, index, sizeof index);
    assert_true(n > 0 && n <= sizeof index);
    ctn_dataset_free(ds);
    assert_int_equal(unlink("u.tar"), 0);
    const ctn_shards_opt *given = CTN_OPT(ctn_shards_opt, .image = SMALL, .stage = "stage2",
                                          .index = index, .index_bytes = n);
    assert_int_equal(ctn_shards_open(&ds, "u.tar", given), CTN_OK);
    assert_int_equal(get(ds, 0).r, 105);
    ctn_dataset_free(ds);
    assert_int_equal(system("rm -rf stage2"), 0);
    assert_fails(ctn_shards_open(&ds, "u.tar", given), CTN_EIO, "u.tar: No such file");
}

/* ---- folders and packing --------------------------------------------------------------------- */

enum { IMAGES = 60 };

/* Classes a, b (empty), c. The file of sample i of c has r = i, g = 2, ... */
static void make_folder(void)
{
    char path[64];
    assert_int_equal(system("rm -rf f && mkdir -p f/c f/a f/b f/.hidden"), 0);
    for (int i = 0; i < IMAGES; i++) {
        snprintf(path, sizeof path, "f/%c/%03d.%s", i % 3 ? 'c' : 'a', i, i % 2 ? "png" : "PNG");
        write_png(path, (uint8_t)i, i % 3 ? 2 : 0);
    }
    write_bytes("f/notes.txt", "x", 1);
    write_bytes("f/c/notes.txt", "x", 1);
    write_png("f/.hidden/x.png", 9, 9);
    write_png("f/c/.x.png", 9, 9);
}

static void test_folder(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    char name[64];
    make_folder();
    assert_int_equal(ctn_image_folder_open(&ds, "f", SMALL), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), IMAGES);
    assert_int_equal(ctn_dataset_classes(ds), 3);
    assert_string_equal(ctn_dataset_class(ds, 0), "a");
    assert_string_equal(ctn_dataset_class(ds, 1), "b");
    assert_string_equal(ctn_dataset_class(ds, 2), "c");
    int before = -1;
    for (int i = 0; i < IMAGES; i++) {
        struct got x = get(ds, i);
        assert_int_equal(x.label, i < 20 ? 0 : 2);
        assert_int_equal(x.g, x.label);
        if (i == 20) before = -1;
        assert_true(x.r > before); /* ordered by name */
        before = x.r;
    }
    ctn_dataset_name(ds, 20, name, sizeof name);
    assert_string_equal(name, "f/c/001.png");

    uint8_t x[48];
    int64_t t;
    write_bytes("f/c/001.png", "\x89PNG\r\n\x1a\nbroken", 14);
    assert_true(ctn_dataset_get(ds, 20, (void *[]){x, &t}) < 0);
    assert_non_null(strstr(ctn_error_message(), "f/c/001.png"));
    ctn_error_clear();
    unlink("f/c/001.png");
    assert_fails(ctn_dataset_get(ds, 20, (void *[]){x, &t}), CTN_EIO, "f/c/001.png: No such file");
    mkdir("f/c/001.png", 0777);
    assert_fails(ctn_dataset_get(ds, 20, (void *[]){x, &t}), CTN_EIO, "not a regular file");
    ctn_dataset_free(ds);
    rmdir("f/c/001.png");
    assert_fails(ctn_image_folder_open(&ds, "absent", SMALL), CTN_EIO, "absent");
    mkdir("empty", 0777);
    assert_fails(ctn_image_folder_open(&ds, "empty", SMALL), CTN_ENOTFOUND, "0 folders");
}

/* A list from another rank: the same samples, and no folder is read. */
static void test_folder_list(void **state)
{
    (void)state;
    static char list[4096];
    ctn_dataset *first = NULL, *ds = NULL;
    char name[64];
    make_folder();
    assert_int_equal(ctn_image_folder_open(&first, "f", SMALL), CTN_OK);
    const size_t n = ctn_image_folder_list(first, NULL, 0);
    assert_true(n > 0 && n < sizeof list);
    assert_int_equal(ctn_image_folder_list(first, list, n), n);
    assert_int_equal(ctn_shards_index(first, NULL, 0), 0);
    ctn_dataset_free(first);
    assert_int_equal(rename("f", "moved"), 0);
    assert_int_equal(ctn_image_folder_open_list(&ds, "f", list, n, SMALL), CTN_OK);
    assert_int_equal(ctn_dataset_count(ds), IMAGES);
    assert_int_equal(ctn_dataset_classes(ds), 3);
    assert_string_equal(ctn_dataset_class(ds, 1), "b");
    ctn_dataset_name(ds, 20, name, sizeof name);
    assert_string_equal(name, "f/c/001.png");
    assert_int_equal(rename("moved", "f"), 0);
    for (int i = 0; i < IMAGES; i++) {
        const struct got x = get(ds, i);
        assert_int_equal(x.label, i < 20 ? 0 : 2);
        assert_int_equal(x.r, i < 20 ? 3 * i : (i - 20) / 2 * 3 + 1 + i % 2);
    }
    ctn_dataset_free(ds);
    /* Truncated or damaged in transit. */
    for (size_t i = 0; i < n; i++) {
        char *bad = malloc(n);
        memcpy(bad, list, n);
        assert_fails(ctn_image_folder_open_list(&ds, "f", bad, i, SMALL), CTN_EFORMAT,
                     "incomplete");
        bad[i] ^= 0x11;
        if (ctn_image_folder_open_list(&ds, "f", bad, n, SMALL) >= 0) ctn_dataset_free(ds);
        else assert_int_equal(ctn_error_status(), CTN_EFORMAT);
        ctn_error_clear();
        free(bad);
    }
}

static int64_t told;

static void progress(void *user, int64_t done, int64_t all)
{
    assert_int_equal(all, IMAGES);
    assert_int_equal(done, *(int64_t *)user);
    ++*(int64_t *)user;
}

static void test_pack(void **state)
{
    (void)state;
    ctn_dataset *ds = NULL;
    int64_t n = 0;
    int order[2][IMAGES];
    make_folder();
    for (int round = 0; round < 3; round++) {
        const ctn_pack_opt *opt =
            CTN_OPT(ctn_pack_opt, .shard_bytes = 20 * 2048, .seed = 5, .progress = progress,
                    .user = &told, .keep_order = round == 2);
        told = 0;
        assert_int_equal(system("rm -rf out out3 secret"), 0);
        assert_int_equal(ctn_shards_pack("f", "out", &n, opt), CTN_OK);
        assert_int_equal(n, IMAGES);
        assert_int_equal(told, IMAGES + 1);
        assert_int_equal(open_shards(&ds, "out"), CTN_OK);
        assert_int_equal(ctn_dataset_count(ds), IMAGES);
        assert_int_equal(ctn_dataset_classes(ds), 3);
        uint8_t seen[IMAGES] = {0};
        for (int i = 0; i < IMAGES; i++) {
            struct got x = get(ds, i);
            assert_int_equal(x.label, x.r % 3 ? 2 : 0);
            assert_false(seen[x.r]++);
            if (round < 2) order[round][i] = x.r;
            else assert_int_equal(x.r, i < 20 ? 3 * i : (i - 20) / 2 * 3 + 1 + i % 2);
        }
        ctn_dataset_free(ds);
    }
    assert_memory_equal(order[0], order[1], sizeof order[0]);
    int still = 0;
    for (int i = 1; i < IMAGES; i++) still += order[0][i] > order[0][i - 1];
    assert_true(still < 45); /* shuffled */
    /* Other programs can read them, and shards have the requested size. */
    if (system("tar --version >/dev/null 2>&1") == 0)
        assert_int_equal(system("test $(cat out/*.tar | tar -tif - | wc -l) = 120 && test $(ls "
                                "out/*.tar | wc -l) = 4"),
                         0);
    assert_fails(ctn_shards_pack("f", "out", NULL, NULL), CTN_EIO, "already contains shard-");
    assert_fails(ctn_shards_pack("absent", "out2", NULL, NULL), CTN_EIO, "absent");
    /* A file that cannot be read: no incomplete shard is left. */
    unlink("f/c/001.png");
    assert_int_equal(symlink("nowhere", "f/c/001.png"), 0);
    assert_fails(ctn_shards_pack("f", "out3", NULL, NULL), CTN_EIO, "f/c/001.png");
    assert_int_equal(system("test -z \"$(ls -A out3)\""), 0);
    /* A link to an image is fine, one to any other file is not. */
    unlink("f/c/001.png");
    write_bytes("secret", "-----BEGIN", 10);
    assert_int_equal(symlink("../../secret", "f/c/001.png"), 0);
    assert_fails(ctn_shards_pack("f", "out3", NULL, NULL), CTN_EFORMAT,
                 "f/c/001.png: image: starts with bytes 2d 2d 2d 2d");
    assert_int_equal(system("test -z \"$(ls -A out3)\""), 0);
    write_png("secret", 1, 1);
    assert_int_equal(ctn_shards_pack("f", "out3", NULL, NULL), CTN_OK);
    assert_int_equal(system("rm -rf out3 secret"), 0);
}

/* ---- a failing allocator --------------------------------------------------------------------- */

static long allowed, live, held;

static void *alloc(void *user, size_t bytes, size_t align)
{
    (void)user;
    void *p = NULL;
    if (allowed-- <= 0 ||
        posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, bytes ? bytes : 1))
        return NULL;
    live++;
    held += (long)malloc_usable_size(p);
    return p;
}

static void release(void *user, void *p)
{
    (void)user;
    if (p) live--;
    held -= (long)malloc_usable_size(p);
    free(p);
}

/* Memory grows with the number of files by at most 64 bytes each. */
static void test_memory_per_file(void **state)
{
    (void)state;
    enum { FILES = 3000 };
    ctn_dataset *ds = NULL;
    assert_int_equal(system("rm -rf mem mem_out && mkdir -p mem/n00000001 mem/n00000002"), 0);
    write_png("mem/one", 1, 1);
    for (int i = 0; i < FILES; i++) {
        char path[64];
        snprintf(path, sizeof path, "mem/n0000000%d/n00000001_%05d.png", 1 + i % 2, i);
        assert_int_equal(link("mem/one", path), 0);
    }
    assert_int_equal(ctn_shards_pack("mem", "mem_out", NULL, NULL), CTN_OK);
    assert_int_equal(ctn_set_allocator(&(ctn_allocator){alloc, release, NULL}), CTN_OK);
    for (int shards = 0; shards < 2; shards++) {
        allowed = 1 << 20;
        assert_int_equal(shards ? open_shards(&ds, "mem_out")
                                : ctn_image_folder_open(&ds, "mem", SMALL),
                         CTN_OK);
        assert_int_equal(ctn_dataset_count(ds), FILES);
        if (held > 64 * FILES + 16384)
            fail_msg("%s: %ld bytes for %d files", shards ? "shards" : "folder", held, FILES);
        ctn_dataset_free(ds);
        assert_int_equal(held, 0);
    }
    assert_int_equal(ctn_set_allocator(NULL), CTN_OK);
    assert_int_equal(system("rm -rf mem mem_out"), 0);
}

static ctn_status use_all(void)
{
    static char list[4096];
    ctn_status st = CTN_OK;
    ctn_dataset *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    size_t n;
    uint8_t x[48];
    int64_t t;
    if (system("rm -rf oom oom_stage") != 0) return CTN_EIO;
    CTN_TRY_GOTO(st, done, ctn_shards_pack("f", "oom", NULL, NULL));
    CTN_TRY_GOTO(st, done, ctn_image_folder_open(&a, "f", SMALL));
    CTN_TRY_GOTO(st, done, ctn_dataset_get(a, 3, (void *[]){x, &t}));
    CTN_TRY_GOTO(st, done,
                 ctn_shards_open(&b, "oom",
                                 CTN_OPT(ctn_shards_opt, .image = SMALL, .stage = "oom_stage")));
    CTN_TRY_GOTO(st, done, ctn_dataset_get(b, 3, (void *[]){x, &t}));
    n = ctn_image_folder_list(a, list, sizeof list);
    CTN_TRY_GOTO(st, done, ctn_image_folder_open_list(&c, "f", list, n, SMALL));
    n = ctn_shards_index(b, list, sizeof list);
    CTN_TRY_GOTO(st, done,
                 ctn_shards_open(&d, "oom",
                                 CTN_OPT(ctn_shards_opt, .image = SMALL, .stage = "oom_stage",
                                         .index = list, .index_bytes = n)));
done:
    ctn_dataset_free(a);
    ctn_dataset_free(b);
    ctn_dataset_free(c);
    ctn_dataset_free(d);
    return st;
}

static void test_failing_allocator(void **state)
{
    (void)state;
    ctn_status st = CTN_ENOMEM;
    long n = 0;
    assert_int_equal(system("rm -rf f && mkdir -p f/a f/b"), 0);
    for (int i = 0; i < 4; i++) {
        char path[32];
        snprintf(path, sizeof path, "f/%c/%d.png", 'a' + i % 2, i);
        write_png(path, (uint8_t)i, 0);
    }
    assert_int_equal(ctn_set_allocator(&(ctn_allocator){alloc, release, NULL}), CTN_OK);
    for (; st == CTN_ENOMEM; n++) {
        allowed = n;
        st = use_all();
        if (st < 0 && st != CTN_ENOMEM) fail_msg("%s", ctn_error_message());
        ctn_error_clear();
        assert_int_equal(live, 0);
    }
    assert_int_equal(st, CTN_OK);
    assert_true(n > 40);
    assert_int_equal(ctn_set_allocator(NULL), CTN_OK);
}

int main(void)
{
    uint8_t png[256], x[48];
    const size_t n = make_png(png, 1, 2, 3);
    ctn__shard_index index;
    struct stat info = {0};
    setenv("CATENA_CACHE_DIR", "none", 1);
    if (ctn_image_decode(png, n, SMALL, &(ctn_sample){0}, x) == CTN_EUNSUPPORTED) return 77;
    if (ctn__shard_index_make(&index, "", -1, &info) == CTN_EUNSUPPORTED) return 77;
    ctn_error_clear();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_allocator), /* must run before anything else allocates */
        cmocka_unit_test(test_shard),
        cmocka_unit_test(test_index_is_not_believed),
        cmocka_unit_test(test_where_indexes_go),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_stage),
        cmocka_unit_test(test_stage_of_others),
        cmocka_unit_test(test_given_index),
        cmocka_unit_test(test_given_index_staged),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_folder_list),
        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_memory_per_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
