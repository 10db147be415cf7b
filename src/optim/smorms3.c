/* SPDX-License-Identifier: Apache-2.0
 *
 * SMORMS3 (Funk, "RMSprop loses to SMORMS3", 2015):
 *   r = 1 / (k + 1);  m = (1-r) m + r g;  v = (1-r) v + r g^2;  x = m^2 / (v + eps)
 *   w -= min(lr, x) g / (sqrt(v) + eps);  k = 1 + k (1-x), from k = 1 on
 */
#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    (void)o;
    s->lr = lr;
    s->start = t == 1; /* states begin with zeros */
}

static const ctn__hyper hypers[] = {CTN__HYPER("eps", eps), {0}};

ctn_status ctn_smorms3_new(ctn_optim **o, ctn_vars vars, const ctn_smorms3_opt *opt)
{
    ctn_smorms3_opt a = {0};
    CTN_TRY(ctn__opt("smorms3", &a, sizeof a, opt));
    ctn_optim like = {.kind = CTN__SWEEP_SMORMS3,
                      .nstates = 3,
                      .lr = ctn__or(a.lr, 1e-3),
                      .eps = ctn__or(a.eps, 1e-16),
                      .hyper = hypers,
                      .fill = fill};
    return ctn__optim_new(o, &like, "smorms3", vars, a.decay);
}
