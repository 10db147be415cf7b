/* SPDX-License-Identifier: Apache-2.0
 *
 * ctc_loss: connectionist temporal classification of log-probabilities lp (T,N,V). States and moves
 * are described in ctc.h. With e_t(s) = lp[t,n,class of s] and log-probabilities throughout,
 *   alpha_t(s) = e_t(s) + log(sum of exp(alpha_{t-1}) over s, s-1 and, if a skip is allowed, s-2)
 *   log Z = log(exp(alpha_T(S-1)) + exp(alpha_T(S-2))),  loss = -log Z
 * beta is the same recursion from the end, on the reversed path. Gradient:
 *   glp[t,n,v] = -gy[n] sum over the states s of class v of exp(alpha_t + beta_t - e_t - log Z)(s)
 * alpha is the second output of the loss, so that the gradient does not compute it again. It is in
 * double, because log Z may be in the thousands and the gradient needs differences to it.
 *
 * One thread computes all of a sample, so results do not depend on the thread count.
 */
#include <math.h>
#include <omp.h>

#include "ops/common/along.h"
#include "ops/common/ctc.h"
#include "ops/common/loss.h"
#include "ops/common/vmath.h"

#define NEVER CTN__CTC_NEVER
enum { LP = CTN__CTC_LP, LABELS, STEPS, SIZES, NIN, GY = NIN, ALPHA };
enum { FRONT = 2 }; /* states in front of a row, which are never reached */
/* Elements of alpha below which a second thread costs more than it saves. */
enum { FEW = 4096 };

static ctn_status ctc_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[LP], *l = a->in[LABELS], *t = a->in[STEPS], *u = a->in[SIZES];
    char tx[128], tl[128], tt[128], tu[128];
    if (!ctn__is_f32_f64(x->dtype))
        return ctn_fail(CTN_EDTYPE, "ctc_loss: x is %s, expected f32 or f64",
                        ctn_dtype_name(x->dtype));
    for (int i = LABELS; i <= SIZES; i++) CTN_TRY(ctn__infer_index(a, a->in[i]));
    if (x->ndim != 3 || l->ndim != 2 || t->ndim != 1 || u->ndim != 1 || l->dim[0] != x->dim[1] ||
        t->dim[0] != x->dim[1] || u->dim[0] != x->dim[1])
        return ctn_fail(CTN_ESHAPE,
                        "ctc_loss: x is %s, labels are %s, input_lengths are %s, label_lengths are "
                        "%s; expected (T,N,V), (N,L), (N), (N)",
                        ctn__shape_text(x, tx, sizeof tx), ctn__shape_text(l, tl, sizeof tl),
                        ctn__shape_text(t, tt, sizeof tt), ctn__shape_text(u, tu, sizeof tu));
    if (a->attr[0] < 0 || a->attr[0] >= x->dim[2])
        return ctn_fail(CTN_EARG, "ctc_loss: blank is %lld, x has %lld classes",
                        (long long)a->attr[0], (long long)x->dim[2]);
    a->out[0] = *t;
    a->out[0].dtype = x->dtype;
    a->out[1].dtype = CTN_F64;
    a->out[1].ndim = 3;
    a->out[1].dim[0] = x->dim[1];
    a->out[1].dim[1] = x->dim[0] + 1;
    a->out[1].dim[2] = FRONT + 2 * l->dim[1] + 1;
    return CTN_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* log(v) for v from 1 to 3 with an error of 3e-11: log(c) + 2 atanh((v - c) / (v + c)), c^2 = 3. */
CTN__VECTOR double log_fine(double v)
{
    const double z = (v - 1.7320508075688772) / (v + 1.7320508075688772), q = z * z;
    double p = 2.0 / 15;
    p = p * q + 2.0 / 13;
    p = p * q + 2.0 / 11;
    p = p * q + 2.0 / 9;
    p = p * q + 2.0 / 7;
    p = p * q + 2.0 / 5;
    p = p * q + 2.0 / 3;
    p = p * q + 2.0;
    return p * z + 0.5493061443340549;
}

/* One step of the recursion: y = the row after x. The larger of two numbers and the smaller one are
 * chosen by the same comparison, so that a NaN is in one of them and gets into the sum. */
#define ADVANCE(EXP, LOG)                                                   \
    do {                                                                    \
        _Pragma("omp simd") for (int64_t s = 0; s < S; s++)                 \
        {                                                                   \
            const double p = x[s], q = x[s - 1], r = x[s - 2] + skip[s];    \
            const double hi = p > q ? p : q, lo = p > q ? q : p;            \
            const double top = hi > r ? hi : r, mid = hi > r ? r : hi;      \
            y[s] = top + LOG(1 + EXP(lo - top) + EXP(mid - top)) + emit[s]; \
        }                                                                   \
    } while (0)
#define ADVANCE_ARGS (const double *x, double *y, int64_t S, const double *skip, const double *emit)

CTN__PER_ISA(advance_f32, ADVANCE_ARGS, (x, y, S, skip, emit))
{
    ADVANCE(ctn__exp_fine, log_fine);
}

static void advance_f64 ADVANCE_ARGS
{
    ADVANCE(exp, log);
}

/* How often each state is visited in a step: y[s] = exp(alpha[s] + b[r] - emit[r] - z), where
 * r = S - 1 - s, because b and emit belong to the reversed path. */
#define VISITS(EXP)                                         \
    do {                                                    \
        _Pragma("omp simd") for (int64_t s = 0; s < S; s++) \
        {                                                   \
            const int64_t r = S - 1 - s;                    \
            y[s] = EXP(alpha[s] + (b[r] - emit[r]) - z);    \
        }                                                   \
    } while (0)
#define VISITS_ARGS \
    (const double *alpha, const double *b, const double *emit, double z, double *y, int64_t S)

CTN__PER_ISA(visits_f32, VISITS_ARGS, (alpha, b, emit, z, y, S))
{
    VISITS(ctn__exp_fine);
}

static void visits_f64 VISITS_ARGS
{
    VISITS(exp);
}

/* ---- one sample ------------------------------------------------------------------------------ */

/* Sample n and the work space of its thread. Rows have FRONT + S elements. */
typedef struct {
    const void *lp;
    ctn_dtype type;
    int64_t n, N, V, T, L, S, blank; /* T steps, L labels, S states of this sample */
    int64_t width;                   /* of all rows: FRONT + the states of the longest sample */
    int64_t *label;                  /* (L) */
    double *skip;                    /* (S): 0 if state s can be reached from s - 2, else NEVER */
    double *emit;                    /* (S): e of one step */
    double *row[2], *visits;
} sample;

enum { ROWS = 6 }; /* of width elements in the work space of a thread */

static int64_t room_of(int64_t width)
{
    return (ROWS * width + 7) / 8 * 8;
}

/* reversed: for the recursion from the end. */
static sample sample_of(const ctn_run_args *a, int64_t n, bool reversed)
{
    const ctn_desc *x = &a->din[LP], *l = &a->din[LABELS];
    sample p = {.lp = a->in[LP],
                .type = x->dtype,
                .n = n,
                .N = x->dim[1],
                .V = x->dim[2],
                .T = ctn__index_get(a->in[STEPS], a->din[STEPS].dtype, n),
                .L = ctn__index_get(a->in[SIZES], a->din[SIZES].dtype, n),
                .blank = a->attr[0],
                .width = FRONT + 2 * l->dim[1] + 1};
    double *mine = (double *)a->scratch + omp_get_thread_num() * room_of(p.width);
    void *label = mine + 5 * p.width;
    p.S = 2 * p.L + 1;
    p.row[0] = mine;
    p.row[1] = mine + p.width;
    p.skip = mine + 2 * p.width;
    p.emit = mine + 3 * p.width;
    p.visits = mine + 4 * p.width;
    p.label = label;
    for (int64_t k = 0; k < p.L; k++)
        p.label[k] =
            ctn__index_get(a->in[LABELS], l->dtype, n * l->dim[1] + (reversed ? p.L - 1 - k : k));
    for (int64_t s = 0; s < p.S; s++)
        p.skip[s] = s > 2 && s % 2 && p.label[s / 2] != p.label[s / 2 - 1] ? 0 : NEVER;
    return p;
}

/* The row before the first step: state 0 is where an alignment comes from. */
static double *begin(const sample *p, double *row)
{
    for (int64_t s = 0; s < FRONT + p->S; s++) row[s] = s == FRONT ? 0 : NEVER;
    return row + FRONT;
}

static double emission(const sample *p, int64_t t, int64_t c)
{
    const double v = ctn__elem_get(p->lp, p->type, (t * p->N + p->n) * p->V + c);
    return v < NEVER ? NEVER : v; /* -infinity is possible, NaN stays */
}

/* x = the row after `from` by step t; `room` has room for it. */
static double *step(const sample *p, int64_t t, const double *from, double *room, ctn__isa isa)
{
    double *to = room + FRONT;
    const double blank = emission(p, t, p->blank);
    for (int64_t k = 0; k < p->L; k++) {
        p->emit[2 * k] = blank;
        p->emit[2 * k + 1] = emission(p, t, p->label[k]);
    }
    p->emit[2 * p->L] = blank;
    to[-1] = to[-2] = NEVER;
    if (p->type == CTN_F32) advance_f32[isa](from, to, p->S, p->skip, p->emit);
    else advance_f64(from, to, p->S, p->skip, p->emit);
    return to;
}

static double log_z(const sample *p, const double *last)
{
    const double x = last[p->S - 1], y = p->S > 1 ? last[p->S - 2] : NEVER;
    return x > y ? x + log1p(exp(y - x)) : y + log1p(exp(x - y));
}

/* The loss of sample n. rows: room for its rows of alpha, or NULL. */
static double loss_of(const ctn_run_args *a, int64_t n, double *rows, ctn__isa isa)
{
    const sample p = sample_of(a, n, false);
    const double *x = begin(&p, rows ? rows : p.row[0]);
    for (int64_t t = 0; t < p.T; t++)
        x = step(&p, t, x, rows ? rows + (t + 1) * p.width : p.row[(t + 1) % 2], isa);
    const double z = log_z(&p, x);
    return z < NEVER / 2 ? INFINITY : -z;
}

/* Row t of the gradient of sample n, whose elements are 0 so far. */
#define ADD_VISITS(T)                                                         \
    do {                                                                      \
        T *g = (T *)a->out[0] + (t * p->N + p->n) * p->V;                     \
        double blank = 0;                                                     \
        for (int64_t k = 0; k <= p->L; k++) blank += p->visits[2 * k];        \
        g[p->blank] = (T)(-gy * blank);                                       \
        for (int64_t k = 0; k < p->L; k++) /* label k of the reversed path */ \
            g[p->label[k]] -= (T)(gy * p->visits[2 * (p->L - 1 - k) + 1]);    \
    } while (0)

static void add_visits(const ctn_run_args *a, const sample *p, int64_t t, double gy)
{
    if (p->type == CTN_F32) ADD_VISITS(float);
    else ADD_VISITS(double);
}

static void gradient_of(const ctn_run_args *a, int64_t n, ctn__isa isa)
{
    const ctn_desc *x = &a->din[LP];
    const size_t bytes = (size_t)x->dim[2] * ctn_dtype_size(x->dtype);
    const sample p = sample_of(a, n, true);
    const double *alpha = (const double *)a->in[ALPHA] + n * (x->dim[0] + 1) * p.width + FRONT;
    const double z = log_z(&p, alpha + p.T * p.width), gy = ctn__elem_get(a->in[GY], p.type, n);
    const double *b = begin(&p, p.row[0]);
    for (int64_t t = 0; t < x->dim[0]; t++)
        memset((char *)a->out[0] + (size_t)(t * p.N + n) * bytes, 0, bytes);
    if (z < NEVER / 2) return;
    for (int64_t t = p.T - 1; t >= 0; t--) {
        b = step(&p, t, b, p.row[(p.T - t) % 2], isa);
        const double *al = alpha + (t + 1) * p.width;
        if (p.type == CTN_F32) visits_f32[isa](al, b, p.emit, z, p.visits, p.S);
        else visits_f64(al, b, p.emit, z, p.visits, p.S);
        add_visits(a, &p, t, gy);
    }
}

/* ---- the loss: (lp, labels, input_lengths, label_lengths) -> losses (N), alpha --------------- */

static ctn_status check_sample(const ctn_run_args *a, int64_t n)
{
    const int64_t most_T = a->din[LP].dim[0], V = a->din[LP].dim[2], most_L = a->din[LABELS].dim[1];
    const int64_t T = ctn__index_get(a->in[STEPS], a->din[STEPS].dtype, n);
    const int64_t L = ctn__index_get(a->in[SIZES], a->din[SIZES].dtype, n);
    if (T < 0 || T > most_T)
        return ctn_fail(CTN_EARG, "ctc_loss: sample %lld has %lld steps, expected 0 to %lld",
                        (long long)n, (long long)T, (long long)most_T);
    if (L < 0 || L > most_L)
        return ctn_fail(CTN_EARG, "ctc_loss: sample %lld has %lld labels, expected 0 to %lld",
                        (long long)n, (long long)L, (long long)most_L);
    for (int64_t k = 0; k < L; k++) {
        const int64_t c = ctn__index_get(a->in[LABELS], a->din[LABELS].dtype, n * most_L + k);
        if (c < 0 || c >= V || c == a->attr[0])
            return ctn_fail(CTN_EARG,
                            "ctc_loss: label %lld of sample %lld is %lld, expected 0 to %lld and "
                            "not the blank, %lld",
                            (long long)k, (long long)n, (long long)c, (long long)V - 1,
                            (long long)a->attr[0]);
    }
    return CTN_OK;
}

static ctn_status ctc_prepare(ctn_prepare_args *a)
{
    a->scratch =
        (size_t)(room_of(FRONT + 2 * a->din[LABELS].dim[1] + 1) * a->threads) * sizeof(double);
    return CTN_OK;
}

static ctn_status ctc_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[LP];
    const int64_t N = x->dim[1], size = a->dout[1].dim[1] * a->dout[1].dim[2];
    const ctn__isa isa = ctn__isa_in_use();
    for (int64_t n = 0; n < N; n++) CTN_TRY(check_sample(a, n));
#pragma omp parallel for schedule(dynamic, 1) if (N * size > FEW)
    for (int64_t n = 0; n < N; n++) {
        double *rows = a->out[1] ? (double *)a->out[1] + n * size : NULL;
        for (int64_t i = 0; rows && i < size; i++) rows[i] = NEVER; /* also beyond the ends */
        ctn__elem_set(a->out[0], x->dtype, n, loss_of(a, n, rows, isa));
    }
    return CTN_OK;
}

static ctn_status ctc_loss_grad(const ctn_grad_args *a)
{
    ctn_tensor *in[] = {a->in[LP],    a->in[LABELS], a->in[STEPS],
                        a->in[SIZES], a->gout[0],    a->out[1]};
    return ctn__grad_to(a, LP,
                        ctn__apply1(a->at, NULL, &ctn__op_ctc_grad, ALPHA + 1, in, 1, a->attr, 0,
                                    NULL));
}

static const char *const attr_names[] = {"blank"};

ctn_op ctn__op_ctc = {
    .struct_size = sizeof(ctn_op),
    .name = "ctc",
    .nin = NIN,
    .nout = 2,
    .order = 1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(NIN),
    .grad_out = CTN_OPERAND(1),
    .attr_names = attr_names,
    .infer = ctc_infer,
    .grad = ctc_loss_grad,
    .prepare = ctc_prepare,
    .run = ctc_run,
};

/* ---- its gradient: (the same, gy (N), alpha) -> glp ------------------------------------------ */

static ctn_status ctc_grad_run(const ctn_run_args *a)
{
    const ctn__isa isa = ctn__isa_in_use();
    const int64_t N = a->din[LP].dim[1];
#pragma omp parallel for schedule(dynamic, 1) if (ctn__count(&a->din[ALPHA]) > FEW)
    for (int64_t n = 0; n < N; n++) gradient_of(a, n, isa);
    return CTN_OK;
}

ctn_op ctn__op_ctc_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "ctc_grad",
    .nin = ALPHA + 1,
    .nout = 1,
    .order = 0,
    .prec = CTN_PREC_F32,
    .attr_names = attr_names,
    .infer = ctn__infer_same,
    .prepare = ctc_prepare,
    .run = ctc_grad_run,
};

/* ---- recording ------------------------------------------------------------------------------- */

/* Where a loss is infinite, 0. */
static ctn_tensor *without_infinity(const char *at, ctn_tensor *y)
{
    if (!y) return NULL;
    ctn_tensor *inf = ctn_full_at(at, y->ctx, INFINITY, y->d.dtype, CTN_SCALAR_SHAPE);
    ctn_tensor *zero = ctn_full_at(at, y->ctx, 0, y->d.dtype, CTN_SCALAR_SHAPE);
    return ctn_where_at(at, ctn_equal_at(at, y, inf), zero, y);
}

/* y divided by the numbers of labels. */
static ctn_tensor *each_label(const char *at, ctn_tensor *y, ctn_tensor *sizes)
{
    if (!y || !sizes) return NULL;
    ctn_tensor *one = ctn_full_at(at, y->ctx, 1, y->d.dtype, CTN_SCALAR_SHAPE);
    return ctn_div_at(at, y, ctn_maximum_at(at, ctn_cast_at(at, sizes, y->d.dtype), one));
}

ctn_tensor *ctn_ctc_loss_at(const char *at, ctn_tensor *x, ctn_tensor *labels,
                            const ctn_ctc_opt *opt)
{
    ctn_ctc_opt o;
    if (!x || !labels || ctn__opt("ctc_loss", &o, sizeof o, opt) < 0) return NULL;
    const bool shaped = x->d.ndim == 3 && labels->d.ndim == 2; /* otherwise infer refuses them */
    const int64_t N = shaped ? x->d.dim[1] : 0, T = x->d.dim[0], L = shaped ? labels->d.dim[1] : 0;
    ctn_tensor *steps = o.input_lengths, *sizes = o.label_lengths, *out[2] = {NULL};
    if (!steps) steps = ctn_full_at(at, x->ctx, (double)T, CTN_I64, CTN_SHAPE(N));
    if (!sizes) sizes = ctn_full_at(at, x->ctx, (double)L, CTN_I64, CTN_SHAPE(N));
    ctn_tensor *in[NIN] = {x->d.ndim ? ctn_log_softmax_at(at, x, -1) : x, labels, steps, sizes};
    const ctn_op_args args = {1, 0, &o.blank, NULL};
    if (ctn_apply_at(at, NULL, &ctn__op_ctc, NIN, in, &args, out) < 0) return NULL;
    ctn_tensor *y = o.composed ? ctn__ctc_composed(at, in, o.blank) : out[0];
    if (o.zero_infinity) y = without_infinity(at, y);
    if (o.per_label) y = each_label(at, y, sizes);
    return ctn__loss_of_each(at, "ctc_loss", y, o.reduction);
}
