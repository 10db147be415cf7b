/* SPDX-License-Identifier: Apache-2.0
 *
 * slice: `length` elements along an axis, beginning at `start`. The start is a scalar of the
 * plan, so that a moving window reuses its plan; it is checked when the step runs. Gradient:
 * slice_grad, which puts gy into zeros at the same start; its gradient is slice again.
 */
#include "ops/common/along.h"

enum { SHORT = 64 };          /* bytes; zeros are written over whole rows that are shorter */
enum { AXIS, LENGTH, NATTR }; /* of slice_grad, LENGTH is the length of the result's axis */
static const char *const attr_names[] = {"axis", "length"};

static ctn_status slice_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int axis;
    char t[128];
    CTN_TRY(ctn__infer_axis(a, x, a->attr[AXIS], &axis));
    if (a->attr[LENGTH] < 0 || a->attr[LENGTH] > x->dim[axis])
        return ctn_fail(CTN_ESHAPE, "slice: cannot take length %lld from axis %d of %s",
                        (long long)a->attr[LENGTH], axis, ctn__shape_text(x, t, sizeof t));
    a->out[0] = *x;
    a->out[0].dim[axis] = a->attr[LENGTH];
    return CTN_OK;
}

/* The start counted from 0. Fails unless `length` of the n elements follow it. */
static ctn_status start_of(double start, int64_t n, int64_t length, int64_t *out)
{
    double s = start < 0 ? start + (double)n : start;
    if (!(s >= 0 && s <= (double)(n - length)))
        return ctn_fail(CTN_EARG, "slice: start %.0f with length %lld does not fit an axis of %lld",
                        start, (long long)length, (long long)n);
    *out = (int64_t)s;
    return CTN_OK;
}

static ctn_status slice_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    ctn__along s = ctn__along_axis(x, ctn__axis(x->ndim, a->attr[AXIS]));
    int64_t start = 0, n = a->attr[LENGTH];
    CTN_TRY(start_of(a->scalar[0], s.n, n, &start));
    ctn__copy_block(&(ctn__block_copy){.dst = a->out[0],
                                       .src = a->in[0],
                                       .dn = n,
                                       .sn = s.n,
                                       .sat = start,
                                       .outer = s.outer,
                                       .len = n,
                                       .inner = s.inner,
                                       .dtype = x->dtype});
    return CTN_OK;
}

static ctn_tensor *record(const ctn_grad_args *a, ctn_op *op, int64_t length)
{
    int64_t attr[NATTR] = {a->attr[AXIS], length};
    return ctn__apply1(a->at, NULL, op, 1, a->gout, NATTR, attr, 1, a->scalar);
}

static ctn_status slice_grad_of(const ctn_grad_args *a)
{
    const ctn_desc *x = &a->in[0]->d;
    int64_t n = x->dim[ctn__axis(x->ndim, a->attr[AXIS])];
    return ctn__grad_to(a, 0, record(a, &ctn__op_slice_grad, n));
}

ctn_op ctn__op_slice = {
    .struct_size = sizeof(ctn_op),
    .name = "slice",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .low_in = CTN_OPERAND(0),
    .low_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = slice_infer,
    .grad = slice_grad_of,
    .run = slice_run,
};

static ctn_status slice_grad_infer(ctn_infer_args *a)
{
    int axis;
    CTN_TRY(ctn__infer_axis(a, a->in[0], a->attr[AXIS], &axis));
    a->out[0] = *a->in[0];
    a->out[0].dim[axis] = a->attr[LENGTH];
    return CTN_OK;
}

static ctn_status slice_grad_run(const ctn_run_args *a)
{
    const ctn_desc *g = &a->din[0];
    ctn__along s = ctn__along_axis(g, ctn__axis(g->ndim, a->attr[AXIS]));
    int64_t start = 0, n = a->attr[LENGTH], unit = s.inner * (int64_t)ctn_dtype_size(g->dtype);
    char *gx = a->out[0];
    CTN_TRY(start_of(a->scalar[0], n, s.n, &start));
    if (n * unit < SHORT) memset(gx, 0, (size_t)(s.outer * n * unit));
#pragma omp parallel for schedule(static) if (s.outer * n * unit > 4 * CTN__GRAIN)
    for (int64_t o = 0; o < (n * unit < SHORT ? 0 : s.outer); o++) {
        memset(gx + o * n * unit, 0, (size_t)(start * unit));
        memset(gx + (o * n + start + s.n) * unit, 0, (size_t)((n - start - s.n) * unit));
    }
    ctn__copy_block(&(ctn__block_copy){.dst = gx,
                                       .src = a->in[0],
                                       .dn = n,
                                       .dat = start,
                                       .sn = s.n,
                                       .outer = s.outer,
                                       .len = s.n,
                                       .inner = s.inner,
                                       .dtype = g->dtype});
    return CTN_OK;
}

static ctn_status slice_grad_grad(const ctn_grad_args *a)
{
    const ctn_desc *g = &a->in[0]->d;
    int64_t n = g->dim[ctn__axis(g->ndim, a->attr[AXIS])];
    return ctn__grad_to(a, 0, record(a, &ctn__op_slice, n));
}

ctn_op ctn__op_slice_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "slice_grad",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .low_in = CTN_OPERAND(0),
    .low_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = slice_grad_infer,
    .grad = slice_grad_grad,
    .run = slice_grad_run,
};

ctn_tensor *ctn_slice_at(const char *at, ctn_tensor *x, int64_t axis, int64_t start, int64_t length)
{
    int64_t attr[NATTR] = {axis, length};
    return ctn__apply1(at, NULL, &ctn__op_slice, 1, &x, NATTR, attr, 1, &CTN_CONST((double)start));
}
