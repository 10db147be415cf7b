/* SPDX-License-Identifier: Apache-2.0
 *
 * sub: y = a - b with broadcasting. Gradients: gy and -gy, summed over the broadcast dimensions.
 */
#include "ops/ops.h"

#define SUB(x, z) ((x) - (z))

CTN__CHEAP_KERNEL(sub, CTN__CHEAP_SUB)
{
    CTN__MAP2(a, SUB, SUB);
}

static ctn_status sub_grad(const ctn_grad_args *a)
{
    if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, ctn__sum_to(a->at, a->gout[0], &a->in[0]->d)));
    if (a->need[1]) { /* summed first, so that there is less to negate */
        ctn_tensor *g = ctn__sum_to(a->at, a->gout[0], &a->in[1]->d);
        CTN_TRY(ctn__grad_to(a, 1, ctn_neg_at(a->at, g)));
    }
    return CTN_OK;
}

ctn_op ctn__op_sub = {
    .struct_size = sizeof(ctn_op),
    .name = "sub",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = -1,
    .inplace = CTN_OPERANDS(2),
    .infer = ctn__infer_broadcast,
    .grad = sub_grad,
    .run = sub_run,
    .tiles = &sub_tiles,
};

ctn_tensor *ctn_sub_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return ctn__binary(at, &ctn__op_sub, a, b);
}
