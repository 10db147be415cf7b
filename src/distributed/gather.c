/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_gather: y (size*N,...) at root is x (N,...) of every rank in rank order, and zero elsewhere.
 * dist_scatter: y (N,...) is this rank's part of the x (size*N,...) of root. Any type. Each is the
 * gradient of the other. Shapes are the same on all ranks, so all record the same program.
 */
#include "distributed/distributed.h"

static ctn_op op_gather, op_scatter;

static ctn_status gather_run(const ctn_run_args *a)
{
    const bool is_root = a->attr[CTN__DIST_RANK] == a->attr[CTN__DIST_ROOT];
    if (!is_root) memset(a->out[0], 0, ctn__bytes(&a->dout[0]));
    return ctn__dist_ran(a,
                         ctn_comm_gather(ctn__dist_comm(a->attr), a->in[0], ctn__bytes(&a->din[0]),
                                         is_root ? a->out[0] : NULL, (int)a->attr[CTN__DIST_ROOT]));
}

static ctn_status gather_grad(const ctn_grad_args *a)
{
    return ctn__dist_grad(a, &op_scatter);
}

static ctn_op op_gather = {
    .name = "dist_gather",
    CTN__DIST_FIELDS,
    .infer = ctn__dist_all_parts,
    .grad = gather_grad,
    .run = gather_run,
};

static ctn_status scatter_run(const ctn_run_args *a)
{
    return ctn__dist_ran(a, ctn_comm_scatter(ctn__dist_comm(a->attr), a->in[0],
                                             ctn__bytes(&a->dout[0]), a->out[0],
                                             (int)a->attr[CTN__DIST_ROOT]));
}

static ctn_status scatter_grad(const ctn_grad_args *a)
{
    return ctn__dist_grad(a, &op_gather);
}

static ctn_op op_scatter = {
    .name = "dist_scatter",
    CTN__DIST_FIELDS,
    .infer = ctn__dist_one_part,
    .grad = scatter_grad,
    .run = scatter_run,
};

ctn_tensor *ctn_dist_gather_at(const char *at, ctn_comm *c, ctn_tensor *x, int root)
{
    return ctn__dist_apply(at, &op_gather, c, x, root);
}

ctn_tensor *ctn_dist_scatter_at(const char *at, ctn_comm *c, ctn_tensor *x, int root)
{
    return ctn__dist_apply(at, &op_scatter, c, x, root);
}
