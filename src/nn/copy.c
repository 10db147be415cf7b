/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of module trees, in the same context with values of their own, or in another one with
 * shared weights, in three steps. First the modules: each one is made again, by its copy
 * function if it has one, and children that this function did not make are copied and added. Then
 * the variables: each is found in the copy by its name, or made there, and gets the value; names
 * that share a variable share its counterpart. Last, the pointers in the self of library modules
 * are replaced by those to the counterparts (ctn__module_own).
 */
#include "nn/nn.h"

typedef struct {
    const void *from;
    void *to;
} pair;

/* Modules and variables with their counterparts in the copy. */
typedef struct {
    CTN__VEC(pair) at;
    ctn_context *ctx; /* of the copy */
    bool share;       /* the weights */
} pairs;

/* The counterpart; NULL: there is none. */
static void *twin_of(const pairs *p, const void *from)
{
    for (size_t i = 0; i < p->at.n; i++)
        if (p->at.at[i].from == from) return p->at.at[i].to;
    return NULL;
}

static bool is_twin(const pairs *p, const void *to)
{
    for (size_t i = 0; i < p->at.n; i++)
        if (p->at.at[i].to == to) return true;
    return false;
}

/* ---- modules --------------------------------------------------------------------------------- */

static ctn_status by_function(ctn_module **copy, ctn_module *m, ctn_context *ctx)
{
    char path[256];
    ctn_module *c = NULL;
    ctn_context *own = m->ctx;
    m->ctx = ctx; /* the function makes its module in the context of m */
    ctn_status st = m->copy(m->self, m, &c);
    m->ctx = own;
    CTN_TRY(st);
    if (!c || c == m || c->parent || c->ctx != ctx)
        return ctn_fail(CTN_EARG,
                        "module_copy: the copy function of %s must make a new module without a "
                        "parent in the same context",
                        ctn__module_path(m, path, sizeof path));
    c->copy = m->copy;
    *copy = c;
    return CTN_OK;
}

/* Make another m; children and variables may be missing. */
static ctn_status make_again(ctn_module **copy, ctn_module *m, ctn_context *ctx)
{
    char path[256];
    void *self = NULL;
    if (m->copy) return by_function(copy, m, ctx);
    if (m->self && m->bytes == 0)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "module_copy: %s has no copy function; set one with ctn_module_set_copy",
                        ctn__module_path(m, path, sizeof path));
    if (m->self) {
        self = ctn__calloc(1, m->bytes); /* filled by copy_self */
        if (!self) return CTN_ENOMEM;
    }
    ctn_status st = ctn_module_new(copy, ctx, m->forward, self, m->release);
    if (st < 0) {
        ctn__free(self);
        return st;
    }
    (*copy)->forward_multi = m->forward_multi;
    (*copy)->bytes = m->bytes;
    (*copy)->refs = m->refs;
    return CTN_OK;
}

static ctn_module *child_named(const ctn_module *m, const char *name)
{
    for (size_t i = 0; i < m->children.n; i++)
        if (strcmp(m->children.at[i]->name, name) == 0) return m->children.at[i];
    return NULL;
}

static ctn_status made_more(const ctn_module *m, const char *what)
{
    char path[256];
    return ctn_fail(CTN_EARG, "module_copy: a copy function made %s that %s does not have", what,
                    ctn__module_path(m, path, sizeof path));
}

/* Copy the self of a library module; turn_refs corrects its pointers. A copy function may have made
 * c, but it does not know about an adapter of m (lora.c). */
static void copy_self(ctn_module *c, const ctn_module *m)
{
    if (m->bytes > 0 && c->bytes == m->bytes && c->forward == m->forward &&
        c->forward_multi == m->forward_multi)
        memcpy(c->self, m->self, m->bytes);
}

static ctn_status copy_modules(ctn_module *c, ctn_module *m, pairs *p)
{
    if (!ctn__vec_push(&p->at, ((pair){m, c}))) return CTN_ENOMEM;
    copy_self(c, m);
    c->recompute = m->recompute;
    c->published = m->published;
    c->decoder = m->decoder;
    c->masked = m->masked;
    memcpy(c->end, m->end, sizeof c->end);
    c->ends = m->ends;
    c->norms = m->norms;
    c->norm = m->norm;
    for (size_t i = 0; i < m->children.n; i++) {
        ctn_module *from = m->children.at[i], *to = child_named(c, from->name);
        if (!to) {
            CTN_TRY(make_again(&to, from, p->ctx));
            ctn_status st = ctn_module_add(c, from->name, to);
            if (st < 0) {
                ctn_module_free(to);
                return st;
            }
        }
        CTN_TRY(copy_modules(to, from, p));
    }
    return c->children.n == m->children.n ? CTN_OK : made_more(m, "a child");
}

/* ---- variables ------------------------------------------------------------------------------- */

static ctn_var *own_named(const ctn_module *m, const char *name)
{
    for (size_t i = 0; i < m->own.n; i++)
        if (strcmp(m->own.at[i].name, name) == 0) return m->own.at[i].var;
    return NULL;
}

static ctn_status copy_value(ctn_var *to, ctn_var *from, bool share)
{
    char a[128], b[128];
    if (to->kind != from->kind || !ctn__same_desc(&to->d, &from->d))
        return ctn_fail(CTN_ESHAPE,
                        "module_copy: %s is a %s %s %s, but a copy function made a %s %s %s",
                        from->name, from->kind == CTN_PARAM ? "parameter" : "state",
                        ctn_dtype_name(from->d.dtype), ctn__shape_text(&from->d, a, sizeof a),
                        to->kind == CTN_PARAM ? "parameter" : "state", ctn_dtype_name(to->d.dtype),
                        ctn__shape_text(&to->d, b, sizeof b));
    CTN_TRY(ctn__pool_settle(from->pool));
    ctn_var_set_trainable(to, from->trainable);
    if (share) return ctn__var_share(to, from);
    return ctn_var_set(to, from->data, ctn__bytes(&from->d));
}

static ctn_status copy_var(ctn_module *c, const ctn__named_var *n, pairs *p)
{
    ctn_var *v = n->var;
    if (v->derive)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "module_copy: '%s' has weight or spectral normalisation, which cannot be "
                        "copied",
                        n->name);
    ctn_var *have = own_named(c, n->name), *twin = twin_of(p, v);
    if (twin && !have) return ctn_module_tie(c, n->name, twin);
    if (!have)
        CTN_TRY((v->kind == CTN_PARAM ? ctn_module_param : ctn_module_state)(&have, c, n->name,
                                                                             v->d.dtype, v->d.ndim,
                                                                             v->d.dim, NULL));
    if (have == twin) return CTN_OK;
    if (twin || is_twin(p, have))
        return ctn_fail(CTN_EARG, "module_copy: '%s' is %s, but a copy function made it %s (%s)",
                        n->name, twin ? "tied" : "a variable of its own",
                        twin ? "a variable of its own" : "tied", v->name);
    if (!ctn__vec_push(&p->at, ((pair){v, have}))) return CTN_ENOMEM;
    return copy_value(have, v, p->share);
}

/* Variables of their own modules (tied false), or names of variables that other modules own. */
static ctn_status copy_vars(ctn_module *c, const ctn_module *m, bool tied, pairs *p)
{
    for (size_t i = 0; i < m->own.n; i++)
        if (m->own.at[i].tied == tied) CTN_TRY(copy_var(c, &m->own.at[i], p));
    if (tied && c->own.n != m->own.n) return made_more(m, "a variable");
    for (size_t i = 0; i < m->children.n; i++) {
        const ctn_module *from = m->children.at[i];
        CTN_TRY(copy_vars(child_named(c, from->name), from, tied, p));
    }
    return CTN_OK;
}

static void turn_refs(ctn_module *c, const pairs *p)
{
    for (size_t i = 0; i < c->refs; i++) {
        void *ref;
        memcpy(&ref, (char *)c->self + i * sizeof ref, sizeof ref);
        void *twin = ref ? twin_of(p, ref) : NULL;
        if (twin) memcpy((char *)c->self + i * sizeof twin, &twin, sizeof twin);
    }
    for (size_t i = 0; i < c->children.n; i++) turn_refs(c->children.at[i], p);
}

static ctn_status copy_tree(ctn_module **copy, ctn_module *m, ctn_context *ctx, bool share)
{
    ctn_status st = CTN_OK;
    ctn_module *c = NULL;
    pairs p = {.ctx = ctx, .share = share};
    CTN_TRY_GOTO(st, done, make_again(&c, m, ctx));
    CTN_TRY_GOTO(st, done, copy_modules(c, m, &p));
    CTN_TRY_GOTO(st, done, copy_vars(c, m, false, &p));
    CTN_TRY_GOTO(st, done, copy_vars(c, m, true, &p));
    turn_refs(c, &p);
    *copy = c;
    c = NULL;
done:
    ctn_module_free(c);
    ctn__vec_free(&p.at);
    return st;
}

ctn_status ctn_module_copy(ctn_module **copy, ctn_module *m)
{
    if (copy) *copy = NULL;
    if (!copy || !m) return ctn_fail(CTN_EARG, "module_copy: NULL argument");
    if (m->ctx->level > 0)
        return ctn_fail(CTN_ESTATE, "module_copy: a scope is open; copy between scopes");
    return copy_tree(copy, m, m->ctx, false);
}

ctn_status ctn_module_share(ctn_module **copy, ctn_context *ctx, ctn_module *m)
{
    if (copy) *copy = NULL;
    if (!copy || !ctx || !m) return ctn_fail(CTN_EARG, "module_share: NULL argument");
    if (m->ctx == ctx)
        return ctn_fail(CTN_EARG, "module_share: the module belongs to this context; use it there");
    if (m->ctx->level > 0 || ctx->level > 0)
        return ctn_fail(CTN_ESTATE, "module_share: a scope is open; share between scopes");
    return copy_tree(copy, m, ctx, true);
}

ctn_status ctn_module_set_copy(ctn_module *m, ctn_copy_fn fn)
{
    if (!m) return ctn_fail(CTN_EARG, "module_set_copy: no module");
    m->copy = fn;
    return CTN_OK;
}
