/* SPDX-License-Identifier: Apache-2.0
 *
 * roi_mean: the mean of x at the points of each bin of a region (common/roi.h). With the hat
 * function h and the points p and q of bin i,j of region r, which is in image n, per channel:
 *   y[r,i,j] = mean over p, q of the sum over k, l of x[n,k,l] h(p - k) h(q - l)
 * Therefore y = A x B^T with two sparse matrices per region, which are applied one after the other.
 * Gradient: gx[n] = sum over the regions of n of A^T gy B, which is roi_mean_grad. Both are linear,
 * and each is the gradient of the other.
 */
#include "ops/common/roi.h"

/* y += c x */
#define DEFINE_ADD_ROW(T)                                                                         \
    CTN__PER_ISA(add_row_##T, (T *restrict y, const T *restrict x, int64_t n, T c), (y, x, n, c)) \
    {                                                                                             \
        for (int64_t i = 0; i < n; i++) y[i] += c * x[i];                                         \
    }
DEFINE_ADD_ROW(float)
DEFINE_ADD_ROW(double)

/* merge turns the points of a line into a sparse matrix: bin b has the pixels at[first[b]] to
 * at[first[b+1]-1] with their weights, all of them from low to high - 1. Neighbouring points often
 * share a pixel. */
#define DEFINE(T)                                                                               \
    typedef struct {                                                                            \
        int64_t *first, *at, low, high;                                                         \
        T *weight;                                                                              \
    } matrix_##T;                                                                               \
                                                                                                \
    static void tap_##T(matrix_##T *m, int64_t begin, int64_t *n, int64_t at, double weight)    \
    {                                                                                           \
        if (weight == 0) return;                                                                \
        for (int64_t k = *n - 1; k >= begin && k >= *n - 2; k--)                                \
            if (m->at[k] == at) {                                                               \
                m->weight[k] += (T)weight;                                                      \
                return;                                                                         \
            }                                                                                   \
        m->at[*n] = at;                                                                         \
        m->weight[(*n)++] = (T)weight;                                                          \
        if (at < m->low) m->low = at;                                                           \
        if (at >= m->high) m->high = at + 1;                                                    \
    }                                                                                           \
                                                                                                \
    static void merge_##T(matrix_##T *m, const ctn__roi_line *l)                                \
    {                                                                                           \
        int64_t n = 0;                                                                          \
        m->low = INT64_MAX;                                                                     \
        m->high = 0;                                                                            \
        for (int64_t b = 0; b < l->bins; b++) {                                                 \
            const int64_t begin = m->first[b] = n, count = l->first[b + 1] - l->first[b];       \
            const double share = 1 / (l->total > 0 ? l->total : (double)count);                 \
            for (int64_t k = l->first[b]; k < l->first[b + 1]; k++) {                           \
                tap_##T(m, begin, &n, l->point[k].at, l->point[k].near *share);                 \
                tap_##T(m, begin, &n, l->point[k].at + 1, l->point[k].far * share);             \
            }                                                                                   \
        }                                                                                       \
        m->first[l->bins] = n;                                                                  \
        if (n == 0) m->low = 0;                                                                 \
    }                                                                                           \
                                                                                                \
    /* row (W) of A x, then y */                                                                \
    static void gather_##T(const ctn__roi_unit *u, const matrix_##T m[2], T *row, const T *x,   \
                           T *y)                                                                \
    {                                                                                           \
        const int64_t W = u->a->attr[CTN__ROI_IN + 1], low = m[1].low, n = m[1].high - low;     \
        for (int64_t i = 0; i < u->line[0].bins; i++) {                                         \
            memset(row + low, 0, (size_t)n * sizeof(T));                                        \
            for (int64_t k = m[0].first[i]; k < m[0].first[i + 1]; k++)                         \
                add_row_##T[u->isa](row + low, x + m[0].at[k] * W + low, n, m[0].weight[k]);    \
            for (int64_t j = 0; j < u->line[1].bins; j++) {                                     \
                T sum = 0;                                                                      \
                for (int64_t k = m[1].first[j]; k < m[1].first[j + 1]; k++)                     \
                    sum += m[1].weight[k] * row[m[1].at[k]];                                    \
                *y++ = sum;                                                                     \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    /* row (W) of gy B, then gx */                                                              \
    static void spread_##T(const ctn__roi_unit *u, const matrix_##T m[2], T *row, T *gx,        \
                           const T *gy)                                                         \
    {                                                                                           \
        const int64_t W = u->a->attr[CTN__ROI_IN + 1], low = m[1].low, n = m[1].high - low;     \
        for (int64_t i = 0; i < u->line[0].bins; i++, gy += u->line[1].bins) {                  \
            memset(row + low, 0, (size_t)n * sizeof(T));                                        \
            for (int64_t j = 0; j < u->line[1].bins; j++)                                       \
                for (int64_t k = m[1].first[j]; k < m[1].first[j + 1]; k++)                     \
                    row[m[1].at[k]] += m[1].weight[k] * gy[j];                                  \
            for (int64_t k = m[0].first[i]; k < m[0].first[i + 1]; k++)                         \
                add_row_##T[u->isa](gx + m[0].at[k] * W + low, row + low, n, m[0].weight[k]);   \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void unit_##T(const ctn__roi_unit *u, bool back)                                     \
    {                                                                                           \
        const int64_t *attr = u->a->attr, plane = attr[CTN__ROI_IN] * attr[CTN__ROI_IN + 1];    \
        const int64_t bins = attr[CTN__ROI_SIZE] * attr[CTN__ROI_SIZE + 1];                     \
        int64_t *numbers = u->room;                                                             \
        void *rest = numbers + integers(attr);                                                  \
        T *row = rest;                                                                          \
        matrix_##T m[2];                                                                        \
        for (int dim = 0; dim < 2; dim++) {                                                     \
            m[dim].first = numbers;                                                             \
            m[dim].at = numbers + u->line[dim].bins + 1;                                        \
            m[dim].weight = row;                                                                \
            numbers = m[dim].at + 2 * ctn__roi_points(attr, dim);                               \
            row += 2 * ctn__roi_points(attr, dim);                                              \
            merge_##T(&m[dim], &u->line[dim]);                                                  \
        }                                                                                       \
        for (int64_t c = 0; c < u->channels; c++) {                                             \
            const int64_t x = u->x + c * plane, y = u->y + c * bins;                            \
            if (back) spread_##T(u, m, row, (T *)u->a->out[0] + x, (const T *)u->a->in[0] + y); \
            else gather_##T(u, m, row, (const T *)u->a->in[0] + x, (T *)u->a->out[0] + y);      \
        }                                                                                       \
    }

/* Places and starts of the rows of both matrices. */
static int64_t integers(const int64_t *attr)
{
    return 2 * (ctn__roi_points(attr, 0) + ctn__roi_points(attr, 1)) + attr[CTN__ROI_SIZE] +
           attr[CTN__ROI_SIZE + 1] + 2;
}
DEFINE(float)
DEFINE(double)

static size_t room_of(const int64_t *attr, ctn_dtype t)
{
    const int64_t weights = 2 * (ctn__roi_points(attr, 0) + ctn__roi_points(attr, 1));
    return (size_t)integers(attr) * sizeof(int64_t) +
           (size_t)(weights + attr[CTN__ROI_IN + 1]) * ctn_dtype_size(t);
}

static ctn_status roi_mean_prepare(ctn_prepare_args *a)
{
    ctn__roi_prepare(a, room_of(a->attr, a->din[0].dtype));
    return CTN_OK;
}

static void gather(const ctn__roi_unit *u)
{
    if (u->a->din[0].dtype == CTN_F32) unit_float(u, false);
    else unit_double(u, false);
}

static void spread(const ctn__roi_unit *u)
{
    if (u->a->din[0].dtype == CTN_F32) unit_float(u, true);
    else unit_double(u, true);
}

static ctn_status roi_mean_run(const ctn_run_args *a)
{
    return ctn__roi_run(a, false, room_of(a->attr, a->din[0].dtype), gather);
}

static ctn_status roi_mean_grad_run(const ctn_run_args *a)
{
    return ctn__roi_run(a, true, room_of(a->attr, a->din[0].dtype), spread);
}

static ctn_status roi_mean_grad_of(const ctn_grad_args *a)
{
    if (!a->need[0]) return CTN_OK;
    return ctn__grad_to(a, 0, ctn__roi_again(a, &ctn__op_roi_mean_grad, a->gout[0], NULL));
}

static ctn_status roi_mean_grad_grad(const ctn_grad_args *a)
{
    if (!a->need[0]) return CTN_OK;
    return ctn__grad_to(a, 0, ctn__roi_again(a, &ctn__op_roi_mean, a->gout[0], NULL));
}

ctn_op ctn__op_roi_mean = {
    .struct_size = sizeof(ctn_op),
    .name = "roi_mean",
    .nin = 3,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(1) | CTN_OPERAND(2),
    .attr_names = ctn__roi_attr_names,
    .infer = ctn__roi_infer,
    .grad = roi_mean_grad_of,
    .prepare = roi_mean_prepare,
    .run = roi_mean_run,
};

ctn_op ctn__op_roi_mean_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "roi_mean_grad",
    .nin = 3,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(1) | CTN_OPERAND(2),
    .attr_names = ctn__roi_attr_names,
    .infer = ctn__roi_back_infer,
    .grad = roi_mean_grad_grad,
    .prepare = roi_mean_prepare,
    .run = roi_mean_grad_run,
};
