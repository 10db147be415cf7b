/* SPDX-License-Identifier: Apache-2.0
 *
 * arccos: y = the inverse cosine of x. Gradient: gx = -gy / sqrt((1 - x) (1 + x)), a product
 * because 1 - x^2 loses digits near 1.
 */
#include "ops/common/trig.h"
#include "ops/ops.h"

CTN__KERNEL(arccos)
{
    CTN__MAP1(a, ctn__arccosf, acos);
}

static ctn_status arccos_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *x = a->in[0];
    ctn_tensor *u = ctn_mul_at(at, ctn_shift_at(at, ctn_neg_at(at, x), 1), ctn_shift_at(at, x, 1));
    ctn_tensor *d = ctn_neg_at(at, ctn_rsqrt_at(at, u));
    return ctn__grad_to(a, 0, ctn_mul_at(at, a->gout[0], d));
}

ctn_op ctn__op_arccos = {
    CTN__ELEMENTWISE_OP(arccos, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = arccos_grad,
};

ctn_tensor *ctn_arccos_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_arccos, x);
}
