/* SPDX-License-Identifier: Apache-2.0
 *
 * scale: y = a x, where a is a scalar of the plan. Gradient: gx = a gy.
 */
#include "ops/ops.h"

#define SCALE(x) (c * (x))

CTN__CHEAP_KERNEL(scale, CTN__CHEAP_SCALE)
{
    if (a->dout[0].dtype == CTN_F32) {
        const float c = (float)a->scalar[0];
        CTN__MAP1_T(a, float, SCALE);
    } else {
        const double c = a->scalar[0];
        CTN__MAP1_T(a, double, SCALE);
    }
}

static ctn_status scale_grad(const ctn_grad_args *a)
{
    ctn_tensor *g = ctn__apply1(a->at, NULL, &ctn__op_scale, 1, &a->gout[0], 0, NULL, 1, a->scalar);
    return ctn__grad_to(a, 0, g);
}

ctn_op ctn__op_scale = {
    CTN__ELEMENTWISE_OP(scale, 1),
    .grad = scale_grad,
};

ctn_tensor *ctn_scale_at(const char *at, ctn_tensor *x, double a)
{
    return ctn__apply1(at, NULL, &ctn__op_scale, 1, &x, 0, NULL, 1, &CTN_CONST(a));
}
