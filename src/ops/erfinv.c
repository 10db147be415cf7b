/* SPDX-License-Identifier: Apache-2.0
 *
 * erfinv: y = the inverse error function of x. Gradient: gx = gy sqrt(pi)/2 exp(y^2).
 */
#include "ops/common/special.h"
#include "ops/common/special_fine.h"
#include "ops/ops.h"

#define AT(x) ctn__erfinv(x)

CTN__KERNEL(erfinv)
{
    CTN__MAP1(a, ctn__erfinvf, AT);
}

static ctn_status erfinv_grad(const ctn_grad_args *a)
{
    ctn_tensor *e = ctn_exp_at(a->at, ctn_square_at(a->at, a->out[0]));
    return ctn__grad_to(a, 0,
                        ctn_mul_at(a->at, a->gout[0], ctn_scale_at(a->at, e, 0.88622692545275801)));
}

ctn_op ctn__op_erfinv = {
    CTN__ELEMENTWISE_OP(erfinv, 1),
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .grad = erfinv_grad,
};

ctn_tensor *ctn_erfinv_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_erfinv, x);
}
