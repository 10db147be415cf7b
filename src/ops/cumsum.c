/* SPDX-License-Identifier: Apache-2.0
 *
 * cumsum along one axis, accumulated in double. Gradient: the sums from the other end, which is
 * the same op with the attribute `reverse` flipped.
 */
#include "ops/common/along.h"

enum { AXIS, REVERSE, NATTR };
static const char *const attr_names[] = {"axis", "reverse"};

static ctn_status cumsum_infer(ctn_infer_args *a)
{
    int axis;
    CTN_TRY(ctn__infer_arith(a, a->in[0]));
    CTN_TRY(ctn__infer_axis(a, a->in[0], a->attr[AXIS], &axis));
    a->out[0] = *a->in[0];
    return CTN_OK;
}

enum { COLS = 64 };

/* nc <= COLS adjacent columns of n elements with stride `step`; a negative step goes backwards. */
#define DEFINE_CUMSUM(T)                                                          \
    static void cumsum_##T(const T *x, T *y, int64_t n, int64_t step, int64_t nc) \
    {                                                                             \
        double sum[COLS] = {0};                                                   \
        for (int64_t i = 0; i < n; i++)                                           \
            for (int64_t c = 0; c < nc; c++) {                                    \
                sum[c] += (double)x[i * step + c];                                \
                y[i * step + c] = (T)sum[c];                                      \
            }                                                                     \
    }
DEFINE_CUMSUM(float)
DEFINE_CUMSUM(double)

static ctn_status cumsum_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    const ctn__along s = ctn__along_axis(x, ctn__axis(x->ndim, a->attr[AXIS]));
    const bool reverse = a->attr[REVERSE] != 0;
    const int64_t tiles = (s.inner + COLS - 1) / COLS, step = reverse ? -s.inner : s.inner;
#pragma omp parallel for schedule(static) if (s.outer * s.n * s.inner > CTN__GRAIN)
    for (int64_t u = 0; u < s.outer * tiles; u++) {
        int64_t c0 = u % tiles * COLS, nc = s.inner - c0 < COLS ? s.inner - c0 : COLS;
        int64_t at = (u / tiles * s.n + (reverse && s.n > 0 ? s.n - 1 : 0)) * s.inner + c0;
        if (x->dtype == CTN_F32)
            cumsum_float((const float *)a->in[0] + at, (float *)a->out[0] + at, s.n, step, nc);
        else cumsum_double((const double *)a->in[0] + at, (double *)a->out[0] + at, s.n, step, nc);
    }
    return CTN_OK;
}

static ctn_status cumsum_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_cumsum_at(a->at, a->gout[0], a->attr[AXIS], !a->attr[REVERSE]));
}

ctn_op ctn__op_cumsum = {
    .struct_size = sizeof(ctn_op),
    .name = "cumsum",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .inplace = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = cumsum_infer,
    .grad = cumsum_grad,
    .run = cumsum_run,
};

ctn_tensor *ctn_cumsum_at(const char *at, ctn_tensor *x, int64_t axis, int reverse)
{
    int64_t attr[NATTR] = {axis, reverse != 0};
    return ctn__apply1(at, NULL, &ctn__op_cumsum, 1, &x, NATTR, attr, 0, NULL);
}
