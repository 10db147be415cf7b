/* SPDX-License-Identifier: Apache-2.0
 *
 * selu: elu with the two constants that keep mean 0 and variance 1 from layer to layer (Klambauer
 * et al., 2017).
 */
#include "ops/ops.h"

ctn_tensor *ctn_selu_at(const char *at, ctn_tensor *x)
{
    return ctn_scale_at(at, ctn_elu_at(at, x, 1.6732632423543772), 1.0507009873554805);
}
