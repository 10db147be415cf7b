/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalisation over the last N dimensions, shared by layer_norm.c and rms_norm.c. A tensor has R
 * rows of D elements. With m the mean of a row (0 without `center`) and
 * r = 1/sqrt(mean((x-m)^2) + eps),
 *   h = (x - m) r,   y = h w + b
 * Forward op:  (x, [w], [b]) -> y, r (R), and m (R) if centered
 * Gradient op: (gy, x, r, [m], [w]) -> gx, gw, gb
 */
#ifndef CTN_OPS_COMMON_NORM_H
#define CTN_OPS_COMMON_NORM_H

#include "ops/common/loss.h"

enum { CTN__NORM_N, CTN__NORM_CENTER, CTN__NORM_WEIGHT, CTN__NORM_BIAS, CTN__NORM_NATTR };
extern const char *const ctn__norm_attr_names[];

/* What the structs of the forward ops and of the gradient ops have in common. The gradient of a
 * forward op reads x and the weight. */
#define CTN__NORM_OP                                                                           \
    .struct_size = sizeof(ctn_op), .nin = -1, .order = -1, .prec = CTN_PREC_F32,               \
    .grad_in = CTN_OPERANDS(2), .inplace = CTN_OPERAND(0), .attr_names = ctn__norm_attr_names, \
    .infer = ctn__norm_infer, .grad = ctn__norm_grad, .run = ctn__norm_run
#define CTN__NORM_GRAD_OP                                                                          \
    .struct_size = sizeof(ctn_op), .nin = -1, .nout = 3, .order = -1, .prec = CTN_PREC_F32,        \
    .inplace = CTN_OPERANDS(2), .attr_names = ctn__norm_attr_names, .infer = ctn__norm_grad_infer, \
    .grad = ctn__norm_grad_grad, .prepare = ctn__norm_grad_prepare, .run = ctn__norm_grad_run

ctn_status ctn__norm_infer(ctn_infer_args *a);
ctn_status ctn__norm_run(const ctn_run_args *a);
ctn_status ctn__norm_grad(const ctn_grad_args *a);
ctn_status ctn__norm_grad_infer(ctn_infer_args *a);
ctn_status ctn__norm_grad_prepare(ctn_prepare_args *a);
ctn_status ctn__norm_grad_run(const ctn_run_args *a);
ctn_status ctn__norm_grad_grad(const ctn_grad_args *a);
ctn_tensor *ctn__norm(const char *at, bool center, ctn_tensor *x, int64_t n, ctn_tensor *weight,
                      ctn_tensor *bias, ctn_scalar eps);

#endif
