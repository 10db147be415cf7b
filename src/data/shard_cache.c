/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches the indexes of tar files: as NAME.tar.index next to the tar file, or else under a unique
 * name in the cache folder. A cached index is valid as long as the tar file has the size and time
 * it was built from.
 *
 * Invariant: a cached index is used completely or not at all, and its contents are not trusted:
 * it cannot point outside the tar file or its own names. Disk problems cost time but never end
 * the run.
 */
#include <limits.h>
#include <unistd.h>

#include "base/newfile.h"
#include "data/source.h"

bool ctn__shard_index_check(ctn__shard_index *x, ctn__shard_head *h, size_t bytes,
                            const struct stat *info)
{
    const uint64_t body = bytes - sizeof *h;
    if (bytes < sizeof *h || memcmp(h->magic, CTN__SHARD_MAGIC, sizeof h->magic) != 0) return false;
    if (info && (h->tar_bytes != (uint64_t)info->st_size || h->tar_s != info->st_mtim.tv_sec ||
                 h->tar_ns != info->st_mtim.tv_nsec))
        return false;
    if (h->n > body / sizeof(ctn__shard_entry) ||
        h->name_bytes != body - h->n * sizeof(ctn__shard_entry) ||
        h->hash != ctn__hash(h + 1, (size_t)body).lo)
        return false;
    const ctn__shard_entry *e = (const ctn__shard_entry *)(h + 1);
    const char *names = (const char *)(e + h->n);
    if (h->n && (h->name_bytes == 0 || names[h->name_bytes - 1] != 0)) return false;
    for (uint64_t i = 0; i < h->n; i++)
        if (e[i].offset > h->tar_bytes || e[i].bytes > h->tar_bytes - e[i].offset ||
            e[i].bytes > CTN__IMAGE_MOST || e[i].name >= h->name_bytes || e[i].label < -1)
            return false;
    *x = (ctn__shard_index){h, (int64_t)h->n, e, names};
    return true;
}

void ctn__shard_index_free(ctn__shard_index *x)
{
    ctn__free(x->head);
    *x = (ctn__shard_index){0};
}

/* Path of the index of the tar file `path` in a folder with the indexes of many tar files. */
static void name_in(ctn__text *out, const char *folder, const char *path)
{
    char full[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *p = realpath(path, full) ? full : path;
    out->n = 0;
    ctn__text_add(out, "%s/%s-%016llx.index", folder, slash ? slash + 1 : path,
                  (unsigned long long)ctn__hash(p, strlen(p)).lo);
}

/* Candidate k for the path of an index, in order of preference. False: there is none. */
static bool place(ctn__text *out, int k, const char *path, const char *index_dir)
{
    ctn__text folder = {0};
    out->n = 0;
    if (index_dir && k == 0) name_in(out, index_dir, path);
    else if (!index_dir && k == 0) ctn__text_add(out, "%s.index", path);
    else if (!index_dir && k == 1) {
        ctn__cache_folder(&folder);
        if (folder.n && !folder.failed && ctn__make_folder(folder.s, 0700) >= 0)
            name_in(out, folder.s, path);
    }
    ctn__text_free(&folder);
    return out->n > 0 && !out->failed;
}

/* A missing or invalid index is not an error. The one next to the tar file belongs to whoever owns
 * the data; in a cache folder, which users may share, it must be this user's or root's. */
static bool load(ctn__shard_index *x, const char *at, const struct stat *info, bool cached)
{
    char *all = NULL;
    size_t n = 0;
    struct stat own;
    if (access(at, R_OK) != 0 || stat(at, &own) != 0) return false;
    if (cached && own.st_uid != 0 && own.st_uid != geteuid()) return false;
    /* An image takes at least 512 bytes in the tar file and fewer in the index, so the index is
     * smaller than the tar file. */
    const bool read = ctn__file_whole("shards", at, (size_t)info->st_size, &all, &n) >= 0;
    if (!read) ctn_error_clear();
    void *head = all;
    if (read && ctn__shard_index_check(x, head, n, info)) return true;
    ctn__free(all);
    return false;
}

static ctn_status save(const ctn__shard_index *x, const char *at)
{
    ctn_status st = CTN_OK;
    ctn__newfile f = {.fd = -1};
    const ctn__shard_head *h = x->head;
    const size_t bytes =
        sizeof *h + (size_t)h->n * sizeof(ctn__shard_entry) + (size_t)h->name_bytes;
    CTN_TRY_GOTO(st, done, ctn__newfile_open(&f, at));
    CTN_TRY_GOTO(st, done, ctn__newfile_write(&f, h, bytes));
    CTN_TRY_GOTO(st, done, ctn__newfile_commit(&f));
done:
    ctn__newfile_close(&f);
    return st;
}

/* Saves x at the first path that is writable. */
static void keep(const ctn__shard_index *x, const char *path, const char *index_dir)
{
    ctn__text at = {0};
    char why[256] = "there is no cache folder";
    bool kept = false;
    for (int k = 0; k < 2 && !kept; k++) {
        if (!place(&at, k, path, index_dir)) continue;
        kept = save(x, at.s) >= 0;
        if (kept) continue;
        snprintf(why, sizeof why, "%.*s", (int)strcspn(ctn_error_message(), "\n"),
                 ctn_error_message());
        ctn_error_clear();
    }
    ctn__text_free(&at);
    if (!kept)
        ctn__warn("shards: cannot cache the index of %s, so every start reads the whole file: %s",
                  path, why);
}

ctn_status ctn__shard_index_get(ctn__shard_index *x, const char *path, int fd,
                                const struct stat *info, const char *index_dir)
{
    ctn__text at = {0};
    bool found = false;
    for (int k = 0; k < 2 && !found; k++)
        found = place(&at, k, path, index_dir) && load(x, at.s, info, index_dir || k > 0);
    const bool failed = at.failed;
    ctn__text_free(&at);
    if (failed) return CTN_ENOMEM;
    if (found) return CTN_OK;
    CTN_TRY(ctn__shard_index_make(x, path, fd, info));
    keep(x, path, index_dir);
    return CTN_OK;
}
