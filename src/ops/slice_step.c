/* SPDX-License-Identifier: Apache-2.0
 *
 * slice_step: elements start, start + step, start + 2 step, ... along every dimension; steps may be
 * negative. Attributes: length and step of each dimension. The starts are scalars of the plan, so
 * that a moving window reuses its plan; they are checked when the step runs. The public function
 * does this along one axis; flip and the gradient of pad use several.
 *
 * Gradient: slice_step_grad, which puts gy into zeros at the same places; its gradient is
 * slice_step again. A slice that takes every element is its own inverse.
 */
#include "ops/common/along.h"

/* Attributes of dimension i. LENGTH is the length of the smaller tensor. */
enum { LENGTH, STEP, SIZE, PER_DIM };
static const char *const attr_names[] = {"length 0", "step 0",   "size 0",   "length 1", "step 1",
                                         "size 1",   "length 2", "step 2",   "size 2",   "length 3",
                                         "step 3",   "size 3",   "length 4", "step 4",   "size 4",
                                         "length 5", "step 5",   "size 5",   "length 6", "step 6",
                                         "size 6",   "length 7", "step 7",   "size 7"};

static ctn_status slice_step_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    char t[128];
    a->out[0] = *x;
    for (int i = 0; i < x->ndim; i++) {
        const int64_t *d = a->attr + PER_DIM * i;
        const int64_t far = d[STEP] < 0 ? -d[STEP] : d[STEP];
        if (d[STEP] == 0 || d[STEP] == INT64_MIN || d[LENGTH] < 0 || d[LENGTH] > x->dim[i] ||
            (d[LENGTH] > 1 && (x->dim[i] - 1) / (d[LENGTH] - 1) < far))
            return ctn_fail(CTN_ESHAPE,
                            "slice_step: cannot take %lld elements with step %lld from axis %d of "
                            "%s",
                            (long long)d[LENGTH], (long long)d[STEP], i,
                            ctn__shape_text(x, t, sizeof t));
        a->out[0].dim[i] = d[LENGTH];
    }
    return CTN_OK;
}

static ctn_status slice_step_grad_infer(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    for (int i = 0; i < a->in[0]->ndim; i++) a->out[0].dim[i] = a->attr[PER_DIM * i + SIZE];
    return CTN_OK;
}

/* The elements that are taken from the larger tensor: its description becomes theirs, *first is the
 * offset of the first of them. */
static ctn_status taken(const ctn_run_args *a, ctn_desc *large, int64_t *first)
{
    *first = 0;
    for (int i = 0; i < large->ndim; i++) {
        const int64_t *d = a->attr + PER_DIM * i, n = large->dim[i];
        const double start = a->scalar[i] < 0 ? a->scalar[i] + (double)n : a->scalar[i];
        const double end = start + (double)(d[LENGTH] - 1) * (double)d[STEP];
        const bool fits = start >= 0 && start < (double)n && end >= 0 && end < (double)n;
        if (!fits && d[LENGTH] > 0)
            return ctn_fail(CTN_EARG,
                            "slice_step: %lld elements from %.0f with step %lld do not fit axis %d "
                            "of length %lld",
                            (long long)d[LENGTH], a->scalar[i], (long long)d[STEP], i,
                            (long long)n);
        *first += d[LENGTH] > 0 ? (int64_t)start * large->stride[i] : 0;
        large->dim[i] = d[LENGTH];
        large->stride[i] *= d[LENGTH] > 1 ? d[STEP] : 1; /* any step is possible to one element */
    }
    return CTN_OK;
}

static ctn_status slice_step_run(const ctn_run_args *a)
{
    ctn_desc from = a->din[0];
    int64_t first;
    CTN_TRY(taken(a, &from, &first));
    ctn__copy_view(a->out[0], &a->dout[0],
                   (const char *)a->in[0] + first * (int64_t)ctn_dtype_size(from.dtype), &from);
    return CTN_OK;
}

static ctn_status slice_step_grad_run(const ctn_run_args *a)
{
    ctn_desc to = a->dout[0];
    int64_t first;
    CTN_TRY(taken(a, &to, &first));
    ctn__zero(a->out[0], ctn__bytes(&a->dout[0]), a->env ? a->env->threads : 1);
    ctn__copy_view((char *)a->out[0] + first * (int64_t)ctn_dtype_size(to.dtype), &to, a->in[0],
                   &a->din[0]);
    return CTN_OK;
}

static ctn_status record(const ctn_grad_args *a, ctn_op *op)
{
    return ctn__grad_to(a, 0,
                        ctn__apply1(a->at, NULL, op, 1, a->gout, a->nattr, a->attr, a->nscalar,
                                    a->scalar));
}

static ctn_status slice_step_grad_of(const ctn_grad_args *a)
{
    const bool all = ctn__same_shape(&a->in[0]->d, &a->out[0]->d);
    return record(a, all ? &ctn__op_slice_step : &ctn__op_slice_step_grad);
}

static ctn_status slice_step_grad_grad(const ctn_grad_args *a)
{
    return record(a, &ctn__op_slice_step);
}

ctn_op ctn__op_slice_step = {
    .struct_size = sizeof(ctn_op),
    .name = "slice_step",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .spatial_in = CTN_OPERAND(0),
    .spatial_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = slice_step_infer,
    .grad = slice_step_grad_of,
    .run = slice_step_run,
};

ctn_op ctn__op_slice_step_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "slice_step_grad",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .spatial_in = CTN_OPERAND(0),
    .spatial_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = slice_step_grad_infer,
    .grad = slice_step_grad_grad,
    .run = slice_step_grad_run,
};

ctn_tensor *ctn__slice_dims(const char *at, ctn_tensor *x, const int64_t *start,
                            const int64_t *length, const int64_t *step)
{
    int64_t attr[PER_DIM * CTN_MAX_DIMS];
    ctn_scalar first[CTN_MAX_DIMS];
    const int nd = x ? x->d.ndim : 0;
    for (int i = 0; i < nd; i++) {
        attr[PER_DIM * i + LENGTH] = length[i];
        attr[PER_DIM * i + STEP] = step[i];
        attr[PER_DIM * i + SIZE] = x->d.dim[i];
        first[i] = CTN_CONST((double)start[i]);
    }
    return ctn__apply1(at, NULL, &ctn__op_slice_step, 1, &x, PER_DIM * nd, attr, nd, first);
}

ctn_tensor *ctn_slice_step_at(const char *at, ctn_tensor *x, int64_t axis, int64_t start,
                              int64_t length, int64_t stride)
{
    int64_t first[CTN_MAX_DIMS] = {0}, count[CTN_MAX_DIMS], step[CTN_MAX_DIMS];
    const int ax = x ? ctn__axis_of("slice_step", at, x, axis) : 0;
    if (ax < 0) return NULL;
    for (int i = 0; x && i < x->d.ndim; i++) {
        first[i] = i == ax ? start : 0;
        count[i] = i == ax ? length : x->d.dim[i];
        step[i] = i == ax ? stride : 1;
    }
    return ctn__slice_dims(at, x, first, count, step);
}
