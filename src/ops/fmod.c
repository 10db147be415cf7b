/* SPDX-License-Identifier: Apache-2.0
 *
 * fmod: y = a - n b with broadcasting, where n is a / b rounded towards 0. Gradients: ga = gy,
 * gb = -gy n. n is found as (a - y) / b, which is an integer except for rounding.
 */
#include <math.h>

#include "ops/ops.h"

CTN__KERNEL(fmod)
{
    CTN__MAP2(a, fmodf, fmod);
}

static ctn_status fmod_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *p = a->in[0], *q = a->in[1], *g = a->gout[0];
    if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, ctn__sum_to(at, g, &p->d)));
    if (a->need[1]) {
        ctn_tensor *whole = ctn_div_at(at, ctn_sub_at(at, p, a->out[0]), q);
        ctn_tensor *gb = ctn_neg_at(at, ctn_mul_at(at, g, ctn_round_at(at, whole)));
        CTN_TRY(ctn__grad_to(a, 1, ctn__sum_to(at, gb, &q->d)));
    }
    return CTN_OK;
}

ctn_op ctn__op_fmod = {
    .struct_size = sizeof(ctn_op),
    .name = "fmod",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERANDS(2),
    .infer = ctn__infer_broadcast,
    .grad = fmod_grad,
    .run = fmod_run,
    .tiles = &fmod_tiles,
};

ctn_tensor *ctn_fmod_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return ctn__binary(at, &ctn__op_fmod, a, b);
}
