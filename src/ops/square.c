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
    return ctn__grad_to(a, 0, ctn_scale_at(a->at, ctn_mul_at(a->at, a->gout[0], a->in[0]), 2));
}

ctn_op ctn__op_square = {
    CTN__ELEMENTWISE_OP(square, 1),
    .grad_in = CTN_OPERAND(0),
    .grad = square_grad,
};

ctn_tensor *ctn_square_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_square, x);
}
