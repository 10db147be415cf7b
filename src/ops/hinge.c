/* SPDX-License-Identifier: Apache-2.0
 *
 * hinge: the sum over the classes of max(0, 1 - s x)^p, where s is 1 for the class of the row and
 * -1 elsewhere, from a one-hot tensor.
 */
#include "ops/common/loss.h"

ctn_tensor *ctn_hinge_at(const char *at, ctn_tensor *x, ctn_tensor *t, int p,
                         ctn_reduction reduction)
{
    const int64_t last = -1;
    if (p != 1 && p != 2) {
        ctn_fail(CTN_EARG, "hinge: p is %d, expected 1 or 2 (%s)", p, at);
        return NULL;
    }
    if (!ctn__loss_rows(at, "hinge", x, t)) return NULL;
    const ctn_desc *d = &x->d;
    ctn_tensor *own = ctn_one_hot_at(at, t, d->dim[d->ndim - 1], d->dtype);
    ctn_tensor *s = ctn_shift_at(at, ctn_scale_at(at, own, -2), 1);
    ctn_tensor *y = ctn_relu_at(at, ctn_shift_at(at, ctn_mul_at(at, s, x), 1));
    if (p == 2) y = ctn_square_at(at, y);
    return ctn__loss_of_each(at, "hinge", ctn_sum_at(at, y, 1, &last, 0), reduction);
}
