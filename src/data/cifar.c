/* SPDX-License-Identifier: Apache-2.0
 *
 * CIFAR-10 in its binary version. A file consists of records of 3073 bytes, without a header:
 *     label (0 to 9)   red (32,32)   green (32,32)   blue (32,32)
 * Files are treated as hostile: the size must be a whole number of records, and every label must be
 * a class. Bytes stay u8 in memory; images are converted when samples are read.
 */
#include <errno.h>
#include <sys/stat.h>

#include "data/data.h"

enum { PLANE = 32 * 32, PIXELS = 3 * PLANE, RECORD = 1 + PIXELS, CLASSES = 10 };

struct cifar {
    uint8_t *records;
    int64_t count;
    ctn_cifar_opt opt;
};

static ctn_status read_all(const char *path, FILE *f, struct cifar *c)
{
    struct stat info;
    if (fstat(fileno(f), &info) != 0)
        return ctn_fail(CTN_EIO, "cifar: %s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return ctn_fail(CTN_EIO, "cifar: %s: is not a regular file", path);
    const size_t bytes = (size_t)info.st_size, used = (size_t)c->count * RECORD;
    if (bytes == 0 || bytes % RECORD)
        return ctn_fail(CTN_EFORMAT, "cifar: %s: has %zu bytes, expected a multiple of %d", path,
                        bytes, RECORD);
    uint8_t *all = ctn__grow(c->records, used, used + bytes);
    if (!all) return CTN_ENOMEM;
    c->records = all;
    if (fread(all + used, 1, bytes, f) != bytes)
        return ctn_fail(CTN_EIO, "cifar: %s: %s", path,
                        ferror(f) ? strerror(errno) : "became shorter while it was read");
    for (size_t i = used; i < used + bytes; i += RECORD)
        if (all[i] >= CLASSES)
            return ctn_fail(CTN_EFORMAT, "cifar: %s: record %zu has label %d, expected 0 to %d",
                            path, (i - used) / RECORD, all[i], CLASSES - 1);
    c->count += (int64_t)(bytes / RECORD);
    return CTN_OK;
}

/* Appends the records of dir/name. */
static ctn_status add_file(struct cifar *c, const char *dir, const char *name)
{
    ctn_status st = CTN_OK;
    FILE *f = NULL;
    ctn__text path = {0};
    ctn__text_add(&path, "%s/%s", dir, name);
    if (path.failed) {
        st = CTN_ENOMEM;
        goto done;
    }
    f = fopen(path.s, "rb");
    st = f ? read_all(path.s, f, c) : ctn_fail(CTN_EIO, "cifar: %s: %s", path.s, strerror(errno));
done:
    if (f) fclose(f);
    ctn__text_free(&path);
    return st;
}

static int64_t cifar_count(void *self)
{
    return ((struct cifar *)self)->count;
}

static int cifar_fields(void *self)
{
    (void)self;
    return 2;
}

static void cifar_field(void *self, int f, ctn_field *out)
{
    const struct cifar *c = self;
    if (f == 1) *out = (ctn_field){.dtype = CTN_I64};
    else *out = (ctn_field){c->opt.raw ? CTN_U8 : CTN_F32, 3, {3, 32, 32}, 0};
}

static ctn_status cifar_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct cifar *c = self;
    const uint8_t *src = c->records + (size_t)s->index * RECORD;
    *(int64_t *)dst[1] = src[0];
    if (c->opt.raw) {
        memcpy(dst[0], src + 1, PIXELS);
        return CTN_OK;
    }
    float *y = dst[0];
    for (int k = 0; k < 3; k++) {
        const float mean = (float)c->opt.mean[k], std = (float)c->opt.std[k];
        for (int i = k * PLANE; i < (k + 1) * PLANE; i++)
            y[i] = ((float)src[1 + i] / 255.0f - mean) / std;
    }
    return CTN_OK;
}

static void cifar_free(void *self)
{
    struct cifar *c = self;
    if (!c) return;
    ctn__free(c->records);
    ctn__free(c);
}

static const ctn_dataset_vt cifar_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = cifar_count,
    .fields = cifar_fields,
    .field = cifar_field,
    .get = cifar_get,
    .free = cifar_free,
};

ctn_status ctn_cifar10_open(ctn_dataset **ds, const char *dir, ctn_split split,
                            const ctn_cifar_opt *opt)
{
    static const char *const train[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin"};
    if (!ds || !dir) return ctn_fail(CTN_EARG, "cifar: NULL argument");
    *ds = NULL;
    if (split != CTN_TRAIN && split != CTN_TEST)
        return ctn_fail(CTN_EARG, "cifar: split is %d, expected CTN_TRAIN or CTN_TEST", (int)split);
    ctn_status st = CTN_OK;
    struct cifar *c = ctn__calloc(1, sizeof *c);
    if (!c) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__opt("cifar", &c->opt, sizeof c->opt, opt));
    for (int k = 0; k < 3; k++)
        if (c->opt.std[k] == 0) c->opt.std[k] = 1;
    if (split == CTN_TEST) CTN_TRY_GOTO(st, done, add_file(c, dir, "test_batch.bin"));
    for (int i = 0; i < 5 && split == CTN_TRAIN; i++)
        CTN_TRY_GOTO(st, done, add_file(c, dir, train[i]));
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &cifar_vt, c));
    c = NULL; /* owned by the dataset */
done:
    cifar_free(c);
    return st;
}
