/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_allgather: y (size*N,...) is x (N,...) of every rank, in rank order; any type. The gradient
 * is this rank's part of gy, summed over ranks: a reduce_scatter.
 */
#include "distributed/distributed.h"

static ctn_status allgather_run(const ctn_run_args *a)
{
    return ctn__dist_ran(a, ctn_comm_allgather(ctn__dist_comm(a->attr), a->in[0],
                                               ctn__bytes(&a->din[0]), a->out[0]));
}

static ctn_status allgather_grad(const ctn_grad_args *a)
{
    return ctn__dist_grad(a, &ctn__dist_reduce_scatter);
}

ctn_op ctn__dist_allgather = {
    .name = "dist_allgather",
    CTN__DIST_FIELDS,
    .infer = ctn__dist_all_parts,
    .grad = allgather_grad,
    .run = allgather_run,
};

ctn_tensor *ctn_dist_allgather_at(const char *at, ctn_comm *c, ctn_tensor *x)
{
    return ctn__dist_apply(at, &ctn__dist_allgather, c, x, 0);
}
