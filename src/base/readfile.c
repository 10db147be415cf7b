/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads files for datasets, weights and states, completely or in part, never through a mapping. If
 * the disk cannot deliver a mapped page, or another process truncates the file, the program dies
 * from SIGBUS, and a library must not catch signals. pread returns an error instead. Called by
 * loader threads; keeps no state between calls.
 */
#include "base/readfile.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

ctn_status ctn__file_open(const char *who, const char *path, int *fd, struct stat *info)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a pipe */
    if (*fd < 0) return ctn_fail(CTN_EIO, "%s: %s: %s", who, path, strerror(errno));
    ctn_status st = CTN_OK;
    if (fstat(*fd, info) != 0) st = ctn_fail(CTN_EIO, "%s: %s: %s", who, path, strerror(errno));
    else if (!S_ISREG(info->st_mode))
        st = ctn_fail(CTN_EIO, "%s: %s: not a regular file", who, path);
    if (st == CTN_OK) return st;
    close(*fd);
    *fd = -1;
    return st;
}

ctn_status ctn__file_read(const char *who, const char *path, int fd, void *dst, size_t bytes,
                          uint64_t offset)
{
    for (size_t got = 0; got < bytes;) {
        const size_t most = (size_t)1 << 30, rest = bytes - got;
        const uint64_t at = offset + got;
        ssize_t k = pread(fd, (char *)dst + got, rest < most ? rest : most, (off_t)at);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0)
            return ctn_fail(CTN_EIO, "%s: %s: cannot read at byte %llu: %s", who, path,
                            (unsigned long long)at, strerror(errno));
        if (k == 0)
            return ctn_fail(CTN_EIO,
                            "%s: %s: became shorter while it was in use: nothing to read at byte "
                            "%llu",
                            who, path, (unsigned long long)at);
        got += (size_t)k;
    }
    return CTN_OK;
}

ctn_status ctn__file_whole(const char *who, const char *path, size_t most, char **out, size_t *n)
{
    ctn_status st = CTN_OK;
    struct stat info = {0};
    char *text = NULL;
    int fd = -1;
    *out = NULL;
    *n = 0;
    CTN_TRY(ctn__file_open(who, path, &fd, &info));
    const size_t bytes = (size_t)info.st_size;
    if (bytes > most) {
        st = ctn_fail(CTN_EUNSUPPORTED, "%s: %s: the file has %zu bytes, the limit is %zu", who,
                      path, bytes, most);
        goto done;
    }
    text = ctn__malloc(bytes + 1);
    if (!text) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn__file_read(who, path, fd, text, bytes, 0));
    text[bytes] = 0;
    *out = text;
    *n = bytes;
    text = NULL;
done:
    close(fd);
    ctn__free(text);
    return st;
}

ctn_status ctn__file_blame(ctn_status st, const char *who, const char *path)
{
    char text[512]; /* without the trace, which starts on a new line */
    const char *m = ctn_error_message();
    if (st >= 0 || st == CTN_ENOMEM || strstr(m, path)) return st;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(m, "\n"), m);
    ctn_error_clear();
    return ctn_fail(st, "%s: %s: %s", who, path, text[0] ? text : ctn_status_text(st));
}
