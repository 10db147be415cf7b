/* SPDX-License-Identifier: Apache-2.0
 *
 * Frozen parameters. A parameter that is not trained and has no state yet is parked outside the
 * pool. There it needs no memory for gradients or state and takes no part in an exchange. When it
 * is trained again, it returns to the pool with zero state, and an exchange continues with the new
 * pool. A parameter that is frozen after its first step keeps its place in the pool, because its
 * state must be kept. One that is frozen while gradients are pending keeps its place until the
 * step, because its gradient must be kept; with an exchange, its gradient is dropped.
 *
 * The optimizer's arrays `name` and `group` have the same order: first the variables of the pool,
 * then the parked ones, each in the order in which they were given to the optimizer.
 */
#include "optim/optim.h"

typedef struct {
    ctn_var *var; /* NULL: it was freed */
    char *name;
    ctn__group group;
    int was;    /* index in the pool; -1: parked */
    bool wants; /* should be in the pool */
} param;

static int by_place(const void *a, const void *b)
{
    const param *p = a, *q = b;
    if (p->wants != q->wants) return q->wants - p->wants;
    return (p->group.order > q->group.order) - (p->group.order < q->group.order);
}

/* Memory for the new pool, allocated before anything changes. */
typedef struct {
    void *state[3];
    double *partial; /* scratch of the norm sweep */
} room;

static void free_room(const room *r)
{
    for (int k = 0; k < 3; k++) ctn__free(r->state[k]);
    ctn__free(r->partial);
}

static ctn_status take_room(room *r, const ctn_optim *o, int64_t count, size_t unit)
{
    r->partial = ctn__calloc((size_t)ctn__sweep_blocks(count) + 1, sizeof *r->partial);
    bool ok = r->partial != NULL;
    for (int k = 0; k < o->nstates && ok; k++) {
        r->state[k] = ctn__aligned((size_t)count * unit);
        ok = r->state[k] != NULL;
        if (ok) ctn__zero(r->state[k], (size_t)count * unit, o->ctx->threads);
    }
    return ok ? CTN_OK : CTN_ENOMEM;
}

/* Copy the states of the parameters that were in the pool before. */
static void copy_states(const room *r, const ctn_optim *o, const param *at, int n)
{
    int64_t to = 0;
    for (int i = 0; i < n; i++) {
        const int64_t length = ctn__pool_length(1, &at[i].var);
        for (int k = 0; k < o->nstates && at[i].was >= 0; k++)
            memcpy(ctn__pool_at(o->pool, r->state[k], to),
                   ctn__pool_at(o->pool, o->state[k], o->pool->begin[at[i].was]),
                   (size_t)length * o->pool->unit);
        to += length;
    }
}

/* Rebuild the pool. at: all parameters; the first n go into the pool. */
static ctn_status place(ctn_optim *o, const param *at, int n)
{
    const int all = ctn__optim_params(o);
    ctn_status st = CTN_OK;
    room r = {0};
    ctn_var **vars = ctn__calloc((size_t)all + 1, sizeof *vars);
    if (!vars) return CTN_ENOMEM;
    for (int i = 0; i < all; i++) vars[i] = at[i].var;
    CTN_TRY_GOTO(st, done,
                 take_room(&r, o, ctn__pool_length(n, vars), ctn_dtype_size(vars[0]->d.dtype)));
    copy_states(&r, o, at, n);
    CTN_TRY_GOTO(st, done, ctn__pool_remake(o->pool, n, vars, all - n, vars + n));
    const room old = {{o->state[0], o->state[1], o->state[2]}, o->partial};
    memcpy(o->state, r.state, sizeof o->state);
    o->partial = r.partial;
    r = old; /* freed below */
    for (int i = 0; i < all; i++) {
        o->name[i] = at[i].name;
        o->group[i] = at[i].group;
    }
done:
    free_room(&r);
    ctn__free(vars);
    return st;
}

/* The same for a pool that is exchanged. Plans know which elements of the pool they touch, so those
 * of all its variables are made again. */
static ctn_status place_exchanged(ctn_optim *o, const param *at, int n)
{
    ctn__pool *p = o->pool;
    ctn__exchange *x = p->exchange;
    const bool one_by_one = ctn__exchange_one_by_one(x);
    CTN_TRY(ctn__pool_settle(p));
    ctn__exchange_unbind(x);
    const ctn_status st = place(o, at, n);
    for (int i = 0; i < ctn__optim_params(o); i++)
        if (ctn__optim_var(o, i)) ctn__plan_runner.forget(o->ctx, ctn__optim_var(o, i));
    const ctn_status bound =
        ctn__exchange_bind(x, p->w, p->g, p->count, one_by_one ? p->nvar : 0, p->begin);
    return st < 0 ? st : bound;
}

/* Must parameter i stay in the pool although it is frozen? */
static bool has_state(const ctn_optim *o, int i)
{
    return o->lbfgs ? o->t > 0 : o->group[i].t > 0;
}

ctn_status ctn__optim_arrange(ctn_optim *o)
{
    const int all = ctn__optim_params(o);
    int active = 0;
    bool differs = false;
    ctn_status st = CTN_OK;
    /* A rank may have no samples and hence no pending gradients, but all ranks need one order. */
    const bool pending = o->pool->contributions > 0, waits = pending && !o->pool->exchange;
    param *at = ctn__calloc((size_t)all, sizeof *at);
    if (!at) return CTN_ENOMEM;
    for (int i = 0; i < all; i++) {
        ctn_var *v = ctn__optim_var(o, i);
        const bool in = i < o->pool->nvar, stays = in && (has_state(o, i) || waits);
        const bool wants = v && (v->trainable || stays);
        if (wants && !v->trainable && !has_state(o, i)) o->ctx->regroup = true;
        at[i] = (param){v, o->name[i], o->group[i], in ? i : -1, wants};
        active += wants;
        differs |= v && wants != in;
        if (wants && !in && ctn__optim_sharded(o) && st == CTN_OK)
            st = ctn_fail(CTN_ESTATE,
                          "optimizer: %s was frozen when the optimizer became sharded; unfreeze it "
                          "before ctn_dist_optim",
                          o->name[i]);
    }
    if (st == CTN_OK && differs && pending && o->pool->exchange &&
        ctn__exchange_is_exact(o->pool->exchange))
        st = ctn_fail(CTN_ESTATE,
                      "optimizer: parameters were frozen or unfrozen while gradients that are "
                      "summed exactly are pending; take the step first");
    if (st == CTN_OK && differs && active > 0 && !ctn__optim_sharded(o)) {
        qsort(at, (size_t)all, sizeof *at, by_place);
        st = o->pool->exchange ? place_exchanged(o, at, active) : place(o, at, active);
    }
    ctn__free(at);
    return st;
}

void ctn__optim_forget(ctn_optim *o, const ctn_var *v)
{
    o->group[ctn__pool_find(o->pool, v)].t = 0;
}
