/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of a whole job. A checkpoint is a folder with these files:
 *   state.safetensors    arrays in plain layout, under their plain names; several files
 *                        state-00001-of-00004.safetensors if several ranks write, and then
 *                        state.safetensors.index.json, by which other programs read them as one
 *   *.txt                texts of the caller
 *   manifest.txt         sizes and hashes of all files and arrays
 *
 * Saving has four stages. snapshot.c copies this rank's part of the state between two steps.
 * write.c writes the copy in a thread of its own, and reads it back. save.c lets the ranks vote,
 * and rank 0 publishes the folder with one rename (numbered.c) after all of them were successful.
 * Until then the folder has a temporary name, and nothing reads it. load.c finds the newest folder
 * that is intact and gives its arrays to any number of ranks.
 *
 * A slice of an array that is spread over ranks is named "array[begin:end]", in elements.
 */
#ifndef CTN_IO_CHECKPOINT_H
#define CTN_IO_CHECKPOINT_H

#include <catena/comm.h>
#include <catena/io.h>

#include "base/base.h"
#include "io/safetensors.h"

#define CTN__CKPT_MANIFEST "manifest.txt"
#define CTN__CKPT_INDEX "state.safetensors.index.json"

/* ---- folders (numbered.c) -------------------------------------------------------------------- */

/* `dir` holds the folders 000000001, 000000002, ... */
/* Makes an empty folder with a temporary name, and removes those that killed jobs have left. c:
 * the group that saves; NULL: this rank alone. Result: its path. Errors: EIO, ENOMEM, EARG (another
 * part of the same communicator saves here). */
ctn_status ctn__numbered_begin(ctn__text *path, const char *dir, const ctn_comm *c);
/* Writes the manifest, syncs the folder, gives it the next number, and removes old folders: the
 * last `keep` stay. *number: the one it got. */
ctn_status ctn__numbered_publish(const char *path, const char *dir, const ctn__text *manifest,
                                 int64_t keep, int64_t *number);
/* Removes it, but neither what a link points to nor files that are not a state's; NULL is fine. */
void ctn__numbered_drop(const char *path);
/* Removes a folder with a number. A process killed meanwhile leaves none that looks damaged.
 * Errors: EIO (also for a link, which is left alone), ENOMEM. */
ctn_status ctn__numbered_remove(const char *dir, int64_t number);
/* The largest number below `below`; -1: none. */
int64_t ctn__numbered_below(const char *dir, int64_t below);
ctn_status ctn__numbered_path(ctn__text *out, const char *dir, int64_t number);
/* Renames a damaged folder, so that it does not count towards those that are kept. */
void ctn__numbered_put_aside(const char *path, const char *dir, int64_t number);
/* Reads or writes a file of a folder as 0-terminated text; the caller frees *text. */
ctn_status ctn__numbered_read(const char *path, const char *file, char **text);
ctn_status ctn__numbered_write(const char *path, const char *file, const ctn__text *text);

/* ---- the manifest (manifest.c) --------------------------------------------------------------- */

typedef struct {
    char *name;
    uint64_t bytes;
    ctn__hash128 hash;
} ctn__ckpt_file;

typedef struct {
    char *name;
    ctn_dtype dtype;
    int ndim;
    int64_t dim[CTN_MAX_DIMS];
    int file;
    ctn__hash128 hash;
    bool used; /* by the program that loads it */
} ctn__ckpt_array;

typedef struct {
    CTN__VEC(ctn__ckpt_file) file;
    CTN__VEC(ctn__ckpt_array) array; /* sorted by name */
} ctn__manifest;

/* Lines of a manifest. */
void ctn__manifest_add_file(ctn__text *t, const char *name, uint64_t bytes, ctn__hash128 hash);
void ctn__manifest_add_array(ctn__text *t, const char *name, ctn_dtype dtype, int ndim,
                             const int64_t *dim, const char *file, ctn__hash128 hash);
/* Puts the head before the lines and a hash of everything after them. */
ctn_status ctn__manifest_finish(const ctn__text *lines, ctn__text *out);
/* Errors: EFORMAT (damaged, or another version), ENOMEM. path: for messages. */
ctn_status ctn__manifest_parse(ctn__manifest *m, const char *path, const char *text);
void ctn__manifest_free(ctn__manifest *m);
/* Parses the manifest of a folder. Errors: EIO (cannot be read), those of parse. */
ctn_status ctn__manifest_read(ctn__manifest *m, const char *path);
/* The array of this name; NULL: none. */
ctn__ckpt_array *ctn__manifest_find(const ctn__manifest *m, const char *name);
/* Does `slice`, such as "fc.weight.state1[0:64]", name a part of the array `name`? If so, which
 * elements. */
bool ctn__slice_of(const char *slice, const char *name, int64_t *begin, int64_t *end);
/* Is the array that begins at a[0] a slice of `name`? If so, which elements. */
bool ctn__manifest_slice(const ctn__ckpt_array *a, const char *name, int64_t *begin, int64_t *end);
/* The first slice of `name`; those that follow are next to it. NULL: none. */
ctn__ckpt_array *ctn__manifest_slices(const ctn__manifest *m, const char *name);
/* Adds the error of this thread, without its trace, and clears it. */
void ctn__ckpt_add_error(ctn__text *t);
/* Compares file f of the folder with the manifest, and adds a line for each damage to *found.
 * Errors: ENOMEM. */
ctn_status ctn__manifest_verify(const ctn__manifest *m, const char *path, int f, ctn__text *found);
size_t ctn__manifest_bytes(const ctn__ckpt_array *a); /* of its values */
/* Opens file f of the folder, unless *file is open already. Errors: EIO, EFORMAT, ENOMEM. */
ctn_status ctn__manifest_open(const ctn__manifest *m, const char *path, int f, ctn__st_file **file);
/* A hash as 32 hexadecimal digits. */
void ctn__hash_text(ctn__hash128 h, char text[33]);
/* The hash of a file and its length. Errors: EIO, ENOMEM. */
ctn_status ctn__file_hash(const char *path, ctn__hash128 *hash, uint64_t *bytes);

/* ---- a copy in memory (snapshot.c) ----------------------------------------------------------- */

typedef struct {
    char *name;
    ctn_dtype dtype;
    int ndim;
    int64_t dim[CTN_MAX_DIMS];
    size_t at, bytes; /* in the memory of the snapshot */
} ctn__snap_array;

typedef struct {
    CTN__VEC(ctn__snap_array) array; /* of this rank */
    char *memory;                    /* kept for the next snapshot */
    size_t bytes, room;
    bool divided;    /* all ranks take part without exchanging anything */
    int writers;     /* number of files */
    int file;        /* number of this rank's file; -1: it writes none */
    ctn__text pairs; /* rank 0, several files: "array\tnumber of its file\n" for whole arrays */
} ctn__snapshot;

enum { CTN__SNAPSHOT_OWN = -2 };
/* Copies what this rank writes; without `values`, only prepares the memory. least: bytes for each
 * rank that writes; -1: rank 0 writes everything; CTN__SNAPSHOT_OWN: copies all that this rank has.
 * The values of optimizers among the parts are the same on all ranks. Collective. Errors: ENOMEM,
 * those of the parts. */
ctn_status ctn__snapshot_take(ctn__snapshot *s, ctn_comm *c, int64_t least, bool values, int n,
                              const ctn_state_part *parts);
void ctn__snapshot_free(ctn__snapshot *s);

/* The optimizer of a part made by ctn_part_optim; NULL: it is another part (state.c). */
ctn_optim *ctn__part_optim(const ctn_state_part *p);

/* ---- writing (write.c) ----------------------------------------------------------------------- */

/* A text file that rank 0 adds to the checkpoint. */
typedef struct {
    const char *name;
    ctn__text text;
} ctn__ckpt_text;

enum { CTN__CKPT_TEXTS = 2 };

/* Writes and verifies this rank's files. *lines: its lines of the manifest. Runs in any thread. */
ctn_status ctn__ckpt_write(const ctn__snapshot *s, const char *path, int texts,
                           const ctn__ckpt_text *text, ctn__text *lines);

/* ---- saving (save.c) ------------------------------------------------------------------------- */

typedef struct ctn__saver ctn__saver;

/* Saves states in `dir`, one at a time. All functions are collective over c unless they are said
 * to be local. c NULL: one rank. Failures are the same on all ranks, except where the group itself
 * fails (EPEER). */
ctn_status ctn__saver_new(ctn__saver **out, ctn_comm *c, const char *dir, int64_t keep);
/* From now on each rank has a state of its own and writes all of it to a file of its own. Local. */
void ctn__saver_apart(ctn__saver *s);
void ctn__saver_free(ctn__saver *s); /* local; waits for its threads. NULL is fine. */
/* Can it be written to, and is there room for a state of these parts? Prepares the memory. Errors:
 * EIO, ENOMEM. */
ctn_status ctn__saver_check(ctn__saver *s, int n, const ctn_state_part *parts);
/* Copies the state and starts to write it. Takes the texts, also on failure. */
ctn_status ctn__saver_begin(ctn__saver *s, int n, const ctn_state_part *parts, int texts,
                            ctn__ckpt_text *text);
bool ctn__saver_busy(const ctn__saver *s);    /* local, the same on all ranks: begun, no vote yet */
bool ctn__saver_written(const ctn__saver *s); /* local: this rank's part is on disk, or failed */
/* Waits for the parts of all ranks, and lets rank 0 publish the state in the background. */
ctn_status ctn__saver_vote(ctn__saver *s);
/* Waits until the state is published. */
ctn_status ctn__saver_wait(ctn__saver *s);
/* Local: has publishing failed in the background? Returns and clears the failure. */
ctn_status ctn__saver_failure(ctn__saver *s);

/* ---- loading (load.c) ------------------------------------------------------------------------ */

typedef struct ctn__ckpt ctn__ckpt;

/* Opens the newest intact checkpoint in dir. Damaged ones are named in a warning, put aside and
 * passed over. Collective; only rank 0 must see the folder. Errors: ENOTFOUND, EFORMAT (all are
 * damaged), ENOMEM, EPEER. */
ctn_status ctn__ckpt_open(ctn__ckpt **out, ctn_comm *c, const char *dir);
void ctn__ckpt_close(ctn__ckpt *k); /* local */
const char *ctn__ckpt_path(const ctn__ckpt *k);
/* A text file of the checkpoint, on every rank; NULL: there is none. Collective. */
ctn_status ctn__ckpt_read(ctn__ckpt *k, const char *file, char **text);
/* Loads the arrays into the parts. All are checked before the first is changed. Collective. If a
 * part refuses its values on one rank only, that rank breaks the group. Errors: ENOTFOUND, ESHAPE,
 * EDTYPE, EIO, EPEER. */
ctn_status ctn__ckpt_load(ctn__ckpt *k, int n, const ctn_state_part *parts);
/* The same for a checkpoint of ctn__saver_apart: each rank loads its own arrays, whose names differ
 * from rank to rank. Visits are local. */
ctn_status ctn__ckpt_load_apart(ctn__ckpt *k, int n, const ctn_state_part *parts);

#endif
