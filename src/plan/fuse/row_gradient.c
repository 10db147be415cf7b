/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient of an embedding whose table is also used elsewhere (the last layer of a language
 * model) is the sum of a dense gradient and one with few rows. The rows are added to the dense one
 * in place, so that only one gradient of this size exists. If the sum belongs to the gradients of
 * an optimizer, the dense one is computed there.
 */
#include "plan/plan.h"

#include "ops/ops.h"

/* Is v the sum of rows by their index (inputs x, ids, offsets, order), for one reader only? */
static bool is_rows(const ctn__plan *p, int v)
{
    const ctn__value *val = &p->values.at[v];
    if (val->kind != CTN__V_TEMP || val->uses != 1 || val->node < 0) return false;
    const ctn__pnode *n = &p->nodes.at[val->node];
    return n->op == &ctn__op_segment_sum && n->nin == 4 && !n->dead && !n->effect;
}

/* Can the node that computes v write it to any memory? */
static bool is_own(const ctn__plan *p, int v)
{
    const ctn__value *val = &p->values.at[v];
    if (val->kind != CTN__V_TEMP || val->uses != 1 || val->node < 0) return false;
    return !(p->nodes.at[val->node].op->flags & CTN_OP_VIEW);
}

bool ctn__fuse_row_gradient(ctn__plan *p, int node, ctn_status *st)
{
    const ctn__pnode *sum = &p->nodes.at[node];
    if (sum->op != &ctn__op_add) return false;
    const int rows = is_rows(p, sum->in[1]) ? 1 : 0, v = sum->in[rows], dense = sum->in[1 - rows];
    if (!is_rows(p, v) || dense == v) return false;
    const int to = sum->out[0];
    ctn__value *d = &p->values.at[dense], *y = &p->values.at[to];
    if (!is_own(p, dense) || !ctn__same_desc(&d->d, &y->d) ||
        !ctn__same_desc(&d->d, &p->values.at[v].d))
        return false;
    ctn__pnode n = p->nodes.at[p->values.at[v].node];
    if (!ctn__node_append(p, &n, dense)) {
        *st = CTN_ENOMEM;
        return false;
    }
    int *out = ctn__arena_get(&p->mem, sizeof *out);
    if (!out) {
        *st = CTN_ENOMEM;
        return false;
    }
    *out = to;
    n.out = out;
    n.effect = sum->effect;
    const int gone[] = {p->values.at[v].node, node};
    for (int i = 0; i < 2; i++) {
        ctn__node_uses(p, &p->nodes.at[gone[i]], -1);
        p->nodes.at[gone[i]].dead = true;
    }
    p->nodes.at[node] = n;
    ctn__node_uses(p, &n, 1);
    y->node = node;
    if (y->kind == CTN__V_GRAD) {
        d->kind = CTN__V_GRAD;
        d->var = y->var;
        p->nodes.at[d->node].effect = true;
    }
    return true;
}
