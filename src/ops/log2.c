/* SPDX-License-Identifier: Apache-2.0
 *
 * log2: y = the logarithm of x to base 2. Gradient: gx = gy / (x log 2).
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

#define LOG2F(x) ctn__log_basef(x, 1.0f, 0.0f, 1.44269504f)

CTN__KERNEL(log2)
{
    CTN__MAP1(a, LOG2F, log2);
}

static ctn_status log2_grad(const ctn_grad_args *a)
{
    ctn_tensor *d = ctn_scale_at(a->at, a->in[0], 0.69314718055994531);
    return ctn__grad_to(a, 0, ctn_div_at(a->at, a->gout[0], d));
}

ctn_op ctn__op_log2 = {
    CTN__ELEMENTWISE_OP(log2, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = log2_grad,
};

ctn_tensor *ctn_log2_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_log2, x);
}
