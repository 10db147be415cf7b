/* SPDX-License-Identifier: Apache-2.0
 *
 * add: y = a + b with broadcasting. Gradient: gy, summed over the broadcast dimensions.
 */
#include "ops/ops.h"

#define ADD(x, z) ((x) + (z))

CTN__CHEAP_KERNEL(add, CTN__CHEAP_ADD)
{
    CTN__MAP2(a, ADD, ADD);
}

static ctn_status add_grad(const ctn_grad_args *a)
{
    for (int i = 0; i < 2; i++) {
        if (!a->need[i]) continue;
        CTN_TRY(ctn__grad_to(a, i, ctn__sum_to(a->at, a->gout[0], &a->in[i]->d)));
    }
    return CTN_OK;
}

ctn_op ctn__op_add = {
    .struct_size = sizeof(ctn_op),
    .name = "add",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = -1,
    .inplace = CTN_OPERANDS(2),
    .infer = ctn__infer_broadcast,
    .grad = add_grad,
    .run = add_run,
    .tiles = &add_tiles,
};

ctn_tensor *ctn_add_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return ctn__binary(at, &ctn__op_add, a, b);
}
