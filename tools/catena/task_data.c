/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets and loaders of a task. Only training data is augmented, so the share of it that is
 * used for validation is opened a second time.
 *
 * Only rank 0 finds out what and where the data is, lists folders and reads indexes; the other
 * ranks receive the result. The file system then serves one rank instead of thousands, and all
 * ranks see the same samples.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <catena/info.h>

#include "launch.h"
#include "task.h"

/* ---- images ---------------------------------------------------------------------------------- */

static void pixel_moments(const task *t, double mean[3], double std[3])
{
    static const double usual_mean[3] = CTN_IMAGENET_MEAN, usual_std[3] = CTN_IMAGENET_STD;
    memcpy(mean, usual_mean, sizeof usual_mean);
    memcpy(std, usual_std, sizeof usual_std);
    args_list(t->a, "mean", 3, mean);
    args_list(t->a, "std", 3, std);
}

static int64_t image_size(const task *t)
{
    int64_t size = args_int(t->a, "size");
    if (size > 0) return size;
    if (is_small(t->kind)) return 0; /* original size */
    if (t->onnx && onnx_image_size(t) > 0) return onnx_image_size(t);
    if (!t->zoo) return 224;
    return ends_with(t->zoo, "_cifar") ? 32 : strcmp(t->zoo, "lenet5") == 0 ? 28 : 224;
}

static ctn_image_opt image_options(const task *t, bool augment)
{
    ctn_image_opt o = {.struct_size = sizeof o, .height = image_size(t), .width = image_size(t)};
    pixel_moments(t, o.mean, o.std);
    o.gray = t->zoo && strcmp(t->zoo, "lenet5") == 0 && !is_small(t->kind);
    /* All pixels of a mask count. */
    if (t->kind == DATA_MASKS) o.crop = CTN_CROP_WHOLE;
    if (!augment || args_is(t->a, "augment", "none")) return o;
    o.crop = is_small(t->kind) ? CTN_CROP_PAD : CTN_CROP_RANDOM;
    if (args_is(t->a, "augment", "pad-crop")) o.crop = CTN_CROP_PAD;
    if (args_is(t->a, "augment", "random-crop")) o.crop = CTN_CROP_RANDOM;
    if (t->kind == DATA_MASKS) o.scale[0] = 0.25; /* smaller parts show too little of a scene */
    o.flip = t->kind != DATA_SVHN;                /* a mirrored digit is none */
    double jitter = args_real(t->a, "jitter");
    o.brightness = o.contrast = o.saturation = jitter;
    o.randaugment = (int)args_int(t->a, "randaugment");
    o.magnitude = args_real(t->a, "magnitude");
    return o;
}

static ctn_status open_records(data_kind kind, ctn_dataset **ds, const char *path, ctn_split split,
                               const ctn_cifar_opt *o)
{
    if (kind == DATA_CIFAR100) return ctn_cifar100_open(ds, path, split, o);
    if (kind == DATA_SVHN) return ctn_svhn_open(ds, path, split, o);
    return ctn_cifar10_open(ds, path, split, o);
}

static ctn_status open_small(task *t, ctn_dataset **ds, const char *path, ctn_split split,
                             bool augment)
{
    ctn_image_opt o = image_options(t, augment);
    ctn_cifar_opt c = {.struct_size = sizeof c};
    memcpy(c.mean, o.mean, sizeof c.mean);
    memcpy(c.std, o.std, sizeof c.std);
    augment = augment && !args_is(t->a, "augment", "none");
    const bool sized = t->use == FOR_TRAINING && args_text(t->a, "image-sizes")[0];
    if (!augment && !sized && args_int(t->a, "size") == 0)
        return open_records(t->kind, ds, path, split, &c);
    ctn_dataset *raw = NULL;
    CTN_TRY(open_records(t->kind, &raw, path, split, CTN_OPT(ctn_cifar_opt, .raw = 1)));
    ctn_status st = ctn_augment_new(ds, raw, &o);
    if (st < 0) ctn_dataset_free(raw);
    return st;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static double as_number(ctn_dtype type, const void *p, int64_t i)
{
    switch (type) {
    case CTN_F32: return ((const float *)p)[i];
    case CTN_F64: return ((const double *)p)[i];
    case CTN_I64: return (double)((const int64_t *)p)[i];
    case CTN_I32: return ((const int32_t *)p)[i];
    default: return ((const uint8_t *)p)[i];
    }
}

static bool is_float(ctn_dtype type)
{
    return type == CTN_F32 || type == CTN_F64;
}

static ctn_status convert(void *user, const ctn_sample *s, void *const *src, void *const *dst)
{
    const converter *c = user;
    (void)s;
    for (int f = 0; f < c->fields; f++) {
        ctn_dtype from = c->from[f].dtype, to = c->to[f].dtype;
        if (from == to && !(c->fill && is_float(from))) {
            memcpy(dst[f], src[f], (size_t)c->count[f] * ctn_dtype_size(to));
            continue;
        }
        for (int64_t i = 0; i < c->count[f]; i++) {
            double v = as_number(from, src[f], i);
            if (c->fill && isnan(v)) v = c->fill_value;
            if (to == CTN_I64) ((int64_t *)dst[f])[i] = (int64_t)v;
            else if (to == CTN_F64) ((double *)dst[f])[i] = v;
            else ((float *)dst[f])[i] = (float)v;
        }
    }
    return CTN_OK;
}

/* Add a leading dimension of 1 to a field without channels. */
static void add_channel(ctn_field *f)
{
    memmove(f->shape + 1, f->shape, sizeof *f->shape * (CTN_MAX_DIMS - 1));
    f->shape[0] = 1;
    f->ndim++;
}

/* Convert to the types that a network accepts: float inputs, i64 classes, other targets float. */
static ctn_status fit_arrays(task *t, ctn_dataset **ds)
{
    converter *c = &t->convert[t->nconvert++];
    bool same = true;
    c->fields = ctn_dataset_fields(*ds);
    c->fill = args_text(t->a, "fill")[0] != 0;
    c->fill_value = args_real(t->a, "fill");
    for (int f = 0; f < c->fields; f++) {
        c->from[f] = c->to[f] = *ctn_dataset_field(*ds, f);
        c->count[f] = field_elements(&c->from[f]);
        bool label = f == 1 && t->classify;
        if (label) c->to[f].dtype = CTN_I64;
        else if (!is_float(c->from[f].dtype)) /* large integers differ only in f64 */
            c->to[f].dtype = t->standardize[f] && c->from[f].dtype != CTN_U8 ? CTN_F64 : CTN_F32;
        if (t->net_is == NET_FIELD && args_int(t->a, "spatial") == c->from[f].ndim)
            add_channel(&c->to[f]);
        same = same && c->to[f].dtype == c->from[f].dtype && c->to[f].ndim == c->from[f].ndim;
        same = same && !(c->fill && is_float(c->from[f].dtype));
    }
    if (same) return CTN_OK;
    ctn_dataset *fitted = NULL;
    CTN_TRY(ctn_dataset_transform(&fitted, *ds, c->fields, c->to, convert, c));
    *ds = fitted;
    return CTN_OK;
}

/* A class is a number from 0 on; samples whose class is -100 do not count. With more classes than
 * samples, the numbers are hardly classes. */
static ctn_status check_label(double value, int64_t i, int64_t samples, const char *path)
{
    enum { IGNORED = -100, MANY = 100000 };
    if ((value < 0 && value != IGNORED) || value != floor(value))
        return ctn_fail(CTN_EFORMAT, "%s: the class of sample %lld is %g, expected 0, 1, ...", path,
                        (long long)i, value);
    if (value < MANY || value < (double)samples) return CTN_OK;
    return ctn_fail(CTN_EFORMAT,
                    "%s: the class of sample %lld is %.0f, but there are %lld samples: number the "
                    "classes 0, 1, ..., or use --classes if there are that many",
                    path, (long long)i, value, (long long)samples);
}

static ctn_status largest_class(int64_t *classes, const char *path)
{
    ctn_dataset *ds = NULL;
    ctn_status st = CTN_OK;
    double value[1] = {0}, most = 0;
    CTN_TRY(ctn_files_open(&ds, 1, &path, NULL));
    ctn_dtype type = ctn_dataset_field(ds, 0)->dtype;
    for (int64_t i = 0; i < ctn_dataset_count(ds); i++) {
        void *dst[] = {value};
        CTN_TRY_GOTO(st, done, ctn_dataset_get(ds, i, dst));
        const double label = as_number(type, value, 0);
        CTN_TRY_GOTO(st, done, check_label(label, i, ctn_dataset_count(ds), path));
        most = fmax(most, label);
    }
    *classes = (int64_t)most + 1;
done:
    ctn_dataset_free(ds);
    return st;
}

/* Rank 0 reads all labels; the other ranks receive the number of classes. */
static ctn_status count_classes(task *t, const char *path)
{
    const launch *l = t->a->job;
    if (l->rank == 0) CTN_TRY(largest_class(&t->classes, path));
    return l->comm ? ctn_comm_broadcast(l->comm, &t->classes, sizeof t->classes, 0) : CTN_OK;
}

static ctn_status open_arrays(task *t, ctn_dataset **ds, const char *path, const char *target)
{
    bool plain = args_is(t->a, "standardize", "none");
    const char *paths[2] = {path, target};
    if (t->use != FOR_PREDICTION && !target[0]) {
        t->now = DOING_SETUP; /* an error in the command line, not in the data */
        return ctn_fail(CTN_EARG,
                        "arrays need --target (and --val needs --val-target): the values to "
                        "predict from %s",
                        path);
    }
    CTN_TRY(ctn_files_open(ds, target[0] ? 2 : 1, paths,
                           CTN_OPT(ctn_files_opt, .keep_f64 = !plain,
                                   .fill = args_text(t->a, "fill")[0] != 0,
                                   .fill_value = args_real(t->a, "fill"))));
    const ctn_field *x = ctn_dataset_field(*ds, 0), *y = ctn_dataset_field(*ds, 1);
    t->f64 = x->dtype == CTN_F64;
    if (y)
        t->classify = args_is(t->a, "loss", "cross-entropy") ||
                      (args_is(t->a, "loss", "auto") && y->ndim == 0 && !is_float(y->dtype));
    else t->classify = args_is(t->a, "loss", "cross-entropy");
    t->standardize[0] = !plain;
    t->standardize[1] = !plain && !t->classify;
    if (y && t->classify && y->ndim != 0)
        return ctn_fail(CTN_EARG, "%s: classes must be integers, one per sample", target);
    if (y && t->classify && t->classes == 0 && t->use == FOR_TRAINING)
        CTN_TRY(count_classes(t, target));
    return fit_arrays(t, ds);
}

/* ---- any ------------------------------------------------------------------------------------- */

/* Rank 0's list of an image folder or of shards as one block of bytes. Called like snprintf. */
static size_t list_of(const task *t, const ctn_dataset *ds, void *buf, size_t n)
{
    return t->kind == DATA_SHARDS ? ctn_shards_index(ds, buf, n)
                                  : ctn_image_folder_list(ds, buf, n);
}

/* list: NULL to read the folder or the indexes. */
static ctn_status open_list(const task *t, ctn_dataset **ds, const char *path,
                            const ctn_image_opt *image, const void *list, size_t n)
{
    const char *stage = args_text(t->a, "stage");
    if (t->kind == DATA_SHARDS)
        return ctn_shards_open(ds, path,
                               CTN_OPT(ctn_shards_opt, .image = image,
                                       .stage = stage[0] ? stage : NULL, .index = list,
                                       .index_bytes = n));
    return list ? ctn_image_folder_open_list(ds, path, list, n, image)
                : ctn_image_folder_open(ds, path, image);
}

static ctn_status copy_list(const task *t, const ctn_dataset *ds, const char *path, void **list,
                            size_t *n)
{
    *n = list_of(t, ds, NULL, 0);
    *list = malloc(*n);
    if (!*list)
        return ctn_fail(CTN_ENOMEM, "no memory for %zu bytes of file names in %s", *n, path);
    list_of(t, ds, *list, *n);
    return CTN_OK;
}

/* Rank 0 lists an image folder, or finds the shards and reads their indexes. */
static ctn_status open_images(task *t, ctn_dataset **ds, const char *path,
                              const ctn_image_opt *image)
{
    launch *l = t->a->job;
    void *list = NULL;
    size_t n = 0;
    ctn_status st = CTN_OK;
    if (l->rank == 0 && t->kind == DATA_FOLDER && t->use == FOR_TRAINING && !t->set[0])
        CTN_TRY(check_class_folders(path));
    if (l->rank == 0) CTN_TRY(open_list(t, ds, path, image, NULL, 0));
    if (!l->comm) return CTN_OK;
    if (l->rank == 0) CTN_TRY(copy_list(t, *ds, path, &list, &n));
    CTN_TRY_GOTO(st, done, launch_bytes(l, &list, &n));
    if (l->rank != 0) CTN_TRY_GOTO(st, done, open_list(t, ds, path, image, list, n));
done:
    free(list);
    return st;
}

static ctn_status open_listed(const task *t, ctn_dataset **ds, const char *path, bool augment)
{
    const ctn_image_opt image = image_options(t, augment);
    if (t->kind == DATA_MASKS)
        return ctn_segmentation_open(ds, path, CTN_OPT(ctn_segmentation_opt, .image = &image));
    CTN_TRY(ctn_image_list_open(ds, path, NULL, &image));
    if (ctn_dataset_fields(*ds) > 1 || t->use == FOR_PREDICTION) return CTN_OK;
    return ctn_fail(CTN_EARG, "%s: expected a path and a class number in each line", path);
}

/* Open the samples of `from` again without augmentation, using its list. */
static ctn_status open_plain(task *t, ctn_dataset **ds, const char *path, const ctn_dataset *from)
{
    const ctn_image_opt image = image_options(t, false);
    void *list = NULL;
    size_t n = 0;
    if (is_small(t->kind)) return open_small(t, ds, path, CTN_TRAIN, false);
    if (t->kind == DATA_LIST || t->kind == DATA_MASKS) return open_listed(t, ds, path, false);
    CTN_TRY(copy_list(t, from, path, &list, &n));
    ctn_status st = open_list(t, ds, path, &image, list, n);
    free(list);
    return st;
}

static ctn_status open_set(task *t, ctn_dataset **ds, const char *path, const char *target,
                           ctn_split split, bool augment)
{
    ctn_image_opt image = image_options(t, augment);
    switch (t->kind) {
    case DATA_MNIST: return ctn_mnist_open(ds, path, split);
    case DATA_CIFAR:
    case DATA_CIFAR100:
    case DATA_SVHN: return open_small(t, ds, path, split, augment);
    case DATA_FOLDER:
    case DATA_SHARDS: return open_images(t, ds, path, &image);
    case DATA_IMAGES: return images_open(ds, path, &image);
    case DATA_ARRAYS: return open_arrays(t, ds, path, target);
    case DATA_TOKENS: return tokens_open(t, ds, path);
    case DATA_LIST:
    case DATA_MASKS: return open_listed(t, ds, path, augment);
    case DATA_TABLE: return table_open(t, ds, path, target);
    default: break;
    }
    if (access(path, R_OK) != 0) return ctn_fail(CTN_ENOTFOUND, "%s: %s", path, strerror(errno));
    return ctn_fail(
        CTN_ENOTFOUND,
        "%s: unknown data format; expected a folder with MNIST (*-ubyte), CIFAR-10 "
        "(data_batch_1.bin), CIFAR-100 (fine_label_names.txt), SVHN (*_32x32.mat), tar shards or "
        "class folders, or .npy, .h5:/name, .nc:/name, "
        ".csv, .tar, .txt or .bin; --format sets it explicitly",
        path);
}

/* Keep a dataset that others read through; it is freed after them. */
static void keep_base(task *t, ctn_dataset *ds)
{
    t->base[t->nbase++] = ds;
}

static bool augmented(const task *t)
{
    return t->kind == DATA_FOLDER || t->kind == DATA_SHARDS || is_small(t->kind) ||
           t->kind == DATA_LIST || t->kind == DATA_MASKS;
}

/* Take a share of the training data for validation. Its samples are read without augmentation. */
static ctn_status split_share(task *t, const char *path, double share)
{
    ctn_dataset *plain = NULL, *rest = NULL, *train = NULL, *val = NULL, *unused = NULL;
    ctn_status st = CTN_OK;
    const uint64_t seed = (uint64_t)args_int(t->a, "seed");
    keep_base(t, t->set[0]);
    ctn_dataset *all = t->set[0];
    t->set[0] = NULL;
    CTN_TRY(ctn_dataset_split(&train, &val, all, share, seed));
    t->set[0] = train;
    t->set[1] = val;
    const int64_t n = ctn_dataset_count(train), m = ctn_dataset_count(val), sum = n + m;
    if (n == 0 || m == 0)
        return ctn_fail(CTN_EARG, "--val-share is %g: of %lld samples, none is left for %s", share,
                        (long long)sum, n == 0 ? "training" : "validation");
    if (!augmented(t)) return CTN_OK;
    CTN_TRY(open_plain(t, &plain, path, all));
    keep_base(t, plain);
    CTN_TRY_GOTO(st, done, ctn_dataset_split(&unused, &rest, plain, share, seed));
    ctn_dataset_free(t->set[1]);
    t->set[1] = rest;
done:
    ctn_dataset_free(unused);
    return st;
}

/* ---- where the data is ----------------------------------------------------------------------- */

/* What rank 0 finds at --data. */
typedef struct {
    data_kind kind;
    char path[4096], val[4096]; /* val: validation data found next to it; "": none */
} place;

/* DIR/train with DIR/val or DIR/test, a common layout of ImageNet. */
static void look_for_parts(const task *t, place *p)
{
    char train[sizeof p->path], part[sizeof p->path];
    if (!is_folder(join(train, sizeof train, p->path, "train"))) return;
    if (!is_folder(join(part, sizeof part, p->path, "val")) &&
        !is_folder(join(part, sizeof part, p->path, "test")))
        part[0] = 0;
    if (t->use == FOR_TRAINING) {
        p->kind = guess_kind(train, "auto");
        snprintf(p->path, sizeof p->path, "%s", train);
        snprintf(p->val, sizeof p->val, "%s", part);
    } else if (part[0] || t->held_out) {
        const bool first = !part[0] || args_is(t->a, "split", "train");
        snprintf(p->path, sizeof p->path, "%s", first ? train : part);
        if (!first) snprintf(p->val, sizeof p->val, "%s", part);
        if (guess_kind(p->path, "auto") == DATA_MASKS) p->kind = DATA_MASKS;
    }
}

static ctn_status find_place(const task *t, place *p)
{
    const launch *l = t->a->job;
    const char *path = args_text(t->a, "data");
    if (snprintf(p->path, sizeof p->path, "%s", path) >= (int)sizeof p->path)
        return ctn_fail(CTN_EARG, "--data is longer than %zu bytes: %s", sizeof p->path - 1, path);
    if (l->rank == 0) p->kind = guess_kind(path, args_text(t->a, "format"));
    if (l->rank == 0 && p->kind == DATA_FOLDER) look_for_parts(t, p);
    return l->comm ? ctn_comm_broadcast(l->comm, p, sizeof *p, 0) : CTN_OK;
}

/* ---- names of classes ------------------------------------------------------------------------ */

void class_names_free(class_names *c)
{
    free(c->name);
    free(c->text);
    *c = (class_names){0};
}

/* One name per line. */
static ctn_status split_lines(class_names *c)
{
    for (const char *p = c->text; *p; p += *p == '\n') {
        c->n++;
        p += strcspn(p, "\n");
    }
    c->name = calloc((size_t)c->n + 1, sizeof *c->name);
    if (!c->name) return ctn_fail(CTN_ENOMEM, "no memory for the class names");
    char *p = c->text;
    for (int64_t k = 0; k < c->n; k++) {
        c->name[k] = p;
        p += strcspn(p, "\n");
        if (*p) *p++ = 0;
    }
    return CTN_OK;
}

ctn_status class_names_read(class_names *c, launch *l, const char *weights)
{
    char path[4096];
    const char *slash = strrchr(weights, '/');
    size_t n = 0; /* including the final 0; 0: there is no such file */
    *c = (class_names){0};
    snprintf(path, sizeof path, "%.*sclasses.txt", slash ? (int)(slash + 1 - weights) : 0, weights);
    FILE *f = l->rank == 0 && weights[0] && is_found(path) ? fopen(path, "r") : NULL;
    if (f) {
        size_t room = 0;
        const ssize_t got = getdelim(&c->text, &room, 0, f); /* the whole file */
        n = got > 0 ? (size_t)got + 1 : 0;
        fclose(f);
    }
    void *text = c->text;
    ctn_status st = l->comm ? launch_bytes(l, &text, &n) : CTN_OK;
    c->text = text;
    if (st == CTN_OK && n > 0) st = split_lines(c);
    if (st < 0 || n == 0) class_names_free(c);
    return st;
}

/* Number the classes of *ds as in this list of names. Data without class names is left
 * unchanged. */
static ctn_status number_classes(ctn_dataset **ds, int64_t n, const char *const *name)
{
    ctn_dataset *as = NULL;
    const ctn_field *label = ctn_dataset_field(*ds, 1);
    if (n == 0 || ctn_dataset_classes(*ds) == 0) return CTN_OK;
    if (label && label->ndim > 0) return CTN_OK; /* a mask has numbers */
    CTN_TRY(ctn_dataset_relabel(&as, *ds, n, name));
    *ds = as;
    return CTN_OK;
}

/* Number classes as in the training data. */
static ctn_status number_as_trained(task *t, ctn_dataset **ds)
{
    const int64_t n = ctn_dataset_classes(t->set[0]);
    const char **name = calloc((size_t)n + 1, sizeof *name);
    if (!name) return ctn_fail(CTN_ENOMEM, "no memory for the class names");
    for (int64_t k = 0; k < n; k++) name[k] = ctn_dataset_class(t->set[0], k);
    ctn_status st = number_classes(ds, n, name);
    free(name);
    return st;
}

/* Number classes as in the training that produced the weights. */
static ctn_status number_as_known(task *t, ctn_dataset **ds)
{
    class_names c;
    CTN_TRY(class_names_read(&c, t->a->job, args_text(t->a, "weights")));
    ctn_status st = number_classes(ds, c.n, (const char *const *)c.name);
    class_names_free(&c);
    return st;
}

static ctn_status open_training(task *t, const place *p, const char *target)
{
    const char *val = args_text(t->a, "val");
    double share = args_real(t->a, "val-share");
    if (!val[0]) val = p->val;
    CTN_TRY(open_set(t, &t->set[0], p->path, target, CTN_TRAIN, true));
    if (val[0]) {
        CTN_TRY(open_set(t, &t->set[1], val, args_text(t->a, "val-target"), CTN_TEST, false));
        return number_as_trained(t, &t->set[1]);
    }
    if (share > 0) return split_share(t, p->path, share);
    if (t->kind == DATA_MNIST || is_small(t->kind))
        return open_set(t, &t->set[1], p->path, target, CTN_TEST, false);
    return CTN_OK;
}

/* The samples to evaluate: with --held-out, those that split_share took for validation. */
static ctn_status open_evaluated(task *t, const place *p, const char *target)
{
    const bool share = t->held_out && !p->val[0] && args_real(t->a, "val-share") > 0;
    const bool train = share || args_is(t->a, "split", "train");
    ctn_dataset *rest = NULL, *val = NULL;
    CTN_TRY(open_set(t, &t->set[0], p->path, target, train ? CTN_TRAIN : CTN_TEST, false));
    if (!share) return CTN_OK;
    keep_base(t, t->set[0]);
    ctn_dataset *all = t->set[0];
    t->set[0] = NULL;
    CTN_TRY(ctn_dataset_split(&rest, &val, all, args_real(t->a, "val-share"),
                              (uint64_t)args_int(t->a, "seed")));
    ctn_dataset_free(rest);
    t->set[0] = val;
    return CTN_OK;
}

static void add_field(FILE *f, const ctn_field *field)
{
    fprintf(f, " (");
    for (int i = 0; field && i < field->ndim; i++)
        fprintf(f, "%s%lld", i ? "," : "", (long long)field->shape[i]);
    fprintf(f, ") of %s", field ? ctn_dtype_name(field->dtype) : "nothing");
}

/* A hash of the class names, whose order follows from file names. */
static uint64_t class_hash(const ctn_dataset *ds)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (int64_t k = 0; k < ctn_dataset_classes(ds); k++)
        for (const char *p = ctn_dataset_class(ds, k); p && *p; p++)
            h = (h ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    return h;
}

/* If ranks saw different data, samples would be used twice or never, and the number of steps
 * would differ. */
static ctn_status compare_data(const task *t)
{
    char *text = NULL;
    size_t n = 0;
    if (!t->a->job->comm) return CTN_OK;
    FILE *f = open_memstream(&text, &n);
    if (!f) return ctn_fail(CTN_ENOMEM, "no memory to compare the data of the ranks");
    fprintf(f, "Catena %s\n", ctn_version_text());
    for (int k = 0; k < 2; k++) {
        const char *what = t->use != FOR_TRAINING ? "" : k ? "validation " : "training ";
        if (!t->set[k]) continue;
        fprintf(f, "%lld %ssamples\n%ssamples of shape", (long long)ctn_dataset_count(t->set[k]),
                what, what);
        add_field(f, ctn_dataset_field(t->set[k], 0));
        fprintf(f, " with targets of shape");
        add_field(f, ctn_dataset_field(t->set[k], 1));
        fputc('\n', f);
    }
    fprintf(f, "%lld classes, whose names have the hash %016llx\n", (long long)t->classes,
            (unsigned long long)class_hash(t->set[0]));
    const bool bad = fclose(f) != 0;
    ctn_status st = bad ? ctn_fail(CTN_ENOMEM, "no memory to compare the data of the ranks")
                        : launch_agree(t->a->job, text);
    free(text);
    return st;
}

ctn_status task_data(task *t)
{
    place p = {.kind = DATA_UNKNOWN};
    const char *path = args_text(t->a, "data"), *target = args_text(t->a, "target");
    if (!path[0]) {
        t->now = DOING_SETUP;
        return ctn_fail(CTN_EARG, "no data given: use --data PATH");
    }
    t->now = DOING_DATA;
    CTN_TRY(find_place(t, &p));
    t->kind = p.kind;
    t->pixels = t->kind == DATA_MASKS || (t->use == FOR_PREDICTION && t->net_is == NET_FIELD &&
                                          args_is(t->a, "loss", "cross-entropy"));
    if (t->kind == DATA_IMAGES && t->use != FOR_PREDICTION)
        return ctn_fail(CTN_ENOTFOUND,
                        "%s: found images without classes, expected one folder per class", p.path);
    t->classes = args_int(t->a, "classes");
    t->classify = t->kind != DATA_ARRAYS && t->kind != DATA_TABLE;
    if (t->use == FOR_TRAINING) CTN_TRY(open_training(t, &p, target));
    else CTN_TRY(open_evaluated(t, &p, target));
    if (t->use == FOR_EVALUATION) CTN_TRY(number_as_known(t, &t->set[0]));
    CTN_TRY(tokens_mask(t));
    t->input = *ctn_dataset_field(t->set[0], 0);
    const ctn_field *y = ctn_dataset_field(t->set[0], 1);
    if (y) t->target = *y;
    if (t->classes == 0 && t->classify) t->classes = ctn_dataset_classes(t->set[0]);
    if (t->classes == 0 && t->kind == DATA_CIFAR100) t->classes = 100;
    if (t->classes == 0 && (t->kind == DATA_MNIST || is_small(t->kind))) t->classes = 10;
    if (ctn_dataset_count(t->set[0]) == 0) return ctn_fail(CTN_ENOTFOUND, "%s: no samples", path);
    if (t->set[1] && ctn_dataset_count(t->set[1]) == 0)
        return ctn_fail(CTN_ENOTFOUND, "the validation data has no samples");
    return compare_data(t);
}

/* ---- loaders --------------------------------------------------------------------------------- */

static ctn_status standardize_set(task *t, ctn_dataset **ds)
{
    for (int f = 0; f < 2; f++) {
        int64_t n = 0;
        double *mean = NULL, *std = NULL;
        ctn_dataset *next = NULL;
        if (!t->moment[f][0] || f >= ctn_dataset_fields(*ds)) continue;
        CTN_TRY(task_moment_values(t, f, &n, &mean, &std));
        ctn_status st = ctn_dataset_standardize(&next, *ds, f, n, mean, std);
        free(mean);
        free(std);
        CTN_TRY(st);
        *ds = next;
    }
    return CTN_OK;
}

static int64_t usual_batch(const task *t)
{
    static const int64_t usual[] = {
        [DATA_MNIST] = 100, [DATA_CIFAR] = 128, [DATA_FOLDER] = 32,    [DATA_IMAGES] = 32,
        [DATA_SHARDS] = 32, [DATA_ARRAYS] = 64, [DATA_TOKENS] = 16,    [DATA_TABLE] = 64,
        [DATA_LIST] = 32,   [DATA_MASKS] = 8,   [DATA_CIFAR100] = 128, [DATA_SVHN] = 128};
    return usual[t->kind];
}

static int usual_threads(const task *t)
{
    ctn_machine m;
    ctn_machine_get(&m);
    bool decodes = t->kind == DATA_FOLDER || t->kind == DATA_SHARDS || t->kind == DATA_IMAGES ||
                   t->kind == DATA_LIST || t->kind == DATA_MASKS;
    return !decodes ? 1 : m.cpus < 8 ? m.cpus : 8;
}

/* Statistics over all ranks need every rank in every step. One rank drops the last batch too, so
 * that training does not depend on the number of ranks. */
bool drops_last(const args *a)
{
    return args_flag(a, "drop-last") || args_flag(a, "sync-batch-norm");
}

/* Samples of a block of a training with --reproducible; 0: no blocks. */
static int64_t block_of(const args *a)
{
    if (!args_flag(a, "reproducible")) return 0;
    return (args_int(a, "total-batch") - 1) / args_int(a, "blocks") + 1;
}

enum { SIZES_MOST = 16 };

/* The sizes of training images. */
static ctn_status image_sizes(const task *t, int64_t size[SIZES_MOST], int *n)
{
    double value[SIZES_MOST + 1] = {0};
    *n = args_list(t->a, "image-sizes", SIZES_MOST + 1, value);
    if (*n > SIZES_MOST)
        return ctn_fail(CTN_EARG, "--image-sizes: expected at most %d sizes", SIZES_MOST);
    for (int i = 0; i < *n; i++) size[i] = (int64_t)value[i];
    return CTN_OK;
}

static ctn_status open_loader(task *t, int k, bool training)
{
    ctn_sampler *order = NULL;
    ctn_status st = CTN_OK;
    int nsizes = 0;
    int64_t size[SIZES_MOST] = {0};
    int64_t n = ctn_dataset_count(t->set[k]), batch = args_int(t->a, "batch");
    int threads = args_text(t->a, "loader-threads")[0] ? (int)args_int(t->a, "loader-threads")
                                                       : usual_threads(t);
    ctn_mix_opt mix = {.struct_size = sizeof mix,
                       .mixup = args_real(t->a, "mixup"),
                       .cutmix = args_real(t->a, "cutmix"),
                       .classes = t->classes};
    bool mixed = training && (mix.mixup > 0 || mix.cutmix > 0);
    if (mixed && !t->classify)
        return ctn_fail(CTN_EARG, "--mixup and --cutmix need targets that are classes");
    if (training) CTN_TRY(ctn_sampler_shuffled(&order, n, (uint64_t)args_int(t->a, "seed")));
    else CTN_TRY(ctn_sampler_sequential(&order, n));
    t->loader_threads = threads;
    if (training) CTN_TRY_GOTO(st, done, image_sizes(t, size, &nsizes));
    CTN_TRY_GOTO(st, done, ctn_sampler_shard(order, t->a->job->rank, t->a->job->size));
    st = ctn_loader_new(&t->loader[k], t->set[k], order,
                        CTN_OPT(ctn_loader_opt, .batch = batch, .threads = threads,
                                .total = training ? args_int(t->a, "total-batch") : 0,
                                .block = training ? block_of(t->a) : 0,
                                .drop_last = training && drops_last(t->a),
                                .skip = args_real(t->a, "skip"), .mix = mixed ? &mix : NULL,
                                .sizes = nsizes > 0 ? size : NULL, .nsizes = nsizes,
                                .size_every = nsizes > 0 ? args_int(t->a, "size-every") : 0));
done:
    ctn_sampler_free(order);
    return st;
}

ctn_status task_loaders(task *t)
{
    t->now = DOING_DATA;
    if (t->use == FOR_TRAINING && args_int(t->a, "total-batch") > 0)
        args_settle(t->a, "batch", "%lld",
                    (long long)((args_int(t->a, "total-batch") + t->a->job->size - 1) /
                                t->a->job->size));
    if (args_int(t->a, "batch") == 0) args_settle(t->a, "batch", "%lld", (long long)usual_batch(t));
    for (int k = 0; k < 2; k++) {
        if (!t->set[k]) continue;
        CTN_TRY(standardize_set(t, &t->set[k]));
        CTN_TRY(open_loader(t, k, k == 0 && t->use == FOR_TRAINING));
    }
    return CTN_OK;
}
