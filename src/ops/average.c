/* SPDX-License-Identifier: Apache-2.0
 *
 * average: sum of x w / sum of w. The weights are broadcast, so that the second sum counts them
 * as often as the first.
 */
#include "ops/ops.h"

ctn_tensor *ctn_average_at(const char *at, ctn_tensor *x, ctn_tensor *weights, int naxes,
                           const int64_t *axes, int keep)
{
    if (!x || !weights) return ctn_mean_at(at, x, naxes, axes, keep);
    const ctn_desc *d = &x->d;
    ctn_tensor *w = weights;
    if (!ctn__same_shape(&w->d, d)) {
        ctn_tensor *ones = ctn_full_at(at, x->ctx, 1, d->dtype, d->ndim, d->dim);
        w = ctn_mul_at(at, ctn_broadcast_to_at(at, w, d->ndim, d->dim), ones);
    }
    ctn_tensor *s = ctn_sum_at(at, ctn_mul_at(at, x, w), naxes, axes, keep);
    return ctn_div_at(at, s, ctn_sum_at(at, w, naxes, axes, keep));
}
