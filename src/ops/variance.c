/* SPDX-License-Identifier: Apache-2.0
 *
 * variance and std: mean, difference, square, sum. They are not ops of their own. The mean is not
 * detached, because second derivatives depend on it.
 */
#include "ops/ops.h"

ctn_tensor *ctn_variance_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                            int correction, int keep)
{
    ctn_tensor *d = ctn_sub_at(at, x, ctn_mean_at(at, x, naxes, axes, 1));
    ctn_tensor *s = ctn_sum_at(at, ctn_square_at(at, d), naxes, axes, keep);
    if (!s) return NULL;
    const int64_t n = ctn__count(&s->d), r = n > 0 ? ctn__count(&x->d) / n : 0;
    const double left = r > correction ? (double)(r - correction) : 0;
    return ctn_scale_at(at, s, 1 / left);
}

ctn_tensor *ctn_std_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                       int correction, int keep)
{
    return ctn__root(at, ctn_variance_at(at, x, naxes, axes, correction, keep));
}
