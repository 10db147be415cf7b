/* SPDX-License-Identifier: Apache-2.0
 *
 * square: y = x^2. Gradient: gx = 2 gy x.
 */
#include "ops/ops.h"

#define SQUARE(x) ((x) * (x))

CTN__CHEAP_KERNEL(square, CTN__CHEAP_SQUARE)
{
    CTN__MAP1(a, SQUARE, SQUARE);
}

static ctn_status square_grad(const ctn_grad_args *a)
{
    a->gin[0] = ctn_scale_at(a->at, ctn_mul_at(a->at, a->gout[0], a->in[0]), 2);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_square = {
    .struct_size = sizeof(ctn_op),
    .name = "square",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = 1,
    .inplace = 1,
    .infer = ctn__infer_same,
    .grad = square_grad,
    .run = square_run,
    .tiles = &square_tiles,
};

ctn_tensor *ctn_square_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_square, x);
}
