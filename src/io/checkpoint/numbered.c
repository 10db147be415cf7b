/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbered folders that appear atomically. Files are written to a folder with a temporary name,
 * and the manifest last. Then the folder is synced, renamed to the next number, and its parent is
 * synced. A process killed at any moment leaves the earlier folders intact.
 *
 * Parts of a split communicator would remove what the others are writing, and load their values. So
 * before a part writes anything, it puts up a sign, an empty folder whose name tells the family of
 * parts and the part, and takes it down again if there is a sign of another part. Of two that do so
 * at the same moment, both may fail, but never none. Signs of other families are of earlier jobs.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/newfile.h"
#include "base/readfile.h"
#include "comm/comm.h"
#include "io/checkpoint/checkpoint.h"

#define UNFINISHED "unfinished-"
#define REMOVED "removed-"
#define SIGN "group-"
enum { DIGITS = 9, HEX = 16, TEXT_MOST = 1 << 30, NUMBER_MOST = 999999999 };

static ctn_status failed(const char *what, const char *path)
{
    return ctn_fail(CTN_EIO, "checkpoint: cannot %s %s: %s", what, path, strerror(errno));
}

/* ---- names ----------------------------------------------------------------------------------- */

static int64_t number_of(const char *name)
{
    if (strlen(name) != DIGITS || strspn(name, "0123456789") != DIGITS) return -1;
    return strtoll(name, NULL, 10);
}

int64_t ctn__numbered_below(const char *dir, int64_t below)
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

ctn_status ctn__numbered_path(ctn__text *out, const char *dir, int64_t number)
{
    out->n = 0;
    ctn__text_add(out, "%s/%0*lld", dir, DIGITS, (long long)number);
    return out->failed ? CTN_ENOMEM : CTN_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

ctn_status ctn__numbered_read(const char *path, const char *file, char **text)
{
    ctn__text full = {0};
    size_t n = 0;
    *text = NULL;
    ctn__text_add(&full, "%s/%s", path, file);
    ctn_status st =
        full.failed ? CTN_ENOMEM : ctn__file_whole("checkpoint", full.s, TEXT_MOST, text, &n);
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

/* ---- making and removing --------------------------------------------------------------------- */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static bool digits(const char *s)
{
    return s[0] != 0 && s[strspn(s, "0123456789")] == 0;
}

/* Files of a state (checkpoint.h), complete or with the temporary name of newfile.c. */
static bool is_file_of_state(const char *name)
{
    static const char *const ends[] = {".safetensors", ".json", ".txt"};
    const char *tmp = strstr(name, ".tmp-");
    const size_t n = tmp ? (size_t)(tmp - name) : strlen(name);
    if (tmp && tmp[5 + strspn(tmp + 5, "0123456789-")] != 0) return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t m = strlen(ends[i]);
        if (n > m && memcmp(name + n - m, ends[i], m) == 0) return true;
    }
    return false;
}

/* The manifest goes first, so that the rest never looks like a checkpoint. */
void ctn__numbered_drop(const char *path)
{
    if (path) (void)ctn__remove_folder(path, CTN__CKPT_MANIFEST, is_file_of_state);
}

static bool is_real_folder(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Without its number the folder cannot be taken for a damaged checkpoint, should this process be
 * killed while it removes the files. */
ctn_status ctn__numbered_remove(const char *dir, int64_t number)
{
    ctn__text from = {0}, to = {0};
    ctn_status st = ctn__numbered_path(&from, dir, number);
    ctn__text_add(&to, "%s/" REMOVED "%0*lld", dir, DIGITS, (long long)number);
    if (to.failed) st = CTN_ENOMEM;
    if (st == CTN_OK && is_real_folder(from.s))
        ctn__numbered_drop(rename(from.s, to.s) == 0 ? to.s : from.s);
    if (st == CTN_OK && access(from.s, F_OK) == 0)
        st = ctn_fail(CTN_EIO,
                      "checkpoint: cannot remove %s: expected a folder with the files of a state, "
                      "and no link",
                      from.s);
    ctn__text_free(&from);
    ctn__text_free(&to);
    return st;
}

/* Whether a killed process left this name behind. */
static bool is_left(const char *name)
{
    return (begins(name, UNFINISHED) && digits(name + strlen(UNFINISHED))) ||
           (begins(name, REMOVED) && number_of(name + strlen(REMOVED)) >= 0);
}

/* Removes what killed processes left behind, and folders with numbers up to `last`. */
static void prune(const char *dir, int64_t last)
{
    ctn__text full = {0};
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        const int64_t n = number_of(e->d_name);
        if (n >= 0 && n <= last && ctn__numbered_remove(dir, n) < 0) ctn_error_clear();
        if (!is_left(e->d_name)) continue;
        full.n = 0;
        ctn__text_add(&full, "%s/%s", dir, e->d_name);
        if (!full.failed) ctn__numbered_drop(full.s);
    }
    if (d) closedir(d);
    ctn__text_free(&full);
}

/* ---- signs ----------------------------------------------------------------------------------- */

typedef struct {
    char own[40];                       /* the name of this part's sign; empty: it has none */
    char family[sizeof SIGN + HEX + 1]; /* how those of all its parts begin */
} sign;

static sign sign_of(const ctn_comm *c)
{
    sign s = {.own = ""};
    if (!c || c->family == 0) return s;
    snprintf(s.family, sizeof s.family, SIGN "%0*llx-", HEX, (unsigned long long)c->family);
    snprintf(s.own, sizeof s.own, "%s%0*llx", s.family, HEX, (unsigned long long)c->member);
    return s;
}

static bool is_sign(const char *name)
{
    const char *p = name + strlen(SIGN);
    return begins(name, SIGN) && strlen(p) == 2 * HEX + 1 && p[HEX] == '-' &&
           strspn(p, "0123456789abcdef") == HEX && strspn(p + HEX + 1, "0123456789abcdef") == HEX;
}

/* Is there a sign of another part? Removes those of other families. */
static bool is_taken(const char *dir, const sign *s)
{
    bool taken = false;
    ctn__text full = {0};
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (!is_sign(e->d_name) || strcmp(e->d_name, s->own) == 0) continue;
        full.n = 0;
        ctn__text_add(&full, "%s/%s", dir, e->d_name);
        if (s->own[0] && begins(e->d_name, s->family)) taken = true;
        else if (!full.failed) (void)rmdir(full.s);
    }
    if (d) closedir(d);
    ctn__text_free(&full);
    return taken;
}

static ctn_status put_up(const char *dir, const ctn_comm *c)
{
    const sign s = sign_of(c);
    ctn__text full = {0};
    ctn_status st = CTN_OK;
    ctn__text_add(&full, "%s/%s", dir, s.own);
    if (full.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    const bool made = s.own[0] && mkdir(full.s, 0777) == 0;
    if (s.own[0] && !made && errno != EEXIST)
        CTN_TRY_GOTO(st, done, failed("create the folder", full.s));
    if (s.own[0] && !made) goto done; /* it is there since an earlier save */
    if (!is_taken(dir, &s)) goto done;
    (void)rmdir(full.s);
    st =
        ctn_fail(CTN_EARG,
                 "checkpoint: another group of ranks of this job saves its states in %s: give each "
                 "group a folder of its own",
                 dir);
done:
    ctn__text_free(&full);
    return st;
}

ctn_status ctn__numbered_begin(ctn__text *path, const char *dir, const ctn_comm *c)
{
    ctn_status st = ctn__make_folder(dir, 0777);
    if (st == CTN_EIO) return failed("create the folder", dir);
    CTN_TRY(st);
    CTN_TRY(put_up(dir, c));
    prune(dir, -1);
    path->n = 0;
    ctn__text_add(path, "%s/" UNFINISHED "%ld", dir, (long)getpid());
    if (path->failed) return CTN_ENOMEM;
    if (mkdir(path->s, 0777) != 0) return failed("create the folder", path->s);
    return CTN_OK;
}

/* Folders below the last `keep`. */
static void prune_old(const char *dir, int64_t keep)
{
    int64_t n = INT64_MAX;
    for (int64_t i = 0; i < keep && n >= 0; i++) n = ctn__numbered_below(dir, n);
    if (n > 0) prune(dir, ctn__numbered_below(dir, n));
}

ctn_status ctn__numbered_publish(const char *path, const char *dir, const ctn__text *manifest,
                                 int64_t keep, int64_t *number)
{
    ctn_status st = CTN_OK;
    ctn__text to = {0};
    *number = ctn__numbered_below(dir, INT64_MAX) + 1;
    if (*number > NUMBER_MOST)
        CTN_TRY_GOTO(st, done,
                     ctn_fail(CTN_EIO,
                              "checkpoint: %s has the state %d, and no number after it: remove it",
                              dir, (int)NUMBER_MOST));
    CTN_TRY_GOTO(st, done, ctn__numbered_write(path, CTN__CKPT_MANIFEST, manifest));
    CTN_TRY_GOTO(st, done, sync_folder(path));
    CTN_TRY_GOTO(st, done, ctn__numbered_path(&to, dir, *number));
    if (rename(path, to.s) != 0) CTN_TRY_GOTO(st, done, failed("rename to", to.s));
    CTN_TRY_GOTO(st, done, sync_folder(dir));
    prune_old(dir, keep);
done:
    ctn__text_free(&to);
    return st;
}

/* Failing to rename the folder is harmless. */
void ctn__numbered_put_aside(const char *path, const char *dir, int64_t number)
{
    ctn__text to = {0};
    ctn__text_add(&to, "%s/damaged-%0*lld", dir, DIGITS, (long long)number);
    if (!to.failed) (void)rename(path, to.s);
    ctn__text_free(&to);
}
