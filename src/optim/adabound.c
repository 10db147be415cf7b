/* SPDX-License-Identifier: Apache-2.0
 *
 * AdaBound and AMSBound (Luo et al., "Adaptive gradient methods with dynamic bound of learning
 * rate", 2019). m and v are those of Adam, and
 *   low = f (1 - 1 / (gamma t + 1));  high = f (1 + 1 / (gamma t));  f = final_lr
 *   w -= min(max(lr sqrt(1-b2^t) / (1-b1^t) / (sqrt(v) + eps), low), high) m
 * A schedule or a group that changes lr changes f in the same proportion.
 */
#include <math.h>

#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    const double T = (double)t, f = o->lr != 0 ? o->more[0] * lr / o->lr : 0;
    ctn__fill_betas(o, s);
    s->lr = lr * sqrt(1 - pow(o->beta2, T)) / (1 - pow(o->beta1, T));
    s->least = f * (1 - 1 / (o->more[1] * T + 1));
    s->most = f * (1 + 1 / (o->more[1] * T));
}

static const ctn__hyper hypers[] = {
    CTN__HYPER_SHARE("beta1", beta1), CTN__HYPER_SHARE("beta2", beta2), CTN__HYPER("eps", eps),
    CTN__HYPER("final_lr", more[0]),  CTN__HYPER("gamma", more[1]),     {0}};

ctn_status ctn_adabound_new(ctn_optim **o, ctn_vars vars, const ctn_adabound_opt *opt)
{
    ctn_adabound_opt a = {0};
    CTN_TRY(ctn__opt("adabound", &a, sizeof a, opt));
    ctn_optim like = {.kind = a.amsbound ? CTN__SWEEP_AMSBOUND : CTN__SWEEP_BOUND,
                      .nstates = a.amsbound ? 3 : 2,
                      .lr = ctn__or(a.lr, 1e-3),
                      .beta1 = ctn__or(a.beta1, 0.9),
                      .beta2 = ctn__or(a.beta2, 0.999),
                      .eps = ctn__or(a.eps, 1e-8),
                      .more = {ctn__or(a.final_lr, 0.1), ctn__or(a.gamma, 1e-3)},
                      .hyper = hypers,
                      .fill = fill};
    CTN_TRY(ctn__check_betas("adabound", like.beta1, like.beta2));
    if (!(like.more[0] > 0 && like.more[1] > 0))
        return ctn_fail(CTN_EARG, "adabound: final_lr is %g and gamma %g, both must be above 0",
                        like.more[0], like.more[1]);
    return ctn__optim_new(o, &like, a.amsbound ? "amsbound" : "adabound", vars, a.decay);
}
