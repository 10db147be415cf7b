/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain reader and writer of the named arrays in a safetensors file, without tensors or graph.
 * A file is
 *     u64 N (little-endian)   N bytes of JSON   data
 * with {"name":{"dtype":"F32","shape":[..],"data_offsets":[begin,end]}, .., "__metadata__":{..}}.
 * The arrays cover the data without holes. Files are untrusted input: after a successful open,
 * every array is known to lie inside the file as it was then. Several files may be read as one
 * through the index beside them. Without yyjson, open, parse and finish return EUNSUPPORTED.
 */
#ifndef CTN_IO_SAFETENSORS_H
#define CTN_IO_SAFETENSORS_H

#include <catena/io.h>
#include "base/base.h"

#define CTN__ST_HEADER_MAX 100000000 /* bytes, the limit of the format's reference implementation */

typedef struct ctn__st_file ctn__st_file;
typedef struct ctn__st_writer ctn__st_writer;

typedef ctn_weights_array ctn__st_array;

/* Open a file and check its header. If the path ends in ".json", it is an index
 * (model.safetensors.index.json): all files named in it are opened and read as one, without
 * metadata. Errors: EIO, EFORMAT, EDTYPE (a type of the format that Catena does not have),
 * EUNSUPPORTED, ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__st_open(ctn__st_file **f, const char *path);
/* The same over memory that the caller keeps until close; `name` is used in messages only. */
CTN_MUST_CHECK ctn_status ctn__st_parse(ctn__st_file **f, const char *name, const void *p,
                                        size_t n);
void ctn__st_close(ctn__st_file *f); /* NULL is allowed; its arrays become invalid */
/* Read the values of an array of f straight from the file into dst. Errors: EIO, naming the offset
 * (the disk failed, or the file was truncated after it was opened). */
CTN_MUST_CHECK ctn_status ctn__st_read(const ctn__st_file *f, const ctn__st_array *a, void *dst);

/* Arrays in file order (ascending offset, one file after the other). find returns NULL without an
 * error if it finds none. */
size_t ctn__st_count(const ctn__st_file *f);
const ctn__st_array *ctn__st_at(const ctn__st_file *f, size_t i);
const ctn__st_array *ctn__st_find(const ctn__st_file *f, const char *name);

/* __metadata__: by key (NULL if there is none), and by number, sorted by key. */
const char *ctn__st_metadata(const ctn__st_file *f, const char *key);
size_t ctn__st_metadata_count(const ctn__st_file *f);
const char *ctn__st_metadata_at(const ctn__st_file *f, size_t i, const char **key);

/* To write a file, call begin, then add and add_metadata in any order, then put for every array
 * in any order, then finish and free. Names are copied, data is written immediately. The file is
 * written atomically. Equal input gives equal bytes: arrays with larger elements come first, so
 * that all are aligned; otherwise they stay in the order added. */
CTN_MUST_CHECK ctn_status ctn__st_begin(ctn__st_writer **w, const char *path);
CTN_MUST_CHECK ctn_status ctn__st_add(ctn__st_writer *w, const char *name, ctn_dtype dtype,
                                      int ndim, const int64_t *shape);
CTN_MUST_CHECK ctn_status ctn__st_add_metadata(ctn__st_writer *w, const char *key,
                                               const char *value);
/* Write past the memory of the system (base/newfile.h). Worth it for large files whose arrays are
 * put in the order in which they are stored. */
void ctn__st_direct(ctn__st_writer *w);
void ctn__st_quick(ctn__st_writer *w); /* ctn__st_finish does not sync the file */
/* Write the bytes of an array that was added. After the first put, nothing can be added. Errors:
 * also EARG (a name was added twice). */
CTN_MUST_CHECK ctn_status ctn__st_put(ctn__st_writer *w, const char *name, const void *data);
CTN_MUST_CHECK ctn_status ctn__st_finish(ctn__st_writer *w);
void ctn__st_writer_free(ctn__st_writer *w); /* NULL is allowed; without finish no file appears */

#endif
