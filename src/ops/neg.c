/* SPDX-License-Identifier: Apache-2.0
 *
 * neg: y = -x. Gradient: gx = -gy.
 */
#include "ops/ops.h"

#define NEG(x) (-(x))

CTN__CHEAP_KERNEL(neg, CTN__CHEAP_NEG)
{
    CTN__MAP1(a, NEG, NEG);
}

static ctn_status neg_grad(const ctn_grad_args *a)
{
    a->gin[0] = ctn_neg_at(a->at, a->gout[0]);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_neg = {
    .struct_size = sizeof(ctn_op),
    .name = "neg",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .inplace = 1,
    .infer = ctn__infer_same,
    .grad = neg_grad,
    .run = neg_run,
    .tiles = &neg_tiles,
};

ctn_tensor *ctn_neg_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_neg, x);
}
