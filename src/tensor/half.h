/* SPDX-License-Identifier: Apache-2.0
 *
 * 16-bit floats in loops: the conversions of tensor/elem.c without branches, so that loops can be
 * vectorised. They give the same bits as those in elem.c.
 */
#ifndef CTN_TENSOR_HALF_H
#define CTN_TENSOR_HALF_H

#include <stdint.h>
#include <string.h>

static inline float ctn__float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t ctn__bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float ctn__bf16_get(uint16_t x)
{
    return ctn__float_of((uint32_t)x << 16);
}

static inline uint16_t ctn__bf16_put(float x)
{
    uint32_t u = ctn__bits_of(x);
    uint32_t even = u + 0x7fffu + ((u >> 16) & 1u);
    uint32_t quiet = u | 0x400000u; /* rounding could carry a NaN into infinity */
    return (uint16_t)(((u & 0x7fffffffu) > 0x7f800000u ? quiet : even) >> 16);
}

static inline float ctn__f16_get(uint16_t x)
{
    uint32_t h = x, e = h & 0x7c00u, m = h & 0x3ffu;
    uint32_t small = ctn__bits_of((float)(int32_t)m * 0x1p-24f); /* never an f32 subnormal */
    uint32_t large = (e == 0x7c00u ? 0x7f800000u : (e << 13) + (112u << 23)) | m << 13;
    return ctn__float_of((h & 0x8000u) << 16 | (e == 0 ? small : large));
}

static inline uint16_t ctn__f16_put(float x)
{
    uint32_t u = ctn__bits_of(x), a = u & 0x7fffffffu;
    uint32_t small = ctn__bits_of(ctn__float_of(a) + 0.5f) - 0x3f000000u; /* the sum rounds */
    uint32_t large = (a + 0xc8000fffu + ((a >> 13) & 1u)) >> 13; /* rebias by -112 and round */
    uint32_t r = a < 0x38800000u ? small : large;
    r = a >= 0x477ff000u ? 0x7c00u : r;
    r = a > 0x7f800000u ? 0x7e00u : r;
    return (uint16_t)((u >> 16 & 0x8000u) | r);
}

#endif
