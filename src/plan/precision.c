/* SPDX-License-Identifier: Apache-2.0
 *
 * Precision: under a low-precision policy, chooses which values have the low type and inserts the
 * casts (rule 15). The op struct's `prec` says how: ops of CTN_PREC_LOW compute in the low type,
 * except for biases (one dimension); ops of CTN_PREC_ANY follow their operands if their kernels
 * support it; everything else is f32. What the user sees, variables and gradients stay f32: a
 * kernel that computes a gradient reads low operands and writes f32. Runs between recompute and
 * fuse.
 */
#include "plan/plan.h"

#include "ops/ops.h"

typedef struct {
    ctn__plan *p;
    ctn_dtype low;
    CTN__VEC(int) cast; /* value -> the same value in the other type; -1: none */
    CTN__VEC(ctn__pnode) out;
} caster;

static bool is_low(const caster *c, int v)
{
    return c->p->values.at[v].d.dtype == c->low;
}

static bool is_f32(const caster *c, int v)
{
    return c->p->values.at[v].d.dtype == CTN_F32;
}

static ctn_status push(caster *c, const ctn__pnode *n)
{
    for (int i = 0; i < n->nout; i++) c->p->values.at[n->out[i]].node = (int)c->out.n;
    return ctn__vec_push(&c->out, *n) ? CTN_OK : CTN_ENOMEM;
}

static ctn_status push_cast(caster *c, int from, int to, const ctn__pnode *user)
{
    ctn__pnode n = {.op = &ctn__op_reorder,
                    .at = user->at,
                    .nin = 1,
                    .nout = 1,
                    .effect = c->p->values.at[to].kind != CTN__V_TEMP};
    n.in = ctn__arena_get(&c->p->mem, 2 * sizeof(int));
    if (!n.in) return CTN_ENOMEM;
    n.out = n.in + 1;
    n.in[0] = from;
    n.out[0] = to;
    return push(c, &n);
}

static int new_value(caster *c, const ctn_desc *like, ctn_dtype t)
{
    ctn_desc d = *like;
    d.dtype = t;
    ctn__plain(&d);
    int v = ctn__plan_value(c->p, &d, CTN__V_TEMP);
    while (v >= 0 && c->cast.n < c->p->values.n)
        if (!ctn__vec_push(&c->cast, -1)) return -1;
    return v;
}

/* *v in type t, which is the low type or f32. */
static ctn_status as_type(caster *c, int *v, ctn_dtype t, const ctn__pnode *user)
{
    ctn__value *val = &c->p->values.at[*v];
    if (val->d.dtype == t || (val->d.dtype != c->low && val->d.dtype != CTN_F32)) return CTN_OK;
    const ctn__pnode *maker = val->node >= 0 && c->out.at ? &c->out.at[val->node] : NULL;
    if (t == CTN_F32 && maker && maker->op->prec == CTN_PREC_LOW && val->uses == 1) {
        /* its only reader wants f32: let the kernel write the type it accumulates in */
        val->d.dtype = CTN_F32;
        return CTN_OK;
    }
    if (maker && maker->op == &ctn__op_cast && is_low(c, maker->in[0]) && t == c->low) {
        *v = maker->in[0]; /* stored in the low type and cast by the program */
        return CTN_OK;
    }
    int w = c->cast.at[*v];
    if (w < 0) {
        w = new_value(c, &val->d, t);
        if (w < 0) return CTN_ENOMEM;
        c->cast.at[*v] = w;
        CTN_TRY(push_cast(c, *v, w, user));
    }
    *v = w;
    return CTN_OK;
}

static void make_low(caster *c, int v)
{
    ctn__value *val = &c->p->values.at[v];
    if (val->kind == CTN__V_TEMP && val->d.dtype == CTN_F32) val->d.dtype = c->low;
}

static ctn_status low_op(caster *c, ctn__pnode *n)
{
    for (int i = 0; i < n->nin; i++)
        CTN_TRY(as_type(c, &n->in[i], c->p->values.at[n->in[i]].d.ndim >= 2 ? c->low : CTN_F32, n));
    for (int i = 0; i < n->nout; i++) make_low(c, n->out[i]);
    return push(c, n);
}

/* The operands that may have the low type even though the others are f32. */
static uint32_t low_inputs(const ctn_op *op)
{
    return op->spatial_in | op->low_in;
}

static uint32_t low_outputs(const ctn_op *op)
{
    return op->spatial_out | op->low_out;
}

/* If one of these operands has the low type, all of them get it; the others are f32. */
static ctn_status mixed_op(caster *c, ctn__pnode *n)
{
    const uint32_t in = low_inputs(n->op), out = low_outputs(n->op);
    bool low = false;
    for (int i = 0; i < n->nin; i++) low |= (in >> i & 1) && is_low(c, n->in[i]);
    for (int i = 0; i < n->nin; i++)
        CTN_TRY(as_type(c, &n->in[i], low && (in >> i & 1) ? c->low : CTN_F32, n));
    int fixed[CTN_MAX_OUT], made[CTN_MAX_OUT], nfixed = 0;
    for (int i = 0; i < n->nout && low; i++) {
        int v = n->out[i];
        if (!(out >> i & 1) || !is_f32(c, v)) continue;
        if (c->p->values.at[v].kind == CTN__V_TEMP) {
            make_low(c, v);
            continue;
        }
        fixed[nfixed] = v;
        made[nfixed] = n->out[i] = new_value(c, &c->p->values.at[v].d, c->low);
        if (made[nfixed++] < 0) return CTN_ENOMEM;
    }
    CTN_TRY(push(c, n));
    for (int i = 0; i < nfixed; i++) CTN_TRY(push_cast(c, made[i], fixed[i], n));
    return CTN_OK;
}

/* No casts: the plan's elementwise loop reads and writes any type. */
static ctn_status elementwise_op(caster *c, ctn__pnode *n)
{
    const ctn_desc *o = &c->p->values.at[n->out[0]].d;
    bool low = false;
    for (int i = 0; i < n->nin; i++)
        low |= is_low(c, n->in[i]) && ctn__same_shape(&c->p->values.at[n->in[i]].d, o);
    if (low) make_low(c, n->out[0]);
    return push(c, n);
}

static ctn_status cast_node(caster *c, ctn__pnode *n)
{
    if (n->op->prec == CTN_PREC_LOW) return low_op(c, n);
    if (n->op->flags & CTN_OP_VIEW) {
        if (is_low(c, n->in[0])) make_low(c, n->out[0]);
        return push(c, n);
    }
    if (n->op->prec == CTN_PREC_ANY && (low_inputs(n->op) | low_outputs(n->op)))
        return mixed_op(c, n);
    if (n->op->prec == CTN_PREC_ANY && ctn__can_chain(c->p, c->out.at, n))
        return elementwise_op(c, n);
    for (int i = 0; i < n->nin; i++) CTN_TRY(as_type(c, &n->in[i], CTN_F32, n));
    return push(c, n);
}

ctn_status ctn__pass_precision(ctn__plan *p)
{
    ctn_precision policy = p->ctx->opt.precision;
    if (!ctn__low_policy(p->ctx) || !p->values.at || p->values.n == 0) return CTN_OK;
    caster c = {.p = p, .low = policy == CTN_PRECISION_F16 ? CTN_F16 : CTN_BF16};
    ctn_status st = CTN_OK;
    for (size_t i = 0; i < p->values.n && st == CTN_OK; i++)
        if (!ctn__vec_push(&c.cast, -1)) st = CTN_ENOMEM;
    for (size_t i = 0; i < p->nodes.n && st == CTN_OK; i++)
        if (!p->nodes.at[i].dead) st = cast_node(&c, &p->nodes.at[i]);
    ctn__vec_free(&c.cast);
    if (st < 0) {
        ctn__vec_free(&c.out);
        return st;
    }
    ctn__vec_free(&p->nodes);
    p->nodes.at = c.out.at;
    p->nodes.n = c.out.n;
    p->nodes.cap = c.out.cap;
    ctn__plan_uses(p);
    return CTN_OK;
}
