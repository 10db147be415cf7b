/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses the gradients of ReLU and of batch normalisation, and the sum of two gradients before
 * them (the end of a residual block). The reduction of the normalisation reads both gradients and
 * the activation, sums and masks them in the same pass, and writes the joined gradient for its
 * other readers (the shortcut). The activation need not be read if it is a function of x alone,
 * that is, the result of a fused batch_norm without residual. The fused node takes the place of
 * the gradient of the ReLU.
 */
#include "plan/plan.h"

#include "ops/ops.h"

enum { ACT = 0, JOIN = 1 };                                /* attributes of batch_norm_grad */
enum { BY_Y = 1, BY_X = 2 };                               /* values of ACT */
enum { GY = 0, X = 1, MEAN, RSTD, SCALE, FIRST_OPTIONAL }; /* inputs */
enum { G = 3 };                                            /* output: the joined, masked gradient */
enum { BN_ADD = 1, BN_X = 0, BN_SCALE, BN_SHIFT };         /* batch_norm: attribute, inputs */
enum { BN_Y, BN_MEAN, BN_RSTD };                           /* its outputs */

static int reader(const ctn__plan *p, int v, int after)
{
    const int *at, count = ctn__plan_readers(p, v, &at);
    for (int i = 0; i < count; i++) {
        const ctn__pnode *n = &p->nodes.at[at[i]];
        if (at[i] <= after || n->dead || n->op != &ctn__op_batch_norm_grad || n->attr[ACT] ||
            n->attr[JOIN])
            continue;
        if (n->in[GY] == v && n->nin == FIRST_OPTIONAL && p->values.at[n->out[G]].uses == 0)
            return at[i];
    }
    return -1;
}

/* Same shape and type: the kernel does not support mixed types. */
static bool alike(const ctn__plan *p, int v, const ctn_desc *d)
{
    return p->values.at[v].d.dtype == d->dtype && ctn__same_shape(&p->values.at[v].d, d);
}

/* Every operand of n is computed before `node`. */
static bool ready(const ctn__plan *p, const ctn__pnode *n, int node)
{
    for (int i = 1; i < n->nin; i++)
        if (p->values.at[n->in[i]].node >= node) return false;
    return true;
}

/* The shift of the batch_norm that n is the gradient of, if it computes y from x alone; -1: it does
 * not. The shift has not changed since, because writes to variables come last (build.c). */
static int shift_behind(const ctn__plan *p, const ctn__pnode *n, int y)
{
    int maker = p->values.at[y].node;
    if (maker < 0) return -1;
    const ctn__pnode *f = &p->nodes.at[maker];
    if (f->dead || f->op != &ctn__op_batch_norm || !f->attr[ACT] || f->attr[BN_ADD]) return -1;
    bool same = f->out[BN_Y] == y && f->in[BN_X] == n->in[X] && f->in[BN_SCALE] == n->in[SCALE] &&
                f->out[BN_MEAN] == n->in[MEAN] && f->out[BN_RSTD] == n->in[RSTD];
    return same ? f->in[BN_SHIFT] : -1;
}

bool ctn__fuse_norm_grad(ctn__plan *p, int node, ctn_status *st)
{
    ctn__pnode *mask = &p->nodes.at[node];
    if (mask->op != &ctn__op_relu_grad || mask->effect) return false;
    int y = mask->in[0], g = mask->in[1], out = mask->out[0];
    if (p->values.at[out].kind != CTN__V_TEMP) return false;
    int k = reader(p, out, node);
    if (k < 0 || !ready(p, &p->nodes.at[k], node)) return false;
    ctn__pnode n = p->nodes.at[k];
    const ctn_desc *x = &p->values.at[n.in[X]].d;
    if (!alike(p, y, x)) return false;
    bool shared = p->values.at[out].uses > 1;
    const ctn__value *joined = &p->values.at[g];
    int sum = joined->kind == CTN__V_TEMP && joined->uses == 1 ? joined->node : -1;
    if (sum >= 0) {
        const ctn__pnode *a = &p->nodes.at[sum];
        const ctn_desc *d = x;
        if (a->dead || a->op != &ctn__op_add || a->in[0] == a->in[1] || !alike(p, a->in[0], d) ||
            !alike(p, a->in[1], d))
            sum = -1;
    }
    if (sum < 0 && !alike(p, g, x)) return false;
    int first = sum < 0 ? g : p->nodes.at[sum].in[0];
    int shift = shift_behind(p, &n, y);
    if (!ctn__node_append(p, &n, shift < 0 ? y : shift) ||
        (sum >= 0 && !ctn__node_append(p, &n, p->nodes.at[sum].in[1]))) {
        *st = CTN_ENOMEM;
        return false;
    }
    n.in[GY] = first;
    if (shift >= 0) n.op = &ctn__op_batch_norm_grad_x;
    n.attr[ACT] = shift < 0 ? BY_Y : BY_X;
    n.attr[JOIN] = sum >= 0;
    if (shared) n.out[G] = out;
    const int gone[] = {node, k, sum};
    for (int i = 0; i < 3 && gone[i] >= 0; i++) {
        ctn__node_uses(p, &p->nodes.at[gone[i]], -1);
        p->nodes.at[gone[i]].dead = true;
    }
    p->nodes.at[node] = n;
    ctn__node_uses(p, &n, 1);
    for (int i = 0; i < n.nout; i++) p->values.at[n.out[i]].node = node;
    return true;
}
