/* SPDX-License-Identifier: Apache-2.0
 *
 * Frozen parameters: one that is not trained and has no state yet is parked outside the pool, where it takes no gradient memory, no state
 * and no part of an exchange; when it is trained again it comes back. One that was frozen after a step keeps its place, and with it its
 * state. Names and groups follow: those of the pool's variables first, then those of parked ones, each in the order in which they
 * were given.
 */
#include "optim/optim.h"

typedef struct {
    ctn_var *var; /* NULL: it was freed */
    char *name;
    ctn__group group;
    int was; /* place in the pool, -1: parked */
} param;

static int total(const ctn_optim *o)
{
    return o->pool->nvar + o->pool->nparked;
}

static ctn_var *var_of(const ctn_optim *o, int i)
{
    const ctn__pool *p = o->pool;
    return i < p->nvar ? p->var[i] : p->parked[i - p->nvar];
}

static bool wants_place(const ctn_optim *o, int i)
{
    const ctn_var *v = var_of(o, i);
    return v && (v->trainable || (i < o->pool->nvar && o->t > 0));
}

/* Is anybody in the wrong place? */
static bool differs(const ctn_optim *o, int *active)
{
    bool any = false;
    *active = 0;
    for (int i = 0; i < total(o); i++) {
        const bool wants = wants_place(o, i);
        *active += wants;
        if (var_of(o, i)) any |= wants != (i < o->pool->nvar);
    }
    return any;
}

static int by_order(const void *a, const void *b)
{
    const param *p = a, *q = b;
    return (p->group.order > q->group.order) - (p->group.order < q->group.order);
}

/* All parameters in the order given. */
static void list(const ctn_optim *o, param *to)
{
    for (int i = 0; i < total(o); i++)
        to[i] = (param){.var = var_of(o, i),
                        .name = o->name[i],
                        .group = o->group[i],
                        .was = i < o->pool->nvar ? i : -1};
    qsort(to, (size_t)total(o), sizeof *to, by_order);
}

static ctn_status move_states(ctn_optim *o, const int64_t *old_begin, const param *at)
{
    const ctn__pool *p = o->pool;
    for (int k = 0; k < o->nstates; k++) {
        float *s = ctn__aligned((size_t)p->count * sizeof *s);
        if (!s) return CTN_ENOMEM;
        ctn__zero(s, (size_t)p->count * sizeof *s, o->ctx->threads);
        for (int i = 0; i < p->nvar; i++)
            if (at[i].was >= 0)
                memcpy(s + p->begin[i], o->state[k] + old_begin[at[i].was],
                       (size_t)(p->begin[i + 1] - p->begin[i]) * sizeof *s);
        ctn__free(o->state[k]);
        o->state[k] = s;
    }
    double *partial = ctn__calloc((size_t)ctn__sweep_blocks(p->count) + 1, sizeof *partial);
    if (!partial) return CTN_ENOMEM;
    ctn__free(o->partial);
    o->partial = partial;
    return CTN_OK;
}

/* at: all parameters, the n of the pool first. */
static ctn_status place(ctn_optim *o, param *at, int n)
{
    const int all = total(o);
    ctn_status st = CTN_OK;
    const size_t old = ((size_t)o->pool->nvar + 1) * sizeof(int64_t);
    ctn_var **vars = ctn__calloc((size_t)all + 1, sizeof *vars);
    int64_t *begin = ctn__malloc(old);
    if (!vars || !begin) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    memcpy(begin, o->pool->begin, old);
    for (int i = 0; i < all; i++) vars[i] = at[i].var;
    CTN_TRY_GOTO(st, done, ctn__pool_remake(o->pool, n, vars, all - n, vars + n));
    for (int i = 0; i < all; i++) {
        o->name[i] = at[i].name;
        o->group[i] = at[i].group;
    }
    st = move_states(o, begin, at);
done:
    ctn__free(vars);
    ctn__free(begin);
    return st;
}

ctn_status ctn__optim_arrange(ctn_optim *o)
{
    ctn__pool *p = o->pool;
    int active;
    if (p->contributions > 0 || !differs(o, &active) || active == 0) return CTN_OK;
    for (int i = p->nvar; i < total(o) && p->exchange; i++)
        if (wants_place(o, i))
            return ctn_fail(CTN_ESTATE,
                            "optimizer: %s was frozen when the optimizer became distributed; train "
                            "it from before ctn_dist_optim on",
                            o->name[i]);
    if (p->exchange) return CTN_OK;
    const int all = total(o);
    param *sorted = ctn__calloc((size_t)all, sizeof *sorted), *at = NULL;
    at = ctn__calloc((size_t)all, sizeof *at);
    ctn_status st = sorted && at ? CTN_OK : CTN_ENOMEM;
    if (st == CTN_OK) {
        int n = 0;
        list(o, sorted);
        for (int part = 1; part >= 0; part--)
            for (int i = 0; i < all; i++) {
                const ctn_var *v = sorted[i].var;
                const bool wants = v && (v->trainable || (sorted[i].was >= 0 && o->t > 0));
                if (wants == part) at[n++] = sorted[i];
            }
        st = place(o, at, active);
    }
    ctn__free(sorted);
    ctn__free(at);
    return st;
}
