/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the index of a tar file: the offset and the class of each image. The file is read once
 * through libarchive, which skips the contents; after that, images are read by offset. The files
 * of a sample are adjacent and share their name up to the first dot after the last slash:
 *     a/000017.cls  a/000017.jpg  a/000018.jpg  a/000018.cls
 * This is the only file that uses libarchive.
 */
#include <errno.h>
#include <strings.h>
#include <unistd.h>

#include "data/source.h"

#ifdef CTN_HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>

struct builder {
    const char *path;
    uint64_t tar_bytes;
    CTN__VEC(ctn__shard_entry) entries;
    ctn__text names;
    ctn__text key; /* of the sample being collected */
    bool has_image;
    ctn__shard_entry now;
};

/* Adds the completed sample to the index, if it has an image. */
static ctn_status flush_sample(struct builder *b)
{
    if (b->has_image && !ctn__vec_push(&b->entries, b->now)) return CTN_ENOMEM;
    b->has_image = false;
    b->now = (ctn__shard_entry){.label = -1};
    return CTN_OK;
}

static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static ctn_status set_image(struct builder *b, const char *name, uint64_t offset, uint64_t bytes)
{
    if (offset > b->tar_bytes || bytes > b->tar_bytes - offset)
        return ctn_fail(CTN_EFORMAT, "shards: %s: ends within %s", b->path, name);
    if (bytes > CTN__IMAGE_MOST)
        return ctn_fail(CTN_EUNSUPPORTED, "shards: %s: %s has %llu bytes, the maximum is %zu",
                        b->path, name, (unsigned long long)bytes, CTN__IMAGE_MOST);
    if (b->names.n > UINT32_MAX)
        return ctn_fail(CTN_EUNSUPPORTED, "shards: %s: more than 4 GB of names", b->path);
    b->has_image = true;
    b->now.offset = offset;
    b->now.bytes = (uint32_t)bytes;
    b->now.name = (uint32_t)b->names.n;
    ctn__text_add(&b->names, "%s%c", name, 0);
    return b->names.failed ? CTN_ENOMEM : CTN_OK;
}

static ctn_status refused(const char *path, struct archive *a)
{
    const char *why = archive_error_string(a);
    if (archive_errno(a) == ENOMEM)
        return ctn_fail(CTN_ENOMEM, "shards: %s: out of memory while reading it", path);
    return ctn_fail(archive_errno(a) == EIO ? CTN_EIO : CTN_EFORMAT,
                    "shards: %s: not a complete, uncompressed tar file: %s", path,
                    why ? why : "unknown reason");
}

static ctn_status set_label(struct builder *b, struct archive *a, const char *name)
{
    char text[16], *end = NULL;
    la_ssize_t n = archive_read_data(a, text, sizeof text - 1);
    if (n < 0) return refused(b->path, a);
    text[n] = 0;
    errno = 0;
    long v = strtol(text, &end, 10);
    end += strspn(end, " \r\n");
    if (end == text || *end || errno || text[0] < '0' || text[0] > '9' || v > INT32_MAX)
        return ctn_fail(CTN_EFORMAT, "shards: %s: %s contains \"%.*s\", expected a class number",
                        b->path, name, (int)strcspn(text, "\r\n"), text);
    b->now.label = (int32_t)v;
    return CTN_OK;
}

static ctn_status add_entry(struct builder *b, struct archive *a, struct archive_entry *e)
{
    const char *name = archive_entry_pathname(e);
    if (!name) name = archive_entry_pathname_utf8(e); /* the locale cannot represent it */
    if (!name || archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e)) return CTN_OK;
    const char *base = base_of(name), *dot = strchr(base, '.');
    if (!dot || dot == base) return CTN_OK;
    const size_t key = (size_t)(dot - name);
    if (!b->key.s || b->key.n != key || memcmp(b->key.s, name, key) != 0) {
        CTN_TRY(flush_sample(b));
        b->key.n = 0;
        ctn__text_add(&b->key, "%.*s", (int)key, name);
        if (b->key.failed) return CTN_ENOMEM;
    }
    if (strcasecmp(dot, ".cls") == 0) return set_label(b, a, name);
    const bool image = strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
                       strcasecmp(dot, ".png") == 0;
    if (!image || b->has_image) return CTN_OK;
    if (archive_entry_sparse_count(e) > 0)
        return ctn_fail(CTN_EUNSUPPORTED, "shards: %s: %s is stored as a sparse file", b->path,
                        name);
    return set_image(b, name, (uint64_t)archive_filter_bytes(a, 0),
                     (uint64_t)archive_entry_size(e));
}

static ctn_status read_entries(struct builder *b, struct archive *a)
{
    for (;;) {
        struct archive_entry *e = NULL;
        int r = archive_read_next_header(a, &e);
        if (r == ARCHIVE_EOF) return flush_sample(b);
        if (r == ARCHIVE_RETRY) continue;
        if (r < ARCHIVE_WARN) return refused(b->path, a);
        CTN_TRY(add_entry(b, a, e));
    }
}

/* Puts the header, entries and names into one allocation of the exact size. */
static ctn_status pack_index(const struct builder *b, const struct stat *info, ctn__shard_index *x)
{
    const size_t n = b->entries.n, entry_bytes = n * sizeof(ctn__shard_entry);
    const size_t bytes = sizeof(ctn__shard_head) + entry_bytes + b->names.n;
    ctn__shard_head *h = ctn__malloc(bytes);
    if (!h) return CTN_ENOMEM;
    char *body = (char *)(h + 1);
    *h = (ctn__shard_head){.tar_bytes = (uint64_t)info->st_size,
                           .tar_s = info->st_mtim.tv_sec,
                           .tar_ns = info->st_mtim.tv_nsec,
                           .n = n,
                           .name_bytes = b->names.n};
    memcpy(h->magic, CTN__SHARD_MAGIC, sizeof h->magic);
    if (n) memcpy(body, b->entries.at, entry_bytes);
    if (b->names.n) memcpy(body + entry_bytes, b->names.s, b->names.n);
    h->hash = ctn__hash(body, bytes - sizeof *h).lo;
    if (ctn__shard_index_check(x, h, bytes, info)) return CTN_OK;
    ctn__free(h);
    return ctn_fail(CTN_EFORMAT, "shards: %s: its contents are inconsistent", b->path);
}

ctn_status ctn__shard_index_make(ctn__shard_index *x, const char *path, int fd,
                                 const struct stat *info)
{
    ctn_status st = CTN_OK;
    struct builder b = {.path = path, .tar_bytes = (uint64_t)info->st_size, .now = {.label = -1}};
    struct archive *a = archive_read_new();
    if (!a) return ctn_fail(CTN_ENOMEM, "shards: %s: out of memory while reading it", path);
    archive_read_support_format_tar(a); /* no filters: images need offsets in the file itself */
    if (lseek(fd, 0, SEEK_SET) < 0)
        CTN_TRY_GOTO(st, done, ctn_fail(CTN_EIO, "shards: %s: %s", path, strerror(errno)));
    if (archive_read_open_fd(a, fd, (size_t)1 << 16) != ARCHIVE_OK)
        CTN_TRY_GOTO(st, done, refused(path, a));
    CTN_TRY_GOTO(st, done, read_entries(&b, a));
    CTN_TRY_GOTO(st, done, pack_index(&b, info, x));
done:
    archive_read_free(a);
    ctn__vec_free(&b.entries);
    ctn__text_free(&b.names);
    ctn__text_free(&b.key);
    return st;
}

#else

ctn_status ctn__shard_index_make(ctn__shard_index *x, const char *path, int fd,
                                 const struct stat *info)
{
    (void)x, (void)fd, (void)info;
    return ctn_fail(CTN_EUNSUPPORTED,
                    "shards: %s: built without libarchive: install it (Debian: libarchive-dev) "
                    "and rebuild",
                    path);
}

#endif
