/* SPDX-License-Identifier: Apache-2.0
 *
 * Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", SC11), checked against the known answers of Random123.
 *
 * Invariant: a value is a pure function of seed, stream and element, so results do not depend on
 * the number of threads or on the order of evaluation.
 */
#include "base/base.h"

#include <math.h>

/* 53 bits of two words as a multiple of 2^-53 in [0,1) */
static double unit(uint32_t a, uint32_t b)
{
    uint64_t bits = ((uint64_t)(a >> 5) << 26) | (b >> 6);
    return (double)bits * 0x1p-53;
}

double ctn__uniform(uint64_t seed, uint64_t stream, uint64_t i)
{
    ctn__rand4 r = ctn__philox(seed, stream, i);
    return unit(r.v[0], r.v[1]);
}

double ctn__normal(uint64_t seed, uint64_t stream, uint64_t i)
{
    /* Box-Muller, one of its two results: sqrt(-2 ln u) cos(2 pi v) with u in (0,1], v in [0,1) */
    ctn__rand4 r = ctn__philox(seed, stream, i);
    double u = 1.0 - unit(r.v[0], r.v[1]);
    double v = unit(r.v[2], r.v[3]);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586477 * v);
}

/* The finalizer of SplitMix64: a bijection; each input bit flips half of the output bits. */
static uint64_t scramble(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

uint64_t ctn__mix(uint64_t a, uint64_t b)
{
    return scramble(scramble(a) ^ b); /* not symmetric; for a fixed a, different b never collide */
}
