/* SPDX-License-Identifier: Apache-2.0
 *
 * rfft: y_k = c_k sum_j x_j exp(-2 pi i j k / n) for k = 0 to n/2, along one axis of real x. With
 * the attribute `weighted`, c_k is doubled where k also stands for n - k, which is the gradient of
 * irfft. Gradient: gx_j = sum_k c_k Re(gy_k exp(2 pi i j k / n)), which is irfft with the same
 * attributes. It is not the inverse transform, in which only those k are doubled.
 */
#include "ops/common/fft.h"

static ctn_status rfft_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    const int axis = (int)a->attr[CTN__FFT_AXIS];
    char t[128];
    CTN_TRY(ctn__infer_arith(a, x));
    if (x->dim[axis] == 0 || x->ndim + 1 > CTN_MAX_DIMS)
        return ctn_fail(CTN_ESHAPE,
                        "rfft: x is %s, expected at most %d dimensions and elements along axis %d",
                        ctn__shape_text(x, t, sizeof t), CTN_MAX_DIMS - 1, axis);
    a->out[0] = *x;
    a->out[0].dim[axis] = x->dim[axis] / 2 + 1;
    a->out[0].dim[a->out[0].ndim++] = 2;
    return CTN_OK;
}

static ctn_status rfft_grad(const ctn_grad_args *a)
{
    const int64_t axis = a->attr[CTN__FFT_AXIS];
    return ctn__grad_to(a, 0,
                        ctn__irfft_along(a->at, a->gout[0], axis, a->attr[CTN__FFT_FACTOR],
                                         a->attr[CTN__FFT_WEIGHTED] != 0, a->in[0]->d.dim[axis]));
}

ctn_op ctn__op_rfft = {
    .struct_size = sizeof(ctn_op),
    .name = "rfft",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .attr_names = ctn__rfft_attr_names,
    .infer = rfft_infer,
    .grad = rfft_grad,
    .prepare = ctn__rfft_prepare,
};

ctn_tensor *ctn__rfft_along(const char *at, ctn_tensor *x, int64_t axis, int64_t factor,
                            bool weighted)
{
    const int64_t attr[] = {axis, factor, weighted};
    return ctn__apply1(at, NULL, &ctn__op_rfft, 1, &x, 3, attr, 0, NULL);
}

ctn_tensor *ctn_rfft_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                        ctn_fft_norm norm)
{
    int64_t axis[CTN_MAX_DIMS];
    if (!ctn__fft_axes("rfft", at, x, 0, naxes, axes, norm, axis)) return NULL;
    const int64_t factor = ctn__fft_factor(norm, false);
    x = ctn__rfft_along(at, x, axis[naxes - 1], factor, false);
    return ctn__fft_along(at, x, naxes - 1, axis, factor, false);
}
