/* SPDX-License-Identifier: Apache-2.0
 *
 * A reference interpreter for random programs. It executes each instruction immediately, in
 * double, rounds the result to f32 if a context would store it so, and has its own reverse mode. It
 * shares no code with the library. It does not support second derivatives and random numbers:
 * values that depend on them are marked as unknown.
 */
#include "random_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A test that runs out of memory ends at once. */
static void *grown(void *p, size_t bytes)
{
    void *n = realloc(p, bytes);
    if (!n) abort();
    return n;
}

double *rp_note(record *o, int at, int run, int64_t n, bool known)
{
    if (o->n == o->cap) {
        o->cap = o->cap ? 2 * o->cap : 64;
        o->s = grown(o->s, (size_t)o->cap * sizeof *o->s);
    }
    observation *s = &o->s[o->n++];
    *s = (observation){at, run, n, calloc((size_t)n + 1, sizeof(double)), known};
    return s->v;
}

void rp_forget(record *o)
{
    for (int k = 0; k < o->n; k++) free(o->s[k].v);
    free(o->s);
    *o = (record){0};
}

/* From -1 to 1, rounded to f32. */
static double number(int run, int k, int64_t i)
{
    uint32_t x = (uint32_t)(run * 7919 + k * 104729) + (uint32_t)i * 2654435761u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    x *= 3266489917u;
    x ^= x >> 16;
    return (double)(x >> 8) / (1 << 23) - 1;
}

/* In a program with NaN, a quarter of the inputs and variables have some. */
double rp_value(const program *g, int run, int k, int64_t i)
{
    const double x = number(run, k, i);
    if (!g->nan || number(run + 1, k, 0) > -0.5 || fabs(x) > 0.1) return x;
    if (g->infinite && fabs(x) > 0.02) return x > 0 ? INFINITY : -INFINITY;
    return NAN;
}

int64_t rp_gather_index(int run, int k, int64_t i, int64_t n)
{
    return (int64_t)((number(run, k, i) + 1) * 0.499 * (double)n);
}

void rp_unravel(const shape *s, int64_t i, int64_t *at)
{
    for (int k = s->nd - 1; k >= 0; k--) {
        at[k] = i % s->d[k];
        i /= s->d[k];
    }
}

int64_t rp_ravel(const shape *s, const int64_t *at)
{
    int64_t i = 0;
    for (int k = 0; k < s->nd; k++) i = i * s->d[k] + at[k];
    return i;
}

/* One value. Most ops are sums of terms w * in[k][i] added to element o, and their gradient
 * follows the same terms backwards. */
typedef struct rv {
    op_id op;
    shape sh;
    int64_t n, terms, cap;
    double *v, *g, s;
    struct {
        int32_t o, i;
        int k;
        double w;
    } *t;
    bool grad, second, on; /* second: is itself a gradient and not differentiated here */
    int var;
    bool ta, tb;
    struct rv *in[2], *older;
} rv;

typedef struct {
    const program *g;
    record *log;
    int run, contributions[POOLS];
    bool known, grad_on, f64;
    rv *newest, *r[REGS];
    double *var[VARS], *grad[VARS], *kept[RETAINED];
    rv *pending[RETAINED]; /* to be retained when the scope ends */
} ref;

static rv *rv_new(ref *m, op_id op, const shape *s, rv *a, rv *b)
{
    rv *r = calloc(1, sizeof *r);
    r->op = op;
    r->sh = *s;
    r->n = rp_count(s);
    r->v = calloc((size_t)r->n + 1, sizeof(double));
    r->g = calloc((size_t)r->n + 1, sizeof(double));
    r->var = -1;
    r->in[0] = a;
    r->in[1] = b;
    r->grad = m->grad_on && ((a && a->grad) || (b && b->grad));
    r->older = m->newest;
    m->newest = r;
    return r;
}

static void term(rv *r, int64_t o, int k, int64_t i, double w)
{
    if (r->terms == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 32;
        r->t = grown(r->t, (size_t)r->cap * sizeof *r->t);
    }
    r->t[r->terms].o = (int32_t)o;
    r->t[r->terms].i = (int32_t)i;
    r->t[r->terms].k = k;
    r->t[r->terms++].w = w;
    r->v[o] += w * r->in[k]->v[i];
}

static int64_t spread(const shape *from, const shape *to, int64_t o)
{
    int64_t at[MAXDIM], f[MAXDIM];
    rp_unravel(to, o, at);
    for (int k = 0; k < from->nd; k++) f[k] = from->d[k] == 1 ? 0 : at[k + to->nd - from->nd];
    return rp_ravel(from, f);
}

/* x as a context stores it. */
static double stored(const ref *m, double x)
{
    return m->f64 ? x : (double)(float)x;
}

static double f(const ref *m, op_id op, double x, double s)
{
    switch (op) {
    case RELU: return x < 0 ? 0 : x;
    case TANH: return tanh(x);
    case NEG: return -x;
    case SQUARE: return x * x;
    case ABS: return fabs(x);
    case SIGMOID: return 1 / (1 + exp(-x));
    case SCALE: return stored(m, s) * x;
    default: return x + stored(m, s);
    }
}

static double df(op_id op, double x, double y, double s)
{
    switch (op) {
    case RELU: return x > 0;
    case TANH: return 1 - y * y;
    case NEG: return -1;
    case SQUARE: return 2 * x;
    case ABS: return (x > 0) - (x < 0);
    case SIGMOID: return y * (1 - y);
    case SCALE: return s;
    default: return 1;
    }
}

static void ref_product(rv *r, bool back)
{
    rv *a = r->in[0], *b = r->in[1];
    int64_t M = r->sh.d[0], N = r->sh.d[1], K = a->sh.d[r->ta ? 0 : 1];
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++)
            for (int64_t k = 0; k < K; k++) {
                int64_t x = r->ta ? k * M + i : i * K + k, y = r->tb ? j * K + k : k * N + j;
                int64_t o = i * N + j;
                if (!back) r->v[o] += a->v[x] * b->v[y];
                if (back) a->g[x] += r->g[o] * b->v[y];
                if (back) b->g[y] += r->g[o] * a->v[x];
            }
}

/* Terms of the ops that only move or add elements. */
static void ref_terms(rv *r, const ins *i, int run, int at)
{
    const shape *x = &r->in[0]->sh, *s = &r->sh;
    int64_t to[MAXDIM] = {0}, n = r->in[0]->n;
    const bool cut = i->op == GATHER || i->op == SLICE || i->op == SKIP;
    const int64_t over = cut || i->op == BROADCAST ? r->n : n;
    for (int64_t e = 0; e < over; e++) {
        rp_unravel(cut || i->op == BROADCAST ? s : x, e, to);
        if (i->op == TRANSPOSE) {
            int64_t o[MAXDIM];
            for (int k = 0; k < s->nd; k++) o[k] = to[i->axes[k]];
            term(r, rp_ravel(s, o), 0, e, 1);
        } else if (cut) {
            if (i->op == SLICE) to[i->axis] += i->at;
            else if (i->op == SKIP) to[i->axis] = i->at + 2 * to[i->axis];
            else to[i->axis] = rp_gather_index(run, at, e, x->d[i->axis]);
            term(r, e, 0, rp_ravel(x, to), 1);
        } else if (i->op == BROADCAST) {
            term(r, e, 0, spread(x, s, e), 1);
        } else if (i->op == CONCAT) {
            term(r, rp_ravel(s, to), 0, e, 1);
            to[i->axis] += x->d[i->axis];
            term(r, rp_ravel(s, to), 1, e, 1);
        } else { /* reductions */
            int64_t o = 0;
            for (int k = 0; k < x->nd; k++) {
                bool red = i->n == 0;
                for (int j = 0; j < i->n; j++) red |= i->axes[j] == k;
                if (!red) o = o * x->d[k] + to[k];
            }
            term(r, o, 0, e, i->op == MEAN ? (double)r->n / (double)n : 1);
        }
    }
}

static void ref_split(ref *m, const ins *i)
{
    rv *x = m->r[i->in[0]];
    shape s[2] = {i->sh, x->sh};
    s[1].d[i->axis] -= s[0].d[i->axis];
    for (int p = 0; p < 2; p++) {
        rv *r = rv_new(m, SPLIT, &s[p], x, NULL);
        int64_t at[MAXDIM];
        for (int64_t e = 0; e < r->n; e++) {
            rp_unravel(&s[p], e, at);
            if (p) at[i->axis] += s[0].d[i->axis];
            term(r, e, 0, rp_ravel(&x->sh, at), 1);
        }
        m->r[p ? i->out2 : i->out] = r;
    }
}

/* The share of a gradient that an operand gets. A maximum passes it on or does not, so that NaN and
 * infinity do not reach an operand that was not chosen. */
static double part(const rv *r, int64_t e, double by)
{
    return r->op == MAXIMUM && by == 0 ? 0 : r->g[e] * by;
}

static void ref_back(ref *m, rv *y)
{
    for (rv *r = m->newest; r; r = r->older) {
        memset(r->g, 0, (size_t)r->n * sizeof(double));
        r->on = false;
    }
    for (int64_t e = 0; e < y->n; e++) y->g[e] = 1;
    y->on = true;
    for (rv *r = m->newest; r; r = r->older) {
        if (!r->on || !r->grad) continue;
        if (r->second) m->known = false;
        rv *a = r->in[0], *b = r->in[1];
        for (int k = 0; k < 2; k++)
            if (r->in[k]) r->in[k]->on |= r->in[k]->grad;
        for (int64_t t = 0; t < r->terms; t++)
            r->in[r->t[t].k]->g[r->t[t].i] += r->t[t].w * r->g[r->t[t].o];
        if (r->op == MATMUL || r->op == LINEAR) ref_product(r, true);
        if (r->op >= RELU && r->op <= SHIFT)
            for (int64_t e = 0; e < r->n; e++)
                a->g[e] += r->op == RELU && !(a->v[e] > 0)
                               ? 0
                               : r->g[e] * df(r->op, a->v[e], r->v[e], r->s);
        if (r->op == MUL || r->op == MAXIMUM)
            for (int64_t e = 0; e < r->n; e++) {
                int64_t i = spread(&a->sh, &r->sh, e), j = spread(&b->sh, &r->sh, e);
                double x = a->v[i], z = b->v[j], share = x == z ? 0.5 : 1; /* NaN: 1 for both */
                a->g[i] += part(r, e, r->op == MUL ? z : x < z ? 0 : share);
                b->g[j] += part(r, e, r->op == MUL ? x : z < x ? 0 : share);
            }
    }
}

static rv *ref_op(ref *m, int at, const ins *i, op_id op)
{
    rv *a = i->nin > 0 ? m->r[i->in[0]] : NULL, *b = i->nin > 1 ? m->r[i->in[1]] : NULL;
    bool cut_off = op == DETACH || op == WITH_GRAD || op == DROPOUT;
    if (op == GRAD) {
        ref_back(m, a);
        rv *r = rv_new(m, GRAD, &b->sh, NULL, NULL);
        for (int64_t e = 0; e < r->n; e++) r->v[e] = b->g[e];
        r->grad = r->second = m->grad_on;
        return r;
    }
    if (op == SPLIT) {
        ref_split(m, i);
        return m->r[i->out];
    }
    rv *r = rv_new(m, op, &i->sh, cut_off ? NULL : a, cut_off ? NULL : b);
    r->s = op == SCALE ? i->s * (1 + m->run) : i->s;
    r->ta = i->flag[0];
    r->tb = op == LINEAR || i->flag[1];
    if (op == LINEAR) r->ta = false;
    if (op >= TRANSPOSE && op <= GATHER && op != RESHAPE) ref_terms(r, i, m->run, at);
    if (op == MATMUL || op == LINEAR) ref_product(r, false);
    for (int64_t e = 0; e < r->n; e++) {
        int64_t x = b && op <= MAXIMUM ? spread(&a->sh, &r->sh, e) : e;
        int64_t y = b && op <= MAXIMUM ? spread(&b->sh, &r->sh, e) : e;
        if (op == INPUT) r->v[e] = rp_value(m->g, m->run, at, e);
        if (op == NUMBER) r->v[e] = i->s;
        if (op == FULL) r->v[e] = i->s * (1 + m->run);
        if (op == USE) r->v[e] = m->var[i->var][e];
        if (op == DETACH || op == WITH_GRAD) r->v[e] = a->v[e];
        if (op == RETAINED_VALUE) r->v[e] = m->kept[i->var][e];
        if (op >= RELU && op <= SHIFT) r->v[e] = f(m, op, a->v[e], r->s);
        if (op == ADD || op == SUB) {
            term(r, e, 0, x, 1);
            term(r, e, 1, y, op == ADD ? 1 : -1);
        }
        if (op == MUL) r->v[e] = a->v[x] * b->v[y];
        if (op == MAXIMUM) r->v[e] = a->v[x] > b->v[y] || isnan(a->v[x]) ? a->v[x] : b->v[y];
        if (op == WHERE) term(r, e, m->r[i->in[2]]->v[e] < 0 ? 0 : 1, e, 1);
        if (op == RESHAPE) term(r, e, 0, e, 1);
    }
    for (int64_t e = 0; e < r->n; e++) r->v[e] = stored(m, r->v[e]);
    if (op == USE) {
        r->var = i->var;
        r->grad = m->grad_on && i->var < PARAMS;
    }
    if (op == WITH_GRAD) r->grad = true;
    if (op == RANDOM || op == DROPOUT) m->known = false;
    return r;
}

static void ref_note(ref *m, int at, const double *v, int64_t n)
{
    double *o = rp_note(m->log, at, m->run, n, m->known);
    for (int64_t e = 0; e < n; e++) o[e] = stored(m, v[e]);
}

static void ref_backward(ref *m, int pool, rv *loss)
{
    ref_back(m, loss);
    if (m->contributions[pool]++ == 0)
        for (int v = 0; v < PARAMS; v++)
            if (rp_pool_of(v) == pool)
                memset(m->grad[v], 0, (size_t)rp_count(&m->g->var[v]) * sizeof(double));
    for (rv *r = m->newest; r; r = r->older)
        if (r->var >= 0 && r->grad && rp_pool_of(r->var) == pool)
            for (int64_t e = 0; e < r->n; e++) m->grad[r->var][e] += r->g[e];
}

static void ref_end(ref *m)
{
    for (int k = 0; k < RETAINED; k++) {
        const rv *r = m->pending[k];
        if (r) memcpy(m->kept[k], r->v, (size_t)r->n * sizeof(double));
        m->pending[k] = NULL;
    }
    for (rv *r = m->newest, *older; r; r = older) {
        older = r->older;
        free(r->v);
        free(r->g);
        free(r->t);
        free(r);
    }
    m->newest = NULL;
}

static void ref_assign_old(ref *m, int at, const ins *i)
{
    rv *x = rv_new(m, DETACH, &m->g->var[i->var], NULL, NULL), *a = m->r[i->in[0]];
    rv *y = rv_new(m, DETACH, &x->sh, NULL, NULL);
    double *v = m->var[i->var];
    for (int64_t e = 0; e < x->n; e++) {
        x->v[e] = i->flag[0] ? a->v[e] : v[e];
        v[e] = i->flag[0] ? -a->v[e] : a->v[e];
        y->v[e] = stored(m, tanh(x->v[e]));
    }
    m->r[i->out] = y;
    if (i->flag[1]) ref_note(m, at, x->v, x->n);
}

static void ref_effect(ref *m, int at, const ins *i)
{
    rv *a = i->op == SWAP ? NULL : m->r[i->in[0]];
    bool isvar = i->var >= 0 && i->op != RETAIN;
    int64_t n = isvar ? rp_count(&m->g->var[i->var]) : 0;
    if (!(i->cond >> m->run & 1)) return;
    switch (i->op) {
    case ASSIGN: memcpy(m->var[i->var], a->v, (size_t)n * sizeof(double)); break;
    case SWAP:
        for (int64_t e = 0; e < n; e++) {
            double x = m->var[i->var][e];
            m->var[i->var][e] = m->var[i->var2][e];
            m->var[i->var2][e] = x;
        }
        break;
    case ASSIGN_OLD: ref_assign_old(m, at, i); break;
    case READ: ref_note(m, at, a->v, a->n); break;
    case READ_VAR: ref_note(m, at, m->var[i->var], n); break;
    case READ_GRAD: ref_note(m, at, m->grad[i->var], n); break;
    case SET_VAR:
        for (int64_t e = 0; e < n; e++) m->var[i->var][e] = rp_value(m->g, m->run, at, e);
        break;
    case BACKWARD: ref_backward(m, i->pool, a); break;
    case STEP:
        m->contributions[i->pool] = 0;
        for (int v = 0; v < PARAMS; v++)
            for (int64_t e = 0; rp_pool_of(v) == i->pool && e < rp_count(&m->g->var[v]); e++)
                m->var[v][e] = stored(m, m->var[v][e] - rp_rate * m->grad[v][e]);
        break;
    case RETAIN: m->pending[i->var] = a; break;
    case GRAD_OFF: m->grad_on = false; break;
    case GRAD_ON: m->grad_on = true; break;
    case NEW_SCOPE: ref_end(m); break;
    default: break;
    }
}

void rp_run_reference(const program *g, bool f64, record *log)
{
    ref m = {.g = g, .log = log, .known = true, .grad_on = true, .f64 = f64};
    for (int v = 0; v < VARS; v++) {
        m.var[v] = calloc((size_t)rp_count(&g->var[v]) + 1, sizeof(double));
        m.grad[v] = calloc((size_t)rp_count(&g->var[v]) + 1, sizeof(double));
    }
    for (int k = 0; k < RETAINED; k++)
        m.kept[k] = calloc((size_t)rp_count(&g->retained[k]) + 1, sizeof(double));
    for (m.run = 0; m.run < RUNS; m.run++) {
        m.known |= m.contributions[0] + m.contributions[1] == 0;
        for (int v = 0; v < VARS; v++)
            for (int64_t e = 0; e < rp_count(&g->var[v]); e++)
                m.var[v][e] = rp_value(g, m.run, 1000 + v, e);
        for (int at = 0; at < g->n; at++) {
            const ins *i = &g->p[at];
            if (i->op >= ASSIGN) ref_effect(&m, at, i);
            else m.r[i->out] = ref_op(&m, at, i, i->cond >> m.run & 1 ? i->op : i->other);
        }
        for (int v = 0; v < VARS; v++) ref_note(&m, g->n + v, m.var[v], rp_count(&g->var[v]));
        ref_end(&m);
    }
    for (int v = 0; v < VARS; v++) {
        free(m.var[v]);
        free(m.grad[v]);
    }
    for (int k = 0; k < RETAINED; k++) free(m.kept[k]);
}
