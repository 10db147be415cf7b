/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_norm: y = (x - m) r w + b over the last n dimensions, with the mean m and
 * r = 1/sqrt(variance + eps). Shape rules, kernels and gradients are in common/norm.c.
 */
#include "ops/common/norm.h"

ctn_op ctn__op_layer_norm = {
    CTN__NORM_OP,
    .name = "layer_norm",
    .nout = 3,
    .grad_out = CTN_OPERAND(1) | CTN_OPERAND(2),
};

ctn_op ctn__op_layer_norm_grad = {
    CTN__NORM_GRAD_OP,
    .name = "layer_norm_grad",
    .grad_in = CTN_OPERANDS(5),
};

ctn_tensor *ctn_layer_norm_at(const char *at, ctn_tensor *x, int n, ctn_tensor *weight,
                              ctn_tensor *bias, double eps)
{
    return ctn__norm(at, true, x, n, weight, bias, CTN_CONST(eps));
}
