/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loops of resampling in plain C, included by resample.c and resample_avx2.c, which set
 * the target and RESAMPLE_TABLE, the name of the table defined here.
 *
 * Invariant: only IEEE operations, taps summed in order, and no contraction to FMA (the build
 * sets -ffp-contract=off), so that every instruction set gives the same pixels.
 */
#include <string.h>

#include "data/image/image.h"

#define ALWAYS static inline __attribute__((always_inline))

/* Adds m taps at once. m is a compile-time constant, so the sums stay in registers. */
ALWAYS void add_rows(float *restrict row, const uint8_t *const *src, const float *weight, int m,
                     bool fresh, int64_t n)
{
    const uint8_t *restrict s0 = src[0], *restrict s1 = m > 1 ? src[1] : s0;
    const uint8_t *restrict s2 = m > 2 ? src[2] : s0, *restrict s3 = m > 3 ? src[3] : s0;
    const float w0 = weight[0], w1 = m > 1 ? weight[1] : 0;
    const float w2 = m > 2 ? weight[2] : 0, w3 = m > 3 ? weight[3] : 0;
    for (int64_t i = 0; i < n; i++) {
        float a = fresh ? w0 * (float)s0[i] : row[i] + w0 * (float)s0[i];
        if (m > 1) a += w1 * (float)s1[i];
        if (m > 2) a += w2 * (float)s2[i];
        if (m > 3) a += w3 * (float)s3[i];
        row[i] = a;
    }
}

static void vertical(float *row, const uint8_t *const *src, const float *weight, int64_t taps,
                     int64_t n)
{
    bool fresh = true;
    for (; taps > 4; taps -= 4, src += 4, weight += 4, fresh = false)
        if (fresh) add_rows(row, src, weight, 4, true, n);
        else add_rows(row, src, weight, 4, false, n);
    if (fresh && taps == 1) add_rows(row, src, weight, 1, true, n);
    else if (fresh && taps == 2) add_rows(row, src, weight, 2, true, n);
    else if (fresh && taps == 3) add_rows(row, src, weight, 3, true, n);
    else if (fresh) add_rows(row, src, weight, 4, true, n);
    else if (taps == 1) add_rows(row, src, weight, 1, false, n);
    else if (taps == 2) add_rows(row, src, weight, 2, false, n);
    else if (taps == 3) add_rows(row, src, weight, 3, false, n);
    else add_rows(row, src, weight, 4, false, n);
}

typedef float four __attribute__((vector_size(16)));

/* Loads red, green, blue and the next pixel's red, which is not used, as one vector. */
ALWAYS void rgb_row(float *out, const float *row, const int32_t *first, const float *weight,
                    int64_t taps, int64_t n)
{
    for (int64_t x = 0; x < n; x++, weight += taps) {
        const float *p = row + (int64_t)first[x] * 3;
        four sum, v;
        memcpy(&v, p, sizeof v);
        sum = weight[0] * v;
        for (int64_t k = 1; k < taps; k++) {
            memcpy(&v, p + 3 * k, sizeof v);
            sum += weight[k] * v;
        }
        memcpy(out + 4 * x, &sum, sizeof sum);
    }
}

static void horizontal(float *out, const float *row, const int32_t *first, const float *weight,
                       int64_t taps, int64_t n, int channels)
{
    if (channels == 1) {
        for (int64_t x = 0; x < n; x++, weight += taps) {
            float sum = 0;
            for (int64_t k = 0; k < taps; k++) sum += weight[k] * row[first[x] + k];
            out[x] = sum;
        }
        return;
    }
    switch (taps) {
    case 1: rgb_row(out, row, first, weight, 1, n); break;
    case 2: rgb_row(out, row, first, weight, 2, n); break;
    case 3: rgb_row(out, row, first, weight, 3, n); break;
    case 4: rgb_row(out, row, first, weight, 4, n); break;
    case 5: rgb_row(out, row, first, weight, 5, n); break;
    default: rgb_row(out, row, first, weight, taps, n); break;
    }
}

static void planes(float *const *plane, const float *in, int64_t n, int channels,
                   const float *scale, const float *shift)
{
    const float a = scale[0], b = shift[0];
    float *restrict p = plane[0];
    if (channels == 1) {
        for (int64_t x = 0; x < n; x++) p[x] = in[x] * a + b;
        return;
    }
    float *restrict q = plane[1], *restrict r = plane[2];
    const float a1 = scale[1], b1 = shift[1], a2 = scale[2], b2 = shift[2];
    for (int64_t x = 0; x < n; x++) {
        p[x] = in[4 * x] * a + b;
        q[x] = in[4 * x + 1] * a1 + b1;
        r[x] = in[4 * x + 2] * a2 + b2;
    }
}

const ctn__resample_kernels RESAMPLE_TABLE = {vertical, horizontal, planes};
