/* SPDX-License-Identifier: Apache-2.0
 *
 * A dataset whose samples pass through a user's function. Each call allocates its own memory for
 * the intermediate sample, because loader threads call it concurrently.
 */
#include <catena/datasets.h>
#include "data/source.h"

/* Bytes of a field of one sample; index -1: of the longest. */
static size_t bytes_of(const ctn_dataset *ds, int f, int64_t index)
{
    const ctn_field *field = ctn_dataset_field(ds, f);
    const size_t bytes = ctn__field_bytes(field);
    if (!ctn__ragged(field)) return bytes;
    const int64_t rows = index < 0 ? ctn__longest(ds, f) : ctn_dataset_length(ds, f, index);
    return ctn__mul(bytes, rows > 0 ? (size_t)rows : 0);
}

ctn_status ctn__sample_room(const ctn_dataset *ds, int64_t index, void *p[CTN_DATA_FIELDS])
{
    size_t at[CTN_DATA_FIELDS], bytes = 0;
    const int fields = ctn_dataset_fields(ds);
    for (int f = 0; f < fields; f++) {
        at[f] = bytes;
        const size_t one = bytes_of(ds, f, index);
        if (one > SIZE_MAX / 2 ||
            __builtin_add_overflow(bytes, (one + CTN__ALIGN - 1) & ~(size_t)(CTN__ALIGN - 1),
                                   &bytes))
            return ctn_fail(CTN_ENOMEM, "dataset: a sample does not fit the address space");
    }
    char *base = ctn__aligned(bytes);
    if (!base) return CTN_ENOMEM;
    for (int f = 0; f < fields; f++) p[f] = base + at[f];
    return CTN_OK;
}

struct transform {
    ctn_dataset *base;
    int fields;
    ctn_field field[CTN_DATA_FIELDS];
    int like[CTN_DATA_FIELDS]; /* of a ragged field: the field of base with its length */
    ctn_transform_fn fn;
    void *user;
};

static int64_t transform_count(void *self)
{
    return ctn_dataset_count(((struct transform *)self)->base);
}

static int transform_fields(void *self)
{
    return ((struct transform *)self)->fields;
}

static void transform_field(void *self, int f, ctn_field *out)
{
    *out = ((struct transform *)self)->field[f];
}

static ctn_status transform_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct transform *x = self;
    void *src[CTN_DATA_FIELDS] = {NULL};
    CTN_TRY(ctn__sample_room(x->base, s->index, src));
    ctn_status st = ctn_dataset_sample(x->base, s, src);
    if (st >= 0) st = x->fn(x->user, s, src, dst);
    ctn__free(src[0]);
    return st < 0 ? st : CTN_OK;
}

static void transform_free(void *self)
{
    ctn_dataset_free(((struct transform *)self)->base);
    ctn__free(self);
}

static int transform_name(void *self, int64_t index, char *buf, size_t n)
{
    return ctn_dataset_name(((struct transform *)self)->base, index, buf, n);
}

static const char *transform_class(void *self, int64_t k)
{
    return ctn_dataset_class(((struct transform *)self)->base, k);
}

static int64_t transform_length(void *self, int f, int64_t index)
{
    const struct transform *x = self;
    return ctn_dataset_length(x->base, x->like[f], index);
}

static const ctn_dataset_vt transform_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = transform_count,
    .fields = transform_fields,
    .field = transform_field,
    .get = transform_get,
    .free = transform_free,
    .name = transform_name,
    .class_name = transform_class,
    .length = transform_length,
};

/* The field of base that a ragged field f takes its length from; -1: there is none. */
static int find_like(const ctn_dataset *base, int f)
{
    const int fields = ctn_dataset_fields(base);
    if (f < fields && ctn__ragged(ctn_dataset_field(base, f))) return f;
    for (int k = 0; k < fields; k++)
        if (ctn__ragged(ctn_dataset_field(base, k))) return k;
    return -1;
}

ctn_status ctn_dataset_transform(ctn_dataset **ds, ctn_dataset *base, int fields,
                                 const ctn_field *field, ctn_transform_fn fn, void *user)
{
    if (!ds || !base || !field || !fn) return ctn_fail(CTN_EARG, "transform: NULL argument");
    *ds = NULL;
    if (fields < 1 || fields > CTN_DATA_FIELDS)
        return ctn_fail(CTN_EARG, "transform: %d fields, expected 1 to %d", fields,
                        CTN_DATA_FIELDS);
    for (int f = 0; f < fields; f++)
        if (ctn__ragged(&field[f]) && find_like(base, f) < 0)
            return ctn_fail(CTN_EARG,
                            "transform: field %d is ragged, but no field of the base dataset is",
                            f);
    struct transform *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    *x = (struct transform){.base = base, .fields = fields, .fn = fn, .user = user};
    memcpy(x->field, field, (size_t)fields * sizeof *field);
    for (int f = 0; f < fields; f++) x->like[f] = find_like(base, f);
    ctn_status st = ctn_dataset_new(ds, &transform_vt, x);
    if (st < 0) ctn__free(x);
    return st;
}
