/* SPDX-License-Identifier: Apache-2.0
 *
 * irfft: x_j = sum_k c_k Re(y_k exp(2 pi i j k / n)) for k = 0 to n/2, along one axis of complex y
 * (...,2). With the attribute `weighted`, c_k is doubled where k also stands for n - k, so that
 * this is the inverse of rfft; without it, it is the gradient of rfft. Gradient: rfft with the same
 * attributes.
 */
#include "ops/common/fft.h"

static ctn_status irfft_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    const int axis = (int)a->attr[CTN__FFT_AXIS];
    const int64_t n = a->attr[CTN__FFT_LENGTH];
    char t[128];
    CTN_TRY(ctn__fft_infer_complex(a));
    if (n < 1 || x->dim[axis] != n / 2 + 1)
        return ctn_fail(CTN_ESHAPE,
                        "irfft: x is %s, which has %lld frequencies along axis %d; a result of "
                        "length %lld needs %lld",
                        ctn__shape_text(x, t, sizeof t), (long long)x->dim[axis], axis,
                        (long long)n, (long long)(n / 2 + 1));
    a->out[0] = *x;
    a->out[0].dim[axis] = n;
    a->out[0].ndim--;
    return CTN_OK;
}

static ctn_status irfft_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0,
                        ctn__rfft_along(a->at, a->gout[0], a->attr[CTN__FFT_AXIS],
                                        a->attr[CTN__FFT_FACTOR], a->attr[CTN__FFT_WEIGHTED] != 0));
}

ctn_op ctn__op_irfft = {
    .struct_size = sizeof(ctn_op),
    .name = "irfft",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .attr_names = ctn__rfft_attr_names,
    .infer = irfft_infer,
    .grad = irfft_grad,
    .prepare = ctn__irfft_prepare,
};

ctn_tensor *ctn__irfft_along(const char *at, ctn_tensor *x, int64_t axis, int64_t factor,
                             bool weighted, int64_t length)
{
    const int64_t attr[] = {axis, factor, weighted, length};
    return ctn__apply1(at, NULL, &ctn__op_irfft, 1, &x, 4, attr, 0, NULL);
}

ctn_tensor *ctn_irfft_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                         int64_t n_last, ctn_fft_norm norm)
{
    int64_t axis[CTN_MAX_DIMS];
    if (!ctn__fft_axes("irfft", at, x, 1, naxes, axes, norm, axis)) return NULL;
    const int64_t factor = ctn__fft_factor(norm, true);
    x = ctn__fft_along(at, x, naxes - 1, axis, factor, true);
    return ctn__irfft_along(at, x, axis[naxes - 1], factor, true, n_last);
}
