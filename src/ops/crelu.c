/* SPDX-License-Identifier: Apache-2.0
 *
 * crelu: relu(x) and relu(-x), concatenated.
 */
#include "ops/ops.h"

ctn_tensor *ctn_crelu_at(const char *at, ctn_tensor *x, int64_t axis)
{
    ctn_tensor *both[2] = {ctn_relu_at(at, x), ctn_relu_at(at, ctn_neg_at(at, x))};
    return ctn_concat_at(at, 2, both, axis);
}
