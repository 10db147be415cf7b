/* SPDX-License-Identifier: Apache-2.0
 *
 * gelu: y = x P(x), where P is the normal distribution function (the exact form with erf). With
 * the density p = P', gx = gy (P(x) + x p(x)). oneDNN is not used: its AVX-512 kernel has errors
 * of 1e-6 and no correct digit in the negative tail.
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

#define INV_SQRT_2PI 0.39894228040143267794

#define GELUF(x) ((x) * ctn__normcdff(x))
#define GELU(x) ((x) * ctn__normcdf(x))

CTN__KERNEL(gelu)
{
    CTN__MAP1(a, GELUF, GELU);
}

static ctn_status gelu_grad_of(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn__binary(a->at, &ctn__op_gelu_grad, a->in[0], a->gout[0]));
}

ctn_op ctn__op_gelu = {
    CTN__ELEMENTWISE_OP(gelu, 1),
    .grad_in = CTN_OPERAND(0),
    .grad = gelu_grad_of,
};

/* gelu_grad(x, g) = g (P(x) + x p(x)). With u the gradient of its result, the gradients are
 * u g p(x) (2 - x^2) by x and gelu_grad(x, u) by g. */
#define PASSF(x, g) \
    ((g) * (ctn__normcdff(x) + (x) * ((float)INV_SQRT_2PI * ctn__expf(-0.5f * (x) * (x)))))
#define PASS(x, g) ((g) * (ctn__normcdf(x) + (x) * (INV_SQRT_2PI * exp(-0.5 * (x) * (x)))))

CTN__KERNEL(gelu_grad)
{
    CTN__MAP2(a, PASSF, PASS);
}

static ctn_tensor *bend(const char *at, ctn_tensor *x, ctn_tensor *g)
{
    ctn_tensor *q = ctn_square_at(at, x);
    ctn_tensor *p = ctn_scale_at(at, ctn_exp_at(at, ctn_scale_at(at, q, -0.5)), INV_SQRT_2PI);
    ctn_tensor *d = ctn_mul_at(at, p, ctn_shift_at(at, ctn_neg_at(at, q), 2));
    return ctn_mul_at(at, g, d);
}

static ctn_status gelu_grad_grad(const ctn_grad_args *a)
{
    return ctn__slope_grad(a, &ctn__op_gelu_grad, bend);
}

ctn_op ctn__op_gelu_grad = {
    CTN__ELEMENTWISE_OP(gelu_grad, 2),
    .grad_in = CTN_OPERANDS(2),
    .grad = gelu_grad_grad,
};

ctn_tensor *ctn_gelu_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_gelu, x);
}
