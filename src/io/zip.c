/* SPDX-License-Identifier: Apache-2.0
 *
 * Zip archives with stored entries. An archive ends with a record that says where the list of
 * entries (the central directory) is:
 *     entry  entry ..  directory  [ZIP64 end record  ZIP64 locator]  end record  [comment]
 * An entry is a local header of 30 bytes, a name, extra fields, and the data. All numbers are
 * little-endian. Invariant of an open archive: the data of each entry lies before the directory.
 */
#include "io/zip.h"

#include <unistd.h>

#include "base/readfile.h"

enum {
    END_BYTES = 22, /* of the end record without its comment */
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    DIRECTORY_ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_MAX = 65535
};

struct ctn__zip {
    char *path;         /* for messages */
    int fd;             /* -1: the bytes are in the caller's memory */
    const char *memory; /* the whole file; NULL: read from fd */
    uint64_t size;      /* of the file */
    ctn__arena text;    /* names */
    CTN__VEC(ctn__zip_entry) entries;
    const ctn__zip_entry **by_name;
};

static uint64_t number(const unsigned char *p, int bytes)
{
    uint64_t n = 0;
    for (int i = bytes - 1; i >= 0; i--) n = n << 8 | p[i];
    return n;
}

static bool is_record(const unsigned char *p, int third, int fourth)
{
    return p[0] == 'P' && p[1] == 'K' && p[2] == third && p[3] == fourth;
}

/* Read bytes that are known to lie in the file. */
static ctn_status get(const ctn__zip *z, void *dst, size_t bytes, uint64_t offset)
{
    if (!z->memory) return ctn__file_read("zip", z->path, z->fd, dst, bytes, offset);
    if (bytes > 0) memcpy(dst, z->memory + offset, bytes);
    return CTN_OK;
}

/* ---- the end of the file -------------------------------------------------------------------- */

typedef struct {
    uint64_t at, bytes, entries; /* of the directory */
    uint64_t end;                /* offset of the record that says so */
} directory;

/* Find the end record. A comment may follow it, so it is the record whose comment ends the file. */
static ctn_status find_end(const ctn__zip *z, directory *d)
{
    const size_t n =
        (size_t)(z->size < END_BYTES + COMMENT_MAX ? z->size : END_BYTES + COMMENT_MAX);
    unsigned char *p = ctn__malloc(n);
    if (!p) return CTN_ENOMEM;
    ctn_status st = get(z, p, n, z->size - n);
    bool found = false;
    for (size_t back = END_BYTES; st == CTN_OK && !found && back <= n; back++) {
        const unsigned char *r = p + n - back;
        if (!is_record(r, 5, 6) || number(r + 20, 2) != back - END_BYTES) continue;
        found = true;
        if (number(r + 4, 2) != number(r + 6, 2))
            st = ctn_fail(CTN_EFORMAT, "zip: %s: an archive of several volumes", z->path);
        *d = (directory){number(r + 16, 4), number(r + 12, 4), number(r + 10, 2), z->size - back};
    }
    ctn__free(p);
    if (st == CTN_OK && !found)
        return ctn_fail(CTN_EFORMAT,
                        "zip: %s: no end record in the last %zu bytes: a truncated or damaged file",
                        z->path, n);
    return st;
}

/* If a ZIP64 locator is in front of the end record, that record's numbers are the true ones. */
static ctn_status find_end64(const ctn__zip *z, directory *d)
{
    unsigned char locator[LOCATOR_BYTES], r[END64_BYTES];
    if (d->end < LOCATOR_BYTES) return CTN_OK;
    CTN_TRY(get(z, locator, sizeof locator, d->end - LOCATOR_BYTES));
    if (!is_record(locator, 6, 7)) return CTN_OK;
    const uint64_t at = number(locator + 8, 8);
    if (d->end - LOCATOR_BYTES < END64_BYTES || at > d->end - LOCATOR_BYTES - END64_BYTES)
        return ctn_fail(CTN_EFORMAT, "zip: %s: the ZIP64 record at byte %llu is not in the file",
                        z->path, (unsigned long long)at);
    CTN_TRY(get(z, r, sizeof r, at));
    if (!is_record(r, 6, 6))
        return ctn_fail(CTN_EFORMAT, "zip: %s: there is no ZIP64 record at byte %llu", z->path,
                        (unsigned long long)at);
    *d = (directory){number(r + 48, 8), number(r + 40, 8), number(r + 32, 8), at};
    return CTN_OK;
}

/* ---- the directory -------------------------------------------------------------------------- */

/* Replace the numbers that are all ones by those of the ZIP64 extra field, in their order. */
static bool read_extra64(const unsigned char *p, size_t n, uint64_t *const value[3])
{
    for (size_t at = 0; n - at >= 4;) {
        const size_t bytes = (size_t)number(p + at + 2, 2);
        if (bytes > n - at - 4) return false;
        size_t used = 0;
        for (int k = 0; number(p + at, 2) == 1 && k < 3; k++) {
            if (*value[k] != UINT32_MAX) continue;
            if (bytes - used < 8) return false;
            *value[k] = number(p + at + 4 + used, 8);
            used += 8;
        }
        at += 4 + bytes;
    }
    return true;
}

/* The offset of the data of an entry whose local header is at `local`. */
static ctn_status find_data(const ctn__zip *z, const directory *d, ctn__zip_entry *e,
                            uint64_t local)
{
    unsigned char r[LOCAL_BYTES];
    if (d->at < LOCAL_BYTES || local > d->at - LOCAL_BYTES)
        return ctn_fail(CTN_EFORMAT,
                        "zip: %s: '%s' is said to be at byte %llu, expected before "
                        "byte %llu",
                        z->path, e->name, (unsigned long long)local, (unsigned long long)d->at);
    CTN_TRY(get(z, r, sizeof r, local));
    if (!is_record(r, 3, 4))
        return ctn_fail(CTN_EFORMAT, "zip: %s: '%s' is said to be at byte %llu, but is not there",
                        z->path, e->name, (unsigned long long)local);
    e->begin = local + LOCAL_BYTES + number(r + 26, 2) + number(r + 28, 2);
    if (e->begin > d->at || e->bytes > d->at - e->begin)
        return ctn_fail(CTN_EFORMAT,
                        "zip: %s: '%s' has %llu bytes at byte %llu, which overlaps the directory "
                        "at byte %llu",
                        z->path, e->name, (unsigned long long)e->bytes,
                        (unsigned long long)e->begin, (unsigned long long)d->at);
    return CTN_OK;
}

/* Read the entry at p of the directory, which has n bytes left. *used: those of the entry. */
static ctn_status read_entry(ctn__zip *z, const directory *d, const unsigned char *p, size_t n,
                             size_t *used)
{
    const unsigned long long at = d->at + d->bytes - n;
    if (n < DIRECTORY_ENTRY_BYTES || !is_record(p, 1, 2))
        return ctn_fail(CTN_EFORMAT, "zip: %s: expected an entry of the directory at byte %llu",
                        z->path, at);
    const size_t name = (size_t)number(p + 28, 2), extra = (size_t)number(p + 30, 2);
    *used = DIRECTORY_ENTRY_BYTES + name + extra + (size_t)number(p + 32, 2);
    const char *text = (const char *)p + DIRECTORY_ENTRY_BYTES;
    if (*used > n || memchr(text, 0, name))
        return ctn_fail(CTN_EFORMAT, "zip: %s: the entry at byte %llu of the directory is damaged",
                        z->path, at);
    ctn__zip_entry e = {.name = ctn__arena_printf(&z->text, "%.*s", (int)name, text)};
    if (!e.name) return CTN_ENOMEM;
    uint64_t stored = number(p + 20, 4), full = number(p + 24, 4), local = number(p + 42, 4);
    if (!read_extra64(p + DIRECTORY_ENTRY_BYTES + name, extra,
                      (uint64_t *const[3]){&full, &stored, &local}))
        return ctn_fail(CTN_EFORMAT, "zip: %s: the extra field of '%s' at byte %llu is damaged",
                        z->path, e.name, at);
    if (p[8] & 1) e.problem = "encrypted";
    else if (number(p + 10, 2) != 0 || stored != full) e.problem = "compressed";
    e.bytes = stored;
    CTN_TRY(find_data(z, d, &e, local));
    return ctn__vec_push(&z->entries, e) ? CTN_OK : CTN_ENOMEM;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const ctn__zip_entry *const *)a)->name,
                  (*(const ctn__zip_entry *const *)b)->name);
}

static ctn_status sort_names(ctn__zip *z)
{
    const size_t n = z->entries.n;
    z->by_name = ctn__calloc(n, sizeof(void *));
    if (!z->by_name) return CTN_ENOMEM;
    for (size_t i = 0; i < n; i++) z->by_name[i] = &z->entries.at[i];
    qsort(z->by_name, n, sizeof(void *), compare_names);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(z->by_name[i - 1]->name, z->by_name[i]->name))
            return ctn_fail(CTN_EFORMAT, "zip: %s: '%s' appears twice", z->path,
                            z->by_name[i]->name);
    return CTN_OK;
}

static ctn_status read_archive(ctn__zip *z)
{
    directory d = {0};
    CTN_TRY(find_end(z, &d));
    CTN_TRY(find_end64(z, &d));
    if (d.at > d.end || d.bytes > d.end - d.at || d.bytes > CTN__ZIP_DIRECTORY_MAX)
        return ctn_fail(CTN_EFORMAT,
                        "zip: %s: a directory of %llu bytes at byte %llu, expected to end before "
                        "byte %llu and to have at most %d bytes",
                        z->path, (unsigned long long)d.bytes, (unsigned long long)d.at,
                        (unsigned long long)d.end, CTN__ZIP_DIRECTORY_MAX);
    unsigned char *p = ctn__malloc((size_t)d.bytes);
    if (!p) return CTN_ENOMEM;
    ctn_status st = get(z, p, (size_t)d.bytes, d.at);
    for (size_t at = 0, used = 0; st == CTN_OK && at < d.bytes; at += used)
        st = read_entry(z, &d, p + at, (size_t)d.bytes - at, &used);
    ctn__free(p);
    if (st == CTN_OK && z->entries.n != d.entries)
        st = ctn_fail(CTN_EFORMAT, "zip: %s: the directory has %zu entries, but %llu are announced",
                      z->path, z->entries.n, (unsigned long long)d.entries);
    return st == CTN_OK ? sort_names(z) : st;
}

/* Takes ownership of fd, also on failure; -1: the bytes are in memory. */
static ctn_status open_archive(ctn__zip **out, const char *path, int fd, const void *memory,
                               uint64_t size)
{
    ctn_status st = CTN_OK;
    ctn__zip *z = ctn__calloc(1, sizeof *z);
    if (!z) {
        if (fd >= 0) close(fd);
        return CTN_ENOMEM;
    }
    z->fd = fd;
    z->memory = memory;
    z->size = size;
    z->path = ctn__strdup(path);
    if (!z->path) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, read_archive(z));
    *out = z;
    z = NULL;
done:
    ctn__zip_close(z);
    return st;
}

ctn_status ctn__zip_open(ctn__zip **z, const char *path)
{
    struct stat info = {0};
    int fd = -1;
    *z = NULL;
    CTN_TRY(ctn__file_open("zip", path, &fd, &info));
    return open_archive(z, path, fd, NULL, (uint64_t)info.st_size);
}

ctn_status ctn__zip_parse(ctn__zip **z, const char *name, const void *p, size_t n)
{
    *z = NULL;
    return open_archive(z, name, -1, n ? p : "", n);
}

void ctn__zip_close(ctn__zip *z)
{
    if (!z) return;
    if (z->fd >= 0) close(z->fd);
    ctn__free(z->path);
    ctn__free(z->by_name);
    ctn__vec_free(&z->entries);
    ctn__arena_free(&z->text);
    ctn__free(z);
}

const char *ctn__zip_path(const ctn__zip *z)
{
    return z->path;
}

size_t ctn__zip_count(const ctn__zip *z)
{
    return z->entries.n;
}

const ctn__zip_entry *ctn__zip_at(const ctn__zip *z, size_t i)
{
    return &z->entries.at[i];
}

const ctn__zip_entry *ctn__zip_find(const ctn__zip *z, const char *name)
{
    const ctn__zip_entry key = {.name = name}, *p = &key;
    if (!z->entries.n) return NULL;
    const ctn__zip_entry **hit =
        bsearch(&p, z->by_name, z->entries.n, sizeof(void *), compare_names);
    return hit ? *hit : NULL;
}

ctn_status ctn__zip_read(const ctn__zip *z, const ctn__zip_entry *e, uint64_t offset, void *dst,
                         size_t bytes)
{
    if (e->problem)
        return ctn_fail(CTN_EFORMAT,
                        "zip: %s: '%s' is %s; expected an archive without compression, as "
                        "torch.save writes it (zip -0 makes one)",
                        z->path, e->name, e->problem);
    if (offset > e->bytes || bytes > e->bytes - offset)
        return ctn_fail(CTN_EFORMAT, "zip: %s: '%s' has %llu bytes, cannot read %zu at byte %llu",
                        z->path, e->name, (unsigned long long)e->bytes, bytes,
                        (unsigned long long)offset);
    return get(z, dst, bytes, e->begin + offset);
}
