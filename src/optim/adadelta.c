/* SPDX-License-Identifier: Apache-2.0
 *
 * Adadelta, with PyTorch's formulas:
 *   d = g + decay w;  v = rho v + (1-rho) d^2
 *   x = sqrt(u + eps) / sqrt(v + eps) * d;  u = rho u + (1-rho) x^2;  w -= lr x
 */
#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    (void)t;
    s->lr = lr;
    s->beta2 = o->beta2;
    s->rest2 = 1 - o->beta2;
}

static const ctn__hyper hypers[] = {CTN__HYPER_SHARE("rho", beta2), CTN__HYPER("eps", eps), {0}};

ctn_status ctn_adadelta_new(ctn_optim **o, ctn_vars vars, const ctn_adadelta_opt *opt)
{
    ctn_adadelta_opt a = {0};
    CTN_TRY(ctn__opt("adadelta", &a, sizeof a, opt));
    ctn_optim like = {.kind = CTN__SWEEP_ADADELTA,
                      .nstates = 2,
                      .lr = ctn__or(a.lr, 1),
                      .beta2 = ctn__or(a.rho, 0.9),
                      .eps = ctn__or(a.eps, 1e-6),
                      .hyper = hypers,
                      .fill = fill};
    if (!(like.beta2 >= 0 && like.beta2 < 1))
        return ctn_fail(CTN_EARG, "adadelta: rho is %g, it must be in [0,1)", like.beta2);
    return ctn__optim_new(o, &like, "adadelta", vars, a.decay);
}
