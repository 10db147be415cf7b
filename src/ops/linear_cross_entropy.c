/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_cross_entropy: softmax_cross_entropy(x W^T, t) for a large number of classes, such as the
 * words of a language model. x (N,C), W (V,C), classes t (N). The logits exist for one chunk of
 * rows at a time. When a gradient is wanted, the same pass also computes those of x and W, as
 * further outputs, because the logits are at hand. They belong to a gradient of the loss that is
 * known beforehand, 1 unless the plan sets it (plan/fuse/loss_seed.c); the gradient of the op only
 * scales them.
 */
#include <math.h>

#include "engine/isa.h"
#include "ops/common/classes.h"
#include "ops/common/vmath.h"

enum { REDUCTION, IGNORE, NATTR };
enum { SEED, NSCALAR }; /* the gradient of the loss */
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

static size_t padded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int64_t chunk_of(int64_t rows)
{
    const int64_t chunks = (rows + CHUNK - 1) / CHUNK;
    return (rows + chunks - 1) / chunks;
}

static ctn_status lce_prepare(ctn_prepare_args *a)
{
    const int64_t N = a->din[0].dim[0], C = a->din[0].dim[1], V = a->din[1].dim[0];
    const size_t rows = (size_t)chunk_of(N);
    a->kernel = "gemm";
    a->flops = (a->nout > 1 ? 6 : 2) * N * C * V;
    a->scratch = padded(rows * (size_t)V * sizeof(float)) + rows * sizeof(double);
    return CTN_OK;
}

/* Rows `first` to first + n - 1. */
static ctn_status run_chunk(const ctn_run_args *a, int64_t first, int64_t n, double c, double *loss)
{
    const int64_t C = a->din[0].dim[1], V = a->din[1].dim[0];
    const float *x = (const float *)a->in[0] + first * C, *w = a->in[1];
    void *rest = (char *)a->scratch + padded((size_t)(n * V) * sizeof(float));
    float *g = a->scratch;
    double *each = rest;
    const bool grad = a->out[1] || a->out[2];
    CTN_TRY(ctn__gemm(&(ctn__gemm_args){n, V, C, x, w, g, C, C, V, .tb = true}));
#pragma omp parallel for schedule(static) num_threads(a->env->threads)
    for (int64_t r = 0; r < n; r++) each[r] = lce_row(a, first + r, g + r * V, V, grad, c);
    for (int64_t r = 0; r < n; r++) *loss += each[r];
    if (a->out[1])
        CTN_TRY(ctn__gemm(&(ctn__gemm_args){n, C, V, g, w, (float *)a->out[1] + first * C, V, C, C,
                                            .ta = false}));
    if (!a->out[2]) return CTN_OK;
    return ctn__gemm(
        &(ctn__gemm_args){V, C, n, g, x, a->out[2], V, C, C, .ta = true, .add = first > 0});
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
    const int64_t N = a->din[0].dim[0], rows = chunk_of(N);
    const double c =
        a->attr[REDUCTION] == CTN_MEAN ? 1 / (double)counted_rows(a) : 1; /* of the loss */
    double loss = 0;
    CTN_TRY(check_classes(a));
    for (int64_t k = 0; k < N; k += rows)
        CTN_TRY(run_chunk(a, k, N - k < rows ? N - k : rows, c * a->scalar[SEED], &loss));
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
    return ctn__apply1(at, NULL, &ctn__op_linear_cross_entropy, 3, in, NATTR, attr, NSCALAR,
                       (const ctn_scalar[NSCALAR]){CTN_CONST(1)});
}
