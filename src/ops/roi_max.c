/* SPDX-License-Identifier: Apache-2.0
 *
 * roi_max: the largest x at the points of each bin of a region (common/roi.h), interpolated as in
 * roi_mean; NaN wins, and a bin without points is 0. The second output says which point it is, the
 * first among equal ones, or -1. The gradient uses it: roi_max_grad adds gy to the pixels around
 * that point, with their weights. This is linear in gy; its own gradient, roi_max_grad_grad,
 * interpolates at the same points.
 */
#include "ops/common/roi.h"

/* Which point: its numbers along the vertical line and, in the low bits, the horizontal line. */
enum { PLACE_BITS = 16, LOW_BITS = (1 << PLACE_BITS) - 1 };
enum pass { FORWARD, BACK, PICK };

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

/* The pixels around the points of a line are low to high - 1. */
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

/* Is p larger than q, with NaN as the largest? */
#define MORE(p, q) (!((p) <= (q)) && (q) == (q))

/* pool: one bin after the other. align: one vertical point after the other for a row of bins, so
 * that pixels are interpolated vertically only once. Bins are small, and where their maximum is
 * cannot be predicted, so vectors would not help. places may be NULL. */
#define DEFINE(T)                                                                                  \
    /* The bin with the pixels fv, ... of the vertical and fh, ... of the horizontal line. */      \
    static T bin_##T(const ctn__roi_unit *u, const T *x, int64_t fv, int64_t rows, int64_t fh,     \
                     int64_t many, int32_t *place)                                                 \
    {                                                                                              \
        const int64_t W = u->a->attr[CTN__ROI_IN + 1];                                             \
        *place = -1;                                                                               \
        if (rows == 0 || many == 0) return 0;                                                      \
        const T *p = x + u->line[0].point[fv].at * W + u->line[1].point[fh].at;                    \
        T top = p[0];                                                                              \
        int64_t row = 0, column = 0;                                                               \
        for (int64_t r = 0; r < rows; r++, p += W)                                                 \
            for (int64_t k = 0; k < many; k++)                                                     \
                if (MORE(p[k], top)) {                                                             \
                    top = p[k];                                                                    \
                    row = r;                                                                       \
                    column = k;                                                                    \
                }                                                                                  \
        *place = (int32_t)((fv + row) << PLACE_BITS | (fh + column));                              \
        return top;                                                                                \
    }                                                                                              \
                                                                                                   \
    static void pool_##T(const ctn__roi_unit *u, const T *x, T *y, int32_t *places)                \
    {                                                                                              \
        const ctn__roi_line *v = &u->line[0], *h = &u->line[1];                                    \
        for (int64_t i = 0; i < v->bins; i++)                                                      \
            for (int64_t j = 0; j < h->bins; j++) {                                                \
                int32_t place;                                                                     \
                *y++ = bin_##T(u, x, v->first[i], v->first[i + 1] - v->first[i], h->first[j],      \
                               h->first[j + 1] - h->first[j], &place);                             \
                if (places) *places++ = place;                                                     \
            }                                                                                      \
    }                                                                                              \
                                                                                                   \
    /* The bins of one row at vertical point number n; row is x there. */                          \
    static void line_##T(const ctn__roi_line *l, const T *row, int64_t n, T *y, int32_t *place)    \
    {                                                                                              \
        for (int64_t j = 0; j < l->bins; j++)                                                      \
            for (int64_t k = l->first[j]; k < l->first[j + 1]; k++) {                              \
                const ctn__roi_point *p = &l->point[k];                                            \
                T value = row[p->at];                                                              \
                if (p->far > 0) value = (T)p->near * value + (T)p->far * row[p->at + 1];           \
                if (place[j] < 0 || MORE(value, y[j])) {                                           \
                    y[j] = value;                                                                  \
                    place[j] = (int32_t)(n << PLACE_BITS | k);                                     \
                }                                                                                  \
            }                                                                                      \
    }                                                                                              \
                                                                                                   \
    static void align_##T(const ctn__roi_unit *u, const T *x, T *y, int32_t *places)               \
    {                                                                                              \
        const ctn__roi_line *v = &u->line[0];                                                      \
        const int64_t W = u->a->attr[CTN__ROI_IN + 1], bins = u->line[1].bins;                     \
        T *own = u->room;                                                                          \
        void *rest = own + W;                                                                      \
        int32_t *spare = rest;                                                                     \
        int64_t low, high;                                                                         \
        range_of(&u->line[1], &low, &high);                                                        \
        for (int64_t i = 0; i < v->bins; i++, y += bins) {                                         \
            int32_t *place = places ? places + i * bins : spare;                                   \
            for (int64_t j = 0; j < bins; j++) {                                                   \
                y[j] = 0;                                                                          \
                place[j] = -1;                                                                     \
            }                                                                                      \
            for (int64_t n = v->first[i]; n < v->first[i + 1]; n++) {                              \
                const ctn__roi_point *p = &v->point[n];                                            \
                const T *row = x + p->at * W;                                                      \
                if (p->far > 0)                                                                    \
                    between_##T[u->isa](own + low, row + low, row + W + low, high - low,           \
                                        (T)p->near, (T)p->far);                                    \
                line_##T(&u->line[1], p->far > 0 ? own : row, n, y, place);                        \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* gx += gy at the places */                                                                   \
    static void back_##T(const ctn__roi_unit *u, T *gx, const T *gy, const int32_t *place)         \
    {                                                                                              \
        const int64_t W = u->a->attr[CTN__ROI_IN + 1];                                             \
        for (int64_t e = 0; e < u->line[0].bins * u->line[1].bins; e++) {                          \
            if (place[e] < 0) continue;                                                            \
            const ctn__roi_point *v = &u->line[0].point[place[e] >> PLACE_BITS];                   \
            const ctn__roi_point *h = &u->line[1].point[place[e] & LOW_BITS];                      \
            T *at = gx + v->at * W + h->at;                                                        \
            const T near = (T)v->near * gy[e], far = (T)v->far * gy[e];                            \
            at[0] += (T)h->near * near;                                                            \
            if (h->far > 0) at[1] += (T)h->far * near;                                             \
            if (v->far > 0) at[W] += (T)h->near * far;                                             \
            if (v->far > 0 && h->far > 0) at[W + 1] += (T)h->far * far;                            \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* y = x at the places */                                                                      \
    static void pick_##T(const ctn__roi_unit *u, const T *x, T *y, const int32_t *place)           \
    {                                                                                              \
        const int64_t W = u->a->attr[CTN__ROI_IN + 1];                                             \
        for (int64_t e = 0; e < u->line[0].bins * u->line[1].bins; e++) {                          \
            y[e] = 0;                                                                              \
            if (place[e] < 0) continue;                                                            \
            const ctn__roi_point *v = &u->line[0].point[place[e] >> PLACE_BITS];                   \
            const ctn__roi_point *h = &u->line[1].point[place[e] & LOW_BITS];                      \
            const T *at = x + v->at * W + h->at;                                                   \
            y[e] = (T)v->near * (T)h->near * at[0];                                                \
            if (h->far > 0) y[e] += (T)v->near * (T)h->far * at[1];                                \
            if (v->far > 0) y[e] += (T)v->far * (T)h->near * at[W];                                \
            if (v->far > 0 && h->far > 0) y[e] += (T)v->far * (T)h->far * at[W + 1];               \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void unit_##T(const ctn__roi_unit *u, enum pass pass)                                   \
    {                                                                                              \
        const int64_t *attr = u->a->attr, plane = attr[CTN__ROI_IN] * attr[CTN__ROI_IN + 1];       \
        const int64_t bins = attr[CTN__ROI_SIZE] * attr[CTN__ROI_SIZE + 1];                        \
        const T *in = u->a->in[0];                                                                 \
        T *out = u->a->out[0];                                                                     \
        for (int64_t c = 0; c < u->channels; c++) {                                                \
            const int64_t x = u->x + c * plane, y = u->y + c * bins;                               \
            if (pass == FORWARD)                                                                   \
                (attr[CTN__ROI_ALIGN] ? align_##T : pool_##T)(                                     \
                    u, in + x, out + y, u->a->out[1] ? (int32_t *)u->a->out[1] + y : NULL);        \
            else if (pass == BACK) back_##T(u, out + x, in + y, (const int32_t *)u->a->in[1] + y); \
            else pick_##T(u, in + x, out + y, (const int32_t *)u->a->in[1] + y);                   \
        }                                                                                          \
    }
DEFINE(float)
DEFINE(double)

static ctn_status roi_max_infer(ctn_infer_args *a)
{
    const int64_t high = ctn__roi_points(a->attr, 0), wide = ctn__roi_points(a->attr, 1);
    char t[128];
    CTN_TRY(ctn__roi_infer(a));
    if (high > LOW_BITS / 2 || wide > LOW_BITS)
        return ctn_fail(CTN_ESHAPE,
                        "%s: x is %s, up to %lld x %lld points are too many for the maximum; "
                        "expected at most %d x %d",
                        a->attr[CTN__ROI_ALIGN] ? "roi_align" : "roi_pool",
                        ctn__shape_text(a->in[0], t, sizeof t), (long long)high, (long long)wide,
                        LOW_BITS / 2, LOW_BITS);
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
