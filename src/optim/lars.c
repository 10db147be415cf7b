/* SPDX-License-Identifier: Apache-2.0
 *
 * LARS (You et al., "Large batch training of convolutional networks", 2017). For each parameter
 *   l = trust |w| / (|g| + decay |w| + eps), or 1 if |w| or |g| is 0
 *   b = momentum b + lr l (g + decay w);  w -= b
 */
#include <math.h>

#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    (void)t;
    (void)lr;
    s->lr = 1; /* the learning rate is inside the momentum */
    s->beta1 = o->beta1;
}

static void trust(const ctn_optim *o, const ctn__group *g, double lr, double w_norm, double g_norm,
                  ctn__sweep_seg *s)
{
    const double norm = fabs(s->gscale) * g_norm, below = norm + g->decay * w_norm + o->eps;
    s->rest1 = w_norm > 0 && norm > 0 ? lr * o->more[0] * w_norm / below : lr;
}

static const ctn__hyper hypers[] = {CTN__HYPER_SHARE("momentum", beta1),
                                    CTN__HYPER("trust", more[0]),
                                    CTN__HYPER("eps", eps),
                                    {0}};

ctn_status ctn_lars_new(ctn_optim **o, ctn_vars vars, const ctn_lars_opt *opt)
{
    ctn_lars_opt a = {0};
    CTN_TRY(ctn__opt("lars", &a, sizeof a, opt));
    ctn_optim like = {.kind = CTN__SWEEP_MOMENTUM,
                      .trust = trust,
                      .nstates = 1,
                      .lr = ctn__or(a.lr, 0.1),
                      .beta1 = a.momentum < 0 ? 0 : ctn__or(a.momentum, 0.9),
                      .eps = a.eps,
                      .more = {ctn__or(a.trust, 1e-3)},
                      .hyper = hypers,
                      .fill = fill};
    if (!(like.beta1 < 1 && like.more[0] > 0 && like.eps >= 0))
        return ctn_fail(CTN_EARG,
                        "lars: momentum is %g, trust %g and eps %g; they must be below 1, above 0 "
                        "and at least 0",
                        like.beta1, like.more[0], like.eps);
    return ctn__optim_new(o, &like, "lars", vars, a.decay);
}
