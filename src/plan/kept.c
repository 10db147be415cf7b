/* SPDX-License-Identifier: Apache-2.0
 *
 * Kept copies of variables: weights in the layout or type that a kernel prefers. A reorder of a
 * plan makes them, and later runs of any plan use them until the variable is written. A plan that
 * writes the variable itself makes its copies in the arena, because they are out of date when it
 * ends.
 *
 * Invariant: a copy that was made holds the variable as it was when ctn__kept_made was called.
 *
 * Variables that several contexts share (ctn_module_share) are never written, and have one list of
 * copies for all contexts. The first context that needs a copy makes it, and others wait for it.
 */
#include "plan/plan.h"

struct ctn__kept {
    ctn__seen of;        /* var NULL: shared */
    ctn__shared *shared; /* NULL, or what has the list that this copy is in */
    ctn_desc d;
    uint64_t layout; /* shared: the same number for the same layout in every context */
    void *mem;
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
        if (k->of.var == v && ctn__same_desc(&k->d, d)) return k;
    ctn__kept *k = new_copy(&pl->kept, d);
    if (!k) return NULL;
    k->of.var = v;
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

void ctn__seen_now(ctn__seen *s)
{
    s->version = s->var->version;
    s->touched = touched(s->var);
}

bool ctn__seen_same(const ctn__seen *s)
{
    return s->version == s->var->version && s->touched == touched(s->var);
}

bool ctn__kept_fresh(ctn__kept *k)
{
    if (!k->shared) return k->made && ctn__seen_same(&k->of);
    if (k->made) return true;
    pthread_mutex_lock(&k->shared->lock);
    if (!k->made) return false; /* ctn__kept_made unlocks */
    pthread_mutex_unlock(&k->shared->lock);
    return true;
}

void ctn__kept_made(ctn__kept *k, bool well)
{
    k->made = well;
    if (k->shared) pthread_mutex_unlock(&k->shared->lock);
    else ctn__seen_now(&k->of);
}

void ctn__kept_drop(ctn__planner *pl, const void *var)
{
    for (ctn__kept **at = &pl->kept; *at;) {
        ctn__kept *k = *at;
        if (var && k->of.var != var) {
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
