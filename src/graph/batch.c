/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns a loader's batch into input tensors. This is the only file in which data and graph meet.
 */
#include <catena/data.h>

#include "graph/graph.h"

ctn_tensor *ctn_batch_tensor_at(const char *at, ctn_context *ctx, const ctn_batch *b, int field)
{
    if (!b || field < 0 || field >= b->fields) {
        ctn_fail(CTN_EARG, "batch_tensor: no field %d, the batch has %d fields (%s)", field,
                 b ? b->fields : 0, at);
        return NULL;
    }
    const ctn_field *f = &b->field[field];
    if (!f->channels_last || f->ndim < 3)
        return ctn_input_at(at, ctx, b->data[field], f->dtype, f->ndim, f->shape);
    /* (N,C,H,W) stored as (N,H,W,C), likewise for any number of spatial dimensions */
    int64_t stride[CTN_MAX_DIMS] = {[1] = 1}, step = f->shape[1];
    for (int d = f->ndim - 1; d > 1; d--) {
        stride[d] = step;
        step *= f->shape[d];
    }
    stride[0] = step;
    return ctn_input_strided_at(at, ctx, b->data[field], f->dtype, f->ndim, f->shape, stride);
}
