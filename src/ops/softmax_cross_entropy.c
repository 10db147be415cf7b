/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax_cross_entropy of logits x (...,C). Targets t are classes (...) in i64 or i32, or soft
 * targets (...,C) of x's type. Class weights w (C) are optional. With p = softmax(x), W_c the
 * class weights (default 1), s the smoothing and q the effective target of a row,
 *   classes:  q_c = W_c ((1-s) [c == t] + s/C); rows with t == ignore are skipped
 *   soft:     q_c = W_c ((1-s) t_c + s/C)
 *   loss = sum over rows of -sum_c q_c log p_c; `mean` divides it by the sum of W_t (classes) or by
 *          the number of rows (soft); `none` keeps the rows, and below gy is then that of the row
 * Gradient: gx_c = gy (p_c sum(q) - q_c) / divisor. p is recomputed from x and the second output
 * of the loss (...,2), which holds max(x) and 1 / sum(exp(x - max)) of each row. So nothing of
 * the size of x is kept but x itself.
 */
#include <math.h>

#include "engine/isa.h"
#include "ops/common/loss.h"
#include "ops/common/special_fine.h"

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
        return ctn_fail(
            CTN_EDTYPE,
            "%s: x is %s, targets are %s; expected x in f32 or f64, targets in i64, i32 or that",
            a->name, ctn_dtype_name(x->dtype), ctn_dtype_name(t->dtype));
    ctn_desc rows = *x;
    bool ok = x->ndim >= 1;
    if (ok) {
        rows.ndim = x->ndim - 1;
        ok = is_soft(t) ? ctn__same_shape(x, t) : ctn__same_shape(&rows, t);
        ok &= !w || (w->ndim == 1 && w->dim[0] == x->dim[x->ndim - 1]);
    }
    if (!ok)
        return ctn_fail(CTN_ESHAPE, "%s: shapes do not match: x is %s, targets are %s%s%s", a->name,
                        ctn__shape_text(x, tx, sizeof tx), ctn__shape_text(t, tt, sizeof tt),
                        w ? ", class weights are " : "",
                        w ? ctn__shape_text(w, tw, sizeof tw) : "");
    if (a->attr[REDUCTION] != CTN_MEAN && a->attr[REDUCTION] != CTN_SUM &&
        a->attr[REDUCTION] != CTN_NONE)
        return ctn_fail(CTN_EARG, "%s: reduction %lld is not CTN_MEAN, CTN_SUM or CTN_NONE",
                        a->name, (long long)a->attr[REDUCTION]);
    a->out[0] = rows;
    if (a->attr[REDUCTION] != CTN_NONE) a->out[0].ndim = 0;
    a->out[1] = *x;
    a->out[1].dim[x->ndim - 1] = 2;
    return CTN_OK;
}

/* ---- targets --------------------------------------------------------------------------------- */

typedef struct {
    const void *t, *w;
    ctn_dtype ft, tt; /* types of x and w, and of t */
    int64_t C, rows, ignore;
    double smooth, all; /* all: the sum of the class weights */
    bool soft, mean, none;
} target;

static double weight(const target *g, int64_t c)
{
    return g->w ? ctn__elem_get(g->w, g->ft, c) : 1;
}

static target target_of(const ctn_run_args *a, const ctn_desc *x, int t_at, int w_at)
{
    const int64_t C = x->dim[x->ndim - 1];
    target g = {.t = a->in[t_at],
                .w = a->nin > w_at ? a->in[w_at] : NULL,
                .ft = x->dtype,
                .tt = a->din[t_at].dtype,
                .C = C,
                .rows = C > 0 ? ctn__count(x) / C : 0,
                .ignore = a->attr[IGNORE],
                .smooth = a->scalar[SMOOTHING],
                .all = (double)C,
                .soft = is_soft(&a->din[t_at]),
                .mean = a->attr[REDUCTION] == CTN_MEAN,
                .none = a->attr[REDUCTION] == CTN_NONE};
    if (g.w) g.all = 0;
    for (int64_t c = 0; g.w && c < C; c++) g.all += weight(&g, c);
    return g;
}

/* The class of a row; -1 if the row is ignored, -2 if the class is out of range. */
static int64_t class_of(const target *g, int64_t row)
{
    int64_t c = g->tt == CTN_I64 ? ((const int64_t *)g->t)[row] : ((const int32_t *)g->t)[row];
    if (c == g->ignore) return -1;
    return c < 0 || c >= g->C ? -2 : c;
}

static double divisor(const target *g)
{
    if (!g->mean) return 1;
    if (g->soft) return (double)g->rows;
    double d = 0;
    for (int64_t r = 0; r < g->rows; r++) {
        int64_t c = class_of(g, r);
        if (c >= 0) d += weight(g, c);
    }
    return d;
}

/* The sum of q over the classes of a row. */
static double sum_of_q(const target *g, int64_t r)
{
    double even = g->smooth / (double)g->C * g->all, s = 0;
    int64_t cls = g->soft ? 0 : class_of(g, r);
    if (cls < 0) return 0;
    if (!g->soft) return (1 - g->smooth) * weight(g, cls) + even;
    for (int64_t c = 0; c < g->C; c++) s += weight(g, c) * ctn__elem_get(g->t, g->ft, r * g->C + c);
    return (1 - g->smooth) * s + even;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Elements, or rows, that are computed together; classes up to which it is rows. */
enum { LANES = 16, FEW = 48 };

#define T float
#define EXP ctn__exp_fine
#define LOG ctn__log_fine
#define NAME(x) x##_f32
#include "ops/common/softmax_cross_entropy_body.h"

#define T double
#define EXP exp
#define LOG log
#define NAME(x) x##_f64
#include "ops/common/softmax_cross_entropy_body.h"

/* ---- the loss -------------------------------------------------------------------------------- */

static ctn_status xent_run(const ctn_run_args *a)
{
    const target g = target_of(a, &a->din[0], 1, 2);
    const ctn__isa isa = ctn__isa_in_use();
    int64_t bad = -1;
    double *loss = a->scratch; /* one per row, added in order */
#pragma omp parallel for schedule(static) reduction(max : bad) if (g.rows * g.C > 4096)
    for (int64_t r = 0; r < g.rows; r += LANES) {
        const int64_t n = g.rows - r < LANES ? g.rows - r : LANES, at = r * g.C;
        const int64_t wrong =
            g.ft == CTN_F32
                ? loss_rows_f32(&g, (const float *)a->in[0] + at,
                                a->out[1] ? (float *)a->out[1] + 2 * r : NULL, r, n, loss + r, isa)
                : loss_rows_f64(&g, (const double *)a->in[0] + at,
                                a->out[1] ? (double *)a->out[1] + 2 * r : NULL, r, n, loss + r,
                                isa);
        if (wrong > bad) bad = wrong;
    }
    if (bad >= 0)
        return ctn_fail(CTN_EARG,
                        "softmax_cross_entropy: the class of row %lld is outside 0 to %lld",
                        (long long)bad, (long long)g.C - 1);
    double sum = 0;
    for (int64_t r = 0; r < g.rows; r++) {
        sum += loss[r];
        if (g.none) ctn__elem_set(a->out[0], g.ft, r, loss[r]);
    }
    if (!g.none) ctn__elem_set(a->out[0], g.ft, 0, sum / divisor(&g));
    return CTN_OK;
}

static ctn_status xent_prepare(ctn_prepare_args *a)
{
    int64_t C = a->din[0].dim[a->din[0].ndim - 1], n = ctn__count(&a->din[0]);
    a->scratch = (size_t)(C > 0 ? n / C : 0) * sizeof(double);
    return CTN_OK;
}

static ctn_tensor *slope(const ctn_grad_args *a, ctn_tensor *x, ctn_tensor *t, ctn_tensor *gy,
                         ctn_tensor *stat, ctn_tensor *w)
{
    ctn_tensor *in[5] = {x, t, gy, stat, w};
    return ctn__apply1(a->at, NULL, &ctn__op_softmax_cross_entropy_grad, w ? 5 : 4, in, NATTR,
                       a->attr, NSCALAR, a->scalar);
}

static ctn_status xent_grad(const ctn_grad_args *a)
{
    if (a->nin > 2 && a->need[2])
        return ctn_fail(CTN_EGRAD, "softmax_cross_entropy: class weights have no gradient (%s)",
                        a->at);
    if (a->need[1])
        return ctn_fail(CTN_EGRAD,
                        "softmax_cross_entropy: targets have no gradient; detach them (%s)", a->at);
    ctn_tensor *w = a->nin > 2 ? a->in[2] : NULL;
    return ctn__grad_to(a, 0, slope(a, a->in[0], a->in[1], a->gout[0], a->out[1], w));
}

ctn_op ctn__op_softmax_cross_entropy = {
    .struct_size = sizeof(ctn_op),
    .name = "softmax_cross_entropy",
    .nin = -1,
    .nout = 2,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(3),
    .grad_out = CTN_OPERAND(1),
    .attr_names = attr_names,
    .infer = xent_infer,
    .grad = xent_grad,
    .prepare = xent_prepare,
    .run = xent_run,
};

/* ---- its gradient: (x, t, gy, stat, w) -> gx ------------------------------------------------- */

static ctn_status xent_grad_run(const ctn_run_args *a)
{
    const target g = target_of(a, &a->din[0], 1, 4);
    const ctn__isa isa = ctn__isa_in_use();
    const double div = divisor(&g);
#pragma omp parallel for schedule(static) if (g.rows * g.C > 4096)
    for (int64_t r = 0; r < g.rows; r += LANES) {
        const int64_t n = g.rows - r < LANES ? g.rows - r : LANES, at = r * g.C;
        double scale[LANES];
        for (int64_t j = 0; j < n; j++)
            scale[j] = ctn__elem_get(a->in[2], g.ft, g.none ? r + j : 0) / div;
        if (g.ft == CTN_F32)
            grad_rows_f32(&g, (const float *)a->in[0] + at, (const float *)a->in[3] + 2 * r,
                          (float *)a->out[0] + at, r, n, scale, isa);
        else
            grad_rows_f64(&g, (const double *)a->in[0] + at, (const double *)a->in[3] + 2 * r,
                          (double *)a->out[0] + at, r, n, scale, isa);
    }
    return CTN_OK;
}

/* With v the gradient of its result, the gradients are
 *   by gy: sum(v G(x, t, 1)), of each row for `none`
 *   by x:  gy f softmax_grad(p, v), f = sum(q) / divisor of each row.
 * They are composed of ops that have gradients of any order. The gradient by x includes the
 * dependence on x through stat. */
static ctn_status xent_grad_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *x = a->in[0], *t = a->in[1], *gy = a->in[2], *w = a->nin > 4 ? a->in[4] : NULL;
    const int64_t last = x->d.ndim - 1;
    const bool none = a->attr[REDUCTION] == CTN_NONE;
    if (a->need[2]) {
        ctn_tensor *one = ctn_full_at(at, a->ctx, 1, x->d.dtype, gy->d.ndim, gy->d.dim);
        ctn_tensor *g = ctn_mul_at(at, a->gout[0], slope(a, x, t, one, a->in[3], w));
        CTN_TRY(ctn__grad_to(a, 2,
                             none ? ctn_sum_at(at, g, 1, &last, 0)
                                  : ctn_sum_at(at, g, CTN_ALL_AXES, 0)));
    }
    if (!a->need[0]) return CTN_OK;
    if (none) gy = ctn_unsqueeze_at(at, gy, -1);
    ctn_tensor *in[3] = {x, t, w}, *pv[2] = {ctn_softmax_at(at, x, -1), a->gout[0]};
    ctn_tensor *f = ctn__apply1(at, NULL, &ctn__op_softmax_cross_entropy_grad_rows, w ? 3 : 2, in,
                                NATTR, a->attr, NSCALAR, a->scalar);
    ctn_tensor *g = ctn__apply1(at, NULL, &ctn__op_softmax_grad, 2, pv, 1, &last, 0, NULL);
    return ctn__grad_to(a, 0, ctn_mul_at(at, ctn_mul_at(at, f, gy), g));
}

ctn_op ctn__op_softmax_cross_entropy_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "softmax_cross_entropy_grad",
    .nin = -1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(5),
    .inplace = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = ctn__infer_same,
    .grad = xent_grad_grad,
    .run = xent_grad_run,
};

/* ---- (x, t, w) -> sum(q) / divisor of each row, (...,1) -------------------------------------- */

/* Only the shape and the type of x matter. */

static ctn_status xent_rows_infer(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    a->out[0].dim[a->in[0]->ndim - 1] = 1;
    return CTN_OK;
}

static ctn_status xent_rows_run(const ctn_run_args *a)
{
    const target g = target_of(a, &a->din[0], 1, 2);
    const double div = divisor(&g);
    for (int64_t r = 0; r < g.rows; r++) ctn__elem_set(a->out[0], g.ft, r, sum_of_q(&g, r) / div);
    return CTN_OK;
}

static ctn_status xent_rows_grad(const ctn_grad_args *a)
{
    (void)a; /* it does not depend on the values of x; targets and weights have no gradient */
    return CTN_OK;
}

ctn_op ctn__op_softmax_cross_entropy_grad_rows = {
    .struct_size = sizeof(ctn_op),
    .name = "softmax_cross_entropy_grad_rows",
    .nin = -1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .attr_names = attr_names,
    .infer = xent_rows_infer,
    .grad = xent_rows_grad,
    .run = xent_rows_run,
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
