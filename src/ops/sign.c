/* SPDX-License-Identifier: Apache-2.0
 *
 * sign: y = -1, 0 or 1; NaN stays NaN. No gradient flows through it: the derivative is 0
 * wherever it exists.
 */
#include "ops/ops.h"

#define SIGN(x) ((x) > 0 ? 1 : (x) < 0 ? -1 : (x))

CTN__KERNEL(sign)
{
    CTN__MAP1(a, SIGN, SIGN);
}

ctn_op ctn__op_sign = {
    .struct_size = sizeof(ctn_op),
    .name = "sign",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = 0,
    .inplace = CTN_OPERAND(0),
    .infer = ctn__infer_same,
    .run = sign_run,
    .tiles = &sign_tiles,
};

ctn_tensor *ctn_sign_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_sign, x);
}
