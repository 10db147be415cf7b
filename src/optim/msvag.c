/* SPDX-License-Identifier: Apache-2.0
 *
 * M-SVAG (Balles and Hennig, "Dissecting Adam", 2018). With m = b m + (1-b) g, v = b v + (1-b) g^2,
 * both divided by 1-b^t,
 *   p = (1-b) (1+b^t) / ((1+b) (1-b^t));  s = (v - m^2) / (1-p);  w -= lr m m^2 / (m^2 + p s)
 * In the first step v = m^2, and w -= lr m.
 */
#include <math.h>

#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    const double power = pow(o->beta1, (double)t);
    const double p = (1 - o->beta1) * (1 + power) / ((1 + o->beta1) * (1 - power));
    s->lr = lr;
    s->beta1 = o->beta1;
    s->rest1 = 1 - o->beta1;
    s->bias2 = 1 / (1 - power);
    s->start = t == 1 ? 0 : p / (1 - p);
}

static const ctn__hyper hypers[] = {CTN__HYPER_SHARE("beta", beta1), {0}};

ctn_status ctn_msvag_new(ctn_optim **o, ctn_vars vars, const ctn_msvag_opt *opt)
{
    ctn_msvag_opt a = {0};
    CTN_TRY(ctn__opt("msvag", &a, sizeof a, opt));
    ctn_optim like = {.kind = CTN__SWEEP_MSVAG,
                      .nstates = 2,
                      .lr = ctn__or(a.lr, 0.1),
                      .beta1 = ctn__or(a.beta, 0.9),
                      .hyper = hypers,
                      .fill = fill};
    if (!(like.beta1 > 0 && like.beta1 < 1))
        return ctn_fail(CTN_EARG, "msvag: beta is %g, it must be in (0,1)", like.beta1);
    return ctn__optim_new(o, &like, "msvag", vars, a.decay);
}
