/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses a convolution and the normalisation of evaluation (channel_affine, with whatever is already
 * fused into it) into one kernel. The fused node takes the place of the normalisation, because the
 * factors of the normalisation may be computed after the convolution.
 */
#include "plan/plan.h"

#include "ops/common/conv.h"

enum { ACT, ADD, BIAS };    /* attributes of channel_affine */
enum { X, A, B, RESIDUAL }; /* its inputs */

bool ctn__fuse_conv_affine(ctn__plan *p, int node, ctn_status *st)
{
    ctn__pnode *n = &p->nodes.at[node];
    if (n->op != &ctn__op_channel_affine || !n->attr[BIAS]) return false;
    const ctn__value *z = &p->values.at[n->in[X]];
    if (z->kind != CTN__V_TEMP || z->uses != 1 || z->node < 0) return false;
    ctn__pnode *conv = &p->nodes.at[z->node];
    if (conv->op != &ctn__op_conv || conv->dead || conv->nin != 2 ||
        conv->attr[CTN__CONV_ACT] != CTN__ELT_NONE || z->d.dtype == CTN_F64 ||
        ctn__count(&z->d) == 0 || ctn__count(&p->values.at[conv->in[0]].d) == 0)
        return false;
    if (n->attr[ADD] && p->values.at[n->in[RESIDUAL]].d.dtype != z->d.dtype) return false;
    int *in = ctn__arena_get(&p->mem, 5 * sizeof *in);
    if (!in) {
        *st = CTN_ENOMEM;
        return false;
    }
    in[0] = conv->in[0];
    in[1] = conv->in[1];
    in[2] = n->in[A];
    in[3] = n->in[B];
    if (n->attr[ADD]) in[4] = n->in[RESIDUAL];
    bool relu = n->attr[ACT] != 0;
    ctn__node_uses(p, conv, -1);
    ctn__node_uses(p, n, -1);
    n->nin = n->attr[ADD] ? 5 : 4;
    n->in = in;
    n->op = &ctn__op_conv_affine;
    n->attr = conv->attr;
    n->nattr = conv->nattr;
    n->attr[CTN__CONV_ACT] = relu ? CTN__ELT_RELU : CTN__ELT_NONE;
    conv->dead = true;
    ctn__node_uses(p, n, 1);
    return true;
}
