/* SPDX-License-Identifier: Apache-2.0
 *
 * What to do about values that are infinite or NaN: end the training and name the first tensor
 * that is not finite, leave out the step, or rewind to a saved state (rewind.c).
 *
 * To end the training, reported values are checked after every step; parameters and states only if
 * a reported value is not finite or the trigger fires. To skip and to rewind, the optimizer leaves
 * out steps whose gradients are not finite. It decides by the sums over all ranks, so all ranks do
 * the same without a message of their own. A loss that is not finite spoils the gradients.
 *
 * Invariant: a skipped step changes no parameter, no optimizer state, no state of the net and no
 * mean of the log.
 */
#include <math.h>

#include <catena/ops.h>

#include "comm/comm.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "train/train.h"

/* ---- finding them ---------------------------------------------------------------------------- */

static bool finite_var(const ctn_var *v)
{
    if (!ctn__is_float(v->d.dtype)) return true;
    const int64_t n = ctn__count(&v->d);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(ctn__elem_get(v->data, v->d.dtype, i))) return false;
    return true;
}

/* The parameters in the pool take one fast sweep; only if it finds something are they looked at
 * one by one. */
static ctn_status find(ctn_trainer *tr, const char **name, const char **kind)
{
    const ctn_optim *o = tr->optim;
    ctn_vars all = {0};
    bool pool;
    *name = NULL;
    if (!tr->o.net) return CTN_OK;
    CTN_TRY(ctn__trainer_settle(tr));
    CTN_TRY(ctn__module_vars(tr->o.net, &all));
    (void)ctn__optim_norm2(o, o->pool->w, 0, o->pool->count, tr->ctx->threads, &pool);
    for (int i = 0; i < all.n && !*name; i++) {
        const ctn_var *v = all.var[i];
        if ((pool && v->pool == o->pool) || finite_var(v)) continue;
        *name = all.name[i];
        *kind = v->kind == CTN_PARAM ? "parameter" : "state";
    }
    return CTN_OK;
}

ctn_status ctn__nonfinite_anywhere(ctn_trainer *tr, bool *any, const char **name, const char **kind)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    CTN_TRY(ctn__comm_alone(c, find(tr, name, kind)));
    double bad = *name != NULL;
    if (c) CTN_TRY(ctn__comm_max_small(c, 1, &bad));
    *any = bad > 0;
    return CTN_OK;
}

/* A likely cause besides the batch and the learning rate. */
static const char *hint(const ctn_trainer *tr)
{
    const ctn_optim *o = tr->optim;
    const ctn__exchange *x = o->pool->exchange;
    if (!x || ctn__exchange_wire(x) != CTN_F16) return "";
    return o->scaled ? "; gradients are sent in f16, up to 65504"
                     : "; gradients are sent in f16, up to 65504: choose another wire type, or set "
                       "a loss scale";
}

static const ctn__observed *bad_value(const ctn_trainer *tr)
{
    for (size_t i = 0; i < tr->values.n; i++) {
        const ctn__observed *v = &tr->values.at[i];
        if (v->reported && !isfinite(v->last) && v->weight > 0) return v;
    }
    return NULL;
}

/* ---- ending the training --------------------------------------------------------------------- */

static ctn_status stop(ctn_trainer *tr, const ctn__observed *bad)
{
    const char *name = NULL, *kind = NULL;
    CTN_TRY(find(tr, &name, &kind));
    const long long at = (long long)tr->iteration;
    if (bad && name)
        return ctn_fail(CTN_ENONFINITE,
                        "%s is %g at iteration %lld; the first tensor that is not finite is %s "
                        "%s%s",
                        bad->name, bad->last, at, kind, name, hint(tr));
    if (bad)
        return ctn_fail(CTN_ENONFINITE,
                        "%s is %g at iteration %lld%s: check this batch and the learning rate",
                        bad->name, bad->last, at,
                        tr->o.net ? "; all parameters and states are finite" : "");
    if (name)
        return ctn_fail(CTN_ENONFINITE, "%s %s is not finite at iteration %lld%s", kind, name, at,
                        hint(tr));
    return CTN_OK;
}

/* ---- skipping a step ------------------------------------------------------------------------- */

/* The extension, if it skips or rewinds. */
static ctn__nonfinite *guard(const ctn_trainer *tr)
{
    ctn__nonfinite *x = tr->nonfinite;
    return x && x->o.policy != CTN_NONFINITE_STOP ? x : NULL;
}

/* The gradient of L + 0 L detach(L) is 1 + 0 L: exactly 1, or NaN if L is not finite. */
ctn_tensor *ctn__nonfinite_loss(const ctn_trainer *tr, ctn_tensor *loss)
{
    if (!guard(tr)) return loss;
    return ctn_add(loss, ctn_scale(ctn_mul(loss, ctn_detach(loss)), 0));
}

void ctn__nonfinite_before(ctn_trainer *tr)
{
    ctn__nonfinite *x = guard(tr);
    if (!x) return;
    x->before = ctn_optim_skipped(tr->optim);
    ctn__net_states_take(&x->states);
    for (size_t i = 0; i < tr->values.n; i++) {
        ctn__observed *v = &tr->values.at[i];
        v->before[0] = v->sum;
        v->before[1] = v->weight;
        v->before[2] = v->last;
    }
}

void ctn__nonfinite_after(ctn_trainer *tr)
{
    ctn__nonfinite *x = guard(tr);
    if (!x) return;
    tr->skipped = ctn_optim_skipped(tr->optim) != x->before;
    if (!tr->skipped) {
        x->in_row = 0;
        return;
    }
    x->skipped++;
    x->in_row++;
    ctn__net_states_put_back(&x->states);
    for (size_t i = 0; i < tr->values.n; i++) {
        ctn__observed *v = &tr->values.at[i];
        v->sum = v->before[0];
        v->weight = v->before[1];
        v->last = v->before[2];
    }
}

/* ---- deciding -------------------------------------------------------------------------------- */

/* All ranks come here together, so nobody has to be told. */
static ctn_status fail_together(ctn__nonfinite *x, ctn_trainer *tr, const char *cause)
{
    const bool rewinds = x->o.policy == CTN_NONFINITE_REWIND;
    tr->shared = true;
    tr->rewind = rewinds && x->rewinds < x->o.max_rewinds;
    snprintf(x->why, sizeof x->why, "%s", cause);
    if (rewinds && !tr->rewind)
        return ctn_fail(CTN_ENONFINITE,
                        "%s; the training was rewound %lld times, which is the limit: check the "
                        "data and the learning rate",
                        cause, (long long)x->rewinds);
    return ctn_fail(CTN_ENONFINITE, "%s", cause);
}

/* What this rank knows about a skipped step. */
static void describe(const ctn_trainer *tr, char *out, size_t n)
{
    const double loss = tr->losses.now.sum;
    if (!isfinite(loss))
        snprintf(out, n, "train/loss is %s at iteration %lld", isnan(loss) ? "nan" : "infinite",
                 (long long)tr->iteration);
    else
        snprintf(out, n, "the gradients of iteration %lld are not finite%s",
                 (long long)tr->iteration, hint(tr));
}

static void warn_skipped(const ctn__nonfinite *x, const ctn_trainer *tr, const char *cause)
{
    enum { SHOWN = 3 };
    if (x->skipped > SHOWN || !ctn__writes(tr)) return;
    ctn__warn("%s: this step is skipped%s", cause,
              x->skipped == SHOWN ? "; further skipped steps are only counted (train/skipped)"
                                  : "");
}

static ctn_status skipped(ctn__nonfinite *x, ctn_trainer *tr)
{
    char cause[160], full[240];
    const bool scaled = tr->optim->scaled && tr->optim->scaling.dynamic;
    CTN_TRY(ctn_trainer_observe(tr, "train/skipped", (double)x->skipped));
    describe(tr, cause, sizeof cause);
    if (x->o.policy == CTN_NONFINITE_REWIND && !scaled) return fail_together(x, tr, cause);
    if (x->in_row < x->o.max_skips) {
        if (!scaled) warn_skipped(x, tr, cause);
        return CTN_OK;
    }
    snprintf(full, sizeof full, "%s, and this is skipped step %lld in a row", cause,
             (long long)x->in_row);
    return fail_together(x, tr, full);
}

ctn_status ctn__nonfinite_check(ctn_trainer *tr)
{
    ctn__nonfinite *x = guard(tr);
    const char *name = NULL, *kind = NULL;
    char cause[240];
    bool any = false;
    if (!x) return CTN_OK;
    CTN_TRY(ctn__nonfinite_anywhere(tr, &any, &name, &kind));
    if (!any) return CTN_OK;
    if (name)
        snprintf(cause, sizeof cause, "%s %s is not finite at iteration %lld", kind, name,
                 (long long)tr->iteration);
    else
        snprintf(cause, sizeof cause, "a state of another rank is not finite at iteration %lld",
                 (long long)tr->iteration);
    return fail_together(x, tr, cause);
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    ctn__nonfinite *x = self;
    const bool due = ctn__trigger_fires(&x->trigger, tr);
    if (guard(tr) && tr->skipped) return skipped(x, tr);
    const ctn__observed *bad = bad_value(tr);
    if (bad || (due && !guard(tr))) return stop(tr, bad);
    return due ? ctn__nonfinite_check(tr) : CTN_OK;
}

/* ---- the extension --------------------------------------------------------------------------- */

static ctn_status start(void *self, ctn_trainer *tr)
{
    ctn__nonfinite *x = self;
    const bool on = guard(tr) != NULL;
    tr->skipped = false;
    if (x->o.policy == CTN_NONFINITE_REWIND && !ctn__checkpoint_dir(tr))
        return ctn_fail(CTN_ESTATE, "extend_on_nonfinite: rewinding needs saved states; add them "
                                    "with ctn_extend_state");
    x->was = tr->optim->guarded;
    if (!on) return CTN_OK;
    ctn_optim_set_skip_nonfinite(tr->optim, 1);
    return ctn__net_states_make(&x->states, tr);
}

/* A program that goes on with a loop of its own decides for itself. */
static ctn_status finish(void *self, ctn_trainer *tr)
{
    ctn_optim_set_skip_nonfinite(tr->optim, ((ctn__nonfinite *)self)->was);
    return CTN_OK;
}

static ctn_status visit(void *self, ctn_state_fn fn, void *user)
{
    ctn__nonfinite *x = self;
    CTN_TRY(fn(user, "skipped", CTN_I64, 0, NULL, &x->skipped));
    CTN_TRY(fn(user, "in_row", CTN_I64, 0, NULL, &x->in_row));
    CTN_TRY(fn(user, "rewinds", CTN_I64, 0, NULL, &x->rewinds));
    CTN_TRY(fn(user, "rate", CTN_F64, 0, NULL, &x->rate));
    x->tr->optim->rate = x->rate;
    return CTN_OK;
}

static void release(void *self)
{
    ctn__nonfinite *x = self;
    ctn__trigger_free(&x->trigger);
    ctn__net_states_free(&x->states);
    ctn__free(x);
}

static ctn_status set_options(ctn__nonfinite *x, const ctn_nonfinite_opt *opt)
{
    ctn_nonfinite_opt *o = &x->o;
    CTN_TRY(ctn__opt("extend_on_nonfinite", o, sizeof *o, opt));
    if (o->max_skips == 0) o->max_skips = 20;
    if (o->max_rewinds == 0) o->max_rewinds = 3;
    if (o->factor == 0) o->factor = 0.5;
    if (o->policy < CTN_NONFINITE_STOP || o->policy > CTN_NONFINITE_REWIND)
        return ctn_fail(CTN_EARG, "extend_on_nonfinite: policy %d does not exist", (int)o->policy);
    if (o->max_skips < 1 || o->max_rewinds < 1 || !(o->factor > 0 && o->factor <= 1))
        return ctn_fail(CTN_EARG,
                        "extend_on_nonfinite: max_skips is %lld, max_rewinds %lld and factor %g; "
                        "they must be at least 1, at least 1 and in (0,1]",
                        (long long)o->max_skips, (long long)o->max_rewinds, o->factor);
    return CTN_OK;
}

/* All policies have the same state, so that a training that has failed can be resumed with
 * another one. */
ctn_status ctn_extend_on_nonfinite(ctn_trainer *tr, const ctn_trigger *when,
                                   const ctn_nonfinite_opt *opt)
{
    if (!tr) return ctn_fail(CTN_EARG, "extend_on_nonfinite: no trainer");
    ctn__nonfinite *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    x->tr = tr;
    x->rate = 1;
    ctn_status st = set_options(x, opt);
    if (st == CTN_OK)
        st = ctn__trigger_init(&x->trigger, when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1});
    if (st == CTN_OK && x->trigger.t.kind == CTN_SHARE_OF_TIME)
        st = ctn_fail(CTN_EARG, "extend_on_nonfinite: a share of time is no trigger for it");
    if (st < 0) {
        release(x);
        return st;
    }
    CTN_TRY(ctn__extend(tr,
                        &(ctn_extension){.name = "nonfinite",
                                         .priority = CTN_PRIORITY_EVALUATE + 50,
                                         .start = start,
                                         .call = call,
                                         .finish = finish,
                                         .visit = visit,
                                         .release = release,
                                         .self = x},
                        NULL, (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 1}));
    tr->nonfinite = x;
    return CTN_OK;
}

ctn_status ctn_extend_fail_on_nonfinite(ctn_trainer *tr, const ctn_trigger *when)
{
    return ctn_extend_on_nonfinite(tr, when, NULL);
}
