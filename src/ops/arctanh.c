/* SPDX-License-Identifier: Apache-2.0
 *
 * arctanh: y = the inverse hyperbolic tangent of x. Gradient: gx = gy / ((1 - x) (1 + x)), a
 * product because 1 - x^2 loses digits near 1.
 */
#include "ops/common/trig.h"
#include "ops/ops.h"

CTN__KERNEL(arctanh)
{
    CTN__MAP1(a, ctn__arctanhf, atanh);
}

static ctn_status arctanh_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *x = a->in[0];
    ctn_tensor *u = ctn_mul_at(at, ctn_shift_at(at, ctn_neg_at(at, x), 1), ctn_shift_at(at, x, 1));
    return ctn__grad_to(a, 0, ctn_div_at(at, a->gout[0], u));
}

ctn_op ctn__op_arctanh = {
    CTN__ELEMENTWISE_OP(arctanh, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = arctanh_grad,
};

ctn_tensor *ctn_arctanh_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_arctanh, x);
}
