/* SPDX-License-Identifier: Apache-2.0
 *
 * transpose: the dimensions in another order; axis axes[i] of the input becomes axis i. A view.
 * Gradient: transpose by the inverse order.
 */
#include "ops/ops.h"

static ctn_status transpose_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    unsigned seen = 0;
    char t[128];
    bool ok = a->nattr == x->ndim;
    for (int i = 0; ok && i < a->nattr; i++) {
        int k = ctn__axis(x->ndim, a->attr[i]);
        ok = k >= 0 && !(seen >> k & 1);
        if (!ok) break;
        seen |= 1u << k;
        a->out[0].dim[i] = x->dim[k];
    }
    if (!ok)
        return ctn_fail(CTN_ESHAPE,
                        "transpose: the axes are not a permutation of the %d axes of %s", x->ndim,
                        ctn__shape_text(x, t, sizeof t));
    a->out[0].dtype = x->dtype;
    a->out[0].ndim = x->ndim;
    return CTN_OK;
}

static ctn_status transpose_prepare(ctn_prepare_args *a)
{
    for (int i = 0; i < a->nattr; i++)
        a->dout[0].stride[i] = a->din[0].stride[ctn__axis(a->din[0].ndim, a->attr[i])];
    return CTN_OK;
}

static ctn_status transpose_grad(const ctn_grad_args *a)
{
    int64_t inverse[CTN_MAX_DIMS];
    for (int i = 0; i < a->nattr; i++) inverse[ctn__axis(a->nattr, a->attr[i])] = i;
    return ctn__grad_to(a, 0, ctn_transpose_at(a->at, a->gout[0], a->nattr, inverse));
}

ctn_op ctn__op_transpose = {
    .struct_size = sizeof(ctn_op),
    .name = "transpose",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_VIEW | CTN_OP_STRIDED,
    .order = -1,
    .infer = transpose_infer,
    .grad = transpose_grad,
    .prepare = transpose_prepare,
};

ctn_tensor *ctn_transpose_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes)
{
    return ctn__apply1(at, NULL, &ctn__op_transpose, 1, &x, naxes, axes, 0, NULL);
}
