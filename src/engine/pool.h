/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels over spatial dimensions: maxima of windows, and linear resampling, which covers average
 * pooling, resizing and their gradients. Called by ops, for f32, f64, bf16 and f16. They compute
 * in f32, or in f64 for f64.
 *
 * A tensor is seen as outer x (D,H,W) x inner: row-major (N,C,D,H,W) is N C x (D,H,W) x 1, and
 * channels-last is N x (D,H,W) x C. With fewer spatial dimensions, the first ones are 1. Every
 * element of a result is computed by one thread in an order that depends only on shapes, so results
 * are bitwise equal for any number of threads, both layouts and every instruction set.
 */
#ifndef CTN_ENGINE_POOL_H
#define CTN_ENGINE_POOL_H

#include "tensor/tensor.h"

/* ---- maxima of windows ----------------------------------------------------------------------- */

typedef struct {
    ctn_dtype dtype;
    int64_t outer, inner;
    int64_t in[3], out[3]; /* sizes of x and y */
    int64_t kernel[3], stride[3], pad[3];
    bool wide; /* positions are i32, otherwise u8 */
} ctn__windows;

/* y = largest element of each window; a NaN wins. index: position of that element in the window,
 * counted row-major over the whole kernel, the first one if several are equal. NULL: not wanted.
 * Padding is at most half a window. */
void ctn__max_pool(const ctn__windows *w, const void *x, void *y, void *index);
/* gx = for each element, the sum of gy over all windows whose maximum it is. scratch:
 * ctn__max_pool_scratch bytes. */
void ctn__max_pool_back(const ctn__windows *w, const void *gy, const void *index, void *gx,
                        void *scratch);
size_t ctn__max_pool_scratch(const ctn__windows *w, int threads);
/* y = the elements of x at these positions; the transpose of ctn__max_pool_back. */
void ctn__max_pool_pick(const ctn__windows *w, const void *x, const void *index, void *y);

/* ---- linear resampling ----------------------------------------------------------------------- */

/* What one result reads along one dimension: `count` elements beginning at `start`, the first with
 * weight `first`, the others with weight `rest`. start and start + count never decrease from one
 * result to the next. */
typedef struct {
    int64_t start, count;
    double first, rest;
} ctn__taps;
/* Fills *t for result o of dimension d (0 to 2). */
typedef void ctn__taps_rule(const int64_t *attr, int d, int64_t o, ctn__taps *t);

/* The matrix of one dimension, or its transpose, row by row. */
typedef struct {
    int64_t *start, *count,
        *at; /* of each row: first column, number of columns, first weight in w */
    void *w; /* float, or double for f64 */
} ctn__band;

/* y = (B0 x B1 x B2) x */
typedef struct {
    ctn_dtype dtype;
    int64_t outer, inner;
    int64_t in[3], out[3];
    int64_t width, blocks; /* part of inner done at a time; number of parts */
    size_t slice;          /* scratch bytes per thread */
    ctn__band band[3];
} ctn__sampling;

/* The caller sets sizes, type and layout in *like. The matrices follow from the rule, which maps in
 * to out or, transposed, out to in. The result is one block; free it with ctn__free. */
ctn_status ctn__sampling_new(ctn__sampling **s, const ctn__sampling *like, ctn__taps_rule *rule,
                             const int64_t *attr, bool transposed);
void ctn__sample(const ctn__sampling *s, const void *x, void *y, void *scratch);
size_t ctn__sample_scratch(const ctn__sampling *s, int threads);

/* ---- instruction sets ------------------------------------------------------------------------ */

/* Kernels of one element type; each call computes one row of the result. */
typedef struct {
    void (*max)(const ctn__windows *w, int64_t row, const void *x, void *y, void *index);
    void (*back)(const ctn__windows *w, int64_t row, const void *gy, const void *index, void *gx,
                 void *scratch);
    void (*pick)(const ctn__windows *w, int64_t row, const void *x, const void *index, void *y);
    void (*sample)(const ctn__sampling *s, int64_t row, const void *x, void *y, void *scratch);
} ctn__pool_kernels;

enum { CTN__POOL_F32, CTN__POOL_F64, CTN__POOL_BF16, CTN__POOL_F16, CTN__POOL_TYPES };
extern const ctn__pool_kernels ctn__pool_portable[CTN__POOL_TYPES], ctn__pool_avx2[CTN__POOL_TYPES],
    ctn__pool_avx512[CTN__POOL_TYPES], ctn__pool_sve[CTN__POOL_TYPES];

#endif
