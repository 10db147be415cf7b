/* SPDX-License-Identifier: Apache-2.0
 *
 * relu: y = max(x, 0). Gradient: gx = gy where y > 0, else 0, so the input need not be kept. NaN stays NaN.
 */
#include "ops/ops.h"

#define RELU(x) ((x) < 0 ? 0 : (x))

CTN__CHEAP_KERNEL(relu, CTN__CHEAP_RELU)
{
    CTN__MAP1(a, RELU, RELU);
}

static ctn_status relu_grad_of(const ctn_grad_args *a)
{
    a->gin[0] = ctn__binary(a->at, &ctn__op_relu_grad, a->out[0], a->gout[0]);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_relu = {
    .struct_size = sizeof(ctn_op),
    .name = "relu",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_out = 1,
    .inplace = 1,
    .infer = ctn__infer_same,
    .grad = relu_grad_of,
    .run = relu_run,
    .tiles = &relu_tiles,
};

/* relu_grad(y, gy) = gy where y > 0: linear in gy, so its own gradient is itself. */
#define PASS(y, g) ((y) > 0 ? (g) : 0)

CTN__KERNEL(relu_grad)
{
    CTN__MAP2(a, PASS, PASS);
}

static ctn_status relu_grad_grad(const ctn_grad_args *a)
{
    if (!a->need[1]) return CTN_OK;
    a->gin[1] = ctn__binary(a->at, &ctn__op_relu_grad, a->in[0], a->gout[0]);
    return a->gin[1] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_relu_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "relu_grad",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = 1,
    .inplace = 2,
    .infer = ctn__infer_same,
    .grad = relu_grad_grad,
    .run = relu_grad_run,
    .tiles = &relu_grad_tiles,
};

ctn_tensor *ctn_relu_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_relu, x);
}
