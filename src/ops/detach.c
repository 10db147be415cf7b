/* SPDX-License-Identifier: Apache-2.0
 *
 * detach: the same values without their history. A view; no gradient flows through.
 */
#include "ops/ops.h"

static ctn_status detach_infer(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    return CTN_OK;
}

static ctn_status detach_prepare(ctn_prepare_args *a)
{
    a->dout[0] = a->din[0];
    return CTN_OK;
}

ctn_op ctn__op_detach = {
    .struct_size = sizeof(ctn_op),
    .name = "detach",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_VIEW | CTN_OP_STRIDED,
    .order = 0,
    .infer = detach_infer,
    .prepare = detach_prepare,
};

ctn_tensor *ctn_detach_at(const char *at, ctn_tensor *t)
{
    return ctn__unary(at, &ctn__op_detach, t);
}
