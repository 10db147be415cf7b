/* SPDX-License-Identifier: Apache-2.0
 *
 * floor: y = x rounded down. No gradient flows through it: the derivative is 0 wherever it
 * exists.
 */
#include <math.h>

#include "ops/ops.h"

CTN__KERNEL(floor)
{
    CTN__MAP1(a, floorf, floor);
}

ctn_op ctn__op_floor = {
    .struct_size = sizeof(ctn_op),
    .name = "floor",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = 0,
    .inplace = CTN_OPERAND(0),
    .infer = ctn__infer_same,
    .run = floor_run,
    .tiles = &floor_tiles,
};

ctn_tensor *ctn_floor_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_floor, x);
}
