/* SPDX-License-Identifier: Apache-2.0
 *
 * RMSprop, with PyTorch's formulas:
 *   d = g + decay w;  v = alpha v + (1-alpha) d^2
 *   r = d / (sqrt(v) + eps)
 *   centered: m = alpha m + (1-alpha) d;  r = d / (sqrt(v - m^2) + eps)
 *   w -= lr r,  or with momentum  b = momentum b + r;  w -= lr b
 */
#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    (void)t;
    s->lr = lr;
    s->beta1 = o->beta1;
    s->beta2 = o->beta2;
    s->rest2 = 1 - o->beta2;
}

static const ctn__hyper with_momentum[] = {CTN__HYPER_SHARE("alpha", beta2),
                                           CTN__HYPER("eps", eps),
                                           CTN__HYPER_SHARE("momentum", beta1),
                                           {0}};
static const ctn__hyper without[] = {CTN__HYPER_SHARE("alpha", beta2), CTN__HYPER("eps", eps), {0}};

ctn_status ctn_rmsprop_new(ctn_optim **o, ctn_vars vars, const ctn_rmsprop_opt *opt)
{
    ctn_rmsprop_opt a = {0};
    CTN_TRY(ctn__opt("rmsprop", &a, sizeof a, opt));
    const bool moves = a.momentum != 0, centered = a.centered != 0;
    ctn_optim like = {.kind = moves && centered ? CTN__SWEEP_RMSPROP_GRAVES
                              : centered        ? CTN__SWEEP_RMSPROP_CENTERED
                              : moves           ? CTN__SWEEP_RMSPROP_MOMENTUM
                                                : CTN__SWEEP_RMSPROP,
                      .nstates = 1 + moves + centered,
                      .lr = ctn__or(a.lr, 1e-2),
                      .beta1 = a.momentum,
                      .beta2 = ctn__or(a.alpha, 0.99),
                      .eps = ctn__or(a.eps, 1e-8),
                      .hyper = moves ? with_momentum : without,
                      .fill = fill};
    if (!(like.beta1 >= 0 && like.beta1 < 1 && like.beta2 >= 0 && like.beta2 < 1))
        return ctn_fail(CTN_EARG, "rmsprop: alpha is %g and momentum %g, both must be in [0,1)",
                        like.beta2, like.beta1);
    return ctn__optim_new(o, &like, "rmsprop", vars, a.decay);
}
