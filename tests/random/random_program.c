/* SPDX-License-Identifier: Apache-2.0
 *
 * The generator of random programs. For each register it tracks what a context would know:
 * shape, scope, whether gradients flow through it and which variables it has read. So the
 * generated programs are free of errors: they never use a register that is gone, and no gradient
 * flows through a variable that has changed since it was read.
 */
#include "random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

const char *const rp_op_name[] = {
#define NAME(x) #x,
    OPS(NAME)
#undef NAME
};

static uint32_t draw(program *g, uint32_t n)
{
    g->s ^= g->s << 13;
    g->s ^= g->s >> 17;
    g->s ^= g->s << 5;
    return (g->s >> 3) % n;
}

int rp_pool_of(int var)
{
    return var < 2 ? 0 : var < PARAMS ? 1 : -1;
}

int64_t rp_count(const shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->nd; i++) n *= s->d[i];
    return n;
}

static bool same(const shape *a, const shape *b)
{
    if (a->nd != b->nd) return false;
    for (int i = 0; i < a->nd; i++)
        if (a->d[i] != b->d[i]) return false;
    return true;
}

static shape random_shape(program *g)
{
    static const int64_t small[] = {1, 2, 3, 4, 5}, big[] = {1, 64, 70};
    shape s = {0};
    if (g->plain) return g->big ? (shape){2, {64, 70}} : (shape){2, {3, 5}};
    s.nd = (int)draw(g, g->big ? 3 : 4);
    for (int i = 0; i < s.nd; i++) s.d[i] = g->big ? big[draw(g, 3)] : small[draw(g, 5)];
    if (g->zero && s.nd > 0 && draw(g, 6) == 0) s.d[draw(g, (uint32_t)s.nd)] = 0;
    return s;
}

static ins *add_ins(program *g, op_id op)
{
    ins *i = &g->p[g->n++];
    *i = (ins){.op = op, .other = op, .cond = 15, .out = -1, .out2 = -1, .var = -1, .var2 = -1};
    if (g->n >= LEN - 40) g->full = true;
    return i;
}

static int new_reg(program *g, const shape *s, bool grad)
{
    g->r[g->nreg] = (reg){.alive = true, .grad = grad, .level = g->level, .var = -1, .sh = *s};
    if (g->nreg >= REGS - 26) g->full = true;
    return g->nreg++;
}

/* Creates the result of i, whose inputs are set. */
static int result(program *g, ins *i, const shape *s)
{
    bool grad = false;
    for (int k = 0; k < i->nin; k++) grad |= g->r[i->in[k]].grad;
    int o = new_reg(g, s, grad && g->grad_on);
    reg *r = &g->r[o];
    for (int k = 0; k < i->nin && r->grad; k++) {
        const reg *a = &g->r[i->in[k]];
        r->vars |= a->var >= 0 ? 1u << a->var : a->vars;
        if (!a->grad) continue;
        r->stale |= a->stale;
        r->pools |= a->pools;
        r->deps |= a->deps | (uint64_t)1 << i->in[k];
    }
    i->sh = *s;
    i->out = o;
    return o;
}

static int unary(program *g, op_id op, int a)
{
    ins *i = add_ins(g, op);
    i->in[0] = a;
    i->nin = 1;
    i->s = (double)draw(g, 100) / 50 - 1;
    int o = result(g, i, &g->r[a].sh);
    if (op == DETACH || op == WITH_GRAD) { /* starts a new history */
        g->r[o] = (reg){.alive = true, .grad = op == WITH_GRAD, .level = g->level, .var = -1};
        g->r[o].sh = g->r[a].sh;
    }
    return o;
}

static int leaf(program *g, op_id op, const shape *s)
{
    ins *i = add_ins(g, op);
    i->s = (double)draw(g, 100) / 50 - 1;
    i->flag[0] = op == INPUT && !g->plain && draw(g, 4) == 0; /* column-major */
    i->flag[1] = op == INPUT && !g->plain && draw(g, 4) == 0; /* every second element */
    int o = result(g, i, s);
    g->r[o].free_leaf = op == INPUT || op == NUMBER || op == RETAINED_VALUE;
    return o;
}

static int use(program *g, int v)
{
    bool grad = v < PARAMS && g->grad_on;
    for (int k = 0; k < g->nreg; k++)
        if (g->r[k].alive && g->r[k].var == v && g->r[k].grad == grad) return k;
    ins *i = add_ins(g, USE);
    i->var = v;
    int o = result(g, i, &g->var[v]);
    g->r[o].var = v;
    g->r[o].grad = grad;
    g->r[o].vars = 1u << v;
    g->r[o].pools = grad ? 1u << rp_pool_of(v) : 0;
    return o;
}

static int pick(program *g)
{
    int seen = 0, k = -1;
    for (int i = 0; i < g->nreg; i++)
        if (g->r[i].alive && (!g->plain || g->r[i].sh.nd > 0) && draw(g, (uint32_t)++seen) == 0)
            k = i;
    if (k >= 0 && draw(g, 8) != 0) return k;
    shape s = random_shape(g);
    if (draw(g, 3) == 0) return use(g, (int)draw(g, VARS));
    return leaf(g, draw(g, 3) ? INPUT : FULL, &s);
}

static int broadcast(program *g, int a, const shape *to)
{
    if (same(&g->r[a].sh, to)) return a;
    ins *i = add_ins(g, BROADCAST);
    i->in[0] = a;
    i->nin = 1;
    return result(g, i, to);
}

static int reduce(program *g, op_id op, int a, int n, const int64_t *axes, bool keep)
{
    shape s = {0}, x = g->r[a].sh;
    for (int k = 0; k < x.nd; k++) {
        bool red = n == 0;
        for (int j = 0; j < n; j++) red |= axes[j] == k;
        if (!red) s.d[s.nd++] = x.d[k];
        else if (keep) s.d[s.nd++] = 1;
    }
    if (rp_count(&x) == 0) op = SUM;
    ins *i = add_ins(g, op);
    i->in[0] = a;
    i->nin = 1;
    i->n = n;
    for (int j = 0; j < n; j++) i->axes[j] = axes[j];
    i->flag[0] = keep;
    return result(g, i, &s);
}

/* Brings a into the shape of a variable or another value. */
static int fit(program *g, int a, const shape *s)
{
    if (same(&g->r[a].sh, s)) return a;
    return broadcast(g, reduce(g, MEAN, a, 0, NULL, false), s);
}

static bool joined(const shape *a, const shape *b, shape *o)
{
    o->nd = a->nd > b->nd ? a->nd : b->nd;
    for (int k = 1; k <= o->nd; k++) {
        int64_t x = k <= a->nd ? a->d[a->nd - k] : 1, y = k <= b->nd ? b->d[b->nd - k] : 1;
        if (x != y && x != 1 && y != 1) return false;
        o->d[o->nd - k] = x == 1 ? y : x;
    }
    return rp_count(o) <= 20000;
}

static int binary(program *g, op_id op, int a, int b)
{
    shape s;
    if (g->plain) b = fit(g, b, &g->r[a].sh);
    else if (!joined(&g->r[a].sh, &g->r[b].sh, &s)) b = fit(g, b, &g->r[a].sh);
    joined(&g->r[a].sh, &g->r[b].sh, &s);
    ins *i = add_ins(g, op);
    i->in[0] = a;
    i->in[1] = b;
    i->nin = 2;
    return result(g, i, &s);
}

static int view(program *g, int a)
{
    shape x = g->r[a].sh, s = x;
    ins *i;
    if (draw(g, 2) && x.nd > 1) { /* transpose */
        i = add_ins(g, TRANSPOSE);
        i->n = x.nd;
        int turn = 1 + (int)draw(g, (uint32_t)x.nd - 1);
        for (int k = 0; k < x.nd; k++) i->axes[k] = (k + turn) % x.nd;
        for (int k = 0; k < x.nd; k++) s.d[k] = x.d[i->axes[k]];
    } else if (draw(g, 2) || x.nd == MAXDIM) {
        s = (shape){1, {rp_count(&x)}};
        if (x.nd == 1 && x.d[0] % 2 == 0 && x.d[0] > 0) s = (shape){2, {2, x.d[0] / 2}};
        i = add_ins(g, RESHAPE);
    } else {
        for (int k = x.nd; k > 0; k--) s.d[k] = x.d[k - 1];
        s.nd++;
        s.d[0] = g->big ? 1 : 1 + draw(g, 3);
        if (rp_count(&s) > 20000) s.d[0] = 1;
        i = add_ins(g, BROADCAST);
    }
    i->in[0] = a;
    i->nin = 1;
    return result(g, i, &s);
}

static int matrix(program *g, int a)
{
    shape x = g->r[a].sh, s = {2, {1, 1}};
    if (x.nd == 2) return a;
    for (int k = 0; k < x.nd; k++) s.d[k < x.nd - 1 ? 0 : 1] *= x.d[k];
    ins *i = add_ins(g, RESHAPE);
    i->in[0] = a;
    i->nin = 1;
    return result(g, i, &s);
}

/* Every second element along an axis. */
static int every_second(program *g, int a, int64_t axis)
{
    shape s = g->r[a].sh;
    ins *i = add_ins(g, SKIP);
    i->axis = axis;
    i->at = s.d[axis] > 1 ? draw(g, 2) : 0;
    s.d[axis] = (s.d[axis] - i->at + 1) / 2;
    i->in[0] = a;
    i->nin = 1;
    return result(g, i, &s);
}

/* -infinity becomes NaN in a relu that is fused into linear. */
static int product(program *g, int a)
{
    a = matrix(g, a);
    bool ta = draw(g, 3) == 0, linear = draw(g, 2) && !g->infinite;
    if (draw(g, 3) == 0) a = every_second(g, a, draw(g, 2));
    if (draw(g, 3) == 0) a = every_second(g, a, draw(g, 2));
    if (linear) ta = false;
    int64_t m = g->r[a].sh.d[ta ? 1 : 0], k = g->r[a].sh.d[ta ? 0 : 1], n = g->big ? 64 : 3;
    bool tb = linear || draw(g, 2);
    shape bs = {2, {tb ? n : k, tb ? k : n}}, s = {2, {m, n}};
    const int64_t steps = draw(g, 3);
    if (steps < 2) bs.d[steps] *= 2;
    int b = fit(g, pick(g), &bs);
    if (steps < 2) b = every_second(g, b, steps);
    ins *i = add_ins(g, linear ? LINEAR : MATMUL);
    i->in[0] = a;
    i->in[1] = b;
    i->nin = 2;
    i->flag[0] = ta;
    i->flag[1] = tb;
    int o = result(g, i, &s);
    return unary(g, draw(g, 3) ? RELU : TANH, o);
}

static int cut(program *g, int a)
{
    shape x = g->r[a].sh, s = x;
    if (x.nd == 0) return unary(g, TANH, a);
    int64_t ax = draw(g, (uint32_t)x.nd);
    switch (draw(g, 5)) {
    case 4: return every_second(g, a, ax);
    case 0: {
        ins *i = add_ins(g, SLICE);
        i->axis = ax;
        s.d[ax] = x.d[ax] > 1 ? x.d[ax] - 1 : x.d[ax];
        i->at = x.d[ax] > 1 ? draw(g, 2) : 0;
        i->in[0] = a;
        i->nin = 1;
        return result(g, i, &s);
    }
    case 1: {
        int b = fit(g, pick(g), &x);
        ins *i = add_ins(g, CONCAT);
        i->axis = ax;
        s.d[ax] = 2 * x.d[ax];
        i->in[0] = a;
        i->in[1] = b;
        i->nin = 2;
        if (rp_count(&s) > 20000) {
            i->op = i->other = ADD;
            s = x;
        }
        return result(g, i, &s);
    }
    case 2: {
        if (x.d[ax] < 2) return view(g, a);
        ins *i = add_ins(g, SPLIT);
        shape s2 = x;
        i->axis = ax;
        s.d[ax] = x.d[ax] / 2;
        s2.d[ax] = x.d[ax] - s.d[ax];
        i->in[0] = a;
        i->nin = 1;
        int o2 = result(g, i, &s2), o = result(g, i, &s);
        i->out2 = o2;
        return draw(g, 2) ? o : o2;
    }
    default: {
        if (x.d[ax] == 0) return view(g, a);
        ins *i = add_ins(g, GATHER);
        i->axis = ax;
        i->in[0] = a;
        i->nin = 1;
        return result(g, i, &s);
    }
    }
}

static int compute(program *g)
{
    static const op_id un[] = {RELU, TANH, NEG, SQUARE, ABS, SIGMOID, SCALE, SHIFT};
    static const op_id bin[] = {ADD, SUB, MUL, MAXIMUM};
    int a = pick(g), o;
    switch (draw(g, g->plain ? 6 : 12)) {
    case 0:
    case 1:
    case 2:
        o = unary(g, un[draw(g, 8)], a);
        if (draw(g, 4) == 0) { /* in some runs another op */
            g->p[g->n - 1].other = un[draw(g, 8)];
            g->p[g->n - 1].cond = draw(g, 16);
        }
        return o;
    case 3:
    case 4: return unary(g, TANH, binary(g, MUL, a, pick(g)));
    case 5: return unary(g, SCALE, binary(g, bin[draw(g, 4)], a, pick(g)));
    case 6: {
        int b = pick(g);
        int c = fit(g, b, &g->r[a].sh), d = fit(g, pick(g), &g->r[a].sh);
        ins *i = add_ins(g, WHERE); /* c where a < 0, else d */
        i->in[0] = c;
        i->in[1] = d;
        i->in[2] = a;
        i->nin = 2;
        o = result(g, i, &g->r[a].sh);
        i->nin = 3;
        return draw(g, 2) ? unary(g, TANH, o) : o;
    }
    case 7: return product(g, a);
    case 8:
    case 9: return view(g, a);
    case 10: return cut(g, a);
    default: {
        int64_t ax = g->r[a].sh.nd ? draw(g, (uint32_t)g->r[a].sh.nd) : 0;
        op_id op = draw(g, 2) ? SUM : MEAN;
        o = reduce(g, op, a, g->r[a].sh.nd ? (int)draw(g, 2) : 0, &ax, draw(g, 2));
        return op == SUM ? unary(g, TANH, o) : o;
    }
    }
}

/* A variable changes: its leaves are invalid, and gradients cannot flow through values that read
 * it. */
static void written(program *g, int v)
{
    for (int k = 0; k < g->nreg; k++) {
        reg *r = &g->r[k];
        if (r->var == v) r->alive = false;
        if (r->vars >> v & 1) r->stale = true;
    }
}

static int scalar_of(program *g, int a)
{
    return reduce(g, rp_count(&g->r[a].sh) > 0 ? MEAN : SUM, unary(g, TANH, a), 0, NULL, false);
}

/* A loss that depends on a parameter of the pool. A variable gets a new leaf if it has none. */
static int make_loss(program *g, int pool)
{
    int a = -1;
    for (int k = 0, seen = 0; k < g->nreg; k++) {
        const reg *r = &g->r[k];
        if (r->alive && r->grad && !r->stale && (r->pools >> pool & 1) &&
            draw(g, (uint32_t)++seen) == 0)
            a = k;
    }
    if (a < 0 || draw(g, 4) == 0) {
        int v = pool == 0 ? (int)draw(g, 2) : 2, p = use(g, v), b = pick(g);
        if (g->r[b].stale) b = unary(g, DETACH, b);
        a = binary(g, MUL, p, b);
    }
    return scalar_of(g, a);
}

static void backward(program *g, int pool)
{
    int loss = make_loss(g, pool);
    ins *i = add_ins(g, BACKWARD);
    i->pool = pool;
    i->in[0] = loss;
    g->r[loss].kept = true;
    g->contributions[pool]++;
}

static void step(program *g, int pool)
{
    if (g->contributions[pool] == 0) backward(g, pool);
    add_ins(g, STEP)->pool = pool;
    g->contributions[pool] = 0;
    for (int k = 0; k < g->nreg; k++) {
        reg *r = &g->r[k];
        bool stays = r->free_leaf || r->kept || r->kept_graph || r->var >= 0;
        if (!stays) r->alive = false;
        if (!r->kept_graph && !r->free_leaf && r->var < 0) r->stale = true;
    }
    for (int v = 0; v < PARAMS; v++)
        if (rp_pool_of(v) == pool) written(g, v);
}

static void gradient(program *g)
{
    if (!g->grad_on) return;
    int x = -1, y = -1;
    if (draw(g, 2)) { /* of a new leaf */
        x = unary(g, WITH_GRAD, pick(g));
        y = unary(g, TANH, binary(g, MUL, unary(g, TANH, x), x));
        if (draw(g, 2)) y = binary(g, MUL, y, use(g, (int)draw(g, PARAMS)));
    } else {
        for (int k = 0, seen = 0; k < g->nreg; k++)
            if (g->r[k].alive && g->r[k].grad && !g->r[k].stale && g->r[k].deps &&
                draw(g, (uint32_t)++seen) == 0)
                y = k;
        for (int k = 0, seen = 0; k < g->nreg && y >= 0; k++)
            if (g->r[k].alive && g->r[k].grad && (g->r[y].deps >> k & 1) &&
                draw(g, (uint32_t)++seen) == 0)
                x = k;
    }
    if (x < 0 || y < 0 || g->r[y].stale) return;
    ins *i = add_ins(g, GRAD);
    i->in[0] = y;
    i->in[1] = x;
    i->nin = 2;
    int o = result(g, i, &g->r[x].sh);
    g->r[o].pools = 0; /* the generator does not know whether it depends on anything */
    g->r[o].deps = 0;
    if (draw(g, 3) == 0) { /* second order */
        int z = binary(g, ADD, binary(g, MUL, o, x), x);
        i = add_ins(g, GRAD);
        i->in[0] = z;
        i->in[1] = x;
        i->nin = 2;
        o = result(g, i, &g->r[x].sh);
        g->r[o].pools = 0;
        g->r[o].deps = 0;
    }
}

static void assign(program *g)
{
    int v = (int)draw(g, VARS), w = (int)draw(g, VARS);
    switch (draw(g, 4)) {
    case 0:
        if (v == w || !same(&g->var[v], &g->var[w])) return;
        ins *s = add_ins(g, SWAP);
        s->var = v;
        s->var2 = w;
        written(g, v);
        written(g, w);
        return;
    case 1: { /* the old value, read before the assign and used after it */
        int a = fit(g, pick(g), &g->var[v]);
        ins *i = add_ins(g, ASSIGN_OLD);
        i->var = v;
        i->in[0] = a;
        i->flag[0] = draw(g, 2);
        i->flag[1] = draw(g, 2);
        i->nin = 0;
        result(g, i, &g->var[v]);
        written(g, v);
        return;
    }
    default: {
        int a = fit(g, draw(g, 3) ? compute(g) : pick(g), &g->var[v]);
        ins *i = add_ins(g, ASSIGN);
        i->var = v;
        i->in[0] = a;
        written(g, v);
    }
    }
}

static void scopes(program *g)
{
    if (g->level < 3 && draw(g, 2)) {
        add_ins(g, BEGIN);
        g->level++;
        return;
    }
    if (g->level < 2) return;
    int a = compute(g);
    add_ins(g, RETURN)->in[0] = a;
    for (int k = 0; k < g->nreg; k++)
        if (g->r[k].level == g->level && k != a) g->r[k].alive = false;
    g->level--;
    if (g->r[a].level > g->level) g->r[a].level = g->level;
}

static void outer_scope(program *g)
{
    while (g->level > 1) {
        int a = pick(g);
        add_ins(g, RETURN)->in[0] = a;
        g->level--;
    }
    add_ins(g, NEW_SCOPE);
    for (int k = 0; k < g->nreg; k++) g->r[k].alive = false;
    for (int k = 0; k < RETAINED; k++) g->has_retained[k] |= g->retained_now[k];
    g->nreg = 0;
    g->full = false;
}

static void retained(program *g)
{
    int k = (int)draw(g, RETAINED);
    if (draw(g, 2) && g->has_retained[k]) {
        int o = leaf(g, RETAINED_VALUE, &g->retained[k]);
        g->p[g->n - 1].var = k;
        g->p[g->n - 1].flag[0] = false;
        (void)o;
    } else {
        ins *i;
        int a = fit(g, pick(g), &g->retained[k]);
        i = add_ins(g, RETAIN);
        i->var = k;
        i->in[0] = a;
        g->retained_now[k] = true;
    }
}

static void rare(program *g)
{
    switch (draw(g, 6)) {
    case 0: add_ins(g, FLUSH)->cond = draw(g, 2) ? 15 : draw(g, 16); return;
    case 1: {
        ins *i = add_ins(g, READ_VAR);
        i->var = (int)draw(g, VARS);
        i->cond = draw(g, 2) ? 15 : draw(g, 16);
        return;
    }
    case 2: {
        int v = (int)draw(g, VARS);
        add_ins(g, SET_VAR)->var = v;
        written(g, v);
        return;
    }
    case 3:
        if (draw(g, 3) == 0) {
            add_ins(g, g->grad_on ? GRAD_OFF : GRAD_ON);
            g->grad_on = !g->grad_on;
        }
        return;
    case 4: {
        if (!g->random) return;
        shape s = random_shape(g);
        if (draw(g, 2)) leaf(g, RANDOM, &s);
        else unary(g, DROPOUT, pick(g));
        return;
    }
    default: {
        int v = (int)draw(g, PARAMS);
        if (g->contributions[rp_pool_of(v)] > 0) add_ins(g, READ_GRAD)->var = v;
    }
    }
}

static void observe(program *g)
{
    int a = pick(g);
    switch (draw(g, 4)) {
    case 0: {
        add_ins(g, KEEP)->in[0] = a;
        if (g->r[a].var < 0) g->r[a].kept = true;
        return;
    }
    case 1: {
        add_ins(g, KEEP_GRAPH)->in[0] = a;
        if (g->r[a].var < 0) g->r[a].kept_graph = true;
        return;
    }
    default: {
        ins *i = add_ins(g, READ);
        i->in[0] = a;
        i->cond = draw(g, 2) ? 15 : draw(g, 16);
    }
    }
}

void rp_generate(program *g, uint32_t seed)
{
    memset(g, 0, sizeof *g);
    g->seed = seed;
    g->s = seed * 2654435761u ^ 0x9e3779b9u;
    if (g->s == 0) g->s = 1;
    for (int k = 0; k < 8; k++) draw(g, 2);
    g->plain = seed % 4 == 0;
    g->big = seed % 8 >= 6 || seed % 16 == 4;
    g->random = seed % 5 == 0;
    g->zero = !g->plain && !g->big && seed % 3 == 0;
    g->nan = seed % 7 >= 5;
    g->infinite = seed % 7 == 6;
    g->grad_on = true;
    for (int v = 0; v < VARS; v++) g->var[v] = v == 4 ? g->var[3] : random_shape(g);
    for (int k = 0; k < RETAINED; k++) g->retained[k] = random_shape(g);
    g->level = 1;
    int want = 8 + (int)draw(g, 50);
    for (int k = 0, scope = 0; k < want && scope < 4; k++) {
        if (g->full || draw(g, 25) == 0) {
            if (g->n >= LEN - 40) break;
            outer_scope(g);
            scope++;
        }
        uint32_t what = draw(g, 40);
        if (what < 18) compute(g);
        else if (what < 22) assign(g);
        else if (what < 27) observe(g);
        else if (what < 30) scopes(g);
        else if (what < 33) gradient(g);
        else if (what < 35 && g->grad_on) backward(g, (int)draw(g, POOLS));
        else if (what < 37 && g->grad_on) step(g, (int)draw(g, POOLS));
        else if (what < 38) retained(g);
        else rare(g);
    }
    outer_scope(g);
    if (!g->grad_on) add_ins(g, GRAD_ON);
}

void rp_print_program(const program *g)
{
    for (int k = 0; k < g->n; k++) {
        const ins *i = &g->p[k];
        print_message("%3d %-14s", k, rp_op_name[i->op]);
        if (i->other != i->op) print_message(" | %s", rp_op_name[i->other]);
        if (i->cond != 15) print_message(" cond %x", i->cond);
        if (i->out >= 0) print_message(" r%d", i->out);
        if (i->out2 >= 0) print_message(" r%d", i->out2);
        if (i->out >= 0) {
            print_message(" (");
            for (int d = 0; d < i->sh.nd; d++) print_message("%d,", (int)i->sh.d[d]);
            print_message(")");
        }
        print_message(" <-");
        for (int j = 0; j < 3; j++) print_message(" r%d", i->in[j]);
        print_message(" nin %d var %d,%d pool %d flags %d%d axis %d n %d\n", i->nin, i->var,
                      i->var2, i->pool, i->flag[0], i->flag[1], (int)i->axis, i->n);
    }
}
