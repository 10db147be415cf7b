/* SPDX-License-Identifier: Apache-2.0
 *
 * Dataset over arrays in files, one array per field: .npy files, and arrays of HDF5 files through
 * the plug-in. Dimension 0 counts the samples, or the rows of all samples of a ragged field, whose
 * offsets are held in memory. Samples are converted when they are read.
 */
#include <catena/datasets.h>
#include "data/source.h"

struct column {
    char *path; /* as the user gave it */
    ctn_field field;
    int64_t count;
    int64_t *offset;      /* (count+1): where samples of a ragged field begin; NULL: not ragged */
    ctn__array_file file; /* .npy */
    ctn__npy npy;
    void *array; /* of an HDF5 file */
};

struct files {
    const ctn__hdf5_plugin *hdf5; /* NULL: no field needs it */
    int fields;
    struct column column[CTN_DATA_FIELDS];
};

/* ---- opening --------------------------------------------------------------------------------- */

/* The array's name within `fields.h5:/group/name`; NULL: path does not have that form. */
static const char *hdf5_part(const char *path)
{
    static const char *const mark[] = {".h5:/", ".hdf5:/"};
    for (int i = 0; i < 2; i++) {
        const char *p = strstr(path, mark[i]);
        if (p) return p + strlen(mark[i]) - 1;
    }
    return NULL;
}

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Rejects names of files that are not .npy files, and says what to do instead. */
static ctn_status check_name(const char *path)
{
    if (ends_with(path, ".h5") || ends_with(path, ".hdf5"))
        return ctn_fail(CTN_EFORMAT,
                        "files: %s: add the name of the array, as in %s:/name (h5ls lists them)",
                        path, path);
    if (ends_with(path, ".npz"))
        return ctn_fail(CTN_EFORMAT,
                        "files: %s: .npz archives are not supported: write each array to its own "
                        "file with numpy.save(\"x.npy\", x)",
                        path);
    return CTN_OK;
}

/* The field of an array: its dimensions after dimension 0. */
static ctn_status set_field(struct column *c, char kind, int bytes, bool keep_f64, int ndim,
                            const int64_t *shape)
{
    if (ndim == 0)
        return ctn_fail(CTN_ESHAPE,
                        "files: %s: is one number, expected an array whose dimension 0 counts "
                        "samples",
                        c->path);
    c->field.dtype = ctn__array_dtype(kind, bytes, keep_f64);
    if (c->field.dtype == 0)
        return ctn_fail(CTN_EDTYPE,
                        "files: %s: elements of kind '%c' and %d bytes are not supported", c->path,
                        kind, bytes);
    c->field.ndim = ndim - 1;
    c->count = shape[0];
    for (int d = 1; d < ndim; d++) {
        if (shape[d] < 1)
            return ctn_fail(CTN_ESHAPE, "files: %s: size is %lld in dimension %d", c->path,
                            (long long)shape[d], d);
        c->field.shape[d - 1] = shape[d];
    }
    return CTN_OK;
}

static ctn_status open_hdf5(struct files *x, struct column *c, const char *part, bool keep_f64)
{
    ctn__hdf5_info info = {0};
    char why[256] = "";
    if (!x->hdf5) CTN_TRY(ctn__hdf5_load(&x->hdf5));
    char *file = ctn__strdup(c->path);
    if (!file) return CTN_ENOMEM;
    file[part - c->path - 1] = 0; /* the colon */
    int st = x->hdf5->open(&c->array, file, part, &info, why, sizeof why);
    ctn__free(file);
    if (st < 0) return ctn_fail((ctn_status)st, "files: %s: %s", c->path, why);
    return set_field(c, info.kind, info.bytes, keep_f64, info.ndim, info.shape);
}

/* Reads the offsets into memory. */
static ctn_status read_offsets(struct column *c, const char *path)
{
    ctn_status st = CTN_OK;
    ctn__array_file file;
    ctn__npy npy = {0};
    CTN_TRY_GOTO(st, done, ctn__array_file_open(&file, "files", path));
    CTN_TRY_GOTO(st, done, ctn__npy_parse(&npy, &file));
    if (npy.ndim != 1 || npy.shape[0] < 1 || (npy.kind != 'i' && npy.kind != 'u'))
        CTN_TRY_GOTO(st, done,
                     ctn_fail(CTN_EFORMAT,
                              "files: %s: expected offsets, an integer array (samples + 1), as "
                              "from numpy.concatenate(([0], numpy.cumsum(lengths)))",
                              path));
    c->count = npy.shape[0] - 1;
    c->offset = ctn__malloc(ctn__mul((size_t)npy.shape[0], sizeof *c->offset));
    if (!c->offset) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn__npy_read(&npy, &file, 0, npy.shape[0], CTN_I64, c->offset));
    CTN_TRY_GOTO(st, done, ctn__offsets_check(path, c->count, c->offset));
    if (c->offset[c->count] > c->npy.shape[0])
        st = ctn_fail(CTN_ESHAPE, "files: %s: the last offset is %lld, but %s has %lld rows", path,
                      (long long)c->offset[c->count], c->path, (long long)c->npy.shape[0]);
done:
    ctn__array_file_close(&file);
    return st;
}

/* Makes the field ragged: its dimension 0 counts rows. */
static ctn_status set_ragged(struct column *c, const char *offsets)
{
    ctn_field *f = &c->field;
    if (f->ndim + 1 >= CTN_MAX_DIMS)
        return ctn_fail(CTN_ESHAPE, "files: %s: has %d dimensions, too many for a ragged field",
                        c->path, f->ndim + 1);
    memmove(f->shape + 1, f->shape, (size_t)f->ndim++ * sizeof *f->shape);
    f->shape[0] = CTN_RAGGED;
    return read_offsets(c, offsets);
}

/* The elements of a sample are far apart in a column-major file: each needs a read of its own
 * unless the file is in memory. Of a ragged field, the mean sample counts. */
static ctn_status hold(struct column *c)
{
    const bool apart = c->npy.fortran && c->npy.ndim > 1;
    size_t sample = (size_t)c->npy.bytes;
    for (int d = 1; d < c->npy.ndim; d++) sample *= (size_t)c->npy.shape[d];
    if (c->offset && c->count > 0) sample *= (size_t)(c->offset[c->count] / c->count);
    CTN_TRY(ctn__array_file_hold(&c->file, apart ? 0 : sample));
    if (apart && !c->file.held)
        ctn__warn("files: %s is column-major and too large to be held in memory, so every number "
                  "is read separately, which is slow; save it with numpy.ascontiguousarray",
                  c->path);
    return CTN_OK;
}

static ctn_status open_column(struct files *x, struct column *c, const char *path,
                              const char *offsets, bool keep_f64)
{
    if (!path) return ctn_fail(CTN_EARG, "files: path of field %d is NULL", x->fields - 1);
    c->path = ctn__strdup(path);
    if (!c->path) return CTN_ENOMEM;
    const char *part = hdf5_part(c->path);
    if (part && offsets)
        return ctn_fail(CTN_EUNSUPPORTED, "files: %s: a ragged field must be a .npy file", path);
    if (part) return open_hdf5(x, c, part, keep_f64);
    CTN_TRY(check_name(path));
    CTN_TRY(ctn__array_file_open(&c->file, "files", path));
    CTN_TRY(ctn__npy_parse(&c->npy, &c->file));
    CTN_TRY(set_field(c, c->npy.kind, c->npy.bytes, keep_f64, c->npy.ndim, c->npy.shape));
    if (offsets) CTN_TRY(set_ragged(c, offsets));
    return hold(c);
}

/* ---- the dataset ----------------------------------------------------------------------------- */

static int64_t files_count(void *self)
{
    return ((struct files *)self)->column[0].count;
}

static int files_fields(void *self)
{
    return ((struct files *)self)->fields;
}

static void files_field(void *self, int f, ctn_field *out)
{
    *out = ((struct files *)self)->column[f].field;
}

static ctn_status read_hdf5(const struct files *x, const struct column *c, int64_t index, void *dst)
{
    char why[256] = "";
    ctn__hdf5_type type = CTN__HDF5_F32;
    switch (c->field.dtype) {
    case CTN_F64: type = CTN__HDF5_F64; break;
    case CTN_I64: type = CTN__HDF5_I64; break;
    case CTN_I32: type = CTN__HDF5_I32; break;
    case CTN_U8: type = CTN__HDF5_U8; break;
    default: break;
    }
    int st = x->hdf5->read(c->array, index, type, dst, why, sizeof why);
    if (st >= 0) return CTN_OK;
    return ctn_fail((ctn_status)st, "files: %s: sample %lld: %s", c->path, (long long)index, why);
}

static ctn_status files_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct files *x = self;
    for (int f = 0; f < x->fields; f++) {
        const struct column *c = &x->column[f];
        const int64_t *at = c->offset ? c->offset + s->index : NULL;
        const int64_t first = at ? at[0] : s->index, n = at ? at[1] - at[0] : 1;
        if (c->array) CTN_TRY(read_hdf5(x, c, s->index, dst[f]));
        else CTN_TRY(ctn__npy_read(&c->npy, &c->file, first, n, c->field.dtype, dst[f]));
    }
    return CTN_OK;
}

static int64_t files_length(void *self, int f, int64_t index)
{
    const int64_t *at = ((struct files *)self)->column[f].offset + index;
    return at[1] - at[0];
}

static void files_free(void *self)
{
    struct files *x = self;
    if (!x) return;
    for (int f = 0; f < x->fields; f++) {
        struct column *c = &x->column[f];
        if (c->array) x->hdf5->close(c->array);
        else ctn__array_file_close(&c->file);
        ctn__free(c->offset);
        ctn__free(c->path);
    }
    ctn__free(x);
}

static int files_name(void *self, int64_t index, char *buf, size_t n)
{
    const struct files *x = self;
    return snprintf(buf, n, "%s[%lld]", x->column[0].path, (long long)index);
}

static const ctn_dataset_vt files_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = files_count,
    .fields = files_fields,
    .field = files_field,
    .get = files_get,
    .free = files_free,
    .name = files_name,
    .length = files_length,
};

ctn_status ctn_files_open(ctn_dataset **ds, int fields, const char *const *path,
                          const ctn_files_opt *opt)
{
    if (!ds || !path) return ctn_fail(CTN_EARG, "files: NULL argument");
    *ds = NULL;
    if (fields < 1 || fields > CTN_DATA_FIELDS)
        return ctn_fail(CTN_EARG, "files: %d fields, expected 1 to %d", fields, CTN_DATA_FIELDS);
    ctn_status st = CTN_OK;
    ctn_files_opt o;
    CTN_TRY(ctn__opt("files", &o, sizeof o, opt));
    struct files *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    for (int f = 0; f < fields; f++) {
        struct column *c = &x->column[x->fields++];
        c->file.fd = -1;
        const char *offsets = o.offsets ? o.offsets[f] : NULL;
        CTN_TRY_GOTO(st, done, open_column(x, c, path[f], offsets, o.keep_f64));
        if (c->count != x->column[0].count) {
            st = ctn_fail(CTN_ESHAPE, "files: %s has %lld samples, %s has %lld", path[0],
                          (long long)x->column[0].count, path[f], (long long)c->count);
            goto done;
        }
    }
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &files_vt, x));
    x = NULL; /* owned by the dataset */
done:
    files_free(x);
    return st;
}
