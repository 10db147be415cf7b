/* SPDX-License-Identifier: Apache-2.0
 *
 * prelu: y = x where x > 0, else slope x, with one slope per channel or one for all channels.
 * Gradients, computed by prelu_grad:
 *   gx = gy where x > 0, else slope gy;  gslope = sum of gy x where x <= 0
 * The pieces of the sums depend on the shape alone and are added in double.
 */
#include "ops/common/pool.h"
#include "tensor/half.h"

static ctn_status prelu_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *s = a->in[1];
    char tx[128], ts[128];
    CTN_TRY(ctn__infer_same(a));
    if (s->dtype != x->dtype)
        return ctn_fail(CTN_EDTYPE,
                        "%s: x is %s, the slope is %s; expected the same type; use ctn_cast",
                        a->name, ctn_dtype_name(x->dtype), ctn_dtype_name(s->dtype));
    if (x->ndim < 2 || s->ndim != 1 || (s->dim[0] != x->dim[1] && s->dim[0] != 1))
        return ctn_fail(CTN_ESHAPE,
                        "%s: x is %s, the slope is %s; expected (N,C,...), and (C) or (1)", a->name,
                        ctn__shape_text(x, tx, sizeof tx), ctn__shape_text(s, ts, sizeof ts));
    return CTN_OK;
}

static ctn_status prelu_grad_infer(ctn_infer_args *a)
{
    CTN_TRY(prelu_infer(a));
    a->out[1] = *a->in[1];
    return CTN_OK;
}

/* The tensor as runs of n elements. A run has one slope, or, with `columns`, one slope for each
 * of its elements. There are `pieces` of `each` runs; every piece has `wide` sums. */
typedef struct {
    bool columns;
    int64_t n, runs, C, each, pieces, wide;
} shape;

static shape shape_of(const ctn_desc *x, const ctn_desc *slope, const ctn_desc *y)
{
    int64_t outer, inner, total = ctn__count(x);
    bool single = slope->dim[0] == 1;
    shape s = {.C = single ? 1 : x->dim[1]};
    if (total == 0) return s;
    ctn__pool_layout(2, (const ctn_desc *[]){x, y}, &outer, &inner);
    s.columns = inner > 1 && !single;
    s.runs = s.columns ? total / inner : x->dim[0] * x->dim[1];
    s.n = total / s.runs;
    s.each = s.columns ? 256 : 1;
    s.pieces = (s.runs + s.each - 1) / s.each;
    s.wide = s.columns ? s.n : 1;
    return s;
}

#define WHOLE(v) (v)

#define T float
#define A float
#define GET WHOLE
#define PUT WHOLE
#define NAME(x) x##_f32
#include "ops/common/prelu_body.h"

#define T double
#define A double
#define GET WHOLE
#define PUT WHOLE
#define NAME(x) x##_f64
#include "ops/common/prelu_body.h"

#define T uint16_t
#define A float
#define GET ctn__bf16_get
#define PUT ctn__bf16_put
#define NAME(x) x##_bf16
#include "ops/common/prelu_body.h"

#define T uint16_t
#define A float
#define GET ctn__f16_get
#define PUT ctn__f16_put
#define NAME(x) x##_f16
#include "ops/common/prelu_body.h"

#define BY_TYPE(t, f) \
    ((t) == CTN_F64 ? f##_f64 : (t) == CTN_BF16 ? f##_bf16 : (t) == CTN_F16 ? f##_f16 : f##_f32)

static ctn_status prelu_run(const ctn_run_args *a)
{
    const shape s = shape_of(&a->din[0], &a->din[1], &a->dout[0]);
    void (*f)(const shape *, int64_t, const void *, const void *, void *) =
        BY_TYPE(a->din[0].dtype, run);
#pragma omp parallel for schedule(static) if (s.runs * s.n > CTN__GRAIN)
    for (int64_t r = 0; r < s.runs; r++) f(&s, r, a->in[0], a->in[1], a->out[0]);
    return CTN_OK;
}

static ctn_status prelu_back(const ctn_grad_args *a, ctn_tensor *g, ctn_tensor **out)
{
    ctn_tensor *in[3] = {a->in[0], a->in[1], g};
    return ctn_apply_at(a->at, NULL, &ctn__op_prelu_grad, 3, in, NULL, out);
}

static ctn_status prelu_grad_of(const ctn_grad_args *a)
{
    ctn_tensor *out[2];
    CTN_TRY(prelu_back(a, a->gout[0], out));
    for (int i = 0; i < 2; i++)
        if (a->need[i]) a->gin[i] = out[i];
    return CTN_OK;
}

ctn_op ctn__op_prelu = {
    .struct_size = sizeof(ctn_op),
    .name = "prelu",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERANDS(2),
    .inplace = CTN_OPERAND(0),
    .spatial_in = CTN_OPERAND(0),
    .spatial_out = CTN_OPERAND(0),
    .infer = prelu_infer,
    .grad = prelu_grad_of,
    .run = prelu_run,
};

/* ---- (x, slope, gy) -> gx, gslope ------------------------------------------------------------ */

static ctn_status prelu_grad_prepare(ctn_prepare_args *a)
{
    shape s = shape_of(&a->din[0], &a->din[1], &a->din[2]);
    a->scratch = (size_t)(s.pieces * s.wide) * sizeof(double);
    return CTN_OK;
}

static ctn_status prelu_grad_run(const ctn_run_args *a)
{
    const shape s = shape_of(&a->din[0], &a->din[1], &a->din[2]);
    void (*f)(const shape *, int64_t, const void *, const void *, const void *, void *, double *) =
        BY_TYPE(a->din[0].dtype, back);
    double *part = a->scratch; /* (pieces, wide) */
#pragma omp parallel for schedule(static) if (s.runs * s.n > CTN__GRAIN)
    for (int64_t p = 0; p < s.pieces; p++) {
        int64_t r = p * s.each, end = r + s.each < s.runs ? r + s.each : s.runs;
        memset(part + p * s.wide, 0, (size_t)s.wide * sizeof *part);
        for (; r < end; r++) f(&s, r, a->in[0], a->in[1], a->in[2], a->out[0], part + p * s.wide);
    }
    if (!a->out[1]) return CTN_OK;
    for (int64_t c = 0; c < s.C; c++) { /* runs of one channel are C apart */
        double sum = 0;
        for (int64_t i = c; i < s.pieces * s.wide; i += s.C) sum += part[i];
        ctn__elem_set(a->out[1], a->dout[1].dtype, c, sum);
    }
    return CTN_OK;
}

/* With v and u the gradients by gx and gslope, and h = gy where x <= 0, else 0:
 *   by gy: v where x > 0, else slope v; plus u x where x <= 0, which is prelu(x, u) - relu(x)
 *   by slope: sum of v h;  by x: u h */
static ctn_status prelu_grad_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *x = a->in[0], *slope = a->in[1], *gy = a->in[2], *v = a->gout[0], *u = a->gout[1];
    ctn_tensor *h = ctn_sub_at(at, gy, ctn__binary(at, &ctn__op_relu_grad, x, gy)),
               *out[2] = {NULL};
    int64_t dims[CTN_MAX_DIMS] = {slope->d.dim[0], 1, 1, 1, 1, 1, 1, 1};
    if (a->need[2]) {
        ctn_tensor *by = u ? ctn_sub_at(at, ctn_prelu_at(at, x, u), ctn_relu_at(at, x)) : NULL;
        if (v) CTN_TRY(prelu_back(a, v, out));
        CTN_TRY(ctn__grad_to(a, 2, v && u ? ctn_add_at(at, out[0], by) : v ? out[0] : by));
    }
    if (a->need[1] && v) {
        ctn_desc like = {.ndim = x->d.ndim - 1};
        memcpy(like.dim, dims, sizeof dims);
        ctn_tensor *g = ctn__sum_to(at, ctn_mul_at(at, v, h), &like);
        CTN_TRY(ctn__grad_to(a, 1, ctn_reshape_at(at, g, 1, dims)));
    }
    if (a->need[0] && u)
        CTN_TRY(ctn__grad_to(a, 0, ctn_mul_at(at, h, ctn_reshape_at(at, u, x->d.ndim - 1, dims))));
    return CTN_OK;
}

ctn_op ctn__op_prelu_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "prelu_grad",
    .nin = 3,
    .nout = 2,
    .order = -1,
    .grad_in = CTN_OPERANDS(3),
    .inplace = CTN_OPERAND(2),
    .spatial_in = CTN_OPERAND(0) | CTN_OPERAND(2),
    .spatial_out = CTN_OPERAND(0),
    .infer = prelu_grad_infer,
    .grad = prelu_grad_grad,
    .prepare = prelu_grad_prepare,
    .run = prelu_grad_run,
};

ctn_tensor *ctn_prelu_at(const char *at, ctn_tensor *x, ctn_tensor *slope)
{
    return ctn__binary(at, &ctn__op_prelu, x, slope);
}
