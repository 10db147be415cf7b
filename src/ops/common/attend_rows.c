/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the operands of attention. The kernels compute in f32; operands may be stored in a 16-bit
 * type and have any strides.
 */
#include "ops/common/attend.h"

static void copy_f32(float *to, const float *from, int64_t n, float c)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) to[j] = from[j] * c;
}

static void read_bf16(float *to, const uint16_t *x, int64_t n, int64_t step, float c)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const union {
            uint32_t u;
            float f;
        } v = {.u = (uint32_t)x[j * step] << 16};
        to[j] = v.f * c;
    }
}

/* Rounds to nearest even; a NaN stays one. */
static void write_bf16(uint16_t *to, const float *from, int64_t n, int64_t step, int64_t next,
                       float c)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const union {
            float f;
            uint32_t u;
        } v = {.f = from[j * next] * c};
        const uint32_t even = (v.u + 0x7fffu + (v.u >> 16 & 1)) >> 16, nan = v.u >> 16 | 0x40;
        to[j * step] = (uint16_t)((v.u & 0x7fffffffu) > 0x7f800000u ? nan : even);
    }
}

void ctn__attend_read(float *to, const ctn__attend_in *x, int64_t n, int64_t h, int64_t i,
                      int64_t cols, float c)
{
    const int64_t at = n * x->stride[0] + h * x->stride[1] + i * x->stride[2], step = x->stride[3];
    if (x->type == CTN_BF16) {
        read_bf16(to, (const uint16_t *)x->at + at, cols, step, c);
        return;
    }
    if (x->type != CTN_F32) {
        for (int64_t j = 0; j < cols; j++)
            to[j] = (float)ctn__elem_get(x->at, x->type, at + j * step) * c;
        return;
    }
    const float *from = (const float *)x->at + at;
    if (step == 1) copy_f32(to, from, cols, c);
    else
        for (int64_t j = 0; j < cols; j++) to[j] = from[j * step] * c;
}

void ctn__attend_write(const ctn__attend_out *y, int64_t n, int64_t h, int64_t i, const float *from,
                       int64_t next, int64_t cols, float c)
{
    const int64_t at = n * y->stride[0] + h * y->stride[1] + i * y->stride[2], step = y->stride[3];
    if (y->type == CTN_BF16) {
        write_bf16((uint16_t *)y->at + at, from, cols, step, next, c);
        return;
    }
    if (y->type != CTN_F32) {
        for (int64_t j = 0; j < cols; j++)
            ctn__elem_set(y->at, y->type, at + j * step, (double)(from[j * next] * c));
        return;
    }
    float *to = (float *)y->at + at;
    if (step == 1 && next == 1) copy_f32(to, from, cols, c);
    else
        for (int64_t j = 0; j < cols; j++) to[j * step] = from[j * next] * c;
}
