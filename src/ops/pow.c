/* SPDX-License-Identifier: Apache-2.0
 *
 * pow: y = a^b with broadcasting. Gradients, as PyTorch defines them at the edges:
 *   ga = gy b a^(b-1), 0 where b = 0
 *   gb = gy y log(a),  0 where a = 0 and b >= 0
 * The edges are masked in the arguments of the functions rather than in the result, so that no NaN
 * appears in higher derivatives either.
 */
#include <math.h>

#include "ops/common/special_fine.h"
#include "ops/ops.h"

CTN__KERNEL(pow)
{
    CTN__MAP2(a, ctn__powf, pow);
}

static ctn_tensor *constant(const ctn_grad_args *a, double v)
{
    return ctn_full_at(a->at, a->ctx, v, a->out[0]->d.dtype, CTN_SCALAR_SHAPE);
}

static ctn_status pow_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *p = a->in[0], *e = a->in[1], *g = a->gout[0], *zero = constant(a, 0),
               *one = constant(a, 1);
    if (a->need[0]) {
        ctn_tensor *e1 = ctn_where_at(at, ctn_equal_at(at, e, zero), one, ctn_shift_at(at, e, -1));
        ctn_tensor *d = ctn_mul_at(at, e, ctn_pow_at(at, p, e1));
        CTN_TRY(ctn__grad_to(a, 0, ctn__sum_to(at, ctn_mul_at(at, g, d), &p->d)));
    }
    if (a->need[1]) {
        ctn_tensor *edge =
            ctn_logical_and_at(at, ctn_equal_at(at, p, zero), ctn_greater_equal_at(at, e, zero));
        ctn_tensor *l = ctn_log_at(at, ctn_where_at(at, edge, one, p));
        ctn_tensor *d = ctn_mul_at(at, a->out[0], l);
        CTN_TRY(ctn__grad_to(a, 1, ctn__sum_to(at, ctn_mul_at(at, g, d), &e->d)));
    }
    return CTN_OK;
}

ctn_op ctn__op_pow = {
    .struct_size = sizeof(ctn_op),
    .name = "pow",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERANDS(2),
    .infer = ctn__infer_broadcast,
    .grad = pow_grad,
    .run = pow_run,
    .tiles = &pow_tiles,
};

ctn_tensor *ctn_pow_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return ctn__binary(at, &ctn__op_pow, a, b);
}
