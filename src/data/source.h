/* SPDX-License-Identifier: Apache-2.0
 *
 * What the datasets over files share: the list of an image folder, the index of a tar file, and
 * arrays in files. All input is treated as hostile.
 */
#ifndef CTN_DATA_SOURCE_H
#define CTN_DATA_SOURCE_H

#include "base/readfile.h"
#include "data/data.h"
#include "data/hdf5.h"

#define CTN__IMAGE_MOST ((size_t)1 << 30) /* maximum bytes of an image file */

/* ---- messages from rank to rank (blocks.c) --------------------------------------------------- */

typedef struct {
    char *at;
    size_t n, room; /* bytes put or taken so far; capacity of `at` */
} ctn__blocks;
/* Appends a block. If it does not fit, only n grows. */
void ctn__put_block(ctn__blocks *b, const void *p, size_t bytes);
/* The next block, borrowed; aligned to 8 bytes if `at` is. NULL: none left, or it is cut off. */
const void *ctn__take_block(ctn__blocks *b, size_t *bytes);
const char *ctn__take_text(ctn__blocks *b); /* the same for a 0-terminated text */

/* ---- image folders (folder.c) ---------------------------------------------------------------- */

/* One class with the names of its images, stored compactly. */
typedef struct {
    const char *name;   /* of its folder */
    int64_t first, n;   /* its samples in the dataset */
    const char *names;  /* 0-terminated, one after another */
    const uint32_t *at; /* (n): offset of each name */
} ctn__class;

typedef struct {
    char *dir;
    int64_t n; /* samples of all classes */
    CTN__VEC(ctn__class) classes;
} ctn__folder;

/* Lists the folders of dir and their JPEG and PNG files, both sorted by name. A folder without
 * images is a class too, so that class numbers stay those of the training set. *f must be zeroed;
 * free it even after an error. Errors: EIO, ENOTFOUND (no images), ENOMEM. */
ctn_status ctn__folder_read(ctn__folder *f, const char *dir);
/* The same from the names that ctn_image_folder_list returned, without listing any folder. Errors:
 * EFORMAT, ENOMEM. */
ctn_status ctn__folder_take(ctn__folder *f, const char *dir, const void *list, size_t bytes);
void ctn__folder_free(ctn__folder *f);
int64_t ctn__folder_class(const ctn__folder *f, int64_t sample);
/* Writes the path of a sample to buf; returns what snprintf returns. */
int ctn__folder_path(const ctn__folder *f, int64_t sample, char *buf, size_t n);
/* Reads the file of a sample, which the caller frees, and writes its path to path (n bytes). */
ctn_status ctn__folder_load(const ctn__folder *f, int64_t sample, char *path, size_t n, char **file,
                            size_t *bytes);

/* ---- index of a tar file (built by shard_index.c, cached by shard_cache.c) ------------------- */

typedef struct {
    uint64_t offset; /* of the image in the tar file */
    uint32_t bytes;
    int32_t label; /* -1: none */
    uint32_t name; /* offset in names */
    uint32_t zero;
} ctn__shard_entry;

#define CTN__SHARD_MAGIC "ctntar1" /* including its 0 */

/* Header, entries and names, in memory as well as in the file, in this machine's byte order. */
typedef struct {
    char magic[8];
    uint64_t tar_bytes;
    int64_t tar_s, tar_ns; /* modification time of the tar file */
    uint64_t n, name_bytes;
    uint64_t hash; /* of everything after this header */
    uint64_t zero;
} ctn__shard_head;

typedef struct {
    ctn__shard_head *head; /* the whole index, in one allocation */
    int64_t n;
    const ctn__shard_entry *entry; /* (n) */
    const char *names;
} ctn__shard_index;

/* Reads the whole tar file through libarchive. path is used in messages. Errors: EFORMAT, EIO,
 * ENOMEM, EUNSUPPORTED (built without libarchive). */
ctn_status ctn__shard_index_make(ctn__shard_index *x, const char *path, int fd,
                                 const struct stat *info);
/* Checks that `bytes` at head are a valid index of a tar file with this info (NULL: of any tar
 * file) and points x into them. False: the index cannot be used. */
bool ctn__shard_index_check(ctn__shard_index *x, ctn__shard_head *head, size_t bytes,
                            const struct stat *info);
/* The cached index of the tar file fd, known as path. If there is none, builds one and caches it in
 * index_dir or, if that is NULL, next to path or in the cache folder. */
ctn_status ctn__shard_index_get(ctn__shard_index *x, const char *path, int fd,
                                const struct stat *info, const char *index_dir);
void ctn__shard_index_free(ctn__shard_index *x);

/* The copy of a shard in folder dir; copies the shard if there is none with the same size and time.
 * known: its index, which holds both, so that a shard with a copy is not accessed at all; NULL: not
 * known. Result: *local, in mem. Errors: EIO, ENOMEM. */
ctn_status ctn__stage(ctn__arena *mem, const char *path, const char *dir,
                      const ctn__shard_head *known, const char **local);

/* ---- files of arrays (array_file.c) ---------------------------------------------------------- */

#define CTN__HELD_FILE ((size_t)256 << 20)  /* maximum bytes of a file that is held in memory */
#define CTN__HELD_SAMPLE ((size_t)64 << 10) /* its samples must be shorter than this */
enum { CTN__PIECE = 16 << 10 };             /* bytes of a sample that are converted at a time */

typedef struct {
    const char *who; /* starts messages */
    char *path;
    size_t bytes; /* when it was opened */
    int fd;       /* -1: the file is held in memory */
    char *held;   /* the whole file, or NULL */
} ctn__array_file;

/* f need not be initialised; close it even after an error. Errors: EIO, EFORMAT (empty), ENOMEM. */
ctn_status ctn__array_file_open(ctn__array_file *f, const char *who, const char *path);
/* Reads the whole file into memory if it is small and so are its samples, which have `sample`
 * bytes. Errors: EIO. */
ctn_status ctn__array_file_hold(ctn__array_file *f, size_t sample);
/* Reads bytes at offset; they must lie within f->bytes. Errors: EIO. */
ctn_status ctn__array_file_read(const ctn__array_file *f, void *dst, size_t bytes, uint64_t offset);
void ctn__array_file_close(ctn__array_file *f);

/* ---- .npy (npy.c) ---------------------------------------------------------------------------- */

typedef struct {
    char kind; /* NumPy's f, i, u or b */
    int bytes; /* per element */
    bool swap; /* stored in the other byte order */
    bool fortran;
    int ndim;
    int64_t shape[CTN_MAX_DIMS];
    size_t offset; /* of the data in the file */
} ctn__npy;
/* Parses the header of a file and checks that the file is long enough for its data. Errors: EIO,
 * EFORMAT, EDTYPE, EUNSUPPORTED, ENOMEM. */
ctn_status ctn__npy_parse(ctn__npy *a, const ctn__array_file *f);
/* Reads n rows (indices of dimension 0) from `first` on in row-major order, converted to dtype,
 * which comes from ctn__array_dtype. Errors: EIO, EFORMAT (a number that does not fit). */
ctn_status ctn__npy_read(const ctn__npy *a, const ctn__array_file *f, int64_t first, int64_t n,
                         ctn_dtype dtype, void *dst);
/* The type that elements of a file are converted to; 0: unsupported. */
ctn_dtype ctn__array_dtype(char kind, int bytes, bool keep_f64);

/* ---- MATLAB 5 files (mat.c) ------------------------------------------------------------------ */

typedef struct {
    char name[64];
    int ndim;
    int64_t dim[CTN_MAX_DIMS];
    uint8_t *data; /* column-major; the caller frees it */
} ctn__mat_array;
/* Reads the n arrays of u8 with the names in a. Free their data even after an error. Errors: EIO,
 * EFORMAT, EUNSUPPORTED (compressed, in a build without zlib, or 4 GB and more), ENOMEM. */
ctn_status ctn__mat_read(const char *path, int n, ctn__mat_array *a);

/* ---- small images in memory (cifar.c) -------------------------------------------------------- */

enum { CTN__SMALL_SIDE = 32, CTN__SMALL_PIXELS = 3 * 32 * 32 };

/* Images (3,32,32) of u8 with labels: sample i has its label at label + i * step, and its pixels
 * at pixels + i * step. */
typedef struct {
    int64_t count;
    const uint8_t *label, *pixels;
    size_t label_step, pixel_step;
    uint8_t *memory[2]; /* both freed with the dataset */
    ctn_cifar_opt opt;
} ctn__small_images;
/* Copies the options of the caller and fills in defaults. Errors: EARG. */
ctn_status ctn__small_opt(const char *who, ctn_split split, ctn_cifar_opt *to,
                          const ctn_cifar_opt *from);
/* A dataset of them; takes x's memory only on success. Errors: ENOMEM. */
ctn_status ctn__small_new(ctn_dataset **ds, const ctn__small_images *x);

/* ---- HDF5 (hdf5.c) --------------------------------------------------------------------------- */

/* The plug-in's table; it is never unloaded. Errors: EUNSUPPORTED (there is none), ENOMEM. */
ctn_status ctn__hdf5_load(const ctn__hdf5_plugin **out);

/* ---- intermediate samples (transform.c) ------------------------------------------------------ */

/* Allocates memory for sample `index` of ds (-1: for any sample): p[f] for field f, aligned. Free
 * p[0]. Errors: ENOMEM. */
ctn_status ctn__sample_room(const ctn_dataset *ds, int64_t index, void *p[CTN_DATA_FIELDS]);

#endif
