/* SPDX-License-Identifier: Apache-2.0
 *
 * norm: the 1-norm, the 2-norm and the maximum norm over axes. abs and the root have gradient 0
 * at 0.
 */
#include <math.h>

#include "ops/ops.h"

ctn_tensor *ctn_norm_at(const char *at, ctn_tensor *x, double p, int naxes, const int64_t *axes,
                        int keep)
{
    if (p == 1) return ctn_sum_at(at, ctn_abs_at(at, x), naxes, axes, keep);
    if (p == 2) return ctn__root(at, ctn_sum_at(at, ctn_square_at(at, x), naxes, axes, keep));
    if (isinf(p) && p > 0) return ctn_max_at(at, ctn_abs_at(at, x), naxes, axes, keep);
    ctn_fail(CTN_EARG, "norm: p is %g, expected 1, 2 or infinity (%s)", p, at);
    return NULL;
}
