/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that appears under its name complete or not at all: written under a temporary name in the
 * same folder, synced, then renamed over whatever stood there.
 */
#ifndef CTN_BASE_NEWFILE_H
#define CTN_BASE_NEWFILE_H

#include "base/base.h"

typedef struct {
    int fd; /* -1: not open */
    const char *path;
    ctn__text temporary;
    uint64_t at; /* where write goes on */
} ctn__newfile;

/* path is borrowed until close. Start with {.fd = -1}, so that close is fine after any failure. */
CTN_MUST_CHECK ctn_status ctn__newfile_open(ctn__newfile *f, const char *path);
CTN_MUST_CHECK ctn_status ctn__newfile_write(ctn__newfile *f, const void *data, size_t bytes);
/* At an offset, in any order; write goes on where it was. */
CTN_MUST_CHECK ctn_status ctn__newfile_put(ctn__newfile *f, const void *data, size_t bytes,
                                           uint64_t offset);
CTN_MUST_CHECK ctn_status ctn__newfile_commit(ctn__newfile *f);
void ctn__newfile_close(ctn__newfile *f); /* without commit the temporary file is removed */

#endif
