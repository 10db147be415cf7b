/* SPDX-License-Identifier: Apache-2.0
 *
 * ceil: y = x rounded up. No gradient flows through it: the derivative is 0 wherever it exists.
 */
#include <math.h>

#include "ops/ops.h"

CTN__KERNEL(ceil)
{
    CTN__MAP1(a, ceilf, ceil);
}

ctn_op ctn__op_ceil = {
    .struct_size = sizeof(ctn_op),
    .name = "ceil",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = 0,
    .inplace = CTN_OPERAND(0),
    .infer = ctn__infer_same,
    .run = ceil_run,
    .tiles = &ceil_tiles,
};

ctn_tensor *ctn_ceil_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_ceil, x);
}
