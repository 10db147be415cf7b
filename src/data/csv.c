/* SPDX-License-Identifier: Apache-2.0
 *
 * Dataset over a table of text (CSV). The file is read into memory, one pass finds where rows
 * begin, and threads then convert rows to numbers. Each row has its own place in the result, so
 * the number of threads changes nothing. If rows are damaged, the error is that of the first one:
 * threads only note its number, and it is read once more for the message.
 *
 * Columns of text are numbered at the end, by one thread, since a number depends on all rows.
 */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <strings.h>

#include <catena/datasets.h>
#include "data/csv.h"
#include "data/source.h"

enum { SHOWN = 40 }; /* bytes of a cell that a message shows */

typedef struct {
    int64_t at; /* in the file */
    char *name;
    bool text;
    ctn__cell_value *value; /* (count) while the file is read; NULL: a column of numbers */
    int64_t texts;
    char **of; /* (texts) distinct texts in order, of a column of text */
} column;

struct csv {
    char *path;
    int64_t count;
    int inputs, targets;
    column *column; /* (inputs + targets) */
    ctn_dtype dtype;
    bool classify; /* field 1 is a class, i64 */
    void *x, *y;   /* (count, inputs), (count, targets); y NULL: no targets */
};

/* What is needed only while the file is read. */
typedef struct {
    struct csv *t;
    ctn_csv_opt opt;
    char *text;
    const char *end;
    char separator;
    locale_t locale;       /* the host may have set one with another decimal point */
    CTN__VEC(size_t) rows; /* offsets of all rows and of the end */
    int64_t first;         /* row of sample 0 */
    int64_t columns;
    char **name;  /* (columns) */
    int32_t *use; /* (columns): where a column of the file is in t->column; -1: unused */
} reader;

/* ---- messages -------------------------------------------------------------------------------- */

static int64_t line_of(const reader *r, const char *p)
{
    int64_t line = 1;
    for (const char *q = r->text; (q = memchr(q, '\n', (size_t)(p - q))) != NULL; q++) line++;
    return line;
}

/* An error in a cell of the column with this name. */
CTN_PRINTF(4, 5)
static ctn_status wrong(const reader *r, const ctn__cell *c, const char *name, const char *fmt, ...)
{
    char what[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return ctn_fail(CTN_EFORMAT, "csv: %s: line %lld, column \"%.*s\": %s", r->t->path,
                    (long long)line_of(r, c->p), SHOWN, name, what);
}

static int shown(const ctn__cell *c)
{
    return c->n < SHOWN ? (int)c->n : SHOWN;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const char *row_end(const reader *r, const char *p, bool quotes)
{
    ctn__cell c;
    if (!quotes) {
        const char *q = memchr(p, '\n', (size_t)(r->end - p));
        return q ? q : r->end;
    }
    do p = ctn__cell_read(p, r->end, r->separator, &c);
    while (p < r->end && *p != '\n' && p++);
    return p;
}

static ctn_status find_rows(reader *r)
{
    const size_t bytes = (size_t)(r->end - r->text);
    const bool quotes = memchr(r->text, '"', bytes) != NULL;
    if (memchr(r->text, 0, bytes))
        return ctn_fail(CTN_EFORMAT, "csv: %s: contains a zero byte, expected text in UTF-8",
                        r->t->path);
    const char *p = r->text;
    if (bytes >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) p += 3; /* byte order mark */
    while (p < r->end) {
        const char *end = row_end(r, p, quotes);
        const bool blank = end == p || (end == p + 1 && *p == '\r');
        if (!blank && !ctn__vec_push(&r->rows, (size_t)(p - r->text))) return CTN_ENOMEM;
        p = end < r->end ? end + 1 : end;
    }
    r->t->count = (int64_t)r->rows.n - r->first;
    if (r->t->count < 1) return ctn_fail(CTN_EFORMAT, "csv: %s: contains no values", r->t->path);
    return CTN_OK;
}

/* Calls fn for each cell of a row. */
typedef ctn_status (*cell_fn)(reader *r, int64_t sample, int64_t column, const ctn__cell *c,
                              bool report, void *user);
static ctn_status each_cell(reader *r, int64_t row, bool report, cell_fn fn, void *user)
{
    const char *p = r->text + r->rows.at[row];
    for (int64_t k = 0;; k++, p++) {
        ctn__cell c;
        p = ctn__cell_read(p, r->end, r->separator, &c);
        const ctn_status st = fn(r, row - r->first, k, &c, report, user);
        if (st < 0) return st;
        if (p < r->end && *p != '\n') continue;
        if (r->columns == 0 || k + 1 == r->columns) return CTN_OK;
        return report ? ctn_fail(CTN_EFORMAT,
                                 "csv: %s: line %lld has %lld cells, the first line has %lld",
                                 r->t->path, (long long)line_of(r, c.p), (long long)k + 1,
                                 (long long)r->columns)
                      : CTN_EFORMAT;
    }
}

/* ---- which columns --------------------------------------------------------------------------- */

static ctn_status count_cell(reader *r, int64_t sample, int64_t k, const ctn__cell *c, bool report,
                             void *user)
{
    (void)r, (void)sample, (void)c, (void)report;
    *(int64_t *)user = k + 1;
    return CTN_OK;
}

static ctn_status name_cell(reader *r, int64_t sample, int64_t k, const ctn__cell *c, bool report,
                            void *user)
{
    (void)sample, (void)report, (void)user;
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)k);
    if (c->bad) return wrong(r, c, number, "a quote is missing or in the wrong place");
    r->name[k] = r->first ? ctn__cell_text(c) : ctn__strdup(number);
    return r->name[k] ? CTN_OK : CTN_ENOMEM;
}

static ctn_status read_names(reader *r)
{
    int64_t columns = 0;
    CTN_TRY(each_cell(r, 0, true, count_cell, &columns));
    r->columns = columns;
    r->name = ctn__calloc((size_t)columns, sizeof *r->name);
    r->use = ctn__malloc((size_t)columns * sizeof *r->use);
    if (!r->name || !r->use) return CTN_ENOMEM;
    for (int64_t k = 0; k < columns; k++) r->use[k] = -1;
    return each_cell(r, 0, true, name_cell, NULL);
}

static ctn_status find_column(const reader *r, const char *name, int64_t *at)
{
    char *rest = NULL;
    *at = -1;
    if (!name) return ctn_fail(CTN_EARG, "csv: the name of a column is NULL");
    for (int64_t k = 0; k < r->columns; k++) {
        if (strcmp(r->name[k], name) != 0) continue;
        if (*at >= 0)
            return ctn_fail(CTN_EARG,
                            "csv: %s: columns %lld and %lld are both named \"%s\"; give the number "
                            "of one",
                            r->t->path, (long long)*at, (long long)k, name);
        *at = k;
    }
    if (*at >= 0) return CTN_OK;
    const long long number = isdigit((unsigned char)name[0]) ? strtoll(name, &rest, 10) : -1;
    if (number >= 0 && *rest == 0 && number < r->columns) *at = number;
    if (*at >= 0) return CTN_OK;
    return ctn_fail(CTN_ENOTFOUND,
                    "csv: %s: no column is named \"%s\"; the first of the %lld columns is \"%.*s\"",
                    r->t->path, name, (long long)r->columns, SHOWN, r->name[0]);
}

static ctn_status add_column(reader *r, int64_t at)
{
    struct csv *t = r->t;
    const int32_t k = t->inputs + t->targets;
    if (r->use[at] >= 0)
        return ctn_fail(CTN_EARG, "csv: %s: column \"%s\" is chosen twice", t->path, r->name[at]);
    r->use[at] = k;
    t->column[k] = (column){.at = at, .name = ctn__strdup(r->name[at])};
    return t->column[k].name ? CTN_OK : CTN_ENOMEM;
}

/* Inputs come before targets in t->column. */
static ctn_status choose_columns(reader *r)
{
    const ctn_csv_opt *o = &r->opt;
    struct csv *t = r->t;
    int64_t at = 0;
    if (r->columns > INT32_MAX || o->ninputs > r->columns || o->ntargets > r->columns)
        return ctn_fail(CTN_EARG, "csv: %s: %d inputs and %d targets of %lld columns", t->path,
                        o->ninputs, o->ntargets, (long long)r->columns);
    t->column = ctn__calloc((size_t)r->columns + 1, sizeof *t->column);
    if (!t->column) return CTN_ENOMEM;
    for (int i = 0; i < o->ntargets; i++) { /* first found, so that they are not inputs */
        CTN_TRY(find_column(r, o->targets[i], &at));
        if (o->ninputs == 0) r->use[at] = 0;
    }
    for (int i = 0; i < o->ninputs; i++, t->inputs++) {
        CTN_TRY(find_column(r, o->inputs[i], &at));
        CTN_TRY(add_column(r, at));
    }
    for (at = 0; o->ninputs == 0 && at < r->columns; at++) {
        if (r->use[at] < 0) {
            CTN_TRY(add_column(r, at));
            t->inputs++;
        } else {
            r->use[at] = -1; /* a target, which follows */
        }
    }
    for (int i = 0; i < o->ntargets; i++, t->targets++) {
        CTN_TRY(find_column(r, o->targets[i], &at));
        CTN_TRY(add_column(r, at));
    }
    if (t->inputs > 0) return CTN_OK;
    return ctn_fail(CTN_EARG, "csv: %s: all columns are targets, none is an input", t->path);
}

/* A cell takes at least one byte, with the separator or the end of the line after it. Where there
 * are fewer bytes, a row is too short, which must be known before there is memory for all cells. */
static ctn_status check_rows(reader *r)
{
    const int64_t most = (r->end - r->text + 1) / r->columns;
    int64_t columns = 0;
    for (int64_t i = 0; (int64_t)r->rows.n > most && i < (int64_t)r->rows.n; i++)
        CTN_TRY(each_cell(r, i, true, count_cell, &columns));
    return CTN_OK;
}

/* ---- kinds of columns ------------------------------------------------------------------------ */

static ctn_status kind_cell(reader *r, int64_t sample, int64_t k, const ctn__cell *c, bool report,
                            void *user)
{
    bool *known = user; /* (inputs + targets) */
    double v;
    const int32_t j = r->use[k < r->columns ? k : 0];
    (void)sample, (void)report;
    if (k >= r->columns || j < 0 || known[j] || ctn__cell_missing(c)) return CTN_OK;
    known[j] = true;
    r->t->column[j].text = !ctn__cell_number(c, r->locale, &v);
    const bool target = j >= r->t->inputs;
    if (!r->t->column[j].text || (target && r->t->targets == 1) || (!target && r->opt.categories))
        return CTN_OK;
    return wrong(r, c, r->t->column[j].name,
                 target ? "\"%.*s\" is not a number, and one of several targets cannot be a class"
                        : "\"%.*s\" is not a number; leave this column out of the inputs, or set "
                          "categories in ctn_csv_opt",
                 shown(c), c->p);
}

/* The first value of a column decides whether it contains text. */
static ctn_status find_kinds(reader *r)
{
    const struct csv *t = r->t;
    const int n = t->inputs + t->targets;
    int found = 0;
    ctn_status st = CTN_OK;
    bool *known = ctn__calloc((size_t)n, sizeof *known);
    if (!known) return CTN_ENOMEM;
    for (int64_t i = 0; i < t->count && found < n; i++) {
        CTN_TRY_GOTO(st, done, each_cell(r, r->first + i, true, kind_cell, known));
        while (found < n && known[found]) found++;
    }
done:
    ctn__free(known);
    return st;
}

static ctn_status kinds_like(reader *r, const struct csv *like)
{
    struct csv *t = r->t;
    if (!like) return ctn_fail(CTN_EARG, "csv: .like is not a dataset of ctn_csv_open");
    if (like->inputs != t->inputs || (t->targets && like->targets != t->targets))
        return ctn_fail(CTN_EARG,
                        "csv: %s has %d inputs and %d targets, but %s has %d inputs and %d "
                        "targets",
                        t->path, t->inputs, t->targets, like->path, like->inputs, like->targets);
    for (int j = 0; j < t->inputs + t->targets; j++) t->column[j].text = like->column[j].text;
    return CTN_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void store(const struct csv *t, int64_t sample, int64_t j, double v)
{
    const bool target = j >= t->inputs;
    void *to = target ? t->y : t->x;
    const int64_t at = target ? sample * t->targets + (j - t->inputs) : sample * t->inputs + j;
    if (target && t->classify) ((int64_t *)to)[at] = (int64_t)v;
    else if (t->dtype == CTN_F64) ((double *)to)[at] = v;
    else ((float *)to)[at] = (float)v;
}

/* The number in a cell; otherwise the reason why there is none. */
static const char *read_value(const reader *r, int32_t j, const ctn__cell *c, bool missing,
                              double *v)
{
    const bool class = j >= r->t->inputs && r->t->classify;
    if (missing && class) return "the class is missing";
    if (missing && !r->opt.fill)
        return "the value is missing; the option fill replaces missing values";
    if (missing) {
        *v = r->opt.fill_value;
        return NULL;
    }
    if (!ctn__cell_number(c, r->locale, v)) return "is not a number";
    if (class && !(*v >= 0 && *v == floor(*v) && *v < 1e15))
        return "is not a class, which is an integer from 0 on";
    if (!isfinite(*v) || (r->t->dtype == CTN_F32 && !class && !isfinite((float)*v)))
        return "is too large";
    return NULL;
}

static ctn_status value_cell(reader *r, int64_t sample, int64_t k, const ctn__cell *c, bool report,
                             void *user)
{
    const struct csv *t = r->t;
    const int32_t j = k < r->columns ? r->use[k] : -1;
    const char *name = k < r->columns ? r->name[k] : "";
    double v = 0;
    (void)user;
    if (c->bad)
        return report ? wrong(r, c, name, "a quote is missing or in the wrong place") : CTN_EFORMAT;
    if (j < 0) return CTN_OK;
    const bool missing = ctn__cell_missing(c);
    if (t->column[j].text && !missing) {
        t->column[j].value[sample].c = *c;
        return CTN_OK;
    }
    const char *why = read_value(r, j, c, missing, &v);
    if (!why) store(t, sample, j, v);
    if (!why || !report) return why ? CTN_EFORMAT : CTN_OK;
    return missing ? wrong(r, c, name, "%s", why)
                   : wrong(r, c, name, "\"%.*s\" %s", shown(c), c->p, why);
}

static ctn_status make_room(struct csv *t)
{
    const size_t count = (size_t)t->count, each = ctn_dtype_size(t->dtype);
    t->x = ctn__malloc(ctn__mul(ctn__mul(count, (size_t)t->inputs), each));
    if (t->targets)
        t->y = ctn__malloc(
            ctn__mul(ctn__mul(count, (size_t)t->targets), t->classify ? sizeof(int64_t) : each));
    if (!t->x || (t->targets && !t->y)) return CTN_ENOMEM;
    for (int j = 0; j < t->inputs + t->targets; j++) {
        column *c = &t->column[j];
        if (!c->text) continue;
        c->value = ctn__calloc(count, sizeof *c->value);
        if (!c->value) return CTN_ENOMEM;
    }
    return CTN_OK;
}

static ctn_status read_values(reader *r)
{
    enum { PARALLEL = 1 << 16 }; /* bytes below which threads cost more than they save */
    const int64_t count = r->t->count;
    const bool large = r->end - r->text > PARALLEL;
    int64_t bad = count; /* the first sample with an error */
#pragma omp parallel for schedule(static) num_threads(ctn__default_threads(NULL)) \
    reduction(min : bad) if (large)
    for (int64_t i = 0; i < count; i++)
        if (i < bad && each_cell(r, r->first + i, false, value_cell, NULL) < 0) bad = i;
    return bad == count ? CTN_OK : each_cell(r, r->first + bad, true, value_cell, NULL);
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The sorted names of a column, and the rank of each id. */
static ctn_status name_texts(column *c, ctn__cell_set *s, int64_t *rank)
{
    ctn__cell_set_sort(s);
    c->of = ctn__calloc(s->texts.n, sizeof *c->of);
    if (!c->of) return CTN_ENOMEM;
    for (size_t i = 0; i < s->texts.n; i++, c->texts++) {
        rank[s->texts.at[i].id] = (int64_t)i;
        c->of[i] = ctn__cell_text(&s->texts.at[i].c);
        if (!c->of[i]) return CTN_ENOMEM;
    }
    return CTN_OK;
}

/* Halves doubled quotes in place, so that equal texts have equal bytes. */
static void unquote(reader *r, ctn__cell *c)
{
    size_t n = 0;
    char *p = r->text + (c->p - r->text);
    for (size_t i = 0; c->quoted && i < c->n; i++) {
        p[n++] = p[i];
        if (p[i] == '"') i++;
    }
    if (c->quoted) c->n = n;
    c->quoted = false;
}

/* Numbers the texts of column j. known: the only ones that may occur; NULL: any. */
static ctn_status number_texts(reader *r, int j, const column *known)
{
    const struct csv *t = r->t;
    column *c = &t->column[j];
    ctn__cell_set s = {0};
    int64_t *rank = NULL, id = 0;
    ctn_status st = CTN_OK;
    for (int64_t k = 0; known && k < known->texts; k++) {
        const ctn__cell name = {.p = known->of[k], .n = strlen(known->of[k])};
        CTN_TRY_GOTO(st, done, ctn__cell_set_id(&s, &name, &id));
    }
    for (int64_t i = 0; i < t->count; i++) {
        ctn__cell_value *v = &c->value[i];
        if (!v->c.p) continue;
        unquote(r, &v->c);
        CTN_TRY_GOTO(st, done, ctn__cell_set_id(&s, &v->c, &v->id));
        if (known && v->id >= known->texts)
            CTN_TRY_GOTO(st, done,
                         wrong(r, &v->c, c->name, "\"%.*s\" does not occur in the other table",
                               shown(&v->c), v->c.p));
    }
    rank = ctn__malloc((s.texts.n + 1) * sizeof *rank);
    if (!rank) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, name_texts(c, &s, rank));
    for (int64_t i = 0; i < t->count; i++)
        if (c->value[i].c.p) store(t, i, j, (double)rank[c->value[i].id]);
done:
    ctn__free(rank);
    ctn__cell_set_free(&s);
    return st;
}

/* ---- the dataset ----------------------------------------------------------------------------- */

static int64_t csv_count(void *self)
{
    return ((struct csv *)self)->count;
}

static int csv_fields(void *self)
{
    return ((struct csv *)self)->targets ? 2 : 1;
}

static void csv_field(void *self, int f, ctn_field *out)
{
    const struct csv *t = self;
    *out = (ctn_field){.dtype = t->dtype, .ndim = 1, .shape = {f ? t->targets : t->inputs}};
    if (f == 1 && t->targets == 1) *out = (ctn_field){.dtype = t->classify ? CTN_I64 : t->dtype};
}

static ctn_status csv_get(void *self, const ctn_sample *s, void *const *dst)
{
    const struct csv *t = self;
    const size_t each = ctn_dtype_size(t->dtype), n = (size_t)t->inputs * each;
    const size_t m = t->classify ? sizeof(int64_t) : (size_t)t->targets * each;
    memcpy(dst[0], (const char *)t->x + (size_t)s->index * n, n);
    if (t->targets) memcpy(dst[1], (const char *)t->y + (size_t)s->index * m, m);
    return CTN_OK;
}

static void csv_free(void *self)
{
    struct csv *t = self;
    if (!t) return;
    for (int j = 0; t->column && j < t->inputs + t->targets + 1; j++) {
        column *c = &t->column[j]; /* the last one may be incomplete */
        for (int64_t k = 0; k < c->texts; k++) ctn__free(c->of[k]);
        ctn__free(c->of);
        ctn__free(c->value);
        ctn__free(c->name);
    }
    ctn__free(t->column);
    ctn__free(t->x);
    ctn__free(t->y);
    ctn__free(t->path);
    ctn__free(t);
}

static int csv_name(void *self, int64_t index, char *buf, size_t n)
{
    return snprintf(buf, n, "%s[%lld]", ((struct csv *)self)->path, (long long)index);
}

static const char *csv_class(void *self, int64_t k)
{
    const struct csv *t = self;
    if (!t->classify) return NULL;
    const column *c = &t->column[t->inputs];
    return k >= 0 && k < c->texts ? c->of[k] : NULL;
}

static const ctn_dataset_vt csv_vt = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = csv_count,
    .fields = csv_fields,
    .field = csv_field,
    .get = csv_get,
    .free = csv_free,
    .name = csv_name,
    .class_name = csv_class,
};

/* ---- opening --------------------------------------------------------------------------------- */

static ctn_status set_options(reader *r, const char *path, const ctn_csv_opt *opt)
{
    CTN_TRY(ctn__opt("csv", &r->opt, sizeof r->opt, opt));
    const ctn_csv_opt *o = &r->opt;
    const size_t n = strlen(path);
    const char *s = o->separator;
    if (!s) s = n > 4 && strcasecmp(path + n - 4, ".tsv") == 0 ? "\t" : ",";
    r->separator = s[0];
    r->first = o->no_header ? 0 : 1;
    if (!s[0] || s[1] || isalnum((unsigned char)s[0]) || strchr("\"\r\n.+-", s[0]))
        return ctn_fail(CTN_EARG,
                        "csv: the separator is \"%s\", expected one character that "
                        "cannot be part of a number, such as , or ;",
                        s);
    if (o->ninputs < 0 || o->ntargets < 0 || (o->ninputs && !o->inputs) ||
        (o->ntargets && !o->targets))
        return ctn_fail(CTN_EARG, "csv: %d inputs and %d targets, but no names of them", o->ninputs,
                        o->ntargets);
    if (o->classes && o->ntargets != 1)
        return ctn_fail(CTN_EARG, "csv: classes need one target, there are %d", o->ntargets);
    if (o->fill && !isfinite(o->fill_value))
        return ctn_fail(CTN_EARG, "csv: fill_value is not finite");
    r->t->dtype = o->keep_f64 ? CTN_F64 : CTN_F32;
    r->t->path = ctn__strdup(path);
    r->locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    return r->t->path && r->locale ? CTN_OK : CTN_ENOMEM;
}

static ctn_status read_table(reader *r, const char *path)
{
    struct csv *t = r->t;
    size_t bytes = 0;
    const struct csv *like = r->opt.like ? ctn__dataset_self(r->opt.like, csv_get) : NULL;
    CTN_TRY(ctn__file_whole("csv", path, SIZE_MAX - 1, &r->text, &bytes));
    r->end = r->text + bytes;
    CTN_TRY(find_rows(r));
    CTN_TRY(read_names(r));
    CTN_TRY(choose_columns(r));
    CTN_TRY(check_rows(r));
    CTN_TRY(r->opt.like ? kinds_like(r, like) : find_kinds(r));
    for (int j = t->inputs; r->opt.text_target && j < t->inputs + t->targets; j++)
        t->column[j].text = true;
    t->classify = t->targets == 1 && (r->opt.classes || t->column[t->inputs].text);
    CTN_TRY(make_room(t));
    CTN_TRY(read_values(r));
    for (int j = 0; j < t->inputs + t->targets; j++) {
        if (!t->column[j].text) continue;
        CTN_TRY(number_texts(r, j, like ? &like->column[j] : NULL));
        ctn__free(t->column[j].value);
        t->column[j].value = NULL;
    }
    return CTN_OK;
}

ctn_status ctn_csv_open(ctn_dataset **ds, const char *path, const ctn_csv_opt *opt)
{
    if (!ds || !path) return ctn_fail(CTN_EARG, "csv: NULL argument");
    *ds = NULL;
    ctn_status st = CTN_OK;
    reader r = {.t = ctn__calloc(1, sizeof *r.t)};
    if (!r.t) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, set_options(&r, path, opt));
    CTN_TRY_GOTO(st, done, read_table(&r, path));
    CTN_TRY_GOTO(st, done, ctn_dataset_new(ds, &csv_vt, r.t));
    r.t = NULL; /* owned by the dataset */
done:
    for (int64_t k = 0; r.name && k < r.columns; k++) ctn__free(r.name[k]);
    ctn__free(r.name);
    ctn__free(r.use);
    ctn__free(r.text);
    ctn__vec_free(&r.rows);
    if (r.locale) freelocale(r.locale);
    csv_free(r.t);
    return st;
}

const char *ctn_csv_column(const ctn_dataset *ds, int field, int64_t k)
{
    const struct csv *t = ds ? ctn__dataset_self(ds, csv_get) : NULL;
    if (!t || field < 0 || field > 1 || k < 0) return NULL;
    if (k >= (field ? t->targets : t->inputs)) return NULL;
    return t->column[(field ? t->inputs : 0) + k].name;
}
