/* SPDX-License-Identifier: Apache-2.0
 *
 * Low-rank adapters (LoRA) of linear modules. An adapter is two children of the linear module,
 * lora_A and lora_B, each with the parameter `weight`; the names are those of the package peft. The
 * linear module's self points to both variables and its forward adds their product (linear.c).
 */
#include <math.h>

#include "nn/nn.h"

typedef struct {
    ctn_module *m;
    char *name; /* below the module that the caller gave */
} site;

/* The linear modules of a tree. */
typedef struct {
    CTN__VEC(site) at;
} sites;

static void free_sites(sites *s)
{
    for (size_t i = 0; i < s->at.n; i++) ctn__free(s->at.at[i].name);
    ctn__vec_free(&s->at);
}

static ctn_status add_site(void *user, const char *name, ctn_module *m)
{
    sites *s = user;
    if (!ctn__linear_of(m)) return CTN_OK;
    site one = {m, ctn__strdup(name)};
    if (one.name && ctn__vec_push(&s->at, one)) return CTN_OK;
    ctn__free(one.name);
    return CTN_ENOMEM;
}

static ctn_status check_module(const char *who, const ctn_module *m)
{
    if (!m) return ctn_fail(CTN_EARG, "%s: no module", who);
    if (m->ctx->level > 0)
        return ctn_fail(CTN_ESTATE, "%s: a scope is open; call it between scopes", who);
    return CTN_OK;
}

/* ---- add ------------------------------------------------------------------------------------- */

/* Keep only the modules that match. Each ending must match at least one. */
static ctn_status select_sites(sites *s, const char *const *only)
{
    size_t kept = 0;
    for (const char *const *e = only; e && *e; e++) {
        bool found = false;
        for (size_t i = 0; i < s->at.n; i++) found |= ctn__name_ends(s->at.at[i].name, *e);
        if (!found)
            return ctn_fail(CTN_ENOTFOUND,
                            "lora_add: no linear module has a name that ends in "
                            "'%s'",
                            *e);
    }
    for (size_t i = 0; i < s->at.n; i++) {
        if (!only || ctn__name_ends_in(s->at.at[i].name, only)) s->at.at[kept++] = s->at.at[i];
        else ctn__free(s->at.at[i].name);
    }
    s->at.n = kept;
    return kept > 0 ? CTN_OK : ctn_fail(CTN_ENOTFOUND, "lora_add: there are no linear modules");
}

static ctn_status check_new(const sites *s)
{
    for (size_t i = 0; i < s->at.n; i++)
        if (ctn__linear_of(s->at.at[i].m)->lora_a)
            return ctn_fail(CTN_ESTATE, "lora_add: '%s' already has an adapter", s->at.at[i].name);
    return CTN_OK;
}

static ctn_status set_defaults(ctn_lora_opt *o, ctn_dtype type)
{
    if (o->rank == 0) o->rank = 8;
    if (o->alpha == 0) o->alpha = 2 * (double)o->rank;
    if (o->base == 0) o->base = type;
    if (o->base != type && o->base != CTN_BF16)
        return ctn_fail(CTN_EDTYPE, "lora_add: base is %s, expected %s or bf16",
                        ctn_dtype_name(o->base), ctn_dtype_name(type));
    if (o->rank > 0 && o->alpha > 0 && isfinite(o->alpha)) return CTN_OK;
    return ctn_fail(CTN_EARG, "lora_add: rank is %lld and alpha is %g, both must be positive",
                    (long long)o->rank, o->alpha);
}

/* A child with the parameter `weight` (rows,cols). */
static ctn_status add_matrix(ctn_var **v, ctn_module *m, const char *name, int64_t rows,
                             int64_t cols, const ctn_init *init)
{
    ctn_status st = CTN_OK;
    ctn_module *c = NULL;
    CTN_TRY(ctn_module_new(&c, m->ctx, NULL, NULL, NULL));
    CTN_TRY_GOTO(st, fail,
                 ctn_module_param(v, c, "weight", ctn_context_float_type(m->ctx),
                                  CTN_SHAPE(rows, cols), init));
    CTN_TRY_GOTO(st, fail, ctn_module_add(m, name, c));
    return CTN_OK;
fail:
    *v = NULL;
    ctn_module_free(c);
    return st;
}

static void remove_adapter(ctn_module *m)
{
    ctn__linear *l = ctn__linear_of(m);
    for (size_t i = m->children.n; i-- > 0;) {
        const char *name = m->children.at[i]->name;
        if (strcmp(name, "lora_A") == 0 || strcmp(name, "lora_B") == 0)
            ctn_module_free(m->children.at[i]);
    }
    l->lora_a = l->lora_b = NULL;
    l->scale = 0;
}

/* On failure, remove_adapter removes what was made. */
static ctn_status add_adapter(ctn_module *m, const ctn_lora_opt *o)
{
    ctn__linear *l = ctn__linear_of(m);
    if (l->weight->derive) /* ctn_lora_merge could not add to it */
        return ctn_fail(CTN_ESTATE, "lora_add: '%s' has weight or spectral normalisation",
                        l->weight->name);
    const int64_t out = l->weight->d.dim[0], in = l->weight->d.dim[1];
    const double bound = 1 / sqrt((double)in); /* as in PyTorch's Linear */
    const ctn_init *usual =
        CTN_OPT(ctn_init, .kind = CTN_INIT_UNIFORM, .low = -bound, .high = bound);
    CTN_TRY(add_matrix(&l->lora_a, m, "lora_A", o->rank, in, usual));
    CTN_TRY(add_matrix(&l->lora_b, m, "lora_B", out, o->rank, NULL));
    l->scale = o->alpha / (double)o->rank;
    return CTN_OK;
}

/* Only the adapters remain trainable. */
static void freeze_others(ctn_vars params, const sites *s)
{
    for (int i = 0; i < params.n; i++) ctn_var_set_trainable(params.var[i], 0);
    for (size_t i = 0; i < s->at.n; i++) {
        ctn_var_set_trainable(ctn__linear_of(s->at.at[i].m)->lora_a, 1);
        ctn_var_set_trainable(ctn__linear_of(s->at.at[i].m)->lora_b, 1);
    }
}

/* Do several modules of the tree that contains m use v? */
static ctn_status is_tied(ctn_module *m, const ctn_var *v, bool *tied)
{
    ctn_vars all = {0};
    int names = 0;
    while (m->parent) m = m->parent;
    CTN_TRY(ctn__module_vars(m, &all));
    for (int k = 0; k < all.n; k++) names += all.var[k] == v;
    *tied = names > 1;
    return CTN_OK;
}

/* Store the weights of the modules with adapters in another type, except those that modules
 * without one use too. */
static ctn_status convert_weights(ctn_module *m, const sites *s, ctn_dtype type)
{
    for (size_t i = 0; i < s->at.n; i++) {
        ctn_var *v = ctn__linear_of(s->at.at[i].m)->weight;
        bool tied = false;
        CTN_TRY(is_tied(m, v, &tied));
        if (!tied) CTN_TRY(ctn__var_convert(v, type));
    }
    return CTN_OK;
}

/* All adapters, or none. */
static ctn_status add_adapters(ctn_module *m, const sites *s, const ctn_lora_opt *o)
{
    ctn_status st = CTN_OK;
    ctn_vars params = {0};
    for (size_t i = 0; i < s->at.n; i++) CTN_TRY_GOTO(st, fail, add_adapter(s->at.at[i].m, o));
    params = ctn_params(m);
    if (params.n == 0) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    CTN_TRY_GOTO(st, fail, convert_weights(m, s, o->base));
    freeze_others(params, s);
    return CTN_OK;
fail:
    for (size_t i = 0; i < s->at.n; i++) remove_adapter(s->at.at[i].m);
    return st;
}

ctn_status ctn_lora_add(ctn_module *m, const ctn_lora_opt *opt)
{
    ctn_status st = CTN_OK;
    ctn_lora_opt o;
    sites s = {0};
    CTN_TRY(check_module("lora_add", m));
    CTN_TRY(ctn__opt("lora_add", &o, sizeof o, opt));
    CTN_TRY(set_defaults(&o, ctn_context_float_type(m->ctx)));
    CTN_TRY_GOTO(st, done, ctn_module_visit_modules(m, add_site, &s));
    CTN_TRY_GOTO(st, done, check_new(&s));
    CTN_TRY_GOTO(st, done, select_sites(&s, o.only));
    CTN_TRY_GOTO(st, done, add_adapters(m, &s, &o));
done:
    free_sites(&s);
    return st;
}

/* ---- merge ----------------------------------------------------------------------------------- */

/* Keep only the modules with an adapter. */
static ctn_status select_adapted(sites *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->at.n; i++) {
        if (ctn__linear_of(s->at.at[i].m)->lora_a) s->at.at[kept++] = s->at.at[i];
        else ctn__free(s->at.at[i].name);
    }
    s->at.n = kept;
    return kept > 0 ? CTN_OK : ctn_fail(CTN_ESTATE, "lora_merge: there are no adapters");
}

/* The other user of a tied weight does not have the adapter. */
static ctn_status check_not_tied(ctn_module *m, const sites *s)
{
    for (size_t i = 0; i < s->at.n; i++) {
        bool tied = false;
        CTN_TRY(is_tied(m, ctn__linear_of(s->at.at[i].m)->weight, &tied));
        if (tied)
            return ctn_fail(CTN_ESTATE,
                            "lora_merge: the weight of '%s' is tied, so merging would change "
                            "another module too",
                            s->at.at[i].name);
    }
    return CTN_OK;
}

/* After this, the values of all variables are in their data. */
static ctn_status settle(const sites *s)
{
    for (size_t i = 0; i < s->at.n; i++) {
        const ctn__linear *l = ctn__linear_of(s->at.at[i].m);
        CTN_TRY(ctn__pool_settle(l->weight->pool));
        CTN_TRY(ctn__pool_settle(l->lora_a->pool));
        CTN_TRY(ctn__pool_settle(l->lora_b->pool));
    }
    return CTN_OK;
}

/* Row o of w (out,in) += scale * b a, with a (rank,in) and b (out,rank). */
#define MERGE_ROW(type, name)                                                                    \
    static void name(void *w, const void *a, const void *b, int64_t o, int64_t rank, int64_t in, \
                     double scale)                                                               \
    {                                                                                            \
        enum { TILE = 256 };                                                                     \
        type *y = (type *)w + o * in;                                                            \
        const type *pa = a, *pb = (const type *)b + o * rank;                                    \
        for (int64_t k = 0; k < in; k += TILE) {                                                 \
            const int64_t n = in - k < TILE ? in - k : TILE;                                     \
            type sum[TILE] = {0};                                                                \
            for (int64_t r = 0; r < rank; r++)                                                   \
                for (int64_t i = 0; i < n; i++) sum[i] += pb[r] * pa[r * in + k + i];            \
            for (int64_t i = 0; i < n; i++) y[k + i] += (type)scale * sum[i];                    \
        }                                                                                        \
    }
MERGE_ROW(float, merge_row_f32)
MERGE_ROW(double, merge_row_f64)

static void merge(const ctn__linear *l)
{
    ctn_var *v = l->weight;
    const int64_t out = v->d.dim[0], in = v->d.dim[1], rank = l->lora_a->d.dim[0];
    const bool f64 = v->d.dtype == CTN_F64;
#pragma omp parallel for schedule(static) num_threads(v->ctx->threads)
    for (int64_t o = 0; o < out; o++)
        (f64 ? merge_row_f64 : merge_row_f32)(v->data, l->lora_a->data, l->lora_b->data, o, rank,
                                              in, l->scale);
    v->version++;
    v->written_at = "ctn_lora_merge";
}

ctn_status ctn_lora_merge(ctn_module *m)
{
    ctn_status st = CTN_OK;
    sites s = {0};
    CTN_TRY(check_module("lora_merge", m));
    CTN_TRY_GOTO(st, done, ctn_module_visit_modules(m, add_site, &s));
    CTN_TRY_GOTO(st, done, select_adapted(&s));
    CTN_TRY_GOTO(st, done, check_not_tied(m, &s));
    for (size_t i = 0; i < s.at.n; i++)
        CTN_TRY_GOTO(st, done,
                     ctn__var_writable(ctn__linear_of(s.at.at[i].m)->weight, "lora_merge"));
    CTN_TRY_GOTO(st, done, settle(&s));
    CTN_TRY_GOTO(st, done, convert_weights(m, &s, ctn_context_float_type(m->ctx)));
    for (size_t i = 0; i < s.at.n; i++) {
        merge(ctn__linear_of(s.at.at[i].m));
        remove_adapter(s.at.at[i].m);
    }
done:
    free_sites(&s);
    return st;
}
