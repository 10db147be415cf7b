/* SPDX-License-Identifier: Apache-2.0
 *
 * Observes the mean, standard deviation, minimum and maximum of each parameter as
 * "param/NAME/mean" and so on.
 */
#include <math.h>

#include "train/train.h"

#include "optim/optim.h"

static ctn_status observe(ctn_trainer *tr, const char *name, const char *what, double value)
{
    char full[512];
    snprintf(full, sizeof full, "param/%s/%s", name, what);
    return ctn_trainer_observe(tr, full, value);
}

/* Two passes, because one pass would lose the deviation's digits when the mean is large. */
static ctn_status observe_one(ctn_trainer *tr, const char *name, const ctn_var *v)
{
    const int64_t n = ctn__count(&v->d);
    double sum = 0, square = 0, least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double x = ctn__elem_get(v->data, v->d.dtype, i);
        sum += x;
        least = fmin(least, x);
        most = fmax(most, x);
    }
    const double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double x = ctn__elem_get(v->data, v->d.dtype, i) - mean;
        square += x * x;
    }
    CTN_TRY(observe(tr, name, "mean", mean));
    CTN_TRY(observe(tr, name, "std", sqrt(square / (double)n)));
    CTN_TRY(observe(tr, name, "min", least));
    return observe(tr, name, "max", most);
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    CTN_TRY(ctn__trainer_settle(tr));
    const ctn_vars p = ctn_params(tr->o.net);
    for (int i = 0; i < p.n; i++)
        if (ctn__match(self, p.name[i]) && ctn__count(&p.var[i]->d) > 0)
            CTN_TRY(observe_one(tr, p.name[i], p.var[i]));
    return CTN_OK;
}

ctn_status ctn_extend_param_stats(ctn_trainer *tr, const ctn_trigger *when, const char *pattern)
{
    if (!tr || !tr->o.net)
        return ctn_fail(tr ? CTN_ESTATE : CTN_EARG,
                        "extend_param_stats: needs a trainer with a net (ctn_trainer_opt.net)");
    char *copy = ctn__strdup(pattern ? pattern : "*");
    if (!copy) return CTN_ENOMEM;
    return ctn__extend(tr,
                       &(ctn_extension){.name = "param_stats",
                                        .priority = CTN_PRIORITY_EVALUATE,
                                        .call = call,
                                        .release = ctn__free,
                                        .self = copy},
                       when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1});
}
