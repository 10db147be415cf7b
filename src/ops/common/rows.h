/* SPDX-License-Identifier: Apache-2.0
 *
 * What ops on rows share: copies of rows by index, and reductions over the rows of each segment.
 * Segment v has the terms offsets[v] to offsets[v+1] - 1, and term k is row row[k] of x, times
 * weight[k] if there are weights. That is a sparse matrix in compressed rows; ids that were sorted
 * by group_ids are one too.
 *
 * A thread owns whole segments and combines their terms in order, so results do not depend on the
 * thread count. f32 sums of long segments are collected in double.
 */
#ifndef CTN_OPS_COMMON_ROWS_H
#define CTN_OPS_COMMON_ROWS_H

#include "ops/common/along.h"

typedef enum { CTN__ROWS_SUM, CTN__ROWS_MAX } ctn__rows_kind;

typedef struct {
    ctn__rows_kind kind;
    ctn_dtype dtype;           /* of x, y, weight and base: f32 or f64 */
    const void *offsets, *row; /* (n+1) and (terms) */
    ctn_dtype offset_type, row_type;
    int64_t n, terms, outer; /* segments, terms, and arrays (rows,D) in a row */
    int64_t rows, D;         /* rows and columns of x */
    const void *x;           /* (outer,rows,D) */
    const void *weight;      /* (terms,D/width) or NULL */
    int64_t width;           /* adjacent columns with the same weight; D without weights */
    const void *base;        /* (outer,n,D), added to the sums; NULL: none; may be y */
    void *y;                 /* (outer,n,D) */
    int threads;
} ctn__rows;
void ctn__rows_reduce(const ctn__rows *r);

/* Call fn for ranges of segments with about equal work, which together are all n, in parallel. */
typedef void ctn__range_fn(const void *user, int64_t first, int64_t end);
void ctn__rows_share(const void *offsets, ctn_dtype t, int64_t n, int threads, ctn__range_fn *fn,
                     const void *user);

/* run of ops with the inputs x and index: y = the slices of x along the axis. */
ctn_status ctn__select_run(const char *op, const ctn_run_args *a, int axis);

/* Recorded calls: group_ids, and the sum over segments along any axis. base may be NULL. */
ctn_status ctn__group_record(const char *at, ctn_tensor *ids, int64_t n, ctn_tensor *out[2]);
ctn_tensor *ctn__segment_sum_along(const char *at, ctn_tensor *x, ctn_tensor *ids, int64_t n,
                                   int64_t axis, ctn_tensor *base);
/* Record op with the inputs x, ids, offsets, order. */
ctn_tensor *ctn__segment_record(const char *at, ctn_op *op, ctn_tensor *x, ctn_tensor *ids,
                                int64_t n);
/* infer of such an op with the attribute axis: checks the inputs. */
ctn_status ctn__infer_segments(const ctn_infer_args *a, int64_t axis_attr, int *axis);

#endif
