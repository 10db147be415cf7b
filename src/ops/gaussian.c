/* SPDX-License-Identifier: Apache-2.0
 *
 * gaussian: a sample of a normal distribution, mean + exp(ln_var / 2) z, with gradients by both
 * parameters.
 */
#include "ops/ops.h"

ctn_tensor *ctn_gaussian_at(const char *at, ctn_tensor *mean, ctn_tensor *ln_var)
{
    ctn_desc d;
    if (!mean || !ln_var) return ctn_add_at(at, mean, ln_var);
    if (ctn__broadcast(&d, "gaussian", &mean->d, &ln_var->d) < 0) return NULL;
    ctn_tensor *z = ctn_random_normal_at(at, mean->ctx, 0, 1, mean->d.dtype, d.ndim, d.dim);
    ctn_tensor *std = ctn_exp_at(at, ctn_scale_at(at, ln_var, 0.5));
    return ctn_add_at(at, mean, ctn_mul_at(at, std, z));
}
