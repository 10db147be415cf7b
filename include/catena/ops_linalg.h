/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear algebra of small matrices, up to about 256 x 256, in batches: a is (...,n,n), and each
 * matrix is computed by one thread, in double precision also if it is f32. Gradients have any
 * order. Included by ops.h, which says what all ops have in common.
 */
#ifndef CATENA_OPS_LINALG_H
#define CATENA_OPS_LINALG_H

#include <catena/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The lower triangular L with L L^T = a. a must be symmetric; only its lower triangle is read, and
 * the gradient is symmetric. f32, f64. Errors: ESHAPE, EDTYPE; EARG naming the matrix that is not
 * positive definite, when the step runs. */
CTN_API ctn_tensor *ctn_cholesky_at(const char *at, ctn_tensor *a);
#define ctn_cholesky(...) ctn_cholesky_at(CTN_HERE, __VA_ARGS__)

/* x with op(a) x = b, where a is lower triangular, or upper if `upper` is set, and op transposes
 * it if `trans` is set. With `unit` its diagonal counts as ones. The other triangle is not read.
 * a (...,n,n), b (...,n,k) -> (...,n,k); leading dimensions broadcast. Elements become inf or NaN
 * if the diagonal has a zero. f32, f64. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_solve_triangular_at(const char *at, ctn_tensor *a, ctn_tensor *b, int upper,
                                            int trans, int unit);
#define ctn_solve_triangular(...) ctn_solve_triangular_at(CTN_HERE, __VA_ARGS__)

/* x with a x = b, by LU with partial pivoting. a (...,n,n), b (...,n,k) -> (...,n,k); leading
 * dimensions broadcast. Elements are inf or NaN if a is singular. f32, f64. Errors: ESHAPE,
 * EDTYPE. */
CTN_API ctn_tensor *ctn_solve_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_solve(...) ctn_solve_at(CTN_HERE, __VA_ARGS__)

/* The inverse; elements are inf or NaN if a is singular. To multiply by it, ctn_solve is faster and
 * more accurate. f32, f64. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_inverse_at(const char *at, ctn_tensor *a);
#define ctn_inverse(...) ctn_inverse_at(CTN_HERE, __VA_ARGS__)

/* The determinant. (...,n,n) -> (...). If a is singular, it is 0 and the gradient is inf or NaN.
 * f32, f64. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_det_at(const char *at, ctn_tensor *a);
#define ctn_det(...) ctn_det_at(CTN_HERE, __VA_ARGS__)

/* The sign of the determinant (-1, 0 or 1, without a gradient) and the logarithm of its absolute
 * value, -inf if a is singular, which do not overflow. sign and logabs may be NULL. (...,n,n) ->
 * (...). f32, f64. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_status ctn_slogdet_at(const char *at, ctn_tensor *a, ctn_tensor **sign,
                                  ctn_tensor **logabs);
#define ctn_slogdet(...) ctn_slogdet_at(CTN_HERE, __VA_ARGS__)

/* The symmetric positive definite y with y y a = 1, the inverse of the square root of a. a must be
 * symmetric; only its lower triangle is read, and the gradient is symmetric. f32, f64. Errors:
 * ESHAPE, EDTYPE; EARG naming the matrix that is not positive definite, when the step runs. */
CTN_API ctn_tensor *ctn_inverse_sqrt_at(const char *at, ctn_tensor *a);
#define ctn_inverse_sqrt(...) ctn_inverse_sqrt_at(CTN_HERE, __VA_ARGS__)

/* x with a x + x a = b (Lyapunov's equation). a must be symmetric and positive definite; only its
 * lower triangle is read, and its gradient is symmetric. a and b (...,n,n) have the same shape.
 * f32, f64. Errors: ESHAPE, EDTYPE; EARG naming the matrix that is not positive definite, when the
 * step runs. */
CTN_API ctn_tensor *ctn_lyapunov_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_lyapunov(...) ctn_lyapunov_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
