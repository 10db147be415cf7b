/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions, indexing, slicing and joining. Indices are i64 or i32 and count from 0; an index
 * out of range gives EARG when the step runs. Included by ops.h, which says what all ops have
 * in common.
 */
#ifndef CATENA_OPS_SHAPE_H
#define CATENA_OPS_SHAPE_H

#include <catena/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reductions over axes; with keep = 1 the reduced axes stay, with length 1 --------------- */

/* Used in place of naxes and axes: ctn_sum(x, CTN_ALL_AXES, 0). */
#define CTN_ALL_AXES 0, NULL

/* The mean; NaN if there are no elements. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_mean_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                                int keep);
#define ctn_mean(...) ctn_mean_at(CTN_HERE, __VA_ARGS__)

/* The largest and the smallest element, NaN if there is one. Elements that are equal to the
 * result share the gradient evenly. Errors: ESHAPE (also if there are no elements), EDTYPE. */
CTN_API ctn_tensor *ctn_max_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                               int keep);
#define ctn_max(...) ctn_max_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_min_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                               int keep);
#define ctn_min(...) ctn_min_at(CTN_HERE, __VA_ARGS__)

/* ---- along one axis ------------------------------------------------------------------------- */

/* Index (i64) of the largest element along the axis, the first among equals. The axis is
 * removed. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_argmax_at(const char *at, ctn_tensor *x, int64_t axis);
#define ctn_argmax(...) ctn_argmax_at(CTN_HERE, __VA_ARGS__)

/* The k largest elements along the axis in descending order, and their indices (i64); equal
 * elements keep their order. values and indices may be NULL. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_status ctn_topk_at(const char *at, ctn_tensor *x, int64_t k, int64_t axis,
                               ctn_tensor **values, ctn_tensor **indices);
#define ctn_topk(...) ctn_topk_at(CTN_HERE, __VA_ARGS__)

/* y_i = x_0 + ... + x_i along the axis; with reverse, x_i + ... + x_last. Errors: ESHAPE,
 * EDTYPE. */
CTN_API ctn_tensor *ctn_cumsum_at(const char *at, ctn_tensor *x, int64_t axis, int reverse);
#define ctn_cumsum(...) ctn_cumsum_at(CTN_HERE, __VA_ARGS__)

/* ---- indexing ------------------------------------------------------------------------------- */

/* index (...) -> (...,classes) of dtype: 1 at the index, 0 elsewhere. Errors: ESHAPE, EDTYPE,
 * EARG. */
CTN_API ctn_tensor *ctn_one_hot_at(const char *at, ctn_tensor *index, int64_t classes,
                                   ctn_dtype dtype);
#define ctn_one_hot(...) ctn_one_hot_at(CTN_HERE, __VA_ARGS__)

/* y[i,j,k] = x[i,index[i,j,k],k] (shown for axis 1 of 3). index has as many dimensions as x and
 * is not longer than x, except along the axis; y has the shape of index. Errors: ESHAPE,
 * EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_gather_at(const char *at, ctn_tensor *x, ctn_tensor *index, int64_t axis);
#define ctn_gather(...) ctn_gather_at(CTN_HERE, __VA_ARGS__)

/* y = x, then y[i,index[i,j,k],k] += src[i,j,k] for every position of index, in order (shown
 * for axis 1 of 3). index is not longer than src in any dimension, and not longer than x except
 * along the axis. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_scatter_add_at(const char *at, ctn_tensor *x, ctn_tensor *index,
                                       ctn_tensor *src, int64_t axis);
#define ctn_scatter_add(...) ctn_scatter_add_at(CTN_HERE, __VA_ARGS__)

/* Rows of the table. table (V,D), index (...) -> (...,D). Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_embedding_at(const char *at, ctn_tensor *table, ctn_tensor *index);
#define ctn_embedding(...) ctn_embedding_at(CTN_HERE, __VA_ARGS__)

/* ---- slicing and joining -------------------------------------------------------------------- */

/* Concatenate n tensors (1 to CTN_MAX_IN) along the axis. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_concat_at(const char *at, int n, ctn_tensor *const *x, int64_t axis);
#define ctn_concat(...) ctn_concat_at(CTN_HERE, __VA_ARGS__)

/* Stack n tensors of the same shape along a new axis, which is `axis` of the result. Errors:
 * ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_stack_at(const char *at, int n, ctn_tensor *const *x, int64_t axis);
#define ctn_stack(...) ctn_stack_at(CTN_HERE, __VA_ARGS__)

/* Split x along the axis into n pieces (1 to CTN_MAX_OUT) of the given sizes, which must add up
 * to the length of the axis. On an error all out[i] are NULL. Errors: ESHAPE, EARG. */
CTN_API ctn_status ctn_split_at(const char *at, ctn_tensor *x, int64_t axis, int n,
                                const int64_t *sizes, ctn_tensor **out);
#define ctn_split(...) ctn_split_at(CTN_HERE, __VA_ARGS__)

/* `length` elements along the axis, beginning at start; a negative start counts from the end.
 * start may change from step to step without a new plan. Errors: ESHAPE; EARG for a start out
 * of range, when the step runs. */
CTN_API ctn_tensor *ctn_slice_at(const char *at, ctn_tensor *x, int64_t axis, int64_t start,
                                 int64_t length);
#define ctn_slice(...) ctn_slice_at(CTN_HERE, __VA_ARGS__)

/* Pad dimension i with before[i] elements in front and after[i] elements at the end, all equal to
 * value. before and after may be NULL: none. value may change from step to step. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_pad_at(const char *at, ctn_tensor *x, const int64_t *before,
                               const int64_t *after, double value);
#define ctn_pad(...) ctn_pad_at(CTN_HERE, __VA_ARGS__)

/* The lower triangle: x (...,R,C) with zeros where c > r + diagonal. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_tril_at(const char *at, ctn_tensor *x, int64_t diagonal);
#define ctn_tril(...) ctn_tril_at(CTN_HERE, __VA_ARGS__)

/* x (N,...,M,E) with rows first[n] to first[n] + T - 1 of sample n replaced by y (N,...,T,E). first
 * (N) is i64 or i32. Assigned to the variable that x is, as in ctn_assign(v, ctn_put_rows(
 * ctn_use(v), y, first)), it copies only the rows of y, if nothing else reads x. Has no gradient.
 * Errors: ESHAPE, EDTYPE; EARG for rows out of range, when the step runs. */
CTN_API ctn_tensor *ctn_put_rows_at(const char *at, ctn_tensor *x, ctn_tensor *y,
                                    ctn_tensor *first);
#define ctn_put_rows(...) ctn_put_rows_at(CTN_HERE, __VA_ARGS__)

/* Remove a dimension of length 1, or insert one as `axis` of the result. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_squeeze_at(const char *at, ctn_tensor *x, int64_t axis);
#define ctn_squeeze(...) ctn_squeeze_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_unsqueeze_at(const char *at, ctn_tensor *x, int64_t axis);
#define ctn_unsqueeze(...) ctn_unsqueeze_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
