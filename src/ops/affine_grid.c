/* SPDX-License-Identifier: Apache-2.0
 *
 * affine_grid: the points of an image, transformed by a matrix (2,3) per sample. It is not an op of
 * its own: the coordinates (x, y, 1) of all points are multiplied by the matrices.
 */
#include "ops/ops.h"

/* The n coordinates from -1 to 1 of one dimension, with the given shape. Corners that are not
 * aligned are half a pixel outside. */
static ctn_tensor *coordinates(const char *at, const ctn_tensor *like, int64_t n, int align,
                               int ndim, const int64_t *dims)
{
    const double step = align ? (n > 1 ? 2 / (double)(n - 1) : 0) : 2 / (double)n;
    const double first = align ? (n > 1 ? -1 : 0) : -1 + step / 2;
    ctn_tensor *one = ctn_full_at(at, like->ctx, 1, like->d.dtype, 1, &n);
    ctn_tensor *count = ctn_cumsum_at(at, one, 0, 0); /* from 1 */
    ctn_tensor *c = ctn_shift_at(at, ctn_scale_at(at, count, step), first - step);
    return ctn_reshape_at(at, c, ndim, dims);
}

ctn_tensor *ctn_affine_grid_at(const char *at, ctn_tensor *theta, int64_t height, int64_t width,
                               int align_corners)
{
    char t[128];
    if (!theta) return ctn_reshape_at(at, theta, 0, NULL);
    if (theta->d.ndim != 3 || theta->d.dim[1] != 2 || theta->d.dim[2] != 3 || height < 1 ||
        width < 1 || height > INT32_MAX || width > INT32_MAX) {
        ctn_fail(
            CTN_ESHAPE,
            "affine_grid: theta is %s, the image is %lld x %lld; expected (N,2,3) and positive "
            "sizes (%s)",
            ctn__shape_text(&theta->d, t, sizeof t), (long long)height, (long long)width, at);
        return NULL;
    }
    const int64_t all[3] = {height, width, 1};
    ctn_tensor *part[3] = {
        coordinates(at, theta, width, align_corners, CTN_SHAPE(1, width, 1)),
        coordinates(at, theta, height, align_corners, CTN_SHAPE(height, 1, 1)),
        ctn_full_at(at, theta->ctx, 1, theta->d.dtype, 3, all),
    };
    for (int i = 0; i < 2; i++) part[i] = ctn_broadcast_to_at(at, part[i], 3, all);
    ctn_tensor *p =
        ctn_reshape_at(at, ctn_concat_at(at, 3, part, -1), CTN_SHAPE(height * width, 3));
    return ctn_reshape_at(at, ctn_matmul_at(at, p, theta, 0, 1),
                          CTN_SHAPE(theta->d.dim[0], height, width, 2));
}
