/* SPDX-License-Identifier: Apache-2.0
 *
 * What the losses of two tensors of equal shape share, such as mean_squared_error. A loss is
 *   y = s * sum of l(x,t),   its gradient op   G(x, t, gy) = s gy l'(x,t),   s = 1 or 1/elements
 * where attribute 0 is the reduction. Losses without a reduction are recorded with other ops. An op
 * file provides functions for one block; loss.c cuts the
 * elements into blocks of fixed size, so that results do not depend on the thread count.
 */
#ifndef CTN_OPS_COMMON_LOSS_H
#define CTN_OPS_COMMON_LOSS_H

#include "ops/ops.h"

/* Attributes. ORDER belongs to the gradient op: 1 or 2. */
enum { CTN__LOSS_REDUCTION, CTN__LOSS_ORDER };

/* Sum of l over n elements; p is scalar 0 of the op, or 0 if it has none. */
typedef double ctn__loss_f32(const float *x, const float *t, int64_t n, double p);
typedef double ctn__loss_f64(const double *x, const double *t, int64_t n, double p);
/* g = s l'; g may be the same memory as x or t. */
typedef void ctn__slope_f32(const float *x, const float *t, float *g, int64_t n, float s, float p);
typedef void ctn__slope_f64(const double *x, const double *t, double *g, int64_t n, double s,
                            double p);

ctn_status ctn__loss_infer(ctn_infer_args *a);
ctn_status ctn__loss_prepare(ctn_prepare_args *a);
ctn_status ctn__loss_run(const ctn_run_args *a, ctn__loss_f32 *f32, ctn__loss_f64 *f64);
ctn_status ctn__slope_infer(ctn_infer_args *a);
ctn_status ctn__slope_run(const ctn_run_args *a, ctn__slope_f32 *f32, ctn__slope_f64 *f64);

/* The value of s. */
double ctn__loss_scale(const ctn_desc *x, int64_t reduction);
/* Record G(x, t, gy) with op; scalars and reduction are those of a. */
ctn_tensor *ctn__slope(const ctn_grad_args *a, ctn_op *op, int64_t order, ctn_tensor *x,
                       ctn_tensor *t, ctn_tensor *gy);
/* The gradient of G by gy: sum(v G(x, t, 1)), where v is the gradient of its result. */
ctn_tensor *ctn__slope_by_gy(const ctn_grad_args *a, ctn_op *op);
/* Gradients of a loss that depends only on |x - t|: G(x,t,gy) and G(t,x,gy). */
ctn_status ctn__loss_grad_of_difference(const ctn_grad_args *a, ctn_op *op);
/* Record a loss that is reduced to one number. */
ctn_tensor *ctn__loss(const char *at, ctn_op *op, ctn_tensor *x, ctn_tensor *t,
                      ctn_reduction reduction, int nscalar, const ctn_scalar *scalar);

/* For losses that are recorded with other ops. Are x and t there, floats of the same type, and of
 * the same shape? If not, the error is on record. */
bool ctn__loss_pair(const char *at, const char *name, const ctn_tensor *x, const ctn_tensor *t);
/* The same for x (...,C) of floats and t (...) of any type. */
bool ctn__loss_rows(const char *at, const char *name, const ctn_tensor *x, const ctn_tensor *t);
/* The reduction of the losses of elements or rows. */
ctn_tensor *ctn__loss_of_each(const char *at, const char *name, ctn_tensor *each,
                              ctn_reduction reduction);

/* c t, where c is a constant of the graph. */
ctn_tensor *ctn__scaled(const char *at, ctn_tensor *t, double c);

#endif
