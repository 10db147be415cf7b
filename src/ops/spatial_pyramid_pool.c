/* SPDX-License-Identifier: Apache-2.0
 *
 * spatial_pyramid_pool: maxima over 1, 4, 16, ... windows that cover the image. It is not an op of
 * its own: each level is a max pooling with windows of ceil(n / bins), whose surplus is padding on
 * both sides, and the levels are joined along the channels.
 */
#include "ops/ops.h"

static ctn_tensor *level(const char *at, ctn_tensor *x, int64_t bins)
{
    ctn_pool_opt o = {.struct_size = sizeof o, .ceil = 1};
    for (int i = 0; i < 2; i++) {
        const int64_t n = x->d.dim[2 + i], k = (n + bins - 1) / bins, pad = (k * bins - n) / 2;
        o.kernel[i] = o.stride[i] = k;
        o.pad[i] = pad > 0 ? pad : CTN_PAD_NONE;
    }
    ctn_tensor *y = ctn_max_pool_at(at, x, &o);
    if (!y) return NULL;
    return ctn_reshape_at(at, y, CTN_SHAPE(x->d.dim[0], x->d.dim[1] * bins * bins, 1, 1));
}

ctn_tensor *ctn_spatial_pyramid_pool_at(const char *at, ctn_tensor *x, int levels)
{
    enum { MOST = 12 };
    ctn_tensor *all[MOST];
    char t[128];
    if (!x) return ctn_reshape_at(at, x, 0, NULL);
    /* every window needs an element of its own, and the padding must not exceed half a window */
    bool ok = x->d.ndim == 4 && levels >= 1 && levels <= MOST;
    for (int i = 2; ok && i < 4; i++) {
        for (int l = 0; l < levels; l++) {
            const int64_t n = x->d.dim[i], bins = INT64_C(1) << l, k = (n + bins - 1) / bins;
            const int64_t surplus = k * bins - n, pad = surplus / 2;
            ok = ok && n >= bins && pad <= k / 2 && surplus - pad < k;
        }
    }
    if (!ok) {
        ctn_fail(
            CTN_ESHAPE,
            "spatial_pyramid_pool: x is %s; %d levels need (N,C,H,W) that %lld windows along H "
            "and W can cover (%s)",
            ctn__shape_text(&x->d, t, sizeof t), levels,
            levels >= 1 && levels <= MOST ? 1LL << (levels - 1) : 0, at);
        return NULL;
    }
    for (int l = 0; l < levels; l++) {
        all[l] = level(at, x, INT64_C(1) << l);
        if (!all[l]) return NULL;
    }
    return ctn_concat_at(at, levels, all, 1);
}
