/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets: a function table whose answers about size and fields are fetched and checked once, so
 * that no other code has to validate them. Loader threads read samples concurrently: nothing here
 * changes after creation.
 */
#include "data/data.h"

struct ctn_dataset {
    ctn_dataset_vt vt;
    void *self;
    int64_t count;
    int fields;
    ctn_field field[CTN_DATA_FIELDS];
    int64_t classes;
    bool resizes;
};

void *ctn__dataset_self(const ctn_dataset *ds,
                        ctn_status (*get)(void *self, const ctn_sample *s, void *const *dst))
{
    return ds && ds->vt.get == get ? ds->self : NULL;
}

bool ctn__ragged(const ctn_field *f)
{
    return f->ndim > 0 && f->shape[0] == CTN_RAGGED;
}

size_t ctn__field_bytes(const ctn_field *f)
{
    size_t bytes = ctn_dtype_size(f->dtype);
    for (int d = ctn__ragged(f); d < f->ndim; d++) bytes = ctn__mul(bytes, (size_t)f->shape[d]);
    return bytes;
}

ctn_status ctn__field_check(const char *what, int index, const ctn_field *f)
{
    if (ctn_dtype_size(f->dtype) == 0)
        return ctn_fail(CTN_EDTYPE, "%s: field %d has dtype %d, which is not a valid ctn_dtype",
                        what, index, (int)f->dtype);
    if (f->ndim < 0 || f->ndim >= CTN_MAX_DIMS)
        return ctn_fail(CTN_EARG, "%s: field %d of a sample has %d dimensions, expected 0 to %d",
                        what, index, f->ndim, CTN_MAX_DIMS - 1);
    for (int d = ctn__ragged(f); d < f->ndim; d++)
        if (f->shape[d] < 1)
            return ctn_fail(CTN_EARG,
                            "%s: field %d has size %lld in dimension %d, expected at least 1", what,
                            index, (long long)f->shape[d], d);
    if (ctn__ragged(f) && f->channels_last)
        return ctn_fail(CTN_EARG, "%s: field %d is ragged and cannot be channels-last", what,
                        index);
    if (ctn__field_bytes(f) > SIZE_MAX / 2)
        return ctn_fail(CTN_EARG, "%s: field %d is too large for the address space", what, index);
    return CTN_OK;
}

ctn_status ctn__field_check_fixed(const char *what, int index, const ctn_field *f)
{
    CTN_TRY(ctn__field_check(what, index, f));
    if (ctn__ragged(f))
        return ctn_fail(CTN_EARG, "%s: field %d is ragged, which is not supported here", what,
                        index);
    return CTN_OK;
}

ctn_status ctn_dataset_new(ctn_dataset **out, const ctn_dataset_vt *vt, void *self)
{
    if (!out || !vt) return ctn_fail(CTN_EARG, "dataset: NULL argument");
    *out = NULL;
    ctn_dataset ds = {.self = self};
    CTN_TRY(ctn__opt("dataset", &ds.vt, sizeof ds.vt, vt));
    vt = &ds.vt;
    if (!vt->count || !vt->fields || !vt->field || !vt->get)
        return ctn_fail(CTN_EARG, "dataset: count, fields, field and get of the table must be set");
    ds.count = vt->count(self);
    if (ds.count < 0)
        return ctn_fail(CTN_EARG, "dataset: count is %lld, expected 0 or more",
                        (long long)ds.count);
    ds.fields = vt->fields(self);
    if (ds.fields < 1 || ds.fields > CTN_DATA_FIELDS)
        return ctn_fail(CTN_EARG, "dataset: %d fields per sample, expected 1 to %d", ds.fields,
                        CTN_DATA_FIELDS);
    for (int f = 0; f < ds.fields; f++) {
        vt->field(self, f, &ds.field[f]);
        CTN_TRY(ctn__field_check("dataset", f, &ds.field[f]));
        if (ctn__ragged(&ds.field[f]) && !vt->length)
            return ctn_fail(CTN_EARG,
                            "dataset: field %d is ragged, so length of the table must be set", f);
    }
    while (vt->class_name && vt->class_name(self, ds.classes)) ds.classes++;
    ds.resizes = vt->resizes && vt->resizes(self);
    ctn_dataset *p = ctn__malloc(sizeof *p);
    if (!p) return CTN_ENOMEM;
    *p = ds;
    *out = p;
    return CTN_OK;
}

void ctn_dataset_free(ctn_dataset *ds)
{
    if (!ds) return;
    if (ds->vt.free) ds->vt.free(ds->self);
    ctn__free(ds);
}

int64_t ctn_dataset_count(const ctn_dataset *ds)
{
    return ds ? ds->count : 0;
}

int ctn_dataset_fields(const ctn_dataset *ds)
{
    return ds ? ds->fields : 0;
}

const ctn_field *ctn_dataset_field(const ctn_dataset *ds, int f)
{
    return ds && f >= 0 && f < ds->fields ? &ds->field[f] : NULL;
}

int64_t ctn_dataset_length(const ctn_dataset *ds, int f, int64_t index)
{
    const ctn_field *field = ctn_dataset_field(ds, f);
    if (!field || index < 0 || index >= ds->count) return -1;
    if (ctn__ragged(field)) return ds->vt.length(ds->self, f, index);
    return field->ndim ? field->shape[0] : 1;
}

int64_t ctn__longest(const ctn_dataset *ds, int f)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < ds->count; i++) {
        const int64_t n = ctn_dataset_length(ds, f, i);
        if (n > longest) longest = n;
    }
    return longest;
}

ctn_status ctn_dataset_sample(const ctn_dataset *ds, const ctn_sample *s, void *const *dst)
{
    if (!ds || !s || !dst) return ctn_fail(CTN_EARG, "dataset: NULL argument");
    if (s->index < 0 || s->index >= ds->count)
        return ctn_fail(CTN_EARG, "dataset: there is no sample %lld of %lld", (long long)s->index,
                        (long long)ds->count);
    if (s->size != 0 && (s->size < 0 || !ds->resizes))
        return ctn_fail(CTN_EARG, "dataset: cannot make images of size %lld", (long long)s->size);
    return ds->vt.get(ds->self, s, dst);
}

ctn_status ctn_dataset_get(const ctn_dataset *ds, int64_t index, void *const *dst)
{
    return ctn_dataset_sample(ds, &(ctn_sample){.index = index}, dst);
}

int ctn_dataset_name(const ctn_dataset *ds, int64_t index, char *buf, size_t n)
{
    if (ds && ds->vt.name && index >= 0 && index < ds->count)
        return ds->vt.name(ds->self, index, buf, n);
    return snprintf(buf, n, "sample %lld", (long long)index);
}

const char *ctn_dataset_class(const ctn_dataset *ds, int64_t k)
{
    return ds && k >= 0 && k < ds->classes ? ds->vt.class_name(ds->self, k) : NULL;
}

int64_t ctn_dataset_classes(const ctn_dataset *ds)
{
    return ds ? ds->classes : 0;
}

int ctn_dataset_resizes(const ctn_dataset *ds)
{
    return ds && ds->resizes;
}
