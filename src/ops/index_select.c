/* SPDX-License-Identifier: Apache-2.0
 *
 * index_select: slices of x along one axis. For axis 1 of 3: y[i,k,j] = x[i,index[k],j]. Gradient:
 * the slices of gy with the same index are added up, which is segment_sum; its gradient is
 * index_select again.
 */
#include "ops/common/rows.h"

enum { AXIS };
static const char *const attr_names[] = {"axis"};

static ctn_status index_select_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *index = a->in[1];
    int axis;
    char t[128];
    CTN_TRY(ctn__infer_index(a, index));
    CTN_TRY(ctn__infer_axis(a, x, a->attr[AXIS], &axis));
    if (index->ndim != 1)
        return ctn_fail(CTN_ESHAPE, "index_select: index is %s, expected one dimension",
                        ctn__shape_text(index, t, sizeof t));
    a->out[0] = *x;
    a->out[0].dim[axis] = index->dim[0];
    return CTN_OK;
}

static ctn_status index_select_run(const ctn_run_args *a)
{
    return ctn__select_run("index_select", a, ctn__axis(a->din[0].ndim, a->attr[AXIS]));
}

static ctn_status index_select_grad(const ctn_grad_args *a)
{
    const ctn_desc *x = &a->in[0]->d;
    const int axis = ctn__axis(x->ndim, a->attr[AXIS]);
    return ctn__grad_to(a, 0,
                        ctn__segment_sum_along(a->at, a->gout[0], a->in[1], x->dim[axis], axis,
                                               NULL));
}

ctn_op ctn__op_index_select = {
    .struct_size = sizeof(ctn_op),
    .name = "index_select",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(1),
    .attr_names = attr_names,
    .infer = index_select_infer,
    .grad = index_select_grad,
    .run = index_select_run,
};

ctn_tensor *ctn_index_select_at(const char *at, ctn_tensor *x, ctn_tensor *index, int64_t axis)
{
    ctn_tensor *in[2] = {x, index};
    return ctn__apply1(at, NULL, &ctn__op_index_select, 2, in, 1, &axis, 0, NULL);
}
