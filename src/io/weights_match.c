/* SPDX-License-Identifier: Apache-2.0
 *
 * Pairs the variables of a module with the arrays of a file, and explains what does not fit.
 * Networks of the zoo know how their published files differ (ctn__published): in the beginnings
 * and endings of names, in arrays that the network does not need, and in transposed matrices. If
 * names are missing nevertheless, those of other programs are tried (key_maps.c), and the map
 * under which the most variables have an array is used.
 */
#include "io/weights.h"

enum { NEAREST_MAX = 64, NAME = 256, TEXT = 1024 }; /* NEAREST_MAX: missing names per file */

static const char counter[] = "num_batches_tracked";

/* ---- names ---------------------------------------------------------------------------------- */

/* Index at which the part of name below `top` begins ("fc" and "fc.bias": 3); -1: not below top. */
static int below(const char *top, const char *name)
{
    size_t n = strlen(top);
    if (n == 0) return 0;
    if (strncmp(top, name, n) != 0 || (name[n] != 0 && name[n] != '.')) return -1;
    return (int)n + (name[n] == '.');
}

/* The name in the file for a variable's name, in buf of n bytes; NULL: do not load it. */
static const char *file_name(const ctn__pairs *p, const char *name, char *buf, size_t n)
{
    char renamed[1024];
    for (const char *const *r = p->opt.rename; r && r[0] && r[1]; r += 2) {
        int at = below(r[0], name);
        if (at < 0) continue;
        const char *rest = name + at;
        snprintf(renamed, sizeof renamed, "%s%s%s", r[1], *r[1] && *rest ? "." : "", rest);
        name = renamed;
        break;
    }
    if (p->opt.map) return p->opt.map(p->opt.user, name, buf, n);
    snprintf(buf, n, "%s", name);
    return buf;
}

/* The array called `name`, or that with the prefix of published files added or removed. */
static int64_t find_prefixed(const ctn__pairs *p, const char *name)
{
    const int64_t i = ctn_weights_find(p->file, name);
    const char *prefix = p->m->published ? p->m->published->prefix : NULL;
    char longer[1024];
    if (i >= 0 || !prefix) return i;
    const size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) == 0) return ctn_weights_find(p->file, name + n);
    snprintf(longer, sizeof longer, "%s%s", prefix, name);
    return ctn_weights_find(p->file, longer);
}

/* The same, or that with the ending of old files. */
static int64_t find_array(const ctn__pairs *p, const char *name)
{
    int64_t i = find_prefixed(p, name);
    const char *const *older = p->m->published ? p->m->published->older : NULL;
    char other[1024];
    for (; i < 0 && older && *older; older += 2) {
        if (!ctn__name_ends(name, older[0])) continue;
        const int kept = (int)(strlen(name) - strlen(older[0]));
        snprintf(other, sizeof other, "%.*s%s", kept, name, older[1]);
        i = find_prefixed(p, other);
    }
    return i;
}

/* Where the values of name i are, by the current map. */
static ctn__source find_source(const ctn__pairs *p, int i)
{
    char buf[1024];
    ctn__key key;
    const char *name = file_name(p, p->all.name[i], buf, sizeof buf);
    if (!name) return (ctn__source){.array = -1, .skip = true};
    for (int at = 0; ctn__key_map_next(p->map, name, &at, &key);) {
        const int64_t array = find_array(p, key.name);
        if (array >= 0) return (ctn__source){array, key.part, key.parts, false, false};
    }
    return (ctn__source){.array = -1};
}

static ctn_desc desc_of(const ctn_weights_array *a)
{
    ctn_desc d = {.dtype = a->dtype, .ndim = a->ndim};
    memcpy(d.dim, a->shape, sizeof d.dim);
    return d;
}

/* ---- pairs ---------------------------------------------------------------------------------- */

bool ctn__pairs_turned(const ctn__pairs *p, int i)
{
    return p->turned && ctn__name_ends_in(p->all.name[i], p->m->published->turned);
}

/* Does the file have matrices transposed? The first one that cannot be square shows it. */
static bool has_turned(const ctn__pairs *p)
{
    const ctn__published *of = p->m->published;
    for (int i = 0; of && of->turned && i < p->all.n; i++) {
        if (!ctn__name_ends(p->all.name[i], of->turned[0])) continue;
        const ctn__source s = find_source(p, i);
        const int64_t *d = p->all.var[i]->d.dim;
        if (s.array < 0) continue;
        const ctn_weights_array *a = ctn__weights_at(p->file, s.array);
        return a->ndim == 2 && a->shape[0] == d[1] && a->shape[1] == d[0] && d[0] != d[1];
    }
    return false;
}

/* Pair names with arrays by the current map. A tied variable takes the array of the first of its
 * names that has one. */
static void pair(ctn__pairs *p)
{
    p->turned = has_turned(p);
    p->loaded = 0;
    memset(p->used, 0, (size_t)ctn_weights_arrays(p->file) * sizeof *p->used);
    for (int i = 0; i < p->all.n; i++) p->from[i] = (ctn__source){.array = -1};
    for (int i = 0; i < p->all.n; i++) {
        const ctn__source s = find_source(p, i);
        ctn__source *to = &p->from[p->first[i]];
        to->skip |= s.skip;
        if (s.array < 0) continue;
        p->used[s.array] = true;
        if (to->array >= 0) continue;
        *to = s;
        p->loaded++;
    }
}

/* Old files lack the counters of batch normalisation, and nothing depends on them. */
static void skip_counters(ctn__pairs *p)
{
    for (int64_t i = 0; i < ctn_weights_arrays(p->file); i++)
        if (ctn__name_ends(ctn__weights_at(p->file, i)->name, counter)) return;
    for (int i = 0; i < p->all.n; i++)
        if (ctn__name_ends(p->all.name[i], counter)) p->from[p->first[i]].skip = true;
}

static bool is_complete(const ctn__pairs *p)
{
    for (int i = 0; i < p->all.n; i++)
        if (p->first[i] == i && p->from[i].array < 0 && !p->from[i].skip) return false;
    return true;
}

/* Use the first map that gives every variable an array, otherwise the one that gives the most. */
static void choose_map(ctn__pairs *p)
{
    const int maps = p->opt.rename || p->opt.map ? 1 : ctn__key_maps();
    int best = 0, most = -1;
    for (int k = 0; k < maps; k++) {
        p->map = k;
        pair(p);
        skip_counters(p);
        if (p->loaded > most) {
            most = p->loaded;
            best = k;
        }
        if (is_complete(p)) return;
    }
    p->map = best;
    pair(p);
    skip_counters(p);
}

/* An array whose rows cannot be divided has no part of any shape, which -1 says. */
ctn_desc ctn__pairs_desc(const ctn__pairs *p, int i)
{
    const ctn__source *s = &p->from[i];
    ctn_desc d = desc_of(ctn__weights_at(p->file, s->array));
    const int64_t rows = d.dim[0];
    if (s->parts > 1) d.dim[0] = rows % s->parts == 0 ? rows / s->parts : -1;
    if (ctn__pairs_turned(p, i) && d.ndim == 2) {
        d.dim[0] = d.dim[1];
        d.dim[1] = rows;
    }
    return d;
}

/* Is variable i a parameter of the last layer, with another number of outputs than in the file? An
 * inner layer with another number of outputs changes the second dimension of the next one. */
static bool is_new_head(const ctn__pairs *p, int i)
{
    const ctn_desc *d = &p->all.var[i]->d, file = ctn__pairs_desc(p, i);
    const ctn_vars params = ctn_params(p->m);
    if (params.n == 0 || d->ndim < 1 || file.ndim != d->ndim || ctn__same_shape(&file, d))
        return false;
    const char *name = p->all.name[i], *last = params.name[params.n - 1];
    const char *dot = strrchr(last, '.'), *own = strrchr(name, '.');
    const size_t n = dot ? (size_t)(dot - last) : 0;
    if ((own ? (size_t)(own - name) : 0) != n || memcmp(name, last, n) != 0) return false;
    for (int k = 1; k < d->ndim; k++)
        if (d->dim[k] != file.dim[k]) return false;
    return p->all.var[i]->kind == CTN_PARAM;
}

static void find_head(ctn__pairs *p)
{
    for (int i = 0; i < p->all.n && p->opt.new_head; i++)
        if (p->first[i] == i && p->from[i].array >= 0) p->from[i].head = is_new_head(p, i);
}

ctn_status ctn__pairs_open(ctn__pairs *p, const char *who, ctn_module *m, const char *path,
                           const ctn_weights_opt *opt)
{
    *p = (ctn__pairs){.m = m};
    if (!m || !path) return ctn_fail(CTN_EARG, "%s: needs a module and a path", who);
    CTN_TRY(ctn__opt(who, &p->opt, sizeof p->opt, opt));
    CTN_TRY(ctn__module_vars(m, &p->all));
    CTN_TRY(ctn_weights_open(&p->file, path));
    p->first = ctn__calloc((size_t)p->all.n + 1, sizeof *p->first);
    p->from = ctn__calloc((size_t)p->all.n + 1, sizeof *p->from);
    p->used = ctn__calloc((size_t)ctn_weights_arrays(p->file) + 1, sizeof *p->used);
    if (!p->first || !p->from || !p->used) return CTN_ENOMEM;
    for (int i = 0; i < p->all.n; i++) {
        p->first[i] = m->again.at[i] ? 0 : i;
        while (p->all.var[p->first[i]] != p->all.var[i]) p->first[i]++;
    }
    choose_map(p);
    find_head(p);
    return CTN_OK;
}

void ctn__pairs_close(ctn__pairs *p)
{
    ctn_weights_free(p->file);
    ctn__free(p->first);
    ctn__free(p->from);
    ctn__free(p->used);
    *p = (ctn__pairs){0};
}

/* ---- differences ---------------------------------------------------------------------------- */

/* Number of characters to insert, remove or replace to make a of b; names are cut. */
static int distance(const char *a, const char *b)
{
    int row[NAME + 1] = {0};
    const int n = (int)strnlen(b, NAME);
    for (int k = 0; k <= n; k++) row[k] = k;
    for (int i = 0; i < NAME && a[i]; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int k = 1; k <= n; k++) {
            const int replaced = diagonal + (a[i] != b[k - 1]);
            diagonal = row[k];
            row[k] = 1 + (row[k] < row[k - 1] ? row[k] : row[k - 1]);
            if (replaced < row[k]) row[k] = replaced;
        }
    }
    return row[n];
}

/* The unused array that a missing variable probably is: the nearest name of the same shape, or
 * else the nearest name; -1: none is near. */
static int64_t nearest(const ctn__pairs *p, int i)
{
    const char *name = p->all.name[i];
    const int length = (int)strlen(name);
    int64_t best = -1;
    int least = 0;
    for (int64_t k = 0; k < ctn_weights_arrays(p->file); k++) {
        if (p->used[k]) continue;
        const ctn_weights_array *a = ctn__weights_at(p->file, k);
        const ctn_desc d = desc_of(a);
        const bool same = ctn__same_shape(&d, &p->all.var[i]->d);
        /* A prefix is a small difference. One of another shape must be much nearer. */
        const bool prefixed = ctn__name_ends(a->name, name) || ctn__name_ends(name, a->name);
        const int far = (prefixed ? 1 : distance(name, a->name)) + (same ? 0 : length / 2);
        if (far > length * 2 / 3 || (best >= 0 && far >= least)) continue;
        best = k;
        least = far;
    }
    return best;
}

static ctn__pairing_kind compare(const ctn__pairs *p, int i, char text[TEXT])
{
    const ctn_var *v = p->all.var[i];
    const ctn__source *from = &p->from[i];
    const ctn_weights_array *a = ctn__weights_at(p->file, from->array);
    const ctn_desc d = ctn__pairs_desc(p, i), whole = desc_of(a);
    const ctn_dtype dtype = a->dtype;
    char part[64] = "", s[128], t[128];
    text[0] = 0;
    if (!ctn__same_shape(&d, &v->d)) {
        if (from->parts > 1)
            snprintf(part, sizeof part, "part %d of %d of ", from->part + 1, from->parts);
        snprintf(text, TEXT, "%s is %s in the model and %s%s in the file", p->all.name[i],
                 ctn__shape_text(&v->d, s, sizeof s), part,
                 ctn__shape_text(from->parts > 1 ? &whole : &d, t, sizeof t));
        return from->head ? CTN__NEW_HEAD : CTN__SHAPE_DIFFERS;
    }
    if (dtype == v->d.dtype || (ctn__is_float(dtype) && ctn__is_float(v->d.dtype)))
        return CTN__FITS;
    snprintf(text, TEXT, "%s is %s in the model and %s in the file", p->all.name[i],
             ctn_dtype_name(v->d.dtype), ctn_dtype_name(dtype));
    return CTN__DTYPE_DIFFERS;
}

static void describe_missing(const ctn__pairs *p, int i, bool search, char text[TEXT])
{
    char buf[1024], s[128];
    const char *name = file_name(p, p->all.name[i], buf, sizeof buf);
    const bool other = name && strcmp(name, p->all.name[i]) != 0;
    const int64_t near = search ? nearest(p, i) : -1;
    size_t n = (size_t)snprintf(text, TEXT, "%s%s%s%s %s", p->all.name[i], other ? " (as " : "",
                                other ? name : "", other ? ")" : "",
                                ctn__shape_text(&p->all.var[i]->d, s, sizeof s));
    if (near < 0 || n >= TEXT) return;
    const ctn_weights_array *a = ctn__weights_at(p->file, near);
    const ctn_desc d = desc_of(a);
    snprintf(text + n, TEXT - n, ", nearest: %s %s", a->name, ctn__shape_text(&d, s, sizeof s));
}

ctn_status ctn__pairs_visit(const ctn__pairs *p, ctn__pairing_fn fn, void *user)
{
    char text[TEXT], s[128];
    int searches = 0;
    for (int i = 0; i < p->all.n; i++) {
        const ctn__source *from = &p->from[i];
        if (p->first[i] != i || (from->array < 0 && from->skip)) continue;
        ctn__pairing m = {CTN__MISSING, p->all.name[i], NULL, text};
        if (from->array < 0) describe_missing(p, i, searches++ < NEAREST_MAX, text);
        else {
            m.kind = compare(p, i, text);
            m.array = ctn__weights_at(p->file, from->array)->name;
        }
        CTN_TRY(fn(user, &m));
    }
    const char *const *ignored = p->m->published ? p->m->published->ignored : NULL;
    for (int64_t i = 0; i < ctn_weights_arrays(p->file); i++) {
        const ctn_weights_array *a = ctn__weights_at(p->file, i);
        if (p->used[i] || ctn__name_ends_in(a->name, ignored)) continue;
        const ctn_desc d = desc_of(a);
        snprintf(text, TEXT, "%s %s", a->name, ctn__shape_text(&d, s, sizeof s));
        CTN_TRY(fn(user, &(ctn__pairing){CTN__UNEXPECTED, NULL, a->name, text}));
    }
    return CTN_OK;
}
