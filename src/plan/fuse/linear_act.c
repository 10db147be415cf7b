/* SPDX-License-Identifier: Apache-2.0
 *
 * linear + activation: the activation runs inside the matrix product while the result is in registers.
 * Only where nobody else reads the value between the two.
 */
#include "plan/plan.h"

#include "ops/ops.h"

bool ctn__fuse_linear_act(ctn__plan *p, int node, ctn_status *st)
{
    (void)st;
    ctn__pnode *act = &p->nodes.at[node];
    if (act->op != &ctn__op_relu) return false;
    ctn__value *z = &p->values.at[act->in[0]];
    if (z->kind != CTN__V_TEMP || z->uses != 1 || z->node < 0) return false;
    ctn__pnode *lin = &p->nodes.at[z->node];
    if (lin->op != &ctn__op_linear || lin->attr[0] != CTN__ELT_NONE || lin->dead) return false;
    lin->attr[0] = CTN__ELT_RELU;
    lin->out[0] = act->out[0]; /* linear now makes the activated value */
    lin->effect |= act->effect;
    p->values.at[act->out[0]].node = z->node;
    act->dead = true;
    return true;
}
