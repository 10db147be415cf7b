/* SPDX-License-Identifier: Apache-2.0
 *
 * argmin: argmax of -x.
 */
#include "ops/ops.h"

ctn_tensor *ctn_argmin_at(const char *at, ctn_tensor *x, int64_t axis)
{
    return ctn_argmax_at(at, ctn_neg_at(at, x), axis);
}
