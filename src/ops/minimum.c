/* SPDX-License-Identifier: Apache-2.0
 *
 * minimum: y = min(a, b) with broadcasting; NaN wins. Gradient: gy goes to the smaller input,
 * and half of it to each where they are equal.
 */
#include "ops/ops.h"

#define MINIMUM(x, z) ((x) < (z) || (x) != (x) ? (x) : (z))

CTN__KERNEL(minimum)
{
    CTN__MAP2(a, MINIMUM, MINIMUM);
}

static ctn_status minimum_grad(const ctn_grad_args *a)
{
    for (int i = 0; i < 2; i++) {
        if (!a->need[i]) continue;
        ctn_tensor *share = ctn__binary(a->at, &ctn__op_maximum_grad, a->in[1 - i], a->in[i]);
        ctn_tensor *g = ctn_mul_at(a->at, a->gout[0], share);
        CTN_TRY(ctn__grad_to(a, i, ctn__sum_to(a->at, g, &a->in[i]->d)));
    }
    return CTN_OK;
}

ctn_op ctn__op_minimum = {
    .struct_size = sizeof(ctn_op),
    .name = "minimum",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = CTN_OPERANDS(2),
    .inplace = CTN_OPERANDS(2),
    .infer = ctn__infer_broadcast,
    .grad = minimum_grad,
    .run = minimum_run,
    .tiles = &minimum_tiles,
};

ctn_tensor *ctn_minimum_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return ctn__binary(at, &ctn__op_minimum, a, b);
}
