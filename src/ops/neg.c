/* SPDX-License-Identifier: Apache-2.0
 *
 * neg: y = -x. Gradient: gx = -gy.
 */
#include "ops/ops.h"

#define NEG(x) (-(x))

CTN__CHEAP_KERNEL(neg, CTN__CHEAP_NEG)
{
    CTN__MAP1(a, NEG, NEG);
}

static ctn_status neg_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_neg_at(a->at, a->gout[0]));
}

ctn_op ctn__op_neg = {
    CTN__ELEMENTWISE_OP(neg, 1),
    .grad = neg_grad,
};

ctn_tensor *ctn_neg_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_neg, x);
}
