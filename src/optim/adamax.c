/* SPDX-License-Identifier: Apache-2.0
 *
 * Adamax, with PyTorch's formulas:
 *   d = g + decay w;  m = b1 m + (1-b1) d;  u = max(b2 u, |d| + eps)
 *   w -= lr / (1-b1^t) * m / u
 */
#include <math.h>

#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    ctn__fill_betas(o, s);
    s->lr = lr / (1 - pow(o->beta1, (double)t));
}

ctn_status ctn_adamax_new(ctn_optim **o, ctn_vars vars, const ctn_adamax_opt *opt)
{
    ctn_adamax_opt a = {0};
    CTN_TRY(ctn__opt("adamax", &a, sizeof a, opt));
    ctn_optim like = {.kind = CTN__SWEEP_ADAMAX,
                      .nstates = 2,
                      .lr = ctn__or(a.lr, 2e-3),
                      .beta1 = ctn__or(a.beta1, 0.9),
                      .beta2 = ctn__or(a.beta2, 0.999),
                      .eps = ctn__or(a.eps, 1e-8),
                      .hyper = ctn__hyper_adam,
                      .fill = fill};
    CTN_TRY(ctn__check_betas("adamax", like.beta1, like.beta2));
    return ctn__optim_new(o, &like, "adamax", vars, a.decay);
}
