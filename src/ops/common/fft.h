/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ops fft, rfft and irfft share: their attributes and checks, and a transform along one
 * axis (fft.c).
 */
#ifndef CTN_OPS_COMMON_FFT_H
#define CTN_OPS_COMMON_FFT_H

#include "ops/common/along.h"

/* Attributes. The axis is counted from 0. fft has INVERSE, the others have WEIGHTED in its place.
 * LENGTH is that of the result of irfft. */
enum { CTN__FFT_AXIS, CTN__FFT_FACTOR, CTN__FFT_INVERSE, CTN__FFT_LENGTH };
enum { CTN__FFT_WEIGHTED = CTN__FFT_INVERSE };
/* Values of FACTOR: the result is multiplied by 1, 1/sqrt(n) or 1/n. */
enum { CTN__FFT_ONE, CTN__FFT_ROOT, CTN__FFT_NTH };
extern const char *const ctn__fft_attr_names[], *const ctn__rfft_attr_names[];

/* The factor of each axis for a transform in that direction. */
int64_t ctn__fft_factor(ctn_fft_norm norm, bool inverse);
/* out[i] = axes[i] counted from 0, in x without its last `pair` dimensions. Errors: ESHAPE, EARG,
 * which are on record if this returns false. x may be NULL: false. */
bool ctn__fft_axes(const char *name, const char *at, const ctn_tensor *x, int pair, int naxes,
                   const int64_t *axes, ctn_fft_norm norm, int64_t *out);
/* Errors: EDTYPE, ESHAPE unless in[0] is complex (...,2) and its axis is not empty. */
ctn_status ctn__fft_infer_complex(const ctn_infer_args *a);
/* fft along n axes. The ops of one axis: */
ctn_tensor *ctn__fft_along(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                           int64_t factor, bool inverse);
ctn_tensor *ctn__rfft_along(const char *at, ctn_tensor *x, int64_t axis, int64_t factor,
                            bool weighted);
ctn_tensor *ctn__irfft_along(const char *at, ctn_tensor *x, int64_t axis, int64_t factor,
                             bool weighted, int64_t length);

/* prepare of the three ops; it chooses run as well. */
ctn_status ctn__fft_prepare(ctn_prepare_args *a);
ctn_status ctn__rfft_prepare(ctn_prepare_args *a);
ctn_status ctn__irfft_prepare(ctn_prepare_args *a);

/* cos and sin of 2 pi k / n, exact where they are 0, 1 or -1. k >= 0. */
void ctn__fft_root(int64_t k, int64_t n, double *c, double *s);

/* The matrix of a truncated transform, with k frequencies of each sign if x is complex:
 *   real x:    (n,2k)    y_f = sum_j x_j exp(-2 pi i j f / n), f = 0 to k-1
 *   complex x: (2n,4k)   the same for f = 0 to k-1 and -k to -1
 * so that y = x D for a row x. With `inverse`, D is divided by n, and frequencies of real x that
 * also stand for their conjugates are doubled, so that x = y D^T is the inverse transform of y, the
 * other frequencies being 0. */
ctn_tensor *ctn__dft_matrix(const char *at, ctn_context *ctx, ctn_dtype dtype, int64_t n, int64_t k,
                            bool complex, bool inverse);

#endif
