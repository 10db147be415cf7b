/* SPDX-License-Identifier: Apache-2.0
 *
 * Loss scaling: its options, and how the scale changes after taken and skipped steps. Scaling
 * itself is the seed of ctn_backward; unscaling is a factor of the update sweep (optim.c).
 *
 * Invariant: the scale is representable as a float, so that f32 and f64 losses are seeded with
 * exactly the number that the step divides by. Neither the scale nor its reciprocal is subnormal,
 * because a run would flush that to zero.
 */
#include <math.h>

#include "optim/optim.h"

#define LEAST 1e-30
#define MOST 1e30

static double rounded(double scale)
{
    return (double)(float)scale;
}

static bool usable(double scale)
{
    return scale >= LEAST && scale <= MOST; /* false for NaN */
}

static void fill_defaults(ctn_loss_scale_opt *s)
{
    if (s->dynamic && s->scale == 0) s->scale = 65536;
    if (s->growth == 0) s->growth = 2;
    if (s->backoff == 0) s->backoff = 0.5;
    if (s->interval == 0) s->interval = 2000;
    if (s->max == 0) s->max = fmax(s->scale, 16777216);
    if (s->min == 0) s->min = fmin(s->scale, 1);
}

static ctn_status check(const ctn_loss_scale_opt *s)
{
    if (!s->dynamic && s->scale == 0)
        return ctn_fail(CTN_EARG, "loss_scale: set scale, or set dynamic to 1");
    if (!usable(s->scale))
        return ctn_fail(CTN_EARG, "loss_scale: the scale is %g, it must be in [%g,%g]", s->scale,
                        LEAST, MOST);
    if (!s->dynamic) return CTN_OK;
    if (!(s->growth >= 1 && isfinite(s->growth)) || !(s->backoff > 0 && s->backoff <= 1) ||
        s->interval < 1)
        return ctn_fail(CTN_EARG,
                        "loss_scale: growth is %g, backoff %g and interval %lld; they must be at "
                        "least 1, in (0,1] and above 0",
                        s->growth, s->backoff, (long long)s->interval);
    if (!usable(s->min) || !usable(s->max) || s->min > s->scale || s->max < s->scale)
        return ctn_fail(CTN_EARG,
                        "loss_scale: the scale is %g, min %g and max %g; they must be in [%g,%g] "
                        "and min <= scale <= max",
                        s->scale, s->min, s->max, LEAST, MOST);
    return CTN_OK;
}

ctn_status ctn_optim_set_loss_scale(ctn_optim *o, const ctn_loss_scale_opt *opt)
{
    ctn_loss_scale_opt s = {0};
    if (!o) return ctn_fail(CTN_EARG, "loss_scale: no optimizer");
    CTN_TRY(ctn__opt("loss_scale", &s, sizeof s, opt));
    if (opt) {
        fill_defaults(&s);
        CTN_TRY(check(&s));
        o->scaling = s;
        o->scale = rounded(s.scale);
    }
    o->scaled = opt != NULL;
    o->scale_good = 0;
    return CTN_OK;
}

double ctn_optim_loss_scale(const ctn_optim *o)
{
    return o->scaled ? o->scale : 1;
}

int64_t ctn_optim_skipped(const ctn_optim *o)
{
    return o->skipped;
}

void ctn__scale_taken(ctn_optim *o)
{
    if (!o->scaling.dynamic || ++o->scale_good < o->scaling.interval) return;
    o->scale = rounded(fmin(o->scale * o->scaling.growth, o->scaling.max));
    o->scale_good = 0;
}

void ctn__scale_skipped(ctn_optim *o)
{
    o->skipped++;
    o->scale_good = 0;
    if (o->scaled && o->scaling.dynamic)
        o->scale = rounded(fmax(o->scale * o->scaling.backoff, o->scaling.min));
}

ctn_status ctn__scale_visit(ctn_optim *o, ctn_state_fn fn, void *user)
{
    double scale = o->scale;
    CTN_TRY(fn(user, "loss_scale", CTN_F64, 0, NULL, &scale));
    if (!usable(scale))
        return ctn_fail(CTN_EFORMAT, "the saved loss scale is %g, it must be in [%g,%g]", scale,
                        LEAST, MOST);
    o->scale = rounded(scale);
    CTN_TRY(fn(user, "loss_scale_good", CTN_I64, 0, NULL, &o->scale_good));
    return fn(user, "skipped", CTN_I64, 0, NULL, &o->skipped);
}
