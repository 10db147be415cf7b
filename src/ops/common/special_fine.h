/* SPDX-License-Identifier: Apache-2.0
 *
 * Special functions of one float, most of them in double arithmetic, in the manner of vmath.h: no
 * branches, IEEE operations only, so that loops over them become vector code. The functions of
 * special.h are as exact as double allows but take one element at a time.
 */
#ifndef CTN_OPS_COMMON_SPECIAL_FINE_H
#define CTN_OPS_COMMON_SPECIAL_FINE_H

#include <stdbool.h>

#include "ops/common/vmath.h"

/* log x for a normal x > 0 with a relative error of 1e-15; NaN for infinity. x = 2^n (1 + f), 1 + f
 * in [sqrt(1/2), sqrt 2), and log(1 + f) = 2 artanh(f / (2 + f)) by its Taylor series. */
CTN__VECTOR double ctn__log_fine(double x)
{
    const double magic = 4503599627370496.0; /* 2^52: its low bits are an integer */
    uint64_t u, e;
    double f, n;
    memcpy(&u, &x, sizeof u);
    e = (u - UINT64_C(0x3fe6a09e667f3bcd) + (UINT64_C(1024) << 52)) >> 52; /* n + 1024 */
    u -= (e - 1024) << 52;
    e |= UINT64_C(0x4330000000000000); /* the bits of 2^52 */
    memcpy(&f, &u, sizeof f);
    memcpy(&n, &e, sizeof n);
    n -= magic + 1024;
    f -= 1;
    const double s = f / (2 + f), z = s * s;
    double p = 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    return n * 0.6931471805599453 + (2 * s + 2 * s * z * p) + (x - x);
}

/* x^y as pow of C defines it, with an error of one unit in the last place. */
CTN__VECTOR float ctn__powf(float x, float y)
{
    const float big = 8388608.0f; /* 2^23: adding it rounds to an integer */
    const float a = fabsf(x), b = fabsf(y), half = 0.5f * b;
    double l = ctn__log_fine((double)a);
    l = a == 0.0f ? -INFINITY : l;
    l = a > FLT_MAX ? INFINITY : l;
    double t = (double)y * l; /* NaN only if it is infinity times 0 */
    t = t > 200.0 ? 200.0 : t;
    t = t < -200.0 ? -200.0 : t;
    float r = (float)ctn__exp_wide(t);
    r = a == 1.0f ? 1.0f : r;
    const int whole = b >= big || (b + big) - big == b;
    const int even = half >= big || (half + big) - big == half;
    const float negative = whole ? even ? r : -r : a == 0.0f || a > FLT_MAX ? r : NAN;
    r = ctn__bits_of(x) >> 31 ? negative : r;
    r = (x != x) | (y != y) ? NAN : r;
    return (x == 1.0f) | (y == 0.0f) ? 1.0f : r;
}

/* erfinv(x) / x with a relative error of 3e-7 as a function of w = -log(1 - x^2), by two fitted
 * polynomials: in w below 5, and in its root up to 16, the value at the largest float below 1. In
 * f32, because the result depends little on the rounding of w. */
CTN__VECTOR float ctn__erfinv_ratio(float w)
{
    const float t = w - 2.5f, s = sqrtf(w > 0.0f ? w : 0.0f) - 3.11803399f;
    float p = -8.94141408e-09f, q = 0.000130970293f;
    p = p * t + 2.32648002e-08f;
    p = p * t + 4.68266974e-07f;
    p = p * t - 3.46309307e-06f;
    p = p * t - 4.97306967e-06f;
    p = p * t + 0.000218345887f;
    p = p * t - 0.00125272523f;
    p = p * t - 0.00417738847f;
    p = p * t + 0.246640278f;
    p = p * t + 1.50140936f;
    q = q * s - 0.000182041475f;
    q = q * s - 0.000316376693f;
    q = q * s + 0.00132651912f;
    q = q * s - 0.00257422504f;
    q = q * s + 0.0038702446f;
    q = q * s - 0.00540804908f;
    q = q * s + 0.00716096706f;
    q = q * s + 1.00361974f;
    q = q * s + 2.95132856f;
    return w < 5.0f ? p : q;
}

/* The same for w from 16 to 104, by a polynomial in its root. */
CTN__VECTOR float ctn__erfinv_ratio_far(float w)
{
    const float s = sqrtf(w > 0.0f ? w : 0.0f) - 7.0f;
    float p = 1.65417138e-08f;
    p = p * s - 9.49507353e-08f;
    p = p * s + 2.25675711e-07f;
    p = p * s - 1.29098942e-06f;
    p = p * s + 6.46058788e-06f;
    p = p * s + 5.37096321e-06f;
    p = p * s - 0.000513329986f;
    p = p * s + 1.0085963f;
    return p * s + 6.86901999f;
}

/* The inverse of erf. */
CTN__VECTOR float ctn__erfinvf(float x)
{
    const float a = fabsf(x), room = (1.0f - a) * (1.0f + a);
    float v = x * ctn__erfinv_ratio(-ctn__logf(room > 1e-30f ? room : 1e-30f));
    v = a == 1.0f ? x * INFINITY : v;
    return a <= 1.0f ? v : NAN;
}

/* The inverse of erfc: that of erf at x = 1 - q, where 1 - x^2 = q (2 - q). */
CTN__VECTOR float ctn__erfcinvf(float q)
{
    const bool inside = (q > 0.0f) & (q < 2.0f);
    const float w = -ctn__logf(inside ? q * (2.0f - q) : 1.0f);
    const float v = (1.0f - q) * (w < 16.0f ? ctn__erfinv_ratio(w) : ctn__erfinv_ratio_far(w));
    const float end = q == 0.0f ? INFINITY : q == 2.0f ? -INFINITY : NAN;
    return inside ? v : end;
}

/* x minus the nearest integer; all floats from 2^24 on are integers. */
CTN__VECTOR double ctn__from_integer(double x)
{
    const double shift = 6755399441055744.0; /* adding 1.5 * 2^52 rounds to an integer */
    const double r = x - ((x + shift) - shift);
    return fabs(x) < 16777216 ? r : 0;
}

/* sin(pi r) for |r| <= 1/2: the Taylor series. */
CTN__VECTOR double ctn__sin_pi_fine(double r)
{
    const double t = 3.14159265358979323846 * r, z = t * t;
    double p = -1 / 121645100408832000.0;
    p = p * z + 1 / 355687428096000.0;
    p = p * z - 1 / 1307674368000.0;
    p = p * z + 1 / 6227020800.0;
    p = p * z - 1 / 39916800.0;
    p = p * z + 1 / 362880.0;
    p = p * z - 1 / 5040.0;
    p = p * z + 1 / 120.0;
    p = p * z - 1 / 6.0;
    return p * z * t + t;
}

CTN__VECTOR double ctn__cos_pi_fine(double r)
{
    const double h = ctn__sin_pi_fine(0.5 * r);
    return 1 - 2 * h * h;
}

/* log |Gamma(x)|: Stirling's series at x + 8, minus the logarithm of x (x+1) ... (x+7); at x itself
 * from 8 on. Below 0, lgamma(x) = log(pi / |sin(pi x)|) - lgamma(1 - x). The error is about 1e-14,
 * relative to the larger of 1 and the result. */
CTN__VECTOR double ctn__lgamma_fine(float x0)
{
    const double x = (double)x0, y = x < 0 ? 1 - x : x, z = y < 8 ? y : 1;
    const double u = y < 8 ? y + 8 : y, i = 1 / u, v = i * i;
    const double steps = z * (z + 1) * (z + 2) * (z + 3) * (z + 4) * (z + 5) * (z + 6) * (z + 7);
    double p = -691.0 / 360360;
    p = p * v + 1.0 / 1188;
    p = p * v - 1.0 / 1680;
    p = p * v + 1.0 / 1260;
    p = p * v - 1.0 / 360;
    p = p * v + 1.0 / 12;
    double g = (u - 0.5) * ctn__log_fine(u) - u + 0.91893853320467274 + p * i;
    g -= ctn__log_fine(y < 8 ? steps : 1);
    g = y > (double)FLT_MAX ? INFINITY : g;
    const double sine = fabs(ctn__sin_pi_fine(ctn__from_integer(x)));
    const double turned = ctn__log_fine(3.14159265358979323846 / (sine > 0 ? sine : 1)) - g;
    g = x < 0 ? (sine > 0 ? turned : INFINITY) : g;
    return x == 0 ? INFINITY : g;
}

/* Below 0, digamma(x) = digamma(1 - x) - pi / tan(pi x). Otherwise digamma(x) = digamma(x + 8)
 * minus the sum of 1/(x + k), of which two share a division; then the series of special.c. The
 * error is about 1e-14, relative to the larger of 1 and the result. */
CTN__VECTOR double ctn__digamma_fine(float x0)
{
    const double x = (double)x0, y = x < 0 ? 1 - x : x, u = y + 8, v = 1 / (u * u);
    const double s = (2 * y + 1) / (y * (y + 1)) + (2 * y + 5) / ((y + 2) * (y + 3)) +
                     (2 * y + 9) / ((y + 4) * (y + 5)) + (2 * y + 13) / ((y + 6) * (y + 7));
    double p = 1.0 / 12;
    p = p * v - 691.0 / 32760;
    p = p * v + 1.0 / 132;
    p = p * v - 1.0 / 240;
    p = p * v + 1.0 / 252;
    p = p * v - 1.0 / 120;
    p = p * v + 1.0 / 12;
    double d = ctn__log_fine(u) - 0.5 / u - p * v - s;
    const double r = ctn__from_integer(x);
    double turn = 3.14159265358979323846 * ctn__cos_pi_fine(r) / ctn__sin_pi_fine(r);
    turn = r == 0 ? NAN : turn;
    d = y > (double)FLT_MAX ? INFINITY : d;
    return x < 0 ? d - turn : d;
}

/* The derivative of digamma in the same way: the sum of 1/(x + k)^2 and the series
 * 1/u + 1/(2u^2) + sum of B_2k / u^(2k+1). Below 0 it is pi^2 / sin(pi x)^2 - trigamma(1 - x). */
CTN__VECTOR double ctn__trigamma_fine(float x0)
{
    const double x = (double)x0, y = x < 0 ? 1 - x : x, u = y + 8, i = 1 / u, v = i * i;
    const double a = y * (y + 1), b = (y + 2) * (y + 3), c = (y + 4) * (y + 5),
                 d = (y + 6) * (y + 7); /* 1/y^2 + 1/(y+1)^2 = (2a + 1) / a^2, and so on */
    const double s = (2 * a + 1) / (a * a) + (2 * b + 1) / (b * b) + (2 * c + 1) / (c * c) +
                     (2 * d + 1) / (d * d);
    double p = 7.0 / 6;
    p = p * v - 691.0 / 2730;
    p = p * v + 5.0 / 66;
    p = p * v - 1.0 / 30;
    p = p * v + 1.0 / 42;
    p = p * v - 1.0 / 30;
    p = p * v + 1.0 / 6;
    double t = s + i + 0.5 * v + p * v * i;
    const double sine = ctn__sin_pi_fine(ctn__from_integer(x));
    const double turn = 9.86960440108935861883 / (sine * sine);
    t = y > (double)FLT_MAX ? 0 : t;
    return x < 0 ? turn - t : t;
}

#endif
