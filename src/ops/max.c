/* SPDX-License-Identifier: Apache-2.0
 *
 * max over axes (no axes: all). If any element is NaN, so is the result. min.c uses the same
 * kernels. Gradient: max_grad splits gy evenly among the elements equal to the extreme and is
 * linear in gy:
 *   gx_i = gy [x_i == y] / count(x == y)
 */
#include "ops/common/reduce.h"

ctn_status ctn__max_infer(ctn_infer_args *a)
{
    char t[128];
    CTN_TRY(ctn__reduce_infer(a));
    if (ctn__count(a->in[0]) == 0 && ctn__count(&a->out[0]) > 0)
        return ctn_fail(CTN_ESHAPE, "%s: %s has no elements along the reduced axes", a->name,
                        ctn__shape_text(a->in[0], t, sizeof t));
    return CTN_OK;
}

/* A NaN wins and stays. Written without branches, so that it becomes a vector blend. */
#define MORE(v, m) (((v) > (m)) | ((v) != (v)) ? (v) : (m))
#define LESS(v, m) (((v) < (m)) | ((v) != (v)) ? (v) : (m))

/* Columns and rows of a tile; elements of a row that are compared together, in long rows and in the
 * rest. */
enum { COLS = 256, ROWS = 16, WIDE = 64, LANES = 16 };

#define T float
#define BEST MORE
#define NAME(x) max_##x##_f32
#include "ops/common/max_body.h"

#define T double
#define BEST MORE
#define NAME(x) max_##x##_f64
#include "ops/common/max_body.h"

#define T float
#define BEST LESS
#define NAME(x) min_##x##_f32
#include "ops/common/max_body.h"

#define T double
#define BEST LESS
#define NAME(x) min_##x##_f64
#include "ops/common/max_body.h"

ctn_status ctn__max_run(const ctn_run_args *a)
{
    typedef void unit(const ctn__reduce *s, const void *in, void *out, int64_t i, int64_t nc);
    static unit *const *const units[2][2][2] = {
        /* min, f32, columns */
        {{max_rows_f64, max_columns_f64}, {max_rows_f32, max_columns_f32}},
        {{min_rows_f64, min_columns_f64}, {min_rows_f32, min_columns_f32}}};
    ctn__reduce s;
    ctn__reduce_split(&s, &a->din[0], a->attr, a->nattr);
    unit *f = units[a->attr[CTN__R_KIND] == CTN__R_MIN][s.kept.dtype == CTN_F32][s.columns]
                   [ctn__isa_in_use()];
    const int64_t rows = s.r < 1024 ? ROWS : 1; /* long ones one by one, for many threads */
    const int64_t width = s.columns ? COLS : rows, tiles = (s.C + width - 1) / width;
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
    ctn_tensor *g = ctn__apply1(a->at, NULL, &ctn__op_max_grad, 3, in, a->nattr, a->attr, 0, NULL);
    return ctn__grad_to(a, 0, g);
}

ctn_op ctn__op_max = {
    .struct_size = sizeof(ctn_op),
    .name = "max",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .grad_in = CTN_OPERAND(0),
    .grad_out = CTN_OPERAND(0),
    .infer = ctn__max_infer,
    .grad = ctn__max_grad,
    .run = ctn__max_run,
};

/* ---- max_grad: (x, y, gy) -> gx, row-major --------------------------------------------------- */

#define T float
#define NAME(x) x##_f32
#include "ops/common/max_grad_body.h"

#define T double
#define NAME(x) x##_f64
#include "ops/common/max_grad_body.h"

static ctn_status max_grad_run(const ctn_run_args *a)
{
    ctn__reduce s;
    ctn__reduce_split(&s, &a->din[0], a->attr, a->nattr); /* gx has the layout of x */
    if (s.r == 0) return CTN_OK;
    const ctn__isa isa = ctn__isa_in_use();
    const int64_t tiles = (s.C + COLS - 1) / COLS;
    const bool columns = s.columns && s.r <= INT32_MAX;
#pragma omp parallel for schedule(static) if (s.n * s.r > CTN__GRAIN && columns)
    for (int64_t u = 0; u < (columns ? s.outer * tiles : 0); u++) {
        const int64_t c = u % tiles * COLS, nc = s.C - c < COLS ? s.C - c : COLS;
        (s.kept.dtype == CTN_F32 ? share_columns_f32
                                 : share_columns_f64)[isa](&s, a->in[0], a->in[1], a->in[2],
                                                           a->out[0], u / tiles * s.C + c, nc);
    }
    if (columns) return CTN_OK;
#pragma omp parallel for schedule(static) if (s.n * s.r > CTN__GRAIN)
    for (int64_t i = 0; i < s.n; i++) {
        int64_t at = ctn__reduce_offset(&s.kept, s.kept.ndim, i);
        if (s.kept.dtype == CTN_F32)
            share_f32(&s, (const float *)a->in[0] + at, (float *)a->out[0] + at,
                      ((const float *)a->in[1])[i], ((const float *)a->in[2])[i]);
        else
            share_f64(&s, (const double *)a->in[0] + at, (double *)a->out[0] + at,
                      ((const double *)a->in[1])[i], ((const double *)a->in[2])[i]);
    }
    return CTN_OK;
}

/* Linear in gy with the coefficients max_grad(x, y, 1). x and y only select elements, which has no
 * derivative. */
static ctn_status max_grad_grad(const ctn_grad_args *a)
{
    if (!a->need[2]) return CTN_OK;
    const ctn_desc *y = &a->in[2]->d;
    int naxes = a->nattr - CTN__R_AXIS0;
    ctn_tensor *in[3] = {a->in[0], a->in[1],
                         ctn_full_at(a->at, a->ctx, 1, y->dtype, y->ndim, y->dim)};
    ctn_tensor *share =
        ctn__apply1(a->at, NULL, &ctn__op_max_grad, 3, in, a->nattr, a->attr, 0, NULL);
    ctn_tensor *g = ctn_sum_at(a->at, ctn_mul_at(a->at, a->gout[0], share), naxes,
                               a->attr + CTN__R_AXIS0, (int)a->attr[CTN__R_KEEP]);
    return ctn__grad_to(a, 2, g);
}

ctn_op ctn__op_max_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "max_grad",
    .nin = 3,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERANDS(2),
    .infer = ctn__infer_same,
    .grad = max_grad_grad,
    .run = max_grad_run,
};

ctn_tensor *ctn_max_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes, int keep)
{
    return ctn__reduce_record(at, &ctn__op_max, CTN__R_MAX, x, naxes, axes, keep);
}
