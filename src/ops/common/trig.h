/* SPDX-License-Identifier: Apache-2.0
 *
 * Trigonometric and hyperbolic functions of one float and their inverses, in the manner of vmath.h:
 * no branches, IEEE operations only. Relative errors are below 3e-7. The polynomials are fitted.
 */
#ifndef CTN_OPS_COMMON_TRIG_H
#define CTN_OPS_COMMON_TRIG_H

#include "ops/common/vmath.h"

/* ---- sine, cosine, tangent ------------------------------------------------------------------- */

/* The limit of |x| below. The quotient n then has less than 21 bits. */
#define CTN__TURN_LIMIT 1e6f

/* x = n pi/2 + r, |r| <= pi/4. Returns r; *quarter = n. In double, because pi/2 in two parts, of
 * which the first has 32 bits, makes n pi/2 exact to 80 bits. No float is so close to a multiple
 * of pi/2 that r loses digits. */
CTN__VECTOR float ctn__turn(float x, int32_t *quarter)
{
    const double shift = 6755399441055744.0; /* adding 1.5 * 2^52 rounds to an integer */
    const double n = ((double)x * 0.63661977236758134 + shift) - shift;
    *quarter = (int32_t)n;
    return (float)((double)x - n * 1.5707963267341256 - n * 6.077100506506192e-11);
}

CTN__VECTOR float ctn__sin_near(float r)
{
    const float z = r * r;
    float p = -1.95848911e-4f;
    p = p * z + 8.33273430e-3f;
    p = p * z - 1.66666646e-1f;
    return p * z * r + r;
}

CTN__VECTOR float ctn__cos_near(float r)
{
    const float z = r * r;
    float p = 2.45449360e-5f;
    p = p * z - 1.38882890e-3f;
    p = p * z + 4.16666646e-2f;
    return p * (z * z) - 0.5f * z + 1.0f;
}

/* The sine of r plus this many quarter turns. */
CTN__VECTOR float ctn__sin_turned(float r, int32_t quarter)
{
    const float s = ctn__sin_near(r), c = ctn__cos_near(r), v = quarter & 1 ? c : s;
    return ctn__float_of(ctn__bits_of(v) ^ (uint32_t)(quarter & 2) << 30);
}

CTN__VECTOR float ctn__sinf(float x)
{
    int32_t quarter;
    const float r = ctn__turn(x, &quarter);
    return ctn__sin_turned(r, quarter);
}

CTN__VECTOR float ctn__cosf(float x)
{
    int32_t quarter;
    const float r = ctn__turn(x, &quarter);
    return ctn__sin_turned(r, quarter + 1);
}

CTN__VECTOR float ctn__tanf(float x)
{
    int32_t quarter;
    const float r = ctn__turn(x, &quarter), s = ctn__sin_near(r), c = ctn__cos_near(r);
    const float num = quarter & 1 ? -c : s, den = quarter & 1 ? s : c;
    return num / den;
}

/* The loop of such a function in a kernel. Elements beyond the limit, which are rare, take the
 * function `far` of the C library. An element's result does not depend on its neighbours. */
#define CTN__MAP_TURNS(a, near, far)                                                            \
    do {                                                                                        \
        const float *x_ = (a)->in[0];                                                           \
        float *y_ = (a)->out[0];                                                                \
        for (int64_t at_ = 0; at_ < n; at_ += CTN__STRIDE) {                                    \
            const int64_t m_ = n - at_ < CTN__STRIDE ? n - at_ : CTN__STRIDE;                   \
            const float *p_ = x_ + at_;                                                         \
            float *q_ = y_ + at_;                                                               \
            int beyond_ = 0;                                                                    \
            for (int64_t k_ = 0; k_ < m_; k_++) beyond_ |= !(fabsf(p_[k_]) <= CTN__TURN_LIMIT); \
            if (!beyond_) {                                                                     \
                CTN__SIMD(k_, 0, m_, q_[k_] = near(p_[k_]);)                                    \
                continue;                                                                       \
            }                                                                                   \
            for (int64_t k_ = 0; k_ < m_; k_++)                                                 \
                q_[k_] = fabsf(p_[k_]) <= CTN__TURN_LIMIT ? near(p_[k_]) : far(p_[k_]);         \
        }                                                                                       \
    } while (0)

/* ---- inverse functions ----------------------------------------------------------------------- */

/* With a = |x|, below tan(pi/8) the polynomial of a, above tan(3 pi/8) that of -1/a plus pi/2,
 * between them that of (a-1)/(a+1) plus pi/4. */
CTN__VECTOR float ctn__arctanf(float x)
{
    const float a = fabsf(x);
    const float num = a > 2.41421356f ? -1.0f : a > 0.414213562f ? a - 1.0f : a;
    const float den = a > 2.41421356f ? a : a > 0.414213562f ? a + 1.0f : 1.0f;
    const float base = a > 2.41421356f ? 1.57079633f : a > 0.414213562f ? 0.785398163f : 0.0f;
    const float r = num / den, z = r * r;
    float p = -6.45159726e-2f;
    p = p * z + 1.07436316e-1f;
    p = p * z - 1.42639464e-1f;
    p = p * z + 1.99995402e-1f;
    p = p * z - 3.33333318e-1f;
    return copysignf(base + (p * z * r + r), x);
}

/* The angle of (x,y): the arctangent of the smaller over the larger of |x| and |y|, mirrored at the
 * diagonal and at the axes. */
CTN__VECTOR float ctn__arctan2f(float y, float x)
{
    const float a = fabsf(x), b = fabsf(y), small = b > a ? a : b, large = b > a ? b : a;
    float t = small / large;
    t = (small == 0.0f) & (large == 0.0f) ? 0.0f : t;
    t = (small > FLT_MAX) & (large > FLT_MAX) ? 1.0f : t;
    float r = ctn__arctanf(t);
    r = b > a ? 1.57079633f - r : r;
    r = (int32_t)ctn__bits_of(x) < 0 ? 3.14159265f - r : r;
    return copysignf(r, y);
}

/* arcsin s for s = sqrt(z) <= 1/2. */
CTN__VECTOR float ctn__arcsin_near(float s, float z)
{
    float p = 3.36908472e-2f;
    p = p * z + 1.71492384e-2f;
    p = p * z + 3.11006627e-2f;
    p = p * z + 4.45994015e-2f;
    p = p * z + 7.50009454e-2f;
    p = p * z + 1.66666663e-1f;
    return p * z * s + s;
}

/* Above 1/2, arcsin a = pi/2 - 2 arcsin(sqrt((1-a)/2)). */
CTN__VECTOR float ctn__arcsinf(float x)
{
    const float a = fabsf(x), z = a > 0.5f ? 0.5f * (1.0f - a) : x * x;
    const float s = a > 0.5f ? sqrtf(z) : a, p = ctn__arcsin_near(s, z);
    return copysignf(a > 0.5f ? 1.57079633f - 2.0f * p : p, x);
}

CTN__VECTOR float ctn__arccosf(float x)
{
    const float a = fabsf(x), z = a > 0.5f ? 0.5f * (1.0f - a) : x * x;
    const float s = a > 0.5f ? sqrtf(z) : x, p = ctn__arcsin_near(s, z);
    const float outer = x < 0.0f ? 3.14159265f - 2.0f * p : 2.0f * p;
    return a > 0.5f ? outer : 1.57079633f - p;
}

/* ---- hyperbolic functions -------------------------------------------------------------------- */

CTN__VECTOR double ctn__exp_limited(float a)
{
    return ctn__exp_fine((double)(a > 100.0f ? 100.0f : a)); /* the result in f32 is infinite */
}

/* A polynomial below 1, where the difference of exponentials cancels. */
CTN__VECTOR float ctn__sinhf(float x)
{
    const float a = fabsf(x), z = x * x;
    const double e = ctn__exp_limited(a);
    float p = 2.80628026e-6f;
    p = p * z + 1.98381020e-4f;
    p = p * z + 8.33333968e-3f;
    p = p * z + 1.66666666e-1f;
    p = p * z * x + x;
    return a < 1.0f ? p : copysignf((float)(0.5 * (e - 1.0 / e)), x);
}

CTN__VECTOR float ctn__coshf(float x)
{
    const double e = ctn__exp_limited(fabsf(x));
    return (float)(0.5 * (e + 1.0 / e));
}

/* log(a + sqrt(a^2 + 1)) without cancellation; log(2a) where a^2 would overflow. */
CTN__VECTOR float ctn__arcsinhf(float x)
{
    const float a = fabsf(x), w = a > 1e9f ? 1.0f : a;
    const float t = w + w * w / (1.0f + sqrtf(w * w + 1.0f));
    const float y = ctn__log1p_anyf(a > 1e9f ? a : t);
    return copysignf(a > 1e9f ? y + 0.693147181f : y, x);
}

CTN__VECTOR float ctn__arccoshf(float x)
{
    const float t = x > 1e9f ? 1.0f : x - 1.0f, u = t + sqrtf(t * (t + 2.0f));
    const float y = ctn__log1p_anyf(x > 1e9f ? x : u);
    return x >= 1.0f ? (x > 1e9f ? y + 0.693147181f : y) : NAN;
}

CTN__VECTOR float ctn__arctanhf(float x)
{
    const float a = fabsf(x);
    return copysignf(0.5f * ctn__log1p_anyf(2.0f * a / (1.0f - a)), x);
}

#endif
