/* SPDX-License-Identifier: Apache-2.0
 *
 * lgamma: y = log |Gamma(x)|. Gradient: gx = gy digamma(x).
 */
#include "ops/common/special.h"
#include "ops/common/special_fine.h"
#include "ops/ops.h"

#define AT(x) ctn__lgamma(x)

CTN__KERNEL(lgamma)
{
    CTN__MAP1(a, ctn__lgamma_fine, AT);
}

static ctn_status lgamma_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], ctn_digamma_at(a->at, a->in[0])));
}

ctn_op ctn__op_lgamma = {
    CTN__ELEMENTWISE_OP(lgamma, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = lgamma_grad,
};

ctn_tensor *ctn_lgamma_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_lgamma, x);
}
