/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules of hyperparameters. They are pure functions of the step, so a resumed run continues
 * exactly.
 */
#include <math.h>

#include "optim/optim.h"

#define PI 3.14159265358979323846

static double cosine(double from, double to, double x)
{
    return to + (from - to) * 0.5 * (1 + cos(PI * x));
}

static double multistep(const ctn_sched_opt *s, double k)
{
    double f = 1;
    for (int i = 0; i < CTN_SCHED_AT && s->at[i] > 0 && k >= (double)s->at[i]; i++) f *= s->gamma;
    return f;
}

/* PyTorch's OneCycleLR: start at step 0, 1 at step rise * steps - 1, end at the last step. */
static double one_cycle(const ctn_sched_opt *s, double k)
{
    const double start = s->start > 0 ? s->start : 1.0 / 25;
    const double end = s->end > 0 ? s->end : start / 1e4;
    const double top = (s->rise > 0 ? s->rise : 0.3) * (double)s->steps - 1;
    const double last = (double)s->steps - 1;
    if (k <= top) return top > 0 ? cosine(start, 1, k / top) : 1;
    return last > top ? cosine(1, end, fmin((k - top) / (last - top), 1)) : end;
}

/* PyTorch's CosineAnnealingWarmRestarts. */
static double restarts(const ctn_sched_opt *s, double k)
{
    const double longer = s->gamma > 0 ? s->gamma : 1;
    double period = (double)s->steps;
    if (longer == 1) k = fmod(k, period);
    while (k >= period) {
        k -= period;
        period *= longer;
    }
    return cosine(1, s->end, k / period);
}

/* Without the end for stochastic weight averaging. */
static double factor(const ctn_sched_opt *s, int64_t step)
{
    if (step < s->warmup) return (double)(step + 1) / (double)s->warmup;
    double k = (double)(step - s->warmup);
    double x = s->steps > 0 ? fmin(k / (double)s->steps, 1) : 0;
    switch (s->kind) {
    case CTN_SCHED_CONSTANT: break;
    case CTN_SCHED_STEP: return pow(s->gamma, floor(k / (double)s->every));
    case CTN_SCHED_EXPONENTIAL: return pow(s->gamma, k);
    case CTN_SCHED_COSINE: return cosine(1, s->end, x);
    case CTN_SCHED_LINEAR: return 1 + (s->end - 1) * x;
    case CTN_SCHED_POLYNOMIAL: return s->end + (1 - s->end) * pow(1 - x, s->power);
    case CTN_SCHED_MULTISTEP: return multistep(s, k);
    case CTN_SCHED_INVERSE: return pow(1 + s->gamma * k, -s->power);
    case CTN_SCHED_ONE_CYCLE: return one_cycle(s, k);
    case CTN_SCHED_COSINE_RESTARTS: return restarts(s, k);
    }
    return 1;
}

double ctn_sched_factor(const ctn_sched_opt *s, int64_t step)
{
    if (s->swa_start <= 0 || step < s->swa_start) return factor(s, step);
    const double from = factor(s, s->swa_start), k = (double)(step - s->swa_start);
    const double x = s->swa_steps > 0 ? fmin(k / (double)s->swa_steps, 1) : 1;
    return s->swa_linear ? from + (s->swa_end - from) * x : cosine(from, s->swa_end, x);
}

static ctn_status check_kind(const ctn_sched_opt *n)
{
    switch (n->kind) {
    case CTN_SCHED_STEP:
        if (n->every <= 0 || n->gamma <= 0)
            return ctn_fail(CTN_EARG, "schedule: a step schedule needs every and gamma above 0");
        break;
    case CTN_SCHED_EXPONENTIAL:
        if (n->gamma <= 0)
            return ctn_fail(CTN_EARG, "schedule: an exponential schedule needs gamma above 0");
        break;
    case CTN_SCHED_POLYNOMIAL:
        if (n->power <= 0)
            return ctn_fail(CTN_EARG, "schedule: a polynomial schedule needs power above 0");
        break;
    case CTN_SCHED_MULTISTEP:
        if (n->gamma <= 0 || n->at[0] <= 0)
            return ctn_fail(CTN_EARG,
                            "schedule: a multistep schedule needs gamma above 0 and steps in at");
        for (int i = 1; i < CTN_SCHED_AT && n->at[i] != 0; i++)
            if (n->at[i] <= n->at[i - 1])
                return ctn_fail(CTN_EARG,
                                "schedule: at must be ascending, but %lld comes after %lld",
                                (long long)n->at[i], (long long)n->at[i - 1]);
        break;
    case CTN_SCHED_INVERSE:
        if (n->gamma <= 0 || n->power <= 0)
            return ctn_fail(CTN_EARG,
                            "schedule: an inverse schedule needs gamma and power above 0");
        break;
    case CTN_SCHED_ONE_CYCLE:
        if (n->start < 0 || n->end < 0 || n->rise < 0 || n->rise >= 1)
            return ctn_fail(CTN_EARG, "schedule: a one-cycle schedule needs start and end not "
                                      "negative, and rise at least 0 and below 1");
        break;
    case CTN_SCHED_COSINE_RESTARTS:
        if (n->gamma != 0 && !(n->gamma >= 1 && n->gamma == floor(n->gamma)))
            return ctn_fail(CTN_EARG,
                            "schedule: gamma of a cosine schedule with restarts is %g, expected a "
                            "whole number",
                            n->gamma);
        break;
    case CTN_SCHED_CONSTANT:
    case CTN_SCHED_COSINE:
    case CTN_SCHED_LINEAR: break;
    default: return ctn_fail(CTN_EARG, "schedule: unknown kind %d", (int)n->kind);
    }
    return CTN_OK;
}

ctn_status ctn__sched_check(ctn_sched_opt *out, const ctn_sched_opt *s, int64_t steps)
{
    ctn_sched_opt n = {0};
    CTN_TRY(ctn__opt("schedule", &n, sizeof n, s));
    bool needs_steps = n.kind == CTN_SCHED_COSINE || n.kind == CTN_SCHED_LINEAR ||
                       n.kind == CTN_SCHED_POLYNOMIAL || n.kind == CTN_SCHED_ONE_CYCLE ||
                       n.kind == CTN_SCHED_COSINE_RESTARTS;
    if (needs_steps && n.steps == 0) n.steps = steps - n.warmup;
    if (n.warmup < 0 || (needs_steps && n.steps <= 0))
        return ctn_fail(CTN_EARG, "schedule: steps must be given and warmup must not be negative");
    if (n.swa_start < 0 || n.swa_steps < 0 || n.swa_end < 0)
        return ctn_fail(CTN_EARG,
                        "schedule: swa_start, swa_steps and swa_end must not be negative");
    CTN_TRY(check_kind(&n));
    *out = n;
    return CTN_OK;
}

ctn_status ctn_optim_set_schedule(ctn_optim *o, const ctn_sched_opt *s)
{
    return ctn__sched_check(&o->sched, s, 0);
}
