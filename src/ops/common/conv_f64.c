/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution in f64 by matrix products over row-major images; the engine has only reference
 * loops for f64. For a sample and a group let C (K,M) hold the elements of x that each element
 * of y reads: K = input channels x kernel positions, M = positions of y. Then
 *   y (O,M) = W (O,K) C
 *   C = W^T y for the gradient by x; its elements are added up at the positions they were read from
 *   gW (O,K) = sum over samples of y C^T
 */
#include "ops/common/conv.h"

/* Always three spatial dimensions; missing ones are put first, with length 1. */
typedef struct {
    int64_t N, G, Ig, Og, M, K, taps, image; /* image: elements of a channel of x */
    int64_t x[3], w[3], y[3], stride[3], pad[3], dilation[3];
    double *c, *sum; /* (K,M), (Og,K) */
    void *packed;
    int threads;
} problem;

static problem pose(const int64_t *attr, const ctn_desc *x, const ctn_desc *w, const ctn_desc *y)
{
    const int64_t G = attr[CTN__CONV_GROUPS];
    problem p = {.N = x->dim[0], .G = G, .Ig = x->dim[1] / G, .Og = y->dim[1] / G};
    const int missing = 5 - x->ndim;
    for (int i = 0; i < 3; i++) {
        const int k = i - missing;
        p.x[i] = k < 0 ? 1 : x->dim[2 + k];
        p.w[i] = k < 0 ? 1 : w->dim[2 + k];
        p.y[i] = k < 0 ? 1 : y->dim[2 + k];
        p.stride[i] = k < 0 ? 1 : attr[CTN__CONV_STRIDE + k];
        p.pad[i] = k < 0 ? 0 : attr[CTN__CONV_PAD + k];
        p.dilation[i] = k < 0 ? 1 : attr[CTN__CONV_DILATION + k];
    }
    p.image = p.x[0] * p.x[1] * p.x[2];
    p.taps = p.w[0] * p.w[1] * p.w[2];
    p.M = p.y[0] * p.y[1] * p.y[2];
    p.K = p.Ig * p.taps;
    return p;
}

static size_t scratch_of(const problem *p, int threads)
{
    return (size_t)(p->K * p->M + p->Og * p->K) * sizeof(double) +
           ctn__product_f64_scratch(threads);
}

static void place_scratch(problem *p, const ctn_run_args *a)
{
    p->threads = a->env->threads;
    p->packed = a->scratch;
    void *rest = (char *)a->scratch + ctn__product_f64_scratch(p->threads);
    p->c = rest;
    p->sum = p->c + p->K * p->M;
}

/* What a row of y reads from a channel of x through one tap: elements [begin, end) of the row read
 * from x + at on, with the convolution's stride. */
typedef struct {
    int64_t begin, end, at;
} reading;

static reading read_row(const problem *p, int64_t tap, int64_t row)
{
    const int64_t k[3] = {tap / p->w[2] / p->w[1], tap / p->w[2] % p->w[1], tap % p->w[2]};
    const int64_t m[2] = {row / p->y[1], row % p->y[1]};
    int64_t at = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t to = m[i] * p->stride[i] - p->pad[i] + k[i] * p->dilation[i];
        if (to < 0 || to >= p->x[i]) return (reading){0};
        at = at * p->x[i] + to;
    }
    const int64_t s = p->stride[2], from = k[2] * p->dilation[2] - p->pad[2];
    reading r = {.begin = from < 0 ? (-from + s - 1) / s : 0,
                 .end = from < p->x[2] ? (p->x[2] - from + s - 1) / s : 0};
    if (r.end > p->y[2]) r.end = p->y[2];
    if (r.begin >= r.end) return (reading){0};
    r.at = at * p->x[2] + from + r.begin * s;
    return r;
}

/* Fill C for the group whose first channel is at x. */
static void gather(const problem *p, const double *x)
{
    const int64_t rows = p->y[0] * p->y[1], n = p->y[2];
#pragma omp parallel for schedule(static) if (p->K * p->M > CTN__GRAIN)
    for (int64_t k = 0; k < p->K; k++) {
        const double *from = x + k / p->taps * p->image;
        for (int64_t row = 0; row < rows; row++) {
            const reading r = read_row(p, k % p->taps, row);
            double *to = p->c + k * p->M + row * n;
            for (int64_t m = 0; m < r.begin; m++) to[m] = 0;
            for (int64_t m = r.begin; m < r.end; m++)
                to[m] = from[r.at + (m - r.begin) * p->stride[2]];
            for (int64_t m = r.end; m < n; m++) to[m] = 0;
        }
    }
}

/* Add C to the positions it was read from. Each channel belongs to one thread. */
static void scatter(const problem *p, double *x)
{
    const int64_t rows = p->y[0] * p->y[1], n = p->y[2];
#pragma omp parallel for schedule(static) if (p->K * p->M > CTN__GRAIN)
    for (int64_t i = 0; i < p->Ig; i++) {
        double *to = x + i * p->image;
        memset(to, 0, (size_t)p->image * sizeof *to);
        for (int64_t k = i * p->taps; k < (i + 1) * p->taps; k++)
            for (int64_t row = 0; row < rows; row++) {
                const reading r = read_row(p, k % p->taps, row);
                const double *from = p->c + k * p->M + row * n;
                for (int64_t m = r.begin; m < r.end; m++)
                    to[r.at + (m - r.begin) * p->stride[2]] += from[m];
            }
    }
}

/* (r,c) row-major, or the transpose of such a matrix. */
static ctn_desc matrix(int64_t r, int64_t c, bool turned)
{
    return (ctn_desc){.dtype = CTN_F64,
                      .ndim = 2,
                      .dim = {r, c},
                      .stride = {turned ? 1 : c, turned ? r : 1}};
}

static void multiply(const problem *p, ctn_desc a, ctn_desc b, const double *x, const double *y,
                     double *z)
{
    const ctn_desc c = matrix(a.dim[0], b.dim[1], false);
    ctn__product_f64(&a, &b, &c, x, y, z, p->threads, p->packed);
}

/* y = act(y + bias) for the channels of one group, which begins with channel o. */
static void finish(const problem *p, double *y, const double *bias, int64_t o, bool relu)
{
    if (!bias && !relu) return;
#pragma omp parallel for schedule(static) if (p->Og * p->M > CTN__GRAIN)
    for (int64_t i = 0; i < p->Og; i++)
        for (int64_t m = 0; m < p->M; m++) {
            const double v = y[i * p->M + m] + (bias ? bias[o + i] : 0);
            y[i * p->M + m] = relu && v < 0 ? 0 : v;
        }
}

static ctn_status run_forward(const ctn_run_args *a)
{
    problem p = pose(a->attr, &a->din[0], &a->din[1], &a->dout[0]);
    const double *x = a->in[0], *w = a->in[1], *bias = a->nin > 2 ? a->in[2] : NULL;
    double *y = a->out[0];
    place_scratch(&p, a);
    for (int64_t u = 0; u < p.N * p.G; u++, y += p.Og * p.M) {
        const int64_t g = u % p.G;
        gather(&p, x + u * p.Ig * p.image);
        multiply(&p, matrix(p.Og, p.K, false), matrix(p.K, p.M, false), w + g * p.Og * p.K, p.c, y);
        finish(&p, y, bias, g * p.Og, a->attr[CTN__CONV_ACT] == CTN__ELT_RELU);
    }
    return CTN_OK;
}

static ctn_status run_data(const ctn_run_args *a)
{
    problem p = pose(a->attr, &a->dout[0], &a->din[1], &a->din[0]);
    const double *y = a->in[0], *w = a->in[1];
    place_scratch(&p, a);
    for (int64_t u = 0; u < p.N * p.G; u++) {
        multiply(&p, matrix(p.K, p.Og, true), matrix(p.Og, p.M, false), w + u % p.G * p.Og * p.K,
                 y + u * p.Og * p.M, p.c);
        scatter(&p, (double *)a->out[0] + u * p.Ig * p.image);
    }
    return CTN_OK;
}

static ctn_status run_weights(const ctn_run_args *a)
{
    problem p = pose(a->attr, &a->din[0], &a->dout[0], &a->din[1]);
    const double *x = a->in[0], *y = a->in[1];
    double *w = a->out[0];
    place_scratch(&p, a);
    for (int64_t u = 0; u < p.N * p.G; u++) {
        double *to = w + u % p.G * p.Og * p.K;
        gather(&p, x + u * p.Ig * p.image);
        multiply(&p, matrix(p.Og, p.M, false), matrix(p.M, p.K, true), y + u * p.Og * p.M, p.c,
                 u < p.G ? to : p.sum);
        for (int64_t i = 0; u >= p.G && i < p.Og * p.K; i++) to[i] += p.sum[i];
    }
    return CTN_OK;
}

ctn_status ctn__conv_f64(ctn_prepare_args *a, ctn__conv_kind kind)
{
    ctn_desc *x = &a->din[0], *w = &a->din[1], *y = &a->dout[0];
    a->run = run_forward;
    if (kind == CTN__CONV_DATA) {
        x = &a->dout[0];
        y = &a->din[0];
        a->run = run_data;
    } else if (kind == CTN__CONV_WEIGHTS) {
        w = &a->dout[0];
        y = &a->din[1];
        a->run = run_weights;
    }
    for (int i = 0; i < a->nin; i++) ctn__plain(&a->din[i]);
    ctn__plain(&a->dout[0]);
    const problem p = pose(a->attr, x, w, y);
    a->scratch = scratch_of(&p, a->threads);
    a->kernel = "own:product";
    return CTN_OK;
}
