/* SPDX-License-Identifier: Apache-2.0
 *
 * sqrt: y = x^(1/2). Gradient: gx = gy / (2 y).
 */
#include <math.h>

#include "ops/ops.h"

CTN__KERNEL(sqrt)
{
    CTN__MAP1(a, sqrtf, sqrt);
}

static ctn_status sqrt_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_scale_at(a->at, ctn_div_at(a->at, a->gout[0], a->out[0]), 0.5));
}

ctn_op ctn__op_sqrt = {
    CTN__ELEMENTWISE_OP(sqrt, 1),
    .grad_out = CTN_OPERAND(0),
    .grad = sqrt_grad,
};

ctn_tensor *ctn_sqrt_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_sqrt, x);
}
