/* SPDX-License-Identifier: Apache-2.0
 *
 * repeat and tile: elements, or the whole tensor, several times along an axis. They are not ops of
 * their own: a new dimension next to the axis is broadcast, and the result is reshaped.
 */
#include "ops/common/along.h"

static ctn_tensor *refuse(const char *who, const char *at, const ctn_tensor *x, int64_t n)
{
    char t[128];
    ctn_fail(CTN_ESHAPE, "%s: cannot repeat %s %lld times (%s)", who,
             ctn__shape_text(&x->d, t, sizeof t), (long long)n, at);
    return NULL;
}

ctn_tensor *ctn_repeat_at(const char *at, ctn_tensor *x, int64_t n, int64_t axis)
{
    if (!x) return ctn_reshape_at(at, x, 0, NULL);
    const int ax = ctn__axis_of("repeat", at, x, axis);
    if (ax < 0) return NULL;
    const ctn__along s = ctn__along_axis(&x->d, ax);
    ctn_desc to = x->d;
    if (n < 0 || (s.n > 0 && n > INT64_MAX / s.n)) return refuse("repeat", at, x, n);
    to.dim[ax] = s.n * n;
    ctn_tensor *y = ctn_reshape_at(at, x, CTN_SHAPE(s.outer * s.n, 1, s.inner));
    y = ctn_broadcast_to_at(at, y, CTN_SHAPE(s.outer * s.n, n, s.inner));
    return ctn_reshape_at(at, y, to.ndim, to.dim);
}

/* x seen as (before, 1, after) around an axis, with the new dimension repeated. */
static ctn_tensor *tile_axis(const char *at, ctn_tensor *x, int axis, int64_t rep)
{
    if (!x || rep == 1) return x;
    const ctn__along s = ctn__along_axis(&x->d, axis);
    ctn_desc to = x->d;
    if (rep < 0 || (s.n > 0 && rep > INT64_MAX / s.n)) return refuse("tile", at, x, rep);
    to.dim[axis] = s.n * rep;
    ctn_tensor *y = ctn_reshape_at(at, x, CTN_SHAPE(s.outer, 1, s.n * s.inner));
    y = ctn_broadcast_to_at(at, y, CTN_SHAPE(s.outer, rep, s.n * s.inner));
    return ctn_reshape_at(at, y, to.ndim, to.dim);
}

ctn_tensor *ctn_tile_at(const char *at, ctn_tensor *x, int n, const int64_t *reps)
{
    if (n < 0 || n > CTN_MAX_DIMS) {
        ctn_fail(CTN_ESHAPE, "tile: got %d dimensions, expected at most %d (%s)", n, CTN_MAX_DIMS,
                 at);
        return NULL;
    }
    while (x && x->d.ndim < n) x = ctn_unsqueeze_at(at, x, 0);
    if (!x) return ctn_reshape_at(at, x, 0, NULL);
    /* From the last axis to the first: each pass but the last copies a smaller tensor. */
    for (int i = n - 1, ax = x->d.ndim - 1; i >= 0; i--, ax--) x = tile_axis(at, x, ax, reps[i]);
    return x;
}
