/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_cross_entropy: softmax_cross_entropy(x W^T + b, t) for a large number of classes, such as
 * the words of a language model. x (N,C), W (V,C), classes t (N), b (V) or absent. The logits exist
 * for one chunk of rows at a time, and those of ignored rows never do. When a gradient is wanted,
 * the same pass also computes those of x, W and b, as further outputs, because the logits are at
 * hand. They belong to a gradient of the loss that is known beforehand, 1 unless the plan sets it
 * (plan/fuse/loss_seed.c); the gradient of the op only scales them.
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
    a->out[0] = (ctn_desc){.dtype = CTN_F32};
    a->out[1] = *a->in[0];
    a->out[2] = *a->in[1];
    a->nout = a->nin;
    if (a->nin > 3) a->out[3] = *a->in[3];
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

/* Lists the rows that are not ignored; returns their number. */
static int64_t list_rows(const ctn_run_args *a, int64_t *row)
{
    int64_t n = 0;
    for (int64_t r = 0; r < a->din[0].dim[0]; r++)
        if (class_of(a, r) != a->attr[IGNORE]) row[n++] = r;
    return n;
}

/* The loss of a row; its logits become gradients if `grad` is set. */
static double lce_row(const ctn_run_args *a, int64_t row, float *logit, int64_t V, bool grad,
                      double c)
{
    const ctn__isa isa = ctn__isa_in_use();
    const int64_t cls = class_of(a, row);
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

/* The parts of the scratch memory. */
typedef struct {
    float *logit; /* (chunk,V) */
    float *x;     /* (chunk,C), for rows that are not neighbours */
    double *loss; /* (chunk) */
    int64_t *row; /* (N) */
} room;

/* Offsets of the parts in the order of the struct, then the size of all. */
static void offsets(const ctn_desc *x, const ctn_desc *w, size_t at[5])
{
    const size_t N = (size_t)x->dim[0], C = (size_t)x->dim[1], V = (size_t)w->dim[0];
    const size_t chunk = N < CHUNK ? N : CHUNK;
    const size_t bytes[4] = {chunk * V * sizeof(float), chunk * C * sizeof(float),
                             chunk * sizeof(double), N * sizeof(int64_t)};
    at[0] = 0;
    for (int k = 0; k < 4; k++) at[k + 1] = at[k] + (bytes[k] + 63) / 64 * 64;
}

static room room_of(const ctn_run_args *a)
{
    size_t at[5];
    char *base = a->scratch;
    offsets(&a->din[0], &a->din[1], at);
    void *part[4] = {base + at[0], base + at[1], base + at[2], base + at[3]};
    return (room){part[0], part[1], part[2], part[3]};
}

static ctn_status lce_prepare(ctn_prepare_args *a)
{
    const int64_t N = a->din[0].dim[0], C = a->din[0].dim[1], V = a->din[1].dim[0];
    size_t at[5];
    a->kernel = "gemm";
    a->flops = ctn__work((a->nout > 1 ? 6.0 : 2.0) * (double)N * (double)C * (double)V);
    offsets(&a->din[0], &a->din[1], at);
    a->scratch = at[4];
    return CTN_OK;
}

static bool neighbours(const int64_t *row, int64_t n)
{
    return row[n - 1] - row[0] == n - 1;
}

/* The n rows of x as one matrix. */
static const float *gather(const ctn_run_args *a, const room *s, const int64_t *row, int64_t n)
{
    const int64_t C = a->din[0].dim[1];
    const float *x = a->in[0];
    if (neighbours(row, n)) return x + row[0] * C;
    for (int64_t r = 0; r < n; r++) memcpy(s->x + r * C, x + row[r] * C, (size_t)C * sizeof *x);
    return s->x;
}

/* gx = g W. The rows of x are not needed any more, so the result may replace them. */
static ctn_status x_gradient(const ctn_run_args *a, const room *s, const int64_t *row, int64_t n)
{
    const int64_t C = a->din[0].dim[1], V = a->din[1].dim[0];
    const bool direct = neighbours(row, n);
    float *out = a->out[1], *gx = direct ? out + row[0] * C : s->x;
    CTN_TRY(ctn__gemm(&(ctn__gemm_args){n, C, V, s->logit, a->in[1], gx, V, C, C, .ta = false}));
    for (int64_t r = 0; r < n && !direct; r++)
        memcpy(out + row[r] * C, gx + r * C, (size_t)C * sizeof *gx);
    return CTN_OK;
}

/* gb += the sum of g over its rows. */
static void add_bias_gradient(const ctn_run_args *a, const float *g, int64_t n)
{
    const int64_t V = a->din[1].dim[0];
    float *gb = a->out[3];
#pragma omp parallel for schedule(static) num_threads(a->env->threads)
    for (int64_t first = 0; first < V; first += BLOCK)
        for (int64_t r = 0; r < n; r++)
            for (int64_t v = first; v < V && v < first + BLOCK; v++) gb[v] += g[r * V + v];
}

/* The n rows with these numbers; first: nothing was added to the gradient of W yet. */
static ctn_status run_chunk(const ctn_run_args *a, const room *s, const int64_t *row, int64_t n,
                            bool first, double c, double *loss)
{
    const int64_t C = a->din[0].dim[1], V = a->din[1].dim[0];
    const float *x = gather(a, s, row, n), *bias = a->nin > 3 ? a->in[3] : NULL;
    float *g = s->logit, *gb = a->nin > 3 ? a->out[3] : NULL;
    const bool grad = a->out[1] || a->out[2] || gb;
    for (int64_t r = 0; bias && r < n; r++) memcpy(g + r * V, bias, (size_t)V * sizeof *g);
    CTN_TRY(ctn__gemm(
        &(ctn__gemm_args){n, V, C, x, a->in[1], g, C, C, V, .tb = true, .add = bias != NULL}));
#pragma omp parallel for schedule(static) num_threads(a->env->threads)
    for (int64_t r = 0; r < n; r++) s->loss[r] = lce_row(a, row[r], g + r * V, V, grad, c);
    for (int64_t r = 0; r < n; r++) *loss += s->loss[r];
    if (gb) add_bias_gradient(a, g, n);
    if (a->out[2])
        CTN_TRY(ctn__gemm(
            &(ctn__gemm_args){V, C, n, g, x, a->out[2], V, C, C, .ta = true, .add = !first}));
    return a->out[1] ? x_gradient(a, s, row, n) : CTN_OK;
}

static void clear(const ctn_run_args *a, int k)
{
    if (a->out[k]) memset(a->out[k], 0, (size_t)ctn__count(&a->dout[k]) * sizeof(float));
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
    const room s = room_of(a);
    CTN_TRY(check_classes(a));
    const int64_t n = list_rows(a, s.row), chunks = (n + CHUNK - 1) / CHUNK;
    const int64_t rows =
        chunks ? (n + chunks - 1) / chunks : 0; /* all chunks are of similar size */
    const double c = a->attr[REDUCTION] == CTN_MEAN ? 1 / (double)n : 1; /* of the loss */
    const double seed = c * a->scalar[SEED];
    double loss = 0;
    if (n < a->din[0].dim[0]) clear(a, 1);
    if (n == 0) clear(a, 2);
    if (a->nin > 3) clear(a, 3);
    for (int64_t k = 0; k < n; k += rows)
        CTN_TRY(run_chunk(a, &s, s.row + k, n - k < rows ? n - k : rows, k == 0, seed, &loss));
    if (a->out[0]) *(float *)a->out[0] = (float)(loss * c);
    return CTN_OK;
}

static ctn_status lce_grad(const ctn_grad_args *a)
{
    for (int i = 0; i < a->nin; i++) {
        const int out = i < 2 ? i + 1 : i; /* classes, input 2, have no gradient */
        if (i != 2 && a->need[i])
            CTN_TRY(ctn__grad_to(a, i, ctn_mul_at(a->at, a->out[out], a->gout[0])));
    }
    return CTN_OK;
}

ctn_op ctn__op_linear_cross_entropy = {
    .struct_size = sizeof(ctn_op),
    .name = "linear_cross_entropy",
    .nin = -1,
    .nout = 4,
    .order = 1,
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(1) | CTN_OPERAND(2) | CTN_OPERAND(3),
    .attr_names = attr_names,
    .infer = lce_infer,
    .grad = lce_grad,
    .prepare = lce_prepare,
    .run = lce_run,
};

/* ---- the call -------------------------------------------------------------------------------- */

static bool fits(const ctn_desc *x, const ctn_desc *w, const ctn_desc *t, const ctn_tensor *b)
{
    if (b && (b->d.ndim != 1 || b->d.dim[0] != w->dim[0])) return false;
    return x->ndim >= 1 && w->ndim == 2 && x->dim[x->ndim - 1] == w->dim[1] &&
           ctn__count(t) * w->dim[1] == ctn__count(x) && ctn__is_class_type(t->dtype);
}

static void refuse(const char *at, const ctn_tensor *x, const ctn_tensor *w, const ctn_tensor *t,
                   const ctn_tensor *bias)
{
    char tx[128], tw[128], tt[128], tb[128];
    ctn_fail(
        CTN_ESHAPE,
        "linear_cross_entropy: x is %s, weight is %s%s%s, classes are %s %s; expected (...,C), "
        "(V,C), a bias of (V) or none, and one i64 or i32 class per row of x (%s)",
        ctn__shape_text(&x->d, tx, sizeof tx), ctn__shape_text(&w->d, tw, sizeof tw),
        bias ? ", bias is " : "", bias ? ctn__shape_text(&bias->d, tb, sizeof tb) : "",
        ctn_dtype_name(t->d.dtype), ctn__shape_text(&t->d, tt, sizeof tt), at);
}

ctn_tensor *ctn_linear_cross_entropy_at(const char *at, ctn_tensor *x, ctn_tensor *w, ctn_tensor *t,
                                        const ctn_softmax_cross_entropy_opt *opt)
{
    ctn_softmax_cross_entropy_opt o;
    if (!x || !w || !t) return ctn_linear_at(at, NULL, NULL, NULL);
    if (ctn__opt("linear_cross_entropy", &o, sizeof o, opt) < 0) return NULL;
    if (!fits(&x->d, &w->d, &t->d, o.bias)) {
        refuse(at, x, w, t, o.bias);
        return NULL;
    }
    const ctn_desc rows = t->d;
    x = ctn__rows_of(at, x);
    if (t->d.ndim != 1) t = ctn_reshape_at(at, t, CTN_SHAPE(ctn__count(&t->d)));
    if (!x || !t) return NULL;
    const bool whole = o.weights || o.smoothing != 0 || o.reduction == CTN_NONE;
    if (whole || x->d.dtype != CTN_F32 || w->d.dtype != CTN_F32 ||
        x->ctx->opt.precision != CTN_PRECISION_F32 || ctn__count(&x->d) == 0) {
        ctn_tensor *y =
            ctn_softmax_cross_entropy_with_at(at, ctn_linear_at(at, x, w, o.bias), t, &o);
        return o.reduction == CTN_NONE ? ctn_reshape_at(at, y, rows.ndim, rows.dim) : y;
    }
    ctn_tensor *in[4] = {x, w, t, o.bias};
    const int64_t attr[NATTR] = {o.reduction, o.ignore ? *o.ignore : CTN__NO_CLASS};
    return ctn__apply1(at, NULL, &ctn__op_linear_cross_entropy, o.bias ? 4 : 3, in, NATTR, attr,
                       NSCALAR, (const ctn_scalar[NSCALAR]){CTN_CONST(1)});
}
