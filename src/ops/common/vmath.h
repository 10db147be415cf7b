/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of one float, written without branches so that loops over them become vector code on
 * any processor. They use IEEE operations only, so the result does not depend on the vector
 * length. They are used where oneDNN's function has a relative error above about 1e-6, loses NaN
 * (exp), or does not exist (gradients). Relative errors against libm in double are below 3e-7
 * unless a comment says otherwise. NaN stays NaN.
 */
#ifndef CTN_OPS_COMMON_VMATH_H
#define CTN_OPS_COMMON_VMATH_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tensor/half.h"

/* Always inlined, because a call would prevent vectorization. */
#define CTN__VECTOR static inline __attribute__((always_inline))

/* x = n log 2 + r; e^x = 2^n e^r, e^r by Cephes' polynomial. Returns 0 where the result would be
 * subnormal. */
CTN__VECTOR float ctn__expf(float x)
{
    /* 1.5 * 2^23: adding it rounds to an integer, which is in the low bits. */
    const float shift = 12582912.0f;
    float t = x * 1.44269504f + shift, n = t - shift;
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    /* 2^n in two factors, because n reaches 128 */
    int32_t k = (int32_t)(ctn__bits_of(t) - 0x4b400000u), h = k >> 1;
    float y =
        p * ctn__float_of((uint32_t)(h + 127) << 23) * ctn__float_of((uint32_t)(k - h + 127) << 23);
    y = x > 88.7228394f ? INFINITY : y;
    return x < -87.3365402f ? 0.0f : y;
}

/* e^x for |x| <= 700 in double arithmetic, with a relative error of 1e-9. It handles half as many
 * elements at a time, so it is for results that must be as exact as f32 allows. */
CTN__VECTOR double ctn__exp_wide(double x)
{
    /* 1.5 * 2^52: adding it rounds to an integer, which is in the low bits. */
    const double shift = 6755399441055744.0;
    const double t = x * 1.4426950408889634 + shift;
    const double r = x - (t - shift) * 0.6931471805599453;
    double p = 2.48015873015873e-5;
    p = p * r + 1.984126984126984e-4;
    p = p * r + 1.388888888888889e-3;
    p = p * r + 8.333333333333333e-3;
    p = p * r + 4.166666666666667e-2;
    p = p * r + 1.666666666666667e-1;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t u;
    memcpy(&u, &t, sizeof u);
    u = (u + 1023) << 52; /* 2^n */
    double scale;
    memcpy(&scale, &u, sizeof scale);
    return p * scale;
}

/* The same for any x <= 700; 0 below -87. */
CTN__VECTOR double ctn__exp_fine(double x)
{
    const double y = ctn__exp_wide(x);
    return x < -87.0 ? 0.0 : y;
}

/* x = 2^n (1 + f), 1 + f in [sqrt(1/2), sqrt 2). Returns f. */
CTN__VECTOR float ctn__log_split(float x, float *n)
{
    float small = x < FLT_MIN ? 8388608.0f : 1.0f; /* 2^23 makes subnormals normal */
    uint32_t u = ctn__bits_of(x * small);
    int32_t e = (int32_t)(u - 0x3f3504f3u) >> 23;
    *n = (float)e - (small > 1.0f ? 23.0f : 0.0f);
    return ctn__float_of(u - ((uint32_t)e << 23)) - 1.0f;
}

/* Cephes' polynomial: (log(1 + f) - f + f^2/2) / f^3. */
CTN__VECTOR float ctn__log_poly(float f)
{
    float p = 7.0376836292e-2f;
    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    return p * f + 3.3333331174e-1f;
}

/* y, which is the logarithm of an ordinary x, or what it is at the edges. */
CTN__VECTOR float ctn__log_edges(float x, float y)
{
    y = x > FLT_MAX ? INFINITY : y;
    y = x == 0.0f ? -INFINITY : y;
    return x >= 0.0f ? y : NAN;
}

CTN__VECTOR float ctn__logf(float x)
{
    float n, f = ctn__log_split(x, &n), z = f * f;
    float y = ctn__log_poly(f) * f * z - n * 2.12194440e-4f - 0.5f * z;
    return ctn__log_edges(x, n * 0.693359375f + (f + y));
}

/* The logarithm to another base, from those of 2 and of e. That of 2 is hi + lo, where n hi is
 * exact, so that powers of the base give integers. */
CTN__VECTOR float ctn__log_basef(float x, float hi, float lo, float of_e)
{
    float n, f = ctn__log_split(x, &n), z = f * f;
    float y = ctn__log_poly(f) * f * z - 0.5f * z;
    return ctn__log_edges(x, n * hi + (n * lo + (f + y) * of_e));
}

/* log(1 + e) for e in [0, 1]; the rounding error of 1 + e is corrected to first order. */
CTN__VECTOR float ctn__log1pf(float e)
{
    float u = 1.0f + e;
    return ctn__logf(u) + (e - (u - 1.0f)) / u;
}

/* The same for any e. */
CTN__VECTOR float ctn__log1p_anyf(float e)
{
    float u = 1.0f + e, y = ctn__logf(u), z = (e - (u - 1.0f)) / u;
    return fabsf(y) <= FLT_MAX ? y + z : y;
}

/* e^x - 1; a Taylor polynomial near 0, where the difference would cancel. */
CTN__VECTOR float ctn__expm1f(float x)
{
    float p = 2.48015873e-5f;
    p = p * x + 1.98412698e-4f;
    p = p * x + 1.38888889e-3f;
    p = p * x + 8.33333333e-3f;
    p = p * x + 4.16666667e-2f;
    p = p * x + 1.66666667e-1f;
    p = p * x + 0.5f;
    p = p * (x * x) + x;
    float y = ctn__expf(x) - 1.0f;
    return fabsf(x) < 0.5f ? p : y;
}

/* 1 / (1 + e^-x) */
CTN__VECTOR float ctn__sigmoidf(float x)
{
    return 1.0f / (1.0f + ctn__expf(-x));
}

/* Cephes' polynomial near 0, where the quotient would cancel. */
CTN__VECTOR float ctn__tanhf(float x)
{
    const float a = fabsf(x), z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    p = p * z * x + x;
    float y = 1.0f - 2.0f / (ctn__expf(2.0f * a) + 1.0f);
    y = x < 0.0f ? -y : y;
    return a < 0.625f ? p : y;
}

static inline double ctn__sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* erfc(z) = t exp(-z^2) Q(t), t = 1/(1 + z/2), for z >= 0. This is Q of degree 8, with an error of
 * 4e-8. */
CTN__VECTOR float ctn__erfc_polyf(float t)
{
    float q = -0.0588909136f;
    q = q * t + 0.283702596f;
    q = q * t - 0.485384909f;
    q = q * t + 0.275979400f;
    q = q * t - 0.0251784422f;
    q = q * t + 0.202070111f;
    q = q * t + 0.243260949f;
    q = q * t + 0.282353491f;
    return q * t + 0.282087676f;
}

/* erfc(z) for z >= 0 in double arithmetic, with a relative error of 7e-9; 0 where it is below the
 * range of f32. Q of degree 10 is fitted to t in 0.158 to 1. */
CTN__VECTOR double ctn__erfc_fine(double z)
{
    double t = 1.0 / (1.0 + 0.5 * z), q = 0.033804961830065147;
    q = q * t - 0.18007139578398043;
    q = q * t + 0.35478951040907976;
    q = q * t - 0.25268217609314334;
    q = q * t - 0.054150700698742859;
    q = q * t + 0.053780569900844992;
    q = q * t + 0.047960774250034283;
    q = q * t + 0.18728143991668261;
    q = q * t + 0.24492577859652199;
    q = q * t + 0.28227344822904334;
    q = q * t + 0.28208779167356907;
    return t * ctn__exp_fine(-z * z) * q;
}

CTN__VECTOR float ctn__erfcf(float x)
{
    const double tail = ctn__erfc_fine(fabs((double)x));
    return (float)(x < 0.0f ? 2.0 - tail : tail);
}

/* A fitted polynomial below 1, 1 - erfc above. */
CTN__VECTOR float ctn__erff(float x)
{
    const float a = fabsf(x), z = x * x, t = 1.0f / (1.0f + 0.5f * a);
    float p = 7.87587506e-5f;
    p = p * z - 8.01686429e-4f;
    p = p * z + 5.18908742e-3f;
    p = p * z - 2.68542120e-2f;
    p = p * z + 1.12835947e-1f;
    p = p * z - 3.76126267e-1f;
    p = (p * z + 1.28379166e-1f) * x + x;
    const float y = 1.0f - t * ctn__expf(-z) * ctn__erfc_polyf(t);
    return a < 1.0f ? p : copysignf(y, x);
}

/* The normal distribution function, erfc(-x/sqrt 2) / 2. In the tail the rounding of x^2 adds an
 * error of x^2 * 6e-8; the second function has none. */
CTN__VECTOR float ctn__normcdff(float x)
{
    float z = fabsf(x) * 0.707106781f, t = 1.0f / (1.0f + 0.5f * z);
    float tail = 0.5f * (t * ctn__expf(-0.5f * x * x) * ctn__erfc_polyf(t));
    return x < 0.0f ? tail : 1.0f - tail;
}

CTN__VECTOR float ctn__normcdf_finef(float x)
{
    const double tail = 0.5 * ctn__erfc_fine(fabs((double)x) * 0.70710678118654752440);
    return (float)(x < 0.0f ? tail : 1.0 - tail);
}

static inline double ctn__normcdf(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

#endif
