/* SPDX-License-Identifier: Apache-2.0
 *
 * What training has read, before its first step: arrays and columns with their type, shape and
 * range, and what their dimensions are taken for. A user whose file has other dimensions or
 * another unit than expected sees it at once. Large data is judged by some samples, evenly spaced.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "training.h"

enum { MOST_SAMPLES = 4096, MOST_VALUES = 16 << 20, MOST_COLUMNS = 16 };

typedef struct {
    double least, most, mean, m2, n;
    int64_t bad; /* NaN or infinite */
} range;

static void range_add(range *r, double x)
{
    if (!isfinite(x)) {
        r->bad++;
        return;
    }
    const double d = x - r->mean;
    r->least = r->n > 0 ? fmin(r->least, x) : x;
    r->most = r->n > 0 ? fmax(r->most, x) : x;
    r->n++;
    r->mean += d / r->n;
    r->m2 += d * (x - r->mean);
}

static double deviation(const range *r)
{
    return r->n > 0 ? sqrt(r->m2 / r->n) : 0;
}

/* A field of the data: `channels` blocks of `each` elements. Line k of a dimension has all
 * elements of a block whose index there is k. */
typedef struct {
    ctn_field field;
    int first; /* dimension after the channels */
    int64_t channels, each, lines;
    range all, *line; /* (channels, lines) */
    void *value;      /* a sample */
} part;

static double number(const part *p, int64_t i)
{
    switch (p->field.dtype) {
    case CTN_F32: return ((const float *)p->value)[i];
    case CTN_F64: return ((const double *)p->value)[i];
    default: return (double)((const int64_t *)p->value)[i];
    }
}

static void add_value(part *p, int64_t channel, int64_t k, double x)
{
    range *line = p->line + channel * p->lines;
    int64_t left = p->each, at = k;
    range_add(&p->all, x);
    for (int d = p->first; d < p->field.ndim; d++) {
        left /= p->field.shape[d];
        range_add(line + at / left, x);
        at %= left;
        line += p->field.shape[d];
    }
}

static ctn_status begin(part *p, const ctn_field *f, bool columns)
{
    *p = (part){.field = *f, .first = columns || f->ndim == 0 ? 0 : 1, .each = 1};
    p->channels = p->first ? f->shape[0] : 1;
    for (int d = p->first; d < f->ndim; d++) {
        p->each *= f->shape[d];
        p->lines += f->shape[d];
    }
    p->line = calloc((size_t)(p->channels * p->lines) + 1, sizeof *p->line);
    p->value = malloc((size_t)(p->channels * p->each) * ctn_dtype_size(f->dtype) + 1);
    if (p->line && p->value) return CTN_OK;
    return ctn_fail(CTN_ENOMEM, "no memory for a sample of the data");
}

static ctn_status look(ctn_dataset *ds, int n, part *p)
{
    void *value[2] = {p[0].value, p[1].value};
    const int64_t count = ctn_dataset_count(ds), room = MOST_VALUES / (p->channels * p->each) + 1;
    const int64_t most = room < MOST_SAMPLES ? room : MOST_SAMPLES;
    const int64_t step = count <= most ? 1 : (count + most - 1) / most;
    for (int64_t i = 0; i < count; i += step) {
        CTN_TRY(ctn_dataset_get(ds, i, value));
        for (int f = 0; f < n; f++)
            for (int64_t k = 0; k < p[f].channels * p[f].each; k++)
                add_value(&p[f], k / p[f].each, k % p[f].each, number(&p[f], k));
    }
    return CTN_OK;
}

/* ---- lines of text --------------------------------------------------------------------------- */

static void show_range(const char *name, const char *type, const char *shape, const range *r,
                       const char *means)
{
    const bool narrow = r->most - r->least < 0.01 * fmax(fabs(r->most), fabs(r->least));
    const int digits = type[0] == 'i' || narrow ? 12 : 4; /* of integers all */
    char bad[40] = "";
    if (r->bad > 0) snprintf(bad, sizeof bad, ", %lld not finite", (long long)r->bad);
    log_line("%-12s %-4s %-12s %.*g to %.*g, mean %.*g%s%s%s", name, type, shape, digits, r->least,
             digits, r->most, digits > 4 ? 6 : 4, r->mean, bad, means[0] ? ": " : "", means);
}

/* What the dimensions of a sample are taken for. */
static void meaning(char *buf, size_t n, const task *t, const part *p, int f)
{
    const ctn_field *x = &p->field;
    const char *what = f == 0 ? "input" : "value";
    const long long count = p->channels * p->each, channels = p->channels;
    const ctn_field *stored = t->nconvert > 0 ? &t->convert[0].from[f] : x;
    const bool integer = stored->dtype != CTN_F32 && stored->dtype != CTN_F64;
    if (f == 1 && t->classify) snprintf(buf, n, "a class of %lld", (long long)t->classes);
    else if (f == 1 && integer && count == 1 && x->ndim == 1)
        snprintf(buf, n, "1 value; a class would have the shape (%lld)",
                 (long long)ctn_dataset_count(t->set[0]));
    else if (x->ndim == 0) snprintf(buf, n, "one %s", what);
    else if (t->net_is == NET_FLAT || x->ndim == 1)
        snprintf(buf, n, "%lld %s%s", count, what, count == 1 ? "" : "s");
    else if (t->net_is == NET_IMAGE && x->ndim == 2) snprintf(buf, n, "an image, 1 channel");
    else
        snprintf(buf, n, "%lld channel%s, %d dimension%s", channels, channels == 1 ? "" : "s",
                 x->ndim - 1, x->ndim == 2 ? "" : "s");
}

/* Each channel has one mean and deviation. A line in it that varies a thousand times less, such as
 * a quantity of another unit, would be lost. */
static void warn_lost(const part *p, const char *name, double factor)
{
    for (int64_t c = 0; c < p->channels; c++) {
        const range *line = p->line + c * p->lines;
        double all = 0;
        for (int d = p->first; d < p->field.ndim; line += p->field.shape[d++]) {
            range whole = {0};
            for (int64_t k = 0; k < p->field.shape[d]; k++) {
                const double n = whole.n + line[k].n, apart = line[k].mean - whole.mean;
                if (line[k].n == 0) continue;
                whole.m2 += line[k].m2 + apart * apart * whole.n * line[k].n / n;
                whole.mean += apart * line[k].n / n;
                whole.n = n;
            }
            all = deviation(&whole);
            for (int64_t k = 0; k < p->field.shape[d]; k++) {
                const double own = deviation(line + k);
                if (own <= 1e-12 * fabs(line[k].mean) || own * factor >= all) continue;
                log_line("warning: %s: the first dimension of a sample is taken for channels, each "
                         "with one mean and deviation, but in channel %lld the values at index "
                         "%lld of dimension %d vary %.0e times less than all together and would be "
                         "lost: let the first dimension count the quantities, or scale the data "
                         "and use --standardize none",
                         name, (long long)c, (long long)k, d + 1, all / own);
                return;
            }
        }
    }
}

static void show_columns(const task *t, const part *p, int f)
{
    const ctn_dataset *table = t->nbase > 0 ? t->base[0] : t->set[0];
    const char *name;
    for (int64_t k = 0; (name = ctn_csv_column(table, f, k)); k++) {
        if (k == MOST_COLUMNS) {
            log_line("... and %lld more columns", (long long)(p->lines - k));
            return;
        }
        char means[80] = "";
        if (f == 1) meaning(means, sizeof means, t, p, f);
        show_range(name, "", f ? "target" : "input", p->lines ? p->line + k : &p->all,
                   f && t->classify ? means : "");
    }
}

static void show_array(const task *t, const part *p, int f)
{
    static const char *const names[] = {"data", "target"};
    char shape[SHAPE_TEXT], means[80];
    int64_t dim[CTN_MAX_DIMS] = {ctn_dataset_count(t->set[0])};
    const char *path = args_text(t->a, names[f]), *slash = strrchr(path, '/');
    const ctn_field *stored = t->nconvert > 0 ? &t->convert[0].from[f] : &p->field;
    for (int d = 0; d < stored->ndim; d++) dim[d + 1] = stored->shape[d];
    meaning(means, sizeof means, t, p, f);
    show_range(slash && slash[1] ? slash + 1 : path, ctn_dtype_name(stored->dtype),
               shape_text(stored->ndim + 1, dim, shape), &p->all, means);
    if (t->standardize[f] && t->net_is != NET_FLAT) warn_lost(p, path, 1000);
}

ctn_status data_show(task *t)
{
    const bool columns = t->kind == DATA_TABLE;
    part p[2] = {0};
    ctn_status st = CTN_OK;
    if (t->kind != DATA_ARRAYS && !columns) return CTN_OK;
    if (log_rank != 0 || args_flag(t->a, "quiet")) return CTN_OK;
    t->now = DOING_DATA;
    const int n = ctn_dataset_fields(t->set[0]) > 1 ? 2 : 1;
    for (int f = 0; f < n; f++)
        CTN_TRY_GOTO(st, done, begin(&p[f], ctn_dataset_field(t->set[0], f), columns));
    CTN_TRY_GOTO(st, done, look(t->set[0], n, p));
    for (int f = 0; f < n; f++)
        if (columns) show_columns(t, &p[f], f);
        else show_array(t, &p[f], f);
done:
    for (int f = 0; f < 2; f++) {
        free(p[f].line);
        free(p[f].value);
    }
    return st;
}
