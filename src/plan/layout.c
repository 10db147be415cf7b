/* SPDX-License-Identifier: Apache-2.0
 *
 * Layout: walks the nodes in order and decides where elements lie. Views (reshape, transpose, broadcast)
 * become other strides of the same memory; a kernel that reads any strides takes them as they are,
 * otherwise a reorder to row-major is inserted, once per value, and counted. Then the node's kernel is
 * prepared for exactly these descriptions.
 */
#include "plan/plan.h"

typedef struct {
    ctn__plan *p;
    ctn__planner *pl;
    int *plain; /* value -> its row-major copy, -1 */
    size_t nplain;
    CTN__VEC(ctn__pnode) out; /* new node list */
} layouter;

static ctn_status prepare(layouter *l, ctn__pnode *n)
{
    ctn__plan *p = l->p;
    ctn_desc din[CTN_MAX_IN], dout[CTN_MAX_OUT];
    for (int i = 0; i < n->nin; i++) din[i] = p->values.at[n->in[i]].d;
    for (int i = 0; i < n->nout; i++) dout[i] = p->values.at[n->out[i]].d;
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
                              .threads = p->ctx->threads,
                              .engine = l->pl->engine};
        ctn_status st = n->op->prepare(&a);
        n->priv = a.priv;
        n->priv_free = a.priv_free;
        if (st < 0) { /* what it made so far goes with it */
            if (n->priv_free) n->priv_free(n->priv);
            return st;
        }
        if (a.run) n->run = a.run;
        if (a.kernel) n->kernel = a.kernel;
        n->scratch = a.scratch;
        n->flops = a.flops;
        for (int i = 0; i < n->nout; i++) p->values.at[n->out[i]].d = dout[i];
    }
    if (!n->run)
        return ctn_fail(CTN_EUNSUPPORTED, "%s: no kernel for this call (%s)", n->op->name, n->at);
    return CTN_OK;
}

static ctn_status emit(layouter *l, ctn__pnode *n)
{
    CTN_TRY(prepare(l, n));
    int id = (int)l->out.n;
    for (int i = 0; i < n->nout; i++) l->p->values.at[n->out[i]].node = id;
    if (ctn__vec_push(&l->out, *n)) return CTN_OK;
    if (n->priv_free) n->priv_free(n->priv);
    return CTN_ENOMEM;
}

/* A row-major copy of value v; *out may be v itself. */
static ctn_status make_plain(layouter *l, int v, const char *at, int *out)
{
    ctn__plan *p = l->p;
    *out = v;
    if (ctn__is_plain(&p->values.at[v].d)) return CTN_OK;
    if ((size_t)v < l->nplain && l->plain[v] >= 0) {
        *out = l->plain[v];
        return CTN_OK;
    }
    ctn_desc d = p->values.at[v].d;
    ctn__plain(&d);
    int c = ctn__plan_value(p, &d, CTN__V_TEMP);
    if (c < 0) return CTN_ENOMEM;
    ctn__pnode n = {.op = &ctn__op_reorder, .at = at, .nin = 1, .nout = 1};
    n.in = ctn__arena_get(&p->mem, 2 * sizeof(int));
    if (!n.in) return CTN_ENOMEM;
    n.out = n.in + 1;
    n.in[0] = v;
    n.out[0] = c;
    CTN_TRY(emit(l, &n));
    p->reorders++;
    p->reorder_bytes += 2 * ctn__bytes(&d);
    if ((size_t)v < l->nplain) l->plain[v] = c;
    *out = c;
    return CTN_OK;
}

/* A view shows its input with other strides and needs no node. */
static ctn_status lay_view(layouter *l, ctn__pnode *n)
{
    ctn__plan *p = l->p;
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

static ctn_status lay_node(layouter *l, ctn__pnode *n)
{
    if (n->op->flags & CTN_OP_VIEW) return lay_view(l, n);
    for (int i = 0; i < n->nin; i++)
        if (!(n->op->flags & CTN_OP_STRIDED)) CTN_TRY(make_plain(l, n->in[i], n->at, &n->in[i]));
    return emit(l, n);
}

ctn_status ctn__pass_layout(ctn__plan *p)
{
    layouter l = {.p = p, .pl = p->ctx->planner, .nplain = p->values.n};
    ctn_status st = CTN_OK;
    l.plain = ctn__malloc((p->values.n + 1) * sizeof *l.plain);
    if (!l.plain) return CTN_ENOMEM;
    for (size_t i = 0; i < p->values.n; i++) l.plain[i] = -1;
    for (size_t i = 0; i < p->nodes.n && st == CTN_OK; i++)
        if (!p->nodes.at[i].dead) st = lay_node(&l, &p->nodes.at[i]);
    ctn__free(l.plain);
    ctn__vec_free(&p->nodes); /* nothing prepared yet in the old list */
    p->nodes.at = l.out.at;
    p->nodes.n = l.out.n;
    p->nodes.cap = l.out.cap;
    ctn__plan_uses(p);
    return st;
}
