/* SPDX-License-Identifier: Apache-2.0
 *
 * softplus: y = log(1 + e^x), computed as max(x, 0) + log(1 + e^-|x|). Gradient: gx = gy
 * sigmoid(x). oneDNN is not used: it has no correct digit below x = -16.
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

#define POSITIVE(x) ((x) < 0 ? 0 : (x))
#define SOFTPLUSF(x) (POSITIVE(x) + ctn__log1pf(ctn__expf(-fabsf(x))))
#define SOFTPLUS(x) (POSITIVE(x) + log1p(exp(-fabs(x))))

CTN__KERNEL(softplus)
{
    CTN__MAP1(a, SOFTPLUSF, SOFTPLUS);
}

static ctn_status softplus_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], ctn_sigmoid_at(a->at, a->in[0])));
}

ctn_op ctn__op_softplus = {
    CTN__ELEMENTWISE_OP(softplus, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = softplus_grad,
};

ctn_tensor *ctn_softplus_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_softplus, x);
}
