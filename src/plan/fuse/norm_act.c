/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses batch normalisation (or channel_affine, its evaluation), residual sum and ReLU: one pass
 * that reads x and the residual and writes the activated result, instead of three. The fused node
 * takes the place of the ReLU, because the residual may be computed after the normalisation.
 */
#include "plan/plan.h"

#include "ops/ops.h"

enum { ACT = 0, ADD = 1 };                     /* attributes of both ops */
enum { BN_RESIDUAL = 5, AFFINE_RESIDUAL = 3 }; /* number of inputs without a residual */

/* The normalisation that computes v, if v has only one reader; -1: none. */
static int normalised(const ctn__plan *p, int v)
{
    const ctn__value *z = &p->values.at[v];
    if (z->kind != CTN__V_TEMP || z->uses != 1 || z->node < 0) return -1;
    const ctn__pnode *n = &p->nodes.at[z->node];
    int full = n->op == &ctn__op_batch_norm ? BN_RESIDUAL : AFFINE_RESIDUAL;
    if (n->dead || (n->op != &ctn__op_batch_norm && n->op != &ctn__op_channel_affine)) return -1;
    return n->out[0] == v && n->nin == full && !n->attr[ACT] && !n->attr[ADD] ? z->node : -1;
}

/* The operand of a sum of two equal shapes that is such a normalisation; -1: none. */
static int normalised_operand(const ctn__plan *p, const ctn__pnode *add)
{
    const ctn_desc *o = &p->values.at[add->out[0]].d;
    for (int i = 0; i < 2; i++)
        if (!ctn__same_shape(&p->values.at[add->in[i]].d, o)) return -1;
    for (int i = 0; i < 2 && add->in[0] != add->in[1]; i++)
        if (normalised(p, add->in[i]) >= 0) return i;
    return -1;
}

bool ctn__fuse_norm_act(ctn__plan *p, int node, ctn_status *st)
{
    ctn__pnode *act = &p->nodes.at[node];
    if (act->op != &ctn__op_relu) return false;
    int y = act->out[0], norm = normalised(p, act->in[0]), residual = -1, sum = -1;
    const ctn__value *z = &p->values.at[act->in[0]];
    if (norm < 0 && z->kind == CTN__V_TEMP && z->uses == 1 && z->node >= 0) {
        const ctn__pnode *add = &p->nodes.at[sum = z->node];
        int i = add->dead || add->op != &ctn__op_add ? -1 : normalised_operand(p, add);
        if (i < 0) return false;
        norm = normalised(p, add->in[i]);
        residual = add->in[1 - i];
    }
    if (norm < 0) return false;
    const bool effect = act->effect;
    ctn__pnode gone = *act;
    if (sum >= 0) p->nodes.at[sum].dead = true;
    if (!ctn__node_move(p, norm, node)) {
        if (sum >= 0) p->nodes.at[sum].dead = false;
        return false;
    }
    ctn__node_uses(p, &gone, -1);
    if (sum >= 0) {
        gone = p->nodes.at[sum];
        gone.dead = false;
        ctn__node_uses(p, &gone, -1);
    }
    ctn__pnode *n = &p->nodes.at[node];
    if (residual >= 0 && !ctn__node_append(p, n, residual)) {
        *st = CTN_ENOMEM;
        return false;
    }
    if (residual >= 0) p->values.at[residual].uses++;
    n->attr[ACT] = 1;
    n->attr[ADD] = residual >= 0;
    n->out[0] = y;
    n->effect |= effect;
    p->values.at[y].node = node;
    return true;
}
