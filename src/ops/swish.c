/* SPDX-License-Identifier: Apache-2.0
 *
 * swish (SiLU): y = x s with s = sigmoid(x). Gradient: gx = gy (s + x s (1 - s)).
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

#define SWISHF(x) ((x) * ctn__sigmoidf(x))
#define SWISH(x) ((x) * ctn__sigmoid(x))

CTN__KERNEL(swish)
{
    CTN__MAP1(a, SWISHF, SWISH);
}

static ctn_status swish_grad_of(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn__binary(a->at, &ctn__op_swish_grad, a->in[0], a->gout[0]));
}

ctn_op ctn__op_swish = {
    CTN__ELEMENTWISE_OP(swish, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = swish_grad_of,
};

static inline float slopef(float x)
{
    float s = ctn__sigmoidf(x);
    return s * (1 + x * (1 - s));
}

static inline double slope(double x)
{
    double s = ctn__sigmoid(x);
    return s * (1 + x * (1 - s));
}

/* swish_grad(x, g) = g swish'(x). With u the gradient of its result, the gradients are
 * u g s (1 - s) (2 + x (1 - 2 s)) by x and swish_grad(x, u) by g. */
#define PASSF(x, g) ((g) * slopef(x))
#define PASS(x, g) ((g) * slope(x))

CTN__KERNEL(swish_grad)
{
    CTN__MAP2(a, PASSF, PASS);
}

static ctn_tensor *bend(const char *at, ctn_tensor *x, ctn_tensor *g)
{
    ctn_tensor *s = ctn_sigmoid_at(at, x);
    ctn_tensor *d = ctn_mul_at(at, x, ctn_shift_at(at, ctn_scale_at(at, s, -2), 1));
    return ctn_mul_at(at, ctn__binary(at, &ctn__op_sigmoid_grad, s, g), ctn_shift_at(at, d, 2));
}

static ctn_status swish_grad_grad(const ctn_grad_args *a)
{
    return ctn__slope_grad(a, &ctn__op_swish_grad, bend);
}

ctn_op ctn__op_swish_grad = {
    CTN__ELEMENTWISE_OP(swish_grad, 2),
    .grad_in = CTN_OPERANDS(2),
    .grad = swish_grad_grad,
};

ctn_tensor *ctn_swish_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_swish, x);
}
