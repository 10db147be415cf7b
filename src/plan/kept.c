/* SPDX-License-Identifier: Apache-2.0
 *
 * Kept copies of variables: weights in the layout or type that a kernel prefers. A reorder of a
 * plan makes them, and later runs of any plan use them until the variable is written. A plan that
 * writes the variable itself makes its copies in the arena, because they are out of date when it
 * ends.
 *
 * Invariant: a copy holds the variable as it was at (version, touched). Every write changes one
 * of the two: effects and ctn_var_set change the version, all other writes into a pool
 * ctn__pool.touched.
 */
#include "plan/plan.h"

struct ctn__kept {
    ctn_var *var;
    ctn_desc d;
    void *mem;
    uint64_t version, touched;
    bool made;
    ctn__kept *next;
};

ctn__kept *ctn__kept_get(ctn__planner *pl, ctn_var *v, const ctn_desc *d)
{
    for (ctn__kept *k = pl->kept; k; k = k->next)
        if (k->var == v && ctn__same_desc(&k->d, d)) return k;
    ctn__kept *k = ctn__calloc(1, sizeof *k);
    void *mem = ctn__aligned(ctn__bytes(d));
    if (!k || !mem) {
        ctn__free(k);
        ctn__free(mem);
        return NULL;
    }
    *k = (ctn__kept){.var = v, .d = *d, .mem = mem, .next = pl->kept};
    pl->kept = k;
    pl->kept_bytes += ctn__bytes(d);
    return k;
}

void *ctn__kept_memory(const ctn__kept *k)
{
    return k->mem;
}

static uint64_t touched(const ctn_var *v)
{
    return v->pool ? v->pool->touched : 0;
}

bool ctn__kept_fresh(const ctn__kept *k)
{
    return k->made && k->version == k->var->version && k->touched == touched(k->var);
}

void ctn__kept_made(ctn__kept *k)
{
    k->version = k->var->version;
    k->touched = touched(k->var);
    k->made = true;
}

void ctn__kept_drop(ctn__planner *pl, const void *var)
{
    for (ctn__kept **at = &pl->kept; *at;) {
        ctn__kept *k = *at;
        if (var && k->var != var) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        pl->kept_bytes -= ctn__bytes(&k->d);
        ctn__free(k->mem);
        ctn__free(k);
    }
}
