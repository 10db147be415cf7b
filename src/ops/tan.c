/* SPDX-License-Identifier: Apache-2.0
 *
 * tan: y = the tangent of x. Gradient: gx = gy (1 + y^2).
 */
#include "ops/common/trig.h"
#include "ops/ops.h"

CTN__KERNEL(tan)
{
    if (a->dout[0].dtype == CTN_F32) CTN__MAP_TURNS(a, ctn__tanf, tanf);
    else CTN__MAP1_T(a, double, tan);
}

static ctn_status tan_grad(const ctn_grad_args *a)
{
    ctn_tensor *d = ctn_shift_at(a->at, ctn_square_at(a->at, a->out[0]), 1);
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], d));
}

ctn_op ctn__op_tan = {
    CTN__ELEMENTWISE_OP(tan, 1),
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .grad = tan_grad,
};

ctn_tensor *ctn_tan_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_tan, x);
}
