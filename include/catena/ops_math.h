/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise arithmetic, activations, comparisons and casts. Two inputs broadcast and must
 * have the same float type unless the comment says otherwise. Plain numbers among the arguments
 * (slopes, limits, exponents) may change from step to step without a new plan. Included by
 * ops.h, which says what all ops have in common.
 */
#ifndef CATENA_OPS_MATH_H
#define CATENA_OPS_MATH_H

#include <catena/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arithmetic ----------------------------------------------------------------------------- */

/* y = a - b. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_sub_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_sub(...) ctn_sub_at(CTN_HERE, __VA_ARGS__)

/* y = a b. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_mul_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_mul(...) ctn_mul_at(CTN_HERE, __VA_ARGS__)

/* y = a / b. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_div_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_div(...) ctn_div_at(CTN_HERE, __VA_ARGS__)

/* y = max(a, b), NaN if either is NaN. Where a = b each gets half of the gradient. Errors:
 * ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_maximum_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_maximum(...) ctn_maximum_at(CTN_HERE, __VA_ARGS__)

/* y = min(a, b), NaN if either is NaN. Where a = b each gets half of the gradient. Errors:
 * ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_minimum_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_minimum(...) ctn_minimum_at(CTN_HERE, __VA_ARGS__)

/* y = a^b, element by element. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_pow_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_pow(...) ctn_pow_at(CTN_HERE, __VA_ARGS__)

/* y = x^p. p may change from step to step. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_power_at(const char *at, ctn_tensor *x, double p);
#define ctn_power(...) ctn_power_at(CTN_HERE, __VA_ARGS__)

/* y = a x. a may change from step to step. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_scale_at(const char *at, ctn_tensor *x, double a);
#define ctn_scale(...) ctn_scale_at(CTN_HERE, __VA_ARGS__)

/* y = x + a. a may change from step to step. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_shift_at(const char *at, ctn_tensor *x, double a);
#define ctn_shift(...) ctn_shift_at(CTN_HERE, __VA_ARGS__)

/* y = min(max(x, lo), hi). Gradient: gy where lo <= x <= hi, else 0. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_clip_at(const char *at, ctn_tensor *x, double lo, double hi);
#define ctn_clip(...) ctn_clip_at(CTN_HERE, __VA_ARGS__)

/* y = -x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_neg_at(const char *at, ctn_tensor *x);
#define ctn_neg(...) ctn_neg_at(CTN_HERE, __VA_ARGS__)

/* y = |x|; the gradient at 0 is 0. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_abs_at(const char *at, ctn_tensor *x);
#define ctn_abs(...) ctn_abs_at(CTN_HERE, __VA_ARGS__)

/* y = -1, 0 or 1, the sign of x. No gradient. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_sign_at(const char *at, ctn_tensor *x);
#define ctn_sign(...) ctn_sign_at(CTN_HERE, __VA_ARGS__)

/* y = x^2. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_square_at(const char *at, ctn_tensor *x);
#define ctn_square(...) ctn_square_at(CTN_HERE, __VA_ARGS__)

/* y = x^(1/2). Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_sqrt_at(const char *at, ctn_tensor *x);
#define ctn_sqrt(...) ctn_sqrt_at(CTN_HERE, __VA_ARGS__)

/* y = x^(-1/2). Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_rsqrt_at(const char *at, ctn_tensor *x);
#define ctn_rsqrt(...) ctn_rsqrt_at(CTN_HERE, __VA_ARGS__)

/* y = e^x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_exp_at(const char *at, ctn_tensor *x);
#define ctn_exp(...) ctn_exp_at(CTN_HERE, __VA_ARGS__)

/* y = natural logarithm of x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_log_at(const char *at, ctn_tensor *x);
#define ctn_log(...) ctn_log_at(CTN_HERE, __VA_ARGS__)

/* ---- activations ---------------------------------------------------------------------------- */

/* y = x where x > 0, else slope x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_leaky_relu_at(const char *at, ctn_tensor *x, double slope);
#define ctn_leaky_relu(...) ctn_leaky_relu_at(CTN_HERE, __VA_ARGS__)

/* y = x where x > 0, else alpha (e^x - 1). Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_elu_at(const char *at, ctn_tensor *x, double alpha);
#define ctn_elu(...) ctn_elu_at(CTN_HERE, __VA_ARGS__)

/* y = 1 / (1 + e^-x). Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_sigmoid_at(const char *at, ctn_tensor *x);
#define ctn_sigmoid(...) ctn_sigmoid_at(CTN_HERE, __VA_ARGS__)

/* y = hyperbolic tangent of x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_tanh_at(const char *at, ctn_tensor *x);
#define ctn_tanh(...) ctn_tanh_at(CTN_HERE, __VA_ARGS__)

/* y = log(1 + e^x). Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_softplus_at(const char *at, ctn_tensor *x);
#define ctn_softplus(...) ctn_softplus_at(CTN_HERE, __VA_ARGS__)

/* y = x/2 (1 + erf(x / sqrt(2))). Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_gelu_at(const char *at, ctn_tensor *x);
#define ctn_gelu(...) ctn_gelu_at(CTN_HERE, __VA_ARGS__)

/* y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_gelu_tanh_at(const char *at, ctn_tensor *x);
#define ctn_gelu_tanh(...) ctn_gelu_tanh_at(CTN_HERE, __VA_ARGS__)

/* y = x sigmoid(x), also called SiLU. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_swish_at(const char *at, ctn_tensor *x);
#define ctn_swish(...) ctn_swish_at(CTN_HERE, __VA_ARGS__)

/* ---- comparisons and choice ----------------------------------------------------------------- */

/* The comparison of a and b as bool. Both must have the same type: f32, f64, bool or an
 * integer. A comparison with NaN is false, except not_equal. No gradient. Errors: ESHAPE,
 * EDTYPE. */
CTN_API ctn_tensor *ctn_equal_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_equal(...) ctn_equal_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_not_equal_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_not_equal(...) ctn_not_equal_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_less_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_less(...) ctn_less_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_less_equal_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_less_equal(...) ctn_less_equal_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_greater_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_greater(...) ctn_greater_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_greater_equal_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_greater_equal(...) ctn_greater_equal_at(CTN_HERE, __VA_ARGS__)

/* Logical operations on bool tensors. No gradient. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_logical_and_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_logical_and(...) ctn_logical_and_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_logical_or_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_logical_or(...) ctn_logical_or_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_logical_not_at(const char *at, ctn_tensor *x);
#define ctn_logical_not(...) ctn_logical_not_at(CTN_HERE, __VA_ARGS__)

/* y = a where cond (bool) is true, else b. All three broadcast; a and b may have any type, but
 * the same. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_where_at(const char *at, ctn_tensor *cond, ctn_tensor *a, ctn_tensor *b);
#define ctn_where(...) ctn_where_at(CTN_HERE, __VA_ARGS__)

/* ---- types ---------------------------------------------------------------------------------- */

/* The values of x converted to another type. To floats: rounded to nearest, ties to even. To
 * integers: truncated and saturated; NaN becomes 0. To bool: true if not 0. Gradients flow
 * between float types. If x already has the type, the result is x itself. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_cast_at(const char *at, ctn_tensor *x, ctn_dtype dtype);
#define ctn_cast(...) ctn_cast_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
