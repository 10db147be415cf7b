/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_allreduce: y = sum of x over ranks, the same bits on each. The loss is the sum of the ranks'
 * losses, and every one of them may depend on y, so the gradient is the sum of gy over ranks: the
 * op again. Also what the other ops of this folder share.
 */
#include "dist/dist.h"

const char *const ctn__dist_attr_names[] = {"comm", "rank", "size", "root"};

ctn_status ctn__dist_attr(const char *who, ctn_comm *c, int root, int64_t *attr)
{
    if (!c) return ctn_fail(CTN_EARG, "%s: no communicator", who);
    if (root < 0 || root >= ctn_comm_size(c))
        return ctn_fail(CTN_EARG, "%s: root is %d, there are %d ranks", who, root,
                        ctn_comm_size(c));
    attr[CTN__DIST_COMM] = (int64_t)(intptr_t)c;
    attr[CTN__DIST_RANK] = ctn_comm_rank(c);
    attr[CTN__DIST_SIZE] = ctn_comm_size(c);
    attr[CTN__DIST_ROOT] = root;
    return CTN_OK;
}

ctn_tensor *ctn__dist_apply(const char *at, ctn_op *op, ctn_comm *c, ctn_tensor *x, int root)
{
    int64_t attr[CTN__DIST_NATTR];
    if (ctn__dist_attr(op->name, c, root, attr) < 0) return NULL;
    return ctn__apply1(at, NULL, op, 1, &x, CTN__DIST_NATTR, attr, 0, NULL);
}

ctn_status ctn__dist_summable(const ctn_infer_args *a)
{
    if (a->in[0]->dtype == CTN_F32 || a->in[0]->dtype == CTN_F64) return CTN_OK;
    return ctn_fail(CTN_EDTYPE, "%s: x is %s, f32 or f64 is needed", a->name,
                    ctn_dtype_name(a->in[0]->dtype));
}

ctn_status ctn__dist_rows(const ctn_infer_args *a)
{
    if (a->in[0]->ndim > 0) return CTN_OK;
    return ctn_fail(CTN_ESHAPE, "%s: x is (), (N,...) is needed", a->name);
}

void ctn__dist_copy(const ctn_run_args *a)
{
    if (a->out[0] != a->in[0]) memcpy(a->out[0], a->in[0], ctn__bytes(&a->dout[0]));
}

static ctn_status allreduce_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__dist_summable(a));
    a->out[0] = *a->in[0];
    return CTN_OK;
}

ctn_status ctn__dist_sum_prepare(ctn_prepare_args *a)
{
    a->scratch = ctn__bytes(&a->dout[0]);
    return CTN_OK;
}

/* Not in the line of buckets: where in the backward pass these start depends on the plan, and ranks may run different ones. */
ctn_status ctn__dist_sum(const ctn_run_args *a)
{
    const ctn_desc *d = &a->dout[0];
    ctn__dist_copy(a);
    return ctn__comm_sum(ctn__dist_comm(a->attr), a->out[0], ctn__count(d), d->dtype, a->scratch);
}

static ctn_status allreduce_grad(const ctn_grad_args *a)
{
    a->gin[0] = ctn_dist_allreduce_at(a->at, ctn__dist_comm(a->attr), a->gout[0]);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

static ctn_op op_allreduce = {
    .struct_size = sizeof(ctn_op),
    .name = "dist_allreduce",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ORDERED,
    .order = -1,
    .prec = CTN_PREC_F32,
    .inplace = 1,
    .attr_names = ctn__dist_attr_names,
    .infer = allreduce_infer,
    .grad = allreduce_grad,
    .prepare = ctn__dist_sum_prepare,
    .run = ctn__dist_sum,
};

ctn_tensor *ctn_dist_allreduce_at(const char *at, ctn_comm *c, ctn_tensor *x)
{
    return ctn__dist_apply(at, &op_allreduce, c, x, 0);
}
