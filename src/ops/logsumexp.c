/* SPDX-License-Identifier: Apache-2.0
 *
 * logsumexp: log(sum of exp(x - m)) + m, where m is the maximum. m counts as a constant, because
 * it cancels in the gradient, and as 0 where it is infinite, so that infinity minus infinity does
 * not appear.
 */
#include <math.h>

#include "ops/ops.h"

ctn_tensor *ctn_logsumexp_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                             int keep)
{
    if (!x) return NULL;
    ctn_tensor *zero = ctn_full_at(at, x->ctx, 0, x->d.dtype, CTN_SCALAR_SHAPE);
    ctn_tensor *top = ctn_full_at(at, x->ctx, INFINITY, x->d.dtype, CTN_SCALAR_SHAPE);
    ctn_tensor *m = ctn_max_at(at, ctn_detach_at(at, x), naxes, axes, 1);
    m = ctn_where_at(at, ctn_less_at(at, ctn_abs_at(at, m), top), m, zero);
    ctn_tensor *s = ctn_sum_at(at, ctn_exp_at(at, ctn_sub_at(at, x, m)), naxes, axes, keep);
    if (!s) return NULL;
    return ctn_add_at(at, ctn_log_at(at, s), ctn_reshape_at(at, m, s->d.ndim, s->d.dim));
}
