/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweep kernels in plain C. sweep.c, sweep_avx2.c and sweep_avx512.c include this file once
 * each and set the target and SWEEP_TABLE, the name of the table defined here. sweep_rules.h has
 * the kernels of one type.
 *
 * Invariant: only IEEE operations, never contracted or reordered, so the vector body, the scalar
 * tail and all instruction sets agree bitwise (the build uses -ffp-contract=off).
 */
#include <math.h>
#include <string.h>

#include "engine/sweep.h"

#if defined(__OPTIMIZE__) && !defined(__NO_MATH_ERRNO__)
#error "compile src/engine with -fno-math-errno: sqrtf that may set errno is not vectorised"
#endif

#define T float
#define SQRT sqrtf
#define NAME(x) x##_f32
#include "engine/sweep_rules.h"
#undef T
#undef SQRT
#undef NAME
#define T double
#define SQRT sqrt
#define NAME(x) x##_f64
#include "engine/sweep_rules.h"
#undef T
#undef SQRT
#undef NAME

static void narrow(const float *restrict w, uint16_t *restrict low, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        /* Not memcpy: as a checked copy (_FORTIFY_SOURCE) it keeps gcc from vectorising this. */
        const union {
            float value;
            uint32_t bits;
        } x = {w[i]};
        const uint32_t u = x.bits;
        uint32_t even = u + 0x7fffu + ((u >> 16) & 1u);
        uint32_t quiet = u | 0x400000u; /* rounding could carry a NaN into infinity */
        low[i] = (uint16_t)(((u & 0x7fffffffu) > 0x7f800000u ? quiet : even) >> 16);
    }
}

#define TYPED(t)                                                    \
    {.step = {[CTN__SWEEP_SGD] = sgd_##t,                           \
              [CTN__SWEEP_MOMENTUM] = momentum_##t,                 \
              [CTN__SWEEP_NESTEROV] = nesterov_##t,                 \
              [CTN__SWEEP_ADAM] = adam_##t,                         \
              [CTN__SWEEP_AMSGRAD] = amsgrad_##t,                   \
              [CTN__SWEEP_RMSPROP] = rmsprop_##t,                   \
              [CTN__SWEEP_RMSPROP_MOMENTUM] = rmsprop_momentum_##t, \
              [CTN__SWEEP_RMSPROP_CENTERED] = rmsprop_centered_##t, \
              [CTN__SWEEP_RMSPROP_GRAVES] = rmsprop_graves_##t,     \
              [CTN__SWEEP_ADAGRAD] = adagrad_##t,                   \
              [CTN__SWEEP_ADADELTA] = adadelta_##t,                 \
              [CTN__SWEEP_ADAMAX] = adamax_##t,                     \
              [CTN__SWEEP_NADAM] = nadam_##t,                       \
              [CTN__SWEEP_LION] = lion_##t,                         \
              [CTN__SWEEP_BOUND] = bound_##t,                       \
              [CTN__SWEEP_AMSBOUND] = amsbound_##t,                 \
              [CTN__SWEEP_SMORMS3] = smorms3_##t,                   \
              [CTN__SWEEP_MSVAG] = msvag_##t,                       \
              [CTN__SWEEP_LAMB] = lamb_##t,                         \
              [CTN__SWEEP_GRADIENT] = gradient_##t},                \
     .dot = dot_##t}

const ctn__sweep_kernels SWEEP_TABLE = {.f32 = TYPED(f32), .f64 = TYPED(f64), .narrow = narrow};
