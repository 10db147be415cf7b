/* SPDX-License-Identifier: Apache-2.0
 *
 * cos: y = the cosine of x. Gradient: gx = -gy sin(x).
 */
#include "ops/common/trig.h"
#include "ops/ops.h"

CTN__KERNEL(cos)
{
    if (a->dout[0].dtype == CTN_F32) CTN__MAP_TURNS(a, ctn__cosf, cosf);
    else CTN__MAP1_T(a, double, cos);
}

static ctn_status cos_grad(const ctn_grad_args *a)
{
    ctn_tensor *d = ctn_neg_at(a->at, ctn_sin_at(a->at, a->in[0]));
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], d));
}

ctn_op ctn__op_cos = {
    CTN__ELEMENTWISE_OP(cos, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = cos_grad,
};

ctn_tensor *ctn_cos_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_cos, x);
}
