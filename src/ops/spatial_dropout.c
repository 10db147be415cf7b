/* SPDX-License-Identifier: Apache-2.0
 *
 * spatial_dropout: x times the dropout of a tensor of ones (N,C,1,...), so that whole channels are
 * dropped. In evaluation nothing is recorded.
 */
#include "ops/ops.h"

ctn_tensor *ctn_spatial_dropout_at(const char *at, ctn_tensor *x, double rate)
{
    int64_t dims[CTN_MAX_DIMS];
    char t[128];
    if (!x) return ctn_mul_at(at, x, x);
    if (x->d.ndim < 2) {
        ctn_fail(CTN_ESHAPE, "spatial_dropout: x is %s, expected (N,C,...) (%s)",
                 ctn__shape_text(&x->d, t, sizeof t), at);
        return NULL;
    }
    if (rate >= 0 && rate < 1 && !ctn_context_training(x->ctx))
        return x; /* dropout reports any other rate */
    for (int i = 0; i < x->d.ndim; i++) dims[i] = i < 2 ? x->d.dim[i] : 1;
    ctn_tensor *ones = ctn_full_at(at, x->ctx, 1, x->d.dtype, x->d.ndim, dims);
    return ctn_mul_at(at, x, ctn_dropout_at(at, ones, rate));
}
