/* SPDX-License-Identifier: Apache-2.0
 *
 * rrelu: leaky_relu with a random slope for each element in training, and with the mean slope in
 * evaluation.
 */
#include "ops/ops.h"

ctn_tensor *ctn_rrelu_at(const char *at, ctn_tensor *x, double lower, double upper)
{
    if (!(lower <= upper)) {
        ctn_fail(CTN_EARG, "rrelu: slopes are %g to %g, expected ascending order (%s)", lower,
                 upper, at);
        return NULL;
    }
    if (!x || !ctn_context_training(x->ctx)) return ctn_leaky_relu_at(at, x, 0.5 * (lower + upper));
    const ctn_desc *d = &x->d;
    ctn_tensor *slope = ctn_random_uniform_at(at, x->ctx, lower, upper, d->dtype, d->ndim, d->dim);
    ctn_tensor *zero = ctn_full_at(at, x->ctx, 0, d->dtype, CTN_SCALAR_SHAPE);
    return ctn_where_at(at, ctn_greater_at(at, x, zero), x, ctn_mul_at(at, slope, x));
}
