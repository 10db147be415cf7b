/* SPDX-License-Identifier: Apache-2.0
 *
 * gradcheck: compare the gradients of an op's grad with central differences in f64. The same
 * program is recorded each time, so every evaluation after the first is a plan hit. The random
 * state of the context is restored before each evaluation, so that random functions draw the
 * same numbers, and after the last.
 */
#include <math.h>

#include "ops/ops.h"

enum { SEED = 1759 }; /* of the weights */

typedef struct {
    ctn_context *ctx;
    ctn_context_state state;
    ctn_gradcheck_fn fn;
    void *self;
    int n;
    const ctn_gradcheck_input *x;
    int64_t count[CTN_MAX_OUT]; /* elements of x[i] */
    double *at[CTN_MAX_OUT];    /* where the function is evaluated, shaped as x[i] */
    double *grad[CTN_MAX_OUT];  /* of the loss, shaped as x[i] */
    int64_t ny;
    double *weight, *low, *high; /* shaped as y */
} checker;

typedef struct {
    double err, grad, diff;
    int input;
    int64_t element;
} finding;

/* Record fn on the current values. */
static ctn_status record(checker *c, ctn_tensor **x, ctn_tensor **y)
{
    for (int i = 0; i < c->n; i++) {
        x[i] = ctn_with_grad(ctn_input(c->ctx, c->at[i], CTN_F64, c->x[i].ndim, c->x[i].dims));
        if (!x[i]) return ctn_error_status();
    }
    *y = c->fn(c->self, c->ctx, x);
    if (!*y)
        return ctn_error_status() < 0 ? ctn_error_status()
                                      : ctn_fail(CTN_EARG, "gradcheck: the function returned NULL");
    if ((*y)->d.dtype != CTN_F64)
        return ctn_fail(CTN_EDTYPE, "gradcheck: the function returns %s, expected f64",
                        ctn_dtype_name((*y)->d.dtype));
    return CTN_OK;
}

/* Magnitudes are between 0.5 and 1.5: no weight is so small that it could hide an error. */
static ctn_status make_weights(checker *c, int64_t ny)
{
    c->ny = ny;
    c->weight = ctn__calloc((size_t)ny + 1, sizeof(double));
    c->low = ctn__calloc((size_t)ny + 1, sizeof(double));
    c->high = ctn__calloc((size_t)ny + 1, sizeof(double));
    if (!c->weight || !c->low || !c->high) return CTN_ENOMEM;
    for (int64_t i = 0; i < ny; i++) {
        double u = 2 * ctn__uniform(SEED, 0, (uint64_t)i) - 1;
        c->weight[i] = u < 0 ? u - 0.5 : u + 0.5;
    }
    return CTN_OK;
}

/* Gradients of sum(weight * y) by every input. */
static ctn_status gradients(checker *c)
{
    ctn_tensor *x[CTN_MAX_OUT] = {NULL}, *gx[CTN_MAX_OUT] = {NULL}, *y = NULL;
    CTN_TRY(record(c, x, &y));
    if (!y) return ctn_error_status();
    CTN_TRY(make_weights(c, ctn__count(&y->d)));
    ctn_tensor *w = ctn_input(c->ctx, c->weight, CTN_F64, y->d.ndim, y->d.dim);
    ctn_tensor *loss = ctn_sum(ctn_mul(y, w), CTN_ALL_AXES, 0);
    if (!loss) return ctn_error_status();
    CTN_TRY(ctn_grad(loss, c->n, x, gx));
    for (int i = 0; i < c->n; i++)
        CTN_TRY(ctn_read(gx[i], c->grad[i], (size_t)c->count[i] * sizeof(double)));
    return CTN_OK;
}

static ctn_status values(checker *c, double *out)
{
    ctn_tensor *x[CTN_MAX_OUT] = {NULL}, *y = NULL;
    CTN_TRY(record(c, x, &y));
    if (ctn__count(&y->d) != c->ny)
        return ctn_fail(CTN_ESHAPE,
                        "gradcheck: the function returned %lld elements first, now %lld",
                        (long long)c->ny, (long long)ctn__count(&y->d));
    return ctn_read(y, out, (size_t)c->ny * sizeof(double));
}

/* Compute gradients (out is NULL) or values in a scope of their own. */
static ctn_status in_scope(checker *c, double *out)
{
    CTN_TRY(ctn_context_set_state(c->ctx, &c->state));
    CTN_TRY(ctn_scope_begin(c->ctx));
    ctn_status st = out ? values(c, out) : gradients(c);
    ctn_status end = ctn_scope_end(c->ctx);
    return st < 0 ? st : end;
}

/* The loss changes by sum(weight * (high - low)). Elements of y that do not change contribute
 * exact zeros, so this is more accurate than the difference of two sums. */
static ctn_status difference(checker *c, int input, int64_t k, double *out)
{
    double *v = &c->at[input][k], x = *v;
    double h = 1e-6 * fmax(1, fabs(x));
    volatile double up = x + h, down = x - h; /* the steps actually taken, after rounding */
    *v = up;
    CTN_TRY(in_scope(c, c->high));
    *v = down;
    CTN_TRY(in_scope(c, c->low));
    *v = x;
    double s = 0;
    for (int64_t i = 0; i < c->ny; i++) s += c->weight[i] * (c->high[i] - c->low[i]);
    *out = s / (up - down);
    return CTN_OK;
}

static ctn_status compare(checker *c, finding *worst)
{
    for (int i = 0; i < c->n; i++) {
        for (int64_t k = 0; k < c->count[i]; k++) {
            double d = 0, g = c->grad[i][k];
            CTN_TRY(difference(c, i, k, &d));
            double err = fabs(g - d) / fmax(1, fabs(g));
            if (isnan(err)) err = INFINITY; /* also if both are infinite: that proves nothing */
            if (worst->input >= 0 && err <= worst->err) continue;
            *worst = (finding){err, g, d, i, k};
        }
    }
    return CTN_OK;
}

static ctn_status start(checker *c)
{
    for (int i = 0; i < c->n; i++) {
        ctn_desc d = {0};
        CTN_TRY(ctn__desc_set(&d, "gradcheck", CTN_F64, c->x[i].ndim, c->x[i].dims));
        c->count[i] = ctn__count(&d);
        if (c->count[i] > 0 && !c->x[i].values)
            return ctn_fail(CTN_EARG, "gradcheck: input %d has no values", i);
        c->at[i] = ctn__calloc((size_t)c->count[i] + 1, sizeof(double));
        c->grad[i] = ctn__calloc((size_t)c->count[i] + 1, sizeof(double));
        if (!c->at[i] || !c->grad[i]) return CTN_ENOMEM;
        if (c->count[i] > 0) memcpy(c->at[i], c->x[i].values, (size_t)c->count[i] * sizeof(double));
    }
    return CTN_OK;
}

static ctn_status verdict(const checker *c, const finding *f, double tol)
{
    char s[128];
    if (f->input < 0 || f->err <= tol) return CTN_OK;
    ctn_desc d = {.ndim = c->x[f->input].ndim};
    for (int i = 0; i < d.ndim; i++) d.dim[i] = c->x[f->input].dims[i];
    return ctn_fail(CTN_EGRAD,
                    "gradcheck: input %d, element %lld of %s: the gradient is %.10g, finite "
                    "differences give %.10g (error %.3g, allowed %.3g)",
                    f->input, (long long)f->element, ctn__shape_text(&d, s, sizeof s), f->grad,
                    f->diff, f->err, tol);
}

ctn_status ctn_gradcheck(ctn_context *ctx, ctn_gradcheck_fn fn, void *self, int n,
                         const ctn_gradcheck_input *x, double tol, double *worst)
{
    if (worst) *worst = 0;
    if (!ctx || !fn || !x || n < 1 || n > CTN_MAX_OUT)
        return ctn_fail(CTN_EARG, "gradcheck: needs a context, a function and 1 to %d inputs",
                        CTN_MAX_OUT);
    if (ctx->level > 0)
        return ctn_fail(CTN_ESTATE, "gradcheck: a scope is open; call gradcheck between scopes");
    ctn_status st = CTN_OK;
    checker c = {.ctx = ctx, .fn = fn, .self = self, .n = n, .x = x};
    finding f = {.input = -1};
    ctn_context_get_state(ctx, &c.state);
    int grad_on = ctn_context_set_grad(ctx, 1);
    CTN_TRY_GOTO(st, done, start(&c));
    CTN_TRY_GOTO(st, done, in_scope(&c, NULL));
    CTN_TRY_GOTO(st, done, compare(&c, &f));
    if (worst) *worst = f.err;
    CTN_TRY_GOTO(st, done, verdict(&c, &f, tol));
done:
    ctn_context_set_grad(ctx, grad_on);
    ctx->seed = c.state.seed;
    ctx->step = c.state.step;
    for (int i = 0; i < n; i++) {
        ctn__free(c.at[i]);
        ctn__free(c.grad[i]);
    }
    ctn__free(c.weight);
    ctn__free(c.low);
    ctn__free(c.high);
    return st;
}
