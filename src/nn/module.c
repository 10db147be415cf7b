/* SPDX-License-Identifier: Apache-2.0
 *
 * The module tree: creating, adding and freeing modules, adding variables, and the call that
 * opens an inner scope. The lists of names are in names.c.
 */
#include "nn/nn.h"

ctn_status ctn_module_new(ctn_module **out, ctn_context *ctx, ctn_forward_fn forward, void *self,
                          void (*release)(void *self))
{
    if (!out) return ctn_fail(CTN_EARG, "module_new: NULL argument");
    *out = NULL;
    if (!ctx) return ctn_fail(CTN_EARG, "module_new: no context");
    ctn_module *m = ctn__calloc(1, sizeof *m);
    if (!m) return CTN_ENOMEM;
    m->ctx = ctx;
    m->forward = forward;
    m->self = self;
    m->release = release;
    *out = m;
    return CTN_OK;
}

ctn_status ctn_module_new_multi(ctn_module **m, ctn_context *ctx, ctn_forward_multi_fn forward,
                                void *self, void (*release)(void *self))
{
    CTN_TRY(ctn_module_new(m, ctx, NULL, self, release));
    (*m)->forward_multi = forward;
    return CTN_OK;
}

ctn_status ctn__module_own(ctn_module **m, ctn_context *ctx, ctn_forward_fn forward, void *self,
                           size_t bytes, size_t refs)
{
    ctn_status st = self ? ctn_module_new(m, ctx, forward, self, ctn__free) : CTN_ENOMEM;
    if (st < 0) {
        ctn__free(self);
        return st;
    }
    (*m)->bytes = bytes;
    (*m)->refs = refs;
    return CTN_OK;
}

static void drop_lists(ctn_module *m)
{
    for (; m; m = m->parent) m->listed = false;
}

/* Remove m from its parent, which no longer owns it. */
static void leave(ctn_module *m)
{
    ctn_module *p = m->parent;
    if (!p) return;
    size_t i = 0;
    while (p->children.at[i] != m) i++;
    p->children.n--;
    memmove(p->children.at + i, p->children.at + i + 1,
            (p->children.n - i) * sizeof *p->children.at);
    drop_lists(p);
    m->parent = NULL;
    ctn__free(m->name);
    m->name = NULL;
}

void ctn_module_free(ctn_module *m)
{
    if (!m) return;
    leave(m);
    while (m->children.n > 0) /* from the end, so that removing a child moves no others */
        ctn_module_free(m->children.at[m->children.n - 1]);
    for (size_t i = m->own.n; i-- > 0;) {
        if (!m->own.at[i].tied) ctn_var_free(m->own.at[i].var);
        ctn__free(m->own.at[i].name);
    }
    if (m->release) m->release(m->self);
    ctn__vec_free(&m->children);
    ctn__vec_free(&m->own);
    ctn__vec_free(&m->all.var);
    ctn__vec_free(&m->all.name);
    ctn__vec_free(&m->params.var);
    ctn__vec_free(&m->params.name);
    ctn__vec_free(&m->again);
    ctn__arena_free(&m->text);
    ctn__free(m);
}

static ctn_status check_name(const char *who, const ctn_module *m, const char *name)
{
    char path[256];
    if (!m) return ctn_fail(CTN_EARG, "%s: no module", who);
    if (!name || !*name || strchr(name, '.'))
        return ctn_fail(CTN_EARG, "%s: invalid name '%s', it must not be empty or contain a dot",
                        who, name ? name : "NULL");
    bool taken = false;
    for (size_t i = 0; i < m->children.n; i++) taken |= strcmp(m->children.at[i]->name, name) == 0;
    for (size_t i = 0; i < m->own.n; i++) taken |= strcmp(m->own.at[i].name, name) == 0;
    return taken ? ctn_fail(CTN_EARG, "%s: %s already has a '%s'", who,
                            ctn__module_path(m, path, sizeof path), name)
                 : CTN_OK;
}

ctn_status ctn_module_add(ctn_module *m, const char *name, ctn_module *child)
{
    char path[256];
    CTN_TRY(check_name("module_add", m, name));
    if (!child)
        return ctn_error_status() < 0 ? ctn_error_status()
                                      : ctn_fail(CTN_EARG, "module_add: '%s' is NULL", name);
    if (child->parent)
        return ctn_fail(CTN_ESTATE,
                        "module_add: '%s' is already in a tree, as %s; to use a parameter twice, "
                        "tie it with ctn_module_tie",
                        name, ctn__module_path(child, path, sizeof path));
    if (child->ctx != m->ctx)
        return ctn_fail(CTN_EARG, "module_add: '%s' belongs to another context", name);
    for (const ctn_module *p = m; p; p = p->parent)
        if (p == child) return ctn_fail(CTN_EARG, "module_add: '%s' would contain itself", name);
    char *copy = ctn__strdup(name);
    if (!copy || !ctn__vec_push(&m->children, child)) {
        ctn__free(copy);
        return CTN_ENOMEM;
    }
    child->name = copy;
    child->parent = m;
    drop_lists(m);
    return CTN_OK;
}

int ctn_module_children(const ctn_module *m)
{
    return m ? (int)m->children.n : 0;
}

ctn_module *ctn_module_child(const ctn_module *m, int i)
{
    return m && i >= 0 && (size_t)i < m->children.n ? m->children.at[i] : NULL;
}

ctn_context *ctn_module_context(const ctn_module *m)
{
    return m->ctx;
}

ctn_predicts ctn_module_predicts(const ctn_module *m)
{
    if (m->decoder) return CTN_PREDICTS_NEXT;
    return m->masked ? CTN_PREDICTS_MASKED : CTN_PREDICTS_OTHER;
}

int ctn_module_ends(const ctn_module *m, int32_t *ids, int room)
{
    for (int i = 0; m && ids && i < m->ends && i < room; i++) ids[i] = m->end[i];
    return m ? m->ends : 0;
}

/* ---- variables ------------------------------------------------------------------------------ */

static ctn_status add_var(ctn_module *m, const char *name, ctn_var *v, bool tied)
{
    ctn__named_var n = {ctn__strdup(name), v, tied};
    if (!n.name || !ctn__vec_push(&m->own, n)) {
        ctn__free(n.name);
        return CTN_ENOMEM;
    }
    drop_lists(m);
    return CTN_OK;
}

static ctn_status make_var(const char *who, ctn_var **out, ctn_module *m, const char *name,
                           ctn_var_kind kind, ctn_dtype dtype, int ndim, const int64_t *dims,
                           const ctn_init *init)
{
    ctn_status st = CTN_OK;
    ctn_var *v = NULL;
    if (out) *out = NULL;
    CTN_TRY(check_name(who, m, name));
    CTN_TRY_GOTO(st, fail, ctn_var_new(&v, m->ctx, name, kind, dtype, ndim, dims));
    if (init) CTN_TRY_GOTO(st, fail, ctn_var_init(v, init)); /* without init it stays zero */
    CTN_TRY_GOTO(st, fail, add_var(m, name, v, false));
    if (out) *out = v;
    return CTN_OK;
fail:
    ctn_var_free(v);
    return st;
}

ctn_status ctn_module_param(ctn_var **v, ctn_module *m, const char *name, ctn_dtype dtype, int ndim,
                            const int64_t *dims, const ctn_init *init)
{
    return make_var("module_param", v, m, name, CTN_PARAM, dtype, ndim, dims, init);
}

ctn_status ctn_module_state(ctn_var **v, ctn_module *m, const char *name, ctn_dtype dtype, int ndim,
                            const int64_t *dims, const ctn_init *init)
{
    return make_var("module_state", v, m, name, CTN_STATE, dtype, ndim, dims, init);
}

ctn_status ctn_module_tie(ctn_module *m, const char *name, ctn_var *v)
{
    CTN_TRY(check_name("module_tie", m, name));
    if (!v)
        return ctn_error_status() < 0 ? ctn_error_status()
                                      : ctn_fail(CTN_EARG, "module_tie: '%s' is NULL", name);
    if (v->ctx != m->ctx)
        return ctn_fail(CTN_EARG, "module_tie: %s belongs to another context", v->name);
    return add_var(m, name, v, true);
}

/* ---- calls ---------------------------------------------------------------------------------- */

const char *ctn_module_source(const ctn_module *m)
{
    return m->at ? m->at : "?";
}

static ctn_status check_call(const char *at, const ctn_module *m, const ctn_tensors *x)
{
    char path[256];
    if (!m || x->n == 0 || !x->t[0])
        return ctn_error_status() < 0
                   ? ctn_error_status()
                   : ctn_fail(CTN_EARG, "call: no %s (%s)", m ? "input" : "module", at);
    CTN_TRY(ctn__need_scope(m->ctx, "call"));
    if (!m->forward && !m->forward_multi)
        return ctn_fail(CTN_EARG, "call: %s has no forward function; call its children (%s)",
                        ctn__module_path(m, path, sizeof path), at);
    const int most = m->forward ? 1 : CTN_MAX_TENSORS;
    if (x->n < 0 || x->n > most)
        return ctn_fail(CTN_EARG, "call: %s got %d inputs, expected %s%d (%s)",
                        ctn__module_path(m, path, sizeof path), x->n, most > 1 ? "1 to " : "", most,
                        at);
    for (int i = 0; i < x->n; i++) {
        if (!x->t[i] && ctn_error_status() < 0) return ctn_error_status();
        if (x->t[i] && x->t[i]->ctx != m->ctx)
            return ctn_fail(CTN_EARG, "call: %s and input %d belong to different contexts (%s)",
                            ctn__module_path(m, path, sizeof path), i, at);
    }
    return CTN_OK;
}

static ctn_status check_results(const char *at, const ctn_module *m, const ctn_tensors *y,
                                int level)
{
    char path[256];
    bool null = y->n == 0;
    if (y->n < 0 || y->n > CTN_MAX_TENSORS)
        return ctn_fail(CTN_EARG, "call: forward of %s returned %d results, expected 1 to %d (%s)",
                        ctn__module_path(m, path, sizeof path), y->n, CTN_MAX_TENSORS, at);
    for (int i = 0; i < y->n; i++) null |= !y->t[i];
    if (null)
        return ctn_error_status() < 0
                   ? ctn_error_status()
                   : ctn_fail(CTN_EARG, "call: forward of %s returned NULL without an error (%s)",
                              ctn__module_path(m, path, sizeof path), at);
    if (m->ctx->level == level) return CTN_OK;
    return ctn_fail(CTN_ESTATE, "call: forward of %s must end the scopes it begins: %d %s (%s)",
                    ctn__module_path(m, path, sizeof path), abs(m->ctx->level - level),
                    m->ctx->level > level ? "left open" : "ended too many", at);
}

ctn_status ctn_module_set_recompute(ctn_module *m, int on)
{
    if (!m) return ctn_fail(CTN_EARG, "module_set_recompute: no module");
    m->recompute = on != 0;
    if (m->forward || m->forward_multi) return CTN_OK;
    for (size_t i = 0; i < m->children.n; i++)
        CTN_TRY(ctn_module_set_recompute(m->children.at[i], on));
    return CTN_OK;
}

static ctn_tensors run_forward(ctn_module *m, ctn_tensors x)
{
    if (m->forward_multi) return m->forward_multi(m->self, m, x);
    ctn_tensor *y = m->forward(m->self, m, x.t[0]);
    return (ctn_tensors){y != NULL, {y}};
}

static void clear_rest(ctn_tensors *x)
{
    for (int i = x->n; i < CTN_MAX_TENSORS; i++) x->t[i] = NULL;
}

ctn_tensors ctn_call_multi_at(const char *at, ctn_module *m, ctn_tensors x)
{
    const ctn_tensors none = {0};
    if (check_call(at, m, &x) < 0) return none;
    ctn_context *ctx = m->ctx;
    if (ctn_scope_begin(ctx) < 0) return none;
    clear_rest(&x);
    const int level = ctx->level;
    const char *outer = m->at; /* a module may be called from inside its own forward */
    m->at = at;
    const bool block = m->recompute && ctn_recompute_begin(ctx) == CTN_OK;
    ctn_tensors y = run_forward(m, x);
    ctn_status st = block ? ctn_recompute_end(ctx) : CTN_OK;
    m->at = outer;

    if (st == CTN_OK) st = check_results(at, m, &y, level);
    while (ctx->level > level) /* scopes that forward left open on an error */
        ctn_scope_return(ctx, NULL);
    if (ctx->level == level) {
        const ctn_status end = ctn_scope_return_n(ctx, st < 0 ? 0 : y.n, y.t);
        if (st == CTN_OK) st = end;
    }
    if (st < 0) {
        char path[256];
        ctn_error_trace(ctn_error_status(), at, 0, ctn__module_path(m, path, sizeof path));
        return none;
    }
    clear_rest(&y);
    return y;
}

ctn_tensor *ctn_call_at(const char *at, ctn_module *m, ctn_tensor *x)
{
    return ctn_call_multi_at(at, m, (ctn_tensors){1, {x}}).t[0];
}
