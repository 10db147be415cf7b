/* SPDX-License-Identifier: Apache-2.0
 *
 * global_avg_pool: the mean over all spatial dimensions, which is avg_pool with one window that
 * covers all of x.
 */
#include "ops/ops.h"

ctn_tensor *ctn_global_avg_pool_at(const char *at, ctn_tensor *x)
{
    static const int64_t one[CTN_MAX_SPATIAL] = {1, 1, 1};
    return ctn_adaptive_avg_pool_at(at, x, x ? x->d.ndim - 2 : 0, one);
}
