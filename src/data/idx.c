/* SPDX-License-Identifier: Apache-2.0
 *
 * Dataset over idx files (the format of MNIST), plain or gzip. A file is
 *     0 0 type ndim  dim[0] .. dim[ndim-1]  data      (dims big-endian u32, row-major data)
 * It is treated as hostile: nothing is allocated before its size on disk is known to be large
 * enough for what the header promises, and it must end where the header says. Bytes stay u8 in
 * memory; images are converted when samples are read.
 */
#include <errno.h>
#include <sys/stat.h>

#include "data/data.h"

#ifdef CTN_HAVE_ZLIB
#include <zlib.h>
typedef gzFile stream;
#else
typedef FILE *stream;
#endif

enum {
    TYPE_U8 = 0x08,
    DEFLATE_RATIO = 1032, /* maximum compression ratio of deflate */
    MAX_NDIM = 3,
};

struct input {
    const char *path;
    size_t size; /* bytes on disk */
    stream s;
};

struct array {
    int64_t dim[MAX_NDIM];
    uint8_t *data;
};

#ifdef CTN_HAVE_ZLIB

static ctn_status stream_open(struct input *in)
{
    errno = 0;
    in->s = gzopen(in->path, "rb"); /* also reads uncompressed files */
    if (in->s) return CTN_OK;
    if (errno == 0 || errno == ENOMEM)
        return ctn_fail(CTN_ENOMEM, "idx: %s: out of memory while decompressing", in->path);
    return ctn_fail(CTN_EIO, "idx: %s: %s", in->path, strerror(errno));
}

static void stream_close(struct input *in)
{
    if (in->s) gzclose(in->s);
    in->s = NULL;
}

/* Reads up to n bytes; *got < n only at the end of the file. */
static ctn_status stream_read(struct input *in, void *dst, size_t n, size_t *got)
{
    *got = 0;
    while (*got < n) {
        size_t rest = n - *got, most = (size_t)1 << 30;
        int r = gzread(in->s, (char *)dst + *got, (unsigned)(rest < most ? rest : most));
        int err = Z_OK;
        const char *text = gzerror(in->s, &err);
        if (err == Z_ERRNO) return ctn_fail(CTN_EIO, "idx: %s: %s", in->path, strerror(errno));
        if (err == Z_MEM_ERROR) return ctn_fail(CTN_ENOMEM, "idx: %s: %s", in->path, text);
        if (r < 0 || (err != Z_OK && err != Z_STREAM_END))
            return ctn_fail(CTN_EFORMAT, "idx: %s: damaged gzip data: %s", in->path, text);
        if (r == 0) break;
        *got += (size_t)r;
    }
    return CTN_OK;
}

static size_t stream_most(struct input *in)
{
    return gzdirect(in->s) ? in->size : ctn__mul(in->size, DEFLATE_RATIO);
}

#else

static ctn_status stream_open(struct input *in)
{
    in->s = fopen(in->path, "rb");
    if (!in->s) return ctn_fail(CTN_EIO, "idx: %s: %s", in->path, strerror(errno));
    int a = getc(in->s), b = getc(in->s);
    if (a == 0x1f && b == 0x8b)
        return ctn_fail(
            CTN_EUNSUPPORTED,
            "idx: %s is compressed, but Catena was built without zlib: gunzip the file, or "
            "rebuild with zlib (Debian: zlib1g-dev)",
            in->path);
    rewind(in->s);
    return CTN_OK;
}

static void stream_close(struct input *in)
{
    if (in->s) fclose(in->s);
    in->s = NULL;
}

static ctn_status stream_read(struct input *in, void *dst, size_t n, size_t *got)
{
    *got = fread(dst, 1, n, in->s);
    if (ferror(in->s)) return ctn_fail(CTN_EIO, "idx: %s: %s", in->path, strerror(errno));
    return CTN_OK;
}

static size_t stream_most(struct input *in)
{
    return in->size;
}

#endif

static ctn_status read_header(struct input *in, int ndim, struct array *a)
{
    uint8_t h[4 + 4 * MAX_NDIM];
    size_t bytes = 4 + 4 * (size_t)ndim, got = 0;
    CTN_TRY(stream_read(in, h, bytes, &got));
    if (got < bytes)
        return ctn_fail(CTN_EFORMAT, "idx: %s: ends after %zu bytes, but the header has %zu",
                        in->path, got, bytes);
    if (h[0] || h[1])
        return ctn_fail(CTN_EFORMAT,
                        "idx: %s: starts with bytes %02x %02x, an idx file starts with 00 00",
                        in->path, h[0], h[1]);
    if (h[2] != TYPE_U8)
        return ctn_fail(CTN_EFORMAT, "idx: %s: element type is 0x%02x, expected 0x08 (u8)",
                        in->path, h[2]);
    if (h[3] != ndim)
        return ctn_fail(CTN_EFORMAT, "idx: %s: has %d dimensions, expected %d (%s)", in->path, h[3],
                        ndim, ndim == 3 ? "images: N,H,W" : "labels: N");
    for (int d = 0; d < ndim; d++) {
        const uint8_t *p = h + 4 + 4 * d;
        a->dim[d] = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
        if (a->dim[d] == 0)
            return ctn_fail(CTN_EFORMAT, "idx: %s: size 0 in dimension %d", in->path, d);
    }
    return CTN_OK;
}

static ctn_status read_data(struct input *in, int ndim, struct array *a)
{
    size_t bytes = 1, got = 0, header = 4 + 4 * (size_t)ndim, most = stream_most(in);
    for (int d = 0; d < ndim; d++) bytes = ctn__mul(bytes, (size_t)a->dim[d]);
    if (most < header || bytes > most - header)
        return ctn_fail(
            CTN_EFORMAT,
            "idx: %s: the header promises %zu bytes of data, but a file of %zu bytes cannot "
            "hold them",
            in->path, bytes, in->size);
    a->data = ctn__malloc(bytes);
    if (!a->data) return CTN_ENOMEM;
    CTN_TRY(stream_read(in, a->data, bytes, &got));
    if (got < bytes)
        return ctn_fail(CTN_EFORMAT, "idx: %s: has %zu bytes of data, but the header promises %zu",
                        in->path, got, bytes);
    char extra; /* reading past the data also makes zlib verify the checksum */
    CTN_TRY(stream_read(in, &extra, 1, &got));
    if (got)
        return ctn_fail(CTN_EFORMAT,
                        "idx: %s: has data after the %zu bytes that the header promises", in->path,
                        bytes);
    return CTN_OK;
}

/* The caller frees a->data, even after an error. */
static ctn_status read_array(const char *path, int ndim, struct array *a)
{
    ctn_status st = CTN_OK;
    struct input in = {.path = path};
    struct stat info;
    if (stat(path, &info) != 0) return ctn_fail(CTN_EIO, "idx: %s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return ctn_fail(CTN_EIO, "idx: %s: is not a regular file", path);
    in.size = (size_t)info.st_size;
    CTN_TRY_GOTO(st, done, stream_open(&in));
    CTN_TRY_GOTO(st, done, read_header(&in, ndim, a));
    CTN_TRY_GOTO(st, done, read_data(&in, ndim, a));
done:
    stream_close(&in);
    return st;
}

struct idx {
    struct array images; /* (N,H,W) */
    struct array labels; /* (N); data is NULL if there are none */
    size_t pixels;       /* H*W */
    ctn_idx_opt opt;
};

static int64_t idx_count(void *self)
{
    return ((struct idx *)self)->images.dim[0];
}

static int idx_fields(void *self)
{
    return ((struct idx *)self)->labels.data ? 2 : 1;
}

static void idx_field(void *self, int f, ctn_field *out)
{
    const struct idx *x = self;
    if (f == 1) *out = (ctn_field){.dtype = CTN_I64};
    else if (x->opt.shaped)
        *out = (ctn_field){.ndim = 3, .shape = {1, x->images.dim[1], x->images.dim[2]}};
    else *out = (ctn_field){.ndim = 1, .shape = {(int64_t)x->pixels}};
    if (f == 0) out->dtype = x->opt.raw ? CTN_U8 : CTN_F32;
}

static ctn_status idx_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct idx *x = self;
    const uint8_t *src = x->images.data + (size_t)s->index * x->pixels;
    if (x->opt.raw) {
        memcpy(dst[0], src, x->pixels);
    } else {
        float *y = dst[0];
        for (size_t i = 0; i < x->pixels; i++) y[i] = (float)src[i] / 255.0f;
    }
    if (x->labels.data) *(int64_t *)dst[1] = x->labels.data[s->index];
    return CTN_OK;
}

static void idx_free(void *self)
{
    struct idx *x = self;
    if (!x) return;
    ctn__free(x->images.data);
    ctn__free(x->labels.data);
    ctn__free(x);
}

static const ctn_dataset_vt idx_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = idx_count,
    .fields = idx_fields,
    .field = idx_field,
    .get = idx_get,
    .free = idx_free,
};

ctn_status ctn_idx_open(ctn_dataset **ds, const char *images_path, const char *labels_path,
                        const ctn_idx_opt *opt)
{
    if (!ds || !images_path) return ctn_fail(CTN_EARG, "idx: NULL argument");
    *ds = NULL;
    ctn_status st = CTN_OK;
    struct idx *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__opt("idx", &x->opt, sizeof x->opt, opt));
    CTN_TRY_GOTO(st, done, read_array(images_path, 3, &x->images));
    if (labels_path) CTN_TRY_GOTO(st, done, read_array(labels_path, 1, &x->labels));
    if (labels_path && x->labels.dim[0] != x->images.dim[0]) {
        st = ctn_fail(CTN_EFORMAT, "idx: %s has %lld images, %s has %lld labels", images_path,
                      (long long)x->images.dim[0], labels_path, (long long)x->labels.dim[0]);
        goto done;
    }
    x->pixels = (size_t)(x->images.dim[1] * x->images.dim[2]);
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &idx_vt, x));
    x = NULL; /* owned by the dataset */
done:
    idx_free(x);
    return st;
}
