/* SPDX-License-Identifier: Apache-2.0
 *
 * kl_div: t (log t - x). Where t is 0 the logarithm is that of 1, so that neither the value nor a
 * gradient is NaN.
 */
#include "ops/common/loss.h"

ctn_tensor *ctn_kl_div_at(const char *at, ctn_tensor *x, ctn_tensor *t, ctn_reduction reduction)
{
    if (!ctn__loss_pair(at, "kl_div", x, t)) return NULL;
    ctn_tensor *zero = ctn_full_at(at, x->ctx, 0, x->d.dtype, CTN_SCALAR_SHAPE);
    ctn_tensor *one = ctn_full_at(at, x->ctx, 1, x->d.dtype, CTN_SCALAR_SHAPE);
    ctn_tensor *some = ctn_where_at(at, ctn_equal_at(at, t, zero), one, t);
    ctn_tensor *y = ctn_mul_at(at, t, ctn_sub_at(at, ctn_log_at(at, some), x));
    return ctn__loss_of_each(at, "kl_div", y, reduction);
}
