/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear algebra of small matrices. All loops over rows run along memory, without sums that a
 * vector could reorder, so every instruction set gives the same bits. The threads share the
 * matrices of a batch.
 */
#include "ops/common/linalg.h"

#include <math.h>
#include <omp.h>

/* ---- one matrix ------------------------------------------------------------------------------ */

/* Rows and columns of a tile of a product, whose sums stay in registers; rows of the packed part of
 * its right operand, which stays in the L1 cache; rows or columns that are eliminated together. */
enum { HIGH = 4, WIDE = 8, DEPTH = 128, PANEL = 32 };

/* A tile of y -= a x. */
static inline __attribute__((always_inline)) void subtract_tile(double *y, int64_t ys,
                                                                const double *a, int64_t s,
                                                                int64_t along, const double *x,
                                                                int64_t xs, int64_t depth)
{
    double sum[HIGH][WIDE];
    for (int r = 0; r < HIGH; r++) memcpy(sum[r], y + r * ys, sizeof sum[r]);
    for (int64_t l = 0; l < depth; l++) {
        _Pragma("GCC unroll 4") for (int r = 0; r < HIGH; r++)
        {
            const double c = a[r * s + l * along];
#pragma omp simd
            for (int j = 0; j < WIDE; j++) sum[r][j] -= c * x[l * xs + j];
        }
    }
    for (int r = 0; r < HIGH; r++) memcpy(y + r * ys, sum[r], sizeof sum[r]);
}

/* y -= a x, with the terms of each element of y in the order of x's rows. The matrix a is (rows,
 * depth), and s and along are its strides; ys and xs are the strides between rows. */
static inline __attribute__((always_inline)) void subtract(double *y, int64_t ys, int64_t rows,
                                                           int64_t cols, const double *a, int64_t s,
                                                           int64_t along, const double *x,
                                                           int64_t xs, int64_t depth)
{
    double packed[DEPTH * WIDE];
    const int64_t high = rows - rows % HIGH, wide = cols - cols % WIDE;
    for (int64_t d = 0; d < depth; d += DEPTH) {
        const int64_t some = depth - d < DEPTH ? depth - d : DEPTH;
        const double *p = x + d * xs, *q = a + d * along;
        for (int64_t j = 0; j < wide && high > 0; j += WIDE) {
            for (int64_t l = 0; l < some && high > HIGH; l++)
                memcpy(packed + l * WIDE, p + l * xs + j, WIDE * sizeof(double));
            for (int64_t i = 0; i < high; i += HIGH)
                subtract_tile(y + i * ys + j, ys, q + i * s, s, along, high > HIGH ? packed : p + j,
                              high > HIGH ? WIDE : xs, some);
        }
        for (int64_t i = 0; i < rows; i++)
            for (int64_t l = 0; l < some; l++) {
                const double c = q[i * s + l * along];
#pragma omp simd
                for (int64_t k = i < high ? wide : 0; k < cols; k++)
                    y[i * ys + k] -= c * p[l * xs + k];
            }
    }
}

/* Column c is eliminated from the rows below it, up to the column `end`. */
CTN__PER_ISA(eliminate, (double *a, int64_t n, int64_t c, int64_t end), (a, n, c, end))
{
    const double *x = a + c * n;
    for (int64_t i = c + 1; i < n; i++) {
        double *y = a + i * n;
        const double f = y[c];
#pragma omp simd
        for (int64_t j = c + 1; j < end; j++) y[j] -= f * x[j];
    }
}

/* The columns from `end` on, after those from c to end have been eliminated. */
CTN__PER_ISA(eliminate_rest, (double *a, int64_t n, int64_t c, int64_t end), (a, n, c, end))
{
    for (int64_t i = c + 1; i < end; i++)
        subtract(a + i * n + end, n, 1, n - end, a + i * n + c, n, 1, a + c * n + end, n, i - c);
    subtract(a + end * n + end, n, n - end, n - end, a + end * n + c, n, 1, a + c * n + end, n,
             end - c);
}

int ctn__lu(double *a, int64_t n, int64_t *pivot)
{
    const ctn__isa isa = ctn__isa_in_use();
    int sign = 1;
    for (int64_t c = 0; c < n; c++) {
        const int64_t panel = c / PANEL * PANEL, end = panel + PANEL < n ? panel + PANEL : n;
        int64_t best = c;
        for (int64_t i = c + 1; i < n; i++)
            if (fabs(a[i * n + c]) > fabs(a[best * n + c])) best = i;
        pivot[c] = best;
        for (int64_t j = 0; j < n && best != c; j++) {
            const double t = a[c * n + j];
            a[c * n + j] = a[best * n + j];
            a[best * n + j] = t;
        }
        if (best != c) sign = -sign;
        if (a[c * n + c] != 0) {
            for (int64_t i = c + 1; i < n; i++) a[i * n + c] /= a[c * n + c];
            eliminate[isa](a, n, c, end);
        }
        if (c + 1 == end && end < n) eliminate_rest[isa](a, n, panel, end);
    }
    return sign;
}

static void swap_rows(double *b, int64_t k, int64_t i, int64_t j)
{
    for (int64_t c = 0; c < k && i != j; c++) {
        const double t = b[i * k + c];
        b[i * k + c] = b[j * k + c];
        b[j * k + c] = t;
    }
}

/* Element (i,j) of op(a) is at i si + j sj. With `upper`, everything runs from the last row to the
 * first. If b is the identity, row i of the result is 0 behind column i. */
CTN__PER_ISA(substitute,
             (const double *a, int64_t n, double *b, int64_t k, int64_t si, int64_t sj, bool upper,
              bool unit, bool identity),
             (a, n, b, k, si, sj, upper, unit, identity))
{
    const int64_t row = upper ? -k : k;
    if (upper) {
        a += (n - 1) * (si + sj);
        b += (n - 1) * k;
        si = -si;
        sj = -sj;
    }
    for (int64_t first = 0; first < n; first += PANEL) {
        const int64_t last = first + PANEL < n ? first + PANEL : n, cols = identity ? last : k;
        for (int64_t d = 0, to; d < first; d = to) {
            to = d + DEPTH < first ? d + DEPTH : first;
            subtract(b + first * row, row, last - first, identity ? to : k, a + first * si + d * sj,
                     si, sj, b + d * row, row, to - d);
        }
        for (int64_t u = first; u < last; u += HIGH) {
            const int64_t rows = last - u < HIGH ? last - u : HIGH;
            subtract(b + u * row, row, rows, cols, a + u * si + first * sj, si, sj, b + first * row,
                     row, u - first);
            for (int64_t i = u; i < u + rows; i++) {
                double *y = b + i * row;
                for (int64_t j = u; j < i; j++) {
                    const double *x = b + j * row, c = a[i * si + j * sj];
#pragma omp simd
                    for (int64_t l = 0; l < cols; l++) y[l] -= c * x[l];
                }
                const double d = unit ? 1 : a[i * si + i * sj];
#pragma omp simd
                for (int64_t l = 0; l < cols; l++) y[l] /= d;
            }
        }
    }
}

void ctn__triangular_solve(const double *a, int64_t n, double *b, int64_t k, bool upper, bool trans,
                           bool unit)
{
    substitute[ctn__isa_in_use()](a, n, b, k, trans ? 1 : n, trans ? n : 1, upper != trans, unit,
                                  false);
}

void ctn__lu_solve(const double *a, int64_t n, const int64_t *pivot, double *b, int64_t k,
                   bool trans)
{
    for (int64_t i = 0; i < n && !trans; i++) swap_rows(b, k, i, pivot[i]);
    ctn__triangular_solve(a, n, b, k, trans, trans, !trans);
    ctn__triangular_solve(a, n, b, k, !trans, trans, trans);
    for (int64_t i = n - 1; i >= 0 && trans; i--) swap_rows(b, k, i, pivot[i]);
}

void ctn__lu_inverse(const double *a, int64_t n, const int64_t *pivot, double *b)
{
    memset(b, 0, (size_t)(n * n) * sizeof *b);
    for (int64_t i = 0; i < n; i++) b[i * (n + 1)] = 1;
    substitute[ctn__isa_in_use()](a, n, b, n, n, 1, false, true, true);
    ctn__triangular_solve(a, n, b, n, true, false, false);
    for (int64_t i = 0; i < n; i++) /* times the permutation */
        for (int64_t j = n - 1; j >= 0; j--) {
            const double t = b[i * n + j];
            b[i * n + j] = b[i * n + pivot[j]];
            b[i * n + pivot[j]] = t;
        }
}

/* Rows below c: a[i,j] -= column[i] column[j] for c < j <= i. */
CTN__PER_ISA(downdate, (double *a, int64_t n, int64_t c, const double *column), (a, n, c, column))
{
    for (int64_t i = c + 1; i < n; i++) {
        double *y = a + i * n;
        const double f = column[i];
#pragma omp simd
        for (int64_t j = c + 1; j <= i; j++) y[j] -= f * column[j];
    }
}

bool ctn__cholesky(double *a, int64_t n, double *column)
{
    const ctn__isa isa = ctn__isa_in_use();
    for (int64_t c = 0; c < n; c++) {
        const double d = sqrt(a[c * n + c]);
        if (!(d > 0 && isfinite(d))) return false;
        a[c * n + c] = d;
        for (int64_t i = c + 1; i < n; i++) column[i] = a[i * n + c] /= d;
        downdate[isa](a, n, c, column);
        for (int64_t j = c + 1; j < n; j++) a[c * n + j] = 0;
    }
    return true;
}

/* The sum of x y, in lanes that do not depend on the instruction set. */
static double dot(const double *x, const double *y, int64_t n)
{
    enum { LANES = 8 };
    double lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
#pragma omp simd
        for (int j = 0; j < LANES; j++) lane[j] += x[i + j] * y[i + j];
    }
    for (; i < n; i++) sum += x[i] * y[i];
    for (int j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}

CTN__PER_ISA(rotate, (double *x, double *y, int64_t n, double c, double s), (x, y, n, c, s))
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const double u = x[i], v = y[i];
        x[i] = c * u - s * v;
        y[i] = s * u + c * v;
    }
}

/* Jacobi's method on one side: with a = L L^T, rotations of pairs of columns of L make them
 * orthogonal to each other. They are then the eigenvectors of a, and the squares of their lengths
 * the eigenvalues. The columns are kept as rows. Near the end, each sweep squares the largest
 * cosine between two of them; ten sweeps are enough for any matrix. */
bool ctn__eigen(double *a, int64_t n, double *value)
{
    enum { SWEEPS = 30 };
    const ctn__isa isa = ctn__isa_in_use();
    if (!ctn__cholesky(a, n, value)) return false;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) {
            a[j * n + i] = a[i * n + j];
            a[i * n + j] = 0;
        }
    bool done = false;
    for (int sweep = 0; sweep < SWEEPS && !done; sweep++) {
        done = true;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double *x = a + p * n, *y = a + q * n;
                const double xx = dot(x, x, n), yy = dot(y, y, n), xy = dot(x, y, n);
                if (fabs(xy) <= 1e-15 * sqrt(xx * yy)) continue;
                const double h = (yy - xx) / (2 * xy);
                const double t = (h < 0 ? -1 : 1) / (fabs(h) + sqrt(1 + h * h));
                const double c = 1 / sqrt(1 + t * t);
                rotate[isa](x, y, n, c, c * t);
                done = false;
            }
    }
    for (int64_t k = 0; k < n; k++) {
        value[k] = dot(a + k * n, a + k * n, n);
        const double f = 1 / sqrt(value[k]);
        for (int64_t i = 0; i < n; i++) a[k * n + i] *= f;
    }
    return true;
}

/* ---- batches --------------------------------------------------------------------------------- */

static void load(double *m, const void *x, ctn_dtype t, int64_t at, int64_t count)
{
    if (t == CTN_F64) memcpy(m, (const double *)x + at, (size_t)count * sizeof *m);
    else
        for (int64_t i = 0; i < count; i++) m[i] = (double)((const float *)x)[at + i];
}

static void store(void *y, ctn_dtype t, int64_t at, const double *m, int64_t count)
{
    if (t == CTN_F64) memcpy((double *)y + at, m, (size_t)count * sizeof *m);
    else
        for (int64_t i = 0; i < count; i++) ((float *)y)[at + i] = (float)m[i];
}

/* Numbers in the work space of a thread; a multiple of a cache line. */
static int64_t room_of(int64_t n, int64_t k)
{
    return (n * n + n * k + 2 * n + 1 + 7) / 8 * 8;
}

ctn_status ctn__small_prepare(ctn_prepare_args *a, int64_t k)
{
    const int64_t n = a->din[0].dim[a->din[0].ndim - 1];
    a->kernel = "own:small";
    a->scratch = (size_t)(room_of(n, k) * a->threads) * sizeof(double);
    a->flops = ctn__count(&a->din[0]) * n;
    return CTN_OK;
}

ctn_status ctn__square_prepare(ctn_prepare_args *a)
{
    return ctn__small_prepare(a, a->din[0].dim[a->din[0].ndim - 1]);
}

ctn_status ctn__definite_run(const ctn_run_args *a, const char *who, ctn__small_fn *fn)
{
    const int64_t n = a->din[0].dim[a->din[0].ndim - 1], bad = ctn__small_run(a, n, n, fn);
    char t[128];
    if (bad < 0) return CTN_OK;
    return ctn_fail(CTN_EARG, "%s: matrix %lld of a %s is not positive definite", who,
                    (long long)bad, ctn__shape_text(&a->din[0], t, sizeof t));
}

int64_t ctn__small_run(const ctn_run_args *a, int64_t rows, int64_t k, ctn__small_fn *fn)
{
    const ctn_desc *d = &a->din[0];
    const ctn_dtype t = d->dtype;
    const int64_t n = d->dim[d->ndim - 1], room = room_of(n, k);
    int64_t batch = 1, bad = INT64_MAX;
    for (int i = 0; i < d->ndim - 2; i++) batch *= d->dim[i];
    void *second = a->nout > 1 ? a->out[1] : NULL;
#pragma omp parallel for schedule(static) reduction(min : bad) if (batch * n * n * n > CTN__GRAIN)
    for (int64_t i = 0; i < batch; i++) {
        double *mine = (double *)a->scratch + omp_get_thread_num() * room, other = 0;
        void *pivot = mine + n * n + n * k + 1;
        const ctn__small m = {n, k, mine, mine + n * n, pivot};
        load(m.a, a->in[0], t, i * n * n, n * n);
        if (a->nin > 1) load(m.b, a->in[1], t, i * n * k, n * k);
        if (!fn(a, &m, &other) && i < bad) bad = i;
        if (a->out[0]) store(a->out[0], t, i * rows * k, m.b, rows * k);
        if (second) store(second, t, i, &other, 1);
    }
    return bad == INT64_MAX ? -1 : bad;
}

/* ---- recording ------------------------------------------------------------------------------- */

ctn_status ctn__square_infer(const ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    char t[128];
    if (!ctn__is_f32_f64(x->dtype))
        return ctn_fail(CTN_EDTYPE, "%s: input is %s, expected f32 or f64; use ctn_cast", a->name,
                        ctn_dtype_name(x->dtype));
    if (x->ndim < 2 || x->dim[x->ndim - 1] != x->dim[x->ndim - 2])
        return ctn_fail(CTN_ESHAPE, "%s: a is %s, expected square matrices (...,n,n)", a->name,
                        ctn__shape_text(x, t, sizeof t));
    return CTN_OK;
}

ctn_status ctn__solve_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *b = a->in[1];
    char tx[128], tb[128];
    CTN_TRY(ctn__square_infer(a));
    if (b->dtype != x->dtype)
        return ctn_fail(CTN_EDTYPE, "%s: a is %s and b is %s, expected the same type", a->name,
                        ctn_dtype_name(x->dtype), ctn_dtype_name(b->dtype));
    bool ok = b->ndim == x->ndim && b->dim[b->ndim - 2] == x->dim[x->ndim - 1];
    for (int i = 0; ok && i < b->ndim - 2; i++) ok = b->dim[i] == x->dim[i];
    if (!ok)
        return ctn_fail(CTN_ESHAPE, "%s: shapes do not match: a is %s, b is %s, expected (...,n,k)",
                        a->name, ctn__shape_text(x, tx, sizeof tx),
                        ctn__shape_text(b, tb, sizeof tb));
    a->out[0] = *b;
    return CTN_OK;
}

/* x with the leading dimensions of `lead`. */
static ctn_tensor *spread(const char *at, ctn_tensor *x, const ctn_desc *lead)
{
    ctn_desc d = *lead;
    d.dim[d.ndim++] = x->d.dim[x->d.ndim - 2];
    d.dim[d.ndim++] = x->d.dim[x->d.ndim - 1];
    return ctn__same_shape(&d, &x->d) ? x : ctn_broadcast_to_at(at, x, d.ndim, d.dim);
}

ctn_tensor *ctn__solve_apply(const char *at, ctn_op *op, ctn_tensor *a, ctn_tensor *b, int nattr,
                             const int64_t *attr)
{
    if (a && b && a->d.ndim >= 2 && b->d.ndim >= 2) {
        ctn_desc p = a->d, q = b->d, lead = {0};
        p.ndim -= 2;
        q.ndim -= 2;
        if (ctn__broadcast(&lead, op->name, &p, &q) < 0) return NULL;
        a = spread(at, a, &lead);
        b = spread(at, b, &lead);
    }
    ctn_tensor *in[2] = {a, b};
    return ctn__apply1(at, NULL, op, 2, in, nattr, attr, 0, NULL);
}

ctn_tensor *ctn__swap_last(const char *at, ctn_tensor *x)
{
    int64_t axes[CTN_MAX_DIMS];
    if (!x) return NULL;
    const int nd = x->d.ndim;
    for (int i = 0; i < nd; i++) axes[i] = i;
    axes[nd - 2] = nd - 1;
    axes[nd - 1] = nd - 2;
    return ctn_transpose_at(at, x, nd, axes);
}
