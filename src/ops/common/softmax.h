/* SPDX-License-Identifier: Apache-2.0
 *
 * What softmax.c and log_softmax.c share. Attribute 0 is the axis; a row-major tensor is viewed as
 * (outer, C, inner) around it.
 */
#ifndef CTN_OPS_COMMON_SOFTMAX_H
#define CTN_OPS_COMMON_SOFTMAX_H

#include "ops/common/loss.h"

typedef struct {
    int64_t outer, C, inner;
} ctn__axis_view;

ctn__axis_view ctn__axis_view_of(const ctn_desc *d, int64_t axis);
ctn_status ctn__softmax_infer(ctn_infer_args *a);

enum { CTN__COLS = 64 };

/* The kernels of an op in one type. row: one row of C contiguous elements (the axis is the
 * last). cols: n adjacent columns, at most CTN__COLS, each of C elements with stride `inner`. x
 * is input 0, z the last input, y output 0. */
typedef struct {
    void (*row)(const void *x, const void *z, void *y, int64_t C);
    void (*cols)(const void *x, const void *z, void *y, int64_t C, int64_t inner, int64_t n);
} ctn__axis_kernels;
/* Compute output 0; the threads share the rows or the groups of columns. */
ctn_status ctn__axis_run(const ctn_run_args *a, const ctn__axis_kernels *f32,
                         const ctn__axis_kernels *f64);

#endif
