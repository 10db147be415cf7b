/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions, sorting, indexing, slicing, joining and rearranging. Indices are i64 or i32 and count
 * from 0; an index out of range gives EARG when the step runs. Included by ops.h, which says what
 * all ops have in common.
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

/* The product of the elements; 1 if there are none. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_prod_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                                int keep);
#define ctn_prod(...) ctn_prod_at(CTN_HERE, __VA_ARGS__)

/* log(sum of exp(x)) without overflow. Errors: ESHAPE (also if there are no elements), EDTYPE. */
CTN_API ctn_tensor *ctn_logsumexp_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                                     int keep);
#define ctn_logsumexp(...) ctn_logsumexp_at(CTN_HERE, __VA_ARGS__)

/* The variance: the sum of (x - mean)^2 divided by (elements - correction). correction 0 is the
 * variance of the elements themselves, 1 the unbiased estimate from a sample, which is NaN
 * for one element. std is its square root, with gradient 0 where it is 0. Errors: ESHAPE,
 * EDTYPE. */
CTN_API ctn_tensor *ctn_variance_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                                    int correction, int keep);
#define ctn_variance(...) ctn_variance_at(CTN_HERE, __VA_ARGS__)
CTN_API ctn_tensor *ctn_std_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                               int correction, int keep);
#define ctn_std(...) ctn_std_at(CTN_HERE, __VA_ARGS__)

/* The p-norm: the sum of |x| (p = 1), the square root of the sum of x^2 (p = 2), or the largest
 * |x| (p = INFINITY). The gradient at x = 0 is 0. Errors: ESHAPE (also if there are no elements
 * and p = INFINITY), EDTYPE, EARG for another p. */
CTN_API ctn_tensor *ctn_norm_at(const char *at, ctn_tensor *x, double p, int naxes,
                                const int64_t *axes, int keep);
#define ctn_norm(...) ctn_norm_at(CTN_HERE, __VA_ARGS__)

/* The weighted mean: sum of x weights / sum of weights. weights may be NULL, which means all 1;
 * they broadcast to the shape of x. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_average_at(const char *at, ctn_tensor *x, ctn_tensor *weights, int naxes,
                                   const int64_t *axes, int keep);
#define ctn_average(...) ctn_average_at(CTN_HERE, __VA_ARGS__)

/* ---- along one axis ------------------------------------------------------------------------- */

/* Index (i64) of the largest element along the axis, the first among equals. The axis is
 * removed. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_argmax_at(const char *at, ctn_tensor *x, int64_t axis);
#define ctn_argmax(...) ctn_argmax_at(CTN_HERE, __VA_ARGS__)

/* Index (i64) of the smallest element along the axis, the first among equals; NaN counts as the
 * smallest. The axis is removed. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_argmin_at(const char *at, ctn_tensor *x, int64_t axis);
#define ctn_argmin(...) ctn_argmin_at(CTN_HERE, __VA_ARGS__)

/* The k largest elements along the axis in descending order, and their indices (i64); equal
 * elements keep their order. values and indices may be NULL. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_status ctn_topk_at(const char *at, ctn_tensor *x, int64_t k, int64_t axis,
                               ctn_tensor **values, ctn_tensor **indices);
#define ctn_topk(...) ctn_topk_at(CTN_HERE, __VA_ARGS__)

/* y_i = x_0 + ... + x_i along the axis; with reverse, x_i + ... + x_last. Errors: ESHAPE,
 * EDTYPE. */
CTN_API ctn_tensor *ctn_cumsum_at(const char *at, ctn_tensor *x, int64_t axis, int reverse);
#define ctn_cumsum(...) ctn_cumsum_at(CTN_HERE, __VA_ARGS__)

/* The elements sorted along the axis, ascending or, with descending = 1, descending, and the index
 * (i64) that each of them has in x. Equal elements keep their order; NaN comes last in both.
 * values and indices may be NULL. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_status ctn_sort_at(const char *at, ctn_tensor *x, int64_t axis, int descending,
                               ctn_tensor **values, ctn_tensor **indices);
#define ctn_sort(...) ctn_sort_at(CTN_HERE, __VA_ARGS__)
/* The indices alone. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_argsort_at(const char *at, ctn_tensor *x, int64_t axis, int descending);
#define ctn_argsort(...) ctn_argsort_at(CTN_HERE, __VA_ARGS__)

/* y_i = x_0 ... x_i along the axis; with reverse, x_i ... x_last. The gradient is also right
 * where elements are 0. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_cumprod_at(const char *at, ctn_tensor *x, int64_t axis, int reverse);
#define ctn_cumprod(...) ctn_cumprod_at(CTN_HERE, __VA_ARGS__)

/* y = x / max(n, eps), where n is the 2-norm of x along the axis. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_normalize_at(const char *at, ctn_tensor *x, int64_t axis, double eps);
#define ctn_normalize(...) ctn_normalize_at(CTN_HERE, __VA_ARGS__)

/* The sum of a b along the axis divided by the 2-norms of a and b, each at least eps. a and b
 * broadcast; the axis is removed. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_cosine_similarity_at(const char *at, ctn_tensor *a, ctn_tensor *b,
                                             int64_t axis, double eps);
#define ctn_cosine_similarity(...) ctn_cosine_similarity_at(CTN_HERE, __VA_ARGS__)

/* The cross-covariance of columns: x (N,I), y (N,J) -> (I,J). Element (i,j) is the mean over the
 * rows of (x_i - mean x_i) (y_j - mean y_j). Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_cross_covariance_at(const char *at, ctn_tensor *x, ctn_tensor *y);
#define ctn_cross_covariance(...) ctn_cross_covariance_at(CTN_HERE, __VA_ARGS__)

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

/* y[...] = x[...,t[...]]: one element of each row. x (...,C), t (...) -> (...). Errors: ESHAPE,
 * EDTYPE; EARG for an index out of range, when the step runs. */
CTN_API ctn_tensor *ctn_select_item_at(const char *at, ctn_tensor *x, ctn_tensor *t);
#define ctn_select_item(...) ctn_select_item_at(CTN_HERE, __VA_ARGS__)

/* The slices of x along the axis in another order: slice i of the result is slice index[i] of x.
 * index (n), where n is the length of the axis. Errors: ESHAPE, EDTYPE; EARG for an index out of
 * range, when the step runs. */
CTN_API ctn_tensor *ctn_permutate_at(const char *at, ctn_tensor *x, ctn_tensor *index,
                                     int64_t axis);
#define ctn_permutate(...) ctn_permutate_at(CTN_HERE, __VA_ARGS__)

/* y = value where mask (bool) is true, else x. mask is broadcast to the shape of x. value may
 * change from step to step. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_masked_fill_at(const char *at, ctn_tensor *x, ctn_tensor *mask,
                                       double value);
#define ctn_masked_fill(...) ctn_masked_fill_at(CTN_HERE, __VA_ARGS__)

/* ---- slicing and joining -------------------------------------------------------------------- */

/* Concatenate n tensors (at least 1) along the axis. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_concat_at(const char *at, int n, ctn_tensor *const *x, int64_t axis);
#define ctn_concat(...) ctn_concat_at(CTN_HERE, __VA_ARGS__)

/* Stack n tensors of the same shape along a new axis, which is `axis` of the result. Errors:
 * ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_stack_at(const char *at, int n, ctn_tensor *const *x, int64_t axis);
#define ctn_stack(...) ctn_stack_at(CTN_HERE, __VA_ARGS__)

/* Split x along the axis into n pieces (at least 1) of the given sizes, which must add up to the
 * length of the axis. On an error all out[i] are NULL. Errors: ESHAPE, EARG. */
CTN_API ctn_status ctn_split_at(const char *at, ctn_tensor *x, int64_t axis, int n,
                                const int64_t *sizes, ctn_tensor **out);
#define ctn_split(...) ctn_split_at(CTN_HERE, __VA_ARGS__)

/* `length` elements along the axis, beginning at start; a negative start counts from the end.
 * start may change from step to step without a new plan. Errors: ESHAPE; EARG for a start out
 * of range, when the step runs. */
CTN_API ctn_tensor *ctn_slice_at(const char *at, ctn_tensor *x, int64_t axis, int64_t start,
                                 int64_t length);
#define ctn_slice(...) ctn_slice_at(CTN_HERE, __VA_ARGS__)

/* Every stride-th of the elements along the axis: `length` elements at start, start + stride,
 * start + 2 stride and so on. stride may be negative, but not 0; a negative start counts from the
 * end. start may change from step to step without a new plan. Errors: ESHAPE; EARG for a start out
 * of range, when the step runs. */
CTN_API ctn_tensor *ctn_slice_step_at(const char *at, ctn_tensor *x, int64_t axis, int64_t start,
                                      int64_t length, int64_t stride);
#define ctn_slice_step(...) ctn_slice_step_at(CTN_HERE, __VA_ARGS__)

/* The elements of x, counted in row-major order, seen with other strides: y[i,j,...] is element
 * offset + i strides[0] + j strides[1] + ... of x. Strides count elements and may be negative or 0;
 * there are ndim of them. y is a copy; gradients of elements that are read several times add up.
 * Any type. Errors: ESHAPE if y reads outside of x. */
CTN_API ctn_tensor *ctn_as_strided_at(const char *at, ctn_tensor *x, int ndim, const int64_t *dims,
                                      const int64_t *strides, int64_t offset);
#define ctn_as_strided(...) ctn_as_strided_at(CTN_HERE, __VA_ARGS__)

/* Slice number `index` along the axis, which is removed. A negative index counts from the end. It
 * may change from step to step without a new plan. Errors: ESHAPE; EARG for an index out of range,
 * when the step runs. */
CTN_API ctn_tensor *ctn_select_at(const char *at, ctn_tensor *x, int64_t axis, int64_t index);
#define ctn_select(...) ctn_select_at(CTN_HERE, __VA_ARGS__)

/* All n slices along the axis, which is removed; n is its length. The reverse of stack. On an error
 * all out[i] are NULL. Errors: ESHAPE. */
CTN_API ctn_status ctn_separate_at(const char *at, ctn_tensor *x, int64_t axis, int n,
                                   ctn_tensor **out);
#define ctn_separate(...) ctn_separate_at(CTN_HERE, __VA_ARGS__)

/* Pad dimension i with before[i] elements in front and after[i] elements at the end, all equal to
 * value. before and after may be NULL: none. value may change from step to step. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_pad_at(const char *at, ctn_tensor *x, const int64_t *before,
                               const int64_t *after, double value);
#define ctn_pad(...) ctn_pad_at(CTN_HERE, __VA_ARGS__)

/* What padding contains, shown for two elements before and after a b c d. */
typedef enum {
    CTN_PAD_ZEROS = 0, /* 0 0 | a b c d | 0 0 */
    CTN_PAD_REFLECT,   /* c b | a b c d | c b */
    CTN_PAD_REPLICATE, /* a a | a b c d | d d */
    CTN_PAD_WRAP       /* c d | a b c d | a b */
} ctn_pad_mode;

/* Pad dimension i with before[i] elements in front and after[i] elements at the end, which the mode
 * takes from x. before and after may be NULL: none. Padding may be longer than x, which is then
 * reflected or repeated several times; only an empty dimension cannot be padded. Errors: ESHAPE,
 * EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_pad_by_at(const char *at, ctn_tensor *x, ctn_pad_mode mode,
                                  const int64_t *before, const int64_t *after);
#define ctn_pad_by(...) ctn_pad_by_at(CTN_HERE, __VA_ARGS__)

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

/* ---- rearranging ---------------------------------------------------------------------------- */

/* The elements in reverse order along the axes (naxes 0: all). Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_flip_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes);
#define ctn_flip(...) ctn_flip_at(CTN_HERE, __VA_ARGS__)

/* The elements moved by `shift` places along the axis, cyclically: y[i + shift] = x[i]. shift may
 * be negative, and may change from step to step without a new plan. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_roll_at(const char *at, ctn_tensor *x, int64_t axis, int64_t shift);
#define ctn_roll(...) ctn_roll_at(CTN_HERE, __VA_ARGS__)

/* Each element n times in a row along the axis: a b -> a a b b. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_repeat_at(const char *at, ctn_tensor *x, int64_t n, int64_t axis);
#define ctn_repeat(...) ctn_repeat_at(CTN_HERE, __VA_ARGS__)

/* The whole tensor repeated along its last `n` dimensions, dimension by dimension: a b -> a b a b.
 * If x has fewer than n dimensions, ones are added in front. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_tile_at(const char *at, ctn_tensor *x, int n, const int64_t *reps);
#define ctn_tile(...) ctn_tile_at(CTN_HERE, __VA_ARGS__)

/* Move axis `from` to position `to`; the other axes keep their order. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_moveaxis_at(const char *at, ctn_tensor *x, int64_t from, int64_t to);
#define ctn_moveaxis(...) ctn_moveaxis_at(CTN_HERE, __VA_ARGS__)
/* Exchange axes i and j. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_swapaxes_at(const char *at, ctn_tensor *x, int64_t i, int64_t j);
#define ctn_swapaxes(...) ctn_swapaxes_at(CTN_HERE, __VA_ARGS__)

/* The diagonal of the last two dimensions: y[...,i] = x[...,i,i + offset], or x[...,i - offset,i]
 * if offset is negative. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_diagonal_at(const char *at, ctn_tensor *x, int64_t offset);
#define ctn_diagonal(...) ctn_diagonal_at(CTN_HERE, __VA_ARGS__)
/* Square matrices of zeros with x (...,n) on that diagonal -> (...,m,m), m = n + |offset|. Errors:
 * ESHAPE. */
CTN_API ctn_tensor *ctn_diag_embed_at(const char *at, ctn_tensor *x, int64_t offset);
#define ctn_diag_embed(...) ctn_diag_embed_at(CTN_HERE, __VA_ARGS__)

/* ---- products ------------------------------------------------------------------------------- */

/* The sum of products that the equation describes, as in NumPy: "bij,bjk->bik" is a batched matrix
 * product. Each operand has one letter per dimension, in the order of x[0] to x[n-1]. Letters that
 * are missing after the arrow are summed over. A letter that is repeated within an operand stands
 * for its diagonal. "..." stands for any number of dimensions, which broadcast. Without an arrow,
 * the result has the dimensions of "..." and then the letters that occur once, in alphabetical
 * order. Operands are combined two at a time, from left to right. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_einsum_at(const char *at, const char *equation, int n,
                                  ctn_tensor *const *x);
#define ctn_einsum(...) ctn_einsum_at(CTN_HERE, __VA_ARGS__)

/* The sum of products over `naxes` pairs of axes, axes_a[i] of a with axes_b[i] of b. The result
 * has the other dimensions of a, then those of b; with naxes = 0 it is the outer product. Errors:
 * ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_tensordot_at(const char *at, ctn_tensor *a, ctn_tensor *b, int naxes,
                                     const int64_t *axes_a, const int64_t *axes_b);
#define ctn_tensordot(...) ctn_tensordot_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
