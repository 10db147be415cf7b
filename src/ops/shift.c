/* SPDX-License-Identifier: Apache-2.0
 *
 * shift: y = x + a, where a is a scalar of the plan. Gradient: gx = gy.
 */
#include "ops/ops.h"

#define SHIFT(x) ((x) + c)

CTN__CHEAP_KERNEL(shift, CTN__CHEAP_SHIFT)
{
    if (a->dout[0].dtype == CTN_F32) {
        const float c = (float)a->scalar[0];
        CTN__MAP1_T(a, float, SHIFT);
    } else {
        const double c = a->scalar[0];
        CTN__MAP1_T(a, double, SHIFT);
    }
}

static ctn_status shift_grad(const ctn_grad_args *a)
{
    a->gin[0] = a->gout[0];
    return CTN_OK;
}

ctn_op ctn__op_shift = {
    CTN__ELEMENTWISE_OP(shift, 1),
    .grad = shift_grad,
};

ctn_tensor *ctn_shift_at(const char *at, ctn_tensor *x, double a)
{
    return ctn__apply1(at, NULL, &ctn__op_shift, 1, &x, 0, NULL, 1, &CTN_CONST(a));
}
