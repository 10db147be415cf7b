/* SPDX-License-Identifier: Apache-2.0
 *
 * Layout: chooses the memory layout of every value. First every region of the graph gets one
 * layout, row-major or channels-last. A region is a set of operands of spatial ops, connected by
 * these ops and by elementwise ops. Then the nodes are visited in order. Views (reshape,
 * transpose, broadcast) become other strides of the same memory. A kernel that reads any strides
 * takes its operands as they are; any other gets a reordered copy, made and counted once per
 * value and layout. Each kernel is prepared for exactly these descriptions, and may ask for other
 * ones (weights in the blocks that a convolution prefers).
 */
#include "plan/plan.h"

typedef struct {
    int value, copy, next;
    bool again; /* for recomputed nodes only: a copy from the forward pass would live too long */
} copied;

typedef struct {
    ctn__plan *p;
    ctn__planner *pl;
    size_t n;    /* number of values before this pass */
    int *region; /* union-find: value -> another value of its region; the root points to itself */
    bool *last;  /* root -> channels-last */
    int *copies; /* value -> first of its copies; -1: none */
    int *source; /* value -> source of its pending cast; -1: no cast is pending */
    bool *keeps; /* value -> it is a variable that this plan does not write */
    CTN__VEC(copied) copy;
    bool again;               /* the current node is a recomputed one */
    CTN__VEC(ctn__pnode) out; /* new node list */
} layouter;

/* ---- regions -------------------------------------------------------------------------------- */

static int root(const layouter *l, int v)
{
    while (l->region[v] != v) v = l->region[v] = l->region[l->region[v]];
    return v;
}

static void join(layouter *l, int *with, int v)
{
    if (*with < 0) *with = v;
    l->region[root(l, v)] = root(l, *with);
}

static bool elementwise(const ctn__plan *p, const ctn__pnode *n)
{
    /* not random ops: their stream is indexed by the element's position in row-major order */
    return (n->op->flags & (CTN_OP_ELEMENTWISE | CTN_OP_RANDOM)) == CTN_OP_ELEMENTWISE &&
           n->nout == 1 && p->values.at[n->out[0]].d.ndim >= 3;
}

/* Join the operands of n that share one layout. */
static void join_operands(layouter *l, const ctn__pnode *n)
{
    const ctn__plan *p = l->p;
    int with = -1;
    if (elementwise(p, n)) {
        const ctn_desc *o = &p->values.at[n->out[0]].d;
        join(l, &with, n->out[0]);
        for (int i = 0; i < n->nin; i++)
            if (ctn__same_shape(&p->values.at[n->in[i]].d, o)) join(l, &with, n->in[i]);
    }
    for (int i = 0; i < n->nin; i++)
        if (n->op->spatial_in >> i & 1) join(l, &with, n->in[i]);
    for (int i = 0; i < n->nout; i++)
        if (n->op->spatial_out >> i & 1) join(l, &with, n->out[i]);
}

static ctn_status find_regions(layouter *l)
{
    const ctn__plan *p = l->p;
    l->n = p->values.n;
    l->region = ctn__malloc((l->n + 1) * sizeof *l->region);
    l->last = ctn__calloc(l->n + 1, sizeof *l->last);
    l->copies = ctn__malloc((l->n + 1) * sizeof *l->copies);
    l->source = ctn__malloc((l->n + 1) * sizeof *l->source);
    l->keeps = ctn__calloc(l->n + 1, sizeof *l->keeps);
    if (!l->region || !l->last || !l->copies || !l->source || !l->keeps) return CTN_ENOMEM;
    for (size_t i = 0; i < l->n; i++) {
        l->region[i] = (int)i;
        l->copies[i] = l->source[i] = -1;
    }
    for (size_t i = 0; i < p->nodes.n; i++)
        if (!p->nodes.at[i].dead) join_operands(l, &p->nodes.at[i]);
    /* The engine's convolutions are as fast in channels-last as in blocked layouts, but several
     * times slower in row-major. Nothing else in a region matters as much. */
    for (size_t i = 0; i < p->nodes.n; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        if (n->dead || n->op->prec != CTN_PREC_LOW || !n->op->spatial_in) continue;
        if (p->values.at[n->in[0]].d.dtype != CTN_F64) l->last[root(l, n->in[0])] = true;
    }
    return CTN_OK;
}

static bool channels_last(const layouter *l, int v)
{
    return (size_t)v < l->n && l->last[root(l, v)];
}

/* ---- variables that the plan does not write ------------------------------------------------- */

/* The effects mark the pools and variables that they write. */
void ctn__find_unwritten(const ctn__plan *p, size_t n, bool *unwritten)
{
    const uint64_t written = ++p->ctx->searches;
    for (size_t i = 0; i < p->nodes.n; i++) {
        const ctn__pnode *node = &p->nodes.at[i];
        if (node->dead || !node->effect) continue;
        if (node->pool) node->pool->mark = written;
        for (int k = 0; k < node->nout; k++) {
            const ctn__value *v = &p->values.at[node->out[k]];
            if (v->kind == CTN__V_VAR) v->var->mark = written;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const ctn_var *v = p->values.at[i].var;
        unwritten[i] = p->values.at[i].kind == CTN__V_VAR && v->mark != written &&
                       !(v->trainable && v->pool && v->pool->mark == written);
    }
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static ctn_status emit(layouter *l, ctn__pnode *n);

/* Record that c is a copy of v in another layout. */
static ctn_status note_copy(layouter *l, int v, int c)
{
    if ((size_t)v >= l->n) return CTN_OK;
    if (!ctn__vec_push(&l->copy, ((copied){v, c, l->copies[v], l->again}))) return CTN_ENOMEM;
    l->copies[v] = (int)l->copy.n - 1;
    return CTN_OK;
}

/* Make the result of reorder n outlive the run. */
static ctn_status keep(layouter *l, ctn__pnode *n)
{
    ctn_var *var = l->p->values.at[n->in[0]].var;
    ctn__value *v = &l->p->values.at[n->out[0]];
    n->makes = v->kept = ctn__kept_get(l->pl, var, &v->d);
    if (!v->kept) return CTN_ENOMEM;
    v->kind = CTN__V_KEPT;
    v->var = var;
    return CTN_OK;
}

/* v in the layout and type of `want`; *out may be v itself. */
static ctn_status lay_as(layouter *l, int v, const ctn_desc *want, const char *at, int *out)
{
    ctn__plan *p = l->p;
    *out = v;
    bool there = (size_t)v >= l->n || l->source[v] < 0;
    if (there && ctn__same_desc(&p->values.at[v].d, want)) return CTN_OK;
    for (int i = (size_t)v < l->n ? l->copies[v] : -1; i >= 0; i = l->copy.at[i].next) {
        *out = l->copy.at[i].copy;
        const ctn__value *c = &p->values.at[*out];
        if ((l->copy.at[i].again == l->again || c->kept) && ctn__same_desc(&c->d, want))
            return CTN_OK;
    }
    int c = ctn__plan_value(p, want, CTN__V_TEMP);
    ctn__pnode n = {.op = &ctn__op_reorder, .at = at, .nin = 1, .nout = 1};
    n.in = ctn__arena_get(&p->mem, 2 * sizeof(int));
    if (c < 0 || !n.in) return CTN_ENOMEM;
    n.out = n.in + 1;
    n.in[0] = there ? v : l->source[v];
    n.out[0] = c;
    if ((size_t)n.in[0] < l->n && l->keeps[n.in[0]]) CTN_TRY(keep(l, &n));
    CTN_TRY(emit(l, &n));
    CTN_TRY(note_copy(l, v, c));
    *out = c;
    return CTN_OK;
}

static ctn_status make_plain(layouter *l, int v, const char *at, int *out)
{
    ctn_desc d = l->p->values.at[v].d;
    ctn__plain(&d);
    return lay_as(l, v, &d, at, out);
}

/* v for a reader of any strides. A cast is made at its first reader, in the layout wanted there.
 * A layout of the engine has no strides, so such a value is made row-major. */
static ctn_status settle(layouter *l, int v, const char *at, int *out)
{
    ctn_desc d = l->p->values.at[v].d;
    if (d.layout != 0) ctn__plain(&d);
    return lay_as(l, v, &d, at, out);
}

/* Output i of n has a fixed place, but the kernel writes another layout: write to a temporary
 * value and reorder it afterwards. */
static ctn_status copy_out(layouter *l, ctn__pnode *n, int i, const ctn_desc *d, ctn__pnode *after)
{
    ctn__plan *p = l->p;
    int v = n->out[i], c = ctn__plan_value(p, d, CTN__V_TEMP);
    *after =
        (ctn__pnode){.op = &ctn__op_reorder, .at = n->at, .nin = 1, .nout = 1, .effect = n->effect};
    after->in = ctn__arena_get(&p->mem, 2 * sizeof(int));
    if (c < 0 || !after->in) return CTN_ENOMEM;
    after->out = after->in + 1;
    after->in[0] = n->out[i] = c;
    after->out[0] = v;
    return note_copy(l, v, c);
}

static ctn_status choose_kernel(layouter *l, ctn__pnode *n, ctn_desc *din, ctn_desc *dout)
{
    n->run = n->op->run;
    n->kernel = "own";
    if (n->op->prepare) {
        ctn_prepare_args a = {.name = n->op->name,
                              .nin = n->nin,
                              .nout = n->nout,
                              .nattr = n->nattr,
                              .nscalar = n->nscalar,
                              .din = din,
                              .dout = dout,
                              .attr = n->attr,
                              .threads = l->p->ctx->threads,
                              .engine = l->pl->engine};
        ctn_status st = n->op->prepare(&a);
        n->priv = a.priv;
        n->priv_free = a.priv_free;
        n->priv_bytes = a.priv_bytes;
        if (a.run) n->run = a.run;
        if (a.kernel) n->kernel = a.kernel;
        n->scratch = a.scratch;
        n->flops = a.flops;
        CTN_TRY(st);
        if (a.scratch > CTN__MAX_BYTES)
            return ctn_fail(CTN_ENOMEM, "%s: needs more scratch memory than any machine has (%s)",
                            n->op->name, n->at);
    }
    if (!n->run)
        return ctn_fail(CTN_EUNSUPPORTED, "%s: there is no kernel for these operands (%s)",
                        n->op->name, n->at);
    return CTN_OK;
}

/* Prepare n for the layouts of its operands, and reorder those that its kernel wants otherwise. */
static ctn_status prepare(layouter *l, ctn__pnode *n, ctn__pnode *after, int *nafter)
{
    ctn__plan *p = l->p;
    ctn_desc din[CTN_MAX_IN], dout[CTN_MAX_OUT];
    *nafter = 0;
    for (int i = 0; i < n->nin; i++) din[i] = ctn__node_desc(p, n, p->values.at[n->in[i]].d);
    for (int i = 0; i < n->nout; i++) dout[i] = ctn__node_desc(p, n, p->values.at[n->out[i]].d);
    CTN_TRY(choose_kernel(l, n, din, dout));
    if (n->turned) return CTN_OK;
    for (int i = 0; i < n->nin; i++) CTN_TRY(lay_as(l, n->in[i], &din[i], n->at, &n->in[i]));
    for (int i = 0; i < n->nout; i++) {
        ctn__value *v = &p->values.at[n->out[i]];
        if (v->kind == CTN__V_TEMP) v->d = dout[i];
        else if (!ctn__same_desc(&v->d, &dout[i]))
            CTN_TRY(copy_out(l, n, i, &dout[i], &after[(*nafter)++]));
    }
    return CTN_OK;
}

static ctn_status push(layouter *l, ctn__pnode *n)
{
    int id = (int)l->out.n;
    for (int i = 0; i < n->nout; i++) l->p->values.at[n->out[i]].node = id;
    if (!ctn__vec_push(&l->out, *n)) return CTN_ENOMEM;
    n->priv_free = NULL; /* now owned by the list */
    if (n->op != &ctn__op_reorder) return CTN_OK;
    l->p->reorders++;
    l->p->reorder_bytes +=
        ctn__bytes(&l->p->values.at[n->in[0]].d) + ctn__bytes(&l->p->values.at[n->out[0]].d);
    return CTN_OK;
}

static ctn_status emit(layouter *l, ctn__pnode *n)
{
    ctn__pnode after[CTN_MAX_OUT];
    int nafter = 0;
    ctn_status st = prepare(l, n, after, &nafter);
    if (st == CTN_OK) st = push(l, n);
    if (n->priv_free) n->priv_free(n->priv);
    for (int i = 0; i < nafter && st == CTN_OK; i++) st = emit(l, &after[i]);
    return st;
}

/* A view shows the memory of its input with other strides, and needs no node. */
static ctn_status lay_view(layouter *l, ctn__pnode *n)
{
    ctn__plan *p = l->p;
    CTN_TRY(settle(l, n->in[0], n->at, &n->in[0]));
    ctn_desc din = p->values.at[n->in[0]].d, dout = p->values.at[n->out[0]].d;
    ctn_prepare_args a = {.name = n->op->name,
                          .nin = 1,
                          .nout = 1,
                          .nattr = n->nattr,
                          .din = &din,
                          .dout = &dout,
                          .attr = n->attr};
    ctn_status st = n->op->prepare(&a);
    CTN_TRY(st);
    if (st == CTN_END) { /* strides cannot express it: make the input row-major first */
        int v;
        CTN_TRY(make_plain(l, n->in[0], n->at, &v));
        n->in[0] = v;
        din = p->values.at[v].d;
        CTN_TRY(n->op->prepare(&a));
    }
    ctn__value *o = &p->values.at[n->out[0]];
    o->d = dout;
    o->base = n->in[0];
    o->node = -1;
    return CTN_OK;
}

/* Operand v of a spatial op in the layout of its region. */
static ctn_status lay_spatial(layouter *l, int v, const char *at, int *out)
{
    ctn_desc d = l->p->values.at[v].d;
    if (channels_last(l, v)) ctn__channels_last(&d);
    else ctn__plain(&d);
    return lay_as(l, v, &d, at, out);
}

/* An elementwise op sees channels-last operands with the channels as the last dimension. These
 * are the same elements in row-major order, so its kernels need not know about the layout. */
static ctn_status lay_elementwise(layouter *l, ctn__pnode *n)
{
    ctn__plan *p = l->p;
    ctn__value *o = &p->values.at[n->out[0]];
    bool fixed = o->kind != CTN__V_TEMP; /* its memory is row-major */
    if (!fixed && channels_last(l, n->out[0])) {
        n->turned = true;
        ctn__channels_last(&o->d);
    }
    for (int i = 0; i < n->nin; i++) {
        const ctn_desc *d = &p->values.at[n->in[i]].d;
        if (ctn__same_shape(d, &o->d) && n->turned)
            CTN_TRY(lay_spatial(l, n->in[i], n->at, &n->in[i]));
        else if (!(n->op->flags & CTN_OP_STRIDED) && !n->turned)
            CTN_TRY(make_plain(l, n->in[i], n->at, &n->in[i]));
        else CTN_TRY(settle(l, n->in[i], n->at, &n->in[i]));
        o = &p->values.at[n->out[0]]; /* the array may have been reallocated */
    }
    return emit(l, n);
}

static ctn_status lay_node(layouter *l, ctn__pnode *n)
{
    l->again = n->again;
    if (n->op->flags & CTN_OP_VIEW) return lay_view(l, n);
    if (n->op == &ctn__op_reorder && l->p->values.at[n->out[0]].kind == CTN__V_TEMP) {
        CTN_TRY(settle(l, n->in[0], n->at, &n->in[0]));
        l->source[n->out[0]] = n->in[0];
        return CTN_OK;
    }
    if (elementwise(l->p, n)) return lay_elementwise(l, n);
    for (int i = 0; i < n->nin; i++) {
        const ctn_desc *d = &l->p->values.at[n->in[i]].d; /* casts wait for prepare */
        bool as_is = ((n->op->flags & CTN_OP_STRIDED) && d->layout == 0) || ctn__is_plain(d);
        if (n->op->spatial_in >> i & 1) CTN_TRY(lay_spatial(l, n->in[i], n->at, &n->in[i]));
        else if (!as_is) CTN_TRY(make_plain(l, n->in[i], n->at, &n->in[i]));
    }
    ctn__pnode after[CTN_MAX_OUT];
    int nafter = 0;
    for (int i = 0; i < n->nout; i++) {
        ctn__value *v = &l->p->values.at[n->out[i]];
        if (!(n->op->spatial_out >> i & 1) || !channels_last(l, n->out[i])) continue;
        ctn_desc d = v->d;
        ctn__channels_last(&d);
        if (v->kind == CTN__V_TEMP) v->d = d;
        else CTN_TRY(copy_out(l, n, i, &d, &after[nafter++]));
    }
    CTN_TRY(emit(l, n));
    for (int i = 0; i < nafter; i++) CTN_TRY(emit(l, &after[i]));
    return CTN_OK;
}

ctn_status ctn__pass_layout(ctn__plan *p)
{
    layouter l = {.p = p, .pl = p->ctx->planner};
    ctn_status st = find_regions(&l);
    if (st == CTN_OK && !p->ctx->eager) ctn__find_unwritten(p, l.n, l.keeps);
    for (size_t i = 0; i < p->nodes.n && st == CTN_OK; i++)
        if (!p->nodes.at[i].dead) st = lay_node(&l, &p->nodes.at[i]);
    ctn__free(l.region);
    ctn__free(l.last);
    ctn__free(l.copies);
    ctn__free(l.source);
    ctn__free(l.keeps);
    ctn__vec_free(&l.copy);
    ctn__vec_free(&p->nodes); /* the old list has no prepared kernels */
    p->nodes.at = l.out.at;
    p->nodes.n = l.out.n;
    p->nodes.cap = l.out.cap;
    ctn__plan_uses(p);
    return st;
}
