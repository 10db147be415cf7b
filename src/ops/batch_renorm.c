/* SPDX-License-Identifier: Apache-2.0
 *
 * batch_renorm: y = (h r + d) scale + shift, h = (x - m) / s with the mean m and deviation s of a
 * channel in this batch. r = s / S and d = (m - M) / S, both clipped, with M and S from the running
 * statistics before this batch; gradients treat them as constants. Two passes over x: batch_norm
 * without scale and shift, whose statistics give r and d, and one multiplication per channel.
 */
#include "ops/common/batch_norm.h"

#include <math.h>

static ctn_tensor *train(const char *at, ctn_tensor *x, ctn_tensor *scale, ctn_tensor *shift,
                         ctn_var *mean, ctn_var *var, const ctn_batch_renorm_opt *o)
{
    ctn__batch_norm_out out;
    ctn_tensor *one = NULL, *zero = NULL;
    ctn_tensor *M = ctn_use_at(at, mean);
    ctn_tensor *inv = ctn_rsqrt_at(at, ctn_shift_at(at, ctn_use_at(at, var), o->eps)); /* 1 / S */
    if (!ctn__batch_norm_args(at, "batch_renorm", x, &one, &zero) ||
        !ctn__batch_norm_train(at, x, one, zero, mean, var, o->eps, o->momentum, &out))
        return NULL;
    ctn_tensor *r = ctn_clip_at(at, ctn_div_at(at, inv, out.rstd), 1 / o->rmax, o->rmax);
    ctn_tensor *d = ctn_mul_at(at, ctn_sub_at(at, out.mean, M), inv);
    d = ctn_detach_at(at, ctn_clip_at(at, d, -o->dmax, o->dmax));
    ctn_tensor *a = ctn_mul_at(at, scale, ctn_detach_at(at, r));
    ctn_tensor *b = ctn_add_at(at, ctn_mul_at(at, scale, d), shift);
    if (!a || !b || ctn_assign_at(at, mean, out.new_mean) < 0 ||
        ctn_assign_at(at, var, out.new_var) < 0)
        return NULL;
    return ctn_channel_affine_at(at, out.y, a, b);
}

ctn_tensor *ctn_batch_renorm_at(const char *at, ctn_tensor *x, ctn_tensor *scale, ctn_tensor *shift,
                                ctn_var *mean, ctn_var *var, const ctn_batch_renorm_opt *opt)
{
    ctn_batch_renorm_opt o;
    if (!x || ctn__opt("batch_renorm", &o, sizeof o, opt) < 0) return NULL;
    if (o.eps <= 0) o.eps = 1e-5;
    if (o.momentum <= 0) o.momentum = 0.1;
    if (o.rmax == 0) o.rmax = 3;
    if (o.dmax == 0) o.dmax = 5;
    if (o.dmax < 0) o.dmax = 0;
    if (!(o.rmax >= 1) || isnan(o.dmax)) {
        ctn_fail(CTN_EARG, "batch_renorm: rmax is %g, dmax is %g; rmax must be at least 1 (%s)",
                 o.rmax, o.dmax, at);
        return NULL;
    }
    if (!ctn_context_training(x->ctx))
        return ctn_batch_norm_at(at, x, scale, shift, mean, var,
                                 CTN_OPT(ctn_batch_norm_opt, .eps = o.eps));
    if (!ctn__batch_norm_args(at, "batch_renorm", x, &scale, &shift)) return NULL;
    return train(at, x, scale, shift, mean, var, &o);
}
