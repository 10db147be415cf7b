/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops on batches of signals, images and fields. x is (N,C,L), (N,C,H,W) or (N,C,D,H,W); the
 * dimensions after C are called spatial. Users always see this order, even if a plan keeps the
 * data channels-last or in blocks. Included by ops.h, which says what all ops have in common.
 */
#ifndef CATENA_OPS_IMAGE_H
#define CATENA_OPS_IMAGE_H

#include <catena/op.h>
#include <catena/ops_shape.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- convolution ---------------------------------------------------------------------------- */

#define CTN_MAX_SPATIAL 3

/* For pad, pad_end and out_pad: no padding along this dimension, as in pad = {1, CTN_PAD_NONE}. */
#define CTN_PAD_NONE (-1)

/* Arrays have one number per spatial dimension; a 0 after the first number means the same as
 * the first. Defaults of a first number and of groups: stride 0: 1; dilation 0: 1; groups 0: 1;
 * pad 0: none; pad_end 0: the same as pad. */
typedef struct {
    size_t struct_size;
    int64_t stride[CTN_MAX_SPATIAL], pad[CTN_MAX_SPATIAL], pad_end[CTN_MAX_SPATIAL];
    int64_t dilation[CTN_MAX_SPATIAL];
    int64_t groups;
    /* Transposed convolution only: added to the size of the result. */
    int64_t out_pad[CTN_MAX_SPATIAL];
    ctn_pad_mode pad_mode; /* what the padding contains; transposed convolution: zeros only */
} ctn_conv_opt;

/* Convolution (cross-correlation, as in other frameworks). x (N,I,...), w (O,I/groups,k...), b
 * (O) or NULL -> (N,O,...). Output length:
 * (n + pad + pad_end - dilation (k-1) - 1) / stride + 1. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_conv_at(const char *at, ctn_tensor *x, ctn_tensor *w, ctn_tensor *b,
                                const ctn_conv_opt *opt);
#define ctn_conv(...) ctn_conv_at(CTN_HERE, __VA_ARGS__)

/* Transposed convolution ("deconvolution"). x (N,I,...), w (I,O/groups,k...), b (O) or NULL ->
 * (N,O,...). Output length: (n - 1) stride - pad - pad_end + dilation (k-1) + 1 + out_pad.
 * Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_conv_transpose_at(const char *at, ctn_tensor *x, ctn_tensor *w,
                                          ctn_tensor *b, const ctn_conv_opt *opt);
#define ctn_conv_transpose(...) ctn_conv_transpose_at(CTN_HERE, __VA_ARGS__)

/* The windows that a convolution with this kernel size and these options multiplies: (N,C,...) ->
 * (N,C k...,out...), with the place in the kernel counted inside each channel. spatial: number of
 * spatial dimensions; groups and out_pad are not used. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_im2col_at(const char *at, ctn_tensor *x, int spatial, const int64_t *kernel,
                                  const ctn_conv_opt *opt);
#define ctn_im2col(...) ctn_im2col_at(CTN_HERE, __VA_ARGS__)

/* Convolution with a kernel of its own at every position of the result. x (N,I,...), w
 * (O,out...,I,k...), b (O,out...) or NULL -> (N,O,out...); groups and out_pad are not used. Errors:
 * ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_local_conv_at(const char *at, ctn_tensor *x, ctn_tensor *w, ctn_tensor *b,
                                      const ctn_conv_opt *opt);
#define ctn_local_conv(...) ctn_local_conv_at(CTN_HERE, __VA_ARGS__)

/* Deformable convolution: each tap of the kernel reads x at its usual place plus an offset, by
 * bilinear interpolation; outside, x is 0. x (N,I,H,W), w (O,I,kh,kw), b (O) or NULL ->
 * (N,O,h,w), the size of ctn_conv. offset (N,2 kh kw,h,w): first the horizontal offsets of all
 * taps, then the vertical ones, in pixels, as in Chainer. (torchvision has them in pairs of
 * vertical and horizontal.) mask (N,kh kw,h,w) or NULL: a factor for each tap. Padding is zeros,
 * groups is 1, out_pad is not used. f32, f64. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_deform_conv_at(const char *at, ctn_tensor *x, ctn_tensor *offset,
                                       ctn_tensor *w, ctn_tensor *b, ctn_tensor *mask,
                                       const ctn_conv_opt *opt);
#define ctn_deform_conv(...) ctn_deform_conv_at(CTN_HERE, __VA_ARGS__)

/* ---- pooling -------------------------------------------------------------------------------- */

/* Arrays have one number per spatial dimension; a 0 after the first number means the same as
 * the first (CTN_PAD_NONE: no padding along this dimension). stride 0: the kernel size. */
typedef struct {
    size_t struct_size;
    int64_t kernel[CTN_MAX_SPATIAL], stride[CTN_MAX_SPATIAL], pad[CTN_MAX_SPATIAL];
    int ceil; /* 1: round the output length up; every window starts inside x or its front padding */
    int exclude_pad; /* average pooling: do not count padding in the mean */
} ctn_pool_opt;

/* Max pooling: padding never wins, and the first of equal elements gets the gradient. (N,C,...)
 * -> (N,C,...). Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_max_pool_at(const char *at, ctn_tensor *x, const ctn_pool_opt *opt);
#define ctn_max_pool(...) ctn_max_pool_at(CTN_HERE, __VA_ARGS__)
/* Max pooling that also gives the place of each maximum in its window (u8 or i32), for
 * ctn_max_unpool. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_status ctn_max_pool_places_at(const char *at, ctn_tensor *x, const ctn_pool_opt *opt,
                                          ctn_tensor **y, ctn_tensor **places);
#define ctn_max_pool_places(...) ctn_max_pool_places_at(CTN_HERE, __VA_ARGS__)
/* Put each element of y where the maximum of its window was, into zeros of the given n spatial
 * sizes; elements that meet are added. opt is that of the pooling. (N,C,...) -> (N,C,size...).
 * Errors: ESHAPE, EDTYPE; when it runs, EARG for a place outside of its window. */
CTN_API ctn_tensor *ctn_max_unpool_at(const char *at, ctn_tensor *y, ctn_tensor *places,
                                      const ctn_pool_opt *opt, int n, const int64_t *size);
#define ctn_max_unpool(...) ctn_max_unpool_at(CTN_HERE, __VA_ARGS__)
/* Average pooling. (N,C,...) -> (N,C,...). Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_avg_pool_at(const char *at, ctn_tensor *x, const ctn_pool_opt *opt);
#define ctn_avg_pool(...) ctn_avg_pool_at(CTN_HERE, __VA_ARGS__)
/* Mean over all spatial dimensions, which stay with length 1. (N,C,...) -> (N,C,1,...).
 * Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_global_avg_pool_at(const char *at, ctn_tensor *x);
#define ctn_global_avg_pool(...) ctn_global_avg_pool_at(CTN_HERE, __VA_ARGS__)
/* Average pooling with windows chosen so that the result has the given n sizes, as PyTorch's
 * adaptive pooling. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_adaptive_avg_pool_at(const char *at, ctn_tensor *x, int n,
                                             const int64_t *size);
#define ctn_adaptive_avg_pool(...) ctn_adaptive_avg_pool_at(CTN_HERE, __VA_ARGS__)

/* Max pooling into 1, 4, 16, ... windows that cover the image, as many levels as asked for, joined
 * along the channels: (N,C,H,W) -> (N,C (4^levels - 1) / 3,1,1). Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_spatial_pyramid_pool_at(const char *at, ctn_tensor *x, int levels);
#define ctn_spatial_pyramid_pool(...) ctn_spatial_pyramid_pool_at(CTN_HERE, __VA_ARGS__)

/* ---- regions of interest -------------------------------------------------------------------- */

/* A second number of 0 means the same as the first. */
typedef struct {
    size_t struct_size;
    int64_t size[2];     /* bins per region: height and width of the result */
    double scale;        /* factor from the coordinates of rois to pixels of x; 0: 1 */
    int max;             /* 1: the maximum of each bin; 0: the mean */
    int64_t sampling[2]; /* roi_align: points per bin and dimension; 0: bin size, rounded up */
    int aligned;         /* roi_align: 1: as torchvision with aligned=True */
    int inclusive;       /* roi_pool: 1: the pixels at y_max and x_max belong to the region */
} ctn_roi_opt;

/* Cut a region of interest out of an image by interpolation. The region is divided into bins of
 * equal size, each bin has a regular grid of points, and the result is the mean or the maximum of x
 * at these points. x (N,C,H,W), rois (R,4) with rows (y_min,x_min,y_max,x_max), roi_index (R), i64
 * or i32, with the image that each region is in -> (R,C,height,width).
 *
 * x is interpolated bilinearly, pixel i at coordinate i. A point less than one pixel outside of the
 * image has the value of the nearest pixel. Points further outside, or at NaN, count as 0 in the
 * mean and are ignored in the maximum, which is 0 if there are no others. Regions are not rounded;
 * one that is smaller than a pixel counts as one pixel. This is roi_average_align_2d and
 * roi_max_align_2d in Chainer and roi_align in torchvision. With aligned, regions are shifted by
 * half a pixel, because pixel i reaches from i to i + 1, and may be smaller than a pixel.
 *
 * x has gradients of any order; the regions and their index have none. In the maximum, NaN wins,
 * and the first of equal points gets the gradient. f32, f64. Errors: ESHAPE, EDTYPE, EARG (also
 * for an index out of range, when the step runs). */
CTN_API ctn_tensor *ctn_roi_align_at(const char *at, ctn_tensor *x, ctn_tensor *rois,
                                     ctn_tensor *roi_index, const ctn_roi_opt *opt);
#define ctn_roi_align(...) ctn_roi_align_at(CTN_HERE, __VA_ARGS__)

/* The same with whole pixels. The four numbers of a region, times scale, are rounded to integers,
 * halves away from 0. Along a dimension, a region of n pixels, at least 1, is divided into m bins:
 * bin i has the pixels from floor(i n / m) to ceil((i + 1) n / m) - 1 that are inside of the image.
 * A bin without pixels is 0. With inclusive = 0, n is y_max - y_min, as in roi_average_pooling_2d
 * and roi_max_pooling_2d in Chainer. With inclusive = 1, it is one more, as in roi_pooling_2d in
 * Chainer and roi_pool in torchvision. (On CPUs, Chainer rounds halves to even numbers.) f32,
 * f64. Errors: ESHAPE, EDTYPE, EARG (also for an index out of range, when the step runs). */
CTN_API ctn_tensor *ctn_roi_pool_at(const char *at, ctn_tensor *x, ctn_tensor *rois,
                                    ctn_tensor *roi_index, const ctn_roi_opt *opt);
#define ctn_roi_pool(...) ctn_roi_pool_at(CTN_HERE, __VA_ARGS__)

/* ---- normalisation -------------------------------------------------------------------------- */

/* Batch normalisation: y = (x - m) / sqrt(v + eps) scale + shift. In training, m and v are the
 * mean and variance of this batch over all dimensions but C, and the step updates the states
 * mean and var (C): new = (1 - momentum) old + momentum batch, with the unbiased variance. In
 * evaluation (ctn_context_set_training), mean and var are used as m and v. scale and shift
 * (C) or NULL, both or neither. momentum 0: 0.1; eps 0: 1e-5. Errors: ESHAPE, EDTYPE. */
typedef struct {
    size_t struct_size;
    double eps, momentum;
    int frozen; /* 1: in training too, use mean and var and do not change them */
} ctn_batch_norm_opt;
CTN_API ctn_tensor *ctn_batch_norm_at(const char *at, ctn_tensor *x, ctn_tensor *scale,
                                      ctn_tensor *shift, ctn_var *mean, ctn_var *var,
                                      const ctn_batch_norm_opt *opt);
#define ctn_batch_norm(...) ctn_batch_norm_at(CTN_HERE, __VA_ARGS__)

typedef struct {
    size_t struct_size;
    int64_t groups;       /* the channels are whitened in this many groups; 0: 16 */
    double eps, momentum; /* eps 0: 2e-5; momentum 0: 0.1 */
} ctn_decorrelated_batch_norm_opt;
/* Decorrelated batch normalisation (Huang et al.), ZCA whitening: y = p (x - m) in each group of
 * C/groups channels, where m is the mean, p = (s + eps 1)^(-1/2), and s is the covariance of
 * the channels. In training these are of the batch, and the step updates the states mean
 * (groups,C/groups) and projection (groups,C/groups,C/groups): new = (1 - momentum) old + momentum
 * batch. Chainer multiplies the p of the batch by M/(M-1) there, where M is the number of elements
 * of a channel. In evaluation, mean and projection are used as m and p; in training mean and
 * projection may be NULL. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_decorrelated_batch_norm_at(const char *at, ctn_tensor *x, ctn_var *mean,
                                                   ctn_var *projection,
                                                   const ctn_decorrelated_batch_norm_opt *opt);
#define ctn_decorrelated_batch_norm(...) ctn_decorrelated_batch_norm_at(CTN_HERE, __VA_ARGS__)
/* Decorrelated batch normalisation with given m, here mean (groups,C/groups), and p, here
 * projection (groups,C/groups,C/groups). Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_fixed_decorrelated_batch_norm_at(const char *at, ctn_tensor *x,
                                                         ctn_tensor *mean, ctn_tensor *projection);
#define ctn_fixed_decorrelated_batch_norm(...) \
    ctn_fixed_decorrelated_batch_norm_at(CTN_HERE, __VA_ARGS__)

/* Batch renormalisation (Ioffe, 2017): batch normalisation for small batches, whose results in
 * training are close to those in evaluation. With the mean m and deviation s of a channel in this
 * batch, and M and S from the running statistics before it,
 *     y = ((x - m) / s r + d) scale + shift
 * where r = s / S, within 1/rmax and rmax, and d = (m - M) / S, within -dmax and dmax. Gradients
 * treat r and d as constants. rmax = 1 with dmax < 0 is batch normalisation. The limits may change
 * from step to step. In evaluation, and otherwise, like ctn_batch_norm. Errors: ESHAPE, EDTYPE,
 * EARG. */
typedef struct {
    size_t struct_size;
    double eps, momentum; /* 0: 1e-5, 0.1 */
    double rmax;          /* at least 1; 0: 3 */
    double dmax;          /* 0: 5, < 0: none */
} ctn_batch_renorm_opt;
CTN_API ctn_tensor *ctn_batch_renorm_at(const char *at, ctn_tensor *x, ctn_tensor *scale,
                                        ctn_tensor *shift, ctn_var *mean, ctn_var *var,
                                        const ctn_batch_renorm_opt *opt);
#define ctn_batch_renorm(...) ctn_batch_renorm_at(CTN_HERE, __VA_ARGS__)

/* y = a x + b with one number per channel: a (C), b (C) or NULL. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_channel_affine_at(const char *at, ctn_tensor *x, ctn_tensor *a,
                                          ctn_tensor *b);
#define ctn_channel_affine(...) ctn_channel_affine_at(CTN_HERE, __VA_ARGS__)

/* Group normalisation: statistics per sample and group of C/groups channels. scale, shift (C)
 * or NULL. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_group_norm_at(const char *at, ctn_tensor *x, int64_t groups,
                                      ctn_tensor *scale, ctn_tensor *shift, double eps);
#define ctn_group_norm(...) ctn_group_norm_at(CTN_HERE, __VA_ARGS__)
/* Instance normalisation: the same with one channel per group. scale, shift (C) or NULL. Errors:
 * ESHAPE. */
CTN_API ctn_tensor *ctn_instance_norm_at(const char *at, ctn_tensor *x, ctn_tensor *scale,
                                         ctn_tensor *shift, double eps);
#define ctn_instance_norm(...) ctn_instance_norm_at(CTN_HERE, __VA_ARGS__)

/* Local response normalisation: y = x / (k + alpha s)^beta, where s is the sum of the squares of
 * the `size` channels around each one; size is odd. PyTorch divides alpha by size. Errors:
 * ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_local_response_norm_at(const char *at, ctn_tensor *x, int64_t size,
                                               double k, double alpha, double beta);
#define ctn_local_response_norm(...) ctn_local_response_norm_at(CTN_HERE, __VA_ARGS__)

/* ---- resizing ------------------------------------------------------------------------------- */

typedef enum { CTN_RESIZE_NEAREST = 0, CTN_RESIZE_LINEAR } ctn_resize_kind;
/* Resample the n spatial dimensions to the given sizes. Nearest: element floor(o n / m), as
 * PyTorch's "nearest". Linear (bilinear, trilinear): as PyTorch with align_corners=False.
 * Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_resize_at(const char *at, ctn_tensor *x, ctn_resize_kind kind, int n,
                                  const int64_t *size);
#define ctn_resize(...) ctn_resize_at(CTN_HERE, __VA_ARGS__)

/* The image at the points of a grid, by bilinear interpolation, and 0 outside. x (N,C,H,W), grid
 * (N,h,w,2) -> (N,C,h,w). A point is (x, y), each from -1 to 1 across the image. With align_corners
 * = 1 these are the centres of the first and the last pixel, otherwise their outer edges, as in
 * PyTorch. A point that is NaN lies outside. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_grid_sample_at(const char *at, ctn_tensor *x, ctn_tensor *grid,
                                       int align_corners);
#define ctn_grid_sample(...) ctn_grid_sample_at(CTN_HERE, __VA_ARGS__)
/* The grid of a height x width image, each point (x, y, 1) multiplied by a matrix. theta (N,2,3) ->
 * (N,height,width,2). Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_affine_grid_at(const char *at, ctn_tensor *theta, int64_t height,
                                       int64_t width, int align_corners);
#define ctn_affine_grid(...) ctn_affine_grid_at(CTN_HERE, __VA_ARGS__)

/* (N,C r^2,H,W) -> (N,C,H r,W r), with channels ordered as in PyTorch's pixel_shuffle, and the
 * inverse. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_depth_to_space_at(const char *at, ctn_tensor *x, int64_t r);
#define ctn_depth_to_space(...) ctn_depth_to_space_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_space_to_depth_at(const char *at, ctn_tensor *x, int64_t r);
#define ctn_space_to_depth(...) ctn_space_to_depth_at(CTN_HERE, __VA_ARGS__)

/* ---- others --------------------------------------------------------------------------------- */

/* y = x where x > 0, else slope x, with a learned slope (C) or (1). x (N,C,...). Errors:
 * ESHAPE. */
CTN_API ctn_tensor *ctn_prelu_at(const char *at, ctn_tensor *x, ctn_tensor *slope);
#define ctn_prelu(...) ctn_prelu_at(CTN_HERE, __VA_ARGS__)
/* In training, each channel of each sample is set to zero with probability rate and otherwise
 * divided by 1 - rate. Errors: ESHAPE, EARG. */
CTN_API ctn_tensor *ctn_spatial_dropout_at(const char *at, ctn_tensor *x, double rate);
#define ctn_spatial_dropout(...) ctn_spatial_dropout_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
