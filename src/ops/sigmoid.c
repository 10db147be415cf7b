/* SPDX-License-Identifier: Apache-2.0
 *
 * sigmoid: y = 1 / (1 + e^-x). Gradient: gx = gy y (1 - y).
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

CTN__KERNEL(sigmoid)
{
    CTN__MAP1(a, ctn__sigmoidf, ctn__sigmoid);
}

static ctn_status sigmoid_grad_of(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn__binary(a->at, &ctn__op_sigmoid_grad, a->out[0], a->gout[0]));
}

ctn_op ctn__op_sigmoid = {
    CTN__ELEMENTWISE_OP(sigmoid, 1),
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .grad = sigmoid_grad_of,
};

/* sigmoid_grad(y, g) = g y (1 - y). With u the gradient of its result, the gradients are
 * u g (1 - 2 y) by y and sigmoid_grad(y, u) by g. */
#define PASS(y, g) ((g) * ((y) * (1 - (y))))

CTN__KERNEL(sigmoid_grad)
{
    CTN__MAP2(a, PASS, PASS);
}

static ctn_tensor *bend(const char *at, ctn_tensor *y, ctn_tensor *g)
{
    return ctn_mul_at(at, g, ctn_shift_at(at, ctn_scale_at(at, y, -2), 1));
}

static ctn_status sigmoid_grad_grad(const ctn_grad_args *a)
{
    return ctn__slope_grad(a, &ctn__op_sigmoid_grad, bend);
}

ctn_op ctn__op_sigmoid_grad = {
    CTN__ELEMENTWISE_OP(sigmoid_grad, 2),
    .grad_in = CTN_OPERANDS(2),
    .grad = sigmoid_grad_grad,
};

ctn_tensor *ctn_sigmoid_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_sigmoid, x);
}
