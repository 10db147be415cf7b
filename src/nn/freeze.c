/* SPDX-License-Identifier: Apache-2.0
 *
 * Freezing by pattern: which parameters an optimizer trains, and which batch normalisations keep
 * their running statistics. A pattern stands for the variables and modules whose name, or the name
 * of a module that contains them, it matches.
 */
#include "nn/nn.h"

/* The name of the module before the last dot of a path: "a.b" for "a.b.*", "" for "a". */
static size_t parent_length(const char *path, size_t n)
{
    while (n > 0 && path[n - 1] != '.') n--;
    return n > 0 ? n - 1 : 0;
}

static const ctn_module *child_named(const ctn_module *m, const char *name, size_t n)
{
    for (size_t i = 0; i < m->children.n; i++)
        if (strlen(m->children.at[i]->name) == n && memcmp(m->children.at[i]->name, name, n) == 0)
            return m->children.at[i];
    return NULL;
}

/* The module with the first n characters of a path as its name; NULL: there is none. */
static const ctn_module *module_at(const ctn_module *m, const char *path, size_t n)
{
    while (m && n > 0) {
        size_t part = strcspn(path, ".");
        if (part > n) part = n;
        m = child_named(m, path, part);
        part += part < n; /* the dot */
        path += part;
        n -= part;
    }
    return m;
}

/* List the names in the deepest module that the pattern names correctly. */
static ctn_status no_match(const ctn_module *m, const char *pattern)
{
    enum { LISTED = 12 };
    size_t n = strlen(pattern);
    const ctn_module *in = NULL;
    while (n > 0 && !in) {
        n = parent_length(pattern, n);
        in = module_at(m, pattern, n);
    }
    if (!in) in = m;
    ctn__text t = {0};
    size_t k = 0;
    for (size_t i = 0; i < in->own.n; i++)
        if (in->own.at[i].var->kind == CTN_PARAM && k++ < LISTED)
            ctn__text_add(&t, "%s%s", k > 1 ? ", " : "", in->own.at[i].name);
    for (size_t i = 0; i < in->children.n; i++)
        if (k++ < LISTED) ctn__text_add(&t, "%s%s", k > 1 ? ", " : "", in->children.at[i]->name);
    if (k > LISTED) ctn__text_add(&t, " and %zu more", k - LISTED);
    const ctn_status st =
        t.failed ? CTN_ENOMEM
                 : ctn_fail(CTN_ENOTFOUND, "no parameter matches '%s'; %.*s%s %s", pattern, (int)n,
                            n > 0 ? pattern : "", n > 0 ? " has" : "the network has",
                            t.s ? t.s : "no parameters");
    ctn__text_free(&t);
    return st;
}

int ctn_module_set_trainable(ctn_module *m, const char *pattern, int on)
{
    if (!m) return ctn_fail(CTN_EARG, "module_set_trainable: no module");
    const ctn_vars p = ctn_params(m);
    if (p.n == 0 && ctn_error_status() < 0) return ctn_error_status();
    int n = 0;
    for (int i = 0; i < p.n; i++) {
        if (pattern && !ctn__match_below(pattern, p.name[i])) continue;
        ctn_var_set_trainable(p.var[i], on);
        n++;
    }
    return n > 0 || !pattern ? n : no_match(m, pattern);
}

/* Are the parameters of m frozen? A module without parameters goes by the one that contains it. */
static bool is_frozen(ctn_module *m)
{
    ctn_vars p = ctn_params(m);
    for (; p.n == 0 && m->parent; p = ctn_params(m)) m = m->parent;
    for (int i = 0; i < p.n; i++)
        if (p.var[i]->trainable) return false;
    return p.n > 0;
}

typedef struct {
    const char *pattern;
    int on, n;
} statistics;

static ctn_status set_statistics(void *user, const char *name, ctn_module *m)
{
    statistics *s = user;
    if (m->norms && !ctn__is_batch_norm(m) && (!s->pattern || ctn__match_below(s->pattern, name))) {
        m->norm.statistics = !s->on       ? CTN__NORM_TRAINED
                             : s->pattern ? CTN__NORM_FROZEN
                                          : CTN__NORM_LIKE_PARAMS;
        s->n++;
    }
    if (!ctn__is_batch_norm(m)) return CTN_OK;
    if (s->pattern ? !ctn__match_below(s->pattern, name) : s->on && !is_frozen(m)) return CTN_OK;
    ctn__batch_norm_freeze(m, s->on != 0);
    s->n++;
    return CTN_OK;
}

int ctn_module_freeze_statistics(ctn_module *m, const char *pattern, int on)
{
    statistics s = {pattern, on, 0};
    if (!m) return ctn_fail(CTN_EARG, "module_freeze_statistics: no module");
    CTN_TRY(ctn_module_visit_modules(m, set_statistics, &s));
    return s.n;
}
