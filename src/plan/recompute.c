/* SPDX-License-Identifier: Apache-2.0
 *
 * Recompute (activation checkpointing): of a block marked by the user, only the values that are
 * read outside of it are kept. Whatever else the backward pass needs is computed a second time
 * from the block's inputs, right before the first gradient that reads it. The copies are the same
 * calls with the same operands and random streams, so their results are bitwise equal. Effects
 * (running statistics, gradients, communication) depend on the originals and are never repeated
 * (rule 1). Runs after simplify, which would merge the copies with the originals.
 */
#include "plan/plan.h"

typedef struct {
    ctn__plan *p;
    uint32_t block;
    size_t nvalues; /* number of values before any copy */
    int *copy; /* value -> its recomputed copy, or NEEDED (to be made) or KEPT (use the original) */
    int first; /* first gradient node that reads a value to be recomputed */
    CTN__VEC(ctn__pnode) out;
} redo;

enum { KEPT = -1, NEEDED = -2 };

/* v can be recomputed by its block; the result of an ordered op is kept instead. */
static bool inside(const redo *r, int v)
{
    int i = r->p->values.at[v].node;
    if (i < 0) return false;
    const ctn__pnode *n = &r->p->nodes.at[i];
    return n->block == r->block && !n->dead && !(n->op->flags & CTN_OP_ORDERED);
}

/* Mark the values of the block that only gradients read outside of it; true if there are any. */
static bool find_needed(redo *r)
{
    const ctn__plan *p = r->p;
    bool any = false;
    r->first = -1;
    for (size_t v = 0; v < r->nvalues; v++) r->copy[v] = KEPT;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < p->nodes.n; i++) {
            const ctn__pnode *n = &p->nodes.at[i];
            if (n->dead || n->block == r->block || n->gradient != (pass == 0)) continue;
            for (int k = 0; k < n->nin; k++) {
                if (!inside(r, n->in[k]) || p->values.at[n->in[k]].kind != CTN__V_TEMP) continue;
                r->copy[n->in[k]] = pass == 0 ? NEEDED : KEPT;
            }
        }
    }
    for (size_t i = 0; i < p->nodes.n && !any; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        for (int k = 0; k < n->nin && n->gradient && !n->dead; k++)
            if (r->copy[n->in[k]] == NEEDED) any = true;
        if (any) r->first = (int)i;
    }
    return any;
}

/* The operands of a needed value are needed too, unless they are kept. */
static void find_sources(redo *r, bool *kept)
{
    const ctn__plan *p = r->p;
    for (size_t i = 0; i < r->nvalues; i++) kept[i] = false;
    for (size_t i = 0; i < p->nodes.n; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        for (int k = 0; k < n->nin && !n->dead && !n->gradient && n->block != r->block; k++)
            kept[n->in[k]] = true;
    }
    for (size_t i = p->nodes.n; i-- > 0;) {
        const ctn__pnode *n = &p->nodes.at[i];
        bool again = false;
        if (n->dead || n->block != r->block) continue;
        for (int k = 0; k < n->nout; k++) again |= r->copy[n->out[k]] == NEEDED;
        for (int k = 0; k < n->nin && again; k++)
            if (inside(r, n->in[k]) && !kept[n->in[k]] &&
                p->values.at[n->in[k]].kind == CTN__V_TEMP)
                r->copy[n->in[k]] = NEEDED;
    }
}

static ctn_status push(redo *r, const ctn__pnode *n)
{
    for (int i = 0; i < n->nout; i++) r->p->values.at[n->out[i]].node = (int)r->out.n;
    return ctn__vec_push(&r->out, *n) ? CTN_OK : CTN_ENOMEM;
}

static int reader_of(const redo *r, int v)
{
    return (size_t)v < r->nvalues && r->copy[v] >= 0 ? r->copy[v] : v;
}

static ctn_status push_copy(redo *r, const ctn__pnode *from)
{
    ctn__plan *p = r->p;
    ctn__pnode n = *from;
    n.in = ctn__arena_get(&p->mem, (size_t)(n.nin + n.nout + 1) * sizeof(int));
    n.attr = ctn__arena_get(&p->mem, (size_t)(n.nattr + 1) * sizeof *n.attr);
    if (!n.in || !n.attr) return CTN_ENOMEM;
    n.out = n.in + n.nin;
    n.block = 0;
    n.again = true;
    n.effect = false;
    if (n.nattr) memcpy(n.attr, from->attr, (size_t)n.nattr * sizeof *n.attr);
    for (int i = 0; i < n.nin; i++) n.in[i] = reader_of(r, from->in[i]);
    for (int i = 0; i < n.nout; i++) {
        ctn_desc d = p->values.at[from->out[i]].d;
        ctn__plain(&d);
        n.out[i] = ctn__plan_value(p, &d, CTN__V_TEMP);
        if (n.out[i] < 0) return CTN_ENOMEM;
        if (r->copy[from->out[i]] == NEEDED) r->copy[from->out[i]] = n.out[i];
    }
    return push(r, &n);
}

static bool wanted(const redo *r, const ctn__pnode *n)
{
    bool again = false;
    for (int k = 0; k < n->nout; k++)
        again |= (size_t)n->out[k] < r->nvalues && r->copy[n->out[k]] == NEEDED;
    return !n->dead && n->block == r->block && again;
}

/* Rewrite the node list with the copies before the first gradient that reads one. */
static ctn_status rewrite(redo *r)
{
    ctn__plan *p = r->p;
    for (size_t i = 0; i < p->nodes.n; i++) {
        ctn__pnode *n = &p->nodes.at[i];
        for (size_t k = 0; (int)i == r->first && k < i; k++)
            if (wanted(r, &p->nodes.at[k])) CTN_TRY(push_copy(r, &p->nodes.at[k]));
        for (int k = 0; k < n->nin && n->gradient; k++) n->in[k] = reader_of(r, n->in[k]);
        CTN_TRY(push(r, n));
    }
    return CTN_OK;
}

static ctn_status recompute_block(ctn__plan *p, uint32_t block)
{
    redo r = {.p = p, .block = block, .nvalues = p->values.n};
    ctn_status st = CTN_OK;
    bool *kept = ctn__malloc((r.nvalues + 1) * sizeof *kept);
    r.copy = ctn__malloc((r.nvalues + 1) * sizeof *r.copy);
    if (!kept || !r.copy) st = CTN_ENOMEM;
    if (st == CTN_OK && find_needed(&r)) {
        find_sources(&r, kept);
        st = rewrite(&r);
        if (st == CTN_OK) {
            ctn__vec_free(&p->nodes);
            p->nodes.at = r.out.at;
            p->nodes.n = r.out.n;
            p->nodes.cap = r.out.cap;
        } else {
            ctn__vec_free(&r.out);
        }
    }
    ctn__free(kept);
    ctn__free(r.copy);
    return st;
}

ctn_status ctn__pass_recompute(ctn__plan *p)
{
    uint32_t last = 0;
    for (size_t i = 0; i < p->nodes.n; i++)
        if (p->nodes.at[i].block > last) last = p->nodes.at[i].block;
    /* From the last block to the first: a copy that reads values of an earlier block then still
     * finds the originals. */
    for (uint32_t b = last; b > 0; b--) CTN_TRY(recompute_block(p, b));
    if (last > 0) ctn__plan_uses(p);
    return CTN_OK;
}
