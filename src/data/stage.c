/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies shards to node-local storage. A copy is recognised by the size and time of its original,
 * and is written atomically. One process of a node copies a shard while the others wait. A
 * process that got the size and time from another rank does not access the original if there is a
 * copy. A copy is believed, so it lies in a folder that only this user can change, and must itself
 * be the user's.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/newfile.h"
#include "data/source.h"

enum { PIECE = 4 << 20 };

static ctn_status copy(const char *from, const char *to, int fd, const struct stat *info)
{
    ctn_status st = CTN_OK;
    ctn__newfile f = {.fd = -1};
    char *piece = ctn__malloc(PIECE);
    if (!piece) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__newfile_open(&f, to));
    if (fchmod(f.fd, 0600) != 0) /* whatever the umask is, see `same` */
        CTN_TRY_GOTO(st, done, ctn_fail(CTN_EIO, "stage: %s: %s", to, strerror(errno)));
    for (uint64_t at = 0, all = (uint64_t)info->st_size; at < all;) {
        const size_t n = all - at < PIECE ? (size_t)(all - at) : PIECE;
        CTN_TRY_GOTO(st, done, ctn__file_read("stage", from, fd, piece, n, at));
        CTN_TRY_GOTO(st, done, ctn__newfile_write(&f, piece, n));
        at += n;
    }
    if (futimens(f.fd, (struct timespec[]){info->st_atim, info->st_mtim}) != 0)
        CTN_TRY_GOTO(st, done, ctn_fail(CTN_EIO, "stage: %s: %s", to, strerror(errno)));
    CTN_TRY_GOTO(st, done, ctn__newfile_commit(&f));
done:
    ctn__newfile_close(&f);
    ctn__free(piece);
    return st;
}

static bool same(const char *path, const struct stat *info)
{
    struct stat there;
    return lstat(path, &there) == 0 && S_ISREG(there.st_mode) && ctn__is_private(&there) &&
           there.st_size == info->st_size && there.st_mtim.tv_sec == info->st_mtim.tv_sec &&
           there.st_mtim.tv_nsec == info->st_mtim.tv_nsec;
}

/* A folder that others can change, such as /tmp or one for all users of a site, gets a folder
 * below it for each user. */
static ctn_status private_in(ctn__arena *mem, const char *dir, const char **own)
{
    *own = dir;
    if (access(dir, F_OK) == 0 && !ctn__private_folder(dir))
        *own = ctn__arena_printf(mem, "%s/catena-%ld", dir, (long)geteuid());
    return *own ? ctn__need_private("stage", *own) : CTN_ENOMEM;
}

/* dir/HASH-NAME, so that files of the same name in different folders do not collide. Links in the
 * path are not resolved, because that would access the shared file system. */
static const char *local_name(ctn__arena *mem, const char *path, const char *dir)
{
    char here[PATH_MAX] = "";
    const char *slash = strrchr(path, '/');
    const bool relative = path[0] != '/' && getcwd(here, sizeof here);
    const char *full = relative ? ctn__arena_printf(mem, "%s/%s", here, path) : path;
    if (!full) return NULL;
    return ctn__arena_printf(mem, "%s/%016llx-%s", dir,
                             (unsigned long long)ctn__hash(full, strlen(full)).lo,
                             slash ? slash + 1 : path);
}

ctn_status ctn__stage(ctn__arena *mem, const char *path, const char *dir,
                      const ctn__shard_head *known, const char **local)
{
    ctn_status st = CTN_OK;
    struct stat info = {0};
    int fd = -1, lock = -1;
    CTN_TRY(private_in(mem, dir, &dir));
    const char *to = local_name(mem, path, dir);
    const char *lock_path = to ? ctn__arena_printf(mem, "%s.lock", to) : NULL;
    if (!lock_path) return CTN_ENOMEM;
    *local = to;
    if (known) {
        info.st_size = (off_t)known->tar_bytes;
        info.st_mtim = (struct timespec){(time_t)known->tar_s, (long)known->tar_ns};
        if (same(to, &info)) return CTN_OK;
    }
    CTN_TRY(ctn__file_open("stage", path, &fd, &info));
    if (!same(to, &info)) {
        /* If locks do not work, every process copies for itself, which is harmless. */
        lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        while (lock >= 0 && flock(lock, LOCK_EX) != 0 && errno == EINTR) continue;
        if (!same(to, &info)) CTN_TRY_GOTO(st, done, copy(path, to, fd, &info));
    }
done:
    if (lock >= 0) close(lock);
    close(fd);
    return st;
}
