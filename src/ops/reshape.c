/* SPDX-License-Identifier: Apache-2.0
 *
 * reshape: the same row-major elements in another shape. One dimension may be -1, which is
 * inferred. A view if the memory is row-major. Gradient: reshape back.
 */
#include "ops/ops.h"

static ctn_status reshape_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int64_t dims[CTN_MAX_DIMS], known = 1, n = ctn__count(x);
    int hole = -1;
    char tx[128], ty[128];
    if (a->nattr > CTN_MAX_DIMS)
        return ctn_fail(CTN_ESHAPE, "reshape: got %d dimensions, expected at most %d", a->nattr,
                        CTN_MAX_DIMS);
    for (int i = 0; i < a->nattr; i++) {
        dims[i] = a->attr[i];
        if (dims[i] == -1 && hole < 0) hole = i;
        else if (__builtin_mul_overflow(known, dims[i], &known)) known = 0; /* refused below */
    }
    if (hole >= 0) dims[hole] = known > 0 ? n / known : 0;
    CTN_TRY(ctn__desc_set(&a->out[0], "reshape", x->dtype, a->nattr, dims));
    if (ctn__count(&a->out[0]) != n)
        return ctn_fail(CTN_ESHAPE, "reshape: %s has %lld elements, %s has %lld",
                        ctn__shape_text(x, tx, sizeof tx), (long long)n,
                        ctn__shape_text(&a->out[0], ty, sizeof ty),
                        (long long)ctn__count(&a->out[0]));
    return CTN_OK;
}

/* CTN_END is not an error: the strides of this input cannot express the shape. */
static ctn_status reshape_prepare(ctn_prepare_args *a)
{
    if (!ctn__is_plain(&a->din[0])) return CTN_END;
    ctn__plain(&a->dout[0]);
    return CTN_OK;
}

static ctn_status reshape_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_reshape_at(a->at, a->gout[0], a->in[0]->d.ndim, a->in[0]->d.dim));
}

ctn_op ctn__op_reshape = {
    .struct_size = sizeof(ctn_op),
    .name = "reshape",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_VIEW | CTN_OP_STRIDED,
    .order = -1,
    .infer = reshape_infer,
    .grad = reshape_grad,
    .prepare = reshape_prepare,
};

ctn_tensor *ctn_reshape_at(const char *at, ctn_tensor *x, int ndim, const int64_t *dims)
{
    return ctn__apply1(at, NULL, &ctn__op_reshape, 1, &x, ndim, dims, 0, NULL);
}
