/* SPDX-License-Identifier: Apache-2.0
 *
 * Adagrad, with PyTorch's formulas:
 *   d = g + decay w;  v = v + d^2, from v = initial on
 *   w -= lr / (1 + (t-1) lr_decay) * d / (sqrt(v) + eps)
 */
#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    s->lr = lr / (1 + (double)(t - 1) * o->more[0]);
    s->start = t == 1 ? o->more[1] : 0; /* states begin with zeros */
}

static const ctn__hyper hypers[] = {CTN__HYPER("lr_decay", more[0]), CTN__HYPER("eps", eps), {0}};

ctn_status ctn_adagrad_new(ctn_optim **o, ctn_vars vars, const ctn_adagrad_opt *opt)
{
    ctn_adagrad_opt a = {0};
    CTN_TRY(ctn__opt("adagrad", &a, sizeof a, opt));
    ctn_optim like = {.kind = CTN__SWEEP_ADAGRAD,
                      .nstates = 1,
                      .lr = ctn__or(a.lr, 1e-2),
                      .eps = ctn__or(a.eps, 1e-10),
                      .more = {a.lr_decay, a.initial},
                      .hyper = hypers,
                      .fill = fill};
    if (!(a.lr_decay >= 0 && a.initial >= 0))
        return ctn_fail(CTN_EARG, "adagrad: lr_decay is %g and initial %g, both must be at least 0",
                        a.lr_decay, a.initial);
    return ctn__optim_new(o, &like, "adagrad", vars, a.decay);
}
