/* SPDX-License-Identifier: Apache-2.0
 *
 * A file with samples of equal size, for files.c and tokens.c. A sample is read from the file
 * when it is needed; the system's page cache keeps what fits into memory, and a file may be
 * larger than that.
 *
 * A read costs about half a microsecond whatever its length. For small samples that is as much as
 * the sample itself, so files of small samples are held in memory unless they are large. Files
 * are not mapped: see base/readfile.c.
 */
#include <unistd.h>

#include "data/source.h"

ctn_status ctn__array_file_open(ctn__array_file *f, const char *who, const char *path)
{
    struct stat info = {0};
    *f = (ctn__array_file){.who = who, .fd = -1};
    f->path = ctn__strdup(path);
    if (!f->path) return CTN_ENOMEM;
    CTN_TRY(ctn__file_open(who, path, &f->fd, &info));
    f->bytes = (size_t)info.st_size;
    if (f->bytes == 0) return ctn_fail(CTN_EFORMAT, "%s: %s: is empty", who, path);
    return CTN_OK;
}

ctn_status ctn__array_file_hold(ctn__array_file *f, size_t sample)
{
    if (sample >= CTN__HELD_SAMPLE || f->bytes > CTN__HELD_FILE) return CTN_OK;
    const bool had_error = ctn_error_status() != CTN_OK;
    char *all = ctn__malloc(f->bytes);
    if (!all) { /* read it like a large file */
        if (!had_error) ctn_error_clear();
        return CTN_OK;
    }
    ctn_status st = ctn__file_read(f->who, f->path, f->fd, all, f->bytes, 0);
    if (st < 0) {
        ctn__free(all);
        return st;
    }
    f->held = all;
    close(f->fd);
    f->fd = -1;
    return CTN_OK;
}

ctn_status ctn__array_file_read(const ctn__array_file *f, void *dst, size_t bytes, uint64_t offset)
{
    if (!f->held) return ctn__file_read(f->who, f->path, f->fd, dst, bytes, offset);
    memcpy(dst, f->held + offset, bytes);
    return CTN_OK;
}

void ctn__array_file_close(ctn__array_file *f)
{
    if (f->fd >= 0) close(f->fd);
    ctn__free(f->held);
    ctn__free(f->path);
    *f = (ctn__array_file){.fd = -1};
}
