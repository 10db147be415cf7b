/* SPDX-License-Identifier: Apache-2.0
 *
 * group_norm: layer_norm of (N, groups, rest), then one scale and shift per channel. It is not
 * an op of its own: reshapes are views, and the gradients are those of its parts.
 */
#include "ops/ops.h"

ctn_tensor *ctn_group_norm_at(const char *at, ctn_tensor *x, int64_t groups, ctn_tensor *scale,
                              ctn_tensor *shift, double eps)
{
    char t[128];
    if (!x) return NULL;
    const ctn_desc *d = &x->d;
    if (d->ndim < 2 || groups < 1 || d->dim[1] % groups != 0) {
        ctn_fail(
            CTN_ESHAPE,
            "group_norm: x is %s with %lld groups; expected (N,C,...) with C a multiple of the "
            "groups (%s)",
            ctn__shape_text(d, t, sizeof t), (long long)groups, at);
        return NULL;
    }
    int64_t inner = d->dim[1] / groups;
    for (int i = 2; i < d->ndim; i++) inner *= d->dim[i];
    ctn_tensor *h = ctn_reshape_at(at, x, 3, (int64_t[3]){d->dim[0], groups, inner});
    h = ctn_reshape_at(at, ctn_layer_norm_at(at, h, 1, NULL, NULL, eps), d->ndim, d->dim);
    if (!h || (!scale && !shift)) return h;
    if (!scale) scale = ctn_full_at(at, x->ctx, 1, d->dtype, 1, &d->dim[1]);
    return ctn_channel_affine_at(at, h, scale, shift);
}
