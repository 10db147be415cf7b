/* SPDX-License-Identifier: Apache-2.0
 *
 * segment_softmax: y[e] = exp(x[e] - m) / s for each column, where m is the largest element of the
 * segment of row e and s the sum of exp(x - m) over it. Inputs: x, ids, and offsets and order from
 * group_ids. Gradient: gx = y (gy - (sum of gy y over the segment)[ids]).
 *
 * Rows are often short (one element per head of attention) and those of a segment lie apart, so
 * only the maximum and the sum go from segment to segment. The exponentials of all rows are one
 * loop over consecutive elements.
 */
#include "ops/common/rows.h"
#include "ops/common/vmath.h"

enum { X, IDS, OFFSETS, ORDER };

static ctn_status segment_softmax_infer(ctn_infer_args *a)
{
    int axis;
    CTN_TRY(ctn__infer_segments(a, 0, &axis));
    a->out[0] = *a->in[X];
    return CTN_OK;
}

/* y[i] = exp(x[i] - m[i % D of row ids]) for rows first to end - 1; m (n,D). */
#define DEFINE_EXP(T, name, f)                                                              \
    CTN__PER_ISA(name,                                                                      \
                 (T *restrict y, const T *restrict x, const T *restrict m, const void *ids, \
                  ctn_dtype t, int64_t first, int64_t end, int64_t D),                      \
                 (y, x, m, ids, t, first, end, D))                                          \
    {                                                                                       \
        for (int64_t e = first; e < end; e++) {                                             \
            const T *row = m + ctn__index_get(ids, t, e) * D;                               \
            for (int64_t c = 0; c < D; c++) y[e * D + c] = x[e * D + c] - row[c];           \
        }                                                                                   \
        CTN__SIMD(i, first *D, end *D, y[i] = (T)f(y[i]);)                                  \
    }
DEFINE_EXP(float, exp_f32, ctn__expf)
DEFINE_EXP(double, exp_f64, exp)

#define DEFINE_DIVIDE(T)                                                                     \
    static void divide_##T(T *restrict y, const T *restrict s, const void *ids, ctn_dtype t, \
                           int64_t first, int64_t end, int64_t D)                            \
    {                                                                                        \
        for (int64_t e = first; e < end; e++) {                                              \
            const T *row = s + ctn__index_get(ids, t, e) * D;                                \
            for (int64_t c = 0; c < D; c++) y[e * D + c] /= row[c];                          \
        }                                                                                    \
    }
DEFINE_DIVIDE(float)
DEFINE_DIVIDE(double)

/* scratch: the maxima, then the sums, of all segments (n,D) */
static ctn_status segment_softmax_run(const ctn_run_args *a)
{
    enum { BLOCK = 256 };
    const ctn_desc *x = &a->din[X];
    const int64_t E = x->dim[0], D = ctn__along_axis(x, 0).inner;
    const ctn_dtype t = a->din[IDS].dtype;
    const int isa = (int)ctn__isa_in_use();
    ctn__rows r = {.kind = CTN__ROWS_MAX,
                   .dtype = x->dtype,
                   .offsets = a->in[OFFSETS],
                   .row = a->in[ORDER],
                   .offset_type = CTN_I64,
                   .row_type = CTN_I64,
                   .n = a->din[OFFSETS].dim[0] - 1,
                   .terms = E,
                   .outer = 1,
                   .rows = E,
                   .D = D,
                   .x = a->in[X],
                   .width = D,
                   .y = a->scratch,
                   .threads = a->env ? a->env->threads : 1};
    ctn__rows_reduce(&r);
#pragma omp parallel for schedule(static) if (E * D > CTN__GRAIN)
    for (int64_t e = 0; e < E; e += BLOCK) {
        const int64_t end = e + BLOCK < E ? e + BLOCK : E;
        if (x->dtype == CTN_F32)
            exp_f32[isa](a->out[0], a->in[X], a->scratch, a->in[IDS], t, e, end, D);
        else exp_f64[isa](a->out[0], a->in[X], a->scratch, a->in[IDS], t, e, end, D);
    }
    r.kind = CTN__ROWS_SUM;
    r.x = a->out[0];
    ctn__rows_reduce(&r);
#pragma omp parallel for schedule(static) if (E * D > CTN__GRAIN)
    for (int64_t e = 0; e < E; e += BLOCK) {
        const int64_t end = e + BLOCK < E ? e + BLOCK : E;
        if (x->dtype == CTN_F32) divide_float(a->out[0], a->scratch, a->in[IDS], t, e, end, D);
        else divide_double(a->out[0], a->scratch, a->in[IDS], t, e, end, D);
    }
    return CTN_OK;
}

static ctn_status segment_softmax_prepare(ctn_prepare_args *a)
{
    const int64_t n = a->din[OFFSETS].dim[0] - 1, D = ctn__along_axis(&a->din[X], 0).inner;
    a->scratch = (size_t)(n * D) * ctn_dtype_size(a->din[X].dtype);
    return CTN_OK;
}

static ctn_status segment_softmax_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *y = a->out[0], *gy = a->gout[0], *ids = a->in[IDS];
    const int64_t n = a->in[OFFSETS]->d.dim[0] - 1;
    ctn_tensor *sum = ctn_segment_sum_at(at, ctn_mul_at(at, gy, y), ids, n);
    ctn_tensor *rest = ctn_sub_at(at, gy, ctn_index_select_at(at, sum, ids, 0));
    return ctn__grad_to(a, X, ctn_mul_at(at, y, rest));
}

ctn_op ctn__op_segment_softmax = {
    .struct_size = sizeof(ctn_op),
    .name = "segment_softmax",
    .nin = 4,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(IDS),
    .grad_out = CTN_OPERAND(0),
    .infer = segment_softmax_infer,
    .grad = segment_softmax_grad,
    .prepare = segment_softmax_prepare,
    .run = segment_softmax_run,
};

ctn_tensor *ctn_segment_softmax_at(const char *at, ctn_tensor *x, ctn_tensor *ids, int64_t n)
{
    return ctn__segment_record(at, &ctn__op_segment_softmax, x, ids, n);
}
