/* SPDX-License-Identifier: Apache-2.0
 *
 * exp: y = e^x. Gradient: gx = gy y. oneDNN is not used: its exp(NaN) is infinity.
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

CTN__KERNEL(exp)
{
    CTN__MAP1(a, ctn__expf, exp);
}

static ctn_status exp_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], a->out[0]));
}

ctn_op ctn__op_exp = {
    CTN__ELEMENTWISE_OP(exp, 1),
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .grad = exp_grad,
};

ctn_tensor *ctn_exp_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_exp, x);
}
