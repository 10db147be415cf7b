/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface between libcatena and its HDF5 plug-in, libcatena_hdf5.so: a table of functions
 * that the plug-in exports as `catena_hdf5`. It uses no symbols of libcatena, so neither links
 * against the other.
 */
#ifndef CTN_DATA_HDF5_H
#define CTN_DATA_HDF5_H

#include <stddef.h>
#include <stdint.h>

#define CTN__HDF5_ABI 3 /* incremented with every change below */
#define CTN__HDF5_DIMS 8

typedef struct {
    char kind; /* 'f', 'i' or 'u' */
    int bytes; /* per element in the file */
    int ndim;
    int64_t shape[CTN__HDF5_DIMS];
    /* Attributes of a variable of NetCDF: value = stored * scale + offset, and stored values equal
     * to one of fill (nfill) are missing. */
    int packed; /* scale_factor or add_offset is given */
    double scale, offset;
    int nfill;
    double fill[2];
} ctn__hdf5_info;

typedef enum {
    CTN__HDF5_F32,
    CTN__HDF5_F64,
    CTN__HDF5_I64,
    CTN__HDF5_I32,
    CTN__HDF5_U8
} ctn__hdf5_type;

/* Functions return a ctn_status; on failure they write the reason to `error`, a buffer of n bytes.
 * All of them may be called from several threads at once. */
typedef struct {
    uint32_t abi; /* CTN__HDF5_ABI; checked before anything else is used */
    /* Unless `trust`, refuses what lies in other files, filters that HDF5 would load, and sizes
     * that the file cannot have. */
    int (*open)(void **array, const char *file, const char *path, int trust, ctn__hdf5_info *info,
                char *error, size_t n);
    /* Reads sample `index` in row-major order, converted to `type`. */
    int (*read)(void *array, int64_t index, ctn__hdf5_type type, void *dst, char *error, size_t n);
    void (*close)(void *array);
} ctn__hdf5_plugin;

#endif
