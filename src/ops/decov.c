/* SPDX-License-Identifier: Apache-2.0
 *
 * decov: the sum of the squares of the covariances below the diagonal, which is half of those
 * beside it.
 */
#include "ops/ops.h"

ctn_tensor *ctn_decov_at(const char *at, ctn_tensor *x)
{
    ctn_tensor *c = ctn_tril_at(at, ctn_cross_covariance_at(at, x, x), -1);
    return ctn_sum_at(at, ctn_square_at(at, c), CTN_ALL_AXES, 0);
}
