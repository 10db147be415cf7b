/* SPDX-License-Identifier: Apache-2.0
 *
 * broadcast_to: the input repeated to a larger shape by the usual rule, which aligns the last
 * dimensions. A view with strides of 0. Gradient: the sum over the repeated dimensions.
 */
#include "ops/ops.h"

static ctn_status broadcast_to_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    ctn_desc to = {0}, both = {0};
    char tx[128], ty[128];
    CTN_TRY(ctn__desc_set(&to, "broadcast_to", x->dtype, a->nattr, a->attr));
    CTN_TRY(ctn__broadcast(&both, a->name, x, &to));
    if (!ctn__same_shape(&both, &to))
        return ctn_fail(CTN_ESHAPE, "broadcast_to: cannot broadcast %s to %s",
                        ctn__shape_text(x, tx, sizeof tx), ctn__shape_text(&to, ty, sizeof ty));
    a->out[0] = to;
    return CTN_OK;
}

static ctn_status broadcast_to_prepare(ctn_prepare_args *a)
{
    a->dout[0] = ctn__broadcast_view(&a->din[0], &a->dout[0]);
    return CTN_OK;
}

static ctn_status broadcast_to_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn__sum_to(a->at, a->gout[0], &a->in[0]->d));
}

ctn_op ctn__op_broadcast_to = {
    .struct_size = sizeof(ctn_op),
    .name = "broadcast_to",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_VIEW | CTN_OP_STRIDED,
    .order = -1,
    .infer = broadcast_to_infer,
    .grad = broadcast_to_grad,
    .prepare = broadcast_to_prepare,
};

ctn_tensor *ctn_broadcast_to_at(const char *at, ctn_tensor *x, int ndim, const int64_t *dims)
{
    return ctn__apply1(at, NULL, &ctn__op_broadcast_to, 1, &x, ndim, dims, 0, NULL);
}
