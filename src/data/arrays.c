/* SPDX-License-Identifier: Apache-2.0
 *
 * Dataset over arrays in the caller's memory: reading a sample is one memcpy per field. Samples of
 * a ragged field lie one after another, and offsets say where each begins. The arrays are borrowed
 * and never written.
 */
#include "data/data.h"

struct arrays {
    int64_t count;
    int fields;
    ctn_field field[CTN_DATA_FIELDS];
    size_t bytes[CTN_DATA_FIELDS]; /* of one sample, or of one row of a ragged field */
    const char *data[CTN_DATA_FIELDS];
    const int64_t *offset[CTN_DATA_FIELDS]; /* (count+1); NULL: not ragged */
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
    for (int f = 0; f < a->fields; f++) {
        const int64_t *at = a->offset[f] ? a->offset[f] + s->index : NULL;
        const size_t first = (size_t)(at ? at[0] : s->index), n = at ? (size_t)(at[1] - at[0]) : 1;
        if (n) memcpy(dst[f], a->data[f] + first * a->bytes[f], n * a->bytes[f]);
    }
    return CTN_OK;
}

static int64_t arrays_length(void *self, int f, int64_t index)
{
    const int64_t *at = ((struct arrays *)self)->offset[f] + index;
    return at[1] - at[0];
}

static const ctn_dataset_vt arrays_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = arrays_count,
    .fields = arrays_fields,
    .field = arrays_field,
    .get = arrays_get,
    .free = ctn__free,
    .length = arrays_length,
};

ctn_status ctn__offsets_check(const char *what, int64_t count, const int64_t *offset)
{
    for (int64_t i = 0; i <= count; i++)
        if (offset[i] < (i ? offset[i - 1] : 0))
            return ctn_fail(CTN_EARG,
                            "%s: offset %lld is %lld, expected at least %lld: offsets never "
                            "decrease",
                            what, (long long)i, (long long)offset[i],
                            (long long)(i ? offset[i - 1] : 0));
    return CTN_OK;
}

/* Sets field f; a->count is set. */
static ctn_status set_field(struct arrays *a, int f, const ctn_field *field, const void *data,
                            const int64_t *offset)
{
    CTN_TRY(ctn__field_check("arrays", f, field));
    if (ctn__ragged(field) != (offset != NULL))
        return ctn_fail(CTN_EARG, "arrays: field %d is %s, but its offsets are %s", f,
                        ctn__ragged(field) ? "ragged" : "not ragged", offset ? "set" : "NULL");
    if (offset) CTN_TRY(ctn__offsets_check("arrays", a->count, offset));
    if (!data && (offset ? offset[a->count] > offset[0] : a->count > 0))
        return ctn_fail(CTN_EARG, "arrays: data of field %d is NULL", f);
    a->field[f] = *field;
    a->bytes[f] = ctn__field_bytes(field);
    a->data[f] = data;
    a->offset[f] = offset;
    return CTN_OK;
}

ctn_status ctn_ragged_open(ctn_dataset **ds, int64_t count, int fields, const ctn_field *field,
                           const void *const *data, const int64_t *const *offset)
{
    if (!ds || !field || !data) return ctn_fail(CTN_EARG, "arrays: NULL argument");
    *ds = NULL;
    if (fields < 1 || fields > CTN_DATA_FIELDS)
        return ctn_fail(CTN_EARG, "arrays: %d fields, expected 1 to %d", fields, CTN_DATA_FIELDS);
    if (count < 0)
        return ctn_fail(CTN_EARG, "arrays: count is %lld, expected 0 or more", (long long)count);
    struct arrays *a = ctn__calloc(1, sizeof *a);
    if (!a) return CTN_ENOMEM;
    ctn_status st = CTN_OK;
    a->count = count;
    a->fields = fields;
    for (int f = 0; f < fields; f++)
        CTN_TRY_GOTO(st, done, set_field(a, f, &field[f], data[f], offset ? offset[f] : NULL));
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &arrays_vt, a));
    a = NULL; /* owned by the dataset */
done:
    ctn__free(a);
    return st;
}

ctn_status ctn_arrays_open(ctn_dataset **ds, int64_t count, int fields, const ctn_field *field,
                           const void *const *data)
{
    return ctn_ragged_open(ds, count, fields, field, data, NULL);
}
