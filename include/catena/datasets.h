/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets from arrays of a simulation and from text, and datasets made of others. What a dataset
 * is stands in data.h; images are in image.h. A dataset that takes others over owns them: they are
 * freed with it, and stay the caller's if making it fails.
 */
#ifndef CATENA_DATASETS_H
#define CATENA_DATASETS_H

#include <catena/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arrays ---------------------------------------------------------------------------------- */

typedef struct {
    size_t struct_size;
    int keep_f64; /* f64 stays f64, for ctn_dataset_standardize; default: f32 */
} ctn_files_opt;
/* One field per file: `x.npy`, or `fields.h5:/group/name` of an HDF5 file (read by a plug-in; a
 * build without HDF5 has none: EUNSUPPORTED). Dimension 0 counts the samples and is the same in
 * all. f64 and f16 become f32, i32, u8 and bool stay, other whole numbers become i64; column-major
 * and big-endian files are read too. Samples are read when they are asked for, so files may be
 * larger than memory; .npy files of up to 256 MiB with samples below 64 KiB are read once, when
 * they are opened. A read that fails (EIO) names file and offset. Local. Result: *ds, free it.
 * Errors: EIO, EFORMAT, ESHAPE (different counts), EDTYPE, EUNSUPPORTED, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_files_open(ctn_dataset **ds, int fields,
                                                 const char *const *path, const ctn_files_opt *opt);

/* Write count samples of one field, row-major, as a .npy file, whole or not at all. Local. */
CTN_API CTN_MUST_CHECK ctn_status ctn_npy_save(const char *path, int64_t count,
                                               const ctn_field *field, const void *data);

typedef struct {
    size_t struct_size;
    int64_t length; /* tokens of a sample: 256 */
    int64_t stride; /* from sample to sample: length */
    int bytes;      /* of a token in the file: 2 (default) or 4, little-endian; 1: plain text */
} ctn_tokens_opt;
/* Windows of a token file, read as .npy files are. Fields: tokens (length) i64, and the same one later.
 * Local. Result: *ds, free it. Errors: EIO, EFORMAT, EARG (shorter than a sample), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_tokens_open(ctn_dataset **ds, const char *path,
                                                  const ctn_tokens_opt *opt);

/* ---- made of others -------------------------------------------------------------------------- */

/* Samples first .. first+count-1 of base, or those of a list, copied. base is borrowed: several
 * parts of one dataset can be had. Local. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_slice(ctn_dataset **ds, ctn_dataset *base,
                                                    int64_t first, int64_t count);
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_subset(ctn_dataset **ds, ctn_dataset *base, int64_t n,
                                                     const int64_t *index);
/* Two parts of base without common samples, `share` of it (0 to 1) in the second, chosen by seed.
 * base is borrowed. Local. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_split(ctn_dataset **first, ctn_dataset **second,
                                                    ctn_dataset *base, double share, uint64_t seed);
/* One after the other; fields must agree. The parts are taken over. Local. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_concat(ctn_dataset **ds, int n,
                                                     ctn_dataset *const *parts);

/* base with its classes numbered as in `name` (n of them, copied): evaluation data whose folders are not exactly those that a
 * network was trained on. base is taken over when it succeeds. Local. Errors: ENOTFOUND (base has a class that is not
 * among the names; it is named), EARG (base has no names of classes), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_relabel(ctn_dataset **ds, ctn_dataset *base,
                                                      int64_t n, const char *const *name);

/* fn gets a sample of base in src and writes one of the new fields to dst; called from several
 * threads at once. base is taken over; user is borrowed. Local. Errors: EARG, ENOMEM. */
typedef ctn_status (*ctn_transform_fn)(void *user, const ctn_sample *s, void *const *src,
                                       void *const *dst);
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_transform(ctn_dataset **ds, ctn_dataset *base,
                                                        int fields, const ctn_field *field,
                                                        ctn_transform_fn fn, void *user);

/* ---- mean and deviation ---------------------------------------------------------------------- */

/* Mean and deviation of one field over all samples, for each index of its first dimension (a
 * channel or feature; one pair for a scalar), in double. mean and std have room for n; the
 * deviation of a constant is 1. Local. Errors: EARG (n does not fit), EDTYPE (neither f32 nor
 * f64), EFORMAT (not finite), the dataset's. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_moments(ctn_dataset *ds, int field, int64_t n,
                                                      double *mean, double *std);
/* (x - mean) / std of one field, f32 or f64, computed in double; the result is f32. mean and std as
 * above, copied. base is taken over. Local. Errors: EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_standardize(ctn_dataset **ds, ctn_dataset *base,
                                                          int field, int64_t n, const double *mean,
                                                          const double *std);

#ifdef __cplusplus
}
#endif
#endif
