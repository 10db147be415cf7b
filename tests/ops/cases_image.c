/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of pooling, resize, depth_to_space and space_to_depth, prelu, spatial_dropout and the loss
 * of instance segmentation. The references treat (N,C) as one dimension and always use three
 * spatial dimensions, with missing ones in front as length 1. They follow PyTorch's formulas
 * element by element, that of instance segmentation the paper's.
 */
#include <math.h>

#include "harness.h"

/* clang-format off */
#define S1(a) .ndim = 1, .dim = {a}
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define S4(a, b, c, d) .ndim = 4, .dim = {a, b, c, d}
#define S5(a, b, c, d, e) .ndim = 5, .dim = {a, b, c, d, e}
#define DISTINCT(...) {.fill = FILL_DISTINCT, .lo = -3, .hi = 3, __VA_ARGS__}
/* clang-format on */

/* Three sizes of the spatial dimensions; returns N C. */
static int64_t sizes(int ndim, const int64_t *dim, int64_t *size)
{
    for (int i = 0; i < 3; i++) size[i] = i < 5 - ndim ? 1 : dim[ndim - 3 + i];
    return dim[0] * dim[1];
}

/* Splits index i of the result into its place o[3]; returns the index in (N,C). */
static int64_t split(int64_t i, const int64_t *size, int64_t *o)
{
    for (int k = 2; k >= 0; k--) {
        o[k] = i % size[k];
        i /= size[k];
    }
    return i;
}

/* ---- pooling: p = kernel 3, stride 3, pad 3, ceil, exclude_pad ------------------------------- */

static ctn_pool_opt options(const op_case *c)
{
    ctn_pool_opt o = {.struct_size = sizeof o, .ceil = (int)c->p[9], .exclude_pad = (int)c->p[10]};
    for (int i = 0; i < 3; i++) {
        o.kernel[i] = c->p[i];
        o.stride[i] = c->p[3 + i];
        o.pad[i] = c->p[6 + i];
    }
    return o;
}

static ctn_tensor *max_pool_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_pool_opt o = options(c);
    (void)ctx;
    return ctn_max_pool(x[0], &o);
}

static ctn_tensor *avg_pool_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_pool_opt o = options(c);
    (void)ctx;
    return ctn_avg_pool(x[0], &o);
}

/* Window o reaches from lo to hi in coordinates of x, so that lo is negative in the padding. */
static void window(const op_case *c, const int64_t *in, const int64_t *o, int64_t *lo, int64_t *hi)
{
    int extra = 5 - c->in[0].ndim;
    for (int i = 0; i < 3; i++) {
        int d = i - extra;
        int64_t k = d < 0 ? 1 : c->p[d] ? c->p[d] : c->p[0];
        int64_t s = d < 0 ? 1 : c->p[3 + d] ? c->p[3 + d] : c->p[3] ? c->p[3] : k;
        int64_t p = d < 0 ? 0 : c->p[6 + d] ? c->p[6 + d] : c->p[6];
        lo[i] = o[i] * s - p;
        hi[i] = lo[i] + k < in[i] + p ? lo[i] + k : in[i] + p;
    }
}

/* kind 0: the largest; 1: the sum; 2: the number of elements of x. *at is the first of the
 * largest elements. */
static double over_window(const int64_t *in, const int64_t *lo, const int64_t *hi, const double *x,
                          int kind, int64_t *at)
{
    double r = kind == 0 ? -INFINITY : 0;
    for (int64_t d = lo[0]; d < hi[0]; d++) {
        for (int64_t h = lo[1]; h < hi[1]; h++) {
            for (int64_t w = lo[2]; w < hi[2]; w++) {
                if (d < 0 || h < 0 || w < 0 || d >= in[0] || h >= in[1] || w >= in[2]) continue;
                int64_t i = (d * in[1] + h) * in[2] + w;
                if (kind == 0 && x[i] > r) *at = i;
                r = kind == 0 ? fmax(r, x[i]) : kind == 1 ? r + x[i] : r + 1;
            }
        }
    }
    return r;
}

static void max_pool_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t in[3], size[3], o[3], lo[3], hi[3], at;
    sizes(c->in[0].ndim, c->in[0].dim, in);
    sizes(out->ndim, out->dim, size);
    for (int64_t i = 0; i < desc_count(out); i++) {
        const double *from = x[0] + split(i, size, o) * in[0] * in[1] * in[2];
        window(c, in, o, lo, hi);
        y[i] = over_window(in, lo, hi, from, 0, &at);
    }
}

/* The gradient among equal elements: the first one gets it. p[11]: channels of the result, for
 * its sizes. */
static ctn_tensor *max_ties_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *leaf = ctn_with_grad(x[0]), *gx = NULL;
    ctn_tensor *y = max_pool_call(c, ctx, &leaf);
    return ctn_grad(ctn_sum(y, CTN_ALL_AXES, 0), 1, &leaf, &gx) < 0 ? NULL : gx;
}

static void max_ties_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t in[3], size[3] = {1, c->p[11], c->p[11]}, o[3], lo[3], hi[3], at = 0;
    int64_t n = sizes(out->ndim, out->dim, in), plane = in[0] * in[1] * in[2];
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 0;
    for (int64_t i = 0; i < n * size[0] * size[1] * size[2]; i++) {
        int64_t nc = split(i, size, o);
        window(c, in, o, lo, hi);
        over_window(in, lo, hi, x[0] + nc * plane, 0, &at);
        y[nc * plane + at] += 1;
    }
}

static void avg_pool_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t in[3], size[3], o[3], lo[3], hi[3], at;
    sizes(c->in[0].ndim, c->in[0].dim, in);
    sizes(out->ndim, out->dim, size);
    for (int64_t i = 0; i < desc_count(out); i++) {
        const double *from = x[0] + split(i, size, o) * in[0] * in[1] * in[2];
        window(c, in, o, lo, hi);
        double n = (double)((hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]));
        if (c->p[10]) n = over_window(in, lo, hi, from, 2, &at);
        y[i] = over_window(in, lo, hi, from, 1, &at) / n;
    }
}

/* ---- sizes: p = sizes of the result, p[3] kind or r ------------------------------------------ */

static ctn_tensor *global_avg_pool_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)c, (void)ctx;
    return ctn_global_avg_pool(x[0]);
}

static ctn_tensor *adaptive_avg_pool_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_adaptive_avg_pool(x[0], c->in[0].ndim - 2, c->p);
}

/* Also the reference of global_avg_pool. */
static void adaptive_avg_pool_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                                  double *y)
{
    int64_t in[3], size[3], o[3], lo[3], hi[3], at;
    sizes(c->in[0].ndim, c->in[0].dim, in);
    sizes(out->ndim, out->dim, size);
    for (int64_t i = 0; i < desc_count(out); i++) {
        const double *from = x[0] + split(i, size, o) * in[0] * in[1] * in[2];
        for (int k = 0; k < 3; k++) {
            lo[k] = o[k] * in[k] / size[k];
            hi[k] = ((o[k] + 1) * in[k] + size[k] - 1) / size[k];
        }
        y[i] = over_window(in, lo, hi, from, 1, &at) / over_window(in, lo, hi, from, 2, &at);
    }
}

static ctn_tensor *resize_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_resize(x[0], (ctn_resize_kind)c->p[3], c->in[0].ndim - 2, c->p);
}

static void resize_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t in[3], size[3], o[3], p[3][2];
    double w[3][2];
    sizes(c->in[0].ndim, c->in[0].dim, in);
    sizes(out->ndim, out->dim, size);
    for (int64_t i = 0; i < desc_count(out); i++) {
        const double *from = x[0] + split(i, size, o) * in[0] * in[1] * in[2];
        for (int k = 0; k < 3; k++) {
            double at = ((double)o[k] + 0.5) * (double)in[k] / (double)size[k] - 0.5;
            p[k][0] = at < 0 ? 0 : (int64_t)at;
            p[k][1] = p[k][0] + 1 < in[k] ? p[k][0] + 1 : p[k][0];
            w[k][1] = at < 0 ? 0 : at - (double)p[k][0];
            if (c->p[3] == CTN_RESIZE_NEAREST) {
                p[k][0] = p[k][1] = o[k] * in[k] / size[k];
                w[k][1] = 0;
            }
            w[k][0] = 1 - w[k][1];
        }
        y[i] = 0;
        for (int q = 0; q < 8; q++) {
            int a = q >> 2, b = q >> 1 & 1, d = q & 1;
            y[i] +=
                w[0][a] * w[1][b] * w[2][d] * from[(p[0][a] * in[1] + p[1][b]) * in[2] + p[2][d]];
        }
    }
}

static ctn_tensor *depth_to_space_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_depth_to_space(x[0], c->p[3]);
}

static ctn_tensor *space_to_depth_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_space_to_depth(x[0], c->p[3]);
}

/* Index in (N,C,H r,W r) of element i of (N,C r^2,H,W). */
static void shuffle(int64_t r, const int64_t *deep, int64_t i, int64_t *shallow_at)
{
    int64_t w = i % deep[3], h = i / deep[3] % deep[2], c = i / deep[3] / deep[2];
    int64_t j = c % r, k = c / r % r; /* c counts (N,C,r,r) */
    *shallow_at = (c / r / r * deep[2] * r + h * r + k) * deep[3] * r + w * r + j;
}

static void depth_to_space_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                               double *y)
{
    int64_t at;
    for (int64_t i = 0; i < desc_count(out); i++) {
        shuffle(c->p[3], c->in[0].dim, i, &at);
        y[at] = x[0][i];
    }
}

static void space_to_depth_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                               double *y)
{
    int64_t at;
    for (int64_t i = 0; i < desc_count(out); i++) {
        shuffle(c->p[3], out->dim, i, &at);
        y[i] = x[0][at];
    }
}

/* ---- others ---------------------------------------------------------------------------------- */

static ctn_tensor *prelu_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)c, (void)ctx;
    return ctn_prelu(x[0], x[1]);
}

static void prelu_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t C = out->dim[1], S = C > 0 && out->dim[0] > 0 ? desc_count(out) / C / out->dim[0] : 1;
    for (int64_t i = 0; i < desc_count(out); i++)
        y[i] = x[0][i] * (x[0][i] > 0 ? 1 : x[1][c->in[1].dim[0] == 1 ? 0 : i / S % C]);
}

/* The gradient gx at x = 0, where it is the slope, and beside it. */
static ctn_tensor *prelu_zero_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *leaf = ctn_with_grad(x[0]), *gx = NULL;
    (void)c, (void)ctx;
    return ctn_grad(ctn_sum(ctn_prelu(leaf, x[1]), CTN_ALL_AXES, 0), 1, &leaf, &gx) < 0 ? NULL : gx;
}

static void prelu_zero_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t S = desc_count(out) / out->dim[0] / out->dim[1];
    (void)c;
    for (int64_t i = 0; i < desc_count(out); i++)
        y[i] = x[0][i] > 0 ? 1 : x[1][i / S % out->dim[1]];
}

static ctn_tensor *spatial_dropout_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_spatial_dropout(x[0], c->q[0]);
}

/* Each channel of a sample is either all 0 or x / (1 - rate). Returns the difference, which is
 * 0. */
static ctn_tensor *spatial_dropout_whole_call(const op_case *c, ctn_context *ctx,
                                              ctn_tensor *const *x)
{
    static const int64_t axes[] = {2, 3};
    ctn_tensor *y = ctn_spatial_dropout(x[0], c->q[0]);
    ctn_tensor *zero = ctn_full(ctx, 0, ctn_dtype_of(x[0]), CTN_SCALAR_SHAPE);
    ctn_tensor *any = ctn_max(ctn_abs(y), 2, axes, 1); /* (N,C,1,1): 0 where dropped */
    ctn_tensor *kept = ctn_scale(x[0], 1 / (1 - c->q[0]));
    return ctn_sub(y, ctn_where(ctn_greater(any, zero), kept, zero));
}

static void zero_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)c, (void)x;
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 0;
}

/* ---- instances: x (N,C,P), t (N,P); p = K, norm, which term; q = pull, push ------------------ */

static ctn_tensor *clustering_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *out[3];
    (void)ctx;
    return ctn_discriminative_margin_based_clustering_loss(x[0], x[1], c->p[0],
                                                           CTN_OPT(ctn_clustering_opt,
                                                                   .pull = c->q[0], .push = c->q[1],
                                                                   .norm = (int)c->p[1]),
                                                           &out[0], &out[1], &out[2]) < 0
               ? NULL
               : out[c->p[2]];
}

/* The norm of a - b, each of C elements with this step; b may be NULL. */
static double length_of(const op_case *c, const double *a, int64_t step, const double *b, int64_t C)
{
    double s = 0;
    for (int64_t i = 0; i < C; i++) {
        const double d = a[i * step] - (b ? b[i] : 0);
        s += c->p[1] == 1 ? fabs(d) : d * d;
    }
    return c->p[1] == 1 ? s : sqrt(s);
}

/* A term of one sample. */
static double clustering_of(const op_case *c, const double *x, const double *t, int64_t C,
                            int64_t P)
{
    enum { MOST = 4, CHANNELS = 8 };
    double mean[MOST][CHANNELS] = {{0}}, n[MOST] = {0}, term[3] = {0}, here = 0, pairs = 0;
    const int64_t K = c->p[0];
    for (int64_t k = 0; k < K; k++) {
        for (int64_t i = 0; i < P; i++) n[k] += (int64_t)t[i] == k + 1;
        here += n[k] > 0;
        for (int64_t i = 0; i < C * P && n[k] > 0; i++)
            if ((int64_t)t[i % P] == k + 1) mean[k][i / P] += x[i] / n[k];
    }
    for (int64_t k = 0; k < K; k++) {
        for (int64_t i = 0; i < P; i++)
            if ((int64_t)t[i] == k + 1)
                term[0] += pow(fmax(0, length_of(c, x + i, P, mean[k], C) - c->q[0]), 2) / n[k];
        for (int64_t l = 0; l < k; l++) {
            if (n[k] == 0 || n[l] == 0) continue;
            term[1] += pow(fmax(0, 2 * c->q[1] - length_of(c, mean[k], 1, mean[l], C)), 2);
            pairs++;
        }
        term[2] += length_of(c, mean[k], 1, NULL, C);
    }
    return term[c->p[2]] / fmax(1, c->p[2] == 1 ? pairs : here);
}

static void clustering_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t N = c->in[0].dim[0], C = c->in[0].dim[1], P = case_count(&c->in[1]) / N;
    (void)out;
    *y = 0;
    for (int64_t n = 0; n < N; n++)
        *y += clustering_of(c, x[0] + n * C * P, x[1] + n * P, C, P) / (double)N;
}

/* clang-format off */
#define MAX_POOL(n, order, input, ...) \
    {.op = "max_pool", .name = n, .nin = 1, .in = {input}, .p = {__VA_ARGS__}, \
     .call = max_pool_call, .ref = max_pool_ref, .grad = order}
#define TIES(n, input, ...) \
    {.op = "max_pool", .name = n, .nin = 1, .in = {input}, .p = {__VA_ARGS__}, \
     .call = max_ties_call, .ref = max_ties_ref}
#define AVG_POOL(n, order, input, ...) \
    {.op = "avg_pool", .name = n, .nin = 1, .in = {input}, .p = {__VA_ARGS__}, \
     .call = avg_pool_call, .ref = avg_pool_ref, .grad = order}
#define GLOBAL(n, order, ...) \
    {.op = "avg_pool", .name = n, .nin = 1, .in = {{__VA_ARGS__}}, .call = global_avg_pool_call, \
     .ref = adaptive_avg_pool_ref, .grad = order}
#define ADAPTIVE(o, n, order, input, ...) \
    {.op = o, .name = n, .nin = 1, .in = {input}, .p = {__VA_ARGS__}, \
     .call = adaptive_avg_pool_call, .ref = adaptive_avg_pool_ref, .grad = order}
#define RESIZE(n, order, kind, input, a, b, c) \
    {.op = "resize", .name = n, .nin = 1, .in = {input}, .p = {a, b, c, kind}, \
     .call = resize_call, .ref = resize_ref, .grad = order}
#define SHUFFLE(n, r, ...) \
    {.op = "transpose", .name = #n " " #r, .nin = 1, .in = {{__VA_ARGS__}}, .p = {0, 0, 0, r}, \
     .call = n##_call, .ref = n##_ref, .grad = 2}
#define PRELU(n, order, input, C) \
    {.op = "prelu", .name = n, .nin = 2, .in = {input, {S1(C)}}, \
     .call = prelu_call, .ref = prelu_ref, .grad = order}
#define CLUSTERING(label, order, K, norm_, term, pull, push, t_, ...) \
    {.op = "matmul", .name = label, .nin = 2, \
     .in = {{__VA_ARGS__}, {.dtype = CTN_I64, t_, .fill = FILL_INDEX, .lo = -1, .hi = (K) + 1}}, \
     .p = {K, norm_, term}, .q = {pull, push}, .call = clustering_call, .ref = clustering_ref, \
     .grad = order, .engine_sums = 2}
#define X(...) {__VA_ARGS__}

case_table cases_image = {
    MAX_POOL("3x3 stride 2 pad 1", 2, DISTINCT(S4(2, 3, 7, 9)), 3, 0, 0, 2, 0, 0, 1),
    MAX_POOL("2x2", 2, DISTINCT(S4(1, 5, 6, 7)), 2),
    MAX_POOL("ceil", 2, DISTINCT(S4(2, 2, 6, 7)), 3, 2, 0, 2, 3, 0, 0, 0, 0, 1),
    MAX_POOL("ceil and pad", 1, DISTINCT(S4(1, 2, 5, 5)), 2, 0, 0, 2, 0, 0, 1, 0, 0, 1),
    MAX_POOL("stride above kernel", 2, DISTINCT(S4(1, 3, 9, 8)), 2, 1, 0, 3, 4, 0),
    MAX_POOL("one dimension", 2, DISTINCT(S3(3, 2, 17)), 5, 0, 0, 2, 0, 0, 2),
    MAX_POOL("three dimensions", 1, DISTINCT(S5(1, 2, 5, 6, 7)), 3, 2, 3, 2, 1, 2, 1, 1, 1),
    MAX_POOL("whole", 2, DISTINCT(S4(2, 3, 4, 5)), 4, 5),
    MAX_POOL("17x17 window", 1, DISTINCT(S4(1, 2, 20, 19)), 17, 0, 0, 1),
    MAX_POOL("one channel", 1, DISTINCT(S4(3, 1, 8, 8)), 3, 0, 0, 1, 0, 0, 1),
    MAX_POOL("long rows", 1, DISTINCT(S4(1, 1, 3, 600)), 3, 0, 0, 2, 0, 0, 1),
    MAX_POOL("many", 1, DISTINCT(S4(2, 16, 33, 31)), 3, 0, 0, 2, 0, 0, 1),
    MAX_POOL("no samples", 0, X(S4(0, 3, 8, 8)), 2),
    TIES("equal elements", X(S4(2, 3, 8, 8), .fill = FILL_INDEX, .hi = 3),
         3, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0, 4),
    TIES("equal elements, all", X(S4(1, 2, 6, 6), .fill = FILL_INDEX, .hi = 1),
         3, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 6),

    AVG_POOL("3x3 stride 2 pad 1", 2, X(S4(2, 3, 7, 9)), 3, 0, 0, 2, 0, 0, 1),
    AVG_POOL("exclude_pad", 2, X(S4(2, 3, 7, 9)), 3, 0, 0, 2, 0, 0, 1, 0, 0, 0, 1),
    AVG_POOL("2x2", 2, X(S4(1, 5, 6, 7)), 2),
    AVG_POOL("ceil", 2, X(S4(2, 2, 6, 7)), 3, 2, 0, 2, 3, 0, 1, 0, 0, 1),
    AVG_POOL("ceil, exclude_pad", 2, X(S4(2, 2, 6, 7)), 3, 2, 0, 2, 3, 0, 1, 0, 0, 1, 1),
    AVG_POOL("stride above kernel", 2, X(S4(1, 3, 9, 8)), 2, 1, 0, 3, 4, 0),
    AVG_POOL("one dimension", 2, X(S3(3, 2, 17)), 5, 0, 0, 2, 0, 0, 2),
    AVG_POOL("three dimensions", 1, X(S5(1, 2, 5, 6, 7)), 3, 2, 3, 2, 1, 2, 1, 1, 1),
    AVG_POOL("many", 1, X(S4(2, 16, 33, 31)), 3, 0, 0, 1, 0, 0, 1),
    AVG_POOL("no channels", 0, X(S4(2, 0, 8, 8)), 2),
    GLOBAL("global", 2, S4(2, 5, 7, 7)),
    GLOBAL("global, one dimension", 2, S3(2, 3, 11)),
    GLOBAL("global, three dimensions", 2, S5(2, 3, 2, 3, 4)),
    GLOBAL("global, large", 1, S4(2, 3, 112, 112)),
    GLOBAL("global, no samples", 0, S4(0, 3, 4, 4)),

    ADAPTIVE("adaptive_avg_pool", "uneven", 2, X(S4(2, 3, 7, 10)), 3, 4),
    ADAPTIVE("adaptive_avg_pool", "larger", 2, X(S4(1, 2, 3, 4)), 5, 7),
    ADAPTIVE("adaptive_avg_pool", "one dimension", 2, X(S3(2, 3, 13)), 5),
    ADAPTIVE("adaptive_avg_pool", "three dimensions", 2, X(S5(1, 2, 5, 6, 7)), 2, 3, 4),
    ADAPTIVE("adaptive_avg_pool", "many", 1, X(S4(2, 16, 33, 31)), 7, 7),
    ADAPTIVE("avg_pool", "adaptive, even", 2, X(S4(2, 3, 6, 8)), 3, 2),

    RESIZE("nearest up", 2, CTN_RESIZE_NEAREST, X(S4(2, 3, 4, 5)), 8, 15, 0),
    RESIZE("nearest uneven", 2, CTN_RESIZE_NEAREST, X(S4(1, 2, 7, 5)), 4, 8, 0),
    RESIZE("nearest one dimension", 2, CTN_RESIZE_NEAREST, X(S3(2, 3, 9)), 4, 0, 0),
    RESIZE("nearest three dimensions", 2, CTN_RESIZE_NEAREST, X(S5(1, 2, 3, 4, 5)), 6, 2, 7),
    RESIZE("linear up", 2, CTN_RESIZE_LINEAR, X(S4(2, 3, 4, 5)), 8, 15, 0),
    RESIZE("linear down", 2, CTN_RESIZE_LINEAR, X(S4(1, 2, 17, 11)), 5, 4, 0),
    RESIZE("linear one dimension", 2, CTN_RESIZE_LINEAR, X(S3(2, 3, 9)), 14, 0, 0),
    RESIZE("linear three dimensions", 2, CTN_RESIZE_LINEAR, X(S5(1, 2, 3, 4, 5)), 6, 2, 7),
    RESIZE("linear of one", 2, CTN_RESIZE_LINEAR, X(S4(2, 2, 1, 1)), 3, 2, 0),
    RESIZE("linear same", 2, CTN_RESIZE_LINEAR, X(S4(2, 2, 3, 3)), 3, 3, 0),
    RESIZE("linear many", 1, CTN_RESIZE_LINEAR, X(S4(2, 9, 28, 30)), 56, 45, 0),
    RESIZE("no samples", 0, CTN_RESIZE_LINEAR, X(S4(0, 2, 3, 3)), 5, 5, 0),

    SHUFFLE(depth_to_space, 2, S4(2, 12, 3, 4)),
    SHUFFLE(depth_to_space, 3, S4(1, 9, 5, 2)),
    SHUFFLE(space_to_depth, 2, S4(2, 3, 6, 8)),
    SHUFFLE(space_to_depth, 3, S4(1, 2, 3, 6)),

    PRELU("channels", 2, X(S4(2, 3, 5, 4), .fill = FILL_AWAY), 3),
    PRELU("one slope", 2, X(S4(2, 3, 5, 4), .fill = FILL_AWAY), 1),
    PRELU("no spatial", 2, X(S2(7, 5), .fill = FILL_AWAY), 5),
    PRELU("one dimension", 2, X(S3(3, 4, 9), .fill = FILL_AWAY), 4),
    PRELU("many", 1, X(S4(3, 11, 29, 31), .fill = FILL_AWAY), 11),
    PRELU("no samples", 1, X(S4(0, 3, 4, 4)), 3),
    {"prelu", "at zero", 2, {X(S4(2, 3, 3, 3), .fill = FILL_INDEX, .lo = -1, .hi = 2), X(S1(3))},
     .call = prelu_zero_call, .ref = prelu_zero_ref},

    {"mul", "spatial_dropout", 1, {X(S4(4, 6, 5, 3))}, .q = {0.4},
     .call = spatial_dropout_call, .grad = 2},
    {"mul", "spatial_dropout, no spatial", 1, {X(S2(20, 30))}, .q = {0.25},
     .call = spatial_dropout_call, .grad = 1},
    {"mul", "spatial_dropout, whole channels", 1, {X(S4(8, 16, 3, 3), .fill = FILL_AWAY)},
     .q = {0.5}, .call = spatial_dropout_whole_call, .ref = zero_ref},

    CLUSTERING("instances variance", 2, 3, 2, 0, 0.3, 1, S3(2, 3, 3), S4(2, 2, 3, 3)),
    CLUSTERING("instances distance", 2, 3, 2, 1, 0.3, 1, S3(2, 3, 3), S4(2, 2, 3, 3)),
    CLUSTERING("instances regular", 2, 3, 2, 2, 0.3, 1, S3(2, 3, 3), S4(2, 2, 3, 3)),
    CLUSTERING("instances, norm 1 variance", 1, 2, 1, 0, 0.5, 1.5, S2(3, 7), S3(3, 4, 7)),
    CLUSTERING("instances, norm 1 distance", 1, 2, 1, 1, 0.5, 1.5, S2(3, 7), S3(3, 4, 7)),
    CLUSTERING("instances, norm 1 regular", 1, 2, 1, 2, 0.5, 1.5, S2(3, 7), S3(3, 4, 7)),
    CLUSTERING("few instances variance", 1, 4, 2, 0, 0.1, 2, S2(2, 3), S3(2, 3, 3)),
    CLUSTERING("few instances distance", 1, 4, 2, 1, 0.1, 2, S2(2, 3), S3(2, 3, 3)),
    CLUSTERING("few instances regular", 1, 4, 2, 2, 0.1, 2, S2(2, 3), S3(2, 3, 3)),
    {0},
};
