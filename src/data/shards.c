/* SPDX-License-Identifier: Apache-2.0
 *
 * Dataset over tar files of images (WebDataset convention). The index is in memory, images are read
 * by offset. Memory per image: 24 bytes and its name.
 *
 * A rank that receives the indexes from another rank opens a shard when it first reads from it, so
 * the number of opens at startup does not grow with the number of ranks. At most KEEP_OPEN shards
 * stay open.
 *
 * On request, stage.c first copies the files to node-local storage. Then the copies are read, but
 * samples are still named after the originals.
 */
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "data/image/image.h"
#include "data/source.h"

enum {
    PATH = 4096,
    PATTERN_MOST = 1000000, /* shards of a pattern; it is short and could name a billion */
    KEEP_OPEN = 256,        /* shards per dataset; any others are opened for each image */
    TIME_STEP = 2,          /* seconds; the coarsest time stamps of file systems */
};

struct shard {
    const char *path;  /* the name that the user knows */
    const char *local; /* the file that is read */
    _Atomic int fd;    /* -1: not open */
    int64_t first;     /* its first sample in the dataset */
    ctn__shard_index index;
};

struct shards {
    ctn__arena mem;
    CTN__VEC(struct shard) list;
    int64_t n;
    _Atomic int open; /* number of open shards */
    CTN__VEC(const char *) classes;
    ctn_image_opt image;
};

/* ---- which files ----------------------------------------------------------------------------- */

static ctn_status add_shard(struct shards *x, const char *path)
{
    struct shard s = {.path = ctn__arena_str(&x->mem, path), .fd = -1};
    s.local = s.path;
    return s.path && ctn__vec_push(&x->list, s) ? CTN_OK : CTN_ENOMEM;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct shard *)a)->path, ((const struct shard *)b)->path);
}

static ctn_status add_folder(struct shards *x, const char *path)
{
    ctn_status st = CTN_OK;
    char full[PATH];
    DIR *dir = opendir(path);
    if (!dir) return ctn_fail(CTN_EIO, "shards: %s: %s", path, strerror(errno));
    for (const struct dirent *d; st == CTN_OK && (d = readdir(dir)) != NULL;) {
        const size_t n = strlen(d->d_name);
        if (n < 5 || d->d_name[0] == '.' || strcmp(d->d_name + n - 4, ".tar") != 0) continue;
        if (snprintf(full, sizeof full, "%s/%s", path, d->d_name) >= (int)sizeof full)
            st = ctn_fail(CTN_EIO, "shards: %s: the path is too long", path);
        else st = add_shard(x, full);
    }
    closedir(dir);
    if (st < 0) return st;
    if (x->list.n > 1) qsort(x->list.at, x->list.n, sizeof *x->list.at, by_path);
    if (x->list.n == 0)
        return ctn_fail(CTN_ENOTFOUND, "shards: %s: no .tar files in this folder", path);
    return CTN_OK;
}

static int64_t digits(const char *s, size_t n)
{
    int64_t v = 0;
    if (n < 1 || n > 9) return -1;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') return -1;
        v = v * 10 + (s[i] - '0');
    }
    return v;
}

/* Expands a{000..146}b; all numbers have the width of the first. */
static ctn_status add_pattern(struct shards *x, const char *path)
{
    char full[PATH];
    const char *open = strchr(path, '{'), *close = strchr(open, '}');
    const char *dots = strstr(open, "..");
    if (!close || !dots || dots > close || strchr(close, '{'))
        return ctn_fail(CTN_EARG, "shards: %s: expected one pair of braces, as in {000..146}",
                        path);
    const size_t width = (size_t)(dots - open - 1);
    const int64_t from = digits(open + 1, width), to = digits(dots + 2, (size_t)(close - dots - 2));
    if (from < 0 || to < from)
        return ctn_fail(CTN_EARG, "shards: %s: expected two numbers, as in {000..146}", path);
    if (to - from >= PATTERN_MOST)
        return ctn_fail(CTN_EARG, "shards: %s: names %lld shards, at most %d are possible", path,
                        (long long)(to - from) + 1, PATTERN_MOST);
    for (int64_t i = from; i <= to; i++) {
        if (snprintf(full, sizeof full, "%.*s%0*lld%s", (int)(open - path), path, (int)width,
                     (long long)i, close + 1) >= (int)sizeof full)
            return ctn_fail(CTN_EARG, "shards: %s: the path is too long", path);
        CTN_TRY(add_shard(x, full));
    }
    return CTN_OK;
}

static ctn_status add_all(struct shards *x, const char *path)
{
    struct stat info = {0};
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? add_folder(x, path) : add_shard(x, path);
    if (strchr(path, '{')) return add_pattern(x, path);
    return ctn_fail(CTN_EIO, "shards: %s: %s", path, strerror(errno));
}

/* Reads the names of the classes, one per line, from classes.txt next to the shards, if it
 * exists. */
static ctn_status read_classes(struct shards *x, const char *shard)
{
    char path[PATH], *text = NULL;
    size_t n = 0;
    const char *slash = strrchr(shard, '/');
    const int k = slash ? (int)(slash - shard) + 1 : 0;
    if (snprintf(path, sizeof path, "%.*sclasses.txt", k, shard) >= (int)sizeof path ||
        access(path, F_OK) != 0)
        return CTN_OK;
    CTN_TRY(ctn__file_whole("shards", path, (size_t)16 << 20, &text, &n));
    ctn_status st = CTN_OK;
    char *rest = text, *line;
    while (st == CTN_OK && (line = strsep(&rest, "\n")) != NULL) {
        line[strcspn(line, "\r")] = 0;
        if (!line[0] && !rest) break; /* after the last line */
        const char *name = ctn__arena_str(&x->mem, line);
        if (!name || !ctn__vec_push(&x->classes, name)) st = CTN_ENOMEM;
    }
    ctn__free(text);
    return st;
}

/* ---- messages from rank to rank -------------------------------------------------------------- */

/* Blocks: the path and the index of every shard; an empty block; then the name of every class. */

/* Takes the index of a shard that another rank has read. The tar file is not accessed here. */
static ctn_status take_index(ctn__blocks *b, ctn__shard_index *x)
{
    size_t n = 0;
    const void *p = ctn__take_block(b, &n);
    ctn__shard_head *h = p ? ctn__malloc(n) : NULL;
    if (!p) return ctn_fail(CTN_EFORMAT, "shards: the given index is incomplete");
    if (!h) return CTN_ENOMEM;
    memcpy(h, p, n);
    if (ctn__shard_index_check(x, h, n, NULL)) return CTN_OK;
    ctn__free(h);
    return ctn_fail(CTN_EFORMAT, "shards: the given index was made by another build");
}

static ctn_status add_given(struct shards *x, const ctn_shards_opt *o)
{
    ctn__blocks b = {.at = (char *)o->index, .room = o->index_bytes};
    const char *name;
    while ((name = ctn__take_text(&b)) != NULL) {
        CTN_TRY(add_shard(x, name));
        struct shard *s = &x->list.at[x->list.n - 1];
        CTN_TRY(take_index(&b, &s->index));
        if (o->stage) CTN_TRY(ctn__stage(&x->mem, s->path, o->stage, s->index.head, &s->local));
    }
    while ((name = ctn__take_text(&b)) != NULL) {
        name = ctn__arena_str(&x->mem, name);
        if (!name || !ctn__vec_push(&x->classes, name)) return CTN_ENOMEM;
    }
    if (b.n != b.room || x->list.n == 0)
        return ctn_fail(CTN_EFORMAT, "shards: the given index is incomplete");
    return CTN_OK;
}

/* ---- the dataset ----------------------------------------------------------------------------- */

/* Keeps a shard open. False: enough are open, or another thread has opened this one. */
static bool keep_open(struct shards *x, struct shard *s, int fd)
{
    int none = -1;
    if (atomic_fetch_add(&x->open, 1) < KEEP_OPEN &&
        atomic_compare_exchange_strong(&s->fd, &none, fd))
        return true;
    atomic_fetch_sub(&x->open, 1);
    return false;
}

/* Opens a shard and loads or builds its index. */
static ctn_status index_shard(struct shards *x, struct shard *s, const ctn_shards_opt *o)
{
    struct stat info = {0};
    int fd = -1;
    if (o->stage) CTN_TRY(ctn__stage(&x->mem, s->path, o->stage, NULL, &s->local));
    CTN_TRY(ctn__file_open("shards", s->local, &fd, &info));
    /* A staged copy has the size and time of its original, so the original's index is valid. */
    ctn_status st = ctn__shard_index_get(&s->index, s->path, fd, &info, o->index_dir);
    if (st < 0 || !keep_open(x, s, fd)) close(fd);
    return st;
}

static struct shard *shard_of(const struct shards *x, int64_t index)
{
    size_t lo = 0, hi = x->list.n; /* the last shard that begins at or before index */
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (x->list.at[mid].first <= index) lo = mid;
        else hi = mid;
    }
    return &x->list.at[lo];
}

static int64_t shards_count(void *self)
{
    return ((struct shards *)self)->n;
}

static int shards_fields(void *self)
{
    (void)self;
    return 2;
}

static void shards_field(void *self, int f, ctn_field *out)
{
    if (f == 0) ctn__image_field(&((struct shards *)self)->image, out);
    else *out = (ctn_field){.dtype = CTN_I64};
}

static int shards_name(void *self, int64_t index, char *buf, size_t n)
{
    const struct shard *s = shard_of(self, index);
    return snprintf(buf, n, "%s:%s", s->path,
                    s->index.names + s->index.entry[index - s->first].name);
}

/* Is an open shard the one that the index was made from? Times may differ slightly, because the
 * file system of a copy may round them. */
static bool is_indexed(const ctn__shard_head *h, const struct stat *info)
{
    return h->tar_bytes == (uint64_t)info->st_size &&
           llabs((long long)h->tar_s - (long long)info->st_mtim.tv_sec) <= TIME_STEP;
}

static ctn_status read_image(struct shards *x, struct shard *s, const ctn__shard_entry *e,
                             void *file)
{
    struct stat info = {0};
    int fd = atomic_load(&s->fd);
    if (fd >= 0) return ctn__file_read("shards", s->local, fd, file, e->bytes, e->offset);
    CTN_TRY(ctn__file_open("shards", s->local, &fd, &info));
    ctn_status st = CTN_OK;
    if (!is_indexed(s->index.head, &info))
        st = ctn_fail(CTN_EIO,
                      "shards: %s: was changed after it was indexed (%lld bytes now, %llu then): "
                      "restart the program",
                      s->local, (long long)info.st_size,
                      (unsigned long long)s->index.head->tar_bytes);
    else st = ctn__file_read("shards", s->local, fd, file, e->bytes, e->offset);
    if (st < 0 || !keep_open(x, s, fd)) close(fd);
    return st;
}

static ctn_status shards_get(void *self, const ctn_sample *s, void *const *dst)
{
    struct shards *x = self;
    struct shard *h = shard_of(x, s->index);
    const ctn__shard_entry *e = &h->index.entry[s->index - h->first];
    char name[PATH];
    shards_name(self, s->index, name, sizeof name);
    if (e->label < 0)
        return ctn_fail(CTN_EFORMAT, "shards: %s: has no class: expected a .cls file next to it",
                        name);
    void *file = ctn__malloc(e->bytes);
    if (!file) return CTN_ENOMEM;
    ctn_status st = read_image(x, h, e, file);
    if (st >= 0) st = ctn__image_load(&x->image, file, e->bytes, s, dst[0]);
    ctn__free(file);
    *(int64_t *)dst[1] = e->label;
    return ctn__file_blame(st, "shards", name);
}

static void shards_free(void *self)
{
    struct shards *x = self;
    if (!x) return;
    for (size_t i = 0; i < x->list.n; i++) {
        if (x->list.at[i].fd >= 0) close(x->list.at[i].fd);
        ctn__shard_index_free(&x->list.at[i].index);
    }
    ctn__vec_free(&x->list);
    ctn__vec_free(&x->classes);
    ctn__arena_free(&x->mem);
    ctn__free(x);
}

static const char *shards_class(void *self, int64_t k)
{
    const struct shards *x = self;
    return (size_t)k < x->classes.n ? x->classes.at[k] : NULL;
}

static const ctn_dataset_vt shards_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = shards_count,
    .fields = shards_fields,
    .field = shards_field,
    .get = shards_get,
    .free = shards_free,
    .name = shards_name,
    .class_name = shards_class,
    .resizes = ctn__images_resize,
};

ctn_status ctn_shards_open(ctn_dataset **ds, const char *path, const ctn_shards_opt *opt)
{
    if (!ds || !path) return ctn_fail(CTN_EARG, "shards: NULL argument");
    *ds = NULL;
    ctn_status st = CTN_OK;
    ctn_shards_opt o;
    CTN_TRY(ctn__opt("shards", &o, sizeof o, opt));
    struct shards *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__image_opt("shards", &x->image, o.image, 224, 224));
    CTN_TRY_GOTO(st, done, o.index ? add_given(x, &o) : add_all(x, path));
    for (size_t i = 0; i < x->list.n; i++) {
        struct shard *s = &x->list.at[i];
        if (!o.index) CTN_TRY_GOTO(st, done, index_shard(x, s, &o));
        s->first = x->n;
        x->n += s->index.n;
    }
    if (x->n == 0)
        CTN_TRY_GOTO(st, done, ctn_fail(CTN_ENOTFOUND, "shards: %s: no JPEG or PNG files", path));
    if (!o.index) CTN_TRY_GOTO(st, done, read_classes(x, x->list.at[0].path));
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &shards_vt, x));
    x = NULL; /* owned by the dataset */
done:
    shards_free(x);
    return st;
}

size_t ctn_shards_index(const ctn_dataset *ds, void *buf, size_t n)
{
    ctn__blocks b = {.at = buf, .room = buf ? n : 0};
    const struct shards *x = ctn__dataset_self(ds, shards_get);
    if (!x) return 0;
    for (size_t i = 0; i < x->list.n; i++) {
        const struct shard *s = &x->list.at[i];
        const ctn__shard_head *h = s->index.head;
        ctn__put_block(&b, s->path, strlen(s->path) + 1);
        ctn__put_block(&b, h,
                       sizeof *h + (size_t)h->n * sizeof(ctn__shard_entry) + (size_t)h->name_bytes);
    }
    ctn__put_block(&b, "", 0);
    for (size_t i = 0; i < x->classes.n; i++)
        ctn__put_block(&b, x->classes.at[i], strlen(x->classes.at[i]) + 1);
    return b.n;
}
