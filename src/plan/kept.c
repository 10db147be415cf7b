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
 *
 * Variables that several contexts share (ctn_module_share) are never written, and have one list of
 * copies for all contexts. The first context that needs a copy makes it, and others wait for it.
 */
#include "plan/plan.h"

struct ctn__kept {
    ctn_var *var;        /* NULL: shared */
    ctn__shared *shared; /* NULL, or what has the list that this copy is in */
    ctn_desc d;
    uint64_t layout; /* shared: the same number for the same layout in every context */
    void *mem;
    uint64_t version, touched;
    atomic_bool made;
    ctn__kept *next;
};

static ctn__kept *new_copy(ctn__kept **list, const ctn_desc *d)
{
    ctn__kept *k = ctn__calloc(1, sizeof *k);
    void *mem = ctn__aligned(ctn__bytes(d));
    if (!k || !mem) {
        ctn__free(k);
        ctn__free(mem);
        return NULL;
    }
    k->d = *d;
    k->mem = mem;
    k->next = *list;
    *list = k;
    return k;
}

static ctn__kept *get_shared(const ctn__planner *pl, ctn__shared *s, const ctn_desc *d)
{
    const uint64_t layout = ctn__layout_key(pl->engine, d);
    pthread_mutex_lock(&s->lock);
    ctn__kept *k = s->copies;
    while (k && k->layout != layout) k = k->next;
    if (!k) {
        k = new_copy(&s->copies, d);
        if (k) {
            k->shared = s;
            k->layout = layout;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return k;
}

ctn__kept *ctn__kept_get(ctn__planner *pl, ctn_var *v, const ctn_desc *d)
{
    if (v->shared) return get_shared(pl, v->shared, d);
    for (ctn__kept *k = pl->kept; k; k = k->next)
        if (k->var == v && ctn__same_desc(&k->d, d)) return k;
    ctn__kept *k = new_copy(&pl->kept, d);
    if (!k) return NULL;
    k->var = v;
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

bool ctn__kept_fresh(ctn__kept *k)
{
    if (!k->shared)
        return k->made && k->version == k->var->version && k->touched == touched(k->var);
    if (k->made) return true;
    pthread_mutex_lock(&k->shared->lock);
    if (!k->made) return false; /* ctn__kept_made unlocks */
    pthread_mutex_unlock(&k->shared->lock);
    return true;
}

void ctn__kept_made(ctn__kept *k, bool well)
{
    k->made = well;
    if (k->shared) {
        pthread_mutex_unlock(&k->shared->lock);
        return;
    }
    k->version = k->var->version;
    k->touched = touched(k->var);
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

void ctn__kept_free_all(ctn__kept *list)
{
    while (list) {
        ctn__kept *next = list->next;
        ctn__free(list->mem);
        ctn__free(list);
        list = next;
    }
}
