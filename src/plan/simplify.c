/* SPDX-License-Identifier: Apache-2.0
 *
 * Simplify: removes dead code and merges common subexpressions. Only effects are roots (rule 1).
 * Two random ops are equal only if they are the same call. Runs after differentiation.
 */
#include "plan/plan.h"

/* Nodes are in topological order, so one backward sweep finds what effects need. */
static void drop_dead(ctn__plan *p, bool *need)
{
    for (size_t i = p->nodes.n; i-- > 0;) {
        ctn__pnode *n = &p->nodes.at[i];
        bool live = n->effect;
        for (int k = 0; k < n->nout; k++) live |= need[n->out[k]];
        n->dead = !live;
        for (int k = 0; k < n->nin && live; k++) need[n->in[k]] = true;
    }
}

static bool same_call(const ctn__pnode *a, const ctn__pnode *b)
{
    if (a->op != b->op || a->nin != b->nin || a->nout != b->nout || a->nattr != b->nattr ||
        a->nscalar != b->nscalar)
        return false;
    if ((a->op->flags & CTN_OP_RANDOM) && a->ordinal != b->ordinal) return false;
    for (int i = 0; i < a->nin; i++)
        if (a->in[i] != b->in[i]) return false;
    for (int i = 0; i < a->nattr; i++)
        if (a->attr[i] != b->attr[i]) return false;
    for (int i = 0; i < a->nscalar; i++) {
        if (a->scalar[i].slot != b->scalar[i].slot) return false;
        if (a->scalar[i].slot < 0 && a->scalar[i].value != b->scalar[i].value) return false;
    }
    return true;
}

static uint64_t call_hash(const ctn__pnode *n)
{
    ctn__hash128 h = ctn__hash(n->in, (size_t)n->nin * sizeof(int));
    uint64_t x = h.lo ^ (uint64_t)(uintptr_t)n->op;
    for (int i = 0; i < n->nattr; i++) x = ctn__mix(x, (uint64_t)n->attr[i]);
    for (int i = 0; i < n->nscalar; i++) x = ctn__mix(x, (uint64_t)n->scalar[i].slot);
    return n->op->flags & CTN_OP_RANDOM ? ctn__mix(x, n->ordinal) : x;
}

/* Value numbering with an open-addressing hash table of node numbers. Distinct scalar slots are
 * never merged: they may hold the same number in this run and different ones in the next. */
static ctn_status merge_common(ctn__plan *p)
{
    size_t cap = 16;
    while (cap < 2 * p->nodes.n) cap *= 2;
    int *table = ctn__malloc(cap * sizeof *table);
    int *to = ctn__malloc((p->values.n + 1) * sizeof *to);
    if (!table || !to) {
        ctn__free(table);
        ctn__free(to);
        return CTN_ENOMEM;
    }
    for (size_t i = 0; i < cap; i++) table[i] = -1;
    for (size_t i = 0; i < p->values.n; i++) to[i] = (int)i;
    for (size_t i = 0; i < p->nodes.n; i++) {
        ctn__pnode *n = &p->nodes.at[i];
        for (int k = 0; k < n->nin; k++) n->in[k] = to[n->in[k]];
        if (n->dead || n->effect || n->nout == 0) continue;
        size_t h = (size_t)call_hash(n) & (cap - 1);
        while (table[h] >= 0 && !same_call(&p->nodes.at[table[h]], n)) h = (h + 1) & (cap - 1);
        if (table[h] < 0) {
            table[h] = (int)i;
            continue;
        }
        const ctn__pnode *first = &p->nodes.at[table[h]];
        for (int k = 0; k < n->nout; k++) to[n->out[k]] = first->out[k];
        n->dead = true;
    }
    ctn__free(table);
    ctn__free(to);
    return CTN_OK;
}

ctn_status ctn__pass_simplify(ctn__plan *p)
{
    bool *need = ctn__calloc(p->values.n + 1, sizeof *need);
    if (!need) return CTN_ENOMEM;
    drop_dead(p, need);
    ctn_status st = merge_common(p);
    ctn__free(need);
    ctn__plan_uses(p);
    p->recorded = p->nodes.n;
    for (size_t i = 0; i < p->nodes.n; i++) p->needed += !p->nodes.at[i].dead;
    return st;
}
