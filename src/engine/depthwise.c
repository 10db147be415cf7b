/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution: groups of one channel, for f32 images in channels-last order, so that the
 * channels are the lanes of the vectors. oneDNN has kernels for most problems in two dimensions.
 * For the others it fills each group up to a vector of channels, or multiplies matrices of one row.
 * With w (taps,C) and x[m,t] the element that tap t of element m of y reads,
 *   y[m,c] = sum over t of x[m,t,c] w[t,c]
 *   gw[t,c] = sum over m of x[m,t,c] gy[m,c]
 * The gradient by x is like y, with the elements of y that read element m. Rows, or parts of the
 * sum over m, belong to one thread, and the parts do not depend on the number of threads.
 */
#include "engine/blas.h"
#include "engine/isa.h"

#include <omp.h>

/* Channels that stay in registers; elements of y that are added in f32; parts of the sum over m,
 * and their size together; taps of a kernel. */
enum { WIDE = 64, NARROW = 16, CHUNK = 256, PARTS = 16, PARTS_SIZE = 1 << 20, MOST_TAPS = 4096 };

/* Always three spatial dimensions; missing ones come first, with length 1. Results are computed at
 * positions `to` and read the other image at positions `from`. */
typedef struct {
    ctn__conv_kind kind;
    int64_t N, C, taps, parts;
    int64_t to[3], from[3], w[3], stride[3], pad[3], dilation[3];
    int64_t results, sources; /* positions of a sample */
    bool relu;
    int threads;
} problem;

static problem pose(ctn__conv_kind kind, const ctn__conv_shape *s, const ctn_desc *x,
                    const ctn_desc *w, const ctn_desc *y, int threads)
{
    const int missing = 5 - x->ndim;
    const ctn_desc *to = kind == CTN__CONV_DATA ? x : y, *from = kind == CTN__CONV_DATA ? y : x;
    problem p = {.kind = kind, .N = x->dim[0], .C = x->dim[1], .threads = threads};
    p.taps = p.results = p.sources = 1;
    for (int i = 0; i < 3; i++) {
        const int k = i - missing;
        p.to[i] = k < 0 ? 1 : to->dim[2 + k];
        p.from[i] = k < 0 ? 1 : from->dim[2 + k];
        p.w[i] = k < 0 ? 1 : w->dim[2 + k];
        p.stride[i] = k < 0 ? 1 : s->stride[k];
        p.pad[i] = k < 0 ? 0 : s->pad[k];
        p.dilation[i] = k < 0 ? 1 : s->dilation[k];
        p.taps *= p.w[i];
        p.results *= p.to[i];
        p.sources *= p.from[i];
    }
    const int64_t all = p.N * p.results, fit = PARTS_SIZE / (p.taps * p.C);
    p.parts = all / CHUNK < fit ? all / CHUNK : fit;
    p.parts = p.parts < 1 ? 1 : p.parts < PARTS ? p.parts : PARTS;
    return p;
}

/* ---- what a result reads --------------------------------------------------------------------- */

typedef struct {
    int64_t at, tap; /* offset of the element of channel 0 in its sample, and of its weight */
} read;

/* The position in dimension i that tap k of position m reads; -1: none. */
static inline int64_t source(const problem *p, int i, int64_t m, int64_t k)
{
    int64_t v = m * p->stride[i] - p->pad[i] + k * p->dilation[i];
    if (p->kind == CTN__CONV_DATA) {
        v = m + p->pad[i] - k * p->dilation[i];
        if (p->stride[i] > 1 && v >= 0) v = v % p->stride[i] == 0 ? v / p->stride[i] : -1;
    }
    return v < p->from[i] ? v : -1;
}

/* All that position m of a sample reads. Returns their number. */
static int64_t list(const problem *p, int64_t m, read *r)
{
    const int64_t o[3] = {m / p->to[2] / p->to[1], m / p->to[2] % p->to[1], m % p->to[2]};
    int64_t n = 0;
    for (int64_t i = 0; i < p->w[0]; i++) {
        const int64_t a = source(p, 0, o[0], i);
        for (int64_t j = 0; a >= 0 && j < p->w[1]; j++) {
            const int64_t b = source(p, 1, o[1], j), row = (a * p->from[1] + b) * p->from[2];
            for (int64_t k = 0; b >= 0 && k < p->w[2]; k++) {
                const int64_t c = source(p, 2, o[2], k);
                if (c < 0) continue;
                r[n].at = (row + c) * p->C;
                r[n++].tap = (i * p->w[1] + j) * p->w[2] + k;
            }
        }
    }
    return n;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* The compiler keeps such vectors in registers, and splits them where those are shorter. */
typedef float vec __attribute__((vector_size(NARROW * sizeof(float))));

/* y = the sum of what it reads, times the weights, in `vecs` vectors of channels */
static inline __attribute__((always_inline)) void sum_vectors(const read *r, int64_t n,
                                                              const float *x, const float *w,
                                                              int64_t C, float *y, int vecs)
{
    vec sum[WIDE / NARROW] = {{0}}, a, b;
    for (int64_t i = 0; i < n; i++) {
        const float *at = x + r[i].at, *by = w + r[i].tap * C;
#pragma GCC unroll 4
        for (int v = 0; v < vecs; v++) {
            memcpy(&a, at + v * NARROW, sizeof a);
            memcpy(&b, by + v * NARROW, sizeof b);
            sum[v] += a * b;
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vecs; v++) memcpy(y + v * NARROW, &sum[v], sizeof sum[v]);
}

/* y (C) = the sum of what it reads, times the weights (taps,C) */
CTN__PER_ISA(row, (const read *r, int64_t n, const float *x, const float *w, int64_t C, float *y),
             (r, n, x, w, C, y))
{
    float sum[NARROW] = {0};
    int64_t c = 0;
    for (; c + WIDE <= C; c += WIDE) sum_vectors(r, n, x + c, w + c, C, y + c, WIDE / NARROW);
    for (; c + NARROW <= C; c += NARROW) sum_vectors(r, n, x + c, w + c, C, y + c, 1);
    for (int64_t i = 0; c < C && i < n; i++) {
        const float *a = x + r[i].at, *b = w + r[i].tap * C;
        for (int64_t k = c; k < C; k++) sum[k - c] += a[k] * b[k];
    }
    for (int64_t k = c; k < C; k++) y[k] = sum[k - c];
}

static inline __attribute__((always_inline)) void add_reads(const read *r, int64_t n,
                                                            const float *x, const float *g,
                                                            float *sum, int64_t lanes)
{
    for (int64_t i = 0; i < n; i++) {
        const float *a = x + r[i].at;
        float *s = sum + r[i].tap * WIDE;
#pragma omp simd
        for (int64_t c = 0; c < lanes; c++) s[c] += a[c] * g[c];
    }
}

/* sum (taps,WIDE) += what a result reads, times its gradient g, in up to WIDE channels */
CTN__PER_ISA(taps,
             (const read *r, int64_t n, const float *x, const float *g, float *sum, int64_t nc),
             (r, n, x, g, sum, nc))
{
    if (nc == WIDE) add_reads(r, n, x, g, sum, WIDE);
    else add_reads(r, n, x, g, sum, nc);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Scratch memory of threads: what a result reads, and a part's sum. */
static size_t reads_bytes(const problem *p)
{
    return (size_t)p->taps * sizeof(read);
}

static size_t thread_bytes(const problem *p)
{
    const size_t sum = p->kind == CTN__CONV_WEIGHTS ? (size_t)p->taps * WIDE * sizeof(float) : 0;
    return (reads_bytes(p) + sum + CTN__ALIGN - 1) / CTN__ALIGN * CTN__ALIGN;
}

static void *place(void *scratch, size_t bytes)
{
    return (char *)scratch + bytes;
}

/* w (C,taps) of the user as (taps,C). */
static void turn_weights(const problem *p, const float *w, float *turned)
{
    for (int64_t c = 0; c < p->C; c++)
        for (int64_t t = 0; t < p->taps; t++) turned[t * p->C + c] = w[c * p->taps + t];
}

static void run_rows(const problem *p, const float *from, const float *w, float *to, void *scratch)
{
    const ctn__isa isa = ctn__isa_in_use();
    const int64_t all = p->N * p->results;
    float *turned = place(scratch, (size_t)p->threads * thread_bytes(p));
    turn_weights(p, w, turned);
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (int64_t m = 0; m < all; m++) {
        read *r = place(scratch, (size_t)omp_get_thread_num() * thread_bytes(p));
        const int64_t n = list(p, m % p->results, r);
        const float *sample = from + m / p->results * p->sources * p->C;
        row[isa](r, n, sample, turned, p->C, to + m * p->C);
    }
}

/* The sum of part `part` for the channels from c on; total (taps,C). */
static void run_part(const problem *p, int64_t part, int64_t c, const float *x, const float *g,
                     double *total, void *scratch)
{
    const ctn__isa isa = ctn__isa_in_use();
    const int64_t all = p->N * p->results, nc = p->C - c < WIDE ? p->C - c : WIDE;
    const int64_t end = all * (part + 1) / p->parts;
    read *r = scratch;
    float *sum = place(scratch, reads_bytes(p));
    for (int64_t t = 0; t < p->taps; t++)
        for (int64_t k = 0; k < nc; k++) total[t * p->C + c + k] = 0;
    for (int64_t m = all * part / p->parts; m < end;) {
        const int64_t stop = end - m < CHUNK ? end : m + CHUNK;
        memset(sum, 0, (size_t)p->taps * WIDE * sizeof *sum);
        for (; m < stop; m++) {
            const int64_t n = list(p, m % p->results, r);
            const float *sample = x + m / p->results * p->sources * p->C;
            taps[isa](r, n, sample + c, g + m * p->C + c, sum, nc);
        }
        for (int64_t t = 0; t < p->taps; t++)
            for (int64_t k = 0; k < nc; k++) total[t * p->C + c + k] += (double)sum[t * WIDE + k];
    }
}

static void run_weights(const problem *p, const float *x, const float *g, float *w, void *scratch)
{
    const int64_t blocks = (p->C + WIDE - 1) / WIDE, size = p->taps * p->C;
    double *total = place(scratch, (size_t)p->threads * thread_bytes(p));
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (int64_t u = 0; u < p->parts * blocks; u++)
        run_part(p, u / blocks, u % blocks * WIDE, x, g, total + u / blocks * size,
                 place(scratch, (size_t)omp_get_thread_num() * thread_bytes(p)));
    for (int64_t c = 0; c < p->C; c++)
        for (int64_t t = 0; t < p->taps; t++) {
            double sum = 0;
            for (int64_t i = 0; i < p->parts; i++) sum += total[i * size + t * p->C + c];
            w[c * p->taps + t] = (float)sum;
        }
}

static ctn_status run(const ctn__prim *prim, void *const *ptr, void *scratch)
{
    const problem *p = prim->data;
    const ctn__conv_rows y = {ptr[3], p->N * p->results, p->C, p->relu, p->threads};
    switch (p->kind) {
    case CTN__CONV_FORWARD:
        run_rows(p, ptr[0], ptr[1], ptr[3], scratch);
        ctn__conv_finish(&y, ptr[2], ptr[4], ptr[5], ptr[6]);
        break;
    case CTN__CONV_DATA: run_rows(p, ptr[3], ptr[1], ptr[0], scratch); break;
    case CTN__CONV_WEIGHTS: run_weights(p, ptr[0], ptr[3], ptr[1], scratch); break;
    }
    return CTN_OK;
}

ctn_status ctn__depthwise(ctn__prim **out, ctn__engine *e, ctn__conv_kind kind,
                          const ctn__conv_shape *s, const ctn_desc *x, ctn_desc *w,
                          const ctn_desc *bias, const ctn_desc *y, const ctn__conv_post *post)
{
    *out = NULL;
    if (x->dtype != CTN_F32 || y->dtype != CTN_F32 || w->dtype != CTN_F32 ||
        (bias && bias->dtype != CTN_F32) || !ctn__is_channels_last(x) ||
        !ctn__is_channels_last(y) || s->groups != x->dim[1] || s->groups != y->dim[1] ||
        s->groups < 2 || (post->residual && !ctn__is_channels_last(post->residual)) ||
        ctn__count(x) == 0 || ctn__count(y) == 0)
        return CTN_OK;
    problem p = pose(kind, s, x, w, y, e->threads);
    if (p.taps > MOST_TAPS) return CTN_OK;
    p.relu = kind == CTN__CONV_FORWARD && post->act == CTN__ELT_RELU;
    ctn__plain(w);
    const size_t common =
        kind == CTN__CONV_WEIGHTS ? (size_t)p.parts * sizeof(double) : sizeof(float);
    return ctn__prim_own(out, e, "own:depthwise", run, &p, sizeof p,
                         (size_t)p.threads * thread_bytes(&p) + (size_t)(p.taps * p.C) * common);
}
