/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_allgather: y (size*N,...) is x (N,...) of every rank, in rank order; of any type. Gradient:
 * this rank's part of gy, summed over ranks, which is reduce_scatter.
 */
#include "dist/dist.h"

static ctn_status allgather_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__dist_rows(a));
    a->out[0] = *a->in[0];
    a->out[0].dim[0] *= a->attr[CTN__DIST_SIZE];
    return CTN_OK;
}

static ctn_status allgather_run(const ctn_run_args *a)
{
    return ctn_comm_allgather(ctn__dist_comm(a->attr), a->in[0], ctn__bytes(&a->din[0]), a->out[0]);
}

static ctn_status allgather_grad(const ctn_grad_args *a)
{
    a->gin[0] = ctn_dist_reduce_scatter_at(a->at, ctn__dist_comm(a->attr), a->gout[0]);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

static ctn_op op_allgather = {
    .struct_size = sizeof(ctn_op),
    .name = "dist_allgather",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ORDERED,
    .order = -1,
    .prec = CTN_PREC_F32,
    .attr_names = ctn__dist_attr_names,
    .infer = allgather_infer,
    .grad = allgather_grad,
    .run = allgather_run,
};

ctn_tensor *ctn_dist_allgather_at(const char *at, ctn_comm *c, ctn_tensor *x)
{
    return ctn__dist_apply(at, &op_allgather, c, x, 0);
}
