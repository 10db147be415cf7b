/* SPDX-License-Identifier: Apache-2.0
 *
 * gaussian_kl_divergence: (mean^2 + exp(ln_var) - ln_var - 1) / 2, with e^v - 1 as one function
 * because it is small where the divergence is.
 */
#include "ops/common/loss.h"

ctn_tensor *ctn_gaussian_kl_divergence_at(const char *at, ctn_tensor *mean, ctn_tensor *ln_var,
                                          ctn_reduction reduction)
{
    const char *name = "gaussian_kl_divergence";
    if (!ctn__loss_pair(at, name, mean, ln_var)) return NULL;
    ctn_tensor *v = ctn_sub_at(at, ctn_expm1_at(at, ln_var), ln_var);
    ctn_tensor *y = ctn_scale_at(at, ctn_add_at(at, ctn_square_at(at, mean), v), 0.5);
    return ctn__loss_of_each(at, name, y, reduction);
}
