/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_interpolate: p a + (1 - p) b, which is a for p = 1 and b for p = 0 exactly.
 */
#include "ops/ops.h"

ctn_tensor *ctn_linear_interpolate_at(const char *at, ctn_tensor *p, ctn_tensor *a, ctn_tensor *b)
{
    ctn_tensor *rest = ctn_shift_at(at, ctn_neg_at(at, p), 1);
    return ctn_add_at(at, ctn_mul_at(at, p, a), ctn_mul_at(at, rest, b));
}
