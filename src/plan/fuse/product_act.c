/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses linear and activation, and convolution, bias and activation: the activation runs inside the
 * product while the result is in registers. Only if nothing else reads the value between the two.
 */
#include "plan/plan.h"

#include "ops/ops.h"

enum { ACT = 0 }; /* first attribute of both products */

bool ctn__fuse_product_act(ctn__plan *p, int node, ctn_status *st)
{
    (void)st;
    ctn__pnode *act = &p->nodes.at[node];
    if (act->op != &ctn__op_relu) return false;
    ctn__value *z = &p->values.at[act->in[0]];
    if (z->kind != CTN__V_TEMP || z->uses != 1 || z->node < 0) return false;
    ctn__pnode *product = &p->nodes.at[z->node];
    bool known = product->op == &ctn__op_linear || product->op == &ctn__op_conv;
    if (!known || product->attr[ACT] != CTN__ELT_NONE || product->dead) return false;
    product->attr[ACT] = CTN__ELT_RELU;
    product->out[0] = act->out[0]; /* it now computes the activated value */
    product->effect |= act->effect;
    p->values.at[act->out[0]].node = z->node;
    ctn__node_uses(p, act, -1);
    act->dead = true;
    return true;
}
