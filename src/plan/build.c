/* SPDX-License-Identifier: Apache-2.0
 *
 * Building: turns the recorded segment, with its macros expanded, into nodes and values. Effects
 * are roots. Writes to variables come last, after every reader of the old value and in program
 * order (rule 2). Outputs are what the user can still ask for: losses and kept tensors at a step,
 * everything visible (and what its gradient needs) at a read in mid-step (rules 3, 5).
 */
#include "plan/plan.h"

typedef struct {
    ctn__plan *p;
    ctn_context *ctx;
    ctn__flush_kind kind;
    int *of, *of_emitted;        /* tensor id -> value; -1: none yet */
    size_t first, first_emitted; /* tensors from here on are computed by this plan */
    ctn__node_list nodes;
    CTN__VEC(ctn__node *) late; /* assigns, then the step */
} builder;

int ctn__plan_value(ctn__plan *p, const ctn_desc *d, ctn__value_kind kind)
{
    ctn__value v = {.d = *d, .kind = kind, .node = -1, .base = -1};
    return ctn__vec_push(&p->values, v) ? (int)p->values.n - 1 : -1;
}

int ctn__plan_node(ctn__plan *p, ctn_op *op, const char *at, int nin, const int *in, int nout,
                   const int *outs)
{
    ctn__pnode n = {.op = op, .at = at, .nin = nin, .nout = nout};
    n.in = ctn__arena_get(&p->mem, (size_t)(nin + nout + 1) * sizeof(int));
    if (!n.in) return -1;
    n.out = n.in + nin;
    int id = (int)p->nodes.n;
    for (int i = 0; i < nin; i++) n.in[i] = in[i];
    for (int i = 0; i < nout; i++) {
        n.out[i] = outs[i];
        p->values.at[outs[i]].node = id;
    }
    return ctn__vec_push(&p->nodes, n) ? id : -1;
}

int ctn__value_base(const ctn__plan *p, int v)
{
    while (p->values.at[v].base >= 0) v = p->values.at[v].base;
    return v;
}

ctn_desc ctn__node_desc(const ctn__plan *p, const ctn__pnode *n, ctn_desc d)
{
    if (!n->turned || ctn__count(&d) == 1) return d;
    ctn_desc r = ctn__broadcast_view(&d, &p->values.at[n->out[0]].d);
    int64_t dim = r.dim[1], stride = r.stride[1];
    int last = r.ndim - 1;
    memmove(&r.dim[1], &r.dim[2], (size_t)(last - 1) * sizeof *r.dim);
    memmove(&r.stride[1], &r.stride[2], (size_t)(last - 1) * sizeof *r.stride);
    r.dim[last] = dim;
    r.stride[last] = stride;
    return r;
}

void ctn__node_uses(ctn__plan *p, const ctn__pnode *n, int by)
{
    for (int k = 0; k < n->nin && !n->dead; k++)
        for (int v = n->in[k]; v >= 0; v = p->values.at[v].base) /* a view and what it shows */
            p->values.at[v].uses += by;
}

void ctn__plan_uses(ctn__plan *p)
{
    for (size_t i = 0; i < p->values.n; i++) p->values.at[i].uses = 0;
    for (size_t i = 0; i < p->nodes.n; i++) ctn__node_uses(p, &p->nodes.at[i], 1);
}

static int *slot_of(builder *b, const ctn_tensor *t)
{
    return t->id & CTN__EMITTED ? &b->of_emitted[t->id & ~CTN__EMITTED] : &b->of[t->id];
}

static bool computed_here(const builder *b, const ctn_tensor *t)
{
    if (t->id & CTN__EMITTED) return (t->id & ~CTN__EMITTED) >= b->first_emitted;
    return t->id >= b->first;
}

/* The value that stands for a tensor in this plan. */
static ctn_status value_of(builder *b, ctn_tensor *t, int *out)
{
    t = ctn__real(t);
    int *slot = slot_of(b, t), v;
    if (*slot >= 0) {
        *out = *slot;
        return CTN_OK;
    }
    if (t->data || (!t->node && !t->var)) {
        v = ctn__plan_value(b->p, &t->d, CTN__V_BIND);
        if (v >= 0) b->p->values.at[v].tensor = t->id;
    } else if (t->var) {
        v = ctn__plan_value(b->p, &t->d, CTN__V_VAR);
        if (v >= 0) b->p->values.at[v].var = t->var;
    } else {
        return ctn_fail(CTN_EGONE,
                        "the value of %s recorded at %s is needed, but it was computed before the "
                        "step at %s and is gone; use ctn_keep_graph before that step",
                        t->node->op ? t->node->op->name : "grad", t->at,
                        b->ctx->step_at ? b->ctx->step_at : "an earlier run");
    }
    if (v < 0) return CTN_ENOMEM;
    *slot = *out = v;
    return CTN_OK;
}

static ctn_status add_op(builder *b, ctn__node *n)
{
    ctn__plan *p = b->p;
    int in[CTN_MAX_IN] = {0}, out[CTN_MAX_OUT] = {0};
    for (int i = 0; i < n->nin; i++) CTN_TRY(value_of(b, n->in[i], &in[i]));
    for (int i = 0; i < n->nout; i++) {
        out[i] = ctn__plan_value(p, &n->out[i]->d, CTN__V_TEMP);
        if (out[i] < 0) return CTN_ENOMEM;
        *slot_of(b, n->out[i]) = out[i];
    }
    int id = ctn__plan_node(p, n->op, n->at, n->nin, in, n->nout, out);
    if (id < 0) return CTN_ENOMEM;
    ctn__pnode *pn = &p->nodes.at[id];
    pn->nattr = n->nattr;
    pn->nscalar = n->nscalar;
    pn->ordinal = n->ordinal;
    pn->block = n->block;
    pn->gradient = n->emitted;
    pn->effect = (n->op->flags & CTN_OP_ORDERED) != 0;
    pn->attr = ctn__arena_get(&p->mem, (size_t)(n->nattr + 1) * sizeof(int64_t));
    pn->scalar = ctn__arena_get(&p->mem, (size_t)(n->nscalar + 1) * sizeof(ctn_scalar));
    if (!pn->attr || !pn->scalar) return CTN_ENOMEM;
    if (n->nattr) memcpy(pn->attr, n->attr, n->nattr * sizeof(int64_t));
    if (n->nscalar) memcpy(pn->scalar, n->scalar, n->nscalar * sizeof(ctn_scalar));
    return CTN_OK;
}

/* A gradient contribution. Where possible, the producer of the first one writes straight into the
 * pool; otherwise it is copied there. Later ones are added. */
static ctn_status add_contribution(builder *b, ctn__node *n)
{
    ctn__plan *p = b->p;
    int g = ctn__plan_value(p, &n->var->d, CTN__V_GRAD), v = -1, id;
    if (g < 0) return CTN_ENOMEM;
    p->values.at[g].var = n->var;
    if (n->nin == 0) {
        id = ctn__plan_node(p, &ctn__op_clear, n->at, 0, NULL, 1, &g);
    } else {
        CTN_TRY(value_of(b, n->in[0], &v));
        ctn__value *val = &p->values.at[v];
        bool direct = n->direct && val->kind == CTN__V_TEMP && val->node >= 0 &&
                      !(p->nodes.at[val->node].op->flags & CTN_OP_VIEW) &&
                      ctn__same_shape(&val->d, &n->var->d);
        if (direct) {
            val->kind = CTN__V_GRAD;
            val->var = n->var;
            p->nodes.at[val->node].effect = true;
            return CTN_OK;
        }
        id =
            ctn__plan_node(p, n->first ? &ctn__op_write : &ctn__op_accumulate, n->at, 1, &v, 1, &g);
    }
    if (id < 0) return CTN_ENOMEM;
    p->nodes.at[id].effect = true;
    return CTN_OK;
}

/* The variable that v is, directly or through views; NULL: v is a value of its own. */
static const ctn_var *shows_var(const ctn__plan *p, int v)
{
    while (p->values.at[v].kind == CTN__V_TEMP && p->values.at[v].node >= 0 &&
           (p->nodes.at[p->values.at[v].node].op->flags & CTN_OP_VIEW))
        v = p->nodes.at[p->values.at[v].node].in[0];
    return p->values.at[v].kind == CTN__V_VAR ? p->values.at[v].var : NULL;
}

/* If an assign reads another variable, copy that value first: an earlier assign may overwrite it,
 * as in a swap. */
static ctn_status save_source(builder *b, const ctn__node *n)
{
    int v = -1;
    CTN_TRY(value_of(b, n->in[0], &v));
    if (!shows_var(b->p, v)) return CTN_OK;
    ctn_desc d = b->p->values.at[v].d;
    int c = ctn__plan_value(b->p, &d, CTN__V_TEMP);
    if (c < 0 || ctn__plan_node(b->p, &ctn__op_write, n->at, 1, &v, 1, &c) < 0) return CTN_ENOMEM;
    *slot_of(b, ctn__real(n->in[0])) = c;
    return CTN_OK;
}

static bool stepped(const ctn__node *n, const ctn_var *v)
{
    return n->event == CTN__EV_STEP && n->pool == v->pool && v->trainable;
}

static int writes_of(const builder *b, const ctn_var *v)
{
    int n = 0;
    for (size_t i = 0; i < b->late.n; i++)
        n += b->late.at[i]->var == v || stepped(b->late.at[i], v);
    return n;
}

/* Let the producer of value v, which is assigned to a variable, write into the variable, if it is
 * an update of it and the only reader of the old value. No pass can then move a read behind it. */
static bool update_in_place(builder *b, const ctn_var *var, int v)
{
    ctn__plan *p = b->p;
    ctn__value *val = &p->values.at[v];
    const ctn__pnode *n = val->node >= 0 ? &p->nodes.at[val->node] : NULL;
    if (!n || !(n->op->flags & CTN_OP_UPDATE) || val->kind != CTN__V_TEMP) return false;
    if (n->block || var->pool || writes_of(b, var) != 1) return false;
    if (p->values.at[n->in[0]].kind != CTN__V_VAR || p->values.at[n->in[0]].var != var)
        return false;
    for (size_t i = 0; i < p->nodes.n; i++) {
        const ctn__pnode *reader = &p->nodes.at[i];
        for (int k = reader == n; k < reader->nin; k++)
            if (shows_var(p, reader->in[k]) == var) return false;
    }
    return true;
}

static ctn_status add_assign(builder *b, ctn__node *n)
{
    ctn__plan *p = b->p;
    int v = -1;
    CTN_TRY(value_of(b, n->in[0], &v));
    if (update_in_place(b, n->var, v)) {
        p->values.at[v].kind = CTN__V_VAR;
        p->values.at[v].var = n->var;
        p->nodes.at[p->values.at[v].node].effect = true;
        return CTN_OK;
    }
    const int d = ctn__plan_value(p, &n->var->d, CTN__V_VAR);
    if (d < 0) return CTN_ENOMEM;
    p->values.at[d].var = n->var;
    int id = ctn__plan_node(p, &ctn__op_write, n->at, 1, &v, 1, &d);
    if (id < 0) return CTN_ENOMEM;
    p->nodes.at[id].effect = true;
    return CTN_OK;
}

static ctn_status add_step(builder *b, ctn__node *n)
{
    int id = ctn__plan_node(b->p, n->op, n->at, 0, NULL, 0, NULL);
    if (id < 0) return CTN_ENOMEM;
    b->p->nodes.at[id].effect = true;
    b->p->nodes.at[id].pool = n->pool;
    return CTN_OK;
}

/* A read of a variable after an assign in the same segment sees the assigned tensor. */
static ctn_status forward_reads(builder *b)
{
    CTN__VEC(ctn_tensor *) leaf = {0};
    bool ok = true;
    for (size_t i = b->first; i < b->ctx->tensors.n && b->late.n > 0 && ok; i++) {
        ctn_tensor *t = b->ctx->tensors.at[i];
        if (t->var && !t->data) ok = ctn__vec_push(&leaf, t);
    }
    for (size_t k = 0; k < b->late.n && ok; k++) {
        ctn__node *a = b->late.at[k];
        if (a->event != CTN__EV_ASSIGN) continue;
        uint64_t version = a->var->version;
        for (size_t j = k + 1; j < b->late.n; j++) /* subtract later writes of this variable */
            version -= b->late.at[j]->var == a->var || stepped(b->late.at[j], a->var);
        for (size_t i = 0; i < leaf.n; i++)
            if (leaf.at[i]->var == a->var && leaf.at[i]->version == version)
                leaf.at[i]->alias = a->in[0];
    }
    ctn__vec_free(&leaf);
    return ok ? CTN_OK : CTN_ENOMEM;
}

/* ---- outputs -------------------------------------------------------------------------------- */

static ctn_status make_output(builder *b, ctn_tensor *t)
{
    ctn__plan *p = b->p;
    ctn_tensor *r = ctn__real(t);
    int v = -1;
    if (t->data || (t == r && !r->node && !r->var)) return CTN_OK;
    CTN_TRY(value_of(b, r, &v));
    ctn__value *val = &p->values.at[v];
    if (val->kind == CTN__V_BIND && val->output && val->tensor == t->id) return CTN_OK;
    bool view = val->node >= 0 && (p->nodes.at[val->node].op->flags & CTN_OP_VIEW);
    if (val->kind == CTN__V_TEMP && val->node >= 0 && !view) {
        val->kind = CTN__V_BIND;
    } else { /* a variable, a gradient in the pool, a view, or bound already: copy */
        ctn_desc d = val->d;
        ctn__plain(&d);
        int c = ctn__plan_value(p, &d, CTN__V_BIND);
        int id = c < 0 ? -1 : ctn__plan_node(p, &ctn__op_write, t->at, 1, &v, 1, &c);
        if (id < 0) return CTN_ENOMEM;
        val = &p->values.at[c];
        v = c;
    }
    val->tensor = t->id;
    val->output = true;
    p->keeps_emitted |= (t->id & CTN__EMITTED) != 0;
    p->nodes.at[val->node].effect = true;
    return CTN_OK;
}

/* Make outputs of the values computed here that the gradient of y may need. w: marks of the nodes
 * that earlier calls have visited. */
static ctn_status make_saved(builder *b, ctn_tensor *y, ctn__walked w)
{
    ctn__node_list hist = {0};
    ctn_status st = CTN_OK;
    if (!(y->flags & CTN__T_GRAD)) return CTN_OK;
    CTN_TRY_GOTO(st, done, ctn__history_more(y, w, &hist));
    for (size_t k = 0; k < hist.n; k++) {
        ctn__node *n = hist.at[k];
        if (n->event != CTN__EV_OP) continue;
        for (int i = 0; i < n->nin; i++) {
            ctn_tensor *t = ctn__real(n->in[i]);
            if ((n->op->grad_in >> i & 1) && computed_here(b, t) && t->node && !t->data)
                CTN_TRY_GOTO(st, done, make_output(b, t));
        }
        for (int i = 0; i < n->nout; i++)
            if ((n->op->grad_out >> i & 1) && computed_here(b, n->out[i]) && !n->out[i]->data)
                CTN_TRY_GOTO(st, done, make_output(b, n->out[i]));
    }
done:
    ctn__vec_free(&hist);
    return st;
}

static bool is_output(const builder *b, const ctn_tensor *t)
{
    if (t->flags & (CTN__T_KEPT | CTN__T_KEPT_GRAPH | CTN__T_OUTPUT)) return true;
    return b->kind == CTN__FLUSH_READ && t->level != 255 && t->node;
}

static ctn_status choose_outputs(builder *b)
{
    size_t n = b->ctx->tensors.n;
    bool grads = false; /* there are gradients made by ctn_grad */
    const ctn__walked w = ctn__walked_none(b->ctx);
    for (size_t i = b->first; i < n; i++) {
        const ctn__node *node = b->ctx->tensors.at[i]->node;
        grads |= node && node->event == CTN__EV_GRAD;
    }
    for (size_t i = b->first; i < n; i++) {
        ctn_tensor *t = b->ctx->tensors.at[i];
        if (!is_output(b, t)) continue;
        /* A gradient made by ctn_grad that may be differentiated later is output as the tensor it
         * expanded to, which has the history. Otherwise it is output as the tensor the user
         * holds, so that a hit need not expand anything. */
        bool history = (t->flags & CTN__T_KEPT_GRAPH) || b->kind == CTN__FLUSH_READ;
        CTN_TRY(make_output(b, history && !t->var ? ctn__real(t) : t));
        if (!history || t->var) continue;
        CTN_TRY(make_saved(b, ctn__real(t), w));
        /* its history may lead through a gradient, even if nothing is saved */
        b->p->keeps_emitted |= grads;
    }
    return CTN_OK;
}

static ctn_status add_nodes(builder *b)
{
    for (size_t k = 0; k < b->nodes.n; k++) {
        ctn__node *n = b->nodes.at[k];
        if (n->event == CTN__EV_STEP || (n->event == CTN__EV_ASSIGN && !n->pool)) {
            if (!ctn__vec_push(&b->late, n)) return CTN_ENOMEM;
        }
    }
    CTN_TRY(forward_reads(b));
    for (size_t k = 0; k < b->nodes.n; k++) {
        ctn__node *n = b->nodes.at[k];
        if (n->event == CTN__EV_OP) CTN_TRY(add_op(b, n));
        else if (n->event == CTN__EV_ASSIGN && n->pool) CTN_TRY(add_contribution(b, n));
    }
    CTN_TRY(choose_outputs(b));
    for (size_t k = 0; k < b->late.n; k++)
        if (b->late.at[k]->event == CTN__EV_ASSIGN) CTN_TRY(save_source(b, b->late.at[k]));
    for (size_t k = 0; k < b->late.n; k++) {
        ctn__node *n = b->late.at[k];
        if (n->event == CTN__EV_ASSIGN) CTN_TRY(add_assign(b, n));
        else CTN_TRY(add_step(b, n));
    }
    return CTN_OK;
}

static int *new_map(size_t n)
{
    int *m = ctn__malloc((n + 1) * sizeof *m);
    for (size_t i = 0; m && i < n; i++) m[i] = -1;
    return m;
}

ctn_status ctn__plan_build(ctn__plan **out, ctn_context *ctx, ctn__flush_kind kind)
{
    ctn_status st = CTN_OK;
    *out = NULL;
    builder b = {.ctx = ctx,
                 .kind = kind,
                 .first = ctx->flushed_tensors,
                 .first_emitted = ctx->emitted_tensors.n};
    b.p = ctn__calloc(1, sizeof *b.p);
    if (!b.p) return CTN_ENOMEM;
    b.p->ctx = ctx;
    CTN_TRY_GOTO(st, done, ctn__expand(ctx, ctx->flushed_nodes, ctx->nodes.n, &b.nodes));
    b.of = new_map(ctx->tensors.n);
    b.of_emitted = new_map(ctx->emitted_tensors.n);
    if (!b.of || !b.of_emitted) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, add_nodes(&b));
    CTN_TRY_GOTO(st, done, ctn__pass_simplify(b.p));
    CTN_TRY_GOTO(st, done, ctn__pass_recompute(b.p));
    CTN_TRY_GOTO(st, done, ctn__pass_precision(b.p));
    CTN_TRY_GOTO(st, done, ctn__pass_fuse(b.p));
    CTN_TRY_GOTO(st, done, ctn__pass_spread(b.p));
    CTN_TRY_GOTO(st, done, ctn__pass_layout(b.p));
    CTN_TRY_GOTO(st, done, ctn__pass_schedule(b.p));
    CTN_TRY_GOTO(st, done, ctn__pass_exchange(b.p));
    CTN_TRY_GOTO(st, done, ctn__pass_constant(b.p));
    CTN_TRY_GOTO(st, done, ctn__pass_memory(b.p));
    CTN_TRY_GOTO(st, done, ctn__plan_args(ctx->planner, b.p));
    *out = b.p;
    b.p = NULL;
done:
    /* from now on the value is in the variable's memory */
    for (size_t i = b.first; i < ctx->tensors.n; i++)
        if (ctx->tensors.at[i]->var) ctx->tensors.at[i]->alias = NULL;
    ctn__free(b.of);
    ctn__free(b.of_emitted);
    ctn__vec_free(&b.nodes);
    ctn__vec_free(&b.late);
    ctn__plan_free(b.p);
    return st;
}

void ctn__plan_free(ctn__plan *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->nodes.n; i++) {
        ctn__pnode *n = &p->nodes.at[i];
        if (n->priv_free) n->priv_free(n->priv);
    }
    ctn__vec_free(&p->nodes);
    ctn__vec_free(&p->values);
    ctn__arena_free(&p->mem);
    ctn__constants_free(p->constants);
    ctn__free(p->tape);
    ctn__free(p);
}
