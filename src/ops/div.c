/* SPDX-License-Identifier: Apache-2.0
 *
 * div: y = a / b with broadcasting. Gradients: ga = gy / b, gb = -y gy / b, summed over the
 * broadcast dimensions.
 */
#include "ops/ops.h"

#define DIV(x, z) ((x) / (z))

CTN__KERNEL(div)
{
    CTN__MAP2(a, DIV, DIV);
}

static ctn_status div_grad(const ctn_grad_args *a)
{
    ctn_tensor *q = ctn_div_at(a->at, a->gout[0], a->in[1]);
    if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, ctn__sum_to(a->at, q, &a->in[0]->d)));
    if (a->need[1]) {
        ctn_tensor *g = ctn__sum_to(a->at, ctn_mul_at(a->at, q, a->out[0]), &a->in[1]->d);
        CTN_TRY(ctn__grad_to(a, 1, ctn_neg_at(a->at, g)));
    }
    return CTN_OK;
}

ctn_op ctn__op_div = {
    .struct_size = sizeof(ctn_op),
    .name = "div",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = CTN_OPERAND(1),
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERANDS(2),
    .infer = ctn__infer_broadcast,
    .grad = div_grad,
    .run = div_run,
    .tiles = &div_tiles,
};

ctn_tensor *ctn_div_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return ctn__binary(at, &ctn__op_div, a, b);
}
