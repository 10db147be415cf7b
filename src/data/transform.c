/* SPDX-License-Identifier: Apache-2.0
 *
 * A dataset through the user's function. Each call has its own memory for the sample in between, as
 * loader threads call at the same time.
 */
#include <catena/datasets.h>
#include "data/source.h"

ctn_status ctn__sample_room(const ctn_dataset *ds, void *p[CTN_DATA_FIELDS])
{
    size_t at[CTN_DATA_FIELDS], bytes = 0;
    const int fields = ctn_dataset_fields(ds);
    for (int f = 0; f < fields; f++) {
        at[f] = bytes;
        size_t one = ctn__field_bytes(ctn_dataset_field(ds, f)); /* below SIZE_MAX / 2 */
        if (__builtin_add_overflow(bytes, (one + CTN__ALIGN - 1) & ~(size_t)(CTN__ALIGN - 1),
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
    CTN_TRY(ctn__sample_room(x->base, src));
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

static const ctn_dataset_vt transform_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = transform_count,
    .fields = transform_fields,
    .field = transform_field,
    .get = transform_get,
    .free = transform_free,
    .name = transform_name,
    .class_name = transform_class,
};

ctn_status ctn_dataset_transform(ctn_dataset **ds, ctn_dataset *base, int fields,
                                 const ctn_field *field, ctn_transform_fn fn, void *user)
{
    if (!ds || !base || !field || !fn) return ctn_fail(CTN_EARG, "transform: NULL argument");
    *ds = NULL;
    if (fields < 1 || fields > CTN_DATA_FIELDS)
        return ctn_fail(CTN_EARG, "transform: %d fields, expected 1 to %d", fields,
                        CTN_DATA_FIELDS);
    struct transform *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    *x = (struct transform){.base = base, .fields = fields, .fn = fn, .user = user};
    memcpy(x->field, field, (size_t)fields * sizeof *field);
    ctn_status st = ctn_dataset_new(ds, &transform_vt, x);
    if (st < 0) ctn__free(x);
    return st;
}
