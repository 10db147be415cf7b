/* SPDX-License-Identifier: Apache-2.0
 *
 * roi_max: the largest x at the points of each bin of a region (common/roi.h), interpolated as in
 * roi_mean; NaN wins, and a bin without points is 0. The second output is the number of that point
 * in its bin, the first among equal ones, or -1. The gradient uses it: roi_max_grad adds gy to the
 * pixels around that point, with their weights. This is linear in gy; its own gradient,
 * roi_max_grad_grad, interpolates at the same points.
 */
#include "ops/common/roi.h"

/* row = near p + far q */
#define DEFINE_BETWEEN(T)                                                                       \
    CTN__PER_ISA(between_##T,                                                                   \
                 (T *restrict row, const T *restrict p, const T *restrict q, int64_t n, T near, \
                  T far),                                                                       \
                 (row, p, q, n, near, far))                                                     \
    {                                                                                           \
        for (int64_t i = 0; i < n; i++) row[i] = near * p[i] + far * q[i];                      \
    }
DEFINE_BETWEEN(float)
DEFINE_BETWEEN(double)

/* Pixels before and after the points of the horizontal line. */
static void range_of(const ctn__roi_line *l, int64_t *low, int64_t *high)
{
    *low = INT64_MAX;
    *high = 0;
    for (int64_t k = 0; k < l->first[l->bins]; k++) {
        const int64_t end = l->point[k].at + (l->point[k].far > 0 ? 2 : 1);
        if (l->point[k].at < *low) *low = l->point[k].at;
        if (end > *high) *high = end;
    }
    if (*high == 0) *low = 0;
}

/* Vertical and horizontal point of place k in bin i,j. */
static void find(const ctn__roi_unit *u, int64_t i, int64_t j, int64_t k, ctn__roi_point p[2])
{
    const int64_t *first = u->line[1].first, many = first[j + 1] - first[j];
    p[0] = u->line[0].point[u->line[0].first[i] + k / many];
    p[1] = u->line[1].point[first[j] + k % many];
}

/* A bin has the points of its row i, one line of points after the other, so that a line is
 * interpolated vertically only once for all bins. */
#define DEFINE(T)                                                                               \
    static void line_##T(const ctn__roi_line *l, const T *row, int64_t before, T *y,            \
                         int32_t *place)                                                        \
    {                                                                                           \
        for (int64_t j = 0; j < l->bins; j++) {                                                 \
            const int64_t many = l->first[j + 1] - l->first[j];                                 \
            const ctn__roi_point *p = l->point + l->first[j];                                   \
            for (int64_t k = 0; k < many; k++) {                                                \
                T v = row[p[k].at];                                                             \
                if (p[k].far > 0) v = (T)p[k].near * v + (T)p[k].far * row[p[k].at + 1];        \
                if (place[j] < 0 || v > y[j] || (v != v && y[j] == y[j])) {                     \
                    y[j] = v;                                                                   \
                    place[j] = (int32_t)(before * many + k);                                    \
                }                                                                               \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void max_##T(const ctn__roi_unit *u, const T *x, T *y, int32_t *places)              \
    {                                                                                           \
        const int64_t W = u->a->attr[CTN__ROI_IN + 1], bins = u->line[1].bins;                  \
        T *own = u->room;                                                                       \
        int64_t low, high;                                                                      \
        range_of(&u->line[1], &low, &high);                                                     \
        for (int64_t i = 0; i < u->line[0].bins; i++, y += bins) {                              \
            int32_t *place = places ? places + i * bins : (int32_t *)(own + W);                 \
            const int64_t begin = u->line[0].first[i];                                          \
            for (int64_t j = 0; j < bins; j++) {                                                \
                y[j] = 0;                                                                       \
                place[j] = -1;                                                                  \
            }                                                                                   \
            for (int64_t k = begin; k < u->line[0].first[i + 1]; k++) {                         \
                const ctn__roi_point *p = &u->line[0].point[k];                                 \
                const T *row = x + p->at * W;                                                   \
                if (p->far > 0)                                                                 \
                    between_##T[u->isa](own + low, row + low, row + W + low, high - low,        \
                                        (T)p->near, (T)p->far);                                 \
                line_##T(&u->line[1], p->far > 0 ? own : row, k - begin, y, place);             \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    /* gx += gy at the places, or y = x at the places if there is no gx */                      \
    static void places_##T(const ctn__roi_unit *u, T *gx, const T *gy, const T *x, T *y,        \
                           const int32_t *place)                                                \
    {                                                                                           \
        const int64_t W = u->a->attr[CTN__ROI_IN + 1], bins = u->line[1].bins;                  \
        ctn__roi_point p[2];                                                                    \
        for (int64_t e = 0; e < u->line[0].bins * bins; e++) {                                  \
            T sum = 0;                                                                          \
            if (place[e] >= 0) find(u, e / bins, e % bins, place[e], p);                        \
            for (int q = 0; q < 4 && place[e] >= 0; q++) {                                      \
                const T wy = (T)(q / 2 ? p[0].far : p[0].near),                                 \
                        wx = (T)(q % 2 ? p[1].far : p[1].near);                                 \
                if (wy == 0 || wx == 0) continue;                                               \
                const int64_t at = (p[0].at + q / 2) * W + p[1].at + q % 2;                     \
                if (gx) gx[at] += wy * wx * gy[e];                                              \
                else sum += wy * wx * x[at];                                                    \
            }                                                                                   \
            if (!gx) y[e] = sum;                                                                \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void unit_##T(const ctn__roi_unit *u, enum pass pass)                                \
    {                                                                                           \
        const int64_t *attr = u->a->attr, plane = attr[CTN__ROI_IN] * attr[CTN__ROI_IN + 1];    \
        const int64_t bins = attr[CTN__ROI_SIZE] * attr[CTN__ROI_SIZE + 1];                     \
        const T *in = u->a->in[0];                                                              \
        T *out = u->a->out[0];                                                                  \
        for (int64_t c = 0; c < u->channels; c++) {                                             \
            const int64_t x = u->x + c * plane, y = u->y + c * bins;                            \
            if (pass == FORWARD)                                                                \
                max_##T(u, in + x, out + y, u->a->out[1] ? (int32_t *)u->a->out[1] + y : NULL); \
            else if (pass == BACK)                                                              \
                places_##T(u, out + x, in + y, NULL, NULL, (const int32_t *)u->a->in[1] + y);   \
            else places_##T(u, NULL, NULL, in + x, out + y, (const int32_t *)u->a->in[1] + y);  \
        }                                                                                       \
    }
enum pass { FORWARD, BACK, PICK };
DEFINE(float)
DEFINE(double)

static ctn_status roi_max_infer(ctn_infer_args *a)
{
    const int64_t high = ctn__roi_points(a->attr, 0), wide = ctn__roi_points(a->attr, 1);
    char t[128];
    CTN_TRY(ctn__roi_infer(a));
    if (high > INT32_MAX / wide)
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, there are more points than fit 32 bits",
                        a->attr[CTN__ROI_ALIGN] ? "roi_align" : "roi_pool",
                        ctn__shape_text(a->in[0], t, sizeof t));
    a->out[1] = a->out[0];
    a->out[1].dtype = CTN_I32;
    return CTN_OK;
}

/* One row of the image, and the places of one row of bins if nobody wants them. */
static size_t room_of(const int64_t *attr, ctn_dtype t)
{
    return (size_t)attr[CTN__ROI_IN + 1] * ctn_dtype_size(t) +
           (size_t)attr[CTN__ROI_SIZE + 1] * sizeof(int32_t);
}

static ctn_status roi_max_prepare(ctn_prepare_args *a)
{
    ctn__roi_prepare(a, room_of(a->attr, a->din[0].dtype));
    return CTN_OK;
}

#define DEFINE_UNIT(name, pass)                                   \
    static void name(const ctn__roi_unit *u)                      \
    {                                                             \
        if (u->a->din[0].dtype == CTN_F32) unit_float(u, (pass)); \
        else unit_double(u, (pass));                              \
    }
DEFINE_UNIT(forward, FORWARD)
DEFINE_UNIT(back, BACK)
DEFINE_UNIT(pick, PICK)

static ctn_status roi_max_run(const ctn_run_args *a)
{
    return ctn__roi_run(a, false, room_of(a->attr, a->din[0].dtype), forward);
}

static ctn_status roi_max_grad_run(const ctn_run_args *a)
{
    return ctn__roi_run(a, true, room_of(a->attr, a->din[0].dtype), back);
}

static ctn_status roi_max_grad_grad_run(const ctn_run_args *a)
{
    return ctn__roi_run(a, false, room_of(a->attr, a->din[0].dtype), pick);
}

static ctn_status roi_max_grad_of(const ctn_grad_args *a)
{
    if (!a->need[0]) return CTN_OK;
    return ctn__grad_to(a, 0, ctn__roi_again(a, &ctn__op_roi_max_grad, a->gout[0], a->out[1]));
}

static ctn_status roi_max_grad_grad_of(const ctn_grad_args *a)
{
    if (!a->need[0]) return CTN_OK;
    return ctn__grad_to(a, 0, ctn__roi_again(a, &ctn__op_roi_max_grad_grad, a->gout[0], a->in[1]));
}

static ctn_status roi_max_grad_grad_grad(const ctn_grad_args *a)
{
    if (!a->need[0]) return CTN_OK;
    return ctn__grad_to(a, 0, ctn__roi_again(a, &ctn__op_roi_max_grad, a->gout[0], a->in[1]));
}

ctn_op ctn__op_roi_max = {
    .struct_size = sizeof(ctn_op),
    .name = "roi_max",
    .nin = 3,
    .nout = 2,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(1) | CTN_OPERAND(2),
    .grad_out = CTN_OPERAND(1),
    .attr_names = ctn__roi_attr_names,
    .infer = roi_max_infer,
    .grad = roi_max_grad_of,
    .prepare = roi_max_prepare,
    .run = roi_max_run,
};

ctn_op ctn__op_roi_max_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "roi_max_grad",
    .nin = 4,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(1) | CTN_OPERAND(2) | CTN_OPERAND(3),
    .attr_names = ctn__roi_attr_names,
    .infer = ctn__roi_back_infer,
    .grad = roi_max_grad_grad_of,
    .prepare = roi_max_prepare,
    .run = roi_max_grad_run,
};

ctn_op ctn__op_roi_max_grad_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "roi_max_grad_grad",
    .nin = 4,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(1) | CTN_OPERAND(2) | CTN_OPERAND(3),
    .attr_names = ctn__roi_attr_names,
    .infer = ctn__roi_infer,
    .grad = roi_max_grad_grad_grad,
    .prepare = roi_max_prepare,
    .run = roi_max_grad_grad_run,
};
