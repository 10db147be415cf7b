/* SPDX-License-Identifier: Apache-2.0
 *
 * squeeze and unsqueeze: remove or insert a dimension of length 1. They are reshapes, not ops of
 * their own.
 */
#include "ops/common/along.h"

ctn_tensor *ctn_squeeze_at(const char *at, ctn_tensor *x, int64_t axis)
{
    int64_t dims[CTN_MAX_DIMS];
    int nd = 0, ax = x ? ctn__axis(x->d.ndim, axis) : 0;
    char t[128];
    if (x && (ax < 0 || x->d.dim[ax] != 1)) {
        ctn_fail(CTN_ESHAPE, "squeeze: axis %lld of %s does not have length 1 (%s)",
                 (long long)axis, ctn__shape_text(&x->d, t, sizeof t), at);
        return NULL;
    }
    for (int i = 0; x && i < x->d.ndim; i++)
        if (i != ax) dims[nd++] = x->d.dim[i];
    return ctn_reshape_at(at, x, nd, dims);
}

ctn_tensor *ctn_unsqueeze_at(const char *at, ctn_tensor *x, int64_t axis)
{
    int64_t dims[CTN_MAX_DIMS];
    int nd = x ? x->d.ndim + 1 : 1, ax = ctn__axis(nd, axis);
    char t[128];
    if (x && (ax < 0 || nd > CTN_MAX_DIMS)) {
        ctn_fail(CTN_ESHAPE, "unsqueeze: cannot insert axis %lld into %s (%s)", (long long)axis,
                 ctn__shape_text(&x->d, t, sizeof t), at);
        return NULL;
    }
    for (int i = 0, k = 0; x && i < nd; i++) dims[i] = i == ax ? 1 : x->d.dim[k++];
    return ctn_reshape_at(at, x, nd, dims);
}
