/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of the ops of detection networks: regions of interest, deformable convolution, and strided
 * views. The references go through all pixels for each point.
 */
#include <math.h>
#include <stdbool.h>

#include "harness.h"

/* clang-format off */
#define S1(a) .ndim = 1, .dim = {a}
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define S4(a, b, c, d) .ndim = 4, .dim = {a, b, c, d}
/* clang-format on */

static double hat(double x)
{
    return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

/* x (H,W) at a point, 0 outside. */
static double at_point(const double *x, int64_t H, int64_t W, double py, double px)
{
    double sum = 0;
    for (int64_t r = 0; r < H; r++)
        for (int64_t c = 0; c < W; c++)
            sum += x[r * W + c] * hat(py - (double)r) * hat(px - (double)c);
    return sum;
}

/* ---- regions of interest: inputs x, (y_min,x_min), (y_max,x_max), index ---------------------- */

enum { EDGE, HEIGHT, WIDTH, SAMPLING, MAX }; /* p; q[0]: scale, q[1]: factor of the coordinates */

static ctn_roi_opt roi_opt(const op_case *c)
{
    return (ctn_roi_opt){.struct_size = sizeof(ctn_roi_opt),
                         .size = {c->p[HEIGHT], c->p[WIDTH]},
                         .scale = c->q[0],
                         .max = (int)c->p[MAX],
                         .sampling = {c->p[SAMPLING]},
                         .aligned = (int)c->p[EDGE],
                         .inclusive = (int)c->p[EDGE]};
}

static ctn_tensor *rois(const op_case *c, ctn_tensor *const *x)
{
    ctn_tensor *r = ctn_concat(2, x + 1, 1);
    return c->q[1] != 0 ? ctn_scale(r, c->q[1]) : r;
}

static ctn_tensor *roi_align_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    const ctn_roi_opt o = roi_opt(c);
    (void)ctx;
    return ctn_roi_align(x[0], rois(c, x), x[3], &o);
}

static ctn_tensor *roi_pool_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    const ctn_roi_opt o = roi_opt(c);
    (void)ctx;
    return ctn_roi_pool(x[0], rois(c, x), x[3], &o);
}

/* A region in pixels, and the plane of x that an element of y is about. */
typedef struct {
    double begin[2], end[2];
    int64_t n[2], bin[2], bins[2];
    const double *plane;
    bool good; /* finite */
} place;

static place place_of(const op_case *c, const double *const *x, const ctn_desc *out, int64_t i)
{
    const int64_t bins = out->dim[2] * out->dim[3], r = i / bins / out->dim[1];
    const double scale = (c->q[0] != 0 ? c->q[0] : 1) * (c->q[1] != 0 ? c->q[1] : 1);
    const int64_t H = c->in[0].dim[2], W = c->in[0].dim[3];
    place p = {.n = {H, W},
               .bin = {i % bins / out->dim[3], i % out->dim[3]},
               .bins = {out->dim[2], out->dim[3]},
               .plane = x[0] + ((int64_t)x[3][r] * out->dim[1] + i / bins % out->dim[1]) * H * W,
               .good = true};
    for (int k = 0; k < 2; k++) {
        p.begin[k] = x[1][2 * r + k] * scale;
        p.end[k] = x[2][2 * r + k] * scale;
        p.good = p.good && fabs(p.begin[k]) < 1e9 && fabs(p.end[k]) < 1e9;
    }
    return p;
}

static void roi_align_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    for (int64_t i = 0; i < desc_count(out); i++) {
        const place p = place_of(c, x, out, i);
        double size[2], top = -INFINITY, sum = 0;
        int64_t many[2];
        y[i] = 0;
        if (!p.good) continue;
        for (int k = 0; k < 2; k++) {
            size[k] = p.end[k] - p.begin[k];
            if (!c->p[EDGE] && size[k] < 1) size[k] = 1;
            size[k] /= (double)p.bins[k];
            many[k] = c->p[SAMPLING] > 0 ? c->p[SAMPLING] : (int64_t)ceil(size[k]);
        }
        for (int64_t s = 0; s < many[0] * many[1]; s++) {
            const int64_t step[2] = {s / many[1], s % many[1]};
            double at[2];
            bool inside = true;
            for (int k = 0; k < 2; k++) {
                at[k] = p.begin[k] - (c->p[EDGE] ? 0.5 : 0) +
                        size[k] * ((double)p.bin[k] + ((double)step[k] + 0.5) / (double)many[k]);
                inside = inside && at[k] >= -1 && at[k] <= (double)p.n[k];
                at[k] = fmin(fmax(at[k], 0), (double)p.n[k] - 1);
            }
            if (!inside) continue;
            const double v = at_point(p.plane, p.n[0], p.n[1], at[0], at[1]);
            sum += v;
            if (v > top) top = v;
        }
        if (c->p[MAX]) y[i] = top > -INFINITY ? top : 0;
        else y[i] = many[0] > 0 && many[1] > 0 ? sum / (double)(many[0] * many[1]) : 0;
    }
}

/* Pixel `at` belongs to bin i of m if it overlaps the part from i n / m to (i + 1) n / m. */
static bool in_bin(const place *p, int k, int64_t at, int64_t inclusive)
{
    const int64_t begin = (int64_t)round(p->begin[k]), end = (int64_t)round(p->end[k]);
    const int64_t n = end - begin + inclusive < 1 ? 1 : end - begin + inclusive, m = p->bins[k];
    return (at - begin + 1) * m > p->bin[k] * n && (at - begin) * m < (p->bin[k] + 1) * n;
}

/* The pixel with the maximum, -1 if there is none; *mean is the mean. */
static int64_t over_bin(const op_case *c, const place *p, double *mean)
{
    int64_t best = -1, count = 0;
    double sum = 0;
    for (int64_t e = 0; p->good && e < p->n[0] * p->n[1]; e++) {
        if (!in_bin(p, 0, e / p->n[1], c->p[EDGE]) || !in_bin(p, 1, e % p->n[1], c->p[EDGE]))
            continue;
        if (best < 0 || p->plane[e] > p->plane[best]) best = e;
        sum += p->plane[e];
        count++;
    }
    *mean = count > 0 ? sum / (double)count : 0;
    return best;
}

static void roi_pool_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    for (int64_t i = 0; i < desc_count(out); i++) {
        const place p = place_of(c, x, out, i);
        double mean;
        const int64_t best = over_bin(c, &p, &mean);
        y[i] = !c->p[MAX] ? mean : best < 0 ? 0 : p.plane[best];
    }
}

/* The gradient by x where pixels are equal: the first one has it. */
static ctn_tensor *roi_ties_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *leaf = ctn_with_grad(x[0]), *in[4] = {leaf, x[1], x[2], x[3]}, *gx = NULL;
    ctn_tensor *sum = ctn_sum(roi_pool_call(c, ctx, in), CTN_ALL_AXES, 0);
    return ctn_grad(sum, 1, &leaf, &gx) < 0 ? NULL : gx;
}

static void roi_ties_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const ctn_desc bins = {.ndim = 4,
                           .dim = {c->in[1].dim[0], out->dim[1], c->p[HEIGHT], c->p[WIDTH]}};
    double mean;
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 0;
    for (int64_t i = 0; i < desc_count(&bins); i++) {
        const place p = place_of(c, x, &bins, i);
        const int64_t best = over_bin(c, &p, &mean);
        if (best >= 0) y[p.plane - x[0] + best] += 1;
    }
}

/* ---- deformable convolution: inputs x, offset, w, b, mask; p: stride, pad, dilation ---------- */

static ctn_tensor *deform_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_deform_conv(x[0], x[1], x[2], c->nin > 3 ? x[3] : NULL, c->nin > 4 ? x[4] : NULL,
                           CTN_OPT(ctn_conv_opt, .stride = {c->p[0], c->p[1]},
                                   .pad = {c->p[2], c->p[3]}, .dilation = {c->p[4], c->p[5]}));
}

static int64_t or_first(const op_case *c, int i)
{
    const int64_t v = c->p[i + 1] ? c->p[i + 1] : c->p[i];
    return v == CTN_PAD_NONE ? 0 : v;
}

static void deform_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t I = c->in[0].dim[1], H = c->in[0].dim[2], W = c->in[0].dim[3];
    const int64_t kw = c->in[2].dim[3], K = c->in[2].dim[2] * kw;
    const int64_t P = out->dim[2] * out->dim[3];
    for (int64_t i = 0; i < desc_count(out); i++) {
        const int64_t n = i / P / out->dim[1], o = i / P % out->dim[1], spot = i % P;
        y[i] = c->nin > 3 ? x[3][o] : 0;
        for (int64_t k = 0; k < K; k++) {
            const double *offset = x[1] + (n * 2 * K + k) * P + spot;
            const int64_t column = spot % out->dim[3], line = spot / out->dim[3], kx = k % kw;
            const int64_t left = column * or_first(c, 0) - or_first(c, 2) + kx * or_first(c, 4);
            const int64_t ky = k / kw, above = line * c->p[0] - c->p[2] + ky * c->p[4];
            const double px = (double)left + offset[0], py = (double)above + offset[K * P];
            const double by = c->nin > 4 ? x[4][(n * K + k) * P + spot] : 1;
            for (int64_t ch = 0; ch < I; ch++)
                y[i] += by * x[2][(o * I + ch) * K + k] *
                        at_point(x[0] + (n * I + ch) * H * W, H, W, py, px);
        }
    }
}

/* ---- as_strided: p is the offset, the number of dimensions, then lengths and strides --------- */

static ctn_tensor *as_strided_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    int64_t dims[CTN_MAX_DIMS], strides[CTN_MAX_DIMS];
    (void)ctx;
    for (int i = 0; i < c->p[1]; i++) {
        dims[i] = c->p[2 + 2 * i];
        strides[i] = c->p[3 + 2 * i];
    }
    return ctn_as_strided(x[0], (int)c->p[1], dims, strides, c->p[0]);
}

static void as_strided_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t index[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) {
        int64_t at = c->p[0];
        unravel(i, out->ndim, out->dim, index);
        for (int k = 0; k < out->ndim; k++) at += index[k] * c->p[3 + 2 * k];
        y[i] = x[0][at];
    }
}

/* clang-format off */
#define BETWEEN(a, b) .fill = FILL_UNIFORM, .lo = a, .hi = b
/* R regions of N images, from (a,b) to (c,d) */
#define REGIONS(R, N, a, b, c, d) \
    {S2(R, 2), BETWEEN(a, b), .no_grad = 1}, {S2(R, 2), BETWEEN(c, d), .no_grad = 1}, \
    {.dtype = CTN_I64, S1(R), .fill = FILL_INDEX, .lo = 0, .hi = N}
#define ROI(o, f, n, order, x, regions, ...) \
    {.op = o, .name = #f " " n, .nin = 4, .in = {x, regions}, .p = {__VA_ARGS__}, \
     .call = f##_call, .ref = f##_ref, .grad = order}
#define SCALED(o, f, n, order, x, regions, scale, factor, ...) \
    {.op = o, .name = #f " " n, .nin = 4, .in = {x, regions}, .p = {__VA_ARGS__}, \
     .q = {scale, factor}, .call = f##_call, .ref = f##_ref, .grad = order}
#define STRIDED(n, order, x, ...) \
    {.op = "as_strided", .name = n, .nin = 1, .in = {x}, .p = {__VA_ARGS__}, \
     .call = as_strided_call, .ref = as_strided_ref, .grad = order}
#define X(...) {__VA_ARGS__}
#define PASS(...) __VA_ARGS__

case_table cases_detection = {
    ROI("roi_mean", roi_align, "sampling 2", 2, X(S4(2, 3, 7, 9)),
        PASS(REGIONS(4, 2, 0, 3, 4, 7)), 0, 3, 2, 2),
    ROI("roi_mean", roi_align, "own sampling", 2, X(S4(2, 2, 9, 8)),
        PASS(REGIONS(5, 2, -1, 2, 5, 9)), 0, 2, 3, 0),
    ROI("roi_mean", roi_align, "aligned", 2, X(S4(1, 3, 6, 6)), PASS(REGIONS(3, 1, 1, 2, 2.1, 6)),
        1, 2, 2, 2),
    ROI("roi_mean", roi_align, "aligned, own sampling", 1, X(S4(2, 3, 6, 6)),
        PASS(REGIONS(6, 2, 0, 5, 1, 6)), 1, 3, 3, 0),
    ROI("roi_mean", roi_align, "outside", 1, X(S4(2, 2, 5, 4)), PASS(REGIONS(9, 2, -9, 7, -5, 14)),
        0, 2, 3, 3),
    ROI("roi_mean", roi_align, "end before begin", 1, X(S4(2, 2, 5, 4)),
        PASS(REGIONS(4, 2, 2, 4, 0, 2)), 0, 3, 2, 2),
    SCALED("roi_mean", roi_align, "scaled", 2, X(S4(3, 2, 7, 9)),
           PASS(REGIONS(5, 3, 0, 50, 60, 110)), 1 / 16., 0, 0, 2, 2, 2),
    SCALED("roi_mean", roi_align, "larger than the image", 0, X(S4(1, 2, 5, 5)),
           PASS(REGIONS(3, 1, -9, -1, 6, 12)), 0, 20, 0, 3, 3, 0),
    SCALED("roi_mean", roi_align, "too large", 0, X(S4(1, 2, 5, 5)),
           PASS(REGIONS(3, 1, 0, 1, 4, 5)), 0, 1e20, 0, 2, 2, 0),
    SCALED("roi_mean", roi_align, "NaN", 0, X(S4(1, 2, 5, 5)), PASS(REGIONS(3, 1, 0, 1, 4, 5)),
           0, NAN, 0, 2, 2, 2),
    ROI("roi_mean", roi_align, "many", 1, X(S4(2, 35, 17, 20)),
        PASS(REGIONS(40, 2, 0, 9, 9, 20)), 0, 7, 7, 2),
    ROI("roi_mean", roi_align, "one pixel", 1, X(S4(2, 2, 1, 1)),
        PASS(REGIONS(3, 2, -1, 0, 0.5, 2)), 0, 2, 2, 2),
    ROI("roi_mean", roi_align, "no regions", 1, X(S4(2, 3, 7, 9)),
        PASS(REGIONS(0, 2, 0, 3, 4, 7)), 0, 3, 2, 2),
    ROI("roi_mean", roi_align, "no channels", 1, X(S4(2, 0, 7, 9)),
        PASS(REGIONS(3, 2, 0, 3, 4, 7)), 0, 3, 2, 2),
    ROI("roi_mean", roi_align, "no pixels", 1, X(S4(2, 2, 0, 3)),
        PASS(REGIONS(3, 2, -1, 0, 1, 2)), 0, 2, 2, 2),
    ROI("roi_mean", roi_pool, "exclusive", 2, X(S4(2, 3, 7, 9)), PASS(REGIONS(4, 2, 0, 3, 4, 8)),
        0, 3, 2),
    ROI("roi_mean", roi_pool, "inclusive", 2, X(S4(2, 3, 7, 9)), PASS(REGIONS(4, 2, 0, 3, 4, 8)),
        1, 3, 2),
    ROI("roi_mean", roi_pool, "more bins than pixels", 1, X(S4(1, 2, 6, 7)),
        PASS(REGIONS(4, 1, 0, 3, 2, 6)), 0, 9, 8),
    ROI("roi_mean", roi_pool, "outside", 1, X(S4(2, 2, 5, 4)), PASS(REGIONS(9, 2, -9, 7, -5, 14)),
        0, 2, 3),
    SCALED("roi_mean", roi_pool, "NaN", 0, X(S4(1, 2, 5, 5)), PASS(REGIONS(3, 1, 0, 1, 4, 5)),
           0, NAN, 0, 2, 2),
    ROI("roi_mean", roi_pool, "no pixels", 1, X(S4(2, 2, 3, 0)),
        PASS(REGIONS(3, 2, -1, 0, 1, 2)), 0, 2, 2),

    ROI("roi_max", roi_align, "max", 2, X(S4(2, 3, 7, 9)), PASS(REGIONS(4, 2, 0, 3, 4, 7)),
        0, 3, 2, 2, 1),
    ROI("roi_max", roi_align, "max, own sampling", 2, X(S4(2, 2, 9, 8)),
        PASS(REGIONS(5, 2, -1, 2, 5, 9)), 0, 2, 3, 0, 1),
    ROI("roi_max", roi_align, "max, aligned", 1, X(S4(2, 3, 6, 6)),
        PASS(REGIONS(6, 2, 0, 5, 1, 6)), 1, 3, 3, 0, 1),
    ROI("roi_max", roi_align, "max, outside", 1, X(S4(2, 2, 5, 4)),
        PASS(REGIONS(9, 2, -9, 7, -5, 14)), 0, 2, 3, 3, 1),
    ROI("roi_max", roi_align, "max, many", 1, X(S4(2, 35, 17, 20)),
        PASS(REGIONS(40, 2, 0, 9, 9, 20)), 0, 7, 7, 2, 1),
    ROI("roi_max", roi_align, "max, no regions", 1, X(S4(2, 3, 7, 9)),
        PASS(REGIONS(0, 2, 0, 3, 4, 7)), 0, 3, 2, 2, 1),
    ROI("roi_max", roi_pool, "max, exclusive", 2, X(S4(2, 3, 7, 9)),
        PASS(REGIONS(4, 2, 0, 3, 4, 8)), 0, 3, 2, 0, 1),
    ROI("roi_max", roi_pool, "max, inclusive", 2, X(S4(2, 3, 7, 9)),
        PASS(REGIONS(4, 2, 0, 3, 4, 8)), 1, 3, 2, 0, 1),
    SCALED("roi_max", roi_pool, "max, scaled", 1, X(S4(3, 2, 7, 9)),
           PASS(REGIONS(5, 3, 0, 50, 60, 110)), 1 / 16., 0, 0, 2, 2, 0, 1),
    ROI("roi_max", roi_pool, "max, outside", 1, X(S4(2, 2, 5, 4)),
        PASS(REGIONS(9, 2, -9, 7, -5, 14)), 0, 2, 3, 0, 1),
    ROI("roi_max", roi_pool, "max, no pixels", 1, X(S4(2, 2, 0, 3)),
        PASS(REGIONS(3, 2, -1, 0, 1, 2)), 0, 2, 2, 0, 1),
    ROI("roi_max", roi_ties, "equal pixels", 0,
        X(S4(2, 3, 8, 8), .fill = FILL_INDEX, .lo = 0, .hi = 3, .no_grad = 1),
        PASS(REGIONS(6, 2, 0, 3, 4, 8)), 0, 2, 3, 0, 1),

    {"grid_sample", "deform_conv", 4, {X(S4(2, 3, 5, 6)), X(S4(2, 18, 3, 4), BETWEEN(0.1, 0.9)),
     X(S4(2, 3, 3, 3)), X(S1(2))}, .p = {1, 0, 0, 0, 1}, .call = deform_call, .ref = deform_ref,
     .grad = 2, .engine_sums = 1},
    {"grid_sample", "deform_conv with a mask", 5, {X(S4(2, 2, 4, 5)),
     X(S4(2, 12, 4, 3), BETWEEN(-1.9, -1.1)), X(S4(3, 2, 2, 3)), X(S1(3)), X(S4(2, 6, 4, 3))},
     .p = {1, 2, 1, 1, 2, 1}, .call = deform_call, .ref = deform_ref,
     .grad = 2, .engine_sums = 1},
    {"grid_sample", "deform_conv, stride and dilation", 3, {X(S4(2, 5, 9, 8)),
     X(S4(2, 8, 4, 5), BETWEEN(-2, 2)), X(S4(4, 5, 2, 2))}, .p = {2, 1, 1, 0, 3, 5},
     .call = deform_call, .ref = deform_ref, .grad = 1, .engine_sums = 1, .tol32 = 1e-4},

    STRIDED("windows", 2, X(S1(20)), 0, 2, 6, 3, 4, 1),
    STRIDED("windows of rows", 2, X(S2(4, 5)), 2, 3, 3, 5, 2, 1, 2, 1),
    STRIDED("transposed", 2, X(S3(2, 3, 4)), 0, 3, 4, 1, 3, 4, 2, 12),
    STRIDED("reversed", 2, X(S2(3, 5)), 14, 2, 5, -1, 3, -5),
    STRIDED("repeated", 2, X(S1(7)), 3, 3, 3, 0, 2, 2, 4, 0),
    STRIDED("overlapping, reversed", 2, X(S1(12)), 11, 2, 5, -2, 4, -1),
    STRIDED("steps", 2, X(S1(50)), 1, 2, 7, 2, 9, 3),
    STRIDED("one element", 2, X(S2(3, 5)), 7, 0),
    STRIDED("unused strides", 2, X(S1(5)), 1, 3, 1, INT64_MAX, 2, 2, 1, INT64_MIN),
    STRIDED("empty", 1, X(S2(3, 5)), 99, 2, 0, 1, 4, 1000),
    STRIDED("long windows", 1, X(S1(3000)), 0, 2, 2000, 1, 16, 60),
    STRIDED("many short rows", 1, X(S1(9000)), 8999, 3, 29, -300, 100, -3, 4, -1),
    {.op = "as_strided", .name = "integers", .nin = 1,
     .in = {{.dtype = CTN_I32, S1(20), .fill = FILL_INDEX, .hi = 100}}, .p = {1, 2, 3, 5, 4, 2},
     .call = as_strided_call, .ref = as_strided_ref},
    {0},
};
/* clang-format on */
