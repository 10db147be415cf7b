/* SPDX-License-Identifier: Apache-2.0
 *
 * Differentiation, from graph to graph: an op's grad emits nodes with ordinary ops, so gradients
 * of gradients work wherever the emitted ops have gradients. It runs when a plan is built, and on
 * a hit only if the plan outputs emitted tensors. Emitted nodes and tensors live in the scope's
 * arena but are not on the tape.
 */
#include "graph/graph.h"

ctn__walked ctn__walked_none(ctn_context *ctx)
{
    ctx->marks += 2;
    return (ctn__walked){ctx->marks - 1, ctx->marks};
}

ctn_status ctn__history(ctn_tensor *y, ctn__node_list *out)
{
    return ctn__history_more(y, ctn__walked_none(y->ctx), out);
}

/* Depth-first search over producers, without recursion because networks can be deep. */
ctn_status ctn__history_more(ctn_tensor *y, ctn__walked w, ctn__node_list *out)
{
    const uint32_t seen = w.seen, done = w.done;
    ctn__node_list stack = {0};
    ctn_status st = CTN_OK;
    ctn__node *top = ctn__real(y)->node;
    if (top && top->needs_grad && top->mark != done && !ctn__vec_push(&stack, top)) st = CTN_ENOMEM;
    while (st == CTN_OK && stack.n > 0) {
        ctn__node *n = stack.at[stack.n - 1];
        if (n->mark == done) {
            stack.n--;
        } else if (n->mark == seen) {
            n->mark = done;
            stack.n--;
            if (!ctn__vec_push(out, n)) st = CTN_ENOMEM;
        } else {
            n->mark = seen;
            for (int i = n->nin - 1; i >= 0 && st == CTN_OK; i--) {
                ctn_tensor *t = ctn__real(n->in[i]);
                ctn__node *p = t->node;
                if ((t->flags & CTN__T_GRAD) && p && p->needs_grad && p->mark != done &&
                    p->mark != seen && !ctn__vec_push(&stack, p))
                    st = CTN_ENOMEM;
            }
        }
    }
    ctn__vec_free(&stack);
    return st;
}

static bool is_remote(const ctn__node *n)
{
    return n->event == CTN__EV_OP && (n->op->flags & CTN_OP_REMOTE);
}

static int by_place(const void *a, const void *b)
{
    const ctn__node *x = *(ctn__node *const *)a, *y = *(ctn__node *const *)b;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Puts a history with several ordered ops into program order. Gradients then communicate in the
 * reverse of the order in which the ops did, on every rank, whatever else its graph contains. */
static void order_history(ctn__node_list *hist)
{
    int ordered = 0;
    for (size_t k = 0; k < hist->n && ordered < 2; k++)
        ordered += hist->at[k]->event == CTN__EV_OP && (hist->at[k]->op->flags & CTN_OP_ORDERED);
    if (ordered > 1) qsort(hist->at, hist->n, sizeof *hist->at, by_place);
}

static ctn_status accumulate(const char *at, ctn_tensor *t, ctn_tensor *g)
{
    if (!g) return CTN_OK;
    if (!t->grad) {
        t->grad = g;
        return CTN_OK;
    }
    ctn_tensor *in[2] = {t->grad, g};
    t->grad = ctn__apply1(at, t->ctx, &ctn__op_add, 2, in, 0, NULL, 0, NULL);
    return t->grad ? CTN_OK : ctn_error_status();
}

/* Rule 2: the values that grad reads must still exist and must not have changed. */
static ctn_status check_saved(const char *at, const ctn__node *n)
{
    for (int i = 0; i < n->nin; i++) {
        const ctn_tensor *t = ctn__real(n->in[i]);
        if (!(n->op->grad_in >> i & 1)) continue;
        if (t->var && t->version != t->var->seen && !t->data)
            return ctn_fail(CTN_EGONE,
                            "backward at %s needs %s as it was at %s (%s), but it was changed "
                            "at %s",
                            at, t->var->name, n->at, n->op->name,
                            t->var->written_at ? t->var->written_at : "?");
    }
    return CTN_OK;
}

static ctn_status node_grad(const char *at, ctn__node *n, uint32_t leads)
{
    if (n->event != CTN__EV_OP)
        return ctn_fail(CTN_EGRAD, "backward at %s: cannot differentiate through the effect at %s",
                        at, n->at);
    if (!n->op->grad)
        return ctn_fail(CTN_EGRAD, "%s, called at %s, has no gradient%s (asked for at %s)",
                        n->op->name, n->at, n->op->order > 0 ? " of this order" : "", at);
    CTN_TRY(check_saved(at, n));
    ctn_tensor *in[CTN_MAX_IN], *out[CTN_MAX_OUT], *gout[CTN_MAX_OUT], *gin[CTN_MAX_IN];
    unsigned char need[CTN_MAX_IN];
    for (int i = 0; i < n->nin; i++) {
        in[i] = ctn__real(n->in[i]);
        gin[i] = NULL;
        need[i] = (in[i]->flags & CTN__T_GRAD) && in[i]->mark == leads;
    }
    bool any = false;
    for (int i = 0; i < n->nout; i++) {
        out[i] = n->out[i];
        gout[i] = n->out[i]->grad;
        any |= gout[i] != NULL;
    }
    if (!any) return CTN_OK;
    ctn_grad_args a = {.at = n->at,
                       .ctx = out[0]->ctx,
                       .nin = n->nin,
                       .nout = n->nout,
                       .nattr = n->nattr,
                       .nscalar = n->nscalar,
                       .in = in,
                       .out = out,
                       .gout = gout,
                       .gin = gin,
                       .need = need,
                       .attr = n->attr,
                       .scalar = n->scalar};
    CTN_TRY(n->op->grad(&a));
    for (int i = 0; i < n->nin; i++)
        if (need[i]) CTN_TRY(accumulate(at, in[i], gin[i]));
    return CTN_OK;
}

/* Mark the tensors between y and the xs, or other ranks, with `leads`: the gradient flows only
 * through them. */
static void mark_leads(const ctn__node_list *hist, int n, ctn_tensor *const *xs, uint32_t leads)
{
    for (int i = 0; i < n; i++) ctn__real(xs[i])->mark = leads;
    for (size_t k = 0; k < hist->n; k++) {
        ctn__node *node = hist->at[k];
        bool on = is_remote(node);
        for (int i = 0; i < node->nin; i++) {
            const ctn_tensor *t = ctn__real(node->in[i]);
            on |= (t->flags & CTN__T_GRAD) && t->mark == leads;
        }
        for (int i = 0; on && i < node->nout; i++) node->out[i]->mark = leads;
    }
}

/* `value` in the shape of y: the gradient of y with respect to itself, times value. */
static ctn_tensor *make_seed(const char *at, const ctn_tensor *y, const ctn_scalar *value)
{
    int64_t attr[CTN_MAX_DIMS + 2] = {y->d.dtype, y->d.ndim};
    memcpy(attr + 2, y->d.dim, (size_t)y->d.ndim * sizeof(int64_t));
    return ctn__apply1(at, y->ctx, &ctn__op_full, 0, NULL, 2 + y->d.ndim, attr, 1, value);
}

ctn_status ctn__differentiate(const char *at, ctn_tensor *y, ctn_tensor *gy, int n,
                              ctn_tensor *const *xs, ctn_tensor **gx)
{
    y = ctn__real(y);
    ctn_context *ctx = y->ctx;
    ctn__node_list hist = {0};
    ctn_status st = CTN_OK;
    CTN_TRY_GOTO(st, done, ctn__history(y, &hist));
    order_history(&hist);
    uint32_t leads = ++ctx->marks;
    mark_leads(&hist, n, xs, leads);
    for (size_t k = 0; k < hist.n; k++) {
        for (int i = 0; i < hist.at[k]->nin; i++) ctn__real(hist.at[k]->in[i])->grad = NULL;
        for (int i = 0; i < hist.at[k]->nout; i++) hist.at[k]->out[i]->grad = NULL;
    }
    for (int i = 0; i < n; i++) ctn__real(xs[i])->grad = NULL;
    if (!gy) {
        gy = make_seed(at, y, &CTN_CONST(1));
        if (!gy) CTN_TRY_GOTO(st, done, ctn_error_status());
    }
    y->grad = gy;
    for (size_t k = hist.n; k-- > 0;) {
        ctn__node *node = hist.at[k];
        bool on = false;
        for (int i = 0; i < node->nout; i++) on |= node->out[i]->mark == leads;
        if (on) CTN_TRY_GOTO(st, done, node_grad(at, node, leads));
    }
    for (int i = 0; i < n; i++) gx[i] = ctn__real(xs[i])->grad;
done:
    ctn__vec_free(&hist);
    return st;
}

static ctn_status contribute(ctn_context *ctx, const ctn__node *b, ctn_var *v, ctn_tensor *g,
                             bool first, bool direct)
{
    ctn__node *c = ctn__node_new(ctx, CTN__EV_ASSIGN, b->at, g ? 1 : 0, &g, 0);
    if (!c) return CTN_ENOMEM;
    c->var = v;
    c->pool = b->pool;
    c->first = first;
    c->direct = direct;
    return CTN_OK;
}

typedef CTN__VEC(ctn_tensor *) tensor_list;

/* Index of a variable in its pool. */
static int index_of(const ctn__pool *pool, const ctn_var *v)
{
    const int64_t at = ctn__pool_place(pool, v);
    int lo = 0, hi = pool->nvar;
    while (hi - lo > 1) {
        const int mid = (lo + hi) / 2;
        if (pool->begin[mid] <= at) lo = mid;
        else hi = mid;
    }
    while (pool->var[lo] != v) lo--; /* an empty variable begins where the next one does */
    return lo;
}

/* The number of leaves of one variable, and whether it got a gradient. */
typedef struct {
    int leaves;
    bool got;
} share;

/* Mark the gradients that belong to several leaves. Returns the mark. */
static uint32_t mark_shared(ctn_context *ctx, size_t n, ctn_tensor *const *gx)
{
    const uint32_t once = ++ctx->marks, more = ++ctx->marks;
    for (size_t k = 0; k < n; k++)
        if (gx[k]) gx[k]->mark = gx[k]->mark == once || gx[k]->mark == more ? more : once;
    return more;
}

/* Append t if it is a leaf of one of the pool's trainable variables and not in the list yet. */
static ctn_status add_leaf(tensor_list *xs, ctn_tensor *t, const ctn__pool *pool, uint32_t seen)
{
    if (!t->var || t->var->pool != pool || !(t->flags & CTN__T_GRAD) || t->mark == seen)
        return CTN_OK;
    t->mark = seen;
    return ctn__vec_push(xs, t) ? CTN_OK : CTN_ENOMEM;
}

/* Gradients of the loss with respect to every leaf of a trainable variable of the pool. */
static ctn_status expand_backward(ctn_context *ctx, ctn__node *b)
{
    ctn__pool *pool = b->pool;
    ctn__node_list hist = {0};
    tensor_list xs = {0};
    ctn_tensor **gx = NULL;
    ctn_status st = CTN_OK;
    share *of = ctn__calloc((size_t)pool->nvar + 1, sizeof *of);
    if (!of) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__history(b->in[0], &hist));
    uint32_t seen = ++ctx->marks;
    /* the loss may itself be a parameter */
    CTN_TRY_GOTO(st, done, add_leaf(&xs, ctn__real(b->in[0]), pool, seen));
    for (size_t k = 0; k < hist.n; k++)
        for (int i = 0; i < hist.at[k]->nin; i++)
            CTN_TRY_GOTO(st, done, add_leaf(&xs, ctn__real(hist.at[k]->in[i]), pool, seen));
    bool remote = false;
    for (size_t k = 0; k < hist.n; k++) remote |= is_remote(hist.at[k]);
    if (xs.n == 0 && !remote)
        CTN_TRY_GOTO(st, done,
                     ctn_fail(CTN_EGRAD,
                              "backward at %s: the loss depends on no trainable "
                              "parameter of this optimizer",
                              b->at));
    gx = ctn__calloc(xs.n + 1, sizeof *gx);
    if (!gx) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    ctn_tensor *seed = make_seed(b->at, ctn__real(b->in[0]), b->scalar);
    if (!seed) CTN_TRY_GOTO(st, done, ctn_error_status());
    CTN_TRY_GOTO(st, done, ctn__differentiate(b->at, b->in[0], seed, (int)xs.n, xs.at, gx));
    for (size_t k = 0; k < xs.n; k++) of[index_of(pool, xs.at[k]->var)].leaves++;
    const uint32_t shared = mark_shared(ctx, xs.n, gx);
    for (size_t k = 0; k < xs.n; k++) {
        share *v = &of[index_of(pool, xs.at[k]->var)];
        if (!gx[k]) continue;
        /* its variable's only gradient, and no other variable's: the pool's memory can hold it */
        const bool sole = v->leaves == 1 && gx[k]->mark != shared;
        CTN_TRY_GOTO(st, done,
                     contribute(ctx, b, xs.at[k]->var, gx[k], b->first && !v->got,
                                b->first && sole));
        v->got = true;
    }
    for (int v = 0; v < pool->nvar && b->first; v++) /* rule 13: zeros where there is no gradient */
        if (pool->var[v] && !of[v].got)
            CTN_TRY_GOTO(st, done, contribute(ctx, b, pool->var[v], NULL, true, false));
done:
    ctn__free(gx);
    ctn__free(of);
    ctn__vec_free(&xs);
    ctn__vec_free(&hist);
    return st;
}

static ctn_status expand_grad(ctn__node *n)
{
    ctn_tensor *gx[CTN_MAX_OUT];
    CTN_TRY(ctn__differentiate(n->at, n->in[0], NULL, n->nout, n->in + 1, gx));
    for (int i = 0; i < n->nout; i++) {
        if (!gx[i]) return ctn_fail(CTN_EGRAD, "grad at %s: y does not depend on x %d", n->at, i);
        n->out[i]->alias = gx[i];
        /* it carries a gradient if and only if the user's tensor does */
        gx[i]->flags = (uint8_t)((gx[i]->flags & ~CTN__T_GRAD) | (n->out[i]->flags & CTN__T_GRAD));
    }
    return CTN_OK;
}

/* Subtract (by -1) or add (by 1) the writes of n in the `seen` version of its variables. */
static void count_writes(const ctn__node *n, int by)
{
    uint64_t d = (uint64_t)(int64_t)by;
    if (n->event == CTN__EV_ASSIGN) n->var->seen += d;
    for (int i = 0; n->event == CTN__EV_STEP && i < n->pool->nvar; i++)
        if (n->pool->var[i] && n->pool->var[i]->trainable) n->pool->var[i]->seen += d;
}

ctn_status ctn__expand(ctn_context *ctx, size_t begin, size_t end, ctn__node_list *out)
{
    ctn_status st = CTN_OK;
    int grad_on = ctn_context_set_grad(ctx, 1);
    for (ctn_var *v = ctx->vars; v; v = v->next) v->seen = v->version;
    for (size_t k = begin; k < end; k++) count_writes(ctx->nodes.at[k], -1);
    ctx->emitting = true;
    for (size_t k = begin; k < end && st == CTN_OK; k++) {
        ctn__node *n = ctx->nodes.at[k];
        count_writes(n, 1);
        size_t first = ctx->emitted.n;
        ctx->expanding = n->place;
        if (n->event == CTN__EV_BACKWARD) st = expand_backward(ctx, n);
        else if (n->event == CTN__EV_GRAD) st = expand_grad(n);
        else if (!ctn__vec_push(out, n)) st = CTN_ENOMEM;
        for (size_t e = first; e < ctx->emitted.n && st == CTN_OK; e++)
            if (!ctn__vec_push(out, ctx->emitted.at[e])) st = CTN_ENOMEM;
    }
    ctx->emitting = false;
    ctn_context_set_grad(ctx, grad_on);
    return st;
}
