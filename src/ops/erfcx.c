/* SPDX-License-Identifier: Apache-2.0
 *
 * erfcx: y = exp(x^2) erfc(x). Gradient: gx = gy (2 x y - 2/sqrt(pi)).
 */
#include "ops/common/special.h"
#include "ops/ops.h"

#define AT(x) ctn__erfcx((double)(x))

CTN__KERNEL(erfcx)
{
    CTN__MAP1(a, AT, AT);
}

static ctn_status erfcx_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *u = ctn_scale_at(at, ctn_mul_at(at, a->in[0], a->out[0]), 2);
    ctn_tensor *d = ctn_shift_at(at, u, -1.1283791670955126);
    return ctn__grad_to(a, 0, ctn_mul_at(at, a->gout[0], d));
}

ctn_op ctn__op_erfcx = {
    CTN__ELEMENTWISE_OP(erfcx, 1), .prec = CTN_PREC_F32, .grad_in = CTN_OPERAND(0),
    .grad_out = CTN_OPERAND(0),    .grad = erfcx_grad,
};

ctn_tensor *ctn_erfcx_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_erfcx, x);
}
