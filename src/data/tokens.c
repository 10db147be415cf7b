/* SPDX-License-Identifier: Apache-2.0
 *
 * Dataset over a token file: sample i is the tokens i*stride .. i*stride+length-1, and its target
 * is the same range shifted by one. A file contains nothing but little-endian tokens of 2 or 4
 * bytes, or bytes of text. Files of hundreds of GB take no memory.
 */
#include <catena/datasets.h>
#include "data/source.h"

struct tokens {
    ctn__array_file file;
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

/* Reads the first token into x and all others into y; the rest of x is copied from y. */
static ctn_status tokens_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct tokens *t = self;
    const char *held = t->file.held;
    const int bytes = t->opt.bytes;
    const int64_t n = t->opt.length, most = held ? n + 1 : CTN__PIECE / bytes;
    char piece[CTN__PIECE];
    int64_t *x = dst[0], *y = dst[1];
    for (int64_t done = 0, k; done <= n; done += k) {
        const uint64_t offset = (uint64_t)(s->index * t->opt.stride + done) * (uint64_t)bytes;
        k = n + 1 - done < most ? n + 1 - done : most;
        if (!held) CTN_TRY(ctn__array_file_read(&t->file, piece, (size_t)(k * bytes), offset));
        const uint8_t *p = (const uint8_t *)(held ? held + offset : piece);
        if (done == 0) x[0] = token(p, bytes);
        for (int64_t i = done == 0; i < k; i++) y[done + i - 1] = token(p + i * bytes, bytes);
    }
    memcpy(x + 1, y, (size_t)(n - 1) * sizeof *x);
    return CTN_OK;
}

static void tokens_free(void *self)
{
    struct tokens *t = self;
    if (!t) return;
    ctn__array_file_close(&t->file);
    ctn__free(t);
}

static int tokens_name(void *self, int64_t index, char *buf, size_t n)
{
    const struct tokens *t = self;
    const int64_t first = index * t->opt.stride;
    return snprintf(buf, n, "%s[%lld]", t->file.path, (long long)first);
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
    if (o->length == 0) o->length = 256;
    if (o->stride == 0) o->stride = o->length;
    if (o->bytes == 0) o->bytes = 2;
    if (o->length < 1 || o->stride < 1 || (o->bytes != 1 && o->bytes != 2 && o->bytes != 4))
        return ctn_fail(CTN_EARG,
                        "tokens: length is %lld, stride is %lld and bytes is %d; expected positive "
                        "numbers, and 1, 2 or 4 bytes",
                        (long long)o->length, (long long)o->stride, o->bytes);
    CTN_TRY(ctn__array_file_open(&t->file, "tokens", path));
    if (t->file.bytes % (size_t)o->bytes)
        return ctn_fail(CTN_EFORMAT,
                        "tokens: %s: %zu bytes are not a whole number of %d-byte tokens", path,
                        t->file.bytes, o->bytes);
    const int64_t n = (int64_t)(t->file.bytes / (size_t)o->bytes);
    if (n <= o->length) /* the target needs one more token than the sample */
        return ctn_fail(CTN_EARG,
                        "tokens: %s: has %lld tokens, but a sample of length %lld needs one more "
                        "than its length",
                        path, (long long)n, (long long)o->length);
    t->count = (n - o->length - 1) / o->stride + 1;
    return ctn__array_file_hold(&t->file, (size_t)(o->length * o->bytes));
}

ctn_status ctn_tokens_open(ctn_dataset **ds, const char *path, const ctn_tokens_opt *opt)
{
    if (!ds || !path) return ctn_fail(CTN_EARG, "tokens: NULL argument");
    *ds = NULL;
    ctn_status st = CTN_OK;
    struct tokens *t = ctn__calloc(1, sizeof *t);
    if (!t) return CTN_ENOMEM;
    t->file.fd = -1;
    CTN_TRY_GOTO(st, done, ctn__opt("tokens", &t->opt, sizeof t->opt, opt));
    CTN_TRY_GOTO(st, done, open_file(t, path));
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &tokens_vt, t));
    t = NULL; /* owned by the dataset */
done:
    tokens_free(t);
    return st;
}
