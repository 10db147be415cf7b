/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise chains into one loop: an elementwise node takes in producers that are elementwise too and that
 * nobody else reads. The fused node goes over its elements in tiles that stay in the nearest cache, and runs the
 * ops' own kernels on each tile, so the results are those of the unfused plan to the bit.
 */
#include <omp.h>

#include "plan/plan.h"
#include "tensor/half.h"

enum { TILE = 4096, MAX_STAGES = 16 };

typedef struct {
    ctn_op *op;
    int nin, nattr, nscalar, scalar0;
    const int64_t *attr;
    int in[4];      /* >= 0: external input of the chain; < 0: result of stage -1 - in */
    bool single[4]; /* one element for all */
    ctn_dtype din[4], dout;
} stage;

typedef struct {
    int n, nin;
    stage s[MAX_STAGES];
    ctn_dtype
        ext[CTN_MAX_IN]; /* types of the external inputs, and of the result, in memory: a low */
    ctn_dtype result;    /* type is f32 inside the loop */
    bool single[CTN_MAX_IN];
} chain;

static bool is_low(ctn_dtype t)
{
    return t == CTN_BF16 || t == CTN_F16;
}

static ctn_dtype inside(ctn_dtype t)
{
    return is_low(t) ? CTN_F32 : t;
}

static void widen(const void *from, ctn_dtype t, float *to, int64_t n)
{
    const uint16_t *x = from;
    if (t == CTN_BF16) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) to[i] = ctn__bf16_get(x[i]);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) to[i] = ctn__f16_get(x[i]);
    }
}

static void narrow(const float *from, void *to, ctn_dtype t, int64_t n)
{
    uint16_t *y = to;
    if (t == CTN_BF16) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) y[i] = ctn__bf16_put(from[i]);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) y[i] = ctn__f16_put(from[i]);
    }
}

static ctn_desc tile_desc(ctn_dtype t, int64_t n, bool single)
{
    ctn_desc d = {.dtype = t, .ndim = single ? 0 : 1, .dim = {n}, .stride = {1}};
    return d;
}

static void *tile_of(void *buf, int k)
{
    return (char *)buf + (size_t)k * TILE * 8;
}

/* One tile through all stages; buf holds TILE elements of at most 8 bytes per stage and per input. */
static ctn_status run_tile(const ctn_run_args *a, const chain *c, int64_t first, int64_t n,
                           char *buf)
{
    const void *ext[CTN_MAX_IN];
    for (int i = 0; i < c->nin; i++) {
        int64_t at = c->single[i] ? 0 : first * (int64_t)ctn_dtype_size(c->ext[i]);
        ext[i] = (const char *)a->in[i] + at;
        if (!is_low(c->ext[i])) continue;
        widen(ext[i], c->ext[i], tile_of(buf, c->n + i), c->single[i] ? 1 : n);
        ext[i] = tile_of(buf, c->n + i);
    }
    char *result = (char *)a->out[0] + first * (int64_t)ctn_dtype_size(c->result);
    for (int k = 0; k < c->n; k++) {
        const stage *s = &c->s[k];
        const void *in[4];
        ctn_desc din[4], dout = tile_desc(s->dout, n, false);
        for (int i = 0; i < s->nin; i++) {
            din[i] = tile_desc(s->din[i], n, s->single[i]);
            in[i] = s->in[i] >= 0 ? ext[s->in[i]] : tile_of(buf, -1 - s->in[i]);
        }
        void *out = k == c->n - 1 && !is_low(c->result) ? result : tile_of(buf, k);
        ctn_run_args r = {.nin = s->nin,
                          .nout = 1,
                          .nattr = s->nattr,
                          .nscalar = s->nscalar,
                          .in = in,
                          .out = &out,
                          .din = din,
                          .dout = &dout,
                          .attr = s->attr,
                          .scalar = a->scalar + s->scalar0,
                          .env = a->env};
        CTN_TRY(s->op->run(&r));
    }
    if (is_low(c->result)) narrow(tile_of(buf, c->n - 1), result, c->result, n);
    return CTN_OK;
}

static const chain *chain_of(const int64_t *attr)
{
    return (const chain *)(intptr_t)attr[0]; /* lives in the plan's memory */
}

static ctn_status chain_run(const ctn_run_args *a)
{
    const chain *c = chain_of(a->attr);
    int64_t n = ctn__count(&a->dout[0]), tiles = (n + TILE - 1) / TILE;
    ctn_status worst = CTN_OK;
#pragma omp parallel for schedule(static) reduction(min : worst) if (n > 4 * TILE)
    for (int64_t t = 0; t < tiles; t++) {
        int64_t first = t * TILE, m = n - first < TILE ? n - first : TILE;
        char *buf =
            (char *)a->scratch + (size_t)omp_get_thread_num() * (size_t)(c->n + c->nin) * TILE * 8;
        ctn_status st = run_tile(a, c, first, m, buf);
        if (st < worst) worst = st;
    }
    return worst;
}

static ctn_status chain_prepare(ctn_prepare_args *a)
{
    const chain *c = chain_of(a->attr);
    a->scratch = (size_t)a->threads * (size_t)(c->n + c->nin) * TILE * 8;
    a->kernel = "own:chain";
    return CTN_OK;
}

static ctn_op op_chain = {
    sizeof(ctn_op),           "elementwise",   -1, 1, CTN_OP_ELEMENTWISE, .inplace = 0xffff,
    .prepare = chain_prepare, .run = chain_run};

/* Elementwise with a kernel of its own, every operand whole or one element. */
bool ctn__can_chain(const ctn__plan *p, const ctn__pnode *nodes, const ctn__pnode *n)
{
    if (n->dead || !(n->op->flags & CTN_OP_ELEMENTWISE) || n->op->prepare || !n->op->run ||
        n->nout != 1 || n->nin > 4 || (n->op->flags & (CTN_OP_RANDOM | CTN_OP_ORDERED)))
        return false;
    const ctn_desc *o = &p->values.at[n->out[0]].d;
    for (int i = 0; i < n->nin; i++) {
        const ctn__value *v = &p->values.at[n->in[i]];
        bool view = v->node >= 0 && (nodes[v->node].op->flags & CTN_OP_VIEW);
        bool single = ctn__count(&v->d) == 1 && (n->op->flags & CTN_OP_STRIDED);
        if (view || !ctn__is_plain(&v->d) || !(single || ctn__same_shape(&v->d, o))) return false;
    }
    return true;
}

/* Worth a loop of its own. */
static bool fits(const ctn__plan *p, const ctn__pnode *n)
{
    return ctn__can_chain(p, p->nodes.at, n) && ctn__count(&p->values.at[n->out[0]].d) >= TILE;
}

typedef struct {
    ctn__plan *p;
    chain *c;
    int in[CTN_MAX_IN], nin, nscalar;
    ctn_scalar scalar[4 * MAX_STAGES];
    int taken[MAX_STAGES]; /* nodes swallowed */
} grower;

static int external(grower *g, int v)
{
    for (int i = 0; i < g->nin; i++)
        if (g->in[i] == v) return i;
    if (g->nin == CTN_MAX_IN) return -1;
    g->in[g->nin] = v;
    return g->nin++;
}

/* Add node behind the producers it takes in; false when the chain gets too long: nothing is fused then. */
static bool grow(grower *g, int node, const ctn_desc *shape, int *stage_out)
{
    ctn__plan *p = g->p;
    const ctn__pnode *n = &p->nodes.at[node];
    stage s = {.op = n->op,
               .nin = n->nin,
               .nattr = n->nattr,
               .nscalar = n->nscalar,
               .attr = n->attr,
               .dout = inside(p->values.at[n->out[0]].d.dtype)};
    for (int i = 0; i < n->nin; i++) {
        const ctn__value *v = &p->values.at[n->in[i]];
        bool inner = v->kind == CTN__V_TEMP && v->uses == 1 && v->node >= 0 &&
                     ctn__same_shape(&v->d, shape) && fits(p, &p->nodes.at[v->node]) &&
                     g->c->n < MAX_STAGES - 4;
        s.din[i] = inside(v->d.dtype);
        s.single[i] = ctn__count(&v->d) == 1 && ctn__count(shape) != 1;
        int k = 0;
        if (inner ? !grow(g, v->node, shape, &k) : (k = external(g, n->in[i])) < 0) return false;
        s.in[i] = inner ? -1 - k : k;
    }
    if (g->c->n == MAX_STAGES || g->nscalar + n->nscalar > 4 * MAX_STAGES) return false;
    s.scalar0 = g->nscalar;
    for (int i = 0; i < n->nscalar; i++) g->scalar[g->nscalar++] = n->scalar[i];
    g->taken[g->c->n] = node;
    *stage_out = g->c->n;
    g->c->s[g->c->n++] = s;
    return true;
}

static bool reader_fits(const ctn__plan *p, int node)
{
    int v = p->nodes.at[node].out[0];
    for (size_t i = (size_t)node + 1; i < p->nodes.n; i++)
        for (int k = 0; k < p->nodes.at[i].nin; k++)
            if (p->nodes.at[i].in[k] == v && !p->nodes.at[i].dead) return fits(p, &p->nodes.at[i]);
    return false;
}

/* Make node, with the producers it takes in, one loop of at least `least` stages. */
static bool make_chain(ctn__plan *p, int node, int least, ctn_status *st)
{
    ctn__pnode *n = &p->nodes.at[node];
    const ctn__value *o = &p->values.at[n->out[0]];
    grower g = {.p = p, .c = ctn__arena_zero(&p->mem, sizeof(chain))};
    int last;
    if (!g.c) {
        *st = CTN_ENOMEM;
        return false;
    }
    if (!grow(&g, node, &o->d, &last) || g.c->n < least) return false;
    int *edges = ctn__arena_get(&p->mem, (size_t)(g.nin + 1) * sizeof(int));
    int64_t *attr = ctn__arena_get(&p->mem, sizeof *attr);
    ctn_scalar *scalar = ctn__arena_get(&p->mem, (size_t)(g.nscalar + 1) * sizeof *scalar);
    if (!edges || !attr || !scalar) {
        *st = CTN_ENOMEM;
        return false;
    }
    memcpy(edges, g.in, (size_t)g.nin * sizeof(int));
    memcpy(scalar, g.scalar, (size_t)g.nscalar * sizeof *scalar);
    attr[0] = (int64_t)(intptr_t)g.c;
    g.c->nin = g.nin;
    g.c->result = o->d.dtype;
    for (int i = 0; i < g.nin; i++) {
        const ctn_desc *d = &p->values.at[g.in[i]].d;
        g.c->ext[i] = d->dtype;
        g.c->single[i] = ctn__count(d) == 1 && ctn__count(&o->d) != 1;
    }
    for (int i = 0; i < g.c->n - 1; i++) p->nodes.at[g.taken[i]].dead = true;
    n->op = &op_chain;
    n->in = edges;
    n->nin = g.nin;
    n->attr = attr;
    n->nattr = 1;
    n->scalar = scalar;
    n->nscalar = g.nscalar;
    return true;
}

bool ctn__fuse_elementwise(ctn__plan *p, int node, ctn_status *st)
{
    ctn__pnode *n = &p->nodes.at[node];
    if (!fits(p, n)) return false;
    const ctn__value *o = &p->values.at[n->out[0]];
    if (o->kind == CTN__V_TEMP && o->uses == 1 && reader_fits(p, node))
        return false; /* it takes this in */
    return make_chain(p, node, 2, st);
}

bool ctn__chain_low(ctn__plan *p, int node, ctn_status *st)
{
    const ctn__pnode *n = &p->nodes.at[node];
    if (!ctn__can_chain(p, p->nodes.at, n)) return false;
    bool low = is_low(p->values.at[n->out[0]].d.dtype);
    for (int i = 0; i < n->nin; i++) low |= is_low(p->values.at[n->in[i]].d.dtype);
    return low && make_chain(p, node, 1, st);
}
