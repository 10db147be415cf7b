/* SPDX-License-Identifier: Apache-2.0
 *
 * sub: y = a - b with broadcasting. Gradients: gy and -gy, summed over what was broadcast.
 */
#include "ops/ops.h"

#define SUB(x, z) ((x) - (z))

CTN__CHEAP_KERNEL(sub, CTN__CHEAP_SUB)
{
    CTN__MAP2(a, SUB, SUB);
}

static ctn_status sub_grad(const ctn_grad_args *a)
{
    if (a->need[0]) {
        a->gin[0] = ctn__sum_to(a->at, a->gout[0], &a->in[0]->d);
        if (!a->gin[0]) return ctn_error_status();
    }
    if (a->need[1]) { /* summed first: there is less to negate */
        a->gin[1] = ctn_neg_at(a->at, ctn__sum_to(a->at, a->gout[0], &a->in[1]->d));
        if (!a->gin[1]) return ctn_error_status();
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
    .inplace = 3,
    .infer = ctn__infer_broadcast,
    .grad = sub_grad,
    .run = sub_run,
    .tiles = &sub_tiles,
};

ctn_tensor *ctn_sub_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return ctn__binary(at, &ctn__op_sub, a, b);
}
