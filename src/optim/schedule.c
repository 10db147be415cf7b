/* SPDX-License-Identifier: Apache-2.0
 *
 * Learning-rate schedules: pure functions of the step, so that a resumed run continues exactly.
 */
#include <math.h>

#include "optim/optim.h"

double ctn_sched_factor(const ctn_sched_opt *s, int64_t step)
{
    if (step < s->warmup) return (double)(step + 1) / (double)s->warmup;
    double k = (double)(step - s->warmup);
    double x = s->steps > 0 ? fmin(k / (double)s->steps, 1) : 0;
    switch (s->kind) {
    case CTN_SCHED_CONSTANT: break;
    case CTN_SCHED_STEP: return pow(s->gamma, floor(k / (double)s->every));
    case CTN_SCHED_EXPONENTIAL: return pow(s->gamma, k);
    case CTN_SCHED_COSINE:
        return s->end + (1 - s->end) * 0.5 * (1 + cos(3.14159265358979323846 * x));
    case CTN_SCHED_LINEAR: return 1 + (s->end - 1) * x;
    case CTN_SCHED_POLYNOMIAL: return s->end + (1 - s->end) * pow(1 - x, s->power);
    }
    return 1;
}

ctn_status ctn_optim_set_schedule(ctn_optim *o, const ctn_sched_opt *s)
{
    ctn_sched_opt n = {0};
    CTN_TRY(ctn__opt("schedule", &n, sizeof n, s));
    bool needs_steps =
        n.kind == CTN_SCHED_COSINE || n.kind == CTN_SCHED_LINEAR || n.kind == CTN_SCHED_POLYNOMIAL;
    if (n.warmup < 0 || (needs_steps && n.steps <= 0))
        return ctn_fail(CTN_EARG, "schedule: steps must be given and warmup must not be negative");
    if (n.kind == CTN_SCHED_STEP && (n.every <= 0 || n.gamma <= 0))
        return ctn_fail(CTN_EARG, "schedule: a step schedule needs every and gamma above 0");
    if (n.kind == CTN_SCHED_EXPONENTIAL && n.gamma <= 0)
        return ctn_fail(CTN_EARG, "schedule: an exponential schedule needs gamma above 0");
    if (n.kind == CTN_SCHED_POLYNOMIAL && n.power <= 0)
        return ctn_fail(CTN_EARG, "schedule: a polynomial schedule needs power above 0");
    o->sched = n;
    return CTN_OK;
}
