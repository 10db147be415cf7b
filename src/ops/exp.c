/* SPDX-License-Identifier: Apache-2.0
 *
 * exp: y = e^x. Gradient: gx = gy y. Not by oneDNN, whose exp(NaN) is infinity.
 */
#include "ops/ops.h"
#include "ops/vmath.h"

CTN__KERNEL(exp)
{
    CTN__MAP1(a, ctn__expf, exp);
}

static ctn_status exp_grad(const ctn_grad_args *a)
{
    a->gin[0] = ctn_mul_at(a->at, a->gout[0], a->out[0]);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_exp = {
    .struct_size = sizeof(ctn_op),
    .name = "exp",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_out = 1,
    .inplace = 1,
    .infer = ctn__infer_same,
    .grad = exp_grad,
    .run = exp_run,
    .tiles = &exp_tiles,
};

ctn_tensor *ctn_exp_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_exp, x);
}
