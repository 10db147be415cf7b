/* SPDX-License-Identifier: Apache-2.0
 *
 * Spread: a variable that is stored in one type and read in another (weights in bf16) is cast again
 * for every reader, right before it. The cast copy then lives for one kernel only, instead of from
 * the forward to the backward pass. All casts see the same value, because variables are written
 * last; a cast with a reader behind the first write stays where it is. A cast that nothing reads is
 * dropped. Runs between fuse and layout.
 */
#include "plan/plan.h"

#include "ops/ops.h"

typedef struct {
    ctn__plan *p;
    CTN__VEC(ctn__pnode) out;
    bool *fixed; /* value -> it is read behind the first write */
    size_t nfixed;
} spreader;

static bool writes_var(const ctn__plan *p, const ctn__pnode *n)
{
    for (int k = 0; k < n->nout; k++)
        if (p->values.at[n->out[k]].kind == CTN__V_VAR) return true;
    return n->pool != NULL;
}

static ctn_status find_fixed(spreader *s)
{
    const ctn__plan *p = s->p;
    bool written = false;
    s->nfixed = p->values.n;
    s->fixed = ctn__calloc(p->values.n + 1, sizeof *s->fixed);
    if (!s->fixed) return CTN_ENOMEM;
    for (size_t i = 0; i < p->nodes.n; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        if (n->dead) continue;
        written |= writes_var(p, n);
        for (int k = 0; k < n->nin && written; k++) s->fixed[n->in[k]] = true;
    }
    return CTN_OK;
}

/* The cast of a variable that computes v and can be repeated; NULL: v is something else. */
static const ctn__pnode *cast_behind(const spreader *s, int v)
{
    const ctn__plan *p = s->p;
    const ctn__value *val = &p->values.at[v];
    if ((size_t)v >= s->nfixed || s->fixed[v] || val->kind != CTN__V_TEMP || val->node < 0)
        return NULL;
    const ctn__pnode *n = &p->nodes.at[val->node];
    const bool is = n->op == &ctn__op_cast && !n->dead && !n->effect;
    return is && p->values.at[n->in[0]].kind == CTN__V_VAR ? n : NULL;
}

/* Cast once more, before reader n, and let it read the new value instead of operand k. */
static ctn_status add_cast(spreader *s, const ctn__pnode *cast, ctn__pnode *n, int k)
{
    ctn__plan *p = s->p;
    ctn__pnode c = *cast;
    const int from = n->in[k];
    const ctn_desc d = p->values.at[from].d;
    const int to = ctn__plan_value(p, &d, CTN__V_TEMP);
    c.out = ctn__arena_get(&p->mem, sizeof *c.out);
    if (to < 0 || !c.out) return CTN_ENOMEM;
    c.out[0] = to;
    for (int i = k; i < n->nin; i++)
        if (n->in[i] == from) n->in[i] = to;
    return ctn__vec_push(&s->out, c) ? CTN_OK : CTN_ENOMEM;
}

static ctn_status spread_node(spreader *s, ctn__pnode *n)
{
    for (int k = 0; k < n->nin; k++) {
        const ctn__pnode *cast = cast_behind(s, n->in[k]);
        if (cast) CTN_TRY(add_cast(s, cast, n, k));
    }
    return ctn__vec_push(&s->out, *n) ? CTN_OK : CTN_ENOMEM;
}

static bool is_cast_of_var(const ctn__plan *p, const ctn__pnode *n)
{
    return n->op == &ctn__op_cast && !n->dead && p->values.at[n->in[0]].kind == CTN__V_VAR;
}

static bool any_cast(const ctn__plan *p)
{
    for (size_t i = 0; i < p->nodes.n; i++)
        if (is_cast_of_var(p, &p->nodes.at[i])) return true;
    return false;
}

ctn_status ctn__pass_spread(ctn__plan *p)
{
    spreader s = {.p = p};
    if (p->ctx->eager || !any_cast(p)) return CTN_OK;
    ctn_status st = find_fixed(&s);
    for (size_t i = 0; i < p->nodes.n && st == CTN_OK; i++) {
        ctn__pnode *n = &p->nodes.at[i];
        if (!n->dead && !(is_cast_of_var(p, n) && cast_behind(&s, n->out[0])))
            st = spread_node(&s, n);
    }
    ctn__free(s.fixed);
    if (st < 0) {
        ctn__vec_free(&s.out);
        return st;
    }
    for (size_t i = 0; i < s.out.n; i++)
        for (int k = 0; k < s.out.at[i].nout; k++) p->values.at[s.out.at[i].out[k]].node = (int)i;
    ctn__vec_free(&p->nodes);
    p->nodes.at = s.out.at;
    p->nodes.n = s.out.n;
    p->nodes.cap = s.out.cap;
    ctn__plan_uses(p);
    return CTN_OK;
}
