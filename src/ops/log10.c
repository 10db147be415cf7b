/* SPDX-License-Identifier: Apache-2.0
 *
 * log10: y = the logarithm of x to base 10. Gradient: gx = gy / (x log 10).
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

#define LOG10F(x) ctn__log_basef(x, 0.301025391f, 4.60503907e-6f, 0.434294482f)

CTN__KERNEL(log10)
{
    CTN__MAP1(a, LOG10F, log10);
}

static ctn_status log10_grad(const ctn_grad_args *a)
{
    ctn_tensor *d = ctn_scale_at(a->at, a->in[0], 2.3025850929940457);
    return ctn__grad_to(a, 0, ctn_div_at(a->at, a->gout[0], d));
}

ctn_op ctn__op_log10 = {
    CTN__ELEMENTWISE_OP(log10, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = log10_grad,
};

ctn_tensor *ctn_log10_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_log10, x);
}
