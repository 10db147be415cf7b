/* SPDX-License-Identifier: Apache-2.0
 *
 * mul: y = a b with broadcasting. Gradients: ga = gy b, gb = gy a, summed over the broadcast
 * dimensions.
 */
#include "ops/ops.h"

#define MUL(x, z) ((x) * (z))

CTN__CHEAP_KERNEL(mul, CTN__CHEAP_MUL)
{
    CTN__MAP2(a, MUL, MUL);
}

static ctn_status mul_grad(const ctn_grad_args *a)
{
    for (int i = 0; i < 2; i++) {
        if (!a->need[i]) continue;
        ctn_tensor *g = ctn_mul_at(a->at, a->gout[0], a->in[1 - i]);
        CTN_TRY(ctn__grad_to(a, i, ctn__sum_to(a->at, g, &a->in[i]->d)));
    }
    return CTN_OK;
}

ctn_op ctn__op_mul = {
    .struct_size = sizeof(ctn_op),
    .name = "mul",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = CTN_OPERANDS(2),
    .inplace = CTN_OPERANDS(2),
    .infer = ctn__infer_broadcast,
    .grad = mul_grad,
    .run = mul_run,
    .tiles = &mul_tiles,
};

ctn_tensor *ctn_mul_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return ctn__binary(at, &ctn__op_mul, a, b);
}
