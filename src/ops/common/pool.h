/* SPDX-License-Identifier: Apache-2.0
 *
 * What ops on spatial dimensions share: attributes with the sizes of both input and output, so
 * that an op and its gradient have the same list; shape rules; and the kernels of the linear
 * ones (engine/pool.h).
 */
#ifndef CTN_OPS_COMMON_POOL_H
#define CTN_OPS_COMMON_POOL_H

#include "engine/pool.h"
#include "ops/ops.h"

/* Attributes, three of each. With fewer spatial dimensions the first ones are 1 (padding: 0). */
enum {
    CTN__P_IN,
    CTN__P_OUT = CTN__P_IN + CTN_MAX_SPATIAL,
    CTN__P_SIZES = CTN__P_OUT + CTN_MAX_SPATIAL, /* an op's own attributes begin here */
    CTN__P_KERNEL = CTN__P_SIZES,
    CTN__P_STRIDE = CTN__P_KERNEL + CTN_MAX_SPATIAL,
    CTN__P_PAD = CTN__P_STRIDE + CTN_MAX_SPATIAL,
    CTN__P_WINDOWS = CTN__P_PAD + CTN_MAX_SPATIAL
};
#define CTN__P_SIZE_NAMES "in 0", "in 1", "in 2", "out 0", "out 1", "out 2"
#define CTN__P_WINDOW_NAMES                                                                   \
    "kernel 0", "kernel 1", "kernel 2", "stride 0", "stride 1", "stride 2", "pad 0", "pad 1", \
        "pad 2"

/* (N,C,in...) -> (N,C,out...), and the reverse for gradients. */
ctn_status ctn__pool_infer(ctn_infer_args *a);
ctn_status ctn__pool_grad_infer(ctn_infer_args *a);

/* Set the sizes in attr; the result has the n spatial sizes `size`. Fails unless x has 1 to 3
 * spatial dimensions, none of them empty. */
ctn_status ctn__pool_sizes(const char *who, const char *at, const ctn_tensor *x, int n,
                           const int64_t *size, int64_t *attr);
/* Set all CTN__P_WINDOWS attributes from the options. */
ctn_status ctn__pool_windows(const char *who, const char *at, const ctn_tensor *x,
                             const ctn_pool_opt *opt, int64_t *attr);

/* outer and inner (engine/pool.h) of tensors that are all row-major or all channels-last. */
void ctn__pool_layout(int n, const ctn_desc *const *d, int64_t *outer, int64_t *inner);
/* What the structs of a linear op (x) -> y and of its transpose have in common. */
#define CTN__SAMPLE_OP(op, attributes)                                                       \
    .struct_size = sizeof(ctn_op), .name = (op), .nin = 1, .nout = 1, .order = -1,           \
    .spatial_in = CTN_OPERAND(0), .spatial_out = CTN_OPERAND(0), .attr_names = (attributes), \
    .run = ctn__sample_run
/* prepare of a linear op (x) -> y, or of its transpose; its run is ctn__sample_run. */
ctn_status ctn__sample_prepare(ctn_prepare_args *a, ctn__taps_rule *rule, bool transposed);
ctn_status ctn__sample_run(const ctn_run_args *a);
/* grad of a linear op; `with` is its transpose, which has the same attributes. */
ctn_status ctn__sample_grad(const ctn_grad_args *a, ctn_op *with);

#endif
