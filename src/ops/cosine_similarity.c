/* SPDX-License-Identifier: Apache-2.0
 *
 * cosine_similarity: the product of a and b, normalised, along an axis. The products are summed
 * before the division, which costs less than dividing a and b.
 */
#include <math.h>

#include "ops/ops.h"

static ctn_tensor *length(const char *at, ctn_tensor *x, int64_t axis, double eps)
{
    return ctn_clip_at(at, ctn_norm_at(at, x, 2, 1, &axis, 0), eps, INFINITY);
}

ctn_tensor *ctn_cosine_similarity_at(const char *at, ctn_tensor *a, ctn_tensor *b, int64_t axis,
                                     double eps)
{
    char ta[128], tb[128];
    if (!a || !b) return ctn_mul_at(at, a, b);
    const int k = ctn__axis(a->d.ndim, axis);
    if (a->d.ndim != b->d.ndim || k < 0 || a->d.dim[k] != b->d.dim[k]) {
        ctn_fail(CTN_ESHAPE,
                 "cosine_similarity: a is %s, b is %s, axis is %lld; expected as many dimensions "
                 "and the same length along the axis (%s)",
                 ctn__shape_text(&a->d, ta, sizeof ta), ctn__shape_text(&b->d, tb, sizeof tb),
                 (long long)axis, at);
        return NULL;
    }
    ctn_tensor *dot = ctn_sum_at(at, ctn_mul_at(at, a, b), 1, &axis, 0);
    ctn_tensor *n = ctn_mul_at(at, length(at, a, axis, eps), length(at, b, axis, eps));
    return ctn_div_at(at, dot, n);
}
