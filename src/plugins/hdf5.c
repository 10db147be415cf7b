/* SPDX-License-Identifier: Apache-2.0
 *
 * libcatena_hdf5.so: reads arrays from HDF5 files, one sample at a time, converted by HDF5 itself.
 * Loaded by data/hdf5.c when a path names an HDF5 file. No other file includes hdf5.h.
 *
 * The HDF5 library is usually built without thread safety, so one lock guards every call to it.
 *
 * A file can make HDF5 read other files and load code, and can claim sizes that it does not have.
 * What a file may do is checked when it is opened, before any memory depends on it. The parsing of
 * the file is HDF5's own.
 */
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <catena/base.h>
#include "data/hdf5.h"

struct array {
    hid_t file, set;
    int ndim;
    hsize_t shape[CTN__HDF5_DIMS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held during every call to HDF5 */

struct reason {
    char *text;
    size_t n;
};

/* The innermost entry of HDF5's error stack says what happened. */
static herr_t innermost(unsigned depth, const H5E_error2_t *e, void *to)
{
    const struct reason *r = to;
    if (depth == 0 && e->desc) snprintf(r->text, r->n, "%s", e->desc);
    return 0;
}

static int fail(int status, const char *otherwise, char *error, size_t n)
{
    struct reason r = {error, n};
    if (n == 0) return status;
    error[0] = 0;
    if (!otherwise) H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &r);
    if (error[0] == 0) snprintf(error, n, "%s", otherwise ? otherwise : "HDF5 reported no reason");
    H5Eclear2(H5E_DEFAULT);
    return status;
}

/* ---- what a file may ask for ----------------------------------------------------------------- */

#define TRUST "; set CATENA_HDF5_TRUST=1 if you trust this file"

/* Refuses a file that names another one. The name comes from the file: a terminal must not obey
 * it. */
static void refuse_other(const char *what, const char *other, char *error, size_t n)
{
    snprintf(error, n, "%s (%.100s)" TRUST, what, other);
    for (char *p = error; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?';
}

/* HDF5 calls this before it opens the file that an external link names. */
static herr_t refuse_link(const char *parent, const char *group, const char *other,
                          const char *object, unsigned *flags, hid_t how, void *to)
{
    const struct reason *r = to;
    (void)parent, (void)group, (void)object, (void)flags, (void)how;
    refuse_other("is a link into another file", other, r->text, r->n);
    return -1;
}

/* Other filters are code that HDF5 loads from a folder of plug-ins, or take sizes from the file
 * (nbit, scaleoffset), and a second deflate would multiply the size that a chunk may have. */
static int check_filters(hid_t plist, char *error, size_t n)
{
    const int filters = H5Pget_nfilters(plist);
    unsigned seen = 0;
    for (int i = 0; i < filters; i++) {
        unsigned flags = 0;
        size_t values = 0;
        const int id = H5Pget_filter2(plist, (unsigned)i, &flags, &values, NULL, 0, NULL, NULL);
        const int known =
            id == H5Z_FILTER_DEFLATE || id == H5Z_FILTER_SHUFFLE || id == H5Z_FILTER_FLETCHER32;
        if (known && !(seen & 1u << id)) {
            seen |= 1u << id;
            continue;
        }
        snprintf(error, n,
                 "needs filter %d%s, and only deflate, shuffle and fletcher32 are accepted" TRUST,
                 id, known ? " twice" : "");
        return CTN_EUNSUPPORTED;
    }
    return CTN_OK;
}

/* The bytes of a box of elements; UINT64_MAX if they do not fit. */
static uint64_t box_bytes(int ndim, const hsize_t *shape, size_t element)
{
    uint64_t bytes = element;
    for (int d = 0; d < ndim; d++)
        if (__builtin_mul_overflow(bytes, (uint64_t)shape[d], &bytes)) return UINT64_MAX;
    return bytes;
}

/* The memory of samples follows from the shape, and a whole chunk is decompressed at once. Deflate
 * makes at most 1032 bytes of one, so a file that claims more contains no such data. */
static int check_size(const struct array *a, uint64_t bytes, const char *what, char *error,
                      size_t n)
{
    enum { SMALL = 64 << 20, RATIO = 1032 };
    hsize_t file = 0;
    if (bytes <= SMALL) return CTN_OK;
    if (H5Fget_filesize(a->file, &file) < 0) return fail(CTN_EIO, NULL, error, n);
    if (bytes / RATIO <= file) return CTN_OK;
    snprintf(error, n, "%s of %llu bytes cannot come from a file of %llu bytes" TRUST, what,
             (unsigned long long)bytes, (unsigned long long)file);
    return CTN_EFORMAT;
}

/* Comes before HDF5 is asked for the shape: for that of a virtual dataset it opens other files. */
static int check_origin(const struct array *a, hid_t plist, size_t element, char *error, size_t n)
{
    const H5D_layout_t layout = H5Pget_layout(plist);
    hsize_t chunk[H5S_MAX_RANK];
    char other[256] = "";
    if (layout == H5D_VIRTUAL) {
        snprintf(error, n, "is a virtual dataset, made of others in any file" TRUST);
        return CTN_EUNSUPPORTED;
    }
    if (H5Pget_external_count(plist) != 0) {
        H5Pget_external(plist, 0, sizeof other - 1, other, NULL, NULL);
        refuse_other("has its elements in another file", other, error, n);
        return CTN_EUNSUPPORTED;
    }
    if (layout == H5D_CHUNKED) {
        const int ndim = H5Pget_chunk(plist, H5S_MAX_RANK, chunk);
        if (ndim < 0) return fail(CTN_EFORMAT, NULL, error, n);
        int st = check_size(a, box_bytes(ndim, chunk, element), "a chunk", error, n);
        if (st < 0) return st;
    }
    return check_filters(plist, error, n);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void release(struct array *a)
{
    if (!a) return;
    if (a->set >= 0) H5Dclose(a->set);
    if (a->file >= 0) H5Fclose(a->file);
    free(a);
}

static int describe_type(hid_t set, ctn__hdf5_info *info, char *error, size_t n)
{
    hid_t type = H5Dget_type(set);
    if (type < 0) return fail(CTN_EFORMAT, NULL, error, n);
    const H5T_class_t class = H5Tget_class(type);
    info->bytes = (int)H5Tget_size(type);
    info->kind = class == H5T_FLOAT ? 'f' : 'i';
    if (class == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_NONE) info->kind = 'u';
    H5Tclose(type);
    if (class == H5T_FLOAT || class == H5T_INTEGER) return CTN_OK;
    return fail(CTN_EDTYPE, "elements are neither floats nor integers", error, n);
}

static int describe_shape(struct array *a, ctn__hdf5_info *info, char *error, size_t n)
{
    hid_t space = H5Dget_space(a->set);
    if (space < 0) return fail(CTN_EFORMAT, NULL, error, n);
    a->ndim = H5Sget_simple_extent_ndims(space);
    const int good = a->ndim >= 0 && a->ndim <= CTN__HDF5_DIMS &&
                     H5Sget_simple_extent_type(space) != H5S_NULL &&
                     H5Sget_simple_extent_dims(space, a->shape, NULL) == a->ndim;
    H5Sclose(space);
    if (!good)
        return fail(CTN_EUNSUPPORTED, "has no elements, or more than 8 dimensions", error, n);
    info->ndim = a->ndim;
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] > INT64_MAX)
            return fail(CTN_EFORMAT, "has a dimension that does not fit 64 bits", error, n);
        info->shape[d] = (int64_t)a->shape[d];
    }
    return CTN_OK;
}

/* The value of a numeric attribute with one element; false: there is none. */
static int number_attribute(hid_t set, const char *name, double *value)
{
    int good = 0;
    if (H5Aexists(set, name) <= 0) return 0;
    hid_t a = H5Aopen(set, name, H5P_DEFAULT);
    if (a < 0) return 0;
    hid_t type = H5Aget_type(a), space = H5Aget_space(a);
    const H5T_class_t class = type >= 0 ? H5Tget_class(type) : H5T_NO_CLASS;
    if (space >= 0 && H5Sget_simple_extent_npoints(space) == 1 &&
        (class == H5T_FLOAT || class == H5T_INTEGER) && H5Tget_size(type) <= 16)
        good = H5Aread(a, H5T_NATIVE_DOUBLE, value) >= 0;
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    H5Aclose(a);
    return good;
}

static void describe_packing(hid_t set, ctn__hdf5_info *info)
{
    info->scale = 1;
    info->offset = 0;
    info->packed = number_attribute(set, "scale_factor", &info->scale);
    info->packed |= number_attribute(set, "add_offset", &info->offset);
    info->nfill = number_attribute(set, "_FillValue", &info->fill[0]);
    info->nfill += number_attribute(set, "missing_value", &info->fill[info->nfill]);
}

/* Opening a pipe would wait for its writer. HDF5 reports other errors. */
static int check_regular(const char *file, char *error, size_t n)
{
    struct stat info;
    if (stat(file, &info) != 0 || S_ISREG(info.st_mode)) return CTN_OK;
    return fail(CTN_EIO, "not a regular file", error, n);
}

/* Many parallel file systems lack file locks. Reading must not fail because of that. */
static hid_t open_file(const char *file)
{
    hid_t how = H5Pcreate(H5P_FILE_ACCESS);
    if (how < 0) return -1;
#if H5_VERSION_GE(1, 12, 1)
    H5Pset_file_locking(how, 1, 1);
#endif
    hid_t f = H5Fopen(file, H5F_ACC_RDONLY, how);
    H5Pclose(how);
    return f;
}

/* cache: bytes of the memory for decompressed chunks; 0: HDF5's own choice. */
static int open_set(struct array *a, const char *path, int trust, size_t cache, char *error,
                    size_t n)
{
    struct reason r = {error, n};
    int st = CTN_OK;
    hid_t how = H5Pcreate(H5P_DATASET_ACCESS);
    int good = how >= 0 && (trust || H5Pset_elink_cb(how, refuse_link, &r) >= 0);
    if (good && cache > 0)
        good = H5Pset_chunk_cache(how, H5D_CHUNK_CACHE_NSLOTS_DEFAULT, cache,
                                  H5D_CHUNK_CACHE_W0_DEFAULT) >= 0;
    if (good) a->set = H5Dopen2(a->file, path, how);
    if (a->set < 0) st = error[0] ? CTN_EUNSUPPORTED : fail(CTN_EIO, NULL, error, n);
    if (how >= 0) H5Pclose(how); /* this forgets HDF5's reasons */
    return st;
}

static int describe(struct array *a, int trust, ctn__hdf5_info *info, char *error, size_t n)
{
    int st = describe_type(a->set, info, error, n);
    hid_t plist = st == CTN_OK ? H5Dget_create_plist(a->set) : -1;
    if (st == CTN_OK && plist < 0) st = fail(CTN_EFORMAT, NULL, error, n);
    if (st == CTN_OK && !trust) st = check_origin(a, plist, (size_t)info->bytes, error, n);
    if (plist >= 0) H5Pclose(plist);
    if (st == CTN_OK) st = describe_shape(a, info, error, n);
    if (st == CTN_OK && !trust) {
        const uint64_t bytes = box_bytes(a->ndim, a->shape, (size_t)info->bytes);
        st = check_size(a, bytes, "an array", error, n);
    }
    if (st == CTN_OK) describe_packing(a->set, info);
    return st;
}

/* HDF5 keeps a chunk only if it fits its cache of 1 MB. It would decompress a larger one again for
 * every sample, so the dataset is opened again, with room for a chunk. */
static int make_room(struct array *a, const char *path, int trust, size_t element, char *error,
                     size_t n)
{
    enum { USUAL = 1 << 20 };
    hsize_t chunk[H5S_MAX_RANK];
    uint64_t bytes = 0;
    hid_t plist = H5Dget_create_plist(a->set);
    if (plist < 0) return fail(CTN_EFORMAT, NULL, error, n);
    if (H5Pget_layout(plist) == H5D_CHUNKED) {
        const int ndim = H5Pget_chunk(plist, H5S_MAX_RANK, chunk);
        if (ndim >= 0) bytes = box_bytes(ndim, chunk, element);
    }
    H5Pclose(plist);
    if (bytes <= USUAL || bytes > SIZE_MAX / 2) return CTN_OK;
    H5Dclose(a->set);
    a->set = -1;
    return open_set(a, path, trust, (size_t)bytes, error, n);
}

static int open_locked(struct array **out, const char *file, const char *path, int trust,
                       ctn__hdf5_info *info, char *error, size_t n)
{
    struct array *a = calloc(1, sizeof *a);
    if (!a) return CTN_ENOMEM;
    a->file = a->set = -1;
    int st = check_regular(file, error, n);
    if (st == CTN_OK) a->file = open_file(file);
    if (st == CTN_OK && a->file < 0) st = fail(CTN_EIO, NULL, error, n);
    if (st == CTN_OK) st = open_set(a, path, trust, 0, error, n);
    if (st == CTN_OK) st = describe(a, trust, info, error, n);
    if (st == CTN_OK) st = make_room(a, path, trust, (size_t)info->bytes, error, n);
    if (st < 0) {
        release(a);
        a = NULL;
    }
    *out = a;
    return st;
}

static hid_t native(ctn__hdf5_type type)
{
    switch (type) {
    case CTN__HDF5_F32: return H5T_NATIVE_FLOAT;
    case CTN__HDF5_F64: return H5T_NATIVE_DOUBLE;
    case CTN__HDF5_I64: return H5T_NATIVE_INT64;
    case CTN__HDF5_I32: return H5T_NATIVE_INT32;
    case CTN__HDF5_U8: return H5T_NATIVE_UINT8;
    }
    return -1;
}

static size_t native_bytes(ctn__hdf5_type type)
{
    switch (type) {
    case CTN__HDF5_F64:
    case CTN__HDF5_I64: return 8;
    case CTN__HDF5_U8: return 1;
    default: return 4;
    }
}

/* HDF5 writes nothing where a file has no chunk and asks for no fill value, so that the caller
 * would see what was in this memory before. */
static int read_locked(const struct array *a, int64_t index, ctn__hdf5_type type, void *dst,
                       char *error, size_t n)
{
    hsize_t start[CTN__HDF5_DIMS] = {0}, count[CTN__HDF5_DIMS];
    memcpy(count, a->shape, sizeof count);
    start[0] = (hsize_t)index;
    count[0] = 1;
    memset(dst, 0, (size_t)box_bytes(a->ndim, count, native_bytes(type)));
    hid_t from = H5Dget_space(a->set), to = H5Screate_simple(a->ndim, count, NULL);
    int good = from >= 0 && to >= 0 &&
               H5Sselect_hyperslab(from, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
               H5Dread(a->set, native(type), to, from, H5P_DEFAULT, dst) >= 0;
    int st = good ? CTN_OK : fail(CTN_EIO, NULL, error, n);
    if (from >= 0) H5Sclose(from);
    if (to >= 0) H5Sclose(to);
    return st;
}

/* Which plug-ins HDF5 may load is a state of the process, which the host may have set. No filter is
 * loaded when samples are read: this has refused those that are not there yet. */
static int open_untrusted(struct array **out, const char *file, const char *path,
                          ctn__hdf5_info *info, char *error, size_t n)
{
    unsigned before = 0;
    if (H5PLget_loading_state(&before) < 0 ||
        H5PLset_loading_state(before & ~(unsigned)H5PL_FILTER_PLUGIN) < 0)
        return fail(CTN_EUNSUPPORTED, NULL, error, n);
    int st = open_locked(out, file, path, 0, info, error, n);
    H5PLset_loading_state(before);
    return st;
}

/* HDF5 prints its errors unless told otherwise; H5E_BEGIN_TRY restores what the host had set. */

static int plugin_open(void **array, const char *file, const char *path, int trust,
                       ctn__hdf5_info *info, char *error, size_t n)
{
    struct array *a = NULL;
    int st = CTN_OK;
    error[0] = 0;
    pthread_mutex_lock(&lock);
    H5E_BEGIN_TRY
    {
        if (trust) st = open_locked(&a, file, path, 1, info, error, n);
        else st = open_untrusted(&a, file, path, info, error, n);
    }
    H5E_END_TRY;
    pthread_mutex_unlock(&lock);
    *array = a;
    return st;
}

static int plugin_read(void *array, int64_t index, ctn__hdf5_type type, void *dst, char *error,
                       size_t n)
{
    int st = CTN_OK;
    pthread_mutex_lock(&lock);
    H5E_BEGIN_TRY
    {
        st = read_locked(array, index, type, dst, error, n);
    }
    H5E_END_TRY;
    pthread_mutex_unlock(&lock);
    return st;
}

static void plugin_close(void *array)
{
    pthread_mutex_lock(&lock);
    H5E_BEGIN_TRY
    {
        release(array);
    }
    H5E_END_TRY;
    pthread_mutex_unlock(&lock);
}

extern const ctn__hdf5_plugin catena_hdf5;
__attribute__((visibility("default"))) const ctn__hdf5_plugin catena_hdf5 = {
    CTN__HDF5_ABI,
    plugin_open,
    plugin_read,
    plugin_close,
};
