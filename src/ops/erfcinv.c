/* SPDX-License-Identifier: Apache-2.0
 *
 * erfcinv: y = the inverse of erfc at x. Gradient: gx = -gy sqrt(pi)/2 exp(y^2).
 */
#include "ops/common/special.h"
#include "ops/common/special_fine.h"
#include "ops/ops.h"

#define AT(x) ctn__erfcinv(x)

CTN__KERNEL(erfcinv)
{
    CTN__MAP1(a, ctn__erfcinvf, AT);
}

static ctn_status erfcinv_grad(const ctn_grad_args *a)
{
    ctn_tensor *e = ctn_exp_at(a->at, ctn_square_at(a->at, a->out[0]));
    return ctn__grad_to(a, 0,
                        ctn_mul_at(a->at, a->gout[0],
                                   ctn_scale_at(a->at, e, -0.88622692545275801)));
}

ctn_op ctn__op_erfcinv = {
    CTN__ELEMENTWISE_OP(erfcinv, 1),
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .grad = erfcinv_grad,
};

ctn_tensor *ctn_erfcinv_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_erfcinv, x);
}
