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

/* y = a^b, element by element. A negative a needs an integer b, as in C's pow. Errors: ESHAPE,
 * EDTYPE. */
CTN_API ctn_tensor *ctn_pow_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_pow(...) ctn_pow_at(CTN_HERE, __VA_ARGS__)

/* y = x^p. A negative x needs an integer p, as in C's pow. p may change from step to step.
 * Errors: EDTYPE. */
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

/* ---- elementary functions; outside of the domain the result is NaN ---------------------- */

/* y = sine of x, which is in radians. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_sin_at(const char *at, ctn_tensor *x);
#define ctn_sin(...) ctn_sin_at(CTN_HERE, __VA_ARGS__)

/* y = cosine of x, which is in radians. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_cos_at(const char *at, ctn_tensor *x);
#define ctn_cos(...) ctn_cos_at(CTN_HERE, __VA_ARGS__)

/* y = tangent of x, which is in radians. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_tan_at(const char *at, ctn_tensor *x);
#define ctn_tan(...) ctn_tan_at(CTN_HERE, __VA_ARGS__)

/* y = inverse sine of x, -pi/2 to pi/2. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_arcsin_at(const char *at, ctn_tensor *x);
#define ctn_arcsin(...) ctn_arcsin_at(CTN_HERE, __VA_ARGS__)

/* y = inverse cosine of x, 0 to pi. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_arccos_at(const char *at, ctn_tensor *x);
#define ctn_arccos(...) ctn_arccos_at(CTN_HERE, __VA_ARGS__)

/* y = inverse tangent of x, -pi/2 to pi/2. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_arctan_at(const char *at, ctn_tensor *x);
#define ctn_arctan(...) ctn_arctan_at(CTN_HERE, __VA_ARGS__)

/* The angle of the point (x,y) from the positive x axis, -pi to pi, as C's atan2(y, x) gives it.
 * Its gradient at (0,0) is 0. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_arctan2_at(const char *at, ctn_tensor *y, ctn_tensor *x);
#define ctn_arctan2(...) ctn_arctan2_at(CTN_HERE, __VA_ARGS__)

/* y = hyperbolic sine of x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_sinh_at(const char *at, ctn_tensor *x);
#define ctn_sinh(...) ctn_sinh_at(CTN_HERE, __VA_ARGS__)

/* y = hyperbolic cosine of x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_cosh_at(const char *at, ctn_tensor *x);
#define ctn_cosh(...) ctn_cosh_at(CTN_HERE, __VA_ARGS__)

/* y = inverse hyperbolic sine of x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_arcsinh_at(const char *at, ctn_tensor *x);
#define ctn_arcsinh(...) ctn_arcsinh_at(CTN_HERE, __VA_ARGS__)

/* y = inverse hyperbolic cosine of x, at least 0. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_arccosh_at(const char *at, ctn_tensor *x);
#define ctn_arccosh(...) ctn_arccosh_at(CTN_HERE, __VA_ARGS__)

/* y = inverse hyperbolic tangent of x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_arctanh_at(const char *at, ctn_tensor *x);
#define ctn_arctanh(...) ctn_arctanh_at(CTN_HERE, __VA_ARGS__)

/* y = e^x - 1, accurate for small x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_expm1_at(const char *at, ctn_tensor *x);
#define ctn_expm1(...) ctn_expm1_at(CTN_HERE, __VA_ARGS__)

/* y = log(1 + x), accurate for small x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_log1p_at(const char *at, ctn_tensor *x);
#define ctn_log1p(...) ctn_log1p_at(CTN_HERE, __VA_ARGS__)

/* y = logarithm of x to base 2. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_log2_at(const char *at, ctn_tensor *x);
#define ctn_log2(...) ctn_log2_at(CTN_HERE, __VA_ARGS__)

/* y = logarithm of x to base 10. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_log10_at(const char *at, ctn_tensor *x);
#define ctn_log10(...) ctn_log10_at(CTN_HERE, __VA_ARGS__)

/* y = x rounded down, up, to the nearest integer (ties to even), and towards 0. No gradient.
 * Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_floor_at(const char *at, ctn_tensor *x);
#define ctn_floor(...) ctn_floor_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_ceil_at(const char *at, ctn_tensor *x);
#define ctn_ceil(...) ctn_ceil_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_round_at(const char *at, ctn_tensor *x);
#define ctn_round(...) ctn_round_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_trunc_at(const char *at, ctn_tensor *x);
#define ctn_trunc(...) ctn_trunc_at(CTN_HERE, __VA_ARGS__)

/* y = a - n b, where n is a / b rounded towards 0: the remainder with the sign of a, as C's
 * fmod. Gradient: 1 by a and -n by b. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_fmod_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_fmod(...) ctn_fmod_at(CTN_HERE, __VA_ARGS__)

/* y = sign(x) |x|^p. Gradient: p |x|^(p-1). p may change from step to step. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_signed_power_at(const char *at, ctn_tensor *x, double p);
#define ctn_signed_power(...) ctn_signed_power_at(CTN_HERE, __VA_ARGS__)

/* y = (a - b)^2. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_squared_difference_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_squared_difference(...) ctn_squared_difference_at(CTN_HERE, __VA_ARGS__)

/* y = p a + (1 - p) b. All three broadcast. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_linear_interpolate_at(const char *at, ctn_tensor *p, ctn_tensor *a,
                                              ctn_tensor *b);
#define ctn_linear_interpolate(...) ctn_linear_interpolate_at(CTN_HERE, __VA_ARGS__)

/* ---- special functions ---------------------------------------------------------------------- */

/* The error function: 2/sqrt(pi) times the integral of exp(-u^2) from 0 to x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_erf_at(const char *at, ctn_tensor *x);
#define ctn_erf(...) ctn_erf_at(CTN_HERE, __VA_ARGS__)

/* y = 1 - erf(x), accurate for large x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_erfc_at(const char *at, ctn_tensor *x);
#define ctn_erfc(...) ctn_erfc_at(CTN_HERE, __VA_ARGS__)

/* y = exp(x^2) erfc(x). Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_erfcx_at(const char *at, ctn_tensor *x);
#define ctn_erfcx(...) ctn_erfcx_at(CTN_HERE, __VA_ARGS__)

/* The inverse of erf, for x in -1 to 1. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_erfinv_at(const char *at, ctn_tensor *x);
#define ctn_erfinv(...) ctn_erfinv_at(CTN_HERE, __VA_ARGS__)

/* The inverse of erfc, for x in 0 to 2. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_erfcinv_at(const char *at, ctn_tensor *x);
#define ctn_erfcinv(...) ctn_erfcinv_at(CTN_HERE, __VA_ARGS__)

/* The normal distribution function: the integral of exp(-u^2/2) / sqrt(2 pi) up to x. Errors:
 * EDTYPE. */
CTN_API ctn_tensor *ctn_ndtr_at(const char *at, ctn_tensor *x);
#define ctn_ndtr(...) ctn_ndtr_at(CTN_HERE, __VA_ARGS__)

/* The logarithm of ndtr, accurate for very negative x. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_log_ndtr_at(const char *at, ctn_tensor *x);
#define ctn_log_ndtr(...) ctn_log_ndtr_at(CTN_HERE, __VA_ARGS__)

/* The inverse of ndtr (the quantile function), for x in 0 to 1. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_ndtri_at(const char *at, ctn_tensor *x);
#define ctn_ndtri(...) ctn_ndtri_at(CTN_HERE, __VA_ARGS__)

/* y = log |Gamma(x)|. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_lgamma_at(const char *at, ctn_tensor *x);
#define ctn_lgamma(...) ctn_lgamma_at(CTN_HERE, __VA_ARGS__)

/* The derivative of lgamma. At 0 it is infinite, at negative integers NaN. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_digamma_at(const char *at, ctn_tensor *x);
#define ctn_digamma(...) ctn_digamma_at(CTN_HERE, __VA_ARGS__)

/* The n-th derivative of digamma; n >= 0, and n = 0 is digamma itself. Errors: EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_polygamma_at(const char *at, int64_t n, ctn_tensor *x);
#define ctn_polygamma(...) ctn_polygamma_at(CTN_HERE, __VA_ARGS__)

/* The Hurwitz zeta function: the sum of (q + k)^-x over k = 0, 1, ...; x > 1. Infinite where x
 * is 1 or q is 0 or a negative integer. There is a gradient by q only. Errors: ESHAPE, EDTYPE;
 * EGRAD for a gradient by x. */
CTN_API ctn_tensor *ctn_zeta_at(const char *at, ctn_tensor *x, ctn_tensor *q);
#define ctn_zeta(...) ctn_zeta_at(CTN_HERE, __VA_ARGS__)

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

/* y = 1.0507 elu(x, 1.67326), the scaled exponential linear unit. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_selu_at(const char *at, ctn_tensor *x);
#define ctn_selu(...) ctn_selu_at(CTN_HERE, __VA_ARGS__)

/* y = (x + 3) / 6, limited to 0 to 1. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_hard_sigmoid_at(const char *at, ctn_tensor *x);
#define ctn_hard_sigmoid(...) ctn_hard_sigmoid_at(CTN_HERE, __VA_ARGS__)

/* y = x hard_sigmoid(x). Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_hard_swish_at(const char *at, ctn_tensor *x);
#define ctn_hard_swish(...) ctn_hard_swish_at(CTN_HERE, __VA_ARGS__)

/* y = x tanh(softplus(x)). Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_mish_at(const char *at, ctn_tensor *x);
#define ctn_mish(...) ctn_mish_at(CTN_HERE, __VA_ARGS__)

/* relu(x) and relu(-x), concatenated along the axis. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_crelu_at(const char *at, ctn_tensor *x, int64_t axis);
#define ctn_crelu(...) ctn_crelu_at(CTN_HERE, __VA_ARGS__)

/* The largest of each group of `pool` consecutive elements along the axis, whose length is a
 * multiple of pool and is divided by it. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_maxout_at(const char *at, ctn_tensor *x, int64_t pool, int64_t axis);
#define ctn_maxout(...) ctn_maxout_at(CTN_HERE, __VA_ARGS__)

/* y = x where x > 0, else r x. In training, r is drawn for each element from [lower, upper); in
 * evaluation it is their mean. Errors: EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_rrelu_at(const char *at, ctn_tensor *x, double lower, double upper);
#define ctn_rrelu(...) ctn_rrelu_at(CTN_HERE, __VA_ARGS__)

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
