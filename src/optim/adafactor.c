/* SPDX-License-Identifier: Apache-2.0
 *
 * Adafactor (Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost",
 * 2018). Of a matrix of gradients G (R,C), only the means of the squares of its rows and columns
 * are kept, as moving averages r (R) and c (C) with the share k = t^beta2_decay of the new value:
 *   v = r c^T / mean(r),  u = G / sqrt(v),  w -= step u / max(1, rms(u) / clip)
 *   step = max(eps2, rms(w)) min(lr, 1/sqrt(t)), or lr if it is fixed
 * In an array of more dimensions, the last two are the matrices. Vectors have v itself. The rules
 * for eps1 and for the order of decay and step are PyTorch's.
 *
 * The gradients are replaced by u, then their norms are taken (trust.c), and the update is SGD's
 * sweep. The averages belong to a parameter and not to its elements in the pool, so they cannot be
 * sharded with these. Each sum is made by one thread, in order.
 */
#include <float.h>
#include <math.h>

#include "optim/optim.h"

/* Partial sums of a row, columns that are added up together, elements that are worth threads. */
enum { LANES = 8, BLOCK = 64, SMALL = 1 << 14 };

/* ---- the averages of a parameter ------------------------------------------------------------- */

typedef struct {
    int64_t n, R, C; /* n matrices; R 0: a vector of n elements */
} shape;

static shape shape_of(const ctn_var *v)
{
    const int ndim = v->d.ndim;
    shape s = {ctn__count(&v->d), 0, 0};
    if (ndim < 2) return s;
    s.R = v->d.dim[ndim - 2];
    s.C = v->d.dim[ndim - 1];
    s.n = s.R * s.C > 0 ? s.n / (s.R * s.C) : 0;
    return s;
}

/* All r come before all c. */
static int64_t length(shape s)
{
    return s.R > 0 ? s.n * (s.R + s.C) : s.n;
}

/* Made when they are first needed, because a frozen parameter needs none. */
static ctn_status need_factors(ctn_optim *o, int i)
{
    if (o->group[i].factors) return CTN_OK;
    const size_t n = (size_t)length(shape_of(o->pool->var[i]));
    o->group[i].factors = ctn__calloc(n + 1, o->pool->unit);
    return o->group[i].factors ? CTN_OK : CTN_ENOMEM;
}

ctn_status ctn__factors_visit(ctn_optim *o, int i, ctn_state_fn fn, void *user)
{
    const ctn_desc *d = &o->pool->var[i]->d;
    const shape s = shape_of(o->pool->var[i]);
    char name[512];
    int64_t dims[CTN_MAX_DIMS] = {0};
    CTN_TRY(need_factors(o, i));
    char *at = o->group[i].factors;
    memcpy(dims, d->dim, sizeof dims);
    if (s.R == 0) {
        snprintf(name, sizeof name, "%s.variance", o->name[i]);
        return fn(user, name, o->pool->dtype, d->ndim, dims, at);
    }
    dims[d->ndim - 1] = 1;
    snprintf(name, sizeof name, "%s.row_var", o->name[i]);
    CTN_TRY(fn(user, name, o->pool->dtype, d->ndim, dims, at));
    dims[d->ndim - 1] = s.C;
    dims[d->ndim - 2] = 1;
    snprintf(name, sizeof name, "%s.col_var", o->name[i]);
    return fn(user, name, o->pool->dtype, d->ndim, dims, at + (size_t)(s.n * s.R) * o->pool->unit);
}

bool ctn__factors_have(const ctn_optim *o, const void *p)
{
    for (int i = 0; i < o->pool->nvar; i++) {
        const char *at = o->group[i].factors, *x = p;
        if (!at || !o->pool->var[i]) continue;
        if (x >= at && x < at + (size_t)length(shape_of(o->pool->var[i])) * o->pool->unit)
            return true;
    }
    return false;
}

/* ---- from gradients to updates --------------------------------------------------------------- */

typedef struct {
    double gscale, share, eps1;
    int threads;
} rule;

#define T float
#define ROOT sqrtf
#define NAME(x) x##_f32
#include "optim/adafactor_body.h"

#define T double
#define ROOT sqrt
#define NAME(x) x##_f64
#include "optim/adafactor_body.h"

static ctn_status change(ctn_optim *o, int threads)
{
    const ctn__pool *p = o->pool;
    for (int i = 0, k = 0; i < p->nvar; i++) {
        if (!ctn__trained(o, i)) continue;
        const shape s = shape_of(p->var[i]);
        const rule r = {.gscale = o->seg[k++].gscale,
                        .share = pow((double)o->group[i].t + 1, o->beta2),
                        .eps1 = o->eps,
                        .threads = ctn__count(&p->var[i]->d) < SMALL ? 1 : threads};
        void *g = ctn__pool_at(p, p->g, p->begin[i]);
        CTN_TRY(need_factors(o, i));
        if (p->dtype == CTN_F32) update_f32(g, o->group[i].factors, s, &r);
        else update_f64(g, o->group[i].factors, s, &r);
    }
    return CTN_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    (void)o, (void)t;
    s->lr = lr;
}

static void step(const ctn_optim *o, const ctn__group *g, double lr, double u_norm,
                 ctn__sweep_seg *s)
{
    const double n = (double)ctn__count(&o->pool->var[g - o->group]->d);
    s->gscale = 1;
    s->lr = lr / fmax(1, u_norm / (sqrt(n) * o->more[1]));
}

static void fixed(const ctn_optim *o, const ctn__group *g, double lr, double w_norm, double u_norm,
                  ctn__sweep_seg *s)
{
    (void)w_norm;
    step(o, g, lr, u_norm, s);
}

static void relative(const ctn_optim *o, const ctn__group *g, double lr, double w_norm,
                     double u_norm, ctn__sweep_seg *s)
{
    const double n = (double)ctn__count(&o->pool->var[g - o->group]->d);
    const double rate = fmin(lr, 1 / sqrt((double)g->t + 1));
    step(o, g, fmax(o->more[0], w_norm / sqrt(n)) * rate, u_norm, s);
}

static const ctn__hyper hypers[] = {CTN__HYPER("beta2_decay", beta2),
                                    CTN__HYPER("eps1", eps),
                                    CTN__HYPER("eps2", more[0]),
                                    CTN__HYPER("clip", more[1]),
                                    {NULL, 0, false}};

ctn_status ctn_adafactor_new(ctn_optim **o, ctn_vars vars, const ctn_adafactor_opt *opt)
{
    ctn_adafactor_opt a = {0};
    CTN_TRY(ctn__opt("adafactor", &a, sizeof a, opt));
    if (a.beta2_decay > 0 || a.eps1 < 0 || a.eps2 < 0 || a.clip < 0)
        return ctn_fail(
            CTN_EARG,
            "adafactor: beta2_decay is %g, eps1 is %g, eps2 is %g, clip is %g; expected "
            "beta2_decay below 0 and the others not negative",
            a.beta2_decay, a.eps1, a.eps2, a.clip);
    ctn_optim like = {.kind = CTN__SWEEP_SGD,
                      .factored = true,
                      .decoupled = true,
                      .change = change,
                      .trust = a.fixed_step ? fixed : relative,
                      .lr = ctn__or(a.lr, 0.01),
                      .beta2 = ctn__or(a.beta2_decay, -0.8),
                      .eps = a.eps1,
                      .more = {ctn__or(a.eps2, 1e-3), ctn__or(a.clip, 1)},
                      .hyper = hypers,
                      .fill = fill};
    CTN_TRY(ctn__optim_new(o, &like, "adafactor", vars, a.decay));
    if (a.eps1 == 0) (*o)->eps = (*o)->pool->dtype == CTN_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    return CTN_OK;
}
