/* SPDX-License-Identifier: Apache-2.0
 *
 * abs: y = |x|. Gradient: gx = gy sign(x), 0 at 0.
 */
#include <math.h>

#include "ops/ops.h"

CTN__CHEAP_KERNEL(abs, CTN__CHEAP_ABS)
{
    CTN__MAP1(a, fabsf, fabs);
}

static ctn_status abs_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], ctn_sign_at(a->at, a->in[0])));
}

ctn_op ctn__op_abs = {
    CTN__ELEMENTWISE_OP(abs, 1),
    .grad_in = CTN_OPERAND(0),
    .grad = abs_grad,
};

ctn_tensor *ctn_abs_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_abs, x);
}
