/* SPDX-License-Identifier: Apache-2.0
 *
 * libcatena_hdf5.so: reads arrays from HDF5 files, one sample at a time, converted by HDF5 itself.
 * Loaded by data/hdf5.c when a path names an HDF5 file. No other file includes hdf5.h.
 *
 * The HDF5 library is usually built without thread safety, so one lock guards every call to it.
 */
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    const int good =
        a->ndim <= CTN__HDF5_DIMS && H5Sget_simple_extent_dims(space, a->shape, NULL) == a->ndim;
    H5Sclose(space);
    if (!good) return fail(CTN_EUNSUPPORTED, "has more than 8 dimensions", error, n);
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
        (class == H5T_FLOAT || class == H5T_INTEGER))
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

static int open_locked(struct array **out, const char *file, const char *path, ctn__hdf5_info *info,
                       char *error, size_t n)
{
    struct array *a = calloc(1, sizeof *a);
    if (!a) return CTN_ENOMEM;
    a->set = -1;
    a->file = open_file(file);
    int st = a->file < 0 ? fail(CTN_EIO, NULL, error, n) : CTN_OK;
    if (st == CTN_OK) {
        a->set = H5Dopen2(a->file, path, H5P_DEFAULT);
        if (a->set < 0) st = fail(CTN_EIO, NULL, error, n);
    }
    if (st == CTN_OK) st = describe_type(a->set, info, error, n);
    if (st == CTN_OK) st = describe_shape(a, info, error, n);
    if (st == CTN_OK) describe_packing(a->set, info);
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

static int read_locked(const struct array *a, int64_t index, ctn__hdf5_type type, void *dst,
                       char *error, size_t n)
{
    hsize_t start[CTN__HDF5_DIMS] = {0}, count[CTN__HDF5_DIMS];
    memcpy(count, a->shape, sizeof count);
    start[0] = (hsize_t)index;
    count[0] = 1;
    hid_t from = H5Dget_space(a->set), to = H5Screate_simple(a->ndim, count, NULL);
    int good = from >= 0 && to >= 0 &&
               H5Sselect_hyperslab(from, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
               H5Dread(a->set, native(type), to, from, H5P_DEFAULT, dst) >= 0;
    int st = good ? CTN_OK : fail(CTN_EIO, NULL, error, n);
    if (from >= 0) H5Sclose(from);
    if (to >= 0) H5Sclose(to);
    return st;
}

/* HDF5 prints its errors unless told otherwise; H5E_BEGIN_TRY restores what the host had set. */

static int plugin_open(void **array, const char *file, const char *path, ctn__hdf5_info *info,
                       char *error, size_t n)
{
    int st = CTN_OK;
    pthread_mutex_lock(&lock);
    H5E_BEGIN_TRY
    {
        st = open_locked((struct array **)array, file, path, info, error, n);
    }
    H5E_END_TRY;
    pthread_mutex_unlock(&lock);
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
