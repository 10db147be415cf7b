/* SPDX-License-Identifier: Apache-2.0
 *
 * min over axes (no axes: all). If any element is NaN, so is the result. The kernels and the
 * gradient are those of max.
 */
#include "ops/common/reduce.h"

ctn_op ctn__op_min = {
    .struct_size = sizeof(ctn_op),
    .name = "min",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .grad_in = CTN_OPERAND(0),
    .grad_out = CTN_OPERAND(0),
    .infer = ctn__max_infer,
    .grad = ctn__max_grad,
    .run = ctn__max_run,
};

ctn_tensor *ctn_min_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes, int keep)
{
    return ctn__reduce_record(at, &ctn__op_min, CTN__R_MIN, x, naxes, axes, keep);
}
