/* SPDX-License-Identifier: Apache-2.0
 *
 * CIFAR-10 and CIFAR-100 in their binary versions. A file consists of records without a header:
 *     label (0 to 9)                                red (32,32)   green (32,32)   blue (32,32)
 *     coarse label (0 to 19)   fine label (0 to 99)   red ...                        (CIFAR-100)
 * Files are treated as hostile: the size must be a whole number of records, and every label must be
 * a class. Bytes stay u8 in memory; images are converted when samples are read. svhn.c has its
 * images here too.
 */
#include <unistd.h>

#include "data/source.h"

/* ---- small images in memory ------------------------------------------------------------------ */

static int64_t small_count(void *self)
{
    return ((ctn__small_images *)self)->count;
}

static int small_fields(void *self)
{
    (void)self;
    return 2;
}

static void small_field(void *self, int f, ctn_field *out)
{
    const ctn__small_images *x = self;
    if (f == 1) *out = (ctn_field){.dtype = CTN_I64};
    else
        *out =
            (ctn_field){x->opt.raw ? CTN_U8 : CTN_F32, 3, {3, CTN__SMALL_SIDE, CTN__SMALL_SIDE}, 0};
}

static ctn_status small_get(void *self, const ctn_sample *s, void *const *dst)
{
    enum { PLANE = CTN__SMALL_PIXELS / 3 };
    const ctn__small_images *x = self;
    const uint8_t *src = x->pixels + (size_t)s->index * x->pixel_step;
    *(int64_t *)dst[1] = x->label[(size_t)s->index * x->label_step];
    if (x->opt.raw) {
        memcpy(dst[0], src, CTN__SMALL_PIXELS);
        return CTN_OK;
    }
    float *y = dst[0];
    for (int k = 0; k < 3; k++) {
        const float mean = (float)x->opt.mean[k], std = (float)x->opt.std[k];
        for (int i = k * PLANE; i < (k + 1) * PLANE; i++)
            y[i] = ((float)src[i] / 255.0f - mean) / std;
    }
    return CTN_OK;
}

static void small_free(void *self)
{
    ctn__small_images *x = self;
    ctn__free(x->memory[0]);
    ctn__free(x->memory[1]);
    ctn__free(x);
}

static const ctn_dataset_vt small_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = small_count,
    .fields = small_fields,
    .field = small_field,
    .get = small_get,
    .free = small_free,
};

ctn_status ctn__small_opt(const char *who, ctn_split split, ctn_cifar_opt *to,
                          const ctn_cifar_opt *from)
{
    if (split != CTN_TRAIN && split != CTN_TEST)
        return ctn_fail(CTN_EARG, "%s: split is %d, expected CTN_TRAIN or CTN_TEST", who,
                        (int)split);
    CTN_TRY(ctn__opt(who, to, sizeof *to, from));
    for (int k = 0; k < 3; k++)
        if (to->std[k] == 0) to->std[k] = 1;
    return CTN_OK;
}

ctn_status ctn__small_new(ctn_dataset **ds, const ctn__small_images *from)
{
    ctn__small_images *x = ctn__malloc(sizeof *x);
    if (!x) return CTN_ENOMEM;
    *x = *from;
    ctn_status st = ctn_dataset_new(ds, &small_vt, x);
    if (st < 0) ctn__free(x);
    return st;
}

/* ---- CIFAR ----------------------------------------------------------------------------------- */

struct form {
    int labels;     /* bytes before the pixels */
    int classes[2]; /* of each label */
};

struct records {
    struct form form;
    size_t record; /* bytes */
    uint8_t *at;
    int64_t count;
};

static ctn_status check_labels(const struct records *c, const char *path, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i += c->record)
        for (int k = 0; k < c->form.labels; k++)
            if (c->at[i + (size_t)k] >= c->form.classes[k])
                return ctn_fail(CTN_EFORMAT,
                                "cifar: %s: record %zu has %slabel %d, expected 0 to %d", path,
                                (i - begin) / c->record,
                                c->form.labels == 1 ? ""
                                : k == 0            ? "coarse "
                                                    : "fine ",
                                c->at[i + (size_t)k], c->form.classes[k] - 1);
    return CTN_OK;
}

static ctn_status read_all(const char *path, int fd, size_t bytes, struct records *c)
{
    const size_t used = (size_t)c->count * c->record;
    if (bytes == 0 || bytes % c->record)
        return ctn_fail(CTN_EFORMAT, "cifar: %s: has %zu bytes, expected a multiple of %zu", path,
                        bytes, c->record);
    uint8_t *all = ctn__grow(c->at, used, used + bytes);
    if (!all) return CTN_ENOMEM;
    c->at = all;
    CTN_TRY(ctn__file_read("cifar", path, fd, all + used, bytes, 0));
    CTN_TRY(check_labels(c, path, used, used + bytes));
    c->count += (int64_t)(bytes / c->record);
    return CTN_OK;
}

/* Appends the records of dir/name. */
static ctn_status add_file(struct records *c, const char *dir, const char *name)
{
    ctn_status st = CTN_OK;
    struct stat info;
    int fd = -1;
    ctn__text path = {0};
    ctn__text_add(&path, "%s/%s", dir, name);
    if (path.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn__file_open("cifar", path.s, &fd, &info));
    CTN_TRY_GOTO(st, done, read_all(path.s, fd, (size_t)info.st_size, c));
done:
    if (fd >= 0) close(fd);
    ctn__text_free(&path);
    return st;
}

/* Opens the n files of a split; label: which one of a record. */
static ctn_status open_files(ctn_dataset **ds, const char *dir, struct form form, int n,
                             const char *const *name, int label, const ctn_cifar_opt *filled)
{
    const size_t labels = (size_t)form.labels, record = labels + CTN__SMALL_PIXELS;
    ctn_status st = CTN_OK;
    struct records c = {.form = form, .record = record};
    for (int i = 0; i < n; i++) CTN_TRY_GOTO(st, done, add_file(&c, dir, name[i]));
    const ctn__small_images x = {.count = c.count,
                                 .label = c.at + label,
                                 .pixels = c.at + labels,
                                 .label_step = record,
                                 .pixel_step = record,
                                 .memory = {c.at, NULL},
                                 .opt = *filled};
    CTN_TRY_GOTO(st, done, ctn__small_new(ds, &x));
    c.at = NULL; /* owned by the dataset */
done:
    ctn__free(c.at);
    return st;
}

ctn_status ctn_cifar10_open(ctn_dataset **ds, const char *dir, ctn_split split,
                            const ctn_cifar_opt *opt)
{
    static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
    ctn_cifar_opt o;
    if (!ds || !dir) return ctn_fail(CTN_EARG, "cifar: NULL argument");
    *ds = NULL;
    CTN_TRY(ctn__small_opt("cifar", split, &o, opt));
    const bool train = split == CTN_TRAIN;
    return open_files(ds, dir, (struct form){1, {10}}, train ? 5 : 1, train ? names : names + 5, 0,
                      &o);
}

ctn_status ctn_cifar100_open(ctn_dataset **ds, const char *dir, ctn_split split,
                             const ctn_cifar_opt *opt)
{
    static const char *const names[] = {"train.bin", "test.bin"};
    ctn_cifar_opt o;
    if (!ds || !dir) return ctn_fail(CTN_EARG, "cifar: NULL argument");
    *ds = NULL;
    CTN_TRY(ctn__small_opt("cifar", split, &o, opt));
    return open_files(ds, dir, (struct form){2, {20, 100}}, 1,
                      split == CTN_TRAIN ? names : names + 1, o.coarse ? 0 : 1, &o);
}
