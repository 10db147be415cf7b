/* SPDX-License-Identifier: Apache-2.0
 *
 * arctan2: the angle of the point (x,y), with broadcasting. Gradients, with r^2 = x^2 + y^2:
 *   gy = g x / r^2,  gx = -g y / r^2,  both 0 at (0,0)
 */
#include "ops/common/trig.h"
#include "ops/ops.h"

CTN__KERNEL(arctan2)
{
    CTN__MAP2(a, ctn__arctan2f, atan2);
}

static ctn_status arctan2_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *y = a->in[0], *x = a->in[1];
    ctn_tensor *r2 = ctn_add_at(at, ctn_square_at(at, x), ctn_square_at(at, y));
    ctn_tensor *zero = ctn_full_at(at, a->ctx, 0, y->d.dtype, CTN_SCALAR_SHAPE);
    ctn_tensor *one = ctn_full_at(at, a->ctx, 1, y->d.dtype, CTN_SCALAR_SHAPE);
    ctn_tensor *some = ctn_where_at(at, ctn_equal_at(at, r2, zero), one, r2);
    ctn_tensor *g = ctn_div_at(at, a->gout[0], some);
    if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, ctn__sum_to(at, ctn_mul_at(at, g, x), &y->d)));
    if (a->need[1]) {
        ctn_tensor *gx = ctn_neg_at(at, ctn_mul_at(at, g, y));
        CTN_TRY(ctn__grad_to(a, 1, ctn__sum_to(at, gx, &x->d)));
    }
    return CTN_OK;
}

ctn_op ctn__op_arctan2 = {
    .struct_size = sizeof(ctn_op),
    .name = "arctan2",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .inplace = CTN_OPERANDS(2),
    .infer = ctn__infer_broadcast,
    .grad = arctan2_grad,
    .run = arctan2_run,
    .tiles = &arctan2_tiles,
};

ctn_tensor *ctn_arctan2_at(const char *at, ctn_tensor *y, ctn_tensor *x)
{
    return ctn__binary(at, &ctn__op_arctan2, y, x);
}
