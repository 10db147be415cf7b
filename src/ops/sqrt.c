/* SPDX-License-Identifier: Apache-2.0
 *
 * sqrt: y = x^(1/2). Gradient: gx = gy / (2 y).
 */
#include <math.h>

#include "ops/ops.h"

CTN__KERNEL(sqrt)
{
    CTN__MAP1(a, sqrtf, sqrt);
}

static ctn_status sqrt_grad(const ctn_grad_args *a)
{
    a->gin[0] = ctn_scale_at(a->at, ctn_div_at(a->at, a->gout[0], a->out[0]), 0.5);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_sqrt = {
    .struct_size = sizeof(ctn_op),
    .name = "sqrt",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_out = 1,
    .inplace = 1,
    .infer = ctn__infer_same,
    .grad = sqrt_grad,
    .run = sqrt_run,
    .tiles = &sqrt_tiles,
};

ctn_tensor *ctn_sqrt_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_sqrt, x);
}
