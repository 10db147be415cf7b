/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norm: y = x r w over the last n dimensions, r = 1/sqrt(mean(x^2) + eps).
 * Shape rules, kernels and gradients are in common/norm.c.
 */
#include "ops/common/norm.h"

ctn_op ctn__op_rms_norm = {
    CTN__NORM_OP,
    .name = "rms_norm",
    .nout = 2,
    .grad_out = CTN_OPERAND(1),
};

ctn_op ctn__op_rms_norm_grad = {
    CTN__NORM_GRAD_OP,
    .name = "rms_norm_grad",
    .grad_in = CTN_OPERANDS(4),
};

ctn_tensor *ctn_rms_norm_at(const char *at, ctn_tensor *x, int n, ctn_tensor *weight, double eps)
{
    return ctn__norm(at, false, x, n, weight, NULL, CTN_CONST(eps));
}
