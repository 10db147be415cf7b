/* SPDX-License-Identifier: Apache-2.0
 *
 * erf: y = the error function of x. Gradient: gx = gy 2/sqrt(pi) exp(-x^2).
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

CTN__KERNEL(erf)
{
    CTN__MAP1(a, ctn__erff, erf);
}

static ctn_status erf_grad(const ctn_grad_args *a)
{
    ctn_tensor *e = ctn_exp_at(a->at, ctn_neg_at(a->at, ctn_square_at(a->at, a->in[0])));
    return ctn__grad_to(a, 0,
                        ctn_mul_at(a->at, a->gout[0], ctn_scale_at(a->at, e, 1.1283791670955126)));
}

ctn_op ctn__op_erf = {
    CTN__ELEMENTWISE_OP(erf, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = erf_grad,
};

ctn_tensor *ctn_erf_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_erf, x);
}
