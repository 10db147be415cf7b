/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbered folders that are written atomically. Files are written to a folder with a temporary
 * name, and a list of their sizes and hashes is written last. Then the files and the folder are
 * synced, the folder is renamed to the next number, and its parent is synced. A process killed
 * at any moment leaves the earlier folders intact. A reader takes the highest number whose files
 * match their list, so that a disk error costs one state and not the whole training.
 */
#include "train/train.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/newfile.h"

#define LIST "files.txt"
#define MAGIC "catena-state 1\n"
#define UNFINISHED "unfinished-"
enum { DIGITS = 9, KEPT = 2 };

static ctn_status failed(const char *what, const char *path)
{
    return ctn_fail(CTN_EIO, "state: cannot %s %s: %s", what, path, strerror(errno));
}

/* ---- names ----------------------------------------------------------------------------------- */

static int64_t number_of(const char *name)
{
    if (strlen(name) != DIGITS || strspn(name, "0123456789") != DIGITS) return -1;
    return strtoll(name, NULL, 10);
}

/* The largest number below `below`; -1: none. */
static int64_t largest(const char *dir, int64_t below)
{
    int64_t most = -1;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        int64_t n = number_of(e->d_name);
        if (n > most && n < below) most = n;
    }
    if (d) closedir(d);
    return most;
}

static ctn_status path_of(ctn__text *out, const char *dir, int64_t n)
{
    out->n = 0;
    ctn__text_add(out, "%s/%0*lld", dir, DIGITS, (long long)n);
    return out->failed ? CTN_ENOMEM : CTN_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 20 };

/* Calls fn with the bytes of a file, a chunk at a time. The file is read and not mapped, so that
 * a disk error is reported as an error instead of a signal. On failure returns false and sets
 * errno. */
static bool read_file(const char *path, char *chunk,
                      bool (*fn)(void *user, const char *p, size_t n), void *user)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not hang on a pipe */
    if (fd < 0) return false;
    errno = EINVAL;
    bool ok = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    for (ssize_t k = 1; ok && k != 0;) {
        k = read(fd, chunk, CHUNK);
        if (k < 0 && errno == EINTR) continue;
        ok = k == 0 || (k > 0 && fn(user, chunk, (size_t)k));
    }
    int error = errno;
    close(fd);
    errno = error;
    return ok;
}

static bool add_text(void *user, const char *p, size_t n)
{
    ctn__text *t = user;
    ctn__text_add(t, "%.*s", (int)n, p);
    errno = ENOMEM;
    return !t->failed;
}

ctn_status ctn__numbered_read(const char *path, const char *file, char **text, size_t *n)
{
    ctn_status st = CTN_OK;
    ctn__text full = {0}, all = {0};
    char *chunk = ctn__malloc(CHUNK);
    *text = NULL;
    ctn__text_add(&full, "%s/%s", path, file);
    if (full.failed || !chunk) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    ctn__text_add(&all, "%s", ""); /* an empty file gives an empty text, not NULL */
    const bool ok = read_file(full.s, chunk, add_text, &all);
    if (all.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    if (!ok) CTN_TRY_GOTO(st, done, failed("read", full.s));
    *text = all.s;
    *n = all.n;
    all = (ctn__text){0};
done:
    ctn__free(chunk);
    ctn__text_free(&all);
    ctn__text_free(&full);
    return st;
}

ctn_status ctn__numbered_write(const char *path, const char *file, const ctn__text *text)
{
    ctn_status st = CTN_OK;
    ctn__text full = {0};
    ctn__newfile f = {.fd = -1};
    ctn__text_add(&full, "%s/%s", path, file);
    if (full.failed || text->failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn__newfile_open(&f, full.s));
    CTN_TRY_GOTO(st, done, ctn__newfile_write(&f, text->s, text->n));
    CTN_TRY_GOTO(st, done, ctn__newfile_commit(&f));
done:
    ctn__newfile_close(&f);
    ctn__text_free(&full);
    return st;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Buffers for describing files. */
typedef struct {
    char *chunk;
    ctn__hasher *hash;
    ctn__text full;
    size_t bytes;
} reader;

static bool reader_make(reader *r)
{
    *r = (reader){.chunk = ctn__malloc(CHUNK), .hash = ctn__hasher_new()};
    return r->chunk && r->hash;
}

static void reader_free(reader *r)
{
    ctn__free(r->chunk);
    ctn__hasher_free(r->hash);
    ctn__text_free(&r->full);
}

static bool add_bytes(void *user, const char *p, size_t n)
{
    reader *r = user;
    ctn__hasher_add(r->hash, p, n);
    r->bytes += n;
    return true;
}

/* Adds the list entry of a file: its name, size and hash. On failure returns false and sets
 * errno. */
static bool describe(const char *path, const char *file, reader *r, ctn__text *out)
{
    r->full.n = r->bytes = 0;
    ctn__hasher_reset(r->hash);
    ctn__text_add(&r->full, "%s/%s", path, file);
    if (r->full.failed || !read_file(r->full.s, r->chunk, add_bytes, r)) return false;
    const ctn__hash128 h = ctn__hasher_value(r->hash);
    ctn__text_add(out, "%s\t%zu\t%016llx%016llx\n", file, r->bytes, (unsigned long long)h.hi,
                  (unsigned long long)h.lo);
    return true;
}

static ctn_status write_list(const char *path)
{
    ctn__text out = {0};
    reader r;
    ctn_status st = reader_make(&r) ? CTN_OK : CTN_ENOMEM;
    DIR *d = opendir(path);
    if (!d && st == CTN_OK) st = failed("read the folder", path);
    ctn__text_add(&out, MAGIC);
    for (const struct dirent *e; d && st == CTN_OK && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        if (!describe(path, e->d_name, &r, &out))
            st = r.full.failed ? CTN_ENOMEM : failed("read", r.full.s);
    }
    if (d) closedir(d);
    if (st == CTN_OK) st = ctn__numbered_write(path, LIST, &out);
    reader_free(&r);
    ctn__text_free(&out);
    return st;
}

/* Do all files match the list? 1, 0, or ENOMEM. */
static int whole(const char *path)
{
    char *list = NULL;
    size_t n = 0;
    const bool had_error = ctn_error_status() < 0;
    ctn_status st = ctn__numbered_read(path, LIST, &list, &n);
    if (st == CTN_EIO && !had_error) ctn_error_clear();
    if (st < 0) return st == CTN_EIO ? 0 : CTN_ENOMEM;
    ctn__text out = {0};
    reader r;
    const bool room = reader_make(&r);
    int ok = room && strncmp(list, MAGIC, strlen(MAGIC)) == 0;
    char *line = list + (ok ? strlen(MAGIC) : 0), *end;
    for (; ok && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        char name[64];
        out.n = 0;
        size_t k = strcspn(line, "\t/");
        ok = k > 0 && k < sizeof name && line[k] == '\t';
        if (!ok) break;
        memcpy(name, line, k);
        name[k] = 0;
        ok = describe(path, name, &r, &out) && !out.failed &&
             strncmp(out.s, line, strlen(line)) == 0 && out.n == strlen(line) + 1;
    }
    ok &= *line == 0 && line > list + strlen(MAGIC);
    if (!room || r.full.failed || out.failed) ok = CTN_ENOMEM;
    reader_free(&r);
    ctn__text_free(&out);
    ctn__free(list);
    return ok;
}

/* ---- write ----------------------------------------------------------------------------------- */

static ctn_status sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return failed("open", path);
    /* some file systems cannot sync folders, and say so */
    bool ok = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
    if (!ok) failed("sync", path);
    close(fd);
    return ok ? CTN_OK : CTN_EIO;
}

void ctn__numbered_drop(const char *path)
{
    ctn__text full = {0};
    DIR *d = path ? opendir(path) : NULL;
    if (!d) return;
    ctn__text_add(&full, "%s/" LIST, path);
    if (!full.failed) unlink(full.s); /* first, so that the rest never looks like a valid state */
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        full.n = 0;
        ctn__text_add(&full, "%s/%s", path, e->d_name);
        if (!full.failed) unlink(full.s);
    }
    closedir(d);
    rmdir(path);
    ctn__text_free(&full);
}

/* Removes what killed processes left behind, and folders with numbers up to `last`. */
static void prune(const char *dir, int64_t last)
{
    ctn__text full = {0};
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        const int64_t n = number_of(e->d_name);
        const bool old = n >= 0 && n <= last;
        if (!old && strncmp(e->d_name, UNFINISHED, strlen(UNFINISHED)) != 0) continue;
        full.n = 0;
        ctn__text_add(&full, "%s/%s", dir, e->d_name);
        if (!full.failed) ctn__numbered_drop(full.s);
    }
    if (d) closedir(d);
    ctn__text_free(&full);
}

ctn_status ctn__numbered_begin(ctn__text *path, const char *dir)
{
    ctn_status st = ctn__make_folder(dir, 0777);
    if (st == CTN_EIO) return failed("create the folder", dir);
    CTN_TRY(st);
    prune(dir, -1);
    ctn__text_add(path, "%s/" UNFINISHED "%ld", dir, (long)getpid());
    if (path->failed) return CTN_ENOMEM;
    if (mkdir(path->s, 0777) != 0) return failed("create the folder", path->s);
    return CTN_OK;
}

ctn_status ctn__numbered_commit(const char *path, const char *dir)
{
    ctn_status st = CTN_OK;
    ctn__text to = {0};
    const int64_t number = largest(dir, INT64_MAX) + 1;
    CTN_TRY_GOTO(st, done, write_list(path));
    CTN_TRY_GOTO(st, done, sync_folder(path));
    CTN_TRY_GOTO(st, done, path_of(&to, dir, number));
    if (rename(path, to.s) != 0) CTN_TRY_GOTO(st, done, failed("rename to", to.s));
    CTN_TRY_GOTO(st, done, sync_folder(dir));
    prune(dir, number - KEPT);
done:
    ctn__text_free(&to);
    return st;
}

/* ---- read ------------------------------------------------------------------------------------ */

/* Failing to rename the folder is harmless. */
static void put_aside(const char *path, const char *dir, int64_t n)
{
    ctn__text to = {0};
    ctn__text_add(&to, "%s/damaged-%0*lld", dir, DIGITS, (long long)n);
    if (!to.failed) (void)rename(path, to.s);
    ctn__text_free(&to);
}

ctn_status ctn__numbered_latest(ctn__text *path, const char *dir)
{
    int64_t n = largest(dir, INT64_MAX);
    if (n < 0) return ctn_fail(CTN_ENOTFOUND, "state: found none in %s", dir);
    for (; n >= 0; n = largest(dir, n)) {
        CTN_TRY(path_of(path, dir, n));
        const int ok = whole(path->s);
        if (ok < 0) return CTN_ENOMEM;
        if (ok > 0) return CTN_OK;
        ctn__warn("the state %s is damaged; looking for an older one", path->s);
        put_aside(path->s, dir, n);
    }
    return ctn_fail(CTN_EFORMAT, "state: every state in %s is damaged", dir);
}
