/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a file atomically, even across a crash: temporary name, fsync, rename, fsync of the
 * folder. Used for every file that the library writes. What is only displayed is not synced, and
 * other files may be synced later.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_DIRECT */
#endif
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

static ctn_status put_now(ctn__newfile *f, const char *p, size_t bytes, uint64_t offset)
{
    const size_t most = (size_t)1 << 30; /* one pwrite takes at most 2 GB */
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

/* ---- past the memory of the system ----------------------------------------------------------- */

enum { STAGED = 8 << 20, BLOCK = 4096 }; /* the disk takes whole blocks from aligned memory */

#ifdef O_DIRECT
static bool set_direct(const ctn__newfile *f, bool on)
{
    const int flags = fcntl(f->fd, F_GETFL);
    return flags >= 0 && fcntl(f->fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}
#else
static bool set_direct(const ctn__newfile *f, bool on)
{
    (void)f, (void)on;
    return false;
}
#endif

void ctn__newfile_direct(ctn__newfile *f)
{
    if (f->staged || !set_direct(f, true)) return;
    (void)set_direct(f, false);
    const bool had_error = ctn_error_status() < 0;
    f->staged = ctn__aligned(STAGED + BLOCK);
    if (!f->staged && !had_error) ctn_error_clear();
    f->held = 0;
}

static char *blocks(const ctn__newfile *f)
{
    return f->staged + (BLOCK - (uintptr_t)f->staged % BLOCK) % BLOCK;
}

/* Writes what is staged: whole blocks directly, the rest as usual. */
static ctn_status flush(ctn__newfile *f)
{
    const char *p = blocks(f);
    size_t whole = f->from % BLOCK == 0 ? f->held / BLOCK * BLOCK : 0;
    ssize_t n = 0;
    if (whole && set_direct(f, true)) n = pwrite(f->fd, p, whole, (off_t)f->from);
    int error = n < 0 && errno != EINVAL && errno != EINTR ? errno : 0;
    if (whole && !set_direct(f, false) && !error) error = errno;
    if (error) return ctn_fail(CTN_EIO, "cannot write %s: %s", f->temporary.s, strerror(error));
    whole = n > 0 ? (size_t)n : 0;
    const size_t rest = f->held - whole;
    f->held = 0;
    return put_now(f, p + whole, rest, f->from + whole);
}

ctn_status ctn__newfile_put(ctn__newfile *f, const void *data, size_t bytes, uint64_t offset)
{
    const char *p = data;
    if (!f->staged) return put_now(f, p, bytes, offset);
    if (f->held > 0 && f->from + f->held != offset) CTN_TRY(flush(f));
    for (size_t n; bytes > 0; p += n, bytes -= n, offset += n) {
        if (f->held == 0) f->from = offset;
        n = STAGED - f->held < bytes ? STAGED - f->held : bytes;
        memcpy(blocks(f) + f->held, p, n);
        f->held += n;
        if (f->held == STAGED) CTN_TRY(flush(f));
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
    if (f->staged) CTN_TRY(flush(f));
    if (!f->quick && fsync(f->fd) != 0)
        return ctn_fail(CTN_EIO, "cannot write %s: %s", f->temporary.s, strerror(errno));
    if (rename(f->temporary.s, f->path) != 0)
        return ctn_fail(CTN_EIO, "cannot rename %s to %s: %s", f->temporary.s, f->path,
                        strerror(errno));
    const bool bad = close(f->fd) != 0 && f->quick; /* otherwise everything is on disk already */
    f->fd = -1;
    if (bad) return ctn_fail(CTN_EIO, "cannot write %s: %s", f->path, strerror(errno));
    if (!f->quick) sync_folder(f->path);
    return CTN_OK;
}

ctn_status ctn__newfile_sync(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool bad = fd < 0 ? errno != ENOENT : fsync(fd) != 0;
    const ctn_status st =
        bad ? ctn_fail(CTN_EIO, "cannot sync %s: %s", path, strerror(errno)) : CTN_OK;
    if (fd >= 0) close(fd);
    sync_folder(path);
    return st;
}

void ctn__newfile_close(ctn__newfile *f)
{
    if (f->fd >= 0) {
        close(f->fd);
        unlink(f->temporary.s);
    }
    f->fd = -1;
    ctn__free(f->staged);
    f->staged = NULL;
    ctn__text_free(&f->temporary);
}
