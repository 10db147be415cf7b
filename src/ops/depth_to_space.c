/* SPDX-License-Identifier: Apache-2.0
 *
 * depth_to_space: y[n, c, h r + i, w r + j] = x[n, (c r + i) r + j, h, w]. Views, with
 * one copy between them.
 */
#include "ops/ops.h"

ctn_tensor *ctn_depth_to_space_at(const char *at, ctn_tensor *x, int64_t r)
{
    static const int64_t order[] = {0, 1, 4, 2, 5, 3}; /* (N,C,r,r,H,W) -> (N,C,H,r,W,r) */
    char t[128];
    if (!x) return ctn_reshape_at(at, x, 0, NULL);
    const int64_t *d = x->d.dim;
    if (x->d.ndim != 4 || r < 1 || r > 32768 || d[1] % (r * r) != 0) {
        ctn_fail(
            CTN_ESHAPE,
            "depth_to_space: x is %s, r is %lld; expected (N,C,H,W) with C a multiple of r^2 (%s)",
            ctn__shape_text(&x->d, t, sizeof t), (long long)r, at);
        return NULL;
    }
    int64_t c = d[1] / (r * r), h = d[2], w = d[3];
    ctn_tensor *y = ctn_reshape_at(at, x, CTN_SHAPE(d[0], c, r, r, h, w));
    return ctn_reshape_at(at, ctn_transpose_at(at, y, 6, order), CTN_SHAPE(d[0], c, h * r, w * r));
}
