/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax along one axis: y = exp(x - max) / sum. f32 by oneDNN, f64 by a plain loop.
 * Gradient: gx = y (gy - sum(gy y)), one kernel, which can be differentiated again.
 *
 * A tensor is seen as (outer, C, inner) around the axis; columns of inner elements are taken
 * CTN__COLS at a time.
 */
#include <math.h>

#include "ops/softmax.h"

enum { AXIS, NATTR };
static const char *const attr_names[] = {"axis"};

ctn_status ctn__softmax_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    char t[128];
    CTN_TRY(ctn__infer_same(a));
    if (ctn__axis(x->ndim, a->attr[AXIS]) < 0)
        return ctn_fail(CTN_ESHAPE, "%s: axis %lld of %s", a->name, (long long)a->attr[AXIS],
                        ctn__shape_text(x, t, sizeof t));
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

static ctn_status softmax_prepare(ctn_prepare_args *a)
{
    const ctn_desc *x = &a->din[0];
    if (x->dtype != CTN_F32 || ctn__count(x) == 0) return CTN_OK;
    ctn__axis_view v = ctn__axis_view_of(x, a->attr[AXIS]);
    ctn_desc d = {.dtype = CTN_F32, .ndim = 3, .dim = {v.outer, v.C, v.inner}};
    ctn__plain(&d);
    ctn__prim *p;
    CTN_TRY(ctn__prim_softmax(&p, a->engine, &d, &d, 1));
    return ctn__with_prim(a, p, ctn__run_prim);
}

/* f64, and f32 without elements */
static ctn_status softmax_run(const ctn_run_args *a)
{
    if (ctn__count(&a->din[0]) == 0) return CTN_OK;
    ctn__axis_view v = ctn__axis_view_of(&a->din[0], a->attr[AXIS]);
    int64_t rows = v.outer * v.inner;
#pragma omp parallel for schedule(static) if (rows * v.C > CTN__GRAIN)
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = r / v.inner * v.C * v.inner + r % v.inner;
        const double *x = (const double *)a->in[0] + at;
        double *y = (double *)a->out[0] + at;
        double m = x[0], s = 0;
        for (int64_t c = 1; c < v.C; c++) m = x[c * v.inner] > m ? x[c * v.inner] : m;
        for (int64_t c = 0; c < v.C; c++) s += y[c * v.inner] = exp(x[c * v.inner] - m);
        for (int64_t c = 0; c < v.C; c++) y[c * v.inner] /= s;
    }
    return CTN_OK;
}

static ctn_tensor *softmax_grad_of(const char *at, ctn_tensor *y, ctn_tensor *g,
                                   const int64_t *attr)
{
    ctn_tensor *in[2] = {y, g};
    return ctn__apply1(at, NULL, &ctn__op_softmax_grad, 2, in, NATTR, attr, 0, NULL);
}

static ctn_status softmax_grad(const ctn_grad_args *a)
{
    a->gin[0] = softmax_grad_of(a->at, a->out[0], a->gout[0], a->attr);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_softmax = {
    .struct_size = sizeof(ctn_op),
    .name = "softmax",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_out = 1,
    .inplace = 1,
    .attr_names = attr_names,
    .infer = ctn__softmax_infer,
    .grad = softmax_grad,
    .prepare = softmax_prepare,
    .run = softmax_run,
};

/* softmax_grad(y, g) = y (g - sum(g y)) */
#define GRAD_ROW(T)                                                                              \
    static void grad_row_##T(const T *y, const T *g, T *o, int64_t C)                            \
    {                                                                                            \
        double s = 0;                                                                            \
        _Pragma("omp simd reduction(+ : s)") for (int64_t c = 0; c < C; c++) s +=                \
            (double)(g[c] * y[c]);                                                               \
        T sum = (T)s;                                                                            \
        _Pragma("omp simd") for (int64_t c = 0; c < C; c++) o[c] = y[c] * (g[c] - sum);          \
    }                                                                                            \
    static void grad_cols_##T(const T *y, const T *g, T *o, int64_t C, int64_t inner, int64_t n) \
    {                                                                                            \
        double s[CTN__COLS] = {0};                                                               \
        for (int64_t c = 0; c < C; c++) {                                                        \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) s[i] +=                          \
                (double)(g[c * inner + i] * y[c * inner + i]);                                   \
        }                                                                                        \
        for (int64_t c = 0; c < C; c++) {                                                        \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) o[c * inner + i] =               \
                y[c * inner + i] * (g[c * inner + i] - (T)s[i]);                                 \
        }                                                                                        \
    }
GRAD_ROW(float)
GRAD_ROW(double)

static ctn_status softmax_grad_run(const ctn_run_args *a)
{
    CTN__ALONG_AXIS(a, a->in[1], grad_row, grad_cols);
    return CTN_OK;
}

/* By g: softmax_grad itself, a symmetric matrix. By y: v g - v sum(g y) - g sum(v y). */
static ctn_status softmax_grad_grad(const ctn_grad_args *a)
{
    ctn_tensor *y = a->in[0], *g = a->in[1], *v = a->gout[0];
    const char *at = a->at;
    if (a->need[1] && !(a->gin[1] = softmax_grad_of(at, y, v, a->attr))) return ctn_error_status();
    if (!a->need[0]) return CTN_OK;
    ctn_tensor *sg = ctn_sum_at(at, ctn_mul_at(at, g, y), 1, a->attr, 1);
    ctn_tensor *sv = ctn_sum_at(at, ctn_mul_at(at, v, y), 1, a->attr, 1);
    ctn_tensor *both = ctn_add_at(at, ctn_mul_at(at, v, sg), ctn_mul_at(at, g, sv));
    a->gin[0] = ctn_add_at(at, ctn_mul_at(at, v, g), ctn__scaled(at, both, -1));
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_softmax_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "softmax_grad",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = 3,
    .inplace = 3,
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
