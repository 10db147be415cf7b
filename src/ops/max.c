/* SPDX-License-Identifier: Apache-2.0
 *
 * max over axes (none given: all); a NaN among the elements is the result. min.c uses the same
 * kernels. Gradient: gy split evenly among the elements equal to the extreme, by max_grad, which
 * is linear in gy:
 *   gx_i = gy [x_i == y] / count(x == y)
 */
#include "ops/reduce.h"

ctn_status ctn__max_infer(ctn_infer_args *a)
{
    char t[128];
    CTN_TRY(ctn__reduce_infer(a));
    if (ctn__count(a->in[0]) == 0 && ctn__count(&a->out[0]) > 0)
        return ctn_fail(CTN_ESHAPE, "%s: %s has no elements to choose from", a->name,
                        ctn__shape_text(a->in[0], t, sizeof t));
    return CTN_OK;
}

/* Written so that a NaN wins and stays; without branches, so that it becomes a vector blend. */
#define MORE(v, m) (((v) > (m)) | ((v) != (v)) ? (v) : (m))
#define LESS(v, m) (((v) < (m)) | ((v) != (v)) ? (v) : (m))

enum { COLS = 256, LANES = 16 };

/* row: result i from its lines of s->last elements. columns: results i to i + nc - 1,
 * neighbours. */
#define DEFINE_EXTREME(T, name, BEST)                                                          \
    static T name##_run_##T(const T *v, int64_t n, T m)                                        \
    {                                                                                          \
        T lane[LANES];                                                                         \
        int64_t i = 0;                                                                         \
        for (int j = 0; j < LANES; j++) lane[j] = m;                                           \
        for (; i + LANES <= n; i += LANES) {                                                   \
            for (int j = 0; j < LANES; j++) {                                                  \
                T p = v[i + j], q = lane[j];                                                   \
                lane[j] = BEST(p, q);                                                          \
            }                                                                                  \
        }                                                                                      \
        for (; i < n; i++) m = BEST(v[i], m);                                                  \
        for (int j = 0; j < LANES; j++) m = BEST(lane[j], m);                                  \
        return m;                                                                              \
    }                                                                                          \
    static void name##_row_##T(const ctn__reduce *s, const void *in, void *out, int64_t i,     \
                               int64_t nc)                                                     \
    {                                                                                          \
        const T *x = (const T *)in + ctn__reduce_offset(&s->kept, s->kept.ndim, i);            \
        T m = x[0];                                                                            \
        (void)nc;                                                                              \
        for (int64_t l = 0; l < s->r / s->last; l++) {                                         \
            const T *v = x + ctn__reduce_offset(&s->red, s->red.ndim - 1, l);                  \
            if (s->last_step == 1) m = name##_run_##T(v, s->last, m);                          \
            else                                                                               \
                for (int64_t k = 0; k < s->last; k++) m = BEST(v[k * s->last_step], m);        \
        }                                                                                      \
        ((T *)out)[i] = m;                                                                     \
    }                                                                                          \
    static void name##_columns_##T(const ctn__reduce *s, const void *in, void *out, int64_t i, \
                                   int64_t nc)                                                 \
    {                                                                                          \
        const T *x = (const T *)in + ctn__reduce_offset(&s->kept, s->kept.ndim, i);            \
        T *restrict y = (T *)out + i;                                                          \
        for (int64_t c = 0; c < nc; c++) y[c] = x[c];                                          \
        for (int64_t r = 1; r < s->r; r++) {                                                   \
            const T *restrict v = x + ctn__reduce_offset(&s->red, s->red.ndim, r);             \
            for (int64_t c = 0; c < nc; c++) {                                                 \
                T p = v[c], q = y[c];                                                          \
                y[c] = BEST(p, q);                                                             \
            }                                                                                  \
        }                                                                                      \
    }
DEFINE_EXTREME(float, max, MORE)
DEFINE_EXTREME(double, max, MORE)
DEFINE_EXTREME(float, min, LESS)
DEFINE_EXTREME(double, min, LESS)

ctn_status ctn__max_run(const ctn_run_args *a)
{
    typedef void unit(const ctn__reduce *s, const void *in, void *out, int64_t i, int64_t nc);
    static unit *const units[2][2][2] = {
        /* min, f32, columns */
        {{max_row_double, max_columns_double}, {max_row_float, max_columns_float}},
        {{min_row_double, min_columns_double}, {min_row_float, min_columns_float}}};
    ctn__reduce s;
    ctn__reduce_split(&s, &a->din[0], a->attr, a->nattr);
    unit *f = units[a->attr[CTN__R_KIND] == CTN__R_MIN][s.kept.dtype == CTN_F32][s.columns];
    const int64_t width = s.columns ? COLS : 1, tiles = (s.C + width - 1) / width;
#pragma omp parallel for schedule(static) if (s.n * s.r > CTN__GRAIN)
    for (int64_t u = 0; u < s.outer * tiles; u++) {
        int64_t c = u % tiles * width;
        f(&s, a->in[0], a->out[0], u / tiles * s.C + c, s.C - c < width ? s.C - c : width);
    }
    return CTN_OK;
}

ctn_status ctn__max_grad(const ctn_grad_args *a)
{
    ctn_tensor *in[3] = {a->in[0], a->out[0], a->gout[0]};
    a->gin[0] = ctn__apply1(a->at, NULL, &ctn__op_max_grad, 3, in, a->nattr, a->attr, 0, NULL);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_max = {
    .struct_size = sizeof(ctn_op),
    .name = "max",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .grad_in = 1,
    .grad_out = 1,
    .infer = ctn__max_infer,
    .grad = ctn__max_grad,
    .run = ctn__max_run,
};

/* ---- max_grad: (x, y, gy) -> gx, row-major --------------------------------------------------- */

#define DEFINE_SHARE(T)                                                              \
    static void share_##T(const ctn__reduce *s, const T *x, T *gx, T y, T gy)        \
    {                                                                                \
        int64_t lines = s->r / s->last, step = s->last_step, count = 0;              \
        for (int64_t l = 0; l < lines; l++) {                                        \
            const T *v = x + ctn__reduce_offset(&s->red, s->red.ndim - 1, l);        \
            for (int64_t i = 0; i < s->last; i++)                                    \
                count += v[i * step] == y || (v[i * step] != v[i * step] && y != y); \
        }                                                                            \
        T share = gy / (T)count;                                                     \
        for (int64_t l = 0; l < lines; l++) {                                        \
            int64_t off = ctn__reduce_offset(&s->red, s->red.ndim - 1, l);           \
            for (int64_t i = 0; i < s->last; i++) {                                  \
                T v = x[off + i * step];                                             \
                gx[off + i * step] = v == y || (v != v && y != y) ? share : 0;       \
            }                                                                        \
        }                                                                            \
    }
DEFINE_SHARE(float)
DEFINE_SHARE(double)

static ctn_status max_grad_run(const ctn_run_args *a)
{
    ctn__reduce s;
    ctn__reduce_split(&s, &a->din[0], a->attr, a->nattr); /* gx lies as x does */
    if (s.r == 0) return CTN_OK;
#pragma omp parallel for schedule(static) if (s.n * s.r > CTN__GRAIN)
    for (int64_t i = 0; i < s.n; i++) {
        int64_t at = ctn__reduce_offset(&s.kept, s.kept.ndim, i);
        if (s.kept.dtype == CTN_F32)
            share_float(&s, (const float *)a->in[0] + at, (float *)a->out[0] + at,
                        ((const float *)a->in[1])[i], ((const float *)a->in[2])[i]);
        else
            share_double(&s, (const double *)a->in[0] + at, (double *)a->out[0] + at,
                         ((const double *)a->in[1])[i], ((const double *)a->in[2])[i]);
    }
    return CTN_OK;
}

/* Linear in gy with the coefficients max_grad(x, y, 1); x and y only choose, which has no slope. */
static ctn_status max_grad_grad(const ctn_grad_args *a)
{
    if (!a->need[2]) return CTN_OK;
    const ctn_desc *y = &a->in[2]->d;
    int naxes = a->nattr - CTN__R_AXIS0;
    ctn_tensor *in[3] = {a->in[0], a->in[1],
                         ctn_full_at(a->at, a->ctx, 1, y->dtype, y->ndim, y->dim)};
    ctn_tensor *share =
        ctn__apply1(a->at, NULL, &ctn__op_max_grad, 3, in, a->nattr, a->attr, 0, NULL);
    a->gin[2] = ctn_sum_at(a->at, ctn_mul_at(a->at, a->gout[0], share), naxes,
                           a->attr + CTN__R_AXIS0, (int)a->attr[CTN__R_KEEP]);
    return a->gin[2] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_max_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "max_grad",
    .nin = 3,
    .nout = 1,
    .order = -1,
    .grad_in = 3,
    .infer = ctn__infer_same,
    .grad = max_grad_grad,
    .run = max_grad_run,
};

ctn_tensor *ctn_max_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes, int keep)
{
    return ctn__reduce_record(at, &ctn__op_max, CTN__R_MAX, x, naxes, axes, keep);
}
