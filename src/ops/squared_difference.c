/* SPDX-License-Identifier: Apache-2.0
 *
 * squared_difference: the square of a difference. One kernel after fusion.
 */
#include "ops/ops.h"

ctn_tensor *ctn_squared_difference_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return ctn_square_at(at, ctn_sub_at(at, a, b));
}
