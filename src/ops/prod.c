/* SPDX-License-Identifier: Apache-2.0
 *
 * prod over axes (no axes: all), accumulated in double; 1 if there are no elements. Gradient: gx_i
 * is gy times the product of all other elements, which is that of the elements before i times that
 * of those after i. So nothing is divided by x_i, which may be 0.
 */
#include "ops/common/reduce.h"

/* Columns and rows of a tile; elements of a row that are multiplied together. */
enum { COLS = 256, ROWS = 16, LANES = 16 };

#define DEFINE_PROD(T)                                                                      \
    static inline                                                                           \
        __attribute__((always_inline)) double line_##T(const T *v, int64_t n, int64_t step) \
    {                                                                                       \
        double lane[LANES], p = 1;                                                          \
        int64_t i = 0;                                                                      \
        for (int j = 0; j < LANES; j++) lane[j] = 1;                                        \
        for (; step == 1 && i + LANES <= n; i += LANES)                                     \
            CTN__SIMD(j, 0, LANES, lane[j] *= (double)v[i + j];)                            \
        for (; i < n; i++) p *= (double)v[i * step];                                        \
        CTN__SIMD(j, 0, 8, lane[j] *= lane[j + 8];)                                         \
        CTN__SIMD(j, 0, 4, lane[j] *= lane[j + 4];)                                         \
        for (int64_t j = 0; j < 2; j++) lane[j] *= lane[j + 2];                             \
        lane[0] *= lane[1];                                                                 \
        return p * lane[0];                                                                 \
    }                                                                                       \
    /* Results i to i + nc - 1, each from its lines of s->last elements. */                 \
    CTN__PER_ISA(rows_##T,                                                                  \
                 (const ctn__reduce *s, const void *in, void *out, int64_t i, int64_t nc),  \
                 (s, in, out, i, nc))                                                       \
    {                                                                                       \
        const int64_t lines = s->last > 0 ? s->r / s->last : 0;                             \
        for (int64_t c = i; c < i + nc; c++) {                                              \
            const T *x = (const T *)in + ctn__reduce_offset(&s->kept, s->kept.ndim, c);     \
            double p = 1;                                                                   \
            for (int64_t l = 0; l < lines; l++)                                             \
                p *= line_##T(x + ctn__reduce_offset(&s->red, s->red.ndim - 1, l), s->last, \
                              s->last_step);                                                \
            ((T *)out)[c] = (T)p;                                                           \
        }                                                                                   \
    }                                                                                       \
    /* Results i to i + nc - 1, which are contiguous in memory. */                          \
    CTN__PER_ISA(columns_##T,                                                               \
                 (const ctn__reduce *s, const void *in, void *out, int64_t i, int64_t nc),  \
                 (s, in, out, i, nc))                                                       \
    {                                                                                       \
        const T *x = (const T *)in + ctn__reduce_offset(&s->kept, s->kept.ndim, i);         \
        double p[COLS];                                                                     \
        for (int64_t c = 0; c < nc; c++) p[c] = 1;                                          \
        for (int64_t r = 0; r < s->r; r++) {                                                \
            const T *v = x + ctn__reduce_offset(&s->red, s->red.ndim, r);                   \
            CTN__SIMD(c, 0, nc, p[c] *= (double)v[c];)                                      \
        }                                                                                   \
        for (int64_t c = 0; c < nc; c++) ((T *)out)[i + c] = (T)p[c];                       \
    }
DEFINE_PROD(float)
DEFINE_PROD(double)

static ctn_status prod_prepare(ctn_prepare_args *a)
{
    ctn__reduce_in_order(a);
    return CTN_OK;
}

static ctn_status prod_run(const ctn_run_args *a)
{
    typedef void unit(const ctn__reduce *s, const void *in, void *out, int64_t i, int64_t nc);
    static unit *const *const units[2][2] = {{rows_double, columns_double},
                                             {rows_float, columns_float}};
    ctn__reduce s;
    ctn__reduce_split(&s, &a->din[0], a->attr, a->nattr);
    unit *f = units[s.kept.dtype == CTN_F32][s.columns][ctn__isa_in_use()];
    const int64_t rows = s.r < 1024 ? ROWS : 1; /* long ones one by one, for many threads */
    const int64_t width = s.columns ? COLS : rows, tiles = (s.C + width - 1) / width;
#pragma omp parallel for schedule(static) if (s.n * s.r > CTN__GRAIN)
    for (int64_t u = 0; u < s.outer * tiles; u++) {
        int64_t c = u % tiles * width;
        f(&s, a->in[0], a->out[0], u / tiles * s.C + c, s.C - c < width ? s.C - c : width);
    }
    return CTN_OK;
}

/* The order of axes that brings the reduced ones to the end; returns how many are kept. */
static int kept_first(const ctn_grad_args *a, int64_t *order, int64_t *back)
{
    const int nd = a->in[0]->d.ndim;
    bool gone[CTN_MAX_DIMS] = {false};
    int n = 0, kept = 0;
    for (int i = 0; i < nd; i++) gone[i] = a->nattr == CTN__R_AXIS0;
    for (int i = CTN__R_AXIS0; i < a->nattr; i++) gone[ctn__axis(nd, a->attr[i])] = true;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < nd; i++)
            if (gone[i] == (pass == 1)) order[n++] = i;
        if (pass == 0) kept = n;
    }
    for (int i = 0; i < nd; i++) back[order[i]] = i;
    return kept;
}

/* Along the last axis, the product of the elements before each one, or after it. */
static ctn_tensor *others(const char *at, ctn_tensor *x, int after)
{
    if (!x) return NULL;
    const int last = x->d.ndim - 1;
    int64_t one[CTN_MAX_DIMS] = {0};
    one[last] = 1;
    ctn_tensor *rest = ctn_slice_at(at, x, last, after, x->d.dim[last] - 1);
    rest = ctn_pad_at(at, rest, after ? NULL : one, after ? one : NULL, 1);
    return ctn_cumprod_at(at, rest, last, after);
}

static ctn_status prod_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    const ctn_desc *x = &a->in[0]->d;
    int64_t order[CTN_MAX_DIMS] = {0}, back[CTN_MAX_DIMS], flat[CTN_MAX_DIMS], dims[CTN_MAX_DIMS];
    const int kept = kept_first(a, order, back);
    if (x->ndim == 0) return ctn__grad_to(a, 0, a->gout[0]);
    if (ctn__count(x) == 0)
        return ctn__grad_to(a, 0, ctn_full_at(at, a->ctx, 0, x->dtype, x->ndim, x->dim));
    flat[kept] = 1;
    for (int i = 0; i < x->ndim; i++) {
        dims[i] = x->dim[order[i]];
        if (i < kept) flat[i] = dims[i];
        else flat[kept] *= dims[i];
    }
    ctn_tensor *t = ctn_transpose_at(at, a->in[0], x->ndim, order);
    t = ctn_reshape_at(at, t, kept + 1, flat);
    flat[kept] = 1;
    ctn_tensor *g = ctn_reshape_at(at, a->gout[0], kept + 1, flat);
    g = ctn_mul_at(at, g, ctn_mul_at(at, others(at, t, 0), others(at, t, 1)));
    g = ctn_transpose_at(at, ctn_reshape_at(at, g, x->ndim, dims), x->ndim, back);
    return ctn__grad_to(a, 0, g);
}

ctn_op ctn__op_prod = {
    .struct_size = sizeof(ctn_op),
    .name = "prod",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .infer = ctn__reduce_infer,
    .grad = prod_grad,
    .prepare = prod_prepare,
    .run = prod_run,
};

ctn_tensor *ctn_prod_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes, int keep)
{
    return ctn__reduce_record(at, &ctn__op_prod, CTN__R_PROD, x, naxes, axes, keep);
}
