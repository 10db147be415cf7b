/* SPDX-License-Identifier: Apache-2.0
 *
 * arcsin: y = the inverse sine of x. Gradient: gx = gy / sqrt((1 - x) (1 + x)), a product because
 * 1 - x^2 loses digits near 1.
 */
#include "ops/common/trig.h"
#include "ops/ops.h"

CTN__KERNEL(arcsin)
{
    CTN__MAP1(a, ctn__arcsinf, asin);
}

static ctn_status arcsin_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *x = a->in[0];
    ctn_tensor *u = ctn_mul_at(at, ctn_shift_at(at, ctn_neg_at(at, x), 1), ctn_shift_at(at, x, 1));
    return ctn__grad_to(a, 0, ctn_mul_at(at, a->gout[0], ctn_rsqrt_at(at, u)));
}

ctn_op ctn__op_arcsin = {
    CTN__ELEMENTWISE_OP(arcsin, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = arcsin_grad,
};

ctn_tensor *ctn_arcsin_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_arcsin, x);
}
