/* SPDX-License-Identifier: Apache-2.0
 *
 * maxout: the axis is split into groups, and each group is reduced to its maximum. Equal elements
 * share the gradient, as in max.
 */
#include "ops/ops.h"

ctn_tensor *ctn_maxout_at(const char *at, ctn_tensor *x, int64_t pool, int64_t axis)
{
    int64_t dims[CTN_MAX_DIMS], last;
    char t[128];
    if (!x) return NULL;
    const ctn_desc *d = &x->d;
    const int k = ctn__axis(d->ndim, axis);
    if (pool < 1) {
        ctn_fail(CTN_EARG, "maxout: pool is %lld, expected at least 1 (%s)", (long long)pool, at);
        return NULL;
    }
    if (k < 0 || d->dim[k] % pool != 0 || d->ndim == CTN_MAX_DIMS) {
        ctn_fail(CTN_ESHAPE,
                 "maxout: x is %s, axis is %lld, pool is %lld; expected fewer than %d dimensions "
                 "and an axis whose length is a multiple of pool (%s)",
                 ctn__shape_text(d, t, sizeof t), (long long)axis, (long long)pool, CTN_MAX_DIMS,
                 at);
        return NULL;
    }
    for (int i = 0; i <= d->ndim; i++)
        dims[i] = i <= k ? d->dim[i] : i == k + 1 ? pool : d->dim[i - 1];
    dims[k] /= pool;
    last = k + 1;
    return ctn_max_at(at, ctn_reshape_at(at, x, d->ndim + 1, dims), 1, &last, 0);
}
