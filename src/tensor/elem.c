/* SPDX-License-Identifier: Apache-2.0
 *
 * Single elements and strided copies. Conversions round to nearest even. The copies serve the edges
 * of the library (user memory, printing); the hot path uses kernels of the engine.
 */
#include "tensor/tensor.h"

float ctn__bf16_to_f32(uint16_t x)
{
    uint32_t u = (uint32_t)x << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

uint16_t ctn__f32_to_bf16(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40); /* quiet NaN */
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

float ctn__f16_to_f32(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, e = (x >> 10) & 31, m = x & 1023, u;
    float f;
    if (e == 0) { /* zero and subnormals: m * 2^-24 */
        f = (float)m * 5.9604644775390625e-8f;
        memcpy(&u, &f, sizeof u);
        u |= sign;
    } else {
        u = sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | m << 13;
    }
    memcpy(&f, &u, sizeof f);
    return f;
}

uint16_t ctn__f32_to_f16(float x)
{
    uint32_t u, a;
    memcpy(&u, &x, sizeof u);
    uint16_t sign = (uint16_t)((u >> 16) & 0x8000);
    a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00);
    if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00); /* rounds to infinity */
    if (a < 0x38800000u) {                                  /* subnormal: adding 0.5 rounds */
        float f;
        memcpy(&f, &a, sizeof f);
        f += 0.5f;
        memcpy(&a, &f, sizeof a);
        return (uint16_t)(sign | (a - 0x3f000000u));
    }
    a += 0xc8000fffu + ((a >> 13) & 1); /* rebias by -112 and round */
    return (uint16_t)(sign | a >> 13);
}

double ctn__elem_get(const void *p, ctn_dtype t, int64_t i)
{
    switch (t) {
    case CTN_F32: return ((const float *)p)[i];
    case CTN_F64: return ((const double *)p)[i];
    case CTN_BF16: return ctn__bf16_to_f32(((const uint16_t *)p)[i]);
    case CTN_F16: return ctn__f16_to_f32(((const uint16_t *)p)[i]);
    case CTN_I64: return (double)((const int64_t *)p)[i];
    case CTN_I32: return ((const int32_t *)p)[i];
    case CTN_U8:
    case CTN_BOOL: return ((const uint8_t *)p)[i];
    }
    return 0;
}

void ctn__elem_set(void *p, ctn_dtype t, int64_t i, double v)
{
    switch (t) {
    case CTN_F32: ((float *)p)[i] = (float)v; break;
    case CTN_F64: ((double *)p)[i] = v; break;
    case CTN_BF16: ((uint16_t *)p)[i] = ctn__f32_to_bf16((float)v); break;
    case CTN_F16: ((uint16_t *)p)[i] = ctn__f32_to_f16((float)v); break;
    case CTN_I64: ((int64_t *)p)[i] = ctn__to_i64(v); break;
    case CTN_I32: ((int32_t *)p)[i] = (int32_t)ctn__within(v, INT32_MIN, INT32_MAX); break;
    case CTN_U8: ((uint8_t *)p)[i] = (uint8_t)ctn__within(v, 0, UINT8_MAX); break;
    case CTN_BOOL: ((uint8_t *)p)[i] = v != 0; break;
    }
}

/* One dimension at a time; the innermost run is a memcpy when both sides are dense there. */
static void copy_dim(char *dst, const ctn_desc *dd, const char *src, const ctn_desc *sd, int axis,
                     size_t es)
{
    if (axis == dd->ndim) {
        memcpy(dst, src, es);
        return;
    }
    int64_t n = dd->dim[axis];
    int64_t ds = dd->stride[axis] * (int64_t)es, ss = sd->stride[axis] * (int64_t)es;
    if (axis == dd->ndim - 1 && ds == (int64_t)es && ss == (int64_t)es) {
        memcpy(dst, src, (size_t)n * es);
        return;
    }
    for (int64_t i = 0; i < n; i++) copy_dim(dst + i * ds, dd, src + i * ss, sd, axis + 1, es);
}

void ctn__copy_strided(void *dst, const ctn_desc *dd, const void *src, const ctn_desc *sd)
{
    if (ctn__count(dd) == 0) return;
    if (ctn__is_plain(dd) && ctn__is_plain(sd)) memcpy(dst, src, ctn__bytes(dd));
    else copy_dim(dst, dd, src, sd, 0, ctn_dtype_size(dd->dtype));
}

void ctn__zero(void *p, size_t bytes, int threads)
{
    const size_t worth = (size_t)1 << 20;
    if (threads < 2 || bytes < worth) {
        memset(p, 0, bytes);
        return;
    }
    const size_t part = (bytes / (size_t)threads + 4095) / 4096 * 4096;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++) {
        const size_t begin = (size_t)t * part, end = begin + part < bytes ? begin + part : bytes;
        if (begin < end) memset((char *)p + begin, 0, end - begin);
    }
}
