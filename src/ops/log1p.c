/* SPDX-License-Identifier: Apache-2.0
 *
 * log1p: y = log(1 + x). Gradient: gx = gy / (1 + x).
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

CTN__KERNEL(log1p)
{
    CTN__MAP1(a, ctn__log1p_anyf, log1p);
}

static ctn_status log1p_grad(const ctn_grad_args *a)
{
    ctn_tensor *d = ctn_shift_at(a->at, a->in[0], 1);
    return ctn__grad_to(a, 0, ctn_div_at(a->at, a->gout[0], d));
}

ctn_op ctn__op_log1p = {
    CTN__ELEMENTWISE_OP(log1p, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = log1p_grad,
};

ctn_tensor *ctn_log1p_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_log1p, x);
}
