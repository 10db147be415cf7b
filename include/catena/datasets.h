/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets of simulation arrays and of text, and datasets derived from others. data.h explains
 * datasets; image.h has those for images. Where a comment says that a base dataset is taken
 * over, the new dataset owns it and frees it; if the call fails, the caller keeps ownership.
 */
#ifndef CATENA_DATASETS_H
#define CATENA_DATASETS_H

#include <catena/data.h>
#include <catena/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arrays --------------------------------------------------------------------------------- */

typedef struct {
    size_t struct_size;
    int keep_f64; /* 1: keep f64 as f64, for ctn_dataset_standardize; 0: convert to f32 */
    /* NULL, or one path per field: a field whose path is not NULL is ragged. The path names a
     * .npy file of integers (samples + 1), which never decrease; the rows of sample i are
     * offset[i] to offset[i+1] - 1 of the field's own file, also a .npy file. */
    const char *const *offsets;
    /* Missing values of a NetCDF file. 1: they become fill_value; 0: they become NaN or, in a field
     * of integers, are an error. */
    int fill;
    double fill_value;
} ctn_files_opt;
/* One field per file: `x.npy`, or `fields.h5:/group/name` for an HDF5 file, which a plug-in
 * reads (EUNSUPPORTED in a build without HDF5). `weather.nc:/t2m` is a variable of a NetCDF-4 file,
 * whose first dimension, usually time, counts the samples. Its scale_factor and add_offset are
 * applied, and _FillValue and missing_value mark missing values. `weather.nc:/t2m,u10,v10` is one
 * field with several variables of the same shape, (3,lat,lon). Dimension 0 counts the samples and
 * must be the same in all files. HDF5 files that refer to other files or need filter plug-ins are
 * refused (EUNSUPPORTED) unless CATENA_HDF5_TRUST is set. f64 and f16 are converted to f32; i32, u8
 * and bool are kept; other integers become i64. Column-major and big-endian files are supported.
 * Samples are read on demand, so files may be larger than memory; .npy files of up to 256 MiB with
 * samples below 64 KiB are read once, when they are opened. A read error (EIO) names the file and
 * the offset. Local. Result: *ds, owned, ctn_dataset_free. Errors: EIO, EFORMAT, ESHAPE (different
 * sample counts), EDTYPE, EUNSUPPORTED, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_files_open(ctn_dataset **ds, int fields,
                                                 const char *const *path, const ctn_files_opt *opt);

/* Write count row-major samples of one field to a .npy file, atomically. Local. */
CTN_API CTN_MUST_CHECK ctn_status ctn_npy_save(const char *path, int64_t count,
                                               const ctn_field *field, const void *data);

/* Columns are given by their name in the first line or, if no column has that name, by their
 * number, counted from 0. */
typedef struct {
    size_t struct_size;
    const char *separator; /* one character; NULL: "," or, if the path ends in .tsv, a tab */
    int no_header;         /* 1: the first line contains values, and columns have no names */
    int ninputs, ntargets;
    const char *const *inputs;  /* (ninputs) columns of field 0; ninputs 0: all but the targets */
    const char *const *targets; /* (ntargets) columns of field 1; ntargets 0: no field 1 */
    int keep_f64;               /* 1: fields of numbers are f64; 0: f32 */
    int classes;     /* 1: the target is a class also if it is a number; it must be an integer */
    int categories;  /* 1: input columns may contain text */
    int text_target; /* 1: the target is text also if it looks like a number */
    int fill;        /* 1: missing numbers become fill_value; 0: a missing number is an error */
    double fill_value;
    /* A dataset of this kind whose categories and classes are used; any other text is an error.
     * Give the training data to open the validation data. Used only during the call; NULL: none. */
    const ctn_dataset *like;
} ctn_csv_opt;
/* A table of text as of RFC 4180: one sample per line, cells divided by a separator. Cells may be
 * quoted, lines may end in CR LF, empty lines are skipped. Fields: the inputs (ninputs), and the
 * target: a scalar if there is one column, else (ntargets). A column contains text if its first
 * value is not a number. The distinct texts of a column, sorted by their bytes, are the numbers 0,
 * 1, ...; a single target of text is a class (a scalar i64, see ctn_dataset_class). A missing value
 * is an empty cell, NA, N/A, NaN, null or ?, in any case of letters. The whole table is read into
 * memory, by several threads. Local. Result: *ds, owned, ctn_dataset_free. Errors: EIO, EFORMAT
 * (the message names the line and the column), ENOTFOUND (no such column), EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_csv_open(ctn_dataset **ds, const char *path,
                                               const ctn_csv_opt *opt);
/* The name of the column behind value k of a field, or its number as text if the table has no
 * names; NULL if there is no such value or ds is not a table. Local. Result: borrowed from ds. */
CTN_API const char *ctn_csv_column(const ctn_dataset *ds, int field, int64_t k);

typedef struct {
    size_t struct_size;
    int64_t length; /* tokens per sample; 0: 256 */
    int64_t stride; /* tokens from one sample to the next; 0: length */
    /* Bytes per token in the file: 2 or 4, little-endian; 1: plain text; 0: 2. */
    int bytes;
} ctn_tokens_opt;
/* Windows of a token file, which is read in the same way as .npy files. Fields: tokens (length)
 * i64, and the same window shifted by one token, as the target. Local. Result: *ds, owned,
 * ctn_dataset_free. Errors: EIO, EFORMAT, EARG (the file is shorter than a sample), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_tokens_open(ctn_dataset **ds, const char *path,
                                                  const ctn_tokens_opt *opt);

/* The lines of n text files, which must have equally many: sample i is line i of every file, such
 * as a sentence and its translation. Fields: one per file, its bytes, u8 (CTN_RAGGED), without the
 * LF or CR LF at the end. Bytes are not interpreted, and empty lines are samples too. Takes 8 bytes
 * of memory per line; lines are read on demand, and files of up to 256 MiB once, when they are
 * opened. ctn_dataset_name gives the file and the number of a line, counted from 1. Local. Result:
 * *ds, owned, ctn_dataset_free. Errors: EIO, EFORMAT (empty file, different numbers of lines),
 * EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_text_lines_open(ctn_dataset **ds, int n,
                                                      const char *const *path);

/* ---- derived datasets ----------------------------------------------------------------------- */

/* Samples first .. first+count-1 of base, or the n samples of a list, which is copied. base is
 * borrowed, so several parts can be made of one dataset. Local. Result: *ds, owned. Errors:
 * EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_slice(ctn_dataset **ds, ctn_dataset *base,
                                                    int64_t first, int64_t count);
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_subset(ctn_dataset **ds, ctn_dataset *base, int64_t n,
                                                     const int64_t *index);
/* Split base into two parts without common samples; `share` of it (0 to 1), chosen at random by
 * seed, goes into the second. base is borrowed. Local. Results: owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_split(ctn_dataset **first, ctn_dataset **second,
                                                    ctn_dataset *base, double share, uint64_t seed);
/* The samples of n datasets, one dataset after the other; their fields must be the same. The
 * parts are taken over. Local. Result: *ds, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_concat(ctn_dataset **ds, int n,
                                                     ctn_dataset *const *parts);

/* base with its classes renumbered in the order of `name` (n names, copied). Use it to evaluate
 * a network on data whose class folders are not exactly those it was trained on. base is taken
 * over. Local. Result: *ds, owned. Errors: ENOTFOUND (a class of base is not among the names;
 * the message gives it), EARG (the classes of base have no names), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_relabel(ctn_dataset **ds, ctn_dataset *base,
                                                      int64_t n, const char *const *name);

typedef struct {
    size_t struct_size;
    double chosen; /* share of the words that are chosen; 0: 0.15 */
    /* Shares of the chosen words that become the mask token and a random word; the others stay. 0:
     * 0.8 and 0.1, < 0: none. */
    double masked, random;
    /* Texts of special tokens; NULL: [MASK], [CLS], [SEP]. begin, end: put before and after the
     * tokens; "": none. */
    const char *mask, *begin, *end;
} ctn_mask_opt;
/* Samples for masked-language training, as of BERT, from windows of tokens: field 0 of base, i64
 * (n); a second field of the same type and shape, as from ctn_tokens_open, is not used. Fields:
 * tokens i64 (n + 2) with begin and end around them and the chosen words replaced, and targets i64
 * (n + 2), which are the chosen words, and -100 for all other tokens. Special tokens of t are never
 * chosen. In each window, the number of chosen words is their share, rounded up or down at random,
 * but at least 1. All choices depend only on the seed, the epoch and the index of the sample. base
 * is taken over; t is used only during the call. Local. Result: *ds, owned. Errors: EARG, ENOTFOUND
 * (t has no such special token), ENOMEM; EFORMAT for a sample with a token that t does not have. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_mask(ctn_dataset **ds, ctn_dataset *base,
                                                   const ctn_tokenizer *t, const ctn_mask_opt *opt);

/* Apply fn to each sample: it reads a sample of base from src and writes the new fields to dst.
 * fn is called from several threads at once. A ragged field f has the length of field f of base
 * or, if that is not ragged, of the first ragged field of base (ctn_dataset_length tells it). base
 * is taken over; user is borrowed. Local. Result: *ds, owned. Errors: EARG (also if a field is
 * ragged but none of base is), ENOMEM. */
typedef ctn_status (*ctn_transform_fn)(void *user, const ctn_sample *s, void *const *src,
                                       void *const *dst);
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_transform(ctn_dataset **ds, ctn_dataset *base,
                                                        int fields, const ctn_field *field,
                                                        ctn_transform_fn fn, void *user);

/* ---- mean and standard deviation ------------------------------------------------------------ */

/* Mean and standard deviation of one field over all samples, computed in double, for each index
 * of its first dimension, which is a channel or feature (one pair for a scalar), or, if n is the
 * number of its elements, for each of these. A ragged field (L) has one pair, and (L,C) one for
 * each of C. mean and std have room for n numbers. The
 * standard deviation of a constant is reported as 1. Local. Errors: EARG (n does not match the
 * field, no values, a ragged field of more dimensions), EDTYPE (neither f32 nor f64), EFORMAT (a
 * value is not finite), those of the dataset. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_moments(ctn_dataset *ds, int field, int64_t n,
                                                      double *mean, double *std);
/* (x - mean) / std of one field, f32 or f64, computed in double; the result is f32. mean and
 * std as above, copied. base is taken over. Local. Result: *ds, owned. Errors: EARG, EDTYPE,
 * ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dataset_standardize(ctn_dataset **ds, ctn_dataset *base,
                                                          int field, int64_t n, const double *mean,
                                                          const double *std);

#ifdef __cplusplus
}
#endif
#endif
