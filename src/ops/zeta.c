/* SPDX-License-Identifier: Apache-2.0
 *
 * zeta: the Hurwitz zeta function, y = the sum of (q + k)^-x over k = 0, 1, ..., with broadcasting.
 * Gradient: gq = -gy x zeta(x + 1, q). The derivative by x is not known in terms of such functions.
 */
#include "ops/common/special.h"
#include "ops/ops.h"

#define AT(x, q) ctn__zeta((double)(x), (double)(q))

CTN__KERNEL(zeta)
{
    CTN__MAP2(a, AT, AT);
}

static ctn_status zeta_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *x = a->in[0], *q = a->in[1];
    if (a->need[0])
        return ctn_fail(CTN_EGRAD, "zeta: there is no gradient by x, only by q (%s)", at);
    if (!a->need[1]) return CTN_OK;
    ctn_tensor *d = ctn_mul_at(at, ctn_neg_at(at, x), ctn_zeta_at(at, ctn_shift_at(at, x, 1), q));
    return ctn__grad_to(a, 1, ctn__sum_to(at, ctn_mul_at(at, a->gout[0], d), &q->d));
}

ctn_op ctn__op_zeta = {
    .struct_size = sizeof(ctn_op),
    .name = "zeta",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .inplace = CTN_OPERANDS(2),
    .infer = ctn__infer_broadcast,
    .grad = zeta_grad,
    .run = zeta_run,
    .tiles = &zeta_tiles,
};

ctn_tensor *ctn_zeta_at(const char *at, ctn_tensor *x, ctn_tensor *q)
{
    return ctn__binary(at, &ctn__op_zeta, x, q);
}
