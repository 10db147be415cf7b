/* SPDX-License-Identifier: Apache-2.0
 *
 * What reductions over axes (sum, mean, max, min, prod) share: attributes, the shape rule, and the
 * dimensions of the input split into kept and reduced ones. Adjacent dimensions of one kind are
 * merged where the strides allow it.
 */
#ifndef CTN_OPS_COMMON_REDUCE_H
#define CTN_OPS_COMMON_REDUCE_H

#include "ops/common/along.h"

enum { CTN__R_KIND, CTN__R_KEEP, CTN__R_AXIS0 }; /* attributes; no axes means all axes */
enum { CTN__R_SUM, CTN__R_MEAN, CTN__R_MAX, CTN__R_MIN, CTN__R_PROD, CTN__R_SQUARES };

typedef struct {
    ctn_desc kept, red;      /* each has at least one dimension, of length 1 if there is none */
    int64_t n, r;            /* number of results, and of terms of one result */
    int64_t last, last_step; /* length and stride of the innermost reduced dimension */
    int64_t C, outer;        /* length of the innermost kept dimension; n = outer * C */
    bool columns;            /* kept elements are contiguous in memory, reduced ones are not */
} ctn__reduce;
void ctn__reduce_split(ctn__reduce *s, const ctn_desc *x, const int64_t *attr, int nattr);
/* Element offset of position i among the first nd dimensions of d. */
int64_t ctn__reduce_offset(const ctn_desc *d, int nd, int64_t i);

ctn_status ctn__reduce_infer(ctn_infer_args *a);
/* Where rounding depends on the order of terms: asks for row-major operands in f64, whose results
 * are the same in every mode. A view is read as it is in f32. */
void ctn__reduce_in_order(ctn_prepare_args *a);
/* g, which has the result's shape, reshaped as if the axes had been kept. */
ctn_tensor *ctn__reduce_kept(const ctn_grad_args *a, ctn_tensor *g);
ctn_tensor *ctn__reduce_record(const char *at, ctn_op *op, int64_t kind, ctn_tensor *x, int naxes,
                               const int64_t *axes, int keep);

/* The kernels of sum and mean (sum.c) and of max and min (max.c). */
ctn_status ctn__sum_prepare(ctn_prepare_args *a);
ctn_status ctn__sum_run(const ctn_run_args *a);
ctn_status ctn__max_run(const ctn_run_args *a);
ctn_status ctn__max_infer(ctn_infer_args *a);
ctn_status ctn__max_grad(const ctn_grad_args *a);

#endif
