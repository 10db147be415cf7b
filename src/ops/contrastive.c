/* SPDX-License-Identifier: Apache-2.0
 *
 * contrastive: with d the distance of a and b, d^2/2 for similar pairs and max(0, margin - d)^2/2
 * for others. The gradient of d is 0 where a = b.
 */
#include "ops/common/loss.h"

ctn_tensor *ctn_contrastive_at(const char *at, ctn_tensor *a, ctn_tensor *b, ctn_tensor *t,
                               double margin, ctn_reduction reduction)
{
    const int64_t last = -1;
    if (!ctn__loss_pair(at, "contrastive", a, b) || !ctn__loss_rows(at, "contrastive", a, t))
        return NULL;
    ctn_tensor *same = ctn_cast_at(at, t, a->d.dtype);
    ctn_tensor *d2 = ctn_sum_at(at, ctn_squared_difference_at(at, a, b), 1, &last, 0);
    ctn_tensor *gap = ctn_shift_at(at, ctn_neg_at(at, ctn__root(at, d2)), margin);
    ctn_tensor *apart = ctn_square_at(at, ctn_relu_at(at, gap));
    ctn_tensor *y = ctn_scale_at(at, ctn_linear_interpolate_at(at, same, d2, apart), 0.5);
    return ctn__loss_of_each(at, "contrastive", y, reduction);
}
