/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of a module in a safetensors file. Loading first pairs every variable with an array and
 * collects everything that does not match. Only then are values read, straight into the
 * variables, so only a disk error can leave a module partly changed. Networks of the zoo know how
 * their published files differ (ctn__published): in the beginnings and endings of names, in arrays
 * that the network does not need, and in transposed matrices.
 */
#include <stdarg.h>
#include <sys/stat.h>

#include <catena/io.h>

#include "io/safetensors.h"
#include "nn/nn.h"

typedef struct {
    ctn_weights_save_opt opt;
    ctn__st_writer *w;
    int n; /* arrays added */
} saving;

static bool is_saved(const saving *s, const char *name)
{
    return !s->opt.only || ctn__name_ends_in(name, s->opt.only);
}

static ctn_status add_array(void *user, const char *name, ctn_dtype dtype, int ndim,
                            const int64_t *dims, void *data)
{
    saving *s = user;
    (void)data;
    if (!is_saved(s, name)) return CTN_OK;
    s->n++;
    return ctn__st_add(s->w, name, dtype, ndim, dims);
}

static ctn_status put_array(void *user, const char *name, ctn_dtype dtype, int ndim,
                            const int64_t *dims, void *data)
{
    const saving *s = user;
    (void)dtype, (void)ndim, (void)dims;
    return is_saved(s, name) ? ctn__st_put(s->w, name, data) : CTN_OK;
}

static ctn_status check_endings(const saving *s)
{
    if (!s->opt.only || s->n > 0) return CTN_OK;
    return ctn_fail(CTN_ENOTFOUND, "weights_save: no name ends in '%s'%s",
                    s->opt.only[0] ? s->opt.only[0] : "",
                    s->opt.only[0] && s->opt.only[1] ? " or another ending in `only`" : "");
}

ctn_status ctn_weights_save_with(ctn_module *m, const char *path, const ctn_weights_save_opt *opt)
{
    ctn_status st = CTN_OK;
    saving s = {0};
    if (!m || !path) return ctn_fail(CTN_EARG, "weights_save: needs a module and a path");
    CTN_TRY(ctn__opt("weights_save", &s.opt, sizeof s.opt, opt));
    CTN_TRY_GOTO(st, done, ctn__st_begin(&s.w, path));
    /* Names and layouts are PyTorch's, and some of its readers require this entry. */
    CTN_TRY_GOTO(st, done, ctn__st_add_metadata(s.w, "format", "pt"));
    CTN_TRY_GOTO(st, done, ctn_module_visit(m, add_array, &s));
    CTN_TRY_GOTO(st, done, check_endings(&s));
    CTN_TRY_GOTO(st, done, ctn_module_visit(m, put_array, &s));
    CTN_TRY_GOTO(st, done, ctn__st_finish(s.w));
done:
    ctn__st_writer_free(s.w);
    return st;
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
    ctn_module *m;
    ctn_weights_opt opt;
    ctn__st_file *file;
    ctn_vars all;
    const ctn__st_array **from; /* array for each name of all; NULL: not loaded */
    bool *used;                 /* arrays of the file that some name refers to */
    int next;                   /* index in all of the next variable to read */
    char *converted;            /* buffer for an array that is converted or transposed */
    bool turned;                /* the file has the matrices of published.turned transposed */
    problems missing, unexpected, shape, dtype;
} loading;

static void note(problems *p, const char *fmt, ...) CTN_PRINTF(2, 3);
static void note(problems *p, const char *fmt, ...)
{
    char one[768];
    if (p->n++ >= LISTED) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(one, sizeof one, fmt, args);
    va_end(args);
    ctn__text_add(&p->text, "%s%s", p->n > 1 ? ", " : "", one);
}

/* Index at which the part of name below `top` begins ("fc" and "fc.bias": 3); -1: not below top. */
static int below(const char *top, const char *name)
{
    size_t n = strlen(top);
    if (n == 0) return 0;
    if (strncmp(top, name, n) != 0 || (name[n] != 0 && name[n] != '.')) return -1;
    return (int)n + (name[n] == '.');
}

/* The name in the file for a variable's name, in buf of n bytes; NULL: do not load it. */
static const char *file_name(const loading *l, const char *name, char *buf, size_t n)
{
    char renamed[1024];
    for (const char *const *r = l->opt.rename; r && r[0] && r[1]; r += 2) {
        int at = below(r[0], name);
        if (at < 0) continue;
        const char *rest = name + at;
        snprintf(renamed, sizeof renamed, "%s%s%s", r[1], *r[1] && *rest ? "." : "", rest);
        name = renamed;
        break;
    }
    if (l->opt.map) return l->opt.map(l->opt.user, name, buf, n);
    snprintf(buf, n, "%s", name);
    return buf;
}

/* The array called `name`, or that with the prefix of published files added or removed. */
static const ctn__st_array *find_prefixed(const loading *l, const char *name)
{
    const ctn__st_array *a = ctn__st_find(l->file, name);
    const char *prefix = l->m->published ? l->m->published->prefix : NULL;
    char longer[1024];
    if (a || !prefix) return a;
    const size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) == 0) return ctn__st_find(l->file, name + n);
    snprintf(longer, sizeof longer, "%s%s", prefix, name);
    return ctn__st_find(l->file, longer);
}

/* The same, or that with the ending of old files. */
static const ctn__st_array *find_array(const loading *l, const char *name)
{
    const ctn__st_array *a = find_prefixed(l, name);
    const char *const *older = l->m->published ? l->m->published->older : NULL;
    char other[1024];
    for (; !a && older && *older; older += 2) {
        if (!ctn__name_ends(name, older[0])) continue;
        const int kept = (int)(strlen(name) - strlen(older[0]));
        snprintf(other, sizeof other, "%.*s%s", kept, name, older[1]);
        a = find_prefixed(l, other);
    }
    return a;
}

static bool is_turned(const loading *l, int i)
{
    return l->turned && ctn__name_ends_in(l->all.name[i], l->m->published->turned);
}

static size_t array_index(const loading *l, const ctn__st_array *a)
{
    for (size_t i = 0;; i++)
        if (ctn__st_at(l->file, i) == a) return i;
}

static int first_name(const loading *l, int i)
{
    int k = 0;
    while (l->all.var[k] != l->all.var[i]) k++;
    return k;
}

static void check_fit(loading *l, int i, const ctn__st_array *a)
{
    const ctn_var *v = l->all.var[i];
    ctn_desc d = {.ndim = a->ndim};
    memcpy(d.dim, a->shape, sizeof d.dim);
    if (is_turned(l, i) && d.ndim == 2) d.dim[0] = a->shape[1], d.dim[1] = a->shape[0];
    if (!ctn__same_shape(&d, &v->d)) {
        char s[128], t[128];
        note(&l->shape, "%s is %s in the model and %s in the file", l->all.name[i],
             ctn__shape_text(&v->d, s, sizeof s), ctn__shape_text(&d, t, sizeof t));
    } else if (a->dtype != v->d.dtype && !(ctn__is_float(a->dtype) && ctn__is_float(v->d.dtype))) {
        note(&l->dtype, "%s is %s in the model and %s in the file", l->all.name[i],
             ctn_dtype_name(v->d.dtype), ctn_dtype_name(a->dtype));
    }
}

/* Does the file have matrices transposed? The first one that cannot be square shows it. */
static bool has_turned(const loading *l)
{
    const ctn__published *p = l->m->published;
    char buf[1024];
    for (int i = 0; p && p->turned && i < l->all.n; i++) {
        if (!ctn__name_ends(l->all.name[i], p->turned[0])) continue;
        const char *name = file_name(l, l->all.name[i], buf, sizeof buf);
        const ctn__st_array *a = name ? find_array(l, name) : NULL;
        const int64_t *d = l->all.var[i]->d.dim;
        if (a) return a->ndim == 2 && a->shape[0] == d[1] && a->shape[1] == d[0] && d[0] != d[1];
    }
    return false;
}

/* Pair names with arrays; returns how many are loaded. A tied variable takes the array of the
 * first of its names that has one. */
static int pair(loading *l)
{
    int loaded = 0;
    char buf[1024];
    bool *skip = l->used + ctn__st_count(l->file); /* variables that opt.map leaves out */
    l->turned = has_turned(l);
    for (int i = 0; i < l->all.n; i++) {
        int first = first_name(l, i);
        const char *name = file_name(l, l->all.name[i], buf, sizeof buf);
        const ctn__st_array *a = name ? find_array(l, name) : NULL;
        skip[first] |= name == NULL;
        if (!a) continue;
        l->used[array_index(l, a)] = true;
        if (l->from[first]) continue;
        l->from[first] = a;
        check_fit(l, first, a);
        loaded++;
    }
    for (int i = 0; i < l->all.n; i++)
        if (first_name(l, i) == i && !l->from[i] && !skip[i]) {
            const char *name = file_name(l, l->all.name[i], buf, sizeof buf);
            bool same = !name || strcmp(name, l->all.name[i]) == 0;
            note(&l->missing, "%s%s%s%s", l->all.name[i], same ? "" : " (as ", same ? "" : name,
                 same ? "" : ")");
        }
    const char *const *ignored = l->m->published ? l->m->published->ignored : NULL;
    for (size_t i = 0; i < ctn__st_count(l->file); i++) {
        const char *name = ctn__st_at(l->file, i)->name;
        if (!l->used[i] && !ctn__name_ends_in(name, ignored)) note(&l->unexpected, "%s", name);
    }
    return loaded;
}

static void add_problems(ctn__text *t, const char *title, const problems *p)
{
    if (p->n == 0) return;
    ctn__text_add(t, "; %s: %s", title, p->text.s ? p->text.s : "");
    if (p->n > LISTED) ctn__text_add(t, " and %d more", p->n - LISTED);
}

static ctn_status report(const loading *l, const char *path, int loaded)
{
    if (l->missing.text.failed || l->unexpected.text.failed || l->shape.text.failed ||
        l->dtype.text.failed)
        return CTN_ENOMEM;
    bool names = !l->opt.partial && (l->missing.n > 0 || l->unexpected.n > 0);
    bool nothing = l->opt.partial && loaded == 0 && l->missing.n > 0;
    ctn_status st = l->shape.n > 0       ? CTN_ESHAPE
                    : l->dtype.n > 0     ? CTN_EDTYPE
                    : (names || nothing) ? CTN_ENOTFOUND
                                         : CTN_OK;
    if (st == CTN_OK) return st;
    ctn__text t = {0};
    add_problems(&t, "shapes differ", &l->shape);
    add_problems(&t, "types differ", &l->dtype);
    if (names || nothing) {
        add_problems(&t, "missing in the file", &l->missing);
        add_problems(&t, "not in the model", &l->unexpected);
    }
    st = ctn_fail(st, "weights_load: %s does not fit the model%s%s", path, t.s ? t.s : "",
                  names ? "; if this is intended, rename arrays or load partially" : "");
    ctn__text_free(&t);
    return st;
}

/* data (rows,cols) = the transpose of the n elements in l->converted. */
static void turn(const loading *l, const ctn__st_array *a, ctn_dtype dtype, void *data)
{
    const int64_t cols = a->shape[0], rows = a->shape[1];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < cols; k++)
            ctn__elem_set(data, dtype, i * cols + k,
                          ctn__elem_get(l->converted, a->dtype, k * rows + i));
}

/* Read the next variable: ctn_module_visit passes them in the order of the names, each under its
 * first name. */
static ctn_status read_array(void *user, const char *name, ctn_dtype dtype, int ndim,
                             const int64_t *dims, void *data)
{
    loading *l = user;
    (void)name, (void)ndim, (void)dims;
    while (first_name(l, l->next) != l->next) l->next++;
    const bool turned = is_turned(l, l->next);
    const ctn__st_array *a = l->from[l->next++];
    if (!a) return CTN_OK;
    if (a->dtype == dtype && !turned) return ctn__st_read(l->file, a, data);
    CTN_TRY(ctn__st_read(l->file, a, l->converted));
    if (turned) {
        turn(l, a, dtype, data);
        return CTN_OK;
    }
    const int64_t n = (int64_t)(a->bytes / ctn_dtype_size(a->dtype));
    for (int64_t k = 0; k < n; k++)
        ctn__elem_set(data, dtype, k, ctn__elem_get(l->converted, a->dtype, k));
    return CTN_OK;
}

static ctn_status read_values(loading *l)
{
    size_t most = 0; /* size in bytes of the largest array that is converted or transposed */
    for (int i = 0; i < l->all.n; i++)
        if (l->from[i] && l->from[i]->bytes > most &&
            (is_turned(l, i) || l->from[i]->dtype != l->all.var[i]->d.dtype))
            most = l->from[i]->bytes;
    l->converted = ctn__aligned(most);
    if (!l->converted) return CTN_ENOMEM;
    return ctn_module_visit(l->m, read_array, l);
}

/* Open the file at path or, if that is a folder, the published model in it. */
static ctn_status open_weights(ctn__st_file **f, const char *path)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return ctn__st_open(f, path);
    for (int i = 0; i < 2; i++) {
        ctn__text file = {0};
        ctn__text_add(&file, "%s/%s", path, names[i]);
        const bool found = !file.failed && stat(file.s, &info) == 0;
        ctn_status st = file.failed ? CTN_ENOMEM : found ? ctn__st_open(f, file.s) : CTN_OK;
        ctn__text_free(&file);
        if (found || st < 0) return st;
    }
    return ctn_fail(CTN_EIO, "weights_load: the folder %s has neither %s nor %s", path, names[0],
                    names[1]);
}

ctn_status ctn_weights_load(ctn_module *m, const char *path, const ctn_weights_opt *opt)
{
    ctn_status st = CTN_OK;
    loading l = {.m = m};
    if (!m || !path) return ctn_fail(CTN_EARG, "weights_load: needs a module and a path");
    if (m->ctx->level > 0)
        return ctn_fail(CTN_ESTATE, "weights_load: a scope is open; load between scopes");
    CTN_TRY(ctn__opt("weights_load", &l.opt, sizeof l.opt, opt));
    CTN_TRY(ctn__module_vars(m, &l.all));
    for (int i = 0; i < l.all.n; i++) CTN_TRY(ctn__var_writable(l.all.var[i], "weights_load"));
    CTN_TRY_GOTO(st, done, open_weights(&l.file, path));
    l.from = ctn__calloc((size_t)l.all.n + 1, sizeof *l.from);
    l.used = ctn__calloc(ctn__st_count(l.file) + (size_t)l.all.n + 1, sizeof *l.used);
    if (!l.from || !l.used) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    int loaded = pair(&l);
    CTN_TRY_GOTO(st, done, report(&l, path, loaded));
    CTN_TRY_GOTO(st, done, read_values(&l));
done:
    ctn__text_free(&l.missing.text);
    ctn__text_free(&l.unexpected.text);
    ctn__text_free(&l.shape.text);
    ctn__text_free(&l.dtype.text);
    ctn__free(l.from);
    ctn__free(l.used);
    ctn__free(l.converted);
    ctn__st_close(l.file);
    return st;
}
