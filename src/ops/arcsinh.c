/* SPDX-License-Identifier: Apache-2.0
 *
 * arcsinh: y = the inverse hyperbolic sine of x. Gradient: gx = gy / sqrt(1 + x^2).
 */
#include "ops/common/trig.h"
#include "ops/ops.h"

CTN__KERNEL(arcsinh)
{
    CTN__MAP1(a, ctn__arcsinhf, asinh);
}

static ctn_status arcsinh_grad(const ctn_grad_args *a)
{
    ctn_tensor *u = ctn_shift_at(a->at, ctn_square_at(a->at, a->in[0]), 1);
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], ctn_rsqrt_at(a->at, u)));
}

ctn_op ctn__op_arcsinh = {
    CTN__ELEMENTWISE_OP(arcsinh, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = arcsinh_grad,
};

ctn_tensor *ctn_arcsinh_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_arcsinh, x);
}
