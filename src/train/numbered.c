/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbered folders that appear whole or not at all. Files are written to a folder under another name;
 * a list of their sizes and hashes comes last; files and folder are synced, the folder renamed to the next
 * number, and the folder around it synced. A kill at any moment leaves the numbers before it as they were.
 * A reader takes the largest number whose files are as its list says, so that a damaged disk costs one
 * state and not the training.
 */
#include "train/train.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
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

/* The largest number below `below`, -1: none. */
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

typedef struct {
    const void *p;
    size_t n;
} mapping;

/* errno says why not. */
static bool map(const char *path, mapping *m)
{
    struct stat info;
    *m = (mapping){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool ok = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    if (ok && info.st_size > 0) {
        void *p = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        ok = p != MAP_FAILED;
        *m = (mapping){ok ? p : NULL, ok ? (size_t)info.st_size : 0};
    }
    int error = errno;
    close(fd);
    errno = error;
    return ok;
}

static void unmap(mapping *m)
{
    if (m->p) munmap((void *)m->p, m->n);
}

ctn_status ctn__numbered_read(const char *path, const char *file, char **text, size_t *n)
{
    ctn_status st = CTN_OK;
    ctn__text full = {0};
    mapping m = {0};
    *text = NULL;
    ctn__text_add(&full, "%s/%s", path, file);
    if (full.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    if (!map(full.s, &m)) CTN_TRY_GOTO(st, done, failed("read", full.s));
    *text = ctn__malloc(m.n + 1);
    if (!*text) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    if (m.n > 0) memcpy(*text, m.p, m.n);
    (*text)[m.n] = 0;
    *n = m.n;
done:
    unmap(&m);
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

/* size and hash of a file as text of the list; false with errno. */
static bool describe(const char *path, const char *file, ctn__text *full, ctn__text *out)
{
    mapping m;
    full->n = 0;
    ctn__text_add(full, "%s/%s", path, file);
    if (full->failed || !map(full->s, &m)) return false;
    const ctn__hash128 h = ctn__hash(m.p ? m.p : "", m.n);
    ctn__text_add(out, "%s\t%zu\t%016llx%016llx\n", file, m.n, (unsigned long long)h.hi,
                  (unsigned long long)h.lo);
    unmap(&m);
    return true;
}

static ctn_status write_list(const char *path)
{
    ctn_status st = CTN_OK;
    ctn__text full = {0}, out = {0};
    DIR *d = opendir(path);
    if (!d) return failed("read the folder", path);
    ctn__text_add(&out, MAGIC);
    for (const struct dirent *e; st == CTN_OK && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        if (!describe(path, e->d_name, &full, &out))
            st = full.failed ? CTN_ENOMEM : failed("read", full.s);
    }
    closedir(d);
    if (st == CTN_OK) st = ctn__numbered_write(path, LIST, &out);
    ctn__text_free(&full);
    ctn__text_free(&out);
    return st;
}

/* Is every file as the list says? 1, 0, or ENOMEM. */
static int whole(const char *path)
{
    char *list = NULL;
    size_t n = 0;
    const bool had_error = ctn_error_status() < 0;
    ctn_status st = ctn__numbered_read(path, LIST, &list, &n);
    if (st == CTN_EIO && !had_error) ctn_error_clear();
    if (st < 0) return st == CTN_EIO ? 0 : CTN_ENOMEM;
    ctn__text full = {0}, out = {0};
    int ok = strncmp(list, MAGIC, strlen(MAGIC)) == 0;
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
        ok = describe(path, name, &full, &out) && !out.failed &&
             strncmp(out.s, line, strlen(line)) == 0 && out.n == strlen(line) + 1;
    }
    ok &= *line == 0 && line > list + strlen(MAGIC);
    if (full.failed || out.failed) ok = CTN_ENOMEM;
    ctn__text_free(&full);
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
    if (!full.failed) unlink(full.s); /* first: what remains is then no whole folder */
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

/* What kills left behind, and numbers up to `last`. */
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
    if (st == CTN_EIO) return failed("make the folder", dir);
    CTN_TRY(st);
    prune(dir, -1);
    ctn__text_add(path, "%s/" UNFINISHED "%ld", dir, (long)getpid());
    if (path->failed) return CTN_ENOMEM;
    if (mkdir(path->s, 0777) != 0) return failed("make the folder", path->s);
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

/* A folder that cannot be renamed is nobody's problem. */
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
    if (n < 0) return ctn_fail(CTN_ENOTFOUND, "state: there is none in %s", dir);
    for (; n >= 0; n = largest(dir, n)) {
        CTN_TRY(path_of(path, dir, n));
        const int ok = whole(path->s);
        if (ok < 0) return CTN_ENOMEM;
        if (ok > 0) return CTN_OK;
        ctn__warn("the state %s is damaged; an older one is looked for", path->s);
        put_aside(path->s, dir, n);
    }
    return ctn_fail(CTN_EFORMAT, "state: every state in %s is damaged", dir);
}
