/* SPDX-License-Identifier: Apache-2.0
 *
 * maximum: y = max(a, b) with broadcasting; NaN wins. Gradient: gy goes to the larger input, and
 * half of it to each where they are equal.
 */
#include "ops/ops.h"

#define MAXIMUM(x, z) ((x) > (z) || (x) != (x) ? (x) : (z))

CTN__KERNEL(maximum)
{
    CTN__MAP2(a, MAXIMUM, MAXIMUM);
}

static ctn_status maximum_grad_of(const ctn_grad_args *a)
{
    for (int i = 0; i < 2; i++) {
        if (!a->need[i]) continue;
        ctn_tensor *share = ctn__binary(a->at, &ctn__op_maximum_grad, a->in[i], a->in[1 - i]);
        ctn_tensor *g = ctn_mul_at(a->at, a->gout[0], share);
        CTN_TRY(ctn__grad_to(a, i, ctn__sum_to(a->at, g, &a->in[i]->d)));
    }
    return CTN_OK;
}

ctn_op ctn__op_maximum = {
    .struct_size = sizeof(ctn_op),
    .name = "maximum",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = CTN_OPERANDS(2),
    .inplace = CTN_OPERANDS(2),
    .infer = ctn__infer_broadcast,
    .grad = maximum_grad_of,
    .run = maximum_run,
    .tiles = &maximum_tiles,
};

/* maximum_grad(a, b): the share of the gradient that a gets: 1, 1/2 or 0. It is constant almost
 * everywhere, so no gradient flows through it. minimum uses it with swapped inputs. */
#define SHARE(x, z) ((x) < (z) ? 0 : (x) == (z) ? half : one)

CTN__KERNEL(maximum_grad)
{
    if (a->dout[0].dtype == CTN_F32) {
        const float half = 0.5f, one = 1;
        CTN__MAP2_T(a, float, float, SHARE);
    } else {
        const double half = 0.5, one = 1;
        CTN__MAP2_T(a, double, double, SHARE);
    }
}

ctn_op ctn__op_maximum_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "maximum_grad",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = 0,
    .inplace = CTN_OPERANDS(2),
    .infer = ctn__infer_broadcast,
    .run = maximum_grad_run,
    .tiles = &maximum_grad_tiles,
};

ctn_tensor *ctn_maximum_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return ctn__binary(at, &ctn__op_maximum, a, b);
}
