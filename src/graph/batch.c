/* SPDX-License-Identifier: Apache-2.0
 *
 * A loader's batch as input tensors: the one place where data and graph meet.
 */
#include <catena/data.h>

#include "graph/graph.h"

ctn_tensor *ctn_batch_tensor_at(const char *at, ctn_context *ctx, const ctn_batch *b, int field)
{
    if (!b || field < 0 || field >= b->fields) {
        ctn_fail(CTN_EARG, "batch_tensor: field %d of a batch with %d (%s)", field,
                 b ? b->fields : 0, at);
        return NULL;
    }
    const ctn_field *f = &b->field[field];
    return ctn_input_at(at, ctx, b->data[field], f->dtype, f->ndim, f->shape);
}
