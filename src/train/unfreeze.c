/* SPDX-License-Identifier: Apache-2.0
 *
 * Fine-tuning in stages: parameters that are frozen at first are trained from an epoch on. What is
 * trained is a function of the number of epochs done, and not part of a saved state. Before a state
 * is loaded, everything is set as it was in its epoch, because the optimizer has state for the
 * parameters that were trained by then (state.c).
 */
#include "nn/nn.h"
#include "optim/optim.h"
#include "train/train.h"

/* A parameter, or a batch normalisation whose statistics are frozen; the other one is NULL. */
typedef struct {
    int64_t epoch;
    ctn_var *var;
    ctn_module *norm;
    bool on; /* trained now */
} stage;

struct ctn__unfreeze {
    CTN__VEC(stage) at;
};

static void set(stage *s, bool on)
{
    if (s->norm) {
        ctn__batch_norm_freeze(s->norm, !on);
    } else {
        ctn_var_set_trainable(s->var, on);
        if (!on && s->var->pool) ctn__optim_forget(s->var->pool->owner, s->var);
    }
    s->on = on;
}

ctn_status ctn__unfreeze_at(ctn_trainer *tr, int64_t epoch)
{
    ctn__unfreeze *u = tr->unfreeze;
    for (size_t i = 0; u && i < u->at.n; i++)
        if (u->at.at[i].on != (epoch >= u->at.at[i].epoch)) set(&u->at.at[i], !u->at.at[i].on);
    return u ? ctn__pools_arrange(tr->ctx) : CTN_OK;
}

/* Runs before all other extensions, so that every state that is saved now has what the next epoch
 * begins with. */
static ctn_status call(void *self, ctn_trainer *tr)
{
    (void)self;
    return ctn__unfreeze_at(tr, tr->epoch);
}

static void release(void *self)
{
    ctn__unfreeze *u = self;
    ctn__vec_free(&u->at);
    ctn__free(u);
}

/* What an earlier call has added stays as it is. */
static ctn_status add(ctn__unfreeze *u, stage s)
{
    for (size_t i = 0; i < u->at.n; i++)
        if (u->at.at[i].var == s.var && u->at.at[i].norm == s.norm) return CTN_OK;
    return ctn__vec_push(&u->at, s) ? CTN_OK : CTN_ENOMEM;
}

static ctn_status add_params(ctn__unfreeze *u, ctn_module *net, int64_t epoch, const char *pattern)
{
    const ctn_vars p = ctn_params(net);
    const size_t before = u->at.n;
    if (p.n == 0 && ctn_error_status() < 0) return ctn_error_status();
    for (int i = 0; i < p.n; i++) {
        if (p.var[i]->trainable || (pattern && !ctn__match_below(pattern, p.name[i]))) continue;
        CTN_TRY(add(u, (stage){.epoch = epoch, .var = p.var[i]}));
    }
    if (u->at.n > before) return CTN_OK;
    return ctn_fail(CTN_ENOTFOUND, "extend_unfreeze: no parameter %s%s%sis frozen",
                    pattern ? "that matches '" : "", pattern ? pattern : "", pattern ? "' " : "");
}

typedef struct {
    ctn__unfreeze *u;
    int64_t epoch;
    const char *pattern;
} norms;

static ctn_status add_norm(void *user, const char *name, ctn_module *m)
{
    const norms *n = user;
    if (!ctn__is_batch_norm(m) || !ctn__batch_norm_frozen(m)) return CTN_OK;
    if (n->pattern && !ctn__match_below(n->pattern, name)) return CTN_OK;
    return add(n->u, (stage){.epoch = n->epoch, .norm = m});
}

static ctn_status make(ctn_trainer *tr)
{
    if (tr->unfreeze) return CTN_OK;
    ctn__unfreeze *u = ctn__calloc(1, sizeof *u);
    if (!u) return CTN_ENOMEM;
    CTN_TRY(ctn__extend(tr,
                        &(ctn_extension){.name = "unfreeze",
                                         .priority = CTN_PRIORITY_EVALUATE + 200,
                                         .call = call,
                                         .release = release,
                                         .self = u},
                        NULL, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1}));
    tr->unfreeze = u;
    return CTN_OK;
}

ctn_status ctn_extend_unfreeze(ctn_trainer *tr, int64_t epoch, const char *pattern, int statistics)
{
    if (!tr || !tr->o.net)
        return ctn_fail(tr ? CTN_ESTATE : CTN_EARG,
                        "extend_unfreeze: needs a trainer with a net (ctn_trainer_opt.net)");
    if (epoch < 1)
        return ctn_fail(CTN_EARG, "extend_unfreeze: epoch is %lld, expected 1 or more",
                        (long long)epoch);
    if (tr->running)
        return ctn_fail(CTN_ESTATE, "extend_unfreeze: cannot add it while the trainer is running");
    if (ctn__trainer_sharded(tr))
        return ctn_fail(CTN_ESTATE, "extend_unfreeze: an optimizer is sharded and cannot take in "
                                    "parameters later");
    CTN_TRY(make(tr));
    CTN_TRY(add_params(tr->unfreeze, tr->o.net, epoch, pattern));
    norms n = {tr->unfreeze, epoch, pattern};
    return statistics ? ctn_module_visit_modules(tr->o.net, add_norm, &n) : CTN_OK;
}
