/* SPDX-License-Identifier: Apache-2.0
 *
 * hard_sigmoid: (x + 3) / 6, clipped to 0 to 1.
 */
#include "ops/ops.h"

ctn_tensor *ctn_hard_sigmoid_at(const char *at, ctn_tensor *x)
{
    return ctn_clip_at(at, ctn_shift_at(at, ctn_scale_at(at, x, 1.0 / 6), 0.5), 0, 1);
}
