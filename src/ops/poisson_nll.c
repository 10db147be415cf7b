/* SPDX-License-Identifier: Apache-2.0
 *
 * poisson_nll: exp(x) - t x.
 */
#include "ops/common/loss.h"

ctn_tensor *ctn_poisson_nll_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                               ctn_reduction reduction)
{
    if (!ctn__loss_pair(at, "poisson_nll", x, t)) return NULL;
    ctn_tensor *y = ctn_sub_at(at, ctn_exp_at(at, x), ctn_mul_at(at, t, x));
    return ctn__loss_of_each(at, "poisson_nll", y, reduction);
}
