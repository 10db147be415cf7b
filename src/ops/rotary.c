/* SPDX-License-Identifier: Apache-2.0
 *
 * rotary: rotary position embedding of x (...,T,E). Row t is at position first + t, where each
 * sample may have a `first` of its own, an optional second operand. Pair i of its
 * first D elements is rotated by the angle position * base^(-2 i / D):
 *     (u, v) -> (u cos - v sin, v cos + u sin)
 * The pairs are (i, i + D/2), as in Llama, or (2 i, 2 i + 1). The op is linear, and its gradient is
 * the rotation back.
 */
#include <math.h>

#include "ops/common/along.h"

enum { DIMS, INTERLEAVED, BACK, NATTR };
enum { BASE, FIRST, NSCALAR };
static const char *const attr_names[] = {"dims", "interleaved", "back"};

/* ---- tables ---------------------------------------------------------------------------------- */

/* After this many rows the angles are computed anew; in between they are added up. */
enum { FRESH = 64 };

/* cos and sin of each pair in n rows from `position` on, (n,2,D/2). step is that of one row. */
static void fill_rows(const ctn_run_args *a, double position, int64_t n, const double *turn,
                      const double *step, double *table)
{
    const int64_t half = a->attr[DIMS] / 2;
    for (int64_t i = 0; i < half; i++) {
        const double angle = position * turn[i];
        table[i] = cos(angle);
        table[half + i] = a->attr[BACK] ? -sin(angle) : sin(angle);
    }
    for (int64_t t = 1; t < n; t++) {
        const double *was = table + (t - 1) * 2 * half;
        double *now = table + t * 2 * half;
#pragma omp simd
        for (int64_t i = 0; i < half; i++) {
            now[i] = was[i] * step[i] - was[half + i] * step[half + i];
            now[half + i] = was[half + i] * step[i] + was[i] * step[half + i];
        }
    }
}

/* Samples that have positions of their own; 1: all have the same. */
static int64_t samples(const ctn_desc *din, int nin)
{
    return nin > 1 ? din[1].dim[0] : 1;
}

/* The table of all samples, (N,T,2,D/2), behind the turns (D/2) and the steps (2,D/2). */
static const double *fill_tables(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    const int64_t T = x->dim[x->ndim - 2], half = a->attr[DIMS] / 2, N = samples(a->din, a->nin);
    const int64_t parts = (T + FRESH - 1) / FRESH;
    double *turn = a->scratch, *step = turn + half, *table = step + 2 * half;
    for (int64_t i = 0; i < half; i++) turn[i] = pow(a->scalar[BASE], -(double)i / (double)half);
    fill_rows(a, 1, 1, turn, NULL, step);
#pragma omp parallel for schedule(static) if (N * T * half > CTN__GRAIN)
    for (int64_t p = 0; p < N * parts; p++) {
        const int64_t n = p / parts, t = p % parts * FRESH;
        double first = a->scalar[FIRST] + (double)t;
        if (a->nin > 1) first += (double)ctn__index_get(a->in[1], a->din[1].dtype, n);
        fill_rows(a, first, T - t < FRESH ? T - t : FRESH, turn, step,
                  table + (n * T + t) * 2 * half);
    }
    return table;
}

/* ---- the op ---------------------------------------------------------------------------------- */

#define ROTATE(T)                                                                              \
    static void rotate_##T(const T *x, T *y, const double *table, int64_t D, int64_t E,        \
                           bool interleaved)                                                   \
    {                                                                                          \
        const int64_t half = D / 2, next = interleaved ? 1 : half, step = interleaved ? 2 : 1; \
        for (int64_t i = 0; i < half; i++) {                                                   \
            const T c = (T)table[i], s = (T)table[half + i];                                   \
            const T u = x[i * step], v = x[i * step + next];                                   \
            y[i * step] = u * c - v * s;                                                       \
            y[i * step + next] = v * c + u * s;                                                \
        }                                                                                      \
        if (y != x) memcpy(y + D, x + D, (size_t)(E - D) * sizeof *y);                         \
    }
ROTATE(float)
ROTATE(double)

static ctn_status rotary_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    const int64_t T = x->dim[x->ndim - 2], E = x->dim[x->ndim - 1], D = a->attr[DIMS];
    const int64_t rows = E > 0 ? ctn__count(x) / E : 0;
    if (rows == 0) return CTN_OK;
    const int64_t per = rows / samples(a->din, a->nin); /* rows of a sample */
    const double *table = fill_tables(a);
#pragma omp parallel for schedule(static) if (rows * E > CTN__GRAIN)
    for (int64_t r = 0; r < rows; r++) {
        const double *row = table + ((a->nin > 1 ? r / per : 0) * T + r % T) * D;
        if (x->dtype == CTN_F32)
            rotate_float((const float *)a->in[0] + r * E, (float *)a->out[0] + r * E, row, D, E,
                         a->attr[INTERLEAVED] != 0);
        else
            rotate_double((const double *)a->in[0] + r * E, (double *)a->out[0] + r * E, row, D, E,
                          a->attr[INTERLEAVED] != 0);
    }
    return CTN_OK;
}

static ctn_status rotary_prepare(ctn_prepare_args *a)
{
    const ctn_desc *x = &a->din[0];
    const int64_t rows = samples(a->din, a->nin) * x->dim[x->ndim - 2];
    a->scratch = (size_t)((rows + 2) * a->attr[DIMS]) * sizeof(double);
    return CTN_OK;
}

static ctn_status rotary_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    char t[128];
    CTN_TRY(ctn__infer_same(a));
    const int64_t E = x->ndim >= 2 ? x->dim[x->ndim - 1] : 0, D = a->attr[DIMS];
    if (x->ndim < 2 || D % 2 != 0 || D > E)
        return ctn_fail(
            CTN_ESHAPE,
            "rotary: x is %s and %lld elements of a row are rotated; expected (...,T,E) "
            "and an even number up to E",
            ctn__shape_text(x, t, sizeof t), (long long)D);
    if (a->nin == 1) return CTN_OK;
    CTN_TRY(ctn__infer_index(a, a->in[1]));
    if (a->in[1]->ndim != 1 || x->ndim < 3 || a->in[1]->dim[0] != x->dim[0])
        return ctn_fail(CTN_ESHAPE, "rotary: positions must be (N), and x is %s, not (N,...,T,E)",
                        ctn__shape_text(x, t, sizeof t));
    return CTN_OK;
}

static ctn_status rotary_grad(const ctn_grad_args *a)
{
    const int64_t attr[NATTR] = {a->attr[DIMS], a->attr[INTERLEAVED], !a->attr[BACK]};
    ctn_tensor *in[2] = {a->gout[0], a->nin > 1 ? a->in[1] : NULL};
    return ctn__grad_to(a, 0,
                        ctn__apply1(a->at, NULL, &ctn__op_rotary, a->nin, in, NATTR, attr, NSCALAR,
                                    a->scalar));
}

ctn_op ctn__op_rotary = {
    .struct_size = sizeof(ctn_op),
    .name = "rotary",
    .nin = -1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(1),
    .inplace = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = rotary_infer,
    .grad = rotary_grad,
    .prepare = rotary_prepare,
    .run = rotary_run,
};

ctn_tensor *ctn_rotary_at(const char *at, ctn_tensor *x, const ctn_rotary_opt *opt)
{
    ctn_rotary_opt o;
    if (ctn__opt("rotary", &o, sizeof o, opt) < 0) return NULL;
    if (o.dims < 0 || o.base < 0 || o.first < 0) {
        ctn_fail(CTN_EARG,
                 "rotary: dims is %lld, base is %g and first is %g; expected 0 or more (%s)",
                 (long long)o.dims, o.base, o.first, at);
        return NULL;
    }
    const int64_t E = x && x->d.ndim > 0 ? x->d.dim[x->d.ndim - 1] : 0;
    const int64_t attr[NATTR] = {o.dims > 0 ? o.dims : E, o.interleaved != 0, 0};
    const ctn_scalar scalar[NSCALAR] = {CTN_CONST(o.base > 0 ? o.base : 10000), CTN_CONST(o.first)};
    ctn_tensor *in[2] = {x, o.positions};
    return ctn__apply1(at, NULL, &ctn__op_rotary, o.positions ? 2 : 1, in, NATTR, attr, NSCALAR,
                       scalar);
}
