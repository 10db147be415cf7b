/* SPDX-License-Identifier: Apache-2.0
 *
 * local_response_norm: y = x (k + alpha s)^-beta, where s is the sum of the squares of the channels
 * around each one. It is not an op of its own: the sum is an average pooling over the channels,
 * times its window.
 */
#include "ops/ops.h"

ctn_tensor *ctn_local_response_norm_at(const char *at, ctn_tensor *x, int64_t size, double k,
                                       double alpha, double beta)
{
    char t[128];
    if (!x) return ctn_square_at(at, x);
    if (x->d.ndim < 2 || size < 1 || size % 2 == 0) {
        ctn_fail(CTN_ESHAPE,
                 "local_response_norm: x is %s, size is %lld; expected (N,C,...) and an odd size "
                 "(%s)",
                 ctn__shape_text(&x->d, t, sizeof t), (long long)size, at);
        return NULL;
    }
    if (ctn__count(&x->d) == 0) return x;
    const int64_t N = x->d.dim[0], C = x->d.dim[1], rest = ctn__count(&x->d) / (N * C);
    const ctn_pool_opt *window = CTN_OPT(ctn_pool_opt, .kernel = {size, 1}, .stride = {1},
                                         .pad = {size > 1 ? size / 2 : CTN_PAD_NONE, CTN_PAD_NONE});
    ctn_tensor *s = ctn_reshape_at(at, ctn_square_at(at, x), CTN_SHAPE(N, 1, C, rest));
    s = ctn_scale_at(at, ctn_avg_pool_at(at, s, window), alpha * (double)size);
    s = ctn_reshape_at(at, ctn_shift_at(at, s, k), x->d.ndim, x->d.dim);
    return ctn_mul_at(at, x, ctn_power_at(at, s, -beta));
}
