/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops for graphs, point clouds and other sets of unequal size: rows selected by index, sums over
 * segments, and products with sparse matrices. Indices are i64 or i32 and count from 0; an index
 * out of range gives EARG when the step runs. Results do not depend on the thread count: terms are
 * added in the order of their positions. Included by ops.h, which says what all ops have in common.
 */
#ifndef CATENA_OPS_GRAPH_H
#define CATENA_OPS_GRAPH_H

#include <catena/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rows by index -------------------------------------------------------------------------- */

/* y[i,k,j] = x[i,index[k],j] (shown for axis 1 of 3). x of any type, index (K). Errors: ESHAPE,
 * EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_index_select_at(const char *at, ctn_tensor *x, ctn_tensor *index,
                                        int64_t axis);
#define ctn_index_select(...) ctn_index_select_at(CTN_HERE, __VA_ARGS__)

/* y = x plus src[i,k,j] at y[i,index[k],j] (shown for axis 1 of 3); what has the same index is
 * added up. index (K); src has the shape of x, except that it is K long along the axis. Errors:
 * ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_index_add_at(const char *at, ctn_tensor *x, ctn_tensor *index,
                                     ctn_tensor *src, int64_t axis);
#define ctn_index_add(...) ctn_index_add_at(CTN_HERE, __VA_ARGS__)

/* y = x, then y[i,index[i,j,k],k] = src[i,j,k] for every position of index (shown for axis 1 of 3).
 * Where several positions have the same index, the last one along the axis remains, and only this
 * one has a gradient. Shapes as in ctn_scatter_add. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_scatter_at(const char *at, ctn_tensor *x, ctn_tensor *index,
                                   ctn_tensor *src, int64_t axis);
#define ctn_scatter(...) ctn_scatter_at(CTN_HERE, __VA_ARGS__)

/* ---- segments ------------------------------------------------------------------------------- */

/* Row e of x belongs to segment ids[e], in any order. x (E,...), ids (E) from 0 to n - 1 ->
 * (n,...). The result is 0 for a segment without rows. Several ops with the same ids sort them
 * only once in a step. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_segment_sum_at(const char *at, ctn_tensor *x, ctn_tensor *ids, int64_t n);
#define ctn_segment_sum(...) ctn_segment_sum_at(CTN_HERE, __VA_ARGS__)
/* The mean of the rows of each segment. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_segment_mean_at(const char *at, ctn_tensor *x, ctn_tensor *ids, int64_t n);
#define ctn_segment_mean(...) ctn_segment_mean_at(CTN_HERE, __VA_ARGS__)
/* The largest element of each segment in each column, NaN if there is one. Elements that are equal
 * to the result share the gradient evenly. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_segment_max_at(const char *at, ctn_tensor *x, ctn_tensor *ids, int64_t n);
#define ctn_segment_max(...) ctn_segment_max_at(CTN_HERE, __VA_ARGS__)
/* Softmax over the rows of each segment, for each column by itself. x (E,...), ids (E) ->
 * (E,...). Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_segment_softmax_at(const char *at, ctn_tensor *x, ctn_tensor *ids,
                                           int64_t n);
#define ctn_segment_softmax(...) ctn_segment_softmax_at(CTN_HERE, __VA_ARGS__)

/* Sort positions by id: those with id v are order[offsets[v]] to order[offsets[v+1] - 1], in
 * ascending order. ids (E) from 0 to segments - 1 -> offsets (segments+1), order (E), i64. With the
 * order of the targets of edges, ctn_spmm(offsets, ctn_index_select(sources, order, 0), NULL, x)
 * adds up x over the sources of each target. offsets and order may be NULL. Has no gradient.
 * Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_status ctn_group_ids_at(const char *at, ctn_tensor *ids, int64_t segments,
                                    ctn_tensor **offsets, ctn_tensor **order);
#define ctn_group_ids(...) ctn_group_ids_at(CTN_HERE, __VA_ARGS__)

/* ---- sparse matrices ------------------------------------------------------------------------ */

/* Sparse times dense: y[r] = sum of value[k] x[col[k]] over k from rowptr[r] to rowptr[r+1] - 1.
 * The matrix is in compressed rows (CSR): rowptr (R+1) begins with 0, does not descend and ends
 * with K; col (K) in any order, also repeated; value (K), or NULL: all 1. x (C,...) -> (R,...).
 * Blocks of columns, such as the heads of attention, may have values of their own: value (K,H),
 * x (C,H,...). Gradients for value and x. Errors: ESHAPE, EDTYPE, EARG. */
CTN_API ctn_tensor *ctn_spmm_at(const char *at, ctn_tensor *rowptr, ctn_tensor *col,
                                ctn_tensor *value, ctn_tensor *x);
#define ctn_spmm(...) ctn_spmm_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
