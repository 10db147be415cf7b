/* SPDX-License-Identifier: Apache-2.0
 *
 * arctan: y = the inverse tangent of x. Gradient: gx = gy / (1 + x^2).
 */
#include "ops/common/trig.h"
#include "ops/ops.h"

CTN__KERNEL(arctan)
{
    CTN__MAP1(a, ctn__arctanf, atan);
}

static ctn_status arctan_grad(const ctn_grad_args *a)
{
    ctn_tensor *d = ctn_shift_at(a->at, ctn_square_at(a->at, a->in[0]), 1);
    return ctn__grad_to(a, 0, ctn_div_at(a->at, a->gout[0], d));
}

ctn_op ctn__op_arctan = {
    CTN__ELEMENTWISE_OP(arctan, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = arctan_grad,
};

ctn_tensor *ctn_arctan_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_arctan, x);
}
