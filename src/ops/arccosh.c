/* SPDX-License-Identifier: Apache-2.0
 *
 * arccosh: y = the inverse hyperbolic cosine of x. Gradient: gx = gy / sqrt((x - 1) (x + 1)), a
 * product because x^2 - 1 loses digits near 1.
 */
#include "ops/common/trig.h"
#include "ops/ops.h"

CTN__KERNEL(arccosh)
{
    CTN__MAP1(a, ctn__arccoshf, acosh);
}

static ctn_status arccosh_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *x = a->in[0];
    ctn_tensor *u = ctn_mul_at(at, ctn_shift_at(at, x, -1), ctn_shift_at(at, x, 1));
    return ctn__grad_to(a, 0, ctn_mul_at(at, a->gout[0], ctn_rsqrt_at(at, u)));
}

ctn_op ctn__op_arccosh = {
    CTN__ELEMENTWISE_OP(arccosh, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = arccosh_grad,
};

ctn_tensor *ctn_arccosh_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_arccosh, x);
}
