/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading of files, whole or in part. `who` starts messages; path is in them and names the file.
 */
#ifndef CTN_BASE_READFILE_H
#define CTN_BASE_READFILE_H

#include <sys/stat.h>

#include "base/base.h"

/* Opens a regular file for reading and tells its size and time. Errors: EIO. */
CTN_MUST_CHECK ctn_status ctn__file_open(const char *who, const char *path, int *fd,
                                         struct stat *info);
/* Reads `bytes` at offset; fewer are an error, which names the offset. Errors: EIO. */
CTN_MUST_CHECK ctn_status ctn__file_read(const char *who, const char *path, int fd, void *dst,
                                         size_t bytes, uint64_t offset);
/* All of a file of at most `most` bytes, with a 0 behind it; free it. Errors: EIO, EUNSUPPORTED
 * (larger), ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__file_whole(const char *who, const char *path, size_t most,
                                          char **out, size_t *n);
/* Puts the name of its file before the message of an error that was reported without it. */
ctn_status ctn__file_blame(ctn_status st, const char *who, const char *path);

#endif
