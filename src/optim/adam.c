/* SPDX-License-Identifier: Apache-2.0
 *
 * Adam, AdamW and AMSGrad, with PyTorch's formulas:
 *   m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
 *   w -= lr / (1-b1^t) * m / (sqrt(v) / sqrt(1-b2^t) + eps)
 */
#include <math.h>

#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    ctn__fill_betas(o, s);
    s->lr = lr / (1 - pow(o->beta1, (double)t));
    s->bias2 = 1 / sqrt(1 - pow(o->beta2, (double)t));
}

const ctn__hyper ctn__hyper_adam[] = {CTN__HYPER_SHARE("beta1", beta1),
                                      CTN__HYPER_SHARE("beta2", beta2),
                                      CTN__HYPER("eps", eps),
                                      {0}};
const ctn__hyper ctn__hyper_betas[] = {CTN__HYPER_SHARE("beta1", beta1),
                                       CTN__HYPER_SHARE("beta2", beta2),
                                       {0}};

ctn_status ctn__check_betas(const char *who, double beta1, double beta2)
{
    if (beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1) return CTN_OK;
    return ctn_fail(CTN_EARG, "%s: beta1 is %g and beta2 %g, both must be in [0,1)", who, beta1,
                    beta2);
}

static ctn_status adam_new(ctn_optim **o, ctn_vars vars, const ctn_adam_opt *opt, bool decoupled)
{
    ctn_adam_opt a = {0};
    CTN_TRY(ctn__opt("adam", &a, sizeof a, opt));
    ctn_optim like = {.kind = a.amsgrad ? CTN__SWEEP_AMSGRAD : CTN__SWEEP_ADAM,
                      .nstates = a.amsgrad ? 3 : 2,
                      .lr = ctn__or(a.lr, 1e-3),
                      .beta1 = ctn__or(a.beta1, 0.9),
                      .beta2 = ctn__or(a.beta2, 0.999),
                      .eps = ctn__or(a.eps, 1e-8),
                      .decoupled = decoupled,
                      .hyper = ctn__hyper_adam,
                      .fill = fill};
    double decay = decoupled && a.decay == 0 ? 0.01 : a.decay < 0 ? 0 : a.decay;
    CTN_TRY(ctn__check_betas("adam", like.beta1, like.beta2));
    return ctn__optim_new(o, &like,
                          decoupled   ? "adamw"
                          : a.amsgrad ? "amsgrad"
                                      : "adam",
                          vars, decay);
}

ctn_status ctn_adam_new(ctn_optim **o, ctn_vars vars, const ctn_adam_opt *opt)
{
    return adam_new(o, vars, opt, false);
}

ctn_status ctn_adamw_new(ctn_optim **o, ctn_vars vars, const ctn_adam_opt *opt)
{
    return adam_new(o, vars, opt, true);
}
