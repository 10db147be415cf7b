/* SPDX-License-Identifier: Apache-2.0
 *
 * SGD with or without momentum and Nesterov momentum, with PyTorch's formulas:
 *   d = g + decay w;  b = momentum b + (1-dampening) d  (b = d at the first step)
 *   w -= lr b,  or for Nesterov  w -= lr (d + momentum b)
 */
#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    s->lr = lr;
    s->beta1 = o->beta1;
    s->rest1 = t == 1 ? 1 : 1 - o->dampening;
}

static const ctn__hyper hypers[] = {CTN__HYPER_SHARE("momentum", beta1), {0}};

ctn_status ctn_sgd_new(ctn_optim **o, ctn_vars vars, const ctn_sgd_opt *opt)
{
    ctn_sgd_opt a = {0};
    CTN_TRY(ctn__opt("sgd", &a, sizeof a, opt));
    if (a.nesterov && (a.momentum <= 0 || a.dampening != 0))
        return ctn_fail(CTN_EARG, "sgd: Nesterov needs momentum > 0 and no dampening");
    ctn_optim like = {.kind = a.momentum == 0 ? CTN__SWEEP_SGD
                              : a.nesterov    ? CTN__SWEEP_NESTEROV
                                              : CTN__SWEEP_MOMENTUM,
                      .nstates = a.momentum == 0 ? 0 : 1,
                      .lr = a.lr != 0 ? a.lr : 1e-2,
                      .beta1 = a.momentum,
                      .dampening = a.dampening,
                      .hyper = a.momentum == 0 ? NULL : hypers,
                      .fill = fill};
    const char *name = a.momentum == 0 ? "sgd" : a.nesterov ? "nesterov" : "momentum";
    return ctn__optim_new(o, &like, name, vars, a.decay);
}
