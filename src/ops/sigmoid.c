/* SPDX-License-Identifier: Apache-2.0
 *
 * sigmoid: y = 1 / (1 + e^-x). Gradient: gx = gy y (1 - y).
 */
#include "ops/ops.h"
#include "ops/vmath.h"

CTN__KERNEL(sigmoid)
{
    CTN__MAP1(a, ctn__sigmoidf, ctn__sigmoid);
}

static ctn_status sigmoid_grad_of(const ctn_grad_args *a)
{
    a->gin[0] = ctn__binary(a->at, &ctn__op_sigmoid_grad, a->out[0], a->gout[0]);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_sigmoid = {
    .struct_size = sizeof(ctn_op),
    .name = "sigmoid",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_out = 1,
    .inplace = 1,
    .infer = ctn__infer_same,
    .grad = sigmoid_grad_of,
    .run = sigmoid_run,
    .tiles = &sigmoid_tiles,
};

/* sigmoid_grad(y, g) = g y (1 - y). Gradients: by y gy g (1 - 2 y), by g itself. */
#define PASS(y, g) ((g) * ((y) * (1 - (y))))

CTN__KERNEL(sigmoid_grad)
{
    CTN__MAP2(a, PASS, PASS);
}

static ctn_status sigmoid_grad_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *y = a->in[0], *g = a->in[1], *gy = a->gout[0];
    if (a->need[0]) {
        ctn_tensor *d = ctn_shift_at(at, ctn_scale_at(at, y, -2), 1);
        a->gin[0] = ctn_mul_at(at, ctn_mul_at(at, g, gy), d);
        if (!a->gin[0]) return ctn_error_status();
    }
    if (a->need[1] && !(a->gin[1] = ctn__binary(at, &ctn__op_sigmoid_grad, y, gy)))
        return ctn_error_status();
    return CTN_OK;
}

ctn_op ctn__op_sigmoid_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "sigmoid_grad",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = 3,
    .inplace = 3,
    .infer = ctn__infer_same,
    .grad = sigmoid_grad_grad,
    .run = sigmoid_grad_run,
    .tiles = &sigmoid_grad_tiles,
};

ctn_tensor *ctn_sigmoid_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_sigmoid, x);
}
