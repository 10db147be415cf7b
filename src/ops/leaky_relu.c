/* SPDX-License-Identifier: Apache-2.0
 *
 * leaky_relu: y = x where x > 0, else slope x; slope is a scalar of the plan. Gradient: gy or
 * slope gy, depending on the sign of x (not of y, because the slope may be negative).
 */
#include "ops/ops.h"

#define LEAKY(x) ((x) > 0 ? (x) : slope * (x))

CTN__CHEAP_KERNEL(leaky_relu, CTN__CHEAP_LEAKY)
{
    if (a->dout[0].dtype == CTN_F32) {
        const float slope = (float)a->scalar[0];
        CTN__MAP1_T(a, float, LEAKY);
    } else {
        const double slope = a->scalar[0];
        CTN__MAP1_T(a, double, LEAKY);
    }
}

static ctn_tensor *leaky_relu_grad(const ctn_grad_args *a, ctn_tensor *x, ctn_tensor *g)
{
    ctn_tensor *in[2] = {x, g};
    return ctn__apply1(a->at, NULL, &ctn__op_leaky_relu_grad, 2, in, 0, NULL, 1, a->scalar);
}

static ctn_status leaky_relu_grad_of(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, leaky_relu_grad(a, a->in[0], a->gout[0]));
}

ctn_op ctn__op_leaky_relu = {
    CTN__ELEMENTWISE_OP(leaky_relu, 1),
    .grad_in = CTN_OPERAND(0),
    .grad = leaky_relu_grad_of,
};

/* leaky_relu_grad(x, gy) = gy where x > 0, else slope gy: linear in gy, so it is its own
 * gradient. */
#define PASS(x, g) ((x) > 0 ? (g) : slope * (g))

CTN__KERNEL(leaky_relu_grad)
{
    if (a->dout[0].dtype == CTN_F32) {
        const float slope = (float)a->scalar[0];
        CTN__MAP2_T(a, float, float, PASS);
    } else {
        const double slope = a->scalar[0];
        CTN__MAP2_T(a, double, double, PASS);
    }
}

static ctn_status leaky_relu_grad_grad(const ctn_grad_args *a)
{
    if (!a->need[1]) return CTN_OK;
    return ctn__grad_to(a, 1, leaky_relu_grad(a, a->in[0], a->gout[0]));
}

ctn_op ctn__op_leaky_relu_grad = {
    CTN__ELEMENTWISE_OP(leaky_relu_grad, 2),
    .grad_in = CTN_OPERAND(0),
    .grad = leaky_relu_grad_grad,
};

ctn_tensor *ctn_leaky_relu_at(const char *at, ctn_tensor *x, double slope)
{
    return ctn__apply1(at, NULL, &ctn__op_leaky_relu, 1, &x, 0, NULL, 1, &CTN_CONST(slope));
}
