/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses elementwise chains into one loop. An elementwise node absorbs any number of elementwise
 * producers that nothing outside of the loop reads. A cheap producer that others read too is
 * repeated if the loop reads its operands anyway, as it often does in gradients of gradients. The
 * fused node processes its elements in
 * tiles that stay in the nearest cache and runs the ops' own kernels on each tile
 * (ops/common/map.c), so the results are bitwise equal to those of the unfused plan.
 */
#include "ops/ops.h"
#include "plan/plan.h"

enum { WORTH = 4096 }; /* with fewer elements, a loop of its own saves nothing */

static const ctn__map_program *program_of(const int64_t *attr)
{
    return (const ctn__map_program *)(intptr_t)attr[0]; /* lives in the plan's memory */
}

static ctn_status chain_run(const ctn_run_args *a)
{
    return ctn__map_run(program_of(a->attr), a, a->scratch);
}

static ctn_status chain_prepare(ctn_prepare_args *a)
{
    a->scratch = ctn__map_scratch(program_of(a->attr), a->threads);
    a->kernel = "own:chain";
    return CTN_OK;
}

static ctn_op op_chain = {sizeof(ctn_op),
                          "elementwise",
                          -1,
                          1,
                          CTN_OP_ELEMENTWISE | CTN_OP_STRIDED,
                          .inplace = CTN_OPERANDS(16),
                          .prepare = chain_prepare,
                          .run = chain_run};

/* ---- which nodes can be a stage ------------------------------------------------------------- */

static ctn_dtype inside(ctn_dtype t)
{
    return t == CTN_BF16 || t == CTN_F16 ? CTN_F32 : t;
}

/* An elementwise op with a kernel of its own. Broadcast operands are allowed only if the kernel
 * reads any strides. */
bool ctn__can_chain(const ctn__plan *p, const ctn__pnode *nodes, const ctn__pnode *n)
{
    if (n->dead || !(n->op->flags & CTN_OP_ELEMENTWISE) || n->op->prepare || !n->op->run ||
        n->nout != 1 || n->nin > CTN__TILE_IN || (n->op->flags & (CTN_OP_RANDOM | CTN_OP_ORDERED)))
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

/* Can be a stage, and has enough elements to be worth a loop. */
static bool fits(const ctn__plan *p, const ctn__pnode *n)
{
    return ctn__can_chain(p, p->nodes.at, n) && ctn__count(&p->values.at[n->out[0]].d) >= WORTH;
}

/* ---- growing -------------------------------------------------------------------------------- */

/* A value that the loop reads. */
typedef struct {
    int value, uses; /* by nodes of the loop */
    bool stays;      /* its producer stays outside of the loop */
} outside;

typedef struct {
    ctn__plan *p;
    outside ext[CTN_MAX_IN];
    int next;
    CTN__VEC(int) taken; /* nodes, from the last to the first; then the repeated ones */
    int repeated;        /* nodes that others read too, so that they stay in the plan */
    int nscalar;
} grower;

static int find(const grower *g, int v)
{
    int i = 0;
    while (i < g->next && g->ext[i].value != v) i++;
    return i;
}

/* Does the loop repeat the node that makes value v? */
static bool is_repeated(const grower *g, int v)
{
    const int node = g->p->values.at[v].node;
    size_t i = g->taken.n - (size_t)g->repeated;
    while (i < g->taken.n && g->taken.at[i] != node) i++;
    return i < g->taken.n;
}

/* How many more values the loop reads once node n is in it. */
static int more(const grower *g, const ctn__pnode *n)
{
    int count = 0;
    for (int i = 0; i < n->nin; i++) {
        bool known = find(g, n->in[i]) < g->next || is_repeated(g, n->in[i]);
        for (int k = 0; k < i && !known; k++) known = n->in[k] == n->in[i];
        count += !known;
    }
    return count;
}

static bool take_in(grower *g, int node)
{
    const ctn__pnode *n = &g->p->nodes.at[node];
    for (int i = 0; i < n->nin; i++) {
        if (is_repeated(g, n->in[i])) continue;
        const int k = find(g, n->in[i]);
        if (k == g->next) g->ext[g->next++] = (outside){.value = n->in[i]};
        g->ext[k].uses++;
    }
    g->nscalar += n->nscalar;
    return ctn__vec_push(&g->taken, node);
}

/* The value read from outside that was made last and is still a candidate; -1: none. Going from
 * the last to the first ensures that all readers of a value are considered before the value
 * itself. */
static int last_made(const grower *g)
{
    int best = -1;
    for (int i = 0; i < g->next; i++) {
        const outside *e = &g->ext[i];
        if (e->stays) continue;
        if (best < 0 || g->p->values.at[e->value].node > g->p->values.at[g->ext[best].value].node)
            best = i;
    }
    return best;
}

static bool can_take(const grower *g, const outside *e, const ctn_desc *shape)
{
    const ctn__plan *p = g->p;
    const ctn__value *v = &p->values.at[e->value];
    return v->kind == CTN__V_TEMP && v->uses == e->uses && v->node >= 0 &&
           ctn__same_shape(&v->d, shape) && fits(p, &p->nodes.at[v->node]) &&
           g->next - 1 + more(g, &p->nodes.at[v->node]) <= CTN_MAX_IN;
}

/* Costs less than reading its result from memory. The ops that need f32 are the expensive ones. */
static bool is_light(const ctn__pnode *n)
{
    return n->op->prec != CTN_PREC_F32 && ctn__tiles_of(n->op);
}

/* Is value v read by elementwise nodes of its own shape only? */
static bool only_loops_read(const ctn__plan *p, int v)
{
    const int *at;
    const int n = ctn__plan_readers(p, v, &at);
    for (int i = 0; i < n; i++) {
        const ctn__pnode *r = &p->nodes.at[at[i]];
        if (!(r->op->flags & CTN_OP_ELEMENTWISE) || r->nout != 1 ||
            !ctn__same_shape(&p->values.at[r->out[0]].d, &p->values.at[v].d))
            return false;
    }
    return true;
}

/* Should the loop compute a value again that others read too? Yes if it reads all operands anyway.
 * And if it would read one operand in place of the value, and all other readers can do the same:
 * then the value is never stored. */
static bool can_repeat(const grower *g, int value, const ctn_desc *shape)
{
    const ctn__value *v = &g->p->values.at[value];
    if (v->kind != CTN__V_TEMP || v->node < 0 || !ctn__same_shape(&v->d, shape)) return false;
    const ctn__pnode *n = &g->p->nodes.at[v->node];
    if (!fits(g->p, n) || !is_light(n)) return false;
    const int reads = more(g, n);
    return reads == 0 || (reads == 1 && only_loops_read(g->p, value));
}

/* Keeps the repeated nodes in order, from the last to the first. They read only each other and
 * values from outside, so they can run before all others. */
static bool take_again(grower *g, int node)
{
    if (!take_in(g, node)) return false;
    g->repeated++;
    size_t i = g->taken.n - 1;
    for (; i > g->taken.n - (size_t)g->repeated && g->taken.at[i - 1] < node; i--)
        g->taken.at[i] = g->taken.at[i - 1];
    g->taken.at[i] = node;
    return true;
}

static ctn_status repeat(grower *g, const ctn_desc *shape)
{
    enum { MOST = 64 }; /* nodes; the time of fusion stays linear */
    for (int i = 0; i < g->next && g->repeated < MOST && g->repeated < (int)g->taken.n / 2;) {
        const int value = g->ext[i].value;
        if (!can_repeat(g, value, shape)) {
            i++;
            continue;
        }
        g->ext[i] = g->ext[--g->next];
        if (!take_again(g, g->p->values.at[value].node)) return CTN_ENOMEM;
        i = 0; /* the loop reads other values now */
    }
    return CTN_OK;
}

static ctn_status grow(grower *g, int node)
{
    const ctn_desc shape = g->p->values.at[g->p->nodes.at[node].out[0]].d;
    if (!take_in(g, node)) return CTN_ENOMEM;
    for (int i; (i = last_made(g)) >= 0;) {
        if (!can_take(g, &g->ext[i], &shape)) {
            g->ext[i].stays = true;
            continue;
        }
        const int from = g->p->values.at[g->ext[i].value].node;
        g->ext[i] = g->ext[--g->next];
        if (!take_in(g, from)) return CTN_ENOMEM;
    }
    return repeat(g, &shape);
}

/* ---- the program ---------------------------------------------------------------------------- */

/* Stages are the taken nodes from the first to the last. While a program is built, `first` and
 * `last` of a value computed inside it are the stage that computes it and the stage that reads it
 * last. */
typedef struct {
    grower *g;
    ctn__map_program *to;
    CTN__VEC(int) free; /* buffers */
} maker;

static ctn__pnode *node_of(const maker *m, int stage)
{
    return &m->g->p->nodes.at[m->g->taken.at[m->to->n - 1 - stage]];
}

static bool made_inside(const maker *m, const ctn__value *v)
{
    return v->node >= 0 && v->first >= 0 && v->first < m->to->n &&
           m->g->taken.at[m->to->n - 1 - v->first] == v->node;
}

static void number(const maker *m)
{
    ctn__plan *p = m->g->p;
    for (int k = 0; k < m->to->n; k++) p->values.at[node_of(m, k)->out[0]].first = k;
    for (int k = 0; k < m->to->n; k++) {
        const ctn__pnode *n = node_of(m, k);
        for (int i = 0; i < n->nin; i++)
            if (made_inside(m, &p->values.at[n->in[i]])) p->values.at[n->in[i]].last = k;
    }
}

/* May stage k write over its input i? Its kernel writes an element once it has read that element of
 * all inputs; elements of another size are at other places. */
static bool may_replace(const maker *m, int k, int i)
{
    const ctn__map_stage *s = &m->to->stage[k];
    return s->tiles && ctn_dtype_size((ctn_dtype)s->din[i]) == ctn_dtype_size((ctn_dtype)s->dout);
}

/* Return the buffers of values that stage k reads for the last time: those that it may write over,
 * or all that are left. */
static bool give_back(maker *m, int k, bool replaced)
{
    ctn__plan *p = m->g->p;
    const ctn__pnode *n = node_of(m, k);
    bool ok = true;
    for (int i = 0; i < n->nin && ok; i++) {
        ctn__value *v = &p->values.at[n->in[i]];
        if (!made_inside(m, v) || v->last != k || (replaced && !may_replace(m, k, i))) continue;
        ok = ctn__vec_push(&m->free, m->to->stage[v->first].out);
        v->last = -1; /* return it only once */
    }
    return ok;
}

/* Choose the output buffer of stage k. */
static bool place(maker *m, int k)
{
    ctn__map_stage *s = &m->to->stage[k];
    if (!give_back(m, k, true)) return false;
    s->out = m->free.n > 0 ? m->free.at[--m->free.n] : m->to->nin + m->to->buffers++;
    return give_back(m, k, false);
}

static ctn_status fill(maker *m, ctn_scalar *scalar)
{
    ctn__plan *p = m->g->p;
    int nscalar = 0;
    for (int k = 0; k < m->to->n; k++) {
        const ctn__pnode *n = node_of(m, k);
        ctn__map_stage *s = &m->to->stage[k];
        *s = (ctn__map_stage){.tiles = ctn__tiles_of(n->op),
                              .op = n->op,
                              .attr = n->attr,
                              .scalar0 = nscalar,
                              .nin = (uint8_t)n->nin,
                              .nattr = (uint8_t)n->nattr,
                              .nscalar = (uint8_t)n->nscalar,
                              .dout = (uint8_t)inside(p->values.at[n->out[0]].d.dtype)};
        for (int i = 0; i < n->nin; i++) {
            const ctn__value *v = &p->values.at[n->in[i]];
            s->din[i] = (uint8_t)inside(v->d.dtype);
            s->in[i] = made_inside(m, v) ? m->to->stage[v->first].out : find(m->g, n->in[i]);
        }
        for (int i = 0; i < n->nscalar; i++) scalar[nscalar++] = n->scalar[i];
        if (k == m->to->n - 1) s->out = m->to->nin + m->to->buffers;
        else if (!place(m, k)) return CTN_ENOMEM;
    }
    return CTN_OK;
}

static bool is_cheap(const ctn__map_stage *s)
{
    bool f32 = s->dout == CTN_F32;
    for (int i = 0; i < s->nin; i++) f32 &= s->din[i] == CTN_F32;
    return f32 && s->tiles && s->tiles->cheap != CTN__NOT_CHEAP;
}

/* The input of stage k + 1 that is the result of stage k, if nothing else reads it; -1: none. */
static int only_input(const maker *m, int k)
{
    const ctn__pnode *n = node_of(m, k), *next = node_of(m, k + 1);
    int at = -1, times = 0;
    for (int i = 0; i < next->nin; i++)
        if (next->in[i] == n->out[0]) {
            at = i;
            times++;
        }
    return times == 1 && m->g->p->values.at[n->out[0]].uses == 1 ? at : -1;
}

/* Set the length of the run of cheap stages that begins at each stage; from last to first. */
static void find_runs(maker *m)
{
    for (int k = m->to->n - 1; k >= 0; k--) {
        ctn__map_stage *s = &m->to->stage[k];
        if (!is_cheap(s)) continue;
        s->run = 1;
        const int via = k + 1 < m->to->n && s[1].run > 0 ? only_input(m, k) : -1;
        if (via < 0) continue;
        s[1].via = (uint8_t)via;
        s->run = s[1].run + 1;
    }
}

static void remove_node(ctn__plan *p, int node)
{
    ctn__node_uses(p, &p->nodes.at[node], -1);
    p->nodes.at[node].dead = true;
}

/* The last node becomes the loop; the others are removed, except those that it repeats. */
static ctn_status replace(grower *g, ctn__map_program *to)
{
    ctn__plan *p = g->p;
    ctn__pnode *n = &p->nodes.at[g->taken.at[0]];
    maker m = {.g = g, .to = to};
    to->n = (int)g->taken.n;
    to->nin = g->next;
    to->stage = ctn__arena_get(&p->mem, (size_t)to->n * sizeof *to->stage);
    int *edges = ctn__arena_get(&p->mem, (size_t)(g->next + 1) * sizeof(int));
    int64_t *attr = ctn__arena_get(&p->mem, sizeof *attr);
    ctn_scalar *scalar = ctn__arena_get(&p->mem, (size_t)(g->nscalar + 1) * sizeof *scalar);
    if (!to->stage || !edges || !attr || !scalar) return CTN_ENOMEM;
    number(&m);
    ctn_status st = fill(&m, scalar);
    if (st == CTN_OK) find_runs(&m);
    ctn__vec_free(&m.free);
    CTN_TRY(st);
    for (int i = 0; i < g->next; i++) edges[i] = g->ext[i].value;
    const size_t moved = g->taken.n - (size_t)g->repeated;
    for (size_t i = 0; i < moved; i++) remove_node(p, g->taken.at[i]);
    n->dead = false;
    attr[0] = (int64_t)(intptr_t)to;
    n->op = &op_chain;
    n->in = edges;
    n->nin = g->next;
    n->attr = attr;
    n->nattr = 1;
    n->scalar = scalar;
    n->nscalar = g->nscalar;
    ctn__node_uses(p, n, 1);
    for (size_t i = moved; i < g->taken.n; i++) { /* all readers may have repeated it by now */
        const int again = g->taken.at[i];
        if (p->values.at[p->nodes.at[again].out[0]].uses == 0) remove_node(p, again);
    }
    return CTN_OK;
}

/* Turn node and the producers it absorbs into one loop, if that has at least `least` stages. */
static bool make_chain(ctn__plan *p, int node, size_t least, ctn_status *st)
{
    grower g = {.p = p};
    *st = grow(&g, node);
    const bool worth = *st == CTN_OK && g.taken.n >= least;
    if (worth) {
        ctn__map_program *to = ctn__arena_zero(&p->mem, sizeof *to);
        *st = to ? replace(&g, to) : CTN_ENOMEM;
    }
    ctn__vec_free(&g.taken);
    return worth && *st == CTN_OK;
}

bool ctn__fuse_elementwise(ctn__plan *p, int node, ctn_status *st)
{
    return fits(p, &p->nodes.at[node]) && make_chain(p, node, 2, st);
}

static bool is_low(ctn_dtype t)
{
    return inside(t) != t;
}

bool ctn__chain_low(ctn__plan *p, int node, ctn_status *st)
{
    const ctn__pnode *n = &p->nodes.at[node];
    if (!ctn__can_chain(p, p->nodes.at, n)) return false;
    bool low = is_low(p->values.at[n->out[0]].d.dtype);
    for (int i = 0; i < n->nin; i++) low |= is_low(p->values.at[n->in[i]].d.dtype);
    return low && make_chain(p, node, 1, st);
}
