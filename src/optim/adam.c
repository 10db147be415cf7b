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
    s->beta1 = (float)o->beta1;
    s->rest1 = (float)(1 - o->beta1);
    s->beta2 = (float)o->beta2;
    s->rest2 = (float)(1 - o->beta2);
    s->lr = (float)(lr / (1 - pow(o->beta1, (double)t)));
    s->bias2 = (float)(1 / sqrt(1 - pow(o->beta2, (double)t)));
}

static ctn_status adam_new(ctn_optim **o, ctn_vars vars, const ctn_adam_opt *opt, bool decoupled)
{
    ctn_adam_opt a = {0};
    CTN_TRY(ctn__opt("adam", &a, sizeof a, opt));
    ctn_optim like = {.kind = a.amsgrad ? CTN__SWEEP_AMSGRAD : CTN__SWEEP_ADAM,
                      .nstates = a.amsgrad ? 3 : 2,
                      .lr = a.lr != 0 ? a.lr : 1e-3,
                      .beta1 = a.beta1 != 0 ? a.beta1 : 0.9,
                      .beta2 = a.beta2 != 0 ? a.beta2 : 0.999,
                      .eps = a.eps != 0 ? a.eps : 1e-8,
                      .decoupled = decoupled,
                      .fill = fill};
    double decay = decoupled && a.decay == 0 ? 0.01 : a.decay < 0 ? 0 : a.decay;
    if (like.beta1 < 0 || like.beta1 >= 1 || like.beta2 < 0 || like.beta2 >= 1)
        return ctn_fail(CTN_EARG, "adam: beta1 is %g and beta2 %g, both must be in [0,1)",
                        like.beta1, like.beta2);
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
