/* SPDX-License-Identifier: Apache-2.0
 *
 * space_to_depth: y[n, (c r + i) r + j, h, w] = x[n, c, h r + i, w r + j], the inverse of
 * depth_to_space.
 */
#include "ops/ops.h"

ctn_tensor *ctn_space_to_depth_at(const char *at, ctn_tensor *x, int64_t r)
{
    static const int64_t order[] = {0, 1, 3, 5, 2, 4}; /* (N,C,H,r,W,r) -> (N,C,r,r,H,W) */
    char t[128];
    if (!x) return ctn_reshape_at(at, x, 0, NULL);
    const int64_t *d = x->d.dim;
    if (x->d.ndim != 4 || r < 1 || r > 32768 || d[2] % r != 0 || d[3] % r != 0) {
        ctn_fail(
            CTN_ESHAPE,
            "space_to_depth: x is %s, r is %lld; expected (N,C,H,W) with H and W multiples of r "
            "(%s)",
            ctn__shape_text(&x->d, t, sizeof t), (long long)r, at);
        return NULL;
    }
    int64_t h = d[2] / r, w = d[3] / r;
    ctn_tensor *y = ctn_reshape_at(at, x, CTN_SHAPE(d[0], d[1], h, r, w, r));
    return ctn_reshape_at(at, ctn_transpose_at(at, y, 6, order),
                          CTN_SHAPE(d[0], d[1] * r * r, h, w));
}
