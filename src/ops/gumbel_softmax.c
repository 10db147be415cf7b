/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel_softmax: softmax((x + g) / tau) with g = -log(-log u), u uniform. The lower limit of u
 * keeps g finite; the chance that it matters is 1e-10.
 */
#include "ops/ops.h"

ctn_tensor *ctn_gumbel_softmax_at(const char *at, ctn_tensor *x, double tau, int axis)
{
    if (!(tau > 0)) {
        ctn_fail(CTN_EARG, "gumbel_softmax: tau is %g, expected a number above 0 (%s)", tau, at);
        return NULL;
    }
    if (!x) return NULL;
    const ctn_desc *d = &x->d;
    ctn_tensor *u = ctn_random_uniform_at(at, x->ctx, 1e-10, 1, d->dtype, d->ndim, d->dim);
    ctn_tensor *e = ctn_neg_at(at, ctn_log_at(at, u)); /* exponential distribution */
    ctn_tensor *y = ctn_sub_at(at, x, ctn_log_at(at, e));
    return ctn_softmax_at(at, ctn_scale_at(at, y, 1 / tau), axis);
}
