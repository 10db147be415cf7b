/* SPDX-License-Identifier: Apache-2.0
 *
 * r2_score: 1 - (sum of squared errors) / (sum of squared deviations from the mean), by column.
 * No gradient.
 */
#include "ops/common/loss.h"

ctn_tensor *ctn_r2_score_at(const char *at, ctn_tensor *x, ctn_tensor *t)
{
    const int64_t rows = 0;
    char tx[128];
    if (!ctn__loss_pair(at, "r2_score", x, t)) return NULL;
    if (x->d.ndim < 1) {
        ctn_fail(CTN_ESHAPE, "r2_score: x is %s, expected (N,...) (%s)",
                 ctn__shape_text(&x->d, tx, sizeof tx), at);
        return NULL;
    }
    ctn_tensor *zero = ctn_full_at(at, x->ctx, 0, x->d.dtype, CTN_SCALAR_SHAPE);
    x = ctn_detach_at(at, x);
    t = ctn_detach_at(at, t);
    ctn_tensor *mean = ctn_mean_at(at, t, 1, &rows, 1);
    ctn_tensor *wrong = ctn_sum_at(at, ctn_squared_difference_at(at, t, x), 1, &rows, 0);
    ctn_tensor *spread = ctn_sum_at(at, ctn_squared_difference_at(at, t, mean), 1, &rows, 0);
    ctn_tensor *flat = ctn_equal_at(at, spread, zero);
    ctn_tensor *share =
        ctn_where_at(at, flat, ctn_sign_at(at, wrong), ctn_div_at(at, wrong, spread));
    return ctn_mean_at(at, ctn_shift_at(at, ctn_neg_at(at, share), 1), CTN_ALL_AXES, 0);
}
