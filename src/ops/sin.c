/* SPDX-License-Identifier: Apache-2.0
 *
 * sin: y = the sine of x. Gradient: gx = gy cos(x).
 */
#include "ops/common/trig.h"
#include "ops/ops.h"

CTN__KERNEL(sin)
{
    if (a->dout[0].dtype == CTN_F32) CTN__MAP_TURNS(a, ctn__sinf, sinf);
    else CTN__MAP1_T(a, double, sin);
}

static ctn_status sin_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], ctn_cos_at(a->at, a->in[0])));
}

ctn_op ctn__op_sin = {
    CTN__ELEMENTWISE_OP(sin, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = sin_grad,
};

ctn_tensor *ctn_sin_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_sin, x);
}
