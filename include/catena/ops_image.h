/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops on batches of signals, images and fields: x is (N,C,L), (N,C,H,W) or (N,C,D,H,W); "spatial"
 * dimensions are those behind C, S of them. Part of catena/ops.h. Whatever the plan keeps them in
 * (channels-last, blocked), the user sees this order.
 */
#ifndef CATENA_OPS_IMAGE_H
#define CATENA_OPS_IMAGE_H

#include <catena/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- convolution ------------------------------------------------------------------------------ */

#define CTN_MAX_SPATIAL 3

/* In pad, pad_end and out_pad: nothing along this dimension, as in pad = {1, CTN_PAD_NONE}. */
#define CTN_PAD_NONE (-1)

/* Zero in a field means: stride 1, dilation 1, groups 1. One number per spatial dimension; the first is taken for all where
 * the others are 0. pad_end 0: the same as pad. */
typedef struct {
    size_t struct_size;
    int64_t stride[CTN_MAX_SPATIAL], pad[CTN_MAX_SPATIAL], pad_end[CTN_MAX_SPATIAL];
    int64_t dilation[CTN_MAX_SPATIAL];
    int64_t groups;
    int64_t out_pad[CTN_MAX_SPATIAL]; /* transposed only: added to the size of the result */
} ctn_conv_opt;

/* Cross-correlation, as every framework calls convolution. x (N,I,...), w (O,I/groups,k...), b (O) or NULL ->
 * (N,O,...), each length (n + pad + pad_end - dilation (k-1) - 1) / stride + 1. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_conv_at(const char *at, ctn_tensor *x, ctn_tensor *w, ctn_tensor *b,
                                const ctn_conv_opt *opt);
#define ctn_conv(...) ctn_conv_at(CTN_HERE, __VA_ARGS__)

/* Its transpose ("deconvolution"). x (N,I,...), w (I,O/groups,k...), b (O) or NULL -> (N,O,...), each length
 * (n - 1) stride - pad - pad_end + dilation (k-1) + 1 + out_pad. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_conv_transpose_at(const char *at, ctn_tensor *x, ctn_tensor *w,
                                          ctn_tensor *b, const ctn_conv_opt *opt);
#define ctn_conv_transpose(...) ctn_conv_transpose_at(CTN_HERE, __VA_ARGS__)

/* ---- pooling ---------------------------------------------------------------------------------- */

/* One number per spatial dimension; the first is taken for all where the others are 0 (CTN_PAD_NONE: no padding along this
 * one). stride 0: the kernel. */
typedef struct {
    size_t struct_size;
    int64_t kernel[CTN_MAX_SPATIAL], stride[CTN_MAX_SPATIAL], pad[CTN_MAX_SPATIAL];
    int ceil; /* 1: round the size of the result up; a window starts inside x or its front padding */
    int exclude_pad; /* average: divide by the elements of x in the window */
} ctn_pool_opt;

/* Largest element of each window; padding never wins; the first of equals gets the gradient. (N,C,...) ->
 * (N,C,...). Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_max_pool_at(const char *at, ctn_tensor *x, const ctn_pool_opt *opt);
#define ctn_max_pool(...) ctn_max_pool_at(CTN_HERE, __VA_ARGS__)
/* Mean of each window. (N,C,...) -> (N,C,...). Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_avg_pool_at(const char *at, ctn_tensor *x, const ctn_pool_opt *opt);
#define ctn_avg_pool(...) ctn_avg_pool_at(CTN_HERE, __VA_ARGS__)
/* Mean over all spatial dimensions, kept with length 1. (N,C,...) -> (N,C,1,...). Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_global_avg_pool_at(const char *at, ctn_tensor *x);
#define ctn_global_avg_pool(...) ctn_global_avg_pool_at(CTN_HERE, __VA_ARGS__)
/* Mean of windows chosen so that the result has this size, as PyTorch's adaptive pooling. n sizes.
 * Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_adaptive_avg_pool_at(const char *at, ctn_tensor *x, int n,
                                             const int64_t *size);
#define ctn_adaptive_avg_pool(...) ctn_adaptive_avg_pool_at(CTN_HERE, __VA_ARGS__)

/* ---- normalisation ---------------------------------------------------------------------------- */

/* Batch normalisation with the statistics of this batch: y = (x - m) / sqrt(v + eps) scale + shift, m and v
 * over everything but C. mean and var are state (C): in training they become (1 - momentum) old +
 * momentum new, v unbiased, by an assign of this step; in evaluation (or with no gradient mode of the
 * context set to evaluation) they are used instead. scale and shift (C) or both NULL. momentum 0: 0.1;
 * eps 0: 1e-5. Errors: ESHAPE, EDTYPE. */
typedef struct {
    size_t struct_size;
    double eps, momentum;
} ctn_batch_norm_opt;
CTN_API ctn_tensor *ctn_batch_norm_at(const char *at, ctn_tensor *x, ctn_tensor *scale,
                                      ctn_tensor *shift, ctn_var *mean, ctn_var *var,
                                      const ctn_batch_norm_opt *opt);
#define ctn_batch_norm(...) ctn_batch_norm_at(CTN_HERE, __VA_ARGS__)

/* y = a x + b with one number per channel: a (C), b (C) or NULL. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_channel_affine_at(const char *at, ctn_tensor *x, ctn_tensor *a,
                                          ctn_tensor *b);
#define ctn_channel_affine(...) ctn_channel_affine_at(CTN_HERE, __VA_ARGS__)

/* Statistics per sample and group of C/groups channels. scale, shift (C) or NULL. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_group_norm_at(const char *at, ctn_tensor *x, int64_t groups,
                                      ctn_tensor *scale, ctn_tensor *shift, double eps);
#define ctn_group_norm(...) ctn_group_norm_at(CTN_HERE, __VA_ARGS__)
/* The same with one channel per group. */
CTN_API ctn_tensor *ctn_instance_norm_at(const char *at, ctn_tensor *x, ctn_tensor *scale,
                                         ctn_tensor *shift, double eps);
#define ctn_instance_norm(...) ctn_instance_norm_at(CTN_HERE, __VA_ARGS__)

/* ---- sizes ------------------------------------------------------------------------------------ */

typedef enum { CTN_RESIZE_NEAREST = 0, CTN_RESIZE_LINEAR } ctn_resize_kind;
/* Resample the spatial dimensions (n of them) to this size. Nearest: element floor(o n / m), as PyTorch's
 * "nearest". Linear, bilinear, trilinear: pixel centres at half, as its align_corners = False. Errors:
 * ESHAPE. */
CTN_API ctn_tensor *ctn_resize_at(const char *at, ctn_tensor *x, ctn_resize_kind kind, int n,
                                  const int64_t *size);
#define ctn_resize(...) ctn_resize_at(CTN_HERE, __VA_ARGS__)

/* (N,C r^2,H,W) -> (N,C,H r,W r), channels as PyTorch's pixel_shuffle orders them, and back. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_depth_to_space_at(const char *at, ctn_tensor *x, int64_t r);
#define ctn_depth_to_space(...) ctn_depth_to_space_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_space_to_depth_at(const char *at, ctn_tensor *x, int64_t r);
#define ctn_space_to_depth(...) ctn_space_to_depth_at(CTN_HERE, __VA_ARGS__)

/* ---- others ----------------------------------------------------------------------------------- */

/* y = x where x > 0, else slope x; slope (C) or (1), learned. x (N,C,...). Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_prelu_at(const char *at, ctn_tensor *x, ctn_tensor *slope);
#define ctn_prelu(...) ctn_prelu_at(CTN_HERE, __VA_ARGS__)
/* In training each channel of each sample is dropped as a whole with probability rate, the others divided
 * by 1 - rate. Errors: ESHAPE, EARG. */
CTN_API ctn_tensor *ctn_spatial_dropout_at(const char *at, ctn_tensor *x, double rate);
#define ctn_spatial_dropout(...) ctn_spatial_dropout_at(CTN_HERE, __VA_ARGS__)

/* softmax(q k^T scale + mask) v over the last two dimensions. q (...,L,E), k (...,M,E), v (...,M,F), mask
 * broadcastable to (...,L,M), added, or NULL; causal: later positions are left out; scale 0: 1/sqrt(E).
 * -> (...,L,F). Errors: ESHAPE, EDTYPE. */
typedef struct {
    size_t struct_size;
    double scale;
    int causal;
} ctn_attention_opt;
CTN_API ctn_tensor *ctn_attention_at(const char *at, ctn_tensor *q, ctn_tensor *k, ctn_tensor *v,
                                     ctn_tensor *mask, const ctn_attention_opt *opt);
#define ctn_attention(...) ctn_attention_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
