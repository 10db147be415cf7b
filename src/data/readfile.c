/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading of files for datasets: whole, in part, mapped. Errors name the file and the system's
 * reason. Called by loader threads; nothing is kept between calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/source.h"

ctn_status ctn__file_open(const char *who, const char *path, int *fd, struct stat *info)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hold us up */
    if (*fd < 0) return ctn_fail(CTN_EIO, "%s: %s: %s", who, path, strerror(errno));
    ctn_status st = CTN_OK;
    if (fstat(*fd, info) != 0) st = ctn_fail(CTN_EIO, "%s: %s: %s", who, path, strerror(errno));
    else if (!S_ISREG(info->st_mode))
        st = ctn_fail(CTN_EIO, "%s: %s: is not a regular file", who, path);
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
        ssize_t k = pread(fd, (char *)dst + got, rest < most ? rest : most, (off_t)(offset + got));
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return ctn_fail(CTN_EIO, "%s: %s: %s", who, path, strerror(errno));
        if (k == 0)
            return ctn_fail(CTN_EIO, "%s: %s: became shorter while it was in use", who, path);
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
        st = ctn_fail(CTN_EUNSUPPORTED, "%s: %s: is %zu bytes, at most %zu are read", who, path,
                      bytes, most);
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

ctn_status ctn__file_map(const char *who, const char *path, const char **map, size_t *n)
{
    struct stat info = {0};
    int fd = -1;
    *map = NULL;
    *n = 0;
    CTN_TRY(ctn__file_open(who, path, &fd, &info));
    if (info.st_size == 0) {
        close(fd);
        return ctn_fail(CTN_EFORMAT, "%s: %s: is empty", who, path);
    }
    void *p = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    if (p == MAP_FAILED) return ctn_fail(CTN_EIO, "%s: %s: %s", who, path, strerror(error));
    *map = p;
    *n = (size_t)info.st_size;
    return CTN_OK;
}

ctn_status ctn__file_blame(ctn_status st, const char *who, const char *path)
{
    char text[512]; /* without the trace, which starts a new line */
    const char *m = ctn_error_message();
    if (st >= 0 || st == CTN_ENOMEM || strstr(m, path)) return st;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(m, "\n"), m);
    ctn_error_clear();
    return ctn_fail(st, "%s: %s: %s", who, path, text[0] ? text : ctn_status_text(st));
}
