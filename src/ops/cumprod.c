/* SPDX-License-Identifier: Apache-2.0
 *
 * cumprod along one axis, accumulated in double. Its gradient, also where elements are 0, is made
 * with the linear recurrence cumprod_grad(c, b): s_i = b_i + c_i s_(i-1), or s_(i+1) in reverse.
 * For the forward direction, with y_(-1) = 1,
 *   gx_i = A_i y_(i-1),  A_i = gy_i + x_(i+1) A_(i+1), a recurrence in reverse
 * The gradients of the recurrence, with u the gradient of s, are again of this kind:
 *   gb_i = B_i,  gc_i = B_i s_(i-1),  B_i = u_i + c_(i+1) B_(i+1)
 */
#include "ops/common/along.h"

enum { AXIS, REVERSE, NATTR };
static const char *const attr_names[] = {"axis", "reverse"};

static ctn_status cumprod_infer(ctn_infer_args *a)
{
    int axis;
    CTN_TRY(ctn__infer_arith(a, a->in[0]));
    CTN_TRY(ctn__infer_axis(a, a->in[0], a->attr[AXIS], &axis));
    a->out[0] = *a->in[0];
    return CTN_OK;
}

/* Columns of a tile; if there is one column only, lines that are worked on together. */
enum { COLS = 64, LINES = 8 };

/* nc lines of n elements with stride `step`; a negative step goes backwards. Without b: the
 * product. LINES is a constant, so that the products stay in registers. */
#define DEFINE_SCAN(T)                                                                             \
    static inline                                                                                  \
        __attribute__((always_inline)) void walk_##T(const T *x, const T *b, T *y, int64_t n,      \
                                                     int64_t step, int64_t nc, int64_t between)    \
    {                                                                                              \
        double s[COLS];                                                                            \
        for (int64_t c = 0; c < nc; c++) s[c] = b ? 0 : 1;                                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t c = 0; c < nc; c++) {                                                     \
                const int64_t at = i * step + c * between;                                         \
                const double p = (double)x[at] * s[c];                                             \
                s[c] = b ? (double)b[at] + p : p;                                                  \
                y[at] = (T)s[c];                                                                   \
            }                                                                                      \
    }                                                                                              \
    static void scan_##T(const T *x, const T *b, T *y, int64_t n, int64_t step, int64_t nc,        \
                         int64_t between)                                                          \
    {                                                                                              \
        if (between == 1) walk_##T(x, b, y, n, step, nc, 1);                                       \
        else if (nc < LINES)                                                                       \
            for (int64_t c = 0; c < nc; c++)                                                       \
                walk_##T(x + c * between, b ? b + c * between : NULL, y + c * between, n, step, 1, \
                         1);                                                                       \
        else if (b) walk_##T(x, b, y, n, step, LINES, between);                                    \
        else walk_##T(x, NULL, y, n, step, LINES, between);                                        \
    }
DEFINE_SCAN(float)
DEFINE_SCAN(double)

static ctn_status cumprod_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    const ctn__along s = ctn__along_axis(x, ctn__axis(x->ndim, a->attr[AXIS]));
    const bool reverse = a->attr[REVERSE] != 0, single = s.inner == 1;
    const bool many = s.outer >= LINES * (a->env ? a->env->threads : 1);
    /* Tiles of adjacent columns, or groups of lines. */
    const int64_t width = !single ? COLS : many ? LINES : 1, all = single ? s.outer : s.inner;
    const int64_t tiles = (all + width - 1) / width, between = single ? s.n : 1;
    const int64_t step = reverse ? -s.inner : s.inner, start = reverse && s.n > 0 ? s.n - 1 : 0;
    const void *in = a->in[0], *b = a->nin > 1 ? a->in[1] : NULL;
#pragma omp parallel for schedule(static) if (s.outer * s.n * s.inner > CTN__GRAIN)
    for (int64_t u = 0; u < (single ? 1 : s.outer) * tiles; u++) {
        const int64_t c0 = u % tiles * width, nc = all - c0 < width ? all - c0 : width;
        const int64_t at = (u / tiles * s.n + start) * s.inner + c0 * between;
        if (x->dtype == CTN_F32)
            scan_float((const float *)in + at, b ? (const float *)b + at : NULL,
                       (float *)a->out[0] + at, s.n, step, nc, between);
        else
            scan_double((const double *)in + at, b ? (const double *)b + at : NULL,
                        (double *)a->out[0] + at, s.n, step, nc, between);
    }
    return CTN_OK;
}

/* The result at i is t at the previous place of the direction, and `first` where there is none. */
static ctn_tensor *previous(const ctn_grad_args *a, ctn_tensor *t, bool reverse, double first)
{
    if (!t) return NULL;
    const int axis = ctn__axis(t->d.ndim, a->attr[AXIS]);
    int64_t one[CTN_MAX_DIMS] = {0};
    one[axis] = 1;
    ctn_tensor *rest = ctn_slice_at(a->at, t, axis, reverse, t->d.dim[axis] - 1);
    return ctn_pad_at(a->at, rest, reverse ? NULL : one, reverse ? one : NULL, first);
}

/* A or B of the head comment: the recurrence in the other direction with the coefficients c of the
 * places it comes from. */
static ctn_tensor *adjoint(const ctn_grad_args *a, ctn_tensor *c)
{
    const bool reverse = !a->attr[REVERSE];
    ctn_tensor *in[2] = {previous(a, c, reverse, 0), a->gout[0]};
    const int64_t attr[NATTR] = {a->attr[AXIS], reverse};
    return ctn__apply1(a->at, NULL, &ctn__op_cumprod_grad, 2, in, NATTR, attr, 0, NULL);
}

static ctn_status cumprod_grad_of(const ctn_grad_args *a)
{
    if (ctn__count(&a->in[0]->d) == 0) return ctn__grad_to(a, 0, a->gout[0]);
    ctn_tensor *y = previous(a, a->out[0], a->attr[REVERSE] != 0, 1);
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, adjoint(a, a->in[0]), y));
}

ctn_op ctn__op_cumprod = {
    .struct_size = sizeof(ctn_op),
    .name = "cumprod",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = cumprod_infer,
    .grad = cumprod_grad_of,
    .run = cumprod_run,
};

static ctn_status cumprod_grad_grad(const ctn_grad_args *a)
{
    ctn_tensor *b = adjoint(a, a->in[0]);
    if (a->need[0]) {
        ctn_tensor *s = previous(a, a->out[0], a->attr[REVERSE] != 0, 0);
        CTN_TRY(ctn__grad_to(a, 0, ctn_mul_at(a->at, b, s)));
    }
    return a->need[1] ? ctn__grad_to(a, 1, b) : CTN_OK;
}

ctn_op ctn__op_cumprod_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "cumprod_grad",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = cumprod_infer,
    .grad = cumprod_grad_grad,
    .run = cumprod_run,
};

ctn_tensor *ctn_cumprod_at(const char *at, ctn_tensor *x, int64_t axis, int reverse)
{
    int64_t attr[NATTR] = {axis, reverse != 0};
    return ctn__apply1(at, NULL, &ctn__op_cumprod, 1, &x, NATTR, attr, 0, NULL);
}
