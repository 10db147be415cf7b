/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of a module in files. Loading first pairs every variable with an array and collects
 * everything that does not match (weights_match.c). Only then are values read, straight into the
 * variables, so only a disk error can leave a module partly changed.
 */
#include "io/weights.h"
#include "io/safetensors.h"

typedef struct {
    ctn_weights_save_opt opt;
    const ctn_module *m;
    const char *before; /* of published names; NULL: the file is as the module is */
    ctn__st_writer *w;
    int n; /* arrays added */
} saving;

static bool is_saved(const saving *s, const char *name)
{
    return !s->opt.only || ctn__name_ends_in(name, s->opt.only);
}

ctn_status ctn__published_name(const ctn_module *m, const char *before, const char *name, char *buf,
                               size_t n)
{
    const ctn__published *of = m->published;
    const bool add = of && of->bare && strncmp(name, of->bare, strlen(of->bare)) != 0;
    const int used = snprintf(buf, n, "%s%s%s", before, add ? of->prefix : "", name);
    if (used >= 0 && (size_t)used < n) return CTN_OK;
    return ctn_fail(CTN_EFORMAT, "the name %.64s... is too long for a file", name);
}

/* The matrix in the file has its dimensions exchanged. */
static bool is_turned(const saving *s, const char *name, int ndim)
{
    return s->before && ndim == 2 && ctn__name_ends_in(name, s->m->published->turned);
}

static ctn_status add_array(void *user, const char *name, ctn_dtype dtype, int ndim,
                            const int64_t *dims, void *data)
{
    saving *s = user;
    char buf[1024];
    (void)data;
    if (!is_saved(s, name)) return CTN_OK;
    s->n++;
    if (!s->before) return ctn__st_add(s->w, name, dtype, ndim, dims);
    CTN_TRY(ctn__published_name(s->m, s->before, name, buf, sizeof buf));
    if (!is_turned(s, name, ndim)) return ctn__st_add(s->w, buf, dtype, ndim, dims);
    return ctn__st_add(s->w, buf, dtype, CTN_SHAPE(dims[1], dims[0]));
}

static ctn_status put_turned(ctn__st_writer *w, const char *name, size_t size, const int64_t *dims,
                             const char *data)
{
    const size_t rows = (size_t)dims[0], columns = (size_t)dims[1];
    char *p = ctn__aligned(rows * columns * size);
    if (!p) return CTN_ENOMEM;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < columns; k++)
            memcpy(p + (k * rows + i) * size, data + (i * columns + k) * size, size);
    const ctn_status st = ctn__st_put(w, name, p);
    ctn__free(p);
    return st;
}

static ctn_status put_array(void *user, const char *name, ctn_dtype dtype, int ndim,
                            const int64_t *dims, void *data)
{
    const saving *s = user;
    char buf[1024];
    if (!is_saved(s, name)) return CTN_OK;
    if (!s->before) return ctn__st_put(s->w, name, data);
    CTN_TRY(ctn__published_name(s->m, s->before, name, buf, sizeof buf));
    if (!is_turned(s, name, ndim)) return ctn__st_put(s->w, buf, data);
    return put_turned(s->w, buf, ctn_dtype_size(dtype), dims, data);
}

static ctn_status check_endings(const saving *s)
{
    if (!s->opt.only || s->n > 0) return CTN_OK;
    return ctn_fail(CTN_ENOTFOUND, "weights_save: no name ends in '%s'%s",
                    s->opt.only[0] ? s->opt.only[0] : "",
                    s->opt.only[0] && s->opt.only[1] ? " or another ending in `only`" : "");
}

static ctn_status save(saving *s, ctn_module *m, const char *path)
{
    ctn_status st = CTN_OK;
    s->m = m;
    CTN_TRY_GOTO(st, done, ctn__st_begin(&s->w, path));
    if (s->opt.no_sync) ctn__st_quick(s->w);
    /* Names and layouts are PyTorch's, and some of its readers require this entry. */
    CTN_TRY_GOTO(st, done, ctn__st_add_metadata(s->w, "format", "pt"));
    CTN_TRY_GOTO(st, done, ctn_module_visit(m, add_array, s));
    CTN_TRY_GOTO(st, done, check_endings(s));
    CTN_TRY_GOTO(st, done, ctn_module_visit(m, put_array, s));
    CTN_TRY_GOTO(st, done, ctn__st_finish(s->w));
done:
    ctn__st_writer_free(s->w);
    return st;
}

ctn_status ctn_weights_save_with(ctn_module *m, const char *path, const ctn_weights_save_opt *opt)
{
    saving s = {0};
    if (!m || !path) return ctn_fail(CTN_EARG, "weights_save: needs a module and a path");
    CTN_TRY(ctn__opt("weights_save", &s.opt, sizeof s.opt, opt));
    return save(&s, m, path);
}

ctn_status ctn__weights_save_published(ctn_module *m, const char *path, const char *before,
                                       const char *const *only)
{
    return save(&(saving){.opt.only = only, .before = before}, m, path);
}

ctn_status ctn_weights_save(ctn_module *m, const char *path)
{
    return ctn_weights_save_with(m, path, NULL);
}

/* ---- load ----------------------------------------------------------------------------------- */

enum { LISTED = 8 }; /* maximum number of names of one kind in a message */

typedef struct {
    ctn__text text;
    int n;
} problems;

typedef struct {
    ctn__pairs pairs;
    problems of[CTN__PAIRING_KINDS];
    int next;    /* index of the next variable to read */
    char *array; /* buffer for an array that is converted, transposed or cut */
} loading;

static ctn_status note(void *user, const ctn__pairing *m)
{
    problems *p = &((loading *)user)->of[m->kind];
    if (m->kind <= CTN__NEW_HEAD || p->n++ >= LISTED) return CTN_OK;
    ctn__text_add(&p->text, "%s%s", p->n > 1 ? ", " : "", m->text);
    return p->text.failed ? CTN_ENOMEM : CTN_OK;
}

static void add_problems(ctn__text *t, const char *title, const problems *p)
{
    if (p->n == 0) return;
    ctn__text_add(t, "; %s: %s", title, p->text.s ? p->text.s : "");
    if (p->n > LISTED) ctn__text_add(t, " and %d more", p->n - LISTED);
}

static ctn_status report(const loading *l, const char *path)
{
    const problems *shape = &l->of[CTN__SHAPE_DIFFERS], *dtype = &l->of[CTN__DTYPE_DIFFERS],
                   *missing = &l->of[CTN__MISSING], *unexpected = &l->of[CTN__UNEXPECTED];
    const bool partial = l->pairs.opt.partial;
    const bool names = !partial && (missing->n > 0 || unexpected->n > 0);
    const bool nothing = partial && l->pairs.loaded == 0 && missing->n > 0;
    char title[128];
    ctn_status st = shape->n > 0         ? CTN_ESHAPE
                    : dtype->n > 0       ? CTN_EDTYPE
                    : (names || nothing) ? CTN_ENOTFOUND
                                         : CTN_OK;
    if (st == CTN_OK) return st;
    ctn__text t = {0};
    if (l->pairs.map != 0)
        ctn__text_add(&t, " (%s)", ctn__key_map_title(l->pairs.map, title, sizeof title));
    add_problems(&t, "shapes differ", shape);
    add_problems(&t, "types differ", dtype);
    if (names || nothing) {
        add_problems(&t, "missing in the file", missing);
        add_problems(&t, "not in the model", unexpected);
    }
    st = ctn_fail(st, "weights_load: %s does not fit the model%s%s", path, t.s ? t.s : "",
                  names ? "; if this is intended, rename arrays or load partially" : "");
    ctn__text_free(&t);
    return st;
}

static void tell_head(const ctn__pairs *p)
{
    for (int i = 0; i < p->all.n; i++) {
        if (!p->from[i].head || !p->opt.fresh) continue;
        const ctn_desc file = ctn__pairs_desc(p, i);
        p->opt.fresh(p->opt.user, p->all.name[i], &p->all.var[i]->d, &file);
    }
}

/* data (rows,cols) = the transpose of the array a in l->array. */
static void turn(const loading *l, const ctn_weights_array *a, ctn_dtype dtype, void *data)
{
    const int64_t cols = a->shape[0], rows = a->shape[1];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < cols; k++)
            ctn__elem_set(data, dtype, i * cols + k,
                          ctn__elem_get(l->array, a->dtype, k * rows + i));
}

/* Whether variable i is read through the buffer. */
static bool is_changed(const ctn__pairs *p, int i)
{
    const ctn__source *s = &p->from[i];
    return s->parts > 1 || ctn__pairs_turned(p, i);
}

/* Read the next variable: ctn_module_visit passes them in the order of the names, each under its
 * first name. */
static ctn_status read_array(void *user, const char *name, ctn_dtype dtype, int ndim,
                             const int64_t *dims, void *data)
{
    loading *l = user;
    const ctn__pairs *p = &l->pairs;
    (void)name;
    while (p->first[l->next] != l->next) l->next++;
    const int i = l->next++;
    const ctn__source *s = &p->from[i];
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= dims[d];
    if (s->array < 0 || s->head) return CTN_OK;
    if (!is_changed(p, i))
        return ctn_weights_read(p->file, s->array, dtype, data, (size_t)n * ctn_dtype_size(dtype));
    const ctn_weights_array *a = ctn__weights_at(p->file, s->array);
    CTN_TRY(ctn_weights_read(p->file, s->array, 0, l->array, a->bytes));
    if (s->parts == 1) turn(l, a, dtype, data);
    else
        ctn__convert(data, dtype, l->array + a->bytes / (size_t)s->parts * (size_t)s->part,
                     a->dtype, n);
    return CTN_OK;
}

static ctn_status read_values(loading *l)
{
    const ctn__pairs *p = &l->pairs;
    size_t most = 0; /* size in bytes of the largest array that is read through the buffer */
    for (int i = 0; i < p->all.n; i++) {
        if (p->from[i].array < 0 || !is_changed(p, i)) continue;
        const size_t bytes = ctn__weights_at(p->file, p->from[i].array)->bytes;
        if (bytes > most) most = bytes;
    }
    l->array = ctn__aligned(most);
    if (!l->array) return CTN_ENOMEM;
    return ctn_module_visit(p->m, read_array, l);
}

ctn_status ctn_weights_load(ctn_module *m, const char *path, const ctn_weights_opt *opt)
{
    ctn_status st = CTN_OK;
    loading l = {0};
    char title[128];
    if (m && m->ctx->level > 0)
        return ctn_fail(CTN_ESTATE, "weights_load: a scope is open; load between scopes");
    CTN_TRY_GOTO(st, done, ctn__pairs_open(&l.pairs, "weights_load", m, path, opt));
    for (int i = 0; i < l.pairs.all.n; i++)
        CTN_TRY_GOTO(st, done, ctn__var_writable(l.pairs.all.var[i], "weights_load"));
    CTN_TRY_GOTO(st, done, ctn__pairs_visit(&l.pairs, note, &l));
    CTN_TRY_GOTO(st, done, report(&l, path));
    tell_head(&l.pairs);
    CTN_TRY_GOTO(st, done, read_values(&l));
    if (l.pairs.map != 0)
        ctn__notice("loaded %s by other names: %s", path,
                    ctn__key_map_title(l.pairs.map, title, sizeof title));
done:
    for (int i = 0; i < CTN__PAIRING_KINDS; i++) ctn__text_free(&l.of[i].text);
    ctn__free(l.array);
    ctn__pairs_close(&l.pairs);
    return st;
}

/* ---- compare -------------------------------------------------------------------------------- */

typedef struct {
    ctn_weights_match_fn fn;
    void *user;
    const char *map;
} comparing;

static ctn_status pass_on(void *user, const ctn__pairing *m)
{
    const comparing *c = user;
    char text[1280];
    const char *const before[] = {"", "starts fresh: ",        "",
                                  "", "missing in the file: ", "not in the model: "};
    snprintf(text, sizeof text, "%s%s", before[m->kind], m->text);
    const ctn_weights_match match = {.name = m->name,
                                     .array = m->array,
                                     .problem = m->kind == CTN__FITS ? NULL : text,
                                     .map = c->map};
    return c->fn(c->user, &match);
}

ctn_status ctn_weights_compare(ctn_module *m, const char *path, const ctn_weights_opt *opt,
                               ctn_weights_match_fn fn, void *user)
{
    ctn_status st = CTN_OK;
    ctn__pairs pairs = {0};
    comparing c = {.fn = fn, .user = user};
    char title[128];
    if (!fn) return ctn_fail(CTN_EARG, "weights_compare: needs a function");
    CTN_TRY_GOTO(st, done, ctn__pairs_open(&pairs, "weights_compare", m, path, opt));
    c.map = ctn__key_map_title(pairs.map, title, sizeof title);
    CTN_TRY_GOTO(st, done, ctn__pairs_visit(&pairs, pass_on, &c));
done:
    ctn__pairs_close(&pairs);
    return st;
}
