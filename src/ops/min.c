/* SPDX-License-Identifier: Apache-2.0
 *
 * min over axes (none given: all), by the kernels of max, as is its gradient; a NaN is the result.
 */
#include "ops/reduce.h"

ctn_op ctn__op_min = {
    .struct_size = sizeof(ctn_op),
    .name = "min",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .grad_in = 1,
    .grad_out = 1,
    .infer = ctn__max_infer,
    .grad = ctn__max_grad,
    .run = ctn__max_run,
};

ctn_tensor *ctn_min_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes, int keep)
{
    return ctn__reduce_record(at, &ctn__op_min, CTN__R_MIN, x, naxes, axes, keep);
}
