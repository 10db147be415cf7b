/* SPDX-License-Identifier: Apache-2.0
 *
 * moveaxis and swapaxes: transposes that are given by two axes. They are not ops of their own.
 */
#include "ops/common/along.h"

ctn_tensor *ctn_moveaxis_at(const char *at, ctn_tensor *x, int64_t from, int64_t to)
{
    int64_t order[CTN_MAX_DIMS];
    if (!x) return ctn_transpose_at(at, x, 0, NULL);
    const int f = ctn__axis_of("moveaxis", at, x, from), t = ctn__axis_of("moveaxis", at, x, to);
    if (f < 0 || t < 0) return NULL;
    for (int i = 0, k = 0; i < x->d.ndim; i++) {
        if (k == f) k++;
        order[i] = i == t ? f : k++;
    }
    return f == t ? x : ctn_transpose_at(at, x, x->d.ndim, order);
}

ctn_tensor *ctn_swapaxes_at(const char *at, ctn_tensor *x, int64_t i, int64_t j)
{
    int64_t order[CTN_MAX_DIMS];
    if (!x) return ctn_transpose_at(at, x, 0, NULL);
    const int p = ctn__axis_of("swapaxes", at, x, i), q = ctn__axis_of("swapaxes", at, x, j);
    if (p < 0 || q < 0) return NULL;
    for (int k = 0; k < x->d.ndim; k++) order[k] = k == p ? q : k == q ? p : k;
    return p == q ? x : ctn_transpose_at(at, x, x->d.ndim, order);
}
