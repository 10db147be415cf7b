/* SPDX-License-Identifier: Apache-2.0
 *
 * RAdam, with PyTorch's formulas. m and v are those of Adam, and
 *   R = 2 / (1-b2) - 1;  r = R - 2 t b2^t / (1-b2^t)
 *   r > 5:  w -= lr / (1-b1^t) sqrt((r-4)(r-2)R / ((R-4)(R-2)r)) sqrt(1-b2^t) m / (sqrt(v) + eps)
 *   else:   w -= lr / (1-b1^t) m
 * This is the sweep of Adam; in the second case the root gets the factor 0, and eps is 1.
 */
#include <math.h>

#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    const double power = pow(o->beta2, (double)t);
    const double R = 2 / (1 - o->beta2) - 1, r = R - 2 * (double)t * power / (1 - power);
    const bool adapts = r > 5;
    ctn__fill_betas(o, s);
    s->lr = lr / (1 - pow(o->beta1, (double)t));
    s->bias2 = adapts;
    if (adapts) s->lr *= sqrt((r - 4) * (r - 2) * R / ((R - 4) * (R - 2) * r) * (1 - power));
    else s->eps = 1;
}

ctn_status ctn_radam_new(ctn_optim **o, ctn_vars vars, const ctn_radam_opt *opt)
{
    ctn_radam_opt a = {0};
    CTN_TRY(ctn__opt("radam", &a, sizeof a, opt));
    ctn_optim like = {.kind = CTN__SWEEP_ADAM,
                      .nstates = 2,
                      .lr = ctn__or(a.lr, 1e-3),
                      .beta1 = ctn__or(a.beta1, 0.9),
                      .beta2 = ctn__or(a.beta2, 0.999),
                      .eps = ctn__or(a.eps, 1e-8),
                      .decoupled = a.decoupled != 0,
                      .hyper = ctn__hyper_adam,
                      .fill = fill};
    CTN_TRY(ctn__check_betas("radam", like.beta1, like.beta2));
    return ctn__optim_new(o, &like, "radam", vars, a.decay);
}
