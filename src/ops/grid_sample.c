/* SPDX-License-Identifier: Apache-2.0
 *
 * grid_sample: the image x at the points of a grid, by bilinear interpolation; outside, x is 0.
 * A point p, from -1 to 1, is at pixel i(p) = (n - 1) (p + 1) / 2 if the corners are aligned, else
 * at (n (p + 1) - 1) / 2; for other ops of the library, points can also be given in pixels, i(p) =
 * p. With the hat function h, per channel:
 *   y(p,q) = sum over rows r and columns c of x[r,c] h(i(p) - c) h(i(q) - r)
 * Attributes DX and DY ask for the derivative of that by p or by q, which interpolates with slopes
 * instead of hats. Therefore gradients of any order need only this op and its transpose by x:
 *   gx = grid_sample_grad(gy, grid)
 *   gp = sum over the channels of gy times the derivative of y by p; the same for q
 * Second derivatives by p alone are 0.
 */
#include <math.h>

#include "ops/common/along.h"
#include "ops/common/conv.h"

enum { UNIT, DX, DY, HEIGHT, WIDTH, NATTR }; /* HEIGHT and WIDTH of x */
enum { EDGES, CORNERS, PIXELS }; /* UNIT: what -1 and 1 are, or that points are pixels */
static const char *const attr_names[] = {"align_corners", "dx", "dy", "height", "width"};

/* in[0] is x or gy, (N,C,...,...); the grid is (N,h,w,2) with the h and w of y. */
static ctn_status infer(ctn_infer_args *a, bool transposed)
{
    const ctn_desc *x = a->in[0], *grid = a->in[1];
    char tx[128], tg[128];
    if (!ctn__is_f32_f64(x->dtype) || x->dtype != grid->dtype)
        return ctn_fail(CTN_EDTYPE,
                        "%s: x is %s, the grid is %s; expected f32 or f64 for both; use ctn_cast",
                        a->name, ctn_dtype_name(x->dtype), ctn_dtype_name(grid->dtype));
    if (x->ndim != 4 || grid->ndim != 4 || x->dim[0] != grid->dim[0] || grid->dim[3] != 2)
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, the grid is %s; expected (N,C,H,W) and (N,h,w,2)",
                        a->name, ctn__shape_text(x, tx, sizeof tx),
                        ctn__shape_text(grid, tg, sizeof tg));
    a->out[0] = *x;
    a->out[0].dim[2] = transposed ? a->attr[HEIGHT] : grid->dim[1];
    a->out[0].dim[3] = transposed ? a->attr[WIDTH] : grid->dim[2];
    return CTN_OK;
}

static ctn_status grid_sample_infer(ctn_infer_args *a)
{
    return infer(a, false);
}

static ctn_status grid_sample_grad_infer(ctn_infer_args *a)
{
    return infer(a, true);
}

/* A unit of work is one sample and a few channels, whose points are located only once. No two
 * units share a plane, and each goes through the points in order. */
enum { POINTS = 128, CHANNELS = 8 };

typedef struct {
    int64_t H, W, points, channels; /* of x; points and channels of a sample */
    const int64_t *attr;
} shape;

#define DEFINE(T, FLOOR)                                                                         \
    typedef struct {                                                                             \
        int64_t at[4][POINTS]; /* the four pixels around a point; 0 where the weight is 0 */     \
        T weight[4][POINTS];                                                                     \
    } located_##T;                                                                               \
                                                                                                 \
    /* Pixels i and i + 1 around p along n pixels and their weights, or derivatives of these. */ \
    static int64_t around_##T(T p, int64_t n, int unit, bool slope, T w[2])                      \
    {                                                                                            \
        const T half = unit == PIXELS ? 1 : (T)(unit == CORNERS ? n - 1 : n) / 2;                \
        const T i = unit == PIXELS    ? p                                                        \
                    : unit == CORNERS ? (p + 1) * half                                           \
                                      : (p + 1) * half - (T)0.5;                                 \
        w[0] = w[1] = 0;                                                                         \
        if (!(i > -1 && i < (T)n)) return 0; /* outside, or NaN */                               \
        const T first = FLOOR(i);                                                                \
        w[0] = first < 0 ? 0 : slope ? -half : 1 - (i - first);                                  \
        w[1] = first + 1 >= (T)n ? 0 : slope ? half : i - first;                                 \
        return (int64_t)first;                                                                   \
    }                                                                                            \
                                                                                                 \
    static void locate_##T(const shape *s, const T *grid, int64_t n, located_##T *l)             \
    {                                                                                            \
        for (int64_t k = 0; k < n; k++) {                                                        \
            T wx[2], wy[2];                                                                      \
            const int unit = (int)s->attr[UNIT];                                                 \
            const int64_t c = around_##T(grid[2 * k], s->W, unit, s->attr[DX] != 0, wx);         \
            const int64_t r = around_##T(grid[2 * k + 1], s->H, unit, s->attr[DY] != 0, wy);     \
            for (int j = 0; j < 4; j++) {                                                        \
                const bool there = wx[j % 2] != 0 && wy[j / 2] != 0;                             \
                l->weight[j][k] = there ? wx[j % 2] * wy[j / 2] : 0;                             \
                l->at[j][k] = there ? (r + j / 2) * s->W + c + j % 2 : 0;                        \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static void sample_##T(const shape *s, const T *x, const T *grid, T *y, int64_t channels)    \
    {                                                                                            \
        located_##T l;                                                                           \
        const int64_t plane = s->H * s->W;                                                       \
        for (int64_t from = 0; from < s->points; from += POINTS) {                               \
            const int64_t n = s->points - from < POINTS ? s->points - from : POINTS;             \
            locate_##T(s, grid + 2 * from, n, &l);                                               \
            for (int64_t c = 0; c < channels; c++)                                               \
                for (int64_t k = 0; k < n; k++) {                                                \
                    T sum = 0;                                                                   \
                    for (int j = 0; j < 4; j++)                                                  \
                        if (l.weight[j][k] != 0)                                                 \
                            sum += l.weight[j][k] * x[c * plane + l.at[j][k]];                   \
                    y[c * s->points + from + k] = sum;                                           \
                }                                                                                \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static void spread_##T(const shape *s, const T *gy, const T *grid, T *gx, int64_t channels)  \
    {                                                                                            \
        located_##T l;                                                                           \
        const int64_t plane = s->H * s->W;                                                       \
        memset(gx, 0, (size_t)(channels * plane) * sizeof(T));                                   \
        for (int64_t from = 0; from < s->points; from += POINTS) {                               \
            const int64_t n = s->points - from < POINTS ? s->points - from : POINTS;             \
            locate_##T(s, grid + 2 * from, n, &l);                                               \
            for (int64_t c = 0; c < channels; c++)                                               \
                for (int64_t k = 0; k < n; k++)                                                  \
                    for (int j = 0; j < 4; j++)                                                  \
                        if (l.weight[j][k] != 0)                                                 \
                            gx[c * plane + l.at[j][k]] +=                                        \
                                l.weight[j][k] * gy[c * s->points + from + k];                   \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static void unit_##T(const shape *s, const ctn_run_args *a, int64_t u, bool transposed)      \
    {                                                                                            \
        const int64_t parts = (s->channels + CHANNELS - 1) / CHANNELS, n = u / parts;            \
        const int64_t first = u % parts * CHANNELS, c = n * s->channels + first;                 \
        const int64_t left = s->channels - first, some = left < CHANNELS ? left : CHANNELS;      \
        const int64_t in = transposed ? s->points : s->H * s->W;                                 \
        const int64_t out = transposed ? s->H * s->W : s->points;                                \
        const T *x = (const T *)a->in[0] + c * in;                                               \
        const T *grid = (const T *)a->in[1] + n * s->points * 2;                                 \
        T *y = (T *)a->out[0] + c * out;                                                         \
        if (transposed) spread_##T(s, x, grid, y, some);                                         \
        else sample_##T(s, x, grid, y, some);                                                    \
    }
DEFINE(float, floorf)
DEFINE(double, floor)

static ctn_status run(const ctn_run_args *a, bool transposed)
{
    const ctn_desc *x = &a->din[0], *grid = &a->din[1];
    const shape s = {.H = a->attr[HEIGHT],
                     .W = a->attr[WIDTH],
                     .points = grid->dim[1] * grid->dim[2],
                     .channels = x->dim[1],
                     .attr = a->attr};
    const int64_t units = x->dim[0] * ((s.channels + CHANNELS - 1) / CHANNELS);
#pragma omp parallel for schedule(static) if (x->dim[0] * s.channels * s.points > 4096)
    for (int64_t u = 0; u < units; u++) {
        if (x->dtype == CTN_F32) unit_float(&s, a, u, transposed);
        else unit_double(&s, a, u, transposed);
    }
    return CTN_OK;
}

static ctn_status grid_sample_run(const ctn_run_args *a)
{
    return run(a, false);
}

static ctn_status grid_sample_grad_run(const ctn_run_args *a)
{
    return run(a, true);
}

/* ---- gradients ------------------------------------------------------------------------------- */

static ctn_tensor *record(const ctn_grad_args *a, ctn_op *op, ctn_tensor *x, int dx, int dy)
{
    ctn_tensor *in[2] = {x, a->in[1]};
    int64_t attr[NATTR];
    memcpy(attr, a->attr, sizeof attr);
    attr[DX] += dx;
    attr[DY] += dy;
    return ctn__apply1(a->at, NULL, op, 2, in, NATTR, attr, 0, NULL);
}

/* The gradient of the points: gy times the derivative of the image x, summed over the channels. */
static ctn_status grad_grid(const ctn_grad_args *a, ctn_tensor *x, ctn_tensor *gy)
{
    const ctn_desc *grid = &a->in[1]->d;
    ctn_tensor *g[2];
    for (int i = 0; i < 2; i++) {
        if (a->attr[DX + i]) { /* linear between pixels */
            g[i] = ctn_full_at(a->at, a->ctx, 0, grid->dtype, 3, grid->dim);
            continue;
        }
        ctn_tensor *d = record(a, &ctn__op_grid_sample, x, i == 0, i == 1);
        g[i] = ctn_sum_at(a->at, ctn_mul_at(a->at, gy, d), 1, (const int64_t[]){1}, 0);
    }
    return ctn__grad_to(a, 1, ctn_stack_at(a->at, 2, g, -1));
}

static ctn_status grid_sample_grad_of(const ctn_grad_args *a)
{
    ctn_tensor *gy = a->gout[0];
    if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, record(a, &ctn__op_grid_sample_grad, gy, 0, 0)));
    return a->need[1] ? grad_grid(a, a->in[0], gy) : CTN_OK;
}

/* in[0] is gy; the sum of u gx over all pixels is the sum of gy times the samples of u. */
static ctn_status grid_sample_grad_grad(const ctn_grad_args *a)
{
    ctn_tensor *u = a->gout[0];
    if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, record(a, &ctn__op_grid_sample, u, 0, 0)));
    return a->need[1] ? grad_grid(a, u, a->in[0]) : CTN_OK;
}

ctn_op ctn__op_grid_sample = {
    .struct_size = sizeof(ctn_op),
    .name = "grid_sample",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = grid_sample_infer,
    .grad = grid_sample_grad_of,
    .run = grid_sample_run,
};

ctn_op ctn__op_grid_sample_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "grid_sample_grad",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = grid_sample_grad_infer,
    .grad = grid_sample_grad_grad,
    .run = grid_sample_grad_run,
};

static ctn_tensor *sample(const char *at, ctn_tensor *x, ctn_tensor *grid, int unit)
{
    ctn_tensor *in[2] = {x, grid};
    int64_t attr[NATTR] = {unit};
    attr[HEIGHT] = x && x->d.ndim == 4 ? x->d.dim[2] : 0;
    attr[WIDTH] = x && x->d.ndim == 4 ? x->d.dim[3] : 0;
    return ctn__apply1(at, NULL, &ctn__op_grid_sample, 2, in, NATTR, attr, 0, NULL);
}

ctn_tensor *ctn_grid_sample_at(const char *at, ctn_tensor *x, ctn_tensor *grid, int align_corners)
{
    return sample(at, x, grid, align_corners ? CORNERS : EDGES);
}

ctn_tensor *ctn__sample_pixels(const char *at, ctn_tensor *x, ctn_tensor *grid)
{
    return sample(at, x, grid, PIXELS);
}
