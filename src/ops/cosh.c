/* SPDX-License-Identifier: Apache-2.0
 *
 * cosh: y = the hyperbolic cosine of x. Gradient: gx = gy sinh(x).
 */
#include "ops/common/trig.h"
#include "ops/ops.h"

CTN__KERNEL(cosh)
{
    CTN__MAP1(a, ctn__coshf, cosh);
}

static ctn_status cosh_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], ctn_sinh_at(a->at, a->in[0])));
}

ctn_op ctn__op_cosh = {
    CTN__ELEMENTWISE_OP(cosh, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = cosh_grad,
};

ctn_tensor *ctn_cosh_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_cosh, x);
}
