/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a dataset: a range, a list, or a random split in two. The base is borrowed. Random
 * choices depend on a sample's index in the base, so augmentation gives the same pixels as on the
 * whole dataset.
 */
#include <math.h>

#include <catena/datasets.h>
#include "data/data.h"

struct subset {
    ctn_dataset *base;
    int64_t first, count;
    int64_t *index; /* (count); NULL: the samples first to first + count - 1 */
};

static int64_t subset_at(const struct subset *x, int64_t i)
{
    return x->index ? x->index[i] : x->first + i;
}

static int64_t subset_count(void *self)
{
    return ((struct subset *)self)->count;
}

static int subset_fields(void *self)
{
    return ctn_dataset_fields(((struct subset *)self)->base);
}

static void subset_field(void *self, int f, ctn_field *out)
{
    *out = *ctn_dataset_field(((struct subset *)self)->base, f);
}

static ctn_status subset_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct subset *x = self;
    const ctn_sample inner = {subset_at(x, s->index), s->seed, s->epoch, s->size};
    return ctn_dataset_sample(x->base, &inner, dst);
}

static void subset_free(void *self)
{
    ctn__free(((struct subset *)self)->index);
    ctn__free(self);
}

static int subset_name(void *self, int64_t index, char *buf, size_t n)
{
    const struct subset *x = self;
    return ctn_dataset_name(x->base, subset_at(x, index), buf, n);
}

static const char *subset_class(void *self, int64_t k)
{
    return ctn_dataset_class(((struct subset *)self)->base, k);
}

static int64_t subset_length(void *self, int f, int64_t index)
{
    const struct subset *x = self;
    return ctn_dataset_length(x->base, f, subset_at(x, index));
}

static int subset_resizes(void *self)
{
    return ctn_dataset_resizes(((struct subset *)self)->base);
}

static const ctn_dataset_vt subset_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = subset_count,
    .fields = subset_fields,
    .field = subset_field,
    .get = subset_get,
    .free = subset_free,
    .name = subset_name,
    .class_name = subset_class,
    .length = subset_length,
    .resizes = subset_resizes,
};

/* Takes ownership of index, even on failure. */
static ctn_status make(ctn_dataset **ds, ctn_dataset *base, int64_t first, int64_t count,
                       int64_t *index)
{
    struct subset *x = ctn__malloc(sizeof *x);
    if (!x) {
        ctn__free(index);
        return CTN_ENOMEM;
    }
    *x = (struct subset){base, first, count, index};
    ctn_status st = ctn_dataset_new(ds, &subset_vt, x);
    if (st < 0) subset_free(x);
    return st;
}

ctn_status ctn_dataset_slice(ctn_dataset **ds, ctn_dataset *base, int64_t first, int64_t count)
{
    if (!ds || !base) return ctn_fail(CTN_EARG, "slice: NULL argument");
    *ds = NULL;
    const int64_t n = ctn_dataset_count(base);
    if (first < 0 || count < 0 || first > n || count > n - first)
        return ctn_fail(CTN_EARG, "slice: asked for %lld samples from %lld on, but there are %lld",
                        (long long)count, (long long)first, (long long)n);
    return make(ds, base, first, count, NULL);
}

ctn_status ctn_dataset_subset(ctn_dataset **ds, ctn_dataset *base, int64_t n, const int64_t *index)
{
    if (!ds || !base || (!index && n > 0)) return ctn_fail(CTN_EARG, "subset: NULL argument");
    *ds = NULL;
    if (n < 0)
        return ctn_fail(CTN_EARG, "subset: got %lld samples, expected 0 or more", (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= ctn_dataset_count(base))
            return ctn_fail(CTN_EARG, "subset: entry %lld is sample %lld, but there are %lld",
                            (long long)i, (long long)index[i], (long long)ctn_dataset_count(base));
    int64_t *copy = ctn__malloc(ctn__mul((size_t)n, sizeof *copy));
    if (!copy) return CTN_ENOMEM;
    if (n) memcpy(copy, index, (size_t)n * sizeof *copy);
    return make(ds, base, 0, n, copy);
}

/* Marks m of n samples, chosen by seed. */
static ctn_status choose(uint8_t *mark, int64_t n, int64_t m, uint64_t seed)
{
    ctn_sampler *order = NULL;
    CTN_TRY(ctn_sampler_shuffled(&order, n, seed));
    for (int64_t i = 0; i < m; i++) mark[ctn_sampler_index(order, 0, (uint64_t)i)] = 1;
    ctn_sampler_free(order);
    return CTN_OK;
}

ctn_status ctn_dataset_split(ctn_dataset **first, ctn_dataset **second, ctn_dataset *base,
                             double share, uint64_t seed)
{
    if (!first || !second || !base) return ctn_fail(CTN_EARG, "split: NULL argument");
    *first = *second = NULL;
    if (!(share >= 0 && share <= 1))
        return ctn_fail(CTN_EARG, "split: share is %g, expected 0 to 1", share);
    ctn_status st = CTN_OK;
    const int64_t n = ctn_dataset_count(base), m = (int64_t)llround(share * (double)n);
    const int64_t size[2] = {n - m, m};
    int64_t *list[2] = {NULL, NULL}, at[2] = {0, 0};
    ctn_dataset *part[2] = {NULL, NULL};
    uint8_t *mark = ctn__calloc((size_t)n, 1);
    if (!mark) return CTN_ENOMEM;
    if (n > 0) CTN_TRY_GOTO(st, done, choose(mark, n, m, seed));
    for (int k = 0; k < 2; k++) {
        list[k] = ctn__malloc(ctn__mul((size_t)size[k], sizeof *list[k]));
        if (!list[k]) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    }
    for (int64_t i = 0; i < n; i++) list[mark[i]][at[mark[i]]++] = i;
    for (int k = 0; k < 2; k++) {
        int64_t *mine = list[k];
        list[k] = NULL;
        CTN_TRY_GOTO(st, done, make(&part[k], base, 0, size[k], mine));
    }
    *first = part[0];
    *second = part[1];
    part[0] = part[1] = NULL;
done:
    for (int k = 0; k < 2; k++) {
        ctn__free(list[k]);
        ctn_dataset_free(part[k]);
    }
    ctn__free(mark);
    return st;
}
