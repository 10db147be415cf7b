/* SPDX-License-Identifier: Apache-2.0
 *
 * round: y = x rounded to the nearest integer, ties to even. No gradient flows through it: the
 * derivative is 0 wherever it exists.
 */
#include <math.h>

#include "ops/ops.h"

CTN__KERNEL(round)
{
    CTN__MAP1(a, rintf, rint);
}

ctn_op ctn__op_round = {
    .struct_size = sizeof(ctn_op),
    .name = "round",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = 0,
    .inplace = CTN_OPERAND(0),
    .infer = ctn__infer_same,
    .run = round_run,
    .tiles = &round_tiles,
};

ctn_tensor *ctn_round_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_round, x);
}
