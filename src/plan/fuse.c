/* SPDX-License-Identifier: Apache-2.0
 *
 * Fusion: every declared rule is offered every live node, until none applies. Runs after differentiation,
 * so fused nodes need no gradients (rule 11). A new rule is one file in fuse/ and one line here.
 */
#include "plan/plan.h"

bool ctn__node_move(ctn__plan *p, int i, int to)
{
    const ctn__pnode *n = &p->nodes.at[i];
    for (int k = i + 1; k < to; k++) {
        const ctn__pnode *m = &p->nodes.at[k];
        for (int a = 0; a < m->nin && !m->dead; a++)
            for (int o = 0; o < n->nout; o++)
                if (m->in[a] == n->out[o]) return false;
    }
    p->nodes.at[to] = *n;
    p->nodes.at[i].dead = true;
    for (int o = 0; o < n->nout; o++) p->values.at[n->out[o]].node = to;
    return true;
}

bool ctn__node_append(ctn__plan *p, ctn__pnode *n, int value)
{
    int *in = ctn__arena_get(&p->mem, (size_t)(n->nin + 1) * sizeof *in);
    if (!in) return false;
    memcpy(in, n->in, (size_t)n->nin * sizeof *in);
    in[n->nin++] = value;
    n->in = in;
    return true;
}

static const ctn__fuse_rule rules[] = {
    ctn__fuse_product_act,
    ctn__fuse_norm_act,
    ctn__fuse_norm_grad,
    ctn__fuse_elementwise,
};
/* On what the others made. */
static const ctn__fuse_rule later[] = {ctn__fuse_conv_affine};
static const ctn__fuse_rule always[] = {ctn__chain_low};

static ctn_status apply(ctn__plan *p, const ctn__fuse_rule *rule, size_t n)
{
    ctn_status st = CTN_OK;
    for (size_t i = 0; i < p->nodes.n && st == CTN_OK; i++) {
        for (size_t r = 0; r < n && st == CTN_OK && !p->nodes.at[i].dead; r++) {
            if (!rule[r](p, (int)i, &st)) continue;
            p->fused++;
            ctn__plan_uses(p);
        }
    }
    return st;
}

ctn_status ctn__pass_fuse(ctn__plan *p)
{
    if (p->ctx->fuse && !p->ctx->eager) {
        CTN_TRY(apply(p, rules, sizeof rules / sizeof *rules));
        CTN_TRY(apply(p, later, sizeof later / sizeof *later));
    }
    return p->ctx->opt.precision == CTN_PRECISION_F32
               ? CTN_OK
               : apply(p, always, sizeof always / sizeof *always);
}
