/* SPDX-License-Identifier: Apache-2.0
 *
 * Reader and writer of safetensors files, called by everything that loads or saves weights. The
 * header text is handled by safetensors_json.c. Invariant of an open file: every array has
 * exactly the bytes that its shape needs, they lie inside the file, and the arrays cover the data
 * without holes.
 */
#include <unistd.h>

#include "base/readfile.h"
#include "io/safetensors_json.h"

static int compare_pairs(const void *a, const void *b)
{
    return strcmp(((const ctn__st_pair *)a)->key, ((const ctn__st_pair *)b)->key);
}

static int compare_offsets(const void *va, const void *vb)
{
    const ctn__st_entry *a = va, *b = vb;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const ctn__st_entry *const *)a)->a.name,
                  (*(const ctn__st_entry *const *)b)->a.name);
}

/* Sort by offset and check that the arrays cover the data exactly. */
static ctn_status index_offsets(ctn__st_file *f, size_t bytes)
{
    uint64_t at = 0;
    qsort(f->entry, f->n, sizeof *f->entry, compare_offsets);
    for (size_t i = 0; i < f->n; i++) {
        ctn__st_entry *e = &f->entry[i];
        if (e->begin != at || e->end > bytes)
            return ctn_fail(
                CTN_EFORMAT,
                "safetensors: %s: '%s' is at %llu to %llu, expected to begin at %llu and to "
                "end within %zu bytes of data: overlap, hole or truncated file",
                f->path, e->a.name, (unsigned long long)e->begin, (unsigned long long)e->end,
                (unsigned long long)at, bytes);
        at = e->end;
    }
    if (at != bytes)
        return ctn_fail(CTN_EFORMAT,
                        "safetensors: %s: %zu bytes of data, but the arrays cover %llu", f->path,
                        bytes, (unsigned long long)at);
    return CTN_OK;
}

static ctn_status twice(const ctn__st_file *f, const ctn__st_entry *a, const ctn__st_entry *b)
{
    if (a->file == b->file)
        return ctn_fail(CTN_EFORMAT, "safetensors: %s: '%s' appears twice", a->file->path,
                        a->a.name);
    return ctn_fail(CTN_EFORMAT, "safetensors: %s: '%s' is in two files, %s and %s", f->path,
                    a->a.name, a->file->path, b->file->path);
}

/* Sort names and metadata for lookup and reject duplicates. */
static ctn_status index_names(ctn__st_file *f)
{
    f->by_name = ctn__calloc(f->n, sizeof(void *));
    if (!f->by_name) return CTN_ENOMEM;
    for (size_t i = 0; i < f->n; i++) f->by_name[i] = &f->entry[i];
    qsort(f->by_name, f->n, sizeof(void *), compare_names);
    for (size_t i = 1; i < f->n; i++)
        if (!strcmp(f->by_name[i - 1]->a.name, f->by_name[i]->a.name))
            return twice(f, f->by_name[i - 1], f->by_name[i]);
    if (f->pairs) qsort(f->pair, f->pairs, sizeof *f->pair, compare_pairs);
    for (size_t i = 1; i < f->pairs; i++)
        if (!strcmp(f->pair[i - 1].key, f->pair[i].key))
            return ctn_fail(CTN_EFORMAT, "safetensors: %s: __metadata__ key '%s' appears twice",
                            f->path, f->pair[i].key);
    return CTN_OK;
}

/* The length of the header, from the first 8 bytes of a file of `size`. */
static ctn_status header_length(const ctn__st_file *f, const unsigned char *p, size_t size,
                                size_t *bytes)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--) n = n << 8 | p[i];
    if (n > size - 8)
        return ctn_fail(CTN_EFORMAT, "safetensors: %s: header of %llu bytes in a file of %zu bytes",
                        f->path, (unsigned long long)n, size);
    if (n > CTN__ST_HEADER_MAX)
        return ctn_fail(CTN_EFORMAT,
                        "safetensors: %s: header of %llu bytes, at most %d are allowed", f->path,
                        (unsigned long long)n, CTN__ST_HEADER_MAX);
    *bytes = (size_t)n;
    return CTN_OK;
}

/* Read bytes of the file, which may be in memory. */
static ctn_status get(const ctn__st_file *f, void *dst, size_t bytes, uint64_t offset)
{
    if (!f->memory) return ctn__file_read("safetensors", f->path, f->fd, dst, bytes, offset);
    if (bytes > 0) memcpy(dst, f->memory + offset, bytes);
    return CTN_OK;
}

static ctn_status check_machine(void)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    return ctn_fail(CTN_EUNSUPPORTED, "safetensors: files are little-endian, this machine is not");
#else
    return CTN_OK;
#endif
}

static ctn_status parse_file(ctn__st_file *f, size_t size)
{
    ctn_status st = CTN_OK;
    unsigned char start[8];
    size_t header = 0;
    CTN_TRY(check_machine());
    if (size < 8)
        return ctn_fail(CTN_EFORMAT, "safetensors: %s: %zu bytes are too few for the header length",
                        f->path, size);
    CTN_TRY(get(f, start, sizeof start, 0));
    CTN_TRY(header_length(f, start, size, &header));
    char *json = ctn__malloc(header);
    if (!json) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, get(f, json, header, 8));
    CTN_TRY_GOTO(st, done, ctn__st_json_read(f, json, header));
    f->data = 8 + header;
    CTN_TRY_GOTO(st, done, index_offsets(f, size - 8 - header));
    CTN_TRY_GOTO(st, done, index_names(f));
done:
    ctn__free(json);
    return st;
}

/* A file without arrays. Takes ownership of fd, also on failure; -1: none. */
static ctn_status file_new(ctn__st_file **out, const char *path, int fd)
{
    ctn__st_file *f = ctn__calloc(1, sizeof *f);
    char *copy = ctn__strdup(path);
    if (!f || !copy) {
        if (fd >= 0) close(fd);
        ctn__free(f);
        ctn__free(copy);
        return CTN_ENOMEM;
    }
    f->fd = fd;
    f->path = copy;
    *out = f;
    return CTN_OK;
}

/* Takes ownership of fd, also on failure; -1: the bytes are in memory. */
static ctn_status read_file(ctn__st_file **out, const char *path, int fd, const void *memory,
                            size_t size)
{
    ctn_status st = CTN_OK;
    ctn__st_file *f = NULL;
    CTN_TRY(file_new(&f, path, fd));
    f->memory = memory;
    CTN_TRY_GOTO(st, done, parse_file(f, size));
    *out = f;
    f = NULL;
done:
    ctn__st_close(f);
    return st;
}

ctn_status ctn__st_parse(ctn__st_file **out, const char *name, const void *p, size_t n)
{
    if (!out || !name || (!p && n)) return ctn_fail(CTN_EARG, "safetensors: NULL argument");
    *out = NULL;
    return read_file(out, name, -1, p, n);
}

ctn_status ctn__st_open_one(ctn__st_file **out, const char *path)
{
    struct stat info = {0};
    int fd = -1;
    CTN_TRY(ctn__file_open("safetensors", path, &fd, &info));
    return read_file(out, path, fd, NULL, (size_t)info.st_size);
}

static ctn_status open_index(ctn__st_file **out, const char *path)
{
    ctn_status st = CTN_OK;
    ctn__st_file *f = NULL;
    CTN_TRY(file_new(&f, path, -1));
    CTN_TRY_GOTO(st, done, ctn__st_index_read(f));
    CTN_TRY_GOTO(st, done, index_names(f));
    *out = f;
    f = NULL;
done:
    ctn__st_close(f);
    return st;
}

ctn_status ctn__st_open(ctn__st_file **out, const char *path)
{
    if (!out || !path) return ctn_fail(CTN_EARG, "safetensors: NULL argument");
    *out = NULL;
    const size_t n = strlen(path);
    const bool index = n >= 5 && strcmp(path + n - 5, ".json") == 0;
    return (index ? open_index : ctn__st_open_one)(out, path);
}

ctn_status ctn__st_read(const ctn__st_file *f, const ctn__st_array *a, void *dst)
{
    const ctn__st_entry *e = (const ctn__st_entry *)a; /* a is its first member */
    (void)f;
    return get(e->file, dst, a->bytes, e->file->data + e->begin);
}

void ctn__st_close(ctn__st_file *f)
{
    if (!f) return;
    for (size_t i = 0; i < f->parts.n; i++) ctn__st_close(f->parts.at[i]);
    ctn__vec_free(&f->parts);
    if (f->fd >= 0) close(f->fd);
    ctn__free(f->path);
    ctn__st_json_free(f);
    ctn__free(f->entry);
    ctn__free(f->by_name);
    ctn__free(f->pair);
    ctn__free(f);
}

size_t ctn__st_count(const ctn__st_file *f)
{
    return f ? f->n : 0;
}

const ctn__st_array *ctn__st_at(const ctn__st_file *f, size_t i)
{
    return f && i < f->n ? &f->entry[i].a : NULL;
}

const ctn__st_array *ctn__st_find(const ctn__st_file *f, const char *name)
{
    if (!f || !name || !f->n) return NULL;
    const ctn__st_entry key = {.a.name = name}, *p = &key;
    const ctn__st_entry **hit = bsearch(&p, f->by_name, f->n, sizeof(void *), compare_names);
    return hit ? &(*hit)->a : NULL;
}

const char *ctn__st_metadata(const ctn__st_file *f, const char *key)
{
    if (!f || !key || !f->pairs) return NULL;
    const ctn__st_pair p = {.key = key};
    const ctn__st_pair *hit = bsearch(&p, f->pair, f->pairs, sizeof p, compare_pairs);
    return hit ? hit->value : NULL;
}

size_t ctn__st_metadata_count(const ctn__st_file *f)
{
    return f ? f->pairs : 0;
}

const char *ctn__st_metadata_at(const ctn__st_file *f, size_t i, const char **key)
{
    if (!f || i >= f->pairs) return NULL;
    if (key) *key = f->pair[i].key;
    return f->pair[i].value;
}

ctn_status ctn__st_begin(ctn__st_writer **out, const char *path)
{
    if (!out || !path) return ctn_fail(CTN_EARG, "safetensors: NULL argument");
    *out = NULL;
    CTN_TRY(check_machine());
    ctn__st_writer *w = ctn__calloc(1, sizeof *w);
    if (!w) return CTN_ENOMEM;
    w->path = ctn__strdup(path);
    if (!w->path) {
        ctn__free(w);
        return CTN_ENOMEM;
    }
    w->file.fd = -1;
    *out = w;
    return CTN_OK;
}

void ctn__st_writer_free(ctn__st_writer *w)
{
    if (!w) return;
    for (size_t i = 0; i < w->slots.n; i++) ctn__free((char *)(uintptr_t)w->slots.at[i].a.name);
    for (size_t i = 0; i < w->strings.n; i++) ctn__free(w->strings.at[i]);
    ctn__newfile_close(&w->file);
    ctn__vec_free(&w->slots);
    ctn__free(w->by_name);
    ctn__vec_free(&w->strings);
    ctn__free(w->path);
    ctn__free(w);
}

ctn_status ctn__st_add(ctn__st_writer *w, const char *name, ctn_dtype dtype, int ndim,
                       const int64_t *shape)
{
    if (!w || !name || (ndim && !shape)) return ctn_fail(CTN_EARG, "safetensors: NULL argument");
    if (w->by_name)
        return ctn_fail(CTN_ESTATE, "safetensors: cannot add '%s' after the first put", name);
    if (!*name || !strcmp(name, "__metadata__"))
        return ctn_fail(CTN_EARG, "safetensors: an array cannot be named '%s'", name);
    if (!ctn__st_type_name(dtype))
        return ctn_fail(CTN_EDTYPE, "safetensors: '%s' has unknown dtype %d", name, (int)dtype);
    if (ndim < 0 || ndim > CTN_MAX_DIMS)
        return ctn_fail(CTN_EARG, "safetensors: '%s' has %d dimensions, expected 0 to %d", name,
                        ndim, CTN_MAX_DIMS);
    ctn__st_array a = {.dtype = dtype, .ndim = ndim, .bytes = ctn_dtype_size(dtype)};
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0)
            return ctn_fail(CTN_EARG, "safetensors: '%s' has negative size %lld in dimension %d",
                            name, (long long)shape[d], d);
        a.shape[d] = shape[d];
        a.bytes = ctn__mul(a.bytes, (size_t)shape[d]);
    }
    if (a.bytes > INT64_MAX)
        return ctn_fail(CTN_EARG, "safetensors: '%s' is too large: %zu bytes", name, a.bytes);
    a.name = ctn__strdup(name);
    if (!a.name) return CTN_ENOMEM;
    const ctn__st_slot slot = {.a = a, .order = w->slots.n};
    if (ctn__vec_push(&w->slots, slot)) return CTN_OK;
    ctn__free((char *)(uintptr_t)a.name);
    return CTN_ENOMEM;
}

ctn_status ctn__st_add_metadata(ctn__st_writer *w, const char *key, const char *value)
{
    if (!w || !key || !value) return ctn_fail(CTN_EARG, "safetensors: NULL argument");
    for (size_t i = 0; i < w->strings.n; i += 2)
        if (!strcmp(w->strings.at[i], key))
            return ctn_fail(CTN_EARG, "safetensors: metadata '%s' was already added", key);
    char *k = ctn__strdup(key), *v = ctn__strdup(value);
    if (!k || !v || !ctn__vec_reserve(&w->strings, w->strings.n + 2)) {
        ctn__free(k);
        ctn__free(v);
        return CTN_ENOMEM;
    }
    w->strings.at[w->strings.n++] = k;
    w->strings.at[w->strings.n++] = v;
    return CTN_OK;
}

/* Larger elements first, so that all are aligned; else as added. */
static int compare_slots(const void *va, const void *vb)
{
    const ctn__st_slot *a = va, *b = vb;
    const size_t x = ctn_dtype_size(a->a.dtype), y = ctn_dtype_size(b->a.dtype);
    if (x != y) return x > y ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int compare_slot_names(const void *a, const void *b)
{
    return strcmp((*(const ctn__st_slot *const *)a)->a.name,
                  (*(const ctn__st_slot *const *)b)->a.name);
}

/* Put the slots into the order of the file and sort their names, once. Nothing is added later. */
static ctn_status sort_slots(ctn__st_writer *w)
{
    const size_t n = w->slots.n;
    if (w->by_name) return CTN_OK;
    ctn__st_slot **p = ctn__calloc(n + 1, sizeof *p);
    if (!p) return CTN_ENOMEM;
    if (n > 0) qsort(w->slots.at, n, sizeof *w->slots.at, compare_slots);
    for (size_t i = 0; i < n; i++) p[i] = &w->slots.at[i];
    qsort(p, n, sizeof *p, compare_slot_names);
    for (size_t i = 1; i < n; i++) {
        const char *name = p[i]->a.name;
        if (strcmp(p[i - 1]->a.name, name) != 0) continue;
        ctn__free(p);
        return ctn_fail(CTN_EARG, "safetensors: '%s' was already added", name);
    }
    w->by_name = p;
    return CTN_OK;
}

/* Write the header, which fixes the place of every array. */
static ctn_status open_file(ctn__st_writer *w)
{
    ctn_status st = CTN_OK;
    char *header = NULL;
    size_t bytes = 0;
    CTN_TRY_GOTO(st, done, sort_slots(w));
    CTN_TRY_GOTO(st, done, ctn__st_json_write(w, &header, &bytes));
    CTN_TRY_GOTO(st, done, ctn__newfile_open(&w->file, w->path));
    if (w->direct) ctn__newfile_direct(&w->file);
    CTN_TRY_GOTO(st, done, ctn__newfile_write(&w->file, header, bytes));
    for (size_t i = 0; i < w->slots.n; i++) {
        w->slots.at[i].begin = bytes;
        bytes += w->slots.at[i].a.bytes;
    }
done:
    ctn__free(header);
    return st;
}

static ctn__st_slot *find_slot(const ctn__st_writer *w, const char *name)
{
    const ctn__st_slot key = {.a.name = name}, *p = &key;
    ctn__st_slot *const *hit =
        bsearch(&p, w->by_name, w->slots.n, sizeof *w->by_name, compare_slot_names);
    return hit ? *hit : NULL;
}

void ctn__st_direct(ctn__st_writer *w)
{
    w->direct = true;
}

void ctn__st_quick(ctn__st_writer *w)
{
    w->file.quick = true;
}

ctn_status ctn__st_put(ctn__st_writer *w, const char *name, const void *data)
{
    if (w && !w->finished) CTN_TRY(sort_slots(w));
    ctn__st_slot *s = w && name && !w->finished ? find_slot(w, name) : NULL;
    if (!s || s->put || (!data && s->a.bytes > 0))
        return ctn_fail(CTN_ESTATE, "safetensors: '%s' %s", name ? name : "NULL",
                        !s       ? "was not added"
                        : s->put ? "was already put"
                                 : "has no data");
    if (w->file.fd < 0) CTN_TRY(open_file(w));
    CTN_TRY(ctn__newfile_put(&w->file, data, s->a.bytes, s->begin));
    s->put = true;
    return CTN_OK;
}

ctn_status ctn__st_finish(ctn__st_writer *w)
{
    if (!w) return ctn_fail(CTN_EARG, "safetensors: NULL argument");
    if (w->finished) return ctn_fail(CTN_ESTATE, "safetensors: %s is already finished", w->path);
    for (size_t i = 0; i < w->slots.n; i++)
        if (!w->slots.at[i].put)
            return ctn_fail(CTN_ESTATE, "safetensors: '%s' was never put", w->slots.at[i].a.name);
    if (w->file.fd < 0) CTN_TRY(open_file(w));
    CTN_TRY(ctn__newfile_commit(&w->file));
    w->finished = true;
    return CTN_OK;
}
