/* SPDX-License-Identifier: Apache-2.0
 *
 * Dataset over arrays the caller holds in memory: a sample is a memcpy per field. The arrays are
 * borrowed and never written.
 */
#include "data/data.h"

struct arrays {
    int64_t count;
    int fields;
    ctn_field field[CTN_DATA_FIELDS];
    size_t bytes[CTN_DATA_FIELDS]; /* of one sample */
    const char *data[CTN_DATA_FIELDS];
};

static int64_t arrays_count(void *self)
{
    return ((struct arrays *)self)->count;
}

static int arrays_fields(void *self)
{
    return ((struct arrays *)self)->fields;
}

static void arrays_field(void *self, int f, ctn_field *out)
{
    *out = ((struct arrays *)self)->field[f];
}

static ctn_status arrays_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct arrays *a = self;
    for (int f = 0; f < a->fields; f++)
        memcpy(dst[f], a->data[f] + (size_t)s->index * a->bytes[f], a->bytes[f]);
    return CTN_OK;
}

static const ctn_dataset_vt arrays_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = arrays_count,
    .fields = arrays_fields,
    .field = arrays_field,
    .get = arrays_get,
    .free = ctn__free,
};

ctn_status ctn_arrays_open(ctn_dataset **ds, int64_t count, int fields, const ctn_field *field,
                           const void *const *data)
{
    if (!ds || !field || !data) return ctn_fail(CTN_EARG, "arrays: NULL argument");
    *ds = NULL;
    if (fields < 1 || fields > CTN_DATA_FIELDS)
        return ctn_fail(CTN_EARG, "arrays: %d fields, expected 1 to %d", fields, CTN_DATA_FIELDS);
    if (count < 0) return ctn_fail(CTN_EARG, "arrays: count is %lld", (long long)count);
    struct arrays *a = ctn__calloc(1, sizeof *a);
    if (!a) return CTN_ENOMEM;
    ctn_status st = CTN_OK;
    a->count = count;
    a->fields = fields;
    for (int f = 0; f < fields; f++) {
        CTN_TRY_GOTO(st, done, ctn__field_check("arrays", f, &field[f]));
        if (!data[f] && count > 0) {
            st = ctn_fail(CTN_EARG, "arrays: data of field %d is NULL", f);
            goto done;
        }
        a->field[f] = field[f];
        a->bytes[f] = ctn__field_bytes(&field[f]);
        a->data[f] = data[f];
    }
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &arrays_vt, a));
    a = NULL; /* the dataset's now */
done:
    ctn__free(a);
    return st;
}
