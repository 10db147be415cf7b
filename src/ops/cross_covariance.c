/* SPDX-License-Identifier: Apache-2.0
 *
 * cross_covariance: the product of the centred matrices, divided by the number of rows.
 */
#include "ops/ops.h"

static ctn_tensor *centred(const char *at, ctn_tensor *x)
{
    const int64_t rows = 0;
    return ctn_sub_at(at, x, ctn_mean_at(at, x, 1, &rows, 1));
}

ctn_tensor *ctn_cross_covariance_at(const char *at, ctn_tensor *x, ctn_tensor *y)
{
    char tx[128], ty[128];
    if (!x || !y) return ctn_mul_at(at, x, y);
    if (x->d.ndim != 2 || y->d.ndim != 2 || x->d.dim[0] != y->d.dim[0]) {
        ctn_fail(CTN_ESHAPE, "cross_covariance: x is %s, y is %s; expected (N,I) and (N,J) (%s)",
                 ctn__shape_text(&x->d, tx, sizeof tx), ctn__shape_text(&y->d, ty, sizeof ty), at);
        return NULL;
    }
    ctn_tensor *c = ctn_matmul_at(at, centred(at, x), centred(at, y), 1, 0);
    return ctn_scale_at(at, c, 1 / (double)x->d.dim[0]);
}
