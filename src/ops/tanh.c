/* SPDX-License-Identifier: Apache-2.0
 *
 * tanh: y = the hyperbolic tangent of x. Gradient: gx = gy (1 - y^2).
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

CTN__KERNEL(tanh)
{
    CTN__MAP1(a, ctn__tanhf, tanh);
}

static ctn_status tanh_grad_of(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn__binary(a->at, &ctn__op_tanh_grad, a->out[0], a->gout[0]));
}

ctn_op ctn__op_tanh = {
    CTN__ELEMENTWISE_OP(tanh, 1),
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .grad = tanh_grad_of,
};

/* tanh_grad(y, g) = g (1 - y^2). With u the gradient of its result, the gradients are -2 u g y
 * by y and tanh_grad(y, u) by g. */
#define PASS(y, g) ((g) * (1 - (y) * (y)))

CTN__KERNEL(tanh_grad)
{
    CTN__MAP2(a, PASS, PASS);
}

static ctn_tensor *bend(const char *at, ctn_tensor *y, ctn_tensor *g)
{
    return ctn_scale_at(at, ctn_mul_at(at, g, y), -2);
}

static ctn_status tanh_grad_grad(const ctn_grad_args *a)
{
    return ctn__slope_grad(a, &ctn__op_tanh_grad, bend);
}

ctn_op ctn__op_tanh_grad = {
    CTN__ELEMENTWISE_OP(tanh_grad, 2),
    .grad_in = CTN_OPERANDS(2),
    .grad = tanh_grad_grad,
};

ctn_tensor *ctn_tanh_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_tanh, x);
}
