/* SPDX-License-Identifier: Apache-2.0
 *
 * segment_sum: y[v] = sum of x[e] over all e with ids[e] = v, along any axis. Inputs: x, ids, and
 * offsets and order from group_ids. Gradient: gx = index_select(gy, ids).
 *
 * A fifth input, which has the shape of y, is added to it, possibly in place. That is index_add,
 * and it is how the gradient of an embedding is added to another one
 * (plan/fuse/row_gradient.c).
 */
#include "ops/common/rows.h"

enum { X, IDS, OFFSETS, ORDER, BASE };
enum { AXIS };
static const char *const attr_names[] = {"axis"};

ctn_status ctn__infer_segments(const ctn_infer_args *a, int64_t axis_attr, int *axis)
{
    const ctn_desc *x = a->in[X], *ids = a->in[IDS];
    char tx[128], ti[128];
    CTN_TRY(ctn__infer_arith(a, x));
    CTN_TRY(ctn__infer_axis(a, x, axis_attr, axis));
    if (x->dim[*axis] == ids->dim[0]) return CTN_OK;
    return ctn_fail(CTN_ESHAPE, "%s along axis %d: x is %s, ids are %s", a->name, *axis,
                    ctn__shape_text(x, tx, sizeof tx), ctn__shape_text(ids, ti, sizeof ti));
}

static ctn_status segment_sum_infer(ctn_infer_args *a)
{
    char tb[128], ti[128], tx[128];
    int axis;
    CTN_TRY(ctn__infer_segments(a, a->attr[AXIS], &axis));
    a->out[0] = *a->in[X];
    a->out[0].dim[axis] = a->in[OFFSETS]->dim[0] - 1;
    if (a->nin <= BASE) return CTN_OK;
    const ctn_desc *base = a->in[BASE];
    if (base->dtype != a->in[X]->dtype)
        return ctn_fail(CTN_EDTYPE,
                        "index_add: x is %s, src is %s; expected the same type; use ctn_cast",
                        ctn_dtype_name(base->dtype), ctn_dtype_name(a->in[X]->dtype));
    if (!ctn__same_shape(base, &a->out[0]))
        return ctn_fail(
            CTN_ESHAPE,
            "index_add along axis %d: shapes do not match: x is %s, index is %s, src is %s", axis,
            ctn__shape_text(base, tb, sizeof tb), ctn__shape_text(a->in[IDS], ti, sizeof ti),
            ctn__shape_text(a->in[X], tx, sizeof tx));
    return CTN_OK;
}

static ctn_status segment_sum_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[X];
    const ctn__along s = ctn__along_axis(x, ctn__axis(x->ndim, a->attr[AXIS]));
    ctn__rows_reduce(&(ctn__rows){.kind = CTN__ROWS_SUM,
                                  .dtype = x->dtype,
                                  .offsets = a->in[OFFSETS],
                                  .row = a->in[ORDER],
                                  .offset_type = CTN_I64,
                                  .row_type = CTN_I64,
                                  .n = a->din[OFFSETS].dim[0] - 1,
                                  .terms = s.n,
                                  .outer = s.outer,
                                  .rows = s.n,
                                  .D = s.inner,
                                  .x = a->in[X],
                                  .width = s.inner,
                                  .base = a->nin > BASE ? a->in[BASE] : NULL,
                                  .y = a->out[0],
                                  .threads = a->env ? a->env->threads : 1});
    return CTN_OK;
}

static ctn_status segment_sum_grad(const ctn_grad_args *a)
{
    if (a->nin > BASE) a->gin[BASE] = a->gout[0];
    if (!a->need[X]) return CTN_OK;
    return ctn__grad_to(a, X, ctn_index_select_at(a->at, a->gout[0], a->in[IDS], a->attr[AXIS]));
}

ctn_op ctn__op_segment_sum = {
    .struct_size = sizeof(ctn_op),
    .name = "segment_sum",
    .nin = -1,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(IDS),
    .inplace = CTN_OPERAND(BASE),
    .attr_names = attr_names,
    .infer = segment_sum_infer,
    .grad = segment_sum_grad,
    .run = segment_sum_run,
};

ctn_tensor *ctn__segment_sum_along(const char *at, ctn_tensor *x, ctn_tensor *ids, int64_t n,
                                   int64_t axis, ctn_tensor *base)
{
    ctn_tensor *in[5] = {x, ids, NULL, NULL, base};
    if (ctn__group_record(at, ids, n, in + OFFSETS) < 0) return NULL;
    return ctn__apply1(at, NULL, &ctn__op_segment_sum, base ? 5 : 4, in, 1, &axis, 0, NULL);
}

ctn_tensor *ctn__segment_record(const char *at, ctn_op *op, ctn_tensor *x, ctn_tensor *ids,
                                int64_t n)
{
    ctn_tensor *in[4] = {x, ids, NULL, NULL};
    if (ctn__group_record(at, ids, n, in + OFFSETS) < 0) return NULL;
    return ctn__apply1(at, NULL, op, 4, in, 0, NULL, 0, NULL);
}

ctn_tensor *ctn_segment_sum_at(const char *at, ctn_tensor *x, ctn_tensor *ids, int64_t n)
{
    return ctn__segment_sum_along(at, x, ids, n, 0, NULL);
}

/* A recorded sum over the ones of all rows counts them. */
ctn_tensor *ctn_segment_mean_at(const char *at, ctn_tensor *x, ctn_tensor *ids, int64_t n)
{
    ctn_tensor *sum = ctn_segment_sum_at(at, x, ids, n);
    int64_t ones[CTN_MAX_DIMS] = {0};
    if (!sum) return NULL;
    for (int i = 0; i < x->d.ndim; i++) ones[i] = i == 0 ? x->d.dim[0] : 1;
    ctn_tensor *one = ctn_full_at(at, x->ctx, 1, x->d.dtype, x->d.ndim, ones);
    ctn_tensor *count = ctn_segment_sum_at(at, one, ids, n);
    ones[0] = 1;
    one = ctn_full_at(at, x->ctx, 1, x->d.dtype, x->d.ndim, ones);
    return ctn_div_at(at, sum, ctn_maximum_at(at, count, one));
}

ctn_tensor *ctn_index_add_at(const char *at, ctn_tensor *x, ctn_tensor *index, ctn_tensor *src,
                             int64_t axis)
{
    char t[128];
    if (!x) return NULL;
    const int ax = ctn__axis(x->d.ndim, axis);
    if (ax < 0) {
        ctn_fail(CTN_ESHAPE, "index_add: axis %lld does not exist in %s (%s)", (long long)axis,
                 ctn__shape_text(&x->d, t, sizeof t), at);
        return NULL;
    }
    return ctn__segment_sum_along(at, src, index, x->d.dim[ax], ax, x);
}
