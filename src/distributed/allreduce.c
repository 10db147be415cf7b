/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_allreduce: y = sum of x over ranks, with the same bits on each. The loss is the sum of the
 * ranks' losses, and each of them may depend on y, so the gradient is the sum of gy over ranks:
 * the same op again.
 */
#include "distributed/distributed.h"

static ctn_op op_allreduce;

static ctn_status allreduce_grad(const ctn_grad_args *a)
{
    return ctn__dist_grad(a, &op_allreduce);
}

static ctn_op op_allreduce = {
    .name = "dist_allreduce",
    CTN__DIST_FIELDS,
    .inplace = CTN_OPERAND(0),
    .infer = ctn__dist_same_sum,
    .grad = allreduce_grad,
    .prepare = ctn__dist_sum_prepare,
    .run = ctn__dist_sum,
};

ctn_tensor *ctn_dist_allreduce_at(const char *at, ctn_comm *c, ctn_tensor *x)
{
    return ctn__dist_apply(at, &op_allreduce, c, x, 0);
}
