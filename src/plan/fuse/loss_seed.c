/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradients that linear_cross_entropy computes belong to a loss whose own gradient is 1. If all
 * that is done with them is to multiply them by one constant, which is what a backward pass does
 * first, the op uses that constant as the gradient of the loss and writes the products itself. For
 * a language model this saves a copy of the largest gradient.
 */
#include "plan/plan.h"

#include "ops/ops.h"

enum { FIRST = 1, END = 4 }; /* outputs that are gradients: of x, the weight and the bias */
enum { SEED = 0 };           /* scalar: the gradient of the loss */

/* The node that fills value v with a constant; NULL: v is something else. */
static const ctn__pnode *constant(const ctn__plan *p, int v)
{
    const ctn__value *val = &p->values.at[v];
    if (val->node < 0 || ctn__count(&val->d) != 1) return NULL;
    const ctn__pnode *n = &p->nodes.at[val->node];
    return n->op == &ctn__op_full && !n->dead ? n : NULL;
}

/* The product that is the only reader of v, and the constant in it. */
static ctn__pnode *product_with(const ctn__plan *p, int v, const ctn__pnode **c)
{
    const int *at, count = ctn__plan_readers(p, v, &at);
    for (int i = 0; i < count && p->values.at[v].uses == 1; i++) {
        ctn__pnode *n = &p->nodes.at[at[i]];
        if (n->dead || n->op != &ctn__op_mul || n->again) continue;
        *c = constant(p, n->in[n->in[0] == v]);
        return *c && ctn__same_desc(&p->values.at[n->out[0]].d, &p->values.at[v].d) ? n : NULL;
    }
    return NULL;
}

bool ctn__fuse_loss_seed(ctn__plan *p, int node, ctn_status *st)
{
    ctn__pnode *n = &p->nodes.at[node], *product[END] = {NULL};
    const ctn__pnode *seed = NULL;
    (void)st;
    if (n->op != &ctn__op_linear_cross_entropy) return false;
    for (int k = FIRST; k < n->nout; k++) {
        const ctn__value *v = &p->values.at[n->out[k]];
        const ctn__pnode *c = NULL;
        if (v->kind == CTN__V_TEMP && v->uses == 0) continue;
        if (v->kind != CTN__V_TEMP || !(product[k] = product_with(p, n->out[k], &c))) return false;
        if (seed && seed != c) return false;
        seed = c;
    }
    if (!seed) return false;
    n->scalar[SEED] = seed->scalar[0];
    for (int k = FIRST; k < n->nout; k++) {
        if (!product[k]) continue;
        n->out[k] = product[k]->out[0];
        p->values.at[n->out[k]].node = node;
        n->effect |= product[k]->effect;
        ctn__node_uses(p, product[k], -1);
        product[k]->dead = true;
    }
    return true;
}
