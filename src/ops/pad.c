/* SPDX-License-Identifier: Apache-2.0
 *
 * pad: add elements of one value before and after each dimension. The attributes are the lengths
 * before and after, dimension by dimension; the value is a scalar. Gradient: a slice of gy. The
 * result may lie in any order in memory, so that padding does not interrupt a channels-last region.
 */
#include "ops/common/along.h"

static ctn_status pad_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int64_t dims[CTN_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) {
        int64_t before = a->attr[2 * i], after = a->attr[2 * i + 1];
        if (before < 0 || after < 0 || before > INT64_MAX / 4 || after > INT64_MAX / 4)
            return ctn_fail(CTN_ESHAPE,
                            "pad: cannot add %lld elements before and %lld after dimension %d",
                            (long long)before, (long long)after, i);
        dims[i] = before + x->dim[i] + after;
    }
    return ctn__desc_set(&a->out[0], a->name, x->dtype, x->ndim, dims);
}

static ctn_status pad_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0], *y = &a->dout[0];
    int64_t n = ctn__count(y), off = 0;
    ctn_desc inside = *x; /* the part of y that holds x */
    if (y->dtype == CTN_F32) {
        float v = (float)a->scalar[0], *p = a->out[0];
#pragma omp parallel for simd schedule(static) if (n > CTN__GRAIN)
        for (int64_t i = 0; i < n; i++) p[i] = v;
    } else {
        for (int64_t i = 0; i < n; i++) ctn__elem_set(a->out[0], y->dtype, i, a->scalar[0]);
    }
    for (int i = 0; i < x->ndim; i++) {
        inside.stride[i] = y->stride[i];
        off += a->attr[2 * i] * y->stride[i];
    }
    ctn__copy_view((char *)a->out[0] + off * (int64_t)ctn_dtype_size(y->dtype), &inside, a->in[0],
                   x);
    return CTN_OK;
}

static ctn_status pad_grad(const ctn_grad_args *a)
{
    const ctn_desc *x = &a->in[0]->d;
    int64_t start[CTN_MAX_DIMS], step[CTN_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) {
        start[i] = a->attr[2 * i];
        step[i] = 1;
    }
    return ctn__grad_to(a, 0, ctn__slice_dims(a->at, a->gout[0], start, x->dim, step));
}

ctn_op ctn__op_pad = {
    .struct_size = sizeof(ctn_op),
    .name = "pad",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .spatial_in = CTN_OPERAND(0),
    .spatial_out = CTN_OPERAND(0),
    .infer = pad_infer,
    .grad = pad_grad,
    .run = pad_run,
};

ctn_tensor *ctn_pad_at(const char *at, ctn_tensor *x, const int64_t *before, const int64_t *after,
                       double value)
{
    int64_t attr[2 * CTN_MAX_DIMS];
    int nd = x ? x->d.ndim : 0;
    for (int i = 0; i < nd; i++) {
        attr[2 * i] = before ? before[i] : 0;
        attr[2 * i + 1] = after ? after[i] : 0;
    }
    return ctn__apply1(at, NULL, &ctn__op_pad, 1, &x, 2 * nd, attr, 1, &CTN_CONST(value));
}
