/* SPDX-License-Identifier: Apache-2.0
 *
 * The mean and standard deviation of a field, and a dataset in which the field has mean 0 and
 * deviation 1. The moments are those of all elements (divided by their number), computed in one
 * pass over the samples. The moments of each sample take two passes over memory that is in the
 * cache, and are merged into the running ones (Chan, Golub, LeVeque, "Algorithms for computing
 * the sample variance", 1983):
 *     d = mean_b - mean_a    mean = mean_a + d n_b/n    M2 = M2_a + M2_b + d^2 n_a n_b/n
 */
#include <float.h>
#include <math.h>

#include <catena/datasets.h>
#include "data/source.h"

/* A field as n channels: element k of channel c is at c * channel + k * step. */
struct lay {
    int64_t n, channel, step;
    int64_t each; /* elements per channel; of a ragged field in one sample, see lay_of */
    bool wide;    /* f64 */
    bool ragged;
};

static ctn_status lay_out(const char *who, const ctn_dataset *ds, int field, int64_t n,
                          struct lay *l)
{
    const ctn_field *f = ctn_dataset_field(ds, field);
    if (!f)
        return ctn_fail(CTN_EARG, "%s: there is no field %d of %d", who, field,
                        ctn_dataset_fields(ds));
    if (f->dtype != CTN_F32 && f->dtype != CTN_F64)
        return ctn_fail(CTN_EDTYPE, "%s: field %d is %s, expected f32 or f64", who, field,
                        ctn_dtype_name(f->dtype));
    if (ctn__ragged(f) && f->ndim > 2)
        return ctn_fail(CTN_EARG, "%s: field %d is ragged with %d dimensions, expected 1 or 2", who,
                        field, f->ndim);
    const int dim = ctn__ragged(f); /* dimension that counts channels */
    const int64_t channels = f->ndim > dim ? f->shape[dim] : 1;
    *l = (struct lay){.n = n, .each = 1, .wide = f->dtype == CTN_F64, .ragged = ctn__ragged(f)};
    for (int d = dim + 1; d < f->ndim; d++) l->each *= f->shape[d];
    const int64_t elements = l->ragged ? channels : channels * l->each;
    if (n != channels && n != elements)
        return ctn_fail(CTN_EARG, "%s: n is %lld, but field %d has %lld channels and %lld elements",
                        who, (long long)n, field, (long long)channels, (long long)elements);
    if (n == elements) l->each = 1;                  /* every element is a channel */
    const bool last = l->ragged || f->channels_last; /* the channels are side by side */
    l->channel = last ? 1 : l->each;
    l->step = last ? n : 1;
    return CTN_OK;
}

/* The field in sample `index`. */
static struct lay lay_of(const struct lay *l, const ctn_dataset *ds, int field, int64_t index)
{
    struct lay own = *l;
    if (l->ragged) own.each = ctn_dataset_length(ds, field, index);
    return own;
}

static double value(const struct lay *l, const void *x, int64_t c, int64_t k)
{
    const int64_t i = c * l->channel + k * l->step;
    return l->wide ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* Adds a sample to the moments of `seen` elements per channel. False: the result is not finite. */
static bool add_sample(const struct lay *l, const void *x, double seen, double *mean, double *m2)
{
    const double each = (double)l->each, all = seen + each;
    if (l->each < 1) return true;
    for (int64_t c = 0; c < l->n; c++) {
        double sum = 0, squares = 0;
        for (int64_t k = 0; k < l->each; k++) sum += value(l, x, c, k);
        const double own = sum / each;
        for (int64_t k = 0; k < l->each; k++) {
            const double d = value(l, x, c, k) - own;
            squares += d * d;
        }
        const double d = own - mean[c];
        mean[c] += d * (each / all);
        m2[c] += squares + d * d * (seen * each / all);
        if (!isfinite(mean[c]) || !isfinite(m2[c])) return false;
    }
    return true;
}

ctn_status ctn_dataset_moments(ctn_dataset *ds, int field, int64_t n, double *mean, double *std)
{
    struct lay l;
    if (!ds || !mean || !std) return ctn_fail(CTN_EARG, "moments: NULL argument");
    CTN_TRY(lay_out("moments", ds, field, n, &l));
    const int64_t count = ctn_dataset_count(ds);
    ctn_status st = CTN_OK;
    void *x[CTN_DATA_FIELDS] = {NULL};
    double seen = 0; /* elements per channel */
    CTN_TRY(ctn__sample_room(ds, -1, x));
    for (int64_t c = 0; c < n; c++) mean[c] = std[c] = 0; /* std holds M2 until the end */
    for (int64_t i = 0; i < count; i++) {
        CTN_TRY_GOTO(st, done, ctn_dataset_get(ds, i, x));
        const struct lay own = lay_of(&l, ds, field, i);
        const bool good = add_sample(&own, x[field], seen, mean, std);
        seen += (double)own.each;
        if (good) continue;
        char name[256];
        ctn_dataset_name(ds, i, name, sizeof name);
        st = ctn_fail(CTN_EFORMAT, "moments: field %d of the sample %s is not finite", field, name);
        goto done;
    }
    if (seen == 0) CTN_TRY_GOTO(st, done, ctn_fail(CTN_EARG, "moments: the dataset is empty"));
    for (int64_t c = 0; c < n; c++) {
        std[c] = sqrt(std[c] / seen);
        /* A constant field has a tiny deviation from rounding; treat it as 0, which becomes 1. */
        if (std[c] <= 16 * DBL_EPSILON * fabs(mean[c])) std[c] = 1;
    }
done:
    ctn__free(x[0]);
    return st;
}

/* ---- the dataset ----------------------------------------------------------------------------- */

struct standardize {
    ctn_dataset *base;
    int field;
    struct lay lay;
    double *mean, *std; /* (n) each, in one allocation */
};

static int64_t standardize_count(void *self)
{
    return ctn_dataset_count(((struct standardize *)self)->base);
}

static int standardize_fields(void *self)
{
    return ctn_dataset_fields(((struct standardize *)self)->base);
}

static void standardize_field(void *self, int f, ctn_field *out)
{
    const struct standardize *x = self;
    *out = *ctn_dataset_field(x->base, f);
    if (f == x->field) out->dtype = CTN_F32;
}

static ctn_status standardize_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct standardize *x = self;
    const struct lay own = lay_of(&x->lay, x->base, x->field, s->index), *l = &own;
    void *p[CTN_DATA_FIELDS], *wide = NULL;
    memcpy(p, dst, (size_t)ctn_dataset_fields(x->base) * sizeof *p);
    if (l->wide) {
        wide = ctn__malloc((size_t)(l->n * l->each) * sizeof(double));
        if (!wide) return CTN_ENOMEM;
        p[x->field] = wide;
    }
    ctn_status st = ctn_dataset_sample(x->base, s, p);
    float *y = dst[x->field];
    for (int64_t c = 0; st >= 0 && c < l->n; c++)
        for (int64_t k = 0; k < l->each; k++)
            y[c * l->channel + k * l->step] =
                (float)((value(l, p[x->field], c, k) - x->mean[c]) / x->std[c]);
    ctn__free(wide);
    return st;
}

static void standardize_free(void *self)
{
    struct standardize *x = self;
    ctn_dataset_free(x->base);
    ctn__free(x->mean);
    ctn__free(x);
}

static int standardize_name(void *self, int64_t index, char *buf, size_t n)
{
    return ctn_dataset_name(((struct standardize *)self)->base, index, buf, n);
}

static const char *standardize_class(void *self, int64_t k)
{
    return ctn_dataset_class(((struct standardize *)self)->base, k);
}

static int64_t standardize_length(void *self, int f, int64_t index)
{
    return ctn_dataset_length(((struct standardize *)self)->base, f, index);
}

static const ctn_dataset_vt standardize_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = standardize_count,
    .fields = standardize_fields,
    .field = standardize_field,
    .get = standardize_get,
    .free = standardize_free,
    .name = standardize_name,
    .class_name = standardize_class,
    .length = standardize_length,
};

ctn_status ctn_dataset_standardize(ctn_dataset **ds, ctn_dataset *base, int field, int64_t n,
                                   const double *mean, const double *std)
{
    struct lay l;
    if (!ds || !base || !mean || !std) return ctn_fail(CTN_EARG, "standardize: NULL argument");
    *ds = NULL;
    CTN_TRY(lay_out("standardize", base, field, n, &l));
    for (int64_t c = 0; c < n; c++)
        if (!isfinite(mean[c]) || !isfinite(std[c]) || std[c] <= 0)
            return ctn_fail(CTN_EARG,
                            "standardize: mean is %g and deviation is %g in channel %lld, expected "
                            "finite numbers and a positive deviation",
                            mean[c], std[c], (long long)c);
    struct standardize *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    ctn_status st = CTN_OK;
    *x = (struct standardize){.field = field, .lay = l};
    x->mean = ctn__malloc(ctn__mul((size_t)n, 2 * sizeof(double)));
    if (!x->mean) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    x->std = x->mean + n;
    memcpy(x->mean, mean, (size_t)n * sizeof *mean);
    memcpy(x->std, std, (size_t)n * sizeof *std);
    x->base = base;
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &standardize_vt, x));
    x = NULL; /* owned by the dataset */
done:
    if (x) {
        x->base = NULL; /* the caller keeps ownership */
        standardize_free(x);
    }
    return st;
}
