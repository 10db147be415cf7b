/* SPDX-License-Identifier: Apache-2.0
 *
 * Layout: decides where elements lie. First every region of the graph, that is operands of spatial ops joined
 * through them and through elementwise ops, gets one layout, row-major or channels-last. Then the nodes are
 * walked in order: views (reshape, transpose, broadcast) become other strides of the same memory; a kernel
 * that reads any strides takes them as they are, the others get a reordered copy, once per value and
 * layout, counted. Each node's kernel is prepared for exactly these descriptions and may ask for others
 * itself (weights in the blocks a convolution likes).
 */
#include "plan/plan.h"

typedef struct {
    int value, copy, next;
    bool again; /* for recomputed nodes: a copy from the forward pass would live too long */
} copied;

typedef struct {
    ctn__plan *p;
    ctn__planner *pl;
    size_t n;    /* values that existed before this pass */
    int *region; /* value -> another of its region, itself at the root */
    bool *last;  /* root -> channels-last */
    int *copies; /* value -> first of its copies, -1 */
    int *source; /* value -> what a cast makes it from, -1: nothing or there already */
    bool *keeps; /* value -> a variable that this plan does not write */
    CTN__VEC(copied) copy;
    bool again;               /* the node in hand is a recomputed one */
    CTN__VEC(ctn__pnode) out; /* new node list */
} layouter;

/* ---- regions ---------------------------------------------------------------------------------- */

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
    /* a random stream is keyed by the element's place in row-major order */
    return (n->op->flags & (CTN_OP_ELEMENTWISE | CTN_OP_RANDOM)) == CTN_OP_ELEMENTWISE &&
           n->nout == 1 && p->values.at[n->out[0]].d.ndim >= 3;
}

/* Operands of n that share one layout. */
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
    /* The engine's convolutions are as fast channels-last as in blocks, and several times slower row-major;
     * nothing else in a region weighs as much. */
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

/* ---- variables that stay as they are -------------------------------------------------------------- */

static bool writes(const ctn__plan *p, const ctn__pnode *n, const ctn_var *v)
{
    if (n->pool && n->pool == v->pool && v->trainable) return true;
    for (int i = 0; i < n->nout; i++)
        if (p->values.at[n->out[i]].kind == CTN__V_VAR && p->values.at[n->out[i]].var == v)
            return true;
    return false;
}

static ctn_status find_unwritten(layouter *l)
{
    const ctn__plan *p = l->p;
    CTN__VEC(const ctn__pnode *) effects = {0};
    ctn_status st = CTN_OK;
    for (size_t i = 0; i < p->nodes.n && st == CTN_OK; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        if (!n->dead && n->effect && !ctn__vec_push(&effects, n)) st = CTN_ENOMEM;
    }
    for (size_t i = 0; i < l->n && st == CTN_OK; i++) {
        l->keeps[i] = p->values.at[i].kind == CTN__V_VAR;
        for (size_t k = 0; k < effects.n && l->keeps[i]; k++)
            l->keeps[i] = !writes(p, effects.at[k], p->values.at[i].var);
    }
    ctn__vec_free(&effects);
    return st;
}

/* ---- nodes ------------------------------------------------------------------------------------- */

static ctn_status emit(layouter *l, ctn__pnode *n);

/* c shows the same as v, elsewhere. */
static ctn_status note_copy(layouter *l, int v, int c)
{
    if ((size_t)v >= l->n) return CTN_OK;
    if (!ctn__vec_push(&l->copy, ((copied){v, c, l->copies[v], l->again}))) return CTN_ENOMEM;
    l->copies[v] = (int)l->copy.n - 1;
    return CTN_OK;
}

/* The result of reorder n outlives the run. */
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

/* v with its elements as `want` says; *out may be v itself. */
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

/* v for a reader of any strides. A cast is made when somebody reads it, in the layout that is wanted there; a layout
 * of the engine has no strides. */
static ctn_status settle(layouter *l, int v, const char *at, int *out)
{
    ctn_desc d = l->p->values.at[v].d;
    if (d.layout != 0) ctn__plain(&d);
    return lay_as(l, v, &d, at, out);
}

/* An output that has its place already, wanted by the kernel in another layout: through a copy. */
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
    }
    if (!n->run)
        return ctn_fail(CTN_EUNSUPPORTED, "%s: no kernel for this call (%s)", n->op->name, n->at);
    return CTN_OK;
}

/* Prepare n for the descriptions its operands have, and give it what the kernel wants instead. */
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
    n->priv_free = NULL; /* the list has it */
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

/* A view shows its input with other strides and needs no node. */
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
    if (st == CTN_END) { /* strides cannot say it: make the input row-major first */
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

/* An elementwise op sees channels-last operands with the channels as the last dimension: the same elements,
 * row-major, so that its kernels need not know. */
static ctn_status lay_elementwise(layouter *l, ctn__pnode *n)
{
    ctn__plan *p = l->p;
    ctn__value *o = &p->values.at[n->out[0]];
    bool fixed = o->kind != CTN__V_TEMP; /* its place is row-major */
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
        o = &p->values.at[n->out[0]]; /* the list may have moved */
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
    if (st == CTN_OK && !p->ctx->eager) st = find_unwritten(&l);
    for (size_t i = 0; i < p->nodes.n && st == CTN_OK; i++)
        if (!p->nodes.at[i].dead) st = lay_node(&l, &p->nodes.at[i]);
    ctn__free(l.region);
    ctn__free(l.last);
    ctn__free(l.copies);
    ctn__free(l.source);
    ctn__free(l.keeps);
    ctn__vec_free(&l.copy);
    ctn__vec_free(&p->nodes); /* nothing prepared yet in the old list */
    p->nodes.at = l.out.at;
    p->nodes.n = l.out.n;
    p->nodes.cap = l.out.cap;
    ctn__plan_uses(p);
    return st;
}
