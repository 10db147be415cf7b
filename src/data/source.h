/* SPDX-License-Identifier: Apache-2.0
 *
 * What the datasets over files share: the list of an image folder, the index of a tar file, arrays
 * in files. Everything read here is treated as hostile.
 */
#ifndef CTN_DATA_SOURCE_H
#define CTN_DATA_SOURCE_H

#include "base/readfile.h"
#include "data/data.h"
#include "data/hdf5.h"

#define CTN__IMAGE_MOST ((size_t)1 << 30) /* bytes of an image file */

/* ---- from rank to rank (blocks.c) ------------------------------------------------------------ */

typedef struct {
    char *at;
    size_t n, room; /* bytes put or taken so far; of `at` */
} ctn__blocks;
/* One more block; without room only n grows. */
void ctn__put_block(ctn__blocks *b, const void *p, size_t bytes);
/* The next block, borrowed, aligned to 8 when `at` is. NULL: none, or it is not whole. */
const void *ctn__take_block(ctn__blocks *b, size_t *bytes);
const char *ctn__take_text(ctn__blocks *b); /* the same for a text with its 0 */

/* ---- image folders (folder.c) ---------------------------------------------------------------- */

/* One class: its images by name, in as little memory as their names allow. */
typedef struct {
    const char *name;   /* of its folder */
    int64_t first, n;   /* its samples in the whole */
    const char *names;  /* 0-terminated, one behind the other */
    const uint32_t *at; /* (n): where each begins */
} ctn__class;

typedef struct {
    char *dir;
    int64_t n; /* samples of all classes */
    CTN__VEC(ctn__class) classes;
} ctn__folder;

/* Folders of dir by name and their JPEG and PNG files by name. A folder without images is a class
 * too: numbers stay those of the training set. *f starts zeroed; free it also after an error.
 * Errors: EIO, ENOTFOUND (no images), ENOMEM. */
ctn_status ctn__folder_read(ctn__folder *f, const char *dir);
/* The same from the names that ctn_image_folder_list gave; no folder is listed. Errors: EFORMAT,
 * ENOMEM. */
ctn_status ctn__folder_take(ctn__folder *f, const char *dir, const void *list, size_t bytes);
void ctn__folder_free(ctn__folder *f);
int64_t ctn__folder_class(const ctn__folder *f, int64_t sample);
/* Path of a sample, as snprintf. */
int ctn__folder_path(const ctn__folder *f, int64_t sample, char *buf, size_t n);
/* The file of a sample; free it. path, of n bytes, gets its path. */
ctn_status ctn__folder_load(const ctn__folder *f, int64_t sample, char *path, size_t n, char **file,
                            size_t *bytes);

/* ---- index of a tar file (shard_index.c makes it, shard_cache.c keeps it) -------------------- */

typedef struct {
    uint64_t offset; /* of the image in the tar file */
    uint32_t bytes;
    int32_t label; /* -1: has none */
    uint32_t name; /* where it begins in names */
    uint32_t zero;
} ctn__shard_entry;

#define CTN__SHARD_MAGIC "ctntar1" /* and its 0 */

/* Also the form in the file, which is of this machine's byte order: header, entries, names. */
typedef struct {
    char magic[8];
    uint64_t tar_bytes;
    int64_t tar_s, tar_ns; /* when the tar file was changed last */
    uint64_t n, name_bytes;
    uint64_t hash; /* of what follows */
    uint64_t zero;
} ctn__shard_head;

typedef struct {
    ctn__shard_head *head; /* all of it, to be freed */
    int64_t n;
    const ctn__shard_entry *entry; /* (n) */
    const char *names;
} ctn__shard_index;

/* Reads the whole tar file through libarchive. path is for messages. Errors: EFORMAT, EIO, ENOMEM,
 * EUNSUPPORTED (a build without libarchive). */
ctn_status ctn__shard_index_make(ctn__shard_index *x, const char *path, int fd,
                                 const struct stat *info);
/* Checks `bytes` of an index of a tar file with this info (NULL: of any) and points x into them.
 * False: not to be used, whatever the reason. */
bool ctn__shard_index_check(ctn__shard_index *x, ctn__shard_head *head, size_t bytes,
                            const struct stat *info);
/* The kept index of the tar file fd, known as path, else a new one, which is kept when there is a
 * place: index_dir, or (NULL) beside path, or the cache folder. */
ctn_status ctn__shard_index_get(ctn__shard_index *x, const char *path, int fd,
                                const struct stat *info, const char *index_dir);
void ctn__shard_index_free(ctn__shard_index *x);

/* The copy of a shard in folder dir, made when there is none of the same size and time. known: its
 * index, which has both, so that a shard with a copy is not even looked at; NULL: none. Result:
 * *local, in mem. Errors: EIO, ENOMEM. */
ctn_status ctn__stage(ctn__arena *mem, const char *path, const char *dir,
                      const ctn__shard_head *known, const char **local);

/* ---- files of samples of equal size (array_file.c) ------------------------------------------- */

#define CTN__HELD_FILE ((size_t)256 << 20)  /* bytes of a file that is held in memory, at most */
#define CTN__HELD_SAMPLE ((size_t)64 << 10) /* its samples are shorter */
enum { CTN__PIECE = 16 << 10 };             /* bytes of a sample that are converted at a time */

typedef struct {
    const char *who; /* starts messages */
    char *path;
    size_t bytes; /* when it was opened */
    int fd;       /* -1: held */
    char *held;   /* all of it, or NULL */
} ctn__array_file;

/* f starts without a value; close it also after an error. Errors: EIO, EFORMAT (empty), ENOMEM. */
ctn_status ctn__array_file_open(ctn__array_file *f, const char *who, const char *path);
/* Takes the file into memory if it is small and its samples, of `sample` bytes, are. Errors: EIO. */
ctn_status ctn__array_file_hold(ctn__array_file *f, size_t sample);
/* bytes at offset, which lie within f->bytes. Errors: EIO. */
ctn_status ctn__array_file_read(const ctn__array_file *f, void *dst, size_t bytes, uint64_t offset);
void ctn__array_file_close(ctn__array_file *f);

/* ---- .npy (npy.c) ---------------------------------------------------------------------------- */

typedef struct {
    char kind; /* f, i, u or b as NumPy has it */
    int bytes; /* of an element */
    bool swap; /* of the other byte order */
    bool fortran;
    int ndim;
    int64_t shape[CTN_MAX_DIMS];
    size_t offset; /* of the data in the file */
} ctn__npy;
/* The header of a file, which must also hold the data. Errors: EIO, EFORMAT, EDTYPE, EUNSUPPORTED,
 * ENOMEM. */
ctn_status ctn__npy_parse(ctn__npy *a, const ctn__array_file *f);
/* Sample `index` in row-major order as dtype, what ctn__array_dtype says. Errors: EIO, EFORMAT (a
 * number that does not fit). */
ctn_status ctn__npy_read(const ctn__npy *a, const ctn__array_file *f, int64_t index,
                         ctn_dtype dtype, void *dst);
/* What elements of a file become; 0: cannot be read. */
ctn_dtype ctn__array_dtype(char kind, int bytes, bool keep_f64);

/* ---- HDF5 (hdf5.c) --------------------------------------------------------------------------- */

/* The plug-in's table, borrowed forever. Errors: EUNSUPPORTED (there is none), ENOMEM. */
ctn_status ctn__hdf5_load(const ctn__hdf5_plugin **out);

/* ---- samples in between (transform.c) -------------------------------------------------------- */

/* Memory for one sample of ds: p[f] for field f, aligned. Free p[0]. Errors: ENOMEM. */
ctn_status ctn__sample_room(const ctn_dataset *ds, void *p[CTN_DATA_FIELDS]);

#endif
