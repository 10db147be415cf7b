/* SPDX-License-Identifier: Apache-2.0
 *
 * tanh: y = hyperbolic tangent of x. Gradient: gx = gy (1 - y^2).
 */
#include "ops/ops.h"
#include "ops/vmath.h"

CTN__KERNEL(tanh)
{
    CTN__MAP1(a, ctn__tanhf, tanh);
}

static ctn_status tanh_grad_of(const ctn_grad_args *a)
{
    a->gin[0] = ctn__binary(a->at, &ctn__op_tanh_grad, a->out[0], a->gout[0]);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_tanh = {
    .struct_size = sizeof(ctn_op),
    .name = "tanh",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_out = 1,
    .inplace = 1,
    .infer = ctn__infer_same,
    .grad = tanh_grad_of,
    .run = tanh_run,
    .tiles = &tanh_tiles,
};

/* tanh_grad(y, g) = g (1 - y^2). Gradients: by y -2 gy g y, by g itself. */
#define PASS(y, g) ((g) * (1 - (y) * (y)))

CTN__KERNEL(tanh_grad)
{
    CTN__MAP2(a, PASS, PASS);
}

static ctn_status tanh_grad_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *y = a->in[0], *g = a->in[1], *gy = a->gout[0];
    if (a->need[0]) {
        a->gin[0] = ctn_scale_at(at, ctn_mul_at(at, ctn_mul_at(at, g, gy), y), -2);
        if (!a->gin[0]) return ctn_error_status();
    }
    if (a->need[1] && !(a->gin[1] = ctn__binary(at, &ctn__op_tanh_grad, y, gy)))
        return ctn_error_status();
    return CTN_OK;
}

ctn_op ctn__op_tanh_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "tanh_grad",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = 3,
    .inplace = 3,
    .infer = ctn__infer_same,
    .grad = tanh_grad_grad,
    .run = tanh_grad_run,
    .tiles = &tanh_grad_tiles,
};

ctn_tensor *ctn_tanh_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_tanh, x);
}
