/* SPDX-License-Identifier: Apache-2.0
 *
 * Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023):
 *   w -= lr (sign(b1 m + (1-b1) g) + decay w);  m = b2 m + (1-b2) g
 */
#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    (void)t;
    ctn__fill_betas(o, s);
    s->lr = lr;
}

ctn_status ctn_lion_new(ctn_optim **o, ctn_vars vars, const ctn_lion_opt *opt)
{
    ctn_lion_opt a = {0};
    CTN_TRY(ctn__opt("lion", &a, sizeof a, opt));
    ctn_optim like = {.kind = CTN__SWEEP_LION,
                      .nstates = 1,
                      .lr = ctn__or(a.lr, 1e-4),
                      .beta1 = ctn__or(a.beta1, 0.9),
                      .beta2 = ctn__or(a.beta2, 0.99),
                      .decoupled = true,
                      .hyper = ctn__hyper_betas,
                      .fill = fill};
    CTN_TRY(ctn__check_betas("lion", like.beta1, like.beta2));
    return ctn__optim_new(o, &like, "lion", vars, a.decay);
}
