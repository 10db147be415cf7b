/* SPDX-License-Identifier: Apache-2.0
 *
 * segment_max: y[v] = the largest x[e] of all e with ids[e] = v in each column, NaN if there is
 * one, 0 if there is no such e. Inputs: x, ids, and offsets and order from group_ids. Elements that
 * are equal to the result share the gradient evenly: gx = m (gy / count)[ids], where m is 1 at
 * these elements and count is their number.
 */
#include "ops/common/rows.h"

enum { X, IDS, OFFSETS, ORDER };

static ctn_status segment_max_infer(ctn_infer_args *a)
{
    int axis;
    CTN_TRY(ctn__infer_segments(a, 0, &axis));
    a->out[0] = *a->in[X];
    a->out[0].dim[0] = a->in[OFFSETS]->dim[0] - 1;
    return CTN_OK;
}

static ctn_status segment_max_run(const ctn_run_args *a)
{
    const ctn__along s = ctn__along_axis(&a->din[X], 0);
    ctn__rows_reduce(&(ctn__rows){.kind = CTN__ROWS_MAX,
                                  .dtype = a->din[X].dtype,
                                  .offsets = a->in[OFFSETS],
                                  .row = a->in[ORDER],
                                  .offset_type = CTN_I64,
                                  .row_type = CTN_I64,
                                  .n = a->din[OFFSETS].dim[0] - 1,
                                  .terms = s.n,
                                  .outer = 1,
                                  .rows = s.n,
                                  .D = s.inner,
                                  .x = a->in[X],
                                  .width = s.inner,
                                  .y = a->out[0],
                                  .threads = a->env ? a->env->threads : 1});
    return CTN_OK;
}

static ctn_status segment_max_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *ids = a->in[IDS], *y = a->out[0];
    ctn_tensor *m = ctn_equal_at(at, a->in[X], ctn_index_select_at(at, y, ids, 0));
    m = ctn_cast_at(at, m, y->d.dtype);
    ctn_tensor *one = ctn_full_at(at, a->ctx, 1, y->d.dtype, 0, NULL);
    ctn_tensor *count = ctn_segment_sum_at(at, m, ids, y->d.dim[0]);
    ctn_tensor *share = ctn_div_at(at, a->gout[0], ctn_maximum_at(at, count, one));
    return ctn__grad_to(a, X, ctn_mul_at(at, m, ctn_index_select_at(at, share, ids, 0)));
}

ctn_op ctn__op_segment_max = {
    .struct_size = sizeof(ctn_op),
    .name = "segment_max",
    .nin = 4,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(X) | CTN_OPERAND(IDS),
    .grad_out = CTN_OPERAND(0),
    .infer = segment_max_infer,
    .grad = segment_max_grad,
    .run = segment_max_run,
};

ctn_tensor *ctn_segment_max_at(const char *at, ctn_tensor *x, ctn_tensor *ids, int64_t n)
{
    return ctn__segment_record(at, &ctn__op_segment_max, x, ids, n);
}
