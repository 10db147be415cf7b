/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of one op case, see harness.h. A run records the case in one of the shared
 * contexts, with or without gradients, and returns every result in row-major order. The checks
 * compare such runs with the reference and with each other. Nothing here asserts: the first
 * fault is reported as text.
 */
#include <math.h>

#include "check.h"
#include "engine/isa.h"

enum {
    SEED = 42,
    STEP = 3,
    MAX_ELEMENTS_FOR_DIFFERENCES = 1000,
    /* With more live blocks, checking every guard zone takes too long: start with new contexts. */
    MANY_BLOCKS = 1000
};

typedef enum { ONE_THREAD, TWO_THREADS, THREE_THREADS, NO_FUSE, EAGER, NCONTEXTS } which_context;
static const char *const context_name[] = {"1 thread", "2 threads", "3 threads", "no_fuse",
                                           "eager"};
static ctn_context *contexts[NCONTEXTS];

typedef enum { PLAIN, GAPPED, COLUMNS, REVERSED, NLAYOUTS } layout;
static const char *const layout_name[] = {"row-major", "gapped", "column-major", "reversed"};

typedef enum { FORWARD, GRADIENT } what;

/* The results of one run: y, or the gradient of each input that has one. */
typedef struct {
    int n;
    ctn_desc d[MAX_CASE_IN];
    void *v[MAX_CASE_IN];
} outcome;

/* An input in memory: the block, a copy of its contents, and where element 0 is. */
typedef struct {
    char *block, *before, *origin;
    size_t bytes;
    int64_t stride[CTN_MAX_DIMS];
} placed;

typedef struct {
    const op_case *c;
    double *x[MAX_CASE_IN]; /* values of the inputs */
    double *w;              /* weights of y in the loss, one per element of y */
    int64_t nw;
} subject;

int64_t case_count(const case_in *in)
{
    int64_t n = 1;
    for (int i = 0; i < in->ndim; i++) n *= in->dim[i];
    return n;
}

int64_t desc_count(const ctn_desc *d)
{
    return ctn__count(d);
}

void case_strides(int ndim, const int64_t *dim, int64_t *stride)
{
    int64_t s = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        stride[i] = s;
        s *= dim[i];
    }
}

void unravel(int64_t i, int ndim, const int64_t *dim, int64_t *index)
{
    for (int k = ndim - 1; k >= 0; k--) {
        index[k] = i % dim[k];
        i /= dim[k];
    }
}

static bool has_grad(const case_in *in)
{
    return in->dtype == 0 && !in->no_grad;
}

/* ---- values --------------------------------------------------------------------------------- */

static void fill_distinct(double *v, int64_t n, double lo, double hi, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) v[i] = lo + (hi - lo) * ((double)i + 0.5) / (double)n;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)(ctn__uniform(seed, 0, (uint64_t)i) * (double)(i + 1));
        double t = v[i];
        v[i] = v[j];
        v[j] = t;
    }
}

double *case_fill(const op_case *c, int input, bool round)
{
    const case_in *in = &c->in[input];
    int64_t n = case_count(in);
    double lo = in->lo, hi = in->lo == in->hi ? in->lo + 1 : in->hi;
    double *v = calloc((size_t)n + 1, sizeof *v);
    uint64_t seed =
        ctn__mix(ctn__hash(c->name, strlen(c->name)).lo, ctn__mix((uint64_t)input, SEED));
    for (int64_t i = 0; i < n; i++) {
        double u = ctn__uniform(seed, 1, (uint64_t)i), z = ctn__normal(seed, 2, (uint64_t)i);
        switch (in->fill) {
        case FILL_NORMAL: v[i] = z; break;
        case FILL_UNIFORM: v[i] = lo + (hi - lo) * u; break;
        case FILL_INDEX: v[i] = floor(lo + (hi - lo) * u); break;
        case FILL_AWAY: v[i] = z < 0 ? z - 0.2 : z + 0.2; break;
        case FILL_DISTINCT: break;
        }
    }
    if (in->fill == FILL_DISTINCT) fill_distinct(v, n, lo, hi, seed);
    for (int64_t i = 0; i < n && (round || in->dtype == CTN_F32); i++) v[i] = (double)(float)v[i];
    return v;
}

static void subject_make(subject *s, const op_case *c, bool round)
{
    *s = (subject){.c = c};
    for (int i = 0; i < c->nin; i++) s->x[i] = case_fill(c, i, round);
}

static void subject_free(subject *s)
{
    for (int i = 0; i < s->c->nin; i++) free(s->x[i]);
    free(s->w);
}

static void outcome_free(outcome *o)
{
    for (int i = 0; i < o->n; i++) free(o->v[i]);
    o->n = 0;
}

/* Lowest and highest offset from the origin that d reaches, in elements. */
static void extent(const ctn_desc *d, int64_t *lo, int64_t *hi)
{
    *lo = *hi = 0;
    for (int i = 0; i < d->ndim; i++) {
        if (d->dim[i] == 0) {
            *lo = 0;
            *hi = -1;
            return;
        }
        int64_t e = (d->dim[i] - 1) * d->stride[i];
        if (e < 0) *lo += e;
        else *hi += e;
    }
}

/* ---- inputs in memory ----------------------------------------------------------------------- */

static void place(placed *p, const case_in *in, const double *v, ctn_dtype t, layout l)
{
    int nd = in->ndim;
    int64_t n = case_count(in), s = l == GAPPED ? 2 : 1, off = 0;
    size_t es = ctn_dtype_size(t);
    if (l == COLUMNS) {
        for (int i = 0; i < nd; i++) {
            p->stride[i] = s;
            s *= in->dim[i];
        }
    } else {
        for (int i = nd - 1; i >= 0; i--) {
            p->stride[i] = s;
            s = s * in->dim[i] + (l == GAPPED ? 3 : 0);
        }
    }
    for (int i = 0; i < nd && l == REVERSED && n > 0; i++) {
        off += (in->dim[i] - 1) * p->stride[i];
        p->stride[i] = -p->stride[i];
    }
    ctn_desc d = {.ndim = nd};
    memcpy(d.dim, in->dim, sizeof d.dim);
    memcpy(d.stride, p->stride, sizeof d.stride);
    int64_t lo, hi;
    extent(&d, &lo, &hi);
    p->bytes = (size_t)(hi - lo + 1) * es;
    p->block = guard_new(p->bytes);
    p->origin = p->block + off * (int64_t)es;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, q = i;
        for (int k = nd - 1; k >= 0; k--) {
            at += q % in->dim[k] * p->stride[k];
            q /= in->dim[k];
        }
        ctn__elem_set(p->origin, t, at, v[i]);
    }
    p->before = malloc(p->bytes + 1);
    memcpy(p->before, p->block, p->bytes);
}

/* ---- one run -------------------------------------------------------------------------------- */

static bool context_get(which_context k, ctn_context **ctx, fault *f)
{
    static const int threads[NCONTEXTS] = {1, 2, 3, 2, 2};
    if (!contexts[k] &&
        ctn_context_new(&contexts[k],
                        CTN_OPT(ctn_context_opt, .threads = threads[k], .seed = SEED,
                                .no_fuse = k == NO_FUSE,
                                .mode = k == EAGER ? CTN_MODE_EAGER : CTN_MODE_PLANNED)) < 0)
        return fail_case(f, "context: %s", ctn_error_message());
    *ctx = contexts[k];
    return true;
}

static bool recorded(const ctn_context *ctx, const char *op)
{
    for (size_t i = 0; i < ctx->nodes.n; i++)
        if (ctx->nodes.at[i]->op && strcmp(ctx->nodes.at[i]->op->name, op) == 0) return true;
    return false;
}

/* sum(w * y), so that every element of y counts with a different weight. */
static ctn_tensor *loss_of(subject *s, ctn_context *ctx, ctn_tensor *y, void **wbuf)
{
    ctn_desc d = y->d;
    int64_t n = ctn__count(&d);
    if (!s->w) {
        s->w = calloc((size_t)n + 1, sizeof *s->w);
        s->nw = n;
        for (int64_t i = 0; i < n; i++)
            s->w[i] = (double)(float)(0.5 + ctn__uniform(SEED, 7, (uint64_t)i));
    }
    if (n != s->nw) return NULL;
    *wbuf = guard_new(ctn__bytes(&d));
    for (int64_t i = 0; i < n; i++) ctn__elem_set(*wbuf, d.dtype, i, s->w[i]);
    return ctn_sum(ctn_mul(y, ctn_input(ctx, *wbuf, d.dtype, d.ndim, d.dim)), CTN_ALL_AXES, 0);
}

static bool record(subject *s, ctn_context *ctx, ctn_tensor **x, what w, ctn_tensor **result,
                   int *n, void **wbuf, fault *f)
{
    const op_case *c = s->c;
    ctn_tensor *gx[MAX_CASE_IN];
    *n = 0;
    for (int i = 0; i < c->nin && w == GRADIENT; i++)
        if (has_grad(&c->in[i])) gx[(*n)++] = x[i] = ctn_with_grad(x[i]);
    ctn_tensor *y = c->call(c, ctx, x);
    if (!y) return fail_case(f, "the call gives NULL: %s", ctn_error_message());
    if (!(c->composed && y->d.dtype == CTN_F64) && !recorded(ctx, c->op))
        return fail_case(f, "the call does not record %s", c->op);
    if (w == FORWARD) {
        *n = 1;
        result[0] = y;
        return true;
    }
    ctn_tensor *loss = loss_of(s, ctx, y, wbuf);
    if (!loss || ctn_grad(loss, *n, gx, result) < 0)
        return fail_case(f, "gradient: %s", ctn_error_message());
    return true;
}

static bool read_all(int n, ctn_tensor *const *t, outcome *o, fault *f)
{
    for (int i = 0; i < n; i++) {
        size_t bytes = ctn__bytes(&t[i]->d);
        o->d[i] = t[i]->d;
        ctn__plain(&o->d[i]);
        o->v[i] = malloc(bytes + 1);
        o->n = i + 1;
        if (ctn_read(t[i], o->v[i], bytes) < 0) return fail_case(f, "%s", ctn_error_message());
    }
    return true;
}

static bool run_in_scope(subject *s, ctn_context *ctx, ctn_dtype t, layout l, what w,
                         const placed *p, bool replay, outcome *o, void **wbuf, fault *f)
{
    const op_case *c = s->c;
    ctn_tensor *x[MAX_CASE_IN], *result[MAX_CASE_IN];
    int n;
    for (int i = 0; i < c->nin; i++) {
        const case_in *in = &c->in[i];
        x[i] = ctn_input_strided(ctx, p[i].origin, in->dtype ? in->dtype : t, in->ndim, in->dim,
                                 l == PLAIN ? NULL : p[i].stride);
        if (!x[i]) return fail_case(f, "input %d: %s", i, ctn_error_message());
    }
    if (!record(s, ctx, x, w, result, &n, wbuf, f)) return false;
    if (!read_all(n, result, o, f)) return false;
    return !replay || replay_plan(ctx, f);
}

/* Records, computes and reads, then checks the inputs and every guard zone. */
static bool run(subject *s, which_context k, ctn_dtype t, layout l, what w, bool replay, outcome *o,
                fault *f)
{
    const op_case *c = s->c;
    ctn_context *ctx;
    placed p[MAX_CASE_IN];
    void *wbuf = NULL;
    fault why;
    *o = (outcome){0};
    ctn_error_clear();
    if (!context_get(k, &ctx, f)) return false;
    for (int i = 0; i < c->nin; i++)
        place(&p[i], &c->in[i], s->x[i], c->in[i].dtype ? c->in[i].dtype : t, l);
    bool ok = ctn_context_set_state(ctx, &(ctn_context_state){SEED, STEP}) == CTN_OK &&
              ctn_scope_begin(ctx) == CTN_OK;
    if (ok) {
        ok = run_in_scope(s, ctx, t, l, w, p, replay, o, &wbuf, &why);
        if (ctn_scope_end(ctx) < 0 && ok) ok = fail_case(&why, "scope: %s", ctn_error_message());
    } else {
        fail_case(&why, "scope: %s", ctn_error_message());
    }
    for (int i = 0; i < c->nin; i++) {
        if (memcmp(p[i].before, p[i].block, p[i].bytes) != 0) /* may explain other faults */
            ok = fail_case(&why, "input %d was written", i);
        free(p[i].before);
    }
    fault zones;
    if (!guard_check(&zones) && ok) ok = fail_case(&why, "%s", zones.text);
    for (int i = 0; i < c->nin; i++) guard_free(p[i].block);
    guard_free(wbuf);
    if (!ok) {
        outcome_free(o);
        fail_case(f, "%s, %s, %s, %s: %s", ctn_dtype_name(t), w == FORWARD ? "forward" : "gradient",
                  context_name[k], layout_name[l], why.text);
    }
    return ok;
}

/* ---- comparisons ---------------------------------------------------------------------------- */

static bool same_bits(const outcome *a, const outcome *b, const char *who, fault *f)
{
    char s[128];
    for (int i = 0; i < a->n; i++) {
        size_t es = ctn_dtype_size(a->d[i].dtype);
        if (!ctn__same_shape(&a->d[i], &b->d[i])) return fail_case(f, "%s: the shape differs", who);
        for (int64_t k = 0; k < ctn__count(&a->d[i]); k++) {
            const char *x = a->v[i], *y = b->v[i];
            if (memcmp(x + (size_t)k * es, y + (size_t)k * es, es) == 0) continue;
            return fail_case(f, "%s: result %d, element %lld of %s: expected %.17g, found %.17g",
                             who, i, (long long)k, ctn__shape_text(&a->d[i], s, sizeof s),
                             ctn__elem_get(x, a->d[i].dtype, k),
                             ctn__elem_get(y, a->d[i].dtype, k));
        }
    }
    return true;
}

static bool close_to(double expected, double found, double tol)
{
    if (isnan(expected) || isnan(found)) return isnan(expected) && isnan(found);
    if (isinf(expected) || isinf(found)) return expected == found;
    return fabs(expected - found) <= tol * fmax(1, fabs(expected));
}

static bool all_close(const double *expected, const outcome *o, int i, double tol, const char *who,
                      fault *f)
{
    char s[128];
    for (int64_t k = 0; k < ctn__count(&o->d[i]); k++) {
        double found = ctn__elem_get(o->v[i], o->d[i].dtype, k);
        if (close_to(expected[k], found, tol)) continue;
        return fail_case(f, "%s: result %d, element %lld of %s: expected %.10g, found %.10g", who,
                         i, (long long)k, ctn__shape_text(&o->d[i], s, sizeof s), expected[k],
                         found);
    }
    return true;
}

static double *as_doubles(const outcome *o, int i)
{
    int64_t n = ctn__count(&o->d[i]);
    double *v = calloc((size_t)n + 1, sizeof *v);
    for (int64_t k = 0; k < n; k++) v[k] = ctn__elem_get(o->v[i], o->d[i].dtype, k);
    return v;
}

/* ---- the checks ----------------------------------------------------------------------------- */

static bool same_sums(const op_case *c, ctn_dtype t, const outcome *a, const outcome *b,
                      const char *who, fault *f)
{
    const bool cut =
        c->engine_sums == 1 || (c->engine_sums == 2 && ctn__isa_in_use() < CTN__ISA_BEST);
    if (!cut || t != CTN_F32) return same_bits(a, b, who, f);
    bool ok = true;
    for (int i = 0; i < a->n && ok; i++) {
        double *expected = as_doubles(a, i);
        ok = all_close(expected, b, i, c->tol32 > 0 ? c->tol32 : 1e-5, who, f);
        free(expected);
    }
    return ok;
}

/* A second run (a hit), two and three threads, eager against unfused. Eager ops have operands
 * without strides, for which the engine may have another kernel. */
static bool check_repeats(subject *s, ctn_dtype t, what w, const outcome *first, fault *f)
{
    outcome a = {0}, b = {0};
    ctn_plan_stats was, is;
    fault why;
    ctn_context_get_stats(contexts[ONE_THREAD], &was);
    bool ok = run(s, ONE_THREAD, t, PLAIN, w, false, &a, &why);
    ctn_context_get_stats(contexts[ONE_THREAD], &is);
    if (ok && (is.misses != was.misses || is.hits <= was.hits))
        ok = fail_case(&why, "the second run is not a plan hit");
    ok = ok && same_bits(first, &a, "second run", &why);
    for (which_context k = TWO_THREADS; k <= THREE_THREADS && ok; k++) {
        outcome_free(&a);
        ok = run(s, k, t, PLAIN, w, true, &a, &why) &&
             same_sums(s->c, t, first, &a, context_name[k], &why);
    }
    outcome_free(&a);
    ok = ok && run(s, NO_FUSE, t, PLAIN, w, false, &a, &why) &&
         run(s, EAGER, t, PLAIN, w, false, &b, &why) &&
         same_sums(s->c, t, &a, &b, "eager against unfused plan", &why);
    outcome_free(&a);
    outcome_free(&b);
    return ok ? true
              : fail_case(f, "%s %s: %s", ctn_dtype_name(t), w == FORWARD ? "forward" : "gradient",
                          why.text);
}

static bool check_strided(subject *s, ctn_dtype t, const double *expected, double tol, fault *f)
{
    bool any = false;
    for (int i = 0; i < s->c->nin; i++) any |= s->c->in[i].ndim >= 1;
    for (layout l = GAPPED; l < NLAYOUTS && any && !s->c->no_strided; l++) {
        outcome o;
        if (!run(s, ONE_THREAD, t, l, FORWARD, true, &o, f)) return false;
        char who[64];
        snprintf(who, sizeof who, "%s inputs, %s", layout_name[l], ctn_dtype_name(t));
        bool ok = all_close(expected, &o, 0, tol, who, f);
        outcome_free(&o);
        if (!ok) return false;
    }
    return true;
}

static bool check_forward(const op_case *c, ctn_dtype t, fault *f)
{
    subject s;
    outcome y;
    double tol =
        t == CTN_F32 ? (c->tol32 > 0 ? c->tol32 : 1e-5) : (c->tol64 > 0 ? c->tol64 : 1e-12);
    subject_make(&s, c, t == CTN_F32);
    bool ok = run(&s, ONE_THREAD, t, PLAIN, FORWARD, true, &y, f);
    if (ok) {
        double *expected = as_doubles(&y, 0);
        if (c->ref) {
            memset(expected, 0xff, (size_t)ctn__count(&y.d[0]) * sizeof *expected);
            c->ref(c, (const double *const *)s.x, &y.d[0], expected);
            char who[32];
            snprintf(who, sizeof who, "%s against the reference", ctn_dtype_name(t));
            ok = all_close(expected, &y, 0, tol, who, f);
        }
        ok = ok && check_repeats(&s, t, FORWARD, &y, f) && check_strided(&s, t, expected, tol, f);
        free(expected);
    }
    outcome_free(&y);
    subject_free(&s);
    return ok;
}

/* Gradients in f32 against those in f64, from the same numbers, and the repeated runs of both. */
static bool check_gradient_types(const op_case *c, fault *f)
{
    subject s;
    outcome g64 = {0}, g32 = {0};
    subject_make(&s, c, true);
    bool ok = run(&s, ONE_THREAD, CTN_F64, PLAIN, GRADIENT, true, &g64, f) &&
              run(&s, ONE_THREAD, CTN_F32, PLAIN, GRADIENT, true, &g32, f) &&
              check_repeats(&s, CTN_F64, GRADIENT, &g64, f) &&
              check_repeats(&s, CTN_F32, GRADIENT, &g32, f);
    double tol = 10 * (c->tol32 > 0 ? c->tol32 : 1e-5);
    for (int i = 0; i < g64.n && ok; i++) {
        double *expected = as_doubles(&g64, i);
        ok = all_close(expected, &g32, i, tol, "gradient in f32 against f64", f);
        free(expected);
    }
    outcome_free(&g64);
    outcome_free(&g32);
    subject_free(&s);
    return ok;
}

/* ---- finite differences --------------------------------------------------------------------- */

typedef struct {
    subject s;
    placed p[MAX_CASE_IN]; /* used for inputs without a gradient */
} differentiated;

static ctn_tensor *case_function(void *self, ctn_context *ctx, ctn_tensor *const *x)
{
    const differentiated *d = self;
    const op_case *c = d->s.c;
    ctn_tensor *in[MAX_CASE_IN];
    for (int i = 0, k = 0; i < c->nin; i++) {
        const case_in *ci = &c->in[i];
        in[i] = has_grad(ci) ? x[k++]
                             : ctn_input(ctx, d->p[i].origin, ci->dtype ? ci->dtype : CTN_F64,
                                         ci->ndim, ci->dim);
        if (!in[i]) return NULL;
    }
    return c->call(c, ctx, in);
}

/* Second order: the sum of squares of the gradients of sum(y y). Squares, so that the gradient
 * depends on every input even if the op is linear. */
static ctn_tensor *case_gradient(void *self, ctn_context *ctx, ctn_tensor *const *x)
{
    const differentiated *d = self;
    const op_case *c = d->s.c;
    ctn_tensor *gx[MAX_CASE_IN], *total = NULL;
    int n = 0;
    for (int i = 0; i < c->nin; i++) n += has_grad(&c->in[i]);
    ctn_tensor *y = case_function(self, ctx, x);
    ctn_tensor *loss = ctn_sum(ctn_mul(y, y), CTN_ALL_AXES, 0);
    if (!loss || ctn_grad(loss, n, x, gx) < 0) return NULL;
    for (int i = 0; i < n; i++) {
        ctn_tensor *t = ctn_sum(ctn_mul(gx[i], gx[i]), CTN_ALL_AXES, 0);
        total = total ? ctn_add(total, t) : t;
        if (!total) return NULL;
    }
    return total;
}

static bool check_differences(const op_case *c, fault *f)
{
    differentiated d = {0};
    ctn_gradcheck_input x[MAX_CASE_IN];
    ctn_context *ctx;
    int n = 0;
    int64_t elements = 0;
    fault zones;
    subject_make(&d.s, c, false);
    for (int i = 0; i < c->nin; i++) {
        const case_in *in = &c->in[i];
        place(&d.p[i], in, d.s.x[i], in->dtype ? in->dtype : CTN_F64, PLAIN);
        if (!has_grad(in)) continue;
        elements += case_count(in);
        x[n++] = (ctn_gradcheck_input){in->ndim, in->dim, d.s.x[i]};
    }
    ctn_error_clear();
    bool ok = context_get(ONE_THREAD, &ctx, f);
    if (ok && n == 0) ok = fail_case(f, "the case asks for gradients, but no input has one");
    double worst;
    if (ok && elements <= MAX_ELEMENTS_FOR_DIFFERENCES) {
        if (ctn_gradcheck(ctx, case_function, &d, n, x, 1e-6, &worst) < 0)
            ok = fail_case(f, "order 1: %s", ctn_error_message());
        if (ok && c->grad >= 2 && ctn_gradcheck(ctx, case_gradient, &d, n, x, 1e-5, &worst) < 0)
            ok = fail_case(f, "order 2: %s", ctn_error_message());
    }
    if (!guard_check(&zones) && ok) ok = fail_case(f, "gradcheck: %s", zones.text);
    for (int i = 0; i < c->nin; i++) {
        free(d.p[i].before);
        guard_free(d.p[i].block);
    }
    subject_free(&d.s);
    return ok;
}

bool check_case(const op_case *c, fault *f)
{
    f->text[0] = 0;
    if (guard_blocks() > MANY_BLOCKS && !check_finish(f)) return false;
    if (!check_forward(c, CTN_F32, f)) return false;
    if (!c->only_f32 && !check_forward(c, CTN_F64, f)) return false;
    if (c->grad < 1) return true;
    if (c->only_f32)
        return fail_case(f, "gradients are checked in f64, but the case says only_f32");
    return check_gradient_types(c, f) && check_differences(c, f);
}

bool check_finish(fault *f)
{
    for (int k = 0; k < NCONTEXTS; k++) {
        ctn_context_free(contexts[k]);
        contexts[k] = NULL;
    }
    if (!guard_check(f)) return false;
    if (guard_blocks() != 0)
        return fail_case(f, "%lld blocks were not freed", (long long)guard_blocks());
    return true;
}
