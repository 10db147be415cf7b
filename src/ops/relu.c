/* SPDX-License-Identifier: Apache-2.0
 *
 * relu: y = max(x, 0). Gradient: gx = gy where y > 0, else 0, so the input need not be kept. NaN
 * stays NaN.
 */
#include "ops/ops.h"

#define RELU(x) ((x) < 0 ? 0 : (x))

CTN__CHEAP_KERNEL(relu, CTN__CHEAP_RELU)
{
    CTN__MAP1(a, RELU, RELU);
}

static ctn_status relu_grad_of(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn__binary(a->at, &ctn__op_relu_grad, a->out[0], a->gout[0]));
}

ctn_op ctn__op_relu = {
    CTN__ELEMENTWISE_OP(relu, 1),
    .grad_out = CTN_OPERAND(0),
    .grad = relu_grad_of,
};

/* relu_grad(y, gy) = gy where y > 0: linear in gy, so it is its own gradient. */
#define PASS(y, g) ((y) > 0 ? (g) : 0)

CTN__KERNEL(relu_grad)
{
    CTN__MAP2(a, PASS, PASS);
}

static ctn_status relu_grad_grad(const ctn_grad_args *a)
{
    if (!a->need[1]) return CTN_OK;
    return ctn__grad_to(a, 1, ctn__binary(a->at, &ctn__op_relu_grad, a->in[0], a->gout[0]));
}

ctn_op ctn__op_relu_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "relu_grad",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(1),
    .infer = ctn__infer_same,
    .grad = relu_grad_grad,
    .run = relu_grad_run,
    .tiles = &relu_grad_tiles,
};

ctn_tensor *ctn_relu_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_relu, x);
}
