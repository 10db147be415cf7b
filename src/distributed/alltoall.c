/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_alltoall: part r of y (size*N,...) is this rank's part of the x of rank r; any type. The
 * gradient sends every part back where it came from: the same op again.
 */
#include "distributed/distributed.h"

static ctn_op op_alltoall;

static ctn_status alltoall_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__dist_parts(a));
    return ctn__dist_same(a);
}

static ctn_status alltoall_run(const ctn_run_args *a)
{
    const size_t part = ctn__bytes(&a->dout[0]) / (size_t)a->attr[CTN__DIST_SIZE];
    return ctn__dist_ran(a, ctn__comm_alltoall(ctn__dist_comm(a->attr), a->in[0], part, a->out[0]));
}

static ctn_status alltoall_grad(const ctn_grad_args *a)
{
    return ctn__dist_grad(a, &op_alltoall);
}

static ctn_op op_alltoall = {
    .name = "dist_alltoall",
    CTN__DIST_FIELDS,
    .infer = alltoall_infer,
    .grad = alltoall_grad,
    .run = alltoall_run,
};

ctn_tensor *ctn_dist_alltoall_at(const char *at, ctn_comm *c, ctn_tensor *x)
{
    return ctn__dist_apply(at, &op_alltoall, c, x, 0);
}
