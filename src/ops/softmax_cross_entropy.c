/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax_cross_entropy: x (...,C) logits; t (...) classes, i64 or i32, or (...,C) soft targets of x's type;
 * w (C) class weights or absent. With p = softmax(x), W_c the class weights (1), s the smoothing and q the
 * effective target of a row,
 *   classes:  q_c = W_c ((1-s) [c == t] + s/C),  rows with t == ignore count nothing
 *   soft:     q_c = W_c ((1-s) t_c + s/C)
 *   loss = sum over rows of -sum_c q_c log p_c, divided for `mean` by the sum of W_t (classes) or rows (soft)
 * Gradient: gx_c = gy (p_c sum(q) - q_c) / divisor. p is a second output, so the gradient costs one pass.
 */
#include <math.h>

#include "ops/ops.h"

enum { REDUCTION, IGNORE, NATTR };
enum { SMOOTHING, NSCALAR };
static const char *const attr_names[] = {"reduction", "ignore"};

static bool is_soft(const ctn_desc *t)
{
    return ctn__is_float(t->dtype);
}

static ctn_status xent_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *t = a->in[1], *w = a->nin > 2 ? a->in[2] : NULL;
    char tx[128], tt[128], tw[128];
    if (!ctn__is_f32_f64(x->dtype) || (is_soft(t) && t->dtype != x->dtype) ||
        (!is_soft(t) && t->dtype != CTN_I64 && t->dtype != CTN_I32) || (w && w->dtype != x->dtype))
        return ctn_fail(CTN_EDTYPE,
                        "%s: x is %s, targets are %s; i64, i32 or x's type are possible", a->name,
                        ctn_dtype_name(x->dtype), ctn_dtype_name(t->dtype));
    ctn_desc rows = *x;
    bool ok = x->ndim >= 1;
    if (ok) {
        rows.ndim = x->ndim - 1;
        ok = is_soft(t) ? ctn__same_shape(x, t) : ctn__same_shape(&rows, t);
        ok &= !w || (w->ndim == 1 && w->dim[0] == x->dim[x->ndim - 1]);
    }
    if (!ok)
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, targets are %s%s%s", a->name,
                        ctn__shape_text(x, tx, sizeof tx), ctn__shape_text(t, tt, sizeof tt),
                        w ? ", class weights are " : "",
                        w ? ctn__shape_text(w, tw, sizeof tw) : "");
    a->out[0].dtype = x->dtype;
    a->out[0].ndim = 0;
    a->out[1] = *x;
    return CTN_OK;
}

typedef struct {
    const void *t, *w;
    ctn_dtype ft, tt; /* of x and w, of t */
    int64_t C, ignore;
    double smooth;
    bool soft, mean;
} target;

static target target_of(const ctn_run_args *a, int w_at)
{
    const ctn_desc *p = &a->din[0];
    return (target){.t = a->in[1],
                    .w = a->nin > w_at ? a->in[w_at] : NULL,
                    .ft = p->dtype,
                    .tt = a->din[1].dtype,
                    .C = p->dim[p->ndim - 1],
                    .ignore = a->attr[IGNORE],
                    .smooth = a->scalar[SMOOTHING],
                    .soft = is_soft(&a->din[1]),
                    .mean = a->attr[REDUCTION] == CTN_MEAN};
}

/* The class of a row: -1 for a row that counts nothing, -2 for one out of range. */
static int64_t class_of(const target *g, int64_t row)
{
    int64_t c = g->tt == CTN_I64 ? ((const int64_t *)g->t)[row] : ((const int32_t *)g->t)[row];
    if (c == g->ignore) return -1;
    return c < 0 || c >= g->C ? -2 : c;
}

static double weight(const target *g, int64_t c)
{
    return g->w ? ctn__elem_get(g->w, g->ft, c) : 1;
}

static double q_of(const target *g, int64_t row, int64_t cls, int64_t c)
{
    double y = g->soft ? ctn__elem_get(g->t, g->ft, row * g->C + c) : (double)(c == cls);
    return weight(g, c) * ((1 - g->smooth) * y + g->smooth / (double)g->C);
}

static double divisor(const target *g, int64_t rows)
{
    if (!g->mean) return 1;
    if (g->soft) return (double)rows;
    double d = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t c = class_of(g, r);
        if (c >= 0) d += weight(g, c);
    }
    return d;
}

/* A row: p = softmax(x), returns log(sum exp). */
#define SOFTMAX_ROW(T, EXP, LOG)                                   \
    static double softmax_row_##T(const T *x, T *p, int64_t C)     \
    {                                                              \
        T m = x[0], s = 0;                                         \
        for (int64_t c = 1; c < C; c++) m = x[c] > m ? x[c] : m;   \
        for (int64_t c = 0; c < C; c++) s += p[c] = EXP(x[c] - m); \
        T inv = 1 / s;                                             \
        for (int64_t c = 0; c < C; c++) p[c] *= inv;               \
        return (double)(m + LOG(s));                               \
    }
SOFTMAX_ROW(float, expf, logf)
SOFTMAX_ROW(double, exp, log)

static double row_loss(const target *g, const void *x, int64_t r, double lse, bool *bad)
{
    int64_t cls = g->soft ? 0 : class_of(g, r);
    *bad = cls == -2;
    if (cls < 0) return 0;
    if (!g->soft && g->smooth == 0)
        return weight(g, cls) * (lse - ctn__elem_get(x, g->ft, r * g->C + cls));
    double l = 0;
    for (int64_t c = 0; c < g->C; c++)
        l += q_of(g, r, cls, c) * (lse - ctn__elem_get(x, g->ft, r * g->C + c));
    return l;
}

static ctn_status xent_run(const ctn_run_args *a)
{
    target g = target_of(a, 2);
    int64_t rows = g.C > 0 ? ctn__count(&a->din[0]) / g.C : 0, bad = -1;
    double *loss = a->scratch; /* one per row, added in order */
    void *p = a->out[1] ? a->out[1] : loss + rows;
#pragma omp parallel for schedule(static) reduction(max : bad) if (rows * g.C > 4096)
    for (int64_t r = 0; r < rows; r++) {
        double lse;
        bool wrong;
        if (g.ft == CTN_F32)
            lse = softmax_row_float((const float *)a->in[0] + r * g.C, (float *)p + r * g.C, g.C);
        else
            lse =
                softmax_row_double((const double *)a->in[0] + r * g.C, (double *)p + r * g.C, g.C);
        loss[r] = row_loss(&g, a->in[0], r, lse, &wrong);
        if (wrong && r > bad) bad = r;
    }
    if (bad >= 0)
        return ctn_fail(CTN_EARG,
                        "softmax_cross_entropy: the class of row %lld is outside 0 to %lld",
                        (long long)bad, (long long)g.C - 1);
    double sum = 0, div = divisor(&g, rows);
    for (int64_t r = 0; r < rows; r++) sum += loss[r];
    ctn__elem_set(a->out[0], g.ft, 0, sum / div);
    return CTN_OK;
}

static ctn_status xent_prepare(ctn_prepare_args *a)
{
    int64_t C = a->din[0].dim[a->din[0].ndim - 1], n = ctn__count(&a->din[0]);
    a->scratch = (size_t)(C > 0 ? n / C : 0) * sizeof(double) + ctn__bytes(&a->din[0]);
    return CTN_OK;
}

static ctn_status xent_grad(const ctn_grad_args *a)
{
    if (a->nin > 2 && a->need[2])
        return ctn_fail(CTN_EGRAD, "softmax_cross_entropy: class weights have no gradient (%s)",
                        a->at);
    if (a->need[1])
        return ctn_fail(CTN_EGRAD,
                        "softmax_cross_entropy: targets have no gradient; detach them (%s)", a->at);
    if (a->gout[1])
        return ctn_fail(CTN_EGRAD, "softmax_cross_entropy: its probabilities have no gradient (%s)",
                        a->at);
    ctn_tensor *in[4] = {a->out[1], a->in[1], a->gout[0], a->nin > 2 ? a->in[2] : NULL};
    a->gin[0] = ctn__apply1(a->at, NULL, &ctn__op_softmax_cross_entropy_grad, a->nin + 1, in, NATTR,
                            a->attr, NSCALAR, a->scalar);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_softmax_cross_entropy = {
    .struct_size = sizeof(ctn_op),
    .name = "softmax_cross_entropy",
    .nin = -1,
    .nout = 2,
    .order = 1,
    .prec = CTN_PREC_F32,
    .grad_in = 6,
    .grad_out = 2,
    .attr_names = attr_names,
    .infer = xent_infer,
    .grad = xent_grad,
    .prepare = xent_prepare,
    .run = xent_run,
};

/* (p, t, gy, w) -> gx */
static ctn_status xent_grad_run(const ctn_run_args *a)
{
    target g = target_of(a, 3);
    int64_t rows = g.C > 0 ? ctn__count(&a->din[0]) / g.C : 0;
    double scale = ctn__elem_get(a->in[2], g.ft, 0) / divisor(&g, rows);
#pragma omp parallel for schedule(static) if (rows * g.C > 4096)
    for (int64_t r = 0; r < rows; r++) {
        int64_t cls = g.soft ? 0 : class_of(&g, r);
        double sum = 0;
        for (int64_t c = 0; c < g.C && cls >= 0; c++) sum += q_of(&g, r, cls, c);
        for (int64_t c = 0; c < g.C; c++) {
            int64_t i = r * g.C + c;
            double p = ctn__elem_get(a->in[0], g.ft, i);
            double v = cls < 0 ? 0 : scale * (p * sum - q_of(&g, r, cls, c));
            ctn__elem_set(a->out[0], g.ft, i, v);
        }
    }
    return CTN_OK;
}

ctn_op ctn__op_softmax_cross_entropy_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "softmax_cross_entropy_grad",
    .nin = -1,
    .nout = 1,
    .order = -1, /* has no gradient: asking for a second derivative is an error */
    .prec = CTN_PREC_F32,
    .inplace = 1,
    .attr_names = attr_names,
    .infer = ctn__infer_same,
    .run = xent_grad_run,
};

ctn_tensor *ctn_softmax_cross_entropy_with_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                              const ctn_softmax_cross_entropy_opt *opt)
{
    ctn_tensor *in[3] = {x, t, opt ? opt->weights : NULL};
    int64_t attr[NATTR] = {opt ? opt->reduction : CTN_MEAN,
                           opt && opt->ignore ? *opt->ignore : -100};
    ctn_scalar s = CTN_CONST(opt ? opt->smoothing : 0);
    return ctn__apply1(at, NULL, &ctn__op_softmax_cross_entropy, in[2] ? 3 : 2, in, NATTR, attr,
                       NSCALAR, &s);
}
