/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax, losses, classification metrics, normalisation over the last dimensions, dropout and
 * random tensors. Included by ops.h, which says what all ops have in common.
 */
#ifndef CATENA_OPS_LOSS_H
#define CATENA_OPS_LOSS_H

#include <catena/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a loss is reduced to one number. */
typedef enum { CTN_MEAN = 0, CTN_SUM = 1 } ctn_reduction;

/* ---- softmax -------------------------------------------------------------------------------- */

/* y = exp(x) / sum of exp(x) along axis. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_softmax_at(const char *at, ctn_tensor *x, int axis);
#define ctn_softmax(...) ctn_softmax_at(CTN_HERE, __VA_ARGS__)

/* y = x - log(sum of exp(x) along axis). Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_log_softmax_at(const char *at, ctn_tensor *x, int axis);
#define ctn_log_softmax(...) ctn_log_softmax_at(CTN_HERE, __VA_ARGS__)

/* ---- losses: x and t have the same shape and float type -> () ------------------------------- */

/* Binary cross-entropy with logits: -t log s(x) - (1-t) log(1-s(x)) with s(x) = 1/(1+exp(-x));
 * t is in 0 to 1. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_sigmoid_cross_entropy_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                                 ctn_reduction reduction);
#define ctn_sigmoid_cross_entropy(...) ctn_sigmoid_cross_entropy_at(CTN_HERE, __VA_ARGS__)

/* Mean squared error: (x - t)^2. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_mean_squared_error_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                              ctn_reduction reduction);
#define ctn_mean_squared_error(...) ctn_mean_squared_error_at(CTN_HERE, __VA_ARGS__)

/* Mean absolute error: |x - t|; its gradient at 0 is 0. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_mean_absolute_error_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                               ctn_reduction reduction);
#define ctn_mean_absolute_error(...) ctn_mean_absolute_error_at(CTN_HERE, __VA_ARGS__)

/* Huber loss, with d = |x - t|: d^2/2 where d <= delta, delta (d - delta/2) elsewhere. delta >
 * 0 may change from step to step. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_huber_at(const char *at, ctn_tensor *x, ctn_tensor *t, double delta,
                                 ctn_reduction reduction);
#define ctn_huber(...) ctn_huber_at(CTN_HERE, __VA_ARGS__)

/* ---- metrics, without gradient -------------------------------------------------------------- */

/* Top-k accuracy: the share of rows, 0 to 1, whose class is among the k largest logits. x
 * (...,C) logits, t (...) classes i64 or i32 -> () f32. Among equal logits the first counts as
 * larger. Rows of class -100 are ignored; the result is 0 if no rows remain. Errors: ESHAPE,
 * EDTYPE, EARG; EARG for a class out of range, when the step runs. */
CTN_API ctn_tensor *ctn_accuracy_at(const char *at, ctn_tensor *x, ctn_tensor *t, int k);
#define ctn_accuracy(...) ctn_accuracy_at(CTN_HERE, __VA_ARGS__)

/* Confusion matrix: element (i,j) is the number of rows of class i that were predicted as j.
 * pred is (...) classes i64 or i32, or (...,C) logits; t (...) classes i64 or i32 -> (C,C) i64.
 * Rows of class -100 are ignored. Errors: ESHAPE, EDTYPE, EARG; EARG for a class out of range,
 * when the step runs. */
CTN_API ctn_tensor *ctn_confusion_matrix_at(const char *at, ctn_tensor *pred, ctn_tensor *t,
                                            int64_t C);
#define ctn_confusion_matrix(...) ctn_confusion_matrix_at(CTN_HERE, __VA_ARGS__)

/* ---- normalisation -------------------------------------------------------------------------- */

/* Layer normalisation: y = (x - m) / sqrt(v + eps) * weight + bias, where m and v are the mean
 * and variance over the last n dimensions together. weight and bias may be NULL; they have the
 * shape of these dimensions. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_layer_norm_at(const char *at, ctn_tensor *x, int n, ctn_tensor *weight,
                                      ctn_tensor *bias, double eps);
#define ctn_layer_norm(...) ctn_layer_norm_at(CTN_HERE, __VA_ARGS__)

/* y = x / sqrt(mean of x^2 + eps) * weight, with the mean over the last n dimensions together.
 * weight may be NULL; it has the shape of these dimensions. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_rms_norm_at(const char *at, ctn_tensor *x, int n, ctn_tensor *weight,
                                    double eps);
#define ctn_rms_norm(...) ctn_rms_norm_at(CTN_HERE, __VA_ARGS__)

/* ---- random numbers, a function of (seed, step, call, element), for any number of threads --- */

/* In training, each element is 0 with probability rate and otherwise x / (1 - rate). In
 * evaluation, the result is x itself. 0 <= rate < 1; it may change from step to step. Errors:
 * EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_dropout_at(const char *at, ctn_tensor *x, double rate);
#define ctn_dropout(...) ctn_dropout_at(CTN_HERE, __VA_ARGS__)

/* Normal distribution with this mean and standard deviation, f32 or f64. Both may change from
 * step to step. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_random_normal_at(const char *at, ctn_context *ctx, double mean, double std,
                                         ctn_dtype dtype, int ndim, const int64_t *dims);
#define ctn_random_normal(...) ctn_random_normal_at(CTN_HERE, __VA_ARGS__)

/* Uniform distribution in [lo, hi), f32 or f64; lo itself if lo == hi. Both may change from
 * step to step. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_random_uniform_at(const char *at, ctn_context *ctx, double lo, double hi,
                                          ctn_dtype dtype, int ndim, const int64_t *dims);
#define ctn_random_uniform(...) ctn_random_uniform_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
