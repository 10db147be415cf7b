/* SPDX-License-Identifier: Apache-2.0
 *
 * ndtri: y = the quantile of x, the inverse of ndtr: -sqrt(2) erfcinv(2x). Gradient: gx = gy
 * sqrt(2 pi) exp(y^2/2).
 */
#include "ops/common/special.h"
#include "ops/common/special_fine.h"
#include "ops/ops.h"

#define AT(x) (-1.4142135623730951 * ctn__erfcinv(2 * (x)))
#define AT_F32(x) (-1.41421356f * ctn__erfcinvf(2.0f * (x)))

CTN__KERNEL(ndtri)
{
    CTN__MAP1(a, AT_F32, AT);
}

static ctn_status ndtri_grad(const ctn_grad_args *a)
{
    ctn_tensor *u = ctn_scale_at(a->at, ctn_square_at(a->at, a->out[0]), 0.5);
    return ctn__grad_to(a, 0,
                        ctn_mul_at(a->at, a->gout[0],
                                   ctn_scale_at(a->at, ctn_exp_at(a->at, u), 2.5066282746310005)));
}

ctn_op ctn__op_ndtri = {
    CTN__ELEMENTWISE_OP(ndtri, 1),
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .grad = ndtri_grad,
};

ctn_tensor *ctn_ndtri_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_ndtri, x);
}
