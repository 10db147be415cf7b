/* SPDX-License-Identifier: Apache-2.0
 *
 * spmm: a sparse matrix in compressed rows times a dense one. For k from rowptr[r] to
 * rowptr[r+1] - 1:
 *   y[r] = sum of value[k] x[col[k]]
 * Inputs: rowptr (R+1), col (K), x (C,...) and, unless all are 1, value (K,...), whose further
 * dimensions are the first further ones of x. Gradients: gx = the product of the transposed matrix
 * with gy; gvalue[k] = the product of gy[r] and x[col[k]].
 *
 * The transposed matrix is made by sorting the columns (group_ids). Two more ops serve the
 * gradients: spmm_grad_rows, the row of each entry, and spmm_grad_value, the product above.
 */
#include "ops/common/rows.h"

enum { ROWPTR, COL, X, VALUE };

/* Types and shapes of rowptr and col. */
static ctn_status infer_csr(const ctn_infer_args *a)
{
    const ctn_desc *rowptr = a->in[0], *col = a->in[1];
    char tr[128], tc[128];
    CTN_TRY(ctn__infer_index(a, rowptr));
    CTN_TRY(ctn__infer_index(a, col));
    if (rowptr->ndim == 1 && col->ndim == 1 && rowptr->dim[0] > 0) return CTN_OK;
    return ctn_fail(CTN_ESHAPE, "%s: rowptr is %s, col is %s; expected (rows + 1) and (entries)",
                    a->name, ctn__shape_text(rowptr, tr, sizeof tr),
                    ctn__shape_text(col, tc, sizeof tc));
}

/* rowptr begins with 0, does not descend and ends with K. */
static ctn_status check_rowptr(const ctn_run_args *a)
{
    const void *p = a->in[ROWPTR];
    const ctn_dtype t = a->din[ROWPTR].dtype;
    const int64_t R = a->din[ROWPTR].dim[0] - 1, K = a->din[COL].dim[0];
    const int64_t first = ctn__index_get(p, t, 0), last = ctn__index_get(p, t, R);
    if (first != 0 || last != K)
        return ctn_fail(CTN_EARG, "spmm: rowptr is from %lld to %lld, expected 0 to %lld",
                        (long long)first, (long long)last, (long long)K);
    int64_t bad = 0, r = 0;
#pragma omp parallel for schedule(static) reduction(+ : bad) if (R > 4 * CTN__GRAIN)
    for (int64_t i = 0; i < R; i++) bad += ctn__index_get(p, t, i) > ctn__index_get(p, t, i + 1);
    if (bad == 0) return CTN_OK;
    while (ctn__index_get(p, t, r) <= ctn__index_get(p, t, r + 1)) r++;
    return ctn_fail(CTN_EARG, "spmm: rowptr descends from %lld to %lld after row %lld",
                    (long long)ctn__index_get(p, t, r), (long long)ctn__index_get(p, t, r + 1),
                    (long long)r);
}

static ctn_status spmm_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[X], *value = a->nin > VALUE ? a->in[VALUE] : NULL;
    char tv[128], tc[128], tx[128];
    CTN_TRY(infer_csr(a));
    CTN_TRY(ctn__infer_arith(a, x));
    if (x->ndim == 0) return ctn_fail(CTN_ESHAPE, "spmm: x is (), expected (columns,...)");
    if (value && value->dtype != x->dtype)
        return ctn_fail(CTN_EDTYPE,
                        "spmm: value is %s, x is %s; expected the same type; use ctn_cast",
                        ctn_dtype_name(value->dtype), ctn_dtype_name(x->dtype));
    bool ok = !value ||
              (value->ndim >= 1 && value->ndim <= x->ndim && value->dim[0] == a->in[COL]->dim[0]);
    for (int i = 1; value && ok && i < value->ndim; i++) ok = value->dim[i] == x->dim[i];
    if (!ok)
        return ctn_fail(CTN_ESHAPE, "spmm: value is %s, col is %s, x is %s",
                        ctn__shape_text(value, tv, sizeof tv),
                        ctn__shape_text(a->in[COL], tc, sizeof tc),
                        ctn__shape_text(x, tx, sizeof tx));
    a->out[0] = *x;
    a->out[0].dim[0] = a->in[ROWPTR]->dim[0] - 1;
    return CTN_OK;
}

static ctn_status spmm_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[X];
    const int64_t D = ctn__along_axis(x, 0).inner;
    const void *value = a->nin > VALUE ? a->in[VALUE] : NULL;
    const int64_t blocks = value ? ctn__along_axis(&a->din[VALUE], 0).inner : 1;
    CTN_TRY(check_rowptr(a));
    CTN_TRY(ctn__index_check("spmm", a->in[COL], &a->din[COL], x->dim[0]));
    ctn__rows_reduce(&(ctn__rows){.kind = CTN__ROWS_SUM,
                                  .dtype = x->dtype,
                                  .offsets = a->in[ROWPTR],
                                  .row = a->in[COL],
                                  .offset_type = a->din[ROWPTR].dtype,
                                  .row_type = a->din[COL].dtype,
                                  .n = a->dout[0].dim[0],
                                  .terms = a->din[COL].dim[0],
                                  .outer = 1,
                                  .rows = x->dim[0],
                                  .D = D,
                                  .x = a->in[X],
                                  .weight = value,
                                  .width = blocks > 0 ? D / blocks : D,
                                  .y = a->out[0],
                                  .threads = a->env ? a->env->threads : 1});
    return CTN_OK;
}

/* Record y[c] = sum of value[k] g[r] over all k with col[k] = c in the rows r; c < C. value may be
 * NULL. */
static ctn_tensor *transposed(const char *at, ctn_tensor *rowptr, ctn_tensor *col,
                              ctn_tensor *value, ctn_tensor *g, int64_t C)
{
    ctn_tensor *in[2] = {rowptr, col}, *sorted[2];
    ctn_tensor *rows = ctn__apply1(at, NULL, &ctn__op_spmm_grad_rows, 2, in, 0, NULL, 0, NULL);
    if (ctn__group_record(at, col, C, sorted) < 0) return NULL;
    rows = ctn_index_select_at(at, rows, sorted[1], 0);
    if (value && !(value = ctn_index_select_at(at, value, sorted[1], 0))) return NULL;
    return ctn_spmm_at(at, sorted[0], rows, value, g);
}

/* Record the product of row r of a and row col[k] of b for each k in row r, summed over all but
 * the first `kept` dimensions: a (R,...), b (C,...) -> (K,...). */
static ctn_tensor *entries(const char *at, ctn_tensor *rowptr, ctn_tensor *col, ctn_tensor *a,
                           ctn_tensor *b, int64_t kept)
{
    ctn_tensor *in[4] = {rowptr, col, a, b};
    return ctn__apply1(at, NULL, &ctn__op_spmm_grad_value, 4, in, 1, &kept, 0, NULL);
}

static ctn_status spmm_grad(const ctn_grad_args *a)
{
    ctn_tensor *rowptr = a->in[ROWPTR], *col = a->in[COL], *x = a->in[X], *gy = a->gout[0];
    ctn_tensor *value = a->nin > VALUE ? a->in[VALUE] : NULL;
    if (a->need[X])
        CTN_TRY(ctn__grad_to(a, X, transposed(a->at, rowptr, col, value, gy, x->d.dim[0])));
    if (!value || !a->need[VALUE]) return CTN_OK;
    return ctn__grad_to(a, VALUE, entries(a->at, rowptr, col, gy, x, value->d.ndim));
}

ctn_op ctn__op_spmm = {
    .struct_size = sizeof(ctn_op),
    .name = "spmm",
    .nin = -1,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERANDS(4),
    .infer = spmm_infer,
    .grad = spmm_grad,
    .run = spmm_run,
};

ctn_tensor *ctn_spmm_at(const char *at, ctn_tensor *rowptr, ctn_tensor *col, ctn_tensor *value,
                        ctn_tensor *x)
{
    ctn_tensor *in[4] = {rowptr, col, x, value};
    return ctn__apply1(at, NULL, &ctn__op_spmm, value ? 4 : 3, in, 0, NULL, 0, NULL);
}

/* ---- spmm_grad_rows: rowptr (R+1), col (K) -> the row of each entry (K), i64 ----------------- */

static ctn_status rows_infer(ctn_infer_args *a)
{
    CTN_TRY(infer_csr(a));
    return ctn__desc_set(&a->out[0], a->name, CTN_I64, 1, a->in[1]->dim);
}

static void fill_rows(const void *user, int64_t first, int64_t end)
{
    const ctn_run_args *a = user;
    const ctn_dtype t = a->din[0].dtype;
    int64_t *rows = a->out[0], k = ctn__index_get(a->in[0], t, first);
    for (int64_t r = first; r < end; r++)
        for (int64_t e = ctn__index_get(a->in[0], t, r + 1); k < e; k++) rows[k] = r;
}

static ctn_status rows_run(const ctn_run_args *a)
{
    const int64_t R = a->din[0].dim[0] - 1, K = a->din[1].dim[0];
    CTN_TRY(check_rowptr(a));
    ctn__rows_share(a->in[0], a->din[0].dtype, R, K > CTN__GRAIN && a->env ? a->env->threads : 1,
                    fill_rows, a);
    return CTN_OK;
}

ctn_op ctn__op_spmm_grad_rows = {
    .struct_size = sizeof(ctn_op),
    .name = "spmm_grad_rows",
    .nin = 2,
    .nout = 1,
    .infer = rows_infer,
    .run = rows_run,
};

/* ---- spmm_grad_value: rowptr, col, a (R,...), b (C,...) -> (K,...) --------------------------- */

/* A sampled dense-dense product. With gy as the values of the sparse matrix, ga is its product with
 * b, and gb that of its transpose with a. */

enum { A = 2, B };
enum { KEPT };
static const char *const attr_names[] = {"kept"};

static ctn_status value_infer(ctn_infer_args *a)
{
    CTN_TRY(infer_csr(a));
    a->out[0] = *a->in[B];
    a->out[0].dim[0] = a->in[COL]->dim[0];
    a->out[0].ndim = (int)a->attr[KEPT];
    return CTN_OK;
}

/* Sums have LANES lanes on every instruction set. */
enum { LANES = 16 };
#define DEFINE_DOTS(T, name)                                                               \
    CTN__PER_ISA(name,                                                                     \
                 (T *restrict y, const T *restrict p, const T *restrict q, int64_t blocks, \
                  int64_t width),                                                          \
                 (y, p, q, blocks, width))                                                 \
    {                                                                                      \
        for (int64_t h = 0; h < blocks; h++, p += width, q += width) {                     \
            T lane[LANES] = {0}, sum = 0;                                                  \
            int64_t c = 0;                                                                 \
            for (; c + LANES <= width; c += LANES)                                         \
                for (int j = 0; j < LANES; j++) lane[j] += p[c + j] * q[c + j];            \
            for (; c < width; c++) sum += p[c] * q[c];                                     \
            for (int w = LANES / 2; w > 0; w /= 2)                                         \
                for (int j = 0; j < w; j++) lane[j] += lane[j + w];                        \
            y[h] = lane[0] + sum;                                                          \
        }                                                                                  \
    }
DEFINE_DOTS(float, dots_f32)
DEFINE_DOTS(double, dots_f64)

static void row_range(const void *user, int64_t first, int64_t end)
{
    const ctn_run_args *a = user;
    const ctn_dtype t = a->din[ROWPTR].dtype;
    const int64_t D = ctn__along_axis(&a->din[B], 0).inner;
    const int64_t blocks = ctn__along_axis(&a->dout[0], 0).inner, width = D / blocks;
    const int isa = (int)ctn__isa_in_use();
    int64_t k = ctn__index_get(a->in[ROWPTR], t, first);
    for (int64_t r = first; r < end; r++)
        for (int64_t e = ctn__index_get(a->in[ROWPTR], t, r + 1); k < e; k++) {
            const int64_t c = ctn__index_get(a->in[COL], a->din[COL].dtype, k);
            if (a->din[B].dtype == CTN_F32)
                dots_f32[isa]((float *)a->out[0] + k * blocks, (const float *)a->in[A] + r * D,
                              (const float *)a->in[B] + c * D, blocks, width);
            else
                dots_f64[isa]((double *)a->out[0] + k * blocks, (const double *)a->in[A] + r * D,
                              (const double *)a->in[B] + c * D, blocks, width);
        }
}

static ctn_status value_run(const ctn_run_args *a)
{
    const ctn_desc *b = &a->din[B];
    const int64_t R = a->din[ROWPTR].dim[0] - 1, K = a->din[COL].dim[0];
    if (ctn__count(&a->dout[0]) == 0) return CTN_OK;
    CTN_TRY(check_rowptr(a));
    CTN_TRY(ctn__index_check("spmm", a->in[COL], &a->din[COL], b->dim[0]));
    const bool large = K * ctn__along_axis(b, 0).inner > CTN__GRAIN;
    ctn__rows_share(a->in[ROWPTR], a->din[ROWPTR].dtype, R, large && a->env ? a->env->threads : 1,
                    row_range, a);
    return CTN_OK;
}

static ctn_status value_grad(const ctn_grad_args *a)
{
    ctn_tensor *rowptr = a->in[ROWPTR], *col = a->in[COL], *gy = a->gout[0];
    if (a->need[A]) CTN_TRY(ctn__grad_to(a, A, ctn_spmm_at(a->at, rowptr, col, gy, a->in[B])));
    if (!a->need[B]) return CTN_OK;
    const int64_t C = a->in[B]->d.dim[0];
    return ctn__grad_to(a, B, transposed(a->at, rowptr, col, gy, a->in[A], C));
}

ctn_op ctn__op_spmm_grad_value = {
    .struct_size = sizeof(ctn_op),
    .name = "spmm_grad_value",
    .nin = 4,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERANDS(4),
    .attr_names = attr_names,
    .infer = value_infer,
    .grad = value_grad,
    .run = value_run,
};
