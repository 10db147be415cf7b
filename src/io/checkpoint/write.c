/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes this rank's files of a checkpoint from its copy in memory, syncs them, and reads them
 * back. The hashes of arrays are those of the memory, so that a fault of the disk on the way is
 * found now and not when the checkpoint is needed.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/readfile.h"
#include "io/checkpoint/checkpoint.h"
#include "io/safetensors_json.h"

enum { LARGE = 1 << 17 }; /* bytes from which files are written past the system's memory */

static void file_name(ctn__text *t, int writers, int file)
{
    t->n = 0;
    if (writers == 1) ctn__text_add(t, "state.safetensors");
    else ctn__text_add(t, "state-%05d-of-%05d.safetensors", file + 1, writers);
}

static ctn_status write_arrays(const ctn__snapshot *s, const char *full)
{
    ctn_status st = CTN_OK;
    ctn__st_writer *w = NULL;
    CTN_TRY(ctn__st_begin(&w, full));
    for (size_t i = 0; i < s->array.n; i++) {
        const ctn__snap_array *a = &s->array.at[i];
        CTN_TRY_GOTO(st, done, ctn__st_add(w, a->name, a->dtype, a->ndim, a->dim));
    }
    if (s->bytes >= LARGE) ctn__st_direct(w);
    for (size_t size = 8; size > 0; size /= 2) /* as they are stored: large elements first */
        for (size_t i = 0; i < s->array.n; i++) {
            const ctn__snap_array *a = &s->array.at[i];
            if (ctn_dtype_size(a->dtype) == size)
                CTN_TRY_GOTO(st, done, ctn__st_put(w, a->name, s->memory + a->at));
        }
    CTN_TRY_GOTO(st, done, ctn__st_finish(w));
done:
    ctn__st_writer_free(w);
    return st;
}

/* The system would otherwise read from its memory what it should read from the disk. */
static void forget_cache(const char *full)
{
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static ctn_status differs(const char *full, const char *what)
{
    return ctn_fail(CTN_EIO,
                    "checkpoint: %s of %s reads back different from what was written: the disk or "
                    "the memory of this machine is faulty",
                    what, full);
}

/* Starts after the array found last: the file has them almost in the same order. */
static const ctn__snap_array *find(const ctn__snapshot *s, const ctn__st_array *x, size_t *next)
{
    for (size_t k = 0; k < s->array.n; k++) {
        const ctn__snap_array *a = &s->array.at[(*next + k) % s->array.n];
        if (strcmp(a->name, x->name) != 0) continue;
        *next = (*next + k + 1) % s->array.n;
        return a->bytes == x->bytes && a->dtype == x->dtype ? a : NULL;
    }
    return NULL;
}

/* The hash that the file must have: that of its head, which has been checked, and of the arrays in
 * memory. Adds the lines of the arrays. */
static ctn_status wanted_hash(const ctn__snapshot *s, const ctn__st_file *f, const char *full,
                              const char *name, ctn__hasher *h, ctn__text *lines)
{
    size_t next = 0;
    if (ctn__st_count(f) != s->array.n) return differs(full, "the number of arrays");
    for (size_t i = 0; i < s->array.n; i++) {
        const ctn__st_array *x = ctn__st_at(f, i);
        const ctn__snap_array *a = find(s, x, &next);
        if (!a) return differs(full, x->name);
        ctn__hasher_add(h, s->memory + a->at, a->bytes);
        ctn__manifest_add_array(lines, a->name, a->dtype, a->ndim, a->dim, name,
                                ctn__hash(s->memory + a->at, a->bytes));
    }
    return CTN_OK;
}

static ctn_status add_head(const char *full, uint64_t bytes, ctn__hasher *h)
{
    struct stat info;
    int fd = -1;
    char *head = ctn__malloc((size_t)bytes + 1);
    if (!head) return CTN_ENOMEM;
    ctn_status st = ctn__file_open("checkpoint", full, &fd, &info);
    if (st == CTN_OK) st = ctn__file_read("checkpoint", full, fd, head, (size_t)bytes, 0);
    if (st == CTN_OK) ctn__hasher_add(h, head, (size_t)bytes);
    if (fd >= 0) close(fd);
    ctn__free(head);
    return st;
}

/* Reads the file once and compares its hash with that of the memory. */
static ctn_status read_back(const ctn__snapshot *s, const char *full, const char *name,
                            ctn__text *lines)
{
    ctn_status st = CTN_OK;
    ctn__st_file *f = NULL;
    ctn__hasher *h = ctn__hasher_new();
    ctn__hash128 found, wanted;
    uint64_t bytes, data = 0;
    for (size_t i = 0; i < s->array.n; i++) data += s->array.at[i].bytes;
    if (!h) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn__st_open(&f, full));
    CTN_TRY_GOTO(st, done, ctn__file_hash(full, &found, &bytes));
    if (bytes < data) CTN_TRY_GOTO(st, done, differs(full, "the length"));
    ctn__manifest_add_file(lines, name, bytes, found);
    CTN_TRY_GOTO(st, done, add_head(full, bytes - data, h));
    CTN_TRY_GOTO(st, done, wanted_hash(s, f, full, name, h, lines));
    wanted = ctn__hasher_value(h);
    if (wanted.lo != found.lo || wanted.hi != found.hi)
        CTN_TRY_GOTO(st, done, differs(full, "the content"));
done:
    ctn__hasher_free(h);
    ctn__st_close(f);
    return st;
}

/* The line of a text file. Its content has been written and synced. */
static ctn_status list_file(const char *path, const char *name, ctn__text *lines)
{
    ctn__text full = {0};
    ctn__hash128 hash;
    uint64_t bytes;
    ctn__text_add(&full, "%s/%s", path, name);
    ctn_status st = full.failed ? CTN_ENOMEM : ctn__file_hash(full.s, &hash, &bytes);
    if (st == CTN_OK) ctn__manifest_add_file(lines, name, bytes, hash);
    ctn__text_free(&full);
    return st;
}

static ctn_status write_state(const ctn__snapshot *s, const char *path, ctn__text *lines)
{
    ctn_status st = CTN_OK;
    ctn__text name = {0}, full = {0};
    file_name(&name, s->writers, s->file);
    ctn__text_add(&full, "%s/%s", path, name.s);
    if (full.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, write_arrays(s, full.s));
    forget_cache(full.s);
    CTN_TRY_GOTO(st, done, read_back(s, full.s, name.s, lines));
done:
    ctn__text_free(&name);
    ctn__text_free(&full);
    return st;
}

/* Cuts the lines of s->pairs into names of arrays and of their files. */
static ctn_status cut_pairs(const ctn__snapshot *s, ctn__arena *names, size_t *n,
                            const char **array, const char **file)
{
    ctn__text name = {0};
    char *line = ctn__arena_str(names, s->pairs.s);
    *n = 0;
    for (char *end; line && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char *tab = strchr(line, '\t');
        *end = *tab = 0;
        file_name(&name, s->writers, (int)strtol(tab + 1, NULL, 10));
        array[*n] = line;
        file[*n] = name.failed ? NULL : ctn__arena_str(names, name.s);
        if (!file[(*n)++]) line = NULL;
        if (!line) break;
    }
    ctn__text_free(&name);
    return line ? CTN_OK : CTN_ENOMEM;
}

static ctn_status write_index(const ctn__snapshot *s, const char *path)
{
    ctn_status st = CTN_OK;
    ctn__arena names = {0};
    size_t lines = 0, n = 0;
    char *json = NULL;
    if (s->pairs.failed || !s->pairs.s) return CTN_ENOMEM;
    for (const char *p = s->pairs.s; *p; p++) lines += *p == '\n';
    const char **array = ctn__calloc(2 * lines + 1, sizeof *array);
    if (!array) return CTN_ENOMEM;
    const char **file = array + lines;
    CTN_TRY_GOTO(st, done, cut_pairs(s, &names, &n, array, file));
    CTN_TRY_GOTO(st, done, ctn__st_json_index_write(n, array, file, s->bytes, &json));
    const ctn__text text = {.s = json, .n = strlen(json)};
    CTN_TRY_GOTO(st, done, ctn__numbered_write(path, CTN__CKPT_INDEX, &text));
done:
    ctn__free(json);
    ctn__free(array);
    ctn__arena_free(&names);
    return st;
}

ctn_status ctn__ckpt_write(const ctn__snapshot *s, const char *path, int texts,
                           const ctn__ckpt_text *text, ctn__text *lines)
{
    for (int i = 0; i < texts; i++) {
        CTN_TRY(ctn__numbered_write(path, text[i].name, &text[i].text));
        CTN_TRY(list_file(path, text[i].name, lines));
    }
    if (s->pairs.n > 0) {
        CTN_TRY(write_index(s, path));
        CTN_TRY(list_file(path, CTN__CKPT_INDEX, lines));
    }
    if (s->file >= 0) CTN_TRY(write_state(s, path, lines));
    return lines->failed ? CTN_ENOMEM : CTN_OK;
}
