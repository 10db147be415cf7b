/* SPDX-License-Identifier: Apache-2.0
 *
 * digamma: y = the derivative of lgamma at x. Gradient: gx = gy polygamma(1, x).
 */
#include "ops/common/special.h"
#include "ops/common/special_fine.h"
#include "ops/ops.h"

#define AT(x) ctn__digamma(x)

CTN__KERNEL(digamma)
{
    CTN__MAP1(a, ctn__digamma_fine, AT);
}

static ctn_status digamma_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], ctn_polygamma_at(a->at, 1, a->in[0])));
}

ctn_op ctn__op_digamma = {
    CTN__ELEMENTWISE_OP(digamma, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = digamma_grad,
};

ctn_tensor *ctn_digamma_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_digamma, x);
}
