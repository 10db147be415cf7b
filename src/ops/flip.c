/* SPDX-License-Identifier: Apache-2.0
 *
 * flip: the elements in reverse order along some axes. It is not an op of its own but a slice with
 * steps of -1.
 */
#include "ops/common/along.h"

ctn_tensor *ctn_flip_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes)
{
    int64_t start[CTN_MAX_DIMS], step[CTN_MAX_DIMS];
    if (!x) return ctn__slice_dims(at, x, NULL, NULL, NULL);
    for (int i = 0; i < x->d.ndim; i++) step[i] = naxes > 0 ? 1 : -1;
    for (int k = 0; k < naxes; k++) {
        const int ax = ctn__axis_of("flip", at, x, axes[k]);
        if (ax < 0) return NULL;
        step[ax] = -1;
    }
    for (int i = 0; i < x->d.ndim; i++) start[i] = step[i] < 0 ? x->d.dim[i] - 1 : 0;
    return ctn__slice_dims(at, x, start, x->d.dim, step);
}
