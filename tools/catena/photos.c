/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads JPEG files into memory, from folders and from plain tar files (ustar headers; other
 * members are skipped).
 */
#include "photos.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { TAR_BLOCK = 512, TAR_SIZE_AT = 124, TAR_TYPE_AT = 156, MAX_PATH = 4096 };

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);
    return n > k && strcasecmp(name + n - k, suffix) == 0;
}

static bool is_wanted(const char *name)
{
    if (strncmp(name, "edge/", 5) == 0 || strstr(name, "/edge/")) return false;
    return ends_with(name, ".jpg") || ends_with(name, ".jpeg");
}

/* Read the next `bytes` bytes of f as one photo; the header of a tar member may claim more than the
 * file has, which is `size`. */
static ctn_status add(photos *p, FILE *f, size_t bytes, off_t size, const char *path)
{
    if ((off_t)bytes > size - ftello(f)) return ctn_fail(CTN_EIO, "bench: %s is truncated", path);
    if (p->n == p->room) {
        int64_t room = p->room ? 2 * p->room : 256;
        photo *more = realloc(p->at, (size_t)room * sizeof *more);
        if (!more) return ctn_fail(CTN_ENOMEM, "bench: out of memory");
        p->at = more;
        p->room = room;
    }
    unsigned char *data = malloc(bytes ? bytes : 1);
    if (!data) return ctn_fail(CTN_ENOMEM, "bench: out of memory for %s", path);
    if (fread(data, 1, bytes, f) != bytes) {
        free(data);
        return ctn_fail(CTN_EIO, "bench: %s is truncated", path);
    }
    p->at[p->n].data = data;
    p->at[p->n++].bytes = bytes;
    return CTN_OK;
}

static ctn_status read_tar(photos *p, FILE *f, off_t total, const char *path)
{
    char head[TAR_BLOCK];
    while (fread(head, 1, sizeof head, f) == sizeof head && head[0]) {
        char name[101] = {0}, size[13] = {0};
        memcpy(name, head, 100);
        memcpy(size, head + TAR_SIZE_AT, 12);
        long bytes = strtol(size, NULL, 8), padding = -bytes & (TAR_BLOCK - 1);
        if (bytes < 0 || bytes > INT32_MAX)
            return ctn_fail(CTN_EFORMAT, "bench: %s: a member has an invalid size of %ld bytes",
                            path, bytes);
        bool file = head[TAR_TYPE_AT] == '0' || head[TAR_TYPE_AT] == 0;
        if (file && is_wanted(name)) CTN_TRY(add(p, f, (size_t)bytes, total, path));
        else padding += bytes;
        if (fseek(f, padding, SEEK_CUR) != 0)
            return ctn_fail(CTN_EIO, "bench: cannot seek in %s", path);
    }
    return CTN_OK;
}

static ctn_status read_one(photos *p, const char *path, const struct stat *st)
{
    FILE *f = fopen(path, "rb");
    if (!f) return ctn_fail(CTN_EIO, "bench: %s: %s", path, strerror(errno));
    ctn_status s = ends_with(path, ".tar") ? read_tar(p, f, st->st_size, path)
                                           : add(p, f, (size_t)st->st_size, st->st_size, path);
    fclose(f);
    return s;
}

static bool is_link(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
}

/* A link to a folder can lead back here, many times over. */
static ctn_status walk(photos *p, const char *dir)
{
    struct dirent **entry = NULL;
    ctn_status st = CTN_OK;
    int n = scandir(dir, &entry, NULL, alphasort);
    if (n < 0) return ctn_fail(CTN_EIO, "bench: %s: %s", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        char path[MAX_PATH];
        struct stat about;
        const char *name = entry[i]->d_name;
        int k = snprintf(path, sizeof path, "%s/%s", dir, name);
        bool skip = st < 0 || name[0] == '.' || strcmp(name, "edge") == 0 || k < 0 ||
                    k >= (int)sizeof path || stat(path, &about) != 0;
        skip = skip || (!S_ISREG(about.st_mode) && (!S_ISDIR(about.st_mode) || is_link(path)));
        if (!skip && S_ISDIR(about.st_mode)) st = walk(p, path);
        else if (!skip && (is_wanted(path) || ends_with(name, ".tar")))
            st = read_one(p, path, &about);
        free(entry[i]);
    }
    free(entry);
    return st;
}

ctn_status photos_read(photos *p, const char *dir)
{
    CTN_TRY(walk(p, dir));
    if (p->n == 0)
        return ctn_fail(CTN_ENOTFOUND,
                        "bench: no JPEG files in %s, its subfolders or their tar files; links to "
                        "folders are not followed",
                        dir);
    return CTN_OK;
}

void photos_free(photos *p)
{
    for (int64_t i = 0; i < p->n; i++) free(p->at[i].data);
    free(p->at);
    *p = (photos){0};
}
