/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a file atomically, even across a crash: temporary name, fsync, rename, fsync of the
 * folder. Used for every file that the library writes.
 */
#include "base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Not mkstemp: it makes files that only the owner can read, and there is no safe way to read the
 * umask. */
ctn_status ctn__newfile_open(ctn__newfile *f, const char *path)
{
    f->path = path;
    f->at = 0;
    for (int i = 0; i < 1000; i++) {
        f->temporary.n = 0;
        ctn__text_add(&f->temporary, "%s.tmp-%ld-%d", path, (long)getpid(), i);
        if (f->temporary.failed) return CTN_ENOMEM;
        f->fd = open(f->temporary.s, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0) return CTN_OK;
        if (errno != EEXIST) break;
    }
    return ctn_fail(CTN_EIO, "cannot create %s: %s", f->temporary.s, strerror(errno));
}

ctn_status ctn__newfile_put(ctn__newfile *f, const void *data, size_t bytes, uint64_t offset)
{
    const size_t most = (size_t)1 << 30; /* one pwrite takes at most 2 GB */
    const char *p = data;
    while (bytes) {
        ssize_t n = pwrite(f->fd, p, bytes < most ? bytes : most, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ctn_fail(CTN_EIO, "cannot write %s: %s", f->temporary.s, strerror(errno));
        p += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return CTN_OK;
}

ctn_status ctn__newfile_write(ctn__newfile *f, const void *data, size_t bytes)
{
    CTN_TRY(ctn__newfile_put(f, data, bytes, f->at));
    f->at += bytes;
    return CTN_OK;
}

/* Makes the rename itself durable. A folder that cannot be synced is not an error, because the file
 * is complete. */
static void sync_folder(const char *path)
{
    ctn__text folder = {0};
    const char *slash = strrchr(path, '/');
    if (!slash) ctn__text_add(&folder, ".");
    else ctn__text_add(&folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    int fd = folder.failed ? -1 : open(folder.s, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    ctn__text_free(&folder);
}

ctn_status ctn__newfile_commit(ctn__newfile *f)
{
    if (fsync(f->fd) != 0)
        return ctn_fail(CTN_EIO, "cannot write %s: %s", f->temporary.s, strerror(errno));
    if (rename(f->temporary.s, f->path) != 0)
        return ctn_fail(CTN_EIO, "cannot rename %s to %s: %s", f->temporary.s, f->path,
                        strerror(errno));
    close(f->fd); /* everything is on disk already */
    f->fd = -1;
    sync_folder(f->path);
    return CTN_OK;
}

void ctn__newfile_close(ctn__newfile *f)
{
    if (f->fd >= 0) {
        close(f->fd);
        unlink(f->temporary.s);
    }
    f->fd = -1;
    ctn__text_free(&f->temporary);
}
