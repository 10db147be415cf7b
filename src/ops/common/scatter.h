/* SPDX-License-Identifier: Apache-2.0
 *
 * What scatter and scatter_add share: the check of their shapes, and a loop that visits every
 * position of index. Only elements on the same line along the axis can go to the same place. A unit
 * of work owns whole lines of the result or, if there are fewer lines than threads, a part of each.
 * It visits the positions in order, so the result does not depend on the thread count.
 */
#ifndef CTN_OPS_COMMON_SCATTER_H
#define CTN_OPS_COMMON_SCATTER_H

#include "ops/common/along.h"

enum { CTN__SCATTER_LINES = 64 }; /* adjacent lines of a unit, processed together for the cache */

typedef struct {
    /* offset of each line */
    int64_t y[CTN__SCATTER_LINES], index[CTN__SCATTER_LINES], src[CTN__SCATTER_LINES];
    int64_t n;          /* lines */
    int64_t begin, end; /* the part of each line of y that the unit owns */
} ctn__scatter_unit;

/* Inputs x, index, src and the axis as attribute 0: y is like x. */
ctn_status ctn__infer_scatter(ctn_infer_args *a);
/* Call fn for all units of index in parallel; y and src are the arrays that its offsets are for. */
typedef void ctn__scatter_fn(const ctn_run_args *a, const ctn__scatter_unit *u, int axis);
void ctn__scatter_units(const ctn_run_args *a, const ctn_desc *y, const ctn_desc *index,
                        const ctn_desc *src, int axis, ctn__scatter_fn *fn);
/* run of both ops: check the indices, copy x to y unless they share memory, and call fn. */
ctn_status ctn__scatter_run(const char *op, const ctn_run_args *a, ctn__scatter_fn *fn);
/* In a grad: g, which has the shape of index, padded with zeros to that of src. */
ctn_tensor *ctn__scatter_pad(const ctn_grad_args *a, ctn_tensor *g);

#endif
