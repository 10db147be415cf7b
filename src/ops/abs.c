/* SPDX-License-Identifier: Apache-2.0
 *
 * abs: y = |x|. Gradient: gx = gy sign(x), 0 at 0.
 */
#include <math.h>

#include "ops/ops.h"

CTN__CHEAP_KERNEL(abs, CTN__CHEAP_ABS)
{
    CTN__MAP1(a, fabsf, fabs);
}

static ctn_status abs_grad(const ctn_grad_args *a)
{
    a->gin[0] = ctn_mul_at(a->at, a->gout[0], ctn_sign_at(a->at, a->in[0]));
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_abs = {
    .struct_size = sizeof(ctn_op),
    .name = "abs",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = 1,
    .inplace = 1,
    .infer = ctn__infer_same,
    .grad = abs_grad,
    .run = abs_run,
    .tiles = &abs_tiles,
};

ctn_tensor *ctn_abs_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_abs, x);
}
