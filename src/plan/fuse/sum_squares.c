/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses square and sum: the squares are added as they are computed and never stored. Only if
 * nothing else reads them.
 */
#include "ops/common/reduce.h"
#include "plan/plan.h"

bool ctn__fuse_sum_squares(ctn__plan *p, int node, ctn_status *st)
{
    ctn__pnode *sum = &p->nodes.at[node];
    (void)st;
    if (sum->op != &ctn__op_sum || sum->attr[CTN__R_KIND] != CTN__R_SUM) return false;
    const ctn__value *z = &p->values.at[sum->in[0]];
    if (z->kind != CTN__V_TEMP || z->uses != 1 || z->node < 0) return false;
    ctn__pnode *square = &p->nodes.at[z->node];
    /* A sum adds in the order of its operand's strides, so these must be those of the squares. */
    if (square->op != &ctn__op_square || !ctn__can_chain(p, p->nodes.at, square)) return false;
    ctn__pnode fused = *sum; /* in the place of the square, where the operand has its value */
    fused.in = square->in;
    fused.attr[CTN__R_KIND] = CTN__R_SQUARES;
    ctn__node_uses(p, sum, -1);
    sum->dead = true;
    *square = fused;
    p->values.at[fused.out[0]].node = z->node;
    return true;
}
