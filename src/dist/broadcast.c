/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_broadcast: y = x of root on every rank; of any type. Its gradient is an op of its own,
 * dist_reduce: the sum of gy over ranks at root and zero elsewhere, of which broadcast is the
 * gradient again. All ranks take part in both, also those whose result is zero.
 */
#include "dist/dist.h"

static ctn_op op_broadcast, op_reduce;

static ctn_status broadcast_infer(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    return CTN_OK;
}

static ctn_status broadcast_run(const ctn_run_args *a)
{
    ctn__dist_copy(a);
    return ctn_comm_broadcast(ctn__dist_comm(a->attr), a->out[0], ctn__bytes(&a->dout[0]),
                              (int)a->attr[CTN__DIST_ROOT]);
}

static ctn_status grad_by(const ctn_grad_args *a, ctn_op *op)
{
    a->gin[0] = ctn__dist_apply(a->at, op, ctn__dist_comm(a->attr), a->gout[0],
                                (int)a->attr[CTN__DIST_ROOT]);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

static ctn_status broadcast_grad(const ctn_grad_args *a)
{
    return grad_by(a, &op_reduce);
}

static ctn_op op_broadcast = {
    .struct_size = sizeof(ctn_op),
    .name = "dist_broadcast",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ORDERED,
    .order = -1,
    .prec = CTN_PREC_F32,
    .inplace = 1,
    .attr_names = ctn__dist_attr_names,
    .infer = broadcast_infer,
    .grad = broadcast_grad,
    .run = broadcast_run,
};

/* ---- its gradient ---------------------------------------------------------------------------- */

static ctn_status reduce_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__dist_summable(a));
    return broadcast_infer(a);
}

static ctn_status reduce_run(const ctn_run_args *a)
{
    const ctn_desc *d = &a->dout[0];
    CTN_TRY(ctn__dist_sum(a));
    if (a->attr[CTN__DIST_RANK] != a->attr[CTN__DIST_ROOT]) memset(a->out[0], 0, ctn__bytes(d));
    return CTN_OK;
}

static ctn_status reduce_grad(const ctn_grad_args *a)
{
    return grad_by(a, &op_broadcast);
}

static ctn_op op_reduce = {
    .struct_size = sizeof(ctn_op),
    .name = "dist_reduce",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ORDERED,
    .order = -1,
    .prec = CTN_PREC_F32,
    .inplace = 1,
    .attr_names = ctn__dist_attr_names,
    .infer = reduce_infer,
    .grad = reduce_grad,
    .prepare = ctn__dist_sum_prepare,
    .run = reduce_run,
};

ctn_tensor *ctn_dist_broadcast_at(const char *at, ctn_comm *c, ctn_tensor *x, int root)
{
    return ctn__dist_apply(at, &op_broadcast, c, x, root);
}
