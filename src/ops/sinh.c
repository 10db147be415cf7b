/* SPDX-License-Identifier: Apache-2.0
 *
 * sinh: y = the hyperbolic sine of x. Gradient: gx = gy cosh(x).
 */
#include "ops/common/trig.h"
#include "ops/ops.h"

CTN__KERNEL(sinh)
{
    CTN__MAP1(a, ctn__sinhf, sinh);
}

static ctn_status sinh_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], ctn_cosh_at(a->at, a->in[0])));
}

ctn_op ctn__op_sinh = {
    CTN__ELEMENTWISE_OP(sinh, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = sinh_grad,
};

ctn_tensor *ctn_sinh_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_sinh, x);
}
