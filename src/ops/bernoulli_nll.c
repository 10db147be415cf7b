/* SPDX-License-Identifier: Apache-2.0
 *
 * bernoulli_nll: sigmoid_cross_entropy under the name that models of distributions use.
 */
#include "ops/ops.h"

ctn_tensor *ctn_bernoulli_nll_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                 ctn_reduction reduction)
{
    return ctn_sigmoid_cross_entropy_at(at, x, t, reduction);
}
