/* SPDX-License-Identifier: Apache-2.0
 *
 * Dataset over a token file, by memory map: sample i is tokens i*stride .. i*stride+length-1, and
 * the same one later as the target. A file is nothing but little-endian tokens of 2 or 4 bytes, or
 * bytes of text; hundreds of GB cost no memory.
 */
#include <sys/mman.h>

#include <catena/datasets.h>
#include "data/source.h"

struct tokens {
    char *path;
    const uint8_t *map;
    size_t bytes; /* of the file */
    int64_t count;
    ctn_tokens_opt opt;
};

static int64_t tokens_count(void *self)
{
    return ((struct tokens *)self)->count;
}

static int tokens_fields(void *self)
{
    (void)self;
    return 2;
}

static void tokens_field(void *self, int f, ctn_field *out)
{
    (void)f;
    *out = (ctn_field){CTN_I64, 1, {((struct tokens *)self)->opt.length}, 0};
}

static int64_t token(const uint8_t *p, int bytes)
{
    int64_t v = p[0];
    if (bytes > 1) v |= (int64_t)p[1] << 8;
    if (bytes > 2) v |= (int64_t)p[2] << 16 | (int64_t)p[3] << 24;
    return v;
}

static ctn_status tokens_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct tokens *t = self;
    const int64_t n = t->opt.length;
    const int bytes = t->opt.bytes;
    int64_t *x = dst[0], *y = dst[1];
    const uint8_t *p = t->map + (size_t)(s->index * t->opt.stride) * (size_t)bytes;
    for (int64_t i = 0; i < n; i++) x[i] = token(p + i * bytes, bytes);
    memcpy(y, x + 1, (size_t)(n - 1) * sizeof *y);
    y[n - 1] = token(p + n * bytes, bytes);
    return CTN_OK;
}

static void tokens_free(void *self)
{
    struct tokens *t = self;
    if (!t) return;
    if (t->map) munmap((void *)t->map, t->bytes);
    ctn__free(t->path);
    ctn__free(t);
}

static int tokens_name(void *self, int64_t index, char *buf, size_t n)
{
    const struct tokens *t = self;
    const int64_t first = index * t->opt.stride;
    return snprintf(buf, n, "%s[%lld]", t->path, (long long)first);
}

static const ctn_dataset_vt tokens_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = tokens_count,
    .fields = tokens_fields,
    .field = tokens_field,
    .get = tokens_get,
    .free = tokens_free,
    .name = tokens_name,
};

static ctn_status open_file(struct tokens *t, const char *path)
{
    ctn_tokens_opt *o = &t->opt;
    const char *map = NULL;
    if (o->length == 0) o->length = 256;
    if (o->stride == 0) o->stride = o->length;
    if (o->bytes == 0) o->bytes = 2;
    if (o->length < 1 || o->stride < 1 || (o->bytes != 1 && o->bytes != 2 && o->bytes != 4))
        return ctn_fail(CTN_EARG,
                        "tokens: length %lld, stride %lld, %d bytes; expected positive ones and 1, "
                        "2 or 4 bytes",
                        (long long)o->length, (long long)o->stride, o->bytes);
    t->path = ctn__strdup(path);
    if (!t->path) return CTN_ENOMEM;
    CTN_TRY(ctn__file_map("tokens", path, &map, &t->bytes));
    t->map = (const uint8_t *)map;
    if (t->bytes % (size_t)o->bytes)
        return ctn_fail(CTN_EFORMAT, "tokens: %s: %zu bytes are no whole number of %d-byte tokens",
                        path, t->bytes, o->bytes);
    const int64_t n = (int64_t)(t->bytes / (size_t)o->bytes);
    if (n <= o->length) /* the target needs one more than a sample */
        return ctn_fail(CTN_EARG, "tokens: %s: has %lld tokens, a sample of %lld needs one more",
                        path, (long long)n, (long long)o->length);
    t->count = (n - o->length - 1) / o->stride + 1;
    return CTN_OK;
}

ctn_status ctn_tokens_open(ctn_dataset **ds, const char *path, const ctn_tokens_opt *opt)
{
    if (!ds || !path) return ctn_fail(CTN_EARG, "tokens: NULL argument");
    *ds = NULL;
    ctn_status st = CTN_OK;
    struct tokens *t = ctn__calloc(1, sizeof *t);
    if (!t) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__opt("tokens", &t->opt, sizeof t->opt, opt));
    CTN_TRY_GOTO(st, done, open_file(t, path));
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &tokens_vt, t));
    t = NULL; /* the dataset's now */
done:
    tokens_free(t);
    return st;
}
