/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends a training whose values have become infinite or NaN, and names the first tensor that is
 * not finite. Reported values are checked after every step; parameters and states only if a
 * reported value is not finite or the trigger fires.
 */
#include <math.h>

#include "nn/nn.h"
#include "optim/optim.h"
#include "train/train.h"

static bool finite_var(const ctn_var *v)
{
    if (!ctn__is_float(v->d.dtype)) return true;
    const int64_t n = ctn__count(&v->d);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(ctn__elem_get(v->data, v->d.dtype, i))) return false;
    return true;
}

static ctn_status first_bad_var(ctn_trainer *tr, const char **name, const char **kind)
{
    ctn_vars all = {0};
    *name = NULL;
    if (!tr->o.net) return CTN_OK;
    CTN_TRY(ctn__pool_settle(tr->optim->pool));
    CTN_TRY(ctn__module_vars(tr->o.net, &all));
    for (int i = 0; i < all.n && !*name; i++) {
        if (finite_var(all.var[i])) continue;
        *name = all.name[i];
        *kind = all.var[i]->kind == CTN_PARAM ? "parameter" : "state";
    }
    return CTN_OK;
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    const ctn__observed *bad = NULL;
    const char *name = NULL, *kind = NULL;
    for (size_t i = 0; i < tr->values.n && !bad; i++) {
        const ctn__observed *v = &tr->values.at[i];
        if (v->reported && !isfinite(v->last) && v->weight > 0) bad = v;
    }
    if (!ctn__trigger_fires(self, tr) && !bad) return CTN_OK;
    CTN_TRY(first_bad_var(tr, &name, &kind));
    const long long at = (long long)tr->iteration;
    if (bad && name)
        return ctn_fail(CTN_ENONFINITE,
                        "%s is %g at iteration %lld; the first tensor that is not finite is %s %s",
                        bad->name, bad->last, at, kind, name);
    if (bad)
        return ctn_fail(CTN_ENONFINITE,
                        "%s is %g at iteration %lld%s: check this batch and the learning rate",
                        bad->name, bad->last, at,
                        tr->o.net ? "; all parameters and states are finite" : "");
    if (name)
        return ctn_fail(CTN_ENONFINITE, "%s %s is not finite at iteration %lld", kind, name, at);
    return CTN_OK;
}

static void release(void *self)
{
    ctn__trigger_free(self);
    ctn__free(self);
}

ctn_status ctn_extend_fail_on_nonfinite(ctn_trainer *tr, const ctn_trigger *when)
{
    if (!tr) return ctn_fail(CTN_EARG, "extend_fail_on_nonfinite: no trainer");
    ctn__trigger *g = ctn__calloc(1, sizeof *g);
    if (!g) return CTN_ENOMEM;
    ctn_status st = ctn__trigger_init(g, when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1});
    if (st < 0) {
        release(g);
        return st;
    }
    return ctn__extend(tr,
                       &(ctn_extension){.name = "fail_on_nonfinite",
                                        .priority = CTN_PRIORITY_EVALUATE + 50,
                                        .call = call,
                                        .release = release,
                                        .self = g},
                       NULL, (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 1});
}
