/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor layer: data types, descriptions (shape, strides, layout) and recycled storage. It knows
 * about memory, not about computation.
 */
#ifndef CTN_TENSOR_TENSOR_H
#define CTN_TENSOR_TENSOR_H

#include <catena/tensor.h>

#include "base/base.h"

/* ---- descriptions (desc.c) ------------------------------------------------------------------ */

int64_t ctn__count(const ctn_desc *d); /* elements */
/* Bytes of a contiguous copy; for an engine layout, of the whole block. */
size_t ctn__bytes(const ctn_desc *d);
void ctn__plain(ctn_desc *d); /* set row-major strides */
/* Row-major and contiguous. Strides of dimensions of size 1 do not matter. */
bool ctn__is_plain(const ctn_desc *d);
/* Set strides that make the second dimension innermost: (N,C,H,W) lies as N,H,W,C in memory. */
void ctn__channels_last(ctn_desc *d);
bool ctn__is_channels_last(const ctn_desc *d);
bool ctn__same_shape(const ctn_desc *a, const ctn_desc *b);
/* Same shape, type and element positions. */
bool ctn__same_desc(const ctn_desc *a, const ctn_desc *b);
/* The most bytes of a tensor, empty dimensions counted as 1: no machine has more memory, and
 * strides, and sums of a few sizes, cannot overflow. */
#define CTN__MAX_BYTES ((size_t)1 << 47)
/* Checks the type, ndim <= CTN_MAX_DIMS, dims >= 0 and the size. Whatever makes a tensor calls it
 * once, so that nothing after it has to. Errors: ESHAPE, EDTYPE. */
ctn_status ctn__desc_check(const ctn_desc *d, const char *who);
/* The same, and sets d with row-major strides. Errors: EARG, ESHAPE, EDTYPE. */
ctn_status ctn__desc_set(ctn_desc *d, const char *who, ctn_dtype t, int ndim, const int64_t *dims);
ctn_status ctn__broadcast(ctn_desc *out, const char *who, const ctn_desc *a, const ctn_desc *b);
/* d viewed with the shape of `to`: stride 0 where it is broadcast. d must be broadcastable. */
ctn_desc ctn__broadcast_view(const ctn_desc *d, const ctn_desc *to);
/* "(100,784)" into buf; returns buf */
char *ctn__shape_text(const ctn_desc *d, char *buf, size_t n);
bool ctn__is_float(ctn_dtype t);
bool ctn__is_f32_f64(ctn_dtype t); /* types our own kernels compute in */
/* The dimensions of d from the largest stride to the smallest. Broadcast dimensions (stride 0) come
 * first, and dimensions with equal strides keep their order. */
void ctn__by_stride(const ctn_desc *d, int *order);
/* Axis of a tensor with ndim dimensions; negative counts from the end. -1 if out of range. */
int ctn__axis(int ndim, int64_t axis);

/* ---- elements (elem.c) ---------------------------------------------------------------------- */

float ctn__bf16_to_f32(uint16_t x);
uint16_t ctn__f32_to_bf16(float x);
float ctn__f16_to_f32(uint16_t x);
uint16_t ctn__f32_to_f16(float x);
double ctn__elem_get(const void *p, ctn_dtype t, int64_t i);
void ctn__elem_set(void *p, ctn_dtype t, int64_t i, double v); /* converts as cast does */
/* v clamped to [lo, hi], NaN as 0: C does not define the conversion of other values to integers. */
static inline double ctn__within(double v, double lo, double hi)
{
    double t = v < lo ? lo : v;
    t = t > hi ? hi : t;
    return v == v ? t : 0;
}
/* 2^63 itself is out of range, and the double below it is 1024 less than INT64_MAX. */
static inline int64_t ctn__to_i64(double v)
{
    return v >= 0x1p63 ? INT64_MAX : (int64_t)ctn__within(v, -0x1p63, 0x1.fffffffffffffp62);
}
/* Zeroes memory with several threads, each the part that it will mostly use: memory is placed on
 * the socket of the thread that touches it first. */
void ctn__zero(void *p, size_t bytes, int threads);
/* Copies src, laid out as sd, to dst, laid out as dd. Shapes and types must be equal. */
void ctn__copy_strided(void *dst, const ctn_desc *dd, const void *src, const ctn_desc *sd);

/* ---- storage (storage.c): buffers of a scope, recycled -------------------------------------- */

typedef struct ctn__block ctn__block;
typedef struct {
    ctn__block *used, *spare[48]; /* spare by power of two */
    size_t bytes;                 /* total held */
} ctn__storage;
void *ctn__storage_get(ctn__storage *s, size_t bytes); /* 64-byte aligned; NULL: ENOMEM */
void ctn__storage_recycle(ctn__storage *s);            /* all used blocks become spare */
void ctn__storage_free(ctn__storage *s);

#endif
