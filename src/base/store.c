/* SPDX-License-Identifier: Apache-2.0
 *
 * Tuning results on disk: a folder of files named tune-<hash of the machine>.txt. Each file is
 *
 *   catena-tune 1<TAB>machine
 *   key<TAB>value                  any number of them
 *
 * in printable ASCII. It is replaced atomically, so a reader never sees a partial file.
 *
 * Invariant: a file is used completely or not at all. Nothing here trusts its contents: sizes are
 * bounded, keys are hashed, and files with other names are never touched. A disk problem never
 * stops the program.
 */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <catena/tune.h>

#define MAGIC "catena-tune 1"
#define PREFIX "tune-"
#define SUFFIX ".txt"
#define HEX 32 /* digits of a 128-bit hash */
#define MAX_BYTES ((int64_t)64 << 20)
#define MAX_FILES 100

/* ---- entries in memory: a vector and an open hash table of positions in it ------------------ */

typedef struct {
    const char *key, *value;
    bool fresh; /* not on disk yet */
} entry;

typedef struct {
    ctn__arena mem;
    CTN__VEC(entry) entries;
    size_t *slot; /* position + 1, 0: free */
    size_t nslot; /* a power of two, at least twice the entries; 0: none yet */
} table;

static void table_free(table *t)
{
    ctn__arena_free(&t->mem);
    ctn__vec_free(&t->entries);
    ctn__free(t->slot);
    *t = (table){0};
}

/* The slot where key is or would be. Needs nslot > 0. */
static size_t *table_slot(const table *t, const char *key, size_t n)
{
    size_t h = (size_t)ctn__table_hash(key, n) & (t->nslot - 1);
    for (; t->slot[h] > 0; h = (h + 1) & (t->nslot - 1)) {
        const char *k = t->entries.at[t->slot[h] - 1].key;
        if (strncmp(k, key, n) == 0 && k[n] == 0) break;
    }
    return &t->slot[h];
}

static bool table_room(table *t)
{
    if (2 * (t->entries.n + 1) <= t->nslot) return true;
    size_t n = t->nslot > 0 ? 2 * t->nslot : 64;
    size_t *slot = ctn__calloc(n, sizeof *slot);
    if (slot == NULL) return false;
    ctn__free(t->slot);
    t->slot = slot;
    t->nslot = n;
    for (size_t i = 0; i < t->entries.n; i++) {
        const char *key = t->entries.at[i].key;
        *table_slot(t, key, strlen(key)) = i + 1;
    }
    return true;
}

static const char *copy_text(ctn__arena *mem, const char *s, size_t n)
{
    char *p = ctn__arena_get(mem, n + 1);
    if (p == NULL) return NULL;
    memcpy(p, s, n);
    p[n] = 0;
    return p;
}

static ctn_status table_put(table *t, const char *key, size_t nkey, const char *value,
                            size_t nvalue, bool fresh)
{
    if (!table_room(t)) return CTN_ENOMEM;
    size_t *slot = table_slot(t, key, nkey);
    const char *v = copy_text(&t->mem, value, nvalue);
    if (v == NULL) return CTN_ENOMEM;
    if (*slot > 0) {
        t->entries.at[*slot - 1].value = v;
        t->entries.at[*slot - 1].fresh = fresh;
        return CTN_OK;
    }
    entry e = {copy_text(&t->mem, key, nkey), v, fresh};
    if (e.key == NULL || !ctn__vec_push(&t->entries, e)) return CTN_ENOMEM;
    *slot = t->entries.n;
    return CTN_OK;
}

static const entry *table_find(const table *t, const char *key)
{
    size_t slot = t->nslot > 0 ? *table_slot(t, key, strlen(key)) : 0;
    return slot > 0 ? &t->entries.at[slot - 1] : NULL;
}

/* ---- the text of a file --------------------------------------------------------------------- */

static bool printable(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] < ' ' || s[i] > '~') return false;
    return true;
}

/* A line "a<TAB>b<NEWLINE>" at *p; both parts are printable and not empty. */
typedef struct {
    const char *a, *b;
    size_t na, nb;
} pair;

static bool next_pair(const char **p, const char *end, pair *out)
{
    const char *nl = memchr(*p, '\n', (size_t)(end - *p));
    if (nl == NULL) return false;
    const char *tab = memchr(*p, '\t', (size_t)(nl - *p));
    if (tab == NULL) return false;
    *out = (pair){*p, tab + 1, (size_t)(tab - *p), (size_t)(nl - tab - 1)};
    *p = nl + 1;
    return out->na > 0 && out->nb > 0 && printable(out->a, out->na) && printable(out->b, out->nb);
}

/* Returns EFORMAT without a message if this is not one of our files. The caller then drops t. */
static ctn_status parse(const char *s, size_t n, table *t, pair *head)
{
    const char *p = s, *end = s + n;
    if (!next_pair(&p, end, head) || head->na != strlen(MAGIC) ||
        memcmp(head->a, MAGIC, head->na) != 0)
        return CTN_EFORMAT;
    while (p < end) {
        pair line;
        if (!next_pair(&p, end, &line)) return CTN_EFORMAT;
        CTN_TRY(table_put(t, line.a, line.na, line.b, line.nb, false));
    }
    return CTN_OK;
}

/* Reads a complete regular file of at most `most` bytes; free *out. Returns EFORMAT if it is
 * anything else, EIO with errno set if it cannot be read, both without a message. */
static ctn_status read_text(const char *path, int64_t most, char **out, size_t *n)
{
    ctn_status st = CTN_OK;
    struct stat info;
    char *text = NULL;
    size_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a pipe */
    if (fd < 0) return CTN_EIO;
    if (fstat(fd, &info) != 0) st = CTN_EIO;
    else if (!S_ISREG(info.st_mode) || info.st_size > most) st = CTN_EFORMAT;
    size_t want = st == CTN_OK ? (size_t)info.st_size : 0;
    if (st == CTN_OK && (text = ctn__malloc(want + 1)) == NULL) st = CTN_ENOMEM;
    while (st == CTN_OK && got < want) {
        ssize_t k = read(fd, text + got, want - got);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) st = CTN_EIO;
        if (k <= 0) break; /* the file was cut short; the parser checks that lines are complete */
        got += (size_t)k;
    }
    int error = errno;
    close(fd);
    errno = error;
    if (st < 0) {
        ctn__free(text);
        return st;
    }
    *out = text;
    *n = got;
    return CTN_OK;
}

/* ---- the folder ----------------------------------------------------------------------------- */

/* Appends nothing if no variable says where the files are. */
void ctn__cache_folder(ctn__text *out)
{
    static const struct {
        const char *variable, *below;
    } fallback[] = {{"XDG_CACHE_HOME", "catena"}, {"HOME", ".cache/catena"}, {"TMPDIR", "catena"}};
    const char *s = ctn__env_str(CTN__ENV_CACHE_DIR);
    if (strcmp(s, "none") == 0) return;
    if (s[0] != 0) {
        ctn__text_add(out, "%s", s);
        return;
    }
    for (size_t i = 0; i < sizeof fallback / sizeof *fallback; i++) {
        s = getenv(fallback[i].variable);
        if (s == NULL || s[0] != '/') continue; /* the XDG rules ignore relative paths */
        const size_t from = out->n;
        ctn__text_add(out, "%s/%s", s, fallback[i].below);
        /* below TMPDIR, for example, anybody can make the folder first */
        if (!out->failed && access(out->s + from, F_OK) == 0 && !ctn__private_folder(out->s + from))
            out->s[out->n = from] = 0;
        return;
    }
}

ctn_status ctn__make_folder(const char *path, unsigned mode)
{
    if (mkdir(path, mode) == 0 || errno == EEXIST) return CTN_OK;
    if (errno != ENOENT) return CTN_EIO;
    char *part = ctn__strdup(path);
    if (part == NULL) return CTN_ENOMEM;
    for (char *p = part + 1; *p != 0; p++) {
        if (*p != '/') continue;
        *p = 0;
        (void)mkdir(part, mode); /* the last mkdir reports the error */
        *p = '/';
    }
    ctn__free(part);
    return mkdir(path, mode) == 0 || errno == EEXIST ? CTN_OK : CTN_EIO;
}

/* *whole: the file has its final name and is not still being written. */
static bool is_ours(const char *name, bool *whole)
{
    size_t n = strlen(PREFIX);
    if (strncmp(name, PREFIX, n) != 0 || strspn(name + n, "0123456789abcdef") != HEX ||
        strncmp(name + n + HEX, SUFFIX, strlen(SUFFIX)) != 0)
        return false;
    const char *rest = name + n + HEX + strlen(SUFFIX);
    *whole = rest[0] == 0;
    return *whole || strncmp(rest, ".tmp-", 5) == 0;
}

typedef struct {
    const char *path;
    int64_t bytes;
    struct timespec modified;
    bool whole;
} found;

typedef struct {
    ctn__arena mem;
    CTN__VEC(found) files; /* oldest first */
} listing;

static int older_first(const void *a, const void *b)
{
    const found *x = a, *y = b;
    if (x->modified.tv_sec != y->modified.tv_sec)
        return x->modified.tv_sec < y->modified.tv_sec ? -1 : 1;
    if (x->modified.tv_nsec != y->modified.tv_nsec)
        return x->modified.tv_nsec < y->modified.tv_nsec ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Lists our files in a folder. Returns EIO, with errno and without a message, if it cannot. */
static ctn_status list_folder(const char *folder, listing *out)
{
    ctn_status st = CTN_OK;
    DIR *dir = opendir(folder);
    if (dir == NULL) return errno == ENOENT ? CTN_OK : CTN_EIO;
    for (const struct dirent *d; st == CTN_OK && (d = readdir(dir)) != NULL;) {
        found f;
        struct stat info;
        if (!is_ours(d->d_name, &f.whole)) continue;
        f.path = ctn__arena_printf(&out->mem, "%s/%s", folder, d->d_name);
        if (f.path == NULL) st = CTN_ENOMEM;
        if (st < 0 || lstat(f.path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
        f.bytes = info.st_size;
        f.modified = info.st_mtim;
        if (!ctn__vec_push(&out->files, f)) st = CTN_ENOMEM;
    }
    closedir(dir);
    if (out->files.n > 1) qsort(out->files.at, out->files.n, sizeof *out->files.at, older_first);
    return st;
}

static void listing_free(listing *l)
{
    ctn__arena_free(&l->mem);
    ctn__vec_free(&l->files);
}

/* Lets one writer in at a time, so that none loses the entries that another adds. If locks do not
 * work or one is held for too long, we continue without: then the entries of one writer may be
 * lost, and timing finds them again. Returns a descriptor to close, -1 if there is none. */
static int lock_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < 400; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return fd;
}

/* ---- a store -------------------------------------------------------------------------------- */

struct ctn__store {
    char *machine;
    ctn__text folder, path; /* empty: in memory only */
    int64_t max_bytes, max_files;
    table t;
    char problem[512];
};

static void set_problem(ctn__store *s, const char *what)
{
    snprintf(s->problem, sizeof s->problem,
             "tuning results are kept in memory only: cannot %s %s: %s", what, s->path.s,
             strerror(errno));
}

/* Loads the current entries of the file, or none if there is no usable file. Returns EIO if the
 * file exists but cannot be read, and sets `problem`. */
static ctn_status load(ctn__store *s, table *t)
{
    char *text = NULL;
    size_t n;
    pair head;
    ctn_status st = read_text(s->path.s, s->max_bytes, &text, &n);
    if (st == CTN_EIO && errno != ENOENT && errno != ENOTDIR) {
        set_problem(s, "read");
        return st;
    }
    if (st == CTN_OK) st = parse(text, n, t, &head);
    if (st == CTN_OK && (strlen(s->machine) != head.nb || memcmp(s->machine, head.b, head.nb) != 0))
        st = CTN_EFORMAT;
    ctn__free(text);
    if (st < 0) table_free(t);
    return st == CTN_ENOMEM ? st : CTN_OK;
}

ctn_status ctn__store_open(ctn__store **out, const char *machine, const ctn__store_opt *opt)
{
    ctn_status st = CTN_OK;
    *out = NULL;
    ctn__store *s = ctn__calloc(1, sizeof *s);
    if (s == NULL) return CTN_ENOMEM;
    s->max_bytes = opt != NULL && opt->max_bytes > 0 ? opt->max_bytes : MAX_BYTES;
    s->max_files = opt != NULL && opt->max_files > 0 ? opt->max_files : MAX_FILES;
    s->machine = ctn__strdup(machine[0] != 0 ? machine : "?");
    if (s->machine == NULL) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    ctn__hash128 h = ctn__hash(s->machine, strlen(s->machine));
    for (char *p = s->machine; *p != 0; p++)
        if (!printable(p, 1)) *p = '?';
    if (opt != NULL && opt->folder != NULL) ctn__text_add(&s->folder, "%s", opt->folder);
    else ctn__cache_folder(&s->folder);
    if (s->folder.n > 0)
        ctn__text_add(&s->path, "%s/" PREFIX "%016llx%016llx" SUFFIX, s->folder.s,
                      (unsigned long long)h.hi, (unsigned long long)h.lo);
    if (s->folder.failed || s->path.failed) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    if (s->path.n > 0 && load(s, &s->t) == CTN_ENOMEM) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    *out = s;
    return CTN_OK;
fail:
    ctn__store_close(s);
    return st;
}

void ctn__store_close(ctn__store *s)
{
    if (s == NULL) return;
    table_free(&s->t);
    ctn__text_free(&s->folder);
    ctn__text_free(&s->path);
    ctn__free(s->machine);
    ctn__free(s);
}

const char *ctn__store_find(const ctn__store *s, const char *key)
{
    const entry *e = table_find(&s->t, key);
    return e != NULL ? e->value : NULL;
}

ctn_status ctn__store_put(ctn__store *s, const char *key, const char *value)
{
    size_t nkey = strlen(key), nvalue = strlen(value);
    if (nkey == 0 || nvalue == 0 || !printable(key, nkey) || !printable(value, nvalue))
        return ctn_fail(CTN_EARG, "store_put: key and value must be printable and not empty");
    const entry *e = table_find(&s->t, key);
    if (e != NULL && strcmp(e->value, value) == 0) return CTN_OK;
    return table_put(&s->t, key, nkey, value, nvalue, true);
}

const char *ctn__store_problem(const ctn__store *s)
{
    return s->problem[0] != 0 ? s->problem : NULL;
}

static bool write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return false;
        p += k;
        n -= (size_t)k;
    }
    return fsync(fd) == 0;
}

/* Writes the file atomically. Errors: ENOMEM; EIO, with errno and without a message. */
static ctn_status write_file(const char *path, const char *text, size_t n)
{
    ctn__text temporary = {0};
    int fd = -1;
    for (int i = 0; fd < 0 && i < 100; i++) {
        temporary.n = 0;
        ctn__text_add(&temporary, "%s.tmp-%ld-%d", path, (long)getpid(), i);
        if (temporary.failed) break;
        fd = open(temporary.s, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    bool ok = fd >= 0 && write_all(fd, text, n) && rename(temporary.s, path) == 0;
    int error = errno;
    if (fd >= 0) close(fd); /* everything is on disk already */
    if (fd >= 0 && !ok) unlink(temporary.s);
    ctn_status st = temporary.failed ? CTN_ENOMEM : ok ? CTN_OK : CTN_EIO;
    ctn__text_free(&temporary);
    errno = error;
    return st;
}

/* Deletes the oldest files, but never our own. Files that cannot be deleted belong to another user
 * and are ignored. */
static ctn_status prune(const ctn__store *s)
{
    listing l = {0};
    ctn_status st = list_folder(s->folder.s, &l);
    int64_t files = (int64_t)l.files.n, bytes = 0;
    for (size_t i = 0; i < l.files.n; i++) bytes += l.files.at[i].bytes;
    for (size_t i = 0; i < l.files.n && (files > s->max_files || bytes > s->max_bytes); i++) {
        const found *f = &l.files.at[i];
        if (strcmp(f->path, s->path.s) == 0 || unlink(f->path) != 0) continue;
        files--;
        bytes -= f->bytes;
    }
    listing_free(&l);
    return st == CTN_ENOMEM ? st : CTN_OK;
}

static void write_table(const table *t, const char *machine, ctn__text *text)
{
    ctn__text_add(text, MAGIC "\t%s\n", machine);
    for (size_t i = 0; i < t->entries.n; i++)
        ctn__text_add(text, "%s\t%s\n", t->entries.at[i].key, t->entries.at[i].value);
}

/* Merges the current entries of the file with our fresh ones, as a table and as text. There is no
 * text if the file already has all of them: the ranks of a job make the same choices, and only one
 * of them needs to write. Errors as in load. */
static ctn_status merge(ctn__store *s, table *t, ctn__text *text)
{
    bool changed = false;
    ctn_status st = load(s, t);
    if (st < 0) return st;
    for (size_t i = 0; i < s->t.entries.n; i++) {
        const entry *e = &s->t.entries.at[i], *there = table_find(t, e->key);
        if (!e->fresh || (there && strcmp(there->value, e->value) == 0)) continue;
        changed = true;
        CTN_TRY(table_put(t, e->key, strlen(e->key), e->value, strlen(e->value), false));
    }
    if (!changed) return CTN_OK;
    write_table(t, s->machine, text);
    return text->failed ? CTN_ENOMEM : CTN_OK;
}

/* On EIO, `problem` says why. */
static ctn_status save(ctn__store *s, table *t, ctn__text *text)
{
    ctn_status st = merge(s, t, text);
    if (st < 0) return st;
    if ((int64_t)text->n > s->max_bytes) {
        errno = EFBIG;
        st = CTN_EIO;
    } else if (text->n > 0) {
        st = write_file(s->path.s, text->s, text->n);
    }
    if (st == CTN_EIO) set_problem(s, "write");
    if (st < 0) return st;
    table was = s->t;
    s->t = *t;
    *t = was;
    return prune(s);
}

ctn_status ctn__store_save(ctn__store *s)
{
    bool fresh = false;
    for (size_t i = 0; i < s->t.entries.n; i++) fresh |= s->t.entries.at[i].fresh;
    if (!fresh) return CTN_OK;
    s->problem[0] = 0;
    if (s->path.n == 0) {
        if (strcmp(ctn__env_str(CTN__ENV_CACHE_DIR), "none") == 0) return CTN_OK;
        snprintf(s->problem, sizeof s->problem,
                 "tuning results are kept in memory only: there is no cache folder that only you "
                 "can change; set CATENA_CACHE_DIR to a folder");
        return CTN_OK;
    }
    table t = {0};
    ctn__text text = {0};
    /* Private to the user. To share a folder, create it beforehand. */
    ctn_status st = ctn__make_folder(s->folder.s, 0700);
    if (st == CTN_EIO) set_problem(s, "create the folder of");
    if (st == CTN_OK) {
        int lock = lock_folder(s->folder.s);
        st = save(s, &t, &text);
        if (lock >= 0) close(lock);
    }
    table_free(&t);
    ctn__text_free(&text);
    return st == CTN_EIO ? CTN_OK : st;
}

/* ---- copies in saved states ----------------------------------------------------------------- */

void ctn__store_text(const ctn__store *s, ctn__text *out)
{
    write_table(&s->t, s->machine, out);
}

ctn_status ctn__store_replace(ctn__store *s, const char *text, size_t n)
{
    table t = {0};
    pair head;
    ctn_status st = parse(text, n, &t, &head);
    if (st == CTN_OK && (strlen(s->machine) != head.nb || memcmp(s->machine, head.b, head.nb) != 0))
        st = CTN_END;
    if (st != CTN_OK) {
        table_free(&t);
        return st == CTN_EFORMAT ? ctn_fail(st, "the tuning decisions are malformed") : st;
    }
    table_free(&s->t);
    s->t = t;
    return CTN_OK;
}

/* ---- for tools ------------------------------------------------------------------------------ */

int ctn_tune_folder(char *buf, size_t n)
{
    ctn__text t = {0};
    ctn__cache_folder(&t);
    int k = t.failed ? CTN_ENOMEM : snprintf(buf, n, "%s", t.n > 0 ? t.s : "");
    ctn__text_free(&t);
    return k;
}

static ctn_status list_environment(listing *l)
{
    ctn__text folder = {0};
    ctn__cache_folder(&folder);
    ctn_status st = folder.failed ? CTN_ENOMEM : CTN_OK;
    if (folder.n > 0 && st == CTN_OK) {
        st = list_folder(folder.s, l);
        if (st == CTN_EIO) ctn_fail(st, "cannot read the folder %s: %s", folder.s, strerror(errno));
    }
    ctn__text_free(&folder);
    return st;
}

static ctn_status visit_file(const found *f, ctn_tune_fn fn, void *user)
{
    char *text = NULL;
    size_t n = 0;
    table t = {0};
    pair head;
    ctn__text machine = {0};
    ctn_tune_file file = {.path = f->path, .bytes = f->bytes, .modified = f->modified.tv_sec};
    ctn_status st = read_text(f->path, MAX_BYTES, &text, &n);
    if (st == CTN_OK) st = parse(text, n, &t, &head);
    if (st == CTN_OK) {
        ctn__text_add(&machine, "%.*s", (int)head.nb, head.b);
        if (machine.failed) st = CTN_ENOMEM;
        file.machine = machine.s;
        file.entries = (int64_t)t.entries.n;
    } else if (st != CTN_ENOMEM) { /* deleted meanwhile, not readable or damaged */
        table_free(&t);
        st = CTN_OK;
    }
    if (st == CTN_OK) st = fn(user, &file, NULL, NULL);
    for (size_t i = 0; i < t.entries.n && st == CTN_OK; i++)
        st = fn(user, &file, t.entries.at[i].key, t.entries.at[i].value);
    ctn__free(text);
    ctn__text_free(&machine);
    table_free(&t);
    return st;
}

ctn_status ctn_tune_visit(ctn_tune_fn fn, void *user)
{
    listing l = {0};
    ctn_status st = CTN_OK;
    CTN_TRY_GOTO(st, done, list_environment(&l));
    for (size_t i = l.files.n; i-- > 0 && st == CTN_OK;)
        if (l.files.at[i].whole) st = visit_file(&l.files.at[i], fn, user);
done:
    listing_free(&l);
    return st;
}

ctn_status ctn_tune_clear(int64_t *files)
{
    listing l = {0};
    ctn_status st = CTN_OK;
    if (files != NULL) *files = 0;
    CTN_TRY_GOTO(st, done, list_environment(&l));
    for (size_t i = 0; i < l.files.n; i++) {
        if (unlink(l.files.at[i].path) != 0 && errno != ENOENT)
            CTN_TRY_GOTO(st, done,
                         ctn_fail(CTN_EIO, "cannot remove %s: %s", l.files.at[i].path,
                                  strerror(errno)));
        if (files != NULL) *files += l.files.at[i].whole;
    }
done:
    listing_free(&l);
    return st;
}
