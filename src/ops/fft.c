/* SPDX-License-Identifier: Apache-2.0
 *
 * fft: y_k = c sum_j x_j exp(-+ 2 pi i j k / n) along one axis of complex x (...,2); the sign is +
 * with the attribute `inverse`. The transform is symmetric, so the gradient is the transform of gy
 * with the other sign and the same factor c. Transforms of several axes are one op after another.
 */
#include "ops/common/fft.h"

static ctn_status fft_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__fft_infer_complex(a));
    a->out[0] = *a->in[0];
    return CTN_OK;
}

static ctn_status fft_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0,
                        ctn__fft_along(a->at, a->gout[0], 1, &a->attr[CTN__FFT_AXIS],
                                       a->attr[CTN__FFT_FACTOR], !a->attr[CTN__FFT_INVERSE]));
}

ctn_op ctn__op_fft = {
    .struct_size = sizeof(ctn_op),
    .name = "fft",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .inplace = CTN_OPERAND(0),
    .attr_names = ctn__fft_attr_names,
    .infer = fft_infer,
    .grad = fft_grad,
    .prepare = ctn__fft_prepare,
};

ctn_tensor *ctn__fft_along(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                           int64_t factor, bool inverse)
{
    for (int i = 0; i < naxes; i++) {
        const int64_t attr[] = {axes[i], factor, inverse};
        x = ctn__apply1(at, NULL, &ctn__op_fft, 1, &x, 3, attr, 0, NULL);
    }
    return x;
}

static ctn_tensor *along_all(const char *name, const char *at, ctn_tensor *x, int naxes,
                             const int64_t *axes, ctn_fft_norm norm, bool inverse)
{
    int64_t axis[CTN_MAX_DIMS];
    if (!ctn__fft_axes(name, at, x, 1, naxes, axes, norm, axis)) return NULL;
    return ctn__fft_along(at, x, naxes, axis, ctn__fft_factor(norm, inverse), inverse);
}

ctn_tensor *ctn_fft_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                       ctn_fft_norm norm)
{
    return along_all("fft", at, x, naxes, axes, norm, false);
}

ctn_tensor *ctn_ifft_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                        ctn_fft_norm norm)
{
    return along_all("ifft", at, x, naxes, axes, norm, true);
}
