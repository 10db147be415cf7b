/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading files, completely or in part. Error messages start with `who` and name the file by path.
 */
#ifndef CTN_BASE_READFILE_H
#define CTN_BASE_READFILE_H

#include <sys/stat.h>

#include "base/base.h"

/* Opens a regular file for reading and returns its size and time in *info. Errors: EIO. */
CTN_MUST_CHECK ctn_status ctn__file_open(const char *who, const char *path, int *fd,
                                         struct stat *info);
/* Reads exactly `bytes` at offset. A short read is an error that names the offset. Errors: EIO. */
CTN_MUST_CHECK ctn_status ctn__file_read(const char *who, const char *path, int fd, void *dst,
                                         size_t bytes, uint64_t offset);
/* Reads a complete file of at most `most` bytes and appends a 0 byte. Free *out. Errors: EIO,
 * EUNSUPPORTED (larger), ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__file_whole(const char *who, const char *path, size_t most,
                                          char **out, size_t *n);
/* Adds the file name in front of an error message that does not contain it. */
ctn_status ctn__file_blame(ctn_status st, const char *who, const char *path);

#endif
