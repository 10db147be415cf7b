/* SPDX-License-Identifier: Apache-2.0
 *
 * full: a tensor filled with one value. The value is a scalar of the plan, so it may change from
 * step to step. No inputs, no gradient.
 */
#include "ops/ops.h"

enum { DTYPE, NDIM, DIM0 }; /* attributes */

static ctn_status full_infer(ctn_infer_args *a)
{
    return ctn__desc_set(&a->out[0], a->name, (ctn_dtype)a->attr[DTYPE], (int)a->attr[NDIM],
                         a->attr + DIM0);
}

CTN__KERNEL(full)
{
    const ctn_dtype t = a->dout[0].dtype;
    if (t == CTN_F32) {
        const float v = (float)a->scalar[0];
        float *y = a->out[0];
        for (int64_t i = 0; i < n; i++) y[i] = v;
    } else {
        for (int64_t i = 0; i < n; i++) ctn__elem_set(a->out[0], t, i, a->scalar[0]);
    }
}

ctn_op ctn__op_full = {
    .struct_size = sizeof(ctn_op),
    .name = "full",
    .nin = 0,
    .nout = 1,
    .order = 0,
    .infer = full_infer,
    .run = full_run,
};

ctn_tensor *ctn_full_at(const char *at, ctn_context *ctx, double value, ctn_dtype dtype, int ndim,
                        const int64_t *dims)
{
    int64_t attr[DIM0 + CTN_MAX_DIMS] = {dtype, ndim};
    if (ndim < 0 || ndim > CTN_MAX_DIMS) {
        ctn_fail(CTN_ESHAPE, "full: got %d dimensions, expected 0 to %d (%s)", ndim, CTN_MAX_DIMS,
                 at);
        return NULL;
    }
    if (ndim > 0) memcpy(attr + DIM0, dims, (size_t)ndim * sizeof *dims);
    return ctn__apply1(at, ctx, &ctn__op_full, 0, NULL, DIM0 + ndim, attr, 1, &CTN_CONST(value));
}
