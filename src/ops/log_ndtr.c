/* SPDX-License-Identifier: Apache-2.0
 *
 * log_ndtr: y = the logarithm of the normal distribution function. Gradient: gx = gy sqrt(2/pi) /
 * erfcx(-x/sqrt(2)), in which nothing cancels.
 */
#include "ops/common/special.h"
#include "ops/ops.h"

#define AT(x) ctn__log_ndtr((double)(x))

CTN__KERNEL(log_ndtr)
{
    CTN__MAP1(a, AT, AT);
}

static ctn_status log_ndtr_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *e = ctn_erfcx_at(at, ctn_scale_at(at, a->in[0], -0.70710678118654752));
    ctn_tensor *g = ctn_scale_at(at, a->gout[0], 0.79788456080286536);
    return ctn__grad_to(a, 0, ctn_div_at(at, g, e));
}

ctn_op ctn__op_log_ndtr = {
    CTN__ELEMENTWISE_OP(log_ndtr, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = log_ndtr_grad,
};

ctn_tensor *ctn_log_ndtr_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_log_ndtr, x);
}
