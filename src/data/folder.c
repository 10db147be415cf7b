/* SPDX-License-Identifier: Apache-2.0
 *
 * Dataset over an image folder: one folder per class, classes and files sorted by name. Folders
 * are listed once, by one rank, which sends the names to the others. Files are neither opened nor
 * even stat'ed before a sample is read: on a parallel file system each such call costs as much as
 * reading a small file.
 *
 * Memory per file: its name without the path, and four bytes.
 */
#include <dirent.h>
#include <errno.h>
#include <strings.h>

#include "data/image/image.h"
#include "data/source.h"

enum { PATH = 4096 };

static bool is_image_name(const char *name)
{
    static const char *const end[] = {".jpg", ".jpeg", ".png"};
    const size_t n = strlen(name);
    for (int i = 0; i < 3; i++) {
        const size_t k = strlen(end[i]);
        if (n > k && strcasecmp(name + n - k, end[i]) == 0) return true;
    }
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a folder that `want` accepts, one after another, without hidden files. */
static ctn_status list_names(const char *path, bool (*want)(const char *, const struct dirent *),
                             ctn__text *names, int64_t *n)
{
    DIR *dir = opendir(path);
    if (!dir) return ctn_fail(CTN_EIO, "folder: %s: %s", path, strerror(errno));
    *n = 0;
    errno = 0;
    for (const struct dirent *d; (d = readdir(dir)) != NULL && !names->failed; errno = 0) {
        if (d->d_name[0] == '.' || !want(path, d)) continue;
        ctn__text_add(names, "%s%c", d->d_name, 0);
        ++*n;
    }
    int error = errno;
    closedir(dir);
    if (names->failed) return CTN_ENOMEM;
    if (error) return ctn_fail(CTN_EIO, "folder: %s: %s", path, strerror(error));
    return CTN_OK;
}

static bool want_folder(const char *path, const struct dirent *d)
{
    char full[PATH];
    struct stat info;
    if (d->d_type == DT_DIR) return true;
    if (d->d_type != DT_UNKNOWN && d->d_type != DT_LNK) return false;
    if (snprintf(full, sizeof full, "%s/%s", path, d->d_name) >= (int)sizeof full) return false;
    return stat(full, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool want_image(const char *path, const struct dirent *d)
{
    (void)path;
    return d->d_type != DT_DIR && is_image_name(d->d_name);
}

/* Sorted pointers to n 0-terminated names that follow one another; the caller frees *out. */
static ctn_status sorted(const ctn__text *names, int64_t n, const char ***out)
{
    *out = ctn__malloc(ctn__mul((size_t)n, sizeof **out));
    if (!*out) return CTN_ENOMEM;
    const char *p = names->s;
    for (int64_t i = 0; i < n; i++, p += strlen(p) + 1) (*out)[i] = p;
    if (n > 1) qsort(*out, (size_t)n, sizeof **out, by_name);
    return CTN_OK;
}

/* Lists the files of one class. Offsets and names are in one allocation. */
static ctn_status read_class(ctn__folder *f, ctn__class *c)
{
    ctn_status st = CTN_OK;
    ctn__text path = {0}, names = {0};
    const char **order = NULL;
    ctn__text_add(&path, "%s/%s", f->dir, c->name);
    if (path.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, list_names(path.s, want_image, &names, &c->n));
    if (names.n > UINT32_MAX) {
        st = ctn_fail(CTN_EUNSUPPORTED, "folder: %s: more than 4 GB of names", path.s);
        goto done;
    }
    CTN_TRY_GOTO(st, done, sorted(&names, c->n, &order));
    uint32_t *at = ctn__malloc((size_t)c->n * sizeof *at + names.n);
    if (!at) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    char *p = (char *)(at + c->n);
    c->at = at;
    c->names = p;
    for (int64_t i = 0; i < c->n; i++) {
        const size_t k = strlen(order[i]) + 1;
        at[i] = (uint32_t)(p - c->names);
        memcpy(p, order[i], k);
        p += k;
    }
done:
    ctn__text_free(&path);
    ctn__text_free(&names);
    ctn__free(order);
    return st;
}

ctn_status ctn__folder_read(ctn__folder *f, const char *dir)
{
    ctn_status st = CTN_OK;
    ctn__text names = {0};
    const char **order = NULL;
    int64_t n = 0;
    f->dir = ctn__strdup(dir);
    if (!f->dir) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, list_names(dir, want_folder, &names, &n));
    CTN_TRY_GOTO(st, done, sorted(&names, n, &order));
    if (!ctn__vec_reserve(&f->classes, (size_t)n)) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    for (int64_t i = 0; i < n; i++) {
        ctn__class *c = &f->classes.at[f->classes.n++];
        *c = (ctn__class){.name = ctn__strdup(order[i]), .first = f->n};
        if (!c->name) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
        CTN_TRY_GOTO(st, done, read_class(f, c));
        f->n += c->n;
    }
    if (f->n == 0)
        st = ctn_fail(CTN_ENOTFOUND,
                      "folder: %s: found no JPEG or PNG files in its %lld folders; expected one "
                      "folder per class",
                      dir, (long long)n);
done:
    ctn__text_free(&names);
    ctn__free(order);
    return st;
}

/* Takes n bytes of packed names from another rank. */
static ctn_status take_names(ctn__class *c, const char *names, size_t n)
{
    if (n > 0 && names[n - 1] != 0)
        return ctn_fail(CTN_EFORMAT, "folder: the given list is incomplete");
    for (size_t i = 0; i < n; i++) c->n += names[i] == 0;
    uint32_t *at = ctn__malloc((size_t)c->n * sizeof *at + n);
    if (!at) return CTN_ENOMEM;
    c->at = at;
    c->names = (char *)(at + c->n);
    if (n) memcpy(at + c->n, names, n);
    size_t begin = 0;
    for (int64_t i = 0; i < c->n; i++, begin += strlen(names + begin) + 1) at[i] = (uint32_t)begin;
    return CTN_OK;
}

ctn_status ctn__folder_take(ctn__folder *f, const char *dir, const void *list, size_t bytes)
{
    ctn__blocks b = {.at = (char *)list, .room = bytes};
    const char *name, *names;
    int64_t all[2] = {0}; /* samples and classes */
    size_t n = 0;
    f->dir = ctn__strdup(dir);
    if (!f->dir) return CTN_ENOMEM;
    const void *head = ctn__take_block(&b, &n);
    if (head && n == sizeof all) memcpy(all, head, n);
    while ((name = ctn__take_text(&b)) != NULL && (names = ctn__take_block(&b, &n)) != NULL) {
        const ctn__class c = {.name = ctn__strdup(name), .first = f->n};
        if (!c.name) return CTN_ENOMEM;
        if (!ctn__vec_push(&f->classes, c)) {
            ctn__free((void *)c.name);
            return CTN_ENOMEM;
        }
        CTN_TRY(take_names(&f->classes.at[f->classes.n - 1], names, n));
        f->n += f->classes.at[f->classes.n - 1].n;
    }
    if (b.n != b.room || f->n == 0 || f->n != all[0] || (int64_t)f->classes.n != all[1])
        return ctn_fail(CTN_EFORMAT, "folder: the given list is incomplete");
    return CTN_OK;
}

void ctn__folder_free(ctn__folder *f)
{
    for (size_t i = 0; i < f->classes.n; i++) {
        ctn__free((void *)f->classes.at[i].name);
        ctn__free((void *)f->classes.at[i].at);
    }
    ctn__vec_free(&f->classes);
    ctn__free(f->dir);
    f->dir = NULL;
}

int64_t ctn__folder_class(const ctn__folder *f, int64_t sample)
{
    size_t lo = 0, hi = f->classes.n; /* the last class that begins at or before sample */
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (f->classes.at[mid].first <= sample) lo = mid;
        else hi = mid;
    }
    return (int64_t)lo;
}

int ctn__folder_path(const ctn__folder *f, int64_t sample, char *buf, size_t n)
{
    const ctn__class *c = &f->classes.at[ctn__folder_class(f, sample)];
    return snprintf(buf, n, "%s/%s/%s", f->dir, c->name, c->names + c->at[sample - c->first]);
}

ctn_status ctn__folder_load(const ctn__folder *f, int64_t sample, char *path, size_t n, char **file,
                            size_t *bytes)
{
    if (ctn__folder_path(f, sample, path, n) >= (int)n)
        return ctn_fail(CTN_EIO, "folder: %s: the path is too long", path);
    return ctn__file_whole("folder", path, CTN__IMAGE_MOST, file, bytes);
}

/* ---- the dataset ----------------------------------------------------------------------------- */

struct folder {
    ctn__folder list;
    ctn_image_opt opt;
};

static int64_t folder_count(void *self)
{
    return ((struct folder *)self)->list.n;
}

static int folder_fields(void *self)
{
    (void)self;
    return 2;
}

static void folder_field(void *self, int f, ctn_field *out)
{
    if (f == 0) ctn__image_field(&((struct folder *)self)->opt, out);
    else *out = (ctn_field){.dtype = CTN_I64};
}

static ctn_status folder_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct folder *f = self;
    char path[PATH], *file = NULL;
    size_t bytes = 0;
    CTN_TRY(ctn__folder_load(&f->list, s->index, path, sizeof path, &file, &bytes));
    ctn_status st = ctn__image_load(&f->opt, file, bytes, s, dst[0]);
    ctn__free(file);
    *(int64_t *)dst[1] = ctn__folder_class(&f->list, s->index);
    return ctn__file_blame(st, "folder", path);
}

static void folder_free(void *self)
{
    struct folder *f = self;
    if (!f) return;
    ctn__folder_free(&f->list);
    ctn__free(f);
}

static int folder_name(void *self, int64_t index, char *buf, size_t n)
{
    return ctn__folder_path(&((struct folder *)self)->list, index, buf, n);
}

static const char *folder_class_name(void *self, int64_t k)
{
    const ctn__folder *f = &((struct folder *)self)->list;
    return (size_t)k < f->classes.n ? f->classes.at[k].name : NULL;
}

static const ctn_dataset_vt folder_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = folder_count,
    .fields = folder_fields,
    .field = folder_field,
    .get = folder_get,
    .free = folder_free,
    .name = folder_name,
    .class_name = folder_class_name,
    .resizes = ctn__images_resize,
};

/* list: the names that another rank has found; NULL: list the folder here. */
static ctn_status open_folder(ctn_dataset **ds, const char *dir, const void *list, size_t bytes,
                              const ctn_image_opt *opt)
{
    ctn_status st = CTN_OK;
    struct folder *f = ctn__calloc(1, sizeof *f);
    if (!f) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__image_opt("folder", &f->opt, opt, 224, 224));
    CTN_TRY_GOTO(st, done,
                 list ? ctn__folder_take(&f->list, dir, list, bytes)
                      : ctn__folder_read(&f->list, dir));
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &folder_vt, f));
    f = NULL; /* owned by the dataset */
done:
    folder_free(f);
    return st;
}

ctn_status ctn_image_folder_open(ctn_dataset **ds, const char *dir, const ctn_image_opt *opt)
{
    if (!ds || !dir) return ctn_fail(CTN_EARG, "folder: NULL argument");
    *ds = NULL;
    return open_folder(ds, dir, NULL, 0, opt);
}

ctn_status ctn_image_folder_open_list(ctn_dataset **ds, const char *dir, const void *list,
                                      size_t bytes, const ctn_image_opt *opt)
{
    if (!ds || !dir || !list) return ctn_fail(CTN_EARG, "folder: NULL argument");
    *ds = NULL;
    return open_folder(ds, dir, list, bytes, opt);
}

/* Blocks: the numbers of samples and classes; then, for every class, its name and the names of its
 * files. */
size_t ctn_image_folder_list(const ctn_dataset *ds, void *buf, size_t n)
{
    ctn__blocks b = {.at = buf, .room = buf ? n : 0};
    const struct folder *f = ctn__dataset_self(ds, folder_get);
    if (!f) return 0;
    ctn__put_block(&b, (int64_t[]){f->list.n, (int64_t)f->list.classes.n}, 2 * sizeof(int64_t));
    for (size_t i = 0; i < f->list.classes.n; i++) {
        const ctn__class *c = &f->list.classes.at[i];
        const char *last = c->n ? c->names + c->at[c->n - 1] : NULL;
        ctn__put_block(&b, c->name, strlen(c->name) + 1);
        ctn__put_block(&b, c->names, last ? (size_t)(last - c->names) + strlen(last) + 1 : 0);
    }
    return b.n;
}
