/* SPDX-License-Identifier: Apache-2.0
 *
 * mean over axes (no axes: all), with the kernels of sum. The mean of no elements is NaN.
 * Gradient: gy / r broadcast back, where r is the number of elements of one mean.
 */
#include "ops/common/reduce.h"

static ctn_status mean_grad(const ctn_grad_args *a)
{
    const ctn_desc *x = &a->in[0]->d;
    int64_t n = ctn__count(&a->out[0]->d), r = n > 0 ? ctn__count(x) / n : 1;
    ctn_tensor *g =
        ctn_scale_at(a->at, ctn__reduce_kept(a, a->gout[0]), r > 0 ? 1.0 / (double)r : 0);
    return ctn__grad_to(a, 0, ctn_broadcast_to_at(a->at, g, x->ndim, x->dim));
}

ctn_op ctn__op_mean = {
    .struct_size = sizeof(ctn_op),
    .name = "mean",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .prec = CTN_PREC_F32,
    .infer = ctn__reduce_infer,
    .grad = mean_grad,
    .prepare = ctn__sum_prepare,
    .run = ctn__sum_run,
};

ctn_tensor *ctn_mean_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes, int keep)
{
    return ctn__reduce_record(at, &ctn__op_mean, CTN__R_MEAN, x, naxes, axes, keep);
}
