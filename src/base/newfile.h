/* SPDX-License-Identifier: Apache-2.0
 *
 * Atomic file writing: the file is written under a temporary name in the same folder, synced, and
 * then renamed over any existing file. Readers see the old file or the complete new one.
 */
#ifndef CTN_BASE_NEWFILE_H
#define CTN_BASE_NEWFILE_H

#include "base/base.h"

typedef struct {
    int fd; /* -1: not open */
    const char *path;
    ctn__text temporary;
    uint64_t at; /* where the next write goes */
    bool quick;  /* commit does not sync it: a power failure may lose or shorten it */
    /* ctn__newfile_direct: what is still to be written. */
    char *staged; /* NULL: writes are not staged */
    size_t held;
    uint64_t from; /* where it goes */
} ctn__newfile;

/* path is borrowed until close. Start with {.fd = -1}; then close is safe after any failure. */
CTN_MUST_CHECK ctn_status ctn__newfile_open(ctn__newfile *f, const char *path);
CTN_MUST_CHECK ctn_status ctn__newfile_write(ctn__newfile *f, const void *data, size_t bytes);
/* Writes at an offset, in any order. Does not move the position of ctn__newfile_write. */
CTN_MUST_CHECK ctn_status ctn__newfile_put(ctn__newfile *f, const void *data, size_t bytes,
                                           uint64_t offset);
/* For large files: from now on, what is put in the order of its offsets goes to the disk past the
 * memory of the system, which neither copies it nor keeps it. Has no effect where the file system
 * cannot do so. Errors: none; without memory for it, writing goes on as before. */
void ctn__newfile_direct(ctn__newfile *f);
CTN_MUST_CHECK ctn_status ctn__newfile_commit(ctn__newfile *f);
void ctn__newfile_close(ctn__newfile *f); /* without a commit, deletes the file */
/* Syncs a file that was committed quickly. One that is gone is not an error. */
CTN_MUST_CHECK ctn_status ctn__newfile_sync(const char *path);

#endif
