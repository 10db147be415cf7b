/* SPDX-License-Identifier: Apache-2.0
 *
 * trunc: y = x rounded towards 0. No gradient flows through it: the derivative is 0 wherever it
 * exists.
 */
#include <math.h>

#include "ops/ops.h"

CTN__KERNEL(trunc)
{
    CTN__MAP1(a, truncf, trunc);
}

ctn_op ctn__op_trunc = {
    .struct_size = sizeof(ctn_op),
    .name = "trunc",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = 0,
    .inplace = CTN_OPERAND(0),
    .infer = ctn__infer_same,
    .run = trunc_run,
    .tiles = &trunc_tiles,
};

ctn_tensor *ctn_trunc_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_trunc, x);
}
