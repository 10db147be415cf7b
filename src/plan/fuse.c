/* SPDX-License-Identifier: Apache-2.0
 *
 * Fusion: every declared rule is offered every live node, until none applies. Runs after differentiation,
 * so fused nodes need no gradients (rule 11). A new rule is one file in fuse/ and one line here.
 */
#include "plan/plan.h"

static const ctn__fuse_rule rules[] = {
    ctn__fuse_linear_act,
    ctn__fuse_elementwise,
};

ctn_status ctn__pass_fuse(ctn__plan *p)
{
    ctn_status st = CTN_OK;
    for (size_t i = 0; i < p->nodes.n && st == CTN_OK; i++) {
        if (p->nodes.at[i].dead) continue;
        for (size_t r = 0; r < sizeof rules / sizeof *rules && st == CTN_OK; r++) {
            if (!rules[r](p, (int)i, &st)) continue;
            p->fused++;
            ctn__plan_uses(p);
        }
    }
    return st;
}
