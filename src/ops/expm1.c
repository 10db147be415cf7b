/* SPDX-License-Identifier: Apache-2.0
 *
 * expm1: y = e^x - 1. Gradient: gx = gy e^x.
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

CTN__KERNEL(expm1)
{
    CTN__MAP1(a, ctn__expm1f, expm1);
}

static ctn_status expm1_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], ctn_exp_at(a->at, a->in[0])));
}

ctn_op ctn__op_expm1 = {
    CTN__ELEMENTWISE_OP(expm1, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = expm1_grad,
};

ctn_tensor *ctn_expm1_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_expm1, x);
}
