/* SPDX-License-Identifier: Apache-2.0
 *
 * NAdam, with PyTorch's formulas. m and v are those of Adam, and
 *   mu(t) = b1 (1 - 0.96^(t momentum_decay) / 2);  P(t) = mu(1) ... mu(t)
 *   w -= lr (mu(t+1) / (1-P(t+1)) m + (1-mu(t)) / (1-P(t)) d) / (sqrt(v / (1-b2^t)) + eps)
 */
#include <math.h>

#include "optim/optim.h"

static double momentum(const ctn_optim *o, int64_t t)
{
    return o->beta1 * (1 - 0.5 * pow(0.96, (double)t * o->more[0]));
}

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    const double now = momentum(o, t), next = momentum(o, t + 1);
    double product = 1;
    /* mu grows from b1 / 2, so a few dozen factors are enough: 1 - product no longer changes. */
    for (int64_t i = 1; i <= t && product > 1e-18; i++) product *= momentum(o, i);
    ctn__fill_betas(o, s);
    s->lr = lr * next / (1 - product * next);
    s->lr2 = lr * (1 - now) / (1 - product);
    s->bias2 = 1 / sqrt(1 - pow(o->beta2, (double)t));
}

static const ctn__hyper hypers[] = {CTN__HYPER_SHARE("beta1", beta1),
                                    CTN__HYPER_SHARE("beta2", beta2),
                                    CTN__HYPER("eps", eps),
                                    CTN__HYPER("momentum_decay", more[0]),
                                    {0}};

ctn_status ctn_nadam_new(ctn_optim **o, ctn_vars vars, const ctn_nadam_opt *opt)
{
    ctn_nadam_opt a = {0};
    CTN_TRY(ctn__opt("nadam", &a, sizeof a, opt));
    ctn_optim like = {.kind = CTN__SWEEP_NADAM,
                      .nstates = 2,
                      .lr = ctn__or(a.lr, 2e-3),
                      .beta1 = ctn__or(a.beta1, 0.9),
                      .beta2 = ctn__or(a.beta2, 0.999),
                      .eps = ctn__or(a.eps, 1e-8),
                      .more = {ctn__or(a.momentum_decay, 4e-3)},
                      .decoupled = a.decoupled != 0,
                      .hyper = hypers,
                      .fill = fill};
    CTN_TRY(ctn__check_betas("nadam", like.beta1, like.beta2));
    return ctn__optim_new(o, &like, "nadam", vars, a.decay);
}
