/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_norm: y = (x - m) r w + b over the last n dimensions, m the mean and r = 1/sqrt(variance +
 * eps). Everything but the names is in norm.c.
 */
#include "ops/norm.h"

ctn_op ctn__op_layer_norm = {
    .struct_size = sizeof(ctn_op),
    .name = "layer_norm",
    .nin = -1,
    .nout = 3,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = 3, /* x, weight */
    .grad_out = 6,
    .inplace = 1,
    .attr_names = ctn__norm_attr_names,
    .infer = ctn__norm_infer,
    .grad = ctn__norm_grad,
    .run = ctn__norm_run,
};

ctn_op ctn__op_layer_norm_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "layer_norm_grad",
    .nin = -1,
    .nout = 3,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = 31,
    .inplace = 3,
    .attr_names = ctn__norm_attr_names,
    .infer = ctn__norm_grad_infer,
    .grad = ctn__norm_grad_grad,
    .prepare = ctn__norm_grad_prepare,
    .run = ctn__norm_grad_run,
};

ctn_tensor *ctn_layer_norm_at(const char *at, ctn_tensor *x, int n, ctn_tensor *weight,
                              ctn_tensor *bias, double eps)
{
    return ctn__norm(at, true, x, n, weight, bias, CTN_CONST(eps));
}
