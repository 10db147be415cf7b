/* SPDX-License-Identifier: Apache-2.0
 *
 * Concatenates datasets. On success the result owns the parts. Class names are those of the first
 * part.
 */
#include <catena/datasets.h>
#include "data/data.h"

struct concat {
    int n;
    ctn_dataset **part; /* (n) */
    int64_t *first;     /* (n+1): first sample of each part */
};

static int part_of(const struct concat *x, int64_t index)
{
    int lo = 0, hi = x->n; /* the last part that begins at or before index */
    while (hi - lo > 1) {
        int mid = lo + (hi - lo) / 2;
        if (x->first[mid] <= index) lo = mid;
        else hi = mid;
    }
    return lo;
}

static int64_t concat_count(void *self)
{
    const struct concat *x = self;
    return x->first[x->n];
}

static int concat_fields(void *self)
{
    return ctn_dataset_fields(((struct concat *)self)->part[0]);
}

static void concat_field(void *self, int f, ctn_field *out)
{
    *out = *ctn_dataset_field(((struct concat *)self)->part[0], f);
}

static ctn_status concat_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct concat *x = self;
    const int k = part_of(x, s->index);
    /* Samples with the same index in two parts must not get the same random choices. */
    const ctn_sample inner = {s->index - x->first[k],
                              k > 0 ? ctn__mix(s->seed, (uint64_t)k) : s->seed, s->epoch, s->size};
    return ctn_dataset_sample(x->part[k], &inner, dst);
}

static void concat_free(void *self)
{
    struct concat *x = self;
    for (int i = 0; i < x->n; i++) ctn_dataset_free(x->part[i]);
    ctn__free(x->part);
    ctn__free(x->first);
    ctn__free(x);
}

static int concat_name(void *self, int64_t index, char *buf, size_t n)
{
    const struct concat *x = self;
    const int k = part_of(x, index);
    return ctn_dataset_name(x->part[k], index - x->first[k], buf, n);
}

static const char *concat_class(void *self, int64_t k)
{
    return ctn_dataset_class(((struct concat *)self)->part[0], k);
}

static int64_t concat_length(void *self, int f, int64_t index)
{
    const struct concat *x = self;
    const int k = part_of(x, index);
    return ctn_dataset_length(x->part[k], f, index - x->first[k]);
}

static int concat_resizes(void *self)
{
    const struct concat *x = self;
    int all = 1;
    for (int i = 0; i < x->n; i++) all = all && ctn_dataset_resizes(x->part[i]);
    return all;
}

static const ctn_dataset_vt concat_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = concat_count,
    .fields = concat_fields,
    .field = concat_field,
    .get = concat_get,
    .free = concat_free,
    .name = concat_name,
    .class_name = concat_class,
    .length = concat_length,
    .resizes = concat_resizes,
};

static bool same_field(const ctn_field *a, const ctn_field *b)
{
    if (a->dtype != b->dtype || a->ndim != b->ndim || !a->channels_last != !b->channels_last)
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) return false;
    return true;
}

static ctn_status check(int n, ctn_dataset *const *parts)
{
    if (n < 1) return ctn_fail(CTN_EARG, "concat: got %d parts, expected at least 1", n);
    for (int i = 0; i < n; i++) {
        if (!parts[i]) return ctn_fail(CTN_EARG, "concat: part %d is NULL", i);
        for (int k = 0; k < i; k++) /* such a part would be freed twice */
            if (parts[k] == parts[i])
                return ctn_fail(CTN_EARG, "concat: parts %d and %d are the same dataset", k, i);
        const int fields = ctn_dataset_fields(parts[0]);
        if (ctn_dataset_fields(parts[i]) != fields)
            return ctn_fail(CTN_EARG, "concat: part %d has %d fields, part 0 has %d", i,
                            ctn_dataset_fields(parts[i]), fields);
        for (int f = 0; f < fields; f++)
            if (!same_field(ctn_dataset_field(parts[i], f), ctn_dataset_field(parts[0], f)))
                return ctn_fail(CTN_EARG,
                                "concat: field %d of part %d has another type or shape "
                                "than in part 0",
                                f, i);
    }
    return CTN_OK;
}

ctn_status ctn_dataset_concat(ctn_dataset **ds, int n, ctn_dataset *const *parts)
{
    if (!ds || !parts) return ctn_fail(CTN_EARG, "concat: NULL argument");
    *ds = NULL;
    CTN_TRY(check(n, parts));
    ctn_status st = CTN_OK;
    struct concat *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    x->part = ctn__malloc((size_t)n * sizeof(ctn_dataset *));
    x->first = ctn__calloc((size_t)n + 1, sizeof *x->first);
    if (!x->part || !x->first) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    for (int i = 0; i < n; i++)
        if (__builtin_add_overflow(x->first[i], ctn_dataset_count(parts[i]), &x->first[i + 1]))
            CTN_TRY_GOTO(st, done, ctn_fail(CTN_EARG, "concat: more than 2^63 samples"));
    memcpy(x->part, parts, (size_t)n * sizeof(ctn_dataset *));
    x->n = n;
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &concat_vt, x));
    x = NULL; /* owned by the dataset */
done:
    if (x) {
        x->n = 0; /* the caller keeps ownership of the parts */
        concat_free(x);
    }
    return st;
}
