/* SPDX-License-Identifier: Apache-2.0
 *
 * Dataset over arrays in files, one array per field: .npy files, and arrays of HDF5 files through
 * the plug-in. NetCDF-4 files are HDF5 files whose arrays, the variables, have attributes that say
 * how to decode them; a field may consist of several variables. Dimension 0 counts the samples, or
 * the rows of all samples of a ragged field, whose offsets are held in memory. Samples are
 * converted when they are read.
 */
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include <catena/datasets.h>
#include "data/source.h"

enum { MOST_VARIABLES = 256 };

/* An array of an HDF5 file. */
struct variable {
    void *array;
    ctn__hdf5_info info; /* packed and nfill are 0 unless the file is NetCDF */
};

struct column {
    char *path; /* as the user gave it */
    ctn_field field;
    int64_t count;
    int64_t *offset;      /* (count+1): where samples of a ragged field begin; NULL: not ragged */
    ctn__array_file file; /* .npy */
    ctn__npy npy;
    int variables; /* 0: a .npy file */
    struct variable *variable;
};

struct files {
    const ctn__hdf5_plugin *hdf5; /* NULL: no field needs it */
    ctn_files_opt opt;
    int fields;
    struct column column[CTN_DATA_FIELDS];
};

/* ---- opening --------------------------------------------------------------------------------- */

/* The array's name within `fields.h5:/group/name`; NULL: path does not have that form. */
static const char *hdf5_part(const char *path)
{
    static const char *const mark[] = {".h5:/", ".hdf5:/", ".nc:/", ".nc4:/"};
    for (size_t i = 0; i < sizeof mark / sizeof *mark; i++) {
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
    if (ends_with(path, ".nc") || ends_with(path, ".nc4"))
        return ctn_fail(CTN_EFORMAT,
                        "files: %s: add the name of the variable, as in %s:/name (ncdump -h lists "
                        "them)",
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

/* Fails as the plug-in did. The classic formats of NetCDF are not HDF5, which says only that it
 * cannot open the file. */
static ctn_status cannot_open(const struct column *c, const char *file, ctn_status st,
                              const char *why)
{
    char magic[4] = "";
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a pipe */
    const bool classic = fd >= 0 && read(fd, magic, 3) == 3 && strcmp(magic, "CDF") == 0;
    if (fd >= 0) close(fd);
    if (!classic) return ctn_fail(st, "files: %s: %s", c->path, why);
    return ctn_fail(CTN_EUNSUPPORTED,
                    "files: %s: is a NetCDF file of the classic format; convert it to NetCDF-4 "
                    "with nccopy -k nc4 %s new.nc",
                    c->path, file);
}

static ctn_status open_variable(struct files *x, struct column *c, const char *file,
                                const char *name, bool netcdf)
{
    char why[256] = "";
    struct variable *v = &c->variable[c->variables], *first = c->variable;
    const int st = x->hdf5->open(&v->array, file, name, ctn__env_bool(CTN__ENV_HDF5_TRUST),
                                 &v->info, why, sizeof why);
    if (st < 0) return cannot_open(c, file, (ctn_status)st, why);
    c->variables++;
    if (!netcdf) v->info.packed = v->info.nfill = 0;
    bool same = v->info.ndim == first->info.ndim;
    for (int d = 0; same && d < v->info.ndim; d++) same = v->info.shape[d] == first->info.shape[d];
    if (same) return CTN_OK;
    return ctn_fail(CTN_ESHAPE, "files: %s: %s has another shape than the first variable", c->path,
                    name);
}

/* Adds the dimension of the variables, and finds a type for all of them. */
static ctn_status set_variables(struct column *c, bool keep_f64)
{
    ctn_dtype dtype = 0;
    for (int i = 0; i < c->variables; i++) {
        const ctn__hdf5_info *info = &c->variable[i].info;
        const bool small = info->kind != 'f' && info->bytes <= 2;
        CTN_TRY(set_field(c, info->kind, info->bytes, keep_f64, info->ndim, info->shape));
        if (info->packed) c->field.dtype = keep_f64 && !small ? CTN_F64 : CTN_F32;
        if (i == 0 || c->field.dtype == CTN_F64) dtype = c->field.dtype;
        else if (c->field.dtype != dtype && dtype != CTN_F64) dtype = CTN_F32;
    }
    c->field.dtype = dtype;
    if (c->variables == 1) return CTN_OK;
    if (c->field.ndim + 1 >= CTN_MAX_DIMS)
        return ctn_fail(CTN_ESHAPE, "files: %s: has %d dimensions, too many for several variables",
                        c->path, c->field.ndim + 1);
    memmove(c->field.shape + 1, c->field.shape, (size_t)c->field.ndim++ * sizeof *c->field.shape);
    c->field.shape[0] = c->variables;
    return CTN_OK;
}

/* part: the text after the colon, a name that begins with a slash. In NetCDF, further names may
 * follow, separated by commas. */
static ctn_status open_hdf5(struct files *x, struct column *c, const char *part)
{
    const bool netcdf = part[-2] != '5'; /* after .nc or .nc4 */
    char name[1024];
    int n = 1;
    ctn_status st = CTN_OK;
    if (!x->hdf5) CTN_TRY(ctn__hdf5_load(&x->hdf5));
    for (const char *p = part; netcdf && *p; p++) n += *p == ',';
    if (n > MOST_VARIABLES)
        return ctn_fail(CTN_EARG, "files: %s: more than %d variables", c->path, MOST_VARIABLES);
    char *file = ctn__strdup(c->path);
    c->variable = ctn__calloc((size_t)n, sizeof *c->variable);
    if (!file || !c->variable) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    file[part - c->path - 1] = 0; /* the colon */
    for (int i = 0; i < n; i++) {
        const size_t k = netcdf ? strcspn(part, ",") : strlen(part);
        if (k >= sizeof name)
            CTN_TRY_GOTO(st, done, ctn_fail(CTN_EARG, "files: %s: a name is too long", c->path));
        memcpy(name, part, k);
        name[k] = 0;
        CTN_TRY_GOTO(st, done, open_variable(x, c, file, name, netcdf));
        part += k + (part[k] == ',');
    }
    st = set_variables(c, x->opt.keep_f64);
done:
    ctn__free(file);
    return st;
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
                              const char *offsets)
{
    const bool keep_f64 = x->opt.keep_f64;
    if (!path) return ctn_fail(CTN_EARG, "files: path of field %d is NULL", x->fields - 1);
    c->path = ctn__strdup(path);
    if (!c->path) return CTN_ENOMEM;
    const char *part = hdf5_part(c->path);
    if (part && offsets)
        return ctn_fail(CTN_EUNSUPPORTED, "files: %s: a ragged field must be a .npy file", path);
    if (part) return open_hdf5(x, c, part);
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

static ctn__hdf5_type type_of(ctn_dtype dtype)
{
    switch (dtype) {
    case CTN_F64: return CTN__HDF5_F64;
    case CTN_I64: return CTN__HDF5_I64;
    case CTN_I32: return CTN__HDF5_I32;
    case CTN_U8: return CTN__HDF5_U8;
    default: return CTN__HDF5_F32;
    }
}

static void put(void *dst, ctn_dtype dtype, int64_t i, double v)
{
    switch (dtype) {
    case CTN_F64: ((double *)dst)[i] = v; break;
    case CTN_I64: ((int64_t *)dst)[i] = (int64_t)v; break;
    case CTN_I32: ((int32_t *)dst)[i] = (int32_t)v; break;
    case CTN_U8: ((uint8_t *)dst)[i] = (uint8_t)v; break;
    default: ((float *)dst)[i] = (float)v; break;
    }
}

/* Decodes n stored values. False: one is missing, and the field has no way to say so. */
static bool decode(const ctn_files_opt *o, const ctn__hdf5_info *info, const double *stored,
                   int64_t n, ctn_dtype dtype, void *dst)
{
    const bool floats = dtype == CTN_F32 || dtype == CTN_F64;
    const double other = o->fill ? o->fill_value : NAN;
    for (int64_t i = 0; i < n; i++) {
        const double s = stored[i];
        bool missing = isnan(s);
        for (int k = 0; k < info->nfill; k++) missing = missing || s == info->fill[k];
        if (missing && !o->fill && !floats) return false;
        put(dst, dtype, i, missing ? other : s * info->scale + info->offset);
    }
    return true;
}

/* Reads sample `index` of a variable with n values. The conversion of the plug-in is enough unless
 * there is something to decode; that needs the stored values, which a double holds exactly. */
static ctn_status read_variable(const struct files *x, const struct column *c,
                                const struct variable *v, int64_t index, int64_t n, void *dst)
{
    char why[256] = "";
    const bool plain = !v->info.packed && v->info.nfill == 0;
    double *stored = plain ? NULL : ctn__malloc((size_t)n * sizeof *stored);
    if (!plain && !stored) return CTN_ENOMEM;
    int st = x->hdf5->read(v->array, index, plain ? type_of(c->field.dtype) : CTN__HDF5_F64,
                           plain ? dst : stored, why, sizeof why);
    if (st >= 0 && !plain && !decode(&x->opt, &v->info, stored, n, c->field.dtype, dst)) {
        st = CTN_EFORMAT;
        snprintf(why, sizeof why, "a value is missing; the option fill replaces missing values");
    }
    ctn__free(stored);
    if (st >= 0) return CTN_OK;
    return ctn_fail((ctn_status)st, "files: %s: sample %lld: %s", c->path, (long long)index, why);
}

static ctn_status read_hdf5(const struct files *x, const struct column *c, int64_t index, void *dst)
{
    const size_t each = ctn__field_bytes(&c->field) / (size_t)c->variables;
    const int64_t n = (int64_t)(each / ctn_dtype_size(c->field.dtype));
    for (int i = 0; i < c->variables; i++)
        CTN_TRY(read_variable(x, c, &c->variable[i], index, n, (char *)dst + (size_t)i * each));
    return CTN_OK;
}

static ctn_status files_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct files *x = self;
    for (int f = 0; f < x->fields; f++) {
        const struct column *c = &x->column[f];
        const int64_t *at = c->offset ? c->offset + s->index : NULL;
        const int64_t first = at ? at[0] : s->index, n = at ? at[1] - at[0] : 1;
        if (c->variables) CTN_TRY(read_hdf5(x, c, s->index, dst[f]));
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
        for (int i = 0; i < c->variables; i++) x->hdf5->close(c->variable[i].array);
        ctn__array_file_close(&c->file);
        ctn__free(c->variable);
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
    struct files *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__opt("files", &x->opt, sizeof x->opt, opt));
    for (int f = 0; f < fields; f++) {
        struct column *c = &x->column[x->fields++];
        c->file.fd = -1;
        const char *offsets = x->opt.offsets ? x->opt.offsets[f] : NULL;
        CTN_TRY_GOTO(st, done, open_column(x, c, path[f], offsets));
        if (c->count != x->column[0].count) {
            st = ctn_fail(CTN_ESHAPE, "files: %s has %lld samples, %s has %lld", path[0],
                          (long long)x->column[0].count, path[f], (long long)c->count);
            goto done;
        }
    }
    x->opt.offsets = NULL; /* they were borrowed */
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &files_vt, x));
    x = NULL; /* owned by the dataset */
done:
    files_free(x);
    return st;
}
