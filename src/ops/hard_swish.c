/* SPDX-License-Identifier: Apache-2.0
 *
 * hard_swish: x hard_sigmoid(x).
 */
#include "ops/ops.h"

ctn_tensor *ctn_hard_swish_at(const char *at, ctn_tensor *x)
{
    return ctn_mul_at(at, x, ctn_hard_sigmoid_at(at, x));
}
