/* SPDX-License-Identifier: Apache-2.0
 *
 * rotary: rotary position embedding of x (...,T,E). Row t is at position first + t. Pair i of its
 * first D elements is rotated by the angle position * base^(-2 i / D):
 *     (u, v) -> (u cos - v sin, v cos + u sin)
 * The pairs are (i, i + D/2), as in Llama, or (2 i, 2 i + 1). The op is linear, and its gradient is
 * the rotation back.
 */
#include <math.h>

#include "ops/ops.h"

enum { DIMS, INTERLEAVED, BACK, NATTR };
enum { BASE, FIRST, NSCALAR };
static const char *const attr_names[] = {"dims", "interleaved", "back"};

/* The tables: cos and sin of each position and pair, (T,2,D/2). */
static void fill_tables(const ctn_run_args *a, double *table)
{
    const ctn_desc *x = &a->din[0];
    const int64_t T = x->dim[x->ndim - 2], half = a->attr[DIMS] / 2;
    for (int64_t t = 0; t < T; t++)
        for (int64_t i = 0; i < half; i++) {
            const double turn = pow(a->scalar[BASE], -(double)i / (double)half);
            const double angle = ((double)t + a->scalar[FIRST]) * turn;
            table[2 * t * half + i] = cos(angle);
            table[(2 * t + 1) * half + i] = a->attr[BACK] ? -sin(angle) : sin(angle);
        }
}

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
    double *table = a->scratch;
    fill_tables(a, table);
#pragma omp parallel for schedule(static) if (rows * E > CTN__GRAIN)
    for (int64_t r = 0; r < rows; r++) {
        const double *row = table + r % T * D;
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
    a->scratch = (size_t)(x->dim[x->ndim - 2] * a->attr[DIMS]) * sizeof(double);
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
    return CTN_OK;
}

static ctn_status rotary_grad(const ctn_grad_args *a)
{
    const int64_t attr[NATTR] = {a->attr[DIMS], a->attr[INTERLEAVED], !a->attr[BACK]};
    ctn_tensor *g = a->gout[0];
    return ctn__grad_to(a, 0,
                        ctn__apply1(a->at, NULL, &ctn__op_rotary, 1, &g, NATTR, attr, NSCALAR,
                                    a->scalar));
}

ctn_op ctn__op_rotary = {
    .struct_size = sizeof(ctn_op),
    .name = "rotary",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
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
    return ctn__apply1(at, NULL, &ctn__op_rotary, 1, &x, NATTR, attr, NSCALAR, scalar);
}
