/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_allreduce_max, dist_allreduce_min: y = the largest or smallest x of all ranks, element by
 * element. The gradient is divided among the ranks that have it:
 *   gx = [x == y] sum over ranks(gy) / sum over ranks([x == y])
 * The forms for one rank (reduce_max, reduce_min) are compositions: elsewhere the result is
 * replaced by zeros, and only the gy of root is left in the sum.
 */
#include "distributed/distributed.h"
#include "ops/ops.h"

static ctn_status run_extreme(const ctn_run_args *a, bool max)
{
    const ctn_desc *d = &a->dout[0];
    ctn__dist_copy(a);
    return ctn__dist_ran(a, ctn__comm_extreme(ctn__dist_comm(a->attr), max, a->out[0],
                                              ctn__count(d), d->dtype, a->scratch));
}

static ctn_status max_run(const ctn_run_args *a)
{
    return run_extreme(a, true);
}

static ctn_status min_run(const ctn_run_args *a)
{
    return run_extreme(a, false);
}

static ctn_status extreme_grad(const ctn_grad_args *a)
{
    ctn_comm *c = ctn__dist_comm(a->attr);
    ctn_tensor *has = ctn_equal_at(a->at, a->in[0], a->out[0]);
    has = ctn_cast_at(a->at, has, ctn_dtype_of(a->in[0]));
    ctn_tensor *count = ctn_dist_allreduce_at(a->at, c, has);
    ctn_tensor *g = ctn_dist_allreduce_at(a->at, c, a->gout[0]);
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, has, ctn_div_at(a->at, g, count)));
}

static ctn_op op_max = {
    .name = "dist_allreduce_max",
    CTN__DIST_FIELDS,
    .grad_in = CTN_OPERAND(0),
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(0),
    .infer = ctn__dist_same_sum,
    .grad = extreme_grad,
    .prepare = ctn__dist_sum_prepare,
    .run = max_run,
};

static ctn_op op_min = {
    .name = "dist_allreduce_min",
    CTN__DIST_FIELDS,
    .grad_in = CTN_OPERAND(0),
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(0),
    .infer = ctn__dist_same_sum,
    .grad = extreme_grad,
    .prepare = ctn__dist_sum_prepare,
    .run = min_run,
};

ctn_tensor *ctn_dist_allreduce_max_at(const char *at, ctn_comm *c, ctn_tensor *x)
{
    return ctn__dist_apply(at, &op_max, c, x, 0);
}

ctn_tensor *ctn_dist_allreduce_min_at(const char *at, ctn_comm *c, ctn_tensor *x)
{
    return ctn__dist_apply(at, &op_min, c, x, 0);
}

/* A product with zero would be NaN where y is not finite. */
static ctn_tensor *only_at(const char *at, ctn_op *op, ctn_comm *c, ctn_tensor *x, int root)
{
    ctn_tensor *y = ctn__dist_apply(at, op, c, x, root);
    if (!y || ctn_comm_rank(c) == root) return y;
    ctn_tensor *never = ctn_full_at(at, y->ctx, 0, CTN_BOOL, y->d.ndim, y->d.dim);
    ctn_tensor *zero = ctn_full_at(at, y->ctx, 0, y->d.dtype, y->d.ndim, y->d.dim);
    return ctn_where_at(at, never, y, zero);
}

ctn_tensor *ctn_dist_reduce_max_at(const char *at, ctn_comm *c, ctn_tensor *x, int root)
{
    return only_at(at, &op_max, c, x, root);
}

ctn_tensor *ctn_dist_reduce_min_at(const char *at, ctn_comm *c, ctn_tensor *x, int root)
{
    return only_at(at, &op_min, c, x, root);
}
