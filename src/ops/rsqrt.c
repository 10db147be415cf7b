/* SPDX-License-Identifier: Apache-2.0
 *
 * rsqrt: y = x^(-1/2). Gradient: gx = -gy y^3 / 2.
 */
#include <math.h>

#include "ops/ops.h"

#define RSQRTF(x) (1.0f / sqrtf(x))
#define RSQRT(x) (1.0 / sqrt(x))

CTN__KERNEL(rsqrt)
{
    CTN__MAP1(a, RSQRTF, RSQRT);
}

static ctn_status rsqrt_grad(const ctn_grad_args *a)
{
    ctn_tensor *y = a->out[0];
    ctn_tensor *t = ctn_mul_at(a->at, ctn_mul_at(a->at, a->gout[0], y), ctn_square_at(a->at, y));
    return ctn__grad_to(a, 0, ctn_scale_at(a->at, t, -0.5));
}

ctn_op ctn__op_rsqrt = {
    CTN__ELEMENTWISE_OP(rsqrt, 1),
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .grad = rsqrt_grad,
};

ctn_tensor *ctn_rsqrt_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_rsqrt, x);
}
