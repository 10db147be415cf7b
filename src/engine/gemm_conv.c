/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution and its adjoints by matrix products, for f32 images in channels-last order. Let C
 * (M,K) hold in row m the elements of x that element m of y reads, one tap after the other, for
 * the channels of one group. With W (O,K) in the same order,
 *   y (M,O) = C W^T
 *   C = Y W, and every element of x is the sum of the elements of C that were read from it
 *   gW (O,K) = Y^T C
 * For 1x1 kernels without stride and padding C is x itself. Otherwise a block of its rows at a time
 * is in scratch memory.
 */
#include "engine/blas.h"

enum { BLOCK_BYTES = 8 << 20 }; /* of C; at least one sample for the gradient by x */

/* Always three spatial dimensions; missing ones come first, with length 1. */
typedef struct {
    ctn__conv_kind kind;
    int64_t N, I, O, G, Ig, Og, K, taps;
    int64_t x[3], w[3], y[3], stride[3], pad[3], dilation[3];
    int64_t in, out; /* positions of one sample of x and of y */
    int64_t rows;    /* of a block of C */
    bool direct, relu;
    int threads;
} problem;

static problem pose(ctn__conv_kind kind, const ctn__conv_shape *s, const ctn_desc *x,
                    const ctn_desc *w, const ctn_desc *y, int threads)
{
    const int missing = 5 - x->ndim;
    problem p = {.kind = kind,
                 .N = x->dim[0],
                 .I = x->dim[1],
                 .O = y->dim[1],
                 .G = s->groups,
                 .threads = threads,
                 .direct = true};
    p.Ig = p.I / p.G;
    p.Og = p.O / p.G;
    for (int i = 0; i < 3; i++) {
        const int k = i - missing;
        p.x[i] = k < 0 ? 1 : x->dim[2 + k];
        p.w[i] = k < 0 ? 1 : w->dim[2 + k];
        p.y[i] = k < 0 ? 1 : y->dim[2 + k];
        p.stride[i] = k < 0 ? 1 : s->stride[k];
        p.pad[i] = k < 0 ? 0 : s->pad[k];
        p.dilation[i] = k < 0 ? 1 : s->dilation[k];
        p.direct &= p.w[i] == 1 && p.stride[i] == 1 && p.pad[i] == 0 && p.x[i] == p.y[i];
    }
    p.in = p.x[0] * p.x[1] * p.x[2];
    p.out = p.y[0] * p.y[1] * p.y[2];
    p.taps = p.w[0] * p.w[1] * p.w[2];
    p.K = p.taps * p.Ig;
    const int64_t all = p.N * p.out, fit = BLOCK_BYTES / 4 / p.K;
    p.rows = fit < 1 ? 1 : fit;
    if (kind == CTN__CONV_DATA) p.rows = fit < p.out ? p.out : fit / p.out * p.out;
    if (p.rows > all || p.direct) p.rows = all;
    return p;
}

/* The position in a sample of x that tap t of position m of y reads; -1: padding. */
static int64_t read_at(const problem *p, int64_t m, int64_t t)
{
    const int64_t o[3] = {m / p->y[2] / p->y[1], m / p->y[2] % p->y[1], m % p->y[2]};
    const int64_t k[3] = {t / p->w[2] / p->w[1], t / p->w[2] % p->w[1], t % p->w[2]};
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        const int64_t v = o[i] * p->stride[i] - p->pad[i] + k[i] * p->dilation[i];
        if (v < 0 || v >= p->x[i]) return -1;
        at = at * p->x[i] + v;
    }
    return at;
}

/* The position in a sample of y whose tap t reads position n of x; -1: none does. */
static int64_t read_by(const problem *p, int64_t n, int64_t t)
{
    const int64_t o[3] = {n / p->x[2] / p->x[1], n / p->x[2] % p->x[1], n % p->x[2]};
    const int64_t k[3] = {t / p->w[2] / p->w[1], t / p->w[2] % p->w[1], t % p->w[2]};
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        const int64_t v = o[i] + p->pad[i] - k[i] * p->dilation[i];
        if (v < 0 || v % p->stride[i] != 0 || v / p->stride[i] >= p->y[i]) return -1;
        at = at * p->y[i] + v / p->stride[i];
    }
    return at;
}

/* Rows [first, first + n) of C for group g. */
static void gather(const problem *p, const float *x, int64_t g, int64_t first, int64_t n, float *c)
{
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (int64_t r = 0; r < n; r++) {
        const int64_t m = first + r;
        const float *from = x + m / p->out * p->in * p->I + g * p->Ig;
        float *to = c + r * p->K;
        for (int64_t t = 0; t < p->taps; t++, to += p->Ig) {
            const int64_t at = read_at(p, m % p->out, t);
            if (at < 0) memset(to, 0, (size_t)p->Ig * sizeof *to);
            else memcpy(to, from + at * p->I, (size_t)p->Ig * sizeof *to);
        }
    }
}

/* The channels of group g in the samples of which C has the rows. Taps are added in their order. */
static void add_up(const problem *p, const float *c, int64_t g, int64_t samples, float *x)
{
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (int64_t r = 0; r < samples * p->in; r++) {
        float *restrict to = x + r * p->I + g * p->Ig;
        memset(to, 0, (size_t)p->Ig * sizeof *to);
        for (int64_t t = 0; t < p->taps; t++) {
            const int64_t m = read_by(p, r % p->in, t);
            if (m < 0) continue;
            const float *from = c + (r / p->in * p->out + m) * p->K + t * p->Ig;
#pragma omp simd
            for (int64_t i = 0; i < p->Ig; i++) to[i] += from[i];
        }
    }
}

void ctn__conv_finish(const ctn__conv_rows *r, const float *bias, const float *scale,
                      const float *shift, const float *residual)
{
    if (!bias && !scale && !r->relu) return;
#pragma omp parallel for schedule(static) num_threads(r->threads)
    for (int64_t m = 0; m < r->n; m++) {
        float *restrict v = r->y + m * r->O;
        const float *old = residual ? residual + m * r->O : NULL;
        if (bias)
#pragma omp simd
            for (int64_t o = 0; o < r->O; o++) v[o] += bias[o];
        if (scale)
#pragma omp simd
            for (int64_t o = 0; o < r->O; o++) v[o] = v[o] * scale[o] + shift[o];
        if (old)
#pragma omp simd
            for (int64_t o = 0; o < r->O; o++) v[o] += old[o];
        if (r->relu)
#pragma omp simd
            for (int64_t o = 0; o < r->O; o++) v[o] = v[o] < 0 ? 0 : v[o];
    }
}

/* Rows [first, first + n) of C, in scratch memory or in x itself, and their distance. */
static const float *rows_of(const problem *p, const float *x, int64_t g, int64_t first, int64_t n,
                            float *scratch, int64_t *ld)
{
    *ld = p->direct ? p->I : p->K;
    if (p->direct) return x + first * p->I + g * p->Ig;
    gather(p, x, g, first, n, scratch);
    return scratch;
}

static ctn_status multiply(const problem *p, int64_t g, int64_t first, int64_t n, float *x,
                           float *w, float *y, float *scratch)
{
    float *wg = w + g * p->Og * p->K, *yg = y + first * p->O + g * p->Og;
    int64_t ld;
    ctn__gemm_args a = {.m = n, .n = p->Og, .k = p->K, .ldb = p->K, .ldc = p->O, .tb = true};
    switch (p->kind) {
    case CTN__CONV_FORWARD:
        a.a = rows_of(p, x, g, first, n, scratch, &a.lda);
        a.b = wg;
        a.c = yg;
        break;
    case CTN__CONV_DATA:
        ld = p->direct ? p->I : p->K;
        a = (ctn__gemm_args){.m = n, .n = p->K, .k = p->Og, .lda = p->O, .ldb = p->K, .ldc = ld};
        a.a = yg;
        a.b = wg;
        a.c = p->direct ? x + first * p->I + g * p->Ig : scratch;
        break;
    case CTN__CONV_WEIGHTS:
        a = (ctn__gemm_args){.m = p->Og, .n = p->K, .k = n, .lda = p->O, .ldc = p->K, .ta = true};
        a.a = yg;
        a.b = rows_of(p, x, g, first, n, scratch, &a.ldb);
        a.c = wg;
        a.add = first > 0;
        break;
    }
    CTN_TRY(ctn__gemm(&a));
    if (p->kind == CTN__CONV_DATA && !p->direct)
        add_up(p, scratch, g, n / p->out, x + first / p->out * p->in * p->I);
    return CTN_OK;
}

static ctn_status run(const ctn__prim *prim, void *const *ptr, void *scratch)
{
    const problem *p = prim->data;
    const int64_t all = p->N * p->out;
    for (int64_t g = 0; g < p->G; g++)
        for (int64_t m = 0; m < all; m += p->rows)
            CTN_TRY(multiply(p, g, m, all - m < p->rows ? all - m : p->rows, ptr[0], ptr[1], ptr[3],
                             scratch));
    const ctn__conv_rows y = {ptr[3], all, p->O, p->relu, p->threads};
    if (p->kind == CTN__CONV_FORWARD) ctn__conv_finish(&y, ptr[2], ptr[4], ptr[5], ptr[6]);
    return CTN_OK;
}

ctn_status ctn__gemm_conv(ctn__prim **out, ctn__engine *e, ctn__conv_kind kind,
                          const ctn__conv_shape *s, const ctn_desc *x, ctn_desc *w,
                          const ctn_desc *bias, const ctn_desc *y, const ctn__conv_post *post)
{
    *out = NULL;
    if (x->dtype != CTN_F32 || y->dtype != CTN_F32 || w->dtype != CTN_F32 ||
        (bias && bias->dtype != CTN_F32) || !ctn__is_channels_last(x) ||
        !ctn__is_channels_last(y) || (s->groups > 1 && s->groups == x->dim[1]) ||
        (post->residual && !ctn__is_channels_last(post->residual)))
        return CTN_OK;
    problem p = pose(kind, s, x, w, y, e->threads);
    p.relu = kind == CTN__CONV_FORWARD && post->act == CTN__ELT_RELU;
    ctn__channels_last(w); /* (O, kernel, I / groups) */
    return ctn__prim_own(out, e, ctn__blas_name() ? "blas:conv" : "gemm:conv", run, &p, sizeof p,
                         p.direct ? 0 : (size_t)(p.rows * p.K) * sizeof(float));
}
