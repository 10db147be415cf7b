/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of weights share: an open file of named arrays of any format (weights_file.c), the
 * names that other programs use (key_maps.c), and the pairing of a model's variables with the
 * arrays of a file (weights_match.c), which weights.c loads.
 */
#ifndef CTN_IO_WEIGHTS_H
#define CTN_IO_WEIGHTS_H

#include <catena/io.h>

#include "nn/nn.h"

/* ---- weights_file.c ------------------------------------------------------------------------- */

const ctn_weights_array *ctn__weights_at(const ctn_weights *w, int64_t i);
/* Convert n elements from one type to another; both are float types, or the same. */
void ctn__convert(void *dst, ctn_dtype to, const void *src, ctn_dtype from, int64_t n);

/* ---- weights.c ------------------------------------------------------------------------------ */

/* The name of a variable or module of m in published files, after `before`. Errors: EFORMAT (it is
 * too long). */
CTN_MUST_CHECK ctn_status ctn__published_name(const ctn_module *m, const char *before,
                                              const char *name, char *buf, size_t n);
/* Save m as published files are, with these names and with matrices transposed where theirs are.
 * m->published must not be NULL. only: as in ctn_weights_save_opt. */
CTN_MUST_CHECK ctn_status ctn__weights_save_published(ctn_module *m, const char *path,
                                                      const char *before, const char *const *only);

/* ---- key_maps.c ----------------------------------------------------------------------------- */

/* A name in a file, and which part of its rows: files may have several variables in one array. */
typedef struct {
    char name[1024];
    int part, parts; /* parts 1: all rows */
} ctn__key;

int ctn__key_maps(void); /* number of maps; map 0 changes nothing */
/* What a map does, for messages, in buf: "names of timm, prefix module."; NULL for map 0. */
const char *ctn__key_map_title(int map, char *buf, size_t n);
/* The next possible name in a file for a variable's name. Start with *at 0. Returns false if there
 * is no other. */
bool ctn__key_map_next(int map, const char *name, int *at, ctn__key *key);

/* ---- weights_match.c ------------------------------------------------------------------------ */

/* Where the values of a variable come from. */
typedef struct {
    int64_t array; /* -1: nowhere */
    int part, parts;
    bool skip; /* it is meant to be left out */
    bool head; /* the last layer, with another number of outputs: it is not loaded */
} ctn__source;

typedef struct {
    ctn_module *m;
    ctn_weights_opt opt;
    ctn_weights *file;
    ctn_vars all;
    int *first;        /* for each name of all: the first name of the same variable */
    ctn__source *from; /* for each name of all; only those of first names are set */
    bool *used;        /* arrays of the file that some name refers to */
    int map;           /* of ctn__key_maps */
    int loaded;        /* number of variables with an array */
    bool turned;       /* the file has the matrices of published.turned transposed */
} ctn__pairs;

/* Open the file and pair everything. Call close after a failure too. */
CTN_MUST_CHECK ctn_status ctn__pairs_open(ctn__pairs *p, const char *who, ctn_module *m,
                                          const char *path, const ctn_weights_opt *opt);
void ctn__pairs_close(ctn__pairs *p);
/* Whether the file has variable i transposed. */
bool ctn__pairs_turned(const ctn__pairs *p, int i);
/* The type of variable i in the file, and its shape there as the model has it. */
ctn_desc ctn__pairs_desc(const ctn__pairs *p, int i);

typedef enum {
    CTN__FITS,
    CTN__NEW_HEAD, /* only if the options allow it */
    CTN__SHAPE_DIFFERS,
    CTN__DTYPE_DIFFERS,
    CTN__MISSING,    /* in the file */
    CTN__UNEXPECTED, /* not in the model */
    CTN__PAIRING_KINDS
} ctn__pairing_kind;

/* One variable or one array. Strings are borrowed during the call. */
typedef struct {
    ctn__pairing_kind kind;
    const char *name;  /* of the variable; NULL: UNEXPECTED */
    const char *array; /* of the file; NULL: MISSING */
    /* "fc.weight is (37,2048) in the model and (1000,2048) in the file"; MISSING and UNEXPECTED:
     * "fc.weight (37,2048), nearest: head.fc.weight (37,2048)" */
    const char *text;
} ctn__pairing;
typedef ctn_status (*ctn__pairing_fn)(void *user, const ctn__pairing *match);
/* Call fn for each variable, and then for each array that is not used, until a call does not
 * return CTN_OK. */
CTN_MUST_CHECK ctn_status ctn__pairs_visit(const ctn__pairs *p, ctn__pairing_fn fn, void *user);

#endif
