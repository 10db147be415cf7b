/* SPDX-License-Identifier: Apache-2.0
 *
 * normalize: x divided by its 2-norm along an axis, which counts as at least eps.
 */
#include <math.h>

#include "ops/ops.h"

ctn_tensor *ctn_normalize_at(const char *at, ctn_tensor *x, int64_t axis, double eps)
{
    ctn_tensor *n = ctn_norm_at(at, x, 2, 1, &axis, 1);
    return ctn_div_at(at, x, ctn_clip_at(at, n, eps, INFINITY));
}
