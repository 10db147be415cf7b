/* SPDX-License-Identifier: Apache-2.0
 *
 * softplus: y = log(1 + e^x), computed as max(x, 0) + log(1 + e^-|x|). Gradient: gx = gy
 * sigmoid(x). Not by oneDNN, which has no correct digit below x = -16.
 */
#include "ops/ops.h"
#include "ops/vmath.h"

#define POSITIVE(x) ((x) < 0 ? 0 : (x))
#define SOFTPLUSF(x) (POSITIVE(x) + ctn__log1pf(ctn__expf(-fabsf(x))))
#define SOFTPLUS(x) (POSITIVE(x) + log1p(exp(-fabs(x))))

CTN__KERNEL(softplus)
{
    CTN__MAP1(a, SOFTPLUSF, SOFTPLUS);
}

static ctn_status softplus_grad(const ctn_grad_args *a)
{
    a->gin[0] = ctn_mul_at(a->at, a->gout[0], ctn_sigmoid_at(a->at, a->in[0]));
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_softplus = {
    .struct_size = sizeof(ctn_op),
    .name = "softplus",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = 1,
    .inplace = 1,
    .infer = ctn__infer_same,
    .grad = softplus_grad,
    .run = softplus_run,
    .tiles = &softplus_tiles,
};

ctn_tensor *ctn_softplus_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_softplus, x);
}
