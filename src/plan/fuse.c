/* SPDX-License-Identifier: Apache-2.0
 *
 * Fusion: every rule below is tried on every live node. This runs after differentiation, so fused
 * nodes need no gradients (rule 11). A new rule is one file in fuse/ and one line here. Rules
 * keep the use counts up to date (ctn__node_uses), so that fusion takes time linear in the number
 * of nodes.
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

/* ---- who reads a value ---------------------------------------------------------------------- */

/* Readers of value v are at[begin[v]] to at[begin[v + 1]] - 1, in order. */
struct ctn__readers {
    int *begin, *at;
};

static void free_readers(ctn__plan *p)
{
    if (p->readers) {
        ctn__free(p->readers->begin);
        ctn__free(p->readers->at);
    }
    ctn__free(p->readers);
    p->readers = NULL;
}

static ctn_status find_readers(ctn__plan *p)
{
    size_t edges = 0;
    for (size_t i = 0; i < p->nodes.n; i++) edges += (size_t)p->nodes.at[i].nin;
    ctn__readers *r = p->readers = ctn__calloc(1, sizeof *r);
    if (!r) return CTN_ENOMEM;
    r->begin = ctn__calloc(p->values.n + 2, sizeof *r->begin);
    r->at = ctn__malloc((edges + 1) * sizeof *r->at);
    if (!r->begin || !r->at) return CTN_ENOMEM;
    int *next = r->begin + 1; /* first counts, then where the next reader goes, finally the ends */
    for (size_t i = 0; i < p->nodes.n; i++)
        for (int k = 0; k < p->nodes.at[i].nin && !p->nodes.at[i].dead; k++)
            next[p->nodes.at[i].in[k]]++;
    for (size_t v = 0, sum = 0; v < p->values.n; v++) {
        const size_t n = (size_t)next[v];
        next[v] = (int)sum;
        sum += n;
    }
    for (size_t i = 0; i < p->nodes.n; i++)
        for (int k = 0; k < p->nodes.at[i].nin && !p->nodes.at[i].dead; k++)
            r->at[next[p->nodes.at[i].in[k]]++] = (int)i;
    return CTN_OK;
}

int ctn__plan_readers(const ctn__plan *p, int v, const int **at)
{
    const ctn__readers *r = p->readers;
    *at = r->at + r->begin[v];
    return r->begin[v + 1] - r->begin[v];
}

/* ---- rules ---------------------------------------------------------------------------------- */

static const ctn__fuse_rule rules[] = {
    ctn__fuse_product_act, ctn__fuse_norm_act,     ctn__fuse_norm_grad,
    ctn__fuse_loss_seed,   ctn__fuse_row_gradient, ctn__fuse_sum_squares,
};
/* Tried after all of the rules above, on their results. */
static const ctn__fuse_rule later[] = {ctn__fuse_conv_affine};
/* Tried from the last node to the first: a reader absorbs the producer of a value before that
 * producer looks for producers of its own. */
static const ctn__fuse_rule backwards[] = {ctn__fuse_elementwise};
/* Tried even if fusion is off. */
static const ctn__fuse_rule always[] = {ctn__chain_low};

static ctn_status offer(ctn__plan *p, const ctn__fuse_rule *rule, size_t n, size_t node)
{
    ctn_status st = CTN_OK;
    for (size_t r = 0; r < n && st == CTN_OK && !p->nodes.at[node].dead; r++)
        p->fused += rule[r](p, (int)node, &st);
    return st;
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

static ctn_status fuse(ctn__plan *p)
{
    CTN_TRY(find_readers(p));
    for (size_t i = 0; i < p->nodes.n; i++) CTN_TRY(offer(p, rules, COUNT(rules), i));
    for (size_t i = 0; i < p->nodes.n; i++) CTN_TRY(offer(p, later, COUNT(later), i));
    for (size_t i = p->nodes.n; i-- > 0;) CTN_TRY(offer(p, backwards, COUNT(backwards), i));
    return CTN_OK;
}

ctn_status ctn__pass_fuse(ctn__plan *p)
{
    ctn_status st = p->ctx->fuse && !p->ctx->eager ? fuse(p) : CTN_OK;
    free_readers(p);
    const bool low = ctn__low_policy(p->ctx);
    for (size_t i = 0; low && i < p->nodes.n && st == CTN_OK; i++)
        st = offer(p, always, COUNT(always), i);
    return st;
}
