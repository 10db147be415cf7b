/* SPDX-License-Identifier: Apache-2.0
 *
 * ndtr: y = the normal distribution function of x, erfc(-x / sqrt(2)) / 2. Gradient: gx = gy
 * exp(-x^2/2) / sqrt(2 pi).
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

CTN__KERNEL(ndtr)
{
    CTN__MAP1(a, ctn__normcdf_finef, ctn__normcdf);
}

static ctn_status ndtr_grad(const ctn_grad_args *a)
{
    ctn_tensor *u = ctn_scale_at(a->at, ctn_square_at(a->at, a->in[0]), -0.5);
    return ctn__grad_to(a, 0,
                        ctn_mul_at(a->at, a->gout[0],
                                   ctn_scale_at(a->at, ctn_exp_at(a->at, u), 0.39894228040143268)));
}

ctn_op ctn__op_ndtr = {
    CTN__ELEMENTWISE_OP(ndtr, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = ndtr_grad,
};

ctn_tensor *ctn_ndtr_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_ndtr, x);
}
