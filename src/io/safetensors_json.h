/* SPDX-License-Identifier: Apache-2.0
 *
 * The structures shared by safetensors.c (files, offsets, lookup), safetensors_index.c (several
 * files as one) and safetensors_json.c (the text of headers and indexes; the only user of yyjson).
 */
#ifndef CTN_IO_SAFETENSORS_JSON_H
#define CTN_IO_SAFETENSORS_JSON_H

#include "base/newfile.h"
#include "io/safetensors.h"

typedef struct {
    const char *key, *value;
} ctn__st_pair;

typedef struct {
    ctn__st_array a;          /* must be first: ctn__st_read casts it to an entry */
    uint64_t begin, end;      /* data_offsets */
    size_t order;             /* position in the header text; makes sorting stable */
    const ctn__st_file *file; /* where the data is: the file itself, or one of its parts */
} ctn__st_entry;

struct ctn__st_file {
    char *path;         /* for messages */
    int fd;             /* -1: the bytes are in the caller's memory */
    const char *memory; /* the whole file; NULL: read from fd */
    uint64_t data;      /* offset of the data in the file */
    void *doc;          /* yyjson's; names and metadata point into it */
    size_t n, pairs;
    ctn__st_entry *entry;           /* in file order */
    const ctn__st_entry **by_name;  /* the same, by name */
    ctn__st_pair *pair;             /* __metadata__ by key; NULL if there is none */
    CTN__VEC(ctn__st_file *) parts; /* of an index: the files that it names, in their order */
};

typedef struct {
    ctn__st_array a; /* its name is owned */
    size_t order;    /* in which it was added */
    uint64_t begin;  /* offset in the file, once that is open */
    bool put;
} ctn__st_slot;

struct ctn__st_writer {
    char *path;
    ctn__newfile file;            /* open from the first put on */
    CTN__VEC(ctn__st_slot) slots; /* arrays as added; from the first put on, as in the file */
    ctn__st_slot **by_name;       /* the same by name; NULL: before the first put */
    CTN__VEC(char *) strings;     /* metadata: key, value, key, value, ... */
    bool finished;
    bool direct; /* ctn__st_direct */
};

/* The format's name of a type, NULL for a type it does not have. */
const char *ctn__st_type_name(ctn_dtype dtype);

/* Fill f->entry and f->pair in the order of the text. Every entry is then well formed, and its
 * offsets span exactly the bytes that its shape needs. The caller still has to check where the
 * arrays lie and that their names are unique. */
CTN_MUST_CHECK ctn_status ctn__st_json_read(ctn__st_file *f, const char *json, size_t bytes);
void ctn__st_json_free(ctn__st_file *f); /* the text that names point into */

/* Call fn for every pair of an array and its file in the weight_map of an index, until one fails.
 * The strings are valid during the call. `path` is used in messages. Errors: EFORMAT, ENOMEM,
 * those of fn. */
typedef ctn_status (*ctn__st_index_fn)(void *user, const char *array, const char *file);
CTN_MUST_CHECK ctn_status ctn__st_json_index(const char *path, const char *json, size_t bytes,
                                             ctn__st_index_fn fn, void *user);

/* The text of an index; the caller frees *out. Array i is in file[i]. Errors: EARG (names must be
 * UTF-8), ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__st_json_index_write(size_t n, const char *const *array,
                                                   const char *const *file, uint64_t bytes,
                                                   char **out);

/* Open one safetensors file. Its path may end in anything. */
CTN_MUST_CHECK ctn_status ctn__st_open_one(ctn__st_file **f, const char *path);
/* Open the index at f->path and the files that it names, and fill f->parts and f->entry. The caller
 * sorts the names. */
CTN_MUST_CHECK ctn_status ctn__st_index_read(ctn__st_file *f);

/* The header text, preceded by its length and padded with spaces so that the data begins at a
 * multiple of 8. The caller frees *out. */
CTN_MUST_CHECK ctn_status ctn__st_json_write(const ctn__st_writer *w, char **out, size_t *bytes);

#endif
