/* SPDX-License-Identifier: Apache-2.0
 *
 * The one place that opens a file of named arrays, whatever its format: safetensors, a checkpoint
 * of PyTorch, several files with an index, or a folder with one of these. The formats are told
 * apart by the first bytes of a file, not by its name.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "base/readfile.h"
#include "io/pytorch.h"
#include "io/safetensors.h"
#include "io/safetensors_json.h"
#include "io/weights.h"

typedef struct {
    const ctn_weights_array *a;
    const ctn__pt_file *pt; /* where it is; NULL: in the safetensors file */
} entry;

struct ctn_weights {
    ctn__st_file *st; /* NULL: files of PyTorch */
    CTN__VEC(ctn__pt_file *) pt;
    CTN__VEC(char *) names; /* of files of PyTorch that an index has named */
    CTN__VEC(entry) entries;
    const entry **by_name;
};

/* ---- open ----------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const entry *const *)a)->a->name, (*(const entry *const *)b)->a->name);
}

static ctn_status sort_names(ctn_weights *w, const char *path)
{
    const size_t n = w->entries.n;
    w->by_name = ctn__calloc(n, sizeof(void *));
    if (!w->by_name) return CTN_ENOMEM;
    for (size_t i = 0; i < n; i++) w->by_name[i] = &w->entries.at[i];
    if (n > 0) qsort(w->by_name, n, sizeof(void *), compare_names);
    for (size_t i = 1; i < n; i++)
        if (compare_names(&w->by_name[i - 1], &w->by_name[i]) == 0)
            return ctn_fail(CTN_EFORMAT, "weights: %s: '%s' is in two files", path,
                            w->by_name[i]->a->name);
    return CTN_OK;
}

static ctn_status open_safetensors(ctn_weights *w, const char *path)
{
    CTN_TRY(ctn__st_open(&w->st, path));
    for (size_t i = 0; i < ctn__st_count(w->st); i++)
        if (!ctn__vec_push(&w->entries, ((entry){ctn__st_at(w->st, i), NULL}))) return CTN_ENOMEM;
    return CTN_OK;
}

static ctn_status add_pytorch(ctn_weights *w, const char *path)
{
    ctn__pt_file *f = NULL;
    CTN_TRY(ctn__pt_open(&f, path));
    if (!ctn__vec_push(&w->pt, f)) {
        ctn__pt_close(f);
        return CTN_ENOMEM;
    }
    for (size_t i = 0; i < ctn__pt_count(f); i++)
        if (!ctn__vec_push(&w->entries, ((entry){ctn__pt_at(f, i), f}))) return CTN_ENOMEM;
    return CTN_OK;
}

typedef struct {
    ctn_weights *w;
    const char *path; /* of the index */
} index_reader;

/* One pair of the index. A file is opened when it is first named, so that no more names are
 * compared than files exist. */
static ctn_status add_pair(void *user, const char *array, const char *file)
{
    const index_reader *r = user;
    ctn_weights *w = r->w;
    const char *slash = strrchr(r->path, '/');
    if (!*file || strchr(file, '/') || strstr(file, ".."))
        return ctn_fail(CTN_EFORMAT,
                        "weights: '%s' is said to be in '%s', expected the name of a file in the "
                        "folder of the index",
                        array, file);
    for (size_t i = 0; i < w->names.n; i++)
        if (strcmp(w->names.at[i], file) == 0) return CTN_OK;
    char *copy = ctn__strdup(file);
    if (!copy || !ctn__vec_push(&w->names, copy)) {
        ctn__free(copy);
        return CTN_ENOMEM;
    }
    ctn__text full = {0};
    ctn__text_add(&full, "%.*s%s", slash ? (int)(slash + 1 - r->path) : 0, r->path, file);
    const ctn_status st = full.failed ? CTN_ENOMEM : add_pytorch(w, full.s);
    ctn__text_free(&full);
    return st;
}

/* pytorch_model.bin.index.json: all files that it names are read as one. */
static ctn_status open_pytorch_index(ctn_weights *w, const char *path)
{
    char *json = NULL;
    size_t bytes = 0;
    index_reader r = {w, path};
    CTN_TRY(ctn__file_whole("weights", path, CTN__ST_HEADER_MAX, &json, &bytes));
    const ctn_status st = ctn__st_json_index(path, json, bytes, add_pair, &r);
    ctn__free(json);
    return ctn__file_blame(st, "weights", path);
}

static bool ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), k = strlen(end);
    return n >= k && strcmp(path + n - k, end) == 0;
}

static ctn_status open_file(ctn_weights *w, const char *path)
{
    unsigned char head[512] = {0};
    struct stat info = {0};
    int fd = -1;
    if (ends_in(path, ".bin.index.json")) return open_pytorch_index(w, path);
    if (ends_in(path, ".json")) return open_safetensors(w, path);
    CTN_TRY(ctn__file_open("weights", path, &fd, &info));
    const size_t n = (size_t)info.st_size < sizeof head ? (size_t)info.st_size : sizeof head;
    const ctn_status st = ctn__file_read("weights", path, fd, head, n, 0);
    close(fd);
    CTN_TRY(st);
    return ctn__pt_is(head, n) ? add_pytorch(w, path) : open_safetensors(w, path);
}

/* Open the file at path or, if that is a folder, the published model in it. */
static ctn_status open_path(ctn_weights *w, const char *path)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json",
                                        "pytorch_model.bin", "pytorch_model.bin.index.json"};
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return open_file(w, path);
    for (int i = 0; i < 4; i++) {
        ctn__text file = {0};
        ctn__text_add(&file, "%s/%s", path, names[i]);
        const bool found = !file.failed && stat(file.s, &info) == 0;
        ctn_status st = file.failed ? CTN_ENOMEM : found ? open_file(w, file.s) : CTN_OK;
        ctn__text_free(&file);
        if (found || st < 0) return st;
    }
    return ctn_fail(CTN_EIO, "weights: the folder %s has none of %s, %s, %s, %s", path, names[0],
                    names[1], names[2], names[3]);
}

ctn_status ctn_weights_open(ctn_weights **out, const char *path)
{
    ctn_status st = CTN_OK;
    if (!out || !path) return ctn_fail(CTN_EARG, "weights_open: NULL argument");
    *out = NULL;
    ctn_weights *w = ctn__calloc(1, sizeof *w);
    if (!w) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, open_path(w, path));
    CTN_TRY_GOTO(st, done, sort_names(w, path));
    *out = w;
    w = NULL;
done:
    ctn_weights_free(w);
    return st;
}

void ctn_weights_free(ctn_weights *w)
{
    if (!w) return;
    ctn__st_close(w->st);
    for (size_t i = 0; i < w->pt.n; i++) ctn__pt_close(w->pt.at[i]);
    for (size_t i = 0; i < w->names.n; i++) ctn__free(w->names.at[i]);
    ctn__vec_free(&w->pt);
    ctn__vec_free(&w->names);
    ctn__vec_free(&w->entries);
    ctn__free(w->by_name);
    ctn__free(w);
}

/* ---- arrays --------------------------------------------------------------------------------- */

const char *ctn_weights_format(const ctn_weights *w)
{
    return w && w->st ? "safetensors" : "pytorch";
}

int64_t ctn_weights_arrays(const ctn_weights *w)
{
    return w ? (int64_t)w->entries.n : 0;
}

const ctn_weights_array *ctn__weights_at(const ctn_weights *w, int64_t i)
{
    return w->entries.at[i].a;
}

static ctn_status check_array(const char *who, const ctn_weights *w, int64_t i)
{
    if (!w) return ctn_fail(CTN_EARG, "%s: NULL argument", who);
    if (i >= 0 && i < ctn_weights_arrays(w)) return CTN_OK;
    return ctn_fail(CTN_EARG, "%s: array %lld of a file with %lld", who, (long long)i,
                    (long long)ctn_weights_arrays(w));
}

ctn_status ctn_weights_get_array(const ctn_weights *w, int64_t i, ctn_weights_array *out)
{
    CTN_TRY(check_array("weights_get_array", w, i));
    if (!out) return ctn_fail(CTN_EARG, "weights_get_array: NULL argument");
    *out = *ctn__weights_at(w, i);
    return CTN_OK;
}

int64_t ctn_weights_find(const ctn_weights *w, const char *name)
{
    if (!w || !name || !w->entries.n) return -1;
    const ctn_weights_array array = {.name = name};
    const entry key = {&array, NULL}, *p = &key;
    const entry **hit = bsearch(&p, w->by_name, w->entries.n, sizeof(void *), compare_names);
    return hit ? *hit - w->entries.at : -1;
}

void ctn__convert(void *dst, ctn_dtype to, const void *src, ctn_dtype from, int64_t n)
{
    if (to == from) memcpy(dst, src, (size_t)n * ctn_dtype_size(to));
    else
        for (int64_t k = 0; k < n; k++) ctn__elem_set(dst, to, k, ctn__elem_get(src, from, k));
}

static ctn_status read_as_is(const ctn_weights *w, int64_t i, void *dst)
{
    const entry *e = &w->entries.at[i];
    return e->pt ? ctn__pt_read(e->pt, e->a, dst) : ctn__st_read(w->st, e->a, dst);
}

ctn_status ctn_weights_read(const ctn_weights *w, int64_t i, ctn_dtype dtype, void *dst,
                            size_t bytes)
{
    CTN_TRY(check_array("weights_read", w, i));
    const ctn_weights_array *a = ctn__weights_at(w, i);
    if (!dtype) dtype = a->dtype;
    if (dtype != a->dtype && !(ctn__is_float(dtype) && ctn__is_float(a->dtype)))
        return ctn_fail(CTN_EDTYPE, "weights_read: '%s' is %s, which cannot be converted to %s",
                        a->name, ctn_dtype_name(a->dtype), ctn_dtype_name(dtype));
    const int64_t n = (int64_t)(a->bytes / ctn_dtype_size(a->dtype));
    const size_t need = ctn__mul((size_t)n, ctn_dtype_size(dtype));
    if (bytes != need || (!dst && need))
        return ctn_fail(CTN_EARG, "weights_read: '%s' needs %zu bytes, got %zu", a->name, need,
                        dst ? bytes : 0);
    if (n == 0) return CTN_OK;
    if (dtype == a->dtype) return read_as_is(w, i, dst);
    void *p = ctn__aligned(a->bytes);
    if (!p) return CTN_ENOMEM;
    const ctn_status st = read_as_is(w, i, p);
    if (st == CTN_OK) ctn__convert(dst, dtype, p, a->dtype, n);
    ctn__free(p);
    return st;
}

/* ---- write ---------------------------------------------------------------------------------- */

static ctn_status add_item(ctn__st_writer *out, const ctn_weights_item *item)
{
    CTN_TRY(check_array("weights_write", item->from, item->array));
    const ctn_weights_array *a = ctn__weights_at(item->from, item->array);
    return ctn__st_add(out, item->name ? item->name : a->name, item->dtype ? item->dtype : a->dtype,
                       a->ndim, a->shape);
}

static ctn_status put_item(ctn__st_writer *out, const ctn_weights_item *item)
{
    const ctn_weights_array *a = ctn__weights_at(item->from, item->array);
    const ctn_dtype dtype = item->dtype ? item->dtype : a->dtype;
    const size_t bytes = ctn__mul(a->bytes / ctn_dtype_size(a->dtype), ctn_dtype_size(dtype));
    void *p = ctn__aligned(bytes);
    if (!p) return CTN_ENOMEM;
    ctn_status st = ctn_weights_read(item->from, item->array, dtype, p, bytes);
    if (st == CTN_OK) st = ctn__st_put(out, item->name ? item->name : a->name, p);
    ctn__free(p);
    return st;
}

ctn_status ctn_weights_write(const char *path, int n, const ctn_weights_item *items)
{
    ctn_status st = CTN_OK;
    ctn__st_writer *out = NULL;
    if (!path || n < 0 || (n > 0 && !items))
        return ctn_fail(CTN_EARG, "weights_write: needs a path and items");
    CTN_TRY_GOTO(st, done, ctn__st_begin(&out, path));
    CTN_TRY_GOTO(st, done, ctn__st_add_metadata(out, "format", "pt"));
    for (int i = 0; i < n; i++) CTN_TRY_GOTO(st, done, add_item(out, &items[i]));
    for (int i = 0; i < n; i++) CTN_TRY_GOTO(st, done, put_item(out, &items[i]));
    CTN_TRY_GOTO(st, done, ctn__st_finish(out));
done:
    ctn__st_writer_free(out);
    return st;
}
