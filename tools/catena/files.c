/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that the command writes and removes in folders which may come from somebody else, such as
 * a copied result folder. A link there could lead to any file of the user, so nothing is written,
 * emptied or removed through one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/train.h>

#include "cli.h"

const char *join(char *buf, size_t n, const char *folder, const char *name)
{
    int k = snprintf(buf, n, "%s/%s", folder, name);
    if (!folder[0] || k < 0 || (size_t)k >= n) buf[0] = 0;
    return buf;
}

bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

bool is_found(const char *path)
{
    enum { MOST = 256 << 20 };
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= MOST &&
           access(path, R_OK) == 0;
}

FILE *open_regular(const char *path)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a pipe */
    const bool good = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    FILE *f = good ? fdopen(fd, "rb") : NULL;
    if (f || fd < 0) return f;
    close(fd);
    errno = EINVAL;
    return NULL;
}

bool is_onnx_name(const char *path)
{
    return strlen(path) > 5 && ends_with(path, ".onnx");
}

bool names_array(const char *path)
{
    static const char *const whole[] = {".npy", ".npz", ".h5", ".hdf5", ".nc", ".nc4"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (ends_with(path, whole[i])) return true;
    static const char *const parts[] = {".h5:", ".hdf5:", ".nc:", ".nc4:"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(path, parts[i])) return true;
    return false;
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char *unfinished(char *buf, size_t n, const char *path)
{
    snprintf(buf, n, "%s.part", path);
    return buf;
}

ctn_status file_open(FILE **f, const char *path)
{
    char part[PATH_MAX];
    unlink(unfinished(part, sizeof part, path)); /* what a killed process left, or a link */
    const int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (*f) return CTN_OK;
    ctn_status st = ctn_fail(CTN_EIO, "cannot write %s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return st;
}

ctn_status file_close(FILE *f, const char *path)
{
    char part[PATH_MAX];
    unfinished(part, sizeof part, path);
    bool bad = fflush(f) != 0 || fsync(fileno(f)) != 0 || ferror(f);
    if (fclose(f) != 0 || bad || rename(part, path) != 0) {
        ctn_status st = ctn_fail(CTN_EIO, "cannot write %s: %s", path, strerror(errno));
        unlink(part);
        return st;
    }
    return CTN_OK;
}

/* ---- removing -------------------------------------------------------------------------------- */

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Removes what is in a folder, and closes it. Of links, only the links. ours NULL: everything,
 * with folders. */
static void empty(int fd, bool (*ours)(const char *name))
{
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0) close(fd);
    for (const struct dirent *e; d && (e = readdir(d));) {
        const char *name = e->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || (ours && !ours(name))) continue;
        if (unlinkat(fd, name, 0) == 0 || ours) continue;
        empty(open_folder(fd, name), NULL);
        (void)unlinkat(fd, name, AT_REMOVEDIR);
    }
    if (d) closedir(d);
}

void remove_tree(const char *path)
{
    empty(open_folder(AT_FDCWD, path), NULL);
    (void)rmdir(path);
}

static bool is_file_of_state(const char *name)
{
    static const char *const names[] = {"manifest.txt", "trainer.txt", "decisions.txt", "test.txt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return ends_with(name, ".safetensors") || ends_with(name, ".json");
}

static ctn_status refuse_state(const char *path)
{
    return ctn_fail(CTN_EARG,
                    "cannot remove the saved state %s: expected a folder that contains only the "
                    "files of a state, and no link; remove it yourself, or use another --out",
                    path);
}

static ctn_status check_state(void *unused, const ctn_state_info *s)
{
    const int fd = open_folder(AT_FDCWD, s->path);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    bool good = d != NULL;
    (void)unused;
    if (!d && fd >= 0) close(fd);
    for (const struct dirent *e; d && (e = readdir(d));) {
        struct stat info;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        good = good && is_file_of_state(e->d_name) &&
               fstatat(fd, e->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(info.st_mode);
    }
    if (d) closedir(d);
    return good ? CTN_OK : refuse_state(s->path);
}

static ctn_status remove_state(void *unused, const ctn_state_info *s)
{
    (void)unused;
    empty(open_folder(AT_FDCWD, s->path), is_file_of_state);
    return rmdir(s->path) == 0 ? CTN_OK : refuse_state(s->path);
}

/* All are checked before one is removed. */
ctn_status remove_states(const char *path)
{
    ctn_status st = ctn_states_visit(path, check_state, NULL);
    if (st == CTN_OK) st = ctn_states_visit(path, remove_state, NULL);
    if (st != CTN_ENOTFOUND) return st;
    ctn_error_clear();
    return CTN_OK;
}
