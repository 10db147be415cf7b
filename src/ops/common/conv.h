/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution is three bilinear functions, each an adjoint of the others:
 *   conv          y = x * w
 *   conv_data     x from y and w   (the gradient by x; the transposed convolution)
 *   conv_weights  w from x and y   (the gradient by w)
 * so every gradient of any order is one of the three. They share attributes, checks and kernels.
 */
#ifndef CTN_OPS_COMMON_CONV_H
#define CTN_OPS_COMMON_CONV_H

#include "ops/ops.h"

enum {
    CTN__CONV_ACT, /* of conv; set by fusion only */
    CTN__CONV_STRIDE,
    CTN__CONV_PAD = CTN__CONV_STRIDE + CTN_MAX_SPATIAL,
    CTN__CONV_PAD_END = CTN__CONV_PAD + CTN_MAX_SPATIAL,
    CTN__CONV_DILATION = CTN__CONV_PAD_END + CTN_MAX_SPATIAL,
    CTN__CONV_GROUPS = CTN__CONV_DILATION + CTN_MAX_SPATIAL,
    CTN__CONV_SIZE, /* conv_data: spatial size of x; conv_weights: of the kernel */
    CTN__CONV_NATTR = CTN__CONV_SIZE + CTN_MAX_SPATIAL
};

/* The largest size, stride, padding and dilation: products of two of them do not overflow. */
#define CTN__CONV_MOST (INT64_C(1) << 30)
/* The attributes from the options, with their defaults filled in; *o receives a full copy. Errors:
 * EARG for a number above CTN__CONV_MOST. */
ctn_status ctn__conv_opt(int64_t *attr, ctn_conv_opt *o, const char *who, const ctn_conv_opt *opt);
/* x with the padding that attr asks for, made by an op of its own; attr then asks for none. */
ctn_tensor *ctn__conv_pad(const char *at, ctn_tensor *x, ctn_pad_mode mode, int64_t *attr);
/* ctn_grid_sample with the points of the grid in pixels (grid_sample.c). */
ctn_tensor *ctn__sample_pixels(const char *at, ctn_tensor *x, ctn_tensor *grid);
/* From the attributes of any of the three ops. */
ctn__conv_shape ctn__conv_shape_of(const ctn_prepare_args *a);
/* Number of multiplications and additions: each element of y with each of its taps. */
int64_t ctn__conv_work(const ctn_desc *y, const ctn_desc *w);
/* prepare of conv_weights as a matrix product (conv_matmul.c), with one or the other kernel of the
 * engine; CTN_END if it cannot be written as a product. */
ctn_status ctn__conv_weights_matmul(ctn_prepare_args *a);
ctn_status ctn__conv_weights_outer(ctn_prepare_args *a);
/* prepare of any of the three in f64 (conv_f64.c). */
ctn_status ctn__conv_f64(ctn_prepare_args *a, ctn__conv_kind kind);

#endif
