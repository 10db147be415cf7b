/* SPDX-License-Identifier: Apache-2.0
 *
 * Special functions, see special.h. Relative errors are about 1e-14 or less, except next to the
 * zeros of digamma, where the error is absolute.
 */
#include "ops/common/special.h"

#define PI 3.14159265358979323846
#define SQRT_PI 1.77245385090551602730
#define SQRT_HALF 0.70710678118654752440

/* ---- error functions ------------------------------------------------------------------------- */

/* x^2 = s + rest, so that exp(x^2) does not suffer from the rounding of the square. */
static double exp_square(double x)
{
    const double s = x * x, rest = fma(x, x, -s);
    return isinf(s) ? s : exp(s) * (1 + rest);
}

/* Above 25 the asymptotic series 1/(x sqrt pi) (1 - 1/(2x^2) + 1*3/(2x^2)^2 - ...). */
double ctn__erfcx(double x)
{
    if (x < 0) return 2 * exp_square(x) - ctn__erfcx(-x);
    if (!(x > 25)) return exp_square(x) * erfc(x);
    double term = 1, sum = 1, u = 0.5 / x / x;
    for (int k = 1; k <= 7; k++) {
        term *= -(2 * k - 1) * u;
        sum += term;
    }
    return sum / (x * SQRT_PI);
}

/* The inverse of erf for |y| <= 1/2: the beginning of its Taylor series, improved by Halley's
 * method, which triples the number of digits. f = erf(x) - y, f'' = -2x f'. */
static double erfinv_near(double y)
{
    const double v = y * y;
    double x = y * SQRT_PI / 2 * (1 + v * (PI / 12 + v * 7 * PI * PI / 480));
    for (int k = 0; k < 2; k++) {
        const double step = (erf(x) - y) * SQRT_PI / 2 * exp(x * x);
        x -= step / (1 + x * step);
    }
    return x;
}

/* The inverse of erfc for 0 <= q <= 1/2: a rational approximation of the normal quantile
 * (Abramowitz and Stegun 26.2.23), improved by Newton's method for log erfc(x) = log q, in which
 * nothing underflows. */
static double erfcinv_far(double q)
{
    if (q == 0) return INFINITY;
    const double l = log(q), t = sqrt(-2 * (l - 0.69314718055994530942));
    double x = SQRT_HALF * (t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                                    (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
    for (int k = 0; k < 2; k++) {
        const double e = ctn__erfcx(x);
        x += (log(e) - x * x - l) * e * SQRT_PI / 2;
    }
    return x;
}

/* The differences below are exact. */

double ctn__erfinv(double y)
{
    const double a = fabs(y);
    if (!(a <= 1)) return NAN;
    return a <= 0.5 ? erfinv_near(y) : copysign(erfcinv_far(1 - a), y);
}

double ctn__erfcinv(double q)
{
    if (!(q >= 0 && q <= 2)) return NAN;
    if (q < 0.5) return erfcinv_far(q);
    return q > 1.5 ? -erfcinv_far(2 - q) : erfinv_near(1 - q);
}

double ctn__log_ndtr(double x)
{
    const double z = x * SQRT_HALF;
    return x < -1 ? log(0.5 * ctn__erfcx(-z)) - 0.5 * x * x : log1p(-0.5 * erfc(z));
}

/* ---- gamma functions ------------------------------------------------------------------------- */

double ctn__lgamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* digamma(x) = digamma(x + 1) - 1/x leads to large x, where
 *   digamma(x) = log x - 1/(2x) - sum of B_2k / (2k x^2k).
 * Below 0, digamma(x) = digamma(1 - x) - pi / tan(pi x). */
double ctn__digamma(double x)
{
    static const double b[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                               1.0 / 132, -691.0 / 32760, 1.0 / 12};
    if (x == 0) return -copysign(INFINITY, x);
    if (x < 0) {
        const double r = x - rint(x);
        return r == 0 || isinf(x) ? NAN : ctn__digamma(1 - x) - PI / tan(PI * r);
    }
    if (isinf(x)) return x;
    double y = 0, sum = 0;
    while (x < 12) {
        y -= 1 / x;
        x += 1;
    }
    const double u = 1 / x / x;
    for (int k = 6; k >= 0; k--) sum = (sum + b[k]) * u;
    return y + log(x) - 0.5 / x - sum;
}

/* Euler-Maclaurin: with a = q + N,
 *   zeta = sum over k < N of (q+k)^-s + a^(1-s) / (s-1) + a^-s / 2
 *          + sum over j >= 1 of B_2j / (2j)! s (s+1) ... (s+2j-2) a^(1-s-2j). */
double ctn__zeta(double s, double q)
{
    static const double b[] = {1.0 / 12,
                               -1.0 / 720,
                               1.0 / 30240,
                               -1.0 / 1209600,
                               1.0 / 47900160,
                               -691.0 / 1307674368000,
                               1.0 / 74724249600,
                               -3617.0 / 10670622842880000,
                               43867.0 / 5109094217170944000};
    if (isnan(s) || isnan(q) || s < 1) return NAN;
    if (s == 1) return INFINITY;
    if (q <= 0 && q == floor(q)) return INFINITY;
    if (q < 0 && s != floor(s)) return NAN; /* a power of a negative number */
    if (isinf(q)) return 0;
    double sum = 0, a = q;
    for (int k = 0; k < 12 || a < 12; k++, a++) {
        const double term = pow(a, -s);
        sum += term;
        if (a > 0 && term < 1e-17 * sum) return sum; /* s is large */
    }
    double term = pow(a, -s), factor = s;
    sum += term * a / (s - 1) + 0.5 * term;
    for (int j = 0; j < (int)(sizeof b / sizeof *b); j++) {
        term /= a;
        sum += b[j] * factor * term;
        term /= a;
        factor *= (s + 2 * j + 1) * (s + 2 * j + 2);
    }
    return sum;
}

double ctn__polygamma(int64_t n, double x)
{
    if (n == 0) return ctn__digamma(x);
    const double y = tgamma((double)n + 1) * ctn__zeta((double)n + 1, x);
    return n % 2 == 0 ? -y : y;
}
