/* SPDX-License-Identifier: Apache-2.0
 *
 * concat: tensors joined along an axis; all other dimensions are equal. Gradient: slices of gy.
 */
#include "ops/common/along.h"

enum { AXIS };

static ctn_status concat_infer(ctn_infer_args *a)
{
    const ctn_desc *first = a->in[0];
    int axis;
    char tx[128], ty[128];
    CTN_TRY(ctn__infer_axis(a, first, a->attr[AXIS], &axis));
    a->out[0] = *first;
    for (int i = 1; i < a->nin; i++) {
        ctn_desc d = *a->in[i];
        if (d.dtype != first->dtype)
            return ctn_fail(
                CTN_EDTYPE,
                "concat: input 0 is %s, input %d is %s; expected the same type; use ctn_cast",
                ctn_dtype_name(first->dtype), i, ctn_dtype_name(d.dtype));
        if (d.ndim == first->ndim) {
            a->out[0].dim[axis] += d.dim[axis];
            d.dim[axis] = first->dim[axis];
        }
        if (!ctn__same_shape(&d, first))
            return ctn_fail(
                CTN_ESHAPE,
                "concat along axis %d: shapes do not match: input 0 is %s, input %d is %s", axis,
                ctn__shape_text(first, tx, sizeof tx), i, ctn__shape_text(a->in[i], ty, sizeof ty));
    }
    return ctn__desc_set(&a->out[0], a->name, first->dtype, first->ndim, a->out[0].dim);
}

static ctn_status concat_run(const ctn_run_args *a)
{
    const ctn_desc *y = &a->dout[0];
    int axis = ctn__axis(y->ndim, a->attr[AXIS]);
    int64_t at = 0;
    for (int i = 0; i < a->nin; i++) {
        ctn__along s = ctn__along_axis(&a->din[i], axis);
        ctn__copy_block(&(ctn__block_copy){.dst = a->out[0],
                                           .src = a->in[i],
                                           .dn = y->dim[axis],
                                           .dat = at,
                                           .sn = s.n,
                                           .outer = s.outer,
                                           .len = s.n,
                                           .inner = s.inner,
                                           .dtype = y->dtype});
        at += s.n;
    }
    return CTN_OK;
}

static ctn_status concat_grad(const ctn_grad_args *a)
{
    int axis = ctn__axis(a->out[0]->d.ndim, a->attr[AXIS]);
    int64_t at = 0;
    for (int i = 0; i < a->nin; i++) {
        int64_t n = a->in[i]->d.dim[axis];
        if (a->need[i]) CTN_TRY(ctn__grad_to(a, i, ctn_slice_at(a->at, a->gout[0], axis, at, n)));
        at += n;
    }
    return CTN_OK;
}

ctn_op ctn__op_concat = {
    .struct_size = sizeof(ctn_op),
    .name = "concat",
    .nin = -1,
    .nout = 1,
    .order = -1,
    .low_in = CTN_OPERANDS(CTN_MAX_IN),
    .low_out = CTN_OPERAND(0),
    .infer = concat_infer,
    .grad = concat_grad,
    .run = concat_run,
};

/* More tensors than an op has inputs are joined in groups first. The groups are of equal size, so
 * every element is copied log(n) / log(CTN_MAX_IN) times, rounded up. */
ctn_tensor *ctn_concat_at(const char *at, int n, ctn_tensor *const *x, int64_t axis)
{
    ctn_tensor *part[CTN_MAX_IN];
    if (n < 1) {
        ctn_fail(CTN_EARG, "concat: got %d tensors, expected at least 1 (%s)", n, at);
        return NULL;
    }
    int64_t group = 1; /* tensors per input of the last concat */
    while (group * CTN_MAX_IN < n) group *= CTN_MAX_IN;
    if (group == 1) return ctn__apply1(at, NULL, &ctn__op_concat, n, x, 1, &axis, 0, NULL);
    int parts = 0;
    for (int64_t i = 0; i < n; i += group, parts++) {
        part[parts] = ctn_concat_at(at, (int)(n - i < group ? n - i : group), x + i, axis);
        if (!part[parts]) return NULL;
    }
    return ctn__apply1(at, NULL, &ctn__op_concat, parts, part, 1, &axis, 0, NULL);
}
