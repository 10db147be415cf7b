/* SPDX-License-Identifier: Apache-2.0
 *
 * mish: x tanh(softplus(x)). One kernel after fusion.
 */
#include "ops/ops.h"

ctn_tensor *ctn_mish_at(const char *at, ctn_tensor *x)
{
    return ctn_mul_at(at, x, ctn_tanh_at(at, ctn_softplus_at(at, x)));
}
