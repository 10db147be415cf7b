/* SPDX-License-Identifier: Apache-2.0
 *
 * Hyperparameters that change during training: by a schedule, which is a pure function of the
 * iteration, or when a value stops improving (plateau). A new value is always set before the step
 * that uses it: when the training starts and after each step. If both change the same one, a
 * plateau lowers what the schedule multiplies, because the schedule would replace a lower value.
 */
#include "train/train.h"

#include <math.h>

#include "optim/optim.h"

/* ---- schedule -------------------------------------------------------------------------------- */

typedef struct {
    char *hyper;
    ctn_sched_opt s;
    bool whole; /* the schedule spans the whole training */
    double base;
} scheduled;

static ctn_status set(void *self, ctn_trainer *tr)
{
    const scheduled *x = self;
    return ctn_optim_set_hyper(tr->optim, x->hyper,
                               x->base * ctn_sched_factor(&x->s, tr->iteration));
}

/* If each rank has its own dataset, the number of steps is known only now. */
static ctn_status start(void *self, ctn_trainer *tr)
{
    scheduled *x = self;
    if (x->whole && ctn__group_apart(tr)) {
        x->s.steps = 0;
        CTN_TRY(ctn__sched_check(&x->s, &x->s, ctn__trainer_length(tr)));
    }
    return set(self, tr);
}

static ctn_status visit(void *self, ctn_state_fn fn, void *user)
{
    scheduled *x = self;
    return fn(user, "base", CTN_F64, 0, NULL, &x->base);
}

static void release(void *self)
{
    scheduled *x = self;
    ctn__free(x->hyper);
    ctn__free(x);
}

static ctn_status check_hyper(const ctn_trainer *tr, const char *who, const char *hyper)
{
    if (!tr || !hyper)
        return ctn_fail(CTN_EARG, "%s: needs a trainer and the name of a hyperparameter", who);
    if (isnan(ctn_optim_hyper(tr->optim, hyper))) /* let the setter write the message */
        return ctn_optim_set_hyper(tr->optim, hyper, 0);
    return CTN_OK;
}

ctn_status ctn_extend_schedule(ctn_trainer *tr, const char *hyper, const ctn_sched_opt *s)
{
    char name[128];
    ctn_sched_opt given;
    CTN_TRY(ctn__opt("schedule", &given, sizeof given, s));
    CTN_TRY(check_hyper(tr, "extend_schedule", hyper));
    scheduled *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    x->base = ctn_optim_hyper(tr->optim, hyper);
    x->hyper = ctn__strdup(hyper);
    int64_t length = ctn__trainer_length(tr);
    if (ctn__group_apart(tr) && length <= given.warmup) length = given.warmup + 1; /* see start */
    ctn_status st = x->hyper ? ctn__sched_check(&x->s, s, length) : CTN_ENOMEM;
    if (st < 0) {
        release(x);
        return st;
    }
    x->whole = given.steps == 0;
    snprintf(name, sizeof name, "schedule:%s", hyper);
    return ctn__extend(tr,
                       &(ctn_extension){.name = name,
                                        .priority = CTN_PRIORITY_CHANGE,
                                        .start = start,
                                        .call = set,
                                        .visit = visit,
                                        .release = release,
                                        .self = x},
                       NULL, (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 1});
}

/* ---- plateau --------------------------------------------------------------------------------- */

typedef struct {
    char *hyper;
    ctn__patience p;
} plateau;

static ctn_status plateau_start(void *self, ctn_trainer *tr)
{
    const plateau *x = self;
    return ctn__values_common(tr, "plateau", x->p.o.key);
}

/* NULL: the hyperparameter has no schedule. */
static scheduled *schedule_of(const ctn_trainer *tr, const char *hyper)
{
    for (size_t i = 0; i < tr->ext.n; i++) {
        const ctn_extension *e = &tr->ext.at[i]->e;
        if (e->call == set && strcmp(((scheduled *)e->self)->hyper, hyper) == 0) return e->self;
    }
    return NULL;
}

static ctn_status lower(void *self, ctn_trainer *tr)
{
    plateau *x = self;
    if (!ctn__patience_ends(&x->p, tr)) return CTN_OK;
    x->p.bad = 0;
    scheduled *s = schedule_of(tr, x->hyper);
    const double value = ctn_optim_hyper(tr->optim, x->hyper);
    const double lowered = fmax(value * x->p.o.factor, x->p.o.min);
    if (!s) return ctn_optim_set_hyper(tr->optim, x->hyper, lowered);
    s->base *= value > lowered ? lowered / value : 1;
    return set(s, tr);
}

/* The value itself is part of the state of the optimizer or of the schedule. */
static ctn_status plateau_visit(void *self, ctn_state_fn fn, void *user)
{
    return ctn__patience_visit(&((plateau *)self)->p, fn, user);
}

static void plateau_release(void *self)
{
    plateau *x = self;
    ctn__patience_free(&x->p);
    ctn__free(x->hyper);
    ctn__free(x);
}

ctn_status ctn_extend_plateau(ctn_trainer *tr, const ctn_trigger *when, const char *hyper,
                              const ctn_patience_opt *opt)
{
    char name[128];
    CTN_TRY(check_hyper(tr, "extend_plateau", hyper));
    plateau *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    x->hyper = ctn__strdup(hyper);
    ctn_status st = x->hyper ? ctn__patience_init(&x->p, "extend_plateau", opt) : CTN_ENOMEM;
    if (st < 0) {
        plateau_release(x);
        return st;
    }
    snprintf(name, sizeof name, "plateau:%s", hyper);
    return ctn__extend(tr,
                       &(ctn_extension){.name = name,
                                        .priority = CTN_PRIORITY_CHANGE,
                                        .start = plateau_start,
                                        .call = lower,
                                        .visit = plateau_visit,
                                        .release = plateau_release,
                                        .self = x},
                       when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1});
}
