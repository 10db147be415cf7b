/* SPDX-License-Identifier: Apache-2.0
 *
 * Triggers decide after each step whether an extension runs. Those by iteration and epoch are
 * pure functions of where the training was before the step and is after it, so they fire at the
 * same steps in a resumed training. Those by value remember the best value, which is saved.
 * Those by time count from the start of the run. Those by share of time are decided by rank 0,
 * whose decision travels with the gradients (group.c).
 */
#include <math.h>

#include "train/train.h"

static ctn_status check_points(const ctn_trigger *t)
{
    for (int i = 0; i < CTN_TRIGGER_AT && (i == 0 || t->at[i] != 0); i++) {
        const double before = i > 0 ? t->at[i - 1] : 0;
        if (!(t->at[i] > before && isfinite(t->at[i])))
            return ctn_fail(CTN_EARG,
                            "trigger: the points in at must be above 0 and ascending, but %g comes "
                            "after %g",
                            t->at[i], before);
        if (t->kind == CTN_AT_ITERATIONS && t->at[i] != floor(t->at[i]))
            return ctn_fail(CTN_EARG, "trigger: %g in at, iterations must be whole numbers",
                            t->at[i]);
    }
    return CTN_OK;
}

static ctn_status check(const ctn_trigger *t)
{
    const bool counts = t->kind == CTN_EVERY_EPOCHS || t->kind == CTN_EVERY_ITERATIONS ||
                        t->kind == CTN_EVERY_SECONDS || t->kind == CTN_ONCE;
    if (t->kind < CTN_EVERY_EPOCHS || t->kind > CTN_AT_ITERATIONS)
        return ctn_fail(CTN_EARG, "trigger: kind %d does not exist", (int)t->kind);
    if (counts && !(t->n > 0 && isfinite(t->n)))
        return ctn_fail(CTN_EARG, "trigger: n is %g, it must be finite and greater than 0", t->n);
    if (t->apart != 0 && (!(t->apart > 0 && isfinite(t->apart)) ||
                          (t->kind != CTN_EVERY_EPOCHS && t->kind != CTN_EVERY_ITERATIONS)))
        return ctn_fail(CTN_EARG,
                        "trigger: apart is %g, it must be finite, not negative, and 0 except for "
                        "triggers every so many epochs or iterations",
                        t->apart);
    if (t->kind == CTN_SHARE_OF_TIME && !(t->n > 0 && t->n < 100))
        return ctn_fail(CTN_EARG, "trigger: n is %g, a share of time must be above 0 and below 100",
                        t->n);
    if ((t->kind == CTN_EVERY_ITERATIONS || t->kind == CTN_ONCE) && t->n != floor(t->n))
        return ctn_fail(CTN_EARG, "trigger: n is %g, iterations must be a whole number", t->n);
    if ((t->kind == CTN_WHEN_MAX || t->kind == CTN_WHEN_MIN) && (!t->key || !*t->key))
        return ctn_fail(CTN_EARG,
                        "trigger: key must name the value to watch, such as \"val/loss\"");
    if (t->kind == CTN_AT_EPOCHS || t->kind == CTN_AT_ITERATIONS) return check_points(t);
    return CTN_OK;
}

ctn_status ctn__trigger_init(ctn__trigger *g, const ctn_trigger *when, ctn_trigger usual)
{
    *g = (ctn__trigger){.t = when ? *when : usual};
    const char *key = g->t.key;
    g->t.key = NULL;
    if (key && !(g->t.key = ctn__strdup(key))) return CTN_ENOMEM;
    return check(&g->t);
}

void ctn__trigger_free(ctn__trigger *g)
{
    ctn__free((char *)g->t.key);
    g->t.key = NULL;
}

/* Was a multiple of n reached on the way from a to b? The tolerance is for rounding: fractions
 * of an epoch are quotients, and n may be one too. */
static bool passed(double a, double b, double n)
{
    return floor(b / n + 1e-9) > floor(a / n + 1e-9);
}

/* Was one of the points reached on the way from a to b? With the tolerance of `passed`. */
static bool reached(const ctn_trigger *t, double a, double b)
{
    for (int i = 0; i < CTN_TRIGGER_AT && t->at[i] > 0; i++)
        if (t->at[i] > a + 1e-9 && t->at[i] <= b + 1e-9) return true;
    return false;
}

static bool is_best(ctn__trigger *g, const ctn_trainer *tr)
{
    const ctn__observed *v = ctn__value_find(tr, g->t.key);
    if (!v || v->count == g->seen) return false;
    g->seen = v->count;
    if (isnan(v->value)) return false;
    if (g->has_best && !(g->t.kind == CTN_WHEN_MAX ? v->value > g->best : v->value < g->best))
        return false;
    g->best = v->value;
    g->has_best = true;
    return true;
}

/* ---- share of time --------------------------------------------------------------------------- */

enum { BITS = 52 }; /* extensions that fit into the exact integers of a double */

static bool is_due(const ctn__extended *x, const ctn_trainer *tr)
{
    const ctn__trigger *g = &x->trigger;
    if (g->t.kind != CTN_SHARE_OF_TIME) return false;
    const bool state = x->e.self && x->e.self == (void *)tr->checkpointer;
    const double cost = state ? ctn__checkpoint_cost(tr) : g->cost;
    const double now = (double)(ctn__now_ns() - tr->began) * 1e-9;
    return now - g->fired >= fmax(1, 100 * cost / g->t.n);
}

double ctn__triggers_due(const ctn_trainer *tr)
{
    double due = 0;
    for (size_t i = 0; i < tr->ext.n && i < BITS; i++)
        if (is_due(tr->ext.at[i], tr)) due += ldexp(1, (int)i);
    return due;
}

void ctn__triggers_set(ctn_trainer *tr, double due)
{
    for (size_t i = 0; i < tr->ext.n && i < BITS; i++)
        tr->ext.at[i]->trigger.due = (int64_t)due >> i & 1;
}

/* The first time is never too early. */
static bool too_early(const ctn__trigger *g, const ctn_trainer *tr)
{
    return g->t.apart > 0 && g->fired > 0 && !tr->last &&
           ctn__trainer_clock(tr) - g->fired < g->t.apart;
}

static bool fires(ctn__trigger *g, const ctn_trainer *tr)
{
    switch (g->t.kind) {
    case CTN_EVERY_EPOCHS: return tr->last || passed(tr->was, ctn__trainer_epochs(tr), g->t.n);
    case CTN_EVERY_ITERATIONS: return tr->iteration % (int64_t)g->t.n == 0;
    case CTN_EVERY_SECONDS: return ctn__trainer_clock(tr) - g->fired >= g->t.n;
    case CTN_ONCE: return tr->iteration == (int64_t)g->t.n;
    case CTN_AT_END: return tr->last;
    case CTN_AT_EPOCHS: return reached(&g->t, tr->was, ctn__trainer_epochs(tr));
    case CTN_AT_ITERATIONS: return reached(&g->t, (double)tr->iteration - 1, (double)tr->iteration);
    case CTN_WHEN_MAX:
    case CTN_WHEN_MIN: return is_best(g, tr);
    case CTN_SHARE_OF_TIME: return g->due;
    }
    return false;
}

bool ctn__trigger_fires(ctn__trigger *g, const ctn_trainer *tr)
{
    if (too_early(g, tr) || !fires(g, tr)) return false;
    g->fired = ctn__trainer_clock(tr);
    return true;
}
