/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier transforms. A complex number is a pair of reals, real part first, in the last dimension;
 * axes are counted without that dimension, and negative ones from its left. Any length is
 * possible; products of 2, 3 and 5 are fastest. Gradients have any order. Included by ops.h, which
 * says what all ops have in common.
 */
#ifndef CATENA_OPS_FFT_H
#define CATENA_OPS_FFT_H

#include <catena/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The factor of a transform over n elements in total, as in NumPy: forward and inverse are
 * multiplied by 1 and 1/n, by 1/sqrt(n) both, or by 1/n and 1. */
typedef enum { CTN_FFT_BACKWARD = 0, CTN_FFT_ORTHO, CTN_FFT_FORWARD } ctn_fft_norm;

/* y_k = sum_j x_j exp(-2 pi i j k / n) along each of the axes, and the inverse, which has +i. x
 * (...,2) -> (...,2). f32, f64. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_fft_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                               ctn_fft_norm norm);
#define ctn_fft(...) ctn_fft_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_ifft_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                                ctn_fft_norm norm);
#define ctn_ifft(...) ctn_ifft_at(CTN_HERE, __VA_ARGS__)

/* The transform of real x. The last of the axes, of length n, gets length n/2 + 1: the other
 * frequencies are the conjugates of these. x (...) -> (...,2). Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_rfft_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                                ctn_fft_norm norm);
#define ctn_rfft(...) ctn_rfft_at(CTN_HERE, __VA_ARGS__)
/* The inverse of rfft. The last of the axes, of length n_last/2 + 1, gets length n_last. The
 * imaginary parts that a real result does not have, at frequency 0 and n_last/2 of this axis,
 * are ignored. x (...,2) -> (...). Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_irfft_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                                 int64_t n_last, ctn_fft_norm norm);
#define ctn_irfft(...) ctn_irfft_at(CTN_HERE, __VA_ARGS__)

/* y = a b of complex numbers, with broadcasting. a (...,2), b (...,2) -> (...,2). f32, f64.
 * Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_complex_mul_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_complex_mul(...) ctn_complex_mul_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
