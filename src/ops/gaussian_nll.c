/* SPDX-License-Identifier: Apache-2.0
 *
 * gaussian_nll: (log(2 pi) + ln_var + (t - mean)^2 exp(-ln_var)) / 2.
 */
#include "ops/common/loss.h"

ctn_tensor *ctn_gaussian_nll_at(const char *at, ctn_tensor *mean, ctn_tensor *ln_var, ctn_tensor *t,
                                ctn_reduction reduction)
{
    const char *name = "gaussian_nll";
    if (!ctn__loss_pair(at, name, mean, t) || !ctn__loss_pair(at, name, ln_var, t)) return NULL;
    ctn_tensor *d = ctn_square_at(at, ctn_sub_at(at, t, mean));
    d = ctn_mul_at(at, d, ctn_exp_at(at, ctn_neg_at(at, ln_var)));
    ctn_tensor *y = ctn_shift_at(at, ctn_add_at(at, d, ln_var), 1.8378770664093455);
    return ctn__loss_of_each(at, name, ctn_scale_at(at, y, 0.5), reduction);
}
