/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets over image files that a list names, one by one: with a class each, without one, or with
 * a mask each (segmentation). A folder of images and masks becomes such a list. Files are opened
 * when their sample is read.
 */
#include <dirent.h>
#include <errno.h>
#include <strings.h>

#include "data/image/image.h"
#include "data/source.h"

/* One sample; its names are in the arena. */
typedef struct {
    const char *image, *mask; /* paths; mask NULL: none */
    int64_t label;            /* -1: none */
} item;

typedef enum { IMAGES, LABELS, MASKS } list_kind;

struct list {
    ctn__arena names;
    CTN__VEC(item) items;
    CTN__VEC(const char *) classes;
    list_kind kind;
    ctn_image_opt opt;
    int64_t ignore;
};

/* ---- list files ------------------------------------------------------------------------------ */

/* The folder of a file, with its slash; "" if the path has none. */
static char *folder_of(ctn__arena *mem, const char *path)
{
    const char *slash = strrchr(path, '/');
    return ctn__arena_printf(mem, "%.*s", slash ? (int)(slash + 1 - path) : 0, path);
}

static const char *in_folder(ctn__arena *mem, const char *folder, const char *path)
{
    const size_t n = strlen(folder);
    const bool slash = n == 0 || folder[n - 1] == '/';
    if (path[0] == '/') return ctn__arena_str(mem, path);
    return ctn__arena_printf(mem, "%s%s%s", folder, slash ? "" : "/", path);
}

static char *trimmed(char *s)
{
    while (*s == ' ' || *s == '\t') s++;
    for (char *end = s + strlen(s); end > s && strchr(" \t\r", end[-1]);) *--end = 0;
    return s;
}

/* The last blank of a line; NULL: there is none. */
static char *last_blank(char *line)
{
    char *tab = strrchr(line, '\t'), *space = strrchr(line, ' ');
    return tab && (!space || tab > space) ? tab : space;
}

/* A class is an integer of at most 9 digits. */
static int64_t class_of(const char *text)
{
    const size_t n = strspn(text, "0123456789");
    return n > 0 && n <= 9 && text[n] == 0 ? strtoll(text, NULL, 10) : -1;
}

/* A line with its class, if it has one. A name may contain blanks. */
static ctn_status add_labelled(struct list *l, const char *folder, char *line, item *out)
{
    char *last = last_blank(line);
    out->label = last ? class_of(last + 1) : -1;
    if (out->label >= 0) *last = 0;
    out->image = in_folder(&l->names, folder, trimmed(line));
    return out->image ? CTN_OK : CTN_ENOMEM;
}

static ctn_status add_pair(struct list *l, const char *folder, char *line, item *out)
{
    char *tab = strchr(line, '\t'), *blank = tab ? tab : last_blank(line);
    if (!blank) return CTN_END; /* only one word */
    *blank = 0;
    out->image = in_folder(&l->names, folder, trimmed(line));
    out->mask = in_folder(&l->names, folder, trimmed(blank + 1));
    return out->image && out->mask ? CTN_OK : CTN_ENOMEM;
}

static ctn_status add_line(struct list *l, const char *path, int64_t number, const char *folder,
                           char *line)
{
    item it = {.label = -1};
    if (!*line) return CTN_OK;
    const bool pairs = l->kind == MASKS;
    const ctn_status st =
        pairs ? add_pair(l, folder, line, &it) : add_labelled(l, folder, line, &it);
    CTN_TRY(st);
    if (st == CTN_END)
        return ctn_fail(CTN_EFORMAT,
                        "list: %s: line %lld: expected an image and a mask, found only \"%s\"",
                        path, (long long)number, line);
    if (!pairs && l->items.n == 0) l->kind = it.label >= 0 ? LABELS : IMAGES;
    if (!pairs && (l->kind == LABELS) != (it.label >= 0))
        return ctn_fail(CTN_EFORMAT, "list: %s: line %lld has %s class, unlike the first one", path,
                        (long long)number, it.label >= 0 ? "a" : "no");
    return ctn__vec_push(&l->items, it) ? CTN_OK : CTN_ENOMEM;
}

/* Calls add_line for all lines of a file. */
static ctn_status read_list(struct list *l, const char *path, const char *root)
{
    ctn_status st = CTN_OK;
    char *text = NULL;
    size_t bytes = 0;
    int64_t number = 0;
    const char *folder = root ? root : folder_of(&l->names, path);
    if (!folder) return CTN_ENOMEM;
    CTN_TRY(ctn__file_whole("list", path, SIZE_MAX - 1, &text, &bytes));
    if (memchr(text, 0, bytes))
        CTN_TRY_GOTO(st, done, ctn_fail(CTN_EFORMAT, "list: %s: is not a text file", path));
    for (char *p = text, *next; p; p = next) {
        next = strchr(p, '\n');
        if (next) *next++ = 0;
        CTN_TRY_GOTO(st, done, add_line(l, path, ++number, folder, trimmed(p)));
    }
    if (l->items.n == 0) st = ctn_fail(CTN_ENOTFOUND, "list: %s: names no images", path);
done:
    ctn__free(text);
    return st;
}

/* ---- folders of images and masks ------------------------------------------------------------- */

static int by_image(const void *a, const void *b)
{
    return strcmp(((const item *)a)->image, ((const item *)b)->image);
}

static bool is_image_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return name[0] != '.' && dot &&
           (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
            strcasecmp(dot, ".png") == 0);
}

/* Pairs every file in dir/images with its mask; masks are not looked up before they are read. */
static ctn_status read_folder(struct list *l, const char *dir)
{
    ctn_status st = CTN_OK;
    const char *images = ctn__arena_printf(&l->names, "%s/images", dir);
    if (!images) return CTN_ENOMEM;
    DIR *d = opendir(images);
    if (!d) return ctn_fail(CTN_EIO, "segmentation: %s: %s", images, strerror(errno));
    for (const struct dirent *e; st == CTN_OK && (e = readdir(d)) != NULL;) {
        if (!is_image_name(e->d_name)) continue;
        const int base = (int)(strrchr(e->d_name, '.') - e->d_name);
        const item it = {ctn__arena_printf(&l->names, "%s/%s", images, e->d_name),
                         ctn__arena_printf(&l->names, "%s/masks/%.*s.png", dir, base, e->d_name),
                         -1};
        if (!it.image || !it.mask || !ctn__vec_push(&l->items, it)) st = CTN_ENOMEM;
    }
    closedir(d);
    CTN_TRY(st);
    if (l->items.n == 0)
        return ctn_fail(CTN_ENOTFOUND, "segmentation: %s: contains no JPEG or PNG files", images);
    qsort(l->items.at, l->items.n, sizeof *l->items.at, by_image);
    return CTN_OK;
}

static ctn_status read_classes(struct list *l, const char *dir)
{
    struct stat info;
    char *text = NULL;
    size_t bytes = 0;
    ctn_status st = CTN_OK;
    const char *path = ctn__arena_printf(&l->names, "%s/classes.txt", dir);
    if (!path) return CTN_ENOMEM;
    if (stat(path, &info) != 0) return CTN_OK;
    CTN_TRY(ctn__file_whole("segmentation", path, (size_t)1 << 24, &text, &bytes));
    for (char *p = text, *next; p && *p && st == CTN_OK; p = next) {
        next = strchr(p, '\n');
        if (next) *next++ = 0;
        const char *name = ctn__arena_str(&l->names, trimmed(p));
        if (!name || !ctn__vec_push(&l->classes, name)) st = CTN_ENOMEM;
    }
    ctn__free(text);
    return st;
}

/* ---- the dataset ----------------------------------------------------------------------------- */

static int64_t list_count(void *self)
{
    return (int64_t)((struct list *)self)->items.n;
}

static int list_fields(void *self)
{
    return ((struct list *)self)->kind == IMAGES ? 1 : 2;
}

static void list_field(void *self, int f, ctn_field *out)
{
    const struct list *l = self;
    if (f == 0) ctn__image_field(&l->opt, out);
    else if (l->kind == LABELS) *out = (ctn_field){.dtype = CTN_I64};
    else *out = (ctn_field){CTN_I64, 2, {l->opt.height, l->opt.width}, 0};
}

/* The mask of an image, whose file is given. */
static ctn_status get_mask(const struct list *l, const item *it, const void *image, size_t bytes,
                           const ctn_sample *s, void *dst)
{
    ctn__mask_opt m = {.ignore = l->ignore};
    char *file = NULL;
    CTN_TRY(ctn__image_size(image, bytes, &m.width, &m.height));
    CTN_TRY(ctn__file_whole("segmentation", it->mask, CTN__IMAGE_MOST, &file, &bytes));
    const ctn_status st = ctn__mask_load(&l->opt, &m, file, bytes, s, dst);
    ctn__free(file);
    return ctn__file_blame(st, "segmentation", it->mask);
}

static ctn_status list_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct list *l = self;
    const item *it = &l->items.at[s->index];
    char *file = NULL;
    size_t bytes = 0;
    CTN_TRY(ctn__file_whole("list", it->image, CTN__IMAGE_MOST, &file, &bytes));
    ctn_status st = ctn__image_load(&l->opt, file, bytes, s, dst[0]);
    if (st < 0) st = ctn__file_blame(st, "list", it->image);
    else if (l->kind == MASKS) st = get_mask(l, it, file, bytes, s, dst[1]);
    else if (l->kind == LABELS) *(int64_t *)dst[1] = it->label;
    ctn__free(file);
    return st;
}

static void list_free(void *self)
{
    struct list *l = self;
    if (!l) return;
    ctn__vec_free(&l->items);
    ctn__vec_free(&l->classes);
    ctn__arena_free(&l->names);
    ctn__free(l);
}

static int list_name(void *self, int64_t index, char *buf, size_t n)
{
    return snprintf(buf, n, "%s", ((struct list *)self)->items.at[index].image);
}

static const char *list_class(void *self, int64_t k)
{
    const struct list *l = self;
    return k >= 0 && (size_t)k < l->classes.n ? l->classes.at[k] : NULL;
}

static const ctn_dataset_vt list_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = list_count,
    .fields = list_fields,
    .field = list_field,
    .get = list_get,
    .free = list_free,
    .name = list_name,
    .class_name = list_class,
    .resizes = ctn__images_resize,
};

ctn_status ctn_image_list_open(ctn_dataset **ds, const char *list, const char *root,
                               const ctn_image_opt *opt)
{
    if (!ds || !list) return ctn_fail(CTN_EARG, "list: NULL argument");
    *ds = NULL;
    ctn_status st = CTN_OK;
    struct list *l = ctn__calloc(1, sizeof *l);
    if (!l) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__image_opt("list", &l->opt, opt, 224, 224));
    CTN_TRY_GOTO(st, done, read_list(l, list, root));
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &list_vt, l));
    l = NULL; /* owned by the dataset */
done:
    list_free(l);
    return st;
}

ctn_status ctn_segmentation_open(ctn_dataset **ds, const char *path,
                                 const ctn_segmentation_opt *opt)
{
    enum { USUAL_IGNORE = 255 };
    if (!ds || !path) return ctn_fail(CTN_EARG, "segmentation: NULL argument");
    *ds = NULL;
    ctn_status st = CTN_OK;
    ctn_segmentation_opt o;
    struct stat info = {0};
    CTN_TRY(ctn__opt("segmentation", &o, sizeof o, opt));
    struct list *l = ctn__calloc(1, sizeof *l);
    if (!l) return CTN_ENOMEM;
    l->kind = MASKS;
    l->ignore = o.ignore ? o.ignore : USUAL_IGNORE;
    CTN_TRY_GOTO(st, done, ctn__image_opt("segmentation", &l->opt, o.image, 224, 224));
    if (l->opt.randaugment)
        CTN_TRY_GOTO(st, done,
                     ctn_fail(CTN_EUNSUPPORTED,
                              "segmentation: randaugment would move the pixels of an image away "
                              "from their classes"));
    if (stat(path, &info) != 0)
        CTN_TRY_GOTO(st, done, ctn_fail(CTN_EIO, "segmentation: %s: %s", path, strerror(errno)));
    const bool folder = S_ISDIR(info.st_mode);
    CTN_TRY_GOTO(st, done, folder ? read_folder(l, path) : read_list(l, path, NULL));
    if (folder) CTN_TRY_GOTO(st, done, read_classes(l, path));
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &list_vt, l));
    l = NULL; /* owned by the dataset */
done:
    list_free(l);
    return st;
}
