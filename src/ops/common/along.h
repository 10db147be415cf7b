/* SPDX-License-Identifier: Apache-2.0
 *
 * What ops along one axis share: a view of a tensor as (outer, n, inner) around that axis, copies
 * of blocks of such tensors, and index tensors (i64 or i32), which are checked before anything is
 * read through them.
 */
#ifndef CTN_OPS_COMMON_ALONG_H
#define CTN_OPS_COMMON_ALONG_H

#include "ops/ops.h"

typedef struct {
    int64_t outer, n, inner; /* products of the dimensions before, of, and after the axis */
} ctn__along;
ctn__along ctn__along_axis(const ctn_desc *d, int axis);

/* *out = the axis of x, counted from 0. Errors: ESHAPE naming op, axis and shape. */
ctn_status ctn__infer_axis(const ctn_infer_args *a, const ctn_desc *x, int64_t axis, int *out);
/* The same outside an infer: -1 and an error naming `who` and `at` if x has no such axis. */
int ctn__axis_of(const char *who, const char *at, const ctn_tensor *x, int64_t axis);
/* Slices along all dimensions at once (slice_step.c): elements start, start + step, ... of each. */
ctn_tensor *ctn__slice_dims(const char *at, ctn_tensor *x, const int64_t *start,
                            const int64_t *length, const int64_t *step);
/* Errors: EDTYPE unless x is f32 or f64. */
ctn_status ctn__infer_arith(const ctn_infer_args *a, const ctn_desc *x);

/* Copy src, seen as sd, to dst, seen as dd, with several threads. The shapes are equal; strides may
 * have any sign. Elements of dd do not overlap. */
void ctn__copy_view(void *dst, const ctn_desc *dd, const void *src, const ctn_desc *sd);
/* Copy (outer, len, inner) elements from position sat of an axis of length sn to position dat of an
 * axis of length dn. */
typedef struct {
    char *dst;
    const char *src;
    int64_t dn, dat, sn, sat, outer, len, inner;
    ctn_dtype dtype;
} ctn__block_copy;
void ctn__copy_block(const ctn__block_copy *c);

/* Errors: EDTYPE unless d is i64 or i32. */
ctn_status ctn__infer_index(const ctn_infer_args *a, const ctn_desc *d);
static inline int64_t ctn__index_get(const void *p, ctn_dtype t, int64_t i)
{
    return t == CTN_I64 ? ((const int64_t *)p)[i] : ((const int32_t *)p)[i];
}
/* Check that every element of the row-major index p is in 0 to limit - 1. Errors: EARG naming op,
 * row and value. */
ctn_status ctn__index_check(const char *op, const void *p, const ctn_desc *d, int64_t limit);

#endif
