/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_broadcast: y = x of root on every rank; any type. dist_reduce: the sum of x over ranks on
 * root and zero elsewhere. Each is the gradient of the other. All ranks take part in both,
 * including those whose result is zero.
 */
#include "distributed/distributed.h"

static ctn_op op_broadcast, op_reduce;

static ctn_status broadcast_run(const ctn_run_args *a)
{
    ctn__dist_copy(a);
    return ctn__dist_ran(a,
                         ctn_comm_broadcast(ctn__dist_comm(a->attr), a->out[0],
                                            ctn__bytes(&a->dout[0]), (int)a->attr[CTN__DIST_ROOT]));
}

static ctn_status broadcast_grad(const ctn_grad_args *a)
{
    return ctn__dist_grad(a, &op_reduce);
}

static ctn_op op_broadcast = {
    .name = "dist_broadcast",
    CTN__DIST_FIELDS,
    .inplace = CTN_OPERAND(0),
    .infer = ctn__dist_same,
    .grad = broadcast_grad,
    .run = broadcast_run,
};

/* ---- dist_reduce ----------------------------------------------------------------------------- */

static ctn_status reduce_run(const ctn_run_args *a)
{
    const ctn_desc *d = &a->dout[0];
    CTN_TRY(ctn__dist_sum(a));
    if (a->attr[CTN__DIST_RANK] != a->attr[CTN__DIST_ROOT]) memset(a->out[0], 0, ctn__bytes(d));
    return CTN_OK;
}

static ctn_status reduce_grad(const ctn_grad_args *a)
{
    return ctn__dist_grad(a, &op_broadcast);
}

static ctn_op op_reduce = {
    .name = "dist_reduce",
    CTN__DIST_FIELDS,
    .inplace = CTN_OPERAND(0),
    .infer = ctn__dist_same_sum,
    .grad = reduce_grad,
    .prepare = ctn__dist_sum_prepare,
    .run = reduce_run,
};

ctn_tensor *ctn_dist_broadcast_at(const char *at, ctn_comm *c, ctn_tensor *x, int root)
{
    return ctn__dist_apply(at, &op_broadcast, c, x, root);
}

ctn_tensor *ctn_dist_reduce_at(const char *at, ctn_comm *c, ctn_tensor *x, int root)
{
    return ctn__dist_apply(at, &op_reduce, c, x, root);
}
