/* SPDX-License-Identifier: Apache-2.0
 *
 * Spatial kernels (pool.h): chooses the instruction set, divides rows among threads, and builds the
 * matrices of resampling and the portable kernels.
 */
#include "engine/pool.h"

#include "engine/isa.h"

#include <omp.h>

#define POOL_TABLE ctn__pool_portable
#include "engine/pool_body.h"

#define PARALLEL_MIN 16384 /* with fewer elements, one thread is faster */
#define ROW_FLOATS 8192    /* part of a resampled row kept in the L1 cache */

static const ctn__pool_kernels *kernels(ctn_dtype t)
{
    static const ctn__pool_kernels *const table[] = CTN__ISA_TABLE(ctn__pool);
    const ctn__pool_kernels *k = table[ctn__isa_in_use()];
    switch (t) {
    case CTN_F64: return k + CTN__POOL_F64;
    case CTN_BF16: return k + CTN__POOL_BF16;
    case CTN_F16: return k + CTN__POOL_F16;
    default: return k + CTN__POOL_F32;
    }
}

static size_t slice_bytes(ctn_dtype t, int64_t n)
{
    size_t bytes = (size_t)n * (t == CTN_F64 ? sizeof(double) : sizeof(float));
    return (bytes + CTN__ALIGN - 1) / CTN__ALIGN * CTN__ALIGN;
}

/* ---- maxima of windows ----------------------------------------------------------------------- */

static int64_t volume(const int64_t *size)
{
    return size[0] * size[1] * size[2];
}

void ctn__max_pool(const ctn__windows *w, const void *x, void *y, void *index)
{
    const ctn__pool_kernels *k = kernels(w->dtype);
    const int64_t rows = w->outer * w->out[0] * w->out[1];
#pragma omp parallel for schedule(static) if (rows * w->in[2] * w->inner > PARALLEL_MIN)
    for (int64_t r = 0; r < rows; r++) k->max(w, r, x, y, index);
}

size_t ctn__max_pool_scratch(const ctn__windows *w, int threads)
{
    return w->inner == 1 ? (size_t)threads * slice_bytes(w->dtype, w->in[2]) : 0;
}

void ctn__max_pool_back(const ctn__windows *w, const void *gy, const void *index, void *gx,
                        void *scratch)
{
    const ctn__pool_kernels *k = kernels(w->dtype);
    const int64_t rows = w->outer * w->in[0] * w->in[1];
    const size_t slice = ctn__max_pool_scratch(w, 1);
#pragma omp parallel for schedule(static) if (rows * w->in[2] * w->inner > PARALLEL_MIN)
    for (int64_t r = 0; r < rows; r++)
        k->back(w, r, gy, index, gx, (char *)scratch + (size_t)omp_get_thread_num() * slice);
}

void ctn__max_pool_pick(const ctn__windows *w, const void *x, const void *index, void *y)
{
    const ctn__pool_kernels *k = kernels(w->dtype);
    const int64_t rows = w->outer * w->out[0] * w->out[1];
#pragma omp parallel for schedule(static) if (rows * w->out[2] * w->inner > PARALLEL_MIN)
    for (int64_t r = 0; r < rows; r++) k->pick(w, r, x, index, y);
}

/* ---- linear resampling ----------------------------------------------------------------------- */

/* Builds the matrix, or its transpose: first the lengths of the rows, then the weights. Result i
 * reads row i. `results` is the number of results of the rule. */
static void make_band(ctn__band *b, bool f64, ctn__taps_rule *rule, const int64_t *attr, int d,
                      int64_t results, int64_t rows, bool transposed)
{
    ctn__taps t;
    int64_t total = 0;
    for (int64_t i = 0; i < rows; i++) b->start[i] = b->count[i] = 0;
    for (int64_t o = 0; o < results; o++) {
        rule(attr, d, o, &t);
        for (int64_t k = 0; k < t.count; k++) {
            int64_t r = transposed ? t.start + k : o;
            if (b->count[r]++ == 0) b->start[r] = transposed ? o : t.start;
        }
    }
    for (int64_t i = 0; i < rows; i++) {
        b->at[i] = total;
        total += b->count[i];
    }
    for (int64_t o = 0; o < results; o++) {
        rule(attr, d, o, &t);
        for (int64_t k = 0; k < t.count; k++) {
            int64_t r = transposed ? t.start + k : o, c = transposed ? o : t.start + k;
            int64_t at = b->at[r] + c - b->start[r];
            double weight = k == 0 ? t.first : t.rest;
            if (f64) ((double *)b->w)[at] = weight;
            else ((float *)b->w)[at] = (float)weight;
        }
    }
}

ctn_status ctn__sampling_new(ctn__sampling **out, const ctn__sampling *like, ctn__taps_rule *rule,
                             const int64_t *attr, bool transposed)
{
    int64_t words[3], total = 0, results[3];
    for (int d = 0; d < 3; d++) {
        ctn__taps t;
        results[d] = transposed ? like->in[d] : like->out[d];
        words[d] = 3 * like->out[d];
        for (int64_t o = 0; o < results[d]; o++) {
            rule(attr, d, o, &t);
            words[d] += t.count;
        }
        total += words[d];
    }
    *out = NULL;
    ctn__sampling *s = ctn__malloc(sizeof *s + (size_t)total * sizeof(int64_t));
    if (!s) return CTN_ENOMEM;
    *s = *like;
    int64_t *p = (int64_t *)(s + 1);
    for (int d = 0; d < 3; d++) {
        ctn__band *b = &s->band[d];
        int64_t rows = s->out[d];
        *b = (ctn__band){.start = p, .count = p + rows, .at = p + 2 * rows, .w = p + 3 * rows};
        make_band(b, s->dtype == CTN_F64, rule, attr, d, results[d], rows, transposed);
        p += words[d];
    }
    int64_t fits = ROW_FLOATS / (s->in[2] > 0 ? s->in[2] : 1) / 16 * 16;
    s->width = fits < 16 ? 16 : fits;
    if (s->width > s->inner) s->width = s->inner;
    s->blocks = s->width > 0 ? (s->inner + s->width - 1) / s->width : 0;
    s->slice = slice_bytes(s->dtype, s->in[2] * s->width);
    *out = s;
    return CTN_OK;
}

size_t ctn__sample_scratch(const ctn__sampling *s, int threads)
{
    return (size_t)threads * s->slice;
}

void ctn__sample(const ctn__sampling *s, const void *x, void *y, void *scratch)
{
    const ctn__pool_kernels *k = kernels(s->dtype);
    const int64_t units = s->outer * s->out[0] * s->out[1] * s->blocks;
    const int64_t in = volume(s->in), out = volume(s->out);
#pragma omp parallel for schedule(static) if (s->outer * s->inner * (in > out ? in : out) > \
                                                  PARALLEL_MIN)
    for (int64_t u = 0; u < units; u++)
        k->sample(s, u, x, y, (char *)scratch + (size_t)omp_get_thread_num() * s->slice);
}
