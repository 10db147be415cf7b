/* SPDX-License-Identifier: Apache-2.0
 *
 * gelu_tanh: y = x/2 (1 + tanh(c (x + k x^3))), c = sqrt(2/pi), k = 0.044715. Because
 * (1 + tanh(v/2)) / 2 is sigmoid(v), this is y = x s with s = sigmoid(v), v = 2 c (x + k x^3).
 * That form does not cancel in the negative tail. With v' = 2 c (1 + 3 k x^2), v'' = 12 c k x:
 *   gx  = gy s (1 + x (1 - s) v')
 *   y'' = s (1 - s) (2 v' + x v'' + x (1 - 2 s) v'^2)
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

#define C2 1.59576912160573071176 /* 2 c */
#define K 0.044715

static inline float innerf(float x)
{
    return (float)C2 * (x + (float)K * (x * x * x));
}

static inline double inner(double x)
{
    return C2 * (x + K * (x * x * x));
}

#define GELUF(x) ((x) * ctn__sigmoidf(innerf(x)))
#define GELU(x) ((x) * ctn__sigmoid(inner(x)))

CTN__KERNEL(gelu_tanh)
{
    CTN__MAP1(a, GELUF, GELU);
}

static ctn_status gelu_tanh_grad_of(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn__binary(a->at, &ctn__op_gelu_tanh_grad, a->in[0], a->gout[0]));
}

ctn_op ctn__op_gelu_tanh = {
    CTN__ELEMENTWISE_OP(gelu_tanh, 1),
    .grad_in = CTN_OPERAND(0),
    .grad = gelu_tanh_grad_of,
};

static inline float slopef(float x)
{
    float s = ctn__sigmoidf(innerf(x));
    return s * (1 + x * (1 - s) * ((float)C2 * (1 + (float)(3 * K) * (x * x))));
}

static inline double slope(double x)
{
    double s = ctn__sigmoid(inner(x));
    return s * (1 + x * (1 - s) * (C2 * (1 + 3 * K * (x * x))));
}

/* gelu_tanh_grad(x, g) = g y'(x). With u the gradient of its result, the gradients are
 * u g y''(x) by x and gelu_tanh_grad(x, u) by g. */
#define PASSF(x, g) ((g) * slopef(x))
#define PASS(x, g) ((g) * slope(x))

CTN__KERNEL(gelu_tanh_grad)
{
    CTN__MAP2(a, PASSF, PASS);
}

static ctn_tensor *bend(const char *at, ctn_tensor *x, ctn_tensor *g)
{
    ctn_tensor *q = ctn_square_at(at, x);
    ctn_tensor *v = ctn_mul_at(at, x, ctn_shift_at(at, ctn_scale_at(at, q, C2 * K), C2));
    ctn_tensor *v1 = ctn_shift_at(at, ctn_scale_at(at, q, 3 * C2 * K), C2);
    ctn_tensor *s = ctn_sigmoid_at(at, v);
    ctn_tensor *d = ctn_mul_at(at, x, ctn_shift_at(at, ctn_scale_at(at, s, -2), 1));
    d = ctn_mul_at(at, v1, ctn_shift_at(at, ctn_mul_at(at, d, v1), 2));
    d = ctn_add_at(at, d, ctn_scale_at(at, q, 6 * C2 * K)); /* x v'' */
    return ctn_mul_at(at, ctn__binary(at, &ctn__op_sigmoid_grad, s, g), d);
}

static ctn_status gelu_tanh_grad_grad(const ctn_grad_args *a)
{
    return ctn__slope_grad(a, &ctn__op_gelu_tanh_grad, bend);
}

ctn_op ctn__op_gelu_tanh_grad = {
    CTN__ELEMENTWISE_OP(gelu_tanh_grad, 2),
    .grad_in = CTN_OPERANDS(2),
    .grad = gelu_tanh_grad_grad,
};

ctn_tensor *ctn_gelu_tanh_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_gelu_tanh, x);
}
