/* SPDX-License-Identifier: Apache-2.0
 *
 * LAMB (You et al., "Large batch optimization for deep learning", 2019). m and v are those of
 * Adam, and for each parameter
 *   r = m / (1-b1^t) / (sqrt(v / (1-b2^t)) + eps) + decay w;  w -= lr |w| / |r| r
 * or w -= lr r if |w| or |r| is 0. A first sweep replaces the gradients by r; then their norms are
 * taken, and the update is the sweep of SGD.
 */
#include <math.h>

#include "optim/optim.h"

static void fill(const ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s)
{
    (void)lr;
    ctn__fill_betas(o, s);
    s->lr = 1 / (1 - pow(o->beta1, (double)t));
    s->lr2 = s->decay;
    s->bias2 = 1 / sqrt(1 - pow(o->beta2, (double)t));
}

static void trust(const ctn_optim *o, const ctn__group *g, double lr, double w_norm, double g_norm,
                  ctn__sweep_seg *s)
{
    (void)o;
    (void)g;
    s->gscale = 1;
    s->decay = 0;
    s->lr = w_norm > 0 && g_norm > 0 ? lr * w_norm / g_norm : lr;
}

ctn_status ctn_lamb_new(ctn_optim **o, ctn_vars vars, const ctn_lamb_opt *opt)
{
    ctn_lamb_opt a = {0};
    CTN_TRY(ctn__opt("lamb", &a, sizeof a, opt));
    ctn_optim like = {.kind = CTN__SWEEP_SGD,
                      .first = CTN__SWEEP_LAMB,
                      .trust = trust,
                      .nstates = 2,
                      .lr = ctn__or(a.lr, 1e-3),
                      .beta1 = ctn__or(a.beta1, 0.9),
                      .beta2 = ctn__or(a.beta2, 0.999),
                      .eps = ctn__or(a.eps, 1e-6),
                      .hyper = ctn__hyper_adam,
                      .fill = fill};
    CTN_TRY(ctn__check_betas("lamb", like.beta1, like.beta2));
    return ctn__optim_new(o, &like, "lamb", vars, a.decay);
}
