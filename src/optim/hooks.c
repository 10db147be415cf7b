/* SPDX-License-Identifier: Apache-2.0
 *
 * What changes gradients between their arrival and the update: clipping of values, L1 decay and
 * noise, in place. The factor of the segments (unscaling, clipping by the norm) is applied here
 * too, and is 1 afterwards.
 *
 * The noise of an element is a pure function of the seed, the step, the number of the parameter and
 * the place of the element in it. The pool's own offsets would change when a parameter is frozen.
 */
#include <math.h>

#include "optim/optim.h"

void ctn_optim_set_clip_value(ctn_optim *o, double max)
{
    o->clip_value = max;
}

void ctn_optim_set_lasso(ctn_optim *o, double rate)
{
    o->lasso = rate;
}

void ctn_optim_set_noise(ctn_optim *o, double eta, double gamma, uint64_t seed)
{
    o->noise = (ctn__noise){eta, gamma, seed};
}

/* Add noise to elements [lo, hi) of parameter i. */
static void add_noise(ctn_optim *o, int i, int64_t lo, int64_t hi, double deviation, int threads)
{
    const uint64_t stream = ctn__mix((uint64_t)o->t, (uint64_t)o->group[i].order);
    const uint64_t seed = o->noise.seed;
    const int64_t n = hi - lo, first = lo - o->pool->begin[i];
    const bool f64 = o->pool->dtype == CTN_F64;
    float *single = ctn__pool_at(o->pool, o->pool->g, lo);
    double *wide = ctn__pool_at(o->pool, o->pool->g, lo);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && n > 4096)
    for (int64_t k = 0; k < n; k++) {
        const double x = deviation * ctn__normal(seed, stream, (uint64_t)(first + k));
        if (f64) wide[k] += x;
        else single[k] += (float)x;
    }
}

static void noise(ctn_optim *o, int threads)
{
    const ctn__pool *p = o->pool;
    const double deviation = sqrt(o->noise.eta / pow(1 + (double)o->t, o->noise.gamma));
    for (ctn__own k = {0}; ctn__own_next(o, &k);) {
        for (int i = 0; i < p->nvar; i++) {
            if (!ctn__trained(o, i)) continue;
            const int64_t last = p->begin[i] + ctn__count(&p->var[i]->d); /* padding stays zero */
            const int64_t lo = p->begin[i] > k.begin ? p->begin[i] : k.begin;
            const int64_t hi = last < k.end ? last : k.end;
            if (lo < hi) add_noise(o, i, lo, hi, deviation, threads);
        }
    }
}

void ctn__hooks_run(ctn_optim *o, int threads)
{
    for (int64_t s = 0; s < o->nseg; s++) {
        o->seg[s].clip = o->clip_value > 0 ? o->clip_value : INFINITY;
        o->seg[s].lasso = o->lasso;
    }
    ctn__sweep_gradients(o, CTN__SWEEP_GRADIENT, threads);
    for (int64_t s = 0; s < o->nseg; s++) o->seg[s].gscale = 1;
    if (o->noise.eta > 0) noise(o, threads);
}
