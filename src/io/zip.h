/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader of zip archives whose entries are stored without compression, as torch.save writes
 * them. Files are untrusted input: after a successful open, the data of every entry is known to
 * lie inside the file as it was then.
 */
#ifndef CTN_IO_ZIP_H
#define CTN_IO_ZIP_H

#include "base/base.h"

#define CTN__ZIP_DIRECTORY_MAX 256000000 /* bytes of the list of entries */

typedef struct ctn__zip ctn__zip;

typedef struct {
    const char *name;    /* without U+0000; any other bytes */
    uint64_t begin;      /* offset of the data in the file */
    uint64_t bytes;      /* as stored */
    const char *problem; /* why it cannot be read ("compressed"); NULL: it can */
} ctn__zip_entry;

/* Open an archive and read its list of entries. ZIP64 is supported. Errors: EIO, EFORMAT
 * (also several volumes), ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__zip_open(ctn__zip **z, const char *path);
/* The same over memory that the caller keeps until close; `name` is used in messages only. */
CTN_MUST_CHECK ctn_status ctn__zip_parse(ctn__zip **z, const char *name, const void *p, size_t n);
void ctn__zip_close(ctn__zip *z);             /* NULL is allowed; its entries become invalid */
const char *ctn__zip_path(const ctn__zip *z); /* for messages */

/* Entries in the order of the archive. find returns NULL if there is none. */
size_t ctn__zip_count(const ctn__zip *z);
const ctn__zip_entry *ctn__zip_at(const ctn__zip *z, size_t i);
const ctn__zip_entry *ctn__zip_find(const ctn__zip *z, const char *name);
/* Read bytes of an entry. Errors: EIO, naming the offset; EFORMAT (the entry does not have them,
 * or is compressed or encrypted). */
CTN_MUST_CHECK ctn_status ctn__zip_read(const ctn__zip *z, const ctn__zip_entry *e, uint64_t offset,
                                        void *dst, size_t bytes);

#endif
