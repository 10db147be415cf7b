/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products by a BLAS, if one was found at build time, and the primitives made of them. On
 * AArch64, oneDNN computes most convolutions, and on CPUs without long vectors all products, with
 * plain loops. Its kernels are taken where it has any.
 */
#ifndef CTN_ENGINE_BLAS_H
#define CTN_ENGINE_BLAS_H

#include "engine/onednn.h"

/* NULL: built without one. */
const char *ctn__blas_name(void);
/* False: built without a BLAS, or too large for its integers. */
bool ctn__blas_takes(int64_t m, int64_t n, int64_t k);
void ctn__blas_gemm(const ctn__gemm_args *g);

/* ctn__prim_matmul with one gemm per batch. *p stays NULL if the BLAS cannot express it: types
 * other than f32, or matrices without contiguous rows or columns. */
ctn_status ctn__blas_matmul(ctn__prim **p, ctn__engine *e, const ctn_desc *a, const ctn_desc *b,
                            const ctn_desc *bias, const ctn_desc *c, ctn__elt act);
/* ctn__prim_conv by ctn__gemm: the elements of x that belong to a result are gathered in the rows
 * of a matrix. *p stays NULL for types other than f32, images that are not channels-last, and
 * groups of one channel. */
ctn_status ctn__gemm_conv(ctn__prim **p, ctn__engine *e, ctn__conv_kind kind,
                          const ctn__conv_shape *s, const ctn_desc *x, ctn_desc *w,
                          const ctn_desc *bias, const ctn_desc *y, const ctn__conv_post *post);
/* y = act(scale y + shift + residual + bias), where these exist, of n rows of O channels. */
typedef struct {
    float *y;
    int64_t n, O;
    bool relu;
    int threads;
} ctn__conv_rows;
void ctn__conv_finish(const ctn__conv_rows *r, const float *bias, const float *scale,
                      const float *shift, const float *residual);
/* ctn__prim_conv of groups of one channel (depthwise.c). *p stays NULL for anything but f32 images
 * that are channels-last, with as many channels in as out. */
ctn_status ctn__depthwise(ctn__prim **p, ctn__engine *e, ctn__conv_kind kind,
                          const ctn__conv_shape *s, const ctn_desc *x, ctn_desc *w,
                          const ctn_desc *bias, const ctn_desc *y, const ctn__conv_post *post);

#endif
