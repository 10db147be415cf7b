/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader of Python's pickle format that makes a tree of plain values and calls nothing. What a
 * pickle would import or call becomes a value of kind GLOBAL or CALL, which its user may interpret
 * (pytorch.c knows those that rebuild tensors). The bytes are untrusted input: memory is limited to
 * a multiple of their number, and nothing recurses.
 */
#ifndef CTN_IO_PICKLE_H
#define CTN_IO_PICKLE_H

#include "base/base.h"

#define CTN__PICKLE_MAX 256000000       /* bytes of a pickle */
#define CTN__PICKLE_VALUES_MAX 16000000 /* values in a pickle */

typedef enum {
    CTN__PICKLE_NONE,
    CTN__PICKLE_BOOL,
    CTN__PICKLE_INT,
    CTN__PICKLE_FLOAT,
    CTN__PICKLE_TEXT,   /* a string or bytes */
    CTN__PICKLE_GLOBAL, /* a name to import; text is "module name" */
    CTN__PICKLE_TUPLE,
    CTN__PICKLE_LIST, /* and sets */
    CTN__PICKLE_DICT, /* items: key, value, key, value, ... */
    CTN__PICKLE_CALL, /* items: a function and its arguments as a tuple; not called */
    CTN__PICKLE_REF,  /* items: the persistent id, which names something outside the pickle */
} ctn__pickle_kind;

typedef struct ctn__pickle_value ctn__pickle_value;
typedef struct ctn__pickle_cell ctn__pickle_cell;

struct ctn__pickle_cell {
    ctn__pickle_value *value;
    ctn__pickle_cell *next;
};

struct ctn__pickle_value {
    ctn__pickle_kind kind;
    bool seen;     /* for the user of the tree */
    int64_t i;     /* BOOL, INT; an integer that does not fit 64 bits is INT64_MIN */
    double f;      /* FLOAT */
    const char *s; /* TEXT, GLOBAL: 0-terminated, but TEXT may contain 0 too */
    size_t n;      /* TEXT, GLOBAL: bytes; the others: number of items */
    ctn__pickle_cell *first, *last; /* items */
};

/* Read the pickle of n bytes at p. `path` and `base`, the offset of p in the file, are used in
 * messages. Values are made in the arena and may be shared and even contain themselves. Result:
 * *root, in the arena. Errors: EFORMAT (also an opcode that PyTorch does not write), ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__pickle_read(ctn__pickle_value **root, ctn__arena *arena,
                                           const char *path, uint64_t base, const void *p,
                                           size_t n);

#endif
