/* SPDX-License-Identifier: Apache-2.0
 *
 * log_softmax along one axis: y = (x - max) - log(sum(exp(x - max))), the sum in double: where one
 * class is nearly sure, y is near 0 and keeps its digits (oneDNN's is wrong by 2e-6 there).
 * Gradient: gx = gy - exp(y) sum(gy), one kernel, which can be differentiated again.
 */
#include <math.h>

#include "ops/softmax.h"
#include "ops/vmath.h"

enum { AXIS, NATTR };
static const char *const attr_names[] = {"axis"};

#define FORWARD(T, EXP)                                                                  \
    static void forward_row_##T(const T *x, const T *z, T *y, int64_t C)                 \
    {                                                                                    \
        (void)z;                                                                         \
        T m = x[0];                                                                      \
        double s = 0;                                                                    \
        _Pragma("omp simd reduction(max : m)") for (int64_t c = 1; c < C; c++) m =       \
            x[c] > m ? x[c] : m;                                                         \
        _Pragma("omp simd reduction(+ : s)") for (int64_t c = 0; c < C; c++) s +=        \
            (double)EXP(x[c] - m);                                                       \
        T l = (T)log(s);                                                                 \
        _Pragma("omp simd") for (int64_t c = 0; c < C; c++) y[c] = (x[c] - m) - l;       \
    }                                                                                    \
    static void forward_cols_##T(const T *x, const T *z, T *y, int64_t C, int64_t inner, \
                                 int64_t n)                                              \
    {                                                                                    \
        (void)z;                                                                         \
        T m[CTN__COLS], l[CTN__COLS];                                                    \
        double s[CTN__COLS] = {0};                                                       \
        for (int64_t i = 0; i < n; i++) m[i] = x[i];                                     \
        for (int64_t c = 1; c < C; c++) {                                                \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                          \
            {                                                                            \
                T v = x[c * inner + i], w = m[i];                                        \
                m[i] = v > w ? v : w;                                                    \
            }                                                                            \
        }                                                                                \
        for (int64_t c = 0; c < C; c++) {                                                \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) s[i] +=                  \
                (double)EXP(x[c * inner + i] - m[i]);                                    \
        }                                                                                \
        for (int64_t i = 0; i < n; i++) l[i] = (T)log(s[i]);                             \
        for (int64_t c = 0; c < C; c++) {                                                \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[c * inner + i] =       \
                (x[c * inner + i] - m[i]) - l[i];                                        \
        }                                                                                \
    }
FORWARD(float, ctn__expf)
FORWARD(double, exp)

static ctn_status log_softmax_run(const ctn_run_args *a)
{
    CTN__ALONG_AXIS(a, NULL, forward_row, forward_cols);
    return CTN_OK;
}

static ctn_status log_softmax_grad(const ctn_grad_args *a)
{
    ctn_tensor *in[2] = {a->out[0], a->gout[0]};
    a->gin[0] = ctn__apply1(a->at, NULL, &ctn__op_log_softmax_grad, 2, in, NATTR, a->attr, 0, NULL);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_log_softmax = {
    .struct_size = sizeof(ctn_op),
    .name = "log_softmax",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_out = 1,
    .inplace = 1,
    .attr_names = attr_names,
    .infer = ctn__softmax_infer,
    .grad = log_softmax_grad,
    .run = log_softmax_run,
};

/* log_softmax_grad(y, g) = g - exp(y) sum(g) */
#define GRAD_ROW(T, EXP)                                                                          \
    static void grad_row_##T(const T *y, const T *g, T *o, int64_t C)                             \
    {                                                                                             \
        double s = 0;                                                                             \
        _Pragma("omp simd reduction(+ : s)") for (int64_t c = 0; c < C; c++) s += (double)g[c];   \
        T sum = (T)s;                                                                             \
        _Pragma("omp simd") for (int64_t c = 0; c < C; c++) o[c] = g[c] - EXP(y[c]) * sum;        \
    }                                                                                             \
    static void grad_cols_##T(const T *y, const T *g, T *o, int64_t C, int64_t inner, int64_t n)  \
    {                                                                                             \
        double s[CTN__COLS] = {0};                                                                \
        for (int64_t c = 0; c < C; c++) {                                                         \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) s[i] += (double)g[c * inner + i]; \
        }                                                                                         \
        for (int64_t c = 0; c < C; c++) {                                                         \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) o[c * inner + i] =                \
                g[c * inner + i] - EXP(y[c * inner + i]) * (T)s[i];                               \
        }                                                                                         \
    }
GRAD_ROW(float, ctn__expf)
GRAD_ROW(double, exp)

static ctn_status log_softmax_grad_run(const ctn_run_args *a)
{
    CTN__ALONG_AXIS(a, a->in[1], grad_row, grad_cols);
    return CTN_OK;
}

/* By g: v - sum(v exp(y)). By y: -v exp(y) sum(g). exp(y) is softmax(y), for y is normalised. */
static ctn_status log_softmax_grad_grad(const ctn_grad_args *a)
{
    ctn_tensor *v = a->gout[0];
    const char *at = a->at;
    ctn_tensor *vp = ctn_mul_at(at, v, ctn_softmax_at(at, a->in[0], (int)a->attr[AXIS]));
    if (a->need[1]) {
        ctn_tensor *s = ctn_sum_at(at, vp, 1, a->attr, 1);
        if (!(a->gin[1] = ctn_add_at(at, v, ctn__scaled(at, s, -1)))) return ctn_error_status();
    }
    if (a->need[0]) {
        ctn_tensor *s = ctn_sum_at(at, a->in[1], 1, a->attr, 1);
        if (!(a->gin[0] = ctn_mul_at(at, vp, ctn__scaled(at, s, -1)))) return ctn_error_status();
    }
    return CTN_OK;
}

ctn_op ctn__op_log_softmax_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "log_softmax_grad",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = 3,
    .inplace = 3,
    .attr_names = attr_names,
    .infer = ctn__softmax_infer,
    .grad = log_softmax_grad_grad,
    .run = log_softmax_grad_run,
};

ctn_tensor *ctn_log_softmax_at(const char *at, ctn_tensor *x, int axis)
{
    int64_t attr[NATTR] = {axis};
    return ctn__apply1(at, NULL, &ctn__op_log_softmax, 1, &x, NATTR, attr, 0, NULL);
}
