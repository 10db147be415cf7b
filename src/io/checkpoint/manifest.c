/* SPDX-License-Identifier: Apache-2.0
 *
 * The manifest of a checkpoint: a text with one line per file, followed by one for each of its
 * arrays, whose fields are separated by tabs, and a hash of itself in its last line.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/readfile.h"
#include "io/checkpoint/checkpoint.h"

#define HEAD "catena-checkpoint 1\n"

/* ---- writing --------------------------------------------------------------------------------- */

void ctn__hash_text(ctn__hash128 h, char text[33])
{
    snprintf(text, 33, "%016llx%016llx", (unsigned long long)h.hi, (unsigned long long)h.lo);
}

static void add_hash(ctn__text *t, ctn__hash128 h)
{
    char text[33];
    ctn__hash_text(h, text);
    ctn__text_add(t, "%s\n", text);
}

void ctn__manifest_add_file(ctn__text *t, const char *name, uint64_t bytes, ctn__hash128 hash)
{
    ctn__text_add(t, "file\t%s\t%llu\t", name, (unsigned long long)bytes);
    add_hash(t, hash);
}

void ctn__manifest_add_array(ctn__text *t, const char *name, ctn_dtype dtype, int ndim,
                             const int64_t *dim, const char *file, ctn__hash128 hash)
{
    ctn__text_add(t, "array\t%s\t%d\t", name, (int)dtype);
    for (int i = 0; i < ndim; i++) ctn__text_add(t, "%s%lld", i ? "," : "", (long long)dim[i]);
    ctn__text_add(t, "\t%s\t", file);
    add_hash(t, hash);
}

ctn_status ctn__manifest_finish(const ctn__text *lines, ctn__text *out)
{
    ctn__text_add(out, HEAD "%s", lines->s ? lines->s : "");
    if (out->failed || lines->failed) return CTN_ENOMEM;
    const ctn__hash128 h = ctn__hash(out->s, out->n);
    ctn__text_add(out, "end\t");
    add_hash(out, h);
    return out->failed ? CTN_ENOMEM : CTN_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool same_hash(ctn__hash128 a, ctn__hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

static bool read_hash(const char *s, ctn__hash128 *h)
{
    unsigned long long hi, lo;
    if (strlen(s) != 32 || sscanf(s, "%16llx%16llx", &hi, &lo) != 2) return false;
    *h = (ctn__hash128){.lo = lo, .hi = hi};
    return true;
}

/* Cuts a line at its tabs; returns the number of fields. */
static int cut_fields(char *line, char *field[], int most)
{
    int n = 0;
    for (char *p = line; p && n < most; n++) {
        field[n] = p;
        p = strchr(p, '\t');
        if (p) *p++ = 0;
    }
    return n;
}

/* A name that stays in the folder. */
static bool plain_name(const char *s)
{
    return *s && !strchr(s, '/') && *s != '.';
}

static ctn_status read_file_line(ctn__manifest *m, char *field[])
{
    ctn__ckpt_file f = {0};
    char *end;
    f.bytes = strtoull(field[2], &end, 10);
    if (*end || !plain_name(field[1]) || !read_hash(field[3], &f.hash)) return CTN_EFORMAT;
    f.name = ctn__strdup(field[1]);
    if (f.name && ctn__vec_push(&m->file, f)) return CTN_OK;
    ctn__free(f.name);
    return CTN_ENOMEM;
}

static bool read_shape(ctn__ckpt_array *a, const char *s)
{
    for (char *end; *s; s = end + (*end == ',')) {
        if (a->ndim == CTN_MAX_DIMS) return false;
        a->dim[a->ndim] = strtoll(s, &end, 10);
        if (end == s || a->dim[a->ndim++] < 0 || (*end && *end != ',')) return false;
    }
    return true;
}

static ctn_status read_array_line(ctn__manifest *m, char *field[])
{
    ctn__ckpt_array a = {.file = (int)m->file.n - 1};
    char *end;
    a.dtype = (ctn_dtype)strtol(field[2], &end, 10);
    if (a.file < 0 || strcmp(m->file.at[a.file].name, field[4]) != 0) return CTN_EFORMAT;
    if (*end || !*field[1] || ctn_dtype_size(a.dtype) == 0 || !read_shape(&a, field[3]) ||
        !read_hash(field[5], &a.hash))
        return CTN_EFORMAT;
    a.name = ctn__strdup(field[1]);
    if (a.name && ctn__vec_push(&m->array, a)) return CTN_OK;
    ctn__free(a.name);
    return CTN_ENOMEM;
}

static ctn_status read_line(ctn__manifest *m, char *line)
{
    char *field[7];
    const int n = cut_fields(line, field, 7);
    if (n == 4 && strcmp(field[0], "file") == 0) return read_file_line(m, field);
    if (n == 6 && strcmp(field[0], "array") == 0) return read_array_line(m, field);
    return CTN_EFORMAT;
}

/* Slices of an array come in the order of their elements. */
/* Without the range of a slice. Names may have other brackets: "optim[generator].weight". */
static size_t plain_length(const char *name)
{
    const char *range = strrchr(name, '[');
    const size_t digits = range ? strspn(range + 1, "0123456789") : 0;
    return digits > 0 && range[1 + digits] == ':' ? (size_t)(range - name) : strlen(name);
}

static int by_name(const void *a, const void *b)
{
    const char *x = ((const ctn__ckpt_array *)a)->name, *y = ((const ctn__ckpt_array *)b)->name;
    const size_t n = plain_length(x), k = plain_length(y);
    const int c = strncmp(x, y, n < k ? n : k);
    if (c != 0) return c;
    if (n != k) return n < k ? -1 : 1;
    if (!x[n] || !y[n]) return (x[n] != 0) - (y[n] != 0);
    const long long p = strtoll(x + n + 1, NULL, 10), q = strtoll(y + n + 1, NULL, 10);
    return p != q ? (p < q ? -1 : 1) : strcmp(x, y);
}

static ctn_status damaged(const char *path, const char *what)
{
    return ctn_fail(CTN_EFORMAT, "checkpoint: %s/" CTN__CKPT_MANIFEST " %s", path, what);
}

/* Is the last line the hash of what is before it? *end: where it begins. */
static bool whole(const char *text, const char **end)
{
    ctn__hash128 h;
    char last[33] = "";
    const size_t n = strlen(text), tail = strlen("end\t") + 32 + 1;
    if (n < tail || text[n - 1] != '\n') return false;
    *end = text + n - tail;
    memcpy(last, *end + strlen("end\t"), 32);
    return strncmp(*end, "end\t", 4) == 0 && read_hash(last, &h) &&
           same_hash(h, ctn__hash(text, (size_t)(*end - text)));
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every line of a file costs reading it. */
static ctn_status check_files(const ctn__manifest *m, const char *path)
{
    const size_t n = m->file.n;
    ctn_status st = CTN_OK;
    const char **name = ctn__calloc(n + 1, sizeof *name);
    if (!name) return CTN_ENOMEM;
    for (size_t i = 0; i < n; i++) name[i] = m->file.at[i].name;
    qsort(name, n, sizeof *name, compare_names);
    for (size_t i = 1; st == CTN_OK && i < n; i++)
        if (strcmp(name[i - 1], name[i]) == 0) st = damaged(path, "lists a file twice");
    ctn__free(name);
    return st;
}

ctn_status ctn__manifest_parse(ctn__manifest *m, const char *path, const char *text)
{
    const char *end = NULL;
    ctn_status st = CTN_OK;
    if (strncmp(text, "catena-checkpoint ", 18) == 0 && strncmp(text, HEAD, strlen(HEAD)) != 0)
        return damaged(path, "was written by another version of Catena");
    if (strncmp(text, HEAD, strlen(HEAD)) != 0 || !whole(text, &end))
        return damaged(path, "is damaged: its hash does not match");
    char *copy = ctn__strdup(text + strlen(HEAD));
    if (!copy) return CTN_ENOMEM;
    copy[end - text - (ptrdiff_t)strlen(HEAD)] = 0;
    for (char *line = copy, *next; st == CTN_OK && *line; line = next) {
        next = strchr(line, '\n');
        if (!next) break;
        *next++ = 0;
        st = read_line(m, line);
    }
    ctn__free(copy);
    if (st == CTN_EFORMAT) return damaged(path, "has a line that cannot be read");
    if (st == CTN_OK) st = check_files(m, path);
    if (m->array.n) qsort(m->array.at, m->array.n, sizeof *m->array.at, by_name);
    return st;
}

ctn_status ctn__manifest_read(ctn__manifest *m, const char *path)
{
    char *text = NULL;
    ctn_status st = ctn__numbered_read(path, CTN__CKPT_MANIFEST, &text);
    if (st == CTN_OK) st = ctn__manifest_parse(m, path, text);
    ctn__free(text);
    return st;
}

void ctn__manifest_free(ctn__manifest *m)
{
    for (size_t i = 0; i < m->file.n; i++) ctn__free(m->file.at[i].name);
    for (size_t i = 0; i < m->array.n; i++) ctn__free(m->array.at[i].name);
    ctn__vec_free(&m->file);
    ctn__vec_free(&m->array);
}

ctn__ckpt_array *ctn__manifest_find(const ctn__manifest *m, const char *name)
{
    const ctn__ckpt_array key = {.name = (char *)name};
    return m->array.n ? bsearch(&key, m->array.at, m->array.n, sizeof key, by_name) : NULL;
}

bool ctn__slice_of(const char *slice, const char *name, int64_t *begin, int64_t *end)
{
    const size_t n = strlen(name);
    long long b, e;
    int used = 0;
    if (strncmp(slice, name, n) != 0 || slice[n] != '[') return false;
    if (sscanf(slice + n, "[%lld:%lld]%n", &b, &e, &used) != 2 || slice[n + (size_t)used])
        return false;
    *begin = b;
    *end = e;
    return 0 <= b && b <= e;
}

bool ctn__manifest_slice(const ctn__ckpt_array *a, const char *name, int64_t *begin, int64_t *end)
{
    return ctn__slice_of(a->name, name, begin, end) && a->ndim == 1 && a->dim[0] == *end - *begin;
}

ctn__ckpt_array *ctn__manifest_slices(const ctn__manifest *m, const char *name)
{
    size_t lo = 0, hi = m->array.n;
    char first[1100];
    snprintf(first, sizeof first, "%s[0:", name);
    const ctn__ckpt_array key = {.name = first};
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (by_name(&m->array.at[mid], &key) < 0) lo = mid + 1;
        else hi = mid;
    }
    int64_t b, e;
    return lo < m->array.n && ctn__manifest_slice(&m->array.at[lo], name, &b, &e) ? &m->array.at[lo]
                                                                                  : NULL;
}

size_t ctn__manifest_bytes(const ctn__ckpt_array *a)
{
    size_t bytes = ctn_dtype_size(a->dtype);
    for (int i = 0; i < a->ndim; i++) bytes *= (size_t)a->dim[i];
    return bytes;
}

ctn_status ctn__manifest_open(const ctn__manifest *m, const char *path, int f, ctn__st_file **file)
{
    ctn__text full = {0};
    if (*file) return CTN_OK;
    ctn__text_add(&full, "%s/%s", path, m->file.at[f].name);
    const ctn_status st = full.failed ? CTN_ENOMEM : ctn__st_open(file, full.s);
    ctn__text_free(&full);
    return st;
}

/* ---- comparing with the files ---------------------------------------------------------------- */

void ctn__ckpt_add_error(ctn__text *t)
{
    const char *message = ctn_error_message();
    ctn__text_add(t, "%.*s", (int)strcspn(message, "\n"), message);
    ctn_error_clear();
}

ctn_status ctn__file_hash(const char *path, ctn__hash128 *hash, uint64_t *bytes)
{
    enum { CHUNK = 1 << 20 };
    struct stat info = {0};
    int fd = -1;
    ctn_status st = CTN_OK;
    CTN_TRY(ctn__file_open("checkpoint", path, &fd, &info));
    ctn__hasher *h = ctn__hasher_new();
    char *chunk = ctn__malloc(CHUNK);
    if (!h || !chunk) st = CTN_ENOMEM;
    *bytes = 0;
    for (ssize_t k = 1; st == CTN_OK && k != 0;) {
        k = read(fd, chunk, CHUNK);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) st = ctn_fail(CTN_EIO, "checkpoint: cannot read %s: %s", path, strerror(errno));
        if (k > 0) ctn__hasher_add(h, chunk, (size_t)k);
        if (k > 0) *bytes += (uint64_t)k;
    }
    if (st == CTN_OK) *hash = ctn__hasher_value(h);
    ctn__hasher_free(h);
    ctn__free(chunk);
    close(fd);
    return st;
}

/* Names the arrays of a damaged file that do not have their hash. */
static void name_arrays(const ctn__manifest *m, const char *full, int f, ctn__text *found)
{
    ctn__st_file *file = NULL;
    int named = 0, others = 0;
    if (ctn__st_open(&file, full) < 0) {
        ctn_error_clear();
        ctn__text_add(found, "; its head cannot be read");
        return;
    }
    for (size_t i = 0; i < m->array.n; i++) {
        const ctn__ckpt_array *a = &m->array.at[i];
        if (a->file != f) continue;
        const ctn__st_array *x = ctn__st_find(file, a->name);
        char *data = x ? ctn__malloc(x->bytes + 1) : NULL;
        const bool ok = data && ctn__st_read(file, x, data) == CTN_OK &&
                        same_hash(ctn__hash(data, x->bytes), a->hash);
        ctn__free(data);
        if (ok) continue;
        if (named < 3) ctn__text_add(found, "%s%s", named++ ? ", " : "; damaged: ", a->name);
        else others++;
    }
    if (others) ctn__text_add(found, " and %d others", others);
    ctn_error_clear();
    ctn__st_close(file);
}

ctn_status ctn__manifest_verify(const ctn__manifest *m, const char *path, int f, ctn__text *found)
{
    const ctn__ckpt_file *want = &m->file.at[f];
    ctn__text full = {0};
    ctn__hash128 hash;
    uint64_t bytes = 0;
    ctn__text_add(&full, "%s/%s", path, want->name);
    if (full.failed) return CTN_ENOMEM;
    ctn_status st = ctn__file_hash(full.s, &hash, &bytes);
    if (st == CTN_EIO) {
        ctn__ckpt_add_error(found);
        ctn__text_add(found, "\n");
        st = CTN_OK;
    } else if (st == CTN_OK && bytes != want->bytes) {
        ctn__text_add(found, "%s has %llu bytes, expected %llu\n", full.s,
                      (unsigned long long)bytes, (unsigned long long)want->bytes);
    } else if (st == CTN_OK && !same_hash(hash, want->hash)) {
        ctn__text_add(found, "%s does not have the hash that it was written with", full.s);
        const size_t n = strlen(want->name), tail = strlen(".safetensors");
        if (n > tail && strcmp(want->name + n - tail, ".safetensors") == 0)
            name_arrays(m, full.s, f, found);
        ctn__text_add(found, "\n");
    }
    ctn__text_free(&full);
    return st < 0 ? st : found->failed ? CTN_ENOMEM : CTN_OK;
}
