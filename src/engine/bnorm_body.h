/* SPDX-License-Identifier: Apache-2.0
 *
 * The fast batch normalisation kernels in plain C. bnorm.c, bnorm_avx2.c and bnorm_avx512.c include
 * this file once each and set the target and BNORM_TABLE, the name of the table defined here. Each
 * kernel is one inline function of its flags; the switches at the end turn every combination of
 * flags into a loop without branches.
 *
 * Invariant: columns do not mix, and every column sees the same IEEE operations in the same order,
 * so all instruction sets agree bitwise (the build uses -ffp-contract=off). Results may overwrite
 * operands, because each element is read before it is written.
 */
#include <string.h>

#include "engine/bnorm.h"

#define INLINE static inline __attribute__((always_inline))

INLINE float get(const void *p, int64_t i, int flags)
{
    if (!(flags & CTN__BNORM_LOW)) return ((const float *)p)[i];
    uint32_t u = (uint32_t)((const uint16_t *)p)[i] << 16;
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

INLINE void put(void *p, int64_t i, float v, int flags)
{
    if (!(flags & CTN__BNORM_LOW)) {
        ((float *)p)[i] = v;
        return;
    }
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    uint32_t even = u + 0x7fffu + ((u >> 16) & 1u);
    uint32_t quiet = u | 0x400000u; /* rounding could carry a NaN into infinity */
    ((uint16_t *)p)[i] = (uint16_t)(((u & 0x7fffffffu) > 0x7f800000u ? quiet : even) >> 16);
}

/* Element i of g, in column j; x is element i of the operand x. */
INLINE float gradient(const ctn__bnorm_span *p, int64_t i, int64_t j, float x, int flags)
{
    float g = get(p->gy, i, flags);
    if (flags & CTN__BNORM_SECOND) g += get(p->gy2, i, flags);
    if (flags & CTN__BNORM_RELU) {
        float y = get(p->y, i, flags);
        g = y > 0 ? g : 0;
    }
    if (flags & CTN__BNORM_BY_X) {
        float y = x * p->ya[j] + p->yb[j]; /* same formula as in apply */
        g = y > 0 ? g : 0;
    }
    return g;
}

INLINE void stats(const ctn__bnorm_span *p, int flags, float *shift, float *s, float *q)
{
    const void *x = p->x;
    const int64_t w = p->width, ld = p->ld;
    int64_t r = 1;
#pragma omp simd
    for (int64_t j = 0; j < w; j++) {
        shift[j] = get(x, j, flags);
        s[j] = q[j] = 0;
    }
    for (; r + 4 <= p->rows; r += 4) { /* four rows per load and store of the sums */
        const int64_t o = r * ld;
#pragma omp simd
        for (int64_t j = 0; j < w; j++) {
            float k = shift[j], a = get(x, o + j, flags) - k, b = get(x, o + ld + j, flags) - k;
            float c = get(x, o + 2 * ld + j, flags) - k, d = get(x, o + 3 * ld + j, flags) - k;
            s[j] += (a + b) + (c + d);
            q[j] += (a * a + b * b) + (c * c + d * d);
        }
    }
    for (; r < p->rows; r++) {
        const int64_t o = r * ld;
#pragma omp simd
        for (int64_t j = 0; j < w; j++) {
            float a = get(x, o + j, flags) - shift[j];
            s[j] += a;
            q[j] += a * a;
        }
    }
}

INLINE void reduce(const ctn__bnorm_span *given, int flags, float *s, float *q)
{
    const ctn__bnorm_span v = *given; /* a local copy, which stores cannot alias */
    const float *mean = v.a;
    const int64_t w = v.width;
    memset(s, 0, (size_t)w * sizeof *s);
    memset(q, 0, (size_t)w * sizeof *q);
    /* One row at a time, because there are up to five streams of memory. */
    for (int64_t r = 0; r < v.rows; r++) {
        const int64_t o = r * v.ld;
#pragma omp simd
        for (int64_t j = 0; j < w; j++) {
            float x = get(v.x, o + j, flags), g = gradient(&v, o + j, j, x, flags);
            if (flags & CTN__BNORM_WRITE) put(v.out, o + j, g, flags);
            s[j] += g;
            q[j] += g * (x - mean[j]);
        }
    }
}

INLINE void apply(const ctn__bnorm_span *given, int flags)
{
    const ctn__bnorm_span v = *given;
    const float *a = v.a, *b = v.b;
    const int64_t w = v.width;
    for (int64_t r = 0; r < v.rows; r++) {
        const int64_t o = r * v.ld;
#pragma omp simd
        for (int64_t j = 0; j < w; j++) {
            float t = get(v.x, o + j, flags) * a[j] + b[j];
            if (flags & CTN__BNORM_SECOND) t += get(v.residual, o + j, flags);
            if (flags & CTN__BNORM_RELU) t = t < 0 ? 0 : t; /* NaN stays NaN, as in relu */
            put(v.out, o + j, t, flags);
        }
    }
}

INLINE void grad_apply(const ctn__bnorm_span *given, int flags)
{
    const ctn__bnorm_span v = *given;
    const float *a = v.a, *b = v.b, *c = v.c;
    const int64_t w = v.width;
    for (int64_t r = 0; r < v.rows; r++) {
        const int64_t o = r * v.ld;
#pragma omp simd
        for (int64_t j = 0; j < w; j++) {
            float x = get(v.x, o + j, flags), g = gradient(&v, o + j, j, x, flags);
            put(v.out, o + j, g * a[j] + (x * b[j] + c[j]), flags);
        }
    }
}

/* Converts the sums of n rows from relative to shift to relative to base, and adds in double. */
static void gather(int64_t w, double n, const float *base, const float *shift, const float *s,
                   const float *q, double *sum, double *square)
{
#pragma omp simd
    for (int64_t j = 0; j < w; j++) {
        double e = (double)shift[j] - (double)base[j], t = (double)s[j];
        sum[j] += t + n * e;
        square[j] += (double)q[j] + e * (2 * t + n * e);
    }
}

/* f with and without LOW and SECOND, which reduce, apply and grad_apply all support. */
#define EACH4(call, f)                                                  \
    case (f): call(f); break;                                           \
    case (f) | CTN__BNORM_LOW: call((f) | CTN__BNORM_LOW); break;       \
    case (f) | CTN__BNORM_SECOND: call((f) | CTN__BNORM_SECOND); break; \
    case (f) | CTN__BNORM_LOW | CTN__BNORM_SECOND:                      \
        call((f) | CTN__BNORM_LOW | CTN__BNORM_SECOND);                 \
        break

static void stats_by_flags(const ctn__bnorm_span *p, int flags, float *shift, float *s, float *q)
{
    if (flags & CTN__BNORM_LOW) stats(p, CTN__BNORM_LOW, shift, s, q);
    else stats(p, 0, shift, s, q);
}

static void reduce_by_flags(const ctn__bnorm_span *p, int flags, float *s, float *q)
{
#define CALL(f) reduce(p, f, s, q)
    switch (flags) {
        EACH4(CALL, 0);
        EACH4(CALL, CTN__BNORM_RELU);
        EACH4(CALL, CTN__BNORM_BY_X);
        EACH4(CALL, CTN__BNORM_WRITE);
        EACH4(CALL, CTN__BNORM_WRITE | CTN__BNORM_RELU);
        EACH4(CALL, CTN__BNORM_WRITE | CTN__BNORM_BY_X);
    }
#undef CALL
}

static void apply_by_flags(const ctn__bnorm_span *p, int flags)
{
#define CALL(f) apply(p, f)
    switch (flags) {
        EACH4(CALL, 0);
        EACH4(CALL, CTN__BNORM_RELU);
    }
#undef CALL
}

static void grad_apply_by_flags(const ctn__bnorm_span *p, int flags)
{
#define CALL(f) grad_apply(p, f)
    switch (flags) {
        EACH4(CALL, 0);
        EACH4(CALL, CTN__BNORM_RELU);
        EACH4(CALL, CTN__BNORM_BY_X);
    }
#undef CALL
}

const ctn__bnorm_kernels BNORM_TABLE = {
    .stats = stats_by_flags,
    .gather = gather,
    .reduce = reduce_by_flags,
    .apply = apply_by_flags,
    .grad_apply = grad_apply_by_flags,
};
