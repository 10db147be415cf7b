/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_cross_entropy: softmax_cross_entropy(x W^T, t) for a large number of classes, such as the
 * words of a language model. x (N,C), W (V,C), classes t (N). The logits exist for one chunk of
 * rows at a time. When a gradient is wanted, the same pass also computes those of x and W, as
 * further outputs for a gradient 1 of the loss, because the logits are at hand; the gradient of the
 * op only scales them.
 */
#include <math.h>

#include "engine/isa.h"
#include "ops/common/classes.h"
#include "ops/common/vmath.h"

enum { REDUCTION, IGNORE, NATTR };
static const char *const attr_names[] = {"reduction", "ignore"};
enum { CHUNK = 256, BLOCK = 256 }; /* most rows of a chunk; exponentials that are summed in f32 */

static ctn_status lce_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *w = a->in[1];
    a->out[0] = (ctn_desc){.dtype = CTN_F32};
    a->out[1] = *x;
    a->out[2] = *w;
    return CTN_OK;
}

/* ---- rows of logits -------------------------------------------------------------------------- */

/* x = exp(x - max); m = max, s = the sum. */
CTN__PER_ISA(exp_row, (float *x, int64_t n, float *m, double *s), (x, n, m, s))
{
    float most = -INFINITY;
    double total = 0;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t end = n - i < BLOCK ? n : i + BLOCK;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t k = i; k < end; k++) {
            x[k] = ctn__expf(x[k] - most);
            sum += x[k];
        }
        total += (double)sum;
    }
    *m = most;
    *s = total;
}

CTN__PER_ISA(scale_row, (float *x, int64_t n, float c), (x, n, c))
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) x[i] *= c;
}

static int64_t class_of(const ctn_run_args *a, int64_t row)
{
    return ctn__class_at(a->in[2], a->din[2].dtype, row);
}

static int64_t counted_rows(const ctn_run_args *a)
{
    int64_t n = 0;
    for (int64_t r = 0; r < a->din[0].dim[0]; r++) n += class_of(a, r) != a->attr[IGNORE];
    return n;
}

/* The loss of a row; its logits become gradients if `grad` is set. */
static double lce_row(const ctn_run_args *a, int64_t row, float *logit, int64_t V, bool grad,
                      double c)
{
    const ctn__isa isa = ctn__isa_in_use();
    const int64_t cls = class_of(a, row);
    if (cls == a->attr[IGNORE]) {
        if (grad) memset(logit, 0, (size_t)V * sizeof *logit);
        return 0;
    }
    const double own = (double)logit[cls];
    float m;
    double s;
    exp_row[isa](logit, V, &m, &s);
    if (grad) {
        scale_row[isa](logit, V, (float)(c / s));
        logit[cls] -= (float)c;
    }
    return (double)m + log(s) - own;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* The three products of a chunk. */
typedef struct {
    int64_t rows, chunks;
    ctn__prim *logits, *gx, *gw; /* gw adds to its result */
    size_t scratch;              /* of the product that needs most */
} lce;

static void lce_free(void *p)
{
    lce *l = p;
    if (l->logits) ctn__prim_free(l->logits);
    if (l->gx) ctn__prim_free(l->gx);
    if (l->gw) ctn__prim_free(l->gw);
    ctn__free(l);
}

static ctn_desc matrix(int64_t m, int64_t n, bool turned)
{
    ctn_desc d = {.dtype = CTN_F32, .ndim = 2, .dim = {m, n}};
    d.stride[0] = turned ? 1 : n;
    d.stride[1] = turned ? m : 1;
    return d;
}

static ctn_status make_products(lce *l, ctn__engine *e, int64_t C, int64_t V)
{
    const ctn_desc x = matrix(l->rows, C, false), w = matrix(V, C, false);
    const ctn_desc wt = matrix(C, V, true), g = matrix(l->rows, V, false);
    const ctn_desc gt = matrix(V, l->rows, true);
    CTN_TRY(ctn__prim_matmul(&l->logits, e, &x, &wt, NULL, &g, CTN__ELT_NONE, 0));
    CTN_TRY(ctn__prim_matmul(&l->gx, e, &g, &w, NULL, &x, CTN__ELT_NONE, 0));
    CTN_TRY(ctn__prim_matmul(&l->gw, e, &gt, &x, NULL, &w, CTN__ELT_ADD, 0));
    for (int i = 0; i < 3; i++) {
        const size_t n = ctn__prim_scratch(i == 0 ? l->logits : i == 1 ? l->gx : l->gw);
        if (n > l->scratch) l->scratch = n;
    }
    l->scratch = (l->scratch + 63) / 64 * 64;
    return CTN_OK;
}

static size_t padded(int64_t floats)
{
    return ((size_t)floats * sizeof(float) + 63) / 64 * 64;
}

static ctn_status lce_prepare(ctn_prepare_args *a)
{
    const int64_t N = a->din[0].dim[0], C = a->din[0].dim[1], V = a->din[1].dim[0];
    lce *l = ctn__calloc(1, sizeof *l);
    if (!l) return CTN_ENOMEM;
    l->chunks = (N + CHUNK - 1) / CHUNK;
    l->rows = (N + l->chunks - 1) / l->chunks;
    const ctn_status st = make_products(l, a->engine, C, V);
    if (st < 0) {
        lce_free(l);
        return st;
    }
    a->priv = l;
    a->priv_free = lce_free;
    a->priv_bytes = sizeof *l + 3 * ctn__prim_bytes(l->logits);
    a->kernel = ctn__prim_name(l->logits);
    a->flops = 6 * N * C * V;
    a->scratch = l->scratch + padded(l->rows * V) + 2 * padded(l->rows * C) + padded(2 * l->rows);
    return CTN_OK;
}

/* Chunk k: rows `first` to first + n - 1, filled up with zero rows. */
static ctn_status run_chunk(const ctn_run_args *a, const lce *l, int64_t first, int64_t n, double c,
                            double *loss)
{
    const int64_t C = a->din[0].dim[1], V = a->din[1].dim[0];
    char *p = (char *)a->scratch + l->scratch;
    void *room[4] = {p, p + padded(l->rows * V)};
    room[2] = (char *)room[1] + padded(l->rows * C);
    room[3] = (char *)room[2] + padded(l->rows * C);
    float *g = room[0], *x = room[1], *gx = room[2];
    double *each = room[3];
    const bool grad = a->out[1] || a->out[2];
    void *w = (void *)(uintptr_t)a->in[1];
    memcpy(x, (const float *)a->in[0] + first * C, (size_t)(n * C) * sizeof *x);
    memset(x + n * C, 0, (size_t)((l->rows - n) * C) * sizeof *x);
    CTN_TRY(ctn__prim_run(l->logits, (void *[]){x, w, NULL, g}, a->scratch));
#pragma omp parallel for schedule(static) num_threads(a->env->threads)
    for (int64_t r = 0; r < n; r++) each[r] = lce_row(a, first + r, g + r * V, V, grad, c);
    for (int64_t r = 0; r < n; r++) *loss += each[r];
    memset(g + n * V, 0, (size_t)((l->rows - n) * V) * sizeof *g);
    if (a->out[1]) {
        CTN_TRY(ctn__prim_run(l->gx, (void *[]){g, w, NULL, gx}, a->scratch));
        memcpy((float *)a->out[1] + first * C, gx, (size_t)(n * C) * sizeof *gx);
    }
    return a->out[2] ? ctn__prim_run(l->gw, (void *[]){g, x, NULL, a->out[2]}, a->scratch) : CTN_OK;
}

static ctn_status check_classes(const ctn_run_args *a)
{
    const int64_t V = a->din[1].dim[0];
    for (int64_t r = 0; r < a->din[0].dim[0]; r++) {
        const int64_t c = class_of(a, r);
        if (c != a->attr[IGNORE] && (c < 0 || c >= V))
            return ctn_fail(CTN_EARG,
                            "linear_cross_entropy: the class of row %lld is %lld, expected 0 to "
                            "%lld",
                            (long long)r, (long long)c, (long long)V - 1);
    }
    return CTN_OK;
}

static ctn_status lce_run(const ctn_run_args *a)
{
    const lce *l = a->priv;
    const int64_t N = a->din[0].dim[0];
    const double c =
        a->attr[REDUCTION] == CTN_MEAN ? 1 / (double)counted_rows(a) : 1; /* of the loss */
    double loss = 0;
    CTN_TRY(check_classes(a));
    if (a->out[2]) memset(a->out[2], 0, ctn__bytes(&a->dout[2]));
    for (int64_t k = 0; k < l->chunks; k++) {
        const int64_t first = k * l->rows, n = N - first < l->rows ? N - first : l->rows;
        if (n > 0) CTN_TRY(run_chunk(a, l, first, n, c, &loss));
    }
    if (a->out[0]) *(float *)a->out[0] = (float)(loss * c);
    return CTN_OK;
}

static ctn_status lce_grad(const ctn_grad_args *a)
{
    for (int i = 0; i < 2; i++)
        if (a->need[i]) CTN_TRY(ctn__grad_to(a, i, ctn_mul_at(a->at, a->out[i + 1], a->gout[0])));
    return CTN_OK;
}

ctn_op ctn__op_linear_cross_entropy = {
    .struct_size = sizeof(ctn_op),
    .name = "linear_cross_entropy",
    .nin = 3,
    .nout = 3,
    .order = 1,
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(1) | CTN_OPERAND(2),
    .attr_names = attr_names,
    .infer = lce_infer,
    .grad = lce_grad,
    .prepare = lce_prepare,
    .run = lce_run,
};

/* ---- the call -------------------------------------------------------------------------------- */

static bool fits(const ctn_desc *x, const ctn_desc *w, const ctn_desc *t)
{
    return x->ndim >= 1 && w->ndim == 2 && x->dim[x->ndim - 1] == w->dim[1] &&
           ctn__count(t) * w->dim[1] == ctn__count(x) && ctn__is_class_type(t->dtype);
}

ctn_tensor *ctn_linear_cross_entropy_at(const char *at, ctn_tensor *x, ctn_tensor *w, ctn_tensor *t,
                                        const ctn_softmax_cross_entropy_opt *opt)
{
    char tx[128], tw[128], tt[128];
    if (!x || !w || !t) return ctn_linear_at(at, NULL, NULL, NULL);
    if (!fits(&x->d, &w->d, &t->d)) {
        ctn_fail(
            CTN_ESHAPE,
            "linear_cross_entropy: x is %s, weight is %s, classes are %s %s; expected (...,C), "
            "(V,C) and one i64 or i32 class per row of x (%s)",
            ctn__shape_text(&x->d, tx, sizeof tx), ctn__shape_text(&w->d, tw, sizeof tw),
            ctn_dtype_name(t->d.dtype), ctn__shape_text(&t->d, tt, sizeof tt), at);
        return NULL;
    }
    x = ctn__rows_of(at, x);
    if (t->d.ndim != 1) t = ctn_reshape_at(at, t, CTN_SHAPE(ctn__count(&t->d)));
    if (!x || !t) return NULL;
    const bool whole = opt && (opt->weights || opt->smoothing != 0);
    if (whole || x->d.dtype != CTN_F32 || w->d.dtype != CTN_F32 ||
        x->ctx->opt.precision != CTN_PRECISION_F32 || ctn__count(&x->d) == 0)
        return ctn_softmax_cross_entropy_with_at(at, ctn_linear_at(at, x, w, NULL), t, opt);
    ctn_tensor *in[3] = {x, w, t};
    const int64_t attr[NATTR] = {opt ? opt->reduction : CTN_MEAN,
                                 opt && opt->ignore ? *opt->ignore : CTN__NO_CLASS};
    return ctn__apply1(at, NULL, &ctn__op_linear_cross_entropy, 3, in, NATTR, attr, 0, NULL);
}
