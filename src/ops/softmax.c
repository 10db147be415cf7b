/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax along one axis: y = exp(x - max) / sum, with the sum in double.
 * Gradient: gx = y (gy - sum(gy y)), one kernel, which can be differentiated again.
 *
 * A tensor is viewed as (outer, C, inner) around the axis. The inner columns are processed
 * CTN__COLS at a time.
 */
#include <math.h>

#include "engine/isa.h"
#include "ops/common/softmax.h"
#include "ops/common/vmath.h"

enum { AXIS, NATTR };
enum { LANES = 64, SUMS = 16 };
static const char *const attr_names[] = {"axis"};

ctn_status ctn__softmax_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    char t[128];
    CTN_TRY(ctn__infer_same(a));
    if (ctn__axis(x->ndim, a->attr[AXIS]) < 0)
        return ctn_fail(CTN_ESHAPE, "%s: axis %lld does not exist in %s", a->name,
                        (long long)a->attr[AXIS], ctn__shape_text(x, t, sizeof t));
    return CTN_OK;
}

ctn__axis_view ctn__axis_view_of(const ctn_desc *d, int64_t axis)
{
    int k = ctn__axis(d->ndim, axis);
    ctn__axis_view v = {.outer = 1, .C = d->dim[k], .inner = 1};
    for (int i = 0; i < k; i++) v.outer *= d->dim[i];
    for (int i = k + 1; i < d->ndim; i++) v.inner *= d->dim[i];
    return v;
}

ctn_status ctn__axis_run(const ctn_run_args *a, const ctn__axis_kernels *f32,
                         const ctn__axis_kernels *f64)
{
    const ctn_desc *d = &a->dout[0];
    if (ctn__count(d) == 0) return CTN_OK;
    const ctn__axis_kernels *f = d->dtype == CTN_F32 ? f32 : f64;
    const int64_t size = (int64_t)ctn_dtype_size(d->dtype);
    const ctn__axis_view v = ctn__axis_view_of(d, a->attr[AXIS]);
    const int64_t C = v.C, inner = v.inner, per = (inner + CTN__COLS - 1) / CTN__COLS;
    const int64_t parts = v.outer * per, all = v.outer * C * inner;
#pragma omp parallel for schedule(static) if (all > CTN__GRAIN)
    for (int64_t p = 0; p < parts; p++) {
        int64_t i = p % per * CTN__COLS, at = (p / per * C * inner + i) * size;
        int64_t n = inner - i < CTN__COLS ? inner - i : CTN__COLS;
        const char *x = (const char *)a->in[0] + at, *z = (const char *)a->in[a->nin - 1] + at;
        if (inner == 1) f->row(x, z, (char *)a->out[0] + at, C);
        else f->cols(x, z, (char *)a->out[0] + at, C, inner, n);
    }
    return CTN_OK;
}

#define T float
#define EXP ctn__expf
#define NAME(x) x##_f32
#define LOG 0
#include "ops/common/softmax_body.h"

#define T double
#define EXP exp
#define NAME(x) x##_f64
#define LOG 0
#include "ops/common/softmax_body.h"

static ctn_status softmax_run(const ctn_run_args *a)
{
    const ctn__isa isa = ctn__isa_in_use();
    const ctn__axis_kernels f32 = {forward_row_f32[isa], forward_cols_f32[isa]};
    const ctn__axis_kernels f64 = {forward_row_f64[isa], forward_cols_f64[isa]};
    return ctn__axis_run(a, &f32, &f64);
}

static ctn_tensor *softmax_grad_of(const char *at, ctn_tensor *y, ctn_tensor *g,
                                   const int64_t *attr)
{
    ctn_tensor *in[2] = {y, g};
    return ctn__apply1(at, NULL, &ctn__op_softmax_grad, 2, in, NATTR, attr, 0, NULL);
}

static ctn_status softmax_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, softmax_grad_of(a->at, a->out[0], a->gout[0], a->attr));
}

ctn_op ctn__op_softmax = {
    .struct_size = sizeof(ctn_op),
    .name = "softmax",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = ctn__softmax_infer,
    .grad = softmax_grad,
    .run = softmax_run,
};

static ctn_status softmax_grad_run(const ctn_run_args *a)
{
    static const ctn__axis_kernels f32 = {grad_row_f32, grad_cols_f32};
    static const ctn__axis_kernels f64 = {grad_row_f64, grad_cols_f64};
    return ctn__axis_run(a, &f32, &f64);
}

/* By g: softmax_grad again, because its matrix is symmetric.
 * By y: v g - v sum(g y) - g sum(v y). */
static ctn_status softmax_grad_grad(const ctn_grad_args *a)
{
    ctn_tensor *y = a->in[0], *g = a->in[1], *v = a->gout[0];
    const char *at = a->at;
    if (a->need[1]) CTN_TRY(ctn__grad_to(a, 1, softmax_grad_of(at, y, v, a->attr)));
    if (!a->need[0]) return CTN_OK;
    ctn_tensor *sg = ctn_sum_at(at, ctn_mul_at(at, g, y), 1, a->attr, 1);
    ctn_tensor *sv = ctn_sum_at(at, ctn_mul_at(at, v, y), 1, a->attr, 1);
    ctn_tensor *both = ctn_add_at(at, ctn_mul_at(at, v, sg), ctn_mul_at(at, g, sv));
    return ctn__grad_to(a, 0, ctn_add_at(at, ctn_mul_at(at, v, g), ctn__scaled(at, both, -1)));
}

ctn_op ctn__op_softmax_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "softmax_grad",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .inplace = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = ctn__softmax_infer,
    .grad = softmax_grad_grad,
    .run = softmax_grad_run,
};

ctn_tensor *ctn_softmax_at(const char *at, ctn_tensor *x, int axis)
{
    int64_t attr[NATTR] = {axis};
    return ctn__apply1(at, NULL, &ctn__op_softmax, 1, &x, NATTR, attr, 0, NULL);
}
