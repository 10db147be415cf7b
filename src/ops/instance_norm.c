/* SPDX-License-Identifier: Apache-2.0
 *
 * instance_norm: group_norm with one channel per group.
 */
#include "ops/ops.h"

ctn_tensor *ctn_instance_norm_at(const char *at, ctn_tensor *x, ctn_tensor *scale,
                                 ctn_tensor *shift, double eps)
{
    char t[128];
    if (!x) return NULL;
    if (x->d.ndim < 2 || x->d.dim[1] < 1) {
        ctn_fail(CTN_ESHAPE, "instance_norm: x is %s, expected (N,C,...) (%s)",
                 ctn__shape_text(&x->d, t, sizeof t), at);
        return NULL;
    }
    return ctn_group_norm_at(at, x, x->d.dim[1], scale, shift, eps);
}
