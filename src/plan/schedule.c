/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedule: the final order. Program order is already topological and puts each gradient right behind the
 * kernels that make it, which is the order of early buckets; writes to variables stand last. What is
 * left to do is to move cheap nodes that only feed something later (constants, reorders of leaves) down
 * to their first reader, so that their memory lives shortly.
 */
#include "plan/plan.h"

static bool can_sink(const ctn__plan *p, const ctn__pnode *n)
{
    if (n->effect || n->nout != 1 || n->nin > 0) return false;
    return p->values.at[n->out[0]].kind == CTN__V_TEMP;
}

static int first_reader(const ctn__plan *p, int v, int from)
{
    for (size_t i = (size_t)from; i < p->nodes.n; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        for (int k = 0; k < n->nin; k++)
            if (ctn__value_base(p, n->in[k]) == v) return (int)i;
    }
    return -1;
}

ctn_status ctn__pass_schedule(ctn__plan *p)
{
    for (size_t i = p->nodes.n; i-- > 0;) {
        if (!can_sink(p, &p->nodes.at[i])) continue;
        int r = first_reader(p, p->nodes.at[i].out[0], (int)i + 1);
        if (r <= (int)i + 1) continue;
        ctn__pnode n = p->nodes.at[i];
        memmove(&p->nodes.at[i], &p->nodes.at[i + 1], (size_t)(r - 1 - (int)i) * sizeof n);
        p->nodes.at[r - 1] = n;
    }
    for (size_t i = 0; i < p->nodes.n; i++)
        for (int k = 0; k < p->nodes.at[i].nout; k++)
            p->values.at[p->nodes.at[i].out[k]].node = (int)i;
    return CTN_OK;
}
