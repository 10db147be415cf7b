/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of a module tree: dotted paths, lookup, the lists for optimizers and files, and the visits
 * of every value and of every module. A module's own variables come before those of its children,
 * both in the order in which they were created, as in PyTorch.
 */
#include "nn/nn.h"

const char *ctn__module_path(const ctn_module *m, char *buf, size_t n)
{
    if (!m->parent) {
        snprintf(buf, n, "module");
        return buf;
    }
    if (!m->parent->parent) {
        snprintf(buf, n, "%s", m->name);
        return buf;
    }
    ctn__module_path(m->parent, buf, n);
    size_t used = strlen(buf);
    snprintf(buf + used, n - used, ".%s", m->name);
    return buf;
}

bool ctn__name_ends(const char *name, const char *end)
{
    end += *end == '.';
    const size_t n = strlen(name), k = strlen(end);
    return k <= n && strcmp(name + n - k, end) == 0 && (k == n || name[n - k - 1] == '.');
}

bool ctn__name_ends_in(const char *name, const char *const *list)
{
    for (; list && *list; list++)
        if (ctn__name_ends(name, *list)) return true;
    return false;
}

static bool list_push(ctn__var_list *l, ctn_var *v, const char *name)
{
    return ctn__vec_push(&l->var, v) && ctn__vec_push(&l->name, name);
}

/* Add the names of m and its descendants to the lists of `of`; prefix is "" or ends in a dot. */
static ctn_status collect(ctn_module *of, const ctn_module *m, const char *prefix)
{
    for (size_t i = 0; i < m->own.n; i++) {
        ctn_var *v = m->own.at[i].var;
        const char *name = ctn__arena_printf(&of->text, "%s%s", prefix, m->own.at[i].name);
        if (!name || !list_push(&of->all, v, name)) return CTN_ENOMEM;
        if (v->kind == CTN_PARAM && !list_push(&of->params, v, name)) return CTN_ENOMEM;
    }
    for (size_t i = 0; i < m->children.n; i++) {
        const ctn_module *c = m->children.at[i];
        const char *below = ctn__arena_printf(&of->text, "%s%s.", prefix, c->name);
        if (!below) return CTN_ENOMEM;
        CTN_TRY(collect(of, c, below));
    }
    return CTN_OK;
}

/* Rename variables to their path, so that messages of the core show it. */
static ctn_status rename_vars(const ctn_module *root)
{
    for (size_t i = 0; i < root->all.var.n; i++) {
        ctn_var *v = root->all.var.at[i];
        const char *name = root->all.name.at[i];
        if (strcmp(v->name, name) == 0 || root->again.at[i]) continue;
        char *copy = ctn__strdup(name);
        if (!copy) return CTN_ENOMEM;
        ctn__free(v->name);
        v->name = copy;
    }
    return CTN_OK;
}

static ctn_status make_lists(ctn_module *m)
{
    if (m->listed) return CTN_OK;
    ctn__arena_reset(&m->text);
    m->all.var.n = m->all.name.n = m->params.var.n = m->params.name.n = m->again.n = 0;
    CTN_TRY(collect(m, m, ""));
    const uint64_t search = ++m->ctx->searches;
    for (size_t i = 0; i < m->all.var.n; i++) {
        const bool again = !ctn__var_first(m->all.var.at[i], search);
        if (!ctn__vec_push(&m->again, again)) return CTN_ENOMEM;
    }
    if (!m->parent) CTN_TRY(rename_vars(m));
    m->listed = true;
    return CTN_OK;
}

static ctn_vars as_vars(const ctn__var_list *l)
{
    return (ctn_vars){(int)l->var.n, l->var.at, l->name.at};
}

ctn_status ctn__module_vars(ctn_module *m, ctn_vars *out)
{
    CTN_TRY(make_lists(m));
    *out = as_vars(&m->all);
    return CTN_OK;
}

ctn_vars ctn_params(ctn_module *m)
{
    if (!m) {
        ctn_fail(CTN_EARG, "params: no module");
        return (ctn_vars){0, NULL, NULL};
    }
    if (make_lists(m) < 0) return (ctn_vars){0, NULL, NULL};
    return as_vars(&m->params);
}

static ctn_var *find(const ctn_module *m, const char *name)
{
    const char *dot = strchr(name, '.');
    if (!dot) {
        for (size_t i = 0; i < m->own.n; i++)
            if (strcmp(m->own.at[i].name, name) == 0) return m->own.at[i].var;
        return NULL;
    }
    size_t n = (size_t)(dot - name);
    for (size_t i = 0; i < m->children.n; i++) {
        const ctn_module *c = m->children.at[i];
        if (strlen(c->name) == n && memcmp(c->name, name, n) == 0) return find(c, dot + 1);
    }
    return NULL;
}

ctn_var *ctn_module_find(ctn_module *m, const char *name)
{
    ctn_var *v = m && name ? find(m, name) : NULL;
    if (!v)
        ctn_fail(m && name ? CTN_ENOTFOUND : CTN_EARG,
                 "module_find: no parameter or state '%s' here", name ? name : "NULL");
    return v;
}

ctn_status ctn_module_visit(ctn_module *m, ctn_state_fn fn, void *user)
{
    ctn_vars all = {0};
    if (!m || !fn) return ctn_fail(CTN_EARG, "module_visit: needs a module and a function");
    if (m->ctx->level > 0)
        return ctn_fail(CTN_ESTATE, "module_visit: a scope is open; visit between scopes");
    CTN_TRY(ctn__module_vars(m, &all));
    for (int i = 0; i < all.n; i++) {
        ctn_var *v = all.var[i];
        if (m->again.at[i]) continue;
        CTN_TRY(ctn__pool_settle(v->pool));
        CTN_TRY(fn(user, all.name[i], v->d.dtype, v->d.ndim, v->d.dim, v->data));
        v->version++; /* fn may have written it */
    }
    return CTN_OK;
}

static ctn_status visit_below(ctn_module *m, const char *name, ctn__arena *text, ctn_module_fn fn,
                              void *user)
{
    ctn_status st = fn(user, name, m);
    for (size_t i = 0; st == CTN_OK && i < m->children.n; i++) {
        ctn_module *c = m->children.at[i];
        const char *below = ctn__arena_printf(text, "%s%s%s", name, *name ? "." : "", c->name);
        st = below ? visit_below(c, below, text, fn, user) : CTN_ENOMEM;
    }
    return st;
}

ctn_status ctn_module_visit_modules(ctn_module *m, ctn_module_fn fn, void *user)
{
    ctn__arena text = {0};
    if (!m || !fn) return ctn_fail(CTN_EARG, "module_visit_modules: needs a module and a function");
    ctn_status st = visit_below(m, "", &text, fn, user);
    ctn__arena_free(&text);
    return st;
}
