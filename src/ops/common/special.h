/* SPDX-License-Identifier: Apache-2.0
 *
 * Special functions of double precision that the C library does not have. They are called once per
 * element, for f32 tensors too. NaN stays NaN; outside of the domain the result is NaN.
 */
#ifndef CTN_OPS_COMMON_SPECIAL_H
#define CTN_OPS_COMMON_SPECIAL_H

#include <math.h>
#include <stdint.h>

double ctn__erfcx(double x);    /* exp(x^2) erfc(x) */
double ctn__erfinv(double y);   /* the inverse of erf */
double ctn__erfcinv(double q);  /* the inverse of erfc */
double ctn__log_ndtr(double x); /* the logarithm of the normal distribution function */
double ctn__lgamma(double x);   /* log |Gamma(x)|, without the global signgam of lgamma */
double ctn__digamma(double x);
double ctn__zeta(double s, double q); /* Hurwitz */
double ctn__polygamma(int64_t n, double x);

#endif
