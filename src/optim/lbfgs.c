/* SPDX-License-Identifier: Apache-2.0
 *
 * L-BFGS (Nocedal and Wright, "Numerical optimization", algorithm 7.4): the direction is -H g,
 * where the inverse Hessian H follows from the last changes of parameters and gradients. The rules
 * for the first step length, for what enters the history and for the end of a step are PyTorch's.
 *
 * The parameters are the values of the pool. The closure is evaluated by recording it with backward
 * and a step whose run does nothing, so that the gradients stay in the pool. Dot products are sums
 * of fixed blocks, so results do not depend on the thread count.
 */
#include "optim/lbfgs.h"

#include <limits.h>
#include <math.h>

/* ---- vectors -------------------------------------------------------------------------------- */

/* y = b y + a x; x and y do not overlap. The sweep of SGD is this operation. */
static void combine(const ctn_optim *o, void *y, double b, double a, void *x)
{
    const ctn__sweep_pool p = {.w = y, .g = x, .f64 = o->pool->dtype == CTN_F64};
    const ctn__sweep_seg all = {.end = o->pool->count, .gscale = 1, .lr = -a, .keep = b};
    ctn__sweep(CTN__SWEEP_SGD, &p, &all, 1, o->ctx->threads);
}

static void copy(const ctn_optim *o, void *to, const void *from)
{
    memcpy(to, from, (size_t)o->pool->count * o->pool->unit);
}

/* y = a x */
static void scaled(const ctn_optim *o, void *y, double a, void *x)
{
    ctn__zero(y, (size_t)o->pool->count * o->pool->unit, o->ctx->threads);
    combine(o, y, 1, a, x);
}

double ctn__lbfgs_dot(const ctn_optim *o, const void *a, const void *b)
{
    return ctn__sweep_dot(a, b, o->pool->dtype == CTN_F64, o->pool->count, o->partial,
                          o->ctx->threads);
}

double ctn__lbfgs_top(const ctn_optim *o, const void *a)
{
    double top = 0;
    for (int64_t i = 0; i < o->pool->count; i++) {
        const double x = fabs(ctn__elem_get(a, o->pool->dtype, i));
        if (!(x <= top)) top = x; /* NaN wins */
    }
    return top;
}

static double sum_abs(const ctn_optim *o, const void *a)
{
    double sum = 0;
    for (int64_t i = 0; i < o->pool->count; i++) sum += fabs(ctn__elem_get(a, o->pool->dtype, i));
    return sum;
}

/* ---- memory --------------------------------------------------------------------------------- */

static void free_vectors(ctn__lbfgs *l)
{
    ctn__free(l->y);
    ctn__free(l->s);
    ctn__free(l->d);
    ctn__free(l->old);
    ctn__free(l->x);
    l->y = l->s = l->d = l->old = l->x = NULL;
    for (int i = 0; i < 4; i++) {
        ctn__free(l->trial[i].g);
        l->trial[i].g = NULL;
    }
}

void ctn__lbfgs_free(ctn__lbfgs *l)
{
    if (!l) return;
    free_vectors(l);
    ctn__free(l->inverse);
    ctn__free(l->a);
    ctn__free(l);
}

/* Make the vectors for the pool as it is now. The history is allocated as a whole, but a page of it
 * takes memory only once it is written. */
static ctn_status make_vectors(ctn_optim *o)
{
    ctn__lbfgs *l = o->lbfgs;
    const size_t n = (size_t)o->pool->count, unit = o->pool->unit;
    if (l->uid == o->pool->uid && l->y) return CTN_OK;
    free_vectors(l);
    l->uid = o->pool->uid;
    l->n = o->pool->count;
    l->y = ctn__calloc((size_t)l->history * n, unit);
    l->s = ctn__calloc((size_t)l->history * n, unit);
    l->d = ctn__calloc(n, unit);
    l->old = ctn__calloc(n, unit);
    l->x = ctn__calloc(n, unit);
    bool ok = l->y && l->s && l->d && l->old && l->x;
    for (int i = 0; i < 4; i++) ok &= (l->trial[i].g = ctn__calloc(n, unit)) != NULL;
    if (ok) return CTN_OK;
    free_vectors(l);
    return CTN_ENOMEM;
}

/* If parameters were frozen or unfrozen, the history belongs to another function. */
static ctn_status prepare(ctn_optim *o)
{
    ctn__lbfgs *l = o->lbfgs;
    uint64_t trained = o->pool->uid;
    for (int i = 0; i < o->pool->nvar; i++) trained = ctn__mix(trained, ctn__trained(o, i));
    CTN_TRY(make_vectors(o));
    if (trained != l->trained) l->first = l->used = l->taken = 0;
    l->trained = trained;
    return CTN_OK;
}

static ctn_status run_nothing(const ctn_run_args *a)
{
    (void)a;
    return CTN_OK;
}

static ctn_status take_options(ctn__lbfgs *l, const ctn_lbfgs_opt *a)
{
    l->iterations = a->iterations != 0 ? a->iterations : 20;
    const int64_t usual = (int64_t)l->iterations * 5 / 4;
    l->evaluations = a->evaluations != 0 ? a->evaluations : usual < INT_MAX ? (int)usual : INT_MAX;
    l->history = a->history != 0 ? a->history : 100;
    l->tol_grad = ctn__or(a->tol_grad, 1e-7);
    l->tol_change = ctn__or(a->tol_change, 1e-9);
    l->fixed = a->no_line_search != 0;
    l->scale = 1;
    if (l->iterations < 1 || l->evaluations < 1 || l->history < 1)
        return ctn_fail(CTN_EARG,
                        "lbfgs: iterations is %d, evaluations %d and history %d; they must be at "
                        "least 1",
                        l->iterations, l->evaluations, l->history);
    l->inverse = ctn__calloc((size_t)l->history, sizeof *l->inverse);
    l->a = ctn__calloc((size_t)l->history, sizeof *l->a);
    return l->inverse && l->a ? CTN_OK : CTN_ENOMEM;
}

ctn_status ctn_lbfgs_new(ctn_optim **o, ctn_vars vars, const ctn_lbfgs_opt *opt)
{
    ctn_lbfgs_opt a = {0};
    *o = NULL;
    CTN_TRY(ctn__opt("lbfgs", &a, sizeof a, opt));
    ctn__lbfgs *l = ctn__calloc(1, sizeof *l);
    if (!l) return CTN_ENOMEM;
    const ctn_optim like = {.lr = ctn__or(a.lr, 1)};
    ctn_status st = take_options(l, &a);
    if (st == CTN_OK) st = ctn__optim_new(o, &like, "lbfgs", vars, 0);
    if (st < 0) {
        ctn__lbfgs_free(l);
        return st;
    }
    (*o)->lbfgs = l;
    (*o)->step_op.run = run_nothing;
    return CTN_OK;
}

ctn_status ctn__lbfgs_visit(ctn_optim *o, ctn_state_fn fn, void *user)
{
    ctn__lbfgs *l = o->lbfgs;
    CTN_TRY(prepare(o));
    const int64_t h = l->history, pairs[2] = {h, l->n};
    const ctn_dtype type = o->pool->dtype;
    CTN_TRY(fn(user, "lbfgs.first", CTN_I64, 0, NULL, &l->first));
    CTN_TRY(fn(user, "lbfgs.used", CTN_I64, 0, NULL, &l->used));
    CTN_TRY(fn(user, "lbfgs.taken", CTN_I64, 0, NULL, &l->taken));
    if (l->first < 0 || l->first >= h || l->used < 0 || l->used > h || l->taken < 0) {
        const long long used = (long long)l->used, first = (long long)l->first;
        l->first = l->used = l->taken = 0; /* the program may go on with this optimizer */
        return ctn_fail(CTN_EFORMAT,
                        "lbfgs: the saved history has %lld entries from %lld on, "
                        "expected at most %lld",
                        used, first, (long long)h);
    }
    CTN_TRY(fn(user, "lbfgs.t", CTN_F64, 0, NULL, &l->t));
    CTN_TRY(fn(user, "lbfgs.scale", CTN_F64, 0, NULL, &l->scale));
    CTN_TRY(fn(user, "lbfgs.inverse", CTN_F64, 1, &h, l->inverse));
    CTN_TRY(fn(user, "lbfgs.y", type, 2, pairs, l->y));
    CTN_TRY(fn(user, "lbfgs.s", type, 2, pairs, l->s));
    CTN_TRY(fn(user, "lbfgs.direction", type, 1, &l->n, l->d));
    return fn(user, "lbfgs.gradient", type, 1, &l->n, l->old);
}

bool ctn__lbfgs_steps(const ctn_optim *o)
{
    return o->lbfgs->closure != NULL;
}

/* ---- evaluation ----------------------------------------------------------------------------- */

static ctn_status record(ctn_optim *o, double *f)
{
    ctn_tensor *loss = o->lbfgs->closure(o->lbfgs->user, o->ctx);
    if (!loss && ctn_error_status() == CTN_OK)
        return ctn_fail(CTN_EARG, "lbfgs_step: the closure returned no loss");
    CTN_TRY(ctn__backward_weighted("lbfgs_step", o, loss, 1));
    CTN_TRY(ctn__record_step("lbfgs_step", o->pool));
    *f = ctn_item(loss);
    return CTN_OK;
}

/* The loss and its gradient at the current parameters. */
static ctn_status evaluate(ctn_optim *o, double *f, void *g)
{
    ctn__pool *p = o->pool;
    CTN_TRY(ctn_scope_begin(o->ctx));
    ctn_status st = record(o, f);
    const ctn_status end = ctn_scope_end(o->ctx);
    p->contributions = p->contributions_done = 0; /* also if the step was not reached */
    CTN_TRY(st);
    CTN_TRY(end);
    for (int i = 0; i < p->nvar; i++) /* of frozen parameters, g may be that of an earlier step */
        if (!ctn__trained(o, i))
            memset(ctn__pool_at(p, p->g, p->begin[i]), 0,
                   (size_t)(p->begin[i + 1] - p->begin[i]) * p->unit);
    copy(o, g, p->g);
    return CTN_OK;
}

void ctn__lbfgs_move(ctn_optim *o, double t)
{
    copy(o, o->pool->w, o->lbfgs->x);
    combine(o, o->pool->w, 1, t, o->lbfgs->d);
    o->pool->touched++;
}

ctn_status ctn__lbfgs_try(ctn_optim *o, double t, ctn__trial *out)
{
    ctn__lbfgs_move(o, t);
    out->t = t;
    CTN_TRY(evaluate(o, &out->f, out->g));
    out->slope = ctn__lbfgs_dot(o, out->g, o->lbfgs->d);
    return CTN_OK;
}

/* ---- the step ------------------------------------------------------------------------------- */

static void *entry(const ctn_optim *o, void *history, int64_t i)
{
    const ctn__lbfgs *l = o->lbfgs;
    return ctn__pool_at(o->pool, history, (l->first + i) % l->history * l->n);
}

/* Add the last change to the history, if the curvature along it is positive. */
static void remember(ctn_optim *o)
{
    ctn__lbfgs *l = o->lbfgs;
    void *y = l->trial[1].g, *s = l->trial[2].g;
    copy(o, y, l->trial[0].g);
    combine(o, y, 1, -1, l->old);
    scaled(o, s, l->t, l->d);
    const double ys = ctn__lbfgs_dot(o, y, s);
    if (!(ys > 1e-10)) return;
    if (l->used == l->history) l->first = (l->first + 1) % l->history;
    else l->used++;
    copy(o, entry(o, l->y, l->used - 1), y);
    copy(o, entry(o, l->s, l->used - 1), s);
    l->inverse[(l->first + l->used - 1) % l->history] = 1 / ys;
    l->scale = ys / ctn__lbfgs_dot(o, y, y);
}

/* d = -H g, by the two loops over the history. */
static void find_direction(ctn_optim *o)
{
    ctn__lbfgs *l = o->lbfgs;
    scaled(o, l->d, -1, l->trial[0].g);
    for (int64_t i = l->used - 1; i >= 0; i--) {
        l->a[i] =
            ctn__lbfgs_dot(o, entry(o, l->s, i), l->d) * l->inverse[(l->first + i) % l->history];
        combine(o, l->d, 1, -l->a[i], entry(o, l->y, i));
    }
    if (l->used > 0) combine(o, l->d, l->scale, 0, l->old);
    for (int64_t i = 0; i < l->used; i++) {
        const double b =
            ctn__lbfgs_dot(o, entry(o, l->y, i), l->d) * l->inverse[(l->first + i) % l->history];
        combine(o, l->d, 1, l->a[i] - b, entry(o, l->s, i));
    }
}

/* One iteration, from trial[0] to the next point, which becomes trial[0]. *stop: the direction does
 * not lead down. last: with steps of fixed length, the new point is not evaluated. */
static ctn_status iterate(ctn_optim *o, bool last, int *evaluations, bool *stop)
{
    ctn__lbfgs *l = o->lbfgs;
    ctn__trial *at = &l->trial[0];
    const double lr = ctn_optim_lr(o);
    if (l->taken++ > 0) remember(o);
    find_direction(o);
    copy(o, l->old, at->g);
    l->t = l->taken == 1 ? fmin(1, 1 / sum_abs(o, at->g)) * lr : lr;
    at->slope = ctn__lbfgs_dot(o, at->g, l->d);
    *stop = at->slope > -l->tol_change;
    if (*stop) return CTN_OK;
    copy(o, l->x, o->pool->w);
    if (!l->fixed) {
        CTN_TRY(ctn__wolfe(o, l->t, l->evaluations - *evaluations, evaluations));
        l->t = at->t;
        ctn__lbfgs_move(o, l->t);
    } else if (last) {
        ctn__lbfgs_move(o, l->t);
    } else {
        CTN_TRY(ctn__lbfgs_try(o, l->t, at));
        ++*evaluations;
    }
    return CTN_OK;
}

static ctn_status step(ctn_optim *o, double *loss)
{
    ctn__lbfgs *l = o->lbfgs;
    ctn__trial *at = &l->trial[0];
    int evaluations = 1;
    bool stop = false;
    CTN_TRY(evaluate(o, &at->f, at->g));
    *loss = at->f;
    if (ctn__lbfgs_top(o, at->g) <= l->tol_grad) return CTN_OK;
    for (int i = 1; i <= l->iterations; i++) {
        const double before = at->f;
        CTN_TRY(iterate(o, i == l->iterations, &evaluations, &stop));
        if (stop || i == l->iterations || evaluations >= l->evaluations) break;
        if (ctn__lbfgs_top(o, at->g) <= l->tol_grad) break;
        if (fabs(l->t) * ctn__lbfgs_top(o, l->d) <= l->tol_change) break;
        if (fabs(at->f - before) < l->tol_change) break;
    }
    return CTN_OK;
}

ctn_status ctn_lbfgs_step(ctn_optim *o, ctn_closure_fn closure, void *user, double *loss)
{
    double first = 0;
    if (!o || !o->lbfgs || !closure)
        return ctn_fail(CTN_EARG, "lbfgs_step: needs an optimizer of ctn_lbfgs_new and a closure");
    if (o->ctx->level > 0)
        return ctn_fail(CTN_ESTATE, "lbfgs_step: a scope is open; call it between scopes");
    CTN_TRY(ctn__pools_arrange(o->ctx));
    CTN_TRY(prepare(o));
    o->lbfgs->closure = closure;
    o->lbfgs->user = user;
    /* gradients that the program has asked for are not those of this step */
    o->pool->contributions = o->pool->contributions_done = 0;
    const ctn_status st = step(o, &first);
    o->lbfgs->closure = NULL;
    CTN_TRY(st);
    o->t++;
    if (loss) *loss = first;
    return CTN_OK;
}
