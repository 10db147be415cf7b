/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions, choosing, cutting and joining. Part of catena/ops.h, which says what all ops have
 * in common. Indices are i64 or i32 and count from 0; one out of range is EARG when the step
 * runs.
 */
#ifndef CATENA_OPS_SHAPE_H
#define CATENA_OPS_SHAPE_H

#include <catena/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reductions over axes (naxes 0: all); keep leaves them with length 1 --------------------- */

/* The mean; NaN over nothing. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_mean_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                                int keep);
#define ctn_mean(...) ctn_mean_at(CTN_HERE, __VA_ARGS__)

/* The largest and the smallest element; a NaN wins. The gradient is shared evenly by elements
 * equal to the result. Errors: ESHAPE (also over nothing), EDTYPE. */
CTN_API ctn_tensor *ctn_max_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                               int keep);
#define ctn_max(...) ctn_max_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_min_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                               int keep);
#define ctn_min(...) ctn_min_at(CTN_HERE, __VA_ARGS__)

/* ---- along one axis -------------------------------------------------------------------------- */

/* Place of the largest element along the axis, the first of equals: i64, the axis is gone.
 * Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_argmax_at(const char *at, ctn_tensor *x, int64_t axis);
#define ctn_argmax(...) ctn_argmax_at(CTN_HERE, __VA_ARGS__)

/* The k largest along the axis, descending, and their places (i64), the first of equals first.
 * Either pointer may be NULL. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_status ctn_topk_at(const char *at, ctn_tensor *x, int64_t k, int64_t axis,
                               ctn_tensor **values, ctn_tensor **indices);
#define ctn_topk(...) ctn_topk_at(CTN_HERE, __VA_ARGS__)

/* y_i = x_0 + ... + x_i along the axis; reverse: x_i + ... + x_last. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_cumsum_at(const char *at, ctn_tensor *x, int64_t axis, int reverse);
#define ctn_cumsum(...) ctn_cumsum_at(CTN_HERE, __VA_ARGS__)

/* ---- by indices ------------------------------------------------------------------------------ */

/* index (...) -> (...,classes) of dtype: 1 at the index, 0 elsewhere. Errors: ESHAPE, EDTYPE;
 * EARG. */
CTN_API ctn_tensor *ctn_one_hot_at(const char *at, ctn_tensor *index, int64_t classes,
                                   ctn_dtype dtype);
#define ctn_one_hot(...) ctn_one_hot_at(CTN_HERE, __VA_ARGS__)

/* y[i,j,k] = x[i,index[i,j,k],k] (axis 1 of 3). index has as many dimensions as x and is not
 * longer outside the axis; y has its shape. Errors: ESHAPE, EDTYPE; EARG. */
CTN_API ctn_tensor *ctn_gather_at(const char *at, ctn_tensor *x, ctn_tensor *index, int64_t axis);
#define ctn_gather(...) ctn_gather_at(CTN_HERE, __VA_ARGS__)

/* y = x, then y[i,index[i,j,k],k] += src[i,j,k] (axis 1 of 3) for every position of index, in
 * order. index is nowhere longer than src, and not longer than x outside the axis. Errors:
 * ESHAPE, EDTYPE; EARG. */
CTN_API ctn_tensor *ctn_scatter_add_at(const char *at, ctn_tensor *x, ctn_tensor *index,
                                       ctn_tensor *src, int64_t axis);
#define ctn_scatter_add(...) ctn_scatter_add_at(CTN_HERE, __VA_ARGS__)

/* Rows of the table. table (V,D), index (...) -> (...,D). Errors: ESHAPE, EDTYPE; EARG. */
CTN_API ctn_tensor *ctn_embedding_at(const char *at, ctn_tensor *table, ctn_tensor *index);
#define ctn_embedding(...) ctn_embedding_at(CTN_HERE, __VA_ARGS__)

/* ---- cutting and joining --------------------------------------------------------------------- */

/* n tensors (1 to CTN_MAX_IN) one after another along the axis. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_concat_at(const char *at, int n, ctn_tensor *const *x, int64_t axis);
#define ctn_concat(...) ctn_concat_at(CTN_HERE, __VA_ARGS__)

/* n tensors of one shape along a new axis, which is `axis` of the result. Errors: ESHAPE,
 * EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_stack_at(const char *at, int n, ctn_tensor *const *x, int64_t axis);
#define ctn_stack(...) ctn_stack_at(CTN_HERE, __VA_ARGS__)

/* n pieces (1 to CTN_MAX_OUT) of the given sizes along the axis, into out[n]; the sizes fill the
 * axis. On an error all are NULL. Errors: ESHAPE, EARG. */
CTN_API ctn_status ctn_split_at(const char *at, ctn_tensor *x, int64_t axis, int n,
                                const int64_t *sizes, ctn_tensor **out);
#define ctn_split(...) ctn_split_at(CTN_HERE, __VA_ARGS__)

/* length elements along the axis from start on; a negative start counts from the end. start may
 * change from step to step without a new plan. Errors: ESHAPE; EARG for a start that does not
 * fit, when the step runs. */
CTN_API ctn_tensor *ctn_slice_at(const char *at, ctn_tensor *x, int64_t axis, int64_t start,
                                 int64_t length);
#define ctn_slice(...) ctn_slice_at(CTN_HERE, __VA_ARGS__)

/* before[i] and after[i] times value around dimension i; NULL: none. The value may change from
 * step to step. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_pad_at(const char *at, ctn_tensor *x, const int64_t *before,
                               const int64_t *after, double value);
#define ctn_pad(...) ctn_pad_at(CTN_HERE, __VA_ARGS__)

/* x (...,R,C) with zeros where c > r + diagonal. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_tril_at(const char *at, ctn_tensor *x, int64_t diagonal);
#define ctn_tril(...) ctn_tril_at(CTN_HERE, __VA_ARGS__)

/* A dimension of length 1 taken away, or put in so that it is `axis` of the result. Errors:
 * ESHAPE. */
CTN_API ctn_tensor *ctn_squeeze_at(const char *at, ctn_tensor *x, int64_t axis);
#define ctn_squeeze(...) ctn_squeeze_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_unsqueeze_at(const char *at, ctn_tensor *x, int64_t axis);
#define ctn_unsqueeze(...) ctn_unsqueeze_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
