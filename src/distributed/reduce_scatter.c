/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_reduce_scatter: y (N,...) is this rank's part of the sum of x (size*N,...) over ranks. The
 * sum is computed in a copy of x, since the rounds of a ring overwrite it. The gradient puts the
 * parts together again: an allgather.
 */
#include "distributed/distributed.h"

static ctn_status reduce_scatter_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__dist_rows(a));
    CTN_TRY(ctn__dist_summable(a));
    return ctn__dist_one_part(a);
}

static ctn_status reduce_scatter_prepare(ctn_prepare_args *a)
{
    a->scratch = 2 * ctn__bytes(&a->din[0]);
    return CTN_OK;
}

static ctn_status reduce_scatter_run(const ctn_run_args *a)
{
    ctn_comm *c = ctn__dist_comm(a->attr);
    const size_t part = ctn__bytes(&a->dout[0]);
    char *sum = a->scratch;
    const size_t bytes = ctn__bytes(&a->din[0]);
    memcpy(sum, a->in[0], bytes);
    CTN_TRY(ctn__dist_ran(a, ctn__comm_sum_scatter(c, sum, ctn__count(&a->din[0]), a->din[0].dtype,
                                                   sum + bytes)));
    memcpy(a->out[0], sum + (size_t)a->attr[CTN__DIST_RANK] * part, part);
    return CTN_OK;
}

static ctn_status reduce_scatter_grad(const ctn_grad_args *a)
{
    return ctn__dist_grad(a, &ctn__dist_allgather);
}

ctn_op ctn__dist_reduce_scatter = {
    .name = "dist_reduce_scatter",
    CTN__DIST_FIELDS,
    .infer = reduce_scatter_infer,
    .grad = reduce_scatter_grad,
    .prepare = reduce_scatter_prepare,
    .run = reduce_scatter_run,
};

ctn_tensor *ctn_dist_reduce_scatter_at(const char *at, ctn_comm *c, ctn_tensor *x)
{
    return ctn__dist_apply(at, &ctn__dist_reduce_scatter, c, x, 0);
}
