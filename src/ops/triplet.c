/* SPDX-License-Identifier: Apache-2.0
 *
 * triplet: max(0, d(anchor, positive) - d(anchor, negative) + margin). The gradient of a distance
 * is 0 where it is 0.
 */
#include "ops/common/loss.h"

static ctn_tensor *distance(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    const int64_t last = -1;
    return ctn_norm_at(at, ctn_sub_at(at, a, b), 2, 1, &last, 0);
}

ctn_tensor *ctn_triplet_at(const char *at, ctn_tensor *anchor, ctn_tensor *positive,
                           ctn_tensor *negative, double margin, ctn_reduction reduction)
{
    if (!ctn__loss_pair(at, "triplet", anchor, positive) ||
        !ctn__loss_pair(at, "triplet", anchor, negative))
        return NULL;
    ctn_tensor *near = distance(at, anchor, positive), *far = distance(at, anchor, negative);
    ctn_tensor *y = ctn_relu_at(at, ctn_shift_at(at, ctn_sub_at(at, near, far), margin));
    return ctn__loss_of_each(at, "triplet", y, reduction);
}
