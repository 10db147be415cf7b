/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of gradients that do not depend on their order, and so neither on the number of ranks nor on
 * the algorithm. Each contribution is rounded to a multiple of 2^-BITS and added as an integer,
 * which is exact. A gradient that is not finite, or too large for the sum to fit, makes the first
 * sum and all others that are not 0 NaN, on all ranks.
 *
 * Contributions are weighted by their samples, so that for a step of 128 samples the mean is
 * rounded to a multiple of 2^-47, and may be as large as 2^15.
 */
#include "comm/flight.h"

#include <math.h>

enum { BITS = 40 };

bool ctn__exchange_is_exact(const ctn__exchange *x)
{
    return x->exact != NULL;
}

/* Values below 2^51 are rounded by adding a number whose last bit is worth 1, which compilers turn
 * into vector instructions, unlike llrint. */
static void add_small(int64_t *sum, const float *g, int64_t n)
{
    const double one = 0x1.8p52;
    int64_t base;
    memcpy(&base, &one, sizeof base);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const double v = ldexp(1, BITS) * (double)g[i] + one;
        int64_t bits;
        memcpy(&bits, &v, sizeof bits);
        sum[i] += bits - base;
    }
}

/* Returns how many values are too large. */
static int64_t add_any(int64_t *sum, const float *g, int64_t n, double most)
{
    int64_t bad = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = ldexp(1, BITS) * (double)g[i];
        const bool fits = fabs(v) < most;
        bad += !fits;
        sum[i] += fits ? llrint(v) : 0;
    }
    return bad;
}

static bool all_small(const float *g, int64_t n)
{
    const float most = (float)ldexp(1, 51 - BITS);
    int small = 1;
#pragma omp simd reduction(& : small)
    for (int64_t i = 0; i < n; i++) small &= fabsf(g[i]) < most;
    return small;
}

void ctn__exchange_collect(ctn__exchange *x)
{
    enum { CHUNK = 4096 };
    const int64_t count = x->buckets.count;
    const double most = ldexp(1, 62) / (double)x->opt.exact;
    float *g = x->g;
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int64_t n = count - at < CHUNK ? count - at : CHUNK;
        if (most >= ldexp(1, 51) && all_small(g + at, n)) add_small(x->exact + at, g + at, n);
        else x->exact[count] += add_any(x->exact + at, g + at, n, most);
    }
    memset(g, 0, (size_t)count * sizeof *g);
}

ctn_status ctn__exact_sum(ctn__exchange *x)
{
    const int64_t n = x->buckets.count;
    float *g = x->g;
    ctn__coll *sum = NULL;
    ctn__exchange_collect(x);
    CTN_TRY(ctn__coll_start(x->comm, &sum, NULL, x->exact, n + 1, CTN_I64, CTN_I64));
    CTN_TRY(ctn__coll_wait(sum));
    const double unit = x->exact[n] == 0 ? ldexp(1, -BITS) : NAN;
    /* Padding, whose sums are 0, stays 0, because nothing else would clear it. */
    for (int64_t i = 0; i < n; i++)
        g[i] = x->exact[i] == 0 ? 0 : (float)((double)x->exact[i] * unit);
    if (x->exact[n] != 0) g[0] = NAN;
    memset(x->exact, 0, ((size_t)n + 1) * sizeof *x->exact);
    return CTN_OK;
}
