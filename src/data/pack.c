/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes an image folder as tar shards in the WebDataset convention: 000000017.jpg and
 * 000000017.cls, numbered across all shards and shuffled once. Each shard is written atomically.
 * classes.txt is written last, so its presence means that all shards are complete. The same input,
 * seed and size give the same bytes.
 *
 * The tar headers are written here in the POSIX ustar format: 512 bytes with numbers as octal text.
 */
#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include <catena/image.h>
#include "base/newfile.h"
#include "data/image/image.h"
#include "data/source.h"

enum { BLOCK = 512, PATH = 4096 };

struct writer {
    const char *out;
    int64_t shard_bytes;
    ctn__newfile file;
    ctn__text path;
    int64_t shards, bytes; /* shards begun so far; bytes in the current one */
};

/* ---- tar ------------------------------------------------------------------------------------- */

static ctn_status write_blocks(struct writer *w, const void *data, size_t bytes)
{
    static const char zeros[BLOCK];
    const size_t rest = bytes % BLOCK ? BLOCK - bytes % BLOCK : 0;
    CTN_TRY(ctn__newfile_write(&w->file, data, bytes));
    CTN_TRY(ctn__newfile_write(&w->file, zeros, rest));
    w->bytes += (int64_t)(bytes + rest);
    return CTN_OK;
}

/* Writes a number as n - 1 octal digits and a 0. */
static void put_octal(char *at, int n, uint64_t v)
{
    at[n - 1] = 0;
    for (int i = n - 2; i >= 0; i--, v >>= 3) at[i] = (char)('0' + (v & 7));
}

static ctn_status write_member(struct writer *w, const char *name, const void *data, size_t bytes)
{
    char h[BLOCK] = {0};
    unsigned sum = 0;
    snprintf(h, 100, "%s", name);
    put_octal(h + 100, 8, 0644); /* mode */
    put_octal(h + 108, 8, 0);    /* user */
    put_octal(h + 116, 8, 0);    /* group */
    put_octal(h + 124, 12, bytes);
    put_octal(h + 136, 12, 0); /* time */
    h[156] = '0';              /* a regular file */
    snprintf(h + 257, 6, "ustar");
    h[263] = h[264] = '0';   /* version */
    memset(h + 148, ' ', 8); /* the checksum treats its own field as blanks */
    for (int i = 0; i < BLOCK; i++) sum += (unsigned char)h[i];
    put_octal(h + 148, 7, sum);
    CTN_TRY(write_blocks(w, h, sizeof h));
    return write_blocks(w, data, bytes);
}

/* Builds the index now; otherwise each of many processes would build it at its first start. */
static ctn_status make_index(const char *path)
{
    int fd = -1;
    struct stat info = {0};
    ctn__shard_index x = {0};
    CTN_TRY(ctn__file_open("pack", path, &fd, &info));
    ctn_status st = ctn__shard_index_get(&x, path, fd, &info, NULL);
    close(fd);
    ctn__shard_index_free(&x);
    if (st != CTN_EUNSUPPORTED) return st;
    ctn_error_clear(); /* this build can write shards but not read them */
    return CTN_OK;
}

static ctn_status end_shard(struct writer *w)
{
    static const char end[2 * BLOCK];
    if (w->file.fd < 0) return CTN_OK;
    CTN_TRY(write_blocks(w, end, sizeof end));
    CTN_TRY(ctn__newfile_commit(&w->file));
    ctn__newfile_close(&w->file);
    return make_index(w->path.s);
}

static ctn_status begin_shard(struct writer *w)
{
    w->path.n = 0;
    ctn__text_add(&w->path, "%s/shard-%06lld.tar", w->out, (long long)w->shards);
    if (w->path.failed) return CTN_ENOMEM;
    CTN_TRY(ctn__newfile_open(&w->file, w->path.s));
    w->shards++;
    w->bytes = 0;
    return CTN_OK;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Data sets may consist of links, but a link in somebody else's folder can lead to any file of the
 * user, and shards are made to be shared. */
static ctn_status check_link(const char *path, const char *file, size_t bytes)
{
    struct stat info;
    if (lstat(path, &info) == 0 && !S_ISLNK(info.st_mode)) return CTN_OK;
    return ctn__file_blame(ctn__image_check(file, bytes), "pack", path);
}

static ctn_status add_sample(struct writer *w, const ctn__folder *f, int64_t sample, int64_t number)
{
    char path[PATH], name[64], label[24], *file = NULL;
    size_t bytes = 0;
    CTN_TRY(ctn__folder_load(f, sample, path, sizeof path, &file, &bytes));
    ctn_status st = CTN_OK;
    CTN_TRY_GOTO(st, done, check_link(path, file, bytes));
    const int64_t need = (int64_t)bytes + 4 * BLOCK; /* upper bound, including the class */
    if (w->file.fd >= 0 && w->bytes + need > w->shard_bytes) CTN_TRY_GOTO(st, done, end_shard(w));
    if (w->file.fd < 0) CTN_TRY_GOTO(st, done, begin_shard(w));
    snprintf(name, sizeof name, "%09lld%s", (long long)number, strrchr(path, '.'));
    CTN_TRY_GOTO(st, done, write_member(w, name, file, bytes));
    snprintf(name, sizeof name, "%09lld.cls", (long long)number);
    snprintf(label, sizeof label, "%lld", (long long)ctn__folder_class(f, sample));
    CTN_TRY_GOTO(st, done, write_member(w, name, label, strlen(label)));
done:
    ctn__free(file);
    return st;
}

static ctn_status write_classes(const ctn__folder *f, const char *out)
{
    ctn_status st = CTN_OK;
    ctn__newfile file = {.fd = -1};
    ctn__text path = {0}, text = {0};
    ctn__text_add(&path, "%s/classes.txt", out);
    for (size_t k = 0; k < f->classes.n; k++) ctn__text_add(&text, "%s\n", f->classes.at[k].name);
    if (path.failed || text.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn__newfile_open(&file, path.s));
    CTN_TRY_GOTO(st, done, ctn__newfile_write(&file, text.s, text.n));
    CTN_TRY_GOTO(st, done, ctn__newfile_commit(&file));
done:
    ctn__newfile_close(&file);
    ctn__text_free(&path);
    ctn__text_free(&text);
    return st;
}

/* Fails if there are shards of an earlier run, which would be read together with the new ones. */
static ctn_status check_out(const char *out)
{
    ctn_status st = CTN_OK;
    st = ctn__make_folder(out, 0777);
    if (st == CTN_EIO)
        return ctn_fail(st, "pack: cannot create the folder %s: %s", out, strerror(errno));
    CTN_TRY(st);
    DIR *dir = opendir(out);
    if (!dir) return ctn_fail(CTN_EIO, "pack: %s: %s", out, strerror(errno));
    for (const struct dirent *d; st == CTN_OK && (d = readdir(dir)) != NULL;)
        if (ctn__match("shard-*.tar", d->d_name))
            st = ctn_fail(CTN_EIO,
                          "pack: %s already contains %s: remove its shards or choose another "
                          "folder",
                          out, d->d_name);
    closedir(dir);
    return st;
}

ctn_status ctn_shards_pack(const char *dir, const char *out, int64_t *samples,
                           const ctn_pack_opt *opt)
{
    if (!dir || !out) return ctn_fail(CTN_EARG, "pack: NULL argument");
    if (samples) *samples = 0;
    ctn_status st = CTN_OK;
    ctn_pack_opt o;
    ctn_sampler *order = NULL;
    ctn__folder f = {0};
    struct writer w = {.out = out, .file = {.fd = -1}};
    CTN_TRY(ctn__opt("pack", &o, sizeof o, opt));
    if (o.shard_bytes < 0)
        return ctn_fail(CTN_EARG, "pack: shard_bytes is %lld, expected 0 or more",
                        (long long)o.shard_bytes);
    w.shard_bytes = o.shard_bytes ? o.shard_bytes : 1000000000;
    CTN_TRY_GOTO(st, done, ctn__folder_read(&f, dir));
    CTN_TRY_GOTO(st, done, check_out(out));
    if (o.keep_order) CTN_TRY_GOTO(st, done, ctn_sampler_sequential(&order, f.n));
    else CTN_TRY_GOTO(st, done, ctn_sampler_shuffled(&order, f.n, o.seed));
    for (int64_t i = 0; i < f.n; i++) {
        if (o.progress) o.progress(o.user, i, f.n);
        CTN_TRY_GOTO(st, done, add_sample(&w, &f, ctn_sampler_index(order, 0, (uint64_t)i), i));
    }
    CTN_TRY_GOTO(st, done, end_shard(&w));
    CTN_TRY_GOTO(st, done, write_classes(&f, out));
    if (o.progress) o.progress(o.user, f.n, f.n);
    if (samples) *samples = f.n;
done:
    ctn__newfile_close(&w.file);
    ctn__text_free(&w.path);
    ctn_sampler_free(order);
    ctn__folder_free(&f);
    return st;
}
