/* SPDX-License-Identifier: Apache-2.0
 *
 * Patience, which detects that a value has stopped improving, and early stopping based on it.
 * Only new observations count, not every time the trigger fires.
 */
#include "train/train.h"

#include <math.h>

static ctn_status check(const char *who, const ctn_patience_opt *o)
{
    if (!o->key || !*o->key)
        return ctn_fail(CTN_EARG, "%s: key must name the value to watch, such as \"val/loss\"",
                        who);
    if (o->patience < 1)
        return ctn_fail(CTN_EARG, "%s: patience is %lld, it must be at least 1", who,
                        (long long)o->patience);
    if (!(o->factor > 0 && o->factor < 1))
        return ctn_fail(CTN_EARG, "%s: factor is %g, it must be in (0,1)", who, o->factor);
    if (!isfinite(o->difference) || !isfinite(o->min))
        return ctn_fail(CTN_EARG, "%s: difference and min must be finite", who);
    return CTN_OK;
}

ctn_status ctn__patience_init(ctn__patience *p, const char *who, const ctn_patience_opt *o)
{
    *p = (ctn__patience){.best = NAN};
    CTN_TRY(ctn__opt(who, &p->o, sizeof p->o, o));
    const char *key = p->o.key;
    if (p->o.factor == 0) p->o.factor = 0.1;
    if (p->o.difference == 0) p->o.difference = 1e-4;
    if (p->o.difference < 0) p->o.difference = 0;
    ctn_status st = check(who, &p->o);
    p->o.key = NULL;
    CTN_TRY(st);
    p->o.key = ctn__strdup(key);
    return p->o.key ? CTN_OK : CTN_ENOMEM;
}

void ctn__patience_free(ctn__patience *p)
{
    ctn__free((char *)p->o.key);
}

bool ctn__patience_ends(ctn__patience *p, const ctn_trainer *tr)
{
    const ctn__observed *v = ctn__value_find(tr, p->o.key);
    if (!v || v->count == p->seen) return false;
    p->seen = v->count;
    const double margin = p->o.difference * fabs(p->best);
    const bool better = p->o.larger ? v->value > p->best + margin : v->value < p->best - margin;
    if (better || (!p->has_best && !isnan(v->value))) {
        p->best = v->value;
        p->has_best = true;
        p->bad = 0;
        return false;
    }
    return ++p->bad >= p->o.patience;
}

ctn_status ctn__patience_visit(ctn__patience *p, ctn_state_fn fn, void *user)
{
    int64_t has = p->has_best;
    CTN_TRY(fn(user, "best", CTN_F64, 0, NULL, &p->best));
    CTN_TRY(fn(user, "bad", CTN_I64, 0, NULL, &p->bad));
    CTN_TRY(fn(user, "seen", CTN_I64, 0, NULL, &p->seen));
    CTN_TRY(fn(user, "has_best", CTN_I64, 0, NULL, &has));
    p->has_best = has != 0;
    return CTN_OK;
}

/* ---- early stopping -------------------------------------------------------------------------- */

typedef struct {
    ctn__patience p;
    char why[160];
} stopper;

static ctn_status start(void *self, ctn_trainer *tr)
{
    const stopper *s = self;
    CTN_TRY(ctn__values_common(tr, "early_stop", s->p.o.key));
    /* true if the loaded state was saved after the training had stopped early */
    if (s->p.bad >= s->p.o.patience) ctn__trainer_end(tr, s->why);
    return CTN_OK;
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    stopper *s = self;
    if (ctn__patience_ends(&s->p, tr)) ctn__trainer_end(tr, s->why);
    return CTN_OK;
}

static ctn_status visit(void *self, ctn_state_fn fn, void *user)
{
    return ctn__patience_visit(&((stopper *)self)->p, fn, user);
}

static void release(void *self)
{
    ctn__patience_free(&((stopper *)self)->p);
    ctn__free(self);
}

ctn_status ctn_extend_early_stop(ctn_trainer *tr, const ctn_trigger *when,
                                 const ctn_patience_opt *opt)
{
    if (!tr) return ctn_fail(CTN_EARG, "extend_early_stop: no trainer");
    stopper *s = ctn__calloc(1, sizeof *s);
    if (!s) return CTN_ENOMEM;
    ctn_status st = ctn__patience_init(&s->p, "extend_early_stop", opt);
    if (st < 0) {
        release(s);
        return st;
    }
    snprintf(s->why, sizeof s->why, "%s did not improve %lld times in a row", s->p.o.key,
             (long long)s->p.o.patience);
    return ctn__extend(tr,
                       &(ctn_extension){.name = "early_stop",
                                        .priority = CTN_PRIORITY_CHANGE,
                                        .start = start,
                                        .call = call,
                                        .visit = visit,
                                        .release = release,
                                        .self = s},
                       when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1});
}
