/* SPDX-License-Identifier: Apache-2.0
 *
 * The common part of all optimizers: creating and freeing, backward and step, groups, clipping,
 * state by name. The step itself is an op with one kernel: a sweep over the pool, preceded by a
 * sweep over the gradients if clipping, loss scaling or skipping needs their norm. Its
 * hyperparameters are read when it runs, so a changed learning rate needs no new plan.
 */
#include "optim/optim.h"

#include <math.h>

static ctn_optim *owner(const ctn_run_args *a)
{
    return a->priv;
}

/* Norm of the gradients of trained parameters: one that was frozen after it got a gradient does not
 * count. If nothing is frozen, this is one sweep over the pool. */
static double norm(ctn_optim *o, int threads, bool *finite)
{
    const ctn__pool *p = o->pool;
    double sum = 0;
    *finite = true;
    for (int i = 0; i < p->nvar; i++) {
        if (!ctn__trained(o, i)) continue;
        int64_t begin = p->begin[i];
        while (i + 1 < p->nvar && ctn__trained(o, i + 1)) i++;
        bool ok;
        sum += ctn__optim_norm2(o, p->g, begin, p->begin[i + 1] - begin, threads, &ok);
        *finite &= ok;
    }
    return sqrt(sum);
}

static bool wants_norm(const ctn_optim *o)
{
    return o->clip > 0 || o->scaled || o->guarded;
}

/* Does the step need all gradients before it updates the first parameter? */
static bool wants_all(const ctn_optim *o)
{
    return wants_norm(o) || o->trust || ctn__optim_hooked(o);
}

static bool same_group(const ctn__group *a, const ctn__group *b)
{
    return a->lr_scale == b->lr_scale && a->decay == b->decay && a->t == b->t;
}

/* Make the segments of a step. Neighbours with equal hyperparameters form one range; frozen
 * parameters are left out. Returns the number of segments. */
static int64_t make_segments(ctn_optim *o, double lr, double gscale)
{
    int64_t n = 0;
    int prev = -2;
    for (int i = 0; i < o->pool->nvar; i++) {
        if (!ctn__trained(o, i)) continue;
        const ctn__group *g = &o->group[i];
        bool joins = n > 0 && prev == i - 1 && same_group(&o->group[prev], g) && !o->trust;
        if (joins) {
            o->seg[n - 1].end = o->pool->begin[i + 1];
        } else {
            ctn__sweep_seg *s = &o->seg[n++];
            double rate = lr * g->lr_scale;
            *s = (ctn__sweep_seg){.begin = o->pool->begin[i],
                                  .end = o->pool->begin[i + 1],
                                  .gscale = gscale,
                                  .keep = 1,
                                  .eps = o->eps};
            if (o->decoupled) s->keep = 1 - rate * g->decay;
            else s->decay = g->decay;
            o->fill(o, g->t + 1, rate, s);
        }
        prev = i;
    }
    return n;
}

/* With several ranks, the sum of all ranks' weights was exchanged together with the gradients. */
static double total_weight(const ctn_optim *o)
{
    const ctn__exchange *x = o->pool->exchange;
    double sum = x ? ctn__exchange_total(x, CTN__GIVE_WEIGHT) : o->weights;
    return sum > 0 ? sum : 1;
}

/* The end of the gradients that have arrived; held-back buckets are updated later. */
static int64_t there(const ctn_optim *o)
{
    const ctn__exchange *x = o->pool->exchange;
    return x ? ctn__exchange_rest(x) : o->pool->count;
}

static ctn_status step_run(const ctn_run_args *a)
{
    ctn_optim *o = owner(a);
    double lr = ctn_optim_lr(o), clip = 1;
    double unscale = 1 / (o->seed * total_weight(o));
    bool shard = ctn__optim_sharded(o);
    o->norm = 0;
    if (wants_norm(o)) {
        bool finite;
        if (shard) CTN_TRY(ctn__shard_norm(o, a->env->threads, &finite));
        else o->norm = norm(o, a->env->threads, &finite);
        o->norm *= unscale;
        if (!finite && (o->scaled || o->guarded)) {
            ctn__scale_skipped(o);
            return CTN_OK;
        }
        if (finite && o->clip > 0 && o->norm > o->clip) clip = o->clip / (o->norm + 1e-6);
    }
    o->nseg = make_segments(o, lr, clip * unscale);
    if (shard && (o->trust || ctn__optim_hooked(o))) ctn__shard_exact(o);
    if (ctn__optim_hooked(o)) ctn__hooks_run(o, a->env->threads);
    if (o->trust) CTN_TRY(ctn__trust_run(o, lr, a->env->threads));
    if (shard) CTN_TRY(ctn__shard_sweep(o, a->env->threads));
    else ctn__update_range(o, 0, there(o), a->env->threads);
    for (int i = 0; i < o->pool->nvar; i++) o->group[i].t += ctn__trained(o, i);
    o->t++;
    if (o->scaled) ctn__scale_taken(o);
    return CTN_OK;
}

static ctn_status arrange(void *self)
{
    return ctn__optim_arrange(self);
}

/* Move frozen parameters behind the others, both in their order; order[i]: the number of parameter
 * i among all. active: how many are not frozen; n if all are. */
static ctn_status part_frozen(int n, ctn_var **params, char **name, int *order, int *active)
{
    int in = 0, out = 0;
    for (int i = 0; i < n; i++) out += params[i]->trainable;
    *active = out > 0 ? out : n;
    ctn_var **var = ctn__calloc((size_t)n, sizeof *var);
    char **text = ctn__calloc((size_t)n, sizeof *text);
    for (int i = 0; var && text && i < n; i++) {
        const int to = params[i]->trainable ? in++ : out++;
        order[to] = i;
        var[to] = params[i];
        text[to] = name[i];
    }
    if (var && text) {
        memcpy(params, var, (size_t)n * sizeof *var);
        memcpy(name, text, (size_t)n * sizeof *text);
    }
    const ctn_status st = var && text ? CTN_OK : CTN_ENOMEM;
    ctn__free(var);
    ctn__free(text);
    return st;
}

/* Make the pool of the parameters that are trained; the others are parked at once, so that they
 * never get memory for gradients and states. */
static ctn_status make_pool(ctn_optim *o, int n, ctn_var **params, double decay)
{
    int *order = ctn__calloc((size_t)n, sizeof *order);
    o->group = ctn__calloc((size_t)n, sizeof *o->group);
    ctn_status st = order && o->group ? CTN_OK : CTN_ENOMEM;
    int active = 0;
    if (st == CTN_OK) st = part_frozen(n, params, o->name, order, &active);
    if (st == CTN_OK) {
        for (int i = 0; i < n; i++)
            o->group[i] = (ctn__group){.lr_scale = 1, .decay = decay, .order = order[i]};
        st = ctn__pool_new(&o->pool, o->ctx, active, params, n - active);
    }
    ctn__free(order);
    return st;
}

static ctn_status select_params(ctn_optim *o, ctn_vars vars, double decay)
{
    ctn_status st = CTN_OK;
    int n = 0;
    ctn_context *ctx = vars.n > 0 ? vars.var[0]->ctx : NULL;
    const uint64_t search = ctx ? ++ctx->searches : 0;
    ctn_var **params = ctn__calloc((size_t)vars.n + 1, sizeof *params);
    o->name = ctn__calloc((size_t)vars.n + 1, sizeof *o->name);
    if (!params || !o->name) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    for (int i = 0; i < vars.n; i++) {
        if (vars.var[i]->kind != CTN_PARAM) continue;
        /* one variable under several names is one parameter (rule 4) */
        if (vars.var[i]->ctx == ctx && !ctn__var_first(vars.var[i], search)) continue;
        o->name[n] = ctn__strdup(vars.name ? vars.name[i] : vars.var[i]->name);
        if (!o->name[n]) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
        params[n++] = vars.var[i];
    }
    if (n == 0) { /* ctn_params() itself may have failed */
        if (ctn_error_status() == CTN_OK) ctn_fail(CTN_EARG, "optimizer: no parameters were given");
        CTN_TRY_GOTO(st, done, ctn_error_status());
    }
    o->ctx = ctx;
    CTN_TRY_GOTO(st, done, make_pool(o, n, params, decay));
done:
    ctn__free(params);
    return st;
}

ctn_status ctn__optim_new(ctn_optim **out, const ctn_optim *like, const char *name, ctn_vars vars,
                          double decay)
{
    ctn_status st = CTN_OK;
    *out = NULL;
    ctn_optim *o = ctn__malloc(sizeof *o);
    if (!o) return CTN_ENOMEM;
    *o = *like;
    CTN_TRY_GOTO(st, fail, select_params(o, vars, decay));
    o->seg = ctn__calloc((size_t)ctn__optim_params(o), sizeof *o->seg);
    o->partial = ctn__calloc((size_t)ctn__sweep_blocks(o->pool->count) + 1, sizeof *o->partial);
    if (!o->seg || !o->partial) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    for (int i = 0; i < o->nstates; i++) {
        const size_t bytes = (size_t)o->pool->count * o->pool->unit;
        o->state[i] = ctn__aligned(bytes);
        if (!o->state[i]) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
        ctn__zero(o->state[i], bytes, o->ctx->threads);
    }
    o->decay = decay;
    o->rate = 1;
    o->step_op = (ctn_op){.struct_size = sizeof(ctn_op), .name = name, .run = step_run};
    o->pool->step_op = &o->step_op;
    o->pool->owner = o;
    o->pool->arrange = arrange;
    *out = o;
    return CTN_OK;
fail:
    ctn_optim_free(o);
    return st;
}

void ctn_optim_free(ctn_optim *o)
{
    if (!o) return;
    int n = o->pool ? ctn__optim_params(o) : 0;
    for (int i = 0; o->name && (o->pool ? i < n : o->name[i] != NULL); i++) ctn__free(o->name[i]);
    for (int i = 0; o->group && i < n; i++) ctn__free(o->group[i].factors);
    ctn__pool_free(o->pool);
    ctn__free(o->name);
    ctn__free(o->group);
    ctn__free(o->seg);
    ctn__free(o->partial);
    for (int i = 0; i < 3; i++) ctn__free(o->state[i]);
    ctn__free(o->master);
    ctn__lbfgs_free(o->lbfgs);
    ctn__free(o);
}

/* All contributions to a step have the same scale, whatever is set or loaded in between. */
static void first_contribution(ctn_optim *o)
{
    const ctn__exchange *x = o->pool->exchange;
    if (o->pool->contributions > 0) return;
    o->seed = ctn_optim_loss_scale(o);
    /* Ranks send partial sums, which in f16 may be infinite where the mean is not. */
    if (x && ctn__exchange_wire(x) == CTN_F16)
        o->seed = (double)(float)(o->seed / ctn_comm_size(ctn__exchange_comm(x)));
    o->weights = 0;
    o->weighted = false;
}

/* An error on one rank must reach all ranks, or they would wait for this rank forever. */
static ctn_status for_all(const ctn_optim *o, ctn_status st)
{
    if (st < 0 && o->pool->exchange)
        ctn_comm_break(ctn__exchange_comm(o->pool->exchange), ctn_error_message());
    return st;
}

ctn_status ctn_backward_at(const char *at, ctn_optim *o, ctn_tensor *loss)
{
    if (!o) return ctn_fail(CTN_EARG, "backward: no optimizer (%s)", at);
    if (o->lbfgs && ctn__lbfgs_steps(o))
        return ctn_fail(CTN_ESTATE,
                        "backward: ctn_lbfgs_step does it; the closure only returns the loss (%s)",
                        at);
    first_contribution(o);
    o->pool->scale = o->seed;
    return for_all(o, ctn__record_backward(at, o->pool, loss));
}

/* The weight is part of the seed, a run-time value of the plan: it needs no op and no new plan. */
ctn_status ctn__backward_weighted(const char *at, ctn_optim *o, ctn_tensor *loss, double weight)
{
    first_contribution(o);
    o->pool->scale = o->seed * weight;
    CTN_TRY(for_all(o, ctn__record_backward(at, o->pool, loss)));
    o->weights += weight;
    o->weighted = true;
    return CTN_OK;
}

void ctn__optim_collect(ctn_optim *o)
{
    if (o->pool->contributions == 0) return;
    ctn__exchange_collect(o->pool->exchange);
    o->pool->contributions = 0;
    o->collected += o->weights;
    o->weights = 0;
}

ctn_status ctn_optim_step_at(const char *at, ctn_optim *o)
{
    if (!o) return ctn_fail(CTN_EARG, "optim_step: no optimizer (%s)", at);
    if (o->lbfgs)
        return ctn_fail(CTN_ESTATE, "optim_step: the steps of lbfgs are ctn_lbfgs_step (%s)", at);
    ctn__exchange *x = o->pool->exchange;
    if (x) {
        const double sum = o->weights + o->collected;
        ctn__exchange_give(x, CTN__GIVE_WEIGHT, o->weighted || sum > 0 ? sum : 1);
        o->collected = 0;
        ctn__exchange_want_all(x, wants_all(o));
    }
    return for_all(o, ctn__record_step(at, o->pool));
}

ctn_status ctn__step_empty(const char *at, ctn_optim *o)
{
    ctn__pool *p = o->pool;
    CTN_TRY(for_all(o, ctn__pool_settle(p)));
    ctn__zero(p->g, (size_t)p->count * p->unit, o->ctx->threads);
    if (p->exchange) {
        ctn__exchange_give(p->exchange, CTN__GIVE_WEIGHT, o->collected);
        o->collected = 0;
        ctn__exchange_want_all(p->exchange, wants_all(o));
    }
    first_contribution(o);
    p->contributions = 1; /* an empty one */
    ctn_status st = for_all(o, ctn__record_step(at, p));
    p->contributions = 0;
    return st;
}

int ctn_optim_group(ctn_optim *o, const char *pattern, const ctn_group_opt *opt)
{
    ctn_group_opt g = {0};
    if (!o || !pattern || !opt)
        return ctn_fail(CTN_EARG, "optim_group: needs an optimizer, a pattern and options");
    CTN_TRY(ctn__opt("optim_group", &g, sizeof g, opt));
    int n = 0;
    for (int i = 0; i < ctn__optim_params(o); i++) {
        ctn_var *v = ctn__optim_var(o, i);
        if (!v || !ctn__match_below(pattern, o->name[i])) continue;
        if (g.lr_scale != 0) o->group[i].lr_scale = g.lr_scale;
        if (g.decay) {
            o->group[i].decay = *g.decay;
            o->group[i].own_decay = true;
        }
        if (g.freeze != 0) ctn_var_set_trainable(v, g.freeze < 0);
        n++;
    }
    return n;
}

double ctn_optim_lr(const ctn_optim *o)
{
    return o->lr * o->rate * ctn_sched_factor(&o->sched, o->t);
}

void ctn_optim_set_lr(ctn_optim *o, double lr)
{
    o->lr = lr;
}

static void set_decay(ctn_optim *o, double decay)
{
    o->decay = decay;
    for (int i = 0; i < ctn__optim_params(o); i++)
        if (!o->group[i].own_decay) o->group[i].decay = decay;
}

static double *place_of(ctn_optim *o, const ctn__hyper *h)
{
    void *at = (char *)o + h->at;
    return at;
}

/* Address of a hyperparameter; NULL: this optimizer has none of that name. */
static double *hyper(ctn_optim *o, const char *name, bool *share)
{
    *share = false;
    if (strcmp(name, "lr") == 0) return &o->lr;
    if (strcmp(name, "decay") == 0) return &o->decay;
    for (const ctn__hyper *h = o->hyper; h && h->name; h++) {
        *share = h->share;
        if (strcmp(name, h->name) == 0) return place_of(o, h);
    }
    return NULL;
}

double ctn_optim_hyper(const ctn_optim *o, const char *name)
{
    bool share;
    const double *v = o && name ? hyper((ctn_optim *)o, name, &share) : NULL;
    return v ? *v : NAN;
}

static ctn_status no_hyper(const ctn_optim *o, const char *name)
{
    char text[128] = "lr, decay";
    for (const ctn__hyper *h = o ? o->hyper : NULL; h && h->name; h++) {
        const size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, ", %s", h->name);
    }
    return ctn_fail(CTN_ENOTFOUND, "optim_set_hyper: %s has no %s; it has %s",
                    o ? o->step_op.name : "no optimizer", name ? name : "hyperparameter NULL",
                    text);
}

ctn_status ctn_optim_set_hyper(ctn_optim *o, const char *name, double value)
{
    bool share;
    double *v = o && name ? hyper(o, name, &share) : NULL;
    if (!v) return no_hyper(o, name);
    if (!isfinite(value) || (share && !(value >= 0 && value < 1)))
        return ctn_fail(CTN_EARG, "optim_set_hyper: %s is %g, it must be %s", name, value,
                        share ? "in [0,1)" : "finite");
    if (v == &o->decay) set_decay(o, value);
    else *v = value;
    return CTN_OK;
}

void ctn_optim_set_skip_nonfinite(ctn_optim *o, int on)
{
    o->guarded = on != 0;
}

void ctn_optim_set_clip(ctn_optim *o, double max)
{
    o->clip = max;
}

double ctn_optim_norm(const ctn_optim *o)
{
    return o->norm;
}

int64_t ctn_optim_steps(const ctn_optim *o)
{
    return o->t;
}

/* The steps of parameter i. Plain SGD does not depend on them. */
static ctn_status visit_steps(ctn_optim *o, int i, ctn_state_fn fn, void *user)
{
    char name[512];
    if (o->nstates == 0 && !o->factored) return CTN_OK;
    snprintf(name, sizeof name, "%s.steps", o->name[i]);
    return fn(user, name, CTN_I64, 0, NULL, &o->group[i].t);
}

/* With a view, sharded state is gathered from all ranks. Then all of it is gathered even if fn
 * has failed (st: its status so far), because the other ranks take part. */
static ctn_status visit_states(ctn_optim *o, ctn__shard_view *view, ctn_status st, ctn_state_fn fn,
                               void *user)
{
    const ctn__pool *p = o->pool;
    const bool sharded = ctn__optim_sharded(o);
    for (int i = 0; i < p->nvar && (view || st == CTN_OK); i++) {
        const ctn_var *v = p->var[i];
        char name[512];
        for (int k = 0; v && k < o->nstates; k++) {
            void *data = sharded ? NULL : ctn__pool_at(p, o->state[k], p->begin[i]);
            if (view) CTN_TRY(ctn__shard_bring(view, i, k, &data));
            snprintf(name, sizeof name, "%s.state%d", o->name[i], k + 1);
            if (st == CTN_OK) st = fn(user, name, p->dtype, v->d.ndim, v->d.dim, data);
            if (view && st == CTN_OK) ctn__shard_keep(view, i, k);
        }
        if (v && st == CTN_OK && o->factored) st = ctn__factors_visit(o, i, fn, user);
        if (v && st == CTN_OK) st = visit_steps(o, i, fn, user);
    }
    return st;
}

static ctn_status visit_scalars(ctn_optim *o, ctn_state_fn fn, void *user)
{
    if (o->scaled) CTN_TRY(ctn__scale_visit(o, fn, user)); /* first, because it may fail */
    CTN_TRY(fn(user, "steps", CTN_I64, 0, NULL, &o->t));
    CTN_TRY(fn(user, "lr", CTN_F64, 0, NULL, &o->lr));
    CTN_TRY(fn(user, "decay", CTN_F64, 0, NULL, &o->decay));
    for (const ctn__hyper *h = o->hyper; h && h->name; h++)
        CTN_TRY(fn(user, h->name, CTN_F64, 0, NULL, place_of(o, h)));
    set_decay(o, o->decay);
    return o->lbfgs ? ctn__lbfgs_visit(o, fn, user) : CTN_OK;
}

ctn_status ctn__optim_list(ctn_optim *o, ctn_state_fn fn, void *user)
{
    CTN_TRY(ctn__pool_settle(o->pool));
    if (o->ctx->level == 0) CTN_TRY(ctn__optim_arrange(o));
    CTN_TRY(visit_scalars(o, fn, user));
    return visit_states(o, NULL, CTN_OK, fn, user);
}

ctn_status ctn_optim_visit(ctn_optim *o, ctn_state_fn fn, void *user)
{
    ctn__shard_view *view = NULL;
    if (o->ctx->level > 0)
        return ctn_fail(CTN_ESTATE, "optim_visit: a scope is open; call it between scopes");
    if (!ctn__optim_sharded(o)) return ctn__optim_list(o, fn, user);
    CTN_TRY(ctn__pool_settle(o->pool));
    CTN_TRY(ctn__shard_view_new(&view, o));
    ctn_status st = visit_states(o, view, visit_scalars(o, fn, user), fn, user);
    ctn__shard_view_free(view);
    return st;
}

static ctn_status visit_slices(ctn_optim *o, const int64_t *packed, ctn_state_fn fn, void *user)
{
    for (int i = 0; i < o->pool->nvar; i++) {
        if (!o->pool->var[i]) continue;
        for (int k = 0; k < o->nstates; k++) CTN_TRY(ctn__shard_slices(o, packed, i, k, fn, user));
        CTN_TRY(visit_steps(o, i, fn, user));
    }
    return CTN_OK;
}

ctn_status ctn__optim_visit_own(ctn_optim *o, ctn_state_fn fn, void *user)
{
    if (!ctn__optim_sharded(o)) return ctn__optim_list(o, fn, user);
    CTN_TRY(ctn__pool_settle(o->pool));
    int64_t *packed = ctn__shard_packed(o);
    if (!packed) return CTN_ENOMEM;
    ctn_status st = visit_scalars(o, fn, user);
    if (st == CTN_OK) st = visit_slices(o, packed, fn, user);
    ctn__free(packed);
    return st;
}

static bool inside(const ctn__pool *pool, const void *from, const void *p)
{
    if (!from) return false;
    const uintptr_t end = (uintptr_t)ctn__pool_at(pool, from, pool->count);
    return (uintptr_t)p >= (uintptr_t)from && (uintptr_t)p < end;
}

bool ctn__optim_same(const ctn_optim *o, const void *p)
{
    const bool sharded = ctn__optim_sharded(o);
    bool is = inside(o->pool, o->pool->w, p);
    for (int k = 0; k < o->nstates && !sharded; k++) is |= inside(o->pool, o->state[k], p);
    return is || (o->factored && ctn__factors_have(o, p));
}
