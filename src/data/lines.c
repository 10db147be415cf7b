/* SPDX-License-Identifier: Apache-2.0
 *
 * Dataset over the lines of text files: sample i is line i of each file. The files are scanned once
 * for their line ends, and lines are read by offset.
 *
 * Invariant: of the table `at`, entry i is 2 * b + r. Line i begins at byte b, and r is 1 if line
 * i - 1 ends in CR LF instead of LF. The last entry stands for the line after the last one; if the
 * file does not end in LF, it is as if it did.
 */
#include <catena/datasets.h>
#include "data/source.h"

struct file {
    ctn__array_file file;
    CTN__VEC(uint64_t) at; /* lines + 1 */
};

struct lines {
    int n;
    struct file file[CTN_DATA_FIELDS];
};

static int64_t lines_count(void *self)
{
    return (int64_t)((struct lines *)self)->file[0].at.n - 1;
}

static int lines_fields(void *self)
{
    return ((struct lines *)self)->n;
}

static void lines_field(void *self, int f, ctn_field *out)
{
    (void)self;
    (void)f;
    *out = (ctn_field){CTN_U8, 1, {CTN_RAGGED}, 0};
}

static int64_t lines_length(void *self, int f, int64_t index)
{
    const uint64_t *at = ((struct lines *)self)->file[f].at.at + index;
    return (int64_t)(at[1] / 2 - at[0] / 2 - 1 - at[1] % 2);
}

static ctn_status lines_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct lines *x = self;
    for (int f = 0; f < x->n; f++)
        CTN_TRY(ctn__array_file_read(&x->file[f].file, dst[f],
                                     (size_t)lines_length(self, f, s->index),
                                     x->file[f].at.at[s->index] / 2));
    return CTN_OK;
}

static void lines_free(void *self)
{
    struct lines *x = self;
    if (!x) return;
    for (int f = 0; f < x->n; f++) {
        ctn__array_file_close(&x->file[f].file);
        ctn__vec_free(&x->file[f].at);
    }
    ctn__free(x);
}

static int lines_name(void *self, int64_t index, char *buf, size_t n)
{
    const struct lines *x = self;
    return snprintf(buf, n, "%s:%lld", x->file[0].file.path, (long long)index + 1);
}

static const ctn_dataset_vt lines_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = lines_count,
    .fields = lines_fields,
    .field = lines_field,
    .get = lines_get,
    .free = lines_free,
    .name = lines_name,
    .length = lines_length,
};

/* Adds the lines that end in p[0..n), the bytes from `offset` on; last: the byte before them. */
static ctn_status scan_piece(struct file *x, const char *p, size_t n, uint64_t offset, char last)
{
    for (const char *q = p, *end = p + n; q < end; q++) {
        q = memchr(q, '\n', (size_t)(end - q));
        if (!q) break;
        const uint64_t next = offset + (uint64_t)(q - p) + 1;
        const bool cr = (q > p ? q[-1] : last) == '\r';
        if (!ctn__vec_push(&x->at, 2 * next + cr)) return CTN_ENOMEM;
    }
    return CTN_OK;
}

static ctn_status scan(struct file *x)
{
    const uint64_t bytes = x->file.bytes;
    char piece[CTN__PIECE], last = 0;
    if (!ctn__vec_push(&x->at, 0)) return CTN_ENOMEM;
    for (uint64_t done = 0, k; done < bytes; done += k) {
        k = bytes - done < sizeof piece ? bytes - done : sizeof piece;
        CTN_TRY(ctn__array_file_read(&x->file, piece, (size_t)k, done));
        CTN_TRY(scan_piece(x, piece, (size_t)k, done, last));
        last = piece[k - 1];
    }
    if (last != '\n' && !ctn__vec_push(&x->at, 2 * (bytes + 1))) return CTN_ENOMEM;
    return CTN_OK;
}

static ctn_status open_file(struct file *x, const char *path)
{
    if (!path) return ctn_fail(CTN_EARG, "text_lines: NULL argument");
    CTN_TRY(ctn__array_file_open(&x->file, "text_lines", path));
    CTN_TRY(ctn__array_file_hold(&x->file, 0));
    return scan(x);
}

ctn_status ctn_text_lines_open(ctn_dataset **ds, int n, const char *const *path)
{
    if (!ds || !path) return ctn_fail(CTN_EARG, "text_lines: NULL argument");
    *ds = NULL;
    if (n < 1 || n > CTN_DATA_FIELDS)
        return ctn_fail(CTN_EARG, "text_lines: got %d files, expected 1 to %d", n, CTN_DATA_FIELDS);
    ctn_status st = CTN_OK;
    struct lines *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    while (x->n < n) {
        struct file *f = &x->file[x->n++];
        f->file.fd = -1;
        CTN_TRY_GOTO(st, done, open_file(f, path[x->n - 1]));
        if (f->at.n == x->file[0].at.n) continue;
        st = ctn_fail(CTN_EFORMAT, "text_lines: %s has %zu lines, %s has %zu", path[0],
                      x->file[0].at.n - 1, path[x->n - 1], f->at.n - 1);
        goto done;
    }
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &lines_vt, x));
    x = NULL; /* owned by the dataset */
done:
    lines_free(x);
    return st;
}
