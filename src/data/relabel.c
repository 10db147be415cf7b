/* SPDX-License-Identifier: Apache-2.0
 *
 * A dataset with its classes renumbered to match another list of names, such as the list that a
 * network was trained with. A folder numbers the classes that it happens to have; a network knows
 * them by the order of its training data.
 */
#include <catena/datasets.h>
#include "data/data.h"

struct relabel {
    ctn_dataset *base;
    int64_t *to; /* (classes of base) */
    char **name; /* (n) */
    int64_t n;
};

static int64_t relabel_count(void *self)
{
    return ctn_dataset_count(((struct relabel *)self)->base);
}

static int relabel_fields(void *self)
{
    return ctn_dataset_fields(((struct relabel *)self)->base);
}

static void relabel_field(void *self, int f, ctn_field *out)
{
    *out = *ctn_dataset_field(((struct relabel *)self)->base, f);
}

static ctn_status relabel_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct relabel *x = self;
    int64_t label;
    CTN_TRY(ctn_dataset_sample(x->base, s, dst));
    memcpy(&label, dst[1], sizeof label);
    if (label < 0 || label >= ctn_dataset_classes(x->base))
        return ctn_fail(CTN_EFORMAT, "relabel: sample %lld has class %lld, but there are %lld",
                        (long long)s->index, (long long)label,
                        (long long)ctn_dataset_classes(x->base));
    memcpy(dst[1], &x->to[label], sizeof label);
    return CTN_OK;
}

static void relabel_free(void *self)
{
    struct relabel *x = self;
    for (int64_t i = 0; i < x->n && x->name; i++) ctn__free(x->name[i]);
    ctn__free(x->name);
    ctn__free(x->to);
    ctn_dataset_free(x->base);
    ctn__free(x);
}

static int relabel_name(void *self, int64_t index, char *buf, size_t n)
{
    return ctn_dataset_name(((struct relabel *)self)->base, index, buf, n);
}

static const char *relabel_class(void *self, int64_t k)
{
    const struct relabel *x = self;
    return k < x->n ? x->name[k] : NULL;
}

static int64_t relabel_length(void *self, int f, int64_t index)
{
    return ctn_dataset_length(((struct relabel *)self)->base, f, index);
}

static int relabel_resizes(void *self)
{
    return ctn_dataset_resizes(((struct relabel *)self)->base);
}

static const ctn_dataset_vt relabel_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = relabel_count,
    .fields = relabel_fields,
    .field = relabel_field,
    .get = relabel_get,
    .free = relabel_free,
    .name = relabel_name,
    .class_name = relabel_class,
    .length = relabel_length,
    .resizes = relabel_resizes,
};

static ctn_status check(const ctn_dataset *base, int64_t n, const char *const *name)
{
    if (!base || n < 1 || !name) return ctn_fail(CTN_EARG, "relabel: needs a dataset and names");
    const ctn_field *f = ctn_dataset_field(base, 1);
    if (ctn_dataset_classes(base) == 0 || !f || f->dtype != CTN_I64 || f->ndim != 0)
        return ctn_fail(CTN_EARG, "relabel: the dataset has no classes with names");
    for (int64_t k = 0; k < ctn_dataset_classes(base); k++) {
        const char *class = ctn_dataset_class(base, k);
        int64_t i = 0;
        while (i < n && strcmp(name[i], class) != 0) i++;
        if (i == n)
            return ctn_fail(CTN_ENOTFOUND,
                            "the class '%s' is not one of the %lld known classes: '%s'%s", class,
                            (long long)n, name[0], n > 1 ? ", ..." : "");
    }
    return CTN_OK;
}

static ctn_status fill(struct relabel *x, const ctn_dataset *base, int64_t n,
                       const char *const *name)
{
    const int64_t classes = ctn_dataset_classes(base);
    x->to = ctn__calloc((size_t)classes, sizeof *x->to);
    x->name = ctn__calloc((size_t)n, sizeof *x->name);
    if (!x->to || !x->name) return CTN_ENOMEM;
    for (; x->n < n; x->n++)
        if (!(x->name[x->n] = ctn__strdup(name[x->n]))) return CTN_ENOMEM;
    for (int64_t k = 0; k < classes; k++)
        while (strcmp(name[x->to[k]], ctn_dataset_class(base, k)) != 0) x->to[k]++;
    return CTN_OK;
}

ctn_status ctn_dataset_relabel(ctn_dataset **ds, ctn_dataset *base, int64_t n,
                               const char *const *name)
{
    if (!ds) return ctn_fail(CTN_EARG, "relabel: NULL argument");
    *ds = NULL;
    CTN_TRY(check(base, n, name));
    struct relabel *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    ctn_status st = fill(x, base, n, name);
    x->base = base;
    if (st == CTN_OK) st = ctn_dataset_new(ds, &relabel_vt, x);
    if (st < 0) {
        x->base = NULL; /* the caller keeps ownership */
        relabel_free(x);
    }
    return st;
}
